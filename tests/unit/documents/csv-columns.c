/* Columns: the same values as the row reader's, wherever the buffer ends, and the same complaints. */
#include "engine/documents/csv-reader.h"
#include "engine/foundation/number.h"
#include "tests/test.h"
#include "tests/unit/documents/missing-number.h"

struct pieces {
    const char *bytes;
    size_t left, size; /* size 0: of random sizes */
};

static int64_t read_piece(void *context, char *buffer, size_t room) {
    struct pieces *pieces = context;
    size_t size = pieces->size ? pieces->size : 1 + test_random_bits() % 7;
    size_t step = size < room ? size : room;
    step = step < pieces->left ? step : pieces->left;
    memcpy(buffer, pieces->bytes, step);
    pieces->bytes += step;
    pieces->left -= step;
    return (int64_t)step;
}

/* ---- Columns against rows --------------------------------------------------------------------------- */

enum { NUMBERS = 3, LABELS = 2, COLUMNS = 6 };

/* Reads CSV (columns a to f: a, c and f are numbers, b and d labels, e nobody wants) by columns and by rows.
 */
static void compare(const char *csv, size_t length, size_t piece, size_t capacity) {
    static const size_t numbers[NUMBERS] = {0, 2, 5}, labels[LABELS] = {1, 3};
    struct csv_reader *reader = NULL, *reference = NULL;
    struct csv_columns *columns = NULL;
    struct failure failure = {0}, expected = {0};
    struct pieces pieces = {csv, length, piece};
    assert_int_equal(csv_open_memory("r.csv", csv, length, &reference, &expected), 0);
    assert_int_equal(csv_reader_open("r.csv", read_piece, &pieces, capacity, CSV_STRICT, &reader, &failure),
                     0);
    assert_int_equal(
        csv_columns_open(reader, numbers, NUMBERS, labels, LABELS, CSV_MISSING_IS_NAN, &columns, &failure),
        0);
    struct csv_block block;
    const struct csv_field *fields;
    int r;
    while ((r = csv_columns_next(columns, &block, &failure)) == 1)
        for (size_t row = 0; row < block.rows; row++) {
            assert_int_equal(csv_next(reference, &fields, &expected), 1);
            assert_int_equal(block.lines[row], csv_line(reference));
            for (size_t i = 0; i < NUMBERS; i++) {
                double value = NAN;
                const struct csv_field *field = &fields[numbers[i]];
                assert_true(parse_or_missing(field->bytes, field->length, &value));
                if (isnan(value) ? !isnan(block.numbers[i][row])
                                 : memcmp(&value, &block.numbers[i][row], sizeof value) != 0)
                    fail_msg("line %zu: '%.*s' is %a", csv_line(reference), (int)field->length, field->bytes,
                             block.numbers[i][row]);
            }
            for (size_t j = 0; j < LABELS; j++) {
                const struct csv_field *field = &fields[labels[j]];
                const char *label = csv_label(columns, j, block.labels[j][row]);
                assert_int_equal(strlen(label), field->length);
                assert_memory_equal(label, field->bytes, field->length);
            }
        }
    if (r < 0) {
        /* What stops the columns stops the rows too. */
        int s = 1;
        while (s == 1) {
            s = csv_next(reference, &fields, &expected);
            for (size_t i = 0; s == 1 && i < NUMBERS; i++) {
                const struct csv_field *field = &fields[numbers[i]];
                double value;
                if (!parse_or_missing(field->bytes, field->length, &value) &&
                    csv_number(reference, numbers[i], &value, &expected) < 0)
                    s = -1;
            }
        }
        assert_int_equal(failure.kind, expected.kind);
        assert_string_equal(failure.place, expected.place);
        assert_string_equal(failure.text, expected.text);
        /* And goes on stopping them. */
        assert_true(csv_columns_next(columns, &block, &failure) < 0);
    } else {
        assert_int_equal(csv_next(reference, &fields, &expected), 0);
        assert_int_equal(csv_columns_next(columns, &block, &failure), 0);
    }
    csv_columns_close(columns);
    csv_close(reader);
    csv_close(reference);
}

