/* Times, names and campaigns of Grid'5000. */
#include "engine/testbed/grid5000.h"
#include "engine/foundation/clock.h"
#include "engine/testbed/testbed.h"
#include "tests/test.h"

TEST(times_of_metrics_are_read) {
    static const struct {
        const char *text;
        int64_t ns; /* 0: it is none */
    } cases[] = {{"2025-04-18T18:55:33.754307+02:00", 1744995333754307000},
                 {"2025-02-02T14:39:37+01:00", 1738503577000000000},
                 {"2025-02-02T13:39:37.5Z", 1738503577500000000},
                 {"2025-02-02T14:39:37.003778", 0},
                 {"2025-02-02T14:39:37+01:00 ", 0},
                 {"2025-02-02", 0},
                 {"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ns = 0;
        assert_int_equal(clock_parse(cases[i].text, &ns), cases[i].ns != 0);
        assert_true(ns == cases[i].ns);
    }
}

TEST(names_are_shortened) {
    static const char *const cases[][2] = {{"dahu-3.grenoble.grid5000.fr", "dahu-3"},
                                           {"root@dahu-3-kavlan-4.grenoble.grid5000.fr", "dahu-3"},
                                           {"dahu-3", "dahu-3"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup_free char *name = grid5000_short_name(cases[i][0]);
        assert_string_equal(name, cases[i][1]);
    }
}

/* ---- Campaigns */

static int bind(const char *keys, struct testbed_choice *ret) {
    char text[1024];
    struct document *document;
    snprintf(text, sizeof text, "testbed: {grid5000: {site: grenoble, walltime: 2h, %s}}\n", keys);
    assert_ok(document_parse_yaml("c.yaml", text, strlen(text), &document, &test_failure));
    struct testbed_written written = {
        .document = document, .node = document_get(document->root, "testbed"), .folder = "/tmp"};
    int r = testbed_bind(&written, ret, &test_failure);
    document_free(document);
    return r;
}

TEST(campaigns_are_bound_and_refused) {
    char private_key[128];
    snprintf(private_key, sizeof private_key, "environment: debian12-min, key: %s",
             test_put("key", "-----BEGIN OPENSSH PRIVATE KEY-----\n"));
    const struct {
        const char *keys, *problem; /* NULL: none */
    } cases[] = {
        {"nodes: 4", NULL},
        {"cluster: dahu, nodes: {want: 32, at-least: 30}, monitor: [wattmetre_power_watt]", NULL},
        {"nodes: 4, sudo-g5k: yes", NULL},
        {"nodes: 4, environment: debian12-min, key: /etc/passwd", NULL},
        {"nodes: {want: 4, at-least: 5}", "'at-least' is larger than 'want'"},
        {"nodes: {least: 5}", "'least'"},
        {"cluster: 'a b'", "a name of letters"},
        {"environment: 'a b', key: /etc/passwd", "NAME@USER"},
        {"environment: debian12-min", "expected 'key'"},
        {"environment: debian12-min, key: /nowhere", "/nowhere"},
        {"environment: debian12-min, key: /etc/passwd, sudo-g5k: yes", "remove one of the two"},
        {"environment: 'https://me:secret@site/env.dsc', key: /etc/passwd", "without a user and a password"},
        {private_key, "of a private key"},
        {"nodes: 4, reservation: 2026-12-01 19:00:00", NULL},
        {"nodes: 4, reservation: soonest",
         "without 'reservation' OAR starts the job as soon as it has nodes"},
        {"version: 3", "add 'environment'"},
        {"api: 'http://me:secret@api'", "cannot be used"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup(testbed_choice_clear) struct testbed_choice choice = {0};
        print_message("%s\n", cases[i].keys);
        if (cases[i].problem) {
            assert_error(bind(cases[i].keys, &choice), -EINVAL, cases[i].problem);
        } else {
            assert_ok(bind(cases[i].keys, &choice));
            assert_ptr_equal(choice.backend, &testbed_grid5000);
        }
    }
}

TEST(nodes_are_resolved) {
    cleanup(testbed_choice_clear) struct testbed_choice choice = {0};
    cleanup(text_clear) struct text words;
    text_init(&words, 1 << 16);
    assert_ok(bind("nodes: {want: 32, at-least: 30}", &choice));
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    choice.backend->resolve(choice.settings, object);
    assert_int_equal(json_print(object, false, &words), 0);
    assert_says(words.bytes, "\"nodes\":{\"want\":32,\"at-least\":30}");
    assert_int_equal(choice.backend->expected_nodes(choice.settings), 32);
}
