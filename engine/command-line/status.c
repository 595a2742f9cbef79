/* assay status: how one run stands. */
#include "engine/command-line/output.h"
#include "engine/command-line/run-list.h"
#include "engine/command-line/status-describe.h"
#include "engine/command-line/verb.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PAGE_BYTES_MAX = 64 << 20,
    WAIT_LEAST_MS = 1000,
    WAIT_SHARE = 20, /* a long journal is read so much more rarely: the machine may be measuring itself */
};

static int describe(const struct run_status *status, bool json, bool follow, struct text *ret,
                    struct failure *failure) {
    text_reset(ret);
    if (!json)
        return status_describe(status, ret) < 0 ? failure_memory(failure) : 0;
    cleanup(json_cleanup) cJSON *object = status_describe_json(status);
    if (!object || json_print(object, !follow, ret) < 0 || text_append_character(ret, '\n') < 0)
        return failure_memory(failure);
    return 0;
}

/* Waits for MILLISECONDS; false when nobody reads any more. */
static bool wait_for(int milliseconds) {
    struct pollfd output = {.fd = STDOUT_FILENO};
    return clock_poll(&output, milliseconds * INT64_C(1000000)) <= 0 ||
           !(output.revents & (POLLERR | POLLHUP | POLLNVAL));
}

/* On a terminal the page stays where it is; elsewhere what is new follows what was. */
static int print_page(const struct text *page, bool in_place) {
    if (in_place)
        fputs("\033[H\033[J", stdout);
    fputs(page->bytes, stdout);
    return output_flush();
}

static int follow(const char *path, bool json, struct failure *failure) {
    bool in_place = !json && isatty(STDOUT_FILENO);
    cleanup(text_clear) struct text page, last;
    text_init(&page, PAGE_BYTES_MAX);
    text_init(&last, PAGE_BYTES_MAX);
    for (bool first = true;; first = false) {
        cleanup(run_status_cleanup) struct run_status *status = NULL;
        int64_t begin = clock_monotonic_ns();
        int r = run_status_read(path, &status, failure);
        int64_t took_ms = (clock_monotonic_ns() - begin) / 1000000;
        if (r == 0)
            r = describe(status, json, true, &page, failure);
        if (r < 0)
            return r;
        bool is_new = first || strcmp(page.bytes, last.bytes) != 0;
        if (is_new && !first && !json && !in_place)
            putchar('\n');
        /* main tells why standard output failed */
        if ((is_new && print_page(&page, in_place) < 0) || status->condition != RUN_IS_RUNNING)
            return 0;
        struct text read = page;
        page = last;
        last = read;
        int64_t wait_ms = took_ms * WAIT_SHARE > WAIT_LEAST_MS ? took_ms * WAIT_SHARE : WAIT_LEAST_MS;
        if (!wait_for((int)wait_ms))
            return 0;
    }
}

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    bool json = verb_switch(arguments, "--json");
    cleanup_free char *newest = NULL;
    const char *path = arguments->operand_count ? arguments->operands[0] : NULL;
    int r = path ? 0 : run_list_newest("runs", &newest, failure);
    if (r < 0)
        return r;
    if (!path)
        path = newest;
    if (verb_switch(arguments, "--follow"))
        return follow(path, json, failure);
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    cleanup(text_clear) struct text page;
    text_init(&page, PAGE_BYTES_MAX);
    r = run_status_read(path, &status, failure);
    if (r == 0)
        r = describe(status, json, false, &page, failure);
    if (r == 0)
        fputs(page.bytes, stdout);
    return r;
}

static const struct verb_option options[] = {
    {"--follow", 'f', NULL, "shows it again whenever it changes, until the run ends", false},
    {"--json", 0, NULL, "prints one JSON object; with --follow one a line", false},
    {NULL, 0, NULL, NULL, false},
};

const struct verb verb_status = {
    .name = "status",
    .summary = "show how a run stands, and what to do next",
    .synopsis = "assay status [RUN] [--follow] [--json]",
    .description =
        "Shows a run from its folder, or from its archive when the folder is gone: while it runs, from any "
        "machine that sees the folder, after it died, and where it was copied to. Without RUN it is the one "
        "of "
        "runs/ that began last. Nothing is changed, and nothing but the run's own files is asked.\n\n"
        "A run is 'running' while the engine that works on it lives, and 'stopped' if that died before the "
        "run "
        "was sealed; else it is what its archive says: completed, failed, partial (it ended in good order, "
        "and "
        "units are missing) or interrupted. Units count once, however often they were tried. The "
        "time left is by the rate of the last minutes.\n\n"
        "The last line says what to do next.\n\n"
        "  assay status\n"
        "  assay status runs/dgemm-20261120T100203Z-d6a781f2 --follow\n"
        "  assay status --json",
    .options = options,
    .operands_least = 0,
    .operands_most = 1,
    .run = run,
};
