#include "engine/run/record/history.h"

#include "archive-format/layout.h"
#include "engine/foundation/checksum.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const run_phase_names[RUN_PHASES] = {
    [RUN_RESERVE] = "reserve", [RUN_DEPLOY] = "deploy",   [RUN_CONNECT] = "connect",
    [RUN_INSPECT] = "inspect", [RUN_PREPARE] = "prepare", [RUN_CONTROL] = "control",
    [RUN_WARM_UP] = "warm-up", [RUN_MEASURE] = "measure", [RUN_COLLECT] = "collect",
    [RUN_RESTORE] = "restore", [RUN_SEAL] = "seal",       [RUN_RELEASE] = "release",
};

enum {
    NAME_SIZE = 256,      /* of a node or a core; longer ones are cut */
    NUMBER_MAX = 1 << 30, /* of blocks and commands */
};
static const int64_t rate_window_ns = INT64_C(300000000000);

/* Makes room for one more of COUNT items of SIZE bytes; the capacity doubles at each power of two. */
static void *grow(void *items, size_t count, size_t size) {
    if (count & (count - 1)) /* neither 0 nor a power of two: there is room */
        return items;
    return xrealloc(items, (count ? 2 * count : 1) * size);
}

static struct run_history_part *last_part(struct run_history *history) {
    return &history->parts[history->part_count - 1];
}

/* ---- Nodes ------------------------------------------------------------------------------------- */

struct run_history_node *run_history_find_node(struct run_history *history, const char *name) {
    size_t number = text_set_add(&history->node_names, name, strlen(name));
    if (number < history->node_count)
        return history->nodes[number];
    struct run_history_node *node = xcalloc(1, sizeof *node);
    node->name = history->node_names.texts[number];
    history->nodes = grow(history->nodes, history->node_count, sizeof *history->nodes);
    return history->nodes[history->node_count++] = node;
}

/* The node that ENTRY names in the member KEY, reset if the last part did not have it yet. NULL: no such
 * member. */
static struct run_history_node *find_named(struct run_history *history, const struct journal_entry *entry,
                                           const char *key) {
    char name[NAME_SIZE];
    if (!journal_entry_text(entry, key, name, sizeof name))
        return NULL;
    struct run_history_node *node = run_history_find_node(history, name);
    if (node->part != history->part_count) {
        node->part = history->part_count;
        node->condition = RUN_NODE_IN;
        node->out[0] = '\0';
        node->replaced = false;
        free(take_pointer(node->slow));
        free(take_pointer(node->sentence));
    }
    return node;
}

/* The testbed has given this node. */
static void on_node(struct run_history *history, const struct journal_entry *entry) {
    struct run_history_node *node = find_named(history, entry, "name");
    if (node)
        node->given = true;
}

/* Updates a node's condition and sentence from an entry on its link, loss, replacement or speed. */
static void on_node_event(struct run_history *history, const struct journal_entry *entry) {
    static const struct {
        const char *event;
        enum run_node_condition condition;
    } conditions[] = {
        {"link-broken", RUN_NODE_OUT_OF_REACH}, {"node-lost", RUN_NODE_LOST},  {"node-out", RUN_NODE_OUT},
        {"node-replaced", RUN_NODE_OUT},        {"link-resumed", RUN_NODE_IN}, {"slow-node", RUN_NODE_IN}};
    struct run_history_node *node = find_named(history, entry, "node");
    char sentence[sizeof history->error];
    if (!node)
        return;
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
        if (journal_entry_is(entry, conditions[i].event) &&
            (node->condition < conditions[i].condition || node->condition == RUN_NODE_OUT_OF_REACH))
            node->condition = conditions[i].condition;
    if (journal_entry_text(entry, "sentence", sentence, sizeof sentence)) {
        char **kept = journal_entry_is(entry, "slow-node") ? &node->slow : &node->sentence;
        free(*kept);
        *kept = xstrdup(sentence);
    }
    if (journal_entry_is(entry, "node-out")) {
        journal_entry_text(entry, "why", node->out, sizeof node->out);
        node->replaced = strcmp(node->out, "unfit") == 0; /* a spare, which had no share yet */
        history->measured = false;
        history->lacks_node = true;
    }
}

