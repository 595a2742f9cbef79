/* --set-controls: in the order that works, each kept before it is touched, all read back at the end. */
#include "engine/agent/controls/arguments.h"
#include "engine/agent/controls/frequency.h"
#include "engine/agent/controls/outcome.h"
#include "engine/agent/controls/shelf.h"
#include "engine/agent/controls/target.h"
#include "engine/agent/serve/tool.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long files may be busy: of one control, all together. */
#define PATIENCE_NS INT64_C(100000000)

/* One control that was asked for. */
struct wish {
    const char *asked; /* NULL: it was not */
    char *before;
    struct plan plan;
    unsigned planned_at; /* hand.changed then */
    bool holds;          /* all of the plan was as wanted when that was last looked at */
    struct outcome outcome;
};

struct setting {
    struct shelf *shelf;
    const struct machine *machine;
    struct snapshot snapshot;
    struct layout layout;
    struct hand hand;
    struct wish wishes[CONTROL_COUNT];
    enum daemon_state daemons[DAEMON_COUNT];
    bool repeated; /* something was set once more */
    struct failure *failure;
};

/* ---- what is kept before a write */

/* The controls of BITS are about to be written. */
static int touch(struct setting *setting, unsigned bits) {
    if ((setting->snapshot.touched | bits) == setting->snapshot.touched)
        return 0;
    setting->snapshot.touched |= bits;
    return shelf_store(setting->shelf, &setting->snapshot, setting->failure);
}

static int compare_paths(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Files of a PU that was offline when the snapshot was made are kept now. */
static int keep_late(struct setting *setting, enum control_index control, const struct plan *plan) {
    struct snapshot *snapshot = &setting->snapshot;
    size_t count = 0, known = snapshot->count;
    cleanup_free const char **paths = calloc(known + 1, sizeof *paths);
    if (!paths)
        return failure_memory(setting->failure);
    for (size_t i = 0; i < known; i++)
        if (snapshot->files[i].control == control)
            paths[count++] = snapshot->files[i].path;
    qsort(paths, count, sizeof *paths, compare_paths);
    int added = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const char *path = plan->writes[i].path;
        if (bsearch(&path, paths, count, sizeof *paths, compare_paths))
            continue;
        int r = snapshot_add_late(snapshot, setting->machine, control, path);
        if (r < 0)
            return failure_memory(setting->failure);
        added += r;
    }
    return added ? shelf_store(setting->shelf, snapshot, setting->failure) : 0;
}

/* ---- one control */

static int make_plan(struct setting *setting, enum control_index index) {
    struct wish *wish = &setting->wishes[index];
    struct failure why = {0};
    plan_clear(&wish->plan);
    wish->planned_at = setting->hand.changed;
    int r = control_at(index)->plan(&setting->layout, wish->asked, &wish->plan, &why);
    if (r == 0)
        return 0;
    if (r == -ENOMEM)
        return failure_memory(setting->failure);
    wish->outcome.state = OUTCOME_INVALID;
    snprintf(wish->outcome.sentence, sizeof wish->outcome.sentence, "%.1000s", why.text);
    return 0;
}

/* How it stands, and whether it can be what was asked. */
static int prepare(struct setting *setting, enum control_index index) {
    struct wish *wish = &setting->wishes[index];
    cleanup(control_look_clear) struct control_look look;
    control_look_init(&look);
    if (control_look_at(control_at(index), &setting->layout, &look) < 0 ||
        !(wish->before = strdup(look.value.bytes)))
        return failure_memory(setting->failure);
    if (look.access != CONTROL_AVAILABLE) {
        outcome_of_access(&wish->outcome, &look);
        return 0;
    }
    if (index == CONTROL_DAEMONS) {
        if (strcmp(wish->asked, "running") != 0 && strcmp(wish->asked, "stopped") != 0) {
            wish->outcome.state = OUTCOME_INVALID;
            snprintf(wish->outcome.sentence, sizeof wish->outcome.sentence,
                     "'%.64s' is not possible; expected running or stopped", wish->asked);
        }
        return 0;
    }
    return make_plan(setting, index);
}

static enum daemon_state wanted_daemons(const struct wish *wish) {
    return strcmp(wish->asked, "running") == 0 ? DAEMON_RUNNING : DAEMON_STOPPED;
}

/* Only what is known to have been there, and how it stood, can be put back. */
static bool may_set_daemon(const struct setting *setting, int i) {
    enum daemon_state kept = setting->snapshot.daemons[i], now = setting->daemons[i];
    return (kept == DAEMON_STOPPED || kept == DAEMON_RUNNING) &&
           (now == DAEMON_STOPPED || now == DAEMON_RUNNING);
}

