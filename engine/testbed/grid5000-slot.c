/* When a job can begin: which nodes are reserved until when, and what the usage policy of Grid'5000 allows.
 * The policy: https://www.grid5000.fr/w/Grid5000:UsagePolicy. */
#include "engine/testbed/grid5000.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HOUR = 3600, DAY = 24 * HOUR, DAYS_MAX = 14, GAP_S = 60 /* that OAR leaves between two jobs */ };

/* Of a working day. A job may cross such an hour only if it was submitted that day and late enough. */
static const struct boundary {
    int hour, crossed_from_hour; /* 0: never */
} boundaries[] = {{9, 0}, {19, 17}};
enum { BOUNDARIES = sizeof boundaries / sizeof *boundaries };

/* By day, a job of at most an hour that is submitted less than ten minutes before it begins is free of quota.
 */
static const int64_t free_walltime_s = HOUR;

/* ---- The sites' calendar ---------------------------------------------------------------------------------
 */

/* 01:00 UTC on the last Sunday of MONTH (March: 2) of YEAR. */
static int64_t last_sunday(int year, int month) {
    struct tm last = {.tm_year = year, .tm_mon = month, .tm_mday = 31, .tm_hour = 1};
    int64_t time_s = timegm(&last);
    return time_s - (int64_t)last.tm_wday * DAY;
}

/* Central European time, in summer from the last Sunday of March to that of October (directive 2000/84/EC).
 */
static int64_t local_offset(int64_t time_s) {
    time_t moment = time_s;
    struct tm utc;
    gmtime_r(&moment, &utc);
    bool is_summer = time_s >= last_sunday(utc.tm_year, 2) && time_s < last_sunday(utc.tm_year, 9);
    return is_summer ? 2 * HOUR : HOUR;
}

static struct tm local_time(int64_t time_s) {
    time_t moment = time_s + local_offset(time_s);
    struct tm local;
    gmtime_r(&moment, &local);
    return local;
}

/* HOUR of the local day that is DAYS after that of TIME_S. */
static int64_t hour_of_day(int64_t time_s, int days, int hour) {
    struct tm local = local_time(time_s);
    local = (struct tm){
        .tm_year = local.tm_year, .tm_mon = local.tm_mon, .tm_mday = local.tm_mday + days, .tm_hour = hour};
    int64_t as_utc = timegm(&local);
    return as_utc - local_offset(as_utc - HOUR);
}

/* Easter Sunday as a day of the year, from 0 (Meeus, Astronomical Algorithms, chapter 8). */
static int easter(int year) {
    int a = year % 19, b = year / 100, c = year % 100;
    int h = (19 * a + b - b / 4 - (b - (b + 8) / 25 + 1) / 3 + 15) % 30;
    int l = (32 + 2 * (b % 4) + 2 * (c / 4) - h - c % 4) % 7, m = (a + 11 * h + 22 * l) / 451;
    struct tm sunday = {.tm_year = year - 1900,
                        .tm_mon = (h + l - 7 * m + 114) / 31 - 1,
                        .tm_mday = (h + l - 7 * m + 114) % 31 + 1};
    timegm(&sunday);
    return sunday.tm_yday;
}

/* French public holidays count as nights, as weekends do. */
static bool is_working_day(const struct tm *local) {
    static const struct {
        int month, day;
    } fixed[] = {{0, 1}, {4, 1}, {4, 8}, {6, 14}, {7, 15}, {10, 1}, {10, 11}, {11, 25}};
    static const int after_easter[] = {1, 39, 50}; /* Easter Monday, Ascension, Whit Monday */
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (local->tm_mon == fixed[i].month && local->tm_mday == fixed[i].day)
            return false;
    for (size_t i = 0; i < sizeof after_easter / sizeof *after_easter; i++)
        if (local->tm_yday == easter(local->tm_year + 1900) + after_easter[i])
            return false;
    return local->tm_wday != 0 && local->tm_wday != 6;
}

const char *grid5000_format_time(int64_t time_s, char buffer[static GRID5000_TIME_SIZE]) {
    struct tm local = local_time(time_s);
    strftime(buffer, GRID5000_TIME_SIZE, "%Y-%m-%d %H:%M:%S", &local);
    return buffer;
}

/* ---- The policy ------------------------------------------------------------------------------------------
 */

bool grid5000_policy_allows(int64_t start_s, int64_t end_s, int64_t now_s) {
    for (int day = 0; hour_of_day(start_s, day, 0) < end_s; day++) {
        int64_t noon_s = hour_of_day(start_s, day, 12);
        struct tm local = local_time(noon_s);
        for (size_t i = 0; is_working_day(&local) && i < BOUNDARIES; i++) {
            int64_t at_s = hour_of_day(noon_s, 0, boundaries[i].hour);
            int from = boundaries[i].crossed_from_hour;
            if (start_s < at_s && at_s < end_s && (from == 0 || now_s < hour_of_day(noon_s, 0, from)))
                return false;
        }
    }
    return true;
}

static bool is_day(int64_t time_s) {
    struct tm local = local_time(time_s);
    return is_working_day(&local) && local.tm_hour >= boundaries[0].hour &&
           local.tm_hour < boundaries[BOUNDARIES - 1].hour;
}

/* ---- The nodes -------------------------------------------------------------------------------------------
 */

struct interval {
    int64_t start_s, end_s;
};

/* False: it reserves nothing, such as a job of the queue that others displace. */
static bool read_interval(const struct document_node *job, struct interval *ret) {
    int64_t start_s = scheduler_number(job, "started_at");
    if (start_s == 0)
        start_s = scheduler_number(job, "scheduled_at");
    *ret = (struct interval){start_s, start_s + scheduler_number(job, "walltime") + GAP_S};
    return start_s > 0 && strcmp(scheduler_text(job, "queue"), "besteffort") != 0;
}

