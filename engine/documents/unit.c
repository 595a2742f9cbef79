#include "engine/documents/unit.h"

#include "engine/documents/number-literal.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *expectation, *symbol;
} dimensions[] = {
    [UNIT_NONE] = {"a number", ""},
    [UNIT_TIME] = {"a time, such as 10min or 1.5 s", "s"},
    [UNIT_FREQUENCY] = {"a frequency, such as 2.4GHz or 100 MHz", "Hz"},
    [UNIT_SIZE] = {"a size, such as 64MiB or 1.5 GB", "B"},
    [UNIT_RATIO] = {"a ratio, such as 2% or 0.02", ""},
    [UNIT_BANDWIDTH] = {"a bandwidth, such as 10 GB/s or 800MiB/s", "B/s"},
    [UNIT_POWER] = {"a power, such as 250W or 1.2 kW", "W"},
    [UNIT_TEMPERATURE] = {"a temperature, such as 75Cel or 75 °C", "Cel"},
    [UNIT_ENERGY] = {"an energy, such as 500J or 1.2 kWh", "J"},
    [UNIT_WORK] = {"a number of operations, such as 2Gflop", "flop"},
    [UNIT_PERFORMANCE] = {"a performance, such as 30 Gflop/s", "flop/s"},
};
enum { DIMENSION_COUNT = sizeof dimensions / sizeof *dimensions };

#define QUDT "http://qudt.org/vocab/unit/"

static const struct unit units[] = {
    {"1", QUDT "UNITLESS", "", 1, UNIT_NONE},
    {"s", QUDT "SEC", "s", 1, UNIT_TIME},
    {"ns", QUDT "NanoSEC", "ns", 1e-9, UNIT_TIME},
    {"us", QUDT "MicroSEC", "us", 1e-6, UNIT_TIME},
    {"ms", QUDT "MilliSEC", "ms", 1e-3, UNIT_TIME},
    {"min", QUDT "MIN", "min", 60, UNIT_TIME},
    {"h", QUDT "HR", "h", 3600, UNIT_TIME},
    {"d", QUDT "DAY", "d", 86400, UNIT_TIME},
    {"Hz", QUDT "HZ", "Hz", 1, UNIT_FREQUENCY},
    {"kHz", QUDT "KiloHZ", "kHz", 1e3, UNIT_FREQUENCY},
    {"MHz", QUDT "MegaHZ", "MHz", 1e6, UNIT_FREQUENCY},
    {"GHz", QUDT "GigaHZ", "GHz", 1e9, UNIT_FREQUENCY},
    {"By", QUDT "BYTE", "byte", 1, UNIT_SIZE},
    {"kBy", QUDT "KiloBYTE", "kB", 1e3, UNIT_SIZE},
    {"MBy", QUDT "MegaBYTE", "MB", 1e6, UNIT_SIZE},
    {"GBy", QUDT "GigaBYTE", "GB", 1e9, UNIT_SIZE},
    {"TBy", QUDT "TeraBYTE", "TB", 1e12, UNIT_SIZE},
    {"KiBy", QUDT "KibiBYTE", "KiB", 1024, UNIT_SIZE},
    {"MiBy", QUDT "MebiBYTE", "MiB", 1048576, UNIT_SIZE},
    {"GiBy", QUDT "GibiBYTE", "GiB", 1073741824, UNIT_SIZE},
    {"TiBy", QUDT "TebiBYTE", "TiB", 1099511627776, UNIT_SIZE},
    {"%", QUDT "PERCENT", "%", 0.01, UNIT_RATIO},
    {"By/s", QUDT "BYTE-PER-SEC", "B/s", 1, UNIT_BANDWIDTH},
    {"kBy/s", QUDT "KiloBYTE-PER-SEC", "kB/s", 1e3, UNIT_BANDWIDTH},
    {"MBy/s", QUDT "MegaBYTE-PER-SEC", "MB/s", 1e6, UNIT_BANDWIDTH},
    {"GBy/s", QUDT "GigaBYTE-PER-SEC", "GB/s", 1e9, UNIT_BANDWIDTH},
    {"TBy/s", NULL, "TB/s", 1e12, UNIT_BANDWIDTH},
    {"KiBy/s", NULL, "KiB/s", 1024, UNIT_BANDWIDTH},
    {"MiBy/s", NULL, "MiB/s", 1048576, UNIT_BANDWIDTH},
    {"GiBy/s", NULL, "GiB/s", 1073741824, UNIT_BANDWIDTH},
    {"bit/s", QUDT "BIT-PER-SEC", "bit/s", 0.125, UNIT_BANDWIDTH},
    {"kbit/s", QUDT "KiloBIT-PER-SEC", "kbit/s", 125, UNIT_BANDWIDTH},
    {"Mbit/s", QUDT "MegaBIT-PER-SEC", "Mbit/s", 125e3, UNIT_BANDWIDTH},
    {"Gbit/s", QUDT "GigaBIT-PER-SEC", "Gbit/s", 125e6, UNIT_BANDWIDTH},
    {"W", QUDT "W", "W", 1, UNIT_POWER},
    {"mW", QUDT "MilliW", "mW", 1e-3, UNIT_POWER},
    {"kW", QUDT "KiloW", "kW", 1e3, UNIT_POWER},
    {"Cel", QUDT "DEG_C", "°C", 1, UNIT_TEMPERATURE},
    {"J", QUDT "J", "J", 1, UNIT_ENERGY},
    {"uJ", QUDT "MicroJ", "uJ", 1e-6, UNIT_ENERGY},
    {"mJ", QUDT "MilliJ", "mJ", 1e-3, UNIT_ENERGY},
    {"kJ", QUDT "KiloJ", "kJ", 1e3, UNIT_ENERGY},
    {"W.h", QUDT "W-HR", "Wh", 3600, UNIT_ENERGY},
    {"kW.h", QUDT "KiloW-HR", "kWh", 3.6e6, UNIT_ENERGY},
    {"flop", NULL, "flop", 1, UNIT_WORK},
    {"Mflop", NULL, "Mflop", 1e6, UNIT_WORK},
    {"Gflop", NULL, "Gflop", 1e9, UNIT_WORK},
    {"Tflop", NULL, "Tflop", 1e12, UNIT_WORK},
    {"flop/s", NULL, "flop/s", 1, UNIT_PERFORMANCE},
    {"Mflop/s", NULL, "Mflop/s", 1e6, UNIT_PERFORMANCE},
    {"Gflop/s", NULL, "Gflop/s", 1e9, UNIT_PERFORMANCE},
    {"Tflop/s", NULL, "Tflop/s", 1e12, UNIT_PERFORMANCE},
};

