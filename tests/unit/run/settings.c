/* What a campaign says beside its experiment and design: bound, printed and bound again, or refused with its
 * place. */
#include "engine/foundation/memory.h"
#include "engine/run/campaign/campaign.h"
#include "tests/test.h"

static struct campaign campaign;
static char nowhere[] = "/nowhere";

static void clear(void) {
    settings_clear(&campaign);
    document_free(campaign.document);
    campaign = (struct campaign){0};
}

/* TEXT has all of a campaign's keys that count here. */
static int bind(const char *text, struct failure *failure) {
    cleanup_free char *whole = xformat("%s\nexperiment: x\n", text);
    clear();
    campaign.folder = nowhere;
    assert_int_equal(document_parse_yaml("c.yaml", whole, strlen(whole), &campaign.document, failure), 0);
    return settings_bind(&campaign, &(struct testbed_written){0}, failure);
}

static void bound(const char *text) {
    assert_ok(bind(text, &test_failure));
}

static void refused(const char *text, const char *place, const char *words) {
    if (bind(text, &test_failure) == 0)
        fail_msg("accepted: %s", text);
    assert_int_equal(test_failure.kind, FAILURE_INPUT);
    assert_string_equal(test_failure.place, place);
    if (!strstr(test_failure.text, words))
        fail_msg("'%s' does not say '%s'", test_failure.text, words);
    clear();
}

TEST(controls) {
    bound("");
    assert_false(control_settings_any(&campaign.controls));
    bound("controls: {turbo: off, frequency: 80%, idle-states: 10us, governor: performance,\n"
          "  mismatch: best-effort, proof: none, tolerance: 5%}");
    const struct control_settings *settings = &campaign.controls;
    assert_true(control_settings_any(settings));
    assert_string_equal(settings->values[0], "off");
    assert_string_equal(settings->values[3], "80%");
    assert_int_equal(settings->mismatch, CONTROL_BEST_EFFORT);
    assert_int_equal(settings->unavailable, CONTROL_ERROR);
    assert_float_equal(settings->proof_seconds, 0, 0);
    assert_float_equal(settings->tolerance, 0.05, 1e-12);
    clear();
    refused("controls: {turbo: perhaps}", "c.yaml:1:19", "'turbo' is 'perhaps', expected on or off");
    refused("controls: {trubo: off}", "c.yaml:1:12", "did you mean 'turbo'?");
    refused("controls:\n  frequency: 2100000", "c.yaml:2:14", "expected a frequency such as 2.1GHz");
    refused("controls: {frequency: 2GHz..}", "c.yaml:1:23", "expected a frequency");
    refused("controls: {frequency: 2GHz..1GHz}", "c.yaml:1:23", "the lower first");
    refused("controls: {governor: ../../etc}", "c.yaml:1:22", "expected a governor's name");
    refused("controls: {uncore-frequency: base}", "c.yaml:1:30", "expected a frequency");
    refused("controls: {transparent-huge-pages: on}", "c.yaml:1:36", "always, madvise or never");
    refused("controls: {proof: 0}", "c.yaml:1:19", "expected a time from 0.01 to 600 s, or none");
    refused("controls: off", "c.yaml:1:11", "controls is 'off', expected a mapping");
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
    const int64_t *periods_ns = campaign.probes.periods_ns;
    bound("");
    assert_int_equal(periods_ns[PROBE_FREQUENCY], 1000000000);
    bound("probes: 10ms");
    assert_int_equal(periods_ns[PROBE_DRIFT], 10000000);
    bound("probes: none");
    assert_false(probe_settings_any(&campaign.probes));
    bound("probes: {energy: 100ms, drift: none, period: 2 s}");
    assert_int_equal(periods_ns[PROBE_ENERGY], 100000000);
    assert_int_equal(periods_ns[PROBE_DRIFT], 0);
    assert_int_equal(periods_ns[PROBE_LOAD], 2000000000);
    clear();
    refused("probes: 9ms", "c.yaml:1:9", "'probes' is '9ms', expected a time from 0.01 to 3600 s, or none");
    refused("probes: {energy: often}", "c.yaml:1:18", "such as 10min or 1.5 s, or none");
    refused("probes: {enegry: 1s}", "c.yaml:1:10", "energy");
    refused("probes: [1s]", "c.yaml:1:9", "'probes' is a sequence, expected a time");
}

