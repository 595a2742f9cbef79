/* The plugin fit-population: see README.md for what it computes. */
#include "plugins/fit-population/components.h"
#include "plugins/fit-population/distances.h"
#include "plugins/fit-population/machines.h"
#include "plugins/interface/fit.h"
#include "plugins/numerics/grouped-rows.h"
#include "plugins/numerics/notes.h"

#include <errno.h>
#include <gsl/gsl_errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With fewer machines BIC sees several populations in more than one in twenty draws from one. */
enum { MACHINES_FEW = 64 };
enum { CONSTANTS_NAMED = 5, VALUES_MAX = 12, NAME_SIZE = 256, PARTS_MAX = POPULATIONS_MAX + 1 };

enum parameter { COMPONENTS, SHAPE, BETWEEN, DAYS, STARTS, PARAMETER_COUNT };

static const char *const shape_words[] = {"best", "shared", "own", NULL};
static const char *const days_words[] = {"pooled", "mean", NULL};
static const char *const between_words[] = {"means", "unbiased", NULL};
enum { BETWEEN_MEANS, BETWEEN_UNBIASED };

static const struct plugin_parameter parameters[PARAMETER_COUNT] = {
    [COMPONENTS] = {.name = "components",
                    .unit = "1",
                    .fallback = 1,
                    .minimum = 0,
                    .maximum = POPULATIONS_MAX,
                    .whole = true,
                    .help = "how many populations the machines are of; 0: as many as BIC says"},
    [SHAPE] = {.name = "shape",
               .words = shape_words,
               .fallback = SHAPE_BEST,
               .help = "whether several populations share one covariance or have their own; best: by BIC"},
    [BETWEEN] = {.name = "between",
                 .words = between_words,
                 .fallback = BETWEEN_MEANS,
                 .help =
                     "Sigma_S: the covariance of the machines' means, as published, or less what the days "
                     "put into it"},
    [DAYS] = {.name = "days",
              .words = days_words,
              .fallback = DAYS_POOLED,
              .help = "Sigma_T: pooled over all machines, or the mean of each machine's covariance"},
    [STARTS] = {.name = "starts",
                .unit = "1",
                .fallback = 10,
                .minimum = 0,
                .maximum = 1000,
                .whole = true,
                .help = "drawn places where the search for several populations begins, besides ten that are "
                        "not drawn"},
};

struct fit {
    const struct plugin_host *host;
    const struct fit_request *request;
    struct terms terms;
    struct machines machines;
    struct grouped_rows rows; /* their groups are the machines */
    uint64_t *left_out;       /* by group */
    size_t left_out_count;
    uint64_t row_count;
    uint32_t *sorted; /* machines with rows, group by group */
    size_t *starts;   /* of each group in it */
    char **names;     /* of the machines, for people; NULL where there are too many of them */
    struct distances distances;
};

/* ---- Beginning */

static void population_close(struct fit *fit) {
    if (!fit)
        return;
    grouped_rows_clear(&fit->rows);
    free(fit->left_out);
    free(fit->sorted);
    free(fit->starts);
    for (uint32_t i = 0; fit->names && i < fit->machines.count; i++)
        free(fit->names[i]);
    free(fit->names);
    machines_clear(&fit->machines);
    distances_clear(&fit->distances);
    free(fit);
}

static int population_open(const struct plugin_host *host, const struct fit_request *request,
                           struct fit **ret, struct fit_needs *ret_needs, struct plugin_message *message) {
    gsl_set_error_handler_off(); /* a matrix that is not positive definite is no reason to abort */
    if (request->weights) {
        snprintf(message->text, sizeof message->text,
                 "weights '%s' are given; a population has every machine and day once, without weights",
                 request->weights);
        return -EINVAL;
    }
    struct fit *fit = calloc(1, sizeof *fit);
    if (!fit)
        return -ENOMEM;
    fit->host = host;
    fit->request = request;
    int r = terms_read(host, request, &fit->terms, message);
    if (r < 0) {
        free(fit);
        return r;
    }
    machines_init(&fit->machines, fit->terms.machine_count);
    grouped_rows_init(&fit->rows, fit->terms.coefficient_count);
    fit->rows.numbered = true;
    *ret = fit;
    *ret_needs = (struct fit_needs){.size = sizeof *ret_needs,
                                    .columns = fit->terms.coefficients,
                                    .column_count = fit->terms.coefficient_count,
                                    .categories = fit->terms.machines,
                                    .category_count = fit->terms.machine_count};
    return 0;
}

