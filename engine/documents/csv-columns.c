/*
 * Rows to columns at speed. A row that is as plain as nearly all rows are (no doubled quote, no newline in
 * quotes, nothing to complain of) is taken in one pass over its bytes; any other is left to csv_next, which
 * knows every rule and every complaint. Both roads give the same values; a fuzz target holds them to it.
 */
#include "engine/documents/csv-labels.h"
#include "engine/documents/csv-reader.h"
#include "engine/documents/csv-scan.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_ROWS = 2048 };

/* What becomes of a column. */
struct use {
    double *numbers; /* BLOCK_ROWS of them, or NULL */
    uint32_t *codes; /* BLOCK_ROWS of them, or NULL */
    struct csv_labels *labels;
};

struct csv_columns {
    struct csv_reader *reader;
    enum csv_empty empty;
    struct use *uses; /* by column */
    size_t column_count;
    const double **numbers;
    const uint32_t **codes;
    size_t *label_columns; /* the column of each wanted label */
    size_t label_count;
    uint64_t *lines;
    size_t rows;    /* in the block that is being filled */
    size_t safe;    /* buffer offset behind the last newline in it */
    uint64_t fills; /* the reader's, when that was found */
};

/* ---- Numbers ----------------------------------------------------------------------------------- */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* Eight bytes with the first in the lowest, and each digit as its value. */
static inline uint64_t load_digits(const char *at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return word ^ UINT64_C(0x3030303030303030);
}

static inline bool are_digits(uint64_t digits) {
    return ((digits | (digits + UINT64_C(0x0606060606060606))) & UINT64_C(0xf0f0f0f0f0f0f0f0)) == 0;
}

/* The number that eight digits make: neighbours are joined into pairs, fours and all eight. */
static inline uint64_t join_digits(uint64_t digits) {
    digits = digits * 10 + (digits >> 8);
    const uint64_t pairs = UINT64_C(0x000000ff000000ff);
    return ((digits & pairs) * UINT64_C(0x000f424000000064) +
            ((digits >> 16) & pairs) * UINT64_C(0x0000271000000001)) >>
           32;
}

/* A whole number of one to eight digits, without a branch on how many: the missing ones are shifted in as
 * zeros. */
static inline bool parse_short(const char *at, size_t length, double *ret) {
    if (length - 1 >= 8)
        return false;
    uint64_t digits = load_digits(at) << (64 - 8 * length);
    if (!are_digits(digits))
        return false;
    *ret = (double)join_digits(digits);
    return true;
}

/* Eight digits at AT into MANTISSA, if they are there. */
static inline bool take_eight(const char *at, uint64_t *mantissa) {
    uint64_t digits = load_digits(at);
    if (!are_digits(digits))
        return false;
    *mantissa = *mantissa * 100000000 + join_digits(digits);
    return true;
}
#else
static inline bool parse_short(const char *at, size_t length, double *ret) {
    (void)at, (void)length, (void)ret;
    return false;
}

static inline bool take_eight(const char *at, uint64_t *mantissa) {
    (void)at, (void)mantissa;
    return false;
}
#endif

/* Digits from AT on, added to MANTISSA, which may overflow when there are more than 19. */
static inline const char *take_digits(const char *at, uint64_t *mantissa) {
    while (take_eight(at, mantissa))
        at += 8;
    for (unsigned digit; (digit = (unsigned)(unsigned char)*at - '0') < 10; at++)
        *mantissa = *mantissa * 10 + digit;
    return at;
}

/*
 * What number_parse_double makes of BYTES, the byte behind which is no part of a number. Whatever is not
 * short is left to it: more than 19 digits, a mantissa over 2^53 or a power of ten that is no exact double
 * (Clinger 1990).
 */
static bool parse_number(const char *bytes, size_t length, double *ret) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (parse_short(bytes, length, ret))
        return true;
    const char *at = bytes + (bytes[0] == '-');
    uint64_t mantissa = 0;
    const char *whole = at;
    at = take_digits(at, &mantissa);
    ptrdiff_t digits = at - whole;
    int scale = 0;
    if (*at == '.') {
        const char *fraction = ++at;
        at = take_digits(at, &mantissa);
        digits += at - fraction;
        scale = -(int)(at - fraction);
    }
    if ((*at | 0x20) == 'e') {
        bool negative = at[1] == '-';
        const char *first = at + 1 + (negative || at[1] == '+');
        int exponent = 0;
        for (at = first; (unsigned)(unsigned char)*at - '0' < 10 && at - first < 4; at++)
            exponent = exponent * 10 + (*at - '0');
        scale += negative ? -exponent : exponent;
        digits = at == first ? 0 : digits;
    }
    if (at != bytes + length || digits == 0 || digits > 19 || mantissa > UINT64_C(1) << 53 || scale < -22 ||
        scale > 22)
        return number_parse_double(bytes, length, ret);
    double value = (double)mantissa;
    value = scale < 0 ? value / powers[-scale] : value * powers[scale];
    *ret = bytes[0] == '-' ? -value : value;
    return true;
}

