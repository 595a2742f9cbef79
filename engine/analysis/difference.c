#include "engine/analysis/difference.h"

#include "engine/analysis/answer.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/numerics/distribution.h"
#include "engine/numerics/holm.h"
#include "engine/table/folds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_LEAST = 3, BLOCKS_LEAST = 3, NODES_LEAST = 3, SIDES = 2 };
static const double P_MOST = 0.05, ROUNDING = 1e-12;

/* Rows as they are compared. */
struct comparing {
    struct difference *of;
    double *values;     /* of each row, y or its logarithm */
    uint32_t *clusters; /* what counts once in the whole, by BLOCKS and UNITS */
    size_t cluster_count;
    uint32_t *keys; /* what counts once in a setting */
};

/* Replicates of one setting on one side, in order of their keys. */
struct sample {
    struct replicate_value {
        uint32_t key;
        double value;
    } * items;
    size_t count;
    double mean, variance; /* NaN: too few */
};

/* ---- Tests */

/* Sets mean and variance of SAMPLE from its items; NAN when there are too few. */
static void summarize_sample(struct sample *sample) {
    double squares = 0, n = (double)sample->count;
    sample->mean = 0;
    for (size_t i = 0; i < sample->count; i++)
        sample->mean += sample->items[i].value / n;
    for (size_t i = 0; i < sample->count; i++)
        squares += pow(sample->items[i].value - sample->mean, 2);
    sample->variance = sample->count > 1 ? squares / (n - 1) : NAN;
    sample->mean = sample->count > 0 ? sample->mean : NAN;
}

/* The estimate of a difference of SIZE with VARIANCE and FREEDOM: 95 % interval and two-sided p, by Student's
 * t. Both are NAN if the variance is not known. */
static struct difference_estimate make_estimate(double size, double variance, double freedom) {
    double error = sqrt(variance);
    struct difference_estimate ret = {size, NAN, NAN, NAN};
    if (!(freedom >= 1) || isnan(variance))
        return ret;
    double half = error * distribution_student_two_sided_quantile(P_MOST, freedom);
    ret.low = size - half;
    ret.high = size + half;
    ret.p = error > 0 ? distribution_student_two_sided(size / error, freedom) : size == 0;
    return ret;
}

/* Welch's. */
static struct difference_estimate compare_variances(double size, const double variances[SIDES],
                                                    const double freedoms[SIDES]) {
    double sum = variances[0] + variances[1];
    double below = pow(variances[0], 2) / freedoms[0] + pow(variances[1], 2) / freedoms[1];
    return make_estimate(size, sum, below > 0 ? sum * sum / below : fmin(freedoms[0], freedoms[1]));
}

/* Estimates the difference of one setting by METHOD: NEW as one more run, pairs of nodes, or Welch. */
static struct difference_estimate compare_samples(enum difference_method method,
                                                  const struct sample samples[SIDES]) {
    const struct sample *base = &samples[0], *now = &samples[1];
    double size = now->mean - base->mean, n = (double)base->count;
    if (method == DIFFERENCE_RUNS)
        return make_estimate(size, base->variance * (1 + 1 / n), n - 1);
    if (method == DIFFERENCE_NODES) {
        cleanup_free struct replicate_value *pairs = xcalloc(base->count + 1, sizeof *pairs);
        struct sample paired = {.items = pairs};
        for (size_t i = 0, k = 0; i < base->count; i++) {
            while (k < now->count && now->items[k].key < base->items[i].key)
                k++;
            if (k < now->count && now->items[k].key == base->items[i].key)
                pairs[paired.count++].value = now->items[k].value - base->items[i].value;
        }
        summarize_sample(&paired);
        return paired.count > 1 ? make_estimate(paired.mean, paired.variance / (double)paired.count,
                                                (double)paired.count - 1)
                                : make_estimate(size, NAN, NAN);
    }
    const double variances[SIDES] = {base->variance / n, now->variance / (double)now->count},
                 freedoms[SIDES] = {n - 1, (double)now->count - 1};
    return base->count > 1 && now->count > 1 ? compare_variances(size, variances, freedoms)
                                             : make_estimate(size, NAN, NAN);
}

