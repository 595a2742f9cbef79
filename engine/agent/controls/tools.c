/*
 * --controls prints the controls and their status; --snapshot-controls saves the content of all their files
 * on the machine before any is set; --set-controls sets controls (set.c); --restore-controls restores them
 * (restore.c).
 */
#include "engine/agent/controls/tools.h"

#include "engine/agent/controls/elevation.h"
#include "engine/agent/controls/restore.h"
#include "engine/agent/machine/tool.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { VALUE_MAX_BYTES = 256 };

/* Options of all of these tools. */
#define MACHINE_OPTION(given)                                                                                \
    { "--root", .text = &(given).root }
#define OWNER_OPTION(given)                                                                                  \
    { "--owner", .number = &(given).owner, .min = 1, .max = INT32_MAX }

/* The engine waits 120 s for a tool. */
#define DAEMONS_NS INT64_C(100000000000)

/* ---- arguments */

/* Parses an argument NAME=VALUE into RET. 0, or 2 after a message. */
static int read_value(char *argument, struct control_arguments *ret) {
    char *equal = strchr(argument, '=');
    if (!equal)
        return tool_complain(2, "expected NAME=VALUE: '%.128s'", argument);
    if (equal[1] == '\0' || strlen(equal + 1) > VALUE_MAX_BYTES)
        return tool_complain(2, "a value has 1 to 256 bytes: '%.128s'", argument);
    *equal = '\0';
    enum control_index index = control_find(argument);
    if (index == CONTROL_COUNT)
        return tool_complain(2, "there is no control '%.128s'; 'assay-agent --controls' lists them",
                             argument);
    if (ret->asked[index])
        return tool_complain(2, "a control is given twice: '%.128s'", argument);
    ret->asked[index] = equal + 1;
    return 0;
}

/* Refuses --owner with --root: a tool run as root works on the real machine only, because its options come
 * from a user who may have been allowed this tool only. */
static int check_owner(const struct control_arguments *given) {
    if (given->owner && given->root)
        return tool_complain(2, "--owner excludes --root");
    if (given->owner)
        tool_pass_root(NULL);
    return 0;
}

/* Reads options and up to WORDS_MAX words NAME=VALUE. Returns 0, or 2 after a sentence on stderr. */
static int parse(int count, char **arguments, const struct tool_option *options, int words_max,
                 struct control_arguments *ret) {
    int words = tool_parse(count, arguments, options, words_max), r = words < 0 ? 2 : 0;
    for (int i = 0; i < words && r == 0; i++)
        r = read_value(arguments[i], ret);
    if (r == 0 && ret->session && (!ret->session[0] || !snapshot_is_session(ret->session)))
        r = tool_complain(2, "a session has 16 hexadecimal digits: '%.128s'", ret->session);
    if (r == 0 && ret->label && !snapshot_is_label(ret->label))
        r = tool_complain(2, "a label is one word of at most 128 bytes: '%.128s'", ret->label);
    if (r == 0)
        r = check_owner(ret);
    if (!ret->owner)
        ret->owner = getppid();
    return r;
}

/* Opens the store for USE and calls WORK with it, or with NULL where there is no snapshot. */
static int work_on_store(const struct machine *machine, const struct control_arguments *given,
                         enum store_use use, control_work *work, struct lines *lines,
                         struct failure *failure) {
    struct snapshot_store store;
    int r = store_open(machine, use, &store, failure);
    if (r == 0) {
        r = work(&store, machine, given, lines, failure);
        store_close(&store);
    } else if (r == -ENOENT && use != STORE_MAKE) {
        r = work(NULL, machine, given, lines, failure);
    } else if (use == STORE_READ) {
        /* The controls are printed without a store; then the failure tells why it cannot be used. */
        (void)work(NULL, machine, given, lines, NULL);
    }
    return r;
}

