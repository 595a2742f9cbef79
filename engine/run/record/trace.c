#include "engine/run/record/trace.h"

#include "engine/documents/csv.h"
#include "engine/documents/json.h"
#include "engine/foundation/checksum.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/run/record/history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCKS_MAX = 1 << 26,
    COMMANDS_MAX = 1 << 26,     /* of units */
    NODES_BYTES_MAX = 64 << 10, /* of the nodes of a unit, folded */
    CORE_BYTES_MAX = 32,
    COMMIT_BYTES_MAX = 256 << 20, /* between two entries `results`; the engine adds some 4 MiB */
    DESIGN_BYTES_MAX = 1 << 30,
};

/* As its entry `block-started` has it: the positions that it has. */
struct block {
    int64_t number, first, last;
};

struct trace {
    struct archive_reader *archive;
    struct failure *failure;
    struct run_history history;
    struct block *blocks; /* in the order of the journal, which counts them upwards */
    size_t block_count, block_capacity;
    struct text design; /* design.csv; "": there is none */
    const char **rows;  /* of the design, each up to its newline */
    size_t row_count, row_capacity;
    size_t plan_columns; /* of results.csv, between those that every run has */
    /* Of the entries `unit-command` that say a command line: the units, as name_unit() has them, and the
     * nodes whose arguments are known from the entry on. */
    struct text_set commands, commanded;
    bool is_streamed;       /* the last row was of a kernel that measures several units */
    struct text_set folded; /* lists of nodes, "a-[1-4]", that the run had all of */
    uint64_t line;          /* of results.csv, from 1 */
};

#define refuse(trace, ...) failure_verification((trace)->failure, archive_path((trace)->archive), __VA_ARGS__)

/* ---- The journal */

/* The unit of ORDER and ATTEMPT; 0: any unit of BLOCK, which one kernel measures. */
static char *name_unit(int64_t block, int64_t order, int64_t attempt, const char *node, size_t node_length,
                       const char *core, size_t core_length) {
    return order ? xformat("%" PRId64 " %" PRId64 " %.*s %.*s", order, attempt, (int)core_length, core,
                           (int)node_length, node)
                 : xformat("block %" PRId64 " %.*s %.*s", block, (int)core_length, core, (int)node_length,
                           node);
}

/* Notes the unit of an entry `unit-command`, if it has arguments or an entry of the same node had some. */
static int take_command(struct trace *trace, const struct journal_entry *entry) {
    cleanup_free char *node = xmalloc(NODES_BYTES_MAX);
    char core[CORE_BYTES_MAX];
    uint32_t number;
    int64_t block, order = 0, attempt = 0;
    if (!journal_entry_text(entry, "node", node, NODES_BYTES_MAX) ||
        !journal_entry_text(entry, "core", core, sizeof core) ||
        !journal_entry_integer(entry, "block", &block))
        return 0;
    if (cJSON_GetObjectItemCaseSensitive(entry->members,
                                         "arguments")) /* null: they are too long to be there */
        text_set_add(&trace->commanded, node, strlen(node));
    journal_entry_integer(entry, "order", &order);
    journal_entry_integer(entry, "attempt", &attempt);
    cleanup_free char *unit = name_unit(block, order, attempt, node, strlen(node), core, strlen(core));
    if (text_set_find(&trace->commanded, node, strlen(node), &number) && trace->commands.count < COMMANDS_MAX)
        text_set_add(&trace->commands, unit, strlen(unit));
    return 0;
}

/* Whether the journal has the command line of the unit of ROW, or of the kernel that measured it. All rows of
 * a run are of one kind: that of the last is tried first. */
static bool has_command(struct trace *trace, const struct results_row *row) {
    bool is_found = archive_run_minor(archive_run(trace->archive)) < 1;
    uint32_t number;
    for (int i = 0; i < 2 && !is_found; i++) {
        trace->is_streamed ^= i == 1;
        cleanup_free char *unit =
            name_unit(row->block, trace->is_streamed ? 0 : row->order, row->attempt, row->node.bytes,
                      row->node.length, row->core.bytes, row->core.length);
        is_found = text_set_find(&trace->commands, unit, strlen(unit), &number);
    }
    return is_found;
}

/* Takes a unit's command, or adds the block that an entry "block-started" begins. Refused: numbers of blocks
 * that do not rise. */
