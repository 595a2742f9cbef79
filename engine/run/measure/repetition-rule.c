#include "engine/run/measure/repetition-rule.h"

#include "engine/design/labels.h"
#include "engine/foundation/list.h"
#include "engine/run/measure/student-t.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A mean that grows (B. P. Welford, "Note on a method for calculating corrected sums of squares and
 * products", Technometrics 4, 1962): equal values leave it as it is, to the last bit. */
struct moments {
    double mean, squares; /* the latter: of what lies off the mean */
    uint64_t count;
};

static void add_to_moments(struct moments *moments, double value) {
    double off = value - moments->mean;
    moments->mean += off / (double)++moments->count;
    moments->squares += off * (value - moments->mean);
}

/* What was measured of a row, on one node or on all, in the repetition that is open. */
struct cell {
    double mean;
    uint32_t count;
    uint32_t repetition; /* from 1; 0: there was none yet */
};

/* The same in repetitions before that one, where groups are of nodes. */
struct past {
    double mean;
    uint64_t count;
};

struct node {
    struct cell *cells; /* by row */
    struct past *pasts; /* by row; NULL where groups end with their repetition */
};

struct row {
    struct moments groups;      /* that are closed */
    uint32_t repetitions, last; /* how many had a value; the latest of them, from 1 */
    uint32_t settled_from;      /* first repetition that is not needed; from 1; 0 */
};

struct aside {
    uint32_t row, repetition; /* from 0 */
    uint32_t node, core;
    bool is_taken; /* it was measured again */
    double value;
};

struct repetition_rule {
    struct design_repeat repeat; /* its response is not ours */
    size_t row_count, settled_count;
    struct row *rows;
    struct labels names, cores;
    struct node *nodes; /* by label; one, where groups are of blocks alone */
    size_t node_count, node_capacity;
    uint32_t latest;  /* of all rows, from 1 */
    uint64_t freedom; /* that of the last quantile, which most rows share */
    double quantile;
    struct aside *asides;
    size_t aside_count, aside_capacity;
    uint32_t *slots; /* hash table of the asides: number + 1, or 0; as with labels */
    size_t slot_count;
};

int repetition_rule_new(const struct design_repeat *repeat, size_t rows, struct repetition_rule **ret) {
    struct repetition_rule *rule = calloc(1, sizeof *rule);
    if (rule)
        rule->rows = calloc(rows, sizeof *rule->rows);
    if (!rule || !rule->rows) {
        free(rule);
        return -ENOMEM;
    }
    rule->repeat = *repeat;
    rule->repeat.response = NULL;
    rule->row_count = rows;
    *ret = rule;
    return 0;
}

void repetition_rule_free(struct repetition_rule *rule) {
    if (!rule)
        return;
    for (size_t i = 0; i < rule->node_count; i++) {
        free(rule->nodes[i].cells);
        free(rule->nodes[i].pasts);
    }
    free(rule->nodes);
    labels_clear(&rule->names);
    labels_clear(&rule->cores);
    free(rule->asides);
    free(rule->slots);
    free(rule->rows);
    free(rule);
}

/* ---- Groups ----------------------------------------------------------------------------------------------
 */

static bool has_pasts(const struct repetition_rule *rule) {
    return rule->repeat.between == DESIGN_BETWEEN_NODE;
}

static int find_node(struct repetition_rule *rule, const char *name, uint32_t *ret) {
    uint32_t code = 0;
    int r =
        rule->repeat.between & DESIGN_BETWEEN_NODE ? labels_code(&rule->names, name, strlen(name), &code) : 0;
    if (r < 0)
        return r;
    if (code < rule->node_count) {
        *ret = code;
        return 0;
    }
    if (rule->row_count > REPETITION_CELLS_MOST / ((size_t)code + 1))
        return -EFBIG;
    r = list_reserve(&rule->nodes, &rule->node_capacity, (size_t)code + 1, sizeof *rule->nodes,
                     REPETITION_CELLS_MOST);
    if (r < 0)
        return r;
    struct node *node = &rule->nodes[rule->node_count++]; /* labels come one by one */
    node->cells = calloc(rule->row_count, sizeof *node->cells);
    node->pasts = has_pasts(rule) ? calloc(rule->row_count, sizeof *node->pasts) : NULL;
    *ret = code;
    return node->cells && (node->pasts || !has_pasts(rule)) ? 0 : -ENOMEM;
}

