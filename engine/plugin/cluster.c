#include "engine/plugin/cluster.h"

#include "engine/design/random.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/portable-math.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct population {
    const double *mu; /* NULL for the days */
    double *root;     /* lower triangle R with R R' = Sigma, row by row */
    double weight;
};

struct drawing {
    struct cluster *cluster;
    size_t count; /* of coefficients */
    struct population populations[CLUSTER_POPULATIONS_MAX];
    size_t indices[CLUSTER_POPULATIONS_MAX]; /* which part of the group each is */
    size_t population_count;
    struct population days;
    bool positive[CLUSTER_COEFFICIENTS_MAX];
    struct random_source source;
    double spare; /* normals are drawn in pairs */
    bool has_spare;
};

void cluster_free(struct cluster *cluster) {
    if (!cluster)
        return;
    free(cluster->values);
    free(cluster->populations);
    free(cluster);
}

void cluster_cleanup(struct cluster **cluster) {
    cluster_free(*cluster);
}

static void drawing_clear(struct drawing *drawing) {
    for (size_t k = 0; k < drawing->population_count; k++)
        free(drawing->populations[k].root);
    free(drawing->days.root);
}

/* ---- The model */

/* What rounding may do to a correlation. */
static const double rounding = 1e-9;

/* Cholesky's factor of a covariance that may be singular; scaled to correlations, so that coefficients of
 * 1e-11 and 1e-6 are the same to it. False where SIGMA is no covariance. */
static bool factorise(size_t count, const double *sigma, double *root) {
    double scale[CLUSTER_COEFFICIENTS_MAX];
    for (size_t i = 0; i < count; i++) {
        if (!(sigma[i * count + i] >= 0) || !isfinite(sigma[i * count + i]))
            return false;
        scale[i] = sqrt(sigma[i * count + i]);
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j <= i; j++) {
            double scales = scale[i] * scale[j], rest = sigma[i * count + j];
            if (scales == 0) {
                if (rest != 0)
                    return false;
                root[i * count + j] = 0;
                continue;
            }
            rest /= scales;
            for (size_t k = 0; k < j; k++)
                rest -= root[i * count + k] * root[j * count + k];
            double pivot = i == j ? rest : root[j * count + j];
            if (i == j && rest < -rounding)
                return false;
            if (pivot > rounding)
                root[i * count + j] = i == j ? sqrt(rest) : rest / pivot;
            else if (fabs(rest) > sqrt(rounding))
                return false; /* what depends on the coefficients before it must do so wholly */
            else
                root[i * count + j] = 0;
        }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j <= i; j++)
            root[i * count + j] *= scale[i];
    return true;
}

static int read_population(const struct drawing *drawing, const struct predict_part *part, const char *what,
                           struct population *ret, struct failure *failure) {
    const struct cluster *cluster = drawing->cluster;
    const char *name = cluster->model->name;
    if (!part->covariance)
        return failure_input(failure, name, 0, 0, "the group '%s' has no covariance of its %s",
                             cluster->group->name, what);
    for (size_t i = 0; i < drawing->count; i++)
        if (!isfinite(part->estimates[i]))
            return failure_input(failure, name, 0, 0, "the group '%s' has no mean of '%s'",
                                 cluster->group->name, cluster->model->terms[i].name);
    ret->mu = part->estimates;
    ret->root = xcalloc(drawing->count * drawing->count, sizeof *ret->root);
    if (!factorise(drawing->count, part->covariance, ret->root))
        return failure_input(failure, name, 0, 0,
                             "the covariance of the %s of the group '%s' is not positive semidefinite: no "
                             "distribution has it",
                             what, cluster->group->name);
    return 0;
}

static double weight_of(const struct predict_part *part) {
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->values[i].name, "weight") == 0)
            return part->values[i].value;
    return NAN;
}

