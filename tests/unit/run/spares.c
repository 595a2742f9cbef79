/* Which spares had taken whose places, when a run is resumed. */
#include "engine/run/nodes/nodes.h"
#include "engine/run/record/history.h"
#include "tests/test.h"

enum { NODES = 5 };

static struct run_node nodes[NODES];
static struct run_record record;
static struct run_history past;
static struct node_set set = {.record = &record, .items = nodes, .count = NODES, .past = &past};

static int set_up(void **state) {
    record.ledger = ledger_new(1);
    record.units = ledger_totals(record.ledger);
    return journal_create(test_path("journal.jsonl"), &record.journal, NULL);
}

static int tear_down(void **state) {
    ledger_free(record.ledger);
    journal_close(record.journal);
    return 0;
}

/* n-1 to n-3, and the spares n-4 and n-5. */
static int begin(void **state) {
    static const char *const names[NODES] = {"n-1", "n-2", "n-3", "n-4", "n-5"};
    for (size_t i = 0; i < NODES; i++)
        nodes[i] = (struct run_node){.name = names[i], .number = i, .state = i >= 3 ? NODE_SPARE : NODE_IN};
    return 0;
}

static void recall(size_t count, const char *const (*pairs)[2]) {
    struct run_history_replacement replacements[NODES];
    past = (struct run_history){.replacements = replacements, .replacement_count = count};
    for (size_t i = 0; i < count; i++)
        replacements[i] = (struct run_history_replacement){(char *)pairs[i][0], (char *)pairs[i][1]};
    node_set_recall_spares(&set);
}

TEST(a_spare_has_the_share) {
    static const char *const pairs[][2] = {{"n-2", "n-4"}};
    recall(1, pairs);
    assert_int_equal(node_set_count_in(&set), 3);
    assert_false(run_node_is_in(&nodes[1]));
    assert_string_equal(nodes[1].left_reason, NODE_OUT_REPLACED);
    assert_int_equal(nodes[1].state, NODE_REPLACED);
    assert_true(run_node_is_in(&nodes[3]));
    assert_int_equal(nodes[4].state, NODE_SPARE);
}

TEST(a_spare_that_was_lost_too) {
    static const char *const pairs[][2] = {{"n-2", "n-4"}, {"n-4", "n-5"}};
    recall(2, pairs);
    assert_int_equal(node_set_count_in(&set), 3);
    assert_false(run_node_is_in(&nodes[3]));
    assert_int_equal(nodes[3].state, NODE_REPLACED);
    assert_true(run_node_is_in(&nodes[4]));
}

TEST(a_spare_that_is_not_given_any_more) {
    static const char *const pairs[][2] = {{"n-2", "n-9"}, {"n-8", "n-4"}};
    recall(2, pairs);
    assert_int_equal(node_set_count_in(&set), 3);
    assert_true(run_node_is_in(&nodes[1]));
    assert_int_equal(nodes[3].state, NODE_SPARE);
}

TEST(only_the_joining_node_is_asked) {
    node_set_enter(&set, &nodes[0], NODE_OUT);
    assert_false(node_set_has(&set, 0));
    assert_true(node_set_has(&set, 1));
    assert_false(node_set_has(&set, 3));
    node_set_enter(&set, &nodes[3], NODE_IN);
    set.joining = &nodes[3];
    assert_false(node_set_has(&set, 1));
    assert_true(node_set_has(&set, 3));
    assert_ptr_equal(node_set_next(&set, NULL), &nodes[3]);
    assert_null(node_set_next(&set, &nodes[3]));
    set.joining = NULL;
    assert_ptr_equal(node_set_next(&set, &nodes[1]), &nodes[2]);
    assert_ptr_equal(node_set_next(&set, &nodes[2]), &nodes[3]);
    assert_null(node_set_next(&set, &nodes[3]));
    assert_int_equal(node_set_count_in(&set), 3);
}

TEST_EACH(begin, NULL)

TEST_GROUP(set_up, tear_down)
