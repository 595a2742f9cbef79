/* What a campaign says of controls, probes, warm-up and gates: bound, or refused with its place. */
#include "engine/documents/document.h"
#include "engine/run/campaign/control-settings.h"
#include "engine/run/campaign/gate-settings.h"
#include "engine/run/campaign/probe-settings.h"
#include "engine/run/campaign/warm-up-settings.h"
#include "tests/test.h"

typedef int binder(const struct document *document, const struct document_node *node, void *ret,
                   struct failure *failure);

static int bind_controls(const struct document *document, const struct document_node *node, void *ret,
                         struct failure *failure) {
    return control_settings_bind(document, node, ret, failure);
}
static int bind_probes(const struct document *document, const struct document_node *node, void *ret,
                       struct failure *failure) {
    return probe_settings_bind(document, node, ret, failure);
}
static int bind_warm_up(const struct document *document, const struct document_node *node, void *ret,
                        struct failure *failure) {
    return warm_up_settings_bind(document, node, ret, failure);
}
static int bind_gates(const struct document *document, const struct document_node *node, void *ret,
                      struct failure *failure) {
    return gate_settings_bind(document, node, ret, failure);
}

/* TEXT is a document whose key `it` is bound; without it, what is not given. */
static int bind(binder *bind_it, const char *text, void *ret, struct failure *failure) {
    struct document *document;
    assert_int_equal(document_parse_yaml("c.yaml", text, strlen(text), &document, failure), 0);
    int r = bind_it(document, document_get(document->root, "it"), ret, failure);
    document_free(document);
    return r;
}

static void refused(binder *bind_it, const char *text, const char *place, const char *words) {
    union {
        struct control_settings controls;
        struct probe_settings probes;
        struct warm_up_settings warm_up;
        struct gate_settings gates;
    } settings;
    struct failure failure = {0};
    if (bind(bind_it, text, &settings, &failure) == 0)
        fail_msg("accepted: %s", text);
    assert_string_equal(failure.place, place);
    if (!strstr(failure.text, words))
        fail_msg("'%s' does not say '%s'", failure.text, words);
}

TEST(controls) {
    struct control_settings settings;
    struct failure failure = {0};
    assert_int_equal(bind(bind_controls, "x: 1", &settings, &failure), 0);
    assert_false(control_settings_any(&settings));
    control_settings_clear(&settings);
    assert_int_equal(bind(bind_controls,
                          "it: {turbo: off, frequency: 80%, idle-states: 10us, governor: performance,\n"
                          "  mismatch: best-effort, proof: none, tolerance: 5%}",
                          &settings, &failure),
                     0);
    assert_true(control_settings_any(&settings));
    assert_string_equal(settings.values[0], "off");
    assert_string_equal(settings.values[3], "80%");
    assert_int_equal(settings.mismatch, CONTROL_BEST_EFFORT);
    assert_int_equal(settings.unavailable, CONTROL_ERROR);
    assert_float_equal(settings.proof_seconds, 0, 0);
    assert_float_equal(settings.tolerance, 0.05, 1e-12);
    control_settings_clear(&settings);
    refused(bind_controls, "it: {turbo: perhaps}", "c.yaml:1:13", "expected on or off");
    refused(bind_controls, "it: {trubo: off}", "c.yaml:1:6", "turbo");
    refused(bind_controls, "it:\n  frequency: 2100000", "c.yaml:2:14", "expected a frequency such as 2.1GHz");
    refused(bind_controls, "it: {frequency: 2GHz..}", "c.yaml:1:17", "expected a frequency");
    refused(bind_controls, "it: {governor: ../../etc}", "c.yaml:1:16", "expected a governor's name");
    refused(bind_controls, "it: {uncore-frequency: base}", "c.yaml:1:24", "expected a frequency");
    refused(bind_controls, "it: {transparent-huge-pages: on}", "c.yaml:1:30", "always, madvise or never");
    refused(bind_controls, "it: {proof: 0}", "c.yaml:1:13", "expected a time from 10 ms to 10 min");
    refused(bind_controls, "it: off", "c.yaml:1:5", "mapping");
}

