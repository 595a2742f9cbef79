#include "engine/plugin/next-rows.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLASSES_MAX = 64,
    ROWS_MANY = 100, /* from here on there are fewer classes, since each row looks at each */
    CLASSES_OF_MANY_ROWS = 16,
    KIND_BYTES_MAX = 4096,
};

/* Covariances over sigma^2 that differ by less, relative to their diagonal, are the same. */
static const double same_covariance = 1e-6;

/* Noise that varies is at least so much of a group's sigma. */
static const double noise_least = 1e-3;

/* Groups that are as sure as each other. */
struct class {
    size_t group; /* one of them */
    uint32_t kind;
    double count, variance; /* how many, and the mean of their sigma^2 */
    double uncertainty;     /* the mean variance of what they predict */
    double scale;           /* of one that stands for others: what brings it to their mean; 0: it does not */
    double *covariance;     /* owned: of a group with that variance */
};

struct finding {
    const struct next_request *request;
    const struct model_fit *fit;
    const struct design *candidates;
    double *terms;     /* by candidate */
    double *responses; /* by candidate: the mean over the groups of its kind */
    double *slowest;   /* by candidate: the greatest of them */
    double *sigmas;    /* by candidate: of the group that is slowest */
    double *noise;     /* by candidate: the weight by the noise of the groups, their mean */
    bool varies;       /* the noise is not the same everywhere */
    double *weights;   /* by candidate */
    double *costs;     /* by candidate; NULL: all 1 */
    bool *barred;      /* by candidate; NULL: none */
    uint32_t *kinds;   /* by candidate; NULL: all 0 */
    uint32_t *group_kinds;
    size_t *groups; /* those that can be improved */
    size_t group_count, undefined;
    struct class *classes;
    size_t class_count, distinct; /* before some were merged */
};

static void finding_clear(struct finding *finding) {
    free(finding->terms);
    free(finding->responses);
    free(finding->slowest);
    free(finding->sigmas);
    free(finding->noise);
    free(finding->weights);
    free(finding->costs);
    free(finding->barred);
    free(finding->kinds);
    free(finding->group_kinds);
    free(finding->groups);
    for (size_t i = 0; i < finding->class_count; i++)
        free(finding->classes[i].covariance);
    free(finding->classes);
}

static void free_expression(struct expression **expression) {
    expression_free(*expression);
}

static double share_of(const struct finding *finding, size_t candidate) {
    return finding->request->shares ? finding->request->shares[candidate] : 1;
}

static uint32_t kind_of(const struct finding *finding, size_t candidate) {
    return finding->kinds ? finding->kinds[candidate] : 0;
}

/* ---- Groups */

static bool is_defined(const struct model_fit_group *group) {
    return group->covariance && group->sigma > 0;
}

static int choose_groups(struct finding *finding, struct failure *failure) {
    const struct next_request *request = finding->request;
    finding->groups = xcalloc(request->group_count + 1, sizeof *finding->groups);
    finding->group_kinds = xcalloc(finding->fit->view->group_count, sizeof *finding->group_kinds);
    for (size_t i = 0; i < request->group_count; i++)
        if (is_defined(&finding->fit->groups[request->groups[i]]))
            finding->groups[finding->group_count++] = request->groups[i];
    finding->undefined = request->group_count - finding->group_count;
    if (finding->group_count > 0)
        return 0;
    const struct model_fit_group *first = &finding->fit->groups[request->groups[0]];
    return failure_input(
        failure, model_document(finding->fit->model)->file, 0, 0,
        first->covariance && first->sigma == 0
            ? "the model has no uncertainty to reduce: its terms explain every row to the last digit"
            : "the model has no covariance of its coefficients, so that nobody knows where it is unsure; fit "
              "it to more rows than it has terms");
}

/* The same number is the same label, however it was written: 0.50 in a table of results, 0.5 in a design. */
static const char *plain_label(const char *label, char buffer[static NUMBER_TEXT_SIZE]) {
    double value;
    if (!number_parse_double(label, strlen(label), &value))
        return label;
    number_format_double(value, buffer);
    return buffer;
}

