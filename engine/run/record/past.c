#include "engine/run/record/past.h"

#include "engine/foundation/checksum.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/run/measure/lane.h"
#include "engine/run/state/unit-state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NAME_MOST = 256, /* bytes of a node's name or a core's */
    VOIDS_MOST = 4096,
    ATTEMPTS_MOST = 1000000,
    NUMBER_MOST = 1 << 30, /* of blocks and commands */
};

/* Entries FROM to the one before UNTIL are void if they are of units that are done. */
struct void_range {
    uint64_t from, until;
};

struct reading {
    const struct plan *plan;
    struct past *past;
    struct ledger *ledger;
    past_line_taker *line_taker;
    void *context;
    struct void_range *voids;
    size_t void_count;
    bool again; /* a range was found after its entries had been taken */

    FILE *results;
    char *line;
    size_t capacity, length;
    bool over; /* no more lines that stand */
};

/* ---- Lines of the results --------------------------------------------------------------------------------
 */

static bool has_open_quote(const char *bytes, size_t length) {
    bool open = false;
    for (const char *at = bytes, *end = bytes + length; (at = memchr(at, '"', (size_t)(end - at))); at++)
        open = !open;
    return open;
}

/* The next whole line, which a quoted field may carry over several, with its newline. False at the end. */
static bool next_line(struct reading *reading) {
    char *more = NULL;
    size_t more_capacity = 0;
    ssize_t length = getline(&reading->line, &reading->capacity, reading->results);
    while (length > 0 && has_open_quote(reading->line, (size_t)length)) {
        ssize_t added = getline(&more, &more_capacity, reading->results);
        char *grown = added > 0 ? realloc(reading->line, (size_t)(length + added) + 1) : NULL;
        if (!grown) {
            length = -1;
            break;
        }
        reading->line = grown;
        reading->capacity = (size_t)(length + added) + 1;
        memcpy(grown + length, more, (size_t)added + 1);
        length += added;
    }
    free(more);
    reading->length = length > 0 ? (size_t)length : 0;
    return length > 0 && reading->line[length - 1] == '\n';
}

/* The first line is whole and as expected, or the file is not further than that. */
static int check_header(struct reading *reading, const char *header, struct failure *failure) {
    struct past *past = reading->past;
    past->results_bytes = 0;
    reading->over = true;
    if (!next_line(reading)) /* torn: it is written anew */
        return 0;
    if (strcmp(reading->line, header) != 0)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "results.csv has other columns than this version of assay writes; expected "
                                "the version that run.json names");
    past->results_bytes = reading->length;
    reading->over = false;
    return 0;
}

/* Does the next line carry CRC, the checksum that the journal has of it? Of journals without checksums, any
 * whole line does. */
static bool take_line(struct reading *reading, const char *crc) {
    char digits[9];
    if (reading->over || !next_line(reading))
        return false;
    snprintf(digits, sizeof digits, "%08" PRIx32, checksum_crc32c(reading->line, reading->length));
    if (crc[0] && strcmp(crc, digits) != 0)
        return false;
    reading->past->results_bytes += reading->length;
    return true;
}

/* ---- Entries ---------------------------------------------------------------------------------------------
 */

static struct past_part *last_part(struct past *past) {
    return past->part_count ? &past->parts[past->part_count - 1] : NULL;
}

static int begin_part(struct reading *reading, const struct journal_entry *entry) {
    struct past *past = reading->past;
    struct past_part *parts = xrealloc(past->parts, (past->part_count + 1) * sizeof *parts);
    past->parts = parts;
    parts[past->part_count++] =
        (struct past_part){.started_ns = entry->wall_ns, .ended_ns = entry->wall_ns, .status = "stopped"};
    struct past_part *part = last_part(past);
    journal_entry_text(entry, "engine", part->engine, sizeof part->engine);
    past->sealed = false;
    past->archive[0] = '\0';
    return 0;
}

static bool is_void(const struct reading *reading, uint64_t sequence) {
    for (size_t i = 0; i < reading->void_count; i++)
        if (sequence >= reading->voids[i].from && sequence < reading->voids[i].until)
            return true;
    return false;
}

/* The part that begins with ENTRY has found that units from FROM on had lost their lines. */
static int take_void(struct reading *reading, const struct journal_entry *entry, uint64_t from,
                     struct failure *failure) {
    for (size_t i = 0; i < reading->void_count; i++)
        if (reading->voids[i].until == entry->sequence)
            return 0;
    struct void_range *voids = realloc(reading->voids, (reading->void_count + 1) * sizeof *voids);
    if (!voids || reading->void_count == VOIDS_MOST)
        return failure_memory(failure);
    reading->voids = voids;
    voids[reading->void_count++] = (struct void_range){from, entry->sequence};
    reading->again = true;
    return 0;
}

