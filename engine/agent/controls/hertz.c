#include "engine/agent/controls/hertz.h"

#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Far above any processor, and exact in a double. */
#define HERTZ_LIMIT_KHZ 1e12

static int round_khz(double khz, uint64_t *ret) {
    if (!(khz >= 0) || khz > HERTZ_LIMIT_KHZ)
        return -EINVAL;
    *ret = (uint64_t)(khz + 0.5);
    return 0;
}

int hertz_parse(const char *text, size_t length, uint64_t *ret_khz) {
    static const struct {
        const char *name;
        double khz;
    } units[] = {{"GHz", 1e6}, {"MHz", 1e3}, {"kHz", 1}, {"Hz", 1e-3}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t unit = strlen(units[i].name);
        if (length <= unit || strncasecmp(text + length - unit, units[i].name, unit) != 0)
            continue;
        size_t digits = length - unit;
        while (digits > 0 && text[digits - 1] == ' ')
            digits--;
        double number;
        if (!number_parse_double(text, digits, &number))
            return -EINVAL;
        return round_khz(number * units[i].khz, ret_khz);
    }
    return -EINVAL;
}

const char *hertz_format(uint64_t khz, char buffer[static HERTZ_TEXT_SIZE]) {
    uint64_t unit = khz >= 1000000 ? 1000000 : khz >= 1000 ? 1000 : 1;
    const char *name = unit == 1000000 ? "GHz" : unit == 1000 ? "MHz" : "kHz";
    char number[NUMBER_TEXT_SIZE];
    number_format_double((double)khz / (double)unit, number);
    snprintf(buffer, HERTZ_TEXT_SIZE, "%.24s%s", khz ? number : "unknown", khz ? name : "");
    return buffer;
}

const char *hertz_format_range(uint64_t min, uint64_t max, char buffer[static HERTZ_RANGE_SIZE]) {
    char low[HERTZ_TEXT_SIZE], high[HERTZ_TEXT_SIZE];
    if (min == max)
        return hertz_format(max, buffer);
    snprintf(buffer, HERTZ_RANGE_SIZE, "%s..%s", hertz_format(min, low), hertz_format(max, high));
    return buffer;
}

/* Reads one limit: a word, per cent of the base frequency, or a number with a unit. -EINVAL with a sentence.
 */
static int parse_limit(const char *text, size_t length, const struct hertz_words *words, uint64_t *ret,
                       struct failure *failure) {
    const struct {
        const char *name;
        uint64_t value;
    } known[] = {{"min", words->min}, {"base", words->base}, {"max", words->max}};
    const uint64_t *word = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == length && memcmp(known[i].name, text, length) == 0)
            word = &known[i].value;
    if (word && *word == 0)
        return failure_set(failure, -EINVAL,
                           "this machine does not report '%.*s'; expected a frequency such as "
                           "2.1GHz",
                           (int)length, text);
    if (word) {
        *ret = *word;
        return 0;
    }
    double percent;
    if (length > 1 && text[length - 1] == '%' && number_parse_double(text, length - 1, &percent)) {
        if (words->base == 0)
            return failure_set(failure, -EINVAL,
                               "'%.*s' refers to the base frequency, which this machine does not "
                               "report; expected a frequency such as 2.1GHz",
                               (int)length, text);
        if (round_khz((double)words->base * percent / 100, ret) == 0)
            return 0;
    } else if (hertz_parse(text, length, ret) == 0) {
        return 0;
    }
    return failure_set(failure, -EINVAL,
                       "'%.*s' is not a frequency; expected a number with its unit, such as 2.1GHz, or a "
                       "word out of those that are possible",
                       (int)(length > 64 ? 64 : length), text);
}

int hertz_parse_range(const char *asked, const struct hertz_words *words, uint64_t *ret_min,
                      uint64_t *ret_max, struct failure *failure) {
    const char *dots = strstr(asked, "..");
    size_t length = dots ? (size_t)(dots - asked) : strlen(asked);
    uint64_t min, max;
    int r = parse_limit(asked, length, words, &min, failure);
    if (r < 0)
        return r;
    max = min;
    if (dots && (r = parse_limit(dots + 2, strlen(dots + 2), words, &max, failure)) < 0)
        return r;
    if (min > max)
        return failure_set(failure, -EINVAL, "'%s' begins above its end", asked);
    char range[HERTZ_RANGE_SIZE];
    if ((words->min && min < words->min) || (words->max && max > words->max))
        return failure_set(failure, -EINVAL, "'%s' is outside of %s, which is possible here", asked,
                           hertz_format_range(words->min, words->max, range));
    *ret_min = min;
    *ret_max = max;
    return 0;
}
