#include "engine/run/campaign/control-settings.h"

#include "engine/documents/bind.h"
#include "engine/documents/unit.h"
#include "engine/foundation/number.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- values */

static bool is_one_of(const char *value, const char *const *words) {
    for (; *words; words++)
        if (strcmp(value, *words) == 0)
            return true;
    return false;
}

/* What the kernel's own words look like, and no path and no line's end. */
static bool is_word(const char *value) {
    size_t length = strlen(value);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)value[i]) && value[i] != '-' && value[i] != '_')
            return false;
    return length < 64 && isalnum((unsigned char)value[0]);
}

static bool is_limit(const char *text, size_t length, bool base) {
    char limit[64];
    double value;
    if (length == 0 || length >= sizeof limit)
        return false;
    memcpy(limit, text, length);
    limit[length] = '\0';
    if (strcmp(limit, "min") == 0 || strcmp(limit, "max") == 0 || (base && strcmp(limit, "base") == 0))
        return true;
    if (base && limit[length - 1] == '%')
        return number_parse_double(limit, length - 1, &value) && value > 0 && value <= 1000;
    /* A number without a unit could be meant as kHz, as the kernel's files have it. */
    return isalpha((unsigned char)limit[length - 1]) && unit_parse(limit, UNIT_FREQUENCY, &value) &&
           value > 0;
}

/* A frequency as such, in Hz; 0 for those that depend on the node. */
static double hertz_of(const char *text, size_t length) {
    char limit[64];
    double value = 0;
    memcpy(limit, text, length);
    limit[length] = '\0';
    return unit_parse(limit, UNIT_FREQUENCY, &value) ? value : 0;
}

static bool is_limits(const char *value, bool base) {
    const char *dots = strstr(value, "..");
    if (!dots)
        return is_limit(value, strlen(value), base);
    size_t first = (size_t)(dots - value), second = strlen(dots + 2);
    if (!is_limit(value, first, base) || !is_limit(dots + 2, second, base))
        return false;
    double least = hertz_of(value, first), most = hertz_of(dots + 2, second);
    return least == 0 || most == 0 || least <= most;
}

static const char *expect_switch(const char *value) {
    static const char *const words[] = {"on", "off", NULL};
    return is_one_of(value, words) ? NULL : "on or off";
}

static const char *expect_huge_pages(const char *value) {
    static const char *const words[] = {"always", "madvise", "never", NULL};
    return is_one_of(value, words) ? NULL : "always, madvise or never";
}

static const char *expect_daemons(const char *value) {
    static const char *const words[] = {"running", "stopped", NULL};
    return is_one_of(value, words) ? NULL : "running or stopped";
}

static const char *expect_governor(const char *value) {
    return is_word(value) ? NULL : "a governor's name, such as performance";
}

static const char *expect_preference(const char *value) {
    return is_word(value) ? NULL : "a preference, such as performance, or its number";
}

static const char *expect_frequency(const char *value) {
    return is_limits(value, true) ? NULL
                                  : "a frequency such as 2.1GHz, 80% (of the base frequency), min, base or "
                                    "max, or two of them, the lower first, as 1GHz..2GHz";
}

static const char *expect_uncore(const char *value) {
    return is_limits(value, false) ? NULL
                                   : "a frequency such as 2.1GHz, min or max, or two of them as 1GHz..2GHz";
}

static const char *expect_idle_states(const char *value) {
    double seconds;
    bool latency = isdigit((unsigned char)value[0]) && unit_parse(value, UNIT_TIME, &seconds) && seconds >= 0;
    return latency || is_word(value)
               ? NULL
               : "all, the deepest state that may be used, such as C1, or the largest exit latency, such as "
                 "10us";
}

const char *control_value_expectation(const char *name, const char *value) {
    static const char *(*const expectations[CONTROL_KINDS])(const char *value) = {
        expect_switch,      expect_switch, expect_governor, expect_frequency,  expect_preference,
        expect_idle_states, expect_uncore, expect_switch,   expect_huge_pages, expect_daemons};
    for (size_t i = 0; i < CONTROL_KINDS; i++)
        if (strcmp(name, control_kind_names[i]) == 0)
            return expectations[i](value);
    return NULL;
}