/* ---- Samples */

static size_t side_of(const struct comparing *comparing, size_t row) {
    return comparing->of->measurements->runs[row] == comparing->of->new_run;
}

static int compare_keys(const void *a, const void *b) {
    const struct replicate_value *left = a, *right = b;
    return (left->key > right->key) - (left->key < right->key);
}

/* Sets SAMPLE to the means of the keys (runs, nodes, or rows) of SETTING on SIDE. It has room for all rows.
 */
static void collect_sample(const struct comparing *comparing, size_t setting, size_t side,
                           struct sample *sample) {
    const struct measurements *m = comparing->of->measurements;
    const struct groups *settings = &m->settings;
    size_t count = 0, merged = 0;
    for (size_t i = settings->first[setting]; i < settings->first[setting + 1]; i++) {
        uint32_t row = settings->rows[i];
        if (!m->left_out[row] && side_of(comparing, row) == side)
            sample->items[count++] = (struct replicate_value){comparing->keys[row], comparing->values[row]};
    }
    qsort(sample->items, count, sizeof *sample->items, compare_keys);
    for (size_t i = 0, end; i < count; i = end) {
        double sum = 0;
        for (end = i; end < count && sample->items[end].key == sample->items[i].key; end++)
            sum += sample->items[end].value;
        sample->items[merged++] = (struct replicate_value){sample->items[i].key, sum / (double)(end - i)};
    }
    sample->count = merged;
    summarize_sample(sample);
}

/* Compares one setting, if both sides have values of it; else counts it as measured on one side only. */
static void compare_setting(struct comparing *comparing, size_t setting, struct sample samples[SIDES]) {
    struct difference *of = comparing->of;
    for (size_t side = 0; side < SIDES; side++)
        collect_sample(comparing, setting, side, &samples[side]);
    const struct sample *base = &samples[0], *now = &samples[1];
    if (base->count == 0 || now->count == 0) {
        of->only[0] += base->count > 0;
        of->only[1] += now->count > 0;
        return;
    }
    struct difference_setting *item = &of->items[of->count++];
    *item =
        (struct difference_setting){.setting = setting, .difference = compare_samples(of->method, samples)};
    for (size_t side = 0; side < SIDES; side++) {
        item->means[side] = of->is_logarithmic ? exp(samples[side].mean) : samples[side].mean;
        item->replicates[side] = samples[side].count;
    }
    double variance = isnan(now->variance) ? base->variance : (base->variance + now->variance) / 2;
    item->standardised = item->difference.size / sqrt(variance);
}

/* ---- What counts as a replicate */

/* Counts the different CODES of the used rows of each side. True: both sides have the same codes. */
static bool count_codes(const struct comparing *comparing, const uint32_t *codes, size_t levels,
                        size_t ret_counts[SIDES]) {
    const struct measurements *m = comparing->of->measurements;
    cleanup_free bool *seen = xcalloc(SIDES * levels + 1, sizeof *seen);
    bool are_same = true;
    ret_counts[0] = ret_counts[1] = 0;
    for (size_t row = 0; row < m->row_count; row++)
        if (!m->left_out[row])
            seen[side_of(comparing, row) * levels + codes[row]] = true;
    for (size_t level = 0; level < levels; level++) {
        are_same = are_same && seen[level] == seen[levels + level];
        for (size_t side = 0; side < SIDES; side++)
            ret_counts[side] += seen[side * levels + level];
    }
    return are_same;
}

/* Is there a setting with two values or more on both sides? */
static bool has_repetitions(const struct comparing *comparing, struct sample samples[SIDES]) {
    bool has = false;
    for (size_t g = 0; g < comparing->of->measurements->settings.count && !has; g++) {
        for (size_t side = 0; side < SIDES; side++)
            collect_sample(comparing, g, side, &samples[side]);
        has = samples[0].count > 1 && samples[1].count > 1;
    }
    return has;
}

