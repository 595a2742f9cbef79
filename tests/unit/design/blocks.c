/* The order, each (row, repetition) once; columns of controls, and the blocks that they make. */
#include "engine/design/design.h"
#include "tests/test.h"

enum { ROWS = 24, STATES = 4, REPETITIONS = 7 };

/* Row i has state i % STATES. */
static struct design_order *make_states(uint64_t seed, size_t count, size_t repetitions, size_t rounds) {
    uint32_t items[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        items[i] = (uint32_t)(i % count);
    struct design_states states = {.items = items, .count = count};
    struct design_order *order = NULL;
    assert_ok(design_order_new(DESIGN_ORDER_RANDOM, seed, ROWS, repetitions, &states, rounds, &order,
                               &test_failure));
    assert_int_equal(order->count, ROWS * repetitions);
    return order;
}

static struct design_order *make(uint64_t seed, size_t rounds) {
    return make_states(seed, STATES, REPETITIONS, rounds);
}

/* Every (row, repetition) once, every position in one block, and in that block only rows of its state. */
static void check_sound(const struct design_order *order, size_t states) {
    bool seen[ROWS][REPETITIONS] = {{false}};
    size_t at = 0;
    for (size_t b = 0; b < order->block_count; b++) {
        const struct design_block *block = &order->blocks[b];
        assert_int_equal(block->first, at);
        assert_true(block->count > 0 && block->row < states); /* the first row of each state */
        for (size_t i = 0; i < block->count; i++, at++) {
            size_t row = design_order_row(order, at), repetition = design_order_repetition(order, at);
            assert_int_equal(row % states, block->row);
            assert_true(repetition < REPETITIONS && !seen[row][repetition]);
            seen[row][repetition] = true;
        }
    }
    assert_int_equal(at, order->count);
}

/* The repetitions of a row are not kept apart nor together: the mean distance of a row's two positions is a
 * third of the length. */
TEST(repetitions_are_mixed) {
    enum { MANY = 5000 };
    struct design_order *order = NULL;
    assert_ok(design_order_new(DESIGN_ORDER_RANDOM, 2, MANY, 2, NULL, 1, &order, &test_failure));
    static size_t position[MANY][2];
    for (size_t i = 0; i < order->count; i++)
        position[design_order_row(order, i)][design_order_repetition(order, i)] = i;
    double mean = 0;
    for (size_t row = 0; row < MANY; row++) {
        double difference = (double)position[row][0] - (double)position[row][1];
        mean += (difference < 0 ? -difference : difference) / (2.0 * MANY) / MANY;
    }
    assert_true(mean > 1.0 / 3 - 0.0135 &&
                mean < 1.0 / 3 + 0.0135); /* four standard errors: 0.2357 / sqrt(5000) */
    design_order_free(order);
}

TEST(each_state_once) {
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct design_order *order = make(seed, 1);
        assert_int_equal(order->block_count, STATES);
        assert_int_equal(order->state_count, STATES);
        check_sound(order, STATES);
        for (size_t b = 0; b < STATES; b++)
            assert_int_equal(order->blocks[b].count, ROWS / STATES * REPETITIONS);
        design_order_free(order);
    }
}

/* Seven repetitions in three rounds: 2, 2 and 3, the first ones first; each round has every state, and the
 * state changes with every block. */
TEST(rounds) {
    static const size_t from[] = {0, 2, 4, 7};
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct design_order *order = make(seed, 3);
        assert_int_equal(order->block_count, 3 * STATES);
        check_sound(order, STATES);
        for (size_t b = 0; b < order->block_count; b++) {
            const struct design_block *block = &order->blocks[b];
            size_t round = b / STATES, share = from[round + 1] - from[round];
            assert_int_equal(block->count, ROWS / STATES * share);
            for (size_t i = 0; i < block->count; i++) {
                size_t repetition = design_order_repetition(order, block->first + i);
                assert_true(repetition >= from[round] && repetition < from[round + 1]);
            }
            for (size_t other = round * STATES; other < b; other++)
                assert_int_not_equal(order->blocks[other].row, block->row);
            assert_true(b == 0 || order->blocks[b - 1].row != block->row);
        }
        design_order_free(order);
    }
}

