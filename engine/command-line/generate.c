/* assay generate: what no testbed has, drawn from a model. */
#include "archive-format/datapackage.h"
#include "engine/command-line/output.h"
#include "engine/command-line/verb.h"
#include "engine/documents/csv.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/plugin/cluster-model.h"
#include "engine/plugin/cluster.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TABLE_BYTES_MAX = 1 << 30,
    MODEL_BYTES_MAX = 64 << 20, /* what assay reads of a model file */
    LABELS = 4,                 /* node, cpu, day, population */
};

static const struct archive_column labels[LABELS] = {
    {.name = "node",
     .type = ARCHIVE_STRING,
     .unit = "",
     .role = ARCHIVE_ROLE_ID,
     .title = "name of the node"},
    {.name = "cpu",
     .type = ARCHIVE_INTEGER,
     .unit = "",
     .role = ARCHIVE_ROLE_ID,
     .title = "of the node, from 0"},
    {.name = "day",
     .type = ARCHIVE_INTEGER,
     .unit = "",
     .role = ARCHIVE_ROLE_ID,
     .title = "from 1; 0: in the long run"},
    {.name = "population",
     .type = ARCHIVE_STRING,
     .unit = "",
     .role = ARCHIVE_ROLE_COVARIATE,
     .title = "of the model, that the machine was drawn from"},
};

/* ---- What was asked */

static int read_count(const struct verb_arguments *arguments, const char *option, int64_t fallback,
                      int64_t least, size_t *ret, struct failure *failure) {
    const char *text = verb_value(arguments, option);
    int64_t value = fallback;
    if (text &&
        (!number_parse_int64(text, strlen(text), &value) || value < least || value > CLUSTER_ROWS_MAX))
        return failure_input(failure, NULL, 0, 0, "%s '%.64s'; expected a whole number from %d to %d", option,
                             text, (int)least, (int)CLUSTER_ROWS_MAX);
    *ret = (size_t)value;
    return 0;
}

static int read_settings(const struct verb_arguments *arguments, struct cluster_settings *ret,
                         struct failure *failure) {
    const char *seed = verb_value(arguments, "--seed");
    int64_t number = 1;
    if (!verb_value(arguments, "--nodes"))
        return failure_input(failure, NULL, 0, 0, "how many nodes? say it with --nodes");
    if (seed && (!number_parse_int64(seed, strlen(seed), &number) || number < 0))
        return failure_input(failure, NULL, 0, 0, "--seed '%.64s'; expected a whole number, 0 or more", seed);
    ret->seed = (uint64_t)number;
    ret->group = verb_value(arguments, "--group");
    int r = read_count(arguments, "--nodes", 1, 1, &ret->nodes, failure);
    r = r < 0 ? r : read_count(arguments, "--cpus", 1, 1, &ret->cpus, failure);
    return r < 0 ? r : read_count(arguments, "--days", 1, 0, &ret->days, failure);
}

/* The text after NAME= of the --as for NAME, or NULL. */
static const char *as_of(const struct verb_arguments *arguments, const char *name) {
    const char *setting;
    for (size_t i = 0; (setting = verb_value_at(arguments, "--as", i)); i++) {
        const char *equals = strchr(setting, '=');
        if (equals && strlen(name) == (size_t)(equals - setting) && strncmp(setting, name, strlen(name)) == 0)
            return equals + 1;
    }
    return NULL;
}

/* Every --as must be of a coefficient. */
static int check_as(const struct verb_arguments *arguments, const struct predict_model *model,
                    struct failure *failure) {
    const char *setting;
    int r = verb_check_settings(arguments, "--as", failure);
    for (size_t i = 0; r == 0 && (setting = verb_value_at(arguments, "--as", i)); i++) {
        const char *equals = strchr(setting, '=');
        const char *names[CLUSTER_COEFFICIENTS_MAX];
        bool found = false;
        if (!equals)
            return failure_input(failure, NULL, 0, 0, "--as '%.64s'; expected NAME=TERM", setting);
        for (size_t t = 0; t < model->term_count && t < CLUSTER_COEFFICIENTS_MAX; t++) {
            names[t] = model->terms[t].name;
            found = found || (strlen(names[t]) == (size_t)(equals - setting) &&
                              strncmp(names[t], setting, (size_t)(equals - setting)) == 0);
        }
        if (found)
            continue;
        cleanup_free char *word = strndup(setting, (size_t)(equals - setting));
        const char *nearest = word ? text_nearest(word, names, model->term_count) : NULL;
        return failure_input(failure, NULL, 0, 0, "there is no coefficient '%s'%s%s%s", word ? word : "",
                             nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    }
    return r;
}

/* ---- The table */

static int append_text(struct text *text, bool first, const char *string) {
    return csv_append_field(text, first, string, strlen(string));
}

static const char *population_of(const struct cluster *cluster, size_t row) {
    size_t days = cluster->settings.days ? cluster->settings.days : 1;
    const char *name = cluster->group->parts[cluster->populations[row / days]].name;
    return name ? name : "";
}

static int append_table(const struct cluster *cluster, struct text *text) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < LABELS; i++)
        r = append_text(text, i == 0, labels[i].name);
    for (size_t i = 0; r == 0 && i < cluster->coefficient_count; i++)
        r = append_text(text, false, cluster->model->terms[i].name);
    r = r < 0 ? r : text_append_character(text, '\n');
    for (size_t row = 0; r == 0 && row < cluster->row_count; row++) {
        struct cluster_place place = cluster_place(cluster, row);
        r = append_text(text, true, place.node);
        r = r < 0 ? r : csv_append_int64(text, false, (int64_t)place.cpu);
        r = r < 0 ? r : csv_append_int64(text, false, (int64_t)place.day);
        r = r < 0 ? r : append_text(text, false, population_of(cluster, row));
        for (size_t i = 0; r == 0 && i < cluster->coefficient_count; i++)
            r = csv_append_double(text, false, cluster->values[row * cluster->coefficient_count + i]);
        r = r < 0 ? r : text_append_character(text, '\n');
    }
    return r;
}