/* Chooses what counts as a replicate (difference.h), and sets each row's key and, for blocks and units, its
 * cluster. */
static void choose_method(struct comparing *comparing, struct sample samples[SIDES]) {
    struct difference *of = comparing->of;
    const struct measurements *m = of->measurements;
    const struct table_category *nodes = m->cores - 1;
    size_t counts[SIDES];
    const uint32_t *const codes[] = {m->runs, m->nodes};
    const double *numbers[] = {m->block};
    for (size_t row = 0; row < m->row_count; row++)
        comparing->keys[row] = (uint32_t)row;
    (void)count_codes(comparing, m->runs, of->runs, counts);
    if (counts[0] >= RUNS_LEAST) {
        of->method = DIFFERENCE_RUNS;
        memcpy(comparing->keys, m->runs, m->row_count * sizeof *comparing->keys);
        return;
    }
    if (count_codes(comparing, m->nodes, nodes->level_count, counts) && counts[0] >= NODES_LEAST) {
        of->method = DIFFERENCE_NODES;
        memcpy(comparing->keys, m->nodes, m->row_count * sizeof *comparing->keys);
        return;
    }
    of->method = has_repetitions(comparing, samples) ? DIFFERENCE_UNITS : DIFFERENCE_SETTINGS;
    if (of->method == DIFFERENCE_SETTINGS)
        return;
    const struct folds_columns blocks = {numbers, codes, m->block != NULL, 2};
    comparing->cluster_count = folds_units(&blocks, m->row_count, comparing->clusters);
    (void)count_codes(comparing, comparing->clusters, comparing->cluster_count, counts);
    if (counts[0] >= BLOCKS_LEAST && counts[1] >= BLOCKS_LEAST) {
        of->method = DIFFERENCE_BLOCKS;
        return;
    }
    numbers[0] = m->order;
    const struct folds_columns moments = {numbers, codes, 1, 2};
    comparing->cluster_count = folds_units(&moments, m->row_count, comparing->clusters);
}

/* ---- The whole */

struct tally {
    double sum;
    size_t count;
};

/* For each key (run or node) of SIDE, adds up its values over the compared settings, and how many settings it
 * has. */
static void tally_settings(const struct comparing *comparing, struct sample *sample, size_t side,
                           struct tally *tallies) {
    for (size_t i = 0; i < comparing->of->count; i++) {
        collect_sample(comparing, comparing->of->items[i].setting, side, sample);
        for (size_t k = 0; k < sample->count; k++) {
            tallies[sample->items[k].key].sum += sample->items[k].value;
            tallies[sample->items[k].key].count++;
        }
    }
}

/* The whole by runs or nodes: those that measured every setting count with their mean over the settings. */
static struct difference_estimate compare_tallies(const struct comparing *comparing, size_t keys,
                                                  struct sample samples[SIDES]) {
    const struct difference *of = comparing->of;
    struct sample means[SIDES] = {0};
    for (size_t side = 0; side < SIDES; side++) {
        cleanup_free struct tally *tallies = xcalloc(keys + 1, sizeof *tallies);
        means[side].items = xcalloc(keys + 1, sizeof *means->items);
        tally_settings(comparing, &samples[side], side, tallies);
        for (size_t key = 0; key < keys; key++)
            if (tallies[key].count == of->count)
                means[side].items[means[side].count++] =
                    (struct replicate_value){(uint32_t)key, tallies[key].sum / (double)of->count};
        summarize_sample(&means[side]);
    }
    struct difference_estimate ret = compare_samples(of->method, means);
    free(means[0].items), free(means[1].items);
    return ret;
}

/* The whole by blocks or units: the variance of the mean difference of all settings, from the contribution of
 * each cluster of rows (cluster-robust variance: K.-Y. Liang, S. Zeger, Biometrika 73, 1986). */
