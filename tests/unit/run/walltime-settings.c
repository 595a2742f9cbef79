/* What a campaign and the command line say of the time: bound, or refused with its place. */
#include "engine/run/campaign/walltime-settings.h"
#include "tests/test.h"

#include <time.h>
#include <unistd.h>

static int bind(const char *text, struct walltime_settings *ret, struct failure *failure) {
    struct document *document;
    assert_int_equal(document_parse_yaml("c.yaml", text, strlen(text), &document, failure), 0);
    int r =
        walltime_settings_bind(document, document_get(document->root, "walltime"), "/nowhere", ret, failure);
    document_free(document);
    return r;
}

static void taken(const char *text, double limit, double margin) {
    struct walltime_settings settings = {0};
    struct failure failure = {0};
    if (bind(text, &settings, &failure) < 0)
        fail_msg("%s: %s", text, failure.text);
    assert_float_equal(settings.limit_seconds, limit, 1e-9);
    assert_float_equal(settings.margin_seconds, margin, 1e-9);
    assert_null(settings.model);
    walltime_settings_clear(&settings);
}

static void refused(const char *text, const char *place, const char *words) {
    struct walltime_settings settings = {0};
    struct failure failure = {0};
    if (bind(text, &settings, &failure) == 0)
        fail_msg("accepted: %s", text);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_string_equal(failure.place, place);
    if (!strstr(failure.text, words))
        fail_msg("'%s' does not say '%s'", failure.text, words);
}

TEST(the_campaign) {
    taken("x: 1", 0, -1);
    taken("walltime: none", 0, -1);
    taken("walltime: 2h", 7200, -1);
    taken("walltime: 90 s", 90, -1);
    taken("walltime: {limit: 2h}", 7200, -1);
    taken("walltime: {limit: 2h, margin: 30 s}", 7200, 30);
    taken("walltime: {margin: 0 s}", 0, 0);
    refused("walltime: soon", "c.yaml:1:11",
            "'walltime' is 'soon', expected a time such as 2h, none, or a mapping");
    refused("walltime: 02:00:00", "c.yaml:1:11", "expected a time such as 2h");
    refused("walltime: [2h]", "c.yaml:1:11", "'walltime' is a sequence");
    refused("walltime:", "c.yaml:1:10", "'walltime' is ");
    refused("walltime: 0", "c.yaml:1:11", "'walltime' is '0'");
    refused("walltime: -1h", "c.yaml:1:11", "'walltime' is '-1h'");
    refused("walltime: 500d", "c.yaml:1:11", "'walltime' is '500d'");
    refused("walltime: {limit: 2h, marge: 1 s}", "c.yaml:1:23", "did you mean 'margin'");
    refused("walltime: {limit: 2 km}", "c.yaml:1:19", "'limit'");
    refused("walltime: {limit: 10 s, margin: 10 s}", "c.yaml:1:33",
            "'margin' is 10 s and 'limit' is 10 s, expected less than the limit");
    refused("walltime:\n  model: no.json", "c.yaml:2:10", "'model' is 'no.json', and there is no such file");
    refused("walltime: {model: /}", "c.yaml:1:19", "there is no such file");
}

TEST(the_model) {
    char path[] = "/tmp/assay-walltime-XXXXXX", text[128];
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    snprintf(text, sizeof text, "walltime: {limit: 1h, model: %s}", path);
    struct walltime_settings settings;
    struct failure failure = {0};
    assert_int_equal(bind(text, &settings, &failure), 0);
    assert_string_equal(settings.model, path);
    cJSON *object = cJSON_CreateObject();
    walltime_settings_resolve(&settings, object);
    char *printed = cJSON_PrintUnformatted(object), expected[256];
    snprintf(expected, sizeof expected,
             "{\"limit_seconds\":3600,\"margin_seconds\":null,\"model\":\"%s\",\"model_sha256\":"
             "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"}",
             path + 5);
    assert_string_equal(printed, expected);
    cJSON_free(printed);
    cJSON_Delete(object);
    walltime_settings_clear(&settings);
    unlink(path);
}

/* 2026-11-22T17:00:00 in Paris, which is 16:00 UTC. */
static const int64_t now = 1795363200000000000, hour = 3600000000000;

static void until(const char *text, int64_t expected) {
    struct failure failure = {0};
    int64_t ns = 0;
    if (walltime_parse_until(text, now, &ns, &failure) < 0)
        fail_msg("%s: %s", text, failure.text);
    if (ns != expected)
        fail_msg("%s: %lld s from now, expected %lld", text, (long long)(ns - now) / 1000000000,
                 (long long)(expected - now) / 1000000000);
}

static void not_until(const char *text, const char *words) {
    struct failure failure = {0};
    int64_t ns = 42;
    if (walltime_parse_until(text, now, &ns, &failure) == 0)
        fail_msg("accepted: %s", text);
    assert_int_equal(ns, 42);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    if (!strstr(failure.text, words))
        fail_msg("'%s' does not say '%s'", failure.text, words);
}

TEST(until) {
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    until("90min", now + hour + hour / 2);
    until("2.5 h", now + 2 * hour + hour / 2);
    until("18:30", now + hour + hour / 2);
    until("18:30:15", now + hour + hour / 2 + 15000000000);
    until("16:59", now + 24 * hour - hour / 60); /* tomorrow */
    until("17:00", now + 24 * hour);
    until("2026-11-22T18:00", now + hour);
    until("2026-11-22 18:00:30", now + hour + 30000000000);
    until("2026-11-22T17:00Z", now + hour);
    until("2026-11-22T17:30-01:00", now + 2 * hour + hour / 2);
    until("2026-11-22T20:00+0100", now + 3 * hour);
    until("2027-07-01T12:00", 1814436000000000000); /* in summer, by summer's clock */
    not_until("", "is no time; expected a duration such as 90min");
    not_until("90", "is no time");
    not_until("soon", "is no time");
    not_until("-90min", "is no time");
    not_until("0s", "is no time");
    not_until("24:00", "is no time");
    not_until("18:60", "is no time");
    not_until("18:3", "is no time");
    not_until("18:30 ", "is no time");
    not_until("2027-02-30T12:00", "is no time");
    not_until("2027-13-01T12:00", "is no time");
    not_until("2027-02-03T12:00+25:00", "is no time");
    not_until("2027-02-03T12:00X", "is no time");
    not_until("2027-02-03", "is no time");
    not_until("2027-03-28T02:30", "is no time"); /* the clocks leave it out */
    not_until("2026-11-22T16:59", "is over already");
    not_until("2026-11-22T15:59Z", "is over already");
    not_until("2029-01-01T00:00", "more than 400 days from now");
    not_until("401d", "is no time");
}
