#include "plugins/fit-population/population.h"

#include <stdlib.h>
#include <string.h>

/* By what the columns of the machines say, then by the table. */
static int by_machine(const void *a, const void *b, void *context) {
    const struct fit_rows *rows = ((void **)context)[0];
    size_t count = *(const size_t *)((void **)context)[1], left = *(const size_t *)a,
           right = *(const size_t *)b;
    for (size_t c = 0; c < count; c++)
        if (rows->categories[c][left] != rows->categories[c][right])
            return rows->categories[c][left] < rows->categories[c][right] ? -1 : 1;
    return (left > right) - (left < right);
}

static bool is_same_machine(const struct fit_rows *rows, size_t count, size_t a, size_t b) {
    for (size_t c = 0; c < count; c++)
        if (rows->categories[c][a] != rows->categories[c][b])
            return false;
    return true;
}

/* The mean of each machine and coefficient, of differences to the first row, which keep their digits far from
 * zero. */
static void find_means(struct machines *machines) {
    for (size_t m = 0; m < machines->count; m++)
        for (size_t j = 0; j < machines->p; j++) {
            const double *column = machines->columns[j];
            double sum = 0;
            for (size_t i = machines->starts[m]; i < machines->starts[m + 1]; i++)
                sum += column[machines->order[i]] - column[0];
            machines->means[m + j * machines->count] =
                sum / (double)(machines->starts[m + 1] - machines->starts[m]);
        }
}

/* The covariance between days about the mean of their machine: pooled, or the mean of the machines'
 * covariances. */
static void find_within(struct machines *machines, enum days rule) {
    size_t p = machines->p, freedom = machines->rows - machines->count;
    for (size_t i = 0; i < p * p; i++) {
        const double *left = machines->columns[i / p], *right = machines->columns[i % p];
        const double *means = machines->means;
        double total = 0;
        for (size_t m = 0; m < machines->count; m++) {
            size_t days = machines->starts[m + 1] - machines->starts[m];
            double sum = 0;
            for (size_t k = machines->starts[m]; k < machines->starts[m + 1]; k++)
                sum += (left[machines->order[k]] - left[0] - means[m + i / p * machines->count]) *
                       (right[machines->order[k]] - right[0] - means[m + i % p * machines->count]);
            total += rule == DAYS_POOLED ? sum : days > 1 ? sum / (double)(days - 1) : 0;
        }
        machines->within[i] = total / (double)(rule == DAYS_POOLED ? freedom : machines->repeated);
    }
}

/* Groups rows by machine, with means and the covariance between days. -ENOMEM. To be cleared in any case. */
int machines_init(struct machines *machines, const struct fit_rows *rows, const struct fit_request *request) {
    const struct plugin_value *coefficients = &request->values[COEFFICIENTS];
    size_t n = rows->count, categories = request->values[MACHINE].count;
    void *context[] = {(void *)rows, &categories};
    *machines = (struct machines){.p = 1, .rows = n, .columns = {rows->response}};
    for (size_t i = 0; i < coefficients->count; i++)
        if (strcmp(coefficients->texts[i], request->response) != 0)
            machines->columns[machines->p++] = rows->columns[coefficients->first + i];
    machines->order = malloc((n + 1) * sizeof *machines->order);
    machines->starts = malloc((n + 1) * sizeof *machines->starts);
    machines->means = malloc((n * machines->p + 1) * sizeof *machines->means);
    if (!machines->order || !machines->starts || !machines->means)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        machines->order[i] = i;
    qsort_r(machines->order, n, sizeof *machines->order, by_machine, context);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !is_same_machine(rows, categories, machines->order[i - 1], machines->order[i]))
            machines->starts[machines->count++] = i;
    machines->starts[machines->count] = n;
    for (size_t m = 0; m < machines->count; m++)
        machines->repeated += machines->starts[m + 1] - machines->starts[m] > 1;
    find_means(machines);
    find_within(machines, (enum days)request->values[DAYS].number);
    return 0;
}

void machines_clear(struct machines *machines) {
    free(machines->order), free(machines->starts), free(machines->means);
}

/* Writes a name of MACHINE as "node 3, cpu 0" into RET, as far as it fits. */
void machines_name(const struct machines *machines, size_t machine, const struct fit_rows *rows,
                   const struct fit_request *request, char *ret, size_t size) {
    const struct plugin_value *columns = &request->values[MACHINE];
    size_t row = machines->order[machines->starts[machine]], length = 0;
    ret[0] = '\0';
    for (size_t c = 0; c < columns->count && length < size; c++) {
        const char *text = request->levels[columns->first + c].texts[rows->categories[c][row]];
        length += (size_t)snprintf(ret + length, size - length, "%s%.40s %.60s", c ? ", " : "",
                                   columns->texts[c], text);
    }
}