enum { UNIT_COUNT = sizeof units / sizeof *units };

const struct unit *unit_find(const char *code) {
    for (size_t i = 0; i < UNIT_COUNT; i++)
        if (strcmp(units[i].code, code) == 0)
            return &units[i];
    return NULL;
}

const char *unit_label(const char *code) {
    static const char *const derived[][2] = {{"s/{flop}", "s/flop"}, {"flop/By", "flop/byte"}};
    const struct unit *known = code ? unit_find(code) : NULL;
    for (size_t i = 0; code && i < sizeof derived / sizeof *derived; i++)
        if (strcmp(derived[i][0], code) == 0)
            return derived[i][1];
    return known ? known->label : code && strcmp(code, "1") != 0 ? code : "";
}

/* How people write a unit, or its end behind a prefix, whose UCUM code is the same prefix and CODE: "MBytes"
 * is "M" and "By". Not here are KB, which may be 1000 or 1024 bytes, and Mb, which may be bits or a slip. */
static const struct {
    const char *written, *code;
} spellings[] = {
    {"sec", "s"},
    {"secs", "s"},
    {"second", "s"},
    {"seconds", "s"},
    {"nanosecond", "ns"},
    {"nanoseconds", "ns"},
    {"microsecond", "us"},
    {"microseconds", "us"},
    {"millisecond", "ms"},
    {"milliseconds", "ms"},
    {"minute", "min"},
    {"minutes", "min"},
    {"hour", "h"},
    {"hours", "h"},
    {"day", "d"},
    {"days", "d"},
    {"B", "By"},
    {"byte", "By"},
    {"bytes", "By"},
    {"Byte", "By"},
    {"Bytes", "By"},
    {"Bps", "By/s"},
    {"B/s", "By/s"},
    {"B/sec", "By/s"},
    {"byte/s", "By/s"},
    {"bytes/s", "By/s"},
    {"Byte/s", "By/s"},
    {"Bytes/s", "By/s"},
    {"bytes/sec", "By/s"},
    {"Bytes/sec", "By/s"},
    {"bps", "bit/s"},
    {"b/s", "bit/s"},
    {"bits/s", "bit/s"},
    {"bit/sec", "bit/s"},
    {"bits/sec", "bit/s"},
    {"Bit/s", "bit/s"},
    {"flops", "flop/s"},
    {"Flops", "flop/s"},
    {"FLOPS", "flop/s"},
    {"FLOPs", "flop/s"},
    {"Flop/s", "flop/s"},
    {"FLOP/s", "flop/s"},
    {"flops/s", "flop/s"},
    {"flop/sec", "flop/s"},
    {"FLOPS/s", "flop/s"},
    {"Flop/sec", "flop/s"},
    {"FLOP/sec", "flop/s"},
    {"Flop", "flop"},
    {"FLOP", "flop"},
    {"C", "Cel"},
    {"degC", "Cel"},
    {"deg C", "Cel"},
    {"celsius", "Cel"},
    {"Celsius", "Cel"},
    {"\u2103", "Cel"},
    {"percent", "%"},
    {"-", "1"},
    {"#", "1"},
    {"count", "1"},
    {"watt", "W"},
    {"watts", "W"},
    {"Watt", "W"},
    {"Watts", "W"},
    {"joule", "J"},
    {"joules", "J"},
    {"Joule", "J"},
    {"Joules", "J"},
};

