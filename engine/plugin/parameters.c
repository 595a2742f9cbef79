#include "engine/plugin/parameters.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where a value was written. */
struct place {
    const char *file;
    size_t line, column;
};

bool parameters_is_column(const struct plugin_parameter *parameter) {
    return parameter->type == PLUGIN_COLUMN || parameter->type == PLUGIN_COLUMNS;
}

bool parameters_is_category(const struct plugin_parameter *parameter) {
    return parameter->type == PLUGIN_CATEGORY || parameter->type == PLUGIN_CATEGORIES;
}

static bool is_list(const struct plugin_parameter *parameter) {
    return parameter->type == PLUGIN_NUMBERS || parameter->type == PLUGIN_TEXTS ||
           parameter->type == PLUGIN_COLUMNS || parameter->type == PLUGIN_CATEGORIES;
}

static void value_clear(struct plugin_value *value) {
    for (size_t i = 0; value->texts && i < value->count; i++)
        free((char *)value->texts[i]);
    free((char *)value->text);
    free((double *)value->numbers);
    free((char **)value->texts);
    *value = (struct plugin_value){.number = NAN};
}

/* The index of the choice that TEXT names. -EINVAL: none. */
static int parse_word(const struct plugin_parameter *parameter, const char *text, struct place place,
                      double *ret, struct failure *failure) {
    cleanup(text_clear) struct text list;
    text_init(&list, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; parameter->choices[i]; i++)
        if (strcmp(parameter->choices[i], text) == 0) {
            *ret = (double)i;
            return 0;
        }
    text_append_words(&list, parameter->choices);
    return failure_input(failure, place.file, place.line, place.column,
                         "%s: there is no '%.200s'; expected one of %s", parameter->name, text, list.bytes);
}

/* The number in the parameter's unit. -EINVAL: no number, out of range, or not whole. */
static int parse_number(const struct plugin_parameter *parameter, const char *text, struct place place,
                        double *ret, struct failure *failure) {
    const struct unit *unit = unit_find(parameter->unit ? parameter->unit : "1");
    enum unit_dimension dimension = unit ? unit->dimension : UNIT_NONE;
    double value;
    if (!unit_parse(text, dimension, &value))
        return failure_input(failure, place.file, place.line, place.column, "%s: '%.200s' is not %s",
                             parameter->name, text, unit_expectation(dimension));
    if (unit && unit->scale != 1)
        value /= unit->scale; /* plain numbers and those with a unit alike came in the SI unit */
    bool is_bounded = parameter->minimum != 0 || parameter->maximum != 0;
    if (is_bounded && !(value >= parameter->minimum && value <= parameter->maximum))
        return failure_input(failure, place.file, place.line, place.column,
                             "%s: '%.200s' is out of range; expected %.15g to %.15g%s%s", parameter->name,
                             text, parameter->minimum, parameter->maximum, unit && unit->label[0] ? " " : "",
                             unit ? unit->label : "");
    if (parameter->integer && value != floor(value))
        return failure_input(failure, place.file, place.line, place.column,
                             "%s: '%.200s' is not a whole number", parameter->name, text);
    *ret = value;
    return 0;
}

/* Splits TEXT at commas, without blanks around the pieces, into *RET, which the caller frees. Returns their
 * number. */
static size_t split_at_commas(const char *text, char ***ret) {
    size_t count = 0;
    *ret = NULL;
    while (*(text += strspn(text, " ")) || count > 0) {
        size_t length = strcspn(text, ","), end = length;
        while (end > 0 && text[end - 1] == ' ')
            end--;
        *ret = xrealloc(*ret, (count + 1) * sizeof **ret);
        (*ret)[count++] = xstrndup(text, end);
        if (!text[length])
            break;
        text += length + 1;
    }
    return count;
}

