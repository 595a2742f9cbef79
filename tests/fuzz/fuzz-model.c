/* A model file of any bytes: refused with a sentence, or read; and then rows for it are found, or refused. */
#include "tests/fuzz/trees.h"

#include "engine/plugin/model-fit.h"
#include "engine/plugin/next-rows.h"

#include <math.h>

enum { CANDIDATES = 7, FACTORS_MOST = 20 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_refused(int r, const struct failure *failure) {
    must(r < 0 && failure->kind != FAILURE_NONE && failure->text[0] != '\0');
}

static struct design *make_candidates(const struct model_fit *fit) {
    struct design *design = NULL;
    struct failure failure = {0};
    must(design_new(CANDIDATES, &design, &failure) == 0);
    for (size_t i = 0; i < fit->factor_count && i < FACTORS_MOST; i++) {
        struct design_column *column = NULL;
        if (design_add_column(design, fit->factors[i].name, DESIGN_NUMBER, &column, &failure) < 0)
            break; /* a control, or no name at all */
        for (size_t row = 0; row < CANDIDATES; row++)
            column->numbers[row] = (double)((row * (i + 3) + i) % CANDIDATES) - 2.5;
    }
    return design;
}

static void find_rows(const struct model_fit *fit, const struct design *design,
                      enum optimal_criterion criterion) {
    size_t group = 0;
    const struct next_request request = {
        .fit = fit,
        .groups = &group,
        .group_count = 1,
        .candidates = design,
        .criterion = criterion,
        .budget = criterion == OPTIMAL_D ? INFINITY : 10,
        .rows_most = 3,
    };
    struct next_rows next = {0};
    struct failure failure = {0};
    int r = next_rows_find(&request, &next, &failure);
    if (r < 0) {
        check_refused(r, &failure);
        return;
    }
    must(next.rows.count >= 1 && next.rows.count <= 3);
    for (size_t i = 0; i < next.rows.count; i++)
        must(next.rows.items[i] < CANDIDATES && next.rows.gains[i] >= 0);
    must(isfinite(next.error_before) && next.error_after <= next.error_before * (1 + 1e-6));
    next_rows_clear(&next);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct model *model = NULL;
    struct model_fit *fit = NULL;
    struct failure failure = {0};
    int r = model_parse("fuzz.json", (const char *)bytes, length, &model, &failure);
    if (r < 0) {
        must(model == NULL);
        check_refused(r, &failure);
        return 0;
    }
    r = model_fit_read(model, &fit, &failure);
    if (r < 0) {
        must(fit == NULL);
        check_refused(r, &failure);
    } else if (fit->view->term_count <= OPTIMAL_TERMS_MOST) {
        struct design *design = make_candidates(fit);
        find_rows(fit, design, OPTIMAL_D);
        find_rows(fit, design, OPTIMAL_I);
        design_free(design);
    }
    model_fit_free(fit);
    model_free(model);
    return 0;
}
