#include "engine/plugin/parameter.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int parse_word(const struct plugin_parameter *parameter, const char *text, const char *file,
                      size_t line, size_t column, double *ret, struct failure *failure) {
    cleanup(text_clear) struct text list;
    text_init(&list, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; parameter->words[i]; i++) {
        if (strcmp(parameter->words[i], text) == 0) {
            *ret = (double)i;
            return 0;
        }
        if (text_printf(&list, "%s%s", i ? ", " : "", parameter->words[i]) < 0)
            break; /* a list that is too long to be read is cut */
    }
    return failure_input(failure, file, line, column, "%s: there is no '%.200s'; expected one of %s",
                         parameter->name, text, list.bytes);
}

int parameter_parse(const struct plugin_parameter *parameter, const char *text, const char *file, size_t line,
                    size_t column, double *ret, struct failure *failure) {
    if (parameter->words)
        return parse_word(parameter, text, file, line, column, ret, failure);
    const struct unit *unit = unit_find(parameter->unit ? parameter->unit : "1");
    enum unit_dimension dimension = unit ? unit->dimension : UNIT_NONE;
    double value;
    if (!unit_parse(text, dimension, &value))
        return failure_input(failure, file, line, column, "%s: '%.200s' is not %s", parameter->name, text,
                             unit_expectation(dimension));
    if (unit && unit->scale != 1)
        value /= unit->scale; /* plain numbers and units alike came in the SI unit */
    if (!(value >= parameter->minimum && value <= parameter->maximum))
        return failure_input(failure, file, line, column,
                             "%s: '%.200s' is out of range; expected %.15g to %.15g%s%s", parameter->name,
                             text, parameter->minimum, parameter->maximum, unit && unit->label[0] ? " " : "",
                             unit ? unit->label : "");
    if (parameter->whole && value != floor(value))
        return failure_input(failure, file, line, column, "%s: '%.200s' is not a whole number",
                             parameter->name, text);
    *ret = value;
    return 0;
}

int parameter_find(const struct plugin_parameter *parameters, size_t count, const char *name, size_t length,
                   const char *file, size_t line, size_t column, size_t *ret, struct failure *failure) {
    cleanup_free const char **names = xcalloc(count + 1, sizeof *names);
    cleanup_free char *word = xstrndup(name, length);
    cleanup(text_clear) struct text list;
    text_init(&list, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(parameters[i].name, word) == 0) {
            *ret = i;
            return 0;
        }
        names[i] = parameters[i].name;
        if (text_printf(&list, "%s%s", i ? ", " : "", names[i]) < 0)
            break; /* a list that is too long to be read is cut */
    }
    const char *nearest = text_nearest(word, names, count);
    if (nearest)
        return failure_input(failure, file, line, column,
                             "there is no parameter '%.200s'; did you mean '%s'?", word, nearest);
    return failure_input(failure, file, line, column, "there is no parameter '%.200s'; there are: %s", word,
                         list.bytes);
}