/* A number in one of the many ways to write one. */
static void append_number(struct text *text) {
    char literal[64];
    int length;
    double value;
    uint64_t bits = test_random_bits();
    static const char *const missing[] = {"NaN", "NA",    "-inf",       "\" Infinity\"",
                                          "\t",  "   83", "\" 1.5\t\"", "7 "};
    switch (test_random_bits() % 13) {
    case 12:
        length = snprintf(literal, sizeof literal, "%s",
                          missing[test_random_bits() % (sizeof missing / sizeof *missing)]);
        break;
    case 0:
        return; /* empty */
    case 1:
        length = snprintf(literal, sizeof literal, "%llu",
                          (unsigned long long)(test_random_bits() >> test_random_bits() % 64));
        break;
    case 2:
        length = snprintf(literal, sizeof literal, "-%llu",
                          (unsigned long long)(test_random_bits() >> test_random_bits() % 64));
        break;
    case 3:
        length = snprintf(literal, sizeof literal, "%.9e", (double)(int64_t)test_random_bits() * 1e-19);
        break;
    case 4:
        length = snprintf(literal, sizeof literal, "%.*f", (int)(test_random_bits() % 20),
                          (double)(test_random_bits() % 100000) * 1e-3);
        break;
    case 5:
        memcpy(&value, &bits, sizeof value);
        length = snprintf(literal, sizeof literal, "%.17g", isfinite(value) ? value : 1.5);
        break;
    case 6:
        length = snprintf(literal, sizeof literal, "%llu.%llu",
                          (unsigned long long)(test_random_bits() >> test_random_bits() % 64),
                          (unsigned long long)(test_random_bits() >> test_random_bits() % 64));
        break;
    case 7:
        length = snprintf(literal, sizeof literal, "%s%03d%s%s", test_random_bits() % 2 ? "+" : "",
                          (int)(test_random_bits() % 1000), test_random_bits() % 2 ? "." : "",
                          test_random_bits() % 2 ? "E+07" : "e-3");
        break;
    case 8:
        length = snprintf(literal, sizeof literal, "\"%d\"", (int)(test_random_bits() % 1000));
        break;
    case 9:
        length = snprintf(literal, sizeof literal, ".%d", (int)(test_random_bits() % 1000));
        break;
    default:
        length = snprintf(literal, sizeof literal, "%d", (int)(test_random_bits() % 10000));
    }
    text_append(text, literal, (size_t)length);
}

static void append_label(struct text *text) {
    static const char *const labels[] = {"dahu-1",
                                         "dahu-32",
                                         "",
                                         "a label of more than eight bytes",
                                         "exactly8",
                                         "seven77",
                                         "nine99999",
                                         "é",
                                         "tab\there",
                                         "a,b",
                                         "q\"q",
                                         "two\nlines",
                                         "ünïcödé of some length",
                                         "\r\n"};
    const char *label = labels[test_random_bits() % (test_random_bits() % 4 ? 7 : 14)];
    if (test_random_bits() % 8 == 0 && *label && !strpbrk(label, ",\"\n\r")) {
        text_printf(text, "\"%s\"", label); /* quoted without need */
        return;
    }
    csv_append_field(text, true, label, strlen(label));
}

static void append_row(struct text *text) {
    for (int column = 0; column < COLUMNS; column++) {
        if (column)
            text_append_character(text, ',');
        if (column == 0 || column == 2 || column == 5)
            append_number(text);
        else
            append_label(text);
    }
    text_append_string(text, test_random_bits() % 3 ? "\n" : "\r\n");
}

