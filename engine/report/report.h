/*
 * A report is data: sections of numbers with units, texts, tables, verdicts, notes and charts. Rooms and
 * commands build it; it is printed as text for people, as JSON for programs, or as a page for a
 * browser, from the same tree, and its charts as SVG. In JSON a section is an object, a table an array of
 * objects, a number a number; `units` beside them has the UCUM code of each. What steers a terminal is never
 * printed as it is (shown.h).
 *
 *     struct report *report = report_new();
 *     struct report_table *terms = report_table(report->root, "terms", NULL, columns, 3);
 *     report_cell_text(terms, "m*n*k"), report_cell(terms, 1.7e-11), report_cell(terms, 3e-14);
 *     report_print(report, stdout, false);
 */
#ifndef ASSAY_REPORT_REPORT_H
#define ASSAY_REPORT_REPORT_H

#include "engine/documents/column.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/file.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stdio.h>

enum {
    REPORT_ROWS_SHOWN = 40, /* of a long table as text, without `detail`; JSON has all */
    REPORT_WIDTH_MAX = 64,  /* of a column; a longer cell moves the rest of its line to the right */
};

struct chart; /* chart.h */
struct report_section;
struct report_table;

struct report {
    struct report_section *root;
};

struct report *report_new(void);
void report_free(struct report *report); /* NULL is fine */
void report_cleanup(struct report **report);

/* All texts are copied. A DETAIL is printed only when details are asked for, and in JSON always. TITLE may be
 * NULL: the section is not set off; "": by a blank line alone. */
struct report_section *report_section(struct report_section *in, const char *name, const char *title,
                                      bool detail);
/* A section that is an array of sections in JSON (they need no name), and is not printed as text;
 * report_fold() adds what they have in common. */
struct report_section *report_list(struct report_section *in, const char *name);
/* Adds a number. For this and the following pairs: NAME is the key in JSON (NULL: not in JSON). LABEL is what
 * people see; NULL: NAME; "": the value stands alone on its line; " ": it continues the pair above. A value
 * that is not finite is "-" and null. With UNIT By, By/s, s, Hz, flop/s or flop it is printed with a prefix:
 * 57.1 Gflop/s. */
void report_number(struct report_section *in, const char *name, const char *label, double value,
                   const char *unit, int digits, bool detail);
/* A text; VALUE NULL is "-" and null. */
void report_text(struct report_section *in, const char *name, const char *label, const char *value,
                 bool detail);
void report_boolean(struct report_section *in, const char *name, const char *label, bool value, bool detail);
/* Whether what a report is about can be used: "unknown", "usable", "not usable". */
enum report_grade { REPORT_UNKNOWN, REPORT_USABLE, REPORT_NOT_USABLE };
const char *report_grade_word(enum report_grade grade);
/* A sentence with a verdict, alone on its line; in JSON it is NAME, with `grade` beside it. */
void report_verdict(struct report_section *in, const char *name, enum report_grade grade,
                    const char *sentence);
/* A sentence on a line of its own: in JSON one of `notes`, or of `warnings`. */
enum report_severity { REPORT_LINE, REPORT_NOTE, REPORT_WARNING };
/* A sentence on a line of its own; in JSON one of `notes` or `warnings`. */
void report_note(struct report_section *in, enum report_severity severity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds a copy of the chart. As text it is drawn with the characters of the locale; in JSON it is its numbers,
 * under NAME. */
void report_chart(struct report_section *in, const char *name, const struct chart *chart);
/* Adds a picture for pages only: SVG, an <svg> element with its texts escaped (chart_append_escaped()). */
void report_picture(struct report_section *in, const char *title, const char *svg);
/* Moves all items of FROM to the end of TO. */
void report_move(struct report_section *to, struct report_section *from);
/* Columns without a name are not in JSON, and have a label; where all labels are "" the table is printed
 * without a head. Types are those of numbers: cells say which columns are texts. */
struct report_table *report_table(struct report_section *in, const char *name, const char *title,
                                  const struct column *columns, size_t count);
/* The next cell of a table, row by row. TEXT NULL: "-" and null. */
void report_cell(struct report_table *table, double value);
void report_cell_text(struct report_table *table, const char *text);
void report_cell_none(struct report_table *table); /* "-", and not in JSON */

/* Has all rows of TABLE printed as text, however many. */
void report_print_whole(struct report_table *table);

/* Adds to INTO, for people only, what the sections of LIST say, one section of each of NAMES: texts of the
 * same label, notes, and rows of tables of the same name and first cell. What is equal is there once: the
 * most common first, then in the order of NAMES; where not all say the same, with the names of those who do,
 * folded (host-list.h). */
void report_fold(struct report_section *into, const struct report_section *list, const char *const *names);

/* Prints the report as text; DETAIL: also what otherwise only JSON has. */
void report_print(const struct report *report, FILE *stream, bool detail);
/* The text that report_print() prints; the caller frees. */
char *report_render(const struct report *report, bool detail);
/* The report as JSON; the caller deletes it. */
struct cJSON *report_json(const struct report *report);

/* Writes PATH with all charts of REPORT as SVG, one below the other. */
int report_write_svg(const struct report *report, const char *path, struct failure *failure);
/* Writes PATH as a page: one HTML file that loads nothing and is read without scripts, with all that is in
 * JSON; with scripts, its charts are zoomed by dragging. DETAIL sections with a title are folded, other
 * sections with a title are in its contents. */
int report_write_page(const struct report *report, const char *title, const char *path,
                      struct failure *failure);

/* Appends the table as CSV, with all its columns. */
int report_table_append_csv(const struct report_table *table, struct text *text, struct failure *failure);
/* Writes the table as the file PATH, with the columns' units in PATH.datapackage.json. */
int report_table_write(const struct report_table *table, const char *path, struct failure *failure);

/* The columns of TABLE as they are in a file: an array for the caller to free; its texts stay the table's.
 * Texts without help are identifiers. */
struct column *report_table_columns(const struct report_table *table, size_t *ret_count);

/* A CSV file that grows by tables with the same columns. It appears under PATH only when it is finished, for
 * which any of these tables is given. */
struct report_file {
    const char *path;
    struct file_output output;
    bool has_head;
};
int report_file_open(struct report_file *file, const char *path, struct failure *failure);
int report_file_add(struct report_file *file, const struct report_table *table, struct failure *failure);
int report_file_finish(struct report_file *file, const struct report_table *table, struct failure *failure);
int report_file_commit(struct report_file *file, struct failure *failure); /* without the units beside it */
void report_file_clear(struct report_file *file);

/* VALUE with DIGITS significant digits, a prefix if UNIT has one, and the unit as people write it; the caller
 * frees. */
char *report_format(double value, const char *unit, int digits);

#endif
