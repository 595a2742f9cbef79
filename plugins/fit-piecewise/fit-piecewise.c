/* The plugin fit-piecewise: see README.md for what it computes. */
#include "plugins/fit-piecewise/request.h"
#include "plugins/fit-piecewise/segmentation.h"
#include "plugins/interface/fit.h"
#include "plugins/numerics/growth.h"
#include "plugins/numerics/notes.h"

#include <errno.h>
#include <gsl/gsl_errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_MAX = 1 << 24,
    VALUES_MAX = 16,
};

/* Where a row's chain ends. */
static const uint32_t none = UINT32_MAX;

struct group_rows {
    uint32_t last; /* its rows, each pointing to the one before it */
    uint32_t count;
    uint64_t incomplete; /* with an empty field, or one that is not finite */
    uint64_t not_above_zero;
    uint64_t weightless;
};

struct fit {
    const struct plugin_host *host;
    const struct fit_request *request;
    struct request asked;
    const char *needs[3]; /* size, response, weights */
    size_t need_count;
    struct point_row *rows;
    uint32_t *before; /* of each row: the row of its group before it */
    size_t row_count, row_capacity, before_capacity;
    struct group_rows *groups;
    size_t group_count, group_capacity;
};

/* ---- Beginning */

static void piecewise_close(struct fit *fit) {
    if (!fit)
        return;
    free(fit->rows);
    free(fit->before);
    free(fit->groups);
    free(fit);
}

static int piecewise_open(const struct plugin_host *host, const struct fit_request *request, struct fit **ret,
                          struct fit_needs *ret_needs, struct plugin_message *message) {
    /* GSL's default is to abort; the distribution that is asked for cannot fail. */
    gsl_set_error_handler_off();
    struct fit *fit = calloc(1, sizeof *fit);
    if (!fit)
        return -ENOMEM;
    fit->host = host;
    fit->request = request;
    int r = request_read(host, request, &fit->asked, message);
    if (r < 0) {
        piecewise_close(fit);
        return r;
    }
    fit->needs[0] = fit->asked.over;
    fit->needs[1] = request->response;
    fit->need_count = 2;
    if (request->weights && strcmp(request->weights, fit->asked.over) != 0)
        fit->needs[fit->need_count++] = request->weights;
    *ret = fit;
    *ret_needs =
        (struct fit_needs){.size = sizeof *ret_needs, .columns = fit->needs, .column_count = fit->need_count};
    return 0;
}

/* ---- Rows */

static int grow(struct fit *fit, const struct fit_block *block) {
    if (growth_reserve(&fit->groups, &fit->group_capacity, block->group_count, sizeof *fit->groups) < 0)
        return -ENOMEM;
    for (; fit->group_count < block->group_count; fit->group_count++)
        fit->groups[fit->group_count] = (struct group_rows){.last = none};
    size_t rows = fit->row_count + block->rows;
    int r = growth_reserve(&fit->rows, &fit->row_capacity, rows, sizeof *fit->rows);
    return r < 0 ? r : growth_reserve(&fit->before, &fit->before_capacity, rows, sizeof *fit->before);
}

static bool needs_above_zero(const struct fit *fit) {
    return fit->asked.criterion == CRITERION_RELATIVE || fit->asked.criterion == CRITERION_LOG;
}

static bool is_usable(const struct fit *fit, const struct point_row *row, struct group_rows *group) {
    if (!isfinite(row->x) || !isfinite(row->y) || !isfinite(row->weight)) {
        group->incomplete++;
        return false;
    }
    if (needs_above_zero(fit) && row->y <= 0) {
        group->not_above_zero++;
        return false;
    }
    if (row->weight == 0) {
        group->weightless++;
        return false;
    }
    return true;
}

