#include "engine/command-line/output.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/report/shown.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int output_check(const char *output, const char *const *inputs, size_t count, struct failure *failure) {
    for (size_t i = 0; output && i < count; i++)
        if (inputs[i] && file_is_same(output, inputs[i]))
            return failure_input(failure, NULL, 0, 0,
                                 "the output '%s' is also an input; expected another name", output);
    return 0;
}

/* Would ONE and OTHER be the same file, because they have the same name in the same folder? */
static bool would_be_same(const char *one, const char *other) {
    struct stat folders[2];
    const char *const paths[] = {one, other};
    for (size_t i = 0; i < 2; i++) {
        size_t length = (size_t)(file_base_name(paths[i]) - paths[i]);
        cleanup_free char *folder = length ? strndup(paths[i], length) : strdup(".");
        if (!folder || stat(folder, &folders[i]) < 0)
            return false;
    }
    return strcmp(file_base_name(one), file_base_name(other)) == 0 &&
           folders[0].st_dev == folders[1].st_dev && folders[0].st_ino == folders[1].st_ino;
}

int output_check_apart(const char *one, const char *other, struct failure *failure) {
    if (!one || !other || !(file_is_same(one, other) || would_be_same(one, other)))
        return 0;
    return failure_input(failure, NULL, 0, 0, "'%s' and '%s' are one file; expected two outputs", one, other);
}

static void print_report_json(const struct report *report, bool pretty) {
    cleanup(json_cleanup) cJSON *object = report_json(report);
    output_json(object, pretty);
}

void output_report(const struct report *report, bool json, bool verbose) {
    if (json)
        print_report_json(report, true);
    else
        report_print(report, stdout, verbose);
}

void output_report_line(const struct report *report) {
    print_report_json(report, false);
}

void output_bytes(const char *bytes, size_t length) {
    if (isatty(STDOUT_FILENO))
        shown_write(stdout, bytes, length);
    else
        fwrite(bytes, 1, length, stdout); /* main reports why it failed */
}

int output_table(const struct report_table *table, const char *output, struct failure *failure) {
    cleanup(text_clear) struct text text = {0};
    if (output)
        return report_table_write(table, output, failure);
    text_init(&text, SIZE_MAX / 4);
    int r = report_table_append_csv(table, &text, failure);
    if (r == 0)
        output_bytes(text.bytes, text.length);
    return r;
}

void output_json(const cJSON *value, bool pretty) {
    cleanup(text_clear) struct text text;
    text_init(&text, SIZE_MAX / 2);
    json_print(value, pretty, &text);
    puts(text.bytes);
}

int output_flush(void) {
    static int first; /* there is one standard output */
    if (fflush(stdout) != 0 && first == 0)
        first = -errno;
    return first;
}

bool output_is_broken_pipe(void) {
    struct pollfd state = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&state, 1, 0) > 0 && (state.revents & POLLERR);
}

/* Names from files and archives can hold anything: a control character must not reach the terminal. */
void output_failure(const struct failure *failure) {
    char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE + 4];
    failure_describe(failure, sentence, sizeof sentence);
    fputs("assay: ", stderr);
    shown_print(stderr, sentence, true);
    fputc('\n', stderr);
}

void output_line_draw(struct output_line *line, const char *format, ...) {
    static const int64_t quiet_ns = 2000000000, period_ns = 100000000;
    int64_t now_ns = clock_monotonic_ns();
    if (!isatty(STDERR_FILENO) || now_ns - line->began_ns < quiet_ns || now_ns - line->shown_ns < period_ns)
        return;
    va_list arguments;
    va_start(arguments, format);
    fputs("\r\033[K  ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    line->is_drawn = true;
    line->shown_ns = now_ns;
}

void output_line_end(struct output_line *line) {
    if (line->is_drawn)
        fputs("\r\033[K", stderr);
    line->is_drawn = false;
}
