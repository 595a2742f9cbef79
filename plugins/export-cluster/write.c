#include "plugins/export-cluster/cluster.h"

#include <assay/text.h>

#include <stdlib.h>
#include <string.h>

const char *cluster_coefficient(const struct model *model, size_t i) {
    const struct model_term *term = &model->terms[i];
    return term->factor_count == 1 && term->factors[0].power == 1 ? term->factors[0].column : term->name;
}

/* Called for each machine and day; 0 or a negative errno, which ends the drawing. */
typedef int write_machine(void *context, size_t machine, size_t day, const char *population,
                          const double *values);

/* Draws all machines, and all days of each, and calls WRITE_ONE for each. */
static int draw_machines(struct cluster *cluster, write_machine *write_one, void *context,
                         struct plugin_message *message) {
    double machine[COEFFICIENTS_MAX], values[COEFFICIENTS_MAX];
    int r = 0;
    for (size_t c = 0; r == 0 && c < cluster->nodes * cluster->cpus; c++) {
        const char *name = "";
        r = cluster_machine(cluster, c, machine, &name, message);
        if (r == 0 && cluster->days == 0)
            r = write_one(context, c, 0, name, machine);
        for (size_t day = 0; r == 0 && day < cluster->days; day++) {
            r = cluster_day(cluster, c, day, machine, values, message);
            r = r < 0 ? r : write_one(context, c, day + 1, name, values);
        }
    }
    return r;
}

/* ---- The table */

struct table {
    const struct cluster *cluster;
    struct predict_output *output;
};

