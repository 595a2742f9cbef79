/* assay predict: a model and scenarios in, times out. */
#include "engine/command-line/output.h"
#include "engine/command-line/prediction-package.h"
#include "engine/command-line/shown.h"
#include "engine/command-line/verb.h"
#include "engine/documents/json.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/installation.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/plugin/model.h"
#include "engine/plugin/prediction.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUT_BYTES_MAX = 1 << 30 };

/* Where predicted scenarios go. */
struct outputs {
    const struct prediction *prediction;
    bool json, many; /* many: a line a scenario instead of a list */
    struct text csv, lines;
    size_t count;
};

/* ---- For people */

static const char *parameter_unit(const struct plugin_parameter *parameter) {
    const struct unit *unit = parameter->unit ? unit_find(parameter->unit) : NULL;
    return unit ? unit->label : "";
}

static void print_value(int width, int digits, double value) {
    if (isfinite(value))
        printf("%*.*g", width, digits, value);
    else
        printf("%*s", width, "-");
}

static void print_remarks(const struct prediction_scenario *scenario, const char *before) {
    for (size_t i = 0; i < scenario->remark_count; i++)
        printf("%s%s: %s\n", before, scenario->remarks[i].kind == PREDICT_WARNING ? "warning" : "note",
               shown(scenario->remarks[i].sentence).text);
}

static void print_list(const struct predict_operations *operations,
                       const struct prediction_scenario *scenario) {
    for (size_t i = 0; i < operations->parameter_count; i++) {
        const struct plugin_parameter *parameter = &operations->parameters[i];
        double value = scenario->parameters[i];
        printf("%-14s ", parameter->name);
        if (parameter->words)
            printf("%12s", parameter->words[(size_t)value]);
        else
            print_value(12, 10, value);
        printf(" %-9s %s\n", parameter_unit(parameter), parameter->help);
    }
    printf("\n");
    for (size_t i = 0; i < operations->column_count; i++) {
        printf("%-14s ", operations->columns[i].name);
        print_value(12, 6, scenario->values[i]);
        printf(" %-9s %s\n", operations->columns[i].label, operations->columns[i].help);
    }
    print_remarks(scenario, "");
}

static int width_of(const char *name, int least) {
    int length = (int)strlen(name);
    return (length > least ? length : least) + 1;
}

/* Names over units; numbers under them. */
static void print_heads(const struct predict_operations *operations) {
    for (int line = 0; line < 2; line++) {
        printf("%-12s", line == 0 ? "name" : "");
        for (size_t i = 0; i < operations->parameter_count; i++) {
            const struct plugin_parameter *parameter = &operations->parameters[i];
            printf("%*s", width_of(parameter->name, 8),
                   line == 0 ? parameter->name : parameter_unit(parameter));
        }
        for (size_t i = 0; i < operations->column_count; i++)
            if (!operations->columns[i].minor)
                printf("%*s", width_of(operations->columns[i].name, 10),
                       line == 0 ? operations->columns[i].name : operations->columns[i].label);
        printf("\n");
    }
}

static void print_line(const struct predict_operations *operations,
                       const struct prediction_scenario *scenario, size_t number) {
    char name[32];
    snprintf(name, sizeof name, "%zu", number);
    printf("%-12s", scenario->name ? shown(scenario->name).text : name);
    for (size_t i = 0; i < operations->parameter_count; i++) {
        const struct plugin_parameter *parameter = &operations->parameters[i];
        int width = width_of(parameter->name, 8);
        if (parameter->words)
            printf("%*s", width, parameter->words[(size_t)scenario->parameters[i]]);
        else
            print_value(width, 8, scenario->parameters[i]);
    }
    for (size_t i = 0; i < operations->column_count; i++)
        if (!operations->columns[i].minor)
            print_value(width_of(operations->columns[i].name, 10), 5, scenario->values[i]);
    printf("\n");
    print_remarks(scenario, "    ");
}

/* ---- For programs */

