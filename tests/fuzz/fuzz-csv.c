/*
 * CSV of any bytes. The row reader, fed at once, is the reference. It must refuse with a sentence or give
 * rows that survive being written and read again; and the columns, fed in small pieces through a small
 * buffer, must give the same rows, or the same sentence at the same place.
 *
 * The first byte of the input sizes the pieces, the second the buffer, the third says which columns are
 * numbers.
 */
#include "engine/documents/csv-reader.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"
#include "tests/fuzz/fuzz.h"
#include "tests/pieces.h"

#include <math.h>
#include <strings.h>

enum { COLUMNS_MAX = 16 };

/* Which columns are wanted: those whose bit is set as numbers, the others as labels. */
struct wanted {
    size_t numbers[COLUMNS_MAX], labels[COLUMNS_MAX];
    size_t number_count, label_count;
    enum csv_missing missing;
};

static struct wanted want(const struct csv_reader *reader, uint8_t choice) {
    struct wanted wanted = {.missing = choice & 1 ? CSV_MISSING_IS_NAN : CSV_MISSING_IS_ERROR};
    for (size_t i = 0; i < csv_column_count(reader) && i < COLUMNS_MAX; i++) {
        if (choice >> (1 + i % 7) & 1)
            wanted.numbers[wanted.number_count++] = i;
        else
            wanted.labels[wanted.label_count++] = i;
    }
    return wanted;
}

/* What a field is where missing numbers are NaN, said once more and slowly. */
static bool parse_or_missing(const char *bytes, size_t length, double *ret) {
    char word[16] = "";
    for (; length > 0 && memchr(" \t", bytes[0], 2); bytes++)
        length--;
    while (length > 0 && memchr(" \t", bytes[length - 1], 2))
        length--;
    if (length < sizeof word && !memchr(bytes, '\0', length))
        memcpy(word, bytes, length);
    *ret = NAN;
    const char *plain = word + (word[0] == '+' || word[0] == '-');
    return length == 0 || strcasecmp(word, "na") == 0 || strcasecmp(word, "n/a") == 0 ||
           strcasecmp(word, "null") == 0 || strcasecmp(word, "none") == 0 || strcmp(word, "-") == 0 ||
           strcasecmp(plain, "nan") == 0 || strcasecmp(plain, "inf") == 0 ||
           strcasecmp(plain, "infinity") == 0 || number_parse_double(bytes, length, ret);
}

