/*
 * --controls shows what can be set here and how it stands; --snapshot-controls keeps on the machine what it
 * holds before anything is set; --set-controls sets (set.c); --restore-controls puts back (restore.c).
 */
#include "engine/agent/controls/tools.h"

#include "engine/agent/controls/restore.h"
#include "engine/agent/serve/tool.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { VALUE_MAX_BYTES = 256 };

/* ---- arguments */

enum { /* which a tool takes besides --root */
       TAKES_NAMES = 1,
       TAKES_ABANDONED = 2,
       TAKES_VALUES = 4,
};

static bool complain(const char *sentence, const char *about) {
    fprintf(stderr, "assay-agent: %s: '%.128s'\n", sentence, about);
    return false;
}

static bool take_value(const char *argument, struct control_arguments *ret) {
    const char *equal = strchr(argument, '=');
    char name[64];
    if (!equal || (size_t)(equal - argument) >= sizeof name)
        return complain("expected NAME=VALUE", argument);
    snprintf(name, sizeof name, "%.*s", (int)(equal - argument), argument);
    enum control_index index = control_find(name);
    if (index == CONTROL_COUNT)
        return complain("there is no such control", name);
    if (ret->asked[index])
        return complain("a control is given twice", name);
    if (equal[1] == '\0' || strlen(equal + 1) > VALUE_MAX_BYTES)
        return complain("a value has 1 to 256 bytes", argument);
    ret->asked[index] = equal + 1;
    return true;
}

/* False after a sentence on stderr. */
static bool take(int count, char **arguments, unsigned takes, struct control_arguments *ret) {
    bool any = false;
    for (int i = 0; i < count; i++) {
        const char *name = arguments[i];
        const char **value = strcmp(name, "--root") == 0                             ? &ret->root
                             : takes & TAKES_NAMES && strcmp(name, "--session") == 0 ? &ret->session
                             : takes & TAKES_NAMES && strcmp(name, "--label") == 0   ? &ret->label
                                                                                     : NULL;
        if (value && i + 1 == count)
            return complain("an option lacks its value", name);
        if (value)
            *value = arguments[++i];
        else if (takes & TAKES_ABANDONED && strcmp(name, "--abandoned") == 0)
            ret->abandoned = true;
        else if (!(takes & TAKES_VALUES) || name[0] == '-')
            return complain("unknown argument", name);
        else if (!take_value(name, ret))
            return false;
        else
            any = true;
    }
    if (ret->session && (!ret->session[0] || !snapshot_is_session(ret->session)))
        return complain("a session has 16 hexadecimal digits", ret->session);
    if (ret->label && !snapshot_is_label(ret->label))
        return complain("a label is one word of at most 128 bytes", ret->label);
    return !(takes & TAKES_VALUES) || any || complain("nothing is to be set; expected NAME=VALUE", "");
}

static int work_on_machine(const struct control_arguments *given, enum store_use use, control_work *work,
                           struct lines *lines, struct failure *failure) {
    cleanup(machine_close) struct machine machine = {.root = -1};
    struct snapshot_store store;
    int r = machine_open(given->root, &machine, failure);
    if (r < 0)
        return r;
    r = store_open(&machine, use, &store, failure);
    if (r == 0) {
        r = work(&store, &machine, given, lines, failure);
        store_close(&store);
        return r;
    }
    if (r == -ENOENT && use != STORE_MAKE)
        return work(NULL, &machine, given, lines, failure);
    /* What can be shown without a store is shown; then why it cannot be used. */
    if (use == STORE_LOOK)
        (void)work(NULL, &machine, given, lines, NULL);
    return r;
}

static int run(int count, char **arguments, unsigned takes, enum store_use use, control_work *work) {
    struct control_arguments given = {0};
    struct failure failure = {0};
    cleanup(lines_clear) struct lines lines;
    lines_init(&lines, LINES_MAX_BYTES);
    if (!take(count, arguments, takes, &given))
        return 2;
    int r = work_on_machine(&given, use, work, &lines, &failure);
    int written = lines_write(&lines, STDOUT_FILENO);
    if (r < 0 && failure.text[0])
        fprintf(stderr, "assay-agent: %s\n", failure.text);
    else if (written < 0)
        fprintf(stderr, "assay-agent: cannot write to stdout: %s\n", strerror(-written));
    return r < 0 || written < 0;
}

/* ---- --controls */

