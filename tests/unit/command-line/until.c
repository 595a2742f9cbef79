/* --until: moments, or refused. */
#include "engine/command-line/run/until.h"
#include "tests/test.h"

#include <time.h>

/* 2026-11-22T17:00:00 in Paris, which is 16:00 UTC. */
static const int64_t now = 1795363200000000000, hour = 3600000000000;

static void until(const char *text, int64_t expected) {
    struct failure failure = {0};
    int64_t ns = 0;
    if (until_parse(text, now, &ns, &failure) < 0)
        fail_msg("%s: %s", text, failure.text);
    if (ns != expected)
        fail_msg("%s: %lld s from now, expected %lld", text, (long long)(ns - now) / 1000000000,
                 (long long)(expected - now) / 1000000000);
}

static void not_until(const char *text, const char *words) {
    struct failure failure = {0};
    int64_t ns = 42;
    if (until_parse(text, now, &ns, &failure) == 0)
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
    not_until("", "is not a time; expected a duration such as 90min");
    not_until("90", "is not a time");
    not_until("soon", "is not a time");
    not_until("-90min", "is not a time");
    not_until("0s", "is not a time");
    not_until("24:00", "is not a time");
    not_until("18:60", "is not a time");
    not_until("18:3", "is not a time");
    not_until("18:30 ", "is not a time");
    not_until("2027-02-30T12:00", "is not a time");
    not_until("2027-13-01T12:00", "is not a time");
    not_until("2027-02-03T12:00+25:00", "is not a time");
    not_until("2027-02-03T12:00X", "is not a time");
    not_until("2027-02-03", "is not a time");
    not_until("2027-03-28T02:30", "is not a time"); /* the clocks leave it out */
    not_until("2026-11-22T16:59", "is in the past");
    not_until("2026-11-22T15:59Z", "is in the past");
    not_until("2029-01-01T00:00", "more than 400 days from now");
    not_until("401d", "is not a time");
}
