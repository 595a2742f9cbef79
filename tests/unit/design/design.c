/* The table: reading CSV with and without factors, defaults, conditions, maxima, writing; every refusal with
 * its place. */
#include "engine/design/design.h"
#include "engine/foundation/file.h"
#include "tests/test.h"

/* A literal where a factor owns a string: nothing here changes or frees it. */
#define WORD(literal) ((char *)(literal))

static const char *path;

/* What an experiment would declare: sizes, leading dimensions that follow from them, a number and a text. */
static char *choices[] = {WORD("ring"), WORD("long")};
static struct design_factor items[] = {
    {.about = {.name = "m", .type = COLUMN_INTEGER}, .minimum = 1, .maximum = 46340},
    {.about = {.name = "k", .type = COLUMN_INTEGER}, .minimum = 1, .maximum = 46340},
    {.about = {.name = "ldb", .type = COLUMN_INTEGER},
     .minimum = 1,
     .maximum = DESIGN_UNBOUNDED,
     .default_text = WORD("lda + 1")},
    {.about = {.name = "lda", .type = COLUMN_INTEGER},
     .minimum = 1,
     .maximum = DESIGN_UNBOUNDED,
     .default_text = WORD("max(m, k)")},
    {.about = {.name = "alpha", .type = COLUMN_NUMBER},
     .minimum = -DESIGN_UNBOUNDED,
     .maximum = 2,
     .default_text = WORD("1")},
    {.about = {.name = "bcast", .type = COLUMN_STRING},
     .choices = choices,
     .choice_count = 2,
     .default_text = WORD("ring")},
};
static struct design_factors factors = {.items = items, .count = 6, .file = "experiment.yaml"};

static struct design *read_good(const char *csv, const struct design_factors *with) {
    path = test_put("table.csv", csv);
    struct design *design = NULL;
    assert_ok(design_read(path, with, &design, &test_failure));
    return design;
}

/* ---- Reading */

TEST(read_with_factors) {
    cleanup(design_cleanup) struct design *design =
        read_good("\xef\xbb\xbf"
                  "bcast,k,m,alpha\r\nlong,1e3,20,0.5\r\n\"ring\",40.0,46340,-1e300\r\n",
                  &factors);
    assert_ok(design_conform(design, &factors, &test_failure));
    assert_int_equal(design->row_count, 2);
    assert_int_equal(design->column_count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(design->columns[i].about.name, items[i].about.name);
        assert_int_equal(design->columns[i].about.type, items[i].about.type);
    }
    static const char *const expected[2][6] = {{"20", "1000", "1001", "1000", "0.5", "long"},
                                               {"46340", "40", "46341", "46340", "-1e+300", "ring"}};
    for (size_t row = 0; row < 2; row++)
        for (size_t i = 0; i < 6; i++) {
            char buffer[NUMBER_TEXT_SIZE];
            assert_string_equal(design_value(design, row, i, buffer), expected[row][i]);
        }
    double numbers[6];
    design_numbers(design, 0, numbers);
    assert_true(numbers[0] == 20 && numbers[4] == 0.5 && isnan(numbers[5]));
}

TEST(read_without_factors) {
    cleanup(design_cleanup) struct design *design =
        read_good("a,b,c,d,e\n1,0.5,x,1e400,9007199254740993\n2,1,007,1,2\n", NULL);
    enum column_type expected[] = {COLUMN_INTEGER, COLUMN_NUMBER, COLUMN_STRING, COLUMN_STRING,
                                   COLUMN_INTEGER};
    /* 2^53 + 1 is read as 2^53, which is admitted; 1e400 is no double, and stays what it is. */
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(design->columns[i].about.type, expected[i]);
    cleanup(text_clear) struct text text;
    text_init(&text, 1000);
    assert_ok(design_append(design, NULL, &text, &test_failure));
    assert_string_equal(text.bytes, "a,b,c,d,e\n1,0.5,x,1e400,9007199254740992\n2,1,007,1,2\n");
}