/* One value of those that say the kind. */
static int append_label(struct text *text, const char *label) {
    int r = text_append_string(text, label);
    return r < 0 ? r : text_append_character(text, '\n');
}

/* Which groups a candidate is measured in, where columns of the candidates are those that make groups. */
static int find_kinds(struct finding *finding, struct failure *failure) {
    const struct model_fit *fit = finding->fit;
    const struct design *design = finding->candidates;
    bool any = false;
    for (size_t j = 0; j < fit->by_count; j++)
        any = any || design_find(design, fit->by[j]) != SIZE_MAX;
    if (!any)
        return 0;
    cleanup(text_set_clear) struct text_set labels = {0};
    cleanup(text_clear) struct text text;
    text_init(&text, KIND_BYTES_MAX);
    finding->kinds = calloc(design->row_count, sizeof *finding->kinds);
    int r = finding->kinds ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < design->row_count + finding->group_count; i++) {
        bool is_row = i < design->row_count;
        size_t group = is_row ? 0 : finding->groups[i - design->row_count];
        text_reset(&text);
        for (size_t j = 0; r == 0 && j < fit->by_count; j++) {
            size_t column = design_find(design, fit->by[j]);
            char written[NUMBER_TEXT_SIZE], plain[NUMBER_TEXT_SIZE];
            if (column == SIZE_MAX)
                continue;
            const char *label =
                is_row ? design_value(design, i, column, written) : fit->groups[group].labels[j];
            r = append_label(&text, plain_label(label, plain));
        }
        if (r == 0)
            *(is_row ? &finding->kinds[i] : &finding->group_kinds[group]) =
                text_set_add(&labels, text.bytes, text.length);
    }
    return r == -EFBIG ? failure_input(failure, NULL, 0, 0, "the labels of a group are longer than %d bytes",
                                       KIND_BYTES_MAX)
           : r < 0     ? failure_memory(failure)
                       : 0;
}

bool next_rows_has_group(const struct model_fit *fit, const size_t *groups, size_t count,
                         const struct design *design, size_t row) {
    for (size_t g = 0; g < count; g++) {
        bool same = true;
        for (size_t j = 0; same && j < fit->by_count; j++) {
            size_t column = design_find(design, fit->by[j]);
            char written[NUMBER_TEXT_SIZE], one[NUMBER_TEXT_SIZE], other[NUMBER_TEXT_SIZE];
            same = column == SIZE_MAX || strcmp(plain_label(design_value(design, row, column, written), one),
                                                plain_label(fit->groups[groups[g]].labels[j], other)) == 0;
        }
        if (same)
            return true;
    }
    return false;
}

/* ---- Classes of groups */

static bool is_same(const struct finding *finding, const struct class *class, size_t group) {
    const struct model_fit_group *one = &finding->fit->groups[group],
                                 *two = &finding->fit->groups[class->group];
    size_t count = finding->fit->view->term_count;
    if (class->kind != finding->group_kinds[group])
        return false;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            double scale = sqrt(two->covariance[i * count + i]) * sqrt(two->covariance[j * count + j]) /
                           two->sigma / two->sigma,
                   difference = one->covariance[i * count + j] / one->sigma / one->sigma -
                                two->covariance[i * count + j] / two->sigma / two->sigma;
            if (!(fabs(difference) <= same_covariance * scale))
                return false;
        }
    return true;
}

static void add_to_class(struct finding *finding, size_t group) {
    size_t i = 0;
    while (i < finding->class_count && !is_same(finding, &finding->classes[i], group))
        i++;
    struct class *class = &finding->classes[i];
    if (i == finding->class_count) {
        *class = (struct class){.group = group, .kind = finding->group_kinds[group]};
        finding->class_count++;
    }
    double sigma = finding->fit->groups[group].sigma;
    class->count++;
    class->variance += (sigma * sigma - class->variance) / class->count;
}