/* A mean over COUNT and one over MORE, together; two that are equal stay so. */
static double merge(double mean, uint64_t count, double other, uint64_t more) {
    return mean + (other - mean) * ((double)more / (double)(count + more));
}

static void close_cell(struct repetition_rule *rule, struct node *node, size_t row) {
    struct cell *cell = &node->cells[row];
    if (cell->count && node->pasts) {
        struct past *past = &node->pasts[row];
        past->mean = merge(past->mean, past->count, cell->mean, cell->count);
        past->count += cell->count;
    } else if (cell->count) {
        add_to_moments(&rule->rows[row].groups, cell->mean);
    }
    *cell = (struct cell){0};
}

static void count_value(struct repetition_rule *rule, size_t row, size_t repetition, uint32_t number,
                        double value) {
    struct node *node = &rule->nodes[number];
    struct cell *cell = &node->cells[row];
    uint32_t current = (uint32_t)repetition + 1;
    if (current < cell->repetition) {
        if (node->pasts) {
            struct past *past = &node->pasts[row];
            past->mean = merge(past->mean, past->count, value, 1);
            past->count++;
        }
        return;
    }
    if (current > cell->repetition)
        close_cell(rule, node, row);
    cell->repetition = current;
    cell->mean += (value - cell->mean) / (double)++cell->count;
    if (current > rule->rows[row].last) {
        rule->rows[row].last = current;
        rule->rows[row].repetitions++;
    }
}

/* ---- Aside -----------------------------------------------------------------------------------------------
 */

static bool is_of_same_unit(const struct aside *a, const struct aside *b) {
    return a->row == b->row && a->repetition == b->repetition && a->node == b->node && a->core == b->core;
}

/* The slot of ASIDE's unit, or the empty one where it belongs. */
static uint32_t *find_slot(const struct repetition_rule *rule, const struct aside *aside) {
    static const uint64_t mixer = UINT64_C(0x9e3779b97f4a7c15); /* 2^64 over the golden ratio */
    uint64_t hash = ((uint64_t)aside->row << 32 | aside->repetition) * mixer;
    hash = (hash ^ hash >> 32 ^ ((uint64_t)aside->node << 32 | aside->core)) * mixer;
    size_t mask = rule->slot_count - 1;
    for (size_t at = (size_t)(hash >> 32) & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &rule->slots[at];
        if (*slot == 0 || is_of_same_unit(&rule->asides[*slot - 1], aside))
            return slot;
    }
}

static void fill_slots(struct repetition_rule *rule) {
    for (size_t i = 0; i < rule->aside_count; i++)
        *find_slot(rule, &rule->asides[i]) = (uint32_t)i + 1;
}

static int grow_slots(struct repetition_rule *rule) {
    size_t count = rule->slot_count ? 2 * rule->slot_count : 64;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    free(rule->slots);
    rule->slots = slots;
    rule->slot_count = count;
    fill_slots(rule);
    return 0;
}

/* What is aside of ITEM's unit, or NULL. */
static struct aside *find_aside(const struct repetition_rule *rule, const struct aside *item) {
    uint32_t slot = rule->aside_count ? *find_slot(rule, item) : 0;
    return slot ? &rule->asides[slot - 1] : NULL;
}

