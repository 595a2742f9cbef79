/* The tree behind a report. Used by this room alone. */
#ifndef ASSAY_REPORT_REPORT_TREE_H
#define ASSAY_REPORT_REPORT_TREE_H

#include "engine/report/chart.h"
#include "engine/report/report.h"

#include <stddef.h>

enum item_kind {
    ITEM_SECTION,
    ITEM_NUMBER,
    ITEM_BOOLEAN,
    ITEM_TEXT,
    ITEM_VERDICT,
    ITEM_NOTE,
    ITEM_CHART,
    ITEM_PICTURE,
    ITEM_TABLE
};

struct report_section {
    char *name, *title;
    bool is_list; /* in JSON an array of the sections in it */
    struct item *items;
    size_t count;
};

struct cell {
    char *text; /* NULL: a number */
    double number;
    bool none; /* not in JSON */
};

struct report_table {
    char *name, *title;
    struct column *columns; /* texts owned */
    size_t column_count;
    struct cell *cells;
    size_t cell_count, capacity;
    bool is_whole; /* printed with all its rows */
};

struct item {
    enum item_kind kind;
    bool detail;
    char *name, *label, *text, *unit; /* of numbers, texts and notes; a chart has a name */
    double number;                    /* of truths 0 or 1 */
    int digits;
    enum report_severity severity;
    enum report_grade grade;
    struct report_section *section;
    struct report_table *table;
    struct chart *chart;
};

bool tree_is_pair(const struct item *item);
/* The value of a pair as people see it, not yet safe for a terminal; the caller frees. */
char *tree_pair_text(const struct item *item);
char *tree_cell_text(const struct column *column, const struct cell *cell);

/* Is UNIT one that people want to see? */
bool report_has_unit(const char *unit);
/* A number with DIGITS significant digits, 0: with all of them; "-" for what is not finite. The caller frees.
 */
char *report_format_plain(double value, int digits);

#endif