/* ---- Rows */

enum { STEP = 512 };

static int population_block(struct fit *fit, const struct fit_block *block, struct plugin_message *message) {
    fit->row_count += block->rows;
    for (size_t first = 0; first < block->rows; first += STEP) {
        size_t count = block->rows - first < STEP ? block->rows - first : STEP;
        uint32_t machines[STEP], codes[MACHINE_COLUMNS_MAX];
        const double *columns[COEFFICIENTS_MAX];
        for (size_t i = 0; i < fit->terms.coefficient_count; i++)
            columns[i] = block->columns[i] + first;
        int r = 0;
        for (size_t i = 0; r == 0 && i < count; i++) {
            for (size_t j = 0; j < fit->terms.machine_count; j++)
                codes[j] = block->categories[j][first + i];
            r = machines_find(&fit->machines, block->groups[first + i], codes, &machines[i]);
        }
        r = r < 0 ? r : grouped_rows_add(&fit->rows, count, columns, machines, fit->machines.count);
        if (r == -EFBIG)
            snprintf(message->text, sizeof message->text,
                     "there are more than %d rows or %d machines, the most that are kept",
                     (int)GROUPED_ROWS_MAX, (int)MACHINES_MAX);
        if (r < 0)
            return r == -EFBIG ? -EINVAL : r;
    }
    return 0;
}

static int population_end_of_pass(struct fit *fit, struct plugin_message *message) {
    if (fit->row_count > 0)
        return FIT_DONE;
    snprintf(message->text, sizeof message->text, "there are no rows to fit");
    return -EINVAL;
}

/* Machines that have rows, group by group; rows left out, by group. */
static int sort_machines(struct fit *fit, uint32_t group_count) {
    int r = grouped_rows_sort(&fit->rows);
    fit->sorted = malloc(((size_t)fit->machines.count + 1) * sizeof *fit->sorted);
    fit->starts = calloc((size_t)group_count + 2, sizeof *fit->starts);
    fit->left_out = calloc((size_t)group_count + 1, sizeof *fit->left_out);
    if (r < 0 || !fit->sorted || !fit->starts || !fit->left_out)
        return -ENOMEM;
    size_t *next = fit->starts + 1;
    for (uint32_t i = 0; i < fit->machines.count; i++) {
        uint32_t group = machines_group(&fit->machines, i);
        fit->left_out[group] += fit->rows.left_out[i];
        next[group + 1] += fit->rows.starts[i + 1] > fit->rows.starts[i];
    }
    for (uint32_t g = 1; g <= group_count; g++)
        next[g] += next[g - 1];
    for (uint32_t i = 0; i < fit->machines.count; i++)
        if (fit->rows.starts[i + 1] > fit->rows.starts[i])
            fit->sorted[next[machines_group(&fit->machines, i)]++] = i;
    return 0;
}

/* "node 3, cpu 0" */
static char *name_machine(const struct fit *fit, uint32_t machine, const struct plugin_levels *levels) {
    char name[NAME_SIZE] = "";
    const uint32_t *codes = fit->machines.keys + (size_t)machine * (fit->machines.columns + 1) + 1;
    size_t length = 0;
    for (size_t j = 0; j < fit->terms.machine_count && length < sizeof name - 1; j++) {
        int written = snprintf(name + length, sizeof name - length, "%s%.40s %.60s", j ? ", " : "",
                               fit->terms.machines[j], levels[j].texts[codes[j]]);
        length += written > 0 ? (size_t)written : 0;
    }
    return strdup(name);
}

static int name_machines(struct fit *fit) {
    struct plugin_levels levels[MACHINE_COLUMNS_MAX];
    int r = 0;
    if (fit->machines.count > FIT_DISTANCES_MAX)
        return 0;
    for (size_t j = 0; r == 0 && j < fit->terms.machine_count; j++)
        r = fit->host->levels(fit->host->context, j, &levels[j]);
    fit->names = r == 0 ? calloc((size_t)fit->machines.count + 1, sizeof *fit->names) : NULL;
    bool good = r < 0 || fit->names != NULL;
    for (uint32_t i = 0; fit->names && i < fit->machines.count; i++)
        good = (fit->names[i] = name_machine(fit, i, levels)) != NULL && good;
    return r < 0 ? r : good ? 0 : -ENOMEM;
}