/* It names folders on nodes. */
static int take_identity(struct past *past, const struct journal_entry *entry, struct failure *failure) {
    enum { DIGITS = 36 };
    if (journal_entry_text(entry, "run_id", past->id, sizeof past->id) && strlen(past->id) == DIGITS &&
        strspn(past->id, "0123456789abcdef-") == DIGITS)
        return 0;
    return failure_set_kind(failure, FAILURE_VERIFICATION, -EBADMSG,
                            "the journal says of no run that it is its: 'run_id' is no UUID");
}

static int take_resumed(struct reading *reading, const struct journal_entry *entry, struct failure *failure) {
    int64_t from = 0;
    int r = begin_part(reading, entry);
    if (r == 0 && journal_entry_integer(entry, "lost_from", &from) && from > 0)
        r = take_void(reading, entry, (uint64_t)from, failure);
    return r;
}

struct unit_entry {
    int64_t order, attempt;
    char node[NAME_MOST], core[NAME_MOST], status[16], flags[256], crc[16];
};

static void read_unit(const struct journal_entry *entry, struct unit_entry *unit) {
    struct journal_member member;
    size_t at = 0;
    *unit = (struct unit_entry){.attempt = 1};
    while (journal_entry_next(entry, &at, &member)) {
        if (journal_member_is(&member, "order"))
            journal_member_integer(&member, &unit->order);
        else if (journal_member_is(&member, "attempt"))
            journal_member_integer(&member, &unit->attempt);
        else if (journal_member_is(&member, "node"))
            journal_member_text(&member, unit->node, sizeof unit->node);
        else if (journal_member_is(&member, "core"))
            journal_member_text(&member, unit->core, sizeof unit->core);
        else if (journal_member_is(&member, "status"))
            journal_member_text(&member, unit->status, sizeof unit->status);
        else if (journal_member_is(&member, "flags"))
            journal_member_text(&member, unit->flags, sizeof unit->flags);
        else if (journal_member_is(&member, "line_crc32c"))
            journal_member_text(&member, unit->crc, sizeof unit->crc);
    }
}

static int take_unit(struct reading *reading, const struct journal_entry *entry, struct failure *failure) {
    struct unit_entry unit;
    struct past *past = reading->past;
    read_unit(entry, &unit);
    bool done = strcmp(unit.status, "done") == 0;
    if (unit.attempt < 1 || unit.attempt > ATTEMPTS_MOST || unit.order < 1)
        return failure_set_kind(failure, FAILURE_VERIFICATION, -EBADMSG,
                                "entry %" PRIu64 " of the journal is of a unit that cannot be",
                                entry->sequence);
    if (done && is_void(reading, entry->sequence))
        return 0;
    if (done && !take_line(reading, unit.crc)) {
        past->lost_from = past->lost_from ? past->lost_from : entry->sequence;
        past->lost++;
        reading->over = true;
        return 0;
    }
    int r = done && reading->line_taker
                ? reading->line_taker(reading->line, reading->length - 1, reading->context, failure)
                : 0;
    if (r < 0)
        return r;
    struct ledger_attempt attempt = {.place = ledger_place(reading->ledger, unit.node, unit.core),
                                     .position = (size_t)unit.order - 1,
                                     .attempt = (unsigned)unit.attempt,
                                     .done = done,
                                     .flags = unit_state_parse_flags(unit.flags)};
    r = attempt.place == SIZE_MAX ? -ENOMEM : ledger_take(reading->ledger, &attempt);
    if (r == -ENOMEM)
        return failure_memory(failure);
    if (r < 0)
        return failure_set_kind(failure, FAILURE_VERIFICATION, -EBADMSG,
                                "entry %" PRIu64 " of the journal has unit %" PRId64
                                ", and the plan has no more than %zu",
                                entry->sequence, unit.order, plan_positions(reading->plan));
    if (last_part(past))
        last_part(past)->units_done += done;
    return 0;
}

static int take_node(struct past *past, const struct journal_entry *entry, struct failure *failure) {
    char name[NAME_MOST];
    if (!journal_entry_text(entry, "name", name, sizeof name))
        return 0;
    for (size_t i = 0; i < past->node_count; i++)
        if (strcmp(past->nodes[i], name) == 0)
            return 0;
    char **nodes = xrealloc(past->nodes, (past->node_count + 1) * sizeof *nodes);
    past->nodes = nodes;
    if (!(nodes[past->node_count] = strdup(name)))
        return failure_memory(failure);
    past->node_count++;
    return 0;
}

