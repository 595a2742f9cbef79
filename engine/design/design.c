#include "engine/design/design.h"

#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int design_new(size_t rows, struct design **ret, struct failure *failure) {
    if (rows > DESIGN_ROWS_MAX)
        return failure_input(failure, NULL, 0, 0, "the design has %zu rows; expected at most %d", rows,
                             DESIGN_ROWS_MAX);
    struct design *design = xcalloc(1, sizeof *design);
    design->row_count = rows;
    *ret = design;
    return 0;
}

/* Frees the design and its columns; NULL is allowed. */
void design_free(struct design *design) {
    if (!design)
        return;
    for (size_t i = 0; i < design->column_count; i++) {
        column_clear(&design->columns[i].about);
        free(design->columns[i].items);
        text_set_clear(&design->columns[i].labels);
    }
    free(design->columns);
    free(design->file);
    free(design->lines);
    free(design);
}

void design_cleanup(struct design **design) {
    design_free(*design);
}

/* Adds a column of zeros. -EINVAL: the name occurs twice, is an unknown control, or there are too many. */
int design_add_column(struct design *design, const char *name, enum column_type type,
                      struct design_column **ret, struct failure *failure) {
    if (design_find(design, name) != SIZE_MAX)
        return failure_input(failure, design->file, design->line, design->column, "two columns called '%s'",
                             name);
    if (design->column_count == DESIGN_COLUMNS_MAX)
        return failure_input(failure, design->file, design->line, design->column,
                             "more columns than the limit of %d", DESIGN_COLUMNS_MAX);
    bool is_control = control_of_column(name) != NULL;
    const struct design_factor *control = control_factor_find(name);
    if (is_control && !control)
        return control_factor_unknown(name, design->file, design->line, design->column, failure);
    if (is_control && type != COLUMN_STRING)
        return failure_input(failure, design->file, design->line, design->column,
                             "'%s' is a control, whose values are texts and not numbers", name);
    design->columns = xrealloc(design->columns, (design->column_count + 1) * sizeof *design->columns);
    struct design_column *column = &design->columns[design->column_count++];
    *column = (struct design_column){
        .about = column_copy(control ? &control->about : &(struct column){.name = name, .type = type}),
        .capacity = design->row_count};
    column->items =
        xcalloc(design->row_count, type == COLUMN_STRING ? sizeof *column->codes : sizeof *column->integers);
    design->control_count += is_control;
    *ret = column;
    return 0;
}

/* ---- Values */

size_t design_find(const struct design *design, const char *name) {
    for (size_t i = 0; i < design->column_count; i++)
        if (strcmp(design->columns[i].about.name, name) == 0)
            return i;
    return SIZE_MAX;
}

double design_number(const struct design *design, size_t row, size_t column) {
    const struct design_column *one = &design->columns[column];
    return one->about.type == COLUMN_INTEGER  ? (double)one->integers[row]
           : one->about.type == COLUMN_NUMBER ? one->numbers[row]
                                              : NAN;
}

void design_numbers(const struct design *design, size_t row, double *ret) {
    for (size_t i = 0; i < design->column_count; i++)
        ret[i] = design_number(design, row, i);
}

/* The value of a cell as text: in BUFFER, or owned by the design. */
const char *design_value(const struct design *design, size_t row, size_t column,
                         char buffer[static NUMBER_TEXT_SIZE]) {
    const struct design_column *one = &design->columns[column];
    if (one->about.type == COLUMN_STRING)
        return one->labels.texts[one->codes[row]];
    if (one->about.type == COLUMN_INTEGER)
        number_format_int64(one->integers[row], buffer);
    else
        number_format_double(one->numbers[row], buffer);
    return buffer;
}

/* Fails with a sentence about ROW, at its line if it was read from a file. Returns -EINVAL. */
int design_failure(const struct design *design, size_t row, struct failure *failure, const char *format,
                   ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (design->lines && design->lines[row])
        return failure_input(failure, design->file, design->lines[row], 0, "%s", sentence);
    return failure_input(failure, design->file, design->line, design->column, "row %zu of the design: %s",
                         row + 1, sentence);
}

