/* The `design:` of a document: every form, what it makes, and every refusal with its place. */
#include "engine/design/specification.h"
#include "engine/design/design.h"
#include "tests/test.h"

/* A literal where a factor owns a string: nothing here changes or frees it. */
#define WORD(literal) ((char *)(literal))

/* A design made from YAML. */
struct made {
    struct design_specification *specification;
    struct design *design;
    struct design_order *order;
};

static int try_make(const char *yaml, const struct design_factors *factors, struct made *ret) {
    struct document *document = NULL;
    *ret = (struct made){0};
    assert_ok(document_parse_yaml("c.yaml", yaml, strlen(yaml), &document, &test_failure));
    int r = design_specification_from_node(document, document_get(document->root, "design"), test_folder(),
                                           &ret->specification, &test_failure);
    document_free(document);
    return r < 0 ? r
                 : design_specification_make(ret->specification, factors, &ret->design, &ret->order,
                                             &test_failure);
}

static void clear(struct made *made) {
    design_order_free(made->order);
    design_free(made->design);
    design_specification_free(made->specification);
}

static struct made make(const char *yaml, const struct design_factors *factors) {
    struct made made;
    assert_ok(try_make(yaml, factors, &made));
    return made;
}

/* The whole as CSV, which the caller frees. */
static char *csv_of(const struct made *made, bool in_order) {
    struct text text;
    text_init(&text, 1 << 24);
    assert_ok(design_append(made->design, in_order ? made->order : NULL, &text, &test_failure));
    return text_take(&text);
}

static void check_csv(const char *yaml, const struct design_factors *factors, bool in_order,
                      const char *expected) {
    struct made made = make(yaml, factors);
    cleanup_free char *csv = csv_of(&made, in_order);
    assert_string_equal(csv, expected);
    clear(&made);
}

/* ---- Forms */

TEST(files) {
    test_put("sizes.csv", "n,nb\n1000,64\n2000,128\n");
    check_csv("design: {file: sizes.csv, order: as-written, repetitions: 2}", NULL, true,
              "n,nb\n1000,64\n2000,128\n1000,64\n2000,128\n");
    struct made made = make("design: sizes.csv", NULL);
    assert_int_equal(made.design->row_count, 2);
    assert_int_equal(made.order->kind, DESIGN_ORDER_RANDOM);
    assert_int_equal(made.order->repetitions, 1);
    assert_true(made.specification->seed_drawn);
    assert_true(made.order->seed == design_specification_seed(made.specification));
    assert_string_equal(design_order_kind_name(made.specification->order), "random");
    clear(&made);
    cleanup_free char *absolute =
        text_format("design: {file: %s/sizes.csv, order: as-written}", test_folder());
    check_csv(absolute, NULL, true, "n,nb\n1000,64\n2000,128\n");
}

TEST(factorial) {
    check_csv("design: {generate: factorial, order: as-written, factors: {n: [1000, 2e3], nb: {from: 64, to: "
              "192, step: 64}, bcast: ring}}",
              NULL, true,
              "n,nb,bcast\n1000,64,ring\n1000,128,ring\n1000,192,ring\n2000,64,ring\n2000,128,ring\n2000,192,"
              "ring\n");
    check_csv("design:\n  generate: factorial\n  order: as-written\n  factors: {m: [3, 5]}\n  compute:\n    "
              "lda: m + 1\n"
              "    half: lda / 4\n",
              NULL, true, "m,lda,half\n3,4,1\n5,6,1.5\n");
}

TEST(single) {
    static const char *const forms[] = {"design: {repetitions: 10}", "design:\nx: 1", "x: 1"};
    for (size_t i = 0; i < 3; i++) {
        struct made made = make(forms[i], NULL);
        assert_int_equal(made.design->row_count, 1);
        assert_int_equal(made.design->column_count, 0);
        assert_int_equal(made.order->count, i == 0 ? 10 : 1);
        /* A condition where there is no factor to blame. */
        cleanup(expression_cleanup) struct expression *never = NULL;
        assert_ok(expression_parse("1 > 2", NULL, 0, "e.yaml", 1, 1, &never, &test_failure));
        assert_true(design_require(made.design, never, &test_failure) < 0);
        assert_string_equal(test_failure.text, "row 1 of the design: expected 1 > 2");
        clear(&made);
    }
}

