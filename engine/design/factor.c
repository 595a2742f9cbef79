#include "engine/design/factor.h"

#include "engine/design/control-factors.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void design_factor_clear(struct design_factor *factor) {
    column_clear(&factor->about);
    free(factor->default_note);
    for (size_t i = 0; i < factor->choice_count; i++)
        free(factor->choices[i]);
    free(factor->choices);
    free(factor->default_text);
    free(factor->from_share);
    free(factor->from_time);
    *factor = (struct design_factor){0};
}

static void describe_choices(const struct design_factor *factor, char *buffer, size_t size) {
    size_t used = (size_t)snprintf(buffer, size, "one of ");
    for (size_t i = 0; i < factor->choice_count; i++) {
        size_t needed = strlen(factor->choices[i]) + 2;
        if (used + needed + sizeof ", ..." > size) {
            snprintf(buffer + used, size - used, ", ...");
            break;
        }
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", i ? ", " : "", factor->choices[i]);
    }
}

/* Describes the values that the factor accepts, for a message: "a whole number from 1 to 8". Returns
 * BUFFER. */
const char *design_factor_expectation(const struct design_factor *factor,
                                      char buffer[static DESIGN_EXPECTATION_SIZE]) {
    if (factor->about.type != COLUMN_STRING) {
        double low = factor->minimum > -DESIGN_UNBOUNDED ? factor->minimum : -INFINITY,
               high = factor->maximum < DESIGN_UNBOUNDED ? factor->maximum : INFINITY;
        const char *what = factor->about.type == COLUMN_NUMBER ? "a number"
                           : isfinite(low) || isfinite(high)   ? "a whole number"
                                                               : "a whole number of at most 2^53 in size";
        number_describe_range(what, low, high, "", buffer, DESIGN_EXPECTATION_SIZE);
        size_t used = strlen(buffer);
        snprintf(buffer + used, DESIGN_EXPECTATION_SIZE - used, "%s%s",
                 factor->from_share ? ", or a share such as 80%" : "",
                 factor->from_time ? ", or a time such as 10min" : "");
    } else if (factor->choice_count) {
        describe_choices(factor, buffer, DESIGN_EXPECTATION_SIZE);
    } else {
        snprintf(buffer, DESIGN_EXPECTATION_SIZE, "a text");
    }
    return buffer;
}

bool design_factor_admits(const struct design_factor *factor, double value) {
    if (!isfinite(value) || value < factor->minimum || value > factor->maximum)
        return false;
    return factor->about.type != COLUMN_INTEGER ||
           (value == floor(value) && fabs(value) <= (double)DESIGN_INTEGER_MAX);
}

bool design_factor_admits_text(const struct design_factor *factor, const char *bytes, size_t length) {
    if (length == 0)
        return false;
    for (size_t i = 0; i < factor->choice_count; i++)
        if (strlen(factor->choices[i]) == length && memcmp(factor->choices[i], bytes, length) == 0)
            return true;
    return factor->choice_count == 0;
}

enum design_meaning design_factor_meaning(const struct design_factor *factor, const char *text, double *ret) {
    size_t length = strlen(text);
    if (number_parse_double(text, length, ret) || (unit_parse(text, UNIT_SIZE, ret) && isfinite(*ret)))
        return DESIGN_MEANS_NUMBER;
    if (factor->from_share && unit_parse(text, UNIT_RATIO, ret) && *ret > 0 && *ret <= 1)
        return DESIGN_MEANS_SHARE;
    if (factor->from_time && unit_parse(text, UNIT_TIME, ret) && *ret > 0 && isfinite(*ret))
        return DESIGN_MEANS_TIME;
    return DESIGN_MEANS_NOTHING;
}

bool design_factor_has_meanings(const struct design_factor *factor) {
    return factor->about.type != COLUMN_STRING && (factor->from_share || factor->from_time);
}

bool design_factor_admits_written(const struct design_factor *factor, const char *text) {
    double value;
    enum design_meaning meaning = design_factor_meaning(factor, text, &value);
    if (meaning == DESIGN_MEANS_NUMBER)
        return design_factor_admits(factor, value);
    return meaning != DESIGN_MEANS_NOTHING && design_factor_has_meanings(factor);
}

size_t design_factor_find(const struct design_factors *factors, const char *name) {
    for (size_t i = 0; i < factors->count; i++)
        if (strcmp(factors->items[i].about.name, name) == 0)
            return i;
    return SIZE_MAX;
}

/* Fails with -EINVAL: NAME, at LINE and COLUMN of FILE, is no factor. The message suggests a similar name. */
int design_factor_unknown(const struct design_factors *factors, const char *name, const char *file,
                          size_t line, size_t column, struct failure *failure) {
    if (control_of_column(name))
        return control_factor_unknown(name, file, line, column, failure);
    cleanup_free const char **names = xcalloc(factors->count + 1, sizeof *names);
    char instead[TEXT_INSTEAD_SIZE];
    for (size_t i = 0; i < factors->count; i++)
        names[i] = factors->items[i].about.name;
    for (size_t i = 0; i < CONTROL_FACTORS; i++)
        if (strcmp(name, control_kinds[i].name) == 0)
            return failure_input(failure, file, line, column, "'%s' is not a factor; did you mean '%s'?",
                                 name, control_kinds[i].factor.about.name);
    return failure_input(failure, file, line, column, "'%.64s' is not a factor; %s", name,
                         text_instead(name, names, factors->count, instead));
}
