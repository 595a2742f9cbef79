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

enum {
    HOST_TERMS = 64,
    HOST_GROUPS = 16,
    HOST_COLUMNS = 16,
    HOST_BLOCK = 37,
    HOST_PARTS = 32,
    HOST_COVARIANCE = 12,
    HOST_SETTINGS = 64,
    HOST_COMPARISONS = 256,
    HOST_DISTANCES = 640,
    HOST_LEVELS = 256,
};

struct host_table {
    const char *names[HOST_COLUMNS];
    const char *units[HOST_COLUMNS]; /* NULL: not known */
    const double *columns[HOST_COLUMNS];
    size_t column_count, rows;
    const uint32_t *groups; /* NULL: all rows are group 0 */
    uint32_t group_count;
    const char *response, *terms, *weights;
    const char *sizes[8];
    size_t size_count;
    bool suggested;
    uint64_t seed;
    const char *other_method, *other_terms, *breaks_from;
    double breaks[8];
    size_t break_count;
    /* Columns of texts: codes of each row, and the texts in natural order by code. */
    const char *category_names[HOST_COLUMNS];
    const uint32_t *categories[HOST_COLUMNS];
    const char *const *levels[HOST_COLUMNS];
    uint32_t level_counts[HOST_COLUMNS];
    size_t category_count;
    /* Parameters that are not as by default: names and values (of words, their index). */
    const char *settings[HOST_SETTINGS];
    double values[HOST_SETTINGS];
    size_t setting_count;
};

/* One part of a group, as host_group has the first. */
struct host_part {
    char kind[32], name[64];
    double from, to;
    struct fit_estimate estimates[HOST_TERMS];
    struct fit_value values[32];
    size_t value_count;
    bool noisy;
    struct plugin_noise noise; /* coefficients and components point to the next two */
    double coefficients[HOST_TERMS];
    struct plugin_component components[16];
    bool has_covariance;
    double covariance[HOST_COVARIANCE * HOST_COVARIANCE]; /* of at most so many terms */
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
    struct host_part parts[HOST_PARTS];
    size_t part_count;
};

/* What a model tells in place of residuals; names are copies. */
struct host_distances {
    struct fit_distances told;
    struct fit_distance items[HOST_DISTANCES];
    char names[HOST_DISTANCES][32], parts[HOST_DISTANCES][16];
};

struct host_result {
    int code; /* of the first call that failed, or 0 */
    struct plugin_message message;
    size_t term_count;
    char terms[HOST_TERMS][128], kind[32], over[64];
    const struct host_table *table;
    const struct fit_needs *needs;
    uint32_t orders[HOST_COLUMNS][HOST_LEVELS];
    struct host_group groups[HOST_GROUPS];
    struct fit_comparison comparisons[HOST_COMPARISONS]; /* of the first rows */
    struct host_distances distances[2];
};

static int host_formula(void *context, const struct fit_formula *formula) {
    struct host_result *result = context;
    result->term_count = formula->term_count;
    snprintf(result->kind, sizeof result->kind, "%s", formula->kind);
    snprintf(result->over, sizeof result->over, "%s", formula->over ? formula->over : "");
    for (size_t t = 0; t < formula->term_count; t++)
        snprintf(result->terms[t], sizeof result->terms[t], "%s", formula->terms[t].name);
    return 0;
}

static void host_keep_part(const struct host_result *result, const struct fit_part *part,
                           struct host_part *ret) {
    snprintf(ret->kind, sizeof ret->kind, "%s", part->kind);
    snprintf(ret->name, sizeof ret->name, "%s", part->name ? part->name : "");
    ret->from = part->from;
    ret->to = part->to;
    memcpy(ret->estimates, part->estimates, result->term_count * sizeof *ret->estimates);
    ret->value_count = part->value_count;
    memcpy(ret->values, part->values, part->value_count * sizeof *ret->values);
    ret->has_covariance = part->covariance && result->term_count <= HOST_COVARIANCE;
    if (ret->has_covariance)
        memcpy(ret->covariance, part->covariance, result->term_count * result->term_count * sizeof(double));
    ret->noisy = part->noise != NULL;
    if (!part->noise)
        return;
    ret->noise = *part->noise;
    if (part->noise->coefficients)
        memcpy(ret->coefficients, part->noise->coefficients, result->term_count * sizeof(double));
    if (part->noise->components)
        memcpy(ret->components, part->noise->components,
               part->noise->component_count * sizeof *ret->components);
    ret->noise.coefficients = part->noise->coefficients ? ret->coefficients : NULL;
    ret->noise.components = part->noise->components ? ret->components : NULL;
}

static int host_group(void *context, const struct fit_group *group) {
    struct host_result *result = context;
    struct host_group *kept = &result->groups[group->code];
    const struct fit_part *part = &group->parts[0];
    kept->fitted = true;
    for (size_t i = 0; i < group->part_count && i < HOST_PARTS; i++, kept->part_count++)
        host_keep_part(result, &group->parts[i], &kept->parts[i]);
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

static int host_levels(void *context, size_t category, struct plugin_levels *ret) {
    struct host_result *result = context;
    const struct host_table *table = result->table;
    for (size_t c = 0; c < table->category_count; c++) {
        if (strcmp(table->category_names[c], result->needs->categories[category]) != 0)
            continue;
        for (uint32_t i = 0; i < table->level_counts[c]; i++)
            result->orders[c][i] = i;
        *ret = (struct plugin_levels){table->levels[c], result->orders[c], table->level_counts[c]};
        return 0;
    }
    return -EINVAL;
}

static const char *host_place(void *context, uint64_t row, char *buffer, size_t size) {
    (void)context;
    snprintf(buffer, size, "table data row %llu", (unsigned long long)row + 1);
    return buffer;
}

/* The fold that this host puts a row in. */
static inline uint8_t host_fold_of(uint64_t row, uint64_t seed, uint32_t folds) { /* splitmix64 */
    uint64_t z = row * UINT64_C(0x9e3779b97f4a7c15) + seed;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint8_t)((((z ^ z >> 31) >> 32) * folds) >> 32);
}