TEST(draws) {
    static const char *const kinds[] = {"uniform", "log-uniform", "latin-hypercube"};
    for (size_t i = 0; i < 3; i++) {
        cleanup_free char *yaml =
            text_format("design: {generate: %s, rows: 50, seed: 18446744073709551615, factors: {m: [1, "
                        "5000], alpha: {from: 0.5, to: 1.5}, nb: {choices: [64, 128]}, p: 4}}",
                        kinds[i]);
        struct made made = make(yaml, NULL);
        assert_int_equal(made.design->row_count, 50);
        assert_int_equal(made.design->column_count, 4);
        assert_true(design_specification_seed(made.specification) == UINT64_MAX);
        assert_false(made.specification->seed_drawn);
        for (size_t row = 0; row < 50; row++) {
            int64_t m = made.design->columns[0].integers[row], nb = made.design->columns[2].integers[row];
            double alpha = made.design->columns[1].numbers[row];
            assert_true(m >= 1 && m <= 5000 && alpha >= 0.5 && alpha <= 1.5 && (nb == 64 || nb == 128));
            assert_int_equal(made.design->columns[3].integers[row], 4);
        }
        clear(&made);
    }
}

TEST(uniform_product) {
    struct made made = make("design: {generate: uniform-product, factors: [m, n, k], max-product: 1e8, "
                            "max-size: 4000, products: 4, batch: 2, fixed: {k: 128}, add: [[10, 20, 128], "
                            "[30, 40, 128]], seed: 1, compute: {lda: 'max(m, n, k)'}}",
                            NULL);
    assert_int_equal(made.design->row_count, 4 * 2 * 2 + 2);
    assert_int_equal(made.design->column_count, 4);
    assert_int_equal(made.design->columns[1].integers[17], 40);
    for (size_t row = 0; row < 18; row++) {
        int64_t m = made.design->columns[0].integers[row], n = made.design->columns[1].integers[row];
        assert_int_equal(made.design->columns[2].integers[row], 128);
        assert_true(m <= 4000 && n <= 4000);
        int64_t lda = made.design->columns[3].integers[row];
        assert_true(lda >= m && lda >= n && lda >= 128 && (lda == m || lda == n || lda == 128));
    }
    clear(&made);
}

/* ---- Controls */

TEST(controls) {
    /* Lists are lists for every kind, and texts whatever they look like. */
    check_csv(
        "design: {generate: factorial, order: as-written, factors: {n: [1, 2], control.turbo: [on, off]}}",
        NULL, true, "n,control.turbo\n1,on\n1,off\n2,on\n2,off\n");
    check_csv(
        "design: {generate: factorial, order: as-written, factors: {control.energy-preference: [0, 0x1, "
        "128], control.frequency: [2.1GHz, 1GHz..2GHz]}}",
        NULL, true,
        "control.energy-preference,control.frequency\n0,2.1GHz\n0,1GHz..2GHz\n0x1,2.1GHz\n0x1,1GHz..2GHz\n"
        "128,2.1GHz\n128,1GHz..2GHz\n");
    static const char *const kinds[] = {"uniform", "log-uniform", "latin-hypercube"};
    for (size_t i = 0; i < 3; i++) {
        cleanup_free char *yaml = text_format("design: {generate: %s, rows: 60, seed: 3, factors: {n: [1, "
                                              "9], control.hyperthreads: [on, off]}}",
                                              kinds[i]);
        struct made made = make(yaml, NULL);
        const struct design_column *column = &made.design->columns[1];
        assert_int_equal(column->about.type, COLUMN_STRING);
        size_t ons = 0;
        for (size_t row = 0; row < 60; row++)
            ons += column->codes[row] == 0;
        assert_true(ons > 10 && ons < 50);
        assert_int_equal(made.order->block_count, 2);
        clear(&made);
    }
    /* Whoever has no factor has controls. */
    struct made made =
        make("design: {cross: {control.turbo: [on, off]}, repetitions: 5, blocks: 5, seed: 1}", NULL);
    assert_int_equal(made.design->row_count, 2);
    assert_int_equal(made.order->block_count, 10);
    clear(&made);
    made = make("design: {cross: {control.turbo: [on, off]}, repetitions: 5, seed: 1}", NULL);
    assert_int_equal(made.order->block_count, 2);
    assert_int_equal(made.order->blocks[0].count, 5);
    assert_ok(design_specification_set_blocks(made.specification, "2", &test_failure));
    assert_int_equal(made.specification->blocks, 2);
    assert_int_equal(design_specification_set_blocks(made.specification, "0", &test_failure), -22);
    assert_string_equal(test_failure.text, "blocks '0', expected a whole number from 1 to 16777216");
    clear(&made);
}

