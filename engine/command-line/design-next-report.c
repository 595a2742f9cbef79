/* assay design next: what was found, for people and for programs. */
#include "engine/command-line/design-next.h"

#include "engine/command-line/shown.h"
#include "engine/documents/json.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 10 };

static const char *response_unit(const struct next_design *next) {
    const char *code = next->fit->view->response_unit;
    const struct unit *unit = code ? unit_find(code) : NULL;
    return unit ? unit->label : code ? code : "";
}

static double percent(const struct next_design *next, double error) {
    return 100 * error / next->found.response;
}

/* Which rows are the same candidate: how often it was taken, what all of them gain. */
struct taken {
    size_t row; /* of the chosen design: the first */
    size_t times;
    double gain, cost;
};

static int compare_gains(const void *a, const void *b) {
    const struct taken *one = a, *two = b;
    if (one->gain != two->gain)
        return one->gain < two->gain ? 1 : -1;
    return one->row > two->row ? 1 : -1;
}

static int collect_taken(const struct next_design *next, struct taken **ret, size_t *ret_count) {
    const struct optimal_rows *rows = &next->found.rows;
    struct taken *taken = xcalloc(rows->count + 1, sizeof *taken);
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        size_t seen = 0;
        while (seen < count && rows->items[taken[seen].row] != rows->items[i])
            seen++;
        if (seen == count)
            taken[count++] = (struct taken){.row = i, .cost = next->found.costs ? next->found.costs[i] : 1};
        taken[seen].times++;
        taken[seen].gain += rows->gains[i];
    }
    qsort(taken, count, sizeof *taken, compare_gains);
    *ret = taken;
    *ret_count = count;
    return 0;
}

/* ---- For people */

/* A column that a reader wants to see: what the model's terms use, and what makes groups. */
static bool is_shown(const struct next_design *next, const char *name) {
    for (size_t i = 0; i < next->fit->factor_count; i++)
        if (strcmp(next->fit->factors[i].name, name) == 0)
            return true;
    for (size_t j = 0; j < next->fit->by_count; j++)
        if (strcmp(next->fit->by[j], name) == 0)
            return true;
    return false;
}

static int width_of(const struct next_design *next, size_t column, const struct taken *taken, size_t count) {
    size_t width = strlen(shown(next->chosen->columns[column].name).text);
    for (size_t i = 0; i < count; i++) {
        char buffer[NUMBER_TEXT_SIZE];
        size_t length = strlen(shown(design_value(next->chosen, taken[i].row, column, buffer)).text);
        width = length > width ? length : width;
    }
    return (int)(width < 32 ? width : 32);
}

static void print_rows(const struct next_design *next, const struct taken *taken, size_t count) {
    const struct design *design = next->chosen;
    size_t lines = count < LINES_MAX ? count : LINES_MAX;
    fprintf(stderr, "\n");
    for (size_t line = 0; line <= lines; line++) {
        const struct taken *one = line ? &taken[line - 1] : NULL;
        for (size_t j = 0; j < design->column_count; j++) {
            char buffer[NUMBER_TEXT_SIZE];
            if (is_shown(next, design->columns[j].name))
                fprintf(
                    stderr, "  %*s", width_of(next, j, taken, lines),
                    shown(one ? design_value(design, one->row, j, buffer) : design->columns[j].name).text);
        }
        char cost[NUMBER_TEXT_SIZE] = "";
        if (one && next->found.cost_is_time)
            number_describe_duration(one->cost, cost);
        else if (one)
            snprintf(cost, sizeof cost, "%.4g", one->cost);
        if (one)
            fprintf(stderr, "  %5zu  %10s  %5.1f %%\n", one->times, cost,
                    100 * one->gain / next->found.rows.gain);
        else
            fprintf(stderr, "  %5s  %10s  %7s\n", "times", next->found.cost_is_time ? "each" : "cost",
                    "of gain");
    }
    if (count > lines)
        fprintf(stderr, "  and %zu more\n", count - lines);
}

static void print_domain(const struct next_design *next) {
    for (size_t i = 0; i < next->fit->factor_count; i++) {
        const struct candidate_range *range = &next->ranges[i];
        bool even = candidate_range_is_logarithmic(range);
        fprintf(stderr, "%s%s %.6g to %.6g%s", i ? ", " : "", shown(range->name).text, range->low,
                range->high, even && next->seeded ? " (log)" : "");
    }
    fprintf(stderr, "%s%zu candidates\n", next->fit->factor_count ? "; " : "",
            next->candidates.design->row_count);
}

static void print_cost(const struct next_design *next) {
    char cost[NUMBER_TEXT_SIZE], budget[NUMBER_TEXT_SIZE];
    size_t rows = next->found.rows.count;
    if (next->found.cost_is_time)
        number_describe_duration(next->found.cost, cost);
    else
        snprintf(cost, sizeof cost, "cost %.4g", next->found.cost);
    fprintf(stderr, "%zu row%s: %s%s", rows, rows == 1 ? "" : "s", cost,
            next->found.cost_is_time ? " predicted, each once, in all groups at a time" : "");
    if (isfinite(next->request.budget))
        fprintf(stderr, "; the budget is %s", number_describe_duration(next->request.budget, budget));
    if (isfinite(next->request.budget) && next->found.rows.cost > next->found.cost * 1.01)
        fprintf(stderr, ", of which they count %s: no row less than its sigma",
                number_describe_duration(next->found.rows.cost, cost));
    fprintf(stderr, "\n");
}