static int take_entry(const struct journal_entry *entry, void *context, struct failure *failure) {
    struct trace *trace = context;
    struct block block = {0};
    if (journal_entry_is(entry, "unit-command"))
        return take_command(trace, entry);
    if (!journal_entry_is(entry, "block-started"))
        return 0;
    bool is_whole = journal_entry_integer(entry, "block", &block.number) &&
                    journal_entry_integer(entry, "first", &block.first) &&
                    journal_entry_integer(entry, "last", &block.last);
    int64_t before = trace->block_count ? trace->blocks[trace->block_count - 1].number : 0;
    if (!is_whole || block.number <= before)
        return failure_verification(failure, archive_path(trace->archive),
                                    "line %" PRIu64 " of " ARCHIVE_JOURNAL
                                    " does not start the block after %" PRId64,
                                    entry->sequence, before);
    int r = list_reserve(&trace->blocks, &trace->block_capacity, trace->block_count + 1, sizeof block,
                         BLOCKS_MAX);
    if (r < 0)
        return failure_set(failure, r, ARCHIVE_JOURNAL " has more than %d blocks, the most accepted",
                           BLOCKS_MAX);
    trace->blocks[trace->block_count++] = block;
    return 0;
}

/* Reads the journal: once for the history of the run, once for its blocks and commands. */
static int read_journal(struct trace *trace) {
    for (int pass = 0; pass < 2; pass++) {
        cleanup(archive_member_cleanup) struct archive_member *member = NULL;
        struct journal_end end = {0};
        int r = archive_member_open(trace->archive, ARCHIVE_JOURNAL, &member, trace->failure);
        if (r < 0)
            return r;
        const struct journal_source source = {ARCHIVE_JOURNAL, archive_member_read, member};
        r = pass == 0 ? run_history_read_from(&source, &trace->history, trace->failure)
                      : journal_replay_from(&source, take_entry, trace, &end, trace->failure);
        if (r < 0)
            return r;
    }
    const struct journal_end *end = &trace->history.journal;
    if (end->bytes != end->file_bytes)
        return refuse(trace, ARCHIVE_JOURNAL " is right up to line %" PRIu64 " only, and goes on behind it",
                      end->entries);
    return 0;
}

static int check_counts(const struct trace *trace) {
    const struct archive_run *run = archive_run(trace->archive);
    const struct run_history *history = &trace->history;
    if (!run->run_id || strcmp(run->run_id, history->run_id) != 0)
        return refuse(trace, ARCHIVE_JOURNAL " is of the run '%s', " ARCHIVE_RUN " of '%s'", history->run_id,
                      run->run_id ? run->run_id : "");
    if (run->counts.done != history->units_done || run->counts.failed != history->units_failed)
        return refuse(trace,
                      ARCHIVE_RUN " counts %" PRId64 " units that were done and %" PRId64
                                  " that failed; the journal %" PRId64 " and %" PRId64,
                      run->counts.done, run->counts.failed, history->units_done, history->units_failed);
    return 0;
}

/* ---- The design */

/* The first newline outside quotes from AT on; END where there is none. */
static const char *line_end(const char *at, const char *end) {
    bool quoted = false;
    for (; at < end && (quoted || *at != '\n'); at++)
        quoted ^= *at == '"';
    return at;
}

/* Finds the rows of design.csv. */
static int read_design(struct trace *trace) {
    if (!archive_find(trace->archive, ARCHIVE_DESIGN, NULL))
        return 0;
    int r = archive_read_member(trace->archive, ARCHIVE_DESIGN, &trace->design, trace->failure);
    const char *at = trace->design.bytes, *end = at + trace->design.length;
    at = r < 0 ? end : line_end(at, end); /* behind the header */
    while (r == 0 && at + 1 < end) {
        if (list_reserve(&trace->rows, &trace->row_capacity, trace->row_count + 1, sizeof *trace->rows,
                         SIZE_MAX) < 0)
            memory_exhausted();
        trace->rows[trace->row_count++] = ++at;
        at = line_end(at, end);
    }
    return r;
}

/* Behind the first COUNT fields of LINE, which has more. */
static const char *skip_fields(const char *line, size_t count) {
    for (bool quoted = false; count > 0; line++) {
        quoted ^= *line == '"';
        count -= *line == ',' && !quoted;
    }
    return line;
}

/* Whether the factors of LINE, of results.csv, are those of ROW of the design, from 1, byte for byte. */
static bool has_factors(const struct trace *trace, const char *line, int64_t row) {
    if (trace->design.length == 0)
        return true;
    if (row < 1 || (uint64_t)row > trace->row_count)
        return false;
    const char *found = skip_fields(line, RESULTS_FACTORS), *factors = trace->rows[row - 1];
    size_t length = (size_t)(line_end(factors, trace->design.bytes + trace->design.length) - factors);
    return strncmp(found, factors, length) == 0 && (found[length] == ',' || found[length] == '\n');
}