/* ---- Results */

struct part {
    const char *name;
    struct fit_estimate estimates[COEFFICIENTS_MAX];
    struct fit_value values[VALUES_MAX];
    size_t value_count;
};

/* "typical" for the most of the machines; those that take longer are "slow", "slow-2" ... away from it, the
 * others "fast". */
static void name_components(const struct components *components, const char *ret[static POPULATIONS_MAX]) {
    static const char *const slow[POPULATIONS_MAX] = {"typical", "slow", "slow-2", "slow-3"};
    static const char *const fast[POPULATIONS_MAX] = {"typical", "fast", "fast-2", "fast-3"};
    size_t typical = 0;
    for (size_t k = 1; k < components->count; k++)
        if (components->of[k].weight > components->of[typical].weight)
            typical = k;
    for (size_t k = 0; k < components->count; k++)
        ret[k] = k > typical ? slow[k - typical] : fast[typical - k];
}

static double slow_share(const struct components *components, const char *const *names) {
    double share = 0;
    for (size_t k = 0; k < components->count; k++)
        if (strncmp(names[k], "slow", 4) == 0)
            share += components->of[k].weight;
    return share;
}

static void add_value(struct part *part, const char *name, double value) {
    part->values[part->value_count++] = (struct fit_value){name, value, 0};
}

static void tell_components(const struct moments *moments, const struct components *components,
                            const double *sampled, struct part *parts, uint64_t left_out) {
    size_t p = moments->p;
    double machines = (double)moments->machines;
    const char *names[POPULATIONS_MAX];
    name_components(components, names);
    for (size_t k = 0; k < components->count; k++) {
        const struct component *component = &components->of[k];
        struct part *part = &parts[k];
        part->name = names[k];
        for (size_t i = 0; i < p; i++) /* a mean of machines' means, which scatter as they were seen */
            part->estimates[i] =
                (struct fit_estimate){component->mu[i],
                                      sqrt(sampled[k * COEFFICIENTS_MAX * COEFFICIENTS_MAX + i * p + i] /
                                           (component->weight * machines)),
                                      NAN, NAN, false};
        add_value(part, "weight", component->weight);
        add_value(part, "machines", machines);
        add_value(part, "components", (double)components->count);
        add_value(part, "slow_share", slow_share(components, names));
        add_value(part, "heterogeneity", sqrt(component->sigma[0]) / component->mu[0]);
        add_value(part, "log_likelihood", components->log_likelihood);
        add_value(part, "aic", -2 * components->log_likelihood + 2 * components->parameters);
        add_value(part, "bic", components_bic(components, moments->machines));
        add_value(part, "rows_left_out", (double)left_out);
    }
}

static void tell_days(const struct moments *moments, struct part *part) {
    part->name = "days";
    for (size_t i = 0; i < moments->p; i++)
        part->estimates[i] = (struct fit_estimate){0, NAN, NAN, NAN, false};
    add_value(part, "days", (double)moments->rows / (double)moments->machines);
    add_value(part, "repeated", (double)moments->repeated);
    add_value(part, "variability", moments->repeated ? sqrt(moments->days[0]) / moments->mu[0] : NAN);
}

/* Takes from each Sigma_S what the days put into the means of machines that were seen few times. */
static void correct(const struct moments *moments, struct components *components, struct notes *notes) {
    size_t p = moments->p, changed = 0;
    for (size_t k = 0; k < components->count; k++) {
        double scale[COEFFICIENTS_MAX], *sigma = components->of[k].sigma;
        for (size_t i = 0; i < p; i++)
            scale[i] = sigma[i * p + i] > 0 ? sqrt(sigma[i * p + i]) : 1;
        for (size_t i = 0; i < p * p; i++)
            sigma[i] -= moments->inverse_days * moments->days[i];
        changed += moments_make_definite(p, sigma, scale, 0);
    }
    if (changed)
        notes_add(notes, "the days alone explain more than the machines' means differ by in some direction: "
                         "Sigma_S was raised to 0 there");
}