static bool describe_columns(const struct predict_operations *operations, cJSON *root) {
    cJSON *columns = json_add_array(root, "columns");
    bool good = columns != NULL;
    for (size_t i = 0; good && i < operations->parameter_count + operations->column_count; i++) {
        bool parameter = i < operations->parameter_count;
        size_t j = parameter ? i : i - operations->parameter_count;
        cJSON *column = json_add_object(columns, NULL);
        good = column &&
               json_add_string(column, "name",
                               parameter ? operations->parameters[j].name : operations->columns[j].name);
        good = good && json_add_string(column, "role", parameter ? "parameter" : "result");
        good =
            good && json_add_string(column, "unit",
                                    parameter ? operations->parameters[j].unit : operations->columns[j].unit);
        good =
            good && json_add_string(column, "description",
                                    parameter ? operations->parameters[j].help : operations->columns[j].help);
    }
    return good;
}

/* Everything but the scenarios, which are lines of text already. */
static int append_json_head(const struct prediction *prediction, const char *model_path, struct text *text,
                            struct failure *failure) {
    char sha256[HASH_HEX_SIZE], created[CLOCK_TEXT_SIZE];
    int r = hash_file(model_path, sha256, NULL, failure);
    if (r < 0)
        return r;
    const struct assay_plugin *plugin = prediction_plugin(prediction);
    cJSON *root = cJSON_CreateObject();
    bool good = root && json_add_int64(root, "assay_prediction", 1) &&
                json_add_string(root, "plugin", plugin->name) &&
                json_add_string(root, "version", plugin->version) &&
                json_add_string(root, "engine", ASSAY_VERSION) &&
                json_add_string(root, "created", clock_format(clock_wall_ns(), created));
    cJSON *model = good ? json_add_object(root, "model") : NULL;
    good = model && json_add_string(model, "file", file_base_name(model_path)) &&
           json_add_string(model, "sha256", sha256) &&
           describe_columns(prediction_operations(prediction), root);
    r = good ? json_print(root, true, text) : -ENOMEM;
    cJSON_Delete(root);
    if (r < 0)
        return failure_memory(failure);
    /* The last two bytes are the newline and brace that close the object. */
    text->length -= 2;
    text->bytes[text->length] = '\0';
    return text_append_string(text, ",\n  \"scenarios\": [") < 0 ? failure_memory(failure) : 0;
}

/* ---- Doing it */

static int hear(void *context, const struct prediction_scenario *scenario, struct failure *failure) {
    struct outputs *outputs = context;
    int r = prediction_append_csv(outputs->prediction, scenario, &outputs->csv);
    if (r == 0 && outputs->json) {
        r = text_append_string(&outputs->lines, outputs->count ? ",\n    " : "\n    ");
        r = r < 0 ? r : prediction_append_json(outputs->prediction, scenario, &outputs->lines);
    }
    if (r == -EFBIG)
        return failure_set(failure, r, "the prediction is larger than %d bytes", (int)OUTPUT_BYTES_MAX);
    if (r < 0)
        return failure_memory(failure);
    const struct predict_operations *operations = prediction_operations(outputs->prediction);
    outputs->count++;
    if (outputs->json)
        return 0;
    if (!outputs->many) {
        print_list(operations, scenario);
        return 0;
    }
    if (outputs->count == 1)
        print_heads(operations);
    print_line(operations, scenario, outputs->count);
    return 0;
}

static void print_note(void *context, const char *sentence) {
    (void)context;
    fprintf(stderr, "assay: note: %s\n", shown(sentence).text);
}