TEST(awkward_files_at_every_boundary) {
    struct text csv;
    text_init(&csv, 16 << 20);
    for (int file = 0; file < 60; file++) {
        text_reset(&csv);
        text_append_string(&csv, file % 3 ? "a,b,c,d,e,f\n" : "\xef\xbb\xbf\"a\",b,c,d,e,f\r\n");
        for (size_t rows = test_random_bits() % 40; rows > 0; rows--)
            append_row(&csv);
        if (file % 4 == 0 && csv.bytes[csv.length - 1] == '\n')
            csv.length -= csv.bytes[csv.length - 2] == '\r' ? 2 : 1; /* no newline at the end */
        for (size_t piece = 0; piece <= 7; piece++)
            compare(csv.bytes, csv.length, piece, 1 + test_random_bits() % 300);
        for (size_t capacity = 1; capacity <= 200; capacity += 1 + test_random_bits() % 3)
            compare(csv.bytes, csv.length, SIZE_MAX, capacity);
    }
    text_clear(&csv);
}

/* One row of many is spoilt by a byte. */
TEST(broken_files) {
    struct text csv;
    text_init(&csv, 16 << 20);
    for (int file = 0; file < 300; file++) {
        text_reset(&csv);
        text_append_string(&csv, "a,b,c,d,e,f\n");
        for (int row = 0; row < 20; row++)
            append_row(&csv);
        for (size_t spoilt = 1 + test_random_bits() % 2; spoilt > 0; spoilt--)
            csv.bytes[12 + test_random_bits() % (csv.length - 12)] =
                "x,\"\n\r\0\xff\xc3 -"[test_random_bits() % 10];
        compare(csv.bytes, csv.length, test_random_bits() % 8, 1 + test_random_bits() % 400);
        compare(csv.bytes, csv.length, SIZE_MAX, CSV_READER_BUFFER);
    }
    text_clear(&csv);
}

/* Many blocks, through the buffer's own size. */
TEST(many_rows) {
    struct text csv;
    text_init(&csv, 64 << 20);
    text_append_string(&csv, "a,b,c,d,e,f\n");
    for (int row = 0; row < 50000; row++)
        append_row(&csv);
    compare(csv.bytes, csv.length, SIZE_MAX, CSV_READER_BUFFER);
    compare(csv.bytes, csv.length, 1000, CSV_READER_BUFFER);
    text_clear(&csv);
}

/* ---- What is asked for -------------------------------------------------------------------------------- */

static struct csv_columns *open_columns(struct csv_reader *reader, const size_t *numbers, size_t number_count,
                                        const size_t *labels, size_t label_count, enum csv_missing missing) {
    struct csv_columns *columns = NULL;
    struct failure failure = {0};
    assert_int_equal(
        csv_columns_open(reader, numbers, number_count, labels, label_count, missing, &columns, &failure), 0);
    return columns;
}

TEST(wanted_columns) {
    static const char csv[] = "x,host,y\n1,dahu-1,10\n2,dahu-2,20\n3,dahu-1,30\n";
    struct csv_reader *reader = NULL;
    struct failure failure = {0};
    assert_int_equal(csv_open_memory("r.csv", csv, sizeof csv - 1, &reader, &failure), 0);
    /* In any order, twice, and the same as a number and as a label. */
    struct csv_columns *columns =
        open_columns(reader, (size_t[]){2, 0, 2}, 3, (size_t[]){1, 0, 1}, 3, CSV_MISSING_IS_ERROR);
    struct csv_block block;
    assert_int_equal(csv_columns_next(columns, &block, &failure), 1);
    assert_int_equal(block.rows, 3);
    for (size_t row = 0; row < 3; row++) {
        assert_true(block.numbers[0][row] == 10.0 * (double)(row + 1));
        assert_true(block.numbers[1][row] == (double)(row + 1));
        assert_true(block.numbers[2][row] == block.numbers[0][row]);
        assert_int_equal(block.labels[1][row], row);
        assert_int_equal(block.labels[2][row], block.labels[0][row]);
        assert_int_equal(block.lines[row], row + 2);
    }
    assert_int_equal(block.labels[0][0], 0); /* codes in order of first appearance */
    assert_int_equal(block.labels[0][1], 1);
    assert_int_equal(block.labels[0][2], 0);
    assert_int_equal(csv_label_count(columns, 0), 2);
    assert_int_equal(csv_label_count(columns, 1), 3);
    assert_string_equal(csv_label(columns, 0, 1), "dahu-2");
    assert_string_equal(csv_label(columns, 1, 2), "3");
    assert_int_equal(csv_columns_next(columns, &block, &failure), 0);
    csv_columns_close(columns);
    csv_columns_close(NULL);
    csv_close(reader);
}