static int piecewise_block(struct fit *fit, const struct fit_block *block, struct plugin_message *message) {
    int r = grow(fit, block);
    const double *weights = fit->request->weights ? block->columns[fit->need_count == 3 ? 2 : 0] : NULL;
    for (size_t i = 0; r >= 0 && i < block->rows; i++) {
        struct point_row row = {block->columns[0][i], block->columns[1][i], weights ? weights[i] : 1};
        struct group_rows *group = &fit->groups[block->groups[i]];
        if (row.weight < 0) {
            char place[PLUGIN_PLACE_SIZE];
            snprintf(message->text, sizeof message->text, "the weight '%s' of %s is %g; expected 0 or more",
                     fit->request->weights,
                     fit->host->place(fit->host->context, block->first_row + i, place, sizeof place),
                     row.weight);
            return -EINVAL;
        }
        if (!is_usable(fit, &row, group))
            continue;
        if (fit->row_count == ROWS_MAX) {
            snprintf(message->text, sizeof message->text,
                     "more than %d rows; expected fewer: segments need all rows in memory", ROWS_MAX);
            return -EINVAL;
        }
        fit->rows[fit->row_count] = row;
        fit->before[fit->row_count] = group->last;
        group->last = (uint32_t)fit->row_count++;
        group->count++;
    }
    return r;
}

static int piecewise_end_of_pass(struct fit *fit, struct plugin_message *message) {
    if (fit->group_count > 0)
        return FIT_DONE;
    snprintf(message->text, sizeof message->text, "there are no rows to fit");
    return -EINVAL;
}

/* ---- Results */

static uint64_t left_out(const struct group_rows *group) {
    return group->incomplete + group->not_above_zero;
}

/* Which sizes a line is not above 0 at: below the first zero, above the last, or between two breaks. */
static void note_sunken(const struct segmentation *result, const char *over, struct notes *notes) {
    const struct sunken_line *sunken = &result->sunken;
    const struct segment *segment = &result->segments[sunken->first];
    char where[64], others[64] = "";
    if (sunken->first == 0 && sunken->low == result->points[0].x)
        snprintf(where, sizeof where, "below %.7g", sunken->high);
    else if (segment->end == result->point_count && sunken->high == result->points[segment->end - 1].x)
        snprintf(where, sizeof where, "above %.7g", sunken->low);
    else
        snprintf(where, sizeof where, "from %.7g to %.7g", sunken->low, sunken->high);
    if (sunken->segments > 1)
        snprintf(others, sizeof others, " and in %zu more segment%s", sunken->segments - 1,
                 sunken->segments == 2 ? "" : "s");
    notes_add(notes, "predicts 0 or less for %.100s %s%s, where all that was measured is above 0", over,
              where, others);
}

static void make_notes(const struct fit *fit, const struct group_rows *group,
                       const struct segmentation *result, struct notes *notes) {
    notes->count = 0;
    notes_add_left_out(notes, group->incomplete, "a value is empty or not finite");
    notes_add_left_out(notes, group->not_above_zero,
                       "the response is not above 0, which this criterion cannot measure");
    if (result->given_left_out > 0)
        notes_add(notes, "%zu of the given breaks left out: nothing was measured on one side",
                  result->given_left_out);
    if (result->greatest)
        notes_add(notes, "as many segments as there is room for: the criterion overfits; expected most=N, a "
                         "greater minimum, or bic");
    if (!(result->rss > 0))
        notes_add(notes, "the lines explain the response to its last digit: standard errors are zero or not "
                         "defined");
    if (result->rounds > 0 && !result->settled)
        notes_add(notes,
                  "the breaks of the log error went in a circle after %zu rounds; these are the best of them",
                  result->rounds);
    if (result->below_zero > 0)
        notes_add(
            notes,
            "at %zu value%s of %.100s the line is not above 0: relative error in place of log error there",
            result->below_zero, result->below_zero == 1 ? "" : "s", fit->asked.over);
    if (result->sunken.segments > 0 && group->not_above_zero == 0)
        note_sunken(result, fit->asked.over, notes);
}

