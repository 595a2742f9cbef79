#include "engine/plugin/cluster-model.h"

#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/number.h"
#include "engine/plugin/model-writer.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What coefficients are */

static int refuse_target(const char *name, const char *as, struct failure *failure) {
    if (as)
        return failure_input(failure, NULL, 0, 0,
                             "'%s' cannot be '%s'; expected a term such as 1 or m*n*k, sigma(m*n*k), or none",
                             name, as);
    return failure_input(failure, NULL, 0, 0,
                         "the name '%s' does not tell what it is the coefficient of; say it with --as "
                         "'%s=TERM', such as m*n*k, sigma(m*n*k), or none",
                         name, name);
}

static int add_factor(struct cluster_target *target, const char *column, size_t length, int power) {
    for (size_t f = 0; f < target->factor_count; f++)
        if (strlen(target->factors[f].column) == length &&
            memcmp(target->factors[f].column, column, length) == 0) {
            target->factors[f].power += power;
            return 0;
        }
    if (target->factor_count == CLUSTER_FACTORS_MAX || length == 0 || length >= CLUSTER_NAME_SIZE)
        return -EINVAL;
    memcpy(target->factors[target->factor_count].column, column, length);
    target->factors[target->factor_count].column[length] = '\0';
    target->factors[target->factor_count++].power = power;
    return 0;
}

static size_t word_length(const char *text, const char *end) {
    size_t length = 0;
    while (text + length < end &&
           (isalnum((unsigned char)text[length]) || text[length] == '_' || text[length] == '.'))
        length++;
    return length;
}

/* m*n^2 as factors. */
static int read_product(const char *text, const char *end, struct cluster_target *ret) {
    if (end - text == 1 && *text == '1')
        return 0;
    for (;;) {
        size_t length = word_length(text, end);
        const char *column = text;
        int power = 1;
        if (length == 0 || isdigit((unsigned char)*text))
            return -EINVAL;
        text += length;
        if (text + 1 < end && *text == '^') {
            if (!isdigit((unsigned char)text[1]) || text[1] == '0')
                return -EINVAL;
            power = text[1] - '0';
            text += 2;
        }
        if (add_factor(ret, column, length, power) < 0)
            return -EINVAL;
        if (text == end)
            return 0;
        if (*text++ != '*')
            return -EINVAL;
    }
}

/* What a name tells by itself. */
static int read_name(const char *name, const char *end, struct cluster_target *ret) {
    static const char *const ones[] = {"1", "intercept", "Intercept", "(Intercept)"};
    size_t length = (size_t)(end - name);
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        if (strlen(ones[i]) == length && memcmp(ones[i], name, length) == 0)
            return 0;
    if (memchr(name, '*', length) || memchr(name, '^', length))
        return read_product(name, end, ret);
    for (size_t i = 0; i < length; i++)
        if (!strchr("mnk", name[i]) || memchr(name, name[i], i))
            return -EINVAL;
    for (size_t i = 0; i < length; i++)
        add_factor(ret, name + i, 1, 1);
    return length > 0 ? 0 : -EINVAL;
}

static void spell(struct cluster_target *target) {
    size_t length = 0;
    snprintf(target->term, sizeof target->term, "1");
    for (size_t f = 0; f < target->factor_count; f++) {
        length += (size_t)snprintf(target->term + length, sizeof target->term - length, "%s%s", f ? "*" : "",
                                   target->factors[f].column);
        if (target->factors[f].power != 1)
            length += (size_t)snprintf(target->term + length, sizeof target->term - length, "^%d",
                                       target->factors[f].power);
    }
}

