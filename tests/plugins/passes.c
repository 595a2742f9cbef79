/* A fit plugin that reads its rows twice: mean of the response in the first pass, sum of squares about it in
 * the second. For the tests of the host: rewinding, groups over several inputs, notes, and units. */
#include "plugins/interface/fit.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { GROUPS_MAX = 4096 };

struct fit {
    const struct plugin_host *host;
    const char *needs[1];
    int pass;
    uint64_t rows[GROUPS_MAX], next_row;
    double sums[GROUPS_MAX], squares[GROUPS_MAX];
};

static int passes_open(const struct plugin_host *host, const struct fit_request *request, struct fit **ret,
                       struct fit_needs *ret_needs, struct plugin_message *message) {
    (void)message;
    struct fit *fit = calloc(1, sizeof *fit);
    if (!fit)
        return -ENOMEM;
    fit->host = host;
    fit->needs[0] = request->response;
    *ret = fit;
    *ret_needs = (struct fit_needs){.size = sizeof *ret_needs, .columns = fit->needs, .column_count = 1};
    return 0;
}

static int passes_block(struct fit *fit, const struct fit_block *block, struct plugin_message *message) {
    if (block->first_row != fit->next_row) {
        snprintf(message->text, sizeof message->text, "a block begins at row %llu; expected %llu",
                 (unsigned long long)block->first_row, (unsigned long long)fit->next_row);
        return -EIO;
    }
    fit->next_row += block->rows;
    for (size_t r = 0; r < block->rows; r++) {
        uint32_t group = block->groups[r];
        if (group >= block->group_count || group >= GROUPS_MAX) {
            snprintf(message->text, sizeof message->text, "group %u of %u", group, block->group_count);
            return -EIO;
        }
        double value = block->columns[0][r];
        if (fit->pass == 0) {
            fit->rows[group]++;
            fit->sums[group] += value;
        } else {
            double difference = value - fit->sums[group] / (double)fit->rows[group];
            fit->squares[group] += difference * difference;
        }
    }
    return 0;
}

static int passes_end_of_pass(struct fit *fit, struct plugin_message *message) {
    (void)message;
    fit->next_row = 0;
    if (fit->pass++ > 0)
        return FIT_DONE;
    fit->host->note(fit->host->context, "once more");
    return FIT_AGAIN;
}

static int passes_finish(struct fit *fit, const struct fit_writer *writer, struct plugin_message *message) {
    (void)message;
    const struct plugin_term term = {"1", NULL, 0};
    /* As a plugin that was built before there was named_by: what is behind is no part of it. */
    const struct fit_formula formula = {
        offsetof(struct fit_formula, named_by), "linear", &term, 1, NULL, (const char *)&fit->pass};
    int r = writer->formula(writer->context, &formula);
    for (uint32_t i = 0; r >= 0 && i < writer->group_count; i++) {
        uint32_t g = writer->order[i];
        const struct fit_estimate estimate = {.estimate = fit->sums[g] / (double)fit->rows[g]};
        const struct fit_value value = {"squares", fit->squares[g], 2};
        const struct fit_part part = {
            .size = sizeof part, .kind = "whole", .estimates = &estimate, .values = &value, .value_count = 1};
        const struct fit_group group = {
            .size = sizeof group, .code = g, .rows = fit->rows[g], .parts = &part, .part_count = 1};
        r = writer->group(writer->context, &group);
    }
    return r;
}

static void passes_close(struct fit *fit) {
    free(fit);
}

static const struct fit_operations operations = {
    .size = sizeof operations,
    .open = passes_open,
    .block = passes_block,
    .end_of_pass = passes_end_of_pass,
    .finish = passes_finish,
    .close = passes_close,
};

ASSAY_PLUGIN_EXPORT extern const struct assay_plugin assay_plugin;
const struct assay_plugin assay_plugin = {
    .abi = ASSAY_PLUGIN_ABI,
    .size = sizeof assay_plugin,
    .kind = ASSAY_PLUGIN_FIT,
    .name = "fit-passes",
    .version = "1",
    .summary = "means, in two passes",
    .operations = &operations,
};
