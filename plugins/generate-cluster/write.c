#include "plugins/generate-cluster/cluster.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct writing {
    struct cluster *cluster;
    struct predict_output *output;
    int error; /* of the first that failed */
};

__attribute__((format(printf, 2, 3))) static void put(struct writing *writing, const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = writing->error ? 0 : vasprintf(&text, format, arguments);
    va_end(arguments);
    if (!writing->error)
        writing->error =
            length < 0 ? -ENOMEM : writing->output->text(writing->output->context, text, (size_t)length);
    if (length >= 0)
        free(text);
}

/* The fewest digits that read back as VALUE, as in every model file. */
static void put_number(struct writing *writing, const char *before, double value) {
    char text[32];
    int digits = 15;
    do
        snprintf(text, sizeof text, "%.*g", digits++, value);
    while (digits <= 17 && strtod(text, NULL) != value);
    put(writing, "%s%s", before, text);
}

/* A string between quotes; a quote in it is doubled in CSV, and escaped as JSON has it; NULL: null. */
static void put_string(struct writing *writing, const char *text, bool csv) {
    put(writing, text ? "\"" : "null");
    for (const char *at = text; at && *at; at++)
        if (csv)
            put(writing, *at == '"' ? "\"\"" : "%c", *at);
        else
            put(writing,
                *at == '"' || *at == '\\'  ? "\\%c"
                : (unsigned char)*at < ' ' ? "\\u%04x"
                                           : "%c",
                *at);
    put(writing, text ? "\"" : "");
}

const char *cluster_coefficient(const struct model *model, size_t i) {
    const struct model_term *term = &model->terms[i];
    return term->factor_count == 1 && term->factors[0].power == 1 ? term->factors[0].column : term->name;
}

/* Each machine and day in turn. */
typedef void write_row(struct writing *writing, const void *context, size_t machine, size_t day,
                       const char *population, const double *values);

static int draw_all(struct writing *writing, write_row *row, const void *context,
                    struct plugin_message *message) {
    struct cluster *cluster = writing->cluster;
    double machine[COEFFICIENTS_MAX], values[COEFFICIENTS_MAX];
    int r = 0;
    for (size_t c = 0; r == 0 && c < cluster->nodes * cluster->cpus; c++) {
        const char *name = "";
        r = cluster_machine(cluster, c, machine, &name, message);
        if (r == 0 && cluster->days == 0)
            row(writing, context, c, 0, name, machine);
        for (size_t day = 0; r == 0 && day < cluster->days; day++) {
            r = cluster_day(cluster, c, day, machine, values, message);
            if (r == 0)
                row(writing, context, c, day + 1, name, values);
        }
        r = r < 0 ? r : writing->error;
    }
    return r;
}

static void put_table_row(struct writing *writing, const void *context, size_t machine, size_t day,
                          const char *population, const double *values) {
    const struct cluster *cluster = context;
    put(writing, "node-%zu,%zu,%zu,%s", machine / cluster->cpus + 1, machine % cluster->cpus, day,
        population);
    for (size_t i = 0; i < cluster->count; i++)
        put_number(writing, ",", values[i]);
    put(writing, "\n");
}

int cluster_write_table(struct cluster *cluster, struct predict_output *output,
                        struct plugin_message *message) {
    struct writing writing = {.cluster = cluster, .output = output};
    put(&writing, "node,cpu,day,population");
    for (size_t i = 0; i < cluster->count; i++) {
        put(&writing, ",");
        put_string(&writing, cluster_coefficient(cluster->model, i), true);
    }
    put(&writing, "\n");
    return draw_all(&writing, put_table_row, cluster, message);
}

/* ---- The model */

static bool is_one(const struct target *target) {
    return strcmp(target->term, "1") == 0;
}

static void put_factors(struct writing *writing, const char *term) {
    char column[TERM_MAX];
    int power;
    for (const char *at = term; (at = target_factor(at, column, &power)); at++) {
        put(writing, "{\"column\": \"%s\", \"power\": %d}%s", column, power, *at ? ", " : "");
        if (!*at)
            break;
    }
}

/* The columns of all terms, each once. */
static void put_columns(struct writing *writing, const struct target *targets) {
    char seen[COEFFICIENTS_MAX * TERM_MAX] = "*", column[TERM_MAX], wrapped[TERM_MAX + 2];
    int power;
    for (size_t i = 0, length = 1; i < writing->cluster->count; i++)
        for (const char *at = targets[i].term; targets[i].kind == TARGET_MEAN && *at; at += *at == '*') {
            if (!(at = target_factor(at, column, &power)))
                break;
            snprintf(wrapped, sizeof wrapped, "*%s*", column);
            if (strstr(seen, wrapped))
                continue;
            put(writing, "%s{\"name\": \"%s\", \"unit\": null, \"type\": null}", length > 1 ? ", " : "",
                column);
            length += (size_t)snprintf(seen + length, sizeof seen - length, "%s*", column);
        }
}

