#include "plugins/fit-smpi/tables.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

double tables_from(const struct tables_settings *settings, size_t segment) {
    return segment == 0 ? 0 : settings->breaks[segment - 1];
}

double tables_to(const struct tables_settings *settings, size_t segment) {
    return segment < settings->break_count ? settings->breaks[segment] : INFINITY;
}

__attribute__((format(printf, 2, 3))) static void add_note(struct tables *tables, const char *format, ...) {
    if (tables->note_count == TABLES_NOTES_MAX)
        return; /* what is left to say is more of the same */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(tables->notes[tables->note_count++], TABLES_NOTE_SIZE, format, arguments);
    va_end(arguments);
}

/* "the segment from 1420 to 65536" */
static const char *segment_name(const struct tables_settings *settings, size_t segment,
                                char name[static 96]) {
    double to = tables_to(settings, segment);
    int length = snprintf(name, 96, "the segment from %.15g byte", tables_from(settings, segment));
    if (isfinite(to))
        snprintf(name + length, 96 - (size_t)length, " to %.15g", to);
    return name;
}

/* ---- Lines */

static size_t trim_calls(const struct tables_settings *settings, enum operation operation, struct call *calls,
                         size_t count, double *scratch, struct tables *tables) {
    if (count == 0)
        return 0;
    size_t blocks = (count + settings->block - 1) / settings->block;
    size_t mixed = trim_mixed_blocks(calls, count, settings->block);
    bool by_size = settings->per == TRIM_SIZE || (settings->per == TRIM_AUTO && 2 * mixed > blocks);
    if (by_size && settings->per == TRIM_AUTO)
        add_note(tables, "%s is trimmed size by size: %zu of its %zu blocks of %zu rows hold several sizes",
                 operation_names[operation], mixed, blocks, settings->block);
    if (by_size)
        return trim_by_size(calls, count, settings->trim, settings->rule, scratch);
    if (mixed > 0)
        add_note(tables,
                 "%zu of the %zu blocks of %zu rows by which %s is trimmed hold several sizes; 'trim-per' "
                 "can be size",
                 mixed, blocks, settings->block, operation_names[operation]);
    return trim_by_rows(calls, count, settings->block, settings->trim, settings->rule, scratch);
}

static bool is_charged(const struct tables_settings *settings, enum operation operation, size_t segment) {
    double to = tables_to(settings, segment);
    if (operation == OPERATION_ISEND || operation == OPERATION_SEND)
        return to <= settings->detached_threshold;
    return operation == OPERATION_RECV && to < settings->detached_threshold;
}

static void fit_lines(const struct tables_settings *settings, enum operation operation,
                      const struct call *calls, size_t count, struct tables *tables) {
    struct straight_line_sums sums[TABLES_SEGMENTS_MAX] = {0};
    for (size_t i = 0; i < count; i++) {
        size_t segment = 0;
        while (calls[i].size >= tables_to(settings, segment))
            segment++;
        straight_line_add(&sums[segment], calls[i].size, calls[i].duration);
    }
    for (size_t s = 0; s <= settings->break_count; s++) {
        struct tables_line *line = &tables->lines[operation][s];
        line->fitted = straight_line_fit(&sums[s], &line->line);
        line->minimum = sums[s].x_minimum;
        line->maximum = sums[s].x_maximum;
        line->charged = line->fitted && is_charged(settings, operation, s);
        char name[96];
        if (count > 0 && !line->fitted && is_charged(settings, operation, s))
            add_note(tables, "%s has fewer than two sizes in %s: nothing is charged there",
                     operation_names[operation], segment_name(settings, s, name));
        if (line->fitted)
            tables->rows += line->line.count;
    }
}

/* ---- Factors */

static void make_factors(const struct tables_settings *settings, struct tables *tables, size_t segment) {
    const struct straight_line *ping_pong = &tables->lines[OPERATION_PING_PONG][segment].line;
    const struct tables_line *receive = &tables->lines[OPERATION_RECV][segment];
    static const struct straight_line nothing;
    const struct straight_line * or = receive->charged ? &receive->line : &nothing;
    double delay = (ping_pong->intercept - or->intercept) / 2 * settings->seconds;
    double pace = (ping_pong->slope - or->slope) / 2 * settings->seconds; /* s/byte */
    double delay_error = hypot(ping_pong->intercept_error, or->intercept_error) / 2 * settings->seconds;
    double pace_error = hypot(ping_pong->slope_error, or->slope_error) / 2 * settings->seconds;
    tables->latency_factors[segment] = delay / settings->latency;
    tables->latency_errors[segment] = delay_error / settings->latency;
    tables->bandwidth_factors[segment] = 1 / (pace * settings->bandwidth);
    tables->bandwidth_errors[segment] = fabs(pace_error / pace * tables->bandwidth_factors[segment]);
    char name[96];
    if (!(delay >= 0))
        add_note(tables, "the line of %s gives %s a negative latency", operation_names[OPERATION_PING_PONG],
                 segment_name(settings, segment, name));
    if (!(pace > 0))
        add_note(tables, "the line of %s gives %s no bandwidth: its time does not grow with the size",
                 operation_names[OPERATION_PING_PONG], segment_name(settings, segment, name));
}

