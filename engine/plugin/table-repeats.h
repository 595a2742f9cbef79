/*
 * Inputs of a table that hold the same measurements: a file that is given twice, and archives of one run,
 * each part of which has all that the parts before it had. Every unit is to be counted once. Used by table.c
 * alone.
 */
#ifndef ASSAY_PLUGIN_TABLE_REPEATS_H
#define ASSAY_PLUGIN_TABLE_REPEATS_H

#include "engine/foundation/text.h"
#include "engine/plugin/table-input.h"

/* Of the *COUNT sources, each file stays once, and of the archives of one run the latest part; the others are
 * cleared, *COUNT is lowered, and for each of them a sentence and its NUL are appended to NOTES. An archive
 * that the latest one of its run does not continue is FAILURE_INPUT: they were resumed apart from each other.
 */
int table_leave_repeats_out(struct table_source *sources, size_t *count, struct text *notes,
                            struct failure *failure);

#endif