TEST(cross) {
    test_put("two.csv", "n,label\n1,a\n2,b\n");
    check_csv("design: {file: two.csv, order: as-written, cross: {control.turbo: [on, off], nb: [64, 128]}, "
              "compute: {work: n * nb}}",
              NULL, true,
              "n,label,control.turbo,nb,work\n1,a,on,64,64\n1,a,on,128,128\n1,a,off,64,64\n1,a,off,128,128\n"
              "2,b,on,64,128\n2,b,on,128,256\n2,b,off,64,128\n2,b,off,128,256\n");
    struct made made = make("design: {file: two.csv, cross: {control.turbo: [on, off]}}", NULL);
    assert_int_equal(made.design->lines[1], 2);
    assert_int_equal(made.design->lines[2], 3);
    clear(&made);
    /* The sizes are those that would have been drawn without the cross. */
    made = make("design: {generate: uniform-product, factors: [m, n, k], products: 3, seed: 7}", NULL);
    struct made crossed = make("design: {generate: uniform-product, factors: [m, n, k], products: 3, seed: "
                               "7, cross: {control.turbo: [on, off]}}",
                               NULL);
    assert_int_equal(crossed.design->row_count, 2 * made.design->row_count);
    for (size_t row = 0; row < crossed.design->row_count; row++) {
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(crossed.design->columns[i].integers[row],
                             made.design->columns[i].integers[row / 2]);
        assert_int_equal(crossed.design->columns[3].codes[row], row % 2);
    }
    clear(&made);
    clear(&crossed);
}

/* ---- Seeds */

/* What was generated and shuffled equals what was generated, written, read and then shuffled. */
TEST(streams_are_independent) {
    struct made generated =
        make("design: {generate: uniform-product, factors: [m, n, k], repetitions: 3, seed: 99}", NULL);
    cleanup_free char *table = csv_of(&generated, false), *ordered = csv_of(&generated, true);
    test_put("written.csv", table);
    struct made read = make("design: {file: written.csv, repetitions: 3, seed: 99}", NULL);
    cleanup_free char *again = csv_of(&read, true);
    assert_string_equal(again, ordered);
    assert_string_not_equal(table, ordered);
    clear(&generated);
    clear(&read);
}

TEST(drawn_seeds_differ) {
    const char *yaml = "design: {generate: log-uniform, rows: 20, factors: {size: [1, 1e9]}}";
    struct made one = make(yaml, NULL), other = make(yaml, NULL);
    cleanup_free char *first = csv_of(&one, true), *second = csv_of(&other, true);
    assert_string_not_equal(first, second);
    /* The seed that was drawn repeats the design. */
    cleanup_free char *seed =
        text_format("%llu", (unsigned long long)design_specification_seed(one.specification));
    assert_ok(design_specification_set_seed(other.specification, seed, &test_failure));
    design_free(other.design);
    design_order_free(other.order);
    assert_ok(
        design_specification_make(other.specification, NULL, &other.design, &other.order, &test_failure));
    cleanup_free char *third = csv_of(&other, true);
    assert_string_equal(first, third);
    clear(&one);
    clear(&other);
}

