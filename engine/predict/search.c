#include "engine/predict/search.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/numerics/random.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Random places where a search starts without finding a combination that it has not run: most may be left
 * out.
 */
enum { STARTS_MAX = 1 << 20, STARTS_AFTER_MAX = 10000 /* once it has found any */ };

struct evaluation {
    size_t number; /* of the combination */
    double value;  /* less is better; infinite: no answer */
};

struct search {
    struct prediction *prediction;
    size_t column, budget;
    int64_t deadline_ns; /* 0: none */
    struct evaluation *done;
    size_t count;
    struct failure *failure;
    int error;
};

static bool is_over(const struct search *search) {
    return search->error < 0 || search->count == search->budget ||
           (search->deadline_ns > 0 && search->count > 0 && clock_monotonic_ns() >= search->deadline_ns);
}

/* The value of combination NUMBER, which is run unless it was before; the less the better. Infinite: no
 * answer, or the budget is used up; NaN: the combination is left out. */
static double evaluate(struct search *search, size_t number) {
    struct prediction *prediction = search->prediction;
    double value;
    for (size_t i = 0; i < search->count; i++)
        if (search->done[i].number == number)
            return search->done[i].value;
    if (is_over(search))
        return INFINITY;
    scenarios_drop(&prediction->scenarios, 0);
    int r = scenarios_add(&prediction->scenarios, number, search->failure);
    if (r == 1)
        return NAN;
    search->error = r;
    if (search->error == 0)
        search->error = prediction_run_again(prediction, search->column, &value, search->failure);
    if (search->error < 0)
        return INFINITY;
    if (prediction->plugin->columns[search->column].goal == COLUMN_MORE)
        value = -value;
    search->done[search->count++] = (struct evaluation){number, isfinite(value) ? value : INFINITY};
    prediction->searched = search->count;
    return search->done[search->count - 1].value;
}

/* Moves from combination NUMBER, by steps of one parameter, to one that no step improves (coordinate
 * descent), or until the budget is used up. A step skips combinations that are left out. */
static void descend(struct search *search, size_t number) {
    const struct scenarios *scenarios = &search->prediction->scenarios;
    double best = evaluate(search, number);
    for (size_t part = 4; part > 0 && !isnan(best);) {
        bool is_better = false, is_least = true;
        for (size_t s = 0; s < scenarios_sweep_count(scenarios); s++) {
            size_t stride, count = scenarios_sweep(scenarios, s, &stride), at = number / stride % count;
            size_t step = count / part > 1 ? count / part : 1;
            is_least = is_least && step == 1;
            for (int side = 0; side < 2; side++) {
                double value = NAN;
                size_t next = number, far = step;
                for (; isnan(value) && (side ? at + far < count : at >= far); far++) {
                    next = side ? number + far * stride : number - far * stride;
                    value = evaluate(search, next);
                }
                if (!(value < best))
                    continue;
                best = value;
                number = next;
                at = number / stride % count;
                is_better = true;
            }
        }
        if (!is_better)
            part = is_least ? 0 : 2 * part;
    }
}

/* Descends from random combinations until the budget is used up or no new combination is found. */
static void search_from_random_places(struct search *search, size_t all) {
    const struct prediction_request *request = search->prediction->request;
    struct random_stream stream;
    random_stream_init(&stream, search->prediction->models.seed, "search", 0);
    size_t idle = 0;
    while (!is_over(search) && idle < (search->count > 0 ? STARTS_AFTER_MAX : STARTS_MAX)) {
        size_t before = search->count;
        descend(search, random_stream_below(&stream, all));
        idle = search->count > before ? 0 : idle + 1;
        if (idle > 0 && search->error == 0 && request->progress &&
            request->progress(request->context, search->count,
                              (double)search->count / (double)search->budget) < 0)
            search->error = failure_set_kind(search->failure, FAILURE_INTERRUPTED, -ECANCELED,
                                             "interrupted in the search; no file was written");
    }
}

static int compare(const void *a, const void *b) {
    const struct evaluation *one = a, *other = b;
    if (one->value != other->value)
        return one->value < other->value ? -1 : 1;
    return one->number < other->number ? -1 : one->number > other->number;
}

/* Finds the best scenarios: by trying all combinations, if the budget allows, otherwise by descents from
 * random ones. The best SEARCH_SHOWN_MAX become the scenarios of the prediction. */
int search_best(struct prediction *prediction, size_t budget, int64_t budget_ns, struct failure *failure) {
    struct search search = {.prediction = prediction,
                            .column = prediction_main_column(prediction),
                            .deadline_ns = budget_ns > 0 ? clock_monotonic_ns() + budget_ns : 0,
                            .failure = failure};
    size_t all = scenarios_combinations(&prediction->scenarios);
    if (all == 0 || search.column == prediction->column_count ||
        prediction->plugin->columns[search.column].goal == COLUMN_NO_GOAL)
        return failure_input(failure, NULL, 0, 0, "--search is not possible with %s: %s",
                             prediction->library->plugin->name,
                             all ? "no column of its result is to be least or greatest"
                                 : "scenarios come from a table; remove the table, and set the values by "
                                   "--set NAME=VALUE,...");
    cleanup_free struct evaluation *done = xcalloc(budget + 1, sizeof *done);
    search.done = done;
    search.budget = budget < all ? budget : all;
    prediction->search_budget = search.budget;
    prediction->has_tried_all = budget >= all && budget_ns == 0;
    for (size_t i = 0; prediction->has_tried_all && search.error == 0 && i < all; i++)
        evaluate(&search, i);
    if (!prediction->has_tried_all)
        search_from_random_places(&search, all);
    prediction->search_budget = 0;
    qsort(done, search.count, sizeof *done, compare);
    if (search.error == -ECANCELED && search.count > 0 && isfinite(done[0].value)) {
        search.error = 0;
        prediction->is_interrupted = true;
        prediction->has_tried_all = false;
        *failure = (struct failure){0};
    }
    scenarios_drop(&prediction->scenarios, 0);
    for (size_t i = 0; search.error == 0 && i < search.count; i++)
        if (!isfinite(done[i].value))
            prediction->without_answer++;
        else if (i < SEARCH_SHOWN_MAX)
            search.error = scenarios_add(&prediction->scenarios, done[i].number, failure);
    if (search.error == 0 && prediction->scenarios.count == 0)
        return failure_input(
            failure, NULL, 0, 0, "the method has no answer for any of the %zu scenarios; the first: %s",
            search.count, search.count ? prediction->no_answer : prediction->scenarios.left_out_reason);
    return search.error;
}
