/* --set-controls: sets controls in their order; the snapshot has all files before they are written, and all
 * are read back at the end. */
#include "engine/agent/controls/frequency.h"
#include "engine/agent/controls/outcome.h"
#include "engine/agent/controls/tools.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long busy files of one control are retried, in all. */
#define BUSY_TIMEOUT_NS INT64_C(100000000)

/* One control that was asked for. */
struct request {
    const char *asked; /* the value; NULL: the control was not asked for */
    char *before;      /* the value before it was set */
    struct plan plan;
    unsigned planned_at; /* context.changed when the plan was made */
    struct outcome outcome;
};

struct setting {
    struct snapshot_store *store;
    const struct machine *machine;
    struct snapshot snapshot;
    struct layout layout;
    struct write_context context;
    struct request requests[CONTROL_COUNT];
    enum daemon_state daemons[DAEMON_COUNT];
    struct failure *failure;
};

static int read_layout(struct setting *setting) {
    layout_clear(&setting->layout);
    return layout_read(setting->machine, &setting->layout) < 0 ? failure_memory(setting->failure) : 0;
}

/* ---- the snapshot before a write */

/* Notes in the snapshot, on the disk, that the controls of BITS are about to be written. */
static int mark_touched(struct setting *setting, unsigned bits) {
    if ((setting->snapshot.touched | bits) == setting->snapshot.touched)
        return 0;
    setting->snapshot.touched |= bits;
    return store_save(setting->store, &setting->snapshot, setting->failure);
}

/* Adds files of PLAN to the snapshot that it does not have: those of a PU that was offline when it was made.
 * The search for each file begins behind the last one found, since a plan mostly has the snapshot's order. */
static int save_late_files(struct setting *setting, enum control_index control, const struct plan *plan) {
    struct snapshot *snapshot = &setting->snapshot;
    const size_t known = snapshot->count;
    size_t next = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const char *path = plan->writes[i].path;
        size_t tried = 0;
        while (tried < known && strcmp(snapshot->files[(next + tried) % known].path, path) != 0)
            tried++;
        if (tried < known) {
            next = next + tried + 1;
            continue;
        }
        if (snapshot_add(snapshot, setting->machine, control, true, path) < 0)
            return failure_memory(setting->failure);
    }
    return snapshot->count > known ? store_save(setting->store, snapshot, setting->failure) : 0;
}

/* Carries out PLAN for CONTROL, after the snapshot has the files that it changes. */
static int carry_out(struct setting *setting, enum control_index control, struct plan *plan) {
    int r = mark_touched(setting, 1u << control);
    if (r == 0)
        r = save_late_files(setting, control, plan);
    if (r < 0)
        return r;
    setting->context.control = control_at(control)->name;
    plan_carry_out(plan, &setting->context);
    return 0;
}

/* ---- daemons */

static enum daemon_state wanted_daemon_state(const struct setting *setting) {
    return strcmp(setting->requests[CONTROL_DAEMONS].asked, "running") == 0 ? DAEMON_RUNNING : DAEMON_STOPPED;
}

/* Starts or stops daemon I as asked for. Returns 0, or a negative errno with the reason in WHY. A daemon
 * whose state the snapshot does not have is left as it is, because it could not be restored. */
static int set_daemon(struct setting *setting, int i, struct failure *why) {
    const char *name = daemon_names[i];
    enum daemon_state kept = setting->snapshot.daemons[i], now = setting->daemons[i],
                      wanted = wanted_daemon_state(setting);
    if (now == DAEMON_UNKNOWN)
        return failure_set(why, -EIO, "cannot ask systemd whether %s runs", name);
    if (now == DAEMON_ABSENT || now == wanted)
        return 0;
    if (kept == DAEMON_UNKNOWN)
        return failure_set(why, -EIO, "%s is left as it is: systemd did not say whether it ran before", name);
    if (kept == DAEMON_ABSENT)
        return failure_set(why, -EIO, "%s is left as it is: it did not exist when the snapshot was made",
                           name);
    int r = mark_touched(setting, 1u << CONTROL_DAEMONS);
    setting->requests[CONTROL_DAEMONS].outcome.state = "done";
    return r < 0 ? failure_set(why, r, "%s", setting->failure->text)
                 : daemons_set(&setting->context, i, wanted, setting->daemons, why);
}

/* Starts or stops all daemons; the first failure is the outcome. */
static int set_daemons(struct setting *setting) {
    struct outcome *outcome = &setting->requests[CONTROL_DAEMONS].outcome;
    struct failure why, first = {0};
    outcome->state = "unchanged";
    for (int i = 0; i < DAEMON_COUNT; i++)
        if (set_daemon(setting, i, &why) < 0 && first.code == 0)
            first = why;
    if (first.code)
        outcome_set(outcome, first.code == -EACCES ? "denied" : "failed", first.text);
    return 0;
}

/* ---- one control */