static bool is_free(const struct document_node *node, const struct interval *wanted) {
    const struct document_node *jobs = document_get(node, "reservations");
    for (size_t i = 0; jobs && i < jobs->count; i++) {
        struct interval taken;
        if (read_interval(jobs->items[i], &taken) && taken.start_s < wanted->end_s + GAP_S &&
            wanted->start_s < taken.end_s)
            return false;
    }
    return true;
}

/* Of the cluster, and in order. One that is busy without a reservation is so for nobody knows how long. */
static bool is_candidate(const char *name, const struct document_node *node,
                         const struct grid5000_wish *wish) {
    const char *hard = scheduler_text(node, "hard"), *soft = scheduler_text(node, "soft");
    size_t length = wish->cluster ? strlen(wish->cluster) : 0;
    struct interval now = {wish->now_s, wish->now_s + 1};
    if (wish->cluster && (strncmp(name, wish->cluster, length) != 0 || name[length] != '-'))
        return false;
    if (strcmp(hard, "alive") != 0 && strcmp(hard, "standby") != 0)
        return false;
    return strcmp(soft, "busy") != 0 || !is_free(node, &now);
}

static bool is_slot(const struct document_node *nodes, const struct grid5000_wish *wish, int64_t start_s) {
    struct interval wanted = {start_s, start_s + wish->walltime_s};
    size_t found = 0;
    if (wish->by_day_rules && !grid5000_policy_allows(wanted.start_s, wanted.end_s, wish->now_s))
        return false;
    for (size_t i = 0; i < nodes->count && found < wish->nodes; i++)
        found +=
            is_candidate(nodes->keys[i]->text, nodes->items[i], wish) && is_free(nodes->items[i], &wanted);
    return found >= wish->nodes;
}

static int compare_times(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* A slot begins now, when a reservation ends, or when a day or night begins. */
int64_t grid5000_slot(const struct document_node *nodes, const struct grid5000_wish *wish) {
    size_t count = 0, most = (size_t)DAYS_MAX * BOUNDARIES + 1;
    struct interval taken;
    for (size_t i = 0; i < nodes->count; i++) {
        const struct document_node *jobs = document_get(nodes->items[i], "reservations");
        most += jobs ? jobs->count : 0;
    }
    cleanup_free int64_t *starts = xcalloc(most, sizeof *starts);
    starts[count++] = wish->now_s;
    for (int day = 0; day < DAYS_MAX; day++)
        for (size_t i = 0; i < BOUNDARIES; i++)
            starts[count++] = hour_of_day(wish->now_s, day, boundaries[i].hour);
    for (size_t i = 0; i < nodes->count; i++) {
        const struct document_node *jobs = document_get(nodes->items[i], "reservations");
        for (size_t j = 0; jobs && j < jobs->count; j++)
            if (is_candidate(nodes->keys[i]->text, nodes->items[i], wish) &&
                read_interval(jobs->items[j], &taken))
                starts[count++] = taken.end_s;
    }
    qsort(starts, count, sizeof *starts, compare_times);
    for (size_t i = 0; i < count; i++) {
        bool is_again = i > 0 && starts[i] == starts[i - 1];
        if (!is_again && starts[i] >= wish->now_s && starts[i] < wish->now_s + (int64_t)DAYS_MAX * DAY &&
            is_slot(nodes, wish, starts[i]))
            return starts[i];
    }
    return 0;
}

int grid5000_find_start(const struct scheduler_stage *stage, char start[static SCHEDULER_START_SIZE],
                        struct failure *failure) {
    const struct scheduler_resources *resources = &stage->settings->resources;
    cleanup(grid5000_answer_clear) struct grid5000_answer answer = {0};
    cleanup_free char *path = xformat("/sites/%s/status", resources->grid5000.site);
    struct grid5000_wish wish = {.cluster = resources->cluster,
                                 .nodes = (size_t)resources->nodes,
                                 .walltime_s = llround(ceil(resources->walltime)),
                                 .now_s = clock_wall_ns() / EVENT_SECOND,
                                 .by_day_rules =
                                     !resources->queue || strcmp(resources->queue, "default") == 0};
    char walltime[NUMBER_TEXT_SIZE];
    int r = grid5000_ask(stage, "GET", path, NULL, GRID5000_PATIENCE, &answer, failure);
    if (r < 0)
        return r;
    const struct document_node *nodes = document_get(answer.document->root, "nodes");
    int64_t found_s = nodes && nodes->kind == DOCUMENT_MAPPING ? grid5000_slot(nodes, &wish) : 0;
    number_describe_duration(resources->walltime, walltime);
    start[0] = '\0';
    if (found_s == 0)
        return failure_set(failure, -EBUSY,
                           "%s%s%s has no %zu nodes for %s within %d days that the usage policy allows",
                           resources->grid5000.site, wish.cluster ? ", " : "",
                           wish.cluster ? wish.cluster : "", wish.nodes, walltime, DAYS_MAX);
    if (found_s > wish.now_s) {
        grid5000_format_time(found_s, start);
        grid5000_report(stage, "the first %s of %zu nodes that the usage policy allows begin at %s", walltime,
                        wish.nodes, start);
    } else {
        bool is_free_of_quota = wish.by_day_rules && is_day(wish.now_s) && wish.walltime_s <= free_walltime_s;
        grid5000_report(stage, "%zu nodes are free now%s", wish.nodes,
                        is_free_of_quota ? "; a job of at most 1 h that begins at once is free of quota"
                                         : "");
    }
    return 0;
}
