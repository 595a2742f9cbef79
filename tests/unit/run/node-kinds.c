/* Nodes of which the same can be said are told of together. */
#include "engine/run/nodes/kinds.h"
#include "tests/test.h"

TEST(equal_values_are_one_kind) {
    const char *const values[] = {"b", "a", NULL, "b", "c", "a", "b"};
    cleanup(node_kinds_clear) struct node_kinds kinds =
        node_kinds_of(&(struct node_texts){(char **)values, 7});
    /* In the order of the first nodes, not of the values; nodes ascending; NULL is nowhere. */
    assert_int_equal(kinds.count, 3);
    assert_string_equal(kinds.items[0].value, "b");
    assert_int_equal(kinds.items[0].count, 3);
    assert_int_equal(kinds.items[0].nodes[0], 0);
    assert_int_equal(kinds.items[0].nodes[1], 3);
    assert_int_equal(kinds.items[0].nodes[2], 6);
    assert_string_equal(kinds.items[1].value, "a");
    assert_int_equal(kinds.items[1].count, 2);
    assert_int_equal(kinds.items[1].nodes[1], 5);
    assert_string_equal(kinds.items[2].value, "c");
    assert_int_equal(kinds.items[2].nodes[0], 4);
}

TEST(nothing_is_no_kind) {
    const char *const values[] = {NULL, NULL};
    struct node_kinds kinds = node_kinds_of(&(struct node_texts){(char **)values, 2});
    assert_int_equal(kinds.count, 0);
    node_kinds_clear(&kinds);
    kinds = node_kinds_of(&(struct node_texts){(char **)values, 0});
    assert_int_equal(kinds.count, 0);
    node_kinds_clear(&kinds);
    node_kinds_clear(&kinds);
    cleanup(node_kinds_clear) struct node_kinds zero = {0};
}

/* Every node its own value, or all the same, of as many as a group takes: neither is quadratic. */
TEST(many_nodes_take_no_time) {
    enum { MANY = 16384 };
    char(*texts)[16] = calloc(MANY, sizeof *texts);
    const char **values = calloc(MANY, sizeof *values);
    assert_non_null(texts);
    assert_non_null(values);
    for (size_t i = 0; i < MANY; i++) {
        snprintf(texts[i], sizeof texts[i], "%zu", i * 7919 % MANY);
        values[i] = texts[i];
    }
    struct node_kinds kinds = node_kinds_of(&(struct node_texts){(char **)values, MANY});
    assert_int_equal(kinds.count, MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(kinds.items[i].nodes[0], i);
    node_kinds_clear(&kinds);
    for (size_t i = 0; i < MANY; i++)
        values[i] = texts[0];
    kinds = node_kinds_of(&(struct node_texts){(char **)values, MANY});
    assert_int_equal(kinds.count, 1);
    assert_int_equal(kinds.items[0].count, MANY);
    node_kinds_clear(&kinds);
    free(values);
    free(texts);
}
