#include "engine/run/record/results-row.h"

#include "engine/documents/csv.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/number.h"

#include <string.h>

/* A COUNT below 0 is an empty field. */
enum form { COUNT, TEXT, TIME, NUMBER };

#define FIELD(name_, type_, unit_, role_, label_, form_, member_, help_)                                     \
    {                                                                                                        \
        {name_, COLUMN_##type_, unit_, COLUMN_ROLE_##role_, label_, .help = help_}, form_,                   \
            offsetof(struct results_row, member_)                                                            \
    }
static const struct {
    struct column about;
    enum form form;
    size_t offset;
} columns[RESULTS_COLUMNS] = {
    [RESULTS_ROW] = FIELD("row", INTEGER, "", ID, "row", COUNT, row, "line of design.csv, from 1"),
    [RESULTS_REPETITION] =
        FIELD("repetition", INTEGER, "", ID, "repetition", COUNT, repetition, "of the row, from 1"),
    [RESULTS_ORDER] = FIELD("order", INTEGER, "", ID, "order", COUNT, order,
                            "position in the order of measurement, from 1"),
    [RESULTS_BLOCK] =
        FIELD("block", INTEGER, "", ID, "block", COUNT, block,
              "of units that were measured one after the other in one state of the controls, from 1"),
    [RESULTS_ATTEMPT] =
        FIELD("attempt", INTEGER, "", ID, "attempt", COUNT, attempt,
              "1, or higher where a gate had the unit measured again; all attempts have a line"),
    [RESULTS_NODE] = FIELD("node", STRING, "", ID, "node", TEXT, node,
                           "host name, or names of all nodes of the unit, folded"),
    [RESULTS_CORE] = FIELD("core", STRING, "", ID, "core", TEXT, core, "number of the logical CPU, or all"),
    [RESULTS_START] = FIELD("start", TIME, "", TIME, "start", TIME, start_ns,
                            "when the unit began, by the node's clock, in UTC"),
    [RESULTS_START_MONOTONIC] =
        FIELD("start_monotonic", INTEGER, "ns", TIME, "start, monotonic", COUNT, start_monotonic_ns,
              "the same by the node's monotonic clock, to be compared on that node only; empty where the "
              "experiment's kernel does not report it"),
    [RESULTS_FREQUENCY] = FIELD("state.frequency", NUMBER, "Hz", COVARIATE, "frequency", NUMBER, frequency_hz,
                                "mean of the unit's PUs while it ran; empty where it is not known"),
    [RESULTS_TEMPERATURE] =
        FIELD("state.temperature", NUMBER, "Cel", COVARIATE, "temperature", NUMBER, temperature,
              "of the hottest package at the unit's end; empty where it is not known"),
    [RESULTS_FLAGS] = FIELD("state.flags", STRING, "", COVARIATE, "flags", TEXT, flags,
                            "gates that the unit did not pass, separated by semicolons"),
};

const struct column *results_column_describe(enum results_column column) {
    return &columns[column].about;
}

static void append_time(struct text *text, int64_t wall_ns) {
    char time[CLOCK_TEXT_SIZE];
    clock_format_ns(wall_ns, time);
    csv_append_field(text, false, time, strlen(time));
}

void results_row_append(struct text *text, const struct results_row *row, enum results_column from,
                        enum results_column to) {
    for (enum results_column column = from; column < to; column++) {
        const void *member = (const char *)row + columns[column].offset;
        const struct results_text *field = member;
        int64_t count = columns[column].form == COUNT ? *(const int64_t *)member : -1;
        if (columns[column].form == TEXT)
            csv_append_field(text, false, field->bytes, field->length);
        else if (columns[column].form == NUMBER)
            csv_append_double(text, false, *(const double *)member);
        else if (columns[column].form == TIME)
            append_time(text, *(const int64_t *)member);
        else if (count >= 0)
            csv_append_int64(text, column == RESULTS_ROW, count);
        else
            csv_append_field(text, false, "", 0);
    }
}

/* Sets the member of RET for COLUMN. Times and samples after RESULTS_START are not read back. False: it is
 * not a number. */
bool results_row_parse_field(enum results_column column, const char *bytes, size_t length,
                             struct results_row *ret) {
    void *member = (char *)ret + columns[column].offset;
    if (columns[column].form == TEXT)
        *(struct results_text *)member = (struct results_text){bytes, length};
    return columns[column].form != COUNT || column > RESULTS_START ||
           number_parse_int64(bytes, length, member);
}

/* Reads a line of results.csv into RET; NULL: it is malformed. Fields are split at commas outside quotes. */
const char *results_row_read(const char *at, const char *end, size_t between, size_t picked,
                             struct results_row *ret) {
    const char *begin = at;
    bool quoted = false, is_good = true;
    size_t i = 0;
    for (; at < end; at++) {
        if (*at == '"')
            quoted = !quoted;
        if (quoted || (*at != ',' && *at != '\n'))
            continue;
        size_t quote = *begin == '"', length = (size_t)(at - begin) - 2 * quote;
        if (i == RESULTS_FACTORS + picked)
            ret->picked = (struct results_text){begin + quote, length};
        if (i < RESULTS_FACTORS || (i >= RESULTS_FACTORS + between && i < RESULTS_COLUMNS + between))
            is_good &= results_row_parse_field((enum results_column)(i < RESULTS_FACTORS ? i : i - between),
                                               begin + quote, length, ret);
        i++;
        if (*at == '\n')
            return is_good && i == RESULTS_COLUMNS + between ? at : NULL;
        begin = at + 1;
    }
    return NULL;
}