TEST(is_random) {
    struct made made = make("design: {generate: factorial, factors: {n: 1}, order: as-written}", NULL);
    assert_false(design_specification_is_random(made.specification));
    assert_ok(design_specification_set_order(made.specification, "random", &test_failure));
    assert_true(design_specification_is_random(made.specification));
    clear(&made);
    made = make("design: {generate: uniform, rows: 2, factors: {n: [1, 9]}, order: as-written}", NULL);
    assert_true(design_specification_is_random(made.specification));
    clear(&made);
}

/* ---- Against an experiment */

static char *choices[] = {WORD("1"), WORD("2")};
static struct design_factor items[] = {
    {.about = {.name = "n", .type = COLUMN_INTEGER}, .minimum = 1, .maximum = 5000},
    {.about = {.name = "x", .type = COLUMN_NUMBER}, .maximum = 10, .default_text = WORD("n / 1000")},
    {.about = {.name = "depth", .type = COLUMN_STRING},
     .choices = choices,
     .choice_count = 2,
     .default_text = WORD("1")},
};
static struct design_factors factors = {.items = items, .count = 3, .file = "e.yaml"};

TEST(with_factors) {
    /* Types are the experiment's, not those of the literals: x is a number, depth a text. */
    struct made made =
        make("design: {generate: factorial, factors: {depth: [1, 2], x: [1, 2], n: 7}}", &factors);
    assert_int_equal(made.design->column_count, 3);
    assert_int_equal(made.design->columns[0].about.type, COLUMN_INTEGER);
    assert_int_equal(made.design->columns[1].about.type, COLUMN_NUMBER);
    assert_int_equal(made.design->columns[2].about.type, COLUMN_STRING);
    cleanup_free char *csv = csv_of(&made, false);
    assert_string_equal(csv, "n,x,depth\n7,1,1\n7,2,1\n7,1,2\n7,2,2\n");
    clear(&made);
    made = make("design: {generate: uniform, rows: 300, factors: {n: [1, 5000], x: [0, 1]}}", &factors);
    size_t whole = 0;
    for (size_t row = 0; row < 300; row++)
        whole += design_number(made.design, row, 1) == (double)(int)design_number(made.design, row, 1);
    assert_true(whole < 3);
    clear(&made);
    made = make("design: {generate: uniform-product, factors: [n], max-product: 5000, products: 5, batch: 1, "
                "add: []}",
                &factors);
    assert_int_equal(made.design->row_count, 5);
    assert_true(design_number(made.design, 4, 1) == design_number(made.design, 4, 0) / 1000);
    clear(&made);
}

/* ---- Steps */