bool design_uses_facts(const struct design *design) {
    for (size_t i = 0; i < design->column_count; i++)
        if (design->columns[i].of_facts)
            return true;
    return false;
}

/* ---- Controls */

/* Numbers the states of the controls, alike for rows with equal controls. The caller frees RET->items. */
int design_control_states(const struct design *design, struct design_states *ret, struct failure *failure) {
    cleanup_free uint32_t *items = xcalloc(design->row_count, sizeof *items);
    cleanup(text_set_clear) struct text_set seen = {0};
    for (size_t row = 0; design->control_count && row < design->row_count; row++) {
        char key[CONTROL_FACTORS * sizeof "4294967295"];
        size_t length = 0;
        for (size_t i = 0; i < design->column_count; i++)
            if (control_of_column(design->columns[i].about.name))
                length += (size_t)snprintf(key + length, sizeof key - length, "%" PRIu32 ",",
                                           design->columns[i].codes[row]);
        items[row] = text_set_add(&seen, key, length);
        if (seen.count > DESIGN_LABELS_MAX)
            return failure_input(failure, design->file, design->line, design->column,
                                 "more than %d different states of the controls", DESIGN_LABELS_MAX);
    }
    *ret = (struct design_states){take_pointer(items), seen.count > 0 ? seen.count : 1};
    return 0;
}

/* ---- Writing */

/* Both append a line of CSV: 0, -ENOMEM or -EFBIG. */
static int design_append_header(const struct design *design, struct text *text) {
    struct text_mark mark = text_mark(text);
    for (size_t i = 0; i < design->column_count; i++)
        csv_append_field(text, i == 0, design->columns[i].about.name, strlen(design->columns[i].about.name));
    text_append_character(text, '\n');
    return text_keep(text, mark);
}

static int design_append_row(const struct design *design, size_t row, struct text *text) {
    struct text_mark mark = text_mark(text);
    for (size_t i = 0; i < design->column_count; i++) {
        char number[NUMBER_TEXT_SIZE];
        const char *value = design_value(design, row, i, number);
        csv_append_field(text, i == 0, value, strlen(value));
    }
    text_append_character(text, '\n');
    return text_keep(text, mark);
}

enum {
    WRITE_PIECE = 1 << 16,
    WRITE_ROW_MAX = 1 << 28, /* a row may be this long: its fields were read as fields of CSV */
};

/* Appends header and rows to TEXT, in the order of ORDER if that is not NULL. With a NAME, TEXT is written to
 * the descriptor piece by piece. */
static int write_rows(const struct design *design, const struct design_order *order, struct text *text,
                      int descriptor, const char *name, struct failure *failure) {
    int r = design_append_header(design, text);
    size_t count = order ? order->count : design->row_count;
    for (size_t i = 0; r == 0 && i <= count; i++) {
        if (name && (i == count || text->length >= WRITE_PIECE)) {
            int code = file_write_all(descriptor, text->bytes, text->length);
            if (code < 0)
                return failure_set(failure, code, "cannot write '%s': %s", name, strerror(-code));
            text_reset(text);
        }
        if (i < count)
            r = design_append_row(design, order ? design_order_row(order, i) : i, text);
    }
    if (r == -EFBIG)
        failure_set(failure, r, "the design as CSV is longer than the limit of %zu bytes", text->limit);
    return r == -ENOMEM ? failure_memory(failure) : r;
}

int design_append(const struct design *design, const struct design_order *order, struct text *text,
                  struct failure *failure) {
    return write_rows(design, order, text, -1, NULL, failure);
}

int design_write(const struct design *design, const struct design_order *order, int descriptor,
                 const char *name, struct failure *failure) {
    cleanup(text_clear) struct text piece;
    text_init(&piece, WRITE_ROW_MAX);
    return write_rows(design, order, &piece, descriptor, name, failure);
}
