#include "plugins/numerics/normal-equations.h"

#include <string.h>

void normal_sums_add(struct normal_sums *sums, size_t columns, const double *x, double y, double w) {
    size_t at = 0;
    for (size_t a = 0; a <= columns; a++) {
        /* The weight's rounding is the same in every product of a row, so it is no error of the fit. */
        struct dd left = dd_two_product(w, a < columns ? x[a] : y);
        for (size_t b = a; b <= columns; b++, at++)
            sums->products[at] =
                dd_add(sums->products[at], dd_multiply(left, dd_from(b < columns ? x[b] : y)));
    }
}

struct dd normal_sum(const struct normal_sums *sums, size_t columns, size_t a, size_t b) {
    size_t row = a < b ? a : b, column = a < b ? b : a, width = columns + 1;
    return sums->products[row * width - row * (row + 1) / 2 + column];
}

/* Of the columns asked for and the response, in that order. */
struct factors {
    size_t count; /* of columns; the response is one more */
    size_t column[NORMAL_WIDTH_MAX];
    struct dd matrix[NORMAL_WIDTH_MAX][NORMAL_WIDTH_MAX];
    struct dd lower[NORMAL_WIDTH_MAX][NORMAL_WIDTH_MAX]; /* L of L D L', its diagonal of 1 left out */
    struct dd pivots[NORMAL_WIDTH_MAX];
};

static bool gather(const struct normal_sums *sums, size_t columns, unsigned selected, struct factors *ret) {
    bool finite = true;
    ret->count = 0;
    for (size_t a = 0; a < columns; a++)
        if (selected & 1U << a)
            ret->column[ret->count++] = a;
    ret->column[ret->count] = columns;
    for (size_t i = 0; i <= ret->count; i++)
        for (size_t j = 0; j <= ret->count; j++) {
            ret->matrix[i][j] = normal_sum(sums, columns, ret->column[i], ret->column[j]);
            finite = finite && isfinite(ret->matrix[i][j].high) && isfinite(ret->matrix[i][j].low);
        }
    return finite;
}

/* The index of a column that depends on earlier ones, or count. */
static size_t factorise(struct factors *factors) {
    for (size_t j = 0; j <= factors->count; j++) {
        for (size_t i = 0; i <= j; i++) {
            struct dd sum = factors->matrix[j][i];
            for (size_t k = 0; k < i; k++)
                sum = dd_subtract(sum, dd_multiply(dd_multiply(factors->lower[j][k], factors->lower[i][k]),
                                                   factors->pivots[k]));
            if (i < j)
                factors->lower[j][i] = dd_divide(sum, factors->pivots[i]);
            else
                factors->pivots[j] = sum;
        }
        if (j < factors->count && !(factors->pivots[j].high > normal_dependent * factors->matrix[j][j].high))
            return j;
    }
    return factors->count;
}

/* Solves L' X = RIGHT in place. */
static void solve_upper(const struct factors *factors, struct dd *right) {
    for (size_t i = factors->count; i-- > 0;)
        for (size_t k = i + 1; k < factors->count; k++)
            right[i] = dd_subtract(right[i], dd_multiply(factors->lower[k][i], right[k]));
}

/* Column J of (L D L')^-1. */
static void invert_column(const struct factors *factors, size_t j, struct dd *ret) {
    for (size_t i = 0; i < factors->count; i++) {
        ret[i] = dd_from(i == j);
        for (size_t k = 0; k < i; k++)
            ret[i] = dd_subtract(ret[i], dd_multiply(factors->lower[i][k], ret[k]));
    }
    for (size_t i = 0; i < factors->count; i++)
        ret[i] = dd_divide(ret[i], factors->pivots[i]);
    solve_upper(factors, ret);
}

enum normal_outcome normal_solve(const struct normal_sums *sums, size_t columns, unsigned selected,
                                 struct normal_fit *ret, size_t *ret_column) {
    struct factors factors;
    if (!gather(sums, columns, selected, &factors))
        return NORMAL_OVERFLOW;
    size_t dependent = factorise(&factors);
    if (dependent < factors.count) {
        *ret_column = factors.column[dependent];
        return NORMAL_DEPENDENT;
    }
    memset(ret, 0, sizeof *ret);
    struct dd solution[NORMAL_WIDTH_MAX];
    for (size_t i = 0; i < factors.count; i++)
        solution[i] = factors.lower[factors.count][i];
    solve_upper(&factors, solution);
    bool finite = true;
    for (size_t j = 0; j < factors.count; j++) {
        ret->estimates[factors.column[j]] = dd_to_double(solution[j]);
        finite = finite && isfinite(ret->estimates[factors.column[j]]);
        struct dd inverse[NORMAL_WIDTH_MAX];
        invert_column(&factors, j, inverse);
        for (size_t i = 0; i < factors.count; i++) {
            double value = dd_to_double(inverse[i]);
            ret->inverse[factors.column[i] * columns + factors.column[j]] = value;
            finite = finite && isfinite(value);
        }
    }
    ret->rss = factors.pivots[factors.count];
    if (ret->rss.high < 0)
        ret->rss = dd_from(0);
    return finite ? NORMAL_FITTED : NORMAL_OVERFLOW;
}