/* Plans the writes of a control; an impossible value becomes its outcome. */
static int make_plan(struct setting *setting, enum control_index index) {
    struct request *request = &setting->requests[index];
    struct failure why = {0};
    plan_clear(&request->plan);
    request->planned_at = setting->context.changed;
    int r = control_plan(control_at(index), &setting->layout, request->asked, &request->plan, &why);
    if (r == -EINVAL)
        outcome_set(&request->outcome, "invalid", why.text);
    else if (r < 0)
        return failure_set(setting->failure, r, "%s", why.text);
    return 0;
}

/* Reads the value before, and plans the writes; a control that cannot be set gets its outcome. */
static int prepare(struct setting *setting, enum control_index index) {
    struct request *request = &setting->requests[index];
    cleanup(control_status_clear) struct control_status current;
    if (control_read_status(control_at(index), &setting->layout, &current) < 0 ||
        !(request->before = strdup(current.value.bytes)))
        return failure_memory(setting->failure);
    if (current.access != CONTROL_AVAILABLE) {
        outcome_set(&request->outcome, control_access_name(current.access), current.why);
        return 0;
    }
    return make_plan(setting, index);
}

/* True where the control was asked for, has no outcome yet, and its files differ from its plan. */
static bool is_due(struct setting *setting, enum control_index index) {
    struct request *request = &setting->requests[index];
    return request->asked && !request->outcome.state && plan_is_due(&request->plan, setting->machine);
}

/* Sets hyperthreads while the frequency is at its lowest (frequency.h), and then restores the frequency
 * limits. */
static int set_hyperthreads(struct setting *setting, struct plan *plan) {
    cleanup(plan_clear) struct plan lowest = {0};
    frequency_plan_lowest(&setting->layout, &lowest);
    if (lowest.error < 0)
        return failure_memory(setting->failure);
    int r = mark_touched(setting, 1u << CONTROL_HYPERTHREADS | 1u << CONTROL_FREQUENCY);
    if (r == 0)
        r = carry_out(setting, CONTROL_FREQUENCY, &lowest);
    if (r == 0)
        r = carry_out(setting, CONTROL_HYPERTHREADS, plan);
    if (r == 0)
        r = read_layout(setting);
    if (r < 0)
        return r;
    setting->context.control = control_at(CONTROL_FREQUENCY)->name;
    plan_undo(&lowest, &setting->context, &setting->layout.online);
    return 0;
}

/* Sets the governor. Some kernels switch turbo on with it: unless turbo is asked for, too, it is switched
 * back. */
static int set_governor(struct setting *setting, struct plan *plan) {
    cleanup(plan_clear) struct plan turbo = {0};
    int before = layout_turbo(&setting->layout);
    int r = carry_out(setting, CONTROL_GOVERNOR, plan);
    if (r < 0 || setting->requests[CONTROL_TURBO].asked || before < 0 ||
        layout_turbo(&setting->layout) == before)
        return r;
    r = control_plan(&control_turbo, &setting->layout, before ? "on" : "off", &turbo, setting->failure);
    return r < 0 ? r : carry_out(setting, CONTROL_TURBO, &turbo);
}

/* Sets the control INDEX if it was asked for, has no outcome yet and has another value. Negative only when
 * the tool must end. */
static int set_one(struct setting *setting, enum control_index index) {
    struct request *request = &setting->requests[index];
    if (!request->asked || request->outcome.state)
        return 0;
    setting->context.busy_timeout_ns = BUSY_TIMEOUT_NS;
    setting->context.control = control_at(index)->name;
    if (index == CONTROL_DAEMONS)
        return set_daemons(setting);
    /* Earlier writes may have changed the files of this control: then it is planned again. */
    int r = request->planned_at == setting->context.changed ? 0 : make_plan(setting, index);
    if (r < 0 || !is_due(setting, index))
        return r;
    return index == CONTROL_HYPERTHREADS ? set_hyperthreads(setting, &request->plan)
           : index == CONTROL_GOVERNOR   ? set_governor(setting, &request->plan)
                                         : carry_out(setting, index, &request->plan);
}

/* ---- all controls */

/* Sets all controls that were asked for, and once more those that a later write changed. A control that
 * cannot be set gets an outcome and is no failure; negative: without memory or snapshot the tool must end. */
static int set_all(struct setting *setting) {
    unsigned due = 0;
    for (enum control_index index = 0; index < CONTROL_COUNT; index++) {
        int r = setting->requests[index].asked ? prepare(setting, index) : 0;
        if (r < 0)
            return r;
        due |= is_due(setting, index) ? 1u << index : 0;
    }
    if (due >> CONTROL_HYPERTHREADS & 1)
        due |= 1u << CONTROL_FREQUENCY;
    int r = mark_touched(setting, due); /* one write of the snapshot for all controls known to be due */
    for (enum control_index index = 0; index < CONTROL_COUNT && r == 0; index++) {
        r = set_one(setting, index);
        (void)lines_write(setting->context.lines, STDOUT_FILENO);
    }
    /* Controls that a later write has changed again are set once more. */
    for (enum control_index index = CONTROL_GOVERNOR; index < CONTROL_COUNT && r == 0; index++) {
        setting->context.busy_timeout_ns = BUSY_TIMEOUT_NS;
        if (is_due(setting, index))
            r = carry_out(setting, index, &setting->requests[index].plan);
    }
    return r;
}

