/* The plugin export-cluster: see README.md for what it draws. */
#include "plugins/export-cluster/cluster.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 1 << 24, GROUPS_MAX = 1 << 21 };
enum option { AS, RESPONSE, FORM };
enum parameter { NODES, CPUS, DAYS, GROUP };
enum { FORM_MODEL, FORM_TABLE };

static const char *const kinds[] = {"population", NULL};
static const struct predict_role roles[] = {
    {"population", kinds, .help = "the population from which machines are drawn ('assay fit population')"},
    {0},
};
static const char *const forms[] = {"model", "table", NULL};
static const struct plugin_parameter options[] = {
    [AS] = {"as", PLUGIN_TEXTS,
            .help = "the term of each coefficient, NAME=TERM, ...: such as alpha=m*n*k, "
                    "beta=1, gamma=sigma(m*n*k); NAME=none leaves a coefficient out"},
    [RESPONSE] = {"response", PLUGIN_TEXT, .default_text = "duration",
                  .help = "name of the response of the written model"},
    [FORM] = {"form", PLUGIN_WORD, .choices = forms, .default_text = "model",
              .help = "model: a model file with a group for each machine; table: CSV"},
    {0},
};
static const struct plugin_parameter parameters[] = {
    [NODES] = {"nodes", PLUGIN_NUMBER, "1", .minimum = 1, .maximum = ROWS_MAX, .integer = true,
               .required = true, .help = "how many"},
    [CPUS] = {"cpus", PLUGIN_NUMBER, "1", .default_text = "1", .minimum = 1, .maximum = ROWS_MAX,
              .integer = true, .help = "number of CPUs of a node; each is a machine of its own"},
    [DAYS] = {"days", PLUGIN_NUMBER, "1", .default_text = "0", .maximum = ROWS_MAX, .integer = true,
              .help = "number of days on which each machine is drawn; 0: its long-run mean"},
    [GROUP] = {"group", PLUGIN_TEXT, .help = "group of the model, where the model has several"},
    {0},
};

/* The TERM that the user gave for coefficient NAME; NULL: none. */
static const char *as_of(const struct predict_inputs *inputs, const char *name) {
    const struct plugin_value *as = &inputs->options[AS];
    size_t length = strlen(name);
    for (size_t i = 0; i < as->count; i++)
        if (strncmp(as->texts[i], name, length) == 0 && as->texts[i][length] == '=')
            return as->texts[i] + length + 1;
    return NULL;
}

/* -EINVAL unless every `as` names a coefficient, each term has one coefficient, and each sigma belongs to a
 * term. */
static int check_targets(const struct predict_inputs *inputs, const struct model *model,
                         const struct target *targets, struct plugin_message *message) {
    const struct plugin_value *as = &inputs->options[AS];
    size_t count = model->term_count, means = 0;
    for (size_t i = 0; i < as->count; i++) {
        bool found = false;
        for (size_t t = 0; t < count; t++)
            found = found || as_of(inputs, cluster_coefficient(model, t)) == strchr(as->texts[i], '=') + 1;
        if (!found)
            return plugin_refuse(message, -EINVAL,
                                 "as: '%.200s' names no coefficient of the model; expected NAME=TERM",
                                 as->texts[i]);
    }
    for (size_t i = 0; i < count; i++) {
        bool found = targets[i].kind != TARGET_SIGMA || strcmp(targets[i].term, "1") == 0;
        means += targets[i].kind == TARGET_MEAN;
        for (size_t k = 0; k < count; k++) {
            bool same = k != i && strcmp(targets[i].term, targets[k].term) == 0;
            found = found || (same && targets[k].kind == TARGET_MEAN);
            if (same && targets[i].kind == targets[k].kind && targets[i].kind != TARGET_NONE)
                return plugin_refuse(message, -EINVAL,
                                     "both '%.200s' and '%.200s' are the %s of the term %.200s; leave one "
                                     "out with as=NAME=none",
                                     cluster_coefficient(model, i), cluster_coefficient(model, k),
                                     targets[i].kind == TARGET_MEAN ? "coefficient" : "sigma",
                                     targets[i].term);
        }
        if (!found)
            return plugin_refuse(message, -EINVAL,
                                 "'%.200s' is the sigma of the term %.200s, but no coefficient belongs "
                                 "to this term; set as=NAME=TERM",
                                 cluster_coefficient(model, i), targets[i].term);
    }
    return means > 0 ? 0
                     : plugin_refuse(message, -EINVAL, "no coefficient belongs to a term; set as=NAME=TERM");
}

/* Writes the drawn machines as a model. -EINVAL: the terms are not possible. */
static int write_model(struct cluster *cluster, struct predict_output *output,
                       struct plugin_message *message) {
    const struct predict_inputs *inputs = cluster->inputs;
    struct target *targets = calloc(cluster->count + 1, sizeof *targets);
    int r = targets ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < cluster->count; i++) {
        const char *name = cluster_coefficient(cluster->model, i);
        r = target_read(name, as_of(inputs, name), &targets[i], message);
    }
    r = r < 0 ? r : check_targets(inputs, cluster->model, targets, message);
    r = r < 0 ? r : cluster_write_model(cluster, targets, inputs->options[RESPONSE].text, output, message);
    free(targets);
    return r;
}

/* Draws the cluster and writes it as a model or a table. -EINVAL: too many machines. */
static int cluster_run(void *state, const struct predict_inputs *inputs, const struct plugin_value *values,
                       double *ret_values, struct predict_output *output, struct plugin_message *message) {
    struct cluster cluster = {.model = inputs->models[0][0],
                              .inputs = inputs,
                              .nodes = (size_t)values[NODES].number,
                              .cpus = (size_t)values[CPUS].number,
                              .days = (size_t)values[DAYS].number};
    double rows = values[NODES].number * values[CPUS].number * fmax(1, values[DAYS].number);
    bool is_table = inputs->options[FORM].number == FORM_TABLE;
    int most = is_table ? ROWS_MAX : GROUPS_MAX;
    (void)state, (void)ret_values;
    if (rows > most)
        return plugin_refuse(message, -EINVAL, "%.0f machines times days; expected at most %d", rows, most);
    cluster.group = predict_group(cluster.model, values[GROUP].text, message);
    int r = cluster.group ? cluster_open(&cluster, message) : -EINVAL;
    if (r == 0)
        r = is_table ? cluster_write_table(&cluster, output, message)
                     : write_model(&cluster, output, message);
    if (r == 0 && cluster.changed > 0)
        predict_remark(output, true,
                       "values above 0 cannot have the covariances of the population; the "
                       "nearest possible covariances were used");
    return r;
}

ASSAY_PREDICT_PLUGIN("cluster", "0.2.0", "made-up machines, drawn from a fitted population", .roles = roles,
                     .options = options, .parameters = parameters, .suffix = ".json", .run = cluster_run);