/* The average of x'Cx over the candidates of a kind. */
static double mean_variance(const struct finding *finding, const double *covariance, uint32_t kind) {
    size_t count = finding->fit->view->term_count;
    double sum = 0, shares = 0;
    for (size_t c = 0; c < finding->candidates->row_count; c++) {
        const double *x = finding->terms + c * count;
        if (kind_of(finding, c) != kind || share_of(finding, c) == 0)
            continue;
        double variance = 0;
        for (size_t i = 0; i < count; i++) {
            double along = 0;
            for (size_t j = 0; j < count; j++)
                along += covariance[i * count + j] * x[j];
            variance += x[i] * along;
        }
        shares += share_of(finding, c);
        sum += share_of(finding, c) * (variance > 0 ? variance : 0);
    }
    return shares > 0 ? sum / shares : 0;
}

/* Those of a kind together, the least sure first. */
static int compare_classes(const void *a, const void *b) {
    const struct class *one = a, *two = b;
    if (one->kind != two->kind)
        return one->kind < two->kind ? -1 : 1;
    return one->uncertainty < two->uncertainty ? 1 : one->uncertainty > two->uncertainty ? -1 : 0;
}

/* Lets the middle one of COUNT classes stand for all, which are SUM in all and GROUPS many. */
static void merge_piece(struct class *piece, size_t count, double groups, double sum) {
    for (size_t i = 0; i < count; i++)
        if (i != count / 2)
            free(take_pointer(piece[i].covariance));
    struct class one = piece[count / 2];
    piece[count / 2].covariance = NULL;
    one.scale = one.uncertainty > 0 ? sum / groups / one.uncertainty : 1;
    one.variance *= one.scale;
    one.uncertainty *= one.scale;
    one.count = groups;
    piece[0] = one;
}

/* Too many classes take too long: neighbours in uncertainty become one, in pieces that are all as unsure
 * together, so that those that are least sure stay by themselves. The mean uncertainty stays what it is. */
static void merge_classes(struct finding *finding, size_t most) {
    struct class *classes = finding->classes;
    double all = 0;
    qsort(classes, finding->class_count, sizeof *classes, compare_classes);
    for (size_t i = 0; i < finding->class_count; i++)
        all += classes[i].count * classes[i].uncertainty;
    size_t kept = 0;
    for (size_t first = 0, end; first < finding->class_count; first = end) {
        double sum = 0, groups = 0;
        for (end = first; end < finding->class_count && classes[end].kind == classes[first].kind &&
                          (end == first || sum < all / (double)most);
             end++) {
            sum += classes[end].count * classes[end].uncertainty;
            groups += classes[end].count;
        }
        merge_piece(&classes[first], end - first, groups, sum);
        struct class one = classes[first];
        classes[first].covariance = NULL;
        classes[kept++] = one;
    }
    finding->class_count = kept;
}

static int make_classes(struct finding *finding) {
    size_t square = finding->fit->view->term_count * finding->fit->view->term_count;
    finding->classes = xcalloc(finding->group_count, sizeof *finding->classes);
    for (size_t i = 0; i < finding->group_count; i++)
        add_to_class(finding, finding->groups[i]);
    for (size_t i = 0; i < finding->class_count; i++) {
        struct class *class = &finding->classes[i];
        const struct model_fit_group *group = &finding->fit->groups[class->group];
        class->covariance = xcalloc(square, sizeof *class->covariance);
        for (size_t j = 0; j < square; j++)
            class->covariance[j] = group->covariance[j] / group->sigma / group->sigma * class->variance;
        class->uncertainty = mean_variance(finding, class->covariance, class->kind);
    }
    finding->distinct = finding->class_count;
    size_t most = finding->request->rows_most > ROWS_MANY ? CLASSES_OF_MANY_ROWS : CLASSES_MAX;
    if (finding->class_count > most)
        merge_classes(finding, most);
    for (size_t i = 0; i < finding->class_count; i++)
        for (size_t j = 0; finding->classes[i].scale > 0 && j < square; j++)
            finding->classes[i].covariance[j] *= finding->classes[i].scale;
    return 0;
}