static bool is_daemon_due(const struct setting *setting, int i) {
    return may_set_daemon(setting, i) &&
           setting->daemons[i] != wanted_daemons(&setting->wishes[CONTROL_DAEMONS]);
}

static bool is_due(struct setting *setting, enum control_index index) {
    struct wish *wish = &setting->wishes[index];
    if (!wish->asked || wish->outcome.state != OUTCOME_PENDING)
        return false;
    if (index != CONTROL_DAEMONS)
        return plan_is_due(&wish->plan, setting->machine);
    for (int i = 0; i < DAEMON_COUNT; i++)
        if (is_daemon_due(setting, i))
            return true;
    return false;
}

/* 0, or why daemon I is not as wanted. */
static int set_daemon(struct setting *setting, int i, struct failure *why) {
    enum daemon_state kept = setting->snapshot.daemons[i];
    enum daemon_state wanted = wanted_daemons(&setting->wishes[CONTROL_DAEMONS]);
    if (is_daemon_due(setting, i))
        return daemons_set(&setting->hand, i, wanted, setting->daemons, why);
    if (setting->daemons[i] == DAEMON_UNKNOWN)
        return failure_set(why, -EIO, "whether %s runs could not be asked", daemon_names[i]);
    if (setting->daemons[i] == DAEMON_ABSENT || setting->daemons[i] == wanted)
        return 0;
    return failure_set(
        why, -EIO,
        kept == DAEMON_UNKNOWN
            ? "%s is left as it is: whether it ran could not be asked when the snapshot was made"
            : "%s is left as it is: it was not there when the snapshot was made",
        daemon_names[i]);
}

static void set_daemons(struct setting *setting) {
    struct wish *wish = &setting->wishes[CONTROL_DAEMONS];
    wish->outcome.state = OUTCOME_UNCHANGED;
    for (int i = 0; i < DAEMON_COUNT; i++) {
        struct failure why;
        bool due = is_daemon_due(setting, i);
        int r = set_daemon(setting, i, &why);
        if ((r == 0 && !due) || wish->outcome.state == OUTCOME_FAILED ||
            wish->outcome.state == OUTCOME_DENIED)
            continue;
        wish->outcome.state = r == 0 ? OUTCOME_DONE : r == -EACCES ? OUTCOME_DENIED : OUTCOME_FAILED;
        if (r < 0)
            snprintf(wish->outcome.sentence, sizeof wish->outcome.sentence, "%.1000s", why.text);
    }
}

/* What a plan's files hold now becomes what it wants, so that it can be put back. */
static void reverse(struct plan *plan, const struct machine *machine) {
    plan_check(plan, machine);
    for (size_t i = 0; i < plan->count; i++) {
        struct plan_write *write = &plan->writes[i];
        uint64_t now;
        if (write->error == 0 && number_parse_uint64(write->after, strlen(write->after), &now)) {
            snprintf(write->wanted, sizeof write->wanted, "%.63s", write->after);
            write->least = write->most = now;
        }
    }
}

static void keep_online(struct plan *plan, const struct pu_set *online) {
    size_t kept = 0;
    for (size_t i = 0; i < plan->count; i++)
        if (plan->writes[i].pu < 0 || pu_set_has(online, (unsigned)plan->writes[i].pu))
            plan->writes[kept++] = plan->writes[i];
    plan->count = kept;
}

/* Hardware threads come and go at the lowest frequency (frequency.h). */
static int set_hyperthreads(struct setting *setting) {
    struct plan *plan = &setting->wishes[CONTROL_HYPERTHREADS].plan;
    cleanup(plan_clear) struct plan lowest = {0};
    cleanup(plan_clear) struct plan before = {0};
    if (frequency_plan_lowest(&setting->layout, &lowest) < 0 ||
        frequency_plan_lowest(&setting->layout, &before) < 0)
        return failure_memory(setting->failure);
    reverse(&before, setting->machine);
    setting->hand.control = control_at(CONTROL_FREQUENCY)->name;
    plan_carry_out(&lowest, &setting->hand);
    setting->hand.control = control_at(CONTROL_HYPERTHREADS)->name;
    plan_carry_out(plan, &setting->hand);
    struct layout layout;
    if (layout_read(setting->machine, &layout) < 0)
        return failure_memory(setting->failure);
    layout_clear(&setting->layout);
    setting->layout = layout;
    setting->hand.control = control_at(CONTROL_FREQUENCY)->name;
    keep_online(&before, &layout.online);
    plan_carry_out(&before, &setting->hand);
    return 0;
}