static int set_parameters(const struct verb_arguments *arguments, struct prediction *prediction,
                          struct failure *failure) {
    const char *assignment;
    int checked = verb_check_settings(arguments, "--set", failure);
    if (checked < 0)
        return checked;
    for (size_t k = 0; (assignment = verb_value_at(arguments, "--set", k)); k++) {
        int r = prediction_set(prediction, assignment, failure);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The table, and its units beside it; where the output is no file there is no beside. */
static int write_table(const struct outputs *outputs, const char *path, struct failure *failure) {
    cleanup(file_output_clear) struct file_output output = FILE_OUTPUT_NONE;
    int r = file_output_open(path, 0666, &output, failure);
    r = r < 0 ? r : file_output_write(&output, outputs->csv.bytes, outputs->csv.length, failure);
    r = r < 0 ? r : file_output_commit(&output, failure);
    return r < 0 || !file_output_is_file(&output)
               ? r
               : prediction_package_write(outputs->prediction, path, failure);
}

static int predict(const struct verb_arguments *arguments, struct prediction *prediction,
                   struct outputs *outputs, struct failure *failure) {
    const char *scenarios = verb_value(arguments, "--scenario"), *output = verb_value(arguments, "--output");
    int r = set_parameters(arguments, prediction, failure);
    if (r == 0 && prediction_append_csv_header(prediction, &outputs->csv) < 0)
        r = failure_memory(failure);
    if (r == 0 && outputs->json)
        r = append_json_head(prediction, arguments->operands[1], &outputs->lines, failure);
    r = r < 0 ? r : prediction_run(prediction, scenarios, hear, outputs, failure);
    if (r == 0 && output)
        r = write_table(outputs, output, failure);
    if (r == 0 && outputs->json)
        printf("%s\n  ]\n}\n", outputs->lines.bytes);
    return r;
}

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(installation_clear) struct installation installation = {0};
    cleanup(model_cleanup) struct model *model = NULL;
    cleanup(prediction_cleanup) struct prediction *prediction = NULL; /* goes before what it borrows */
    struct outputs outputs = {.json = verb_switch(arguments, "--json"),
                              .many = verb_value(arguments, "--scenario") != NULL};
    text_init(&outputs.csv, OUTPUT_BYTES_MAX);
    text_init(&outputs.lines, OUTPUT_BYTES_MAX);
    const char *inputs[] = {arguments->operands[1], verb_value(arguments, "--scenario")};
    int r = output_check(verb_value(arguments, "--output"), inputs, 2, failure);
    r = r < 0 ? r : installation_init(&installation, NULL, getenv("ASSAY_PATH"), failure);
    r = r < 0 ? r : model_read(arguments->operands[1], &model, failure);
    r = r < 0 ? r
              : prediction_open(&installation, arguments->operands[0], model, print_note, NULL, &prediction,
                                failure);
    outputs.prediction = prediction;
    r = r < 0 ? r : predict(arguments, prediction, &outputs, failure);
    text_clear(&outputs.csv);
    text_clear(&outputs.lines);
    return r;
}

static const struct verb_option options[] = {
    {"--scenario", 's', "FILE",
     "A CSV table of scenarios: a column a parameter, a row a scenario; '-' for standard input.", false},
    {"--set", 0, "NAME=VALUE",
     "A parameter for all scenarios, with its unit: --set latency=1.5us. (It has no short form here: -s is "
     "--scenario.)",
     true},
    {"--output", 'o', "FILE",
     "Write the prediction as CSV, and its columns' units into FILE.datapackage.json.", false},
    {"--json", 0, NULL, "Print the prediction as JSON instead of a table.", false},
    {0},
};

const struct verb verb_predict = {
    .name = "predict",
    .summary = "predict how long a program takes, from a model",
    .synopsis = "assay predict METHOD MODEL [OPTIONS]",
    .description =
        "Takes a model that 'assay fit' wrote and says how long a program will take, for one scenario given "
        "with "
        "--set, or for every row of a table. METHOD is the name of a predict plugin without 'predict-'.\n"
        "\n"
        "'hpl' is the analytic model of HPL's authors with the dgemm of the update taken from the model. Its "
        "parameters are N, NB, P, Q, latency, bandwidth and speed (mean or slowest: which of the model's "
        "groups the "
        "processes are like). Where a scenario leaves the sizes that the model was fitted to, a warning says "
        "so.\n"
        "\n"
        "    assay predict hpl model.json --set N=20000 --set NB=128 \\\n"
        "        --set P=4 --set Q=4 --set latency=1us --set bandwidth=10GB/s\n"
        "    assay predict hpl model.json --scenario scenarios.csv -o prediction.csv\n",
    .options = options,
    .operands_least = 2,
    .operands_most = 2,
    .run = run,
};
