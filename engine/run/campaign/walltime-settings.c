#include "engine/run/campaign/walltime-settings.h"

#include "engine/documents/bind.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/number.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double shortest = 0.1; /* s */

/* ---- The campaign ----------------------------------------------------------------------------------------
 */

struct written {
    double limit, margin;
    char *model;
};

static const struct bind_field fields[] = {
    {.key = "limit",
     .type = BIND_QUANTITY,
     .dimension = UNIT_TIME,
     .offset = offsetof(struct written, limit),
     .minimum = 0.1,
     .maximum = WALLTIME_SECONDS_MOST},
    {.key = "margin",
     .type = BIND_QUANTITY,
     .dimension = UNIT_TIME,
     .offset = offsetof(struct written, margin),
     .minimum = 0,
     .maximum = 86400},
    {.key = "model", .type = BIND_TEXT, .offset = offsetof(struct written, model)},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static int take_written(const struct document *document, const struct document_node *node, const char *folder,
                        const struct written *written, struct walltime_settings *ret,
                        struct failure *failure) {
    struct walltime_settings settings = {.limit_seconds = written->limit, .margin_seconds = written->margin};
    if (written->limit > 0 && written->margin >= written->limit) {
        const struct document_node *at = document_get(node, "margin");
        return failure_input(failure, document->file, at->line, at->column,
                             "'margin' is %g s and 'limit' is %g s, expected less than the limit",
                             written->margin, written->limit);
    }
    if (written->model) {
        cleanup_free char *path =
            written->model[0] == '/' ? strdup(written->model) : file_join(folder, written->model);
        const struct document_node *at = document_get(node, "model");
        if (!path)
            return failure_memory(failure);
        if (!file_exists(path) || file_is_folder(path))
            return failure_input(failure, document->file, at->line, at->column,
                                 "'model' is '%s', and there is no such file", written->model);
        settings.model = take_pointer(path);
    }
    *ret = settings;
    return 0;
}

int walltime_settings_bind(const struct document *document, const struct document_node *node,
                           const char *folder, struct walltime_settings *ret, struct failure *failure) {
    struct written written = {.margin = -1};
    if (node && node->kind == DOCUMENT_MAPPING) {
        int r = bind_mapping(document, node, "walltime", fields, FIELD_COUNT, &written, failure);
        if (r == 0)
            r = take_written(document, node, folder, &written, ret, failure);
        bind_clear(fields, FIELD_COUNT, &written);
        return r;
    }
    struct walltime_settings settings = {.margin_seconds = -1};
    if (node && !(node->text && strcmp(node->text, "none") == 0) &&
        (!node->text || !unit_parse(node->text, UNIT_TIME, &settings.limit_seconds) ||
         !(settings.limit_seconds >= shortest && settings.limit_seconds <= WALLTIME_SECONDS_MOST)))
        return failure_input(failure, document->file, node->line, node->column,
                             "'walltime' is %s%.64s%s, expected a time such as 2h, none, or a mapping",
                             node->text ? "'" : "", node->text ? node->text : document_kind_name(node->kind),
                             node->text ? "'" : "");
    *ret = settings;
    return 0;
}

void walltime_settings_clear(struct walltime_settings *settings) {
    free(settings->model);
    *settings = (struct walltime_settings){0};
}

void walltime_settings_describe(const struct walltime_settings *settings, struct text *ret) {
    char limit[NUMBER_TEXT_SIZE], margin[NUMBER_TEXT_SIZE];
    if (settings->limit_seconds <= 0)
        return;
    text_printf(ret, "Walltime: %s; what is measured ends early enough to restore and seal",
                number_describe_duration(settings->limit_seconds, limit));
    if (settings->margin_seconds >= 0)
        text_printf(ret, ", with %s to spare", number_describe_duration(settings->margin_seconds, margin));
    text_append_string(ret, ".\n");
}

void walltime_settings_resolve(const struct walltime_settings *settings, cJSON *object) {
    if (settings->limit_seconds > 0)
        json_add_double(object, "limit_seconds", settings->limit_seconds);
    else
        json_add_string(object, "limit_seconds", NULL);
    if (settings->margin_seconds >= 0)
        json_add_double(object, "margin_seconds", settings->margin_seconds);
    else
        json_add_string(object, "margin_seconds", NULL);
    char sha256[HASH_HEX_SIZE];
    json_add_string(object, "model", settings->model ? file_base_name(settings->model) : NULL);
    if (settings->model && hash_file(settings->model, sha256, NULL, NULL) == 0)
        json_add_string(object, "model_sha256", sha256);
}

/* ---- --until ---------------------------------------------------------------------------------------------
 */

/* Exactly COUNT digits. */
static bool take_digits(const char **at, int count, int *ret) {
    int value = 0;
    for (int i = 0; i < count; i++) {
        if (!isdigit((unsigned char)(*at)[i]))
            return false;
        value = 10 * value + ((*at)[i] - '0');
    }
    *at += count;
    *ret = value;
    return true;
}

static bool take_character(const char **at, char character) {
    if (**at != character)
        return false;
    ++*at;
    return true;
}

/* "18:30" or "18:30:15" */
static bool take_clock(const char **at, struct tm *ret) {
    return take_digits(at, 2, &ret->tm_hour) && take_character(at, ':') && take_digits(at, 2, &ret->tm_min) &&
           (!take_character(at, ':') || take_digits(at, 2, &ret->tm_sec)) && ret->tm_hour < 24 &&
           ret->tm_min < 60 && ret->tm_sec < 60;
}

static bool take_date(const char **at, struct tm *ret) {
    bool good = take_digits(at, 4, &ret->tm_year) && take_character(at, '-') &&
                take_digits(at, 2, &ret->tm_mon) && take_character(at, '-') &&
                take_digits(at, 2, &ret->tm_mday);
    ret->tm_year -= 1900;
    ret->tm_mon--;
    return good && (take_character(at, 'T') || take_character(at, ' '));
}

/* "Z", "+01:00", "-0500"; nothing is no zone. */
static bool take_zone(const char **at, bool *ret_given, int *ret_seconds) {
    int hours = 0, minutes = 0, sign = **at == '-' ? -1 : 1;
    *ret_given = **at != '\0';
    *ret_seconds = 0;
    if (!*ret_given || take_character(at, 'Z'))
        return true;
    if (!take_character(at, '+') && !take_character(at, '-'))
        return false;
    if (!take_digits(at, 2, &hours))
        return false;
    take_character(at, ':');
    if (!take_digits(at, 2, &minutes) || hours > 14 || minutes > 59)
        return false;
    *ret_seconds = sign * (hours * 3600 + minutes * 60);
    return true;
}

/* The moment of FIELDS, which there must be: no 30 February, no hour that a clock change leaves out. */
static bool find_moment(const struct tm *parts, bool zoned, int zone_seconds, time_t *ret) {
    struct tm copy = *parts;
    copy.tm_isdst = zoned ? 0 : -1;
    time_t moment = zoned ? timegm(&copy) : mktime(&copy);
    if (copy.tm_mday != parts->tm_mday || copy.tm_mon != parts->tm_mon || copy.tm_hour != parts->tm_hour ||
        copy.tm_min != parts->tm_min)
        return false;
    *ret = moment - zone_seconds;
    return true;
}

/* The next such time of the local clock. */
static bool find_next(const struct tm *clock, time_t now, time_t *ret) {
    struct tm today;
    localtime_r(&now, &today);
    for (int day = 0; day < 3; day++) {
        struct tm parts = {
            .tm_year = today.tm_year, .tm_mon = today.tm_mon, .tm_mday = today.tm_mday + day, .tm_hour = 12};
        parts.tm_isdst = -1;
        mktime(&parts); /* the date, in order */
        parts.tm_hour = clock->tm_hour;
        parts.tm_min = clock->tm_min;
        parts.tm_sec = clock->tm_sec;
        if (find_moment(&parts, false, 0, ret) && *ret > now)
            return true;
    }
    return false;
}

static bool parse_moment(const char *text, time_t now, time_t *ret) {
    const char *at = text;
    struct tm parts = {0};
    if (take_clock(&at, &parts) && *at == '\0')
        return find_next(&parts, now, ret);
    at = text;
    parts = (struct tm){0};
    bool zoned;
    int zone_seconds;
    return take_date(&at, &parts) && take_clock(&at, &parts) && take_zone(&at, &zoned, &zone_seconds) &&
           *at == '\0' && find_moment(&parts, zoned, zone_seconds, ret);
}

int walltime_parse_until(const char *text, int64_t now_ns, int64_t *ret, struct failure *failure) {
    static const int64_t second = 1000000000;
    double seconds;
    time_t moment;
    size_t length = strlen(text);
    int64_t until_ns;
    /* A plain number could be anything. */
    if (length > 0 && isalpha((unsigned char)text[length - 1]) && unit_parse(text, UNIT_TIME, &seconds) &&
        seconds > 0 && seconds <= WALLTIME_SECONDS_MOST)
        until_ns = now_ns + llround(seconds * 1e9);
    else if (parse_moment(text, (time_t)(now_ns / second), &moment))
        until_ns = (int64_t)moment * second;
    else
        return failure_input(
            failure, NULL, 0, 0,
            "--until '%.64s' is no time; expected a duration such as 90min, a clock time such as "
            "18:30, or a date and time such as 2026-11-22T18:30",
            text);
    if (until_ns <= now_ns)
        return failure_input(failure, NULL, 0, 0, "--until '%.64s' is over already; expected a time to come",
                             text);
    if ((double)(until_ns - now_ns) > WALLTIME_SECONDS_MOST * 1e9)
        return failure_input(failure, NULL, 0, 0, "--until '%.64s' is more than 400 days from now", text);
    *ret = until_ns;
    return 0;
}
