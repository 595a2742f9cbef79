/* A design that is repeated until its rows are known: what `repeat:` may say, and the order in rounds. */
#include "engine/design/design.h"
#include "tests/test.h"

/* ---- What it says */

static int bind(const char *repeat, struct design_specification **ret, struct failure *failure) {
    cleanup_free char *yaml =
        text_format("design:\n  generate: factorial\n  factors: {n: [1, 2, 3]}\n  %s\n", repeat);
    struct document *document = NULL;
    assert_int_equal(document_parse_yaml("c.yaml", yaml, strlen(yaml), &document, failure), 0);
    int r =
        design_specification_from_node(document, document_get(document->root, "design"), "/", ret, failure);
    document_free(document);
    return r;
}

static struct design_specification *specify(const char *repeat) {
    struct design_specification *specification = NULL;
    assert_ok(bind(repeat, &specification, &test_failure));
    return specification;
}

TEST(defaults) {
    cleanup(design_specification_cleanup) struct design_specification *specification =
        specify("repeat: {until: {ci: 2%, at-most: 50}}");
    const struct design_repeat *repeat = &specification->repeat;
    assert_true(repeat->wanted);
    assert_true(repeat->ci == 0.02 && repeat->confidence == 0.95);
    assert_int_equal(repeat->at_least, 2);
    assert_int_equal(repeat->at_most, 50);
    assert_int_equal(repeat->between, DESIGN_BETWEEN_NODE | DESIGN_BETWEEN_BLOCK);
    assert_null(repeat->response);
    assert_int_equal(specification->repetitions, 50);
    assert_int_equal(repeat->place.line, 4);
}

TEST(all_keys) {
    struct design_specification *specification =
        specify("repeat: {until: {ci: 0.1, confidence: 0.9999, at-least: 7, at-most: 7, between: node, "
                "response: time}}");
    const struct design_repeat *repeat = &specification->repeat;
    assert_true(repeat->ci == 0.1 && repeat->confidence == 0.9999);
    assert_int_equal(repeat->at_least, 7);
    assert_int_equal(repeat->between, DESIGN_BETWEEN_NODE);
    assert_string_equal(repeat->response, "time");
    design_specification_free(specification);
    specification = specify("repeat: {until: {ci: 99%, confidence: 50.1%, at-most: 2, between: [block]}}");
    assert_int_equal(specification->repeat.between, DESIGN_BETWEEN_BLOCK);
    design_specification_free(specification);
    specification = specify("repetitions: 3");
    assert_false(specification->repeat.wanted);
    design_specification_free(specification);
}