TEST(warm_up) {
    const struct warm_up_settings *settings = &campaign.warm_up;
    bound("");
    assert_int_equal(settings->kind, WARM_UP_NONE);
    bound("warm-up: none");
    assert_int_equal(settings->kind, WARM_UP_NONE);
    for (int i = 0; i < 3; i++) {
        static const char *const texts[] = {"warm-up: 2min", "warm-up: {time: 2min}",
                                            "warm-up: {until: 2min}"};
        bound(texts[i]);
        assert_int_equal(settings->kind, WARM_UP_TIME);
        assert_float_equal(settings->seconds, 120, 1e-9);
    }
    bound("warm-up: steady");
    assert_int_equal(settings->kind, WARM_UP_STEADY);
    bound("warm-up: {until: steady, window: 30s, load: stress-ng, at-most: 5min}");
    assert_float_equal(settings->limits.window_seconds, 30, 1e-9);
    assert_int_equal(settings->load, WARM_UP_STRESS_NG);
    clear();
    refused("warm-up: soon", "c.yaml:1:10",
            "'warm-up' is 'soon', expected a time, such as 10min or 1.5 s, or none or steady");
    refused("warm-up: {window: 30s}", "c.yaml:1:10", "one of 'time' and 'until: steady'");
    refused("warm-up: {until: steady, time: 1min}", "c.yaml:1:10", "one of 'time'");
    refused("warm-up: {until: steady, window: 10min, at-most: 1min}", "c.yaml:1:50", "at least one");
    refused("warm-up: steady\nprobes: none", "c.yaml:1:10", "which are both none");
}

TEST(gates) {
    const struct gate_settings *settings = &campaign.gates;
    bound("");
    assert_int_equal(settings->actions[GATE_DRIFT], GATE_FLAG);
    bound("gates: none");
    assert_int_equal(settings->actions[GATE_LOAD], GATE_NONE);
    bound("gates: {throttle: repeat, drift: stop, repeats: 5, temperature-band: 2.5 Cel}");
    assert_int_equal(settings->actions[GATE_THROTTLE], GATE_REPEAT);
    assert_int_equal(settings->actions[GATE_DRIFT], GATE_STOP);
    assert_int_equal(settings->actions[GATE_KERNEL], GATE_FLAG);
    assert_int_equal(settings->repeats, 5);
    assert_float_equal(settings->temperature_band, 2.5, 1e-12);
    bound("probes: {load: none}\ngates: {all: repeat, kernel: none}");
    assert_int_equal(settings->actions[GATE_THROTTLE], GATE_REPEAT);
    assert_int_equal(settings->actions[GATE_KERNEL], GATE_NONE);
    assert_int_equal(settings->actions[GATE_LOAD], GATE_NONE); /* nobody samples it */
    clear();
    refused("gates: halt", "c.yaml:1:8", "stop");
    refused("gates: {throttle: sometimes}", "c.yaml:1:19", "repeat");
    refused("gates: {repeats: 0}", "c.yaml:1:18", "1");
    refused("gates: {load: flag}\nprobes: 2min", "c.yaml:1:15", "its period is 120 s");
    refused("gates: stop\nprobes: none", "c.yaml:1:8", "'gates' is 'stop' but 'probes' is 'none'");
}

TEST(stop_after_failures) {
    bound("");
    assert_int_equal(campaign.stop_after_failures, 3);
    bound("stop-after-failures: none");
    assert_int_equal(campaign.stop_after_failures, 0);
    clear();
    refused("stop-after-failures: 0", "c.yaml:1:22", "expected a whole number from 1 to 1000000, or none");
}

static void walltime(const char *text, double limit, double margin) {
    bound(text);
    assert_float_equal(campaign.walltime.limit_seconds, limit, 1e-9);
    assert_float_equal(campaign.walltime.margin_seconds, margin, 1e-9);
    assert_null(campaign.walltime.model);
    clear();
}

