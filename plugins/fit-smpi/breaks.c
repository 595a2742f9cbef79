#include "plugins/fit-smpi/breaks.h"

#include "plugins/numerics/frontier.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MINIMUM_SIZES = 3, /* of a segment that is found */
    TERMS_BYTES_MAX = 4096,
};

static const double per_break = 4; /* parameters that BIC takes a break for, as fit-piecewise */

/* ---- Given */

__attribute__((format(printf, 2, 3))) static int refuse(struct plugin_message *message, const char *format,
                                                        ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message->text, sizeof message->text, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

static int add(struct breaks *breaks, double at, const char *source, struct plugin_message *message) {
    if (!(at > 0) || !isfinite(at))
        return refuse(message, "%s: the break %.15g is no size of a message; expected one above 0", source,
                      at);
    if (breaks->count == TABLES_BREAKS_MAX)
        return refuse(message, "%s: there are more than %d breaks", source, (int)TABLES_BREAKS_MAX);
    if (breaks->count > 0 && at <= breaks->at[breaks->count - 1])
        return refuse(message, "%s: the break %.15g comes after %.15g; expected one that is larger", source,
                      at, breaks->at[breaks->count - 1]);
    breaks->at[breaks->count++] = at;
    return 0;
}

/* "| 1420 detached | 65536", after the column; the names are of no use to SMPI. */
static int read_list(const char *text, const char *source, struct breaks *ret,
                     struct plugin_message *message) {
    int r = 0;
    while (r == 0 && *text) {
        char *end;
        double at = strtod(text + 1, &end);
        if (*text != '|' || end == text + 1)
            return refuse(message, "%s: '%.40s' is no break; expected '|' and a size in bytes", source, text);
        r = add(ret, at, source, message);
        text = end + strcspn(end, "|");
    }
    return r;
}

int breaks_read_terms(const struct fit_request *request, char column[static BREAKS_COLUMN_SIZE],
                      struct breaks *ret, struct plugin_message *message) {
    *ret = (struct breaks){.count = 0};
    const char *terms = request->terms ? request->terms : "";
    size_t length = strcspn(terms, "|"), all = strlen(terms);
    if (all > TERMS_BYTES_MAX)
        return refuse(message, "the terms have %zu bytes; expected at most %d", all, (int)TERMS_BYTES_MAX);
    for (size_t i = 0; i < request->column_count; i++)
        if (strcmp(request->columns[i].name, terms) == 0)
            length = all;
    const char *rest = terms + length;
    while (length > 0 && isspace((unsigned char)terms[length - 1]))
        length--;
    if (length >= BREAKS_COLUMN_SIZE)
        return refuse(message, "the terms begin with a name of %zu bytes; expected at most %d", length,
                      (int)BREAKS_COLUMN_SIZE - 1);
    memcpy(column, terms, length);
    column[length] = '\0';
    return read_list(rest, "the terms", ret, message);
}

static int read_set(const double *set, struct breaks *ret, struct plugin_message *message) {
    for (size_t i = 0; i < TABLES_BREAKS_MAX; i++) {
        if (isnan(set[i]))
            continue;
        if (i > ret->count)
            return refuse(message, "break%zu is set and break%zu is not", i + 1, i);
        if (i > 0 && set[i] <= set[i - 1])
            return refuse(message, "break%zu is %.15g byte, break%zu %.15g; expected one that is larger", i,
                          set[i - 1], i + 1, set[i]);
        ret->at[ret->count++] = set[i];
    }
    return 0;
}

/* Those of a model file, which the host read. */
static int read_host(const struct fit_request *request, struct breaks *ret, struct plugin_message *message) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < request->break_count; i++)
        r = add(ret, request->breaks[i], "--breaks", message);
    return r;
}

/* Thresholds that an archive's experiment tells fit-piecewise. */
static int read_archive(const struct fit_request *request, struct breaks *ret,
                        struct plugin_message *message) {
    if (!PLUGIN_HAS(request, other_terms) || !request->other_terms ||
        strcmp(request->other_method, "piecewise") != 0)
        return 0;
    return read_list(request->other_terms + strcspn(request->other_terms, "|"), "the archive", ret, message);
}

static int count_sources(const struct fit_request *request, const double *set, const struct breaks *terms) {
    int sources = PLUGIN_HAS(request, breaks_from) && request->breaks_from;
    bool any = false;
    for (size_t i = 0; i < TABLES_BREAKS_MAX; i++)
        any |= !isnan(set[i]);
    return sources + any + (terms->count > 0 && !request->suggested);
}