/* Over many seeds each of the 24 orders of a first round is as likely, and of the 18 that a second may have.
 */
TEST(states_are_shuffled) {
    enum { DRAWS = 24000 };
    static size_t first[256], second[256];
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        struct design_order *order = make_states(seed, STATES, 2, 2);
        size_t key[2] = {0, 0};
        /* The second round, with the states renamed so that the first is 0, 1, 2, 3. */
        size_t place[STATES];
        for (size_t i = 0; i < STATES; i++)
            place[order->blocks[i].row] = i;
        for (size_t i = 0; i < STATES; i++) {
            key[0] = key[0] * 4 + order->blocks[i].row;
            key[1] = key[1] * 4 + place[order->blocks[STATES + i].row];
        }
        first[key[0]]++;
        second[key[1]]++;
        design_order_free(order);
    }
    size_t orders[2] = {0, 0};
    double chi_square[2] = {0, 0};
    for (size_t i = 0; i < 256; i++) {
        double expected[2] = {DRAWS / 24.0, DRAWS / 18.0}, got[2] = {(double)first[i], (double)second[i]};
        for (size_t j = 0; j < 2; j++) {
            if (got[j] == 0)
                continue;
            orders[j]++;
            chi_square[j] += (got[j] - expected[j]) * (got[j] - expected[j]) / expected[j];
        }
    }
    assert_int_equal(orders[0], 24);
    assert_int_equal(orders[1], 18);
    /* 23 and 17 degrees of freedom: above these once in ten thousand. */
    assert_true(chi_square[0] < 57.1);
    assert_true(chi_square[1] < 47.6);
}

/* A single state in one round is measured in the very order of a design without states. */
TEST(single_state) {
    struct design_order *plain = NULL, *one = make_states(9, 1, REPETITIONS, 1);
    assert_ok(design_order_new(DESIGN_ORDER_RANDOM, 9, ROWS, REPETITIONS, NULL, 1, &plain, &test_failure));
    assert_memory_equal(plain->units, one->units, plain->count * sizeof *plain->units);
    assert_int_equal(plain->block_count, 1);
    assert_int_equal(plain->blocks[0].first, 0);
    assert_int_equal(plain->blocks[0].count, plain->count);
    assert_int_equal(one->block_count, 1);
    check_sound(one, 1);
    design_order_free(plain);
    design_order_free(one);
    /* Two states in as many rounds as there are repetitions take turns. */
    struct design_order *turns = make_states(3, 2, REPETITIONS, REPETITIONS);
    assert_int_equal(turns->block_count, 2 * REPETITIONS);
    check_sound(turns, 2);
    for (size_t b = 1; b < turns->block_count; b++)
        assert_int_not_equal(turns->blocks[b].row, turns->blocks[b - 1].row);
    design_order_free(turns);
}

/* What a seed gives must not change: archives name it. */
TEST(seeds) {
    struct design_order *one = make(5, 3), *same = make(5, 3), *other = make(6, 3);
    assert_memory_equal(one->units, same->units, one->count * sizeof *one->units);
    assert_memory_equal(one->blocks, same->blocks, one->block_count * sizeof *one->blocks);
    assert_memory_not_equal(one->units, other->units, one->count * sizeof *one->units);
    /* From a second implementation, in another language. */
    static const size_t rows[] = {2, 1, 3, 0, 2, 1, 0, 3, 0, 1, 2, 3};
    static const uint32_t units[] = {42, 38, 22, 2, 46, 34, 14, 18, 30, 26, 10, 6, 5, 45, 13, 41},
                          last[] = {147, 123, 135, 119, 111, 99, 143, 167};
    for (size_t b = 0; b < one->block_count; b++)
        assert_int_equal(one->blocks[b].row, rows[b]);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        assert_int_equal(one->units[i], units[i]);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(one->units[one->count - 8 + i], last[i]);
    design_order_free(one);
    design_order_free(same);
    design_order_free(other);
}

