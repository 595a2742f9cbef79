/* Which units have ended, and how. */
#include "engine/run/record/ledger.h"
#include "tests/test.h"

static struct ledger *ledger; /* of the test */

static int end(void **state) {
    ledger_free(ledger);
    ledger = NULL;
    return 0;
}
TEST_EACH(NULL, end)

static void take(size_t place, size_t position, unsigned attempt, bool done, unsigned flags) {
    ledger_add_attempt(
        ledger, &(struct ledger_attempt){
                    .place = place, .position = position, .attempt = attempt, .done = done, .flags = flags});
}

TEST(places_are_found_again) {
    ledger = ledger_new(10);
    assert_int_equal(ledger_place(ledger, "a", "0"), 0);
    assert_int_equal(ledger_place(ledger, "a", "1"), 1);
    assert_int_equal(ledger_place(ledger, "b", "0"), 2);
    assert_int_equal(ledger_place(ledger, "a", "0"), 0);
    assert_int_equal(ledger_place(ledger, "b", "0"), 2);
    for (size_t i = 0; i < 1000; i++) {
        char core[16];
        snprintf(core, sizeof core, "%zu", i);
        assert_int_equal(ledger_place(ledger, "many", core), 3 + i);
    }
    assert_int_equal(ledger_place_count(ledger), 1003);
    assert_string_equal(ledger_place_node(ledger, 1), "a");
    assert_string_equal(ledger_place_core(ledger, 1), "1");
}

TEST(units_are_done_once) {
    ledger = ledger_new(200);
    size_t place = ledger_place(ledger, "a", "all"), other = ledger_place(ledger, "b", "all");
    for (size_t i = 0; i < 200; i += 2)
        take(place, i, 1, true, 0);
    for (size_t i = 0; i < 200; i++) {
        assert_int_equal(ledger_is_done(ledger, place, i), i % 2 == 0);
        assert_int_equal(ledger_attempts(ledger, place, i), i % 2 == 0);
        assert_false(ledger_has_failed(ledger, place, i));
        assert_false(ledger_is_done(ledger, other, i));
    }
    for (size_t first = 0; first < 70; first++)
        for (size_t count = 0; count < 130; count++) {
            uint64_t expected = 0;
            for (size_t i = first; i < first + count; i++)
                expected += i % 2 == 0;
            assert_int_equal(ledger_count_done(ledger, place, first, count), expected);
        }
    take(other, 199, 1, true, 0);
    assert_int_equal(ledger_count_done(ledger, other, 0, 200), 1);
    assert_int_equal(ledger_totals(ledger)->done, 101);
    assert_int_equal(ledger_totals(ledger)->failed, 0);
}

TEST(what_failed_can_be_done_later) {
    ledger = ledger_new(8);
    size_t place = ledger_place(ledger, "a", "0");
    take(place, 3, 1, false, 0);
    assert_true(ledger_has_failed(ledger, place, 3));
    assert_int_equal(ledger_attempts(ledger, place, 3), 1);
    assert_int_equal(ledger_totals(ledger)->failed, 1);
    take(place, 3, 2, false, 0);
    assert_int_equal(ledger_totals(ledger)->failed, 1);
    take(place, 3, 3, true, 0);
    assert_false(ledger_has_failed(ledger, place, 3));
    assert_true(ledger_is_done(ledger, place, 3));
    assert_int_equal(ledger_attempts(ledger, place, 3), 3);
    assert_int_equal(ledger_totals(ledger)->failed, 0);
    assert_int_equal(ledger_totals(ledger)->done, 1);
    assert_int_equal(ledger_totals(ledger)->repeated, 0);
}

TEST(repeats_have_lines_and_are_no_new_units) {
    ledger = ledger_new(8);
    size_t place = ledger_place(ledger, "a", "0");
    take(place, 0, 1, true, 1 << 2 | 1 << 3);
    take(place, 1, 1, true, 0);
    take(place, 1, 2, true, 1 << 2);
    take(place, 1, 3, false, 0);
    const struct ledger_totals *totals = ledger_totals(ledger);
    assert_int_equal(totals->done, 2);
    assert_int_equal(totals->flagged, 2);
    assert_int_equal(totals->flagged_by[2], 2);
    assert_int_equal(totals->flagged_by[3], 1);
    assert_int_equal(totals->repeated, 1);
    assert_int_equal(totals->repeats_failed, 1);
    assert_int_equal(totals->failed, 0);
    assert_int_equal(ledger_attempts(ledger, place, 0), 1);
    assert_int_equal(ledger_attempts(ledger, place, 1), 3);
    assert_int_equal(ledger_flags(ledger, place, 0), 1 << 2 | 1 << 3);
    assert_int_equal(ledger_flags(ledger, place, 1), 1 << 2);
}

TEST(what_failed_on_a_node_whose_share_is_handed_over_is_not_missing) {
    ledger = ledger_new(8);
    size_t lost = ledger_place(ledger, "a", "0"), other = ledger_place(ledger, "b", "0");
    take(lost, 0, 1, true, 0);
    take(lost, 1, 1, false, 0);
    take(other, 1, 1, false, 0);
    assert_int_equal(ledger_totals(ledger)->failed, 2);
    ledger_replace_node(ledger, "a");
    take(lost, 2, 1, false, 0);
    assert_int_equal(ledger_totals(ledger)->failed, 1);
    assert_int_equal(ledger_totals(ledger)->done, 1);
    assert_false(ledger_has_failed(ledger, lost, 1));
    assert_false(ledger_has_failed(ledger, lost, 2));
    assert_true(ledger_has_failed(ledger, other, 1));
}

TEST(many_units) {
    enum { POSITIONS = 5000, PLACES = 4 };
    ledger = ledger_new(POSITIONS);
    for (size_t place = 0; place < PLACES; place++) {
        char core[2] = {(char)('0' + place), 0};
        assert_int_equal(ledger_place(ledger, "a", core), place);
        for (size_t i = 0; i < POSITIONS; i++)
            take(place, i, 1, true, (unsigned)((i + place) % 5));
    }
    for (size_t place = 0; place < PLACES; place++)
        for (size_t i = 0; i < POSITIONS; i++) {
            assert_int_equal(ledger_flags(ledger, place, i), (i + place) % 5);
            assert_int_equal(ledger_attempts(ledger, place, i), 1);
        }
    assert_int_equal(ledger_totals(ledger)->flagged, PLACES * POSITIONS * 4 / 5);
}

/* The results and the journal are read one after the other when a run is resumed. */
TEST(the_order_of_attempts_does_not_matter) {
    ledger = ledger_new(8);
    size_t place = ledger_place(ledger, "a", "0");
    take(place, 1, 2, false, 0);
    take(place, 1, 1, true, 1);
    assert_true(ledger_is_done(ledger, place, 1));
    assert_int_equal(ledger_attempts(ledger, place, 1), 2);
    assert_int_equal(ledger_totals(ledger)->done, 1);
    assert_int_equal(ledger_totals(ledger)->failed, 0);
    ledger_free(NULL);
}
