/* Rows that are known are left out: from units as they are measured, and from the lines that they left. */
#include "engine/run/measure/settling.h"

#include "tests/test.h"

#define WORD(literal) ((char *)(literal))

enum { ROWS = 3, REPETITIONS = 5 };

/* As much of a run as this needs: two columns in the design, two responses, of which the second counts. */
static struct world {
    struct design_specification specification;
    struct experiment_response responses[2];
    struct experiment experiment;
    struct campaign campaign;
    struct design design;
    struct plan plan;
    struct run_record record;
    struct settling settling;
    struct unit_times *times;
} world;

static int begin(void **state) {
    world = (struct world){
        .specification.repeat = {.wanted = true,
                                 .ci = 0.02,
                                 .confidence = 0.95,
                                 .at_least = 2,
                                 .at_most = REPETITIONS,
                                 .between = DESIGN_BETWEEN_NODE | DESIGN_BETWEEN_BLOCK},
        .responses = {{.about.name = WORD("other"), .about.unit = WORD("1")},
                      {.about.name = WORD("time"), .about.unit = WORD("s")}},
        .experiment = {.responses = world.responses, .response_count = 2},
        .campaign = {.design = &world.specification, .experiment = &world.experiment},
        .design = {.row_count = ROWS, .column_count = 2},
        .plan = {.campaign = &world.campaign, .design = &world.design, .repeat_response = 1},
    };
    assert_ok(design_order_new(DESIGN_ORDER_AS_WRITTEN, 0, ROWS, REPETITIONS, NULL, DESIGN_ROUND_EACH,
                               &world.plan.order, &test_failure));
    world.record.ledger = ledger_new(ROWS * REPETITIONS);
    world.times = unit_times_new(ROWS, NULL);
    settling_init(&world.settling, &world.record, &world.plan);
    const char *journal = test_path("journal.jsonl");
    remove(journal);
    assert_ok(journal_create(journal, &world.record.journal, &test_failure));
    return 0;
}

static int end(void **state) {
    settling_clear(&world.settling);
    ledger_free(world.record.ledger);
    unit_times_free(world.times);
    journal_close(world.record.journal);
    design_order_free(world.plan.order);
    return 0;
}
TEST_EACH(begin, end)

static void take(size_t position, const char *node, double value) {
    size_t place = ledger_place(world.record.ledger, node, "4");
    assert_int_equal(settling_add(&world.settling, place, position, (double[]){-1, value}, &test_failure), 0);
}

/* Two columns of the design, and two responses, of which the second decides. */
static int try_line(const char *text) {
    cleanup_free char *line = text_format("%s\n", text);
    struct results_row row;
    const char *newline = results_row_read(line, line + strlen(line), 4, 3, &row);
    if (!newline)
        return -EBADMSG;
    assert_ptr_equal(newline, line + strlen(text));
    return settling_add_row(&row, &world.settling, &test_failure);
}

static void take_line(const char *line) {
    assert_ok(try_line(line));
}

static struct settling_saving end_block(size_t block) {
    return settling_apply(&world.settling, &world.plan.order->blocks[block], true, world.times, 2);
}

/* Row 1 is known after two repetitions, row 2 after three, row 3 never. */
TEST(units) {
    uint64_t planned = 0;
    unit_times_end(world.times, 0, 1);
    for (size_t row = 0; row < ROWS; row++, planned += 100)
        unit_times_plan(world.times, row, 100);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < 2; i++) {
            const char *node = i ? "b" : "a";
            if (round < 2)
                take(round * ROWS, node, 7);
            take(round * ROWS + 1, node, round ? 100 : i ? 102 : 98);
            take(round * ROWS + 2, node, i);
        }
        for (size_t row = 0; row < ROWS; row++)
            assert_int_equal(settling_skips(&world.settling, round * ROWS + row), round == 2 && row == 0);
        struct settling_saving saving = end_block(round);
        assert_int_equal(saving.rows, round == 0 ? 0 : 1);
        assert_int_equal(saving.positions, round == 0 ? 0 : REPETITIONS - 1 - round);
        planned -= 2 * saving.positions;
        assert_true(unit_times_left(world.times) == (double)planned); /* 1 s each */
    }
    assert_int_equal(settling_count(&world.settling), 2);
    assert_true(settling_skips(&world.settling, 3 * ROWS + 1));
    assert_false(settling_skips(&world.settling, 3 * ROWS + 2));
}

/* The same from lines, with quotes and attempts; what is measured after them goes on from there. */
TEST(lines) {
    take_line("1,1,1,1,1,a,4,1700000000000000000,,8,x,3,7,,,");
    take_line("1,1,1,1,1,b,4,1700000000000000000,12,8,\"x,\"\"y\"\"\n1,2\",3,500,,,drift;load");
    take_line("1,1,1,1,2,b,4,1700000000000000000,12,8,\"x,y\",3,600,2e9,40.5,load");
    take_line("1,1,1,1,3,b,4,1700000000000000000,12,8,x,3,7,,,load");
    take_line("2,1,2,1,1,a,4,1700000000000000000,12,8,,3,,,,\r"); /* a response that is not finite */
    take_line("2,1,2,1,1,b,4,1700000000000000000,12,8,,3,7,,,");
    take(ROWS, "a", 7);
    take(ROWS, "b", 7);
    assert_int_equal(end_block(1).rows, 1);
    assert_int_equal(settling_count(&world.settling), 1);
    assert_true(settling_skips(&world.settling, 2 * ROWS));
    assert_false(settling_skips(&world.settling, 2 * ROWS + 1));
}

/* The part before was over when all was known, and had not said so. */
TEST(before_a_block) {
    for (size_t position = 0; position < 2 * ROWS; position++)
        take(position, "a", 7);
    take(2 * ROWS, "a", 9); /* of a repetition that is not over */
    struct settling_saving saving =
        settling_apply(&world.settling, &world.plan.order->blocks[2], false, world.times, 2);
    assert_int_equal(saving.rows, ROWS);
    assert_int_equal(saving.positions, ROWS * (REPETITIONS - 2));
}

TEST(bad_lines) {
    static const char *const lines[] = {
        "",
        "0,1,1,1,1,a,4,1,,8,x,3,7,,,",
        "4,1,1,1,1,a,4,1,,8,x,3,7,,,",
        "1,6,1,1,1,a,4,1,,8,x,3,7,,,",
        "1,1,1,1,1,a,4,1,,8,x,3,seven,,,",
        "1.5,1,1,1,1,a,4,1,,8,x,3,7,,,",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(try_line(lines[i]), -EBADMSG);
}

/* A campaign that does not ask for it has none of it. */
TEST(not_wanted) {
    struct stopping_rule *rule = world.settling.rule;
    world.settling.rule = NULL;
    take(0, "a", 7);
    assert_false(settling_skips(&world.settling, 0));
    assert_int_equal(end_block(0).positions, 0);
    world.specification.repeat.wanted = false;
    settling_init(&world.settling, &world.record, &world.plan);
    assert_null(world.settling.rule);
    settling_note(&world.settling, true);
    assert_ok(settling_record(&world.settling, &test_failure));
    world.settling.rule = rule;
}