/* Another node measures the units of a lost one. A later part repeats such entries. */
static void on_replacement(struct run_history *history, const struct journal_entry *entry) {
    on_node_event(history, entry);
    struct run_history_node *node = find_named(history, entry, "node"),
                            *by = find_named(history, entry, "by");
    if (!node || !by)
        return;
    if (!node->out[0]) /* in an earlier part */
        memcpy(node->out, "replaced", sizeof "replaced");
    node->replaced = by->given = true;
    for (size_t i = 0; i < history->replacement_count; i++) /* a later part repeats it */
        if (history->replacements[i].node == node->name && history->replacements[i].by == by->name)
            return;
    history->replacements =
        grow(history->replacements, history->replacement_count, sizeof *history->replacements);
    history->replacements[history->replacement_count++] =
        (struct run_history_replacement){node->name, by->name};
}

/* An agent was started: it may still run when its part has ended. */
static void on_agent(struct run_history *history, const struct journal_entry *entry) {
    struct run_history_node *node = find_named(history, entry, "node");
    struct run_history_agent agent;
    if (!node || !journal_entry_text(entry, "session", agent.session, sizeof agent.session))
        return;
    agent.node = node->name;
    history->agents = grow(history->agents, history->agent_count, sizeof *history->agents);
    history->agents[history->agent_count++] = agent;
}

/* The agent of this session has ended. */
static void on_agent_ended(struct run_history *history, const struct journal_entry *entry) {
    char session[sizeof history->agents->session] = "";
    journal_entry_text(entry, "session", session, sizeof session);
    for (size_t i = 0; i < history->agent_count; i++)
        if (strcmp(history->agents[i].session, session) == 0)
            history->agents[i] = history->agents[--history->agent_count];
}

/* ---- Units ------------------------------------------------------------------------------------- */

/* Adds a commit. The monotonic clock only goes back after a reboot; then the rate counts from this commit on.
 */
static void add_commit(struct run_history *history, struct run_history_commit commit) {
    history->commits = grow(history->commits, history->commit_count, sizeof *history->commits);
    /* No clock goes back in one part: the rate is of what comes from now on. */
    if (history->commit_count > 0 &&
        commit.monotonic_ns < history->commits[history->commit_count - 1].monotonic_ns)
        history->first_commit = history->commit_count;
    history->commits[history->commit_count++] = commit;
}

/* The results are committed up to a byte; the units that have ended are counted with it. */
static void on_results(struct run_history *history, const struct journal_entry *entry) {
    int64_t bytes = 0, left_ns = -1;
    char crc[16] = "";
    journal_entry_integer(entry, "bytes", &bytes);
    journal_entry_integer(entry, "left_ns", &left_ns);
    journal_entry_text(entry, "bytes_crc32c", crc, sizeof crc);
    last_part(history)->units_done = (uint64_t)(history->units_done - history->units_before);
    add_commit(history, (struct run_history_commit){.bytes = (uint64_t)bytes,
                                                    .crc = (uint32_t)strtoul(crc, NULL, 16),
                                                    .monotonic_ns = entry->monotonic_ns,
                                                    .units = history->units_done + history->units_failed,
                                                    .left_ns = left_ns});
}

/* The estimate less the time since it was made, at least 0. */
int64_t run_left_ns(const struct run_left *left, int64_t now_ns) {
    if (left->estimate_ns < 0 || left->at_ns < 0 || now_ns < left->at_ns)
        return left->estimate_ns;
    return now_ns - left->at_ns < left->estimate_ns ? left->estimate_ns - (now_ns - left->at_ns) : 0;
}

double run_history_rate(const struct run_history *history) {
    if (history->commit_count <= history->first_commit)
        return NAN;
    const struct run_history_commit *last = &history->commits[history->commit_count - 1], *first = last;
    while (first > &history->commits[history->first_commit] &&
           last->monotonic_ns - first[-1].monotonic_ns <= rate_window_ns)
        first--;
    double seconds = (double)(last->monotonic_ns - first->monotonic_ns) / 1e9;
    double units = (double)(last->units - first->units);
    return seconds > 0 && units > 0 ? units / seconds : NAN;
}