static void double_quotes(struct predict_output *output, const char *text) {
    for (; *text; text++)
        output->text(output->context, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
}

static int put_row(void *context, size_t machine, size_t day, const char *population, const double *values) {
    const struct table *table = context;
    const struct cluster *cluster = table->cluster;
    predict_print(table->output, NULL, "node-%g,%g,%g,%s", (double)(machine / cluster->cpus + 1),
                  (double)(machine % cluster->cpus), (double)day, population);
    for (size_t i = 0; i < cluster->count; i++)
        predict_print(table->output, NULL, ",%g", values[i]);
    return table->output->text(table->output->context, "\n", 1);
}

int cluster_write_table(struct cluster *cluster, struct predict_output *output,
                        struct plugin_message *message) {
    struct table table = {cluster, output};
    predict_print(output, NULL, "node,cpu,day,population");
    for (size_t i = 0; i < cluster->count; i++)
        predict_print(output, double_quotes, ",\"%s\"", cluster_coefficient(cluster->model, i));
    predict_print(output, NULL, "\n");
    return draw_machines(cluster, put_row, &table, message);
}

/* ---- The model */

/* A machine on a day: a group's only part, and all that it has. */
struct machine {
    struct model_part part;
    char *labels[3], *notes[1];
    char words[3][32], note[128];
    double numbers[]; /* the coefficients of the noise, then the estimates */
};

struct drawing {
    struct cluster *cluster;
    struct target *targets;
    struct model model;
    char *words; /* names of columns */
};

static bool is_one(const struct target *target) {
    return strcmp(target->term, "1") == 0;
}

static void add_factor(struct drawing *drawing, struct model_term *term, char *word, int power) {
    struct model *model = &drawing->model;
    size_t i = 0;
    term->factors[term->factor_count++] = (struct model_factor){.column = word, .power = power};
    while (i < model->column_count && strcmp(model->columns[i].about.name, word) != 0)
        i++;
    model->columns[i].about.name = word;
    model->column_count += i == model->column_count;
}

/* Makes the terms and columns of the model. -ENOMEM. */
static int make_terms(struct drawing *drawing) {
    struct model *model = &drawing->model;
    size_t count = drawing->cluster->count, room = 1;
    for (size_t i = 0; i < count; i++)
        room += strlen(drawing->targets[i].term) + 1;
    struct model_factor *factors = calloc(room, sizeof *factors);
    char *word = drawing->words = malloc(room), column[TERM_MAX];
    model->terms = calloc(count + 1, sizeof *model->terms);
    model->columns = calloc(room, sizeof *model->columns);
    if (!factors || !word || !model->terms || !model->columns) {
        free(factors);
        return -ENOMEM;
    }
    model->terms[0].factors = factors;
    for (size_t i = 0; i < count; i++) {
        struct model_term *term = &model->terms[model->term_count];
        int power;
        if (drawing->targets[i].kind != TARGET_MEAN)
            continue;
        *term = (struct model_term){.name = drawing->targets[i].term,
                                    .unit = drawing->cluster->model->terms[i].unit,
                                    .factors = factors};
        for (const char *at = term->name; (at = target_factor(at, column, &power)); at++) {
            size_t length = strlen(column) + 1;
            add_factor(drawing, term, memcpy(word, column, length), power);
            word += length;
            if (!*at)
                break;
        }
        factors += term->factor_count;
        if (is_one(&drawing->targets[i]))
            model->response_unit = term->unit;
        model->term_count++;
    }
    return 0;
}

/* The coefficient of the noise for TERM, 0 if there is none. */
static double sigma_of(const struct drawing *drawing, const char *term, const double *values) {
    for (size_t k = 0; k < drawing->cluster->count; k++)
        if (drawing->targets[k].kind == TARGET_SIGMA && strcmp(drawing->targets[k].term, term) == 0)
            return values[k];
    return 0;
}

/* The noise of a machine by its drawn VALUES; COEFFICIENTS is its memory. */
static struct model_noise noise_of(const struct drawing *drawing, const double *values,
                                   double *coefficients) {
    struct model_noise noise = {.kind = MODEL_NOISE_NONE};
    for (size_t k = 0; k < drawing->cluster->count; k++)
        if (drawing->targets[k].kind == TARGET_SIGMA)
            noise.kind = noise.kind == MODEL_NOISE_HETEROSCEDASTIC || !is_one(&drawing->targets[k])
                             ? MODEL_NOISE_HETEROSCEDASTIC
                             : MODEL_NOISE_HOMOSCEDASTIC;
    noise.constant = sigma_of(drawing, "1", values);
    for (size_t t = 0; t < drawing->model.term_count; t++)
        if (drawing->model.terms[t].factor_count > 0)
            coefficients[t] = sigma_of(drawing, drawing->model.terms[t].name, values);
    noise.coefficients = noise.kind == MODEL_NOISE_HETEROSCEDASTIC ? coefficients : NULL;
    return noise;
}

/* Adds a machine on a day as a group of the model. -ENOMEM. */
static int add_group(void *context, size_t machine, size_t day, const char *population,
                     const double *values) {
    static char whole[] = "whole";
    struct drawing *drawing = context;
    const struct cluster *cluster = drawing->cluster;
    size_t terms = drawing->model.term_count, used = 0;
    struct machine *one =
        calloc(1, sizeof *one + terms * (sizeof *one->numbers + sizeof *one->part.estimates));
    if (!one)
        return -ENOMEM;
    snprintf(one->words[used++], sizeof *one->words, "node-%zu", machine / cluster->cpus + 1);
    if (cluster->cpus > 1)
        snprintf(one->words[used++], sizeof *one->words, "%zu", machine % cluster->cpus);
    if (cluster->days > 1)
        snprintf(one->words[used++], sizeof *one->words, "%zu", day);
    for (size_t j = 0; j < used; j++)
        one->labels[j] = one->words[j];
    snprintf(one->note, sizeof one->note, "drawn from the population '%.64s'", population);
    one->notes[0] = one->note;
    one->part = (struct model_part){.kind = whole,
                                    .from = -INFINITY,
                                    .to = INFINITY,
                                    .estimates = (struct model_estimate *)(one->numbers + terms),
                                    .noise = noise_of(drawing, values, one->numbers)};
    for (size_t i = 0, t = 0; i < cluster->count; i++)
        if (drawing->targets[i].kind == TARGET_MEAN)
            one->part.estimates[t++] =
                (struct model_estimate){.estimate = values[i], .standard_error = NAN, .t = NAN, .p = NAN};
    drawing->model.groups[drawing->model.group_count++] = (struct model_group){.labels = one->labels,
                                                                               .rows = 1,
                                                                               .parts = &one->part,
                                                                               .part_count = 1,
                                                                               .notes = one->notes,
                                                                               .note_count = 1};
    return 0;
}

/* Draws all machines into one model and writes it. -ENOMEM or another negative errno. */
int cluster_write_model(struct cluster *cluster, struct target *targets, const char *response,
                        struct predict_output *output, struct plugin_message *message) {
    static char linear[] = "linear", node[] = "node", cpu[] = "cpu", day[] = "day";
    char *by[3] = {node};
    struct drawing drawing = {.cluster = cluster, .targets = targets};
    struct model *model = &drawing.model;
    *model = (struct model){.size = sizeof *model, .kind = linear, .response = (char *)response, .by = by};
    model->by_count = 1;
    if (cluster->cpus > 1)
        by[model->by_count++] = cpu;
    if (cluster->days > 1)
        by[model->by_count++] = day;
    model->groups =
        calloc(cluster->nodes * cluster->cpus * (cluster->days ? cluster->days : 1), sizeof *model->groups);
    int r = make_terms(&drawing);
    r = r == 0 && !model->groups ? -ENOMEM : r;
    r = r < 0 ? r : draw_machines(cluster, add_group, &drawing, message);
    r = r < 0 ? r : output->model(output->context, model);
    for (size_t g = 0; g < model->group_count; g++)
        free(model->groups[g].parts); /* the machine */
    if (model->terms)
        free(model->terms[0].factors);
    free(model->groups), free(model->terms), free(model->columns), free(drawing.words);
    return r;
}
