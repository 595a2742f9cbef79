#include "engine/documents/unit.h"

#include "engine/foundation/number.h"

#include <math.h>
#include <string.h>

/* What a person may write behind a number. A factor is MULTIPLY / DIVIDE with both exact, so that "7%" is the
 * double nearest to 0.07 and not 7 * 0.01. */
struct symbol {
    const char *name;
    double multiply, divide;
};

enum { SYMBOLS_MOST = 16 };

static const double kibi = 1024, mebi = 1048576, gibi = 1073741824, tebi = 1099511627776;

static const struct {
    const char *expectation;
    struct symbol symbols[SYMBOLS_MOST]; /* the SI unit first; ends at a NULL name */
} dimensions[] = {
    [UNIT_NONE] = {"a number", {{0}}},
    [UNIT_TIME] = {"a time, such as 10min or 1.5 s",
                   {{"s", 1, 1},
                    {"ns", 1, 1e9},
                    {"us", 1, 1e6},
                    {"ms", 1, 1e3},
                    {"min", 60, 1},
                    {"h", 3600, 1},
                    {"d", 86400, 1}}},
    [UNIT_FREQUENCY] = {"a frequency, such as 2.4GHz or 100 MHz",
                        {{"Hz", 1, 1}, {"kHz", 1e3, 1}, {"MHz", 1e6, 1}, {"GHz", 1e9, 1}}},
    [UNIT_SIZE] = {"a size, such as 64MiB or 1.5 GB",
                   {{"B", 1, 1},
                    {"kB", 1e3, 1},
                    {"MB", 1e6, 1},
                    {"GB", 1e9, 1},
                    {"TB", 1e12, 1},
                    {"KiB", kibi, 1},
                    {"MiB", mebi, 1},
                    {"GiB", gibi, 1},
                    {"TiB", tebi, 1}}},
    [UNIT_RATIO] = {"a ratio, such as 2% or 0.02", {{"", 1, 1}, {"%", 1, 100}}},
    [UNIT_BANDWIDTH] = {"a bandwidth, such as 10 GB/s or 800MiB/s",
                        {{"B/s", 1, 1},
                         {"kB/s", 1e3, 1},
                         {"MB/s", 1e6, 1},
                         {"GB/s", 1e9, 1},
                         {"KiB/s", kibi, 1},
                         {"MiB/s", mebi, 1},
                         {"GiB/s", gibi, 1}}},
    [UNIT_POWER] = {"a power, such as 250W or 1.2 kW", {{"W", 1, 1}, {"mW", 1, 1e3}, {"kW", 1e3, 1}}},
    [UNIT_TEMPERATURE] = {"a temperature, such as 75Cel or 75 °C",
                          {{"Cel", 1, 1}, {"C", 1, 1}, {"°C", 1, 1}}},
    [UNIT_ENERGY] =
        {"an energy, such as 500J or 1.2 kWh",
         {{"J", 1, 1}, {"uJ", 1, 1e6}, {"mJ", 1, 1e3}, {"kJ", 1e3, 1}, {"Wh", 3600, 1}, {"kWh", 3.6e6, 1}}},
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
    {"KiBy/s", NULL, "KiB/s", 1024, UNIT_BANDWIDTH},
    {"MiBy/s", NULL, "MiB/s", 1048576, UNIT_BANDWIDTH},
    {"GiBy/s", NULL, "GiB/s", 1073741824, UNIT_BANDWIDTH},
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
};

static bool is_digit(char character) {
    return character >= '0' && character <= '9';
}

/* How many bytes of TEXT can belong to a decimal number. An 'e' does only when an exponent follows it. */
static size_t number_length(const char *text) {
    size_t at = text[0] == '-' || text[0] == '+';
    while (is_digit(text[at]) || text[at] == '.')
        at++;
    if (text[at] == 'e' || text[at] == 'E') {
        size_t digit = at + 1;
        digit += text[digit] == '-' || text[digit] == '+';
        if (is_digit(text[digit]))
            for (at = digit; is_digit(text[at]);)
                at++;
    }
    return at;
}

bool unit_parse(const char *text, enum unit_dimension dimension, double *ret) {
    size_t length = number_length(text);
    double number;
    if (!number_parse_double(text, length, &number))
        return false;
    const char *name = text + length;
    if (name[0] == '\0') {
        *ret = number;
        return true;
    }
    name += strspn(name, " ");
    const struct symbol *symbols = dimensions[dimension].symbols;
    for (size_t i = 0; i < SYMBOLS_MOST && symbols[i].name; i++) {
        if (name[0] == '\0' || strcmp(symbols[i].name, name) != 0)
            continue;
        double value = number * symbols[i].multiply / symbols[i].divide;
        if (!isfinite(value))
            return false;
        *ret = value;
        return true;
    }
    return false;
}

const char *unit_expectation(enum unit_dimension dimension) {
    return dimensions[dimension].expectation;
}

const char *unit_symbol(enum unit_dimension dimension) {
    const char *name = dimensions[dimension].symbols[0].name;
    return name ? name : "";
}

const struct unit *unit_find(const char *code) {
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].code, code) == 0)
            return &units[i];
    return NULL;
}

/* One of UNIT in the dimension's SI unit as a quotient of whole numbers: all scales are one or its inverse.
 */
static void as_quotient(const struct unit *unit, double *ret_numerator, double *ret_denominator) {
    *ret_numerator = unit->scale >= 1 ? unit->scale : 1;
    *ret_denominator = unit->scale >= 1 ? 1 : rint(1 / unit->scale);
}

static bool same_dimension(enum unit_dimension a, enum unit_dimension b) {
    bool plain = (a == UNIT_NONE || a == UNIT_RATIO) && (b == UNIT_NONE || b == UNIT_RATIO);
    return a == b || plain;
}

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

_Static_assert(DIMENSION_COUNT == UNIT_ENERGY + 1, "every dimension has its symbols");
