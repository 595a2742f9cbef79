/* Columns: what is asked for, and much of it. That they are the row reader's values, wherever the buffer
 * ends, with the same complaints: fuzz-csv. */
#include "engine/documents/csv-reader.h"
#include "tests/test.h"

/* ---- What is asked for -------------------------------------------------------------------------------- */

static struct csv_reader *reader;
static struct csv_columns *columns;
static struct csv_block block;
static struct failure failure;

static int close_all(void **state) {
    csv_columns_close(columns);
    csv_close(reader);
    columns = NULL;
    reader = NULL;
    return 0;
}

TEST_EACH(NULL, close_all)

static void open_columns(const char *csv, size_t length, const size_t *numbers, size_t number_count,
                         const size_t *labels, size_t label_count, enum csv_missing missing) {
    close_all(NULL);
    assert_int_equal(csv_open_memory("results.csv", csv, length, &reader, &failure), 0);
    assert_int_equal(
        csv_columns_open(reader, numbers, number_count, labels, label_count, missing, &columns, &failure), 0);
}

TEST(wanted_columns) {
    static const char csv[] = "x,host,y\n1,dahu-1,10\n2,dahu-2,20\n3,dahu-1,30\n";
    /* In any order, twice, and the same as a number and as a label. */
    open_columns(csv, sizeof csv - 1, (size_t[]){2, 0, 2}, 3, (size_t[]){1, 0, 1}, 3, CSV_MISSING_IS_ERROR);
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
}

TEST(no_column_wanted) {
    static const char csv[] = "x,y\n1,2\nz,\n";
    open_columns(csv, sizeof csv - 1, NULL, 0, NULL, 0, CSV_MISSING_IS_ERROR);
    assert_int_equal(csv_columns_next(columns, &block, &failure), 1);
    assert_int_equal(block.rows, 2);
}

TEST(too_late) {
    static const char csv[] = "x,y\n1,2\n";
    const struct csv_field *fields;
    assert_int_equal(csv_open_memory("r.csv", csv, sizeof csv - 1, &reader, &failure), 0);
    assert_int_equal(csv_next(reader, &fields, &failure), 1);
    assert_int_equal(csv_columns_open(reader, NULL, 0, NULL, 0, CSV_MISSING_IS_NAN, &columns, &failure),
                     -EINVAL);
    assert_null(columns);
}

static void check_refusal(const char *csv, enum csv_missing missing, const char *place,
                          const char *sentence) {
    open_columns(csv, strlen(csv), (size_t[]){1}, 1, (size_t[]){0}, 1, missing);
    assert_int_equal(csv_columns_next(columns, &block, &failure), -EINVAL);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_string_equal(failure.place, place);
    assert_string_equal(failure.text, sentence);
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
    cleanup(text_clear) struct text csv;
    text_init(&csv, 64 << 20);
    text_append_string(&csv, "label\n");
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < COUNT; i++)
            text_printf(&csv, i % 2 ? "l%d\n" : "a label whose number is %d\n", i);
    open_columns(csv.bytes, csv.length, NULL, 0, (size_t[]){0}, 1, CSV_MISSING_IS_ERROR);
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
}