static bool check_ping_pong(const struct tables_settings *settings, const struct group_calls *calls,
                            const struct tables *tables, char reason[static TABLES_REASON_SIZE]) {
    if (calls->counts[OPERATION_PING_PONG] == 0) {
        snprintf(reason, TABLES_REASON_SIZE,
                 "no PingPong, and no Send with its Recv in the next row: the factors come from it");
        return false;
    }
    for (size_t s = 0; s <= settings->break_count; s++) {
        char name[96];
        if (tables->lines[OPERATION_PING_PONG][s].fitted)
            continue;
        snprintf(reason, TABLES_REASON_SIZE, "PingPong has fewer than two sizes in %s",
                 segment_name(settings, s, name));
        return false;
    }
    return true;
}

/* ---- All of it */

static void make_costs(const struct tables_settings *settings, const struct group_calls *calls,
                       double *scratch, struct tables *tables) {
    for (size_t o = 0; o < OPERATION_COUNT; o++) {
        size_t count = calls->counts[o];
        bool cost = o == OPERATION_IPROBE || o == OPERATION_TEST || o == OPERATION_WTIME;
        tables->costs[o] = tables->cost_sigmas[o] = NAN;
        if (!cost || count == 0)
            continue;
        tables->cost_rows[o] = count;
        tables->rows += count;
        double share = o == OPERATION_WTIME ? 0 : settings->trim;
        double together = o == OPERATION_WTIME ? settings->wtime_calls : 1;
        tables->costs[o] = trim_mean(calls->calls[o], count, share, scratch) / together;
        tables->cost_sigmas[o] = trim_deviation(calls->calls[o], count, share, scratch) / together;
    }
}

static void note_absent(const struct group_calls *calls, struct tables *tables) {
    static const struct {
        enum operation operation;
        const char *table;
    } tables_of[] = {{OPERATION_SEND, "smpi/os"},   {OPERATION_ISEND, "smpi/ois"},
                     {OPERATION_RECV, "smpi/or"},   {OPERATION_IPROBE, "smpi/iprobe"},
                     {OPERATION_TEST, "smpi/test"}, {OPERATION_WTIME, "smpi/wtime"}};
    for (size_t i = 0; i < sizeof tables_of / sizeof *tables_of; i++)
        if (calls->counts[tables_of[i].operation] == 0)
            add_note(tables, "no %s: %s is not known", operation_names[tables_of[i].operation],
                     tables_of[i].table);
}

bool tables_fit(const struct tables_settings *settings, struct group_calls *calls, double *scratch,
                struct tables *ret, char reason[static TABLES_REASON_SIZE]) {
    *ret = (struct tables){.rows = 0};
    if (calls->incomplete > 0)
        add_note(ret, "%" PRIu64 " row%s left out: the size or the duration is empty, negative or not finite",
                 calls->incomplete, calls->incomplete == 1 ? "" : "s");
    if (calls->other > 0)
        add_note(ret, "%" PRIu64 " row%s of other operations left out", calls->other,
                 calls->other == 1 ? "" : "s");
    for (size_t o = 0; o < TABLES_LINES; o++) {
        size_t count = calls->counts[o];
        if (o != OPERATION_PING_PONG)
            count = trim_calls(settings, (enum operation)o, calls->calls[o], count, scratch, ret);
        else if (settings->trim_ping_pong > 0)
            count = trim_by_size(calls->calls[o], count, settings->trim_ping_pong, settings->rule, scratch);
        fit_lines(settings, (enum operation)o, calls->calls[o], count, ret);
    }
    if (!check_ping_pong(settings, calls, ret, reason))
        return false;
    for (size_t s = 0; s <= settings->break_count; s++)
        make_factors(settings, ret, s);
    make_costs(settings, calls, scratch, ret);
    note_absent(calls, ret);
    return true;
}
