/*
 * Rows to columns at speed. Rows as plain as nearly all are (no quote, nothing to complain of) are taken by
 * the hundred, column by column; the next plainest (quotes around fields, characters that are not ASCII) one
 * by one; any other is left to csv_next, which knows every rule and every complaint. All roads give the same
 * values; a fuzz target holds them to it.
 */
#include "engine/documents/csv-labels.h"
#include "engine/documents/csv-number.h"
#include "engine/documents/csv-reader.h"
#include "engine/documents/csv-scan.h"
#include "engine/documents/csv-tile.h"
#include "engine/documents/shown-value.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_ROWS = 2048,
    ROWS_BETWEEN_TILES = 32, /* taken one by one where no tile could be made */
};

/* A column that is wanted, as a number or as a label. One that is wanted twice is read once. */
struct wanted {
    size_t column;
    double *numbers; /* BLOCK_ROWS of them, or NULL */
    uint32_t *codes; /* BLOCK_ROWS of them, or NULL */
    struct csv_labels labels;
};

/* Where a field is, from its row's first byte. */
struct span {
    uint32_t begin, end;
};

struct csv_columns {
    struct csv_reader *reader;
    size_t column_count;
    enum csv_missing missing;
    struct wanted *numbers, *labels; /* in the order in which they were first wanted */
    size_t number_count, label_count;
    const double **number_lists; /* as the caller wanted them, also twice */
    const uint32_t **code_lists;
    struct wanted **label_order;
    uint64_t *lines;
    size_t rows;        /* in the block that is being filled */
    struct span *spans; /* of the row's fields, without quotes */
    const struct csv_tile_kernel *kernel;
    struct csv_tile tile;
    size_t safe;    /* buffer offset behind the last newline in it */
    uint64_t fills; /* the reader's, when that was found */
};

/* ---- The fast road ----------------------------------------------------------------------------- */

/* Takes a wanted number into the block's row. False when it is none. */
static inline bool take_number(const struct csv_columns *columns, const struct wanted *wanted,
                               const char *bytes, size_t length) {
    double *number = &wanted->numbers[columns->rows];
    return csv_number_parse(bytes, length, number) ||
           (columns->missing == CSV_MISSING_IS_NAN && csv_number_parse_missing(bytes, length, number));
}

static inline int take_label(const struct csv_columns *columns, struct wanted *wanted, const char *bytes,
                             size_t length) {
    return csv_labels_code(&wanted->labels, bytes, length, &wanted->codes[columns->rows]);
}

/* The end of a line at AT: how many bytes it has, or 0 when there is none. */
static inline size_t line_end(const char *at) {
    return *at == '\n' ? 1 : *at == '\r' && at[1] == '\n' ? 2 : 0;
}

/*
 * Finds the fields of the row at AT, a newline being somewhere ahead. False for a row that is not plain: with
 * quotes, control characters, bytes that are not ASCII, more or fewer fields than columns.
 */
static inline bool split_plain(const struct csv_columns *columns, const char *at, uint32_t *ret_end) {
    struct span *spans = columns->spans;
    size_t count = 1;
    spans[0].begin = 0;
    for (uint32_t base = 0; base < CSV_FIELD_MOST; base += 64) {
        struct csv_scan scan = csv_scan_64(at + base);
        uint64_t others = scan.special & ~scan.comma;
        uint64_t before = others ? (others & -others) - 1 : UINT64_MAX; /* what is before the first of them */
        for (uint64_t commas = scan.comma & before; commas; commas &= commas - 1) {
            if (count == columns->column_count)
                return false;
            uint32_t comma = base + (uint32_t)__builtin_ctzll(commas);
            spans[count - 1].end = comma;
            spans[count++].begin = comma + 1;
        }
        if (others == 0)
            continue;
        uint32_t end = base + (uint32_t)__builtin_ctzll(others);
        size_t length = line_end(at + end);
        spans[count - 1].end = end;
        *ret_end = end + (uint32_t)length;
        return length > 0 && count == columns->column_count;
    }
    return false;
}

/* Where the special bytes of a row are, one after the other. */
struct specials {
    const char *base;
    uint64_t mask;
};

static inline const char *next_special(struct specials *specials) {
    while (specials->mask == 0) {
        specials->base += 64;
        specials->mask = csv_scan_64(specials->base).special;
    }
    const char *at = specials->base + __builtin_ctzll(specials->mask);
    specials->mask &= specials->mask - 1;
    return at;
}

/* What ends the field that begins at AT: its closing quote when it is QUOTED, else the comma or the line's
 * end behind it. NULL when it has a newline in it, or anything that must be refused. */