TEST(walltime) {
    walltime("", 0, -1);
    walltime("walltime: none", 0, -1);
    walltime("walltime: 2h", 7200, -1);
    walltime("walltime: 90 s", 90, -1);
    walltime("walltime: {limit: 2h}", 7200, -1);
    walltime("walltime: {limit: 2h, margin: 30 s}", 7200, 30);
    walltime("walltime: {margin: 0 s}", 0, 0);
    refused("walltime: soon", "c.yaml:1:11", "'walltime' is 'soon', expected a time, such as");
    refused("walltime: 02:00:00", "c.yaml:1:11", "expected a time");
    refused("walltime: [2h]", "c.yaml:1:11", "'walltime' is a sequence");
    refused("walltime:", "c.yaml:1:10", "'walltime' is ");
    refused("walltime: 0", "c.yaml:1:11", "'walltime' is '0'");
    refused("walltime: -1h", "c.yaml:1:11", "'walltime' is '-1h'");
    refused("walltime: 500d", "c.yaml:1:11", "'walltime' is '500d'");
    refused("walltime: {limit: 2h, marge: 1 s}", "c.yaml:1:23", "did you mean 'margin'");
    refused("walltime: {limit: 2 km}", "c.yaml:1:19", "'limit'");
    refused("walltime: {limit: 10 s, margin: 10 s}", "c.yaml:1:33",
            "'margin' is 10 s and 'limit' is 10 s, expected less than the limit");
    refused("walltime:\n  model: no.json", "c.yaml:2:10", "there is no file 'no.json' for 'model'");
    refused("walltime: {model: /}", "c.yaml:1:19", "there is no file '/'");
}

static void loses(const char *text, enum node_loss_action action, int64_t at_least) {
    bound(text);
    assert_int_equal(campaign.node_loss.action, action);
    assert_int_equal(campaign.node_loss.at_least, at_least);
    clear();
}

#define FOUR "testbed: {hosts: 'n-[1-4]'}\n"
#define SPARED "testbed: {hosts: 'n-[1-4]', spares: 'n-[9-10]'}\n"

TEST(defaults_go_by_the_testbed) {
    loses("testbed: local\n", NODE_LOSS_ABORT, 1);
    loses("testbed: {hosts: n-1}\n", NODE_LOSS_ABORT, 1);
    loses(FOUR, NODE_LOSS_CONTINUE, 1);
    loses(SPARED, NODE_LOSS_REPLACE, 1);
}

TEST(what_is_said_counts) {
    loses(FOUR "node-loss: abort\n", NODE_LOSS_ABORT, 1);
    loses(FOUR "node-loss: continue\n", NODE_LOSS_CONTINUE, 1);
    loses(FOUR "node-loss: {at-least: 4}\n", NODE_LOSS_CONTINUE, 4);
    loses(FOUR "node-loss: {do: continue, at-least: 2}\n", NODE_LOSS_CONTINUE, 2);
    loses(SPARED "node-loss: {do: replace, at-least: 3}\n", NODE_LOSS_REPLACE, 3);
    loses("testbed: local\nnode-loss: continue\n", NODE_LOSS_CONTINUE, 1);
}

TEST(what_cannot_be_is_refused_with_its_place) {
    refused(FOUR "node-loss: ignore\n", "c.yaml:2:12", "'ignore'");
    refused(FOUR "node-loss: [continue]\n", "c.yaml:2:12", "node-loss");
    refused(FOUR "node-loss: {do: continue, atleast: 2}\n", "c.yaml:2:27", "at-least");
    refused(FOUR "node-loss: {do: continue, at-least: 0}\n", "c.yaml:2:37", "at-least");
    refused(FOUR "node-loss: {at-least: 5}\n", "c.yaml:2:23", "'at-least' is 5, and the run has 4 nodes");
    refused(FOUR "node-loss: {do: abort, at-least: 2}\n", "c.yaml:2:34", "expected 'do: continue'");
    refused(FOUR "node-loss: replace\n", "c.yaml:2:12", "needs spare nodes");
    refused(FOUR "node-loss: {do: replace}\n", "c.yaml:2:17", "needs spare nodes");
    refused("testbed: local\nnode-loss: replace\n", "c.yaml:2:12", "needs spare nodes");
    refused(SPARED "node-loss: continue\n", "c.yaml:2:12", "would not use the testbed's 2 spares");
}

TEST(spares_are_a_list_of_their_own) {
    loses("testbed: {hosts: [n-1, n-2], spares: [n-3, 'n-[7-8]']}\n", NODE_LOSS_REPLACE, 1);
    refused("testbed: {hosts: 'n-[1-4]', spares: n-3}\n", "c.yaml:1:37", "'n-3' is both a host and a spare");
    refused("testbed: {hosts: 'n-[1-4]', spares: root@n-3}\n", "c.yaml:1:37",
            "two nodes would be called 'n-3'");
    refused("testbed: {hosts: 'n-[1-4]', spares: {files: x}}\n", "c.yaml:1:38", "'spares'");
    refused("testbed: {hosts: 'n-[1-4]', spares: 'n-['}\n", "c.yaml:1:37", "the bracket is not closed");
    refused("testbed: {hosts: 'n-[1-4]', spares: ~}\n", "c.yaml:1:37", "'spares' is");
}