/* Runs the WORK of a tool on the machine and its store, and prints its lines. Returns an exit status. */
static int run(const struct control_arguments *given, enum store_use use, control_work *work) {
    struct failure failure = {0};
    cleanup(machine_close) struct machine machine = {.root = -1};
    cleanup(lines_clear) struct lines lines;
    lines_init(&lines, LINES_MAX_BYTES);
    daemons_limit(DAEMONS_NS);
    if (tool_open_machine(given->root, &machine) != 0)
        return 1;
    int r = work_on_store(&machine, given, use, work, &lines, &failure);
    int written = lines_write(&lines, STDOUT_FILENO);
    if (r < 0 && failure.text[0])
        return tool_complain(1, "%s", failure.text);
    if (r >= 0 && written < 0)
        return tool_complain(1, "cannot write to stdout: %s", strerror(-written));
    return r < 0;
}

/* ---- --controls */

/* Prints the line `machine`: boot, frequency driver, highest base and maximum frequency. */
static void show_machine(const struct layout *layout, struct lines *lines) {
    char boot[64], driver[64] = "";
    uint64_t base_khz = 0, max_khz = 0;
    (void)layout_value(layout, "proc/sys/kernel/random", "boot_id", boot, sizeof boot);
    for (size_t i = 0; i < layout->policy_count; i++) {
        const struct layout_place *policy = &layout->policies[i];
        uint64_t khz = layout_number(layout, policy->folder, "cpuinfo_max_freq");
        max_khz = khz > max_khz ? khz : max_khz;
        khz = layout_base_khz(layout, policy);
        base_khz = khz > base_khz ? khz : base_khz;
    }
    if (layout->policy_count)
        (void)layout_value(layout, layout->policies[0].folder, "scaling_driver", driver, sizeof driver);
    lines_put(lines, "machine", boot, driver, lines_hertz(base_khz), lines_hertz(max_khz), NULL);
}

/* The work of --controls: prints all controls, the machine, and the snapshot's owner. */
static int show_controls(struct snapshot_store *store, const struct machine *machine,
                         const struct control_arguments *given, struct lines *lines,
                         struct failure *failure) {
    (void)given;
    cleanup(layout_clear) struct layout layout = {0};
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    if (layout_read(machine, &layout) < 0)
        return failure_memory(failure);
    for (enum control_index index = 0; index < CONTROL_COUNT; index++) {
        const struct control *control = control_at(index);
        cleanup(control_status_clear) struct control_status current;
        if (control_read_status(control, &layout, &current) < 0)
            return failure_memory(failure);
        lines_put(lines, "control", control->name, control_access_name(current.access), current.value.bytes,
                  current.possible.bytes, current.driver, current.why, NULL);
    }
    show_machine(&layout, lines);
    int r = store ? store_load(store, &snapshot, failure) : -ENOENT;
    if (r == 0)
        snapshot_print_held(&snapshot, lines);
    return r == -ENOENT ? 0 : r; /* a snapshot that cannot be used is a failure */
}

int tool_controls(int count, char **arguments) {
    struct control_arguments given = {0};
    const struct tool_option options[] = {MACHINE_OPTION(given), OWNER_OPTION(given), {NULL}};
    if (elevation_is_due())
        return elevation_run_tool("--controls", count, arguments);
    int r = parse(count, arguments, options, 0, &given);
    return r ? r : run(&given, STORE_READ, show_controls);
}

/* ---- --snapshot-controls */

/* Handles a snapshot that is in the store already. Returns 1 if it is our parent's, which is printed again; 0
 * if there is none now, also after that of a process that has ended was restored; -EBUSY if its owner still
 * runs. */
static int handle_existing(struct snapshot_store *store, const struct owner *parent, struct lines *lines,
                           struct failure *failure) {
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    int r = store_load(store, &snapshot, failure);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (owner_is(parent, &snapshot.owner)) {
        snapshot_print(&snapshot, store->path, lines);
        return 1;
    }
    if (owner_is_alive(&snapshot.owner)) {
        snapshot_print_held(&snapshot, lines);
        return failure_set(failure, -EBUSY, "another running agent has set controls of this machine");
    }
    struct restored restored;
    r = restore_snapshot(store, &snapshot, lines, &restored, failure);
    if (r < 0)
        text_reset(&lines->text); /* the reader must not mistake these lines for a saved snapshot */
    return r;
}