/* An attempt at a unit, from an entry of the journal or a line of the results. */
struct attempt {
    int64_t order, number;
    char node[NAME_SIZE], core[NAME_SIZE], flags[NAME_SIZE];
    bool done;
};

/* Adds ATTEMPT to the ledger. False: the plan has no such unit or attempt. */
static bool add_attempt(const struct run_history_units *units, const struct attempt *attempt) {
    if (attempt->order < 1 || (uint64_t)attempt->order > units->positions || attempt->number < 1 ||
        attempt->number > LEDGER_ATTEMPTS_MAX)
        return false;
    const char *node = units->node ? units->node : attempt->node;
    ledger_add_attempt(units->ledger,
                       &(struct ledger_attempt){.place = ledger_place(units->ledger, node, attempt->core),
                                                .position = (size_t)attempt->order - 1,
                                                .attempt = (unsigned)attempt->number,
                                                .done = attempt->done,
                                                .flags = units->parse_flags(attempt->flags)});
    return true;
}

/* Adds a failed unit of the journal to the ledger. */
static int add_failed_unit(const struct run_history_units *units, const struct journal_entry *entry,
                           struct failure *failure) {
    struct attempt attempt = {.done = false};
    journal_entry_integer(entry, "order", &attempt.order);
    journal_entry_integer(entry, "attempt", &attempt.number);
    journal_entry_text(entry, "node", attempt.node, sizeof attempt.node);
    journal_entry_text(entry, "core", attempt.core, sizeof attempt.core);
    if (add_attempt(units, &attempt))
        return 0;
    return failure_set_kind(failure, FAILURE_VERIFICATION, -EBADMSG,
                            "line %" PRIu64 " has attempt %" PRId64 " at unit %" PRId64
                            "; expected a unit from 1 to %zu and an attempt from 1 to %d",
                            entry->sequence, attempt.number, attempt.order, units->positions,
                            LEDGER_ATTEMPTS_MAX);
}

/* ---- Parts and phases -------------------------------------------------------------------------- */

size_t run_history_next_part(const struct run_history *history) {
    bool only_submitted = history->submitted && !history->phase[0];
    return history->part_count + !only_submitted;
}

/* A part begins: the members on the part before are reset. Commits beyond the bytes of results that it has
 * found are void. */
static void on_start(struct run_history *history, const struct journal_entry *entry) {
    struct run_history_part part = {.started_ns = entry->wall_ns, .status = "stopped"};
    int64_t results_bytes = 0;
    journal_entry_text(entry, "engine", part.engine, sizeof part.engine);
    size_t number = run_history_next_part(history);
    if (number == history->part_count)
        part.started_ns = last_part(history)->started_ns;
    history->parts = grow(history->parts, number - 1, sizeof *history->parts);
    history->parts[number - 1] = part;
    history->part_count = number;
    /* The part says how many bytes of results it has found: commits beyond that are void. */
    journal_entry_integer(entry, "results_bytes", &results_bytes);
    while (history->commit_count > 0 &&
           history->commits[history->commit_count - 1].bytes > (uint64_t)results_bytes)
        history->commit_count--;
    history->units_before = history->units_done;
    history->phase[0] = history->sealed_as[0] = history->archive[0] = history->archive_sha256[0] =
        history->error[0] = history->outcome[0] = history->reservation[0] = '\0';
    memset(history->phases, 0, sizeof history->phases);
    history->units_missing = history->exit_code = 0;
    history->rows_settled = -1;
    history->submitted = false;
    history->deadline_ns = history->block = 0;
    history->measuring = history->held.is_kept = history->lacks_node = false;
    history->first_commit = SIZE_MAX;
}

/* Sealing has failed, and so has the part, whatever there was to seal. */
static void set_unsealed(struct run_history *history) {
    if (strcmp(history->sealed_as, "failed") != 0 || !history->outcome[0])
        memcpy(history->outcome, history->error, sizeof history->outcome);
    memcpy(history->sealed_as, "failed", sizeof "failed");
    history->exit_code = FAILURE_SYSTEM;
    memcpy(last_part(history)->status, "failed", sizeof "failed");
}