/* Parses a list of values. RET is to be cleared after failures too. */
static int parse_list(const struct plugin_parameter *parameter, const char *text, struct place place,
                      struct plugin_value *ret, struct failure *failure) {
    char **pieces;
    ret->count = split_at_commas(text, &pieces);
    ret->texts = (const char *const *)pieces;
    for (size_t i = 0; i < ret->count; i++)
        if (!pieces[i][0])
            return failure_input(failure, place.file, place.line, place.column,
                                 "%s: '%.200s' has an empty value; expected values separated by commas",
                                 parameter->name, text);
    if (parameter->type != PLUGIN_NUMBERS)
        return 0;
    double *numbers = xcalloc(ret->count + 1, sizeof *numbers);
    ret->numbers = numbers;
    for (size_t i = 0; i < ret->count; i++) {
        int r = parse_number(parameter, pieces[i], place, &numbers[i], failure);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Parses TEXT as a value of the parameter. RET is to be cleared after failures too. */
static int parse_value(const struct plugin_parameter *parameter, const char *text, struct place place,
                       struct plugin_value *ret, struct failure *failure) {
    *ret = (struct plugin_value){.number = NAN, .is_set = true, .text = xstrdup(text)};
    if (is_list(parameter))
        return parse_list(parameter, text, place, ret, failure);
    ret->count = parameters_is_column(parameter) || parameters_is_category(parameter);
    if (parameter->type == PLUGIN_WORD)
        return parse_word(parameter, text, place, &ret->number, failure);
    return parameter->type == PLUGIN_NUMBER ? parse_number(parameter, text, place, &ret->number, failure) : 0;
}

/* Sets a parameter; unchanged on failure. */
int parameters_set(struct parameters *parameters, size_t index, const char *text, const char *file,
                   size_t line, size_t column, struct failure *failure) {
    struct plugin_value value;
    int r = parse_value(&parameters->table[index], text, (struct place){file, line, column}, &value, failure);
    if (r < 0) {
        value_clear(&value);
        return r;
    }
    value_clear(&parameters->values[index]);
    parameters->values[index] = value;
    return 0;
}

/* Sets all parameters to their defaults. To be cleared after failures too. */
int parameters_init(struct parameters *parameters, const struct plugin_parameter *table,
                    struct failure *failure) {
    *parameters = (struct parameters){.table = table};
    while (table && table[parameters->count].name)
        parameters->count++;
    parameters->values = xcalloc(parameters->count + 1, sizeof *parameters->values);
    for (size_t i = 0; i < parameters->count; i++) {
        parameters->values[i].number = NAN;
        int r = table[i].default_text
                    ? parameters_set(parameters, i, table[i].default_text, NULL, 0, 0, failure)
                    : 0;
        if (r < 0)
            return failure_prefix(failure, "the default that the plugin declares");
        parameters->values[i].is_set = false;
    }
    return 0;
}

void parameters_clear(struct parameters *parameters) {
    for (size_t i = 0; i < parameters->count; i++)
        value_clear(&parameters->values[i]);
    free(parameters->values);
    *parameters = (struct parameters){0};
}

/* The index of the parameter NAME. -EINVAL: there is none; the message suggests the nearest. */
int parameters_find(const struct parameters *parameters, const char *name, size_t length,
                    struct failure *failure) {
    cleanup_free const char **names = xcalloc(parameters->count + 1, sizeof *names);
    cleanup_free char *word = xstrndup(name, length);
    char instead[TEXT_INSTEAD_SIZE];
    for (size_t i = 0; i < parameters->count; i++)
        names[i] = parameters->table[i].name;
    size_t found = text_find(word, names, parameters->count);
    if (found < parameters->count)
        return (int)found;
    return failure_input(failure, NULL, 0, 0, "there is no parameter '%.200s'; %s", word,
                         text_instead(word, names, parameters->count, instead));
}

int parameters_set_pair(struct parameters *parameters, const char *pair, struct failure *failure) {
    const char *sign = strchr(pair, '=');
    if (!sign)
        return failure_input(failure, NULL, 0, 0, "'%.200s' is not a setting; expected NAME=VALUE", pair);
    int index = parameters_find(parameters, pair, (size_t)(sign - pair), failure);
    return index < 0 ? index : parameters_set(parameters, (size_t)index, sign + 1, NULL, 0, 0, failure);
}

/* -EINVAL if a required parameter is not set; columns are checked elsewhere. */
int parameters_check(const struct parameters *parameters, struct failure *failure) {
    for (size_t i = 0; i < parameters->count; i++) {
        const struct plugin_parameter *parameter = &parameters->table[i];
        if (parameter->required && !parameters->values[i].is_set && !parameters_is_column(parameter) &&
            !parameters_is_category(parameter))
            return failure_input(failure, NULL, 0, 0,
                                 "the parameter '%s' is not set (%s); set it with --set %s=VALUE",
                                 parameter->name, parameter->help, parameter->name);
    }
    return 0;
}

/* Adds the parameters FIRST to END - 1 that have a value to the settings of ORIGIN. */
void parameters_describe(const struct parameters *parameters, size_t first, size_t end,
                         struct model_origin *origin) {
    size_t room = origin->setting_count + end - first + 1;
    origin->settings = xrealloc(origin->settings, room * sizeof *origin->settings);
    origin->setting_values = xrealloc(origin->setting_values, room * sizeof *origin->setting_values);
    for (size_t i = first; i < end; i++)
        if (parameters->values[i].text) {
            origin->settings[origin->setting_count] = xstrdup(parameters->table[i].name);
            origin->setting_values[origin->setting_count++] = xstrdup(parameters->values[i].text);
        }
}