/* ---- Lines of the results */

static bool had_node(const struct trace *trace, const char *name, size_t length) {
    uint32_t number;
    return text_set_find(&trace->history.node_names, name, length, &number) &&
           number < trace->history.node_count;
}

/* NODES: one that the run had, or several, folded. */
static bool had_nodes(struct trace *trace, const struct results_text *nodes) {
    uint32_t number;
    if (nodes->length == 0 || memchr(nodes->bytes, '\0', nodes->length))
        return false;
    if (had_node(trace, nodes->bytes, nodes->length) ||
        text_set_find(&trace->folded, nodes->bytes, nodes->length, &number))
        return true;
    cleanup(host_list_clear) struct host_list list = {0};
    cleanup_free char *text = xstrndup(nodes->bytes, nodes->length);
    if (host_list_parse(&list, text, NULL) < 0)
        return false;
    for (size_t i = 0; i < list.count; i++)
        if (!had_node(trace, list.names[i], strlen(list.names[i])))
            return false;
    text_set_add(&trace->folded, nodes->bytes, nodes->length);
    return list.count > 0;
}

static int compare_blocks(const void *a, const void *b) {
    int64_t one = ((const struct block *)a)->number, other = ((const struct block *)b)->number;
    return (one > other) - (one < other);
}

static const struct block *find_block(const struct trace *trace, int64_t number) {
    const struct block wanted = {.number = number};
    return trace->block_count == 0
               ? NULL
               : bsearch(&wanted, trace->blocks, trace->block_count, sizeof wanted, compare_blocks);
}

/* Checks that a line's unit is in the block that it names, on nodes of the run, with the factors of its row.
 */
static int check_line(struct trace *trace, const char *line, const struct results_row *row) {
    const struct block *block = find_block(trace, row->block);
    if (!block)
        return refuse(trace,
                      "line %" PRIu64 " of " ARCHIVE_RESULTS " is of block %" PRId64
                      ", which the journal did not start",
                      trace->line, row->block);
    if (row->order < block->first || row->order > block->last)
        return refuse(trace,
                      "line %" PRIu64 " of " ARCHIVE_RESULTS " has order %" PRId64 "; block %" PRId64
                      " of the journal has %" PRId64 " to %" PRId64,
                      trace->line, row->order, row->block, block->first, block->last);
    if (!had_nodes(trace, &row->node))
        return refuse(trace,
                      "line %" PRIu64 " of " ARCHIVE_RESULTS
                      " is of the node '%.*s', which the journal does not "
                      "have",
                      trace->line, (int)(row->node.length < 128 ? row->node.length : 128), row->node.bytes);
    if (!has_command(trace, row))
        return refuse(trace,
                      "line %" PRIu64 " of " ARCHIVE_RESULTS
                      " has no entry 'unit-command' in " ARCHIVE_JOURNAL " with the command line of its unit",
                      trace->line);
    if (!has_factors(trace, line, row->row))
        return refuse(trace,
                      "line %" PRIu64 " of " ARCHIVE_RESULTS " has other factors than row %" PRId64
                      " of " ARCHIVE_DESIGN,
                      trace->line, row->row);
    return 0;
}

static int check_lines(struct trace *trace, const char *at, const char *end) {
    int r = 0;
    for (const char *newline; r == 0 && at < end; at = newline + 1) {
        struct results_row row;
        trace->line++;
        newline = results_row_read(at, end, trace->plan_columns, 0, &row);
        if (!newline)
            return refuse(trace, "line %" PRIu64 " of " ARCHIVE_RESULTS " is no line of the results of a run",
                          trace->line);
        r = check_line(trace, at, &row);
    }
    return r;
}

/* Takes the header off BYTES, the begin of the results. */
static int take_header(struct trace *trace, struct text *bytes) {
    const char *newline = memchr(bytes->bytes, '\n', bytes->length), *at = bytes->bytes;
    size_t columns = 1;
    bool is_right = newline;
    for (enum results_column i = RESULTS_ROW; is_right && i < RESULTS_FACTORS; i++) {
        const char *name = results_column_describe(i)->name;
        is_right = strncmp(at, name, strlen(name)) == 0 && at[strlen(name)] == ',';
        at += strlen(name) + 1;
    }
    for (at = bytes->bytes; is_right && at < newline; at++)
        columns += *at == ',';
    if (!is_right || columns < RESULTS_COLUMNS)
        return refuse(trace, ARCHIVE_RESULTS " does not begin with the columns of a run");
    trace->plan_columns = columns - RESULTS_COLUMNS;
    trace->line = 1;
    text_consume(bytes, (size_t)(newline - bytes->bytes) + 1);
    return 0;
}