static const char *find_end(struct specials *specials, const char *at, bool quoted) {
    bool ascii = true;
    for (;;) {
        const char *special = next_special(specials);
        unsigned char byte = (unsigned char)*special;
        bool ends = quoted ? byte == '"' : byte == ',' || line_end(special) > 0;
        if (ends)
            return ascii || text_invalid_utf8(at, (size_t)(special - at)) == (size_t)(special - at) ? special
                                                                                                    : NULL;
        if (byte == '\n' || byte == '\0' || (!quoted && (byte == '"' || byte == '\r')))
            return NULL;
        ascii = ascii && byte < 0x80;
    }
}

/* The same for rows with quotes around fields, but not within, and with any characters. A doubled quote ends
 * the search, for no comma follows the first of the two. */
static bool split_quoted(const struct csv_columns *columns, const char *row, uint32_t *ret_end) {
    struct specials specials = {row, csv_scan_64(row).special};
    const char *at = row;
    for (size_t column = 0; column < columns->column_count; column++) {
        bool quoted = *at == '"', is_last = column + 1 == columns->column_count;
        if (quoted)
            at = next_special(&specials) + 1;
        const char *end = find_end(&specials, at, quoted);
        if (!end || end - row >= CSV_FIELD_MOST)
            return false;
        columns->spans[column] = (struct span){(uint32_t)(at - row), (uint32_t)(end - row)};
        if (quoted && next_special(&specials) != ++end)
            return false;
        size_t length = line_end(end);
        if (is_last ? length == 0 : *end != ',')
            return false;
        at = end + (is_last ? length : 1);
    }
    *ret_end = (uint32_t)(at - row);
    return true;
}

/* Takes the row at AT into the block. Returns where the next begins, or NULL for a row that must take the
 * slow road; what was done until then will be done again and the same. */
static inline const char *take_row(const struct csv_columns *columns, const char *at) {
    uint32_t end;
    if (!split_plain(columns, at, &end) && !split_quoted(columns, at, &end))
        return NULL;
    for (size_t i = 0; i < columns->number_count; i++) {
        struct span span = columns->spans[columns->numbers[i].column];
        if (!take_number(columns, &columns->numbers[i], at + span.begin, span.end - span.begin))
            return NULL;
    }
    for (size_t j = 0; j < columns->label_count; j++) {
        struct span span = columns->spans[columns->labels[j].column];
        if (take_label(columns, &columns->labels[j], at + span.begin, span.end - span.begin) < 0)
            return NULL;
    }
    return at + end;
}

/* Up to MOST rows from what is in the buffer, one by one; it ends at one that must take the slow road. */
static void take_rows(struct csv_columns *columns, size_t most) {
    struct csv_reader *reader = columns->reader;
    const char *at = reader->buffer + reader->begin, *safe = reader->buffer + columns->safe;
    for (size_t taken = 0; at < safe && columns->rows < BLOCK_ROWS && taken < most; taken++) {
        const char *next = take_row(columns, at);
        if (!next)
            break;
        columns->lines[columns->rows++] = reader->line++;
        at = next;
    }
    reader->begin = (size_t)(at - reader->buffer);
}

/* ---- The fastest road: tiles ------------------------------------------------------------------- */

/* The codes of a wanted column's short labels that are known, of which nearly all are, up to the first that
 * is anything else. Returns how many. */
__attribute__((noinline)) static size_t
find_known_labels(const struct csv_tile *tile, const struct wanted *wanted, size_t first, uint32_t *codes) {
    const char *at = tile->at;
    const size_t columns = tile->columns, rows = tile->rows;
    const struct csv_labels labels = wanted->labels;
    const uint32_t *before = tile->ends + wanted->column + first * columns;
    for (size_t row = first; row < rows; row++, before += columns) {
        size_t begin = csv_tile_begin(before), length = before[1] - begin;
        if (length - 1 >= 8)
            return row;
        uint64_t word = csv_labels_word(at + begin, length);
        const struct csv_label_slot *slot = &labels.slots[csv_labels_first_slot(&labels, word)];
        if (slot->word != word || slot->length != length)
            return row;
        codes[row] = slot->next - 1;
    }
    return rows;
}

/* A wanted label of the tile's rows, of which none is refused; but memory may be short, and labels too many.
 * Returns how many rows there are before such a one. */
static size_t take_tile_labels(const struct csv_tile *tile, struct wanted *wanted, uint32_t *codes) {
    const char *at = tile->at;
    const size_t columns = tile->columns, rows = tile->rows;
    const bool is_last = wanted->column + 1 == columns; /* may have a carriage return behind it */
    for (size_t row = 0; row < rows; row++) {
        if (!is_last && (row = find_known_labels(tile, wanted, row, codes)) == rows)
            break;
        const uint32_t *before = tile->ends + wanted->column + row * columns;
        size_t begin = csv_tile_begin(before), end = csv_tile_end(at, before, is_last);
        if (csv_labels_code(&wanted->labels, at + begin, end - begin, &codes[row]) < 0)
            return row;
    }
    return rows;
}

