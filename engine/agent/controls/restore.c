#include "engine/agent/controls/restore.h"

#include "engine/agent/controls/elevation.h"
#include "engine/agent/controls/frequency.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PASSES_MAX = 5 };

#define BUSY_TIMEOUT_NS INT64_C(300000000)
/* The engine waits 60 s for an agent that starts. */
#define DAEMONS_NS INT64_C(20000000000)

struct restoration {
    const struct machine *machine;
    const struct snapshot *snapshot;
    unsigned controls; /* bits of the controls to restore */
    struct write_context context;
    struct plan plans[CONTROL_COUNT];
};

/* ---- planning the writes */

static bool parse_line(const char *text, uint64_t *ret) {
    return number_parse_uint64(text, strcspn(text, "\n"), ret);
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* True where turbo was off when the snapshot of the frequency limit PATH was made, by the common switch or by
 * its policy's. */
static bool was_capped(const struct snapshot *snapshot, const char *path) {
    size_t folder = (size_t)(strrchr(path, '/') - path);
    for (size_t i = 0; i < snapshot->count; i++) {
        const struct saved_file *file = &snapshot->files[i];
        if (file->control != CONTROL_TURBO)
            continue;
        if (ends_with(file->path, "/no_turbo"))
            return file->content[0] != '0';
        if (ends_with(file->path, "/cpufreq/boost") || strncmp(file->path, path, folder + 1) == 0)
            return file->content[0] == '0';
    }
    return false;
}

/* Handles an upper frequency limit that was read with turbo off. The driver then shows its cap for every
 * limit above the cap, and shows the real limit again with turbo. So the highest limit is written, once, even
 * if the file seems unchanged, because another limit may hide behind the same cap; it stays if the file then
 * shows the saved content. */
static void plan_cap(const struct restoration *work, struct plan_write *write) {
    char highest[sizeof write->wanted];
    uint64_t max, kept;
    if (!ends_with(write->path, "/scaling_max_freq") || !was_capped(work->snapshot, write->path))
        return;
    const char *path =
        machine_path("%.*s/cpuinfo_max_freq", (int)(strrchr(write->path, '/') - write->path), write->path);
    if (machine_read_value(work->machine, path, highest, sizeof highest) < 0 || !parse_line(highest, &max) ||
        !parse_line(write->content, &kept) || kept >= max)
        return;
    snprintf(write->wanted, sizeof write->wanted, "%s", highest);
    write->once = true;
}

/* True where the files LOWER and UPPER are the lower and the upper limit of one pair. */
static bool is_pair(const char *lower, const char *upper) {
    const char *min = strstr(lower, "min_");
    size_t at = min ? (size_t)(min - lower) : 0;
    return min && strncmp(upper, lower, at) == 0 && strncmp(upper + at, "max_", 4) == 0 &&
           strcmp(upper + at + 4, min + 4) == 0;
}

/* Plans to write the exact bytes of each file. For a choice ("a [b] c") the word in brackets is written
 * first, which is what the kernel accepts; a plain file of a captured machine gets the bytes after that. 0 or
 * -ENOMEM. */
static int make_plans(struct restoration *work) {
    const struct snapshot *snapshot = work->snapshot;
    for (size_t i = 0; i < snapshot->count; i++) {
        const struct saved_file *file = &snapshot->files[i];
        struct plan *plan = &work->plans[file->control];
        if (!(work->controls >> file->control & 1))
            continue;
        struct plan_write *write = plan_add_content(plan, file->path, file->content);
        write->late = file->late;
        write->lower = i + 1 < snapshot->count && is_pair(file->path, snapshot->files[i + 1].path);
        if (strchr(file->content, '[')) {
            char word[PLAN_VALUE_SIZE];
            snprintf(word, sizeof word, "%s", file->content);
            plan_choose(word);
            snprintf(write->wanted, sizeof write->wanted, "%.63s", word);
        }
        if (snapshot->touched >> CONTROL_FREQUENCY & 1)
            plan_cap(work, write);
        if (plan->error < 0)
            return plan->error;
    }
    return 0;
}

/* ---- all files */

/* Sets the lowest frequency if hyperthreads are to be restored (frequency.h); the later passes restore the
 * limits. */
static void set_lowest_frequency(struct restoration *work) {
    cleanup(plan_clear) struct plan plan = {0};
    cleanup(layout_clear) struct layout layout = {0};
    if (!plan_is_due(&work->plans[CONTROL_HYPERTHREADS], work->machine) ||
        layout_read(work->machine, &layout) < 0)
        return;
    frequency_plan_lowest(&layout, &plan);
    work->context.control = control_at(CONTROL_FREQUENCY)->name;
    plan_carry_out(&plan, &work->context);
}

static void restore_control(struct restoration *work, enum control_index control) {
    work->context.control = control_at(control)->name;
    plan_carry_out(&work->plans[control], &work->context);
}

/* The control that is restored at STEP, which counts down: the reverse of the setting order, except that
 * governor to energy preference keep the setting order. There the earlier controls hide the later ones:
 * without turbo, limits show less than they are, and limits written then stay when turbo is back; the
 * governor performance refuses any other energy preference. */
static enum control_index control_at_step(unsigned step) {
    bool hides = step >= CONTROL_GOVERNOR && step <= CONTROL_ENERGY_PREFERENCE;
    return hides ? CONTROL_GOVERNOR + CONTROL_ENERGY_PREFERENCE - step : step;
}

/* Restores all files: once in the order of control_at_step(), then in setting order until a pass changes
 * nothing, or PASSES_MAX. The passes are needed because a PU that comes online starts with defaults, and one
 * write can change another file. */
static void restore_files(struct restoration *work) {
    for (unsigned step = CONTROL_COUNT; step-- > 0;) {
        enum control_index index = control_at_step(step);
        if (index == CONTROL_HYPERTHREADS)
            set_lowest_frequency(work);
        restore_control(work, index);
    }
    unsigned changed = work->context.changed - 1;
    for (int pass = 0; pass < PASSES_MAX && work->context.changed != changed; pass++) {
        changed = work->context.changed;
        for (enum control_index index = 0; index < CONTROL_COUNT; index++)
            restore_control(work, index);
    }
}

/* Reads all files back and prints a line for each that differs. A late file that is missing does not count:
 * its PU is offline again. */
static void report_files(struct restoration *work, struct restored *ret) {
    for (enum control_index index = 0; index < CONTROL_COUNT; index++) {
        struct plan *plan = &work->plans[index];
        plan_check(plan, work->machine);
        for (size_t i = 0; i < plan->count; i++) {
            const struct plan_write *write = &plan->writes[i];
            char name[16];
            ret->written += write->written;
            if (write->exact || (write->error < 0 && write->late))
                continue;
            ret->different++;
            lines_put(work->context.lines, "different", control_at(index)->name,
                      lines_field("/%s", write->path), write->content, write->after,
                      lines_errno(write->error, name), NULL);
        }
    }
}

/* ---- daemons */

/* Restores the daemons, last: they would change the files that are being restored. */
static void restore_daemons(struct restoration *work, struct restored *ret) {
    const enum daemon_state *kept = work->snapshot->daemons;
    enum daemon_state states[DAEMON_COUNT];
    int errors[DAEMON_COUNT] = {0};
    unsigned before = work->context.changed;
    work->context.control = control_at(CONTROL_DAEMONS)->name;
    /* Two passes: an earlier request to systemd, by a tool that was killed, may take effect late. */
    for (int pass = 0; pass < 2; pass++) {
        daemons_read_states(work->machine, states);
        for (int i = 0; i < DAEMON_COUNT; i++)
            if ((kept[i] == DAEMON_STOPPED || kept[i] == DAEMON_RUNNING) && kept[i] != states[i])
                errors[i] = daemons_set(&work->context, i, kept[i], states, NULL);
    }
    ret->daemons = work->context.changed - before;
    for (int i = 0; i < DAEMON_COUNT; i++) {
        char name[16];
        if ((kept[i] != DAEMON_STOPPED && kept[i] != DAEMON_RUNNING) || kept[i] == states[i])
            continue;
        ret->different++;
        lines_put(work->context.lines, "different", work->context.control, daemon_names[i],
                  daemon_state_names[kept[i]], daemon_state_names[states[i]], lines_errno(errors[i], name),
                  NULL);
    }
}

/* ---- the snapshot */

/* Writes back the files, and starts the daemons, of all controls that SNAPSHOT says were changed. RET: how
 * many files were written and how many still differ. */
static int restore_all(const struct machine *machine, const struct snapshot *snapshot, struct lines *lines,
                       struct restored *ret) {
    struct restoration work = {
        .machine = machine,
        .snapshot = snapshot,
        .controls = control_closure(snapshot->touched),
        .context = {.machine = machine, .lines = lines, .busy_timeout_ns = BUSY_TIMEOUT_NS},
    };
    int r = make_plans(&work);
    if (r == 0) {
        restore_files(&work);
        report_files(&work, ret);
    }
    if (r == 0 && work.controls >> CONTROL_DAEMONS & 1)
        restore_daemons(&work, ret);
    for (enum control_index index = 0; index < CONTROL_COUNT; index++)
        plan_clear(&work.plans[index]);
    return r;
}

/* Restores all files and daemons, and removes the snapshot. -EBUSY: some could not be restored, and it stays.
 */
int restore_snapshot(struct snapshot_store *store, const struct snapshot *snapshot, struct lines *lines,
                     struct restored *ret, struct failure *failure) {
    *ret = (struct restored){0};
    if (snapshot->touched && restore_all(&store->machine, snapshot, lines, ret) < 0)
        return failure_memory(failure);
    int r = ret->different == 0 ? store_discard(store, failure) : 0;
    if (r < 0)
        return r;
    lines_put(lines, "restored", lines_field("%zu", ret->written), lines_field("%zu", ret->different),
              snapshot->session, snapshot->label, NULL);
    if (ret->different == 0)
        return 0;
    return failure_set(failure, -EBUSY,
                       "%zu of the files and daemons that were changed could not be put back; '%s' has what "
                       "they were",
                       ret->different, store->path);
}

/* ---- automatic restoring */

/* True where the snapshot is to be restored: with OWN if this process owns it, else if its owner has ended.
 */
static bool is_to_restore(const struct snapshot *snapshot, bool own) {
    struct owner me;
    return own ? owner_find(getpid(), &me) == 0 && owner_is(&me, &snapshot->owner)
               : !owner_is_alive(&snapshot->owner);
}

/* Loads the snapshot if it is to be restored (is_ours()); -ENOENT if not. */
static int load_if_due(struct snapshot_store *store, bool own, struct snapshot *ret,
                       struct failure *failure) {
    int r = store_load(store, ret, failure);
    if (r == 0 && !is_to_restore(ret, own)) {
        snapshot_clear(ret);
        return -ENOENT;
    }
    return r;
}

/* Opens and locks the store if its snapshot is to be restored. It is read without the lock first, so that the
 * lock of another live process is not waited for. -ENOENT: nothing to restore. */
static int open_if_due(const struct machine *machine, bool own, struct snapshot_store *ret,
                       struct failure *failure) {
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    int r = store_open(machine, STORE_READ, ret, failure);
    if (r < 0)
        return r;
    r = load_if_due(ret, own, &snapshot, failure);
    store_close(ret);
    return r < 0 ? r : store_open(machine, own ? STORE_LOCK : STORE_LOCK_SOON, ret, failure);
}

/* Restores the snapshot of this process (OWN) or of one that has ended; NOTE gets a sentence on what was
 * restored. */
static int restore_automatically(const struct machine *machine, bool own, char *note, size_t size,
                                 struct failure *failure) {
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    struct snapshot_store store;
    struct restored restored = {0};
    struct lines no_lines;
    note[0] = '\0';
    int r = open_if_due(machine, own, &store, failure);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return failure_prefix(failure, "cannot find out whether an earlier agent left controls changed");
    lines_init(&no_lines, 0);
    r = load_if_due(&store, own, &snapshot, failure);
    if (r == 0)
        r = restore_snapshot(&store, &snapshot, &no_lines, &restored, failure);
    store_close(&store);
    bool session = snapshot.session[0], label = snapshot.label[0];
    char daemons[64] = "";
    if (restored.daemons > 0)
        snprintf(daemons, sizeof daemons, " and %zu daemon%s", restored.daemons,
                 restored.daemons > 1 ? "s" : "");
    if (restored.written + restored.daemons > 0)
        snprintf(note, size,
                 "put back %zu files%s that an earlier agent%s%s%s%s%s%s%s had left changed%s%.900s",
                 restored.written, daemons, session || label ? " (" : "", session ? "session " : "",
                 snapshot.session, session && label ? ", " : "", label ? "label " : "", snapshot.label,
                 session || label ? ")" : "", r < 0 ? "; " : "", r < 0 ? failure->text : "");
    return r == -ENOENT ? 0 : r;
}

void restore_abandoned(const struct machine *machine, char *note, size_t size) {
    struct failure failure = {0};
    daemons_limit(DAEMONS_NS);
    if (restore_automatically(machine, false, note, size, &failure) < 0 && !note[0])
        snprintf(note, size, "%s", failure.text);
    size_t length = strlen(note);
    elevation_restore(machine, note + length, size - length);
}

int restore_own(const struct machine *machine, struct failure *failure) {
    char note[FAILURE_TEXT_SIZE];
    return restore_automatically(machine, true, note, sizeof note, failure);
}
