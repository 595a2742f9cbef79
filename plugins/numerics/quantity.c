#include "plugins/numerics/quantity.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct scale {
    const char *text;
    double scale;
};

static const struct scale times[] = {
    {"s", 1}, {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"min", 60}, {"h", 3600}, {"d", 86400},
};

/* Longer ones first. */
static const struct scale prefixes[] = {
    {"Ki", 1024}, {"Mi", 1048576}, {"Gi", 1073741824}, {"Ti", 1099511627776}, {"k", 1e3}, {"M", 1e6},
    {"G", 1e9},   {"T", 1e12},     {"P", 1e15},        {"E", 1e18},           {"", 1},
};

enum { TIME_COUNT = sizeof times / sizeof *times, PREFIX_COUNT = sizeof prefixes / sizeof *prefixes };

static enum quantity base_of(const char *text) {
    static const struct {
        const char *text;
        enum quantity quantity;
    } bases[] = {
        {"By", QUANTITY_SIZE},         {"By/s", QUANTITY_BANDWIDTH},   {"flop", QUANTITY_FLOPS},
        {"{flop}", QUANTITY_FLOPS},    {"flop/s", QUANTITY_FLOP_RATE}, {"{flop}/s", QUANTITY_FLOP_RATE},
        {"flops", QUANTITY_FLOP_RATE},
    };
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        bool bytes = bases[i].text[0] == 'B';
        if ((bytes ? strcmp(text, bases[i].text) : strcasecmp(text, bases[i].text)) == 0)
            return bases[i].quantity;
    }
    return QUANTITY_UNKNOWN;
}

enum quantity quantity_of_unit(const char *unit, double *ret_scale) {
    *ret_scale = 1;
    if (!unit)
        return QUANTITY_UNKNOWN;
    for (size_t i = 0; i < TIME_COUNT; i++)
        if (strcmp(unit, times[i].text) == 0) {
            *ret_scale = times[i].scale;
            return QUANTITY_TIME;
        }
    if (strcmp(unit, "1/s") == 0 || strcmp(unit, "/s") == 0 || strcmp(unit, "s-1") == 0)
        return QUANTITY_FLOP_RATE;
    for (size_t i = 0; i < PREFIX_COUNT; i++) {
        size_t length = strlen(prefixes[i].text);
        enum quantity quantity =
            strncmp(unit, prefixes[i].text, length) == 0 ? base_of(unit + length) : QUANTITY_UNKNOWN;
        if (quantity == QUANTITY_UNKNOWN)
            continue;
        *ret_scale = prefixes[i].scale;
        return quantity;
    }
    return QUANTITY_UNKNOWN;
}

size_t quantity_find(const char *const *names, const char *const *units, size_t count, enum quantity quantity,
                     const char *const *usual) {
    for (; *usual; usual++)
        for (size_t i = 0; i < count; i++)
            if (strcmp(names[i], *usual) == 0)
                return i;
    size_t found = count, matches = 0;
    for (size_t i = 0; i < count; i++) {
        double scale;
        if (quantity_of_unit(units[i], &scale) == quantity && matches++ == 0)
            found = i;
    }
    return matches == 1 ? found : count;
}

size_t quantity_find_named(const char *what, const char *name, const char *const *names, size_t count,
                           quantity_nearest nearest, char *text, size_t size) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    const char *meant = nearest(name, names, count);
    snprintf(text, size, "there is no %s column '%.200s'%s%.200s%s", what, name,
             meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
    return count;
}
