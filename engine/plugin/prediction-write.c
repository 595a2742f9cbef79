#include "engine/plugin/prediction.h"

#include "engine/documents/csv.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { REMARKS_BYTES_MAX = 1 << 16 };

static int append_text(struct text *text, bool first, const char *string) {
    return csv_append_field(text, first, string, strlen(string));
}

int prediction_append_csv_header(const struct prediction *prediction, struct text *text) {
    const struct predict_operations *operations = prediction_operations(prediction);
    int r = append_text(text, true, "name");
    for (size_t i = 0; r == 0 && i < operations->parameter_count; i++)
        r = append_text(text, false, operations->parameters[i].name);
    for (size_t i = 0; r == 0 && i < operations->column_count; i++)
        r = append_text(text, false, operations->columns[i].name);
    r = r < 0 ? r : append_text(text, false, "remarks");
    return r < 0 ? r : text_append_character(text, '\n');
}

/* A number, or nothing where it is not defined. */
static int append_number(struct text *text, double value) {
    return isfinite(value) ? csv_append_double(text, false, value) : append_text(text, false, "");
}

static int append_remarks(struct text *text, const struct prediction_scenario *scenario) {
    cleanup(text_clear) struct text remarks;
    text_init(&remarks, REMARKS_BYTES_MAX);
    for (size_t i = 0; i < scenario->remark_count; i++) {
        int r = text_printf(&remarks, "%s%s%s", i ? "; " : "",
                            scenario->remarks[i].kind == PREDICT_WARNING ? "warning: " : "",
                            scenario->remarks[i].sentence);
        if (r < 0)
            return r;
    }
    return csv_append_field(text, false, remarks.bytes, remarks.length);
}

int prediction_append_csv(const struct prediction *prediction, const struct prediction_scenario *scenario,
                          struct text *text) {
    const struct predict_operations *operations = prediction_operations(prediction);
    int r = append_text(text, true, scenario->name ? scenario->name : "");
    for (size_t i = 0; r == 0 && i < operations->parameter_count; i++) {
        const struct plugin_parameter *parameter = &operations->parameters[i];
        double value = scenario->parameters[i];
        r = parameter->words ? append_text(text, false, parameter->words[(size_t)value])
                             : append_number(text, value);
    }
    for (size_t i = 0; r == 0 && i < operations->column_count; i++)
        r = append_number(text, scenario->values[i]);
    r = r < 0 ? r : append_remarks(text, scenario);
    return r < 0 ? r : text_append_character(text, '\n');
}

/* ---- JSON */

static int append_key(struct text *text, bool first, const char *key) {
    int r = first ? 0 : text_append_string(text, ", ");
    r = r < 0 ? r : json_append_string(text, key, strlen(key));
    return r < 0 ? r : text_append_string(text, ": ");
}

static int append_value(struct text *text, double value) {
    char digits[NUMBER_TEXT_SIZE];
    if (!isfinite(value))
        return text_append_string(text, "null");
    number_format_double(value, digits);
    return text_append_string(text, digits);
}

static int append_json_remarks(struct text *text, const struct prediction_scenario *scenario,
                               enum predict_remark kind, const char *key) {
    int r = append_key(text, false, key);
    r = r < 0 ? r : text_append_character(text, '[');
    bool first = true;
    for (size_t i = 0; r == 0 && i < scenario->remark_count; i++) {
        if (scenario->remarks[i].kind != kind)
            continue;
        r = text_append_string(text, first ? "" : ", ");
        r = r < 0 ? r
                  : json_append_string(text, scenario->remarks[i].sentence,
                                       strlen(scenario->remarks[i].sentence));
        first = false;
    }
    return r < 0 ? r : text_append_character(text, ']');
}

int prediction_append_json(const struct prediction *prediction, const struct prediction_scenario *scenario,
                           struct text *text) {
    const struct predict_operations *operations = prediction_operations(prediction);
    int r = text_append_character(text, '{');
    r = r < 0 ? r : append_key(text, true, "name");
    r = r < 0            ? r
        : scenario->name ? json_append_string(text, scenario->name, strlen(scenario->name))
                         : text_append_string(text, "null");
    for (size_t i = 0; r == 0 && i < operations->parameter_count; i++) {
        const struct plugin_parameter *parameter = &operations->parameters[i];
        double value = scenario->parameters[i];
        r = append_key(text, false, parameter->name);
        if (r == 0 && parameter->words)
            r = json_append_string(text, parameter->words[(size_t)value],
                                   strlen(parameter->words[(size_t)value]));
        else if (r == 0)
            r = append_value(text, value);
    }
    for (size_t i = 0; r == 0 && i < operations->column_count; i++) {
        r = append_key(text, false, operations->columns[i].name);
        r = r < 0 ? r : append_value(text, scenario->values[i]);
    }
    r = r < 0 ? r : append_json_remarks(text, scenario, PREDICT_NOTE, "notes");
    r = r < 0 ? r : append_json_remarks(text, scenario, PREDICT_WARNING, "warnings");
    return r < 0 ? r : text_append_character(text, '}');
}
