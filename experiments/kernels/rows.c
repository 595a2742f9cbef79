#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "rows.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LINE_LENGTH_MAX = 1024, /* bytes of an input line, with its newline */
    INPUT_BYTES = 64 << 10, /* read ahead, so that the next row is here when one ends */
    FACT_MAX = 4096,        /* bytes of a fact */
    COLUMNS_MAX = 64,       /* also of the answers */
};

static const struct setting unit_setting = {.name = "unit", .kind = SETTING_WHOLE, .most = UINT64_MAX};

static struct {
    unsigned long long line; /* number of the last line, from 1 */

    const struct setting *settings;
    struct value *values, unit;
    int columns[COLUMNS_MAX]; /* the index of each column's setting; -1: the unit */
    int column_count;
    int answers[COLUMNS_MAX]; /* the index of each printed response */
    int answer_count;
} rows;

/* ---- Output ----------------------------------------------------------------------------------------------
 */

/* Ends a line and writes it out, so that a killed run loses no answer. */
static void end_line(void) {
    putchar('\n');
    if (fflush(stdout) != 0)
        die(EXIT_SYSTEM, "cannot write answers: %s", strerror(errno));
}

/* Prints "#NAME: TEXT" with control characters as blanks; nothing if the text is empty. */
void fact(const char *name, const char *format, ...) {
    char text[FACT_MAX] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20) /* libraries' texts may have newlines */
            *at = ' ';
    if (text[0]) {
        printf("#%s: %s", name, text);
        end_line();
    }
}

void fact_process(const char *policy) {
    if (policy)
        fact("memory_policy", "%s", policy);
    fact("page_bytes", "%ld", sysconf(_SC_PAGESIZE));
    struct timespec resolution;
    if (clock_getres(CLOCK_MONOTONIC, &resolution) == 0)
        fact("clock", "CLOCK_MONOTONIC, %ld ns", resolution.tv_nsec);
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        fact("cpus_allowed", "%d", CPU_COUNT(&allowed));
    fact("cpu", "%d", sched_getcpu());
}

/* Chooses the responses of NAMES that SELECTED lists, and prints the header of the answers; ends the program
 * if one is unknown. */
void rows_answers(const char *const *names, const char *selected) {
    char left[LINE_LENGTH_MAX], *rest = left;
    snprintf(left, sizeof left, "%s", selected);
    for (const char *name; (name = strsep(&rest, ","));) {
        int i = 0;
        while (names[i] && strcmp(names[i], name) != 0)
            i++;
        if (!names[i] || rows.answer_count == COLUMNS_MAX)
            die(EXIT_INPUT, "'%s' is no response of this kernel; expected a response such as '%s'", name,
                names[0]);
        rows.answers[rows.answer_count++] = i;
    }
    printf("unit,start,start_monotonic,%s", selected);
    end_line();
}

