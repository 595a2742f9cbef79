#include "engine/analysis/checks.h"

#include "engine/analysis/strata.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/numerics/dip.h"
#include "engine/numerics/distribution.h"
#include "engine/numerics/holm.h"
#include "engine/numerics/quantile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MODES_ROWS_LEAST = 20 };
static const double P_MOST = 0.01, SIZE_LEAST = 1 /* % */, SHARE_LEAST = 0.05, LIKENESS_LEAST = 0.2,
                    ORDER_SHARE_LEAST = 50 /* % */, ROUNDING = 1e-9;

/* Units of one node at one position of the order, taken together; in order within each node. */
struct moments {
    size_t count;
    uint32_t *of_row;                    /* of each row, its moment */
    uint32_t *settings, *nodes, *blocks; /* of each moment */
    double *level, *residual;            /* means of y, and of its residuals */
    double *order, *frequency, *temperature;
};

struct checking {
    const struct check_rows *rows;
    struct moments moments;
    struct strata units,
        together;     /* units: rows by setting and core; together: moments by setting and node */
    double *residual; /* of each row: y less the effects of settings and cores */
    double mean;      /* of |y|, which changes are relative to; 0: y are logarithms */
    struct checks *ret;
};

static double to_percent(const struct checking *checking, double change) {
    return checking->mean > 0 ? 100 * change / checking->mean : 100 * expm1(change);
}

/* ---- Moments */

/* By node, order and row, so that the rows of a moment are neighbours. */
static int compare_rows(const void *a, const void *b, void *context) {
    const struct check_rows *rows = *(const struct check_rows *const *)context;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    if (rows->nodes.codes[left] != rows->nodes.codes[right])
        return rows->nodes.codes[left] < rows->nodes.codes[right] ? -1 : 1;
    if (rows->order[left] != rows->order[right])
        return rows->order[left] < rows->order[right] ? -1 : 1;
    return left < right ? -1 : left > right;
}

static double mean_of(const double *values, const uint32_t *rows, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values ? values[rows[i]] : NAN;
    return sum / (double)count;
}

/* Makes the moments: the units of one node at one position of the order, with the means of their values. */
static void make_moments(struct checking *checking) {
    const struct check_rows *rows = checking->rows;
    struct moments *moments = &checking->moments;
    cleanup_free uint32_t *sorted = xcalloc(rows->count + 1, sizeof *sorted);
    for (size_t i = 0; i < rows->count; i++)
        sorted[i] = (uint32_t)i;
    qsort_r(sorted, rows->count, sizeof *sorted, compare_rows, &rows);
    for (size_t i = 0, end; i < rows->count; i = end) {
        uint32_t first = sorted[i];
        size_t m = moments->count++;
        for (end = i; end < rows->count && rows->nodes.codes[sorted[end]] == rows->nodes.codes[first] &&
                      rows->order[sorted[end]] == rows->order[first];
             end++)
            moments->of_row[sorted[end]] = (uint32_t)m;
        moments->settings[m] = rows->settings.codes[first];
        moments->nodes[m] = rows->nodes.codes[first];
        moments->blocks[m] = rows->blocks.codes[first];
        moments->order[m] = rows->order[first];
        moments->level[m] = mean_of(rows->y, sorted + i, end - i);
        moments->residual[m] = mean_of(checking->residual, sorted + i, end - i);
        moments->frequency[m] = mean_of(rows->frequency, sorted + i, end - i);
        moments->temperature[m] = mean_of(rows->temperature, sorted + i, end - i);
    }
}

static void moments_new(struct moments *moments, size_t rows) {
    uint32_t **const codes[] = {&moments->of_row, &moments->settings, &moments->nodes, &moments->blocks};
    double **const values[] = {&moments->level, &moments->residual, &moments->order, &moments->frequency,
                               &moments->temperature};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        *codes[i] = xcalloc(rows + 1, sizeof **codes[i]);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        *values[i] = xcalloc(rows + 1, sizeof **values[i]);
}