/* ---- reporting */

/* Writes the line "set" of the control INDEX. *ALL_DONE becomes false when it has not the value that was
 * asked for. */
static int report_control(struct setting *setting, enum control_index index, bool *all_done) {
    struct request *request = &setting->requests[index];
    struct outcome *outcome = &request->outcome;
    cleanup(control_status_clear) struct control_status current;
    if (control_read_status(control_at(index), &setting->layout, &current) < 0)
        return failure_memory(setting->failure);
    if (!outcome->state) {
        plan_check(&request->plan, setting->machine);
        outcome_of_plan(outcome, index, &request->plan, &setting->layout.online);
    }
    if (strcmp(outcome->state, "unchanged") == 0 && strcmp(request->before, current.value.bytes) != 0)
        outcome->state = "done"; /* changed by the kernel with an earlier control */
    *all_done =
        *all_done && (strcmp(outcome->state, "done") == 0 || strcmp(outcome->state, "unchanged") == 0);
    lines_put(setting->context.lines, "set", control_at(index)->name, request->asked, request->before,
              current.value.bytes, outcome->state, outcome->sentence, NULL);
    return 0;
}

/* Prints an `expect` line for each file of PLAN: its content as read at the end, whatever was asked. */
static void report_expected(struct setting *setting, const struct plan *plan) {
    for (size_t i = 0; i < plan->count; i++) {
        char value[PLAN_VALUE_SIZE];
        snprintf(value, sizeof value, "%s", plan->writes[i].after);
        if (plan->writes[i].kind == PLAN_CHOICE)
            plan_choose(value);
        if (value[0]) /* else it could not be read */
            lines_put(setting->context.lines, "expect", lines_field("/%s", plan->writes[i].path), value,
                      NULL);
    }
}

/* Reads all controls back and prints the lines `set`, `expect` and `target`. *ALL_DONE turns false where a
 * control is not as asked. */
static int report_all(struct setting *setting, bool *all_done) {
    int r = read_layout(setting);
    for (enum control_index index = 0; index < CONTROL_COUNT && r == 0; index++)
        if (setting->requests[index].asked)
            r = report_control(setting, index, all_done);
    for (enum control_index index = 0; index < CONTROL_COUNT && r == 0; index++)
        report_expected(setting, &setting->requests[index].plan);
    uint64_t min_khz, max_khz;
    frequency_find_target(&setting->layout, &min_khz, &max_khz);
    lines_put(setting->context.lines, "target", lines_hertz(min_khz), lines_hertz(max_khz), NULL);
    return r;
}

/* ---- the tool */

/* Loads the snapshot. Refuses it where it belongs to another process than OWNER: its end, and not ours, would
 * restore the controls. */
static int load_own(struct setting *setting, int64_t owner) {
    int r = setting->store ? store_load(setting->store, &setting->snapshot, setting->failure) : -ENOENT;
    if (r == -ENOENT)
        return failure_set(setting->failure, r, "this node has no snapshot; run --snapshot-controls first");
    if (r < 0)
        return r;
    struct owner us;
    if (owner_find((pid_t)owner, &us) == 0 && owner_is(&us, &setting->snapshot.owner))
        return 0;
    snapshot_print_held(&setting->snapshot, setting->context.lines);
    return failure_set(setting->failure, -EBUSY,
                       "the snapshot on this node belongs to another process; run "
                       "--snapshot-controls first");
}

static void setting_clear(struct setting *setting) {
    for (unsigned index = 0; index < CONTROL_COUNT; index++) {
        plan_clear(&setting->requests[index].plan);
        free(setting->requests[index].before);
    }
    snapshot_clear(&setting->snapshot);
    layout_clear(&setting->layout);
}

int control_set(struct snapshot_store *store, const struct machine *machine,
                const struct control_arguments *given, struct lines *lines, struct failure *failure) {
    cleanup(setting_clear) struct setting setting = {
        .store = store,
        .machine = machine,
        .context = {.machine = machine, .lines = lines},
        .failure = failure,
    };
    for (unsigned index = 0; index < CONTROL_COUNT; index++)
        setting.requests[index].asked = given->asked[index];
    bool all_done = true;
    int r = load_own(&setting, given->owner);
    if (r == 0)
        r = read_layout(&setting);
    if (r == 0 && given->asked[CONTROL_DAEMONS])
        daemons_read_states(machine, setting.daemons);
    if (r == 0)
        r = set_all(&setting);
    if (r == 0)
        r = report_all(&setting, &all_done);
    return r < 0 || all_done ? r : -EIO; /* the reasons are in the lines */
}