static int take_replacement(struct past *past, const struct journal_entry *entry, struct failure *failure) {
    char node[NAME_MOST], by[NAME_MOST];
    if (!journal_entry_text(entry, "node", node, sizeof node) ||
        !journal_entry_text(entry, "by", by, sizeof by))
        return 0;
    struct past_replacement *replacements =
        realloc(past->replacements, (past->replacement_count + 1) * sizeof *replacements);
    if (!replacements)
        return failure_memory(failure);
    past->replacements = replacements;
    struct past_replacement *one = &replacements[past->replacement_count++];
    *one = (struct past_replacement){.node = strdup(node), .by = strdup(by)};
    return one->node && one->by ? 0 : failure_memory(failure);
}

static int take_agent(struct past *past, const struct journal_entry *entry, struct failure *failure) {
    char name[NAME_MOST], session[17];
    if (!journal_entry_text(entry, "node", name, sizeof name) ||
        !journal_entry_text(entry, "session", session, sizeof session))
        return 0;
    struct past_agent *agents = xrealloc(past->agents, (past->agent_count + 1) * sizeof *agents);
    past->agents = agents;
    struct past_agent *agent = &agents[past->agent_count];
    *agent = (struct past_agent){.node = strdup(name)};
    memcpy(agent->session, session, sizeof session);
    if (!agent->node)
        return failure_memory(failure);
    past->agent_count++;
    return 0;
}

/* It was told to leave, or was gone. */
static void drop_agent(struct past *past, const struct journal_entry *entry) {
    char session[17];
    if (!journal_entry_text(entry, "session", session, sizeof session))
        return;
    for (size_t i = 0; i < past->agent_count; i++)
        if (strcmp(past->agents[i].session, session) == 0) {
            free(past->agents[i].node);
            past->agents[i] = past->agents[--past->agent_count];
            return;
        }
}

static void take_sealing(struct past *past, const struct journal_entry *entry) {
    past->sealed = journal_entry_text(entry, "archive", past->archive, sizeof past->archive) &&
                   !strchr(past->archive, '/');
    if (last_part(past))
        journal_entry_text(entry, "status", last_part(past)->status, sizeof last_part(past)->status);
}

static void take_block(struct past *past, const struct journal_entry *entry) {
    int64_t block = 0;
    if (journal_entry_integer(entry, "block", &block) && block > (int64_t)past->block_number &&
        block < NUMBER_MOST)
        past->block_number = (size_t)block;
}

static void take_phase(struct past *past, const struct journal_entry *entry) {
    char phase[32] = "", status[32] = "";
    if (!journal_entry_text(entry, "phase", phase, sizeof phase) || strcmp(phase, "measure") != 0)
        return;
    bool ended = journal_entry_is(entry, "phase-ended");
    past->measured = ended && journal_entry_text(entry, "status", status, sizeof status) &&
                     strcmp(status, "done") == 0 && !past->lacks_node;
    if (!ended)
        past->lacks_node = false;
}

static void take_planned(struct past *past, const struct journal_entry *entry) {
    int64_t units = 0;
    if (journal_entry_integer(entry, "units", &units) && units > 0)
        past->planned = (uint64_t)units;
}

/* "logs/commands/012-setup/node.out": commands of later parts are counted on from there. */
static void take_command(struct past *past, const struct journal_entry *entry) {
    char name[512];
    unsigned number = 0;
    static const char *const members[] = {"output", "error"};
    for (size_t i = 0; i < 2; i++)
        if (journal_entry_text(entry, members[i], name, sizeof name) &&
            sscanf(name, "logs/commands/%u", &number) == 1 && number > past->commands_kept &&
            number < NUMBER_MOST)
            past->commands_kept = number;
}