enum { WRITTEN_MAX = 32 };

/* The unit that TEXT names, in UCUM or as people write it ("GB/s", "seconds"); NULL: not known. */
const struct unit *unit_find_written(const char *text) {
    char plain[WRITTEN_MAX], code[2 * WRITTEN_MAX]; /* plain: with u for the signs U+00B5 and U+03BC */
    size_t length = 0;
    for (; *text && length < sizeof plain - 1; text++) {
        bool is_micro = strncmp(text, "\u00b5", 2) == 0 || strncmp(text, "\u03bc", 2) == 0;
        plain[length++] = is_micro ? 'u' : *text;
        text += is_micro;
    }
    plain[length] = '\0';
    if (*text || length == 0)
        return NULL;
    for (size_t i = 0; i < UNIT_COUNT; i++)
        if (strcmp(units[i].code, plain) == 0 || strcmp(units[i].label, plain) == 0)
            return &units[i];
    const struct unit *found = NULL;
    for (size_t i = 0; !found && i < sizeof spellings / sizeof *spellings; i++) {
        size_t end = strlen(spellings[i].written);
        if (length < end || strcmp(plain + length - end, spellings[i].written) != 0)
            continue;
        snprintf(code, sizeof code, "%.*s%s", (int)(length - end), plain, spellings[i].code);
        found = unit_find(code);
    }
    return found;
}

/* One of UNIT in the dimension's SI unit as a quotient of whole numbers: all scales are one or its inverse.
 * So "7%" is the double nearest to 0.07 and not 7 * 0.01. */
static void as_quotient(const struct unit *unit, double *ret_numerator, double *ret_denominator) {
    *ret_numerator = unit->scale >= 1 ? unit->scale : 1;
    *ret_denominator = unit->scale >= 1 ? 1 : rint(1 / unit->scale);
}

/* Parses a number with a unit of DIMENSION, as "1.5 GB", into SI units; a number alone is in SI units. false:
 * it is neither. */
bool unit_parse(const char *text, enum unit_dimension dimension, double *ret) {
    size_t length = number_literal_length(text, strlen(text));
    double number, multiply = 1, divide = 1;
    if (!number_parse_double(text, length, &number))
        return false;
    const char *name = text + length;
    if (name[0] != '\0') {
        const struct unit *unit = unit_find_written(name + strspn(name, " "));
        if (!unit || unit->dimension != dimension || dimension == UNIT_NONE)
            return false;
        as_quotient(unit, &multiply, &divide);
    }
    double value = number * multiply / divide;
    if (!isfinite(value))
        return false;
    *ret = value;
    return true;
}

const char *unit_expectation(enum unit_dimension dimension) {
    return dimensions[dimension].expectation;
}

const char *unit_symbol(enum unit_dimension dimension) {
    return dimensions[dimension].symbol;
}

/* ---- Units in the names of columns */

bool unit_is_time_name(const char *name, size_t length) {
    static const char *const words[] = {"time", "duration", "latency", "elapsed", "delay", "wall"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t end = strlen(words[i]);
        if (length >= end && strncasecmp(name + length - end, words[i], end) == 0)
            return true;
    }
    return false;
}

static const struct unit *find_suffix(const char *name, size_t stem, const char *text) {
    const struct unit *unit = unit_find_written(text);
    bool is_suffix = unit && unit->dimension != UNIT_NONE && unit->dimension != UNIT_WORK &&
                     unit->dimension != UNIT_PERFORMANCE &&
                     (unit->dimension != UNIT_TIME || unit->scale <= 1) &&
                     (text[1] != '\0' || (text[0] == 's' && unit_is_time_name(name, stem)));
    return is_suffix ? unit : NULL;
}