/* ---- What candidates cost and weigh */

/* The noise there, and no less than a thousandth of the group's: rows where a fit of the noise comes to
 * nothing are not worth all others together. */
static double sigma_at(struct finding *finding, size_t group, const double *terms) {
    bool varies;
    double sigma = model_fit_sigma(finding->fit, group, terms, &varies),
           least = finding->fit->groups[group].sigma * noise_least;
    finding->varies = finding->varies || varies;
    return sigma > least ? sigma : least;
}

/* What the model predicts in the groups where a candidate is measured. */
static int predict_responses(struct finding *finding, struct failure *failure) {
    size_t rows = finding->candidates->row_count, count = finding->fit->view->term_count;
    finding->responses = xcalloc(rows, sizeof *finding->responses);
    finding->slowest = xcalloc(rows, sizeof *finding->slowest);
    finding->sigmas = xcalloc(rows, sizeof *finding->sigmas);
    finding->noise = xcalloc(rows, sizeof *finding->noise);
    for (size_t c = 0; c < rows; c++) {
        double groups = 0;
        for (size_t i = 0; i < finding->group_count; i++) {
            size_t group = finding->groups[i];
            if (finding->group_kinds[group] != kind_of(finding, c))
                continue;
            double response = model_fit_response(finding->fit, group, finding->terms + c * count),
                   sigma = sigma_at(finding, group, finding->terms + c * count);
            if (groups++ == 0 || response > finding->slowest[c]) {
                finding->slowest[c] = response;
                finding->sigmas[c] = sigma;
            }
            double times = finding->fit->groups[group].sigma / sigma;
            finding->noise[c] += (times * times - finding->noise[c]) / groups;
            finding->responses[c] += (response - finding->responses[c]) / groups;
        }
        if (groups == 0)
            return design_failure(finding->candidates, c, failure,
                                  "the model has no group with these values of the columns that make groups");
    }
    return 0;
}

/* Whether TEXT uses a column of texts. */
static int refuse_texts(const struct design *design, const struct expression *expression, const char *option,
                        struct failure *failure) {
    for (size_t i = 0; i < design->column_count; i++)
        if (design->columns[i].type == DESIGN_TEXT && expression_uses(expression, i))
            return expression_failure(expression, failure, "%s uses '%s', which is a text", option,
                                      design->columns[i].name);
    return 0;
}

/* An expression over the columns, and over the response, which is the prediction; above 0 everywhere. */
static int evaluate(const struct finding *finding, const char *option, const char *text, double *ret,
                    struct failure *failure) {
    const struct design *design = finding->candidates;
    size_t count = design->column_count;
    cleanup(free_expression) struct expression *expression = NULL;
    cleanup_free const char **names = xcalloc(count + 1, sizeof *names);
    cleanup_free double *values = xcalloc(count + 1, sizeof *values);
    for (size_t i = 0; i < count; i++)
        names[i] = design->columns[i].name;
    bool is_free = design_find(design, finding->fit->view->response) == SIZE_MAX;
    names[count] = finding->fit->view->response;
    int r = expression_parse(text, names, count + is_free, option, 0, 0, &expression, failure);
    r = r < 0 ? r : refuse_texts(design, expression, option, failure);
    for (size_t c = 0; r == 0 && c < design->row_count; c++) {
        design_numbers(design, c, values);
        values[count] = finding->responses[c];
        ret[c] = expression_value(expression, values);
        if (!isfinite(ret[c]) || ret[c] <= 0)
            r = design_failure(
                design, c, failure,
                "%s %.200s is %g here, where %s is predicted to be %g; expected a number above 0", option,
                text, ret[c], finding->fit->view->response, finding->responses[c]);
    }
    return r;
}

