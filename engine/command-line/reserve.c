/* assay reserve: the nodes of a campaign, to be used by hand before it is measured. */
#include "engine/command-line/execution.h"
#include "engine/command-line/output.h"
#include "engine/command-line/status-describe.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/memory.h"

#include <stdlib.h>

static const struct verb_option options[] = {
    EXECUTION_OPTION_OUTPUT,
    EXECUTION_OPTION_SET,
    EXECUTION_OPTION_SEED,
    {"--json", 0, NULL, "prints events as JSON, one a line, and last what is reserved as one object", false},
    {"--quiet", 'q', NULL, "prints only what is reserved, and what went wrong", false},
    {NULL, 0, NULL, NULL, false},
};

static char *fold_nodes(const struct run_status *status) {
    cleanup_free const char **names = xcalloc(status->node_count + 1, sizeof *names);
    struct text text;
    text_init(&text, (size_t)HOST_LIST_MAX * (HOST_BYTES_MAX + 1));
    for (size_t i = 0; i < status->node_count; i++)
        names[i] = status->nodes[i]->name;
    host_list_fold(names, status->node_count, &text);
    return text_take(&text);
}

/* A command, with quotes where a shell needs them; the caller frees. */
static char *quote(const char *const *words) {
    struct text text;
    text_init(&text, 64 << 10);
    text_append_command(&text, words);
    return text_take(&text);
}

static struct report *describe(const struct run_status *status) {
    const struct run_history_reservation *held = &status->history.held;
    char until[CLOCK_TEXT_SIZE], words[CLOCK_TEXT_SIZE] = "";
    struct report *report = report_new();
    if (held->until_ns > 0)
        status_describe_time(clock_format(held->until_ns, until), words);
    cleanup_free char *nodes = fold_nodes(status);
    cleanup_free char *all = xformat("%s   (%zu)", nodes, status->node_count);
    cleanup_free char *job = xformat("%s, job %s", held->testbed, held->id);
    cleanup_free char *end = words[0] ? xformat("%s UTC", words) : NULL;
    cleanup_free char *show =
        quote((const char *const[]){"assay", "nodes", "show", "--run", status->folder, NULL});
    cleanup_free char *resume = quote((const char *const[]){"assay", "resume", status->folder, NULL});
    cleanup_free char *release = quote((const char *const[]){"assay", "release", status->folder, NULL});
    report_text(report->root, "run", NULL, status->folder, false);
    report_text(report->root, NULL, "reserved", job, false);
    report_text(report->root, "testbed", NULL, held->testbed, true);
    report_text(report->root, "id", NULL, held->id, true);
    report_text(report->root, NULL, "nodes", all, false);
    report_text(report->root, "nodes", NULL, nodes, true);
    report_text(report->root, NULL, "until", end, false);
    report_text(report->root, "until", NULL, words[0] ? until : NULL, true);
    report_text(report->root, NULL, "next", show, false);
    report_text(report->root, NULL, " ", resume, false);
    report_text(report->root, NULL, " ", release, false);
    return report;
}

static int reserve_nodes(const struct execution *execution, struct failure *failure) {
    cleanup_free char *folder = NULL;
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    int r = execution_reserve(execution, &folder, failure);
    if (r == 0)
        r = run_status_read(folder, &status, failure);
    if (r < 0)
        return r;
    cleanup(report_cleanup) struct report *report = describe(status);
    if (verb_switch(execution->arguments, "--json")) {
        cleanup(json_cleanup) cJSON *object = report_json(report);
        output_json(object, false);
    } else {
        report_print(report, stdout, false);
    }
    return 0;
}

static int reserve(const struct verb_arguments *arguments, struct failure *failure) {
    return execution_begin(arguments, reserve_nodes, failure);
}

const struct verb verb_reserve = {
    .name = "reserve",
    .summary = "reserve the nodes of a campaign, for use by hand",
    .synopsis = "assay reserve CAMPAIGN.yaml|ARCHIVE.zip [-o FOLDER] [--set NAME=VALUE]... [--seed SEED]",
    .description =
        "Makes the folder of a run of the campaign, reserves its nodes, waits until they are there, and "
        "prints "
        "them, when the reservation ends, and what can be done next. Nothing is measured, and nothing is "
        "set; "
        "the reservation stays when the command has ended. Ctrl-C while it waits gives back what was asked "
        "for.\n\n"
        "Then each step is a command: 'assay nodes' with --run does by hand, as often as it is wanted, what "
        "a run "
        "does by itself; 'assay resume' runs the campaign on these nodes, and gives them back at its end; "
        "'assay release' gives them back without. 'assay list --reservations' has what is still reserved.\n\n"
        "  assay reserve hpl.yaml\n"
        "  assay nodes show --run runs/hpl-20261122T120000-1a2b3c4d\n"
        "  assay nodes controls --run runs/hpl-20261122T120000-1a2b3c4d --probes\n"
        "  assay nodes run --run runs/hpl-20261122T120000-1a2b3c4d -- lscpu\n"
        "  assay resume runs/hpl-20261122T120000-1a2b3c4d\n"
        "  assay release runs/hpl-20261122T120000-1a2b3c4d",
    .options = options,
    .operands_least = 1,
    .operands_most = 1,
    .run = reserve,
};
