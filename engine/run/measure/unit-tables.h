/*
 * results/tables/NAME.csv: the further tables of an experiment, of which every line of a unit's output that
 * the table's pattern matches is a row. They are made as the run is sealed, from what it keeps anyway:
 * results.csv says which units are done, and results/raw/ has what they wrote. So a part of a run makes them
 * anew, and nothing of them has to survive a crash. Private to this room.
 */
#ifndef ASSAY_MEASURE_UNIT_TABLES_H
#define ASSAY_MEASURE_UNIT_TABLES_H

#include "engine/run/nodes/nodes.h"

enum {
    UNIT_TABLE_ROWS_MAX = 10000000,
    UNIT_TABLE_BYTES_MAX = 256 << 20,
    UNIT_TABLE_LINE_MAX = 16 << 10, /* bytes of a line of output; longer ones are passed over */
    UNIT_TABLE_CPU_SECONDS_MAX = 300,
};

/* Writes all of them. One beyond a limit, or that cannot be written, is left out and noted: the archive has
 * the outputs that it would have been made from. So are tables without rows, and values that are not what
 * their column says, which are left empty. */
void unit_tables_write(struct node_set *set);

#endif