static int read_component(struct drawing *drawing, size_t index, struct failure *failure) {
    const struct cluster *cluster = drawing->cluster;
    const struct predict_part *part = &cluster->group->parts[index];
    if (drawing->population_count == CLUSTER_POPULATIONS_MAX)
        return failure_input(failure, cluster->model->name, 0, 0,
                             "the group '%s' has more than %d populations", cluster->group->name,
                             (int)CLUSTER_POPULATIONS_MAX);
    struct population *population = &drawing->populations[drawing->population_count];
    drawing->indices[drawing->population_count++] = index;
    population->weight = weight_of(part);
    if (!(population->weight >= 0 && population->weight <= 1 + rounding))
        return failure_input(failure, cluster->model->name, 0, 0,
                             "a component of the group '%s' has the weight %g; expected one from 0 to 1",
                             cluster->group->name, population->weight);
    return read_population(drawing, part, "machines", population, failure);
}

static int read_parts(struct drawing *drawing, struct failure *failure) {
    const struct cluster *cluster = drawing->cluster;
    const struct predict_group *group = cluster->group;
    double weight = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < group->part_count; i++) {
        const char *kind = group->parts[i].kind;
        if (strcmp(kind, "component") == 0)
            r = read_component(drawing, i, failure);
        else if (strcmp(kind, "days") == 0 && cluster->settings.days > 0 && !drawing->days.root)
            r = read_population(drawing, &group->parts[i], "days", &drawing->days, failure);
    }
    for (size_t k = 0; k < drawing->population_count; k++)
        weight += drawing->populations[k].weight;
    if (r < 0)
        return r;
    if (fabs(weight - 1) > 1e-6)
        return failure_input(failure, cluster->model->name, 0, 0,
                             "the weights of the components of the group '%s' add up to %g; expected 1",
                             group->name, weight);
    if (cluster->settings.days > 0 && !drawing->days.root)
        return failure_input(failure, cluster->model->name, 0, 0,
                             "the group '%s' does not tell how days differ; 0 days draw machines alone",
                             group->name);
    for (size_t i = 0; i < drawing->count; i++) {
        drawing->positive[i] = true;
        for (size_t k = 0; k < drawing->population_count; k++)
            drawing->positive[i] = drawing->positive[i] && drawing->populations[k].mu[i] > 0;
    }
    return 0;
}