static struct difference_estimate compare_clusters(const struct comparing *comparing,
                                                   struct sample samples[SIDES]) {
    const struct difference *of = comparing->of;
    cleanup_free double *parts = xcalloc(comparing->cluster_count + 1, sizeof *parts);
    cleanup_free bool *sides = xcalloc(comparing->cluster_count + 1, sizeof *sides);
    double size = 0, settings = (double)of->count, variances[SIDES] = {0}, freedoms[SIDES] = {0},
           used[SIDES] = {0};
    for (size_t i = 0; i < of->count; i++)
        for (size_t side = 0; side < SIDES; side++) {
            struct sample *sample = &samples[side];
            collect_sample(comparing, of->items[i].setting, side, sample);
            size += (side ? 1 : -1) * sample->mean / settings;
            for (size_t k = 0; k < sample->count; k++) { /* keys are rows */
                uint32_t cluster = comparing->clusters[sample->items[k].key];
                parts[cluster] +=
                    (sample->items[k].value - sample->mean) / (settings * (double)sample->count);
                sides[cluster] = side;
            }
            used[side] += (double)sample->count;
        }
    for (size_t cluster = 0; cluster < comparing->cluster_count; cluster++)
        variances[sides[cluster]] += parts[cluster] * parts[cluster];
    size_t counts[SIDES];
    (void)count_codes(comparing, comparing->clusters, comparing->cluster_count, counts);
    for (size_t side = 0; side < SIDES; side++) {
        double clusters = (double)counts[side];
        freedoms[side] =
            of->method == DIFFERENCE_BLOCKS ? clusters - 1 : fmin(clusters, used[side]) - settings;
        variances[side] *= of->method == DIFFERENCE_BLOCKS ? clusters / (clusters - 1)
                                                           : used[side] / (used[side] - settings);
    }
    return freedoms[0] >= 1 && freedoms[1] >= 1 ? compare_variances(size, variances, freedoms)
                                                : make_estimate(size, NAN, NAN);
}

/* The whole when nothing was measured twice: each setting's difference is one value. */
static struct difference_estimate compare_settings(const struct difference *of) {
    struct sample sample = {.items = xcalloc(of->count + 1, sizeof *sample.items), .count = of->count};
    for (size_t i = 0; i < of->count; i++)
        sample.items[i].value = of->items[i].difference.size;
    summarize_sample(&sample);
    free(sample.items);
    return make_estimate(sample.mean, sample.variance / (double)of->count, (double)of->count - 1);
}

/* Estimates the mean difference over all settings, by the method that was chosen. */
static struct difference_estimate compare_whole(const struct comparing *comparing,
                                                struct sample samples[SIDES]) {
    const struct difference *of = comparing->of;
    if (of->method == DIFFERENCE_SETTINGS)
        return compare_settings(of);
    if (of->method == DIFFERENCE_RUNS)
        return compare_tallies(comparing, of->runs, samples);
    if (of->method == DIFFERENCE_NODES)
        return compare_tallies(comparing, (of->measurements->cores - 1)->level_count, samples);
    return compare_clusters(comparing, samples);
}

/* ---- Decisions */

/* 1: better, -1: worse, 0: no difference is shown, or it is below the least one that counts. BASE: the mean
 * before. */
static int decide(const struct difference *of, const struct difference_estimate *estimate, double base) {
    double share = of->is_logarithmic ? expm1(estimate->size) : estimate->size / fabs(base);
    if (!(estimate->p < P_MOST) || fabs(share) < of->least)
        return 0;
    return (estimate->size > 0) == of->measurements->most ? 1 : -1;
}

/* Adjusts p by Holm over the tested settings, and decides which settings, and the whole, are better or worse.
 */
static void adjust_and_decide(struct difference *of) {
    cleanup_free double *p = xcalloc(of->count + 1, sizeof *p);
    double base = 0;
    for (size_t i = 0; i < of->count; i++) {
        base += of->items[i].means[0] / (double)of->count;
        p[i] = of->items[i].difference.p;
        of->tested += !isnan(p[i]);
    }
    holm_adjust(p, of->count);
    for (size_t i = 0; i < of->count; i++) {
        struct difference_setting *item = &of->items[i];
        item->difference.p = p[i];
        item->sign = decide(of, &item->difference, item->means[0]);
        of->better += item->sign > 0;
        of->worse += item->sign < 0;
    }
    of->sign = decide(of, &of->whole, base);
}