/* Some kernels switch turbo on with another governor: one that nobody asked for stays as it was. */
static int keep_turbo(struct setting *setting, int before) {
    cleanup(plan_clear) struct plan plan = {0};
    if (setting->wishes[CONTROL_TURBO].asked || before < 0 || layout_turbo(&setting->layout) == before)
        return 0;
    int r = touch(setting, 1u << CONTROL_TURBO);
    if (r == 0)
        r = control_turbo.plan(&setting->layout, before ? "on" : "off", &plan, setting->failure);
    if (r == 0)
        r = keep_late(setting, CONTROL_TURBO, &plan);
    if (r == 0) {
        setting->hand.control = control_turbo.name;
        plan_carry_out(&plan, &setting->hand);
    }
    return r;
}

static int set_one(struct setting *setting, enum control_index index) {
    struct wish *wish = &setting->wishes[index];
    if (!wish->asked || wish->outcome.state != OUTCOME_PENDING)
        return 0;
    setting->hand.patience_ns = PATIENCE_NS;
    setting->hand.control = control_at(index)->name;
    if (index == CONTROL_DAEMONS) {
        int r = is_due(setting, index) ? touch(setting, 1u << index) : 0;
        if (r == 0)
            set_daemons(setting);
        return r;
    }
    /* What was written before may have changed what there is to write. */
    int r = wish->planned_at == setting->hand.changed ? 0 : make_plan(setting, index);
    if (r < 0 || !is_due(setting, index))
        return r;
    unsigned bits = 1u << index | (index == CONTROL_HYPERTHREADS ? 1u << CONTROL_FREQUENCY : 0);
    r = touch(setting, bits);
    if (r == 0)
        r = keep_late(setting, index, &wish->plan);
    if (r < 0 || index == CONTROL_HYPERTHREADS)
        return r < 0 ? r : set_hyperthreads(setting);
    int turbo = index == CONTROL_GOVERNOR ? layout_turbo(&setting->layout) : -1;
    plan_carry_out(&wish->plan, &setting->hand);
    return keep_turbo(setting, turbo);
}

/* ---- all of them */

static int set_all(struct setting *setting) {
    unsigned due = 0;
    int r = 0;
    for (unsigned index = 0; index < CONTROL_COUNT && r == 0; index++) {
        if (!setting->wishes[index].asked)
            continue;
        r = prepare(setting, (enum control_index)index);
        due |= r == 0 && is_due(setting, (enum control_index)index) ? 1u << index : 0;
    }
    if (due >> CONTROL_HYPERTHREADS & 1)
        due |= 1u << CONTROL_FREQUENCY;
    if (r == 0)
        r = touch(setting, due); /* once for all that is known by now */
    for (unsigned index = 0; index < CONTROL_COUNT && r == 0; index++) {
        r = set_one(setting, (enum control_index)index);
        (void)lines_flush(setting->hand.lines);
    }
    /* What a later write has undone is set once more. */
    for (unsigned index = CONTROL_GOVERNOR; index < CONTROL_COUNT && r == 0; index++) {
        struct wish *wish = &setting->wishes[index];
        setting->hand.control = control_at((enum control_index)index)->name;
        setting->hand.patience_ns = PATIENCE_NS;
        if (!is_due(setting, (enum control_index)index)) {
            wish->holds = true;
            continue;
        }
        setting->repeated = true;
        r = touch(setting, 1u << index);
        if (r == 0)
            r = keep_late(setting, (enum control_index)index, &wish->plan);
        if (r == 0)
            plan_carry_out(&wish->plan, &setting->hand);
    }
    return r;
}

static int tell_one(struct setting *setting, enum control_index index, bool *all_done) {
    struct wish *wish = &setting->wishes[index];
    cleanup(control_look_clear) struct control_look look;
    control_look_init(&look);
    if (control_look_at(control_at(index), &setting->layout, &look) < 0)
        return failure_memory(setting->failure);
    if (wish->outcome.state == OUTCOME_PENDING) {
        if (setting->repeated || !wish->holds)
            plan_check(&wish->plan, setting->machine);
        outcome_of_plan(&wish->outcome, index, &wish->plan, &setting->layout.online);
    }
    if (wish->outcome.state == OUTCOME_UNCHANGED && strcmp(wish->before, look.value.bytes) != 0)
        wish->outcome.state = OUTCOME_DONE; /* along with a control that was set before it */
    enum outcome_state state = wish->outcome.state;
    *all_done = *all_done && (state == OUTCOME_DONE || state == OUTCOME_UNCHANGED);
    lines_put(setting->hand.lines, "set", control_at(index)->name, wish->asked, wish->before,
              look.value.bytes, outcome_name(state), wish->outcome.sentence, NULL);
    return 0;
}

