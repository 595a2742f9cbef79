/* Numbers with units, and the table of units for archives. */
#include "engine/documents/unit.h"
#include "tests/test.h"

static void check(const char *text, enum unit_dimension dimension, double expected) {
    double value = -42;
    if (!unit_parse(text, dimension, &value) || value != expected)
        fail_msg("'%s' is %.17g, expected %.17g", text, value, expected);
}

static void refuse(const char *text, enum unit_dimension dimension) {
    double value = -42;
    if (unit_parse(text, dimension, &value) || value != -42)
        fail_msg("'%s' was taken as %.17g", text, value);
}

TEST(values) {
    check("10min", UNIT_TIME, 600);
    check("10 min", UNIT_TIME, 600);
    check("10   min", UNIT_TIME, 600);
    check("3", UNIT_TIME, 3);
    check("1.5 s", UNIT_TIME, 1.5);
    check("1e3ms", UNIT_TIME, 1);
    check("5ns", UNIT_TIME, 5e-9);
    check("3us", UNIT_TIME, 3e-6);
    check("7ms", UNIT_TIME, 7e-3);
    check("2h", UNIT_TIME, 7200);
    check("2d", UNIT_TIME, 172800);
    check("-2s", UNIT_TIME, -2);
    check("2.4GHz", UNIT_FREQUENCY, 2.4e9);
    check("100 kHz", UNIT_FREQUENCY, 1e5);
    check("1200000000", UNIT_FREQUENCY, 1.2e9);
    check("64MiB", UNIT_SIZE, 67108864);
    check("64MB", UNIT_SIZE, 64e6);
    check("1kB", UNIT_SIZE, 1000);
    check("1KiB", UNIT_SIZE, 1024);
    check("2TiB", UNIT_SIZE, 2199023255552.0);
    check("7%", UNIT_RATIO, 0.07); /* and not 7 * 0.01 */
    check("2 %", UNIT_RATIO, 0.02);
    check("0.5", UNIT_RATIO, 0.5);
    check("10 GB/s", UNIT_BANDWIDTH, 1e10);
    check("1GiB/s", UNIT_BANDWIDTH, 1073741824);
    check("250W", UNIT_POWER, 250);
    check("1.2kW", UNIT_POWER, 1200);
    check("75Cel", UNIT_TEMPERATURE, 75);
    check("75 °C", UNIT_TEMPERATURE, 75);
    check("1kWh", UNIT_ENERGY, 3.6e6);
    check("2e3", UNIT_NONE, 2000);
}