/* A phase begins or ends. Whether everything was measured, and the rate, follow from the measure phase. */
static void on_phase(struct run_history *history, const struct journal_entry *entry) {
    bool begins = journal_entry_is(entry, "phase-started");
    char name[sizeof history->phase] = "", status[sizeof history->phases->status] = "";
    journal_entry_text(entry, "phase", name, sizeof name);
    journal_entry_text(entry, "status", status, sizeof status);
    size_t phase = text_find(name, run_phase_names, RUN_PHASES);
    if (phase == RUN_PHASES)
        return;
    *(begins ? &history->phases[phase].started_ns : &history->phases[phase].ended_ns) = entry->wall_ns;
    memcpy(history->phases[phase].status, status, sizeof status);
    if (phase == RUN_SEAL && strcmp(status, "failed") == 0)
        set_unsealed(history);
    if (phase != RUN_MEASURE)
        return;
    history->measuring = begins;
    history->measured = !begins && strcmp(status, "done") == 0 && !history->lacks_node;
    if (!begins)
        return;
    uint64_t bytes = history->commit_count ? history->commits[history->commit_count - 1].bytes : 0;
    history->first_commit = history->commit_count;
    add_commit(history, (struct run_history_commit){.bytes = bytes,
                                                    .monotonic_ns = entry->monotonic_ns,
                                                    .units = history->units_done + history->units_failed,
                                                    .left_ns = -1});
}

/* A block begins or ends. */
static void on_block(struct run_history *history, const struct journal_entry *entry) {
    char status[16] = "";
    if (history->block > history->last_block && history->block < NUMBER_MAX)
        history->last_block = history->block;
    if (!journal_entry_is(entry, "block-ended"))
        return;
    journal_entry_text(entry, "status", status, sizeof status);
    history->block = 0;
    history->blocks_done += strcmp(status, "done") == 0;
}

/* Finds the highest number of a kept command, "logs/commands/012-setup/node.out"; later parts count on from
 * it. */
static void on_command(struct run_history *history, const struct journal_entry *entry) {
    static const char *const members[] = {"output", "error"};
    char name[512];
    unsigned number;
    for (size_t i = 0; i < 2; i++)
        if (journal_entry_text(entry, members[i], name, sizeof name) &&
            sscanf(name, ARCHIVE_COMMANDS "/%u", &number) == 1 && number > history->commands_kept &&
            number < NUMBER_MAX)
            history->commands_kept = number;
}

static void take_deadline(struct run_history *history, const struct journal_entry *entry) {
    journal_entry_time(entry, "wall_ns", &history->deadline_ns);
}

/* ---- The reservation -------------------------------------------------------------------------- */

/* A reservation was asked for or granted an id. */
static void on_reservation(struct run_history *history, const struct journal_entry *entry) {
    struct run_history_reservation *held = &history->held;
    *held = (struct run_history_reservation){.since_ns = entry->wall_ns, .is_held = true};
    journal_entry_text(entry, "testbed", held->testbed, sizeof held->testbed);
    journal_entry_text(entry, "id", held->id, sizeof held->id);
}

static void take_grant(struct run_history *history, const struct journal_entry *entry) {
    journal_entry_time(entry, "until_ns", &history->held.until_ns);
}

static void take_keeping(struct run_history *history, const struct journal_entry *entry) {
    (void)entry;
    history->held.is_kept = true;
}

static void drop_reservation(struct run_history *history, const struct journal_entry *entry) {
    (void)entry;
    history->held.is_held = history->held.is_kept = false;
}

bool run_history_is_reserved(const struct run_history *history, int64_t wall_ns) {
    const struct run_history_reservation *held = &history->held;
    return held->is_held && (held->until_ns == 0 || held->until_ns > wall_ns);
}

static void take_sealing(struct run_history *history, const struct journal_entry *entry) {
    (void)entry;
    memcpy(last_part(history)->status, history->sealed_as, sizeof history->sealed_as);
}

static void take_submission(struct run_history *history, const struct journal_entry *entry) {
    history->submitted = journal_entry_is(entry, "engine-submitted");
}

/* ---- The journal ------------------------------------------------------------------------------- */