/* The next LENGTH bytes of MEMBER, added to BYTES; *RET_IS_WHOLE: so many there were. */
static int read_range(struct trace *trace, struct archive_member *member, size_t length, struct text *bytes) {
    char *to;
    if (length > COMMIT_BYTES_MAX || text_reserve(bytes, length, &to) < 0)
        return refuse(trace,
                      "an entry 'results' of " ARCHIVE_JOURNAL " is of %zu bytes; at most %d are accepted",
                      length, COMMIT_BYTES_MAX);
    while (length > 0) {
        int64_t got = archive_member_read(member, bytes->bytes + bytes->length, length);
        if (got < 0)
            return archive_member_status(member, trace->failure);
        if (got == 0)
            return refuse(trace, ARCHIVE_RESULTS " is shorter than " ARCHIVE_JOURNAL " says");
        bytes->length += (size_t)got;
        length -= (size_t)got;
    }
    return 0;
}

/* Checks results.csv piece by piece: each entry `results` of the journal covers bytes with a checksum, and
 * all bytes must be covered. */
static int check_results(struct trace *trace) {
    cleanup(archive_member_cleanup) struct archive_member *member = NULL;
    cleanup(text_clear) struct text bytes;
    uint64_t done = 0, size = 0;
    text_init(&bytes, COMMIT_BYTES_MAX);
    if (!archive_find(trace->archive, ARCHIVE_RESULTS, &size))
        return 0;
    int r = archive_member_open(trace->archive, ARCHIVE_RESULTS, &member, trace->failure);
    for (size_t i = 0; r == 0 && i < trace->history.commit_count; i++) {
        const struct run_history_commit *commit = &trace->history.commits[i];
        if (commit->bytes <= done) /* no line was added */
            continue;
        text_reset(&bytes);
        r = read_range(trace, member, (size_t)(commit->bytes - done), &bytes);
        if (r == 0 && checksum_crc32c(bytes.bytes, bytes.length) != commit->crc)
            r = refuse(trace,
                       "bytes %" PRIu64 " to %" PRIu64 " of " ARCHIVE_RESULTS
                       " are not those of " ARCHIVE_JOURNAL,
                       done, commit->bytes);
        if (r == 0 && done == 0)
            r = take_header(trace, &bytes);
        r = r < 0 ? r : check_lines(trace, bytes.bytes, bytes.bytes + bytes.length);
        done = commit->bytes;
    }
    if (r == 0 && done == 0 &&
        size <= COMMIT_BYTES_MAX) { /* of a run that did nothing: the columns at most */
        r = read_range(trace, member, (size_t)size, &bytes);
        const char *newline = r == 0 ? memchr(bytes.bytes, '\n', bytes.length) : NULL;
        done = !newline || newline + 1 == bytes.bytes + bytes.length ? size : 0;
    }
    if (r == 0 && done != size)
        return refuse(trace,
                      ARCHIVE_RESULTS " has %" PRIu64 " bytes; " ARCHIVE_JOURNAL " vouches for %" PRIu64,
                      size, done);
    return r;
}

/* ---- The whole */

static void trace_clear(struct trace *trace) {
    run_history_clear(&trace->history);
    text_set_clear(&trace->commands);
    text_set_clear(&trace->commanded);
    text_set_clear(&trace->folded);
    text_clear(&trace->design);
    free(trace->blocks);
    free(trace->rows);
}

int run_trace_check(struct archive_reader *archive, uint64_t *ret_lines, struct failure *failure) {
    cleanup(trace_clear) struct trace trace = {.archive = archive, .failure = failure};
    *ret_lines = 0;
    if (!archive_find(archive, ARCHIVE_JOURNAL, NULL))
        return 0;
    text_init(&trace.design, DESIGN_BYTES_MAX);
    int r = read_journal(&trace);
    r = r < 0 ? r : check_counts(&trace);
    r = r < 0 ? r : read_design(&trace);
    r = r < 0 ? r : check_results(&trace);
    if (r < 0 && failure && failure->kind == FAILURE_INPUT)
        failure->kind = FAILURE_VERIFICATION; /* it was sealed like this */
    *ret_lines = trace.line > 0 ? trace.line - 1 : 0;
    return r;
}