static void moments_clear(struct moments *moments) {
    free(moments->of_row), free(moments->settings), free(moments->nodes), free(moments->blocks);
    free(moments->level), free(moments->residual), free(moments->order), free(moments->frequency);
    free(moments->temperature);
}

/* ---- Checks of moments */

/* Sets RESULT from an association: the size is the change of the response over REACH of the covariate, in %.
 */
static void set_association_result(const struct checking *checking, const struct association *association,
                                   double reach, struct check_result *result) {
    result->rows = association->rows;
    result->p = association->p;
    result->share = association->correlation * association->correlation;
    result->size = to_percent(checking, association->slope * reach);
}

/* Tests the response of moments against X. The size is the change of the response over the spread of X. */
static void check_association(const struct checking *checking, enum check check, const double *x) {
    const struct association found = strata_associate(&checking->together, checking->moments.residual, x);
    set_association_result(checking, &found, found.spread, &checking->ret->results[check]);
}

/* Tests the response against the order of measurement. The trend is then removed from the residuals, for the
 * checks that follow. */
static void check_trend(const struct checking *checking) {
    const struct moments *moments = &checking->moments;
    double first = INFINITY, last = -INFINITY;
    for (size_t m = 0; m < moments->count; m++) {
        first = fmin(first, moments->order[m]);
        last = fmax(last, moments->order[m]);
    }
    const struct association found = strata_associate(&checking->together, moments->residual, moments->order);
    set_association_result(checking, &found, last - first, &checking->ret->results[CHECK_TREND]);
    for (size_t m = 0; m < moments->count && isfinite(found.slope); m++) /* what follows is free of it */
        moments->residual[m] -= found.slope * moments->order[m];
    strata_center(&checking->together, moments->residual);
}

/* Sums over pairs of values that have the mean 0 each. */
struct likeness {
    double products, squared_products, squares[2], pairs;
};

static void add_pair(struct likeness *likeness, double a, double b) {
    likeness->products += a * b;
    likeness->squared_products += a * a * b * b;
    likeness->squares[0] += a * a;
    likeness->squares[1] += b * b;
    likeness->pairs++;
}

/* One-sided test of likeness, by t = sum of products / root of the sum of their squares, which allows for
 * pairs of unequal variance. REPEATED: the share of values that is free; the rest follows from their means.
 */
static void set_likeness_result(const struct likeness *likeness, double repeated,
                                struct check_result *result) {
    double freedom = floor(likeness->pairs * repeated) - 1;
    result->rows = (size_t)likeness->pairs;
    result->size = likeness->products / sqrt(likeness->squares[0] * likeness->squares[1]);
    result->share = result->size * result->size;
    if (freedom < STRATA_FREEDOM_LEAST || !(likeness->squared_products > 0))
        return;
    double t = likeness->products / sqrt(likeness->squared_products) * sqrt(repeated);
    double p = distribution_student_two_sided(t, freedom);
    result->p = t > 0 ? p / 2 : 1 - p / 2;
}

/* Tests whether a moment is like the moment before it on the same node. */
static void check_autocorrelation(const struct checking *checking) {
    const struct moments *moments = &checking->moments;
    struct likeness likeness = {0};
    for (size_t m = 1; m < moments->count; m++)
        if (moments->nodes[m] == moments->nodes[m - 1])
            add_pair(&likeness, moments->residual[m], moments->residual[m - 1]);
    double repeated = 1 - (double)strata_rank(&checking->together) / (double)moments->count;
    set_likeness_result(&likeness, repeated, &checking->ret->results[CHECK_AUTOCORRELATION]);
}