int cluster_target_read(const char *name, const char *as, struct cluster_target *ret,
                        struct failure *failure) {
    static const char open[] = "sigma(", residual[] = "_residual";
    const char *text = as ? as : name, *end = text + strlen(text);
    struct cluster_target target = {.kind = CLUSTER_MEAN};
    if (as && strcmp(as, "none") == 0) {
        *ret = (struct cluster_target){.kind = CLUSTER_NONE};
        return 0;
    }
    if (!as && strcmp(name, "sigma") == 0) {
        target.kind = CLUSTER_SIGMA;
        text = "1";
        end = text + 1;
    } else if (strncmp(text, open, sizeof open - 1) == 0 && end[-1] == ')') {
        target.kind = CLUSTER_SIGMA;
        text += sizeof open - 1;
        end--;
    } else if (!as && (size_t)(end - text) > sizeof residual - 1 &&
               strcmp(end - (sizeof residual - 1), residual) == 0) {
        target.kind = CLUSTER_SIGMA;
        end -= sizeof residual - 1;
    }
    if ((as ? read_product(text, end, &target) : read_name(text, end, &target)) < 0)
        return refuse_target(name, as, failure);
    spell(&target);
    *ret = target;
    return 0;
}

/* ---- Places */

struct cluster_place cluster_place(const struct cluster *cluster, size_t row) {
    size_t days = cluster->settings.days ? cluster->settings.days : 1, machine = row / days;
    struct cluster_place place = {.cpu = machine % cluster->settings.cpus,
                                  .day = cluster->settings.days ? row % days + 1 : 0};
    snprintf(place.node, sizeof place.node, "node-%zu", machine / cluster->settings.cpus + 1);
    return place;
}

const char *cluster_unit(const struct model *model, size_t i) {
    const struct document_node *formula = document_get(model_document(model)->root, "formula");
    const struct document_node *unit = formula && formula->kind == DOCUMENT_SEQUENCE && i < formula->count
                                           ? document_get(formula->items[i], "unit")
                                           : NULL;
    return unit && unit->kind == DOCUMENT_TEXT ? unit->text : NULL;
}

/* ---- The file, a line a group */

struct writing {
    const struct model *model;
    const struct cluster *cluster;
    const struct cluster_model_settings *settings;
    struct text *text;
    size_t terms[CLUSTER_COEFFICIENTS_MAX]; /* which coefficient each term is */
    size_t term_count;
    int error; /* the first append that failed */
};

__attribute__((format(printf, 2, 3))) static void put(struct writing *writing, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int r = text_vprintf(writing->text, format, arguments);
    va_end(arguments);
    if (r < 0 && writing->error == 0)
        writing->error = r;
}

/* A string, or null. */
static void put_string(struct writing *writing, const char *string) {
    if (!string)
        put(writing, "null");
    else if (json_append_string(writing->text, string, strlen(string)) < 0 && writing->error == 0)
        writing->error = -ENOMEM;
}

static void put_number(struct writing *writing, double value) {
    char digits[NUMBER_TEXT_SIZE];
    if (isfinite(value))
        number_format_double(value, digits);
    put(writing, "%s", isfinite(value) ? digits : "null");
}

/* The unit of the constant term, which is the response's. */
static const char *response_unit(const struct writing *writing) {
    for (size_t t = 0; t < writing->term_count; t++)
        if (writing->settings->targets[writing->terms[t]].factor_count == 0)
            return cluster_unit(writing->model, writing->terms[t]);
    return NULL;
}

static void put_formula(struct writing *writing) {
    put(writing, "  \"formula\": [");
    for (size_t t = 0; t < writing->term_count; t++) {
        const struct cluster_target *target = &writing->settings->targets[writing->terms[t]];
        put(writing, "%s\n    {\"name\": ", t ? "," : "");
        put_string(writing, target->term);
        put(writing, ", \"unit\": ");
        put_string(writing, cluster_unit(writing->model, writing->terms[t]));
        put(writing, ", \"factors\": [");
        for (size_t f = 0; f < target->factor_count; f++) {
            put(writing, "%s{\"factor\": ", f ? ", " : "");
            put_string(writing, target->factors[f].column);
            put(writing, ", \"power\": %d}", target->factors[f].power);
        }
        put(writing, "]}");
    }
    put(writing, "\n  ],\n  \"factors\": [");
}

