#include "engine/agent/controls/restore.h"

#include "engine/agent/controls/arguments.h"
#include "engine/agent/controls/frequency.h"
#include "engine/agent/serve/tool.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PASSES = 5 };

#define PATIENCE_NS INT64_C(300000000)

struct put_back {
    const struct machine *machine;
    const struct snapshot *snapshot;
    unsigned controls; /* whose files are looked at */
    struct hand hand;
    struct text now; /* what the file holds that was looked at last */
    int unreadable;  /* or why it is not known; 0 */
    bool *written;   /* one a file */
    bool *back;      /* was so when it was looked at last */
    bool settled;    /* nothing was written since */
    int *errors;     /* of its last write */
};

/* ---- one file */

/* Whether it is as it was. A file that came late may be gone with its PU. */
static bool is_back(struct put_back *work, size_t i) {
    const struct kept_file *file = &work->snapshot->files[i];
    work->unreadable = machine_read_bytes(work->machine, file->path, &work->now);
    if (work->unreadable < 0)
        text_reset(&work->now);
    work->back[i] = work->unreadable < 0 ? file->late
                                         : work->now.length == file->length &&
                                               memcmp(work->now.bytes, file->content, file->length) == 0;
    return work->back[i];
}

static void write_file(struct put_back *work, size_t i, const char *bytes, size_t length) {
    const struct kept_file *file = &work->snapshot->files[i];
    char before[PLAN_VALUE_SIZE], after[PLAN_VALUE_SIZE];
    snprintf(before, sizeof before, "%.*s", (int)strcspn(work->now.bytes, "\n"), work->now.bytes);
    work->hand.control = control_at(file->control)->name;
    unsigned changed = work->hand.changed;
    work->errors[i] = hand_write(&work->hand, file->path, before, bytes, length, after, sizeof after);
    if (work->hand.changed > changed)
        work->written[i] = true;
}