TEST(as_written) {
    uint32_t items[] = {0, 0, 1, 1, 0};
    struct design_states states = {.items = items, .count = 2};
    struct design_order *order = NULL;
    assert_ok(design_order_new(DESIGN_ORDER_AS_WRITTEN, 1, 5, 2, &states, 1, &order, &test_failure));
    /* 0 0 1 1 0 0 0 1 1 0: the end of one repetition and the beginning of the next are one run. */
    static const struct design_block expected[] = {{0, 2, 0}, {2, 2, 2}, {4, 3, 0}, {7, 2, 2}, {9, 1, 0}};
    assert_int_equal(order->block_count, 5);
    for (size_t b = 0; b < 5; b++) {
        assert_int_equal(order->blocks[b].first, expected[b].first);
        assert_int_equal(order->blocks[b].count, expected[b].count);
        assert_int_equal(order->blocks[b].row, expected[b].row);
    }
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(order->units[i], i);
    design_order_free(order);
}

static void refuse(enum design_order_kind kind, size_t rows, size_t repetitions, size_t rounds,
                   const char *sentence) {
    uint32_t *items = calloc(rows, sizeof *items);
    assert_non_null(items);
    for (size_t i = 0; i < rows; i++)
        items[i] = (uint32_t)i;
    struct design_states states = {.items = items, .count = rows};
    struct design_order *order = NULL;
    assert_int_equal(design_order_new(kind, 1, rows, repetitions, &states, rounds, &order, &test_failure),
                     -22);
    assert_string_equal(test_failure.text, sentence);
    assert_null(order);
    free(items);
}

TEST(refusals) {
    refuse(DESIGN_ORDER_RANDOM, 4, 3, 4,
           "4 blocks of each state are set, expected from 1 to 3, the number of repetitions");
    refuse(DESIGN_ORDER_RANDOM, 4, 3, 0,
           "0 blocks of each state are set, expected from 1 to 3, the number of repetitions");
    refuse(
        DESIGN_ORDER_AS_WRITTEN, 4, 3, 2,
        "2 blocks of each state are set, but with the order as-written the table determines when the state "
        "changes; set 'order: random'");
    refuse(DESIGN_ORDER_RANDOM, 40000, 2, 2,
           "the order has 80000 blocks of one state of the controls each; expected at most 65536");
    refuse(DESIGN_ORDER_AS_WRITTEN, 40000, 2, 1,
           "the order has 80000 blocks of one state of the controls each; expected at most 65536");
    refuse(DESIGN_ORDER_RANDOM, 1 << 20, 257, 1,
           "257 repetitions of 1048576 rows are more than the limit of 268435456 measurements");
    static const size_t counts[][2] = {{0, 1}, {1, 0}, {SIZE_MAX, 2}};
    struct design_order *order = NULL;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(design_order_new(DESIGN_ORDER_RANDOM, 1, counts[i][0], counts[i][1], NULL, 1, &order,
                                          &test_failure),
                         -22);
    assert_null(order);
    design_order_free(NULL);
}

/* ---- Columns */

TEST(names) {
    for (size_t i = 0; i < CONTROL_FACTORS; i++) {
        const char *name = control_kinds[i].factor.about.name;
        assert_string_equal(control_of_column(name), control_kinds[i].name);
        assert_ptr_equal(control_factor_find(name), &control_kinds[i].factor);
        assert_int_equal(control_kinds[i].factor.about.type, COLUMN_STRING);
    }
    assert_null(control_kinds[CONTROL_FACTORS].name);
    assert_string_equal(control_of_column("control.trubo"), "trubo");
    assert_null(control_factor_find("control.trubo"));
    assert_null(control_of_column("controls.turbo"));
    assert_null(control_of_column("turbo"));
    char buffer[CONTROL_VARIABLE_SIZE];
    assert_string_equal(control_variable("control.energy-preference", buffer), "control_energy_preference");
    assert_int_equal(control_factor_unknown("control.trubo", "d.csv", 1, 3, &test_failure), -22);
    assert_string_equal(test_failure.place, "d.csv:1:3");
    assert_string_equal(test_failure.text, "there is no control 'trubo'; did you mean 'control.turbo'?");
    control_factor_unknown("control.x", NULL, 0, 0, &test_failure);
    assert_string_equal(
        test_failure.text,
        "there is no control 'x', expected one of turbo, hyperthreads, governor, frequency, "
        "energy-preference, idle-states, uncore-frequency, numa-balancing, transparent-huge-pages, daemons");
}