static int put_aside(struct repetition_rule *rule, const struct aside *item) {
    struct aside *known = find_aside(rule, item);
    if (known) {
        *known = *item;
        return 0;
    }
    if (2 * (rule->aside_count + 1) > rule->slot_count && grow_slots(rule) < 0)
        return -ENOMEM;
    int r = list_reserve(&rule->asides, &rule->aside_capacity, rule->aside_count + 1, sizeof *rule->asides,
                         REPETITION_ASIDE_MOST);
    if (r < 0)
        return r;
    rule->asides[rule->aside_count++] = *item;
    *find_slot(rule, item) = (uint32_t)rule->aside_count;
    return 0;
}

void repetition_rule_gather(struct repetition_rule *rule, size_t before) {
    size_t left = 0;
    for (size_t i = 0; i < rule->aside_count; i++) {
        struct aside aside = rule->asides[i];
        if (aside.repetition >= before)
            rule->asides[left++] = aside;
        else if (!aside.is_taken)
            count_value(rule, aside.row, aside.repetition, aside.node, aside.value);
    }
    if (left == rule->aside_count)
        return;
    rule->aside_count = left;
    memset(rule->slots, 0, rule->slot_count * sizeof *rule->slots);
    fill_slots(rule);
}

int repetition_rule_take(struct repetition_rule *rule, const struct repetition_value *value) {
    uint32_t node;
    int r = find_node(rule, value->node, &node);
    if (r < 0)
        return r;
    if (value->repetition + 1 > rule->latest) {
        repetition_rule_gather(rule, value->repetition);
        rule->latest = (uint32_t)value->repetition + 1;
    }
    struct aside item = {.row = (uint32_t)value->row,
                         .repetition = (uint32_t)value->repetition,
                         .node = node,
                         .value = value->value};
    if (value->again || value->attempt > 1)
        r = labels_code(&rule->cores, value->core, strlen(value->core), &item.core);
    if (r < 0 || value->again)
        return r < 0 ? r : put_aside(rule, &item);
    struct aside *aside = value->attempt > 1 ? find_aside(rule, &item) : NULL;
    if (aside)
        aside->is_taken = true;
    count_value(rule, value->row, value->repetition, node, value->value);
    return 0;
}

/* ---- Verdicts --------------------------------------------------------------------------------------------
 */

/* The groups of ROW from the repetitions before BEFORE. */
static struct moments sum_up(const struct repetition_rule *rule, size_t row, size_t before) {
    struct moments moments = rule->rows[row].groups;
    for (size_t i = 0; i < rule->node_count; i++) {
        const struct node *node = &rule->nodes[i];
        const struct cell *cell = &node->cells[row];
        bool counts = cell->count && cell->repetition <= before;
        struct past past = node->pasts ? node->pasts[row] : (struct past){0};
        if (counts && past.count)
            add_to_moments(&moments, merge(past.mean, past.count, cell->mean, cell->count));
        else if (counts || past.count)
            add_to_moments(&moments, counts ? cell->mean : past.mean);
    }
    return moments;
}

struct repetition_estimate repetition_rule_estimate(struct repetition_rule *rule, size_t row, size_t before) {
    const struct row *state = &rule->rows[row];
    struct moments moments = sum_up(rule, row, before);
    struct repetition_estimate estimate = {
        .repetitions = state->repetitions - (state->last > before),
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

bool repetition_rule_settle(struct repetition_rule *rule, size_t row, size_t before) {
    if (rule->rows[row].settled_from || !repetition_rule_estimate(rule, row, before).narrow)
        return false;
    rule->rows[row].settled_from = (uint32_t)before + 1;
    rule->settled_count++;
    return true;
}

bool repetition_rule_is_settled(const struct repetition_rule *rule, size_t row) {
    return rule->rows[row].settled_from > 0;
}

bool repetition_rule_leaves_out(const struct repetition_rule *rule, size_t row, size_t repetition) {
    return repetition_rule_is_settled(rule, row) && repetition + 1 >= rule->rows[row].settled_from;
}

size_t repetition_rule_settled_count(const struct repetition_rule *rule) {
    return rule->settled_count;
}