/* ---- The fast road ----------------------------------------------------------------------------- */

/* Where the special bytes of a row are, one after the other. */
struct specials {
    const char *base;
    uint64_t mask;
};

static inline const char *next_special(struct specials *specials) {
    while (specials->mask == 0) {
        specials->base += 64;
        specials->mask = csv_scan_64(specials->base);
    }
    const char *at = specials->base + __builtin_ctzll(specials->mask);
    specials->mask &= specials->mask - 1;
    return at;
}

/* What comes of a field: 0 when it must be taken the slow road. */
static inline bool use_field(const struct csv_columns *columns, const struct use *use, const char *bytes,
                             size_t length) {
    if (use->numbers) {
        double *number = &use->numbers[columns->rows];
        if (length == 0 && columns->empty == CSV_EMPTY_IS_NAN)
            *number = NAN;
        else if (!parse_number(bytes, length, number))
            return false;
    }
    return !use->codes || csv_labels_code(use->labels, bytes, length, &use->codes[columns->rows]) == 0;
}

/* The end of the field that begins at AT: the comma or the line's end behind it, NULL when the field is not
 * plain. A newline lies ahead, which ends the search at last. */
static inline const char *find_end(struct specials *specials, const char *at) {
    bool ascii = true;
    for (;;) {
        const char *special = next_special(specials);
        unsigned char byte = (unsigned char)*special;
        if (byte == ',' || byte == '\n' || (byte == '\r' && special[1] == '\n')) {
            size_t length = (size_t)(special - at);
            return length <= CSV_FIELD_MOST && (ascii || text_invalid_utf8(at, length) == length) ? special
                                                                                                  : NULL;
        }
        if (byte == '"' || byte == '\r' || byte == '\0')
            return NULL;
        ascii = ascii && byte < 0x80;
    }
}

/* The same for a field in quotes, AT being behind the first: the end is the closing quote. */
static inline const char *find_closing(struct specials *specials, const char *at) {
    bool ascii = true;
    for (;;) {
        const char *special = next_special(specials);
        unsigned char byte = (unsigned char)*special;
        if (byte == '"') {
            size_t length = (size_t)(special - at);
            return length <= CSV_FIELD_MOST && (ascii || text_invalid_utf8(at, length) == length) ? special
                                                                                                  : NULL;
        }
        if (byte == '\n' || byte == '\0')
            return NULL;
        ascii = ascii && byte < 0x80;
    }
}

/* Takes the row at AT into the block. Returns where the next begins, or NULL for the slow road, nothing being
 * changed then but what the row that is taken again writes the same. */
static const char *take_row(const struct csv_columns *columns, const char *at) {
    struct specials specials = {at, csv_scan_64(at)};
    size_t count = columns->column_count;
    for (size_t column = 0;; column++) {
        const struct use *use = &columns->uses[column];
        const char *bytes = at, *end;
        if (*at == '"') {
            next_special(&specials);
            bytes = at + 1;
            const char *closing = find_closing(&specials, bytes);
            if (!closing)
                return NULL;
            end = next_special(&specials);
            if (end != closing + 1 || (*end != ',' && *end != '\n' && (*end != '\r' || end[1] != '\n')))
                return NULL;
            if ((use->numbers || use->codes) && !use_field(columns, use, bytes, (size_t)(closing - bytes)))
                return NULL;
        } else {
            end = find_end(&specials, at);
            if (!end)
                return NULL;
            if ((use->numbers || use->codes) && !use_field(columns, use, bytes, (size_t)(end - bytes)))
                return NULL;
        }
        bool is_last = column + 1 == count;
        if (*end == ',' ? is_last : !is_last)
            return NULL;
        if (is_last)
            return end + 1 + (*end == '\r');
        at = end + 1;
    }
}

/* As many rows as can be taken from what is in the buffer. */
static void take_rows(struct csv_columns *columns) {
    struct csv_reader *reader = columns->reader;
    const char *at = reader->buffer + reader->begin, *safe = reader->buffer + columns->safe;
    while (at < safe && columns->rows < BLOCK_ROWS) {
        const char *next = take_row(columns, at);
        if (!next)
            break;
        columns->lines[columns->rows++] = reader->line++;
        at = next;
    }
    reader->begin = (size_t)(at - reader->buffer);
}