/* Members that are kept as they are; of integers, those that are not negative. */
#define TEXT(member) offsetof(struct run_history, member), sizeof((struct run_history *)NULL)->member
#define COUNT(member) offsetof(struct run_history, member), 0
static const struct {
    const char *event, *key;
    size_t offset, size; /* size 0: an int64_t */
} members[] = {
    {"run-started", "run_id", TEXT(run_id)},
    {"run-started", "campaign", TEXT(campaign)},
    {"run-started", "based_on", TEXT(based_on)},
    {"run-started", "based_on_archive", TEXT(based_on_archive)},
    {"run-started", "based_on_sha256", TEXT(based_on_sha256)},
    {"run-resumed", "units_done", COUNT(units_done)},
    {"run-resumed", "units_failed", COUNT(units_failed)},
    {"run-resumed", "lines_flagged", COUNT(lines_flagged)},
    {"run-resumed", "units_repeated", COUNT(units_repeated)},
    {"node-replaced", "units_failed", COUNT(units_failed)},
    {"results", "units_done", COUNT(units_done)},
    {"results", "units_failed", COUNT(units_failed)},
    {"results", "lines_flagged", COUNT(lines_flagged)},
    {"results", "units_repeated", COUNT(units_repeated)},
    {"unit-failed", "sentence", TEXT(error)},
    {"error", "sentence", TEXT(error)},
    {"planned", "units", COUNT(planned)},
    {"reservation-note", "sentence", TEXT(reservation)},
    {"phase-started", "phase", TEXT(phase)},
    {"block-started", "block", COUNT(block)},
    {"sealing", "status", TEXT(sealed_as)},
    {"sealing", "error", TEXT(outcome)},
    {"sealing", "archive", TEXT(archive)},
    {"sealing", "units_missing", COUNT(units_missing)},
    {"sealing", "rows_settled", COUNT(rows_settled)},
    {"sealing", "exit_code", COUNT(exit_code)},
    {"sealed", "bytes", COUNT(archive_bytes)},
    {"sealed", "sha256", TEXT(archive_sha256)},
    {"engine-submitted", "sentence", TEXT(reservation)},
};

/* The handlers of the other events; they are called after the members were copied. */
static const struct {
    const char *event;
    void (*handle)(struct run_history *history, const struct journal_entry *entry);
} events[] = {
    {"run-started", on_start},
    {"run-resumed", on_start},
    {"results", on_results},
    {"phase-started", on_phase},
    {"phase-ended", on_phase},
    {"block-started", on_block},
    {"block-ended", on_block},
    {"node", on_node},
    {"link-broken", on_node_event},
    {"link-resumed", on_node_event},
    {"node-lost", on_node_event},
    {"node-out", on_node_event},
    {"slow-node", on_node_event},
    {"node-replaced", on_replacement},
    {"agent", on_agent},
    {"agent-ended", on_agent_ended},
    {"command", on_command},
    {"sealing", take_sealing},
    {"deadline", take_deadline},
    {"reservation", on_reservation},
    {"reservation-granted", take_grant},
    {"reservation-kept", take_keeping},
    {"reservation-over", drop_reservation},
    {"reservation-released", drop_reservation},
    {"engine-submitted", take_submission},
    {"engine-withdrawn", take_submission},
};

/* Copies the members of ENTRY that go into HISTORY as they are. */
static void read_members(struct run_history *history, const struct journal_entry *entry) {
    int64_t count;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        char *member = (char *)history + members[i].offset;
        if (!journal_entry_is(entry, members[i].event))
            continue;
        if (members[i].size)
            journal_entry_text(entry, members[i].key, member, members[i].size);
        else if (journal_entry_integer(entry, members[i].key, &count) && count >= 0)
            memcpy(member, &count, sizeof count);
    }
}