static int read_and_conform(const char *csv) {
    struct design *design = NULL;
    path = test_put("table.csv", csv);
    int r = design_read(path, &factors, &design, &test_failure);
    r = r < 0 ? r : design_conform(design, &factors, &test_failure);
    design_free(design);
    return r;
}

TEST(read_refusals) {
    static const struct {
        const char *csv, *place, *sentence;
    } cases[] = {
        {"", ":1:1", "expected a header row"},
        {"m,k\n", ":1", "no rows after the header, expected at least one"},
        {"m,kk\n1,2\n", ":1:3", "'kk' is not a factor; did you mean 'k'?"},
        {"m,temperature\n1,2\n", ":1:3", "'temperature' is not a factor; there are: m, k"},
        {"m,k,m\n1,2,3\n", ":1:5", "two columns"},
        {"m,k\n1,2\n3\n", ":3:1", "expected"},
        {"m,k\n1,2\n0,4\n", ":3:1", "'m' is '0', expected a whole number from 1 to 46340"},
        {"m,k\n1,46341\n", ":2:3", "'k' is '46341', expected a whole number from 1 to 46340"},
        {"m,k\n1,2.5\n", ":2:3", "'k' is '2.5', expected a whole number from 1 to 46340"},
        {"m,k\n1,12x\n", ":2:3", "'k' is '12x', expected a whole number"},
        {"m,k\n1, 2\n", ":2:3", "'k' is ' 2', expected a whole number"},
        {"m,k\n1,\n", ":2:3", "'k' is empty, expected a whole number"},
        {"m,k\n1,nan\n", ":2:3", "'k' is 'nan', expected a whole number"},
        {"m,k\n1,\"2\n\"\n", ":2:3", "expected a whole number"},
        {"m,k,alpha\n1,2,3\n", ":2:5", "'alpha' is '3', expected a number of at most 2"},
        {"m,k,lda\n1,2,0\n", ":2:5", "'lda' is '0', expected a whole number of at least 1"},
        {"m,k,lda\n1,2,9007199254740994\n", ":2:5", "'lda' is '9007199254740994', expected a whole number"},
        {"m,k,bcast\n1,2,3ring\n", ":2:5", "'bcast' is '3ring', expected one of ring, long"},
        {"m,k,bcast\n1,2,\n", ":2:5", "'bcast' is empty, expected one of ring, long"},
        {"m\n1\n", ":1", "no column 'k', expected one, since this factor has no default"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup_free char *place = text_format("%s%s", test_path("table.csv"), cases[i].place);
        assert_refused(read_and_conform(cases[i].csv), place, cases[i].sentence);
    }
    struct design *design = NULL;
    assert_true(design_read("/nonexistent/sizes.csv", &factors, &design, &test_failure) < 0);
    assert_int_equal(test_failure.kind, FAILURE_INPUT);
    assert_true(design_read("/nonexistent/sizes.csv", NULL, &design, &test_failure) < 0);
    assert_int_equal(test_failure.kind, FAILURE_INPUT);
}

/* Many labels: the table of texts has to grow, and codes stay those of their texts. */
TEST(many_labels) {
    cleanup(text_clear) struct text csv;
    text_init(&csv, 1 << 20);
    text_append_string(&csv, "name\n");
    for (int i = 0; i < 10000; i++)
        text_printf(&csv, "run-%d\n", i % 5000);
    cleanup(design_cleanup) struct design *design = read_good(csv.bytes, NULL);
    assert_int_equal(design->columns[0].labels.count, 5000);
    for (size_t row = 0; row < 10000; row++) {
        char expected[32], buffer[NUMBER_TEXT_SIZE];
        snprintf(expected, sizeof expected, "run-%zu", row % 5000);
        assert_string_equal(design_value(design, row, 0, buffer), expected);
    }
}

/* ---- Conforming */

/* A generated design of one column. */
static struct design *one_column(const char *name, enum column_type type, double value) {
    struct design *design = NULL;
    struct design_column *column = NULL;
    assert_ok(design_new(1, &design, &test_failure));
    design->file = strdup("campaign.yaml");
    design->line = 3;
    design->column = 9;
    assert_ok(design_add_column(design, name, type, &column, &test_failure));
    if (type == COLUMN_INTEGER)
        column->integers[0] = (int64_t)value;
    else if (type == COLUMN_NUMBER)
        column->numbers[0] = value;
    else
        assert_int_equal(text_set_add(&column->labels, "word", 4), 0);
    return design;
}

static void refuse_conform(struct design *design, struct design_factor *list, size_t count, const char *place,
                           const char *sentence) {
    struct design_factors some = {.items = list, .count = count, .file = "experiment.yaml"};
    assert_refused(design_conform(design, &some, &test_failure), place, sentence);
    design_free(design);
}

TEST(conform_types) {
    struct design_factor integer = {.about = {.name = "x", .type = COLUMN_INTEGER},
                                    .minimum = -DESIGN_UNBOUNDED,
                                    .maximum = DESIGN_UNBOUNDED};
    struct design_factor number = integer, text = {.about = {.name = "x", .type = COLUMN_STRING}};
    number.about.type = COLUMN_NUMBER;
    struct design *design = one_column("x", COLUMN_NUMBER, -7);
    assert_ok(design_conform(design, &(struct design_factors){.items = &integer, .count = 1}, &test_failure));
    assert_true(design->columns[0].about.type == COLUMN_INTEGER && design->columns[0].integers[0] == -7);
    assert_ok(design_conform(design, &(struct design_factors){.items = &number, .count = 1}, &test_failure));
    assert_true(design->columns[0].about.type == COLUMN_NUMBER && design->columns[0].numbers[0] == -7);
    design_free(design);
    const char *place = "campaign.yaml:3:9";
    refuse_conform(one_column("x", COLUMN_NUMBER, 0.5), &integer, 1, place,
                   "row 1 of the design: 'x' is 0.5, expected a whole number of at most 2^53 in size");
    refuse_conform(one_column("x", COLUMN_NUMBER, NAN), &number, 1, place, "'x' is nan, expected a number");
    refuse_conform(one_column("x", COLUMN_STRING, 0), &integer, 1, place,
                   "'x' is word, expected a whole number");
    refuse_conform(one_column("x", COLUMN_INTEGER, 5), &text, 1, place, "'x' is 5, expected a text");
    refuse_conform(one_column("y", COLUMN_INTEGER, 5), &integer, 1, place,
                   "'y' is not a factor; there are: x");
    refuse_conform(one_column("y", COLUMN_INTEGER, 5), NULL, 0, place, "'y' is not a factor; there are none");
}

TEST(default_refusals) {
    struct design_factor list[3] = {
        {.about = {.name = "x", .type = COLUMN_INTEGER},
         .minimum = -DESIGN_UNBOUNDED,
         .maximum = DESIGN_UNBOUNDED},
        {.about = {.name = "a", .type = COLUMN_NUMBER},
         .maximum = 10,
         .default_line = 5,
         .default_column = 12},
        {.about = {.name = "b", .type = COLUMN_NUMBER},
         .maximum = 10,
         .default_line = 6,
         .default_column = 12},
    };
    static const struct {
        const char *a, *b, *place, *sentence;
    } cases[] = {
        {"x / 0", "1", "campaign.yaml:3:9",
         "row 1 of the design: the default of 'a', x / 0, is inf in this row, expected a number from 0 to "
         "10"},
        {"x + 6", "1", "campaign.yaml:3:9",
         "the default of 'a', x + 6, is 11 in this row, expected a number from 0 to 10"},
        {"x +", "1", "experiment.yaml:5:15", "the default of 'a': found the end"},
        {"y", "1", "experiment.yaml:5:12", "the default of 'a': unknown name 'y'"},
        {"a", "1", "experiment.yaml:5:12", "the default of 'a', a, depends on itself"},
        {"b", "a", "experiment.yaml:6:12",
         "the default of 'b', a, depends on itself, directly or through other defaults"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        list[1].default_text = (char *)cases[i].a;
        list[2].default_text = (char *)cases[i].b;
        refuse_conform(one_column("x", COLUMN_INTEGER, 5), list, 3, cases[i].place, cases[i].sentence);
    }
    list[1].default_text = WORD("x");
    list[2].about.type = COLUMN_STRING;
    list[2].choices = choices;
    list[2].choice_count = 2;
    list[2].default_text = WORD("star");
    refuse_conform(one_column("x", COLUMN_INTEGER, 5), list, 3, "experiment.yaml:6:12",
                   "the default of 'b' is 'star', expected one of ring, long");
    list[2].default_text = WORD("ring");
    list[1].default_text = WORD("b");
    refuse_conform(one_column("x", COLUMN_INTEGER, 5), list, 3, "experiment.yaml:5:12",
                   "the default of 'a' uses 'b', which is a text");
}

TEST(all_defaults) {
    cleanup(design_cleanup) struct design *design = NULL;
    struct design_factor list[] = {
        {.about = {.name = "x", .type = COLUMN_INTEGER}, .maximum = 9, .default_text = WORD("3")},
        {.about = {.name = "name", .type = COLUMN_STRING}, .default_text = WORD("max(no expression")},
    };
    assert_ok(design_new(1, &design, &test_failure));
    assert_ok(design_conform(design, &(struct design_factors){.items = list, .count = 2}, &test_failure));
    char buffer[NUMBER_TEXT_SIZE];
    assert_string_equal(design_value(design, 0, 0, buffer), "3");
    assert_string_equal(design_value(design, 0, 1, buffer), "max(no expression");
}

/* ---- Expressions over rows */

static struct expression *parse(const char *text) {
    static const char *const names[] = {"m", "k", "ldb", "lda", "alpha", "bcast"};
    struct expression *expression = NULL;
    assert_ok(expression_parse(text, names, 6, "experiment.yaml", 20, 5, &expression, &test_failure));
    return expression;
}

TEST(conditions) {
    cleanup(design_cleanup) struct design *design = read_good("m,k,lda\n10,20,20\n30,40,35\n", &factors);
    assert_ok(design_conform(design, &factors, &test_failure));
    struct expression *good = parse("lda >= m"), *bad = parse("lda >= k"),
                      *not_finite = parse("m / (m - 30) > 0"), *of_text = parse("bcast == 1");
    cleanup_free char *place = text_format("%s:3", path);
    assert_ok(design_require(design, good, &test_failure));
    assert_int_equal(design_require(design, bad, &test_failure), -22);
    assert_string_equal(test_failure.place, place);
    assert_string_equal(test_failure.text,
                        "m 30, k 40, ldb 36, lda 35, alpha 1, bcast ring; expected lda >= k");
    double most = 0;
    struct expression *product = parse("lda * k"), *quotient = parse("1 / (m - 30)");
    assert_ok(design_maximum(design, product, &most, &test_failure));
    assert_true(most == 1400);
    assert_int_equal(design_maximum(design, quotient, &most, &test_failure), -22);
    assert_true(most == 1400);
    assert_string_equal(test_failure.place, place);
    assert_string_equal(test_failure.text, "1 / (m - 30) is inf in this row, expected a finite number");
    assert_int_equal(design_require(design, of_text, &test_failure), -22);
    assert_string_equal(test_failure.text, "bcast == 1 is nan in this row, expected a finite number");
    struct expression *all[] = {good, bad, not_finite, of_text, product, quotient};
    for (size_t i = 0; i < 6; i++)
        expression_free(all[i]);
}

TEST(compute) {
    cleanup(design_cleanup) struct design *design = read_good("m,name\n10,x\n30,y\n", NULL);
    assert_ok(design_compute(design, "lda", "m + 1", NULL, 0, 0, &test_failure));
    assert_ok(design_compute(design, "half", "lda / 2", NULL, 0, 0, &test_failure));
    assert_true(design->columns[2].about.type == COLUMN_INTEGER && design->columns[2].integers[1] == 31);
    assert_true(design->columns[3].about.type == COLUMN_NUMBER && design->columns[3].numbers[0] == 5.5);
    assert_int_equal(design_compute(design, "m", "1", NULL, 0, 0, &test_failure), -22);
    assert_string_equal(test_failure.text, "two columns called 'm'");
    assert_int_equal(design_compute(design, "z", "name + 1", "c.yaml", 4, 3, &test_failure), -22);
    assert_string_equal(test_failure.place, "c.yaml:4:3");
    assert_string_equal(test_failure.text,
                        "'z' is computed from 'name', which is a text; expected columns of numbers");
    assert_error(design_compute(design, "z", "1 / (m - 30)", NULL, 0, 0, &test_failure), -22,
                 "is inf in this row, expected a finite number");
    assert_says(test_failure.place, ":3");
}

/* ---- Writing */

TEST(write) {
    const char *csv = "n,x,\"a,b\"\n1,0.1,\"say \"\"hi\"\"\"\n2,1e-300,\"two\nlines\"\n3,5,plain\n";
    cleanup(design_cleanup) struct design *design = read_good(csv, NULL);
    struct design_order *order = NULL;
    cleanup(text_clear) struct text text, again;
    text_init(&text, 1 << 20);
    text_init(&again, 1 << 20);
    assert_ok(design_append(design, NULL, &text, &test_failure));
    assert_string_equal(text.bytes, csv);
    /* The same by pieces, to a descriptor; and with an order that repeats. */
    assert_ok(design_order_new(DESIGN_ORDER_RANDOM, 1, 3, 20000, NULL, 1, &order, &test_failure));
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    assert_ok(design_write(design, order, fileno(stream), "the file", &test_failure));
    fclose(stream);
    text_reset(&text);
    text.limit = again.limit = 4 << 20;
    assert_ok(file_read(path, &text, &test_failure));
    assert_ok(design_append(design, order, &again, &test_failure));
    assert_int_equal(text.length, again.length);
    assert_memory_equal(text.bytes, again.bytes, text.length);
    assert_int_equal(design_write(design, order, -1, "nowhere", &test_failure), -9);
    assert_int_equal(test_failure.kind, FAILURE_SYSTEM);
    assert_says(test_failure.text, "cannot write 'nowhere'");
    text_clear(&again);
    text_init(&again, 10);
    assert_int_equal(design_append(design, NULL, &again, &test_failure), -27);
    design_order_free(order);
}

TEST(new_refusals) {
    cleanup(design_cleanup) struct design *design = NULL;
    assert_int_equal(design_new((size_t)DESIGN_ROWS_MAX + 1, &design, &test_failure), -22);
    assert_null(design);
    design = one_column("x", COLUMN_INTEGER, 1);
    struct design_column *column = NULL;
    char name[16];
    for (int i = 1; i < DESIGN_COLUMNS_MAX; i++) {
        snprintf(name, sizeof name, "c%d", i);
        assert_ok(design_add_column(design, name, COLUMN_NUMBER, &column, &test_failure));
    }
    assert_int_equal(design_add_column(design, "last", COLUMN_NUMBER, &column, &test_failure), -22);
    assert_string_equal(test_failure.text, "more columns than the limit of 256");
    assert_int_equal(design_find(design, "c7"), 7);
    assert_true(design_find(design, "c") == SIZE_MAX);
    design_free(NULL);
}

TEST(expectation) {
    char buffer[DESIGN_EXPECTATION_SIZE];
    char *many[200];
    for (size_t i = 0; i < 200; i++)
        many[i] = WORD("choice");
    struct design_factor factor = {
        .about = {.name = "x", .type = COLUMN_STRING}, .choices = many, .choice_count = 200};
    assert_true(strlen(design_factor_expectation(&factor, buffer)) < DESIGN_EXPECTATION_SIZE);
    assert_non_null(strstr(buffer, "choice, choice, ..."));
    struct design_factor owned = {.about.name = strdup("x"),
                                  .about.unit = strdup("s"),
                                  .choices = calloc(1, sizeof(char *)),
                                  .choice_count = 1,
                                  .default_text = strdup("1"),
                                  .about.help = strdup("d")};
    owned.choices[0] = strdup("y");
    design_factor_clear(&owned);
    assert_null(owned.about.name);
}