int next_design_print(const struct next_design *next) {
    cleanup_free struct taken *taken = NULL;
    size_t count = 0;
    int r = collect_taken(next, &taken, &count);
    if (r < 0)
        return r;
    const struct next_rows *found = &next->found;
    for (size_t i = 0; i < next->note_count; i++)
        fprintf(stderr, "assay: %s%s\n",
                strncmp(next->notes[i], "warning:", 8) == 0 ? "" : "note: ", shown(next->notes[i]).text);
    if (next->seeded)
        fprintf(stderr, "seed %" PRIu64 "%s\n", next->seed,
                next->seed_drawn ? " (drawn from the system; --seed repeats this design)" : "");
    fprintf(stderr, "experiment: %s\n",
            next->experiment_from ? shown(next->experiment_from).text
                                  : "none known; columns are the model's");
    fprintf(stderr, "criterion %s, over %zu group%s\ndomain: ",
            next->request.criterion == OPTIMAL_D ? "D (the coefficients)"
                                                 : "I (the average variance of the prediction)",
            next->group_count, next->group_count == 1 ? "" : "s");
    print_domain(next);
    print_cost(next);
    fprintf(stderr, "average standard error of the predicted %s: %.3g %% -> %.3g %% (%.3g -> %.3g %s)\n",
            shown(next->fit->view->response).text, percent(next, found->error_before),
            percent(next, found->error_after), found->error_before, found->error_after,
            shown(response_unit(next)).text);
    print_rows(next, taken, count);
    return 0;
}

/* ---- For programs */

static bool add_domain(const struct next_design *next, cJSON *root) {
    cJSON *domain = json_add_array(root, "domain");
    bool good = domain != NULL;
    for (size_t i = 0; good && i < next->fit->factor_count; i++) {
        const struct candidate_range *range = &next->ranges[i];
        cJSON *one = json_add_object(domain, NULL);
        good = one && json_add_string(one, "name", range->name) &&
               json_add_double(one, "minimum", range->low) && json_add_double(one, "maximum", range->high) &&
               json_add_boolean(one, "whole", range->whole);
    }
    return good;
}

static bool add_row(const struct next_design *next, cJSON *rows, size_t i) {
    const struct design *design = next->chosen;
    cJSON *row = json_add_object(rows, NULL), *values = row ? json_add_object(row, "values") : NULL;
    bool good = values != NULL;
    for (size_t j = 0; good && j < design->column_count; j++) {
        const struct design_column *column = &design->columns[j];
        char buffer[NUMBER_TEXT_SIZE];
        good = column->type == DESIGN_INTEGER ? json_add_int64(values, column->name, column->integers[i])
               : column->type == DESIGN_NUMBER
                   ? json_add_double(values, column->name, column->numbers[i])
                   : json_add_string(values, column->name, design_value(design, i, j, buffer));
    }
    return good && json_add_double(row, "gain", next->found.rows.gains[i]) &&
           json_add_double(row, next->found.cost_is_time ? "seconds" : "cost",
                           next->found.costs ? next->found.costs[i] : 1);
}

static bool fill_json(const struct next_design *next, cJSON *root) {
    const struct next_rows *found = &next->found;
    bool good = json_add_int64(root, "assay_next_design", 1) &&
                json_add_string(root, "model", file_base_name(next->model_path)) &&
                json_add_string(root, "experiment", next->experiment ? next->experiment->name : NULL) &&
                json_add_string(root, "criterion", next->request.criterion == OPTIMAL_D ? "d" : "i") &&
                json_add_int64(root, "groups", (int64_t)next->group_count) &&
                json_add_int64(root, "candidates", (int64_t)next->candidates.design->row_count) &&
                json_add_string(root, "response", next->fit->view->response) &&
                json_add_string(root, "unit", next->fit->view->response_unit) &&
                json_add_double(root, "error_before", found->error_before) &&
                json_add_double(root, "error_after", found->error_after) &&
                json_add_double(root, "mean_response", found->response) &&
                json_add_double(root, "gain", found->rows.gain) &&
                json_add_double(root, found->cost_is_time ? "seconds" : "cost", found->cost) &&
                json_add_double(root, "budget", next->request.budget) && add_domain(next, root);
    good = good && (next->seeded ? json_add_uint64_text(root, "seed", next->seed)
                                 : json_add_string(root, "seed", NULL));
    cJSON *rows = good ? json_add_array(root, "rows") : NULL;
    good = rows != NULL;
    for (size_t i = 0; good && i < found->rows.count; i++)
        good = add_row(next, rows, i);
    cJSON *notes = good ? json_add_array(root, "notes") : NULL;
    good = notes != NULL;
    for (size_t i = 0; good && i < next->note_count; i++)
        good = json_add_string(notes, NULL, next->notes[i]);
    return good;
}

int next_design_append_json(const struct next_design *next, struct text *text, struct failure *failure) {
    cleanup(json_cleanup) cJSON *root = cJSON_CreateObject();
    if (!root || !fill_json(next, root))
        return failure_memory(failure);
    int r = json_print(root, true, text);
    return r == -EFBIG ? failure_set(failure, r, "the JSON is larger than %zu bytes", text->limit)
           : r < 0     ? failure_memory(failure)
                       : 0;
}
