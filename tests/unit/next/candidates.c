/* Candidates: within the domain, evenly, and at its borders. */
#include "engine/next/candidates.h"
#include "tests/test.h"

static bool everything(void *context, const double *values) {
    return true;
}

static bool product_below(void *context, const double *values) {
    return values[0] * values[1] <= *(double *)context;
}

static struct design *make(const struct candidate_range *ranges, size_t range_count, candidate_admits admits,
                           void *context, double **ret_shares) {
    struct design *design = NULL;
    assert_ok(candidates_make(ranges, range_count, admits, context, &design, ret_shares, &test_failure));
    return design;
}

/* Shares make averages those of the box: evenly in the logarithm of one range, and in the other as it is. */
TEST(even) {
    const struct candidate_range ranges[] = {{"size", true, 1, 1000000}, {"alpha", false, -1, 3}};
    double *shares = NULL, all = 0, logarithm = 0, alpha = 0;
    cleanup(design_cleanup) struct design *design = make(ranges, 2, everything, NULL, &shares);
    assert_int_equal(design->columns[0].about.type, COLUMN_INTEGER);
    assert_int_equal(design->columns[1].about.type, COLUMN_NUMBER);
    size_t corners = 0;
    for (size_t i = 0; i < design->row_count; i++) {
        double size = design_number(design, i, 0), other = design_number(design, i, 1);
        assert_true(size >= 1 && size <= 1000000 && size == floor(size) && other >= -1 && other <= 3);
        corners += (size == 1 || size == 1000000) && (other == -1 || other == 3);
        all += shares[i];
        logarithm += shares[i] * log10(size);
        alpha += shares[i] * other;
        if (i > 0) /* every row once, in order */
            assert_true(size > design_number(design, i - 1, 0) || other > design_number(design, i - 1, 1));
    }
    assert_int_equal(corners, 4);
    assert_true(design->row_count > 7000 && design->row_count <= CANDIDATES_GRID);
    assert_true(all == 89 * 89); /* 90 levels each, the first and last one by half */
    assert_close(logarithm / all, 3, 0.01, "mean of the logarithm");
    assert_close(alpha / all, 1, 1e-12, "mean");
    free(shares);
}

TEST(once) {
    const struct candidate_range ranges[] = {{"a", true, 1, 4}, {"b", true, 0, 2}};
    double *shares = NULL, all = 0;
    cleanup(design_cleanup) struct design *design = make(ranges, 2, everything, NULL, &shares);
    assert_int_equal(design->row_count, 12);
    for (size_t i = 0; i < 12; i++)
        all += shares[i];
    assert_true(all == 89 * 89);
    free(shares);
}

/* What is outside is moved to the border, and counts nothing in averages. */
TEST(border) {
    const struct candidate_range ranges[] = {{"m", true, 1, 15500}, {"n", true, 1, 15500}};
    double most = 1e6, *shares = NULL;
    cleanup(design_cleanup) struct design *design = make(ranges, 2, product_below, &most, &shares);
    size_t at_border = 0;
    bool end = false;
    for (size_t i = 0; i < design->row_count; i++) {
        double m = design_number(design, i, 0), n = design_number(design, i, 1);
        assert_true(m * n <= most);
        at_border += shares[i] == 0 && m * n > 0.98 * most;
        end = end || (m == 15500 && n == 1);
    }
    assert_true(at_border >= 100);
    assert_true(end);
    free(shares);
}

TEST(degenerate) {
    double *shares = NULL, nothing = 0;
    struct design *design = make(NULL, 0, everything, NULL, &shares);
    assert_true(design->row_count == 1 && design->column_count == 0 && shares[0] == 1);
    free(shares);
    design_free(design);
    const struct candidate_range fixed[] = {{"n", true, 64, 64}, {"x", false, 2.5, 2.5}};
    design = make(fixed, 2, everything, NULL, &shares);
    assert_int_equal(design->row_count, 1);
    assert_true(design_number(design, 0, 0) == 64 && design_number(design, 0, 1) == 2.5);
    free(shares);
    design_free(design);
    const struct candidate_range many[13] = {[0 ... 12] = {"m", true, 1, 9}};
    design = NULL;
    assert_int_equal(candidates_make(many, 2, product_below, &nothing, &design, &shares, &test_failure), -22);
    assert_string_equal(test_failure.text,
                        "none of 8100 points lies in the domain of the model, where measurements were made");
    assert_int_equal(candidates_make(many, 13, everything, NULL, &design, &shares, &test_failure), -22);
    assert_string_equal(test_failure.text, "the model has 13 factors; expected at most 12");
    assert_null(design);
    /* Distinct names are the caller's to see; twelve factors have two levels each. */
    struct candidate_range twelve[12];
    char names[12][3];
    for (size_t j = 0; j < 12; j++) {
        snprintf(names[j], sizeof names[j], "f%c", 'a' + (char)j);
        twelve[j] = (struct candidate_range){names[j], true, 1, 9};
    }
    design = make(twelve, 12, everything, NULL, &shares);
    assert_int_equal(design->row_count, 4096);
    free(shares);
    design_free(design);
}
