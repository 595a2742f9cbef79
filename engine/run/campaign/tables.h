/*
 * The tables of an archive: results.csv and its columns, and what datapackage.json says of all tables. They
 * follow from the plan.
 */
#ifndef ASSAY_CAMPAIGN_TABLES_H
#define ASSAY_CAMPAIGN_TABLES_H

#include "archive-format/datapackage.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"
#include "engine/run/campaign/plan.h"
#include "engine/run/record/results-row.h"

#include <stdbool.h>
#include <stddef.h>

/* Appends the first line of results.csv. 0 or -ENOMEM. */
int tables_append_header(const struct plan *plan, struct text *text);
/* The number of columns of results.csv that are the plan's: factors, controls, responses. */
size_t tables_plan_columns(const struct plan *plan);
/* The columns of results.csv that results/missing.csv has, too, before `why`. */
enum { TABLES_MISSING_COLUMNS = 5 };
extern const enum results_column tables_missing_columns[TABLES_MISSING_COLUMNS];
/* Whether the further tables of an experiment have COLUMN of results.csv (from 0) before their own. */
bool tables_have(const struct plan *plan, size_t column);
/* The columns of results/repeat.csv. */
enum { TABLES_REPEAT_COLUMNS = 7 };
void tables_repeat_columns(const struct plan *plan, struct column columns[static TABLES_REPEAT_COLUMNS]);
/* Writes datapackage.json of the run in FOLDER, with those further tables and lists that are there. */
int tables_write_package(const struct plan *plan, const char *folder, struct failure *failure);

#endif