/* Tests the response against the mean response of the setting that the node measured before. */
static void check_carry_over(const struct checking *checking) {
    const struct moments *moments = &checking->moments;
    size_t levels = checking->rows->settings.levels;
    cleanup_free double *means = xcalloc(2 * levels + 1, sizeof *means);
    cleanup_free double *before = xcalloc(moments->count + 1, sizeof *before);
    double *counts = means + levels;
    for (size_t m = 0; m < moments->count; m++) {
        means[moments->settings[m]] += moments->level[m];
        counts[moments->settings[m]]++;
    }
    for (size_t m = 0; m < moments->count; m++) {
        bool has_one = m > 0 && moments->nodes[m] == moments->nodes[m - 1];
        before[m] = has_one ? means[moments->settings[m - 1]] / counts[moments->settings[m - 1]] : NAN;
    }
    check_association(checking, CHECK_CARRY_OVER, before);
}

/* Tests whether settings explain the order, within blocks. Nodes share the order, so the node with most
 * moments is tested. */
static void check_order(const struct checking *checking) {
    const struct moments *moments = &checking->moments;
    const struct check_rows *rows = checking->rows;
    size_t first = 0, count = 0;
    for (size_t m = 0, end; m < moments->count; m = end) {
        for (end = m; end < moments->count && moments->nodes[end] == moments->nodes[m];)
            end++;
        if (end - m > count) {
            first = m;
            count = end - m;
        }
    }
    const struct strata strata = {count,
                                  {moments->blocks + first, moments->settings + first},
                                  {rows->blocks.levels, rows->settings.levels}};
    const struct strata_effect effect = strata_test_second(&strata, moments->order + first);
    checking->ret->results[CHECK_ORDER] = (struct check_result){
        .rows = count, .size = 100 * effect.share, .share = effect.share, .p = effect.p};
}

/* ---- Nodes and cores */

/* Finds the level whose median of VALUES is farthest from the median of the other levels, and by how much, in
 * %. */
static void find_farthest(const double *values, const struct check_codes *codes, size_t count,
                          const struct checking *checking, struct check_result *result) {
    size_t levels = codes->levels, used = 0;
    cleanup_free double *scratch = xcalloc(count + 2 * levels + 1, sizeof *scratch);
    cleanup_free uint32_t *names = xcalloc(levels + 1, sizeof *names);
    double *medians = scratch + count, *others = medians + levels;
    for (size_t level = 0; level < levels; level++) {
        size_t n = 0;
        for (size_t i = 0; i < count; i++)
            if (codes->codes[i] == level)
                scratch[n++] = values[i];
        names[used] = (uint32_t)level;
        medians[used] = quantile_median(scratch, n);
        used += n > 0;
    }
    for (size_t k = 0; k < used; k++) {
        size_t n = 0;
        for (size_t i = 0; i < used; i++)
            if (i != k)
                others[n++] = medians[i];
        double size = to_percent(checking, medians[k] - quantile_median(others, n));
        if (k == 0 || fabs(size) > fabs(result->size)) {
            result->size = size;
            result->level = names[k];
        }
    }
}

/* Tests whether VALUES differ by GROUPS after the means of COMMON are subtracted. */
static void check_groups(const struct checking *checking, enum check check, const double *values,
                         size_t count, const struct check_codes *common, const struct check_codes *groups) {
    struct check_result *result = &checking->ret->results[check];
    struct strata strata = {count, {common->codes, groups->codes}, {common->levels, groups->levels}};
    const struct strata_effect effect = strata_test_second(&strata, values);
    result->rows = count;
    result->p = effect.p;
    result->share = effect.share;
    if (isnan(effect.p))
        return;
    cleanup_free double *residual = xcalloc(count + 1, sizeof *residual);
    memcpy(residual, values, count * sizeof *residual);
    strata.codes[1] = NULL;
    strata_center(&strata, residual);
    find_farthest(residual, groups, count, checking, result);
}

/* Tests whether units on two cores of a node at one time are alike. The means of each setting on each core
 * are subtracted, so that the residuals of both are independent unless something disturbs both. */