TEST(names) {
    refused("name: a/b", "c.yaml:1:7", "'name' is 'a/b', expected up to 64 letters");
    refused("workspace: here", "c.yaml:1:12",
            "'workspace' is 'here', expected an absolute path on the nodes");
    refused("seed: 4", "c.yaml:1:1", "'seed' belongs inside 'design'");
    refused("wram-up: none", "c.yaml:1:1", "'wram-up' is not a key of campaign; did you mean 'warm-up'?");
}

static char *resolve(void) {
    cJSON *object = cJSON_CreateObject();
    settings_resolve(&campaign, object);
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    assert_int_equal(json_print(object, true, &text), 0);
    cJSON_Delete(object);
    return text_take(&text);
}

/* What is resolved is a campaign again, and the same. */
static void same_again(const char *text) {
    bound(text);
    cleanup_free char *once = resolve();
    once[strlen(once) - 1] = ','; /* the bracket: more keys follow */
    cleanup_free char *whole =
        xformat("%s \"experiment\": \"x\", \"testbed\": {\"hosts\": [n-1, n-2]}}", once);
    clear();
    campaign.folder = nowhere;
    assert_ok(document_parse_yaml("r.json", whole, strlen(whole), &campaign.document, &test_failure));
    if (settings_bind(&campaign, &(struct testbed_written){0}, &test_failure) < 0)
        fail_msg("%s: %s: %s", text, test_failure.place, test_failure.text);
    cleanup_free char *twice = resolve();
    once[strlen(once) - 1] = '}';
    assert_string_equal(twice, once);
    clear();
}

#define HOSTS "testbed: {hosts: [n-1, n-2]}\n"

TEST(resolved) {
    static const char *const texts[] = {
        HOSTS,
        HOSTS "probes: none",
        HOSTS "gates: repeat\nprobes: {period: 1.5 s, load: none}",
        HOSTS "warm-up: steady\nwalltime: 2h\nstop-after-failures: none\nnode-loss: {at-least: 2}",
        HOSTS "warm-up: {time: 2min, load: stress}\nwalltime: {margin: 1min}\nnode-loss: abort",
        HOSTS "controls: {turbo: off, frequency: 1GHz..2.5GHz, energy-preference: 128, proof: none}\n"
              "name: mine\nworkspace: /scratch\nauthor: 'true'",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        same_again(texts[i]);
}

TEST(described) {
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    bound(HOSTS "controls: {turbo: off}\nprobes: {period: none, load: 100ms}\nnode-loss: {at-least: 2}");
    settings_describe(&campaign, &text);
    assert_non_null(strstr(
        text.bytes, "controls     turbo off, mismatch error, unavailable error, proof 1 s, tolerance 2 %\n"));
    assert_non_null(strstr(text.bytes, "power none, load 100 ms, "));
    assert_non_null(strstr(text.bytes, "node-loss    do continue, at-least 2\n"));
    assert_non_null(strstr(text.bytes, "walltime     limit none, margin auto\n"));
    assert_non_null(strstr(text.bytes, "stop-after-failures 3\n"));
    clear();
}

TEST(spares_are_no_nodes) {
    struct document *document;
    assert_ok(document_parse_yaml("c.yaml", SPARED, strlen(SPARED), &document, &test_failure));
    cleanup(testbed_choice_clear) struct testbed_choice testbed = {0};
    struct testbed_written written = {
        .document = document, .node = document_get(document->root, "testbed"), .folder = "/"};
    assert_ok(testbed_bind(&written, &testbed, &test_failure));
    assert_int_equal(testbed.backend->expected_nodes(testbed.settings), 4);
    assert_int_equal(testbed_spare_nodes(&testbed), 2);
    struct text words;
    text_init(&words, 4096);
    assert_int_equal(testbed.backend->describe(testbed.settings, &words), 0);
    assert_non_null(strstr(words.bytes, "nodes        4: n-[1-4]\nspares       2: n-[9-10]\n"));
    text_clear(&words);
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    testbed.backend->resolve(testbed.settings, object);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(object, "hosts")), 4);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(cJSON_GetObjectItem(object, "spares"), 1)),
                        "n-10");
    document_free(document);
}
