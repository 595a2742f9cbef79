/*
 * Series from CSV files, for a check of measurements that no archive has: one row a run. The column `value`
 * is needed. The columns campaign, experiment, response, unit, setting and node tell series apart; `started`
 * is when the run began, s since 1970, without which the rows are in order of time; `cut` and `outlier` are 1
 * where a log would say so. 'assay history export' writes such files.
 */
#ifndef ASSAY_HISTORY_SERIES_CSV_H
#define ASSAY_HISTORY_SERIES_CSV_H

#include "engine/history/store.h"

/* As history_store_read(). Rows without a value are left out. Archives are numbers of rows, from 1; times are
 * NaN where there is no column `started`. */
int history_csv_read(const char *const *paths, size_t count, const struct history_filter *filter,
                     history_series_handler *handle, void *context, struct failure *failure);

#endif
