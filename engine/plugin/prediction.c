#include "engine/plugin/prediction.h"

#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/plugin/parameter.h"
#include "engine/plugin/plugin-library.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where a parameter's value comes from. */
enum source { SOURCE_FALLBACK, SOURCE_SET, SOURCE_COLUMN };

struct prediction {
    struct plugin_library *library;
    const struct predict_operations *operations;
    struct predict *instance;
    struct plugin_host host;
    struct predict_model view; /* the model's, with the response's unit in seconds */
    prediction_note note;
    void *note_context;

    double *values; /* that all scenarios share */
    enum source *sources;
    size_t *columns; /* of the scenario table, where the source is a column */
    bool named;
    size_t name_column;
    struct prediction_scenario scenario;
    int error; /* of a remark that could not be kept */
};

static void clear_scenario(struct prediction_scenario *scenario) {
    free(take_pointer(scenario->name));
    for (size_t i = 0; i < scenario->remark_count; i++)
        free(scenario->remarks[i].sentence);
    scenario->remark_count = 0;
}

void prediction_free(struct prediction *prediction) {
    if (!prediction)
        return;
    if (prediction->operations)
        prediction->operations->close(prediction->instance);
    clear_scenario(&prediction->scenario);
    free(prediction->scenario.parameters);
    free(prediction->scenario.values);
    free(prediction->values);
    free(prediction->sources);
    free(prediction->columns);
    plugin_library_close(prediction->library);
    free(prediction);
}

void prediction_cleanup(struct prediction **prediction) {
    prediction_free(*prediction);
}

static void pass_note(void *context, const char *sentence) {
    struct prediction *prediction = context;
    if (prediction->note)
        prediction->note(prediction->note_context, sentence);
}

static int allocate(struct prediction *prediction, struct failure *failure) {
    size_t parameters = prediction->operations->parameter_count,
           columns = prediction->operations->column_count;
    prediction->values = calloc(parameters + 1, sizeof *prediction->values);
    prediction->sources = calloc(parameters + 1, sizeof *prediction->sources);
    prediction->columns = calloc(parameters + 1, sizeof *prediction->columns);
    prediction->scenario.parameters = calloc(parameters + 1, sizeof *prediction->scenario.parameters);
    prediction->scenario.values = calloc(columns + 1, sizeof *prediction->scenario.values);
    if (!prediction->values || !prediction->sources || !prediction->columns ||
        !prediction->scenario.parameters || !prediction->scenario.values)
        return failure_memory(failure);
    for (size_t i = 0; i < parameters; i++)
        prediction->values[i] = prediction->operations->parameters[i].fallback;
    return 0;
}

int prediction_open(const struct installation *installation, const char *method, const struct model *model,
                    prediction_note note, void *note_context, struct prediction **ret,
                    struct failure *failure) {
    cleanup(prediction_cleanup) struct prediction *prediction = calloc(1, sizeof *prediction);
    if (!prediction)
        return failure_memory(failure);
    prediction->note = note;
    prediction->note_context = note_context;
    int r = plugin_library_open(installation, ASSAY_PLUGIN_PREDICT, method, &prediction->library, failure);
    if (r < 0)
        return r;
    prediction->operations = plugin_library_predict(prediction->library);
    r = allocate(prediction, failure);
    if (r < 0)
        return r;
    prediction->host = (struct plugin_host){
        .size = sizeof prediction->host, .context = prediction, .note = pass_note, .nearest = text_nearest};
    prediction->view = *model_view(model);
    prediction->view.response_seconds = model_seconds(model);
    struct plugin_message message = {0};
    r = prediction->operations->open(&prediction->host, &prediction->view, &prediction->instance, &message);
    if (r < 0)
        return plugin_library_failure(prediction->library, r, &message, failure);
    *ret = take_pointer(prediction);
    return 0;
}

const struct assay_plugin *prediction_plugin(const struct prediction *prediction) {
    return plugin_library_plugin(prediction->library);
}

const struct predict_operations *prediction_operations(const struct prediction *prediction) {
    return prediction->operations;
}

/* ---- Parameters */

int prediction_set(struct prediction *prediction, const char *assignment, struct failure *failure) {
    const struct predict_operations *operations = prediction->operations;
    const char *equals = strchr(assignment, '=');
    if (!equals)
        return failure_input(failure, NULL, 0, 0, "'%s' sets nothing; expected NAME=VALUE", assignment);
    size_t i;
    int r = parameter_find(operations->parameters, operations->parameter_count, assignment,
                           (size_t)(equals - assignment), NULL, 0, 0, &i, failure);
    if (r < 0)
        return r;
    if (prediction->sources[i] == SOURCE_SET)
        return failure_input(failure, NULL, 0, 0, "the parameter '%s' is set twice",
                             operations->parameters[i].name);
    r = parameter_parse(&operations->parameters[i], equals + 1, NULL, 0, 0, &prediction->values[i], failure);
    if (r < 0)
        return r;
    prediction->sources[i] = SOURCE_SET;
    return 0;
}

