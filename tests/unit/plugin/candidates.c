/* Candidates: within the domain, evenly, at its borders, and the same for a seed. */
#include "engine/plugin/candidates.h"
#include "tests/test.h"

static bool everything(void *context, const double *values) {
    return true;
}

static bool product_below(void *context, const double *values) {
    return values[0] * values[1] <= *(double *)context;
}

static struct candidates draw(const struct candidate_range *ranges, size_t range_count, size_t count,
                              uint64_t seed, candidate_admits admits, void *context) {
    struct candidates candidates = {0};
    struct failure failure = {0};
    if (candidates_draw(ranges, range_count, count, seed, admits, context, &candidates, &failure) < 0)
        fail_msg("%s", failure.text);
    return candidates;
}

TEST(even) {
    const struct candidate_range ranges[] = {{"size", true, 1, 999999}, {"alpha", false, -1, 3}};
    struct candidates candidates = draw(ranges, 2, 6000, 7, everything, NULL);
    const struct design *design = candidates.design;
    assert_int_equal(design->column_count, 2);
    assert_int_equal(design->columns[0].type, DESIGN_INTEGER);
    assert_int_equal(design->columns[1].type, DESIGN_NUMBER);
    size_t decades[6] = {0}, quarters[4] = {0};
    double drawn = 0, corners = 0;
    for (size_t i = 0; i < design->row_count; i++) {
        double size = design_number(design, i, 0), alpha = design_number(design, i, 1);
        assert_true(size >= 1 && size <= 999999 && size == floor(size) && alpha >= -1 && alpha <= 3);
        drawn += candidates.shares[i];
        corners += candidates.shares[i] == 0;
        if (candidates.shares[i] == 0)
            continue;
        decades[(size_t)(log10(size) + 1e-9)] += (size_t)candidates.shares[i];
        quarters[(size_t)(alpha + 1)] += (size_t)candidates.shares[i];
    }
    assert_true(drawn == 6000 && corners == 9);
    for (size_t i = 0; i < 6; i++)
        assert_true(decades[i] > 980 && decades[i] < 1020);
    for (size_t i = 0; i < 4; i++)
        assert_true(quarters[i] > 1490 && quarters[i] < 1510);
    candidates_clear(&candidates);
}

TEST(once) {
    const struct candidate_range ranges[] = {{"a", true, 1, 4}, {"b", true, 0, 2}};
    struct candidates candidates = draw(ranges, 2, 1000, 1, everything, NULL);
    assert_int_equal(candidates.design->row_count, 12);
    double all = 0;
    for (size_t i = 0; i < 12; i++) {
        assert_true(candidates.shares[i] > 60 && candidates.shares[i] < 110);
        all += candidates.shares[i];
    }
    assert_true(all == 1000);
    candidates_clear(&candidates);
}

TEST(border) {
    const struct candidate_range ranges[] = {{"m", true, 1, 15500}, {"n", true, 1, 15500}};
    double most = 1e6;
    struct candidates candidates = draw(ranges, 2, 500, 3, product_below, &most);
    size_t at_border = 0;
    bool end = false;
    for (size_t i = 0; i < candidates.design->row_count; i++) {
        double m = design_number(candidates.design, i, 0), n = design_number(candidates.design, i, 1);
        assert_true(m * n <= most);
        at_border += candidates.shares[i] == 0 && m * n > 0.98 * most;
        end = end || (m == 15500 && n == 1);
    }
    assert_true(at_border >= 10);
    assert_true(end);
    candidates_clear(&candidates);
}

TEST(seeds) {
    const struct candidate_range ranges[] = {{"x", false, 0, 1}};
    struct candidates one = draw(ranges, 1, 50, 5, everything, NULL),
                      same = draw(ranges, 1, 50, 5, everything, NULL),
                      other = draw(ranges, 1, 50, 6, everything, NULL);
    assert_memory_equal(one.design->columns[0].numbers, same.design->columns[0].numbers, 50 * sizeof(double));
    assert_memory_not_equal(one.design->columns[0].numbers, other.design->columns[0].numbers,
                            50 * sizeof(double));
    candidates_clear(&one);
    candidates_clear(&same);
    candidates_clear(&other);
}

TEST(degenerate) {
    struct candidates none = draw(NULL, 0, 10, 5, everything, NULL);
    assert_int_equal(none.design->row_count, 1);
    assert_int_equal(none.design->column_count, 0);
    candidates_clear(&none);
    const struct candidate_range fixed[] = {{"n", true, 64, 64}, {"x", false, 2.5, 2.5}};
    struct candidates one = draw(fixed, 2, 10, 5, everything, NULL);
    assert_int_equal(one.design->row_count, 1);
    assert_true(design_number(one.design, 0, 0) == 64 && design_number(one.design, 0, 1) == 2.5);
    candidates_clear(&one);
    double nothing = 0;
    struct failure failure = {0};
    const struct candidate_range ranges[] = {{"m", true, 1, 9}, {"n", true, 1, 9}};
    struct candidates empty = {0};
    assert_int_equal(candidates_draw(ranges, 2, 10, 1, product_below, &nothing, &empty, &failure), -22);
    assert_non_null(strstr(failure.text, "not one of 5000 points lies within the domain"));
    assert_null(empty.design);
}

TEST(pick) {
    struct failure failure = {0};
    struct design *design = NULL, *picked = NULL;
    struct design_column *column = NULL;
    assert_int_equal(design_new(3, &design, &failure), 0);
    assert_int_equal(design_add_column(design, "x", DESIGN_NUMBER, &column, &failure), 0);
    for (size_t i = 0; i < 3; i++)
        column->numbers[i] = 0.5 + (double)i;
    assert_int_equal(design_add_column(design, "bcast", DESIGN_TEXT, &column, &failure), 0);
    column->codes[0] = text_set_add(&column->labels, "ring", 4);
    column->codes[1] = text_set_add(&column->labels, "long", 4);
    column->codes[2] = column->codes[1];
    const size_t rows[] = {2, 0, 2, 1};
    assert_int_equal(design_pick(design, rows, 4, &picked, &failure), 0);
    struct text text;
    text_init(&text, 1000);
    assert_int_equal(design_append(picked, NULL, &text, &failure), 0);
    assert_string_equal(text.bytes, "x,bcast\n2.5,long\n0.5,ring\n2.5,long\n1.5,long\n");
    text_clear(&text);
    design_free(design);
    design_free(picked);
}
