/* Folders of runs, made up. */
#ifndef ASSAY_TESTS_MADE_RUN_H
#define ASSAY_TESTS_MADE_RUN_H

#include "archive-format/datapackage.h"
#include "tests/test.h"

/* The folder NAME of a run with these results, of these COLUMNS, and ANSWER behind what run.json has. */
static void made_run(const char *name, const char *answer, const struct column *columns, size_t count,
                     const char *results) {
    struct column factors[16];
    size_t factor_count = 0;
    static const struct column missing[] = {
        {"row", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .label = NULL},
        {"why", COLUMN_STRING, "", COLUMN_ROLE_COVARIATE, .label = NULL},
    };
    for (size_t i = 0; i < count; i++)
        if (columns[i].role == COLUMN_ROLE_FACTOR)
            factors[factor_count++] = columns[i];
    const struct archive_table tables[] = {{"results/results.csv", "", columns, count},
                                           {"design.csv", "", factors, factor_count},
                                           {"results/missing.csv", "", missing, 2}};
    char path[64], run[512];
    snprintf(path, sizeof path, "%s/results/results.csv", name);
    test_put(path, results);
    snprintf(path, sizeof path, "%s/run.json", name);
    snprintf(run, sizeof run,
             "{\"archive_version\":\"1.0\",\"run_id\": \"%s\", \"experiment\": {\"name\": \"x\"}%s}", name,
             answer);
    test_put(path, run);
    snprintf(path, sizeof path, "%s/datapackage.json", name);
    assert_ok(archive_write_datapackage(test_path(path), name, tables, 3, &test_failure));
}

#endif