static int64_t nanoseconds(const struct timespec *time) {
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

double stopwatch_read(const struct stopwatch *watch) {
    return (double)(nanoseconds(&watch->after) - nanoseconds(&watch->before)) / 1e9;
}

void rows_answer(const struct stopwatch *watch, const double *responses) {
    printf("%llu,%lld,%lld", (unsigned long long)rows.unit.whole, (long long)nanoseconds(&watch->wall),
           (long long)nanoseconds(&watch->before));
    for (int i = 0; i < rows.answer_count; i++) {
        double value = responses[rows.answers[i]];
        bool is_whole_ns =
            value > -1e6 && value < 1e6 && value == (double)(long long)(value * 1e9 + 0.5) / 1e9;
        printf(is_whole_ns ? ",%.9f" : ",%.17g", value);
    }
    end_line();
}

/* ---- Input -----------------------------------------------------------------------------------------------
 */

void rows_refuse(const char *format, ...) {
    char sentence[LINE_LENGTH_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    die(EXIT_INPUT, "line %llu: %s", rows.line, sentence);
}

/* The next line without its end, NUL-ended, valid until the next call; NULL when the input is over. */
static char *read_line(void) {
    static char line[LINE_LENGTH_MAX];
    size_t length = 0;
    for (int c; (c = getc_unlocked(stdin)) != '\n'; line[length++] = (char)c) {
        if (c == EOF && ferror(stdin))
            die(EXIT_SYSTEM, "cannot read rows: %s", strerror(errno));
        if (c == EOF && length > 0)
            die(EXIT_INPUT, "the input ends inside line %llu", rows.line + 1);
        if (c == EOF)
            return NULL;
        if (c == '\0')
            die(EXIT_INPUT, "line %llu holds a NUL", rows.line + 1);
        if (length == LINE_LENGTH_MAX - 1)
            die(EXIT_INPUT, "line %llu is longer than %d bytes", rows.line + 1, (int)LINE_LENGTH_MAX);
    }
    rows.line++;
    line[length - (length > 0 && line[length - 1] == '\r')] = '\0';
    return line;
}

/* Cuts LINE at its commas into at most COLUMNS_MAX fields; returns how many there are. */
static int split_fields(char *line, char *fields[COLUMNS_MAX]) {
    int count = 0;
    for (char *field; (field = strsep(&line, ",")); count++)
        if (count < COLUMNS_MAX)
            fields[count] = field;
    return count;
}

/* The header that is expected, such as "unit,m,n,k", for a message; valid until the next call. */
static const char *expected_header(size_t count) {
    static char text[LINE_LENGTH_MAX];
    size_t used = (size_t)snprintf(text, sizeof text, "unit");
    for (size_t i = 0; i < count; i++)
        if (rows.settings[i].in_rows && !rows.values[i].known && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, ",%s", rows.settings[i].name);
    return text;
}

/* The index of the setting that may be the column NAME; -1: none. */
static int find_column(const char *name, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (rows.settings[i].in_rows && strcmp(rows.settings[i].name, name) == 0)
            return (int)i;
    return -1;
}

bool rows_have(const char *name) {
    for (int i = 0; i < rows.column_count; i++)
        if (rows.columns[i] >= 0 && strcmp(rows.settings[rows.columns[i]].name, name) == 0)
            return true;
    return false;
}

/* Reads the header; ends the program if a column is unknown, missing or there twice. */
void rows_begin(const struct setting *settings, size_t count, struct value *values) {
    char *fields[COLUMNS_MAX];
    bool has_unit = false;
    rows.settings = settings;
    rows.values = values;
    const char *expected = expected_header(count);
    static char buffer[INPUT_BYTES];
    setvbuf(stdin, buffer, _IOFBF, sizeof buffer);
    char *line = read_line();
    if (!line)
        die(EXIT_INPUT, "the input is empty; expected the header %s", expected);
    int found = split_fields(line, fields);
    for (int i = 0; i < found && i < COLUMNS_MAX; i++) {
        rows.columns[i] = find_column(fields[i], count);
        has_unit = has_unit || strcmp(fields[i], "unit") == 0;
        if (rows.columns[i] < 0 && strcmp(fields[i], "unit") != 0)
            die(EXIT_INPUT,
                "line 1 has %d columns; the column '%.64s' is not known, expected the "
                "header %s",
                found, fields[i], expected);
        if (rows_have(fields[i]))
            die(EXIT_INPUT, "line 1 has the column %s twice", fields[i]);
        rows.column_count = i + 1;
    }
    for (size_t i = 0; i < count; i++)
        if (!has_unit || (settings[i].in_rows && !values[i].known && !rows_have(settings[i].name)))
            die(EXIT_INPUT, "line 1 is not a header of the columns %s; missing: %s", expected,
                has_unit ? settings[i].name : "unit");
}

/* Reads the next row into the values. False: the input has ended. Ends the program if the row is wrong. */
bool rows_next(void) {
    char *line = read_line(), *fields[COLUMNS_MAX], where[48];
    if (!line)
        return false;
    int count = split_fields(line, fields);
    if (count != rows.column_count)
        die(EXIT_INPUT, "line %llu has %d fields; expected %d", rows.line, count, rows.column_count);
    snprintf(where, sizeof where, "line %llu: ", rows.line);
    for (int i = 0; i < count; i++) {
        int which = rows.columns[i];
        setting_set(which < 0 ? &unit_setting : &rows.settings[which], fields[i], where,
                    which < 0 ? &rows.unit : &rows.values[which]);
    }
    return true;
}
