/* The plugin fit-linear: see README.md for what it computes. */
#include "plugins/fit-linear/linear.h"
#include "plugins/fit-linear/settle.h"
#include "plugins/fit-linear/telling.h"

#include <errno.h>
#include <gsl/gsl_errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Beginning */

static void add_input(struct fit *fit, const char *column) {
    size_t need = 0;
    while (need < fit->need_count && strcmp(fit->needs[need], column) != 0)
        need++;
    if (need == fit->need_count)
        fit->needs[fit->need_count++] = column;
    fit->input_need[fit->input_count++] = need;
}

static int linear_open(const struct plugin_host *host, const struct fit_request *request, struct fit **ret,
                       struct fit_needs *ret_needs, struct plugin_message *message) {
    /* GSL's default is to abort; what is asked of it here cannot fail but for memory, which is checked. */
    gsl_set_error_handler_off();
    struct fit *fit = calloc(1, sizeof *fit);
    if (!fit)
        return -ENOMEM;
    fit->host = host;
    fit->request = request;
    int r = formula_read(host, request, &fit->formula, message);
    r = r < 0 ? r : moments_new(&fit->formula, request->weights != NULL, MOMENTS_BEST, &fit->moments);
    if (r < 0) {
        formula_clear(&fit->formula);
        free(fit);
        return r;
    }
    for (size_t i = 0; i < fit->formula.column_count; i++)
        add_input(fit, fit->formula.columns[i]);
    add_input(fit, request->response);
    if (request->weights)
        add_input(fit, request->weights);
    *ret = fit;
    *ret_needs =
        (struct fit_needs){.size = sizeof *ret_needs, .columns = fit->needs, .column_count = fit->need_count};
    return 0;
}

static void linear_close(struct fit *fit) {
    if (!fit)
        return;
    formula_clear(&fit->formula);
    moments_free(fit->moments);
    free(fit);
}

/* ---- Rows */

static int add_sums(struct fit *fit, const struct fit_block *block, struct plugin_message *message) {
    const double *columns[LINEAR_NEEDS_MOST];
    for (size_t i = 0; i < fit->input_count; i++)
        columns[i] = block->columns[fit->input_need[i]];
    size_t row;
    int r = moments_add(fit->moments, block->rows, columns, block->groups, block->group_count, &row);
    if (r == -ERANGE) {
        snprintf(message->text, sizeof message->text,
                 "the weight '%s' of data row %" PRIu64 " is %g; expected 0 or more", fit->request->weights,
                 block->first_row + row + 1, columns[fit->input_count - 1][row]);
        return -EINVAL;
    }
    fit->rows += block->rows;
    return r;
}

static int linear_block(struct fit *fit, const struct fit_block *block, struct plugin_message *message) {
    switch (fit->stage) {
    case STAGE_SUMS:
        return add_sums(fit, block, message);
    case STAGE_NOISE:
        return 0;
    }
    return -EINVAL;
}

static int linear_end_of_pass(struct fit *fit, struct plugin_message *message) {
    switch (fit->stage) {
    case STAGE_SUMS:
        if (fit->rows == 0) {
            snprintf(message->text, sizeof message->text, "there are no rows to fit");
            return -EINVAL;
        }
        return FIT_DONE; /* no noise needs the rows again */
    case STAGE_NOISE:
        return FIT_DONE;
    }
    return -EINVAL;
}

/* ---- Results */

static int linear_finish(struct fit *fit, const struct fit_writer *writer, struct plugin_message *message) {
    (void)message; /* whatever fails here is memory, or the writer, who knows */
    struct settling *settling = settling_new(fit);
    struct settled *settled = malloc(sizeof *settled);
    struct telling *telling = malloc(sizeof *telling);
    int r = settling && settled && telling ? telling_formula(fit, writer) : -ENOMEM;
    for (uint32_t i = 0; r >= 0 && i < writer->group_count; i++) {
        r = settle(settling, writer->order[i], settled);
        r = r < 0 ? r : telling_group(fit, writer, writer->order[i], settled, telling);
    }
    free(telling);
    free(settled);
    settling_free(settling);
    return r;
}

static const struct fit_operations operations = {
    .size = sizeof operations,
    .parameter_count = PARAMETER_COUNT,
    .parameters = linear_parameters,
    .open = linear_open,
    .block = linear_block,
    .end_of_pass = linear_end_of_pass,
    .finish = linear_finish,
    .close = linear_close,
};

ASSAY_PLUGIN_EXPORT extern const struct assay_plugin assay_plugin;
const struct assay_plugin assay_plugin = {
    .abi = ASSAY_PLUGIN_ABI,
    .size = sizeof assay_plugin,
    .kind = ASSAY_PLUGIN_FIT,
    .name = "fit-linear",
    .version = ASSAY_VERSION,
    .summary = "least squares on polynomial terms, group by group",
    .operations = &operations,
};
