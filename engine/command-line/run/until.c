#include "engine/command-line/run/until.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/run/campaign/settings.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The moment of PARTS, which there must be: no 30 February, no hour that a clock change leaves out. */
static bool find_moment(const struct tm *parts, bool zoned, time_t *ret) {
    struct tm copy = *parts;
    copy.tm_isdst = zoned ? 0 : -1;
    *ret = zoned ? timegm(&copy) - parts->tm_gmtoff : mktime(&copy);
    return labs(parts->tm_gmtoff) <= 14 * 3600 && copy.tm_mday == parts->tm_mday &&
           copy.tm_mon == parts->tm_mon && copy.tm_hour == parts->tm_hour && copy.tm_min == parts->tm_min;
}

/* The next such time of the local clock. */
static bool find_next(const struct tm *clock, time_t now, time_t *ret) {
    struct tm today;
    localtime_r(&now, &today);
    for (int day = 0; day < 3; day++) {
        struct tm parts = {.tm_year = today.tm_year,
                           .tm_mon = today.tm_mon,
                           .tm_mday = today.tm_mday + day,
                           .tm_hour = 12,
                           .tm_isdst = -1};
        mktime(&parts); /* the date, in order */
        parts.tm_hour = clock->tm_hour;
        parts.tm_min = clock->tm_min;
        parts.tm_sec = clock->tm_sec;
        if (find_moment(&parts, false, ret) && *ret > now)
            return true;
    }
    return false;
}

/* strptime() also takes single digits and blanks: does TEXT begin with SHAPE, in which 0 is any digit? */
static bool has_shape(const char *text, const char *shape) {
    while (*shape && (*shape == '0' ? isdigit((unsigned char)*text) : *text == *shape))
        shape++, text++;
    return !*shape;
}

/* Parses "18:30", with or without seconds, which is the next such time, or a date and time, with or without a
 * time zone. False: TEXT is neither. */
static bool parse_moment(const char *text, time_t now, time_t *ret) {
    static const struct {
        const char *format, *shape;
        bool dated;
    } forms[] = {
        {"%H:%M", "00:00", false},
        {"%H:%M:%S", "00:00:00", false},
        {"%Y-%m-%dT%H:%M:%S", "0000-00-00T00:00:00", true},
        {"%Y-%m-%dT%H:%M", "0000-00-00T00:00", true},
    };
    enum { DATE = sizeof "2026-11-22" - 1 };
    cleanup_free char *copy = xstrdup(text);
    if (strlen(copy) > DATE && copy[DATE] == ' ')
        copy[DATE] = 'T';
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm parts = {0};
        const char *end = has_shape(copy, forms[i].shape) ? strptime(copy, forms[i].format, &parts) : NULL;
        if (end && *end == '\0')
            return forms[i].dated ? find_moment(&parts, false, ret) : find_next(&parts, now, ret);
        if (end && forms[i].dated && (end = strptime(end, "%z", &parts)) && *end == '\0')
            return find_moment(&parts, true, ret);
    }
    return false;
}

/* Parses --until, a duration from NOW_NS on or a moment, as ns since 1970. A number without a unit is
 * refused, because it could mean anything. */
int until_parse(const char *text, int64_t now_ns, int64_t *ret, struct failure *failure) {
    static const int64_t second = 1000000000;
    double seconds;
    time_t moment;
    size_t length = strlen(text);
    int64_t until_ns;
    /* A plain number could be anything. */
    if (length > 0 && isalpha((unsigned char)text[length - 1]) && unit_parse(text, UNIT_TIME, &seconds) &&
        seconds > 0 && seconds <= WALLTIME_SECONDS_MAX)
        until_ns = now_ns + llround(seconds * 1e9);
    else if (parse_moment(text, (time_t)(now_ns / second), &moment))
        until_ns = (int64_t)moment * second;
    else
        return failure_input(
            failure, NULL, 0, 0,
            "--until '%.64s' is not a time; expected a duration such as 90min, a clock time such as "
            "18:30, or a date and time such as 2026-11-22T18:30",
            text);
    if (until_ns <= now_ns)
        return failure_input(failure, NULL, 0, 0,
                             "--until '%.64s' is in the past; expected a time in the future", text);
    if ((double)(until_ns - now_ns) > WALLTIME_SECONDS_MAX * 1e9)
        return failure_input(failure, NULL, 0, 0, "--until '%.64s' is more than 400 days from now", text);
    *ret = until_ns;
    return 0;
}