/* Takes a tile of rows. Returns how many: 0 when they are not plain, or the first cannot be taken so. */
static size_t take_tile(struct csv_columns *columns) {
    struct csv_reader *reader = columns->reader;
    struct csv_tile *tile = &columns->tile;
    if (tile->columns > CSV_TILE_ENDS)
        return 0;
    tile->at = reader->buffer + reader->begin;
    columns->kernel->index(tile, columns->safe - reader->begin);
    if (tile->rows > BLOCK_ROWS - columns->rows)
        tile->rows = BLOCK_ROWS - columns->rows;
    for (size_t i = 0; i < columns->number_count; i++)
        tile->rows =
            columns->kernel->numbers(tile, columns->numbers[i].column, columns->missing == CSV_MISSING_IS_NAN,
                                     columns->numbers[i].numbers + columns->rows);
    for (size_t j = 0; j < columns->label_count; j++)
        tile->rows = take_tile_labels(tile, &columns->labels[j], columns->labels[j].codes + columns->rows);
    for (size_t row = 0; row < tile->rows; row++)
        columns->lines[columns->rows + row] = reader->line + row;
    columns->rows += tile->rows;
    reader->line += tile->rows;
    reader->begin += tile->ends[tile->rows * tile->columns] + 1;
    return tile->rows;
}

/* As many rows as can be taken from what is in the buffer. */
static void take_plain(struct csv_columns *columns) {
    const struct csv_reader *reader = columns->reader;
    size_t before;
    do {
        before = columns->rows;
        if (take_tile(columns) == 0)
            take_rows(columns, ROWS_BETWEEN_TILES);
    } while (columns->rows > before && columns->rows < BLOCK_ROWS && reader->begin < columns->safe);
}

/* ---- The slow road ----------------------------------------------------------------------------- */

static int take_label_slowly(const struct csv_columns *columns, struct wanted *wanted,
                             const struct csv_field *field, struct failure *failure) {
    const struct csv_reader *reader = columns->reader;
    int r = take_label(columns, wanted, field->bytes, field->length);
    if (r == -EFBIG)
        return csv_failure(
            reader, wanted->column, failure, "column %s has too many different values, expected at most %d",
            shown_value(reader->names[wanted->column], strlen(reader->names[wanted->column])).text,
            CSV_LABELS_MOST);
    return r < 0 ? failure_memory(failure) : 0;
}

/* 1 for a row taken, 0 at the end. */
static int take_row_slowly(struct csv_columns *columns, struct failure *failure) {
    struct csv_reader *reader = columns->reader;
    const struct csv_field *fields;
    int r = csv_next(reader, &fields, failure);
    if (r <= 0)
        return r;
    r = 0;
    for (size_t i = 0; r == 0 && i < columns->number_count; i++) {
        const struct csv_field *field = &fields[columns->numbers[i].column];
        if (!take_number(columns, &columns->numbers[i], field->bytes, field->length)) {
            double none;
            r = csv_number(reader, columns->numbers[i].column, &none, failure);
        }
    }
    for (size_t j = 0; r == 0 && j < columns->label_count; j++)
        r = take_label_slowly(columns, &columns->labels[j], &fields[columns->labels[j].column], failure);
    if (r < 0) {
        reader->broken = true;
        return r;
    }
    columns->lines[columns->rows++] = reader->row_line;
    return 1;
}

/* ---- Blocks ------------------------------------------------------------------------------------ */

/* Finds out how far the buffer holds whole rows, filling it when it holds none. 1, or 0 when the input has no
 * more newlines: what is left then is at most one row. */
static int find_safe(struct csv_columns *columns, struct failure *failure) {
    struct csv_reader *reader = columns->reader;
    for (;;) {
        if (columns->fills != reader->fills) {
            const char *newline = memrchr(reader->buffer + reader->begin, '\n', reader->end - reader->begin);
            columns->safe = newline ? (size_t)(newline - reader->buffer) + 1 : 0;
            columns->fills = reader->fills;
        }
        if (reader->begin < columns->safe)
            return 1;
        int r = csv_reader_fill(reader, failure);
        if (r <= 0)
            return r;
    }
}