static int read_table(const char *bytes, const struct design_factors *factors, struct design **ret) {
    *ret = NULL;
    return design_read(test_put("table.csv", bytes), factors, ret, &test_failure);
}

static const struct design_factor declared[] = {
    {.about = {.name = "n", .type = COLUMN_INTEGER}, .minimum = 1, .maximum = 100},
    {.about = {.name = "label", .type = COLUMN_STRING}},
};
static const struct design_factors factors = {.items = declared, .count = 2, .file = "e.yaml"};

/* Texts stay what they are, also those that are numbers elsewhere; factors come first, in their order. */
TEST(conform) {
    const char *table = "control.turbo,label,control.energy-preference,n\n"
                        "on,a,128,1\noff,b,128,2\non,c,0128,3\non,d,128,4\n";
    for (size_t with = 0; with < 2; with++) {
        cleanup(design_cleanup) struct design *design = NULL;
        assert_ok(read_table(table, with ? &factors : NULL, &design));
        assert_int_equal(design->control_count, 2);
        assert_ok(design_conform(design, &factors, &test_failure));
        struct text text;
        text_init(&text, 1 << 12);
        assert_ok(design_append(design, NULL, &text, &test_failure));
        assert_string_equal(text.bytes, "n,label,control.turbo,control.energy-preference\n"
                                        "1,a,on,128\n2,b,off,128\n3,c,on,0128\n4,d,on,128\n");
        text_clear(&text);
        assert_int_equal(design->column_count, 4);
        assert_int_equal(design->control_count, 2);
        struct design_states states = {0};
        assert_ok(design_control_states(design, &states, &test_failure));
        assert_int_equal(states.count, 3);
        static const uint32_t expected[] = {0, 1, 2, 0};
        assert_memory_equal(states.items, expected, sizeof expected);
        free(states.items);
    }
}

TEST(no_controls) {
    cleanup(design_cleanup) struct design *design = NULL;
    assert_ok(read_table("n\n1\n2\n", NULL, &design));
    assert_int_equal(design->control_count, 0);
    struct design_states states = {0};
    assert_ok(design_control_states(design, &states, &test_failure));
    assert_int_equal(states.count, 1);
    assert_true(states.items[0] == 0 && states.items[1] == 0);
    free(states.items);
}

static void refuse_table(const char *bytes, const struct design_factors *with, const char *place,
                         const char *sentence) {
    struct design *design = NULL;
    assert_int_equal(read_table(bytes, with, &design), -22);
    const char *base = strrchr(test_failure.place, '/');
    assert_string_equal(base ? base + 1 : test_failure.place, place);
    assert_string_equal(test_failure.text, sentence);
    assert_null(design);
}

TEST(bad_columns) {
    const char *mean_turbo = "there is no control 'trubo'; did you mean 'control.turbo'?";
    refuse_table("n,control.trubo\n1,on\n", &factors, "table.csv:1:3", mean_turbo);
    refuse_table("n,control.trubo\n1,on\n", NULL, "table.csv:1:3", mean_turbo);
    refuse_table("n,turbo\n1,on\n", &factors, "table.csv:1:3",
                 "'turbo' is not a factor; did you mean 'control.turbo'?");
    refuse_table("n,control.turbo\n1,yes\n", &factors, "table.csv:2:3",
                 "'control.turbo' is 'yes', expected one of on, off");
    refuse_table("n,control.turbo\n1,yes\n", NULL, "table.csv:2:3",
                 "'control.turbo' is 'yes', expected one of on, off");
    refuse_table("n,control.governor\n1,\n", NULL, "table.csv:2:3",
                 "'control.governor' is empty, expected a text");
    cleanup(design_cleanup) struct design *design = NULL;
    struct design_column *column;
    assert_ok(design_new(1, &design, &test_failure));
    assert_int_equal(design_add_column(design, "control.turbo", COLUMN_INTEGER, &column, &test_failure), -22);
    assert_string_equal(test_failure.text,
                        "'control.turbo' is a control, whose values are texts and not numbers");
    assert_int_equal(design_add_column(design, "control.trubo", COLUMN_STRING, &column, &test_failure), -22);
    assert_string_equal(test_failure.text, mean_turbo);
    assert_int_equal(design->control_count, 0);
}