static void put_head(struct writing *writing, const struct target *targets, const char *response) {
    const struct cluster *cluster = writing->cluster;
    const struct predict_source *source = cluster->inputs->sources[0];
    const char *unit = NULL; /* that of the constant term */
    char created[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    for (size_t i = 0; i < cluster->count; i++)
        if (targets[i].kind == TARGET_MEAN && is_one(&targets[i]))
            unit = cluster->model->terms[i].unit;
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    put(writing, "{\n  \"assay_model\": 2,\n  \"kind\": \"linear\",\n  \"response\": {\"name\": ");
    put_string(writing, response, false);
    put(writing, ", \"unit\": ");
    put_string(writing, unit, false);
    put(writing, "},\n  \"weights\": null,\n  \"by\": [\"node\"%s%s],\n  \"terms\": [",
        cluster->cpus > 1 ? ", \"cpu\"" : "", cluster->days > 1 ? ", \"day\"" : "");
    for (size_t i = 0, count = 0; i < cluster->count; i++) {
        if (targets[i].kind != TARGET_MEAN)
            continue;
        put(writing, "%s\n    {\"name\": \"%s\", \"unit\": ", count++ ? "," : "", targets[i].term);
        put_string(writing, cluster->model->terms[i].unit, false);
        put(writing, ", \"factors\": [");
        put_factors(writing, targets[i].term);
        put(writing, "]}");
    }
    put(writing, "\n  ],\n  \"columns\": [");
    put_columns(writing, targets);
    put(writing, "],\n  \"origin\": {\"plugin\": \"generate-cluster\", \"version\": \"0.2.0\", \"engine\": ");
    const char *blank =
        strrchr(cluster->inputs->engine, ' '); /* "assay 0.1.0", of which a model has the version */
    put_string(writing, blank ? blank + 1 : cluster->inputs->engine, false);
    put(writing, ", \"created\": \"%s\",\n    \"rows\": 0, \"seed\": %llu, \"folds_columns\": [],\n", created,
        (unsigned long long)cluster->inputs->seed);
    put(writing, "    \"settings\": {\"nodes\": \"%zu\", \"cpus\": \"%zu\", \"days\": \"%zu\", \"group\": ",
        cluster->nodes, cluster->cpus, cluster->days);
    put_string(writing, cluster->group->name, false);
    put(writing, "},\n    \"inputs\": [{\"name\": ");
    put_string(writing, source->file, false);
    put(writing, ", \"sha256\": \"%s\", \"run_id\": null, \"experiment\": null, \"rows\": 0}]},\n",
        source->sha256);
    put(writing, "  \"units\": {},\n  \"groups\": [");
}

/* The sigma of TERM, or 0. */
static double sigma_of(const struct cluster *cluster, const struct target *targets, const char *term,
                       const double *values) {
    for (size_t k = 0; k < cluster->count; k++)
        if (targets[k].kind == TARGET_SIGMA && strcmp(targets[k].term, term) == 0)
            return values[k];
    return 0;
}

static void put_noise(struct writing *writing, const struct target *targets, const double *values) {
    const struct cluster *cluster = writing->cluster;
    bool any = false, grows = false;
    for (size_t k = 0; k < cluster->count; k++)
        if (targets[k].kind == TARGET_SIGMA) {
            any = true;
            grows = grows || !is_one(&targets[k]);
        }
    if (!any)
        return;
    put(writing, ", \"noise\": {\"kind\": \"%s\", \"distribution\": \"normal\", ", grows ? "N-2" : "N-1");
    put_number(writing, "\"constant\": ", sigma_of(cluster, targets, "1", values));
    for (size_t i = 0, count = 0; grows && i < cluster->count; i++)
        if (targets[i].kind == TARGET_MEAN)
            put_number(writing, count++ ? ", " : ", \"coefficients\": [",
                       is_one(&targets[i]) ? 0 : sigma_of(cluster, targets, targets[i].term, values));
    put(writing, "%s}", grows ? "]" : "");
}

static void put_group(struct writing *writing, const void *context, size_t machine, size_t day,
                      const char *population, const double *values) {
    const struct cluster *cluster = writing->cluster;
    const struct target *targets = context;
    put(writing, "%s\n    {\"labels\": {\"node\": \"node-%zu\"", machine > 0 || day > 1 ? "," : "",
        machine / cluster->cpus + 1);
    if (cluster->cpus > 1)
        put(writing, ", \"cpu\": \"%zu\"", machine % cluster->cpus);
    if (cluster->days > 1)
        put(writing, ", \"day\": \"%zu\"", day);
    put(writing, "}, \"rows\": 1, \"values\": {}, \"parts\": [{\"kind\": \"whole\", \"estimates\": [");
    for (size_t i = 0, count = 0; i < cluster->count; i++)
        if (targets[i].kind == TARGET_MEAN) {
            put(writing, "%s{\"term\": \"%s\"", count++ ? ", " : "", targets[i].term);
            put_number(writing, ", \"estimate\": ", values[i]);
            put(writing, ", \"standard_error\": null, \"t\": null, \"p\": null}");
        }
    put(writing, "], \"covariance\": null");
    put_noise(writing, targets, values);
    put(writing, ", \"values\": {}, \"domain\": {}}], \"notes\": [\"drawn from the population %s\"]}",
        population);
}

int cluster_write_model(struct cluster *cluster, const struct target *targets, const char *response,
                        struct predict_output *output, struct plugin_message *message) {
    struct writing writing = {.cluster = cluster, .output = output};
    put_head(&writing, targets, response);
    int r = draw_all(&writing, put_group, targets, message);
    put(&writing, "\n  ],\n  \"skipped\": []\n}\n");
    return r < 0 ? r : writing.error;
}