int csv_columns_next(struct csv_columns *columns, struct csv_block *ret, struct failure *failure) {
    struct csv_reader *reader = columns->reader;
    columns->rows = 0;
    reader->started = true;
    while (columns->rows < BLOCK_ROWS) {
        int r = reader->broken ? 0 : find_safe(columns, failure);
        if (r < 0) {
            reader->broken = true;
            return r;
        }
        size_t before = columns->rows;
        if (r > 0)
            take_plain(columns);
        if (columns->rows > before)
            continue;
        r = take_row_slowly(columns, failure);
        if (r < 0)
            return r;
        if (r == 0)
            break;
    }
    if (columns->rows == 0)
        return 0;
    *ret = (struct csv_block){columns->rows, columns->number_lists, columns->code_lists, columns->lines};
    return 1;
}

/* ---- Opening ----------------------------------------------------------------------------------- */

void csv_columns_close(struct csv_columns *columns) {
    if (!columns)
        return;
    for (size_t i = 0; i < columns->number_count; i++)
        free(columns->numbers[i].numbers);
    for (size_t j = 0; j < columns->label_count; j++) {
        free(columns->labels[j].codes);
        csv_labels_clear(&columns->labels[j].labels);
    }
    free(columns->numbers);
    free(columns->labels);
    free(columns->number_lists);
    free(columns->code_lists);
    free(columns->label_order);
    free(columns->lines);
    free(columns->spans);
    free(columns->tile.ends);
    free(columns);
}

static void cleanup_columns(struct csv_columns **columns) {
    csv_columns_close(*columns);
}

static struct wanted *find_wanted(struct wanted *list, size_t count, size_t column) {
    for (size_t i = 0; i < count; i++)
        if (list[i].column == column)
            return &list[i];
    return NULL;
}

static bool want_number(struct csv_columns *columns, size_t i, size_t column) {
    struct wanted *wanted = find_wanted(columns->numbers, columns->number_count, column);
    if (!wanted) {
        wanted = &columns->numbers[columns->number_count++];
        *wanted = (struct wanted){.column = column, .numbers = calloc(BLOCK_ROWS, sizeof(double))};
    }
    columns->number_lists[i] = wanted->numbers;
    return wanted->numbers;
}

static bool want_label(struct csv_columns *columns, size_t j, size_t column) {
    struct wanted *wanted = find_wanted(columns->labels, columns->label_count, column);
    if (!wanted) {
        wanted = &columns->labels[columns->label_count++];
        *wanted = (struct wanted){.column = column, .codes = calloc(BLOCK_ROWS, sizeof(uint32_t))};
        if (!wanted->codes || csv_labels_init(&wanted->labels) < 0)
            return false;
    }
    columns->code_lists[j] = wanted->codes;
    columns->label_order[j] = wanted;
    return true;
}

int csv_columns_open(struct csv_reader *reader, const size_t *numbers, size_t number_count,
                     const size_t *labels, size_t label_count, enum csv_missing missing,
                     struct csv_columns **ret, struct failure *failure) {
    if (reader->started)
        return failure_set(failure, -EINVAL, "rows of '%s' were read already", reader->name);
    cleanup(cleanup_columns) struct csv_columns *columns = calloc(1, sizeof *columns);
    if (!columns)
        return failure_memory(failure);
    columns->reader = reader;
    columns->column_count = reader->column_count;
    columns->missing = missing;
    columns->fills = UINT64_MAX;
    columns->numbers = calloc(number_count + 1, sizeof *columns->numbers);
    columns->labels = calloc(label_count + 1, sizeof *columns->labels);
    columns->number_lists = calloc(number_count + 1, sizeof *columns->number_lists);
    columns->code_lists = calloc(label_count + 1, sizeof *columns->code_lists);
    columns->label_order = calloc(label_count + 1, sizeof *columns->label_order);
    columns->lines = calloc(BLOCK_ROWS, sizeof *columns->lines);
    columns->spans = calloc(reader->column_count, sizeof *columns->spans);
    columns->tile.ends = calloc(CSV_TILE_ROOM, sizeof *columns->tile.ends);
    columns->tile.columns = reader->column_count;
    columns->kernel = csv_tile_kernel_best();
    bool good = columns->numbers && columns->labels && columns->number_lists && columns->code_lists &&
                columns->label_order && columns->lines && columns->spans && columns->tile.ends;
    for (size_t i = 0; good && i < number_count; i++)
        good = want_number(columns, i, numbers[i]);
    for (size_t j = 0; good && j < label_count; j++)
        good = want_label(columns, j, labels[j]);
    if (!good)
        return failure_memory(failure);
    *ret = take_pointer(columns);
    return 0;
}

const char *csv_label(const struct csv_columns *columns, size_t j, uint32_t code) {
    return columns->label_order[j]->labels.texts[code];
}

size_t csv_label_count(const struct csv_columns *columns, size_t j) {
    return columns->label_order[j]->labels.count;
}