/* Keeps ENTRY if it is a note or a failure, and reports it, or a phase, to the observer. */
static void report_entry(struct run_history *history, const struct journal_entry *entry) {
    static const struct {
        const char *event, *key;
        enum run_event_kind kind;
    } reported[] = {{"phase-started", "phase", RUN_EVENT_PHASE},
                    {"note", "sentence", RUN_EVENT_NOTE},
                    {"error", "sentence", RUN_EVENT_FAILED}};
    const struct run_observer *observer = history->observer;
    char text[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
    for (size_t i = 0; i < sizeof reported / sizeof *reported; i++) {
        if (!journal_entry_is(entry, reported[i].event) ||
            !journal_entry_text(entry, reported[i].key, text, sizeof text))
            continue;
        if (reported[i].kind != RUN_EVENT_PHASE) {
            struct run_history_message *message =
                &history->messages[history->message_count++ % RUN_HISTORY_MESSAGES];
            message->wall_ns = entry->wall_ns;
            message->is_failure = reported[i].kind == RUN_EVENT_FAILED;
            journal_entry_text(entry, reported[i].key, message->text, sizeof message->text);
        }
        if (observer)
            observer->event(observer->context,
                            &(struct run_event){.kind = reported[i].kind, .text = text, .seconds_left = -1});
    }
}

struct fold {
    struct run_history *history;
    const struct run_history_units *units; /* NULL: not wanted */
};

/* Folds one entry of the journal into the history. Refused: a journal that does not begin with "run-started".
 */
static int fold_entry(const struct journal_entry *entry, void *context, struct failure *failure) {
    const struct fold *fold = context;
    struct run_history *history = fold->history;
    if (history->part_count == 0 && !journal_entry_is(entry, "run-started"))
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "the first entry is not 'run-started'");
    read_members(history, entry);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (journal_entry_is(entry, events[i].event))
            events[i].handle(history, entry);
    if (!journal_entry_is(entry, "reservation-released")) /* perhaps long after it has ended */
        last_part(history)->ended_ns = entry->wall_ns;
    report_entry(history, entry);
    return fold->units && journal_entry_is(entry, "unit-failed")
               ? add_failed_unit(fold->units, entry, failure)
               : 0;
}

int run_history_read(const char *folder, const struct run_history_units *units, struct run_history *history,
                     struct failure *failure) {
    cleanup_free char *path = xformat("%s/" ARCHIVE_JOURNAL, folder);
    int r = journal_replay(path, fold_entry, &(struct fold){history, units}, &history->journal, failure);
    return r < 0 ? failure_prefix(failure, "'%s' is not the journal of a run", path) : 0;
}

int run_history_read_from(const struct journal_source *source, struct run_history *ret,
                          struct failure *failure) {
    return journal_replay_from(source, fold_entry, &(struct fold){ret, NULL}, &ret->journal, failure);
}

/* ---- The archive ------------------------------------------------------------------------------- */

/* Looks for the archive beside FOLDER and checks its size, or its hash too, which reads all of it. */
void run_history_find_archive(const struct run_history *history, const char *folder,
                              enum run_archive_check check, char **ret, char **ret_problem) {
    char sha256[HASH_HEX_SIZE];
    uint64_t bytes = 0;
    struct failure why;
    *ret = *ret_problem = NULL;
    if (!history->archive_sha256[0] || !history->archive[0] || strchr(history->archive, '/'))
        return;
    cleanup_free char *path =
        xformat("%.*s%s", (int)(file_base_name(folder) - folder), folder, history->archive);
    if (!file_exists(path))
        *ret_problem = xformat("its archive '%s' is missing", path);
    else if (file_size(path, &bytes, &why) < 0 ||
             (check == RUN_ARCHIVE_HASH && hash_file(path, sha256, NULL, &why) < 0))
        *ret_problem = xformat("its archive cannot be read: %s", why.text);
    else if (bytes != (uint64_t)history->archive_bytes)
        *ret_problem = xformat("its archive '%s' is damaged: it has %" PRIu64 " bytes, and had %" PRId64
                               " bytes when it was sealed",
                               path, bytes, history->archive_bytes);
    else if (check == RUN_ARCHIVE_HASH && strcmp(sha256, history->archive_sha256) != 0)
        *ret_problem =
            xformat("its archive '%s' is damaged: its SHA-256 is not the same as when it was sealed", path);
    else
        *ret = take_pointer(path);
}

/* ---- Lines of the results ---------------------------------------------------------------------- */

static void copy_text(const struct results_text *text, char buffer[static NAME_SIZE]) {
    size_t length = text->length < NAME_SIZE ? text->length : NAME_SIZE - 1;
    memcpy(buffer, text->bytes, length);
    buffer[length] = '\0';
}

