/*
 * A design: a table of what will be measured. One line a row, one column a factor; values are kept by column,
 * eight bytes each (four for texts). A row says what is measured, not when: a design_order says when, and how
 * often.
 *
 * A column `control.NAME` is a factor of the node and not of the experiment (control-factors.h): a text,
 * accepted in any design. The values of a row's columns of controls are its state.
 *
 * This header brings the whole room: factor.h (what an experiment says about columns), order.h (repetitions,
 * blocks and order) and specification.h (what a `design:` of a file says, and how it becomes a design).
 */
#ifndef ASSAY_DESIGN_DESIGN_H
#define ASSAY_DESIGN_DESIGN_H

#include "engine/design/control-factors.h"
#include "engine/design/factor.h"
#include "engine/design/order.h"
#include "engine/design/specification.h"
#include "engine/expression/expression.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text-set.h"
#include "engine/foundation/text.h"

#include <stddef.h>
#include <stdint.h>

enum {
    DESIGN_ROWS_MAX = 1 << 27,
    DESIGN_COLUMNS_MAX = 256,
    DESIGN_FILE_MAX = 1 << 30,   /* bytes of a file that is read without factors, or from standard input */
    DESIGN_LABELS_MAX = 1 << 24, /* different texts of a column */
};

struct design_column {
    struct column about; /* texts owned; of a factor or control all that is known of it */
    union {              /* owned; a value a row */
        int64_t *integers;
        double *numbers;
        uint32_t *codes; /* numbers of .labels */
        void *items;
    };
    struct text_set labels; /* of a text column */
    size_t capacity;        /* of items, in rows */
    bool of_facts;          /* it was computed from facts of a machine, directly or by way of other columns */
};

struct design {
    struct design_column *columns; /* owned */
    size_t column_count;
    size_t
        control_count; /* the number of columns of controls, which are the last ones after design_conform() */
    size_t row_count;
    /* Where it comes from, for messages: the file that was read, with the line of each row; or the place in a
     * document that describes it. */
    char *file;      /* owned, or NULL */
    uint32_t *lines; /* owned; NULL when generated. 0: unknown */
    size_t line, column;
};

/* A design of ROWS rows (at most DESIGN_ROWS_MAX) without columns. */
int design_new(size_t rows, struct design **ret, struct failure *failure);
/* Frees the design; NULL is allowed. */
void design_free(struct design *design);
void design_cleanup(struct design **design); /* the same, for cleanup() */
/* Adds a column of zeroes (of a text, codes without labels yet) and returns it in RET, valid until the
 * next is added. NAME is copied. Refused: a name that exists, an unknown control or one that is not of
 * texts, and more than DESIGN_COLUMNS_MAX columns. */
int design_add_column(struct design *design, const char *name, enum column_type type,
                      struct design_column **ret, struct failure *failure);

/* ---- Values */

/* The index of the column called NAME, or SIZE_MAX. */
size_t design_find(const struct design *design, const char *name);
/* A value as a number; nan for a text. */
double design_number(const struct design *design, size_t row, size_t column);
/* A row as numbers, one a column, for expression_value. */
void design_numbers(const struct design *design, size_t row, double *ret);
/* A value as text: BUFFER, or the label itself. Numbers have the fewest digits that read back the same. */
const char *design_value(const struct design *design, size_t row, size_t column,
                         char buffer[static NUMBER_TEXT_SIZE]);
/* A failure about a row, which counts from 0: its place filled in, the sentence given. Returns -EINVAL. */
int design_failure(const struct design *design, size_t row, struct failure *failure, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Whether a value was computed from facts of a machine (design_given). */
bool design_uses_facts(const struct design *design);

/* ---- Reading and writing */

/* Reads a CSV file (csv.h), "-" for standard input; columns are as in the file. With FACTORS, columns get the
 * types that the factors say; a column that is no factor, a value of another type or outside its factor's
 * bounds are refused with file:line:column. What the file does not have is design_conform's to add. Whole
 * numbers may be written as 1e5 or 100000.0, as statistics programs do. With FACTORS NULL a column is of
 * integers when all its values are whole numbers, of numbers when all are numbers, and else of text. Columns
 * of controls are read as what they are, of text, in either case. A file without rows is refused. */
int design_read(const char *path, const struct design_factors *factors, struct design **ret,
                struct failure *failure);

/* Appends the whole as CSV: the rows as ORDER has them, repetitions and all; each once, as they stand, when
 * ORDER is NULL. */
int design_append(const struct design *design, const struct design_order *order, struct text *text,
                  struct failure *failure);
/* The same to a descriptor, in pieces of bounded size. NAME is for messages. */
int design_write(const struct design *design, const struct design_order *order, int descriptor,
                 const char *name, struct failure *failure);

/* ---- Against an experiment */

/* Makes the design conform: afterwards its columns are exactly the factors, in their order and types, and
 * then the columns of controls, in the order in which they were written; missing columns of factors have been
 * computed from the factors' defaults, and shares and times from the factors' expressions for them; these may
 * use one another, in any order. Refused, with the place: a column that is
 * no factor (the nearest is named), a missing column without default, defaults that need each other, a value
 * that is not what its factor expects. On failure the design can only be freed. */
int design_conform(struct design *design, const struct design_factors *factors, struct failure *failure);

/* The state of each row: which of the different combinations of its controls' values. One state for all when
 * there are no columns of controls. RET->items is the caller's to free. */
int design_control_states(const struct design *design, struct design_states *ret, struct failure *failure);

/* Adds a column computed by an expression over the existing columns; of integers when all values are
 * whole. FILE, LINE and COLUMN say where TEXT begins (expression.h). A value that is not finite is
 * refused. */
int design_compute(struct design *design, const char *name, const char *text, const char *file, size_t line,
                   size_t column, struct failure *failure);

/* The next two take expressions over the columns, in their order. */

/* Refuses the first row in which CONDITION is false or not finite. */
int design_require(const struct design *design, const struct expression *condition, struct failure *failure);
/* The largest value over the rows; a value that is not finite is refused with its row. */
int design_maximum(const struct design *design, const struct expression *expression, double *ret,
                   struct failure *failure);

#endif