static void note_group(const struct fit *fit, const struct moments *moments,
                       const struct components *components, uint64_t left_out, struct notes *notes) {
    notes_add_left_out(notes, left_out, "a value is empty or not finite");
    if (moments->repeated == 0)
        notes_add(notes, "every machine has one row: Sigma_T is not known, and part of Sigma_S");
    if (moments->machines <= moments->p)
        notes_add(notes, "%zu machines for %zu coefficients: Sigma_S is singular", moments->machines,
                  moments->p);
    if (fit->request->parameters[COMPONENTS] == 0 && components->count > 1 &&
        moments->machines < MACHINES_FEW)
        notes_add(notes,
                  "%zu populations among %zu machines: among so few BIC may see some where all are "
                  "alike; components=1 is one",
                  components->count, moments->machines);
    for (size_t i = 0; i < moments->p && notes->count < CONSTANTS_NAMED; i++)
        if (components->of[0].sigma[i * moments->p + i] == 0) {
            notes_add(notes, "%s is the same on all machines", fit->terms.coefficients[i]);
            break;
        }
}

static int write_group(const struct fit *fit, const struct fit_writer *writer, uint32_t code,
                       const struct moments *moments, struct components *components) {
    struct notes notes = {.count = 0};
    struct part parts[PARTS_MAX] = {0};
    double sampled[POPULATIONS_MAX * COEFFICIENTS_MAX * COEFFICIENTS_MAX];
    uint64_t left_out = fit->left_out[code];
    for (size_t k = 0; k < components->count; k++)
        memcpy(sampled + k * COEFFICIENTS_MAX * COEFFICIENTS_MAX, components->of[k].sigma,
               moments->p * moments->p * sizeof *sampled);
    note_group(fit, moments, components, left_out, &notes);
    if (fit->request->parameters[BETWEEN] == BETWEEN_UNBIASED)
        correct(moments, components, &notes);
    tell_components(moments, components, sampled, parts, left_out);
    tell_days(moments, &parts[components->count]);
    struct fit_part written[PARTS_MAX];
    struct plugin_range domain[COEFFICIENTS_MAX];
    for (size_t i = 0; i < moments->p; i++)
        domain[i] =
            (struct plugin_range){fit->terms.coefficients[i], moments->least[i], moments->greatest[i]};
    for (size_t k = 0; k <= components->count; k++) {
        bool days = k == components->count;
        const double *covariance =
            days ? (moments->repeated ? moments->days : NULL) : components->of[k].sigma;
        written[k] = (struct fit_part){
            .size = sizeof *written,
            .kind = days ? "days" : "component",
            .name = days ? NULL : parts[k].name,
            .estimates = parts[k].estimates,
            .covariance = covariance,
            .values = parts[k].values,
            .value_count = parts[k].value_count,
            .domain = domain,
            .domain_count = days ? 0 : moments->p,
            .from = -INFINITY,
            .to = INFINITY,
        };
    }
    const struct fit_group told = {
        .size = sizeof told,
        .code = code,
        .rows = moments->rows,
        .parts = written,
        .part_count = components->count + 1,
        .notes = notes.pointers,
        .note_count = notes.count,
    };
    return writer->group(writer->context, &told);
}

/* Squares of values that a double can hold may be beyond it. */
static bool are_finite(size_t count, const double *numbers) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(numbers[i]))
            return false;
    return true;
}

static bool can_be_told(const struct moments *moments, const struct components *components) {
    size_t p = moments->p;
    bool told = are_finite(p, moments->mu) && are_finite(p * p, moments->days);
    for (size_t i = 0; i < moments->machines * p; i++) {
        double distance = moments->means[i];
        told = told && isfinite(distance * distance * (double)moments->machines);
    }
    for (size_t k = 0; k < components->count; k++)
        told = told && are_finite(p, components->of[k].mu) && are_finite(p * p, components->of[k].sigma);
    return told;
}

static int skip_beyond(const struct fit_writer *writer, uint32_t code, const struct moments *moments) {
    return writer->skipped(writer->context, code, moments->rows,
                           "the values go beyond what a double can hold when they are squared");
}