static int find_group(const struct predict_model *model, const char *name, const struct predict_group **ret,
                      struct failure *failure) {
    cleanup_free const char **names = xcalloc(model->group_count + 1, sizeof *names);
    for (size_t g = 0; g < model->group_count; g++) {
        names[g] = model->groups[g].name;
        if (name ? strcmp(names[g], name) == 0 : model->group_count == 1) {
            *ret = &model->groups[g];
            return 0;
        }
    }
    if (!name)
        return failure_input(failure, model->name, 0, 0,
                             "the model has %zu groups; which one is to be drawn from? such as '%s'",
                             model->group_count, names[0]);
    const char *nearest = text_nearest(name, names, model->group_count);
    return failure_input(failure, model->name, 0, 0, "there is no group '%s'%s%s%s", name,
                         nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* ---- Drawing */

/* A standard normal: G. Marsaglia's polar method (SIAM Review 6 (1964), 260), two at a time. */
static double draw_normal(struct drawing *drawing) {
    if (drawing->has_spare) {
        drawing->has_spare = false;
        return drawing->spare;
    }
    double x, y, square;
    do {
        x = 2 * random_fraction(&drawing->source) - 1;
        y = 2 * random_fraction(&drawing->source) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square == 0);
    double factor = sqrt(-2 * portable_log(square) / square);
    drawing->spare = y * factor;
    drawing->has_spare = true;
    return x * factor;
}

/* CENTRE + a draw with the population's covariance, until it is possible. */
static int draw_around(struct drawing *drawing, const struct population *population, const double *centre,
                       double *ret, struct failure *failure) {
    for (int tries = 0; tries < CLUSTER_REDRAWS_MAX; tries++) {
        double normals[CLUSTER_COEFFICIENTS_MAX];
        bool possible = true;
        for (size_t i = 0; i < drawing->count; i++)
            normals[i] = draw_normal(drawing);
        for (size_t i = 0; i < drawing->count; i++) {
            ret[i] = centre[i];
            for (size_t j = 0; j <= i; j++)
                ret[i] += population->root[i * drawing->count + j] * normals[j];
            possible = possible && (!drawing->positive[i] || ret[i] > 0);
        }
        if (possible)
            return 0;
        drawing->cluster->redrawn++;
    }
    return failure_input(failure, drawing->cluster->model->name, 0, 0,
                         "%d draws in a row had a coefficient that is not positive, though its mean is: the "
                         "covariances of '%s' are too wide for normal distributions",
                         (int)CLUSTER_REDRAWS_MAX, drawing->cluster->group->name);
}

static size_t draw_population(struct drawing *drawing) {
    double share = random_fraction(&drawing->source), passed = 0;
    for (size_t k = 0; k + 1 < drawing->population_count; k++) {
        passed += drawing->populations[k].weight;
        if (share < passed)
            return k;
    }
    return drawing->population_count - 1;
}

static int draw_machines(struct drawing *drawing, struct failure *failure) {
    struct cluster *cluster = drawing->cluster;
    size_t machines = cluster->settings.nodes * cluster->settings.cpus, days = cluster->settings.days;
    double *row = cluster->values;
    random_start(&drawing->source, cluster->settings.seed, RANDOM_STREAM_CLUSTER);
    for (size_t c = 0; c < machines; c++) {
        double machine[CLUSTER_COEFFICIENTS_MAX];
        size_t k = draw_population(drawing);
        cluster->populations[c] = drawing->indices[k];
        int r = draw_around(drawing, &drawing->populations[k], drawing->populations[k].mu, machine, failure);
        for (size_t d = 0; r == 0 && d < days; d++, row += drawing->count)
            r = draw_around(drawing, &drawing->days, machine, row, failure);
        if (r < 0)
            return r;
        if (days == 0) {
            memcpy(row, machine, drawing->count * sizeof *row);
            row += drawing->count;
        }
    }
    return 0;
}

static int check(const struct predict_model *model, const struct cluster_settings *settings,
                 struct failure *failure) {
    if (strcmp(model->kind, "population") != 0)
        return failure_input(failure, model->name, 0, 0,
                             "the model is of the kind '%s'; expected 'population', as 'assay fit "
                             "population' writes it",
                             model->kind);
    if (model->term_count > CLUSTER_COEFFICIENTS_MAX)
        return failure_input(failure, model->name, 0, 0,
                             "the model has %zu coefficients; expected at most %d", model->term_count,
                             (int)CLUSTER_COEFFICIENTS_MAX);
    double rows =
        (double)settings->nodes * (double)settings->cpus * (double)(settings->days ? settings->days : 1);
    if (rows > CLUSTER_ROWS_MAX)
        return failure_input(failure, NULL, 0, 0,
                             "%zu nodes of %zu cpus on %zu days are %.0f rows; expected at most %d",
                             settings->nodes, settings->cpus, settings->days, rows, (int)CLUSTER_ROWS_MAX);
    return 0;
}

int cluster_draw(const struct predict_model *model, const struct cluster_settings *settings,
                 struct cluster **ret, struct failure *failure) {
    int r = check(model, settings, failure);
    if (r < 0)
        return r;
    cleanup(cluster_cleanup) struct cluster *cluster = calloc(1, sizeof *cluster);
    if (!cluster)
        return failure_memory(failure);
    size_t machines = settings->nodes * settings->cpus;
    cluster->model = model;
    cluster->settings = *settings;
    cluster->coefficient_count = model->term_count;
    cluster->row_count = machines * (settings->days ? settings->days : 1);
    cluster->values = xcalloc(cluster->row_count * model->term_count + 1, sizeof *cluster->values);
    cluster->populations = xcalloc(machines + 1, sizeof *cluster->populations);
    r = find_group(model, settings->group, &cluster->group, failure);
    if (r < 0)
        return r;
    cleanup(drawing_clear) struct drawing drawing = {.cluster = cluster, .count = model->term_count};
    r = read_parts(&drawing, failure);
    r = r < 0 ? r : draw_machines(&drawing, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(cluster);
    return 0;
}