static int weigh(struct finding *finding, struct failure *failure) {
    const struct design *design = finding->candidates;
    const char *weights = finding->request->weights, *column = finding->fit->weights;
    if (!weights && column && design_find(design, column) != SIZE_MAX)
        weights = column;
    if (!weights && column)
        return failure_input(failure, model_document(finding->fit->model)->file, 0, 0,
                             "the model was fitted with the weights '%s'; say what they are elsewhere, with "
                             "--weights EXPRESSION or a column of the candidates",
                             column);
    if (!weights && finding->varies)
        finding->weights = take_pointer(finding->noise);
    if (!weights)
        return 0;
    finding->weights = xcalloc(design->row_count, sizeof *finding->weights);
    int r = evaluate(finding, "--weights", weights, finding->weights, failure);
    double variance = 0, shares = 0;
    for (size_t c = 0; r == 0 && c < design->row_count; c++) {
        variance += share_of(finding, c) / finding->weights[c];
        shares += share_of(finding, c);
    }
    for (size_t c = 0; r == 0 && !column && c < design->row_count; c++)
        finding->weights[c] *= variance / shares;
    return r;
}

/* Rows that would take no time, by the model: where it is wrong for sure. */
static int bar_impossible(struct finding *finding, struct next_rows *next, struct failure *failure) {
    size_t rows = finding->candidates->row_count;
    finding->barred = xcalloc(rows, sizeof *finding->barred);
    for (size_t c = 0; c < rows; c++) {
        finding->barred[c] = !(finding->slowest[c] > 0);
        next->barred += finding->barred[c];
    }
    if (next->barred < rows)
        return 0;
    return failure_input(failure, model_document(finding->fit->model)->file, 0, 0,
                         "the model predicts that each of %zu candidates takes 0 s or less; say what a row "
                         "costs, with --cost EXPRESSION, or fit another model",
                         rows);
}

static int estimate_costs(struct finding *finding, struct next_rows *next, struct failure *failure) {
    const struct next_request *request = finding->request;
    double seconds = model_seconds(finding->fit->model);
    size_t rows = finding->candidates->row_count;
    next->cost_is_time = !request->cost && !isnan(seconds);
    next->unit_assumed = !request->cost && seconds == 0;
    if (!request->cost && isnan(seconds) && isfinite(request->budget))
        return failure_input(
            failure, model_document(finding->fit->model)->file, 0, 0,
            "the model predicts '%s' in %s, which is no time; say what a row costs in seconds, "
            "with --cost EXPRESSION",
            finding->fit->view->response, finding->fit->view->response_unit);
    if (!request->cost && isnan(seconds))
        return 0;
    finding->costs = xcalloc(rows, sizeof *finding->costs);
    if (request->cost)
        return evaluate(finding, "--cost", request->cost, finding->costs, failure);
    for (size_t c = 0; c < rows; c++)
        finding->costs[c] = fmax(finding->slowest[c], finding->sigmas[c]) * (seconds == 0 ? 1 : seconds);
    return bar_impossible(finding, next, failure);
}

/* ---- The result */

static void judge(const struct finding *finding, struct next_rows *next) {
    size_t square = finding->fit->view->term_count * finding->fit->view->term_count;
    double before = 0, after = 0, groups = 0, shares = 0, responses = 0;
    for (size_t i = 0; i < finding->class_count; i++) {
        const struct class *class = &finding->classes[i];
        groups += class->count;
        before += class->count * class->uncertainty;
        after += class->count * mean_variance(finding, next->rows.covariances + i * square, class->kind);
    }
    for (size_t c = 0; c < finding->candidates->row_count; c++) {
        shares += share_of(finding, c);
        responses += share_of(finding, c) * fabs(finding->responses[c]);
    }
    next->error_before = sqrt(before / groups);
    next->error_after = sqrt(after / groups);
    next->response = shares > 0 ? responses / shares : NAN;
    next->undefined = finding->undefined;
    next->noise_varies = finding->weights != NULL;
    next->classes = finding->class_count;
    next->distinct = finding->distinct;
}

