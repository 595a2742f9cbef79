#include "engine/plugin/model-unit.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <string.h>

enum { UNIT_BYTES_MAX = 4096 };

/* A code with an operator or a digit inside gets parentheses when it is raised or divided by. */
static int append_power(struct text *text, const char *unit, int power) {
    bool compound = strpbrk(unit, "./0123456789+-") != NULL;
    int r = text_printf(text, compound ? "(%s)" : "%s", unit);
    return r == 0 && power > 1 ? text_printf(text, "%d", power) : r;
}

int model_unit_of_term(const struct fitting *fitting, const struct plugin_term *term, char **ret) {
    const char *response = fitting_unit(fitting, fitting_options(fitting)->response);
    cleanup(text_clear) struct text text;
    text_init(&text, UNIT_BYTES_MAX);
    int r = response ? text_append_string(&text, response) : 0;
    bool known = response != NULL;
    for (size_t i = 0; r == 0 && known && i < term->factor_count; i++) {
        const char *unit = fitting_unit(fitting, term->factors[i].name);
        known = unit != NULL;
        if (!known || strcmp(unit, "1") == 0)
            continue;
        r = text_append_character(&text, '/');
        r = r < 0 ? r : append_power(&text, unit, term->factors[i].power);
    }
    char *unit = r == 0 && known ? text_take(&text) : NULL;
    if (r < 0 || (known && !unit))
        return -ENOMEM;
    *ret = unit;
    return 0;
}

int model_unit_of_product(const struct fitting *fitting, const struct plugin_term *term, char **ret) {
    cleanup(text_clear) struct text text;
    text_init(&text, UNIT_BYTES_MAX);
    int r = 0;
    bool known = true;
    for (size_t i = 0; r == 0 && known && i < term->factor_count; i++) {
        const char *unit = fitting_unit(fitting, term->factors[i].name);
        known = unit != NULL;
        if (!known || strcmp(unit, "1") == 0)
            continue;
        if (text.length > 0)
            r = text_append_character(&text, '.');
        r = r < 0 ? r : append_power(&text, unit, term->factors[i].power);
    }
    if (r == 0 && text.length == 0)
        r = text_append_character(&text, '1');
    char *unit = r == 0 && known ? text_take(&text) : NULL;
    if (r < 0 || (known && !unit))
        return -ENOMEM;
    *ret = unit;
    return 0;
}

int model_unit_of_power(const struct fitting *fitting, int power, char **ret) {
    const char *response = fitting_unit(fitting, fitting_options(fitting)->response);
    if (!response) {
        *ret = NULL;
        return 0;
    }
    cleanup(text_clear) struct text text;
    text_init(&text, UNIT_BYTES_MAX);
    int r = power == 1 ? text_append_string(&text, response) : append_power(&text, response, power);
    char *unit = r == 0 ? text_take(&text) : NULL;
    if (!unit)
        return -ENOMEM;
    *ret = unit;
    return 0;
}

int model_unit_of_estimate(const struct fitting *fitting, const char *kind, const struct plugin_term *term,
                           char **ret) {
    return strcmp(kind, "population") == 0 ? model_unit_of_product(fitting, term, ret)
                                           : model_unit_of_term(fitting, term, ret);
}