TEST(steps) {
    static const struct {
        const char *in_factors;
        const struct design_factors *with;
        const char *csv;
    } cases[] = {
        {"size: {from: 1KiB, to: 16KiB, steps: 5, scale: log}", NULL,
         "size\n1024\n2048\n4096\n8192\n16384\n"},
        /* 1, 2.15, 4.64, 10: and of sizes that are the same after rounding there is one. */
        {"n: {from: 1, to: 10, steps: 4, scale: log}", NULL, "n\n1\n2\n5\n10\n"},
        {"n: {from: 1, to: 4, steps: 9, scale: log}", NULL, "n\n1\n2\n3\n4\n"},
        {"n: {from: 1, to: 4, steps: 9, scale: linear}", NULL, "n\n1\n2\n3\n4\n"},
        {"n: {from: 7, to: 7, steps: 3}", NULL, "n\n7\n"},
        {"x: {from: 0.01, to: 1e4, steps: 4, scale: log}", NULL, "x\n0.01\n1\n100\n10000\n"},
        {"x: {from: -1.0, to: 1, steps: 5}", NULL, "x\n-1\n-0.5\n0\n0.5\n1\n"},
        /* What is rounded is said by the experiment, and so is how many there are then. */
        {"n: {from: 1, to: 2, steps: 5}, depth: 1, x: 0", &factors, "n,x,depth\n1,0,1\n2,0,1\n"},
        {"x: {from: 1, to: 2, steps: 5}, depth: 1, n: 1", &factors,
         "n,x,depth\n1,1,1\n1,1.25,1\n1,1.5,1\n1,1.75,1\n1,2,1\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup_free char *yaml = text_format("design: {factors: {%s}}", cases[i].in_factors);
        check_csv(yaml, cases[i].with, false, cases[i].csv);
    }
    struct made made =
        make("design: {generate: uniform, rows: 500, factors: {n: {from: 1, to: 1e6, steps: 7, scale: log}}}",
             NULL);
    for (size_t row = 0; row < 500; row++) {
        double decade = log10(design_number(made.design, row, 0));
        assert_true(decade == floor(decade));
    }
    clear(&made);
}

/* ---- Shares and times */

/* A factor each that comes before what it needs. */
static struct design_factor sizes[] = {
    {.about = {.name = "n", .type = COLUMN_INTEGER},
     .minimum = 1,
     .maximum = 1e6,
     .default_text = WORD("50%"),
     .from_share = WORD("round_down(share * memory, nb * nodes)"),
     .from_time = WORD("time * rate"),
     .share_line = 7,
     .share_column = 5},
    {.about = {.name = "nb", .type = COLUMN_INTEGER},
     .minimum = 1,
     .maximum = 100,
     .default_text = WORD("rate * 5")},
    {.about = {.name = "nodes", .type = COLUMN_INTEGER},
     .minimum = 1,
     .maximum = 9,
     .default_text = WORD("1")},
};
static const struct design_given given[] = {{"memory", 1000, true}, {"rate", 2, false}};
static struct design_factors on_machine = {
    .items = sizes, .count = 3, .file = "e.yaml", .given = given, .given_count = 2};

TEST(shares_and_times) {
    check_csv("design: {factors: {n: [80%, 300, 1min, 1kB], nb: [7, 10]}}", &on_machine, false,
              "n,nb,nodes\n798,7,1\n800,10,1\n300,7,1\n300,10,1\n120,7,1\n120,10,1\n1000,7,1\n1000,10,1\n");
    check_csv("design: {factors: {n: 80%}, cross: {nodes: [1, 3]}}", &on_machine, false,
              "n,nb,nodes\n800,10,1\n780,10,3\n");
    check_csv("design: {repetitions: 1}", &on_machine, false, "n,nb,nodes\n500,10,1\n");
    static const struct {
        const char *yaml;
        bool uses_facts;
    } cases[] = {{"design: {factors: {n: 5}}", false},
                 {"design: {factors: {n: [5, 10s]}}", false},
                 {"design: {factors: {n: [5, 10%]}}", true},
                 {"design: {repetitions: 2}", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made made = make(cases[i].yaml, &on_machine);
        assert_int_equal(design_uses_facts(made.design), cases[i].uses_facts);
        assert_int_equal(made.design->columns[0].of_facts, cases[i].uses_facts);
        assert_false(made.design->columns[1].of_facts);
        clear(&made);
    }
    /* What guesses make is moved to where it may be, by way of other columns too; what is not guessed is not.
     */
    struct design_factors guessed = on_machine;
    struct design_given most[] = {{"memory", 1e9, true}, {"rate", 2, false}};
    guessed.given = most;
    guessed.facts_are_guessed = true;
    check_csv("design: {factors: {n: 90%}}", &guessed, false, "n,nb,nodes\n1000000,10,1\n");
}

/* ---- Refusals */

static void refuse(const char *yaml, const struct design_factors *with, const char *place,
                   const char *sentence) {
    struct made made;
    assert_refused(try_make(yaml, with, &made), place, sentence);
    clear(&made);
}

/* Designs on one line, and the columns where something is wrong. */
struct refusal {
    const char *yaml;
    size_t column;
    const char *sentence;
};

static void refuse_all(const struct refusal *cases, size_t count, const struct design_factors *with) {
    for (size_t i = 0; i < count; i++) {
        cleanup_free char *yaml = text_format("design: %s", cases[i].yaml),
                          *place = text_format("c.yaml:1:%zu", strlen("design: ") + cases[i].column);
        print_message("%s\n", yaml);
        refuse(yaml, with, place, cases[i].sentence);
    }
}

TEST(share_refusals) {
    static const struct refusal cases[] = {
        {"{factors: {nb: [80%]}}", 16, "'nb' is 80%, expected a whole number from 1 to 100"},
        {"{factors: {n: [0%]}}", 15, "'n' is 0%, expected"},
        {"{factors: {n: [-5s]}}", 15, "'n' is -5s, expected"},
        {"{factors: {n: [80%, 0]}}", 15,
         "'n' is 0, expected a whole number from 1 to 1000000, or a share such as 80%, or a time "
         "such "
         "as 10min"},
        {"{factors: {n: [1000h]}}", 1,
         "row 1 of the design: from-time of 'n', time * rate, is 7200000 in this row, expected"},
    };
    refuse_all(cases, sizeof cases / sizeof *cases, &on_machine);
    struct design_factors same = on_machine;
    struct design_given taken[] = {{"memory", 1000, true}, {"rate", 2, false}, {"share", 2, false}};
    same.given = taken;
    same.given_count = 3;
    refuse(
        "design: {factors: {n: [80%]}}", &same, "e.yaml:7:5",
        "from-share of 'n' uses 'share' for the factor's own value, but this is also the name of an option");
    char *before = sizes[1].default_text;
    sizes[1].default_text = WORD("n / 10");
    refuse("design: {factors: {n: [80%]}}", &on_machine, "e.yaml", "depends on itself");
    check_csv("design: {factors: {n: [80]}}", &on_machine, false, "n,nb,nodes\n80,8,1\n");
    sizes[1].default_text = before;
}

TEST(refusals) {
    static const struct refusal cases[] = {
        {"[a]", 1, "'design' is a sequence, expected the path of a CSV file or a mapping"},
        {"12", 1, "'design' is a number"},
        {"''", 1, "an empty path"},
        {"{genrate: uniform}", 2, "generate"},
        {"{generate: unifrom}", 12, "uniform"},
        {"{generate: uniform, file: a.csv}", 27, "both 'file' and 'generate'"},
        {"{generate: factorial, factors: {us: '1..100'}}", 37,
         "'us' is the text '1..100'; a range is written {from: 1, to: 100}"},
        {"{generate: factorial, factors: {us: [5, 1..100:2]}}", 41,
         "a range is written {from: 1, to: 100, step: 2}"},
        {"{factors: {n: {from: 1, to: 8, steps: 1}}}", 15,
         "the steps of 'n' are 1, expected a whole number from 2 to"},
        {"{factors: {n: {from: 0, to: 8, steps: 3, scale: log}}}", 15,
         "the range of 'n' begins at 0; a logarithmic scale needs"},
        {"{factors: {n: {from: 1, to: 8, steps: 3, step: 1}}}", 15, "'n' has both 'step' and 'steps'"},
        {"{factors: {n: {from: 1, to: 8, scale: log}}}", 15, "'n' has a 'scale' without 'steps'"},
        {"{factors: {n: {from: 1, to: 8, steps: 3, scale: geometric}}}", 49, "linear"},
        {"{rows: 5}", 8, "'rows' is set without 'generate'"},
        {"{file: a.csv, rows: 5}", 21, "'rows' is not used by a design from a file"},
        {"{generate: factorial, rows: 5, factors: {n: 1}}", 29, "'rows' is not used by factorial"},
        {"{generate: uniform, batch: 5, rows: 1, factors: {n: 1}}", 28, "'batch' is not used by uniform"},
        {"{generate: uniform, factors: {n: [1, 2]}}", 1, "'uniform' needs 'rows'"},
        {"{generate: factorial}", 1, "'factorial' needs 'factors'"},
        {"{generate: factorial, factors: {}}", 32, "'factors' is empty"},
        {"{generate: factorial, factors: [n]}", 32, "'factors' is a sequence, expected a mapping"},
        {"{generate: uniform-product, factors: {n: 1}}", 38, "'factors' is a mapping, expected a list"},
        {"{generate: uniform, rows: 5, factors: {n: [1, 2, 3]}}", 43,
         "the range of 'n' has 3 values, expected two, low and high, or {choices: [...]}"},
        {"{generate: uniform, rows: 5, factors: {n: [5, 1]}}", 43, "goes from 5 down to 1"},
        {"{generate: uniform, rows: 5, factors: {n: {from: 1}}}", 43, "'n' expects either 'from' and 'to'"},
        {"{generate: uniform, rows: 5, factors: {n: {from: 1, to: 2, choices: [1]}}}", 43,
         "'n' expects either"},
        {"{generate: uniform, rows: 5, factors: {n: {form: 1, to: 2}}}", 44, "from"},
        {"{generate: uniform, rows: 5, factors: {n: [[1], 2]}}", 44, "n has a sequence, expected plain"},
        {"{generate: uniform, rows: 5, factors: {n: null}}", 43, "expected a list of values or a range"},
        {"{generate: factorial, factors: {n: []}}", 36, "0 values of 'n'"},
        {"{generate: log-uniform, rows: 5, factors: {n: [0, 5]}}", 47, "does not begin above 0"},
        {"{generate: uniform, rows: 0, factors: {n: 1}}", 27, "rows"},
        {"{generate: uniform, rows: 1.5, factors: {n: 1}}", 27, "rows"},
        {"{repetitions: 0}", 15, "repetitions"},
        {"{order: shuffled}", 9, "random"},
        {"{seed: -1}", 8, "seed '-1', expected a whole number from 0 to 18446744073709551615"},
        {"{seed: 18446744073709551616}", 8, "seed '18446744073709551616'"},
        {"{seed: 1.0}", 8, "seed '1.0'"},
        {"{generate: uniform-product, factors: [m, m]}", 42, "factor 'm' is given twice"},
        {"{generate: uniform-product, factors: [m, n, k], fixed: {kk: 5}}", 61, "did you mean 'k'"},
        {"{generate: uniform-product, factors: [m, n, k], fixed: {k: 0}}", 60, "size '0'"},
        {"{generate: uniform-product, factors: [m, n, k], add: [[1, 2]]}", 55,
         "an added row has 2 sizes, expected 3"},
        {"{generate: uniform-product, factors: [m, n, k], add: [5]}", 55, "'add' has a number"},
        {"{generate: uniform-product, factors: [m, n, k], max-size: 50}", 1,
         "sizes of at most 50 cannot have a product of 10000000000"},
        {"{generate: factorial, factors: {n: 1}, compute: {a: n + x}}", 57, "unknown name 'x'"},
        {"{generate: factorial, factors: {n: 1}, compute: {a: [n]}}", 53, "expected an expression"},
        {"{generate: factorial, factors: {n: 1}, compute: {n: 5}}", 1, "two columns called 'n'"},
        {"{generate: uniform, rows: 100, repetitions: 16777216, factors: {n: 1}}", 1,
         "are more than the limit of 268435456 measurements"},
    };
    refuse_all(cases, sizeof cases / sizeof *cases, NULL);
}

TEST(refusals_of_factors) {
    static const struct refusal cases[] = {
        {"{generate: factorial, factors: {nn: 1}}", 37, "'nn' is not a factor; did you mean 'n'?"},
        {"{generate: factorial, factors: {n: [1, 6000]}}", 36,
         "'n' is 6000, expected a whole number from 1 to 5000"},
        {"{generate: factorial, factors: {n: [1.5]}}", 36, "'n' is 1.5, expected a whole"},
        {"{generate: uniform, rows: 3, factors: {n: [0, 10]}}", 43, "'n' is 0, expected"},
        {"{generate: uniform, rows: 3, factors: {n: 1, depth: [1, 2]}}", 53,
         "'depth' is a range, expected one of 1, 2"},
        {"{generate: factorial, factors: {n: 1, depth: 3}}", 46, "expected one of 1, 2"},
        {"{generate: factorial, factors: {n: {from: 1, to: 5, step: 0.5}}}", 36,
         "the step of 'n' is not a whole number"},
        {"{generate: uniform-product, factors: [n, x], max-product: 1e6, seed: 1}", 1, "expected a "},
        {"{generate: uniform-product, factors: [nn]}", 1, "'nn' is not a factor"},
        {"{repetitions: 3}", 1, "no column 'n', expected one"},
    };
    refuse_all(cases, sizeof cases / sizeof *cases, &factors);
    test_put("bad.csv", "n\n1\n7000\n");
    cleanup_free char *place = text_format("%s/bad.csv:3:1", test_folder());
    refuse("design: bad.csv", &factors, place, "'n' is '7000', expected a whole number from 1 to 5000");
    refuse("design: missing.csv", &factors, "", "missing.csv");
}

TEST(control_refusals) {
    static const struct refusal cases[] = {
        {"{generate: factorial, factors: {control.trubo: [on]}}", 48,
         "there is no control 'trubo'; did you mean 'control.turbo'?"},
        {"{generate: factorial, factors: {control.turbo: [on, of]}}", 48,
         "'control.turbo' is of, expected one of on, off"},
        {"{generate: factorial, factors: {control.turbo: [true, false]}}", 48,
         "'control.turbo' is true, expected one of on, off"},
        {"{generate: uniform, rows: 3, factors: {control.frequency: {from: 1, to: 2}}}", 59,
         "'control.frequency' has a range, expected a list of values"},
        {"{generate: uniform-product, factors: [m, control.turbo]}", 42,
         "'control.turbo' is a control, which has no size"},
        {"{generate: factorial, factors: {n: 1}, compute: {control.turbo: n}}", 65,
         "'control.turbo' is a control, whose values are texts and cannot be computed"},
        {"{generate: factorial, factors: {n: 1}, blocks: 0}", 48, "blocks"},
        {"{generate: factorial, factors: {n: 1}, blocks: many}", 48, "blocks"},
        {"{generate: factorial, factors: {n: 1}, blocks: 2, repetitions: 2}", 48,
         "the design has no column of a control"},
        {"{generate: factorial, factors: {control.turbo: on}, repetitions: 2, blocks: 3}", 77,
         "3 blocks of each state are set, expected from 1 to 2, the number of repetitions"},
        {"{generate: factorial, factors: {control.turbo: on}, repetitions: 2, order: as-written, blocks: 2}",
         96, "2 blocks of each state are set, but with the order as-written the table determines when"},
        {"{generate: factorial, factors: {n: 1}, cross: {}}", 47, "'cross' is empty"},
        {"{generate: factorial, factors: {n: 1}, cross: [n]}", 47, "cross"},
        {"{generate: factorial, factors: {n: 1}, cross: {n: [1, 2]}}", 1, "two columns called 'n'"},
        {"{cross: {x: {from: 0.5, to: 2}}}", 13,
         "the range of 'x' has no step, so that its values are not countable"},
    };
    refuse_all(cases, sizeof cases / sizeof *cases, NULL);
    static const struct refusal of_factors[] = {
        {"{generate: factorial, factors: {n: 1}, cross: {nn: [1, 2]}}", 52,
         "'nn' is not a factor; did you mean 'n'?"},
        {"{generate: factorial, factors: {turbo: [on, off]}}", 40,
         "'turbo' is not a factor; did you mean 'control.turbo'?"},
    };
    refuse_all(of_factors, sizeof of_factors / sizeof *of_factors, &factors);
}