static int tell_costs(const struct finding *finding, struct next_rows *next) {
    if (!finding->costs) {
        next->cost = (double)next->rows.count;
        return 0;
    }
    next->costs = xcalloc(next->rows.count + 1, sizeof *next->costs);
    double seconds = next->unit_assumed ? 1 : model_seconds(finding->fit->model);
    for (size_t i = 0; i < next->rows.count; i++) {
        size_t row = next->rows.items[i];
        next->costs[i] = next->cost_is_time ? finding->slowest[row] * seconds : finding->costs[row];
        next->cost += next->costs[i];
    }
    return 0;
}

static int refuse_budget(const struct finding *finding, const struct next_rows *next,
                         struct failure *failure) {
    double least = INFINITY;
    for (size_t c = 0; c < finding->candidates->row_count; c++)
        if (!(finding->barred && finding->barred[c]))
            least = fmin(least, finding->costs ? finding->costs[c] : 1);
    char budget[NUMBER_TEXT_SIZE], cheapest[NUMBER_TEXT_SIZE];
    if (!(least > finding->request->budget))
        return failure_input(failure, NULL, 0, 0, "there is no row that would make the model surer");
    number_describe_duration(finding->request->budget, budget);
    number_describe_duration(least, cheapest);
    return failure_input(failure, NULL, 0, 0,
                         "the budget of %s is too small for one row: the %s of all takes %s", budget,
                         next->cost_is_time ? "fastest" : "cheapest", cheapest);
}

static int solve(const struct finding *finding, struct next_rows *next, struct failure *failure) {
    const struct next_request *request = finding->request;
    cleanup_free struct optimal_group *groups = xcalloc(finding->class_count, sizeof *groups);
    for (size_t i = 0; i < finding->class_count; i++) {
        const struct class *class = &finding->classes[i];
        groups[i] =
            (struct optimal_group){class->covariance, sqrt(class->variance), class->count, class->kind};
    }
    const struct optimal_problem problem = {
        .candidate_count = finding->candidates->row_count,
        .term_count = finding->fit->view->term_count,
        .group_count = finding->class_count,
        .terms = finding->terms,
        .weights = finding->weights,
        .shares = request->shares,
        .costs = finding->costs,
        .kinds = finding->kinds,
        .barred = finding->barred,
        .groups = groups,
        .criterion = request->criterion,
        .budget = request->budget,
        .rows_most = request->rows_most,
        .distinct = request->distinct,
    };
    int r = optimal_rows_find(&problem, &next->rows, failure);
    return r == 0 && next->rows.count == 0 ? refuse_budget(finding, next, failure) : r;
}

int next_rows_find(const struct next_request *request, struct next_rows *ret, struct failure *failure) {
    cleanup(next_rows_clear) struct next_rows next = {0};
    cleanup(finding_clear) struct finding finding = {
        .request = request, .fit = request->fit, .candidates = request->candidates};
    int r = choose_groups(&finding, failure);
    r = r < 0 ? r : find_kinds(&finding, failure);
    r = r < 0 ? r : model_fit_terms(finding.fit, finding.candidates, &finding.terms, failure);
    r = r < 0 ? r : predict_responses(&finding, failure);
    r = r < 0 ? r : weigh(&finding, failure);
    r = r < 0 ? r : estimate_costs(&finding, &next, failure);
    r = r < 0 ? r : make_classes(&finding);
    r = r < 0 ? r : solve(&finding, &next, failure);
    r = r < 0 ? r : tell_costs(&finding, &next);
    if (r < 0)
        return r;
    judge(&finding, &next);
    *ret = next;
    next = (struct next_rows){0};
    return 0;
}

void next_rows_clear(struct next_rows *next) {
    optimal_rows_clear(&next->rows);
    free(next->costs);
    *next = (struct next_rows){0};
}
