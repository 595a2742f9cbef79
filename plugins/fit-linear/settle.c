#include "plugins/fit-linear/settle.h"

#include <stdlib.h>

struct settling {
    const struct fit *fit;
    struct least_squares_workspace *workspace;
};

struct settling *settling_new(const struct fit *fit) {
    struct settling *settling = calloc(1, sizeof *settling);
    if (!settling)
        return NULL;
    settling->fit = fit;
    settling->workspace = least_squares_workspace_new(fit->formula.term_count);
    if (settling->workspace)
        return settling;
    settling_free(settling);
    return NULL;
}

void settling_free(struct settling *settling) {
    if (!settling)
        return;
    least_squares_workspace_free(settling->workspace);
    free(settling);
}

int settle(struct settling *settling, uint32_t group, struct settled *ret) {
    const struct fit *fit = settling->fit;
    ret->incomplete = moments_incomplete(fit->moments, group);
    ret->fitted = least_squares_fit(&fit->formula, fit->moments, group, fit->request->weights != NULL,
                                    settling->workspace, &ret->result, ret->reason) == LEAST_SQUARES_FITTED;
    return 0;
}
