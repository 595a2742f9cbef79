/* When jobs can begin on Grid'5000, and what a campaign says of them. */
#include "engine/testbed/grid5000.h"
#include "engine/foundation/clock.h"
#include "engine/testbed/testbed.h"
#include "tests/test.h"

#include <time.h>

/* Of "2026-11-23 10:00" by the sites' clocks, which are an hour ahead of UTC in winter, two in summer. */
static int64_t at(const char *text) {
    struct tm parts = {0};
    char back[GRID5000_TIME_SIZE];
    assert_non_null(strptime(text, "%Y-%m-%d %H:%M", &parts));
    for (int64_t hours = 1; hours <= 2; hours++) {
        struct tm copy = parts;
        int64_t time_s = timegm(&copy) - hours * 3600;
        if (strncmp(grid5000_format_time(time_s, back), text, strlen(text)) == 0)
            return time_s;
    }
    fail_msg("'%s' is no time there", text);
    return 0;
}

TEST(sites_have_summer_time) {
    char text[GRID5000_TIME_SIZE];
    assert_string_equal(grid5000_format_time(1774745999, text), "2026-03-29 01:59:59");
    assert_string_equal(grid5000_format_time(1774746000, text), "2026-03-29 03:00:00");
    assert_string_equal(grid5000_format_time(1792889999, text), "2026-10-25 02:59:59");
    assert_string_equal(grid5000_format_time(1792890000, text), "2026-10-25 02:00:00");
}

TEST(jobs_do_not_cross_day_and_night) {
    static const struct {
        const char *label, *start, *end, *now;
        bool is_allowed;
    } cases[] = {
        {"by day", "2026-11-23 10:00", "2026-11-23 18:00", "2026-11-23 09:30", true},
        {"up to the evening, exactly", "2026-11-23 09:00", "2026-11-23 19:00", "2026-11-23 08:00", true},
        {"into the evening", "2026-11-23 10:00", "2026-11-23 20:00", "2026-11-23 10:00", false},
        {"into the evening, submitted late", "2026-11-23 17:30", "2026-11-23 22:00", "2026-11-23 17:00",
         true},
        {"into the evening, submitted a little earlier", "2026-11-23 17:30", "2026-11-23 22:00",
         "2026-11-23 16:59", false},
        {"into the morning", "2026-11-23 20:00", "2026-11-24 09:30", "2026-11-23 18:00", false},
        {"a night", "2026-11-23 19:00", "2026-11-24 09:00", "2026-11-23 12:00", true},
        {"a weekend", "2026-11-20 19:00", "2026-11-23 09:00", "2026-11-20 12:00", true},
        {"a weekend, and more", "2026-11-20 19:00", "2026-11-23 09:01", "2026-11-20 12:00", false},
        {"Bastille Day", "2026-07-13 19:00", "2026-07-15 09:00", "2026-07-13 12:00", true},
        {"Easter Monday", "2026-04-03 19:00", "2026-04-07 09:00", "2026-04-03 12:00", true},
        {"Ascension Day", "2027-05-05 19:00", "2027-05-07 09:00", "2027-05-05 12:00", true},
        {"Good Friday is none", "2026-04-02 19:00", "2026-04-03 10:00", "2026-04-02 12:00", false},
        {"the day of summer time", "2026-03-27 19:00", "2026-03-30 09:00", "2026-03-27 12:00", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("%s\n", cases[i].label);
        assert_int_equal(grid5000_policy_allows(at(cases[i].start), at(cases[i].end), at(cases[i].now)),
                         cases[i].is_allowed);
    }
}

/* Of nodes dahu-1, -2 and -3, and another cluster's; WHAT each has to say, NULL: nothing. */
static int64_t slot(const char *const what[3], size_t wanted, const char *now, double hours) {
    char text[4096];
    struct document *document;
    snprintf(text, sizeof text,
             "{\"dahu-1.g\": {\"hard\": \"alive\" %s}, \"dahu-2.g\": {\"hard\": \"standby\" %s}, "
             "\"dahu-3.g\": {\"hard\": \"alive\" %s}, \"dahub-1.g\": {\"hard\": \"alive\"}}",
             what[0], what[1], what[2]);
    assert_int_equal(document_parse_json("status", text, strlen(text), &document, NULL), 0);
    struct grid5000_wish wish = {"dahu", wanted, (int64_t)(hours * 3600), at(now), true};
    int64_t start_s = grid5000_slot(document->root, &wish);
    document_free(document);
    return start_s;
}

static void is_time(int64_t found_s, const char *expected) {
    char text[GRID5000_TIME_SIZE];
    assert_string_equal(grid5000_format_time(found_s, text), expected);
}

TEST(the_first_slot_is_found) {
    char until_noon[256], besteffort[256];
    const char *now = "2026-11-23 10:00";
    snprintf(until_noon, sizeof until_noon,
             ", \"soft\": \"busy\", \"reservations\": [{\"scheduled_at\": %lld, \"walltime\": 7200}]",
             (long long)at(now));
    snprintf(besteffort, sizeof besteffort,
             ", \"reservations\": [{\"queue\": \"besteffort\", \"started_at\": %lld, \"walltime\": 7200}]",
             (long long)at(now));
    const char *free_nodes[] = {"", "", ""}, *two[] = {until_noon, "", ""},
               *displaced[] = {besteffort, "", ""}, *gone[] = {", \"soft\": \"busy\"", "", ""};
    is_time(slot(free_nodes, 3, now, 2), "2026-11-23 10:00:00");
    is_time(slot(two, 2, now, 2), "2026-11-23 10:00:00");
    is_time(slot(two, 3, now, 2), "2026-11-23 12:01:00");
    is_time(slot(two, 3, now, 8), "2026-11-23 19:00:00");         /* it would not end by day */
    is_time(slot(free_nodes, 3, now, 20), "2026-11-27 19:00:00"); /* nor in one night */
    is_time(slot(displaced, 3, now, 2), "2026-11-23 10:00:00");
    assert_int_equal(slot(gone, 3, now, 2), 0); /* busy, and nobody knows for how long */
    assert_int_equal(slot(free_nodes, 4, now, 2), 0);
}

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
        {"nodes: {want: 4, at-least: 5}", "'at-least' is more than 'want'"},
        {"nodes: {least: 5}", "'least'"},
        {"cluster: 'a b'", "a name of letters"},
        {"environment: 'a b', key: /etc/passwd", "NAME@USER"},
        {"environment: debian12-min", "expected 'key'"},
        {"environment: debian12-min, key: /nowhere", "/nowhere"},
        {"environment: debian12-min, key: /etc/passwd, sudo-g5k: yes", "expected one of the two"},
        {"environment: 'https://me:secret@site/env.dsc', key: /etc/passwd", "without a user and a password"},
        {private_key, "a private key"},
        {"resources: nodes=2, reservation: soonest", "'soonest' is of 'nodes'"},
        {"version: 3", "there is none"},
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
