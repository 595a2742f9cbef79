/* What a user writes for a parameter of a plugin. */
#include "engine/plugin/parameters.h"
#include "tests/test.h"

static const char *const words[] = {"mean", "slowest", NULL};
static const struct plugin_parameter table[] = {
    {"latency", PLUGIN_NUMBER, "s", .default_text = "50us", .minimum = 0, .maximum = 10,
     .help = "of a message"},
    {"speed", PLUGIN_WORD, .choices = words, .default_text = "mean", .help = "which"},
    {"breaks", PLUGIN_NUMBERS, "By", .help = "sizes"},
    {"size", PLUGIN_COLUMN, "By", .help = "column"},
    {"machine", PLUGIN_CATEGORIES, .help = "columns"},
    {"starts", PLUGIN_NUMBER, "1", .integer = true, .required = true, .help = "how many"},
    {0},
};

TEST(values) {
    cleanup(parameters_clear) struct parameters parameters;
    assert_ok(parameters_init(&parameters, table, &test_failure));
    assert_int_equal(parameters.count, 6);
    assert_close(parameters.values[0].number, 50e-6, 1e-15, "latency");
    assert_false(parameters.values[0].is_set);
    assert_true(isnan(parameters.values[5].number));
    static const char *const settings[] = {"latency=2 ms",  "speed=slowest",     "breaks=1420, 64KiB",
                                           "size=msg_size", "machine=node, cpu", "starts=3"};
    assert_true(parameters_check(&parameters, &test_failure) < 0);
    assert_says(test_failure.text, "'starts' is not set");
    for (size_t i = 0; i < 6; i++)
        assert_ok(parameters_set_pair(&parameters, settings[i], &test_failure));
    assert_ok(parameters_check(&parameters, &test_failure));
    assert_close(parameters.values[0].number, 2e-3, 1e-15, "latency");
    assert_true(parameters.values[0].is_set);
    assert_true(parameters.values[1].number == 1);
    assert_int_equal(parameters.values[2].count, 2);
    assert_true(parameters.values[2].numbers[0] == 1420 && parameters.values[2].numbers[1] == 65536);
    assert_string_equal(parameters.values[3].text, "msg_size");
    assert_string_equal(parameters.values[4].texts[1], "cpu");
}

TEST(refusals) {
    static const struct {
        const char *pair, *expected;
    } cases[] = {
        {"latency=fast", "'fast' is not a time"},  {"latency=11", "is out of range; expected 0 to 10 s"},
        {"latencies=1", "did you mean 'latency'"}, {"speed=slow", "expected one of mean, slowest"},
        {"starts=1.5", "is not a whole number"},   {"breaks=1,,2", "has an empty value"},
        {"starts", "expected NAME=VALUE"}};
    cleanup(parameters_clear) struct parameters parameters;
    assert_ok(parameters_init(&parameters, table, &test_failure));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(parameters_set_pair(&parameters, cases[i].pair, &test_failure) < 0);
        assert_says(test_failure.text, cases[i].expected);
    }
}