/* Adds a unit that is done, a line of the results. -EBADMSG: it is not of this run. */
static int add_row(const struct run_history_units *units, const struct results_row *row,
                   struct failure *failure) {
    struct attempt attempt = {.order = row->order, .number = row->attempt, .done = true};
    copy_text(&row->node, attempt.node);
    copy_text(&row->core, attempt.core);
    copy_text(&row->flags, attempt.flags);
    if (!add_attempt(units, &attempt))
        return -EBADMSG;
    return units->add_row ? units->add_row(row, units->context, failure) : 0;
}

/* Adds the lines of results.csv from AT to END to UNITS. A line that is not one of this run's is an error. */
static int add_lines(const struct run_history_units *units, const char *at, const char *end,
                     struct failure *failure) {
    for (const char *newline; at < end; at = newline + 1) {
        struct results_row row;
        newline = results_row_read(at, end, units->columns, units->picked, &row);
        int r = newline ? add_row(units, &row, failure) : -EBADMSG;
        if (r == -EBADMSG)
            return failure_set_kind(failure, FAILURE_VERIFICATION, r,
                                    "results.csv has the line '%.*s', which does not belong to this run",
                                    end - at < 128 ? (int)(end - at) : 128, at);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The next LENGTH bytes of the results, the caller's; NULL when they do not have the checksum CRC. */
static char *read_range(FILE *file, size_t length, uint32_t crc) {
    cleanup_free char *bytes = xmalloc(length + 1);
    bool right = fread(bytes, 1, length, file) == length && checksum_crc32c(bytes, length) == crc;
    return right ? take_pointer(bytes) : NULL;
}

/* Adds the lines of each commit whose checksum is right, up to the first that is not. Refused: another
 * header, foreign lines. */
static int read_lines(FILE *file, const struct run_history_units *units, struct run_history *history,
                      struct failure *failure) {
    size_t header = strlen(units->header);
    for (size_t i = 0; i < history->commit_count; i++) {
        const struct run_history_commit *commit = &history->commits[i];
        if (commit->bytes <= history->results_bytes) /* no line was added */
            continue;
        if (commit->bytes > history->results_end)
            return 0;
        size_t length = (size_t)(commit->bytes - history->results_bytes);
        cleanup_free char *bytes = read_range(file, length, commit->crc);
        if (!bytes)
            return 0;
        size_t skipped = history->results_bytes == 0 ? header : 0;
        if (length < skipped || memcmp(bytes, units->header, skipped) != 0)
            return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                    "results.csv has other columns than this version of assay writes; "
                                    "expected the version that run.json names");
        int r = add_lines(units, bytes + skipped, bytes + length, failure);
        if (r < 0)
            return r;
        history->results_bytes = commit->bytes;
    }
    return 0;
}

/* Adds the units of results.csv to the ledger. history->lost counts units that were done and whose lines are
 * lost. */
int run_history_read_units(const char *folder, const struct run_history_units *units,
                           struct run_history *history, struct failure *failure) {
    cleanup_free char *path = xformat("%s/" ARCHIVE_RESULTS, folder);
    int descriptor = file_open(path, FILE_REGULAR, failure);
    if (descriptor < 0 && descriptor != -ENOENT)
        return descriptor;
    cleanup_fclose FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "r");
    int r = file ? file_size(path, &history->results_end, failure) : 0;
    if (file && r == 0)
        r = read_lines(file, units, history, failure);
    uint64_t done = (uint64_t)history->units_done, found = ledger_totals(units->ledger)->done;
    history->lost = done > found ? done - found : 0;
    return r;
}

void run_history_clear(struct run_history *history) {
    for (size_t i = 0; i < history->node_count; i++) {
        free(history->nodes[i]->sentence);
        free(history->nodes[i]->slow);
        samples_clear(&history->nodes[i]->samples);
        free(history->nodes[i]);
    }
    free(history->nodes);
    text_set_clear(&history->node_names);
    free(history->agents);
    free(history->replacements);
    free(history->parts);
    free(history->commits);
    *history = (struct run_history){0};
}
