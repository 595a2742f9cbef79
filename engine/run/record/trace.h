/*
 * Where the results of an archive come from: its journal against its results.
 *
 * Each line of results/results.csv must lie in bytes that an entry `results` of the journal vouches for by
 * their checksum; its unit must lie in the block of the journal that it names, on nodes that the run had; its
 * factors must be those of its row in design.csv; and, since version 1.1 of the format, the journal must have
 * the command line that it was measured by.
 */
#ifndef ASSAY_RECORD_TRACE_H
#define ASSAY_RECORD_TRACE_H

#include "archive-format/reader.h"

/* Checks ARCHIVE. *RET_LINES is the number of lines of the results that were traced; 0 without a journal, as
 * for predictions. FAILURE_VERIFICATION: the journal does not account for some line; the first is named. */
int run_trace_check(struct archive_reader *archive, uint64_t *ret_lines, struct failure *failure);

#endif
