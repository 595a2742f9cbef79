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
    if (rows > DESIGN_ROWS_MOST)
        return failure_input(failure, NULL, 0, 0, "a design of %zu rows, expected at most %d", rows,
                             DESIGN_ROWS_MOST);
    struct design *design = xcalloc(1, sizeof *design);
    design->row_count = rows;
    *ret = design;
    return 0;
}

void design_free(struct design *design) {
    if (!design)
        return;
    for (size_t i = 0; i < design->column_count; i++) {
        free(design->columns[i].name);
        free(design->columns[i].items);
        labels_clear(&design->columns[i].labels);
    }
    free(design->columns);
    free(design->file);
    free(design->lines);
    free(design);
}

int design_add_column(struct design *design, const char *name, enum design_type type,
                      struct design_column **ret, struct failure *failure) {
    if (design_find(design, name) != SIZE_MAX)
        return failure_input(failure, design->file, design->line, design->column, "two columns called '%s'",
                             name);
    if (design->column_count == DESIGN_COLUMNS_MOST)
        return failure_input(failure, design->file, design->line, design->column,
                             "more columns than the limit of %d", DESIGN_COLUMNS_MOST);
    bool is_control = control_of_column(name) != NULL;
    if (is_control && !control_factor_find(name))
        return control_factor_unknown(name, design->file, design->line, design->column, failure);
    if (is_control && type != DESIGN_TEXT)
        return failure_input(failure, design->file, design->line, design->column,
                             "'%s' is a control, whose values are texts and not numbers", name);
    struct design_column *columns = xrealloc(design->columns, (design->column_count + 1) * sizeof *columns);
    design->columns = columns;
    struct design_column column = {.name = strdup(name), .type = type, .capacity = design->row_count};
    size_t size = type == DESIGN_TEXT ? sizeof *column.codes : sizeof *column.integers;
    if (design->row_count)
        column.items = calloc(design->row_count, size);
    if (!column.name || (design->row_count && !column.items)) {
        free(column.name);
        free(column.items);
        return failure_memory(failure);
    }
    columns[design->column_count] = column;
    design->control_count += is_control;
    *ret = &columns[design->column_count++];
    return 0;
}

/* ---- Values */

size_t design_find(const struct design *design, const char *name) {
    for (size_t i = 0; i < design->column_count; i++)
        if (strcmp(design->columns[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

double design_number(const struct design *design, size_t row, size_t column) {
    const struct design_column *one = &design->columns[column];
    return one->type == DESIGN_INTEGER  ? (double)one->integers[row]
           : one->type == DESIGN_NUMBER ? one->numbers[row]
                                        : NAN;
}

void design_numbers(const struct design *design, size_t row, double *ret) {
    for (size_t i = 0; i < design->column_count; i++)
        ret[i] = design_number(design, row, i);
}

const char *design_value(const struct design *design, size_t row, size_t column,
                         char buffer[static NUMBER_TEXT_SIZE]) {
    const struct design_column *one = &design->columns[column];
    if (one->type == DESIGN_TEXT)
        return one->labels.items[one->codes[row]];
    if (one->type == DESIGN_INTEGER)
        number_format_int64(one->integers[row], buffer);
    else
        number_format_double(one->numbers[row], buffer);
    return buffer;
}

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

int design_control_states(const struct design *design, struct design_states *ret, struct failure *failure) {
    struct design_states states = {.items = calloc(design->row_count, sizeof *states.items), .count = 1};
    cleanup(labels_clear) struct labels seen = {0};
    int r = states.items ? 0 : -ENOMEM;
    for (size_t row = 0; r == 0 && design->control_count && row < design->row_count; row++) {
        char key[CONTROL_FACTORS * sizeof "4294967295"];
        size_t length = 0;
        for (size_t i = 0; i < design->column_count; i++)
            if (control_of_column(design->columns[i].name))
                length += (size_t)snprintf(key + length, sizeof key - length, "%" PRIu32 ",",
                                           design->columns[i].codes[row]);
        r = labels_code(&seen, key, length, &states.items[row]);
        states.count = seen.count;
    }
    if (r < 0) {
        free(states.items);
        return r == -EFBIG ? failure_input(failure, design->file, design->line, design->column,
                                           "more than %d different states of the controls", LABELS_MOST)
                           : failure_memory(failure);
    }
    *ret = states;
    return 0;
}

/* ---- Writing */

int design_append_header(const struct design *design, struct text *text) {
    for (size_t i = 0; i < design->column_count; i++) {
        const char *name = design->columns[i].name;
        int r = csv_append_field(text, i == 0, name, strlen(name));
        if (r < 0)
            return r;
    }
    return text_append_character(text, '\n');
}

int design_append_row(const struct design *design, size_t row, struct text *text) {
    for (size_t i = 0; i < design->column_count; i++) {
        const struct design_column *column = &design->columns[i];
        int r;
        if (column->type == DESIGN_INTEGER) {
            r = csv_append_int64(text, i == 0, column->integers[row]);
        } else if (column->type == DESIGN_NUMBER) {
            r = csv_append_double(text, i == 0, column->numbers[row]);
        } else {
            const char *label = column->labels.items[column->codes[row]];
            r = csv_append_field(text, i == 0, label, strlen(label));
        }
        if (r < 0)
            return r;
    }
    return text_append_character(text, '\n');
}

static int failure_append(int code, size_t limit, struct failure *failure) {
    if (code == -EFBIG)
        return failure_set(failure, code, "the design as CSV is longer than the limit of %zu bytes", limit);
    return failure_memory(failure);
}

int design_append(const struct design *design, const struct design_order *order, struct text *text,
                  struct failure *failure) {
    int r = design_append_header(design, text);
    size_t count = order ? order->count : design->row_count;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = design_append_row(design, order ? design_order_row(order, i) : i, text);
    return r < 0 ? failure_append(r, text->limit, failure) : 0;
}

enum {
    WRITE_PIECE = 1 << 16,
    WRITE_ROW_MOST = 1 << 28, /* a row may be this long: its fields were read as fields of CSV */
};

int design_write(const struct design *design, const struct design_order *order, int descriptor,
                 const char *name, struct failure *failure) {
    cleanup(text_clear) struct text piece;
    text_init(&piece, WRITE_ROW_MOST);
    int r = design_append_header(design, &piece);
    size_t count = order ? order->count : design->row_count;
    for (size_t i = 0; r == 0 && i <= count; i++) {
        if (i == count || piece.length >= WRITE_PIECE) {
            int code = file_write_all(descriptor, piece.bytes, piece.length);
            if (code < 0)
                return failure_set(failure, code, "cannot write '%s': %s", name, strerror(-code));
            text_reset(&piece);
        }
        if (i < count)
            r = design_append_row(design, order ? design_order_row(order, i) : i, &piece);
    }
    return r < 0 ? failure_append(r, piece.limit, failure) : 0;
}
