/* assay status: how one run stands; and assay watch --page, which shows it again and again. */
#include "engine/command-line/status/status.h"
#include "engine/command-line/output.h"
#include "engine/command-line/status/run-list.h"
#include "engine/command-line/verb.h"
#include "engine/run/record/status-report.h"

#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WAIT_LEAST_MS = 1000,
    WAIT_SHARE = 20, /* a long journal is read so much more rarely: the machine may be measuring itself */
};

/* The page, or JSON, on one line where others follow; the caller frees. */
static char *describe(const struct run_status *status, bool json, bool follow) {
    struct report *page = status_describe(status);
    char *words = NULL;
    if (json) {
        cleanup(json_cleanup) cJSON *object = report_json(page);
        struct text text;
        text_init(&text, SIZE_MAX / 2);
        json_print(object, !follow, &text);
        text_append_character(&text, '\n');
        words = text_take(&text);
    } else {
        words = report_render(page, false);
    }
    report_free(page);
    return words;
}

/* Waits for MILLISECONDS; false when the reader has closed the output. */
static bool wait_for(int milliseconds) {
    struct pollfd output = {.fd = STDOUT_FILENO};
    return clock_poll(&output, milliseconds * INT64_C(1000000)) <= 0 ||
           !(output.revents & (POLLERR | POLLHUP | POLLNVAL));
}

/* On a terminal the page stays where it is; elsewhere what is new follows what was. */
static int print_page(const char *page, bool in_place) {
    if (in_place)
        fputs("\033[H\033[J", stdout);
    fputs(page, stdout);
    return output_flush();
}

/* In place of *STATUS. */
static int read_whole(const char *path, struct run_status **status, struct failure *failure) {
    run_status_free(take_pointer(*status));
    return run_status_read_whole(path, status, failure);
}

int status_watch(const char *path, bool json, struct failure *failure) {
    bool in_place = !json && isatty(STDOUT_FILENO);
    cleanup_free char *last = NULL;
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    for (bool first = true;; first = false) {
        int64_t begin = clock_monotonic_ns();
        int r = status && status->folder ? run_status_read_on(&status, failure) : 0;
        if (r == 0 &&
            (!status || !run_status_is_under_way(status))) /* only now is there an archive to be read */
            r = read_whole(path, &status, failure);
        if (r == 0)
            run_status_read_samples(status);
        int64_t took_ms = (clock_monotonic_ns() - begin) / 1000000;
        if (r < 0)
            return r;
        cleanup_free char *page = describe(status, json, true);
        bool is_new = first || strcmp(page, last) != 0;
        if (is_new && !first && !json && !in_place)
            putchar('\n');
        /* main says why standard output failed */
        if ((is_new && print_page(page, in_place) < 0) || !run_status_is_under_way(status))
            return 0;
        free(last);
        last = take_pointer(page);
        int64_t wait_ms = took_ms * WAIT_SHARE > WAIT_LEAST_MS ? took_ms * WAIT_SHARE : WAIT_LEAST_MS;
        if (!wait_for((int)wait_ms))
            return 0;
    }
}

int command_status(const struct verb_arguments *arguments, struct failure *failure) {
    bool json = verb_switch(arguments, "--json");
    cleanup_free char *newest = NULL;
    const char *path = arguments->operand_count ? arguments->operands[0] : NULL;
    int r = path ? 0 : run_list_newest("runs", &newest, failure);
    if (r < 0)
        return r;
    if (!path)
        path = newest;
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    r = run_status_read_whole(path, &status, failure);
    if (r < 0)
        return r;
    run_status_read_samples(status);
    cleanup_free char *page = describe(status, json, false);
    fputs(page, stdout);
    return 0;
}