static size_t make_values(const struct segmentation *result, const struct segment *segment,
                          const struct group_rows *group, int power, struct fit_value *values) {
    const struct line *line = &segment->line;
    size_t count = 0;
    values[count++] = (struct fit_value){"sigma", line->sigma, power};
    values[count++] = (struct fit_value){"rss", line->rss, 2 * power};
    values[count++] = (struct fit_value){"degrees_of_freedom", line->degrees, 0};
    values[count++] = (struct fit_value){"r2", line->r2, 0};
    values[count++] = (struct fit_value){"points", (double)(segment->end - segment->first), 0};
    if (segment != result->segments) {
        values[count++] = (struct fit_value){"break_low", segment->break_low, 0};
        values[count++] = (struct fit_value){"break_high", segment->break_high, 0};
        return count;
    }
    values[count++] = (struct fit_value){"segments", (double)result->segment_count, 0};
    values[count++] = (struct fit_value){"total_rss", result->rss, 2 * power};
    values[count++] = (struct fit_value){"log_likelihood", result->log_likelihood, 0};
    values[count++] = (struct fit_value){"aic", result->aic, 0};
    values[count++] = (struct fit_value){"bic", result->bic, 0};
    values[count++] = (struct fit_value){"rows_left_out", (double)left_out(group), 0};
    return count;
}

/* What one part points to. */
struct part_room {
    struct fit_value values[VALUES_MAX];
    struct plugin_range domain;
    struct plugin_noise noise;
    double coefficients[2];
};

/* Squares of what a double holds may be beyond it. */
static bool is_noise_told(const struct fit *fit, const struct part_room *room,
                          const struct segment *segment) {
    return !fit->request->weights && isfinite(segment->noise) && isfinite(room->noise.constant) &&
           isfinite(room->coefficients[1]);
}

static void make_part(const struct fit *fit, const struct segmentation *result, size_t i,
                      const struct group_rows *group, struct part_room *room, struct fit_part *ret) {
    const struct segment *segment = &result->segments[i];
    const struct line *line = &segment->line;
    bool relative = needs_above_zero(fit);
    room->domain = (struct plugin_range){fit->asked.over, result->points[segment->first].x,
                                         result->points[segment->end - 1].x};
    room->noise = (struct plugin_noise){.size = sizeof room->noise,
                                        .kind = relative ? "N-2" : "N-1",
                                        .distribution = "normal",
                                        .method = "least-squares",
                                        .constant = segment->noise};
    room->coefficients[0] = room->coefficients[1] = 0;
    if (relative) { /* in proportion to the line */
        room->noise.constant = segment->noise * line->estimates[0].estimate;
        room->coefficients[1] = segment->noise * line->estimates[1].estimate;
        room->noise.coefficients = room->coefficients;
    }
    *ret = (struct fit_part){
        .size = sizeof *ret,
        .kind = "segment",
        .estimates = line->estimates,
        .covariance = line->has_covariance ? line->covariance : NULL,
        .values = room->values,
        .value_count = make_values(result, segment, group, relative ? 0 : 1, room->values),
        .domain = &room->domain,
        .domain_count = 1,
        .from = i == 0 ? -INFINITY : segment->from,
        .to = i + 1 < result->segment_count ? segment[1].from : INFINITY,
        .name = segment->name,
        .noise = is_noise_told(fit, room, segment) ? &room->noise : NULL,
    };
}

/* Sums are scaled and so may hold where what is to be told, in the columns' own units, does not. */
static bool can_be_told(const struct segmentation *result) {
    for (size_t i = 0; i < result->segment_count; i++) {
        const struct line *line = &result->segments[i].line;
        bool told = isfinite(line->estimates[0].estimate) && isfinite(line->estimates[1].estimate) &&
                    isfinite(line->rss);
        for (size_t k = 0; line->has_covariance && k < 4; k++)
            told = told && isfinite(line->covariance[k]);
        if (!told)
            return false;
    }
    return true;
}