/* The work of --snapshot-controls: reads all files of all controls and saves them in the store. */
static int make_snapshot(struct snapshot_store *store, const struct machine *machine,
                         const struct control_arguments *given, struct lines *lines,
                         struct failure *failure) {
    cleanup(layout_clear) struct layout layout = {0};
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    struct owner parent;
    if (owner_find((pid_t)given->owner, &parent) < 0)
        return failure_set(failure, -ESRCH, "the process that started this has ended meanwhile");
    int r = handle_existing(store, &parent, lines, failure);
    if (r != 0)
        return r;
    if (layout_read(machine, &layout) < 0 || snapshot_read_files(&layout, &snapshot) < 0)
        return failure_memory(failure);
    snapshot.owner = parent;
    snapshot.wall_ns = clock_wall_ns();
    snprintf(snapshot.boot, sizeof snapshot.boot, "%s", store->boot);
    snprintf(snapshot.session, sizeof snapshot.session, "%s", given->session ? given->session : "");
    snprintf(snapshot.label, sizeof snapshot.label, "%s", given->label ? given->label : "");
    r = store_save(store, &snapshot, failure);
    if (r == 0)
        snapshot_print(&snapshot, store->path, lines);
    return r;
}

int tool_snapshot_controls(int count, char **arguments) {
    struct control_arguments given = {0};
    const struct tool_option options[] = {MACHINE_OPTION(given),
                                          OWNER_OPTION(given),
                                          {"--session", .text = &given.session},
                                          {"--label", .text = &given.label},
                                          {NULL}};
    if (elevation_is_due())
        return elevation_run_tool("--snapshot-controls", count, arguments);
    int r = parse(count, arguments, options, 0, &given);
    return r ? r : run(&given, STORE_MAKE, make_snapshot);
}

/* ---- --set-controls and --restore-controls */

int tool_set_controls(int count, char **arguments) {
    struct control_arguments given = {0};
    const struct tool_option options[] = {MACHINE_OPTION(given), OWNER_OPTION(given), {NULL}};
    if (elevation_is_due())
        return elevation_run_tool("--set-controls", count, arguments);
    int r = parse(count, arguments, options, CONTROL_COUNT + 1, &given);
    for (unsigned index = 0; index < CONTROL_COUNT && r == 0; index++)
        if (given.asked[index])
            return run(&given, STORE_LOCK, control_set);
    return r ? r : tool_complain(2, "no control is named; expected NAME=VALUE");
}

/* The work of --restore-controls. With --abandoned a snapshot whose owner still runs is refused. */
static int restore_controls(struct snapshot_store *store, const struct machine *machine,
                            const struct control_arguments *given, struct lines *lines,
                            struct failure *failure) {
    (void)machine;
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    int r = store ? store_load(store, &snapshot, failure) : -ENOENT;
    if (r == -ENOENT)
        lines_put(lines, "nothing", "no control was changed: this node has no snapshot", NULL);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (given->abandoned && owner_is_alive(&snapshot.owner)) {
        snapshot_print_held(&snapshot, lines);
        return failure_set(failure, -EBUSY, "the snapshot belongs to an agent that still runs");
    }
    struct restored restored;
    return restore_snapshot(store, &snapshot, lines, &restored, failure);
}

/* Restores as an agent does when it starts, and prints what was restored. */
static int restore_automatically(const char *root) {
    struct machine machine;
    char note[FAILURE_TEXT_SIZE];
    if (tool_open_machine(root, &machine) != 0)
        return 1;
    restore_abandoned(&machine, note, sizeof note);
    machine_close(&machine);
    return note[0] ? tool_complain(0, "%s", note) : 0;
}

int tool_restore_controls(int count, char **arguments) {
    struct control_arguments given = {0};
    const struct tool_option options[] = {MACHINE_OPTION(given),
                                          OWNER_OPTION(given),
                                          {"--abandoned", .flag = &given.abandoned},
                                          {"--unasked", .flag = &given.unasked},
                                          {NULL}};
    if (elevation_is_due())
        return elevation_run_tool("--restore-controls", count, arguments);
    int r = parse(count, arguments, options, 0, &given);
    return r               ? r
           : given.unasked ? restore_automatically(given.root)
                           : run(&given, STORE_LOCK, restore_controls);
}