static bool is_same_double(double a, double b) {
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

/* Row ROW of BLOCK must be what the reference reader's next one is. */
static void check_row(struct csv_reader *reference, const struct wanted *wanted,
                      const struct csv_columns *columns, const struct csv_block *block, size_t row) {
    const struct csv_field *fields;
    struct failure failure = {0};
    must(csv_next(reference, &fields, &failure) == 1);
    must(block->lines[row] == csv_line(reference));
    for (size_t i = 0; i < wanted->number_count; i++) {
        const struct csv_field *field = &fields[wanted->numbers[i]];
        double value = NAN;
        must(wanted->missing == CSV_MISSING_IS_ERROR
                 ? number_parse_double(field->bytes, field->length, &value)
                 : parse_or_missing(field->bytes, field->length, &value));
        must(is_same_double(block->numbers[i][row], value));
    }
    for (size_t j = 0; j < wanted->label_count; j++) {
        const struct csv_field *field = &fields[wanted->labels[j]];
        uint32_t code = block->labels[j][row];
        must(code < csv_label_count(columns, j));
        const char *label = csv_label(columns, j, code);
        must(strlen(label) == field->length && memcmp(label, field->bytes, field->length) == 0);
    }
}

/* What the reference complains of, where the columns stopped: a row that is none, or a number that is none.
 */
static void check_failure(struct csv_reader *reference, const struct wanted *wanted,
                          const struct failure *failure) {
    const struct csv_field *fields;
    struct failure expected = {0};
    for (;;) {
        int r = csv_next(reference, &fields, &expected);
        must(r != 0);
        for (size_t i = 0; r == 1 && i < wanted->number_count; i++) {
            const struct csv_field *field = &fields[wanted->numbers[i]];
            double value;
            if (wanted->missing == CSV_MISSING_IS_ERROR ||
                !parse_or_missing(field->bytes, field->length, &value))
                r = csv_number(reference, wanted->numbers[i], &value, &expected) < 0 ? -1 : 1;
        }
        if (r < 0)
            break;
    }
    must(strcmp(expected.place, failure->place) == 0 && strcmp(expected.text, failure->text) == 0);
    must(text_invalid_utf8(failure->text, strlen(failure->text)) == strlen(failure->text));
}

static void check_columns(const char *bytes, size_t length, const uint8_t *choices) {
    struct csv_reader *reference = NULL, *reader = NULL;
    struct csv_columns *columns = NULL;
    struct failure expected = {0}, failure = {0};
    struct pieces pieces = {bytes, length, 1 + choices[0] % 97};
    int r = csv_open_memory("fuzz.csv", bytes, length, &reference, &expected);
    int s = csv_reader_open("fuzz.csv", read_piece, &pieces, 1 + choices[1], CSV_STRICT, &reader, &failure);
    must(r == s && strcmp(expected.place, failure.place) == 0 && strcmp(expected.text, failure.text) == 0);
    if (r == 0) {
        fuzz_passed += csv_column_count(reader) > 1;
        struct wanted wanted = want(reader, choices[2]);
        must(csv_columns_open(reader, wanted.numbers, wanted.number_count, wanted.labels, wanted.label_count,
                              wanted.missing, &columns, &failure) == 0);
        struct csv_block block;
        while ((s = csv_columns_next(columns, &block, &failure)) == 1)
            for (size_t row = 0; row < block.rows; row++)
                check_row(reference, &wanted, columns, &block, row);
        const struct csv_field *fields;
        if (s < 0)
            check_failure(reference, &wanted, &failure);
        else
            must(csv_next(reference, &fields, &expected) == 0);
    }
    csv_columns_close(columns);
    csv_close(reader);
    csv_close(reference);
}

static void append_row(struct text *text, const struct csv_field *fields, size_t count) {
    for (size_t i = 0; i < count; i++)
        must(csv_append_field(text, i == 0, fields[i].bytes, fields[i].length) == 0);
    must(text_append_character(text, '\n') == 0);
}

/* Rows written and read again are the same rows. */
static void check_writing(const char *bytes, size_t length) {
    struct csv_reader *reader = NULL, *again = NULL;
    struct failure failure = {0};
    if (csv_open_memory("fuzz.csv", bytes, length, &reader, &failure) < 0)
        return;
    size_t count = csv_column_count(reader);
    const struct csv_field *fields, *copies;
    cleanup(text_clear) struct text text;
    text_init(&text, 64 << 20);
    for (size_t i = 0; i < count; i++) {
        const char *name = csv_column_name(reader, i);
        must(csv_append_field(&text, i == 0, name, strlen(name)) == 0);
    }
    must(text_append_character(&text, '\n') == 0);
    while (csv_next(reader, &fields, &failure) == 1)
        append_row(&text, fields, count);
    csv_close(reader);
    must(csv_open_memory("fuzz.csv", bytes, length, &reader, &failure) == 0);
    must(csv_open_memory("again.csv", text.bytes, text.length, &again, &failure) == 0);
    must(csv_column_count(again) == count);
    while (csv_next(reader, &fields, &failure) == 1) {
        must(csv_next(again, &copies, &failure) == 1);
        for (size_t i = 0; i < count; i++)
            must(fields[i].length == copies[i].length &&
                 memcmp(fields[i].bytes, copies[i].bytes, copies[i].length) == 0);
    }
    must(csv_next(again, &copies, &failure) == 0);
    csv_close(reader);
    csv_close(again);
}

/* As a table of another program: pieces and buffers make no difference either, and its rows are as long as
 * the header. */
static void check_foreign(const char *bytes, size_t length, const uint8_t *choices) {
    struct csv_reader *whole = NULL, *pieced = NULL;
    struct failure expected = {0}, failure = {0};
    struct pieces all = {bytes, length, length}, pieces = {bytes, length, 1 + choices[0] % 97};
    int r = csv_reader_open("fuzz.csv", read_piece, &all, CSV_READER_BUFFER, 0, &whole, &expected);
    int s = csv_reader_open("fuzz.csv", read_piece, &pieces, 1 + choices[1], 0, &pieced, &failure);
    must(r == s);
    const struct csv_field *fields, *copies;
    while (r == 0 && (r = csv_next(whole, &fields, &expected)) == 1) {
        must(csv_next(pieced, &copies, &failure) == 1 && csv_line(whole) == csv_line(pieced));
        for (size_t i = 0; i < csv_column_count(whole); i++)
            must(fields[i].length == copies[i].length && fields[i].column == copies[i].column &&
                 memcmp(fields[i].bytes, copies[i].bytes, copies[i].length) == 0);
        r = 0;
    }
    must(!pieced || csv_next(pieced, &copies, &failure) == r);
    must(strcmp(expected.place, failure.place) == 0 && strcmp(expected.text, failure.text) == 0);
    csv_close(whole);
    csv_close(pieced);
}

FUZZ_TARGET(70, 2000);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    if (length < 3)
        return 0;
    check_columns((const char *)bytes + 3, length - 3, bytes);
    check_writing((const char *)bytes + 3, length - 3);
    check_foreign((const char *)bytes + 3, length - 3, bytes);
    return 0;
}