/* Columns of all terms, each once. */
static void put_factors(struct writing *writing) {
    const char *seen[CLUSTER_COEFFICIENTS_MAX * CLUSTER_FACTORS_MAX];
    size_t count = 0;
    for (size_t t = 0; t < writing->term_count; t++) {
        const struct cluster_target *target = &writing->settings->targets[writing->terms[t]];
        for (size_t f = 0; f < target->factor_count; f++) {
            const char *column = target->factors[f].column;
            size_t i = 0;
            while (i < count && strcmp(seen[i], column) != 0)
                i++;
            if (i < count)
                continue;
            seen[count++] = column;
            put(writing, "%s{\"name\": ", count > 1 ? ", " : "");
            put_string(writing, column);
            put(writing, ", \"unit\": null, \"type\": null}");
        }
    }
}

static void put_origin(struct writing *writing, const char *sha256) {
    const struct cluster_settings *settings = &writing->cluster->settings;
    char created[CLOCK_TEXT_SIZE];
    put(writing, "  \"origin\": {\n    \"plugin\": \"generate-cluster\",\n    \"version\": \"%s\",\n",
        ASSAY_VERSION);
    put(writing, "    \"engine\": \"%s\",\n    \"created\": \"%s\",\n    \"rows\": %zu,\n", ASSAY_VERSION,
        clock_format(clock_wall_ns(), created), writing->cluster->row_count);
    put(writing, "    \"inputs\": [\n      {\"file\": ");
    put_string(writing, file_base_name(writing->settings->path));
    put(writing, ", \"sha256\": \"%s\", \"run_id\": null, \"experiment\": null, \"rows\": %zu}\n    ],\n",
        sha256, writing->cluster->row_count);
    put(writing, "    \"seed\": %llu,\n    \"settings\": {\"nodes\": %zu, \"cpus\": %zu, \"days\": %zu, ",
        (unsigned long long)settings->seed, settings->nodes, settings->cpus, settings->days);
    put(writing, "\"group\": ");
    put_string(writing, writing->cluster->group->name);
    put(writing, "}\n  },\n");
}

static void put_noise(struct writing *writing, const double *values) {
    const struct cluster_target *targets = writing->settings->targets;
    size_t count = 0;
    bool grows = false; /* with a term */
    for (size_t i = 0; i < writing->cluster->coefficient_count; i++)
        grows = grows || (targets[i].kind == CLUSTER_SIGMA && targets[i].factor_count > 0);
    for (size_t i = 0; i < writing->cluster->coefficient_count; i++) {
        if (targets[i].kind != CLUSTER_SIGMA)
            continue;
        if (count == 0)
            put(writing,
                ", \"noise\": {\"kind\": \"%s\", \"distribution\": \"normal\", \"method\": \"drawn\", "
                "\"sigma\": [",
                grows ? "N-2" : "N-1");
        put(writing, "%s{\"name\": ", count++ ? ", " : "");
        put_string(writing, targets[i].term);
        put(writing, ", \"unit\": ");
        put_string(writing, cluster_unit(writing->model, i));
        put(writing, ", \"estimate\": ");
        put_number(writing, values[i]);
        put(writing, "}");
    }
    put(writing, "%s", count ? "]}" : "");
}