/* ---- binding */

struct written {
    struct control_settings settings;
    char *proof;
    int mismatch, unavailable;
};

static const char *const rigours[] = {"error", "best-effort", NULL};

#define CONTROL_FIELD(index, name)                                                                           \
    { .key = name, .type = BIND_TEXT, .offset = offsetof(struct written, settings.values[index]) }
static const struct bind_field fields[] = {
    CONTROL_FIELD(0, "turbo"),
    CONTROL_FIELD(1, "hyperthreads"),
    CONTROL_FIELD(2, "governor"),
    CONTROL_FIELD(3, "frequency"),
    CONTROL_FIELD(4, "energy-preference"),
    CONTROL_FIELD(5, "idle-states"),
    CONTROL_FIELD(6, "uncore-frequency"),
    CONTROL_FIELD(7, "numa-balancing"),
    CONTROL_FIELD(8, "transparent-huge-pages"),
    CONTROL_FIELD(9, "daemons"),
    {.key = "mismatch",
     .type = BIND_CHOICE,
     .offset = offsetof(struct written, mismatch),
     .choices = rigours},
    {.key = "unavailable",
     .type = BIND_CHOICE,
     .offset = offsetof(struct written, unavailable),
     .choices = rigours},
    {.key = "proof", .type = BIND_TEXT, .offset = offsetof(struct written, proof)},
    {.key = "tolerance",
     .type = BIND_QUANTITY,
     .offset = offsetof(struct written, settings.tolerance),
     .dimension = UNIT_RATIO,
     .minimum = 1e-4,
     .maximum = 1},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static int check_values(const struct document *document, const struct document_node *node,
                        const struct control_settings *settings, struct failure *failure) {
    for (size_t i = 0; i < CONTROL_KINDS; i++) {
        const char *value = settings->values[i];
        const char *expected = value ? control_value_expectation(control_kind_names[i], value) : NULL;
        const struct document_node *at = document_get(node, control_kind_names[i]);
        if (expected)
            return failure_input(failure, document->file, at->line, at->column,
                                 "'%s' is '%.64s', expected %s", control_kind_names[i], value, expected);
    }
    return 0;
}

static int take_proof(const struct document *document, const struct document_node *node, const char *text,
                      double *ret, struct failure *failure) {
    if (!text)
        return 0;
    const struct document_node *at = document_get(node, "proof");
    double seconds = 0;
    if (strcmp(text, "none") != 0 &&
        (!unit_parse(text, UNIT_TIME, &seconds) || seconds < 0.01 || seconds > 600))
        return failure_input(failure, document->file, at->line, at->column,
                             "'proof' is '%.64s', expected a time from 10 ms to 10 min, or none", text);
    *ret = seconds;
    return 0;
}

int control_settings_bind(const struct document *document, const struct document_node *node,
                          struct control_settings *ret, struct failure *failure) {
    struct written written = {.settings = {.proof_seconds = 1, .tolerance = 0.02}};
    int r = node ? bind_mapping(document, node, "controls", fields, FIELD_COUNT, &written, failure) : 0;
    if (r == 0 && node)
        r = check_values(document, node, &written.settings, failure);
    if (r == 0)
        r = take_proof(document, node, written.proof, &written.settings.proof_seconds, failure);
    free(written.proof);
    written.proof = NULL;
    if (r < 0) {
        bind_clear(fields, FIELD_COUNT, &written);
        return r;
    }
    written.settings.mismatch = (enum control_rigour)written.mismatch;
    written.settings.unavailable = (enum control_rigour)written.unavailable;
    *ret = written.settings;
    return 0;
}

void control_settings_clear(struct control_settings *settings) {
    for (size_t i = 0; i < CONTROL_KINDS; i++)
        free(settings->values[i]);
    *settings = (struct control_settings){0};
}

bool control_settings_any(const struct control_settings *settings) {
    for (size_t i = 0; i < CONTROL_KINDS; i++)
        if (settings->values[i])
            return true;
    return false;
}
