#include "engine/design/control-factors.h"

#include "engine/foundation/text.h"

#include <stdio.h>
#include <string.h>

#define TEXT(literal)                                                                                        \
    ((char *)(literal)) /* struct design_factor owns its texts elsewhere; these nobody frees */
#define COUNT(array) (sizeof(array) / sizeof *(array))

static char *on_or_off[] = {TEXT("on"), TEXT("off")};
static char *pages[] = {TEXT("always"), TEXT("madvise"), TEXT("never")};
static char *running_or_stopped[] = {TEXT("running"), TEXT("stopped")};

#define ANY(name_)                                                                                           \
    {                                                                                                        \
        .name = TEXT(CONTROL_PREFIX name_), .type = DESIGN_TEXT, .unit = TEXT("1"),                          \
        .description = TEXT("state of the node: " name_)                                                     \
    }
#define ONE_OF(name_, choices_)                                                                              \
    {                                                                                                        \
        .name = TEXT(CONTROL_PREFIX name_), .type = DESIGN_TEXT, .unit = TEXT("1"),                          \
        .description = TEXT("state of the node: " name_), .choices = (choices_),                             \
        .choice_count = COUNT(choices_)                                                                      \
    }

const struct design_factor control_factors[CONTROL_FACTORS] = {
    ONE_OF("turbo", on_or_off),
    ONE_OF("hyperthreads", on_or_off),
    ANY("governor"),
    ANY("frequency"),
    ANY("energy-preference"),
    ANY("idle-states"),
    ANY("uncore-frequency"),
    ONE_OF("numa-balancing", on_or_off),
    ONE_OF("transparent-huge-pages", pages),
    ONE_OF("daemons", running_or_stopped),
};

const char *const control_kind_names[CONTROL_FACTORS + 1] = {
    "turbo",
    "hyperthreads",
    "governor",
    "frequency",
    "energy-preference",
    "idle-states",
    "uncore-frequency",
    "numa-balancing",
    "transparent-huge-pages",
    "daemons",
    NULL,
};

const char *control_of_column(const char *column) {
    size_t length = sizeof CONTROL_PREFIX - 1;
    return strncmp(column, CONTROL_PREFIX, length) == 0 ? column + length : NULL;
}

const struct design_factor *control_factor_find(const char *column) {
    for (size_t i = 0; i < CONTROL_FACTORS; i++)
        if (strcmp(control_factors[i].name, column) == 0)
            return &control_factors[i];
    return NULL;
}

int control_factor_unknown(const char *column, const char *file, size_t line, size_t place,
                           struct failure *failure) {
    const char *name = control_of_column(column);
    const char *nearest = text_nearest(name ? name : column, control_kind_names, CONTROL_FACTORS);
    if (nearest)
        return failure_input(failure, file, line, place,
                             "there is no control '%.64s'; did you mean '" CONTROL_PREFIX "%s'?",
                             name ? name : column, nearest);
    struct text known;
    text_init(&known, FAILURE_TEXT_SIZE);
    for (size_t i = 0; i < CONTROL_FACTORS; i++)
        text_printf(&known, "%s%s", i ? ", " : "", control_kind_names[i]);
    int r = failure_input(failure, file, line, place, "there is no control '%.64s', expected one of %s",
                          name ? name : column, known.bytes);
    text_clear(&known);
    return r;
}

const char *control_variable(const char *column, char buffer[static CONTROL_VARIABLE_SIZE]) {
    snprintf(buffer, CONTROL_VARIABLE_SIZE, "%s", column);
    for (char *at = buffer; *at; at++)
        if (*at == '.' || *at == '-')
            *at = '_';
    return buffer;
}