/* Which column of the table gives which parameter. */
static int bind_columns(struct prediction *prediction, const struct csv_reader *csv,
                        struct failure *failure) {
    const struct predict_operations *operations = prediction->operations;
    for (size_t c = 0; c < csv_column_count(csv); c++) {
        const char *name = csv_column_name(csv, c);
        size_t i;
        if (strcmp(name, "name") == 0) {
            prediction->named = true;
            prediction->name_column = c;
            continue;
        }
        int r = parameter_find(operations->parameters, operations->parameter_count, name, strlen(name),
                               csv_file(csv), 1, 0, &i, failure);
        if (r < 0)
            return r;
        if (prediction->sources[i] == SOURCE_SET)
            return failure_input(failure, csv_file(csv), 1, 0,
                                 "'%s' is a column here and set on the command line; expected one of both",
                                 name);
        prediction->sources[i] = SOURCE_COLUMN;
        prediction->columns[i] = c;
    }
    return 0;
}

static int check_required(const struct prediction *prediction, const char *file, struct failure *failure) {
    const struct predict_operations *operations = prediction->operations;
    for (size_t i = 0; i < operations->parameter_count; i++)
        if (operations->parameters[i].required && prediction->sources[i] == SOURCE_FALLBACK)
            return failure_input(
                failure, file, 0, 0,
                "the parameter '%s' (%s) is not given; set it with --set %s=VALUE or in a column of the "
                "scenario table",
                operations->parameters[i].name, operations->parameters[i].help,
                operations->parameters[i].name);
    return 0;
}

/* The values of one row. An empty field is a value that was not given. */
static int read_row(struct prediction *prediction, const struct csv_reader *csv,
                    const struct csv_field *fields, struct failure *failure) {
    const struct predict_operations *operations = prediction->operations;
    for (size_t i = 0; i < operations->parameter_count; i++) {
        const struct plugin_parameter *parameter = &operations->parameters[i];
        prediction->scenario.parameters[i] = prediction->values[i];
        if (prediction->sources[i] != SOURCE_COLUMN)
            continue;
        const struct csv_field *field = &fields[prediction->columns[i]];
        if (field->length == 0 && !parameter->required)
            continue;
        char value[PREDICTION_VALUE_MAX];
        if (field->length == 0 || field->length >= sizeof value)
            return csv_failure(csv, prediction->columns[i], failure, "%s: %s", parameter->name,
                               field->length ? "the value is too long" : "there is no value");
        memcpy(value, field->bytes, field->length);
        value[field->length] = '\0';
        int r = parameter_parse(parameter, value, csv_file(csv), csv_line(csv), field->column,
                                &prediction->scenario.parameters[i], failure);
        if (r < 0)
            return r;
    }
    if (!prediction->named)
        return 0;
    const struct csv_field *field = &fields[prediction->name_column];
    prediction->scenario.name = xstrndup(field->bytes, field->length);
    return 0;
}

/* ---- Running */

static void keep_remark(void *context, enum predict_remark kind, const char *sentence) {
    struct prediction *prediction = context;
    struct prediction_scenario *scenario = &prediction->scenario;
    if (scenario->remark_count == PREDICTION_REMARKS_MAX)
        return; /* nobody reads more */
    char *copy = strdup(sentence);
    if (!copy)
        prediction->error = -ENOMEM;
    else
        scenario->remarks[scenario->remark_count++] = (struct prediction_remark){kind, copy};
}

static int predict_one(struct prediction *prediction, prediction_listener listener, void *context,
                       struct failure *failure) {
    const struct predict_operations *operations = prediction->operations;
    const struct predict_remarks remarks = {sizeof remarks, prediction, keep_remark};
    struct plugin_message message = {0};
    int r = operations->scenario(prediction->instance, prediction->scenario.parameters,
                                 prediction->scenario.values, &remarks, &message);
    if (r < 0)
        return plugin_library_failure(prediction->library, r, &message, failure);
    if (prediction->error)
        return failure_memory(failure);
    return listener(context, &prediction->scenario, failure);
}

static int run_table(struct prediction *prediction, struct csv_reader *csv, prediction_listener listener,
                     void *context, struct failure *failure) {
    int r = bind_columns(prediction, csv, failure);
    r = r < 0 ? r : check_required(prediction, csv_file(csv), failure);
    const struct csv_field *fields;
    size_t count = 0;
    while (r >= 0 && (r = csv_next(csv, &fields, failure)) > 0) {
        if (++count > PREDICTION_SCENARIOS_MAX)
            return csv_failure(csv, 0, failure, "more than %d scenarios", (int)PREDICTION_SCENARIOS_MAX);
        clear_scenario(&prediction->scenario);
        r = read_row(prediction, csv, fields, failure);
        if (r < 0)
            return r;
        r = predict_one(prediction, listener, context, failure);
        if (r == -EINVAL && failure && !failure->place[0])
            return failure_prefix(failure, "scenario in line %zu of '%s'", csv_line(csv), csv_file(csv));
    }
    if (r == 0 && count == 0)
        return failure_input(failure, csv_file(csv), 0, 0,
                             "there are no scenarios; expected at least one row");
    return r;
}

int prediction_run(struct prediction *prediction, const char *scenarios, prediction_listener listener,
                   void *context, struct failure *failure) {
    if (scenarios) {
        struct csv_reader *csv;
        int r = csv_open(scenarios, &csv, failure);
        if (r < 0)
            return r;
        r = run_table(prediction, csv, listener, context, failure);
        csv_close(csv);
        return r;
    }
    int r = check_required(prediction, NULL, failure);
    if (r < 0)
        return r;
    memcpy(prediction->scenario.parameters, prediction->values,
           prediction->operations->parameter_count * sizeof *prediction->values);
    return predict_one(prediction, listener, context, failure);
}
