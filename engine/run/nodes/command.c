#include "engine/run/nodes/command.h"

#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/secret.h"
#include "engine/run/nodes/kinds.h"
#include "engine/run/nodes/nodes.h"
#include "engine/run/nodes/software.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    QUESTION_TIMEOUT_MS = 60000, /* a command that only asks about the node must not hold up the run */
    COMMAND_TIMEOUT_MS = 24 * 3600 * 1000, /* clones, builds, the experiment's setup and teardown */
    OUTPUT_MAX = 64 << 20, /* of each stream of each node, kept; what is more is counted and dropped */
    TAIL_BYTES = 4096,     /* of what it wrote, where it failed */
    TAIL_LINES = 20,
    LINE_BYTES_MAX = 64 << 10,
    CALL_TEXTS = 2, /* the arguments of a node, then what is added to its environment */
};

struct issue {
    struct node_set *set;
    const struct node_command *command;
    struct node_texts lines;               /* for people, of the nodes that were asked */
    struct bind_texts *calls;              /* of a command with a name: arguments and environment of each */
    char *kept;                            /* folder for output, below the run's; NULL: none is kept */
    const char **arguments, **environment; /* of the node that was asked last, with its software */
    struct node_result *results;
};

static void clear_issue(struct issue *issue) {
    node_texts_clear(&issue->lines);
    for (size_t i = 0; issue->calls && i < CALL_TEXTS * issue->set->count; i++)
        bind_texts_clear(&issue->calls[i]);
    free(issue->calls);
    free(issue->kept);
    free(issue->arguments);
    free(issue->environment);
    if (issue->results)
        node_results_free(issue->set->group, issue->results);
}

static char *describe(const char *const *arguments) {
    cleanup(text_clear) struct text line;
    text_init(&line, LINE_BYTES_MAX);
    text_append_command(&line, arguments);
    return xstrdup(line.bytes);
}

/* Keeps ITEMS, for the journal, without variables that may be secrets; beyond NODE_CALL_BYTES_MAX none. */
static void keep_texts(struct bind_texts *ret, const char *const *items, bool are_variables) {
    size_t bytes = 0;
    for (size_t i = 0; items && items[i]; i++)
        bytes += strlen(items[i]);
    for (size_t i = 0; items && items[i] && bytes <= NODE_CALL_BYTES_MAX; i++)
        if (!are_variables || !secret_is_variable(items[i]))
            bind_texts_add(ret, items[i]);
}

/* Sets RET to the command line for NODE, with the software's prefix and environment if asked for. The first
 * call of a node is also kept for the journal and the log. */
static int specify_command(size_t node, struct remote_command_specification *ret, void *context,
                           struct failure *failure) {
    struct issue *issue = context;
    const struct node_command *command = issue->command;
    ret->arguments = command->arguments;
    ret->environment = command->environment;
    ret->folder = command->folder;
    int r = command->specify ? command->specify(issue->set, node, ret, command->context, failure) : 0;
    if (r < 0)
        return r;
    if (issue->calls && !issue->calls[CALL_TEXTS * node].count) {
        keep_texts(&issue->calls[CALL_TEXTS * node], ret->arguments, false);
        keep_texts(&issue->calls[CALL_TEXTS * node + 1], ret->environment, true);
    }
    if (command->in_software) {
        free(issue->arguments);
        free(issue->environment);
        issue->arguments = software_join(software_prefix(issue->set), ret->arguments);
        issue->environment =
            software_join(software_environment(issue->set, &issue->set->items[node]), ret->environment);
        ret->arguments = issue->arguments;
        ret->environment = issue->environment;
        ret->folder = RUN_WORK_FOLDER;
    }
    ret->timeout_ms = command->name || command->shown ? COMMAND_TIMEOUT_MS : QUESTION_TIMEOUT_MS;
    ret->output_limit = ret->error_limit = OUTPUT_MAX;
    if (!issue->lines.items[node])
        issue->lines.items[node] = command->shown ? xstrdup(command->shown) : describe(ret->arguments);
    return 0;
}

/* ---- What they wrote -------------------------------------------------------------------------------------
 */

static char *output_key(const struct node_result *result) {
    const char *output = result->output.file ? result->output.hash : "-",
               *error = result->error.file ? result->error.hash : "-";
    return result->output.file || result->error.file ? xformat("%s %s", output, error) : NULL;
}

static void forget_file(struct node_stream *stream) {
    if (stream->file)
        unlink(stream->file);
    free(stream->file);
    stream->file = NULL;
}

/* Keeps each distinct output once: of nodes whose output is the same only the first one's files stay.
 * KEEPER[i] is the node that has the files of node i. */
