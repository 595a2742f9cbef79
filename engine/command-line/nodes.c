/* assay nodes: commands and files on many nodes at once, over ssh. */
#include "engine/command-line/nodes.h"

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

/* What those do that share opening, answers and closing. */
static const struct frame {
    const char *name, *doing;
    bool leave_controls;
    int (*check)(const struct verb_arguments *arguments, struct failure *failure); /* before connecting */
    int (*act)(struct nodes *nodes, const struct verb_arguments *arguments, struct failure *failure);
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

static const struct verb_option options[] = {
    {"--nodes", 'w', "LIST",
     "the nodes: names or [user@]name[:port], separated by commas, with ranges as in dahu-[1-32,40]; @FILE "
     "reads them from a file, any number a line. May be given several times. Without it, the variable "
     "ASSAY_NODES.",
     true},
    {"--run", 0, "RUN",
     "the nodes of this run, a folder, in place of LIST: those that 'assay reserve' has reserved for it, "
     "reached as its campaign says",
     false},
    {"--user", 'l', "USER", "the user on the nodes, where LIST does not say", false},
    {"--port", 'p', "PORT", "the port of their ssh servers, where LIST does not say", false},
    {"--identity", 'i', "FILE", "a private key to try before all others; may be given several times", true},
    {"--jump", 'J', "LIST",
     "gateways, [user@]host[:port] separated by commas, the first first; 'none' for none", false},
    {"--ssh-config", 'F', "FILE",
     "read this in place of ~/.ssh/config and /etc/ssh/ssh_config; 'none' for none", false},
    {"--known-hosts", 0, "FILE", "the host keys that are known, in place of ~/.ssh/known_hosts", false},
    {"--accept-new", 0, "FILE",
     "accept unknown host keys, record them in FILE, and expect them from then on. Without it, a node whose "
     "key is not known is refused; one whose key has changed always is.",
     false},
    {"--window", 0, "N", "connections that are being set up at once; default: 64", false},
    {"--timeout", 0, "TIME", "for each step of connecting, such as 10s; default: 20s", false},
    {"--lease", 0, "TIME",
     "an agent that has not heard from here for so long ends its commands and leaves; default: 5min", false},
    {"--agent", 0, "KIND",
     "auto: the binary that comes with assay, or where that does not run one built there from source; "
     "binary; source",
     false},
    {"--sudo", 0, "COMMAND",
     "controls, restore: done as root by this command, such as 'sudo -n', which yes stands for", false},
    {"--workspace", 0, "FOLDER",
     "where on the nodes the run directory is made, which is gone afterwards; default: TMPDIR, /tmp, "
     "/var/tmp, ~/.cache/assay or /dev/shm, the first that will do",
     false},
    {"--json", 0, NULL,
     "run: a JSON object a node, one a line, and one about all; show, controls, restore: one JSON object",
     false},
    {"--quiet", 'q', NULL, "no progress; run: nothing but what failed", false},
    {"--output", 'o', "FOLDER",
     "run: all that each node wrote, as FOLDER/NODE.out and FOLDER/NODE.err; capture: FOLDER/NODE.tar",
     false},
    {"--limit", 0, "SIZE",
     "run: of each of stdout and stderr at most so much leaves a node, such as 10MB; the rest is counted",
     false},
    {"--input", 0, "FILE", "run: the standard input of every node's command; '-' is this one's", false},
    {"--env", 'e', "NAME=VALUE", "run: a variable of the command; may be given several times", true},
    {"--time-limit", 0, "TIME", "run: a command that takes longer is ended", false},
    {"--repeat", 0, "N",
     "run: so often, one after the other, on the same connections, and print how long it took", false},
    {"--apart", 0, NULL, "run: print each node's answer, not equal ones together", false},
    {"--probes", 0, NULL, "controls: what can be sampled, too", false},
    {"--dry-run", 'n', NULL, "clean, restore: only list what is left over", false},
    {"--force", 0, NULL,
     "clean: end agents too that somebody is connected to, that have been alone for less than 30 s, or that "
     "do not answer; restore: put back too what an agent that is there has changed",
     false},
    {NULL, 0, NULL, NULL, false},
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
        report_truth(nodes->sections[i], "known", NULL, is_known, true);
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
    if (json) {
        for (size_t i = 0; nodes->sections && i < node_group_count(nodes->group); i++)
            if (nodes->failures[i].code < 0)
                report_text(nodes->sections[i], "failure", NULL, nodes->failures[i].text, true);
        cleanup(json_cleanup) cJSON *object = report_json(nodes->report);
        output_json(object, true);
        return;
    }
    report_fold(nodes->report->root, nodes->answers, names);
    report_print(nodes->report, stdout, false);
}

/* ---- the actions */

/* One failure about all nodes that have one, FAILURE_SYSTEM and so exit code 1; 0 if there is none. */
static int merge_failures(const struct nodes *nodes, const char *what, struct failure *failure) {
    int r = nodes->failures ? node_failures_merge(nodes->group, nodes->failures, what, failure) : 0;
    if (r < 0 && failure->kind != FAILURE_INTERRUPTED)
        failure->kind = FAILURE_SYSTEM;
    return r;
}

static int act(const struct frame *frame, struct nodes *nodes, const struct verb_arguments *arguments,
               struct failure *failure) {
    nodes->report = report_new();
    nodes->answers = report_list(nodes->report->root, "nodes");
    nodes_doing(nodes, frame->doing);
    int r = frame->act(nodes, arguments, failure);
    nodes_doing(nodes, NULL);
    /* What was done before a failure of all is worth to be known too. */
    print_answers(nodes, verb_switch(arguments, "--json"));
    return r < 0 ? r : merge_failures(nodes, frame->doing, failure);
}

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
        r = act(frame, &nodes, arguments, failure);
    return nodes_close(&nodes, r, failure);
}

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    return verb_act(arguments, actions, arguments->operands[0], failure);
}