TEST(refusals) {
    static const struct {
        const char *repeat, *place, *sentence;
    } cases[] = {
        {"repeat: 5", "c.yaml:4:11", "repeat is '5', expected a mapping"},
        {"repeat: {}", "c.yaml:4:11", "repeat has no 'until', which it must have"},
        {"repeat: {until: 2%}", "c.yaml:4:19", "'until' is '2%', expected a mapping"},
        {"repeat: {untill: {}}", "c.yaml:4:12", "'untill' is not a key of repeat; did you mean 'until'?"},
        {"repeat: {until: {ci: 2%}}", "c.yaml:4:19", "until has no 'at-most', which it must have"},
        {"repeat: {until: {at-most: 5}}", "c.yaml:4:19", "until has no 'ci', which it must have"},
        {"repeat: {until: {ci: 0, at-most: 5}}", "c.yaml:4:24",
         "'ci' is '0', expected a ratio above 0% and below 100%, such as 2%"},
        {"repeat: {until: {ci: 2, at-most: 5}}", "c.yaml:4:24",
         "'ci' is '2', expected a ratio above 0% and below 100%, such as 2%"},
        {"repeat: {until: {ci: -1%, at-most: 5}}", "c.yaml:4:24",
         "'ci' is '-1%', expected a ratio above 0% and below 100%, such as 2%"},
        {"repeat: {until: {ci: 2%, confidence: 50%, at-most: 5}}", "c.yaml:4:40",
         "'confidence' is '50%', expected a ratio above 50% and below 100%, such as 95%"},
        {"repeat: {until: {ci: 2%, confidence: 100%, at-most: 5}}", "c.yaml:4:40",
         "'confidence' is '100%', expected a ratio above 50% and below 100%, such as 95%"},
        {"repeat: {until: {ci: 2%, at-most: 1}}", "c.yaml:4:37",
         "'at-most' is '1', expected a whole number from 2 to 65536"},
        {"repeat: {until: {ci: 2%, at-most: 65537}}", "c.yaml:4:37",
         "'at-most' is '65537', expected a whole number from 2 to 65536"},
        {"repeat: {until: {ci: 2%, at-least: 0, at-most: 5}}", "c.yaml:4:38",
         "'at-least' is '0', expected a whole number from 1 to 65536"},
        {"repeat: {until: {ci: 2%, at-least: 6, at-most: 5}}", "c.yaml:4:38",
         "'at-least' is 6, but 'at-most' is 5, expected 'at-least' not above 'at-most'"},
        {"repeat: {until: {ci: 2%, at-most: 5, between: []}}", "c.yaml:4:49",
         "'between' is empty, expected node, block, or both"},
        {"repeat: {until: {ci: 2%, at-most: 5, between: [nodes]}}", "c.yaml:4:50",
         "'between' is 'nodes', expected one of 'node', 'block'; did you mean 'node'?"},
        {"repeat: {until: {ci: 2%, at-most: 5, between: [block, block]}}", "c.yaml:4:57",
         "'between' has 'block' twice"},
        {"repeat: {until: {ci: 2%, at-most: 5}}\n  repetitions: 3", "c.yaml:5:16",
         "both 'repetitions' and 'repeat' are set; remove one"},
        {"blocks: 3\n  repeat: {until: {ci: 2%, at-most: 5}}", "c.yaml:4:11",
         "both 'blocks' and 'repeat' are set; remove one"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct design_specification *specification = NULL;
        assert_int_equal(bind(cases[i].repeat, &specification, &test_failure), -22);
        assert_string_equal(test_failure.text, cases[i].sentence);
        assert_string_equal(test_failure.place, cases[i].place);
        assert_null(specification);
    }
}

/* The command line's number of repetitions stands instead. */
TEST(repetitions_instead) {
    struct design_specification *specification =
        specify("repeat: {until: {ci: 2%, at-most: 50, response: time}}");
    assert_int_equal(design_specification_set_blocks(specification, "2", &test_failure), -22);
    assert_int_equal(design_specification_set_repetitions(specification, "0", &test_failure), -22);
    assert_true(specification->repeat.wanted);
    assert_ok(design_specification_set_repetitions(specification, "4", &test_failure));
    assert_false(specification->repeat.wanted);
    cleanup(design_cleanup) struct design *design = NULL;
    struct design_order *order = NULL;
    assert_ok(design_specification_make(specification, NULL, &design, &order, &test_failure));
    assert_int_equal(order->count, 12);
    assert_int_equal(order->block_count, 1);
    design_order_free(order);
    design_specification_free(specification);
}

/* ---- The order */

enum { ROWS = 6, REPETITIONS = 5 };

static struct design_order *make(enum design_order_kind kind, uint64_t seed,
                                 const struct design_states *states) {
    struct design_order *order = NULL;
    assert_ok(
        design_order_new(kind, seed, ROWS, REPETITIONS, states, DESIGN_ROUND_EACH, &order, &test_failure));
    assert_int_equal(order->count, ROWS * REPETITIONS);
    return order;
}

/* Repetition i fills positions i * ROWS on, each row once, in whole blocks. */
static void check_rounds(const struct design_order *order) {
    size_t b = 0;
    for (size_t round = 0; round < REPETITIONS; round++) {
        bool seen[ROWS] = {false};
        assert_int_equal(order->blocks[b].first, round * ROWS);
        for (size_t at = round * ROWS; at < (round + 1) * ROWS; at++) {
            size_t row = design_order_row(order, at);
            assert_int_equal(design_order_repetition(order, at), round);
            assert_false(seen[row]);
            seen[row] = true;
        }
        while (b < order->block_count && order->blocks[b].first < (round + 1) * ROWS)
            b++;
    }
    assert_int_equal(b, order->block_count);
}

TEST(rounds) {
    struct design_order *order = make(DESIGN_ORDER_RANDOM, 3, NULL);
    check_rounds(order);
    assert_int_equal(order->block_count, REPETITIONS);
    assert_int_equal(order->state_count, 1);
    size_t moved = 0; /* each round is shuffled by itself */
    for (size_t at = 0; at < order->count; at++)
        moved += design_order_row(order, at) != design_order_row(order, at % ROWS);
    assert_true(moved > 0);
    struct design_order *same = make(DESIGN_ORDER_RANDOM, 3, NULL),
                        *other = make(DESIGN_ORDER_RANDOM, 4, NULL);
    assert_memory_equal(order->units, same->units, order->count * sizeof *order->units);
    assert_memory_not_equal(order->units, other->units, order->count * sizeof *order->units);
    design_order_free(order);
    design_order_free(same);
    design_order_free(other);
}

/* What a seed gives stays what it is: the order of an archive can be made again. */
TEST(order_of_a_seed) {
    struct design_order *order = make(DESIGN_ORDER_RANDOM, 42, NULL);
    static const size_t rows[] = {4, 2, 0, 5, 3, 1, 5, 2, 3, 1, 4, 0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(design_order_row(order, i), rows[i]);
    design_order_free(order);
}

/* The order in blocks with as many rounds. */
TEST(rounds_of_states) {
    uint32_t items[ROWS] = {0, 1, 2, 0, 1, 2};
    struct design_states states = {.items = items, .count = 3};
    struct design_order *order = make(DESIGN_ORDER_RANDOM, 8, &states), *blocks = NULL;
    check_rounds(order);
    assert_int_equal(order->block_count, 3 * REPETITIONS);
    assert_ok(design_order_new(DESIGN_ORDER_RANDOM, 8, ROWS, REPETITIONS, &states, REPETITIONS, &blocks,
                               &test_failure));
    assert_memory_equal(order->units, blocks->units, order->count * sizeof *order->units);
    for (size_t i = 0; i < order->block_count; i++)
        assert_int_equal(order->blocks[i].row, blocks->blocks[i].row);
    design_order_free(order);
    design_order_free(blocks);
}

TEST(as_written) {
    struct design_order *order = make(DESIGN_ORDER_AS_WRITTEN, 0, NULL);
    check_rounds(order);
    assert_int_equal(order->block_count, REPETITIONS);
    for (size_t at = 0; at < order->count; at++)
        assert_int_equal(design_order_row(order, at), at % ROWS);
    design_order_free(order);
    uint32_t items[ROWS] = {0, 0, 1, 1, 0, 0}; /* the end of one repetition has the state of the next */
    struct design_states states = {.items = items, .count = 2};
    order = make(DESIGN_ORDER_AS_WRITTEN, 0, &states);
    check_rounds(order);
    assert_int_equal(order->block_count, 3 * REPETITIONS);
    design_order_free(order);
}

/* A limit that at-most and the states pass together is told at at-most. */
TEST(too_many_blocks) {
    struct design_specification *specification =
        specify("cross: {control.turbo: [on, off]}\n  repeat: {until: {ci: 2%, at-most: 40000}}");
    struct design *design = NULL;
    struct design_order *order = NULL;
    assert_int_equal(design_specification_make(specification, NULL, &design, &order, &test_failure), -22);
    assert_string_equal(
        test_failure.text,
        "the order has 80000 blocks of one state of the controls each; expected at most 65536");
    assert_string_equal(test_failure.place, "c.yaml:5:37");
    design_specification_free(specification);
}