static void check_neighbours(const struct checking *checking) {
    const struct check_rows *rows = checking->rows;
    size_t levels = rows->settings.levels * rows->cores.levels;
    if (rows->count == 0 || levels > UINT32_MAX)
        return;
    cleanup_free uint32_t *cells = xcalloc(rows->count, sizeof *cells);
    cleanup_free double *residual = xcalloc(rows->count + 2 * checking->moments.count, sizeof *residual);
    double *sums = residual + rows->count, *counts = sums + checking->moments.count;
    for (size_t i = 0; i < rows->count; i++)
        cells[i] = (uint32_t)(rows->settings.codes[i] * rows->cores.levels + rows->cores.codes[i]);
    memcpy(residual, rows->y, rows->count * sizeof *residual);
    const struct strata strata = {rows->count, {cells}, {levels}};
    strata_center(&strata, residual);
    struct likeness likeness = {0};
    for (size_t i = 0; i < rows->count; i++) { /* each unit and the mean of those before it in its moment */
        size_t m = checking->moments.of_row[i];
        if (counts[m] > 0)
            add_pair(&likeness, residual[i], sums[m] / counts[m]);
        sums[m] += residual[i];
        counts[m]++;
    }
    double repeated = 1 - (double)strata_rank(&strata) / (double)rows->count;
    set_likeness_result(&likeness, repeated, &checking->ret->results[CHECK_NEIGHBOURS]);
}

/* ---- Modes */

/* Splits SORTED in two so that the sum of squares within both parts is least. Returns the distance of their
 * means; *RET_SHARE is the share of the upper part. */
static double find_split(const double *sorted, size_t count, double *ret_share) {
    double all = 0, low = 0, best = -1, distance = 0;
    for (size_t i = 0; i < count; i++)
        all += sorted[i];
    for (size_t i = 1; i < count; i++) {
        low += sorted[i - 1];
        double below = (double)i, above = (double)(count - i), apart = (all - low) / above - low / below;
        if (apart * apart * below * above > best) {
            best = apart * apart * below * above;
            distance = apart;
            *ret_share = above / (double)count;
        }
    }
    return distance;
}

/* Spreads equal values of SORTED evenly over the least step between different values: rounding would
 * otherwise look like modes. */
static void spread_ties(double *sorted, size_t count) {
    double range = sorted[count - 1] - sorted[0], step = range;
    for (size_t i = 1; i < count; i++)
        if (sorted[i] - sorted[i - 1] > ROUNDING * range)
            step = fmin(step, sorted[i] - sorted[i - 1]);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && sorted[end] - sorted[i] <= ROUNDING * range;)
            end++;
        double middle = sorted[i], n = (double)(end - i);
        for (size_t k = i; n > 1 && k < end; k++)
            sorted[k] = middle + step * (((double)(k - i) + 0.5) / n - 0.5);
    }
}

/* Subtracts from each of VALUES the middle value of its level; of an even number the lower one, which lies at
 * a mode and not between two. */