static int host_stream(const struct fit_operations *fit, struct fit *instance, const struct fit_needs *needs,
                       const struct host_table *table, const uint32_t *groups, double folds,
                       struct plugin_message *message) {
    int r = 0;
    for (size_t start = 0; r >= 0 && start < table->rows; start += HOST_BLOCK) {
        const double *columns[HOST_COLUMNS];
        for (size_t i = 0; i < needs->column_count; i++)
            for (size_t c = 0; c < table->column_count; c++)
                if (strcmp(table->names[c], needs->columns[i]) == 0)
                    columns[i] = table->columns[c] + start;
        const uint32_t *categories[HOST_COLUMNS];
        for (size_t i = 0; i < needs->category_count; i++)
            for (size_t c = 0; c < table->category_count; c++)
                if (strcmp(table->category_names[c], needs->categories[i]) == 0)
                    categories[i] = table->categories[c] + start;
        size_t rows = table->rows - start < HOST_BLOCK ? table->rows - start : HOST_BLOCK;
        uint8_t fold_of[HOST_BLOCK];
        for (size_t i = 0; i < rows; i++)
            fold_of[i] = host_fold_of(start + i, table->seed, (uint32_t)folds);
        const struct fit_block block = {
            .size = sizeof block,
            .rows = rows,
            .columns = columns,
            .groups = groups + start,
            .group_count = table->groups ? table->group_count : 1,
            .first_row = start,
            .categories = categories,
            .folds = folds >= 2 ? fold_of : NULL,
        };
        r = fit->block(instance, &block, message);
    }
    return r < 0 ? r : fit->end_of_pass(instance, message);
}

static void host_keep_distances(const struct fit_operations *fit, const struct fit *instance,
                                struct host_distances ret[static 2]) {
    for (size_t set = 0; set < 2 && fit->distances && fit->distances(instance, set, &ret[set].told); set++)
        for (size_t i = 0; i < ret[set].told.count && i < HOST_DISTANCES; i++) {
            const struct fit_distance *item = &ret[set].told.items[i];
            ret[set].items[i] = *item;
            snprintf(ret[set].names[i], sizeof *ret->names, "%s", item->name);
            snprintf(ret[set].parts[i], sizeof *ret->parts, "%s", item->part ? item->part : "");
        }
}

static void host_fit(const struct fit_operations *fit, const struct host_table *table,
                     struct host_result *ret) {
    static uint32_t order[HOST_GROUPS];
    *ret = (struct host_result){0};
    uint32_t *zero = calloc(table->rows + 1, sizeof *zero);
    struct fit_column columns[2 * HOST_COLUMNS];
    double parameters[HOST_SETTINGS], folds = 0;
    for (size_t i = 0; i < fit->parameter_count; i++) {
        parameters[i] = fit->parameters[i].fallback;
        for (size_t s = 0; s < table->setting_count; s++)
            if (strcmp(table->settings[s], fit->parameters[i].name) == 0)
                parameters[i] = table->values[s];
        if (strcmp(fit->parameters[i].name, "folds") == 0)
            folds = parameters[i];
    }
    for (size_t i = 0; i < table->category_count; i++)
        columns[table->column_count + i] = (struct fit_column){table->category_names[i], NULL, "string"};
    for (size_t i = 0; i < table->column_count; i++)
        columns[i] = (struct fit_column){table->names[i], table->units[i], "number"};
    for (uint32_t i = 0; i < HOST_GROUPS; i++)
        order[i] = i;
    const struct plugin_host host = {sizeof host, ret, host_note, text_nearest, host_levels, host_place};
    const struct fit_request request = {
        .size = sizeof request,
        .response = table->response,
        .terms = table->terms,
        .sizes = table->sizes,
        .size_count = table->size_count,
        .weights = table->weights,
        .columns = columns,
        .parameters = parameters,
        .column_count = table->column_count + table->category_count,
        .seed = table->seed,
        .suggested = table->suggested,
        .other_method = table->other_method,
        .other_terms = table->other_terms,
        .breaks = table->breaks,
        .break_count = table->break_count,
        .breaks_from = table->breaks_from,
    };
    struct fit *instance = NULL;
    struct fit_needs needs = {0};
    ret->table = table;
    ret->needs = &needs;
    ret->code = fit->open(&host, &request, &instance, &needs, &ret->message);
    int r = ret->code < 0 ? ret->code : FIT_AGAIN;
    while (r == FIT_AGAIN)
        r = host_stream(fit, instance, &needs, table, table->groups ? table->groups : zero, folds,
                        &ret->message);
    ret->code = r;
    const struct fit_writer writer = {
        sizeof writer, ret,        order,       table->groups ? table->group_count : 1,
        host_formula,  host_group, host_skipped};
    if (ret->code >= 0)
        ret->code = fit->finish(instance, &writer, &ret->message);
    for (size_t i = 0; ret->code >= 0 && fit->compare && i < table->rows && i < HOST_COMPARISONS; i++) {
        ret->comparisons[i] =
            (struct fit_comparison){.size = sizeof *ret->comparisons, .divisor = 1, .first = i};
        fit->compare(instance, i, &ret->comparisons[i]);
    }
    if (ret->code >= 0)
        host_keep_distances(fit, instance, ret->distances);
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