static void show_machine(const struct layout *layout, struct lines *lines) {
    char boot[64], driver[64] = "", base[NUMBER_TEXT_SIZE] = "", max[NUMBER_TEXT_SIZE] = "";
    uint64_t base_khz = 0, max_khz = 0;
    (void)layout_value(layout, "proc/sys/kernel/random", "boot_id", boot, sizeof boot);
    for (size_t i = 0; i < layout->policy_count; i++) {
        const struct policy *policy = &layout->policies[i];
        uint64_t khz = layout_number(layout, policy->folder, "cpuinfo_max_freq");
        max_khz = khz > max_khz ? khz : max_khz;
        khz = layout_base_khz(layout, policy);
        base_khz = khz > base_khz ? khz : base_khz;
        if (i == 0)
            (void)layout_value(layout, policy->folder, "scaling_driver", driver, sizeof driver);
    }
    if (base_khz)
        number_format_uint64(base_khz * 1000, base);
    if (max_khz)
        number_format_uint64(max_khz * 1000, max);
    lines_put(lines, "machine", boot, driver, base, max, NULL);
}

static int show(struct snapshot_store *store, const struct machine *machine,
                const struct control_arguments *given, struct lines *lines, struct failure *failure) {
    (void)given;
    cleanup(layout_clear) struct layout layout = {0};
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    if (layout_read(machine, &layout) < 0)
        return failure_memory(failure);
    for (enum control_index index = 0; index < CONTROL_COUNT; index++) {
        const struct control *control = control_at(index);
        cleanup(control_look_clear) struct control_look look;
        if (control_look_at(control, &layout, &look) < 0)
            return failure_memory(failure);
        lines_put(lines, "control", control->name, control_access_name(look.access), look.value.bytes,
                  look.possible.bytes, look.driver, look.why, NULL);
    }
    show_machine(&layout, lines);
    int r = store ? store_load(store, &snapshot, failure) : -ENOENT;
    if (r == 0)
        snapshot_print_held(&snapshot, lines);
    return r == -ENOENT ? 0 : r; /* one that cannot be used is a failure */
}

int tool_controls(int count, char **arguments) {
    return run(count, arguments, 0, STORE_LOOK, show);
}

/* ---- --snapshot-controls */

/* What lies there already: 1 if it is our parent's, and is printed again; 0 if nothing is in the way now. */
static int take_present(struct snapshot_store *store, const struct owner *parent, struct lines *lines,
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
        return failure_set(failure, -EBUSY, "another agent that is alive has set controls of this machine");
    }
    struct restored restored;
    r = restore_snapshot(store, &snapshot, lines, &restored, failure);
    if (r < 0)
        text_reset(&lines->text); /* nothing is kept: whoever reads must not take it for done */
    return r;
}

static int keep(struct snapshot_store *store, const struct machine *machine,
                const struct control_arguments *given, struct lines *lines, struct failure *failure) {
    cleanup(layout_clear) struct layout layout = {0};
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    struct owner parent;
    if (owner_find(getppid(), &parent) < 0)
        return failure_set(failure, -ESRCH, "the process that started this has ended meanwhile");
    int r = take_present(store, &parent, lines, failure);
    if (r != 0)
        return r;
    if (layout_read(machine, &layout) < 0 || snapshot_take(&layout, &snapshot) < 0)
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
    return run(count, arguments, TAKES_NAMES, STORE_MAKE, keep);
}

/* ---- --set-controls and --restore-controls */

int tool_set_controls(int count, char **arguments) {
    return run(count, arguments, TAKES_VALUES, STORE_USE, control_set);
}

static int restore(struct snapshot_store *store, const struct machine *machine,
                   const struct control_arguments *given, struct lines *lines, struct failure *failure) {
    (void)machine;
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    int r = store ? store_load(store, &snapshot, failure) : -ENOENT;
    if (r == -ENOENT)
        lines_put(lines, "nothing", "there is no snapshot here", NULL);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (given->abandoned && owner_is_alive(&snapshot.owner)) {
        snapshot_print_held(&snapshot, lines);
        return failure_set(failure, -EBUSY, "the snapshot belongs to an agent that is alive");
    }
    struct restored restored;
    return restore_snapshot(store, &snapshot, lines, &restored, failure);
}

int tool_restore_controls(int count, char **arguments) {
    return run(count, arguments, TAKES_ABANDONED, STORE_USE, restore);
}