int breaks_choose(const struct fit_request *request, enum breaks_choice choice, const double *set,
                  struct breaks *ret, struct plugin_message *message) {
    int sources = count_sources(request, set, ret);
    if (sources > 1)
        return refuse(message, "breaks come from more than one of break1 ..., the terms and --breaks; "
                               "expected one");
    if (sources > 0 && choice != BREAKS_AUTO)
        return refuse(message, "breaks are given, and breaks=%s; expected one of the two",
                      choice == BREAKS_FOUND ? "found" : "none");
    bool from_host = PLUGIN_HAS(request, breaks_from) && request->breaks_from;
    struct breaks terms = *ret;
    *ret = (struct breaks){.find = choice == BREAKS_FOUND};
    int r = choice == BREAKS_AUTO ? read_set(set, ret, message) : 0;
    if (r < 0 || choice != BREAKS_AUTO) {
        snprintf(ret->from, sizeof ret->from, "breaks=none");
    } else if (ret->count > 0) {
        snprintf(ret->from, sizeof ret->from, "set by break1 ...");
    } else if (from_host) {
        snprintf(ret->from, sizeof ret->from, "those of %.250s", request->breaks_from);
        r = read_host(request, ret, message);
    } else if (terms.count > 0) {
        *ret = terms;
        snprintf(ret->from, sizeof ret->from, request->suggested ? "told by the archive" : "in the terms");
    } else {
        r = read_archive(request, ret, message);
        snprintf(ret->from, sizeof ret->from, "thresholds that the archive tells");
        ret->find = r == 0 && ret->count == 0;
    }
    return r;
}

/* ---- Found */

/* The ping-pongs as points, a size each: what is beyond the quantiles of its size is none of it. */
static int make_points(const struct tables_settings *settings, const struct call *calls, size_t count,
                       struct point **ret, size_t *ret_count) {
    struct call *kept = malloc((count + 1) * sizeof *kept);
    double *scratch = malloc((count + 1) * sizeof *scratch);
    struct point_row *rows = malloc((count + 1) * sizeof *rows);
    struct point *points = malloc((count + 1) * sizeof *points);
    size_t used = 0;
    *ret = points;
    *ret_count = 0;
    if (kept && scratch && rows && points) {
        if (count > 0)
            memcpy(kept, calls, count * sizeof *kept);
        count = trim_by_size(kept, count, settings->trim, settings->rule, scratch);
        for (size_t i = 0; i < count; i++)
            if (kept[i].duration > 0) /* the error is relative */
                rows[used++] = (struct point_row){kept[i].size, kept[i].duration, 1};
        *ret_count = points_make(rows, used, POINTS_AVERAGED, POINTS_RELATIVE, NULL, points);
    }
    bool good = kept && scratch && rows && points;
    free(kept);
    free(scratch);
    free(rows);
    return good ? 0 : -ENOMEM;
}

/* The first point at or above the threshold, where both sides have points enough for a line; else 0. */
static size_t border_at(const struct point *points, size_t count, double threshold) {
    size_t at = 0;
    while (at < count && points[at].x < threshold)
        at++;
    return at >= 2 && count - at >= 2 ? at : 0;
}

/* Costs are charged by segments that end at the threshold, so that it is a break whatever is found. */
static int find(const struct point *points, size_t count, struct tables_settings *settings) {
    size_t border = border_at(points, count, settings->detached_threshold);
    struct frontier *frontier = NULL;
    const struct partition *partition = NULL;
    int r = frontier_new(points, count, &border, border > 0, MINIMUM_SIZES, true, &frontier);
    if (r < 0)
        return r;
    size_t most = frontier_most(frontier);
    r = frontier_choose(frontier, (double)count, per_break * log((double)count),
                        most < TABLES_BREAKS_MAX ? most : TABLES_BREAKS_MAX, &partition);
    for (size_t i = 0; r == 0 && i < partition->count; i++) {
        size_t at = partition->breaks[i];
        settings->breaks[settings->break_count++] =
            border > 0 && at == border ? settings->detached_threshold : points[at].x;
    }
    frontier_free(frontier);
    return r;
}

static void list_breaks(const struct tables_settings *settings, char *note, size_t size) {
    size_t length = 0;
    for (size_t i = 0; i < settings->break_count && length < size; i++) {
        int written = snprintf(note + length, size - length, "%s%.15g", i ? ", " : "", settings->breaks[i]);
        length += written > 0 ? (size_t)written : 0;
    }
    if (settings->break_count == 0)
        snprintf(note, size, "none");
}

int breaks_of_group(const struct breaks *breaks, const struct call *ping_pong, size_t count,
                    struct tables_settings *settings, char note[static BREAKS_NOTE_SIZE]) {
    char list[TABLES_BREAKS_MAX * 26];
    struct point *points = NULL;
    size_t sizes = 0;
    settings->break_count = breaks->count;
    memcpy(settings->breaks, breaks->at, sizeof breaks->at);
    int r = breaks->find ? make_points(settings, ping_pong, count, &points, &sizes) : 0;
    if (r == 0 && sizes >= MINIMUM_SIZES)
        r = find(points, sizes, settings);
    list_breaks(settings, list, sizeof list);
    char threshold[64] = "";
    for (size_t i = 0; i < settings->break_count; i++)
        if (settings->breaks[i] == settings->detached_threshold)
            snprintf(threshold, sizeof threshold, "; send-is-detached-thresh %.15g is one",
                     settings->detached_threshold);
    if (breaks->find)
        snprintf(note, BREAKS_NOTE_SIZE,
                 "breaks: %s; found in PingPong's %zu sizes (best segments by BIC of relative errors%s)",
                 list, sizes, threshold);
    else
        snprintf(note, BREAKS_NOTE_SIZE, "breaks: %s; %.280s", list, breaks->from);
    free(points);
    return r;
}
