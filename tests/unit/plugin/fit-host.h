/* A host for fit plugins in tests: feeds arrays in blocks of an odd size and keeps what comes back. */
#ifndef ASSAY_TESTS_UNIT_PLUGIN_FIT_HOST_H
#define ASSAY_TESTS_UNIT_PLUGIN_FIT_HOST_H

#include "engine/foundation/text.h"
#include "engine/plugin/plugin-library.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOST_TERMS = 64, HOST_GROUPS = 16, HOST_COLUMNS = 16, HOST_BLOCK = 37 };

struct host_table {
    const char *names[HOST_COLUMNS];
    const double *columns[HOST_COLUMNS];
    size_t column_count, rows;
    const uint32_t *groups; /* NULL: all rows are group 0 */
    uint32_t group_count;
    const char *response, *terms, *weights;
    const char *sizes[8];
    size_t size_count;
};

struct host_group {
    bool fitted;
    uint64_t rows;
    char reason[1024];
    struct fit_estimate estimates[HOST_TERMS];
    double covariance[HOST_TERMS * HOST_TERMS];
    bool has_covariance;
    struct fit_value values[32];
    size_t value_count;
    struct plugin_range domain[HOST_TERMS];
    size_t domain_count;
    char notes[2048];
};

struct host_result {
    int code; /* of the first call that failed, or 0 */
    struct plugin_message message;
    size_t term_count;
    char terms[HOST_TERMS][128];
    struct host_group groups[HOST_GROUPS];
};

static int host_formula(void *context, const struct fit_formula *formula) {
    struct host_result *result = context;
    result->term_count = formula->term_count;
    for (size_t t = 0; t < formula->term_count; t++)
        snprintf(result->terms[t], sizeof result->terms[t], "%s", formula->terms[t].name);
    return 0;
}

static int host_group(void *context, const struct fit_group *group) {
    struct host_result *result = context;
    struct host_group *kept = &result->groups[group->code];
    const struct fit_part *part = &group->parts[0];
    kept->fitted = true;
    kept->rows = group->rows;
    memcpy(kept->estimates, part->estimates, result->term_count * sizeof *kept->estimates);
    kept->has_covariance = part->covariance != NULL;
    if (part->covariance)
        memcpy(kept->covariance, part->covariance, result->term_count * result->term_count * sizeof(double));
    kept->value_count = part->value_count;
    memcpy(kept->values, part->values, part->value_count * sizeof *kept->values);
    kept->domain_count = part->domain_count;
    memcpy(kept->domain, part->domain, part->domain_count * sizeof *kept->domain);
    for (size_t i = 0; i < group->note_count; i++) {
        strncat(kept->notes, group->notes[i], sizeof kept->notes - strlen(kept->notes) - 1);
        strncat(kept->notes, "|", sizeof kept->notes - strlen(kept->notes) - 1);
    }
    return 0;
}

static int host_skipped(void *context, uint32_t code, uint64_t rows, const char *reason) {
    struct host_result *result = context;
    result->groups[code].rows = rows;
    snprintf(result->groups[code].reason, sizeof result->groups[code].reason, "%s", reason);
    return 0;
}

static void host_note(void *context, const char *sentence) {
    (void)context;
    (void)sentence;
}

static int host_stream(const struct fit_operations *fit, struct fit *instance, const struct fit_needs *needs,
                       const struct host_table *table, const uint32_t *groups,
                       struct plugin_message *message) {
    int r = 0;
    for (size_t start = 0; r >= 0 && start < table->rows; start += HOST_BLOCK) {
        const double *columns[HOST_COLUMNS];
        for (size_t i = 0; i < needs->column_count; i++)
            for (size_t c = 0; c < table->column_count; c++)
                if (strcmp(table->names[c], needs->columns[i]) == 0)
                    columns[i] = table->columns[c] + start;
        size_t rows = table->rows - start < HOST_BLOCK ? table->rows - start : HOST_BLOCK;
        const struct fit_block block = {
            sizeof block, rows, columns, groups + start, table->groups ? table->group_count : 1, start};
        r = fit->block(instance, &block, message);
    }
    return r < 0 ? r : fit->end_of_pass(instance, message);
}

static void host_fit(const struct fit_operations *fit, const struct host_table *table,
                     struct host_result *ret) {
    static uint32_t order[HOST_GROUPS];
    *ret = (struct host_result){0};
    uint32_t *zero = calloc(table->rows + 1, sizeof *zero);
    struct fit_column columns[HOST_COLUMNS];
    for (size_t i = 0; i < table->column_count; i++)
        columns[i] = (struct fit_column){table->names[i], NULL};
    for (uint32_t i = 0; i < HOST_GROUPS; i++)
        order[i] = i;
    const struct plugin_host host = {sizeof host, NULL, host_note, text_nearest};
    const struct fit_request request = {
        .size = sizeof request,
        .response = table->response,
        .terms = table->terms,
        .sizes = table->sizes,
        .size_count = table->size_count,
        .weights = table->weights,
        .columns = columns,
        .column_count = table->column_count,
    };
    struct fit *instance = NULL;
    struct fit_needs needs = {0};
    ret->code = fit->open(&host, &request, &instance, &needs, &ret->message);
    if (ret->code >= 0)
        ret->code =
            host_stream(fit, instance, &needs, table, table->groups ? table->groups : zero, &ret->message);
    const struct fit_writer writer = {
        sizeof writer, ret,        order,       table->groups ? table->group_count : 1,
        host_formula,  host_group, host_skipped};
    if (ret->code >= 0)
        ret->code = fit->finish(instance, &writer, &ret->message);
    fit->close(instance);
    free(zero);
}

static double host_value(const struct host_group *group, const char *name) {
    for (size_t i = 0; i < group->value_count; i++)
        if (strcmp(group->values[i].name, name) == 0)
            return group->values[i].value;
    return -12345;
}

#endif
