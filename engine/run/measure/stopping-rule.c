#include "engine/run/measure/stopping-rule.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text-set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A mean that grows (B. P. Welford, "Note on a method for calculating corrected sums of squares and
 * products", Technometrics 4, 1962): equal values leave it as it is, to the last bit. */
struct moments {
    double mean, squares; /* the latter: of the distances from the mean */
    uint64_t count;
};

static void add_value(struct moments *moments, double value) {
    double distance = value - moments->mean;
    moments->mean += distance / (double)++moments->count;
    moments->squares += distance * (value - moments->mean);
}

/* The mean of a row on one node, or on all, over the repetitions that are over. */
struct cell {
    double mean;
    uint32_t count;
    uint32_t last; /* the latest repetition with a value, from 1 */
};

struct row {
    struct moments groups; /* of blocks */
    uint32_t repetitions;  /* with a value */
    uint32_t last;         /* of these, the latest, from 1 */
    uint32_t settled_from; /* the first repetition that is not needed; 0: it is not settled */
};

struct waiting {
    uint32_t row, repetition, node, unit, number; /* the last: in the order in which they came */
    double value;
};

struct stopping_rule {
    struct design_repeat repeat; /* its response is not ours */
    size_t row_count, settled_count;
    struct row *rows;
    struct text_set nodes, units;
    struct cell **cells; /* by node and row; of one node, where groups are of blocks alone */
    size_t node_count;
    struct waiting *waiting;
    size_t waiting_count, waiting_capacity;
    size_t latest;    /* repetition that was seen, from 0 */
    uint64_t freedom; /* of the last quantile, which most rows share */
    double quantile;
};

struct stopping_rule *stopping_rule_new(const struct design_repeat *repeat, size_t rows) {
    struct stopping_rule *rule = xcalloc(1, sizeof *rule);
    rule->rows = xcalloc(rows, sizeof *rule->rows);
    rule->repeat = *repeat;
    rule->repeat.response = NULL;
    rule->row_count = rows;
    return rule;
}

void stopping_rule_free(struct stopping_rule *rule) {
    if (!rule)
        return;
    for (size_t i = 0; i < rule->node_count; i++)
        free(rule->cells[i]);
    free(rule->cells);
    text_set_clear(&rule->nodes);
    text_set_clear(&rule->units);
    free(rule->waiting);
    free(rule->rows);
    free(rule);
}

/* Adds the value of a unit, which waits until its repetition is over. Nodes get their numbers in the order in
 * which they come. */
int stopping_rule_add(struct stopping_rule *rule, const struct stopping_value *value) {
    cleanup_free char *unit = xformat("%s %s", value->node, value->core);
    struct waiting item = {
        .row = (uint32_t)value->row, .repetition = (uint32_t)value->repetition, .value = value->value};
    item.unit = text_set_add(&rule->units, unit, strlen(unit));
    if (rule->repeat.between & DESIGN_BETWEEN_NODE)
        item.node = text_set_add(&rule->nodes, value->node, strlen(value->node));
    if (item.node == rule->node_count) { /* labels come one by one */
        rule->cells = xrealloc(rule->cells, (rule->node_count + 1) * sizeof *rule->cells);
        rule->cells[rule->node_count++] = xcalloc(rule->row_count, sizeof **rule->cells);
    }
    if (value->repetition > rule->latest) {
        stopping_rule_close(rule, value->repetition);
        rule->latest = value->repetition;
    }
    if (rule->waiting_count == rule->waiting_capacity) {
        rule->waiting_capacity = 2 * rule->waiting_capacity + 64;
        rule->waiting = xrealloc(rule->waiting, rule->waiting_capacity * sizeof *rule->waiting);
    }
    item.number = (uint32_t)rule->waiting_count;
    rule->waiting[rule->waiting_count++] = item;
    return 0;
}

/* ---- Groups ----------------------------------------------------------------------------------------------
 */

/* A mean over COUNT and one over MORE, together; two that are equal stay so. */
static double merge(double mean, uint64_t count, double other, uint64_t more) {
    return mean + (other - mean) * ((double)more / (double)(count + more));
}

/* Adds the mean of COUNT values of a row in one repetition that is over, on one node or on all. */
static void add_group(struct stopping_rule *rule, const struct waiting *of, double mean, uint32_t count) {
    struct cell *cell = &rule->cells[of->node][of->row];
    struct row *row = &rule->rows[of->row];
    uint32_t repetition = of->repetition + 1;
    if (rule->repeat.between == DESIGN_BETWEEN_NODE) {
        cell->mean = merge(cell->mean, cell->count, mean, count);
        cell->count += count;
    } else if (repetition > cell->last) {
        add_value(&row->groups, mean);
    }
    cell->last = repetition > cell->last ? repetition : cell->last;
    if (repetition > row->last) {
        row->last = repetition;
        row->repetitions++;
    }
}