/* Of the machines' means, before what the days put into them is taken off: they scatter with it. */
static int measure(struct fit *fit, uint32_t code, const struct moments *moments,
                   const struct components *components) {
    if (!fit->names)
        return 0;
    const char *parts[POPULATIONS_MAX];
    name_components(components, parts);
    const struct distances_rows rows = {
        .columns = (const double *const *)fit->rows.values,
        .numbers = fit->rows.numbers,
        .starts = fit->rows.starts,
        .codes = fit->sorted + fit->starts[code],
        .names = (const char *const *)fit->names,
    };
    return distances_add(&fit->distances, moments, components, parts, &rows);
}

static int finish_group(struct fit *fit, const struct fit_writer *writer, uint32_t code) {
    const double *asked = fit->request->parameters;
    size_t first = fit->starts[code], machines = fit->starts[code + 1] - first;
    struct moments moments;
    struct components components;
    const struct components_settings settings = {(size_t)asked[COMPONENTS],
                                                 (enum components_shape)asked[SHAPE], (size_t)asked[STARTS],
                                                 fit->request->seed};
    char reason[256];
    int r = moments_init(&moments, fit->terms.coefficient_count, (const double *const *)fit->rows.values,
                         fit->rows.starts, fit->sorted + first, machines, (enum days_rule)asked[DAYS]);
    if (r == 0 && machines < 2) {
        snprintf(reason, sizeof reason, "%zu machine%s; expected at least 2", machines,
                 machines == 1 ? "" : "s");
        r = writer->skipped(writer->context, code, moments.rows, reason);
    } else if (r == 0 && !can_be_told(&moments, &(struct components){0})) {
        r = skip_beyond(writer, code, &moments);
    } else if (r == 0) {
        r = components_find(&moments, &settings, &components);
        if (r == -EDOM) {
            snprintf(reason, sizeof reason,
                     "no mixture of %zu populations was found in which each has machines enough, of %zu",
                     settings.count, machines);
            r = writer->skipped(writer->context, code, moments.rows, reason);
        } else if (r == 0 && !can_be_told(&moments, &components)) {
            r = skip_beyond(writer, code, &moments);
        } else if (r == 0) {
            r = measure(fit, code, &moments, &components);
            r = r < 0 ? r : write_group(fit, writer, code, &moments, &components);
        }
    }
    moments_clear(&moments);
    return r;
}

static int population_finish(struct fit *fit, const struct fit_writer *writer,
                             struct plugin_message *message) {
    (void)message; /* whatever fails here is memory, or the writer, who knows */
    struct plugin_term terms[COEFFICIENTS_MAX];
    struct plugin_factor factors[COEFFICIENTS_MAX];
    for (size_t i = 0; i < fit->terms.coefficient_count; i++) {
        factors[i] = (struct plugin_factor){.name = fit->terms.coefficients[i], .power = 1};
        terms[i] = (struct plugin_term){fit->terms.coefficients[i], &factors[i], 1};
    }
    const struct fit_formula formula = {sizeof formula, "population", terms, fit->terms.coefficient_count,
                                        NULL,           NULL};
    int r = sort_machines(fit, writer->group_count);
    r = r < 0 ? r : name_machines(fit);
    r = r < 0 ? r : writer->formula(writer->context, &formula);
    for (uint32_t i = 0; r >= 0 && i < writer->group_count; i++)
        r = finish_group(fit, writer, writer->order[i]);
    return r;
}

static bool population_distances(const struct fit *fit, size_t set, struct fit_distances *ret) {
    if (set >= DISTANCES_SETS || !fit->names)
        return false;
    distances_tell(&fit->distances, (enum distances_set)set, fit->terms.coefficient_count, ret);
    return true;
}

static const struct fit_operations operations = {
    .size = sizeof operations,
    .parameter_count = PARAMETER_COUNT,
    .parameters = parameters,
    .open = population_open,
    .block = population_block,
    .end_of_pass = population_end_of_pass,
    .finish = population_finish,
    .close = population_close,
    .distances = population_distances,
};

ASSAY_PLUGIN_EXPORT extern const struct assay_plugin assay_plugin;
const struct assay_plugin assay_plugin = {
    .abi = ASSAY_PLUGIN_ABI,
    .size = sizeof assay_plugin,
    .kind = ASSAY_PLUGIN_FIT,
    .name = "fit-population",
    .version = ASSAY_VERSION,
    .summary = "how machines and days differ: means and covariances of coefficients",
    .operations = &operations,
};