/* What its files were seen to hold at the end, whatever was asked. */
static void tell_expected(struct setting *setting, const struct plan *plan) {
    for (size_t i = 0; i < plan->count; i++) {
        char path[PLAN_PATH_SIZE + 1], value[PLAN_VALUE_SIZE];
        snprintf(value, sizeof value, "%s", plan->writes[i].after);
        if (!value[0]) /* it could not be read */
            continue;
        if (plan->writes[i].kind == PLAN_CHOICE)
            plan_choose(value);
        snprintf(path, sizeof path, "/%s", plan->writes[i].path);
        lines_put(setting->hand.lines, "expect", path, value, NULL);
    }
}

static int tell_all(struct setting *setting, bool *all_done) {
    struct layout layout;
    if (layout_read(setting->machine, &layout) < 0)
        return failure_memory(setting->failure);
    layout_clear(&setting->layout);
    setting->layout = layout;
    int r = 0;
    for (unsigned index = 0; index < CONTROL_COUNT && r == 0; index++)
        if (setting->wishes[index].asked)
            r = tell_one(setting, (enum control_index)index, all_done);
    for (unsigned index = 0; index < CONTROL_COUNT && r == 0; index++)
        tell_expected(setting, &setting->wishes[index].plan);
    uint64_t min_khz, max_khz;
    char min[NUMBER_TEXT_SIZE] = "", max[NUMBER_TEXT_SIZE] = "";
    target_find(&setting->layout, &min_khz, &max_khz);
    if (min_khz)
        number_format_uint64(min_khz * 1000, min);
    if (max_khz)
        number_format_uint64(max_khz * 1000, max);
    lines_put(setting->hand.lines, "target", min, max, NULL);
    return r;
}

/* ---- the tool */

static int no_snapshot(struct failure *failure) {
    return failure_set(failure, -ENOENT, "there is no snapshot here; --snapshot-controls comes first");
}

/* Whoever sets must be whose snapshot it is: else nobody would put back what is set. */
static int load_own(struct setting *setting) {
    int r = shelf_load(setting->shelf, &setting->snapshot, setting->failure);
    if (r == -ENOENT || r == -ESTALE)
        return no_snapshot(setting->failure);
    if (r < 0)
        return r;
    struct owner parent;
    if (owner_find(getppid(), &parent) == 0 && owner_is(&parent, &setting->snapshot.owner))
        return 0;
    snapshot_tell_held(&setting->snapshot, setting->hand.lines);
    return failure_set(setting->failure, -EBUSY,
                       "the snapshot here is another process's; --snapshot-controls comes first");
}

static void setting_clear(struct setting *setting) {
    for (unsigned index = 0; index < CONTROL_COUNT; index++) {
        plan_clear(&setting->wishes[index].plan);
        free(setting->wishes[index].before);
    }
    snapshot_clear(&setting->snapshot);
    layout_clear(&setting->layout);
}

static int set_asked(struct shelf *shelf, const struct control_arguments *given, struct lines *lines,
                     struct failure *failure) {
    if (!shelf)
        return no_snapshot(failure);
    cleanup(setting_clear) struct setting setting = {
        .shelf = shelf,
        .machine = &shelf->machine,
        .hand = {.machine = &shelf->machine, .lines = lines},
        .failure = failure,
    };
    for (unsigned index = 0; index < CONTROL_COUNT; index++)
        setting.wishes[index].asked = given->asked[index];
    int r = load_own(&setting);
    if (r < 0)
        return r;
    if (layout_read(setting.machine, &setting.layout) < 0)
        return failure_memory(failure);
    if (given->asked[CONTROL_DAEMONS])
        daemons_look(setting.machine, setting.daemons);
    bool all_done = true;
    r = set_all(&setting);
    if (r == 0)
        r = tell_all(&setting, &all_done);
    return r < 0 || all_done ? r : -EIO; /* the lines say what */
}

int tool_set_controls(int count, char **arguments) {
    return control_tool(count, arguments, CONTROL_ARGUMENTS_VALUES, SHELF_USE, set_asked);
}