/* By repetition, row, node and unit; the last value of a unit comes last. */
static int compare_waiting(const void *left, const void *right) {
    const struct waiting *a = left, *b = right;
    const uint32_t keys[][2] = {{a->repetition, b->repetition},
                                {a->row, b->row},
                                {a->node, b->node},
                                {a->unit, b->unit},
                                {a->number, b->number}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static bool is_same_group(const struct waiting *a, const struct waiting *b) {
    return a->repetition == b->repetition && a->row == b->row && a->node == b->node;
}

/* Adds the waiting values of repetitions before BEFORE to their groups. Of a unit that was measured several
 * times the last value counts. */
void stopping_rule_close(struct stopping_rule *rule, size_t before) {
    struct waiting *items = rule->waiting, *end = items + rule->waiting_count, *at = items;
    if (rule->waiting_count == 0)
        return;
    qsort(items, rule->waiting_count, sizeof *items, compare_waiting);
    while (at < end && at->repetition < before) {
        const struct waiting *first = at;
        double mean = 0;
        uint32_t count = 0;
        for (; at < end && is_same_group(at, first); at++)
            if (at + 1 == end || !is_same_group(at + 1, first) || at[1].unit != at->unit)
                mean += (at->value - mean) / (double)++count;
        add_group(rule, first, mean, count);
    }
    rule->waiting_count = (size_t)(end - at);
    memmove(items, at, rule->waiting_count * sizeof *items);
    for (size_t i = 0; i < rule->waiting_count; i++)
        items[i].number = (uint32_t)i;
}

/* ---- Verdicts --------------------------------------------------------------------------------------------
 */

/* The mean of ROW and its confidence interval, by Student's t over its groups: nodes, or repetitions of
 * blocks. */
struct stopping_estimate stopping_rule_estimate(struct stopping_rule *rule, size_t row) {
    struct moments moments = rule->rows[row].groups;
    if (rule->repeat.between == DESIGN_BETWEEN_NODE)
        for (size_t i = 0; i < rule->node_count; i++)
            if (rule->cells[i][row].count > 0)
                add_value(&moments, rule->cells[i][row].mean);
    struct stopping_estimate estimate = {
        .repetitions = rule->rows[row].repetitions,
        .groups = (size_t)moments.count,
        .mean = moments.count ? moments.mean : NAN,
        .half_width = NAN,
        .relative = NAN,
    };
    if (moments.count < 2)
        return estimate;
    uint64_t freedom = moments.count - 1;
    double error = sqrt(moments.squares / (double)freedom / (double)moments.count);
    if (freedom != rule->freedom)
        rule->quantile = student_t_two_sided(rule->freedom = freedom, rule->repeat.confidence);
    estimate.half_width = error == 0 ? 0 : error * rule->quantile;
    estimate.relative = error == 0 ? 0 : estimate.half_width / fabs(moments.mean);
    estimate.narrow = estimate.relative <= rule->repeat.ci && estimate.repetitions >= rule->repeat.at_least;
    return estimate;
}

/* Settles ROW if its mean is known well enough. Values that are read again may go beyond BEFORE: when they
 * were measured, the last of them settled the row. */
size_t stopping_rule_settle(struct stopping_rule *rule, size_t row, size_t before) {
    struct row *state = &rule->rows[row];
    if (state->settled_from || !stopping_rule_estimate(rule, row).narrow)
        return 0;
    state->settled_from = before > state->last ? (uint32_t)before : state->last;
    rule->settled_count++;
    return state->settled_from;
}

bool stopping_rule_is_settled(const struct stopping_rule *rule, size_t row) {
    return rule->rows[row].settled_from > 0;
}

bool stopping_rule_skips(const struct stopping_rule *rule, size_t row, size_t repetition) {
    return stopping_rule_is_settled(rule, row) && repetition >= rule->rows[row].settled_from;
}

size_t stopping_rule_settled_count(const struct stopping_rule *rule) {
    return rule->settled_count;
}

/* ---- Student's t -----------------------------------------------------------------------------------------
 */

static const double half_pi = 1.57079632679489661923;

/* The probability of |T| <= sqrt(FREEDOM) tan(ANGLE). */
static double probability(uint64_t freedom, double angle) {
    bool odd = freedom % 2;
    double cosine = cos(angle), sine = sin(angle), term = odd ? cosine : 1, sum = 0;
    for (uint64_t j = odd ? 3 : 2; j <= freedom; j += 2) {
        sum += term;
        term *= cosine * cosine * (double)(j - 1) / (double)j;
    }
    return odd ? (angle + sine * sum) / half_pi : sine * sum;
}

double student_t_two_sided(uint64_t freedom, double confidence) {
    double low = 0, high = half_pi, angle;
    if (freedom < 1 || !(confidence > 0 && confidence < 1))
        return NAN;
    freedom = freedom > STUDENT_FREEDOM_MAX ? STUDENT_FREEDOM_MAX : freedom;
    while ((angle = low + (high - low) / 2) > low && angle < high)
        if (probability(freedom, angle) < confidence)
            low = angle;
        else
            high = angle;
    return sqrt((double)freedom) * tan(angle);
}