static void put_group(struct writing *writing, size_t row) {
    const struct cluster *cluster = writing->cluster;
    const double *values = cluster->values + row * cluster->coefficient_count;
    struct cluster_place place = cluster_place(cluster, row);
    put(writing, "%s\n    {\"labels\": {\"node\": \"%s\"", row ? "," : "", place.node);
    if (cluster->settings.cpus > 1)
        put(writing, ", \"cpu\": \"%zu\"", place.cpu);
    if (cluster->settings.days > 1)
        put(writing, ", \"day\": \"%zu\"", place.day);
    put(writing, "}, \"n\": 1, \"terms\": [");
    for (size_t t = 0; t < writing->term_count; t++) {
        put(writing, "%s{\"name\": ", t ? ", " : "");
        put_string(writing, writing->settings->targets[writing->terms[t]].term);
        put(writing, ", \"unit\": ");
        put_string(writing, cluster_unit(writing->model, writing->terms[t]));
        put(writing, ", \"estimate\": ");
        put_number(writing, values[writing->terms[t]]);
        put(writing, ", \"standard_error\": null, \"t\": null, \"p\": null}");
    }
    put(writing, "], \"domain\": []");
    put_noise(writing, values);
    put(writing, ", \"covariance\": null, \"notes\": [\"drawn from a population\"]}");
}

/* The means make the formula; each sigma must be of one of them. */
static int list_terms(struct writing *writing, struct failure *failure) {
    const struct cluster *cluster = writing->cluster;
    const struct cluster_target *targets = writing->settings->targets;
    for (size_t i = 0; i < cluster->coefficient_count; i++) {
        bool found = targets[i].kind != CLUSTER_SIGMA || targets[i].factor_count == 0;
        for (size_t j = 0; j < cluster->coefficient_count; j++) {
            bool same = strcmp(targets[i].term, targets[j].term) == 0;
            if (j < i && same && targets[i].kind == targets[j].kind && targets[i].kind != CLUSTER_NONE)
                return failure_input(failure, NULL, 0, 0, "'%s' and '%s' are both the %s of %s",
                                     cluster->model->terms[j].name, cluster->model->terms[i].name,
                                     targets[i].kind == CLUSTER_MEAN ? "coefficient" : "sigma",
                                     targets[i].term);
            found = found || (same && targets[j].kind == CLUSTER_MEAN);
        }
        if (!found)
            return failure_input(failure, NULL, 0, 0,
                                 "'%s' is the sigma of %s, and no coefficient is that of %s",
                                 cluster->model->terms[i].name, targets[i].term, targets[i].term);
        if (targets[i].kind == CLUSTER_MEAN)
            writing->terms[writing->term_count++] = i;
    }
    if (writing->term_count > 0)
        return 0;
    return failure_input(failure, NULL, 0, 0, "no coefficient is that of a term: there is no model to write");
}

int cluster_model_append(const struct model *model, const struct cluster *cluster,
                         const struct cluster_model_settings *settings, struct text *text,
                         struct failure *failure) {
    struct writing writing = {.model = model, .cluster = cluster, .settings = settings, .text = text};
    char sha256[HASH_HEX_SIZE];
    int r = list_terms(&writing, failure);
    r = r < 0 ? r : hash_file(settings->path, sha256, NULL, failure);
    if (r < 0)
        return r;
    put(&writing,
        "{\n  \"assay_model\": %d,\n  \"kind\": \"linear\",\n  \"response\": {\"name\": ", MODEL_FORMAT);
    put_string(&writing, settings->response);
    put(&writing, ", \"unit\": ");
    put_string(&writing, response_unit(&writing));
    put(&writing, "},\n");
    put_formula(&writing);
    put_factors(&writing);
    put(&writing, "],\n  \"weights\": null,\n  \"by\": [\"node\"%s%s],\n",
        cluster->settings.cpus > 1 ? ", \"cpu\"" : "", cluster->settings.days > 1 ? ", \"day\"" : "");
    put_origin(&writing, sha256);
    put(&writing, "  \"groups\": [");
    for (size_t row = 0; writing.error == 0 && row < cluster->row_count; row++)
        put_group(&writing, row);
    put(&writing, "\n  ],\n  \"skipped\": []\n}\n");
    if (writing.error == -EFBIG)
        return failure_set(failure, -EFBIG,
                           "the model of %zu groups is larger than %zu MiB, the most that "
                           "assay reads; expected fewer nodes, cpus or days",
                           cluster->row_count, text->limit >> 20);
    return writing.error < 0 ? failure_memory(failure) : 0;
}
