/* assay fit --methods, and assay fit METHOD --parameters: what fits there are, and what can be set. */
#include "engine/command-line/fit-rows.h"
#include "engine/command-line/fit-verbs.h"
#include "engine/command-line/manual.h"
#include "engine/command-line/shown.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/installation.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/plugin/plugin-library.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OUTPUT_MAX = 1 << 20, INDENT = 6 };

static const char prefix[] = "fit-";

static int print_list(cJSON *list, struct failure *failure) {
    cleanup(text_clear) struct text text;
    text_init(&text, OUTPUT_MAX);
    if (json_print(list, true, &text) < 0)
        return failure_memory(failure);
    printf("%s\n", text.bytes);
    return 0;
}

/* ---- Methods */

/* One that does not load is listed with the reason: it is there, and of no use. */
static int tell_method(const struct installation *installation, const char *method, cJSON *list, bool json) {
    cleanup(plugin_library_cleanup) struct plugin_library *library = NULL;
    struct failure own = {0};
    cleanup_free char *version = NULL, *summary = fit_rows_describe(installation, method, &version);
    if (!summary && plugin_library_open(installation, ASSAY_PLUGIN_FIT, method, &library, &own) == 0) {
        version = xstrdup(plugin_library_plugin(library)->version);
        summary = xstrdup(plugin_library_plugin(library)->summary);
    }
    if (!json) {
        printf("  %-14s %s\n", shown(method).text, shown(summary ? summary : own.text).text);
        return 0;
    }
    cJSON *object = json_add_object(list, NULL);
    json_add_string(object, "method", method);
    json_add_string(object, "version", version);
    json_add_string(object, "summary", summary);
    json_add_string(object, "failure", summary ? NULL : own.text);
    return 0;
}

int fit_methods(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(installation_clear) struct installation installation = {0};
    cleanup(json_cleanup) cJSON *list = cJSON_CreateArray();
    bool json = verb_switch(arguments, "--json");
    struct installation_names names = {0};
    if (!list)
        return failure_memory(failure);
    int r = installation_init(&installation, NULL, getenv("ASSAY_PATH"), failure);
    r = r < 0 ? r : installation_list(&installation, INSTALLATION_PLUGIN, &names, failure);
    for (size_t i = 0; r == 0 && i < names.count; i++)
        if (strncmp(names.items[i], prefix, strlen(prefix)) == 0)
            r = tell_method(&installation, names.items[i] + strlen(prefix), list, json);
    installation_names_clear(&names);
    if (r < 0)
        return r;
    if (json)
        return print_list(list, failure);
    printf("\n'assay fit METHOD --parameters' lists what can be set\n");
    return 0;
}

/* ---- Parameters */

static int append_words(struct text *text, const struct plugin_parameter *parameter) {
    int r = 0;
    for (size_t w = 0; r == 0 && parameter->words[w]; w++)
        r = text_printf(text, "%s%s", w ? ", " : "", parameter->words[w]);
    return r;
}

/* "0 to 20", "0 or more", "any number". */
static int append_range(struct text *text, const struct plugin_parameter *parameter) {
    const double most = 1e300;
    char minimum[NUMBER_TEXT_SIZE], maximum[NUMBER_TEXT_SIZE];
    number_format_double(parameter->minimum, minimum);
    number_format_double(parameter->maximum, maximum);
    const char *what = parameter->whole ? "whole number" : "number";
    bool bounded_below = parameter->minimum > -most, bounded_above = parameter->maximum < most;
    int r = text_printf(text, "a %s", what);
    if (r == 0 && bounded_below && bounded_above)
        r = text_printf(text, " from %s to %s", minimum, maximum);
    else if (r == 0 && bounded_below)
        r = text_printf(text, ", %s or more", minimum);
    else if (r == 0 && bounded_above)
        r = text_printf(text, ", %s or less", maximum);
    if (r == 0 && parameter->unit && strcmp(parameter->unit, "1") != 0)
        r = text_printf(text, ", in %s", parameter->unit);
    return r;
}