TEST(refusals) {
    static const char *const never[] = {
        "",   " ",      "min", " 10min", "10min ", "10mins", "10 parsec", "1 0min", "0x10s",  "10m",
        "1e", "1.2.3s", "nan", "inf s",  "5MIN",   "-",      "10min10s",  "5 ",     "1e400s", "1e308h"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        refuse(never[i], UNIT_TIME);
    refuse("5s", UNIT_NONE);
    refuse("5s", UNIT_FREQUENCY);
    refuse("5Mb", UNIT_SIZE); /* bits, or a slip: case counts */
    refuse("5KB", UNIT_SIZE);
    refuse("5 mhz", UNIT_FREQUENCY);
    refuse("5%", UNIT_TIME);
    refuse("5 ", UNIT_RATIO); /* the ratio's SI unit has no name to follow the blank */
    refuse("5GB", UNIT_BANDWIDTH);
}

TEST(expectations) {
    assert_string_equal(unit_expectation(UNIT_TIME), "a time, such as 10min or 1.5 s");
    assert_string_equal(unit_symbol(UNIT_TIME), "s");
    assert_string_equal(unit_symbol(UNIT_NONE), "");
    assert_string_equal(unit_symbol(UNIT_RATIO), "");
    assert_string_equal(unit_symbol(UNIT_BANDWIDTH), "B/s");
    for (enum unit_dimension dimension = UNIT_NONE; dimension <= UNIT_ENERGY; dimension++)
        assert_non_null(unit_expectation(dimension));
}

/* What the table says of a unit is what a person gets who writes it. */
TEST(table_agrees_with_parsing) {
    static const char *const codes[] = {
        "s",      "ns",     "us",     "ms",   "min", "h",   "d",   "Hz", "kHz",  "MHz",   "GHz",   "kBy",
        "KiBy",   "MiBy",   "GiBy",   "TiBy", "MBy", "GBy", "TBy", "%",  "By/s", "kBy/s", "MBy/s", "GBy/s",
        "KiBy/s", "MiBy/s", "GiBy/s", "W",    "mW",  "kW",  "J",   "uJ", "mJ",   "kJ",    "W.h",   "kW.h"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        const struct unit *unit = unit_find(codes[i]);
        assert_non_null(unit);
        assert_string_equal(unit->code, codes[i]);
        char text[32] = "1";
        strncat(text, unit->label, sizeof text - 2);
        double value;
        if (!unit_parse(text, unit->dimension, &value) || fabs(value - unit->scale) > 1e-15 * unit->scale)
            fail_msg("%s", codes[i]);
    }
}

TEST(table) {
    const struct unit *second = unit_find("s");
    assert_string_equal(second->qudt, "http://qudt.org/vocab/unit/SEC");
    assert_true(second->scale == 1 && second->dimension == UNIT_TIME);
    assert_string_equal(unit_find("1")->qudt, "http://qudt.org/vocab/unit/UNITLESS");
    assert_string_equal(unit_find("1")->label, "");
    assert_string_equal(unit_find("By")->label, "byte");
    assert_null(unit_find("furlong"));
    assert_null(unit_find(""));
    assert_null(unit_find("S"));
}

/* As people write units, and what they are. */
TEST(written) {
    static const char *const units[][2] = {{"us", "us"},
                                           {"\u00b5s", "us"},
                                           {"\u03bcs", "us"},
                                           {"usec", "us"},
                                           {"\u00b5sec", "us"},
                                           {"microseconds", "us"},
                                           {"sec", "s"},
                                           {"seconds", "s"},
                                           {"msec", "ms"},
                                           {"nsec", "ns"},
                                           {"milliseconds", "ms"},
                                           {"min", "min"},
                                           {"hours", "h"},
                                           {"B", "By"},
                                           {"bytes", "By"},
                                           {"Bytes", "By"},
                                           {"KiB", "KiBy"},
                                           {"MB", "MBy"},
                                           {"GByte", "GBy"},
                                           {"MBytes", "MBy"},
                                           {"MB/s", "MBy/s"},
                                           {"GB/s", "GBy/s"},
                                           {"TB/s", "TBy/s"},
                                           {"MB/sec", "MBy/s"},
                                           {"GBps", "GBy/s"},
                                           {"MiB/s", "MiBy/s"},
                                           {"Gbit/s", "Gbit/s"},
                                           {"Gbps", "Gbit/s"},
                                           {"Mbits/sec", "Mbit/s"},
                                           {"Gb/s", "Gbit/s"},
                                           {"kbps", "kbit/s"},
                                           {"Gflop/s", "Gflop/s"},
                                           {"GFLOPS", "Gflop/s"},
                                           {"GFlop/s", "Gflop/s"},
                                           {"Tflops", "Tflop/s"},
                                           {"Gflop", "Gflop"},
                                           {"%", "%"},
                                           {"percent", "%"},
                                           {"°C", "Cel"},
                                           {"C", "Cel"},
                                           {"degC", "Cel"},
                                           {"\u2103", "Cel"},
                                           {"W", "W"},
                                           {"watts", "W"},
                                           {"kW", "kW"},
                                           {"J", "J"},
                                           {"kWh", "kW.h"},
                                           {"\u00b5J", "uJ"},
                                           {"MHz", "MHz"},
                                           {"1", "1"},
                                           {"-", "1"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const struct unit *found = unit_find_written(units[i][0]);
        if (!found || strcmp(found->code, units[i][1]) != 0)
            fail_msg("'%s' is '%s', expected '%s'", units[i][0], found ? found->code : "no unit",
                     units[i][1]);
    }
    static const char *const others[] = {
        "",     "foo", "KB",     "KB/s",   "Mb",    "MHZ",
        "mean", "S",   "parsec", "\u00b5", "calls", "a text that is far too long for any unit of this table"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (unit_find_written(others[i]))
            fail_msg("'%s' is taken as '%s'", others[i], unit_find_written(others[i])->code);
    check("5 Gbit/s", UNIT_BANDWIDTH, 625e6);
    check("3 \u00b5s", UNIT_TIME, 3e-6);
    refuse("5 1", UNIT_NONE);
    refuse("5 -", UNIT_NONE);
}

TEST(names_of_columns) {
    static const struct {
        const char *name, *stem, *unit;
        enum unit_place place;
    } names[] = {
        {"duration [ms]", "duration", "ms", UNIT_PLACE_BRACKETS},
        {"Avg Latency(us)", "Avg Latency", "us", UNIT_PLACE_BRACKETS},
        {"t (\u00b5s)", "t", "us", UNIT_PLACE_BRACKETS},
        {"t [ us ]", "t", "us", UNIT_PLACE_BRACKETS},
        {"x (mean)", "x", NULL, UNIT_PLACE_BRACKETS},
        {"t [min]", "t", "min", UNIT_PLACE_BRACKETS},
        {"t (min)", "t", NULL, UNIT_PLACE_BRACKETS},
        {"t, us", "t", "us", UNIT_PLACE_BEHIND},
        {"run time in s", "run time", "s", UNIT_PLACE_BEHIND},
        {"rows in total", "rows in total", NULL, UNIT_PLACE_NONE},
        {"duration_us", "duration", "us", UNIT_PLACE_SUFFIX},
        {"msg_bytes", "msg", "By", UNIT_PLACE_SUFFIX},
        {"run.time.ms", "run.time", "ms", UNIT_PLACE_SUFFIX},
        {"n [count]", "n", "1", UNIT_PLACE_BRACKETS},
        {"bytes/ms", "bytes/ms", NULL, UNIT_PLACE_NONE},
        {"wall_time_s", "wall_time", "s", UNIT_PLACE_SUFFIX},
        {"Latency_s", "Latency", "s", UNIT_PLACE_SUFFIX},
        {"rate_MBps", "rate", "MBy/s", UNIT_PLACE_SUFFIX},
        {"bus_s", "bus_s", NULL, UNIT_PLACE_NONE},
        {"x_min", "x_min", NULL, UNIT_PLACE_NONE},
        {"last_day", "last_day", NULL, UNIT_PLACE_NONE},
        {"n_flops", "n_flops", NULL, UNIT_PLACE_NONE},
        {"matrix_B", "matrix_B", NULL, UNIT_PLACE_NONE},
        {"_us", "_us", NULL, UNIT_PLACE_NONE},
        {"(us)", "(us)", NULL, UNIT_PLACE_NONE},
        {"us", "us", NULL, UNIT_PLACE_NONE},
        {"", "", NULL, UNIT_PLACE_NONE},
        {")", ")", NULL, UNIT_PLACE_NONE},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t stem;
        const struct unit *unit;
        enum unit_place place = unit_read_name(names[i].name, strlen(names[i].name), &stem, &unit);
        const char *code = unit ? unit->code : NULL;
        if (place != names[i].place || !code != !names[i].unit ||
            (code && strcmp(code, names[i].unit) != 0) ||
            (place != UNIT_PLACE_NONE && stem != strlen(names[i].stem)))
            fail_msg("'%s': place %d, unit %s, %zu bytes", names[i].name, (int)place, code ? code : "none",
                     stem);
    }
}

static void assert_conversion(const char *from, const char *to, double multiply, double divide) {
    double found[2] = {0};
    assert_true(unit_conversion(from, to, &found[0], &found[1]));
    assert_true(found[0] == multiply && found[1] == divide);
}

TEST(conversion) {
    assert_conversion("ms", "s", 1, 1000);
    assert_conversion("s", "ns", 1e9, 1);
    assert_conversion("ns", "us", 1, 1000);
    assert_conversion("min", "d", 1, 1440);
    assert_conversion("h", "ns", 3.6e12, 1);
    assert_conversion("MBy", "MiBy", 15625, 16384);
    assert_conversion("kW.h", "uJ", 3.6e12, 1);
    assert_conversion("%", "1", 1, 100);
    assert_conversion("GHz", "GHz", 1, 1);
    double untouched[2] = {7, 8};
    static const char *const others[][2] = {
        {"s", "By"}, {"Hz", "s"}, {"By", "By/s"}, {"s", "furlong"}, {"furlong", "s"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(unit_conversion(others[i][0], others[i][1], &untouched[0], &untouched[1]));
    assert_true(untouched[0] == 7 && untouched[1] == 8);
}

/* One of the two factors is a power of two, which rounds nothing. */
TEST(conversion_is_rounded_once) {
    static const char *const codes[] = {"s",    "ns",   "us", "ms",  "min",  "h",     "d",     "Hz",   "kHz",
                                        "MHz",  "GHz",  "By", "kBy", "MBy",  "GBy",   "TBy",   "KiBy", "MiBy",
                                        "GiBy", "TiBy", "1",  "%",   "J",    "uJ",    "mJ",    "kJ",   "W.h",
                                        "kW.h", "W",    "mW", "kW",  "By/s", "GBy/s", "MiBy/s"};
    size_t compared = 0;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        for (size_t j = 0; j < sizeof codes / sizeof *codes; j++) {
            double multiply, divide, part;
            if (!unit_conversion(codes[i], codes[j], &multiply, &divide))
                continue;
            compared++;
            assert_true(multiply == rint(multiply) && divide == rint(divide));
            bool hours = strstr(codes[i], "W.h") || strstr(codes[j], "W.h"); /* kJ to W.h: 5 / 18 */
            if (!hours && frexp(multiply, &(int){0}) != 0.5 && frexp(divide, &(int){0}) != 0.5)
                fail_msg("%s to %s: %g / %g", codes[i], codes[j], multiply, divide);
            part = multiply / divide * unit_find(codes[j])->scale;
            assert_true(fabs(part / unit_find(codes[i])->scale - 1) < 1e-15);
        }
    assert_int_equal(compared, 7 * 7 + 4 * 4 + 9 * 9 + 2 * 2 + 6 * 6 + 3 * 3 + 3 * 3);
}
