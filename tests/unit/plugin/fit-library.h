/* One fit plugin, loaded for all tests of a program, and what they say of it. */
#ifndef ASSAY_TESTS_UNIT_PLUGIN_FIT_LIBRARY_H
#define ASSAY_TESTS_UNIT_PLUGIN_FIT_LIBRARY_H

#include "tests/test.h"
#include "tests/unit/plugin/fit-host.h"

static struct plugin_library *library;
static const struct fit_operations *fit;
static struct host_result result; /* large */

/* Loads the plugin NAME of the build; for set_up. */
static int fit_library_open(const char *name) {
    char path[4096];
    struct failure failure = {0};
    snprintf(path, sizeof path, "%s/lib/assay/plugins/%s.so", test_build(), name);
    if (plugin_library_load(path, ASSAY_PLUGIN_FIT, &library, &failure) < 0) {
        fprintf(stderr, "%s\n", failure.text);
        return -1;
    }
    fit = plugin_library_fit(library);
    return 0;
}

static int fit_library_close(void **state) {
    (void)state;
    plugin_library_close(library);
    return 0;
}

/* Does a fit that must not be refused. */
static inline const struct host_group *fit_library_fit(const struct host_table *table) {
    host_fit(fit, table, &result);
    if (result.code != 0)
        fail_msg("%d: %s", result.code, result.message.text);
    return &result.groups[0];
}

/* The same, of a table of one group, which must be fitted. */
static inline const struct host_group *fit_table(const struct host_table *table) {
    fit_library_fit(table);
    if (!result.groups[0].fitted)
        fail_msg("skipped: %s", result.groups[0].reason);
    return &result.groups[0];
}

static inline double fit_library_value(const struct host_part *part, const char *name) {
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->values[i].name, name) == 0)
            return part->values[i].value;
    return -12345;
}

/* ---- Numbers that are the same in every run */

static uint64_t drawn_bits;

static inline double draw_uniform(void) {
    drawn_bits = drawn_bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(drawn_bits >> 12) + 0.5) * 0x1p-52;
}

static inline double draw_normal(void) {
    return sqrt(-2 * log(draw_uniform())) * cos(6.283185307179586 * draw_uniform());
}

#endif