TEST(values) {
    static const struct {
        const char *name, *value;
        int good;
    } cases[] = {
        {"frequency", "base", 1},
        {"frequency", "1GHz..2.5 GHz", 1},
        {"frequency", "min..max", 1},
        {"frequency", "120%", 1},
        {"frequency", "0%", 0},
        {"frequency", "2.1", 0},
        {"frequency", "-1GHz", 0},
        {"frequency", "GHz", 0},
        {"frequency", "", 0},
        {"uncore-frequency", "80%", 0},
        {"uncore-frequency", "max", 1},
        {"idle-states", "C1", 1},
        {"idle-states", "C1_ACPI", 1},
        {"idle-states", "10 us", 1},
        {"idle-states", "-1us", 0},
        {"idle-states", "all", 1},
        {"energy-preference", "128", 1},
        {"energy-preference", "a b", 0},
        {"hyperthreads", "ON", 0},
        {"daemons", "stopped", 1},
        {"daemons", "off", 0},
        {"governor", "per\nformance", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if ((control_value_expectation(cases[i].name, cases[i].value) == NULL) != cases[i].good)
            fail_msg("%s: '%s'", cases[i].name, cases[i].value);
}

TEST(probes) {
    struct probe_settings settings;
    struct failure failure = {0};
    assert_int_equal(bind(bind_probes, "x: 1", &settings, &failure), 0);
    assert_int_equal(settings.periods_ns[PROBE_FREQUENCY], 1000000000);
    assert_int_equal(bind(bind_probes, "it: 10ms", &settings, &failure), 0);
    assert_int_equal(settings.periods_ns[PROBE_DRIFT], 10000000);
    assert_int_equal(bind(bind_probes, "it: none", &settings, &failure), 0);
    assert_false(probe_settings_any(&settings));
    assert_int_equal(bind(bind_probes, "it: {energy: 100ms, drift: none, period: 2 s}", &settings, &failure),
                     0);
    assert_int_equal(settings.periods_ns[PROBE_ENERGY], 100000000);
    assert_int_equal(settings.periods_ns[PROBE_DRIFT], 0);
    assert_int_equal(settings.periods_ns[PROBE_LOAD], 2000000000);
    refused(bind_probes, "it: 9ms", "c.yaml:1:5", "from 10 ms to 1 h");
    refused(bind_probes, "it: {energy: often}", "c.yaml:1:14", "from 10 ms to 1 h");
    refused(bind_probes, "it: {enegry: 1s}", "c.yaml:1:6", "energy");
    refused(bind_probes, "it: [1s]", "c.yaml:1:5", "expected a period");
}

TEST(warm_up) {
    struct warm_up_settings settings;
    struct failure failure = {0};
    assert_int_equal(bind(bind_warm_up, "x: 1", &settings, &failure), 0);
    assert_int_equal(settings.kind, WARM_UP_NONE);
    assert_int_equal(bind(bind_warm_up, "it: none", &settings, &failure), 0);
    assert_int_equal(settings.kind, WARM_UP_NONE);
    assert_int_equal(bind(bind_warm_up, "it: 2min", &settings, &failure), 0);
    assert_int_equal(settings.kind, WARM_UP_TIME);
    assert_float_equal(settings.seconds, 120, 1e-9);
    assert_int_equal(bind(bind_warm_up, "it: steady", &settings, &failure), 0);
    assert_int_equal(settings.kind, WARM_UP_STEADY);
    assert_int_equal(bind(bind_warm_up, "it: {until: steady, window: 30s, load: stress-ng, at-most: 5min}",
                          &settings, &failure),
                     0);
    assert_float_equal(settings.limits.window_seconds, 30, 1e-9);
    assert_int_equal(settings.load, WARM_UP_STRESS_NG);
    refused(bind_warm_up, "it: soon", "c.yaml:1:5", "expected a time such as 2min");
    refused(bind_warm_up, "it: {window: 30s}", "c.yaml:1:5", "one of 'time' and 'until: steady'");
    refused(bind_warm_up, "it: {until: steady, time: 1min}", "c.yaml:1:5", "one of 'time'");
    refused(bind_warm_up, "it: {until: steady, window: 10min, at-most: 1min}", "c.yaml:1:45", "at least one");
}

TEST(gates) {
    struct gate_settings settings;
    struct failure failure = {0};
    assert_int_equal(bind(bind_gates, "x: 1", &settings, &failure), 0);
    assert_int_equal(settings.actions[GATE_DRIFT], GATE_FLAG);
    assert_int_equal(bind(bind_gates, "it: none", &settings, &failure), 0);
    assert_int_equal(settings.actions[GATE_LOAD], GATE_NONE);
    assert_int_equal(bind(bind_gates,
                          "it: {throttle: repeat, drift: stop, repeats: 5, temperature-band: 2.5 Cel}",
                          &settings, &failure),
                     0);
    assert_int_equal(settings.actions[GATE_THROTTLE], GATE_REPEAT);
    assert_int_equal(settings.actions[GATE_DRIFT], GATE_STOP);
    assert_int_equal(settings.actions[GATE_KERNEL], GATE_FLAG);
    assert_int_equal(settings.repeats, 5);
    assert_float_equal(settings.temperature_band, 2.5, 1e-12);
    refused(bind_gates, "it: halt", "c.yaml:1:5", "stop");
    refused(bind_gates, "it: {throttle: sometimes}", "c.yaml:1:16", "repeat");
    refused(bind_gates, "it: {repeats: 0}", "c.yaml:1:15", "1");
}