static int write_group(const struct fit *fit, const struct fit_writer *writer, uint32_t code,
                       const struct segmentation *result) {
    const struct group_rows *group = &fit->groups[code];
    struct part_room *rooms = malloc(result->segment_count * sizeof *rooms);
    struct fit_part *parts = malloc(result->segment_count * sizeof *parts);
    int r = rooms && parts ? 0 : -ENOMEM;
    for (size_t i = 0; r >= 0 && i < result->segment_count; i++)
        make_part(fit, result, i, group, &rooms[i], &parts[i]);
    struct notes notes;
    make_notes(fit, group, result, &notes);
    const struct fit_group written = {
        .size = sizeof written,
        .code = code,
        .rows = group->count,
        .parts = parts,
        .part_count = result->segment_count,
        .notes = notes.pointers,
        .note_count = notes.count,
    };
    r = r < 0 ? r : writer->group(writer->context, &written);
    free(rooms);
    free(parts);
    return r;
}

static int write_skipped(const struct fit *fit, const struct fit_writer *writer, uint32_t code,
                         const char *reason) {
    const struct group_rows *group = &fit->groups[code];
    char text[SEGMENTATION_REASON_SIZE + 128];
    uint64_t count = left_out(group);
    if (count > 0)
        snprintf(text, sizeof text, "%s (%" PRIu64 " row%s left out: a value is empty, not finite%s)", reason,
                 count, count == 1 ? "" : "s", needs_above_zero(fit) ? " or not above 0" : "");
    else
        snprintf(text, sizeof text, "%s", reason);
    return writer->skipped(writer->context, code, group->count, text);
}

static int fit_group(const struct fit *fit, const struct fit_writer *writer, uint32_t code,
                     struct point_row *rows) {
    const struct group_rows *group = &fit->groups[code];
    size_t count = group->count;
    for (uint32_t row = group->last; row != none; row = fit->before[row])
        rows[--count] = fit->rows[row];
    struct segmentation result;
    char reason[SEGMENTATION_REASON_SIZE];
    int r = segmentation_fit(&fit->asked, rows, group->count, &result, reason);
    if (r == SEGMENTATION_FITTED && !can_be_told(&result)) {
        snprintf(reason, sizeof reason, "the lines are beyond the range of a double");
        r = SEGMENTATION_SKIPPED;
    }
    if (r == SEGMENTATION_FITTED)
        r = write_group(fit, writer, code, &result);
    else if (r == SEGMENTATION_SKIPPED)
        r = write_skipped(fit, writer, code, reason);
    segmentation_clear(&result);
    return r;
}

static int piecewise_finish(struct fit *fit, const struct fit_writer *writer,
                            struct plugin_message *message) {
    (void)message; /* whatever fails here is memory, or the writer, who knows */
    const struct plugin_factor factor = {.name = fit->asked.over, .power = 1};
    const struct plugin_term terms[] = {{"1", NULL, 0}, {fit->asked.over, &factor, 1}};
    const struct fit_formula formula = {sizeof formula, "piecewise", terms, 2, fit->asked.over, NULL};
    uint32_t greatest = 1;
    for (size_t i = 0; i < fit->group_count; i++)
        greatest = fit->groups[i].count > greatest ? fit->groups[i].count : greatest;
    struct point_row *rows = malloc(greatest * sizeof *rows);
    int r = rows ? writer->formula(writer->context, &formula) : -ENOMEM;
    for (uint32_t i = 0; r >= 0 && i < writer->group_count; i++)
        r = fit_group(fit, writer, writer->order[i], rows);
    free(rows);
    return r;
}

static const struct fit_operations operations = {
    .size = sizeof operations,
    .parameter_count = REQUEST_PARAMETERS,
    .parameters = request_parameters,
    .open = piecewise_open,
    .block = piecewise_block,
    .end_of_pass = piecewise_end_of_pass,
    .finish = piecewise_finish,
    .close = piecewise_close,
};

ASSAY_PLUGIN_EXPORT extern const struct assay_plugin assay_plugin;
const struct assay_plugin assay_plugin = {
    .abi = ASSAY_PLUGIN_ABI,
    .size = sizeof assay_plugin,
    .kind = ASSAY_PLUGIN_FIT,
    .name = "fit-piecewise",
    .version = ASSAY_VERSION,
    .summary = "segmented lines with the best breaks there are, group by group",
    .operations = &operations,
};
