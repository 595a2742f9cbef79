/* Selection of terms by backward elimination. */
#include "plugins/fit-linear/linear.h"

#include "engine/numerics/distribution.h"

#include <string.h>

static bool is_same_column(const struct model_factor *a, const struct model_factor *b) {
    return strcmp(a->column, b->column) == 0 && a->power == b->power && !a->level == !b->level &&
           !a->function == !b->function;
}

/* Whether every factor of PART is a factor of WHOLE, levels ignored. */
static bool is_part(const struct model_term *part, const struct model_term *whole) {
    for (size_t i = 0; i < part->factor_count; i++) {
        bool found = false;
        for (size_t k = 0; k < whole->factor_count; k++)
            found = found || is_same_column(&part->factors[i], &whole->factors[k]);
        if (!found)
            return false;
    }
    return true;
}

/* The dummies of one category (or product of categories) are one unit. */
static bool is_same_unit(const struct model_term *a, const struct model_term *b) {
    return a->factor_count == b->factor_count && is_part(a, b);
}

/* Whether a kept term is this one times further categories, as `host*mode` beside `host`: then it must
 * stay. */
static bool is_needed(const struct problem *problem, const enum least_squares_role *roles, size_t term) {
    const struct model_term *terms = problem->request->terms;
    for (size_t t = 0; t < problem->terms; t++) {
        size_t levels = 0, own = 0;
        for (size_t f = 0; f < terms[t].factor_count; f++)
            levels += terms[t].factors[f].level != NULL;
        for (size_t f = 0; f < terms[term].factor_count; f++)
            own += terms[term].factors[f].level != NULL;
        if (roles[t] != LEAST_SQUARES_LEFT_OUT && terms[t].factor_count > terms[term].factor_count &&
            terms[t].factor_count - terms[term].factor_count == levels - own &&
            is_part(&terms[term], &terms[t]))
            return true;
    }
    return false;
}

/* Leaves TERM and all dummies of its categories out of ROLES. Returns the number of terms. */
static size_t leave_out(const struct problem *problem, enum least_squares_role *roles, size_t term) {
    size_t count = 0;
    for (size_t t = 0; t < problem->terms; t++)
        if (roles[t] != LEAST_SQUARES_LEFT_OUT &&
            is_same_unit(&problem->request->terms[t], &problem->request->terms[term])) {
            roles[t] = LEAST_SQUARES_LEFT_OUT;
            count++;
        }
    return count;
}

/* The p value of the F test of TERM, with all dummies of its categories, into *RET. */
static int test_term(const struct problem *problem, const enum least_squares_role *roles, size_t term,
                     const struct least_squares_fit *full, double *ret, struct plugin_message *message) {
    enum least_squares_role fewer[LEAST_SQUARES_COLUMNS_MAX];
    memcpy(fewer, roles, problem->terms * sizeof *roles);
    double q = (double)leave_out(problem, fewer, term), freedom = (double)(problem->rows - full->rank);
    struct linear without;
    int r = linear_solve(problem, fewer, false, &without, message);
    double f = (without.fit.rss - full->rss) / q / (full->rss / freedom);
    *ret = freedom > 0 && full->rss > 0 ? distribution_f_upper(f > 0 ? f : 0, q, freedom) : NAN;
    linear_clear(&without);
    return r;
}

static bool is_first_of_unit(const struct problem *problem, const enum least_squares_role *roles,
                             size_t term) {
    for (size_t t = 0; t < term; t++)
        if (roles[t] != LEAST_SQUARES_LEFT_OUT &&
            is_same_unit(&problem->request->terms[t], &problem->request->terms[term]))
            return false;
    return true;
}

/* Whether COLUMN is in LIST, names separated by '|'. */
static bool is_listed(const char *list, const char *column) {
    size_t length = strlen(column);
    for (const char *at = list; *at; at += strspn(at, "|")) {
        size_t name = strcspn(at, "|");
        if (name == length && memcmp(at, column, length) == 0)
            return true;
        at += name;
    }
    return false;
}

/* Whether TERM is out of ROLES, or has no column of LIST. */
static bool is_apart(const struct problem *problem, const enum least_squares_role *roles, size_t term,
                     const char *list) {
    bool listed = false;
    for (size_t f = 0; f < problem->request->terms[term].factor_count; f++)
        listed = listed || is_listed(list, problem->request->terms[term].factors[f].column);
    return roles[term] == LEAST_SQUARES_LEFT_OUT || !listed;
}

/* The first kind of the setting one-of that several kept terms have; NULL: there is none. */
static const char *find_repeated_kind(const struct problem *problem, const enum least_squares_role *roles) {
    const struct plugin_value *kinds = &problem->request->values[ONE_OF];
    for (size_t k = 0; k < kinds->count; k++) {
        size_t count = 0;
        for (size_t t = 0; t < problem->terms; t++)
            count += !is_apart(problem, roles, t, kinds->texts[k]);
        if (count > 1)
            return kinds->texts[k];
    }
    return NULL;
}

/* Finds the term with the largest p value into *RET_TERM; with KIND, of the terms with a column of it. The
 * number of terms: none may be dropped, since the intercept and a last term stay. */
static int find_worst(const struct problem *problem, const enum least_squares_role *roles, const char *kind,
                      size_t *ret_term, double *ret_p, struct plugin_message *message) {
    struct linear full;
    size_t units = 0;
    *ret_term = problem->terms;
    *ret_p = -1;
    int r = linear_solve(problem, roles, false, &full, message);
    for (size_t t = 0; r == 0 && t < problem->terms; t++) {
        double p;
        if (roles[t] == LEAST_SQUARES_LEFT_OUT || !is_first_of_unit(problem, roles, t))
            continue;
        units++;
        if (problem->request->terms[t].factor_count == 0 || is_needed(problem, roles, t) ||
            (kind && is_apart(problem, roles, t, kind)))
            continue;
        r = test_term(problem, roles, t, &full.fit, &p, message);
        if (r == 0 && p > *ret_p) {
            *ret_p = p;
            *ret_term = t;
        }
    }
    linear_clear(&full);
    if (units < 2)
        *ret_term = problem->terms;
    return r;
}

/* Drops terms, the one with the largest p value first, until all are below the threshold and each kind of
 * one-of has one term; a note for each. */
int linear_eliminate(const struct problem *problem, enum least_squares_role *roles, struct fit_result *result,
                     struct plugin_message *message) {
    for (;;) {
        const char *crowded = find_repeated_kind(problem, roles);
        size_t worst;
        double p;
        int r = find_worst(problem, roles, crowded, &worst, &p, message);
        if (r < 0 || worst == problem->terms || !(crowded || p > linear_number(problem->request, THRESHOLD)))
            return r;
        leave_out(problem, roles, worst);
        fit_result_note(result, "dropped %.200s: p = %.3g%s", problem->request->terms[worst].name, p,
                        crowded ? ", one of several terms with columns of one-of" : "");
    }
}