static bool add_row(cJSON *rows, const struct cluster *cluster, size_t row) {
    struct cluster_place place = cluster_place(cluster, row);
    cJSON *object = json_add_object(rows, NULL);
    bool good = object && json_add_string(object, "node", place.node) &&
                json_add_int64(object, "cpu", (int64_t)place.cpu) &&
                json_add_int64(object, "day", (int64_t)place.day) &&
                json_add_string(object, "population", population_of(cluster, row));
    for (size_t i = 0; good && i < cluster->coefficient_count; i++)
        good = json_add_double(object, cluster->model->terms[i].name,
                               cluster->values[row * cluster->coefficient_count + i]);
    return good;
}

static int append_json(const struct model *model, const struct cluster *cluster, struct text *text) {
    cleanup(json_cleanup) cJSON *root = cJSON_CreateObject();
    bool good = root && json_add_uint64_text(root, "seed", cluster->settings.seed) &&
                json_add_uint64(root, "redrawn", cluster->redrawn);
    cJSON *units = good ? json_add_object(root, "units") : NULL;
    for (size_t i = 0; units && good && i < cluster->coefficient_count; i++)
        good = json_add_string(units, cluster->model->terms[i].name, cluster_unit(model, i));
    cJSON *rows = units && good ? json_add_array(root, "rows") : NULL;
    for (size_t row = 0; rows && good && row < cluster->row_count; row++)
        good = add_row(rows, cluster, row);
    int r = rows && good ? json_print(root, true, text) : -ENOMEM;
    return r < 0 ? r : text_append_character(text, '\n');
}

static int write_package(const struct model *model, const struct cluster *cluster, const char *table,
                         struct failure *failure) {
    struct archive_column columns[LABELS + CLUSTER_COEFFICIENTS_MAX];
    cleanup_free char *path = xformat("%s.datapackage.json", table);
    memcpy(columns, labels, sizeof labels);
    for (size_t i = 0; i < cluster->coefficient_count; i++) {
        const char *unit = cluster_unit(model, i);
        columns[LABELS + i] = (struct archive_column){.name = cluster->model->terms[i].name,
                                                      .type = ARCHIVE_NUMBER,
                                                      .unit = unit ? unit : "",
                                                      .role = ARCHIVE_ROLE_RESPONSE,
                                                      .title = "coefficient"};
    }
    const struct archive_table described = {.path = file_base_name(table),
                                            .columns = columns,
                                            .column_count = LABELS + cluster->coefficient_count};
    return archive_write_datapackage(path, "cluster", &described, 1, failure);
}

/* ---- The verb */

static int tell(int r, const char *what, struct failure *failure) {
    if (r == -EFBIG)
        return failure_set(failure, r, "the %s is larger than %d bytes", what, (int)TABLE_BYTES_MAX);
    return r < 0 ? failure_memory(failure) : 0;
}

static int write_model(const struct verb_arguments *arguments, const struct model *model,
                       const struct cluster *cluster, struct failure *failure) {
    struct cluster_target targets[CLUSTER_COEFFICIENTS_MAX];
    cleanup(text_clear) struct text text;
    text_init(&text, MODEL_BYTES_MAX);
    int r = check_as(arguments, cluster->model, failure);
    for (size_t i = 0; r == 0 && i < cluster->coefficient_count; i++) {
        const char *name = cluster->model->terms[i].name;
        r = cluster_target_read(name, as_of(arguments, name), &targets[i], failure);
    }
    const char *response = verb_value(arguments, "--response");
    const struct cluster_model_settings settings = {targets, response ? response : "duration",
                                                    arguments->operands[1]};
    r = r < 0 ? r : cluster_model_append(model, cluster, &settings, &text, failure);
    return r < 0 ? r : file_write_output(verb_value(arguments, "--model"), text.bytes, text.length, failure);
}