/* Splits a column's name into stem and unit: "size (KiB)", "time in s", "time_ms". Returns where the unit
 * stands; UNIT_PLACE_NONE and the whole name if there is none. *RET_UNIT is NULL for a bracket without a
 * known unit. */
enum unit_place unit_read_name(const char *name, size_t length, size_t *ret_stem,
                               const struct unit **ret_unit) {
    cleanup_free char *copy = xstrndup(name, length);
    char last = length > 0 ? copy[length - 1] : '\0', *open = NULL, *text = strrchr(copy, ' ');
    enum unit_place place = UNIT_PLACE_BEHIND;
    *ret_stem = length;
    *ret_unit = NULL;
    if (last == ']' || last == ')') {
        place = UNIT_PLACE_BRACKETS;
        copy[length - 1] = '\0';
        open = strrchr(copy, last == ']' ? '[' : '(');
    } else if (text && text - copy > 3 && strncmp(text - 3, " in", 3) == 0) {
        open = text - 3;
    } else if (text && text - copy > 1 && text[-1] == ',') {
        open = text - 1;
    } else {
        place = UNIT_PLACE_SUFFIX;
        for (char *at = copy; (at = strpbrk(at, "_.")); at++)
            open = at;
    }
    text = place == UNIT_PLACE_BEHIND ? text + 1 : open ? open + 1 : NULL;
    if (open && place == UNIT_PLACE_BRACKETS) {
        text += strspn(text, " ");
        for (size_t end = strlen(text); end > 0 && text[end - 1] == ' ';)
            text[--end] = '\0';
    }
    size_t stem = open ? (size_t)(open - copy) : 0;
    while (stem > 0 && copy[stem - 1] == ' ')
        stem--;
    if (stem == 0)
        return UNIT_PLACE_NONE;
    if (place == UNIT_PLACE_SUFFIX)
        *ret_unit = find_suffix(copy, stem, text);
    else if (last == ']' || strcmp(text, "min") != 0) /* elsewhere that is a minimum */
        *ret_unit = unit_find_written(text);
    if (!*ret_unit && place != UNIT_PLACE_BRACKETS)
        return UNIT_PLACE_NONE;
    *ret_stem = stem;
    return place;
}

static bool same_dimension(enum unit_dimension a, enum unit_dimension b) {
    bool plain = (a == UNIT_NONE || a == UNIT_RATIO) && (b == UNIT_NONE || b == UNIT_RATIO);
    return a == b || plain;
}

/* A value in FROM times *RET_MULTIPLY over *RET_DIVIDE is in TO; whole numbers where possible. false: unknown
 * units, or different dimensions. */
bool unit_conversion(const char *from, const char *to, double *ret_multiply, double *ret_divide) {
    const struct unit *source = unit_find(from), *target = unit_find(to);
    if (!source || !target || !same_dimension(source->dimension, target->dimension))
        return false;
    double up[2], down[2];
    as_quotient(source, &up[0], &down[0]);
    as_quotient(target, &down[1], &up[1]);
    double multiply = up[0] * up[1], divide = down[0] * down[1];
    double a = multiply, b = divide;
    while (b > 0) { /* the greatest common divisor, into a */
        double rest = fmod(a, b);
        a = b;
        b = rest;
    }
    *ret_multiply = multiply / a;
    *ret_divide = divide / a;
    return true;
}

_Static_assert(DIMENSION_COUNT == UNIT_PERFORMANCE + 1, "every dimension has its words");

/* The unit that a column of this usual name has when none is given; NULL: not a usual name. */
const char *unit_of_name(const char *column) {
    static const char *const names[][2] = {
        {"energy", "J"},       {"power", "W"},      {"size", "By"},         {"bytes", "By"},
        {"bandwidth", "By/s"}, {"rate", "By/s"},    {"throughput", "By/s"}, {"performance", "flop/s"},
        {"gflops", "flop/s"},  {"frequency", "Hz"},
    };
    if (unit_is_time_name(column, strlen(column)))
        return "s";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(column, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

bool unit_is_positive(const char *code) {
    const struct unit *unit = code ? unit_find(code) : NULL;
    return unit && unit->dimension != UNIT_NONE && unit->dimension != UNIT_RATIO &&
           unit->dimension != UNIT_TEMPERATURE;
}
