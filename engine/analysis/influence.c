#include "engine/analysis/influence.h"

#include "engine/analysis/effects.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_BYTES_MAX = 4096 };

/* The rows that are used, and the factors that may matter. */
struct influence {
    const struct measurements *measurements;
    double *y, *order;
    uint32_t **codes;
    struct effects_factor *factors;
    const char **names;
    size_t rows, factor_count, own_count; /* own: factors of the design, which come first */
    size_t *own;                          /* of measurements->factors */
    struct text following, unknown;       /* names of what is left out of the table, for people */
    bool is_logarithmic;
};

static void influence_clear(struct influence *influence) {
    for (size_t f = 0; f < influence->factor_count; f++)
        free(influence->codes[f]);
    free(influence->codes), free(influence->factors), free(influence->names), free(influence->y);
    free(influence->order), free(influence->own);
    text_clear(&influence->following), text_clear(&influence->unknown);
}

/* Adds the category number CATEGORY as a factor called NAME. */
static void add_levels(struct influence *influence, const char *name, size_t category, bool is_nuisance) {
    const struct measurements *measurements = influence->measurements;
    const struct table_category *levels = &measurements->table->categories[category];
    size_t f = influence->factor_count++, used = 0;
    influence->names[f] = name;
    influence->codes[f] = xcalloc(influence->rows + 1, sizeof(uint32_t));
    for (size_t row = 0; row < measurements->row_count; row++)
        if (!measurements->left_out[row])
            influence->codes[f][used++] = levels->codes[row];
    influence->factors[f] = (struct effects_factor){
        .codes = influence->codes[f], .level_count = levels->level_count, .is_nuisance = is_nuisance};
}

/* Chooses the rows that are used. The response is replaced by its logarithm if all are positive. */
static void choose_rows(struct influence *influence) {
    const struct measurements *measurements = influence->measurements;
    const double *order = measurements->order;
    influence->is_logarithmic = true;
    influence->y = xcalloc(measurements->row_count + 1, sizeof *influence->y);
    influence->order = xcalloc(measurements->row_count + 1, sizeof *influence->order);
    for (size_t row = 0; row < measurements->row_count; row++) {
        if (measurements->left_out[row])
            continue;
        influence->order[influence->rows] = isfinite(order[row]) ? order[row] : 0;
        influence->y[influence->rows++] = measurements->values[row];
        influence->is_logarithmic = influence->is_logarithmic && measurements->values[row] > 0;
    }
    for (size_t i = 0; influence->is_logarithmic && i < influence->rows; i++)
        influence->y[i] = log(influence->y[i]);
}

/* Does each level of factor A, in the rows that are used, go with only one level of factor B? */
static bool is_determined_by(const struct influence *influence, size_t a, size_t b) {
    const struct measurements *measurements = influence->measurements;
    const struct table_category *from = &measurements->table->categories[a], *to = from - a + b;
    cleanup_free uint32_t *levels = xcalloc(from->level_count + 1, sizeof *levels); /* of B, and 1; 0: none */
    bool does = true;
    for (size_t row = 0; row < measurements->row_count && does; row++) {
        if (measurements->left_out[row])
            continue;
        uint32_t *level = &levels[from->codes[row]];
        does = *level == 0 || *level == to->codes[row] + 1;
        *level = to->codes[row] + 1;
    }
    return does;
}

/* The factor from which factor F follows, as lda does where it is m; that of two that say the same is the
 * first. SIZE_MAX: none. */
static size_t find_source(const struct influence *influence, size_t f) {
    const struct measured_factor *factors = influence->measurements->factors;
    for (size_t other = 0; other < influence->measurements->factor_count; other++)
        if (other != f && factors[other].varies && is_determined_by(influence, other, f) &&
            (other < f || !is_determined_by(influence, f, other)))
            return other;
    return SIZE_MAX;
}

/* Chooses the factors that vary and are not determined by others, and as nuisances the node and, in a single
 * run, the order. */
static void choose_factors(struct influence *influence) {
    const struct measurements *measurements = influence->measurements;
    size_t count = measurements->factor_count, nodes = count;
    influence->codes = xcalloc(count + 2, sizeof(uint32_t *));
    influence->factors = xcalloc(count + 2, sizeof *influence->factors);
    influence->names = xcalloc(count + 2, sizeof *influence->names);
    influence->own = xcalloc(count + 1, sizeof *influence->own);
    for (size_t f = 0; f < count; f++) {
        size_t source = measurements->factors[f].varies ? find_source(influence, f) : SIZE_MAX;
        if (!measurements->factors[f].varies)
            continue;
        if (source < SIZE_MAX) {
            (void)text_printf(&influence->following, "%s%s from %s", influence->following.length ? ", " : "",
                              measurements->factors[f].column->name,
                              measurements->factors[source].column->name);
            continue;
        }
        influence->own[influence->own_count++] = f;
        add_levels(influence, measurements->factors[f].column->name, f, false);
    }
    if (measurements->table->categories[nodes].level_count > 1)
        add_levels(influence, "node", nodes, true);
    if (measurements->table->input_count > 1)
        return; /* each run has an order of its own */
    size_t order = influence->factor_count++;
    influence->names[order] = "order of measurement";
    influence->factors[order] = (struct effects_factor){.values = influence->order, .is_nuisance = true};
}

/* The best and the worst measured level of own factor F, and by how much the worst is worse: in %, or in the
 * response's unit. */
