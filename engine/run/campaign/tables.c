#include "engine/run/campaign/tables.h"

#include "archive-format/layout.h"
#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <string.h>

const enum results_column tables_missing_columns[TABLES_MISSING_COLUMNS] = {
    RESULTS_ROW, RESULTS_REPETITION, RESULTS_ORDER, RESULTS_NODE, RESULTS_CORE};

size_t tables_plan_columns(const struct plan *plan) {
    return plan->design->column_count + plan->campaign->experiment->response_count;
}

static size_t count_columns(const struct plan *plan) {
    return RESULTS_COLUMNS + tables_plan_columns(plan);
}

/* Puts the columns of results.csv into COLUMNS, which has room for them. */
static void find_columns(const struct plan *plan, struct column *columns) {
    const struct experiment *experiment = plan->campaign->experiment;
    const struct design *design = plan->design;
    for (enum results_column i = 0; i < RESULTS_COLUMNS; i++)
        columns[i < RESULTS_FACTORS ? i : i + tables_plan_columns(plan)] = *results_column_describe(i);
    columns += RESULTS_FACTORS;
    for (size_t i = 0; i < design->column_count; i++)
        *columns++ = design->columns[i].about;
    for (size_t i = 0; i < experiment->response_count; i++)
        *columns++ = experiment->responses[i].about;
}

int tables_append_header(const struct plan *plan, struct text *text) {
    size_t count = count_columns(plan);
    cleanup_free struct column *columns = xcalloc(count, sizeof *columns);
    struct text_mark mark = text_mark(text);
    find_columns(plan, columns);
    for (size_t i = 0; i < count; i++)
        csv_append_field(text, i == 0, columns[i].name, strlen(columns[i].name));
    text_append_character(text, '\n');
    return text_keep(text, mark);
}

bool tables_have(const struct plan *plan, size_t column) {
    return column < RESULTS_FACTORS + plan->design->column_count && column != RESULTS_BLOCK &&
           column != RESULTS_START && column != RESULTS_START_MONOTONIC;
}

/* Sets COLUMNS to those of results/repeat.csv, with the unit of the response that decides about repetition.
 */
void tables_repeat_columns(const struct plan *plan, struct column columns[static TABLES_REPEAT_COLUMNS]) {
    const char *unit = plan->campaign->experiment->responses[plan->repeat_response].about.unit;
    const struct column all[TABLES_REPEAT_COLUMNS] = {
        {"row", COLUMN_INTEGER, "", COLUMN_ROLE_ID, "row", .help = "line of design.csv, from 1"},
        {"repetitions", COLUMN_INTEGER, "", COLUMN_ROLE_COVARIATE, "repetitions",
         .help = "that were measured"},
        {"groups", COLUMN_INTEGER, "", COLUMN_ROLE_COVARIATE, "groups",
         .help =
             "means of measurements on one node, in one repetition, or both, over which the mean is taken"},
        {"mean", COLUMN_NUMBER, unit, COLUMN_ROLE_COVARIATE, "mean",
         .help = "of the response, over the groups; empty where there is none"},
        {"half_width", COLUMN_NUMBER, unit, COLUMN_ROLE_COVARIATE, "half width",
         .help = "of the mean's confidence interval; empty for fewer than two groups"},
        {"relative_half_width", COLUMN_NUMBER, "1", COLUMN_ROLE_COVARIATE, "relative half width",
         .help = "to the size of the mean; empty where it is not known or not finite"},
        {"settled", COLUMN_STRING, "", COLUMN_ROLE_COVARIATE, "settled",
         .help = "yes: the mean is known as well as was wanted; or no"},
    };
    memcpy(columns, all, sizeof all);
}

static bool is_there(const char *folder, const char *file) {
    cleanup_free char *path = xformat("%s/%s", folder, file);
    return file_exists(path);
}

/* Writes datapackage.json: the columns of every table that FOLDER has. */
int tables_write_package(const struct plan *plan, const char *folder, struct failure *failure) {
    const struct experiment *experiment = plan->campaign->experiment;
    size_t of_design = plan->design->column_count, count = count_columns(plan), further = 0;
    for (size_t i = 0; i < experiment->table_count; i++)
        further += RESULTS_FACTORS + of_design + experiment->tables[i].column_count;
    cleanup_free struct column *columns = xcalloc(count + further, sizeof *columns);
    struct column *at = columns + count;
    find_columns(plan, columns);
    struct column missing[TABLES_MISSING_COLUMNS + 1] = {
        [TABLES_MISSING_COLUMNS] = {
            "why", COLUMN_STRING, "", COLUMN_ROLE_COVARIATE, "why",
            .help =
                "failed (it was tried), lost (its node was), deadline, checkpoint, interrupted, revoked (its "
                "nodes were), or stopped (the run failed)"}};
    for (size_t i = 0; i < TABLES_MISSING_COLUMNS; i++)
        missing[i] = *results_column_describe(tables_missing_columns[i]);
    struct column repeat[TABLES_REPEAT_COLUMNS];
    tables_repeat_columns(plan, repeat);
    struct archive_table tables[4 + EXPERIMENT_TABLES_MAX] = {
        {ARCHIVE_RESULTS, "one line a unit that was measured, in the order of the answers", columns, count},
    };
    size_t table_count = 1;
    if (of_design > 0)
        tables[table_count++] = (struct archive_table){ARCHIVE_DESIGN, "one line a row of the design",
                                                       columns + RESULTS_FACTORS, of_design};
    if (is_there(folder, ARCHIVE_MISSING))
        tables[table_count++] =
            (struct archive_table){ARCHIVE_MISSING, "one line a unit that was planned and is not done",
                                   missing, sizeof missing / sizeof *missing};
    if (is_there(folder, ARCHIVE_REPEAT))
        tables[table_count++] = (struct archive_table){
            ARCHIVE_REPEAT, "how well each row of the design is known", repeat, TABLES_REPEAT_COLUMNS};
    for (size_t t = 0; t < experiment->table_count; t++) {
        const struct experiment_table *table = &experiment->tables[t];
        if (!is_there(folder, table->file))
            continue;
        struct archive_table *described = &tables[table_count++];
        *described = (struct archive_table){table->file, table->description, at, 0};
        for (size_t i = 0; i < count; i++)
            if (tables_have(plan, i))
                *at++ = columns[i];
        for (size_t i = 0; i < table->column_count; i++)
            *at++ = table->columns[i].about;
        described->column_count = (size_t)(at - described->columns);
    }
    cleanup_free char *path = xformat("%s/" ARCHIVE_DATAPACKAGE, folder);
    return archive_write_datapackage(path, plan->campaign->name, tables, table_count, failure);
}
