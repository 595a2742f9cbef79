/* assay nodes: commands and files on many nodes at once, over ssh. */
#include "engine/command-line/nodes/nodes.h"

#include "engine/command-line/output.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int run_action(const struct verb_arguments *arguments, struct failure *failure);

static const struct verb_action actions[] = {
    {"run", 1, SIZE_MAX, "-- and a command",
     "--json --output --limit --input --env --repeat --apart --time-limit", nodes_run},
    {"put", 2, SIZE_MAX, "files, and where they go", NULL, run_action},
    {"get", 2, 2, "a path on the nodes, and a folder here", NULL, run_action},
    {"show", 0, 0, "none", "--json", run_action},
    {"clean", 0, 0, "none", "--dry-run --force", run_action},
    {"controls", 0, 0, "none", "--json --probes", run_action},
    {"restore", 0, 0, "none", "--json --dry-run --force", run_action},
    {"capture", 0, 0, "none", "--output", run_action},
    {0},
};

/* The actions that open nodes, print their answers and close them in the same way. */
static const struct frame {
    const char *name, *doing;
    bool leave_controls;
    int (*check)(const struct verb_arguments *arguments, struct failure *failure); /* before connecting */
    int (*run)(struct nodes *nodes, const struct verb_arguments *arguments, struct failure *failure);
} frames[] = {
    {"put", "put", false, nodes_put_check, nodes_put},
    {"get", "get", false, nodes_get_check, nodes_get},
    {"show", "looking", false, NULL, nodes_show},
    {"clean", "cleaning", false, NULL, nodes_clean},
    {"controls", "looking", true, NULL, nodes_controls},
    /* Our own agents are not to restore by themselves: what the tool does is reported, and nothing else is
     * done. */
    {"restore", "restoring", true, NULL, nodes_restore},
    {"capture", "capturing", true, nodes_capture_check, nodes_capture},
};

/* ---- answers */

static const char **names_of(const struct nodes *nodes) {
    size_t count = node_group_count(nodes->group);
    const char **names = xcalloc(count + 1, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = node_group_name(nodes->group, i);
    return names;
}

char *nodes_fold(const struct nodes *nodes, const size_t *numbers, size_t count) {
    cleanup_free const char **names = xcalloc(count + 1, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = node_group_name(nodes->group, numbers[i]);
    struct text text;
    text_init(&text, (size_t)HOST_LIST_MAX * (HOST_BYTES_MAX + 1));
    host_list_fold(names, count, &text);
    return text_take(&text);
}

void nodes_report_sections(struct nodes *nodes) {
    size_t count = node_group_count(nodes->group);
    nodes->sections = xcalloc(count + 1, sizeof *nodes->sections);
    for (size_t i = 0; i < count; i++) {
        nodes->sections[i] = report_section(nodes->answers, "node", NULL, true);
        report_text(nodes->sections[i], "node", NULL, node_group_name(nodes->group, i), true);
    }
}

void nodes_report_known(struct nodes *nodes) {
    size_t count = node_group_count(nodes->group), known = 0;
    cleanup_free size_t *numbers = xcalloc(count + 1, sizeof *numbers);
    nodes_report_sections(nodes);
    for (size_t i = 0; i < count; i++) {
        bool is_known = nodes->failures[i].code == 0;
        report_boolean(nodes->sections[i], "known", NULL, is_known, true);
        numbers[known] = i;
        known += is_known;
    }
    cleanup_free char *names = nodes_fold(nodes, numbers, known), *line = xformat("%s   (%zu)", names, known);
    report_text(nodes->report->root, NULL, known == 1 ? "node" : "nodes", known == 1 ? names : line, false);
}

void nodes_add_failures(struct nodes *nodes, const struct failure *failures) {
    for (size_t i = 0; failures && i < node_group_count(nodes->group); i++)
        if (nodes->failures[i].code == 0)
            nodes->failures[i] = failures[i];
}

size_t nodes_count_good(const struct nodes *nodes) {
    size_t good = 0;
    for (size_t i = 0; i < node_group_count(nodes->group); i++)
        good += nodes->failures[i].code == 0;
    return good;
}

static void print_answers(const struct nodes *nodes, bool json) {
    cleanup_free const char **names = names_of(nodes);
    for (size_t i = 0; nodes->sections && i < node_group_count(nodes->group); i++)
        if (nodes->failures[i].code < 0)
            report_text(nodes->sections[i], "failure", NULL, nodes->failures[i].text, true);
    if (!json)
        report_fold(nodes->report->root, nodes->answers, names);
    output_report(nodes->report, json, false);
}

/* ---- the actions */

/* Merges the nodes' failures into one of kind FAILURE_SYSTEM, that is exit code 1; 0: no node has failed. */
static int merge_failures(const struct nodes *nodes, const char *what, struct failure *failure) {
    int r = nodes->failures ? node_failures_merge(nodes->group, nodes->failures, what, failure) : 0;
    if (r < 0 && failure->kind != FAILURE_INTERRUPTED)
        failure->kind = FAILURE_SYSTEM;
    return r;
}

/* Runs the action and prints the answers, also when it failed as a whole: what was done before may be worth
 * knowing. */
static int run_and_report(const struct frame *frame, struct nodes *nodes,
                          const struct verb_arguments *arguments, struct failure *failure) {
    nodes->report = report_new();
    nodes->answers = report_list(nodes->report->root, "nodes");
    nodes_doing(nodes, frame->doing);
    int r = frame->run(nodes, arguments, failure);
    nodes_doing(nodes, NULL);
    /* Printed also when the action as a whole failed: nodes may have done a part of it. */
    print_answers(nodes, verb_switch(arguments, "--json"));
    return r < 0 ? r : merge_failures(nodes, frame->doing, failure);
}

/* Runs the action that the first operand names: checks its arguments, connects, runs it, leaves. */
static int run_action(const struct verb_arguments *arguments, struct failure *failure) {
    const struct frame *frame = frames;
    while (strcmp(frame->name, arguments->operands[0]) != 0)
        frame++;
    int r = frame->check ? frame->check(arguments, failure) : 0;
    if (r < 0)
        return r;
    struct nodes nodes = {0};
    r = nodes_open(&nodes, arguments, frame->leave_controls, failure);
    if (r == 0)
        r = run_and_report(frame, &nodes, arguments, failure);
    return nodes_close(&nodes, r, failure);
}

int command_nodes(const struct verb_arguments *arguments, struct failure *failure) {
    return verb_run_action(arguments, actions, arguments->operands[0], failure);
}