static void find_extremes(const struct influence *influence, const struct effects *effects, size_t f,
                          size_t *ret_best, size_t *ret_worst, double *ret_difference) {
    const struct effects_factor *factor = &influence->factors[f];
    const double *levels = effects->level_effects[f];
    cleanup_free bool *is_used = xcalloc(factor->level_count, sizeof *is_used);
    bool more = influence->measurements->most, has_any = false;
    for (size_t row = 0; row < influence->rows; row++)
        is_used[factor->codes[row]] = true;
    for (size_t level = 0; level < factor->level_count; level++) {
        if (!is_used[level])
            continue;
        if (!has_any || (more ? levels[level] > levels[*ret_best] : levels[level] < levels[*ret_best]))
            *ret_best = level;
        if (!has_any || (more ? levels[level] < levels[*ret_worst] : levels[level] > levels[*ret_worst]))
            *ret_worst = level;
        has_any = true;
    }
    *ret_difference = levels[*ret_worst] - levels[*ret_best];
    if (influence->is_logarithmic)
        *ret_difference = 100 * expm1(*ret_difference);
}

/* Adds one term to TABLE. A term that cannot be separated from others is listed as unknown instead. */
static void report_term(struct influence *influence, const struct effects *effects,
                        const struct effect *effect, struct report_table *table) {
    size_t a = effect->factors[0], b = effect->factors[1], best = 0, worst = 0;
    double difference;
    cleanup_free char *pair = xformat("%s x %s", influence->names[a], influence->names[b]);
    const char *name = effect->order == 2 ? pair : influence->names[a];
    if (effect->freedom == 0) {
        (void)text_printf(&influence->unknown, "%s%s", influence->unknown.length ? ", " : "", name);
        return;
    }
    report_cell_text(table, name);
    report_cell(table, 100 * effect->share);
    report_cell(table, effect->freedom);
    report_cell(table, effect->p);
    bool is_size = a < influence->own_count && influence->own[a] < influence->measurements->size_count;
    if (effect->order == 2 || influence->factors[a].is_nuisance || is_size) {
        report_cell_text(table, NULL), report_cell_text(table, NULL), report_cell(table, NAN);
        return;
    }
    char **levels = influence->measurements->table->categories[influence->own[a]].levels;
    find_extremes(influence, effects, a, &best, &worst, &difference);
    report_cell_text(table, levels[best]), report_cell_text(table, levels[worst]);
    report_cell(table, difference);
}

/* Adds the table of terms, what was left out, and the assumptions. */
static void report_terms(struct influence *influence, const struct effects *effects,
                         struct report_section *in) {
    const struct column columns[] = {
        {.name = "term", .type = COLUMN_STRING},
        {.name = "share", .label = "share of the variance", .unit = "%", .digits = 3},
        {.name = "freedom", .label = "degrees of freedom", .unit = "1", .digits = 6, .detail = true},
        {.name = "p", .unit = "1", .digits = 2},
        {.name = "best", .label = "best level", .type = COLUMN_STRING},
        {.name = "worst", .label = "worst level", .type = COLUMN_STRING},
        {.name = "difference",
         .label = "worst to best",
         .unit = influence->is_logarithmic ? "%" : influence->measurements->unit,
         .digits = 3},
    };
    struct report_table *table = report_table(in, "terms", "", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < effects->count; i++)
        report_term(influence, effects, &effects->items[i], table);
    if (influence->following.length > 0)
        report_text(in, "following", "left out, as other factors determine them", influence->following.bytes,
                    false);
    if (influence->unknown.length > 0)
        report_text(in, "unknown", "left out, as the design cannot separate them from other factors",
                    influence->unknown.bytes, false);
    report_number(in, "residual_share", "left over", 100 * effects->residual_share, "%", 3, false);
    report_number(in, "residual_freedom", "degrees of freedom of the residuals", effects->residual_freedom,
                  "1", 6, true);
    report_text(in, "scale", NULL,
                influence->is_logarithmic ? "logarithm of the response: effects multiply"
                                          : "the response itself: effects add",
                true);
    report_text(
        in, "assumptions", NULL,
        effects->residual_freedom == 0 ? "each setting was measured once: shares cannot be separated from "
                                         "scatter; set 'repetitions: 3' in the design"
        : effects->has_interactions ? "independent normal residuals of equal variance; interactions of two "
                                      "factors but not of three; no interactions with nodes or order"
                                    : "independent normal residuals of equal variance; no interactions, "
                                      "because the measurements are too few to estimate them",
        false);
}

void influence_report(struct report_section *in, const struct measurements *measurements) {
    cleanup(influence_clear) struct influence influence = {.measurements = measurements};
    cleanup(effects_clear) struct effects effects = {0};
    text_init(&influence.following, NAMES_BYTES_MAX);
    text_init(&influence.unknown, NAMES_BYTES_MAX);
    choose_rows(&influence);
    if (influence.rows == 0)
        return;
    struct report_section *section = report_section(in, "influence", "What the response depends on", false);
    choose_factors(&influence);
    int r = effects_find(influence.y, influence.rows, influence.factors, influence.factor_count, &effects);
    if (r == 0)
        report_terms(&influence, &effects, section);
    else
        report_note(section, REPORT_LINE,
                    influence.own_count == 0
                        ? "no factor varies: the run shows only how much the response scatters"
                    : r == -EDOM  ? "all measurements are equal: the response depends on no factor"
                    : r == -E2BIG ? "the factors have more than 200 levels in all, the most accepted; "
                                    "model the response with 'assay fit'"
                                  : "the response was not analysed, because its values are too large or "
                                    "too small for a double");
}