TEST(no_column_wanted) {
    static const char csv[] = "x,y\n1,2\nz,\n";
    struct csv_reader *reader = NULL;
    struct failure failure = {0};
    assert_int_equal(csv_open_memory("r.csv", csv, sizeof csv - 1, &reader, &failure), 0);
    struct csv_columns *columns = open_columns(reader, NULL, 0, NULL, 0, CSV_MISSING_IS_ERROR);
    struct csv_block block;
    assert_int_equal(csv_columns_next(columns, &block, &failure), 1);
    assert_int_equal(block.rows, 2);
    csv_columns_close(columns);
    csv_close(reader);
}

TEST(too_late) {
    static const char csv[] = "x,y\n1,2\n";
    struct csv_reader *reader = NULL;
    struct csv_columns *columns = NULL;
    struct failure failure = {0};
    const struct csv_field *fields;
    assert_int_equal(csv_open_memory("r.csv", csv, sizeof csv - 1, &reader, &failure), 0);
    assert_int_equal(csv_next(reader, &fields, &failure), 1);
    assert_int_equal(csv_columns_open(reader, NULL, 0, NULL, 0, CSV_MISSING_IS_NAN, &columns, &failure),
                     -EINVAL);
    assert_null(columns);
    csv_close(reader);
}

static void check_refusal(const char *csv, enum csv_missing missing, const char *place,
                          const char *sentence) {
    struct csv_reader *reader = NULL;
    struct failure failure = {0};
    assert_int_equal(csv_open_memory("results.csv", csv, strlen(csv), &reader, &failure), 0);
    struct csv_columns *columns = open_columns(reader, (size_t[]){1}, 1, (size_t[]){0}, 1, missing);
    struct csv_block block;
    assert_int_equal(csv_columns_next(columns, &block, &failure), -EINVAL);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_string_equal(failure.place, place);
    assert_string_equal(failure.text, sentence);
    csv_columns_close(columns);
    csv_close(reader);
}

TEST(refusals) {
    check_refusal("host,duration\nx,1\nx,0.5x\n", CSV_MISSING_IS_ERROR, "results.csv:3:3",
                  "column 'duration' is '0.5x', expected a number");
    check_refusal("host,duration\nx,1\nx,\n", CSV_MISSING_IS_ERROR, "results.csv:3:3",
                  "column 'duration' is empty, expected a number");
    check_refusal("host,duration\nx,1\nx,NAN1\n", CSV_MISSING_IS_NAN, "results.csv:3:3",
                  "column 'duration' is 'NAN1', expected a number");
    check_refusal("host,duration\nx,1\nx,inf\n", CSV_MISSING_IS_ERROR, "results.csv:3:3",
                  "column 'duration' is 'inf', expected a number");
    check_refusal("host,duration\nx,1\nx,NA\n", CSV_MISSING_IS_ERROR, "results.csv:3:3",
                  "column 'duration' is 'NA', expected a number");
    check_refusal("host,duration\nx,1\nx\n", CSV_MISSING_IS_NAN, "results.csv:3:1",
                  "a row that ends with field 1, expected 2 fields");
    check_refusal("host,duration\nx,1\nx,2,3\n", CSV_MISSING_IS_NAN, "results.csv:3:5",
                  "a row of more than 2 fields, as many as the header has");
    check_refusal("host,duration\nx,1\n\n", CSV_MISSING_IS_NAN, "results.csv:3:1",
                  "an empty line, expected 2 fields");
    check_refusal("host,duration\n\"a\nb\",1\nx,1 \n", CSV_MISSING_IS_ERROR, "results.csv:4:3",
                  "column 'duration' is '1 ', expected a number");
    check_refusal("host,duration\nx\xff,1\n", CSV_MISSING_IS_NAN, "results.csv:2:2",
                  "a byte that is not UTF-8, expected UTF-8 text");
}