/* Compares NEW with BASE, for each setting and as a whole. Values are compared as logarithms if all are
 * positive. */
int difference_find(const struct measurements *measurements, size_t new_run, double least,
                    struct difference *ret, struct failure *failure) {
    const struct measurements *m = measurements;
    const struct table_input *inputs = m->table->inputs;
    *ret = (struct difference){.measurements = m,
                               .new_run = new_run,
                               .runs = m->table->input_count,
                               .least = least,
                               .is_logarithmic = true,
                               .items = xcalloc(m->settings.count + 1, sizeof *ret->items)};
    cleanup_free double *values = xcalloc(m->row_count + 1, sizeof *values);
    cleanup_free uint32_t *codes = xcalloc(2 * m->row_count + 1, sizeof *codes);
    struct comparing comparing = {
        .of = ret, .values = values, .clusters = codes, .keys = codes + m->row_count};
    struct sample samples[SIDES] = {{0}};
    for (size_t row = 0; row < m->row_count; row++)
        ret->is_logarithmic = ret->is_logarithmic && (m->left_out[row] || m->values[row] > 0);
    for (size_t row = 0; row < m->row_count; row++)
        values[row] = ret->is_logarithmic && !m->left_out[row] ? log(m->values[row]) : m->values[row];
    for (size_t side = 0; side < SIDES; side++)
        samples[side].items = xcalloc(m->row_count + 1, sizeof *samples->items);
    choose_method(&comparing, samples);
    for (size_t g = 0; g < m->settings.count; g++)
        compare_setting(&comparing, g, samples);
    if (ret->count > 0) {
        ret->whole = compare_whole(&comparing, samples);
        adjust_and_decide(ret);
    }
    free(samples[0].items), free(samples[1].items);
    return ret->count > 0
               ? 0
               : failure_input(failure, inputs[new_run].path, 0, 0,
                               "no setting has a value of '%s' both in this run and in the runs "
                               "before it: %zu settings have a value only in the runs before, and %zu "
                               "only in this run; compare runs of the same design, or add "
                               "--with-flagged to use rows that gates flagged",
                               m->response, ret->only[0], ret->only[1]);
}

void difference_clear(struct difference *difference) {
    free(difference->items);
    *difference = (struct difference){0};
}

/* ---- The report */

/* A ratio that differs from 1 by rounding alone is 1. */
static double shown_size(const struct difference *of, double size) {
    if (!of->is_logarithmic)
        return size;
    return fabs(size) < ROUNDING ? 0 : 100 * expm1(size);
}