static int write_table(const struct verb_arguments *arguments, const struct model *model,
                       const struct cluster *cluster, struct failure *failure) {
    const char *output = verb_value(arguments, "--output");
    bool json = verb_switch(arguments, "--json");
    cleanup(text_clear) struct text text;
    text_init(&text, TABLE_BYTES_MAX);
    int r = 0;
    if (output) {
        r = tell(append_table(cluster, &text), "table", failure);
        r = r < 0 ? r : file_write_output(output, text.bytes, text.length, failure);
        r = r < 0 ? r : write_package(model, cluster, output, failure);
        text_reset(&text);
    }
    if (r == 0 && json)
        r = tell(append_json(model, cluster, &text), "table", failure);
    else if (r == 0 && !output && !verb_value(arguments, "--model"))
        r = tell(append_table(cluster, &text), "table", failure);
    if (r == 0 && text.length > 0)
        fwrite(text.bytes, 1, text.length, stdout);
    return r;
}

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(model_cleanup) struct model *model = NULL;
    cleanup(cluster_cleanup) struct cluster *cluster = NULL; /* goes before what it borrows */
    struct cluster_settings settings;
    if (strcmp(arguments->operands[0], "cluster") != 0)
        return failure_input(failure, NULL, 0, 0, "'%s' cannot be generated; expected 'cluster'",
                             arguments->operands[0]);
    const char *outputs[] = {verb_value(arguments, "--output"), verb_value(arguments, "--model")};
    const char *input = arguments->operands[1];
    int r = read_settings(arguments, &settings, failure);
    for (size_t i = 0; r == 0 && i < 2; i++)
        r = output_check(outputs[i], &input, 1, failure);
    r = r < 0 ? r : output_check_apart(outputs[0], outputs[1], failure);
    r = r < 0 ? r : model_read(input, &model, failure);
    r = r < 0 ? r : cluster_draw(model_view(model), &settings, &cluster, failure);
    r = r < 0 ? r : write_table(arguments, model, cluster, failure);
    if (r == 0 && outputs[1])
        r = write_model(arguments, model, cluster, failure);
    if (r < 0)
        return r;
    fprintf(stderr, "seed %" PRIu64 ": %zu nodes, %zu cpus, %zu rows", settings.seed, settings.nodes,
            settings.nodes * settings.cpus, cluster->row_count);
    if (cluster->redrawn > 0)
        fprintf(stderr, "; %zu drawn again, since a coefficient was not positive", cluster->redrawn);
    fprintf(stderr, "\n");
    return 0;
}

static const struct verb_option options[] = {
    {"--nodes", 'n', "N", "How many nodes.", false},
    {"--cpus", 0, "K", "How many cpus each has, every one a machine of its own (1).", false},
    {"--days", 0, "D", "On how many days each is seen; 0: what it is like in the long run (1).", false},
    {"--seed", 0, "SEED", "The same seed gives the same cluster on every machine (1).", false},
    {"--group", 0, "NAME", "The group of the model to draw from, where it has several.", false},
    {"--output", 'o', "FILE",
     "Write the table to FILE instead of standard output, and its columns' units into "
     "FILE.datapackage.json.",
     false},
    {"--json", 0, NULL, "Print the table as JSON.", false},
    {"--model", 'm', "FILE",
     "Write a model with one group for each machine, for 'assay predict'; then the table is printed only "
     "when asked for.",
     false},
    {"--as", 0, "NAME=TERM", "Of --model: what a coefficient is that of (see below).", true},
    {"--response", 'y', "COLUMN", "Of --model: what its terms explain (duration).", false},
    {0},
};

const struct verb verb_generate = {
    .name = "generate",
    .summary = "draw a synthetic cluster from a model of a population",
    .synopsis = "assay generate cluster MODEL --nodes N [OPTIONS]",
    .description =
        "Draws the coefficients of machines that no testbed has from a model of the kind 'population', which "
        "'assay fit population' writes: each machine's from the normal distribution between machines (of one "
        "of the populations, where the model has slow nodes), each day's from the one between days.\n"
        "\n"
        "A coefficient whose mean is positive must come out positive: a machine, or a day of one, that has "
        "one which is not is drawn again, whole, and counted.\n"
        "\n"
        "With --model the machines become the groups of a model that predictors take. Each coefficient must "
        "then be known to be that of a term: its name is a product (m*n*k, or mnk), or 1 or intercept; "
        "sigma(m*n*k), or mnk_residual, is the coefficient of the noise. Otherwise say it: --as alpha=m*n*k "
        "--as gamma=1 --as 'sigma=sigma(m*n*k)', or none to leave one out.\n"
        "\n"
        "    assay fit population days.csv -y mnk -o dahu.json \\\n"
        "        --terms 'intercept + mnk_residual | node, cpu'\n"
        "    assay generate cluster dahu.json --nodes 1024 --cpus 2 --seed 7 -o new.csv\n"
        "    assay generate cluster dahu.json --nodes 256 --days 0 --model new.json\n"
        "    assay predict hpl new.json --set N=200000 --set NB=128 --set P=16 \\\n"
        "        --set Q=16 --set latency=1us --set bandwidth=10GB/s --set speed=slowest\n",
    .options = options,
    .operands_least = 2,
    .operands_most = 2,
    .run = run,
};