/* ---- Labels ---------------------------------------------------------------------------------------------
 */

TEST(many_labels) {
    enum { COUNT = 200000 };
    struct text csv;
    text_init(&csv, 64 << 20);
    text_append_string(&csv, "label\n");
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < COUNT; i++)
            text_printf(&csv, i % 2 ? "l%d\n" : "a label whose number is %d\n", i);
    struct csv_reader *reader = NULL;
    struct failure failure = {0};
    assert_int_equal(csv_open_memory("r.csv", csv.bytes, csv.length, &reader, &failure), 0);
    struct csv_columns *columns = open_columns(reader, NULL, 0, (size_t[]){0}, 1, CSV_MISSING_IS_ERROR);
    struct csv_block block;
    size_t rows = 0;
    const char *first = NULL;
    while (csv_columns_next(columns, &block, &failure) == 1)
        for (size_t row = 0; row < block.rows; row++, rows++) {
            assert_int_equal(block.labels[0][row], rows % COUNT);
            if (!first)
                first = csv_label(columns, 0, 0);
        }
    assert_int_equal(rows, 2 * COUNT);
    assert_int_equal(csv_label_count(columns, 0), COUNT);
    assert_ptr_equal(first, csv_label(columns, 0, 0)); /* labels do not move */
    for (uint32_t i = 0; i < COUNT; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, i % 2 ? "l%u" : "a label whose number is %u", i);
        assert_string_equal(csv_label(columns, 0, i), expected);
    }
    csv_columns_close(columns);
    csv_close(reader);
    text_clear(&csv);
}

/* ---- A million numbers ------------------------------------------------------------------------------------
 */

TEST(doubles_round_trip) {
    enum { COUNT = 1000000 };
    static uint64_t expected[COUNT];
    struct text csv;
    text_init(&csv, 256 << 20);
    text_append_string(&csv, "value,integer\n");
    for (size_t i = 0; i < COUNT; i++) {
        double value;
        do {
            expected[i] = test_random_bits();
            memcpy(&value, &expected[i], sizeof value);
        } while (!isfinite(value));
        if (i % 2) { /* and numbers of everyday size */
            value = (double)(int64_t)expected[i] * 1e-18;
            memcpy(&expected[i], &value, sizeof value);
        }
        csv_append_double(&csv, true, value);
        csv_append_int64(&csv, false, (int64_t)(test_random_bits() >> test_random_bits() % 64));
        text_append_character(&csv, '\n');
    }
    struct csv_reader *reader = NULL;
    struct failure failure = {0};
    assert_int_equal(csv_open_memory("r.csv", csv.bytes, csv.length, &reader, &failure), 0);
    struct csv_columns *columns = open_columns(reader, (size_t[]){0, 1}, 2, NULL, 0, CSV_MISSING_IS_ERROR);
    struct csv_block block;
    size_t rows = 0;
    while (csv_columns_next(columns, &block, &failure) == 1)
        for (size_t row = 0; row < block.rows; row++, rows++)
            if (memcmp(&block.numbers[0][row], &expected[rows], sizeof(double)) != 0)
                fail_msg("row %zu: %a", rows, block.numbers[0][row]);
    assert_int_equal(rows, COUNT);
    csv_columns_close(columns);
    csv_close(reader);
    text_clear(&csv);
}
