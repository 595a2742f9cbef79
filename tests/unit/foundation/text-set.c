/* Sets of texts: numbers in order of first appearance, found again, and cut back. */
#include "engine/foundation/text-set.h"
#include "tests/test.h"

TEST(numbers) {
    struct text_set set = {0};
    uint32_t number = 42;
    assert_false(text_set_find(&set, "node-0", 6, &number));
    for (uint32_t i = 0; i < 5000; i++) {
        char text[32];
        int length = snprintf(text, sizeof text, "node-%u", i * 7 % 5000);
        assert_false(text_set_find(&set, text, (size_t)length, &number));
        assert_int_equal(text_set_add(&set, text, (size_t)length), i);
        assert_string_equal(set.texts[i], text);
    }
    assert_int_equal(number, 42);
    assert_int_equal(text_set_add(&set, "node-7", 6), 1);
    assert_true(text_set_find(&set, "node-77", 6, &number)); /* only its first six bytes are asked for */
    assert_int_equal(number, 1);
    assert_int_equal(text_set_add(&set, "", 0), 5000);
    assert_true(text_set_find(&set, "x", 0, &number));
    assert_int_equal(number, 5000);
    text_set_clear(&set);
    text_set_clear(&set);
}

TEST(cut) {
    struct text_set set = {0};
    uint32_t number;
    assert_int_equal(text_set_add(&set, "a", 1), 0);
    assert_int_equal(text_set_add(&set, "b", 1), 1);
    assert_int_equal(text_set_add(&set, "c", 1), 2);
    text_set_cut(&set, 1);
    assert_int_equal(set.count, 1);
    assert_int_equal(text_set_add(&set, "c", 1), 1);
    assert_int_equal(text_set_add(&set, "a", 1), 0);
    assert_false(text_set_find(&set, "b", 1, &number));
    text_set_clear(&set);
}
