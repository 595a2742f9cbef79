/* Squared Mahalanobis distances. Of normal values they are chi-squared, with a degree of freedom for each
 * coefficient. */
#include "plugins/fit-population/population.h"

#include "engine/numerics/cholesky.h"
#include "engine/numerics/distribution.h"

#include <stdlib.h>

enum { SHOWN_LEAST = 5, SHOWN_MAX = 1000, NAMED_MAX = 12, LABEL_SIZE = 512 };

/* Distant: further than this share of a normal population (P. J. Rousseeuw, B. C. van Zomeren, J. Amer.
 * Statist. Assoc. 85 (1990), 633). */
static const double distant = 0.025;

struct distance {
    double square, value, expected; /* the first coefficient's */
    size_t machine, row;
};

static int furthest_first(const void *a, const void *b) {
    const struct distance *left = a, *right = b;
    if (left->square != right->square)
        return left->square > right->square ? -1 : 1;
    return (left->row > right->row) - (left->row < right->row);
}

/* The distance of each machine from the mean of its population; none for a singular covariance. Returns their
 * number. */
static size_t distances_of_machines(const struct machines *machines, const struct population *population,
                                    struct distance *ret) {
    size_t p = machines->p, count = 0;
    double factor[COEFFICIENTS_MAX * COEFFICIENTS_MAX], away[COEFFICIENTS_MAX], scratch[COEFFICIENTS_MAX];
    for (size_t k = 0; k < population->count; k++) {
        const struct component *component = &population->of[k];
        if (cholesky_factor(p, component->sigma, factor) < 0)
            continue;
        for (size_t m = 0; m < machines->count; m++) {
            if (population->component[m] != k)
                continue;
            for (size_t j = 0; j < p; j++)
                away[j] = machines->means[m + j * machines->count] - component->mu[j];
            double origin = machines->columns[0][0];
            ret[count++] = (struct distance){.square = cholesky_mahalanobis(p, factor, away, scratch),
                                             .value = machines->means[m] + origin,
                                             .expected = component->mu[0] + origin,
                                             .machine = m,
                                             .row = machines->order[machines->starts[m]]};
        }
    }
    return count;
}

/* The distance of each run from the mean of its machine. The run is part of that mean, which the factor n /
 * (n - 1) makes up for. Returns their number; 0 if machines have single runs. */
static size_t distances_of_runs(const struct machines *machines, struct distance *ret) {
    size_t p = machines->p, count = 0;
    double factor[COEFFICIENTS_MAX * COEFFICIENTS_MAX], away[COEFFICIENTS_MAX], scratch[COEFFICIENTS_MAX];
    if (machines->repeated == 0 || cholesky_factor(p, machines->within, factor) < 0)
        return 0;
    for (size_t m = 0; m < machines->count; m++) {
        double days = (double)(machines->starts[m + 1] - machines->starts[m]);
        for (size_t i = machines->starts[m]; days > 1 && i < machines->starts[m + 1]; i++) {
            size_t row = machines->order[i];
            for (size_t j = 0; j < p; j++)
                away[j] = machines->columns[j][row] - machines->columns[j][0] -
                          machines->means[m + j * machines->count];
            ret[count++] = (struct distance){.square = cholesky_mahalanobis(p, factor, away, scratch) * days /
                                                       (days - 1),
                                             .value = machines->columns[0][row],
                                             .expected = machines->means[m] + machines->columns[0][0],
                                             .machine = m,
                                             .row = row};
        }
    }
    return count;
}

/* Counts the distant ones, and records a table of them, at least of the furthest five. */
static void record_distances(const struct machines *machines, const struct population *population,
                             const struct fit_rows *rows, const struct fit_request *request,
                             struct distance *distances, size_t count, bool are_runs,
                             struct fit_result *result) {
    const char *const columns[] = {"distance", "p", request->response, "expected"};
    const char *const units[] = {"1", "1", request->response_unit, request->response_unit};
    size_t beyond = 0;
    double freedom = (double)machines->p;
    if (count == 0)
        return;
    qsort(distances, count, sizeof *distances, furthest_first);
    fit_result_table(result, are_runs ? "runs" : "machines", columns, units, 4);
    for (size_t i = 0; i < count; i++) {
        char name[LABEL_SIZE / 2], label[LABEL_SIZE];
        const struct distance *at = &distances[i];
        double p = distribution_chi_squared_upper(at->square, freedom);
        beyond += p < distant;
        if (i >= SHOWN_MAX || (i >= SHOWN_LEAST && p >= distant))
            continue;
        machines_name(machines, at->machine, rows, request, name, sizeof name);
        if (are_runs)
            snprintf(label, sizeof label, "%s, row %llu", name,
                     (unsigned long long)rows->numbers[at->row] + 1);
        else
            snprintf(label, sizeof label, "%s, %s", name,
                     population->of[population->component[at->machine]].name);
        fit_result_table_row(result, label, (const double[]){sqrt(at->square), p, at->value, at->expected});
    }
    fit_result_group_value(result, are_runs ? "runs_distant" : "machines_distant", (double)beyond, "1");
    fit_result_group_value(result, are_runs ? "runs_distant_expected" : "machines_distant_expected",
                           distant * (double)count, "1");
}

/* Notes the machines of the slow population, as "slow: node 3, cpu 0; node 7, cpu 1 (2 of 40 machines)". */
static void note_slow(const struct machines *machines, const struct population *population,
                      const struct fit_rows *rows, const struct fit_request *request,
                      struct fit_result *result) {
    char list[NAMED_MAX * LABEL_SIZE / 4] = "";
    size_t count = 0, length = 0;
    for (size_t m = 0; m < machines->count; m++) {
        char name[LABEL_SIZE / 2];
        if (population->of[population->component[m]].name[0] != 's' || count++ >= NAMED_MAX)
            continue;
        machines_name(machines, m, rows, request, name, sizeof name);
        if (length < sizeof list)
            length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", length ? "; " : "", name);
    }
    if (count > NAMED_MAX)
        fit_result_note(result,
                        "machines of the slow population: %.900s; and %zu more (%zu of %zu "
                        "machines)",
                        list, count - NAMED_MAX, count, machines->count);
    else if (count > 0)
        fit_result_note(result, "machines of the slow population: %.900s (%zu of %zu machines)", list, count,
                        machines->count);
}

/* Records the distances of machines and of runs. -ENOMEM. */
int distances_give(const struct machines *machines, const struct population *population,
                   const struct fit_rows *rows, const struct fit_request *request,
                   struct fit_result *result) {
    struct distance *distances = malloc((machines->rows + 1) * sizeof *distances);
    if (!distances)
        return -ENOMEM;
    size_t count = distances_of_machines(machines, population, distances);
    record_distances(machines, population, rows, request, distances, count, false, result);
    count = distances_of_runs(machines, distances);
    record_distances(machines, population, rows, request, distances, count, true, result);
    note_slow(machines, population, rows, request, result);
    free(distances);
    return 0;
}