static void keep_distinct_outputs(struct issue *issue, const char *folder, size_t *keeper) {
    size_t count = issue->set->count;
    cleanup(node_texts_clear) struct node_texts keys = node_texts_new(count);
    for (size_t i = 0; i < count; i++) {
        keeper[i] = i;
        keys.items[i] = output_key(&issue->results[i]);
    }
    cleanup(node_kinds_clear) struct node_kinds kinds = node_kinds_of(&keys);
    for (size_t k = 0; k < kinds.count; k++)
        for (size_t j = 1; j < kinds.items[k].count; j++) {
            struct node_result *same = &issue->results[kinds.items[k].nodes[j]];
            keeper[kinds.items[k].nodes[j]] = kinds.items[k].nodes[0];
            forget_file(&same->output);
            forget_file(&same->error);
        }
    if (kinds.count == 0)
        rmdir(folder);
}

/* ---- Records ---------------------------------------------------------------------------------------------
 */

static void log_lines(struct issue *issue) {
    struct node_set *set = issue->set;
    cleanup(node_kinds_clear) struct node_kinds kinds = node_kinds_of(&issue->lines);
    for (size_t k = 0; k < kinds.count; k++) {
        cleanup_free char *who = node_set_describe(set, kinds.items[k].nodes, kinds.items[k].count);
        record_log(set->record, "%s: %s", who, kinds.items[k].value);
    }
}

/* Journals under KEY the path of the file in which node KEEPER has the output. */
static void journal_stream(const struct issue *issue, const char *key, size_t keeper, const char *suffix,
                           const struct node_stream *stream) {
    if (!stream->file)
        return;
    cleanup_free char *name = xformat("%s/%s.%s", issue->kept, issue->set->items[keeper].name, suffix);
    journal_string(issue->set->record->journal, key, name);
}

/* Journals the command of NODE and its exit. KEEPER: the node that has its output. */
static void journal_result(struct issue *issue, size_t node, size_t keeper) {
    const struct node_result *result = &issue->results[node];
    struct journal *journal = issue->set->record->journal;
    if (result->outcome != NODE_DONE)
        return;
    journal_begin(journal, "command");
    journal_string(journal, "phase", run_phase_names[issue->set->record->phase]);
    journal_string(journal, "node", issue->set->items[node].name);
    journal_string(journal, "command", issue->lines.items[node]);
    if (issue->calls && issue->calls[CALL_TEXTS * node].count)
        journal_strings(journal, "arguments", (const char *const *)issue->calls[CALL_TEXTS * node].items);
    if (issue->calls && issue->calls[CALL_TEXTS * node + 1].count)
        journal_strings(journal, "environment",
                        (const char *const *)issue->calls[CALL_TEXTS * node + 1].items);
    journal_time(journal, "started_ns", result->start.wall_ns);
    journal_time(journal, "started_monotonic_ns", result->start.monotonic_ns);
    journal_time(journal, "ended_ns", result->exit.wall_ns);
    journal_time(journal, "ended_monotonic_ns", result->exit.monotonic_ns);
    journal_integer(journal, result->exit.signalled ? "signal" : "exit", result->exit.code);
    journal_stream(issue, "output", keeper, "out", &issue->results[keeper].output);
    journal_stream(issue, "error", keeper, "err", &issue->results[keeper].error);
    journal_end(journal);
}

/* ---- Ends ------------------------------------------------------------------------------------------------
 */

/* Appends the last TAIL_BYTES of what a command wrote to RET, from the beginning of a line on. */
static void read_tail(const struct node_stream *stream, struct text *ret) {
    cleanup_close int file = stream->file ? open(stream->file, O_RDONLY | O_CLOEXEC) : -1;
    off_t size = file >= 0 ? lseek(file, 0, SEEK_END) : -1;
    size_t kept = stream->length < TAIL_BYTES ? stream->length : TAIL_BYTES;
    char bytes[TAIL_BYTES];
    ssize_t got = size > 0 ? pread(file, bytes, sizeof bytes, size > TAIL_BYTES ? size - TAIL_BYTES : 0) : 0;
    if (got > 0)
        text_append(ret, bytes, (size_t)got);
    else if (kept > 0)
        text_append(ret, stream->bytes + stream->length - kept, kept);
    const char *line = stream->total > ret->length ? strchr(ret->bytes, '\n') : NULL;
    if (line && line[1])
        text_consume(ret, (size_t)(line + 1 - ret->bytes));
}

/* Notes the last TAIL_LINES of LINES, the output of NODE, one note a line, since the errors of a compiler
 * take several. Nothing if LINES is empty. */
static void note_lines(const struct issue *issue, size_t node, const char *suffix, const char *lines) {
    struct run_record *record = issue->set->record;
    const char *at = lines + strlen(lines), *name = issue->set->items[node].name;
    for (size_t count = 0; at > lines && (at[-1] != '\n' || !*at || ++count < TAIL_LINES); at--)
        ;
    if (*at && issue->kept)
        record_note(record, "the last lines that node %s printed, from %s/%s.%s:", name, issue->kept, name,
                    suffix);
    else if (*at)
        record_note(record, "the last lines that node %s printed:", name);
    for (size_t length; *at; at += length + (at[length] == '\n')) {
        length = strcspn(at, "\n");
        record_note(record, "  %.*s", (int)length, at);
    }
}