static void subtract_level_medians(const uint32_t *codes, size_t levels, size_t count, double *values) {
    cleanup_free size_t *first = xcalloc(levels + 2, sizeof *first);
    cleanup_free double *sorted = xcalloc(count + 1, sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        first[codes[i] + 2]++;
    for (size_t level = 2; level < levels + 2; level++)
        first[level] += first[level - 1];
    for (size_t i = 0; i < count; i++)
        sorted[first[codes[i] + 1]++] = values[i];
    for (size_t level = 0; level < levels; level++)
        quantile_sort(sorted + first[level], first[level + 1] - first[level]);
    for (size_t i = 0; i < count; i++)
        values[i] -= sorted[(first[codes[i]] + first[codes[i] + 1] - 1) / 2];
}

/* Tests the residuals for more than one mode (dip test). Units are tested, or moments if units of one moment
 * are alike, which would count one value several times. */
static void check_modes(const struct checking *checking) {
    const struct check_result *neighbours = &checking->ret->results[CHECK_NEIGHBOURS];
    struct check_result *result = &checking->ret->results[CHECK_MODES];
    bool by_unit = checking->moments.count == checking->rows->count || neighbours->p > 0.05;
    const struct strata *strata = by_unit ? &checking->units : &checking->together;
    const double *y = by_unit ? checking->rows->y : checking->moments.level;
    size_t count = strata->rows, freedom = count - strata_rank(strata);
    if (freedom < MODES_ROWS_LEAST)
        return;
    cleanup_free double *sorted = xcalloc(count, sizeof *sorted);
    memcpy(sorted, y, count * sizeof *sorted);
    for (size_t set = 0; set < 2; set++)
        subtract_level_medians(strata->codes[set], strata->level_counts[set], count, sorted);
    quantile_sort(sorted, count);
    spread_ties(sorted, count);
    result->rows = count;
    result->p = dip_upper(dip(sorted, count), freedom);
    result->size = to_percent(checking, find_split(sorted, count, &result->share));
}

/* ---- All of them */

/* Is the size of RESULT large enough to matter, by the limits of checks.h? */
static bool is_large_enough(enum check check, const struct check_result *result) {
    if (check == CHECK_MODES)
        return true;
    if (check == CHECK_AUTOCORRELATION || check == CHECK_NEIGHBOURS)
        return result->size >= LIKENESS_LEAST;
    if (check == CHECK_ORDER)
        return result->size >= ORDER_SHARE_LEAST;
    return fabs(result->size) >= SIZE_LEAST || result->share >= SHARE_LEAST;
}

/* Adjusts the p values by Holm over the tests that were made, and decides which results are findings. */
static void decide_findings(struct checks *checks) {
    double p[CHECK_COUNT];
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        p[i] = checks->results[i].p;
        checks->tested += !isnan(p[i]);
    }
    holm_adjust(p, CHECK_COUNT);
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        struct check_result *result = &checks->results[i];
        result->adjusted = p[i];
        result->is_finding = p[i] < P_MOST && is_large_enough((enum check)i, result);
        checks->findings += result->is_finding;
    }
}

static double find_mean(const struct check_rows *rows) {
    double mean = 0;
    for (size_t i = 0; i < rows->count && !rows->is_logarithmic; i++)
        mean += fabs(rows->y[i]) / (double)rows->count;
    return mean;
}

/* Makes all checks on the rows. The trend is tested late, because that changes the residuals. */
void checks_find(const struct check_rows *rows, struct checks *ret) {
    struct checking checking = {.rows = rows, .ret = ret, .mean = find_mean(rows)};
    *ret = (struct checks){0};
    for (size_t i = 0; i < CHECK_COUNT; i++)
        ret->results[i] = (struct check_result){.p = NAN, .adjusted = NAN, .size = NAN, .share = NAN};
    if (rows->count == 0)
        return;
    struct moments *moments = &checking.moments;
    checking.residual = xcalloc(rows->count, sizeof *checking.residual);
    memcpy(checking.residual, rows->y, rows->count * sizeof *checking.residual);
    checking.units = (struct strata){
        rows->count, {rows->settings.codes, rows->cores.codes}, {rows->settings.levels, rows->cores.levels}};
    strata_center(&checking.units, checking.residual);
    moments_new(moments, rows->count);
    make_moments(&checking);
    checking.together = (struct strata){
        moments->count, {moments->settings, moments->nodes}, {rows->settings.levels, rows->nodes.levels}};
    const struct check_codes of_moments = {moments->settings, rows->settings.levels},
                             nodes = {moments->nodes, rows->nodes.levels},
                             each = {moments->of_row, moments->count};
    check_association(&checking, CHECK_FREQUENCY, moments->frequency);
    check_association(&checking, CHECK_TEMPERATURE, moments->temperature);
    check_carry_over(&checking);
    check_order(&checking);
    check_groups(&checking, CHECK_NODES, moments->level, moments->count, &of_moments, &nodes);
    check_groups(&checking, CHECK_CORES, rows->y, rows->count, &each, &rows->cores);
    check_neighbours(&checking);
    check_trend(&checking);
    check_autocorrelation(&checking);
    check_modes(&checking);
    decide_findings(ret);
    moments_clear(moments);
    free(checking.residual);
}