static int append_default(struct text *text, const struct plugin_parameter *parameter) {
    char value[NUMBER_TEXT_SIZE];
    if (parameter->required)
        return text_append_string(text, "; must be given");
    if (parameter->words)
        return text_printf(text, "; default: %s", parameter->words[(size_t)parameter->fallback]);
    if (isnan(parameter->fallback))
        return 0;
    number_format_double(parameter->fallback, value);
    return text_printf(text, "; default: %s", value);
}

/* Words of SENTENCE, wrapped behind an indent. */
static void print_wrapped(const char *sentence, size_t width) {
    int column = INDENT;
    printf("%*s", INDENT, "");
    for (const char *at = sentence; *at;) {
        int length = (int)strcspn(at, " \n");
        if (column > INDENT && (size_t)(column + 1 + length) > width) {
            printf("\n%*s", INDENT, "");
            column = INDENT;
        }
        column += printf("%s%.*s", column > INDENT ? " " : "", length, at);
        at += length;
        at += strspn(at, " \n");
    }
    printf("\n");
}

static int print_parameter(const struct plugin_parameter *parameter, struct failure *failure) {
    cleanup(text_clear) struct text text;
    text_init(&text, OUTPUT_MAX);
    int r = parameter->words ? append_words(&text, parameter) : append_range(&text, parameter);
    r = r < 0 ? r : append_default(&text, parameter);
    if (r < 0)
        return failure_memory(failure);
    printf("\n  %s: %s\n", shown(parameter->name).text, shown(text.bytes).text);
    print_wrapped(shown(parameter->help).text, manual_width(STDOUT_FILENO));
    return 0;
}

static bool add_parameter(cJSON *list, const struct plugin_parameter *parameter) {
    cJSON *object = json_add_object(list, NULL);
    bool good = object && json_add_string(object, "name", parameter->name) &&
                json_add_string(object, "unit", parameter->unit) &&
                json_add_boolean(object, "required", parameter->required) &&
                json_add_string(object, "help", parameter->help);
    if (!good || !parameter->words)
        return good && json_add_double(object, "default", parameter->fallback) &&
               json_add_double(object, "minimum", parameter->minimum) &&
               json_add_double(object, "maximum", parameter->maximum) &&
               json_add_boolean(object, "whole", parameter->whole);
    cJSON *words = json_add_array(object, "words");
    good = words && json_add_string(object, "default", parameter->words[(size_t)parameter->fallback]);
    for (size_t w = 0; good && parameter->words[w]; w++)
        good = json_add_string(words, NULL, parameter->words[w]);
    return good;
}

int fit_parameters(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(installation_clear) struct installation installation = {0};
    cleanup(plugin_library_cleanup) struct plugin_library *library = NULL;
    cleanup(json_cleanup) cJSON *list = cJSON_CreateArray();
    if (!list)
        return failure_memory(failure);
    if (arguments->operand_count != 1)
        return failure_input(failure, NULL, 0, 0,
                             "--parameters is of one method; expected 'assay fit METHOD --parameters'");
    bool json = verb_switch(arguments, "--json");
    int r = installation_init(&installation, NULL, getenv("ASSAY_PATH"), failure);
    if (r == 0 && fit_rows_has(&installation, arguments->operands[0]))
        return fit_rows_parameters(&installation, arguments->operands[0], json, failure);
    r = r < 0
            ? r
            : plugin_library_open(&installation, ASSAY_PLUGIN_FIT, arguments->operands[0], &library, failure);
    if (r < 0)
        return r;
    const struct assay_plugin *plugin = plugin_library_plugin(library);
    const struct fit_operations *operations = plugin_library_fit(library);
    if (!json)
        printf("%s %s: %s\n%s", plugin->name, plugin->version, plugin->summary,
               operations->parameter_count == 0 ? "\nIt has no parameters.\n" : "");
    for (size_t i = 0; r == 0 && i < operations->parameter_count; i++) {
        if (!json)
            r = print_parameter(&operations->parameters[i], failure);
        else if (!add_parameter(list, &operations->parameters[i]))
            r = failure_memory(failure);
    }
    if (r == 0 && !json && operations->parameter_count > 0)
        printf("\nEach is set by --set NAME=VALUE.\n");
    return r == 0 && json ? print_list(list, failure) : r;
}
