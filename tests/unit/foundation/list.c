/* Arrays that grow. */
#include "engine/foundation/list.h"
#include "tests/test.h"

struct item {
    uint64_t a;
    char b;
};

TEST(growth_keeps_items_and_zeroes_the_rest) {
    struct item *items = NULL;
    size_t capacity = 0, growths = 0;
    for (size_t count = 0; count < 5000; count++) {
        size_t before = capacity;
        assert_int_equal(list_reserve(&items, &capacity, count + 1, sizeof *items, 5000), 0);
        assert_true(capacity > count && capacity <= 5000);
        growths += capacity != before;
        for (size_t i = before; i < capacity; i++)
            assert_true(items[i].a == 0 && items[i].b == 0);
        items[count] = (struct item){count, 'x'};
    }
    for (size_t i = 0; i < 5000; i++)
        assert_true(items[i].a == i && items[i].b == 'x');
    assert_true(growths < 20); /* by half, not one by one */
    free(items);
}

TEST(limit) {
    int *items = NULL;
    size_t capacity = 0;
    assert_int_equal(list_reserve(&items, &capacity, 11, sizeof *items, 10), -EFBIG);
    assert_null(items);
    assert_int_equal(capacity, 0);
    assert_int_equal(list_reserve(&items, &capacity, 10, sizeof *items, 10), 0);
    assert_int_equal(capacity, 10);
    int *before = items;
    assert_int_equal(list_reserve(&items, &capacity, 11, sizeof *items, 10), -EFBIG);
    assert_int_equal(list_reserve(&items, &capacity, 3, sizeof *items, 10), 0); /* never shrinks */
    assert_ptr_equal(items, before);
    assert_int_equal(capacity, 10);
    free(items);
}

TEST(overflow) {
    struct item *items = NULL;
    size_t capacity = 0;
    assert_int_equal(list_reserve(&items, &capacity, SIZE_MAX / 8, sizeof *items, SIZE_MAX), -ENOMEM);
    assert_null(items);
    assert_int_equal(capacity, 0);
}