/* Sets FAILURE to why the command failed: with BAD 1 on NODE, else on several nodes, whose failures are
 * merged. The last lines that NODE printed are noted. */
static int set_command_failure(const struct issue *issue, size_t node, size_t bad, struct failure *failure) {
    const struct node_result *result = &issue->results[node];
    const char *line = issue->lines.items[node];
    bool is_error = result->error.total > 0;
    if (bad == 1 && result->outcome == NODE_FAILED) {
        *failure = result->failure;
        return failure->code;
    }
    cleanup(text_clear) struct text tail;
    text_init(&tail, TAIL_BYTES);
    read_tail(is_error ? &result->error : &result->output, &tail);
    note_lines(issue, node, is_error ? "err" : "out", tail.bytes);
    if (bad == 1) {
        char how[128];
        int length;
        const char *reason = text_reason(tail.bytes, &length);
        return failure_set_kind(failure, FAILURE_EXPERIMENT, -ECHILD, "on node %s, '%.300s' %s%s%.*s",
                                issue->set->items[node].name, line,
                                remote_exit_describe(&result->exit, how, sizeof how), length ? ": " : "",
                                length, reason);
    }
    if (node_results_failure(issue->set->group, issue->results, failure) == 0)
        return 0;
    return failure_prefix(failure, "'%.200s'", line ? line : "");
}

/* Fails if a node was lost, or if a command that must succeed (it has a name) did not. A node where it ran
 * past its time is taken out. Nodes that were not asked or are out do not count. */
static int check_results(const struct issue *issue, struct failure *failure) {
    struct node_set *set = issue->set;
    size_t bad = 0, first = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct node_result *result = &issue->results[i];
        if (set->items[i].left_reason)
            result->outcome = NODE_NOT_ASKED;
        if (result->outcome == NODE_NOT_ASKED)
            continue;
        bool lost = result->outcome == NODE_FAILED && !node_group_is_there(set->group, i);
        bool failed = result->outcome != NODE_SKIPPED && !node_result_is_good(result);
        if (failed && issue->command->name && result->outcome == NODE_DONE && result->exit.timed_out) {
            struct failure why;
            char how[128];
            failure_set(&why, -ETIMEDOUT, "'%.300s' %s", issue->lines.items[i],
                        remote_exit_describe(&result->exit, how, sizeof how));
            int r = node_set_take_out_unfit(set, i, run_phase_names[set->record->phase], &why, failure);
            if (r < 0)
                return r;
            if (r > 0)
                continue;
        }
        if (lost || (failed && issue->command->name)) {
            first = bad++ == 0 ? i : first;
        }
    }
    if (bad == 0)
        return 0;
    if (set->loss.code < 0 && set->campaign->node_loss.action != NODE_LOSS_ABORT) {
        *failure = set->loss;
        return set->loss.code;
    }
    return set_command_failure(issue, first, bad, failure);
}

/* RET gets the results if the command succeeded; NULL: they are not wanted. */
int node_command_run(struct node_set *set, const struct node_command *command, struct node_result **ret,
                     struct failure *failure) {
    cleanup(clear_issue) struct issue issue = {
        .set = set, .command = command, .lines = node_texts_new(set->count)};
    cleanup_free size_t *keeper = xcalloc(set->count, sizeof *keeper);
    cleanup_free char *folder = NULL;
    int r = 0;
    if (command->name) {
        issue.calls = xcalloc(CALL_TEXTS * set->count, sizeof *issue.calls);
        issue.kept = xformat(ARCHIVE_COMMANDS "/%03u-%s", ++set->record->commands_kept, command->name);
        folder = record_path(set->record, issue.kept);
        r = record_make_folder(set->record, issue.kept, failure);
    }
    if (r < 0)
        return r;
    r = node_group_run(set->group,
                       &(struct node_group_command){.specify = specify_command,
                                                    .context = &issue,
                                                    .folder = folder,
                                                    .nodes = command->nodes,
                                                    .kept = command->kept},
                       &issue.results, failure);
    log_lines(&issue);
    if (r < 0)
        return r;
    if (folder)
        keep_distinct_outputs(&issue, folder, keeper);
    for (size_t i = 0; i < set->count; i++)
        journal_result(&issue, i, keeper[i]);
    record_commit(set->record, NULL); /* a failure to write shows again at the phase's end */
    r = check_results(&issue, failure);
    if (r == 0 && ret)
        *ret = take_pointer(issue.results);
    return r;
}