/* Adds the verdict and the figures of the whole. */
static void report_whole(struct report_section *in, const struct difference *of) {
    static const char *const methods[] = {
        [DIFFERENCE_RUNS] = "each earlier run counts once; the new run is tested as one more run "
                            "(Student's t)",
        [DIFFERENCE_NODES] = "each node counts once, paired with itself (Student's t)",
        [DIFFERENCE_BLOCKS] = "settings are compared over their units (Welch's t-test), the whole "
                              "over blocks of nodes; the scatter between runs is not known: give at "
                              "least 3 runs before the new run",
        [DIFFERENCE_UNITS] = "settings are compared over their units (Welch's t-test); the scatter "
                             "between runs is not known: give at least 3 runs before the new run",
        [DIFFERENCE_SETTINGS] = "each setting was measured once: only the whole is tested, over the "
                                "settings, and no setting by itself",
    };
    const struct measurements *m = of->measurements;
    const struct difference_estimate *whole = &of->whole;
    const char *unit = of->is_logarithmic ? "%" : unit_label(m->unit);
    static const char *const words[] = {"worse", "no difference shown", "better"};
    cleanup_free char *interval =
        isnan(whole->p) ? xstrdup("not tested: too few measurements")
                        : xformat("95 %% interval %+.3g to %+.3g %s, p = %.2g", shown_size(of, whole->low),
                                  shown_size(of, whole->high), unit, whole->p);
    cleanup_free char *sentence =
        xformat("%s: %s changed by %+.3g %s over %zu setting%s (%s); settings tested: "
                "%zu, of which worse: %zu, better: %zu",
                words[of->sign + 1], m->response, shown_size(of, whole->size), unit, of->count,
                of->count == 1 ? "" : "s", interval, of->tested, of->worse, of->better);
    report_verdict(in, "verdict",
                   of->sign < 0 || of->worse > 0 ? REPORT_NOT_USABLE
                   : isnan(whole->p)             ? REPORT_UNKNOWN
                                                 : REPORT_USABLE,
                   sentence);
    report_text(in, "response", NULL, m->response, true);
    report_text(in, "best_is", NULL, m->most ? "most" : "least", true);
    report_number(in, "difference", NULL, shown_size(of, whole->size), unit, 4, true);
    report_number(in, "difference_low", NULL, shown_size(of, whole->low), unit, 4, true);
    report_number(in, "difference_high", NULL, shown_size(of, whole->high), unit, 4, true);
    report_number(in, "p", NULL, whole->p, "1", 3, true);
    report_number(in, "tested", NULL, (double)of->tested, "1", 0, true);
    report_number(in, "better", NULL, (double)of->better, "1", 0, true);
    report_number(in, "worse", NULL, (double)of->worse, "1", 0, true);
    report_number(in, "only_base", "settings only before", (double)of->only[0], "1", 0, of->only[0] == 0);
    report_number(in, "only_new", "settings only in the new run", (double)of->only[1], "1", 0,
                  of->only[1] == 0);
    report_text(in, "method", NULL, methods[of->method], false);
}

/* Adds the table of the settings that both sides have. */
static void report_settings(struct report_section *in, const struct difference *of) {
    static const char *const standings[] = {"worse", "", "better"};
    const struct measurements *m = of->measurements;
    const char *unit = of->is_logarithmic ? "%" : m->unit;
    const struct column figures[] = {
        {.name = "base", .unit = m->unit, .digits = 5},
        {.name = "new", .unit = m->unit, .digits = 5},
        {.name = "base_replicates", .unit = "1", .detail = true},
        {.name = "new_replicates", .unit = "1", .detail = true},
        {.name = "difference", .unit = unit, .digits = 3},
        {.name = "low", .label = "95 % from", .unit = unit, .digits = 3},
        {.name = "high", .label = "to", .unit = unit, .digits = 3},
        {.name = "p_adjusted", .label = "adjusted p", .unit = "1", .digits = 2},
        {.name = "standardised", .unit = "1", .digits = 3, .detail = true},
        {.name = "standing", .label = "", .type = COLUMN_STRING},
    };
    enum { FIGURES = sizeof figures / sizeof *figures };
    struct report_table *table = answer_settings_table(in, m, figures, FIGURES);
    for (size_t i = 0; i < of->count; i++) {
        const struct difference_setting *item = &of->items[i];
        const struct difference_estimate *found = &item->difference;
        const double cells[] = {item->means[0],
                                item->means[1],
                                (double)item->replicates[0],
                                (double)item->replicates[1],
                                shown_size(of, found->size),
                                shown_size(of, found->low),
                                shown_size(of, found->high),
                                found->p,
                                item->standardised};
        answer_setting_cells(table, m, item->setting);
        for (size_t c = 0; c < FIGURES - 1; c++)
            report_cell(table, cells[c]);
        report_cell_text(table, isnan(found->p) ? "not tested" : standings[item->sign + 1]);
    }
}

void difference_report(struct report_section *in, const struct difference *difference) {
    const struct measurements *m = difference->measurements;
    report_whole(in, difference);
    report_settings(in, difference);
    if (m->all_flagged)
        report_note(in, REPORT_WARNING,
                    "every measurement was flagged (%s); all are used nevertheless, so do "
                    "not trust the result",
                    m->flags);
    const struct table *table = m->table;
    for (size_t i = 0; i < table->note_count; i++)
        report_note(in, REPORT_NOTE, "%s", table->notes[i]);
}