static bool number_of(const char *text, uint64_t *ret) {
    return number_parse_uint64(text, strcspn(text, "\n"), ret);
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Whether the limit at PATH was kept while turbo was off, by the switch of all or that of its policy. */
static bool was_capped(const struct snapshot *snapshot, const char *path) {
    size_t folder = (size_t)(strrchr(path, '/') - path);
    for (size_t i = 0; i < snapshot->count; i++) {
        const struct kept_file *file = &snapshot->files[i];
        if (file->control != CONTROL_TURBO)
            continue;
        if (ends_with(file->path, "/no_turbo"))
            return file->content[0] != '0';
        if (ends_with(file->path, "/cpufreq/boost") || strncmp(file->path, path, folder + 1) == 0)
            return file->content[0] == '0';
    }
    return false;
}

/* Without turbo the driver shows its cap for an upper limit that is above it, and gives the limit back with
 * turbo. So what was kept may stand for any limit from there on: the highest is written, and stays if it
 * shows as what was kept. True if it was written: once, even if all seems to be as it was: another limit may
 * hide behind the same cap. */
static bool put_back_cap(struct put_back *work, size_t i) {
    const struct kept_file *file = &work->snapshot->files[i];
    char path[PLAN_PATH_SIZE], highest[PLAN_VALUE_SIZE];
    uint64_t most, kept;
    if (file->control != CONTROL_FREQUENCY || !ends_with(file->path, "/scaling_max_freq") ||
        !(work->snapshot->touched >> CONTROL_FREQUENCY & 1) || work->written[i] ||
        !was_capped(work->snapshot, file->path))
        return false;
    snprintf(path, sizeof path, "%.*s/cpuinfo_max_freq", (int)(strrchr(file->path, '/') - file->path),
             file->path);
    if (machine_read_value(work->machine, path, highest, sizeof highest) < 0 || !number_of(highest, &most) ||
        !number_of(file->content, &kept) || kept >= most)
        return false;
    write_file(work, i, highest, strlen(highest));
    return true;
}

/* The exact bytes; of a choice first the word that held, which is what the kernel takes. A plain file in its
 * place gets its bytes after all. */
static void put_back_one(struct put_back *work, size_t i) {
    const struct kept_file *file = &work->snapshot->files[i];
    bool back = is_back(work, i);
    if (work->unreadable < 0)
        return; /* its PU may come back in a later pass */
    if (put_back_cap(work, i))
        back = is_back(work, i);
    if (back)
        return;
    if (strchr(file->content, '[')) {
        char word[SNAPSHOT_CONTENT_LIMIT + 1];
        snprintf(word, sizeof word, "%s", file->content);
        plan_choose(word);
        write_file(work, i, word, strlen(word));
        if (is_back(work, i))
            return;
    }
    write_file(work, i, file->content, file->length);
}

/* Whether file I is a lower limit, and the next the upper of the same. */
static bool is_pair(const struct snapshot *snapshot, size_t i) {
    if (i + 1 >= snapshot->count || snapshot->files[i].control != snapshot->files[i + 1].control)
        return false;
    const char *lower = snapshot->files[i].path, *upper = snapshot->files[i + 1].path;
    const char *name = strrchr(lower, '/'), *min = name ? strstr(name, "min_") : NULL;
    size_t at = min ? (size_t)(min - lower) : 0;
    return min && strlen(lower) == strlen(upper) && memcmp(lower, upper, at) == 0 &&
           strncmp(upper + at, "max_", 4) == 0 && strcmp(upper + at + 4, min + 4) == 0;
}

/* The kernel refuses a lower limit above the upper, also in between. */
static void put_back_pair(struct put_back *work, size_t lower) {
    uint64_t least, most;
    bool upper_first = !is_back(work, lower + 1) && number_of(work->now.bytes, &most) &&
                       number_of(work->snapshot->files[lower].content, &least) && least > most;
    put_back_one(work, upper_first ? lower + 1 : lower);
    put_back_one(work, upper_first ? lower : lower + 1);
}

/* ---- all files */

static void put_back_control(struct put_back *work, enum control_index control) {
    const struct snapshot *snapshot = work->snapshot;
    for (size_t i = 0; i < snapshot->count; i++) {
        if (snapshot->files[i].control != control)
            continue;
        if (is_pair(snapshot, i))
            put_back_pair(work, i++);
        else
            put_back_one(work, i);
    }
}

static bool is_different(struct put_back *work, enum control_index control) {
    for (size_t i = 0; i < work->snapshot->count; i++)
        if (work->snapshot->files[i].control == control && !is_back(work, i))
            return true;
    return false;
}

/* Hardware threads come and go at the lowest frequency (frequency.h); the passes put the limits back. */
static void go_slow(struct put_back *work) {
    cleanup(plan_clear) struct plan plan = {0};
    cleanup(layout_clear) struct layout layout = {0};
    if (layout_read(work->machine, &layout) < 0 || frequency_plan_lowest(&layout, &plan) < 0)
        return; /* comfort only */
    work->hand.control = control_at(CONTROL_FREQUENCY)->name;
    plan_carry_out(&plan, &work->hand);
}

/* Which control is put back at STEP, counted down: in reverse of the order in which they were set, but those
 * of the frequency's driver in that order. For there the earlier hides the later: without turbo, limits show
 * less than they are, and what is written then stays when it is back; governor performance refuses any other
 * preference. */
static unsigned put_back_at(unsigned step) {
    bool hides = step >= CONTROL_GOVERNOR && step <= CONTROL_ENERGY_PREFERENCE;
    return hides ? CONTROL_GOVERNOR + CONTROL_ENERGY_PREFERENCE - step : step;
}

/* Once so, from the last; then, since a PU that comes back begins anew and one write can change another, in
 * setting order, until nothing differs or nothing helps. */
static void put_back_all(struct put_back *work) {
    for (unsigned step = CONTROL_COUNT; step-- > 0;) {
        unsigned index = put_back_at(step);
        if (!(work->controls >> index & 1))
            continue;
        if (index == CONTROL_HYPERTHREADS && is_different(work, CONTROL_HYPERTHREADS))
            go_slow(work);
        put_back_control(work, (enum control_index)index);
    }
    for (int pass = 0; pass < PASSES; pass++) {
        unsigned changed = work->hand.changed;
        for (unsigned index = 0; index < CONTROL_COUNT; index++)
            if (work->controls >> index & 1)
                put_back_control(work, (enum control_index)index);
        work->settled = work->hand.changed == changed;
        if (work->settled)
            return;
    }
}

static void tell_different(struct put_back *work, struct restored *ret) {
    for (size_t i = 0; i < work->snapshot->count; i++) {
        const struct kept_file *file = &work->snapshot->files[i];
        char path[PLAN_PATH_SIZE + 1], name[16];
        if (!(work->controls >> file->control & 1))
            continue;
        ret->written += work->written[i];
        if ((work->settled && work->back[i]) || is_back(work, i))
            continue;
        ret->different++;
        snprintf(path, sizeof path, "/%s", file->path);
        lines_put(work->hand.lines, "different", control_at(file->control)->name, path, file->content,
                  work->now.bytes, lines_errno(work->unreadable ? work->unreadable : work->errors[i], name),
                  NULL);
    }
}

/* ---- daemons */

static bool is_daemon_back(const struct put_back *work, const enum daemon_state *states, int i) {
    enum daemon_state wanted = work->snapshot->daemons[i];
    return wanted == DAEMON_ABSENT || wanted == DAEMON_UNKNOWN || wanted == states[i];
}

static void put_back_daemons(struct put_back *work, struct restored *ret) {
    enum daemon_state states[DAEMON_COUNT];
    int errors[DAEMON_COUNT] = {0};
    struct failure unused;
    unsigned before = work->hand.changed;
    work->hand.control = control_at(CONTROL_DAEMONS)->name;
    /* Once more when all are back: what a tool that was killed had asked of the manager may come late. */
    for (int pass = 0; pass < 2; pass++) {
        daemons_look(work->machine, states);
        for (int i = 0; i < DAEMON_COUNT; i++)
            if (!is_daemon_back(work, states, i))
                errors[i] = daemons_set(&work->hand, i, work->snapshot->daemons[i], states, &unused);
    }
    ret->daemons = work->hand.changed - before;
    for (int i = 0; i < DAEMON_COUNT; i++) {
        char name[16];
        if (is_daemon_back(work, states, i))
            continue;
        ret->different++;
        lines_put(work->hand.lines, "different", work->hand.control, daemon_names[i],
                  daemon_state_names[work->snapshot->daemons[i]], daemon_state_names[states[i]],
                  lines_errno(errors[i], name), NULL);
    }
}

/* ---- a snapshot */

int restore_snapshot(const struct machine *machine, const struct snapshot *snapshot, struct lines *lines,
                     struct restored *ret) {
    *ret = (struct restored){0};
    if (snapshot->touched == 0)
        return 0;
    cleanup_free bool *written = calloc(snapshot->count + 1, sizeof *written);
    cleanup_free bool *back = calloc(snapshot->count + 1, sizeof *back);
    cleanup_free int *errors = calloc(snapshot->count + 1, sizeof *errors);
    if (!written || !back || !errors)
        return -ENOMEM;
    struct put_back work = {.machine = machine,
                            .snapshot = snapshot,
                            .controls = control_closure(snapshot->touched),
                            .hand = {.machine = machine, .lines = lines, .patience_ns = PATIENCE_NS},
                            .written = written,
                            .back = back,
                            .errors = errors};
    text_init(&work.now, MACHINE_FILE_LIMIT);
    put_back_all(&work);
    tell_different(&work, ret);
    text_clear(&work.now);
    /* Last of all: they would set what is being put back. */
    if (work.controls >> CONTROL_DAEMONS & 1)
        put_back_daemons(&work, ret);
    return 0;
}

int restore_shelf(struct shelf *shelf, const struct snapshot *snapshot, struct lines *lines,
                  struct restored *ret, struct failure *failure) {
    char written[NUMBER_TEXT_SIZE], different[NUMBER_TEXT_SIZE];
    int r = restore_snapshot(&shelf->machine, snapshot, lines, ret);
    if (r < 0)
        return failure_memory(failure);
    if (ret->different == 0 && (r = shelf_discard(shelf, failure)) < 0)
        return r;
    number_format_uint64(ret->written, written);
    number_format_uint64(ret->different, different);
    lines_put(lines, "restored", written, different, snapshot->session, snapshot->label, NULL);
    if (ret->different == 0)
        return 0;
    return failure_set(failure, -EBUSY,
                       "%zu of the files and daemons that were changed could not be put back; '%s' has what "
                       "they were",
                       ret->different, shelf->path);
}

/* ---- unasked */

static void describe_owner(const struct snapshot *snapshot, char *text, size_t size) {
    bool session = snapshot->session[0], label = snapshot->label[0];
    snprintf(text, size, "%s%s%s%s%s%s%s", session || label ? " (" : "", session ? "session " : "",
             snapshot->session, session && label ? ", " : "", label ? "label " : "", snapshot->label,
             session || label ? ")" : "");
}

/* This process's own, or that of one that is gone. */
static bool is_ours(const struct snapshot *snapshot, bool own) {
    struct owner me;
    return own ? owner_find(getpid(), &me) == 0 && owner_is(&me, &snapshot->owner)
               : !owner_is_alive(&snapshot->owner);
}

static int put_back_unasked(struct shelf *shelf, bool own, char *note, size_t size, struct failure *failure) {
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    int r = shelf_load(shelf, &snapshot, failure);
    if (r == -ESTALE)
        snprintf(note, size,
                 "the machine has been restarted since an earlier agent set controls: nothing was left to "
                 "put back");
    if (r < 0)
        return r == -ENOENT || r == -ESTALE ? 0 : r;
    if (!is_ours(&snapshot, own))
        return 0;
    struct lines nobody;
    struct restored restored;
    char owner[256];
    lines_init(&nobody, -1);
    r = restore_shelf(shelf, &snapshot, &nobody, &restored, failure);
    describe_owner(&snapshot, owner, sizeof owner);
    char daemons[64] = "";
    if (restored.daemons > 0)
        snprintf(daemons, sizeof daemons, " and %zu daemon%s", restored.daemons,
                 restored.daemons > 1 ? "s" : "");
    if (restored.written + restored.daemons > 0)
        snprintf(note, size, "put back %zu files%s that an earlier agent%s had left changed%s%.900s",
                 restored.written, daemons, owner, r < 0 ? "; " : "", r < 0 ? failure->text : "");
    return r;
}

/* Whoever holds the shelf may take long. What is another's, alive, is not waited for. */
static bool is_anothers(const struct machine *machine, bool own) {
    struct shelf shelf;
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    struct failure unused = {0};
    if (shelf_open(machine, SHELF_LOOK, &shelf, &unused) < 0)
        return false;
    int r = shelf_load(&shelf, &snapshot, &unused);
    shelf_close(&shelf);
    return r == 0 && !is_ours(&snapshot, own);
}

static int restore_unasked(const struct machine *machine, bool own, char *note, size_t size,
                           struct failure *failure) {
    struct shelf shelf;
    note[0] = '\0';
    if (is_anothers(machine, own))
        return 0;
    int r = shelf_open(machine, SHELF_USE, &shelf, failure);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return failure_prefix(failure, "whether an agent left controls changed is not known");
    r = put_back_unasked(&shelf, own, note, size, failure);
    shelf_close(&shelf);
    return r;
}

void restore_abandoned(const struct machine *machine, char *note, size_t size) {
    struct failure failure = {0};
    if (restore_unasked(machine, false, note, size, &failure) < 0 && !note[0])
        snprintf(note, size, "%s", failure.text);
}

int restore_own(const struct machine *machine, struct failure *failure) {
    char note[FAILURE_TEXT_SIZE];
    return restore_unasked(machine, true, note, sizeof note, failure);
}

/* ---- asked */

static int tell_nothing(struct lines *lines, const char *sentence) {
    lines_put(lines, "nothing", sentence, NULL);
    return 0;
}

static int restore_asked(struct shelf *shelf, const struct control_arguments *given, struct lines *lines,
                         struct failure *failure) {
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    int r = shelf ? shelf_load(shelf, &snapshot, failure) : -ENOENT;
    if (r == -ENOENT)
        return tell_nothing(lines, "there is no snapshot here");
    if (r == -ESTALE)
        return tell_nothing(lines,
                            "the machine has been restarted since the snapshot was made: nothing is left "
                            "to put back");
    if (r < 0)
        return r;
    if (given->abandoned && owner_is_alive(&snapshot.owner)) {
        snapshot_tell_held(&snapshot, lines);
        return failure_set(failure, -EBUSY, "the snapshot belongs to an agent that is alive");
    }
    struct restored restored;
    return restore_shelf(shelf, &snapshot, lines, &restored, failure);
}

int tool_restore_controls(int count, char **arguments) {
    return control_tool(count, arguments, CONTROL_ARGUMENTS_ABANDONED, SHELF_USE, restore_asked);
}