static int take_entry(const struct journal_entry *entry, void *context, struct failure *failure) {
    struct reading *reading = context;
    struct past *past = reading->past;
    int r = 0;
    if (journal_entry_is(entry, "unit")) {
        r = take_unit(reading, entry, failure);
    } else if (journal_entry_is(entry, "run-started")) {
        r = take_identity(past, entry, failure);
        if (r == 0)
            r = begin_part(reading, entry);
    } else if (journal_entry_is(entry, "run-resumed")) {
        r = take_resumed(reading, entry, failure);
    } else if (journal_entry_is(entry, "node")) {
        r = take_node(past, entry, failure);
    } else if (journal_entry_is(entry, "node-replaced")) {
        r = take_replacement(past, entry, failure);
    } else if (journal_entry_is(entry, "agent")) {
        r = take_agent(past, entry, failure);
    } else if (journal_entry_is(entry, "agent-ended")) {
        drop_agent(past, entry);
    } else if (journal_entry_is(entry, "block-started")) {
        take_block(past, entry);
    } else if (journal_entry_is(entry, "command")) {
        take_command(past, entry);
    } else if (journal_entry_is(entry, "phase-started") || journal_entry_is(entry, "phase-ended")) {
        take_phase(past, entry);
    } else if (journal_entry_is(entry, "node-out")) {
        past->measured = false;
        past->lacks_node = true;
    } else if (journal_entry_is(entry, "planned")) {
        take_planned(past, entry);
    } else if (journal_entry_is(entry, "sealing")) {
        take_sealing(past, entry);
    }
    if (last_part(past))
        last_part(past)->ended_ns = entry->wall_ns;
    return r;
}

/* ---- Beginning and end -----------------------------------------------------------------------------------
 */

static void clear_reading(struct reading *reading) {
    ledger_free(reading->ledger);
    free(reading->voids);
    free(reading->line);
    if (reading->results)
        fclose(reading->results);
}

/* *RET is NULL when there is no such file. A folder may come from a stranger. */
static int open_results(const char *path, FILE **ret, struct failure *failure) {
    struct stat status;
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 && errno == ENOENT)
        return 0;
    if (file >= 0 && fstat(file, &status) == 0 && !S_ISREG(status.st_mode)) {
        close(file);
        return failure_set(failure, -EINVAL, "'%s' is no file", path);
    }
    *ret = file < 0 ? NULL : fdopen(file, "r");
    if (*ret)
        return 0;
    int code = -errno;
    if (file >= 0)
        close(file);
    return failure_set(failure, code, "cannot open '%s': %s", path, strerror(-code));
}

/* One pass over both files. */
static int read_both(struct reading *reading, const char *journal, const char *results, const char *header,
                     struct failure *failure) {
    past_clear(reading->past);
    ledger_free(take_pointer(reading->ledger));
    if (ledger_new(plan_positions(reading->plan), &reading->ledger) < 0)
        return failure_memory(failure);
    if (reading->results)
        fclose(take_pointer(reading->results));
    reading->again = false;
    reading->over = true;
    int r = open_results(results, &reading->results, failure);
    if (r < 0)
        return r;
    r = reading->results ? check_header(reading, header, failure) : 0;
    if (r == 0)
        r = journal_replay(journal, take_entry, reading, &reading->past->journal, failure);
    if (r == 0 && reading->results && ferror(reading->results))
        r = failure_set(failure, -EIO, "cannot read '%s'", results);
    return r;
}

int past_read(const char *folder, const struct plan *plan, const char *header, past_line_taker *line,
              void *context, struct past *ret, struct ledger **ret_ledger, struct failure *failure) {
    cleanup_free char *journal = file_join(folder, "journal.jsonl"),
                      *results = file_join(folder, "results/results.csv");
    cleanup(past_clear) struct past past = {0};
    cleanup(clear_reading) struct reading reading = {.plan = plan, .past = &past};
    if (!journal || !results)
        return failure_memory(failure);
    int r;
    do /* once; more often only where lines were lost before */
        r = read_both(&reading, journal, results, header, failure);
    while (r == 0 && reading.again);
    if (r == 0 && line && past.results_bytes > 0) {
        /* Values are shown when it is known which lines stand. */
        reading.line_taker = line;
        reading.context = context;
        r = read_both(&reading, journal, results, header, failure);
    }
    if (r == 0 && (past.part_count == 0 || !past.id[0]))
        r = failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                             "the journal '%s' does not begin with a run; nothing was measured yet", journal);
    if (r == 0 && reading.results)
        r = file_size(results, &past.results_end, failure);
    if (r < 0)
        return r;
    *ret = past;
    past = (struct past){0};
    *ret_ledger = take_pointer(reading.ledger);
    return 0;
}

void past_clear(struct past *past) {
    free(past->parts);
    for (size_t i = 0; i < past->node_count; i++)
        free(past->nodes[i]);
    free(past->nodes);
    for (size_t i = 0; i < past->agent_count; i++)
        free(past->agents[i].node);
    free(past->agents);
    for (size_t i = 0; i < past->replacement_count; i++) {
        free(past->replacements[i].node);
        free(past->replacements[i].by);
    }
    free(past->replacements);
    *past = (struct past){0};
}
