#include "engine/design/control-factors.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- Values */

/* Whether VALUE looks like a word of the kernel's files: no path, no line break. */
static bool is_word(const char *value) {
    static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t length = strlen(value);
    return length < 64 && isalnum((unsigned char)value[0]) && strspn(value, more) == length;
}

/* Whether TEXT is a frequency limit; with BASE, the base frequency and shares of it are limits too.
 * *RET_HERTZ is 0 for limits that depend on the node. */
static bool is_limit(const char *text, size_t length, bool base, double *ret_hertz) {
    char limit[64];
    double value;
    if (length == 0 || length >= sizeof limit)
        return false;
    memcpy(limit, text, length);
    limit[length] = '\0';
    *ret_hertz = 0;
    if (strcmp(limit, "min") == 0 || strcmp(limit, "max") == 0 || (base && strcmp(limit, "base") == 0))
        return true;
    if (base && limit[length - 1] == '%')
        return number_parse_double(limit, length - 1, &value) && value > 0 && value <= 1000;
    /* A number without a unit could be meant as kHz, as the kernel's files have it. */
    return isalpha((unsigned char)limit[length - 1]) && unit_parse(limit, UNIT_FREQUENCY, ret_hertz) &&
           *ret_hertz > 0;
}

/* One limit, or two with ".." between them. */
static bool is_limits(const char *value, bool base) {
    const char *dots = strstr(value, "..");
    double least, most;
    if (!is_limit(value, dots ? (size_t)(dots - value) : strlen(value), base, &least))
        return false;
    return !dots ||
           (is_limit(dots + 2, strlen(dots + 2), base, &most) && (least == 0 || most == 0 || least <= most));
}

static bool is_frequency(const char *value) {
    return is_limits(value, true);
}

static bool is_uncore_frequency(const char *value) {
    return is_limits(value, false);
}

static bool is_idle_state(const char *value) {
    double seconds;
    return is_word(value) ||
           (isdigit((unsigned char)value[0]) && unit_parse(value, UNIT_TIME, &seconds) && seconds >= 0);
}

/* ---- The list */

/* A cast only: these factors are never freed, although struct design_factor usually owns its texts. */
#define TEXT(literal) ((char *)(literal))
#define CONTROL(name_)                                                                                       \
    .name = name_, .factor.about = {.name = CONTROL_PREFIX name_,                                            \
                                    .type = COLUMN_STRING,                                                   \
                                    .role = COLUMN_ROLE_FACTOR,                                              \
                                    .label = CONTROL_PREFIX name_,                                           \
                                    .help = "state of the node: " name_}
#define CHOICES(array) .factor.choices = (array), .factor.choice_count = sizeof(array) / sizeof *(array)

static char *on_or_off[] = {TEXT("on"), TEXT("off")};
static char *pages[] = {TEXT("always"), TEXT("madvise"), TEXT("never")};
static char *running_or_stopped[] = {TEXT("running"), TEXT("stopped")};

const struct control_kind control_kinds[CONTROL_FACTORS + 1] = {
    {CONTROL("turbo"), CHOICES(on_or_off), .expectation = "on or off"},
    {CONTROL("hyperthreads"), CHOICES(on_or_off), .expectation = "on or off"},
    {CONTROL("governor"), .admits = is_word, .expectation = "a governor's name, such as performance"},
    {CONTROL("frequency"), .admits = is_frequency,
     .expectation = "a frequency such as 2.1GHz, 80% (of the base frequency), min, base or "
                    "max, or a range with the lower first, such as 1GHz..2GHz"},
    {CONTROL("energy-preference"), .admits = is_word,
     .expectation = "an energy preference such as performance, or its number"},
    {CONTROL("idle-states"), .admits = is_idle_state,
     .expectation = "all, or the deepest idle state that may be used, such as C1, or the "
                    "largest exit latency, such as 10us"},
    {CONTROL("uncore-frequency"), .admits = is_uncore_frequency,
     .expectation = "a frequency such as 2.1GHz, min or max, or a range such as 1GHz..2GHz"},
    {CONTROL("numa-balancing"), CHOICES(on_or_off), .expectation = "on or off"},
    {CONTROL("transparent-huge-pages"), CHOICES(pages), .expectation = "always, madvise or never"},
    {CONTROL("daemons"), CHOICES(running_or_stopped), .expectation = "running or stopped"},
};

static const struct control_kind *find(const char *name) {
    for (const struct control_kind *kind = control_kinds; kind->name; kind++)
        if (strcmp(kind->name, name) == 0)
            return kind;
    return NULL;
}

const char *control_value_expectation(const char *name, const char *value) {
    const struct control_kind *kind = find(name);
    bool good = !kind || (kind->admits ? kind->admits(value)
                                       : design_factor_admits_text(&kind->factor, value, strlen(value)));
    return good ? NULL : kind->expectation;
}

/* ---- Columns */

const char *control_of_column(const char *column) {
    size_t length = sizeof CONTROL_PREFIX - 1;
    return strncmp(column, CONTROL_PREFIX, length) == 0 ? column + length : NULL;
}

const struct design_factor *control_factor_find(const char *column) {
    const char *name = control_of_column(column);
    const struct control_kind *kind = name ? find(name) : NULL;
    return kind ? &kind->factor : NULL;
}

/* Fails with -EINVAL: COLUMN, at LINE and PLACE of FILE, names no control. The message suggests a similar one
 * or lists all. */
int control_factor_unknown(const char *column, const char *file, size_t line, size_t place,
                           struct failure *failure) {
    const char *name = control_of_column(column), *names[CONTROL_FACTORS];
    cleanup(text_clear) struct text known;
    text_init(&known, FAILURE_TEXT_SIZE);
    for (size_t i = 0; i < CONTROL_FACTORS; i++) {
        names[i] = control_kinds[i].name;
        text_printf(&known, "%s%s", i ? ", " : "", names[i]);
    }
    name = name ? name : column;
    const char *nearest = text_nearest(name, names, CONTROL_FACTORS);
    if (nearest)
        return failure_input(failure, file, line, place,
                             "there is no control '%.64s'; did you mean '" CONTROL_PREFIX "%s'?", name,
                             nearest);
    return failure_input(failure, file, line, place, "there is no control '%.64s', expected one of %s", name,
                         known.bytes);
}

const char *control_variable(const char *column, char buffer[static CONTROL_VARIABLE_SIZE]) {
    snprintf(buffer, CONTROL_VARIABLE_SIZE, "%s", column);
    for (char *at = buffer; *at; at++)
        if (*at == '.' || *at == '-')
            *at = '_';
    return buffer;
}