/* ---- The slow road ----------------------------------------------------------------------------- */

static int use_slowly(const struct csv_columns *columns, size_t column, const struct csv_field *field,
                      struct failure *failure) {
    const struct csv_reader *reader = columns->reader;
    const struct use *use = &columns->uses[column];
    if (use->numbers) {
        double *number = &use->numbers[columns->rows];
        if (field->length == 0 && columns->empty == CSV_EMPTY_IS_NAN)
            *number = NAN;
        else if (csv_number(reader, column, number, failure) < 0)
            return -EINVAL;
    }
    if (!use->codes)
        return 0;
    int r = csv_labels_code(use->labels, field->bytes, field->length, &use->codes[columns->rows]);
    if (r == -EFBIG)
        return csv_failure(reader, column, failure,
                           "column '%s' has too many different values, expected at most %d",
                           reader->names[column], CSV_LABELS_MOST);
    return r < 0 ? failure_memory(failure) : 0;
}

/* 1 for a row taken, 0 at the end. */
static int take_row_slowly(struct csv_columns *columns, struct failure *failure) {
    struct csv_reader *reader = columns->reader;
    const struct csv_field *fields;
    int r = csv_next(reader, &fields, failure);
    if (r <= 0)
        return r;
    for (size_t column = 0; column < reader->column_count; column++) {
        r = use_slowly(columns, column, &fields[column], failure);
        if (r < 0) {
            reader->broken = true;
            return r;
        }
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
            take_rows(columns);
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
    *ret = (struct csv_block){columns->rows, columns->numbers, columns->codes, columns->lines};
    return 1;
}

/* ---- Opening ----------------------------------------------------------------------------------- */

void csv_columns_close(struct csv_columns *columns) {
    if (!columns)
        return;
    for (size_t i = 0; columns->uses && i < columns->column_count; i++) {
        struct use *use = &columns->uses[i];
        free(use->numbers);
        free(use->codes);
        if (use->labels)
            csv_labels_clear(use->labels);
        free(use->labels);
    }
    free(columns->uses);
    free(columns->numbers);
    free(columns->codes);
    free(columns->label_columns);
    free(columns->lines);
    free(columns);
}

static void cleanup_columns(struct csv_columns **columns) {
    csv_columns_close(*columns);
}

/* A column that is wanted twice is read once. */
static bool want_number(struct csv_columns *columns, size_t i, size_t column) {
    struct use *use = &columns->uses[column];
    if (!use->numbers)
        use->numbers = calloc(BLOCK_ROWS, sizeof *use->numbers);
    columns->numbers[i] = use->numbers;
    return use->numbers;
}

static bool want_label(struct csv_columns *columns, size_t j, size_t column) {
    struct use *use = &columns->uses[column];
    if (!use->labels) {
        use->codes = calloc(BLOCK_ROWS, sizeof *use->codes);
        use->labels = calloc(1, sizeof *use->labels);
        if (!use->codes || !use->labels || csv_labels_init(use->labels) < 0)
            return false;
    }
    columns->codes[j] = use->codes;
    columns->label_columns[j] = column;
    return true;
}

int csv_columns_open(struct csv_reader *reader, const size_t *numbers, size_t number_count,
                     const size_t *labels, size_t label_count, enum csv_empty empty, struct csv_columns **ret,
                     struct failure *failure) {
    if (reader->started)
        return failure_set(failure, -EINVAL, "rows of '%s' were read already", reader->name);
    cleanup(cleanup_columns) struct csv_columns *columns = calloc(1, sizeof *columns);
    if (!columns)
        return failure_memory(failure);
    columns->reader = reader;
    columns->empty = empty;
    columns->fills = UINT64_MAX;
    columns->label_count = label_count;
    columns->column_count = reader->column_count;
    columns->uses = calloc(reader->column_count, sizeof *columns->uses);
    columns->numbers = calloc(number_count + 1, sizeof *columns->numbers);
    columns->codes = calloc(label_count + 1, sizeof *columns->codes);
    columns->label_columns = calloc(label_count + 1, sizeof *columns->label_columns);
    columns->lines = calloc(BLOCK_ROWS, sizeof *columns->lines);
    bool good =
        columns->uses && columns->numbers && columns->codes && columns->label_columns && columns->lines;
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
    return columns->uses[columns->label_columns[j]].labels->texts[code];
}

size_t csv_label_count(const struct csv_columns *columns, size_t j) {
    return columns->uses[columns->label_columns[j]].labels->count;
}