const struct verb verb_nodes = {
    .name = "nodes",
    .summary = "commands and files on many nodes at once",
    .synopsis =
        "assay nodes run|put|get|show|clean|controls|restore|capture -w LIST|--run RUN [OPTIONS] [OPERANDS]",
    .description =
        "Reaches all nodes of the list over ssh, as the user's own configuration says (aliases, gateways, "
        "keys, known hosts), and puts an agent on each, which runs commands for this one and leaves nothing "
        "behind but its own file in ~/.cache/assay. A connection that breaks is found again without the "
        "command noticing. A node that cannot be reached keeps no other from answering; it is named at the "
        "end, and the exit code is 1.\n\n"
        "With --run the nodes are those that a run has: of 'assay reserve', or of an engine that works on "
        "it. They are reached as its campaign says, by ssh or by the launcher of its scheduler:\n\n"
        "    assay nodes show --run runs/hpl-20261122T120000-1a2b3c4d\n\n"
        "run runs a command on each, and prints equal answers once. The command's words reach it as they "
        "are, never through a shell; a shell has to be asked for. The exit code is 3 when it failed on some "
        "node:\n\n"
        "    assay nodes run -w 'dahu-[1-32].grenoble' -- uname -r\n"
        "    assay nodes run -w @hosts -o outputs -- sh -c 'lscpu | grep MHz'\n\n"
        "put copies files and folders to an absolute path on each, and compares the SHA-256 of every file "
        "there. A path that ends in '/', or any when there are several files, is a folder that they go into; "
        "it is made if it is not there:\n\n"
        "    assay nodes put -w @hosts kernel.so /tmp/kernel.so\n"
        "    assay nodes put -w @hosts inputs table.csv /scratch/mine/\n\n"
        "get fetches an absolute path, a file or a folder, of each as FOLDER/NODE/NAME, compared in the same "
        "way; links are left out:\n\n"
        "    assay nodes get -w @hosts /var/log/mcelog logs\n\n"
        "show says what the nodes are: what is common to most is printed once, and who differs is named:\n\n"
        "    assay nodes show -w @hosts\n\n"
        "clean finds agents that are left over from runs that were cut off, and ends those that nobody has "
        "been connected to for more than 30 s: one that is alone for a moment may have an engine that looks "
        "for it. They would leave by themselves when their lease is over:\n\n"
        "    assay nodes clean -w @hosts --dry-run\n\n"
        "controls says what a campaign can set on the nodes: how it stands, what it may be, by which driver, "
        "or why it cannot be set; and who has the controls now. What is equal is printed once. It changes "
        "nothing:\n\n"
        "    assay nodes controls -w @hosts --probes\n\n"
        "restore puts back what a run has changed whose agent is gone, killed together with its guardian: "
        "the node kept what there was. Every agent does that when it starts, and show reports it; those of "
        "controls, restore and capture leave all as it is, so that it can be seen. After a restart of the "
        "node there is nothing to do. Files that do not take what they held are named, and so are nodes that "
        "an agent which is there holds: they are left alone without --force. In both cases the exit code is "
        "1; with --dry-run, which only looks, it is 0:\n\n"
        "    assay nodes restore -w @hosts --dry-run\n\n"
        "capture fetches the files of /sys and /proc in which each node shows itself, as FOLDER/NODE.tar. "
        "Such a capture, unpacked, stands for the node wherever the agent is asked about one, with no node "
        "at hand:\n\n"
        "    assay nodes capture -w @hosts -o captures\n"
        "    mkdir dahu-3 && tar -xf captures/dahu-3.tar -C dahu-3\n"
        "    assay-agent --controls --root dahu-3\n",
    .options = options,
    .operands_least = 1,
    .operands_most = SIZE_MAX,
    .run = run,
};
