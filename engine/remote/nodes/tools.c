#include "engine/remote/nodes/tools.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/remote/link/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines */

char *tool_line_next(char **at) {
    char *line = *at;
    if (!line || !*line)
        return NULL;
    char *newline = strchr(line, '\n');
    *at = newline ? newline + 1 : line + strlen(line);
    if (newline)
        *newline = '\0';
    return line;
}

/* The character that is written as a backslash and ESCAPED. */
static char unescape(char escaped) {
    return escaped == 't' ? '\t' : escaped == 'n' ? '\n' : escaped;
}

char *tool_field_next(char **at) {
    static char nothing[1];
    char *field = *at;
    if (!field)
        return nothing;
    char *tab = strchr(field, '\t'), *to = field;
    *at = tab ? tab + 1 : NULL;
    if (tab)
        *tab = '\0';
    for (const char *from = field; *from; from++)
        *to++ = *from == '\\' && from[1] ? unescape(*++from) : *from;
    *to = '\0';
    return field;
}

/* ---- on many nodes */

/* A call of node_group_run_tool(). */
struct tool_run {
    const struct node_tool *tool;
    const char **arguments;   /* of the node that was started last */
    struct text *lines;       /* one a node: the start of a line whose end has not come */
    struct failure *failures; /* one a node */
};

/* node_group_command.specify: the program of the agent with the arguments of the tool. */
static int specify(size_t node, struct remote_command_specification *ret, void *context,
                   struct failure *failure) {
    (void)failure;
    struct tool_run *run = context;
    const struct node_tool *tool = run->tool;
    const char *const *given = tool->arguments_of ? tool->arguments_of(node, tool->context) : tool->arguments;
    size_t count = 0;
    while (given[count])
        count++;
    free(run->arguments);
    run->arguments = xcalloc(count + 2, sizeof *run->arguments);
    run->arguments[0] = NODE_TOOL_PROGRAM;
    memcpy(run->arguments + 1, given, count * sizeof *given);
    *ret = (struct remote_command_specification){.arguments = run->arguments,
                                                 .output_limit = NODE_TOOL_OUTPUT_MAX,
                                                 .error_limit = FAILURE_TEXT_SIZE,
                                                 .timeout_ms = tool->timeout_ms};
    return 0;
}

/* Passes the whole line of NODE on to the tool's `take`, unless the node has failed, and empties it. */
static void pass_line(struct tool_run *run, size_t node) {
    struct text *line = &run->lines[node];
    struct failure *failure = &run->failures[node];
    char *at = line->bytes;
    if (failure->code == 0 && strlen(line->bytes) < line->length) {
        failure_set(failure, -EPROTO, "the agent's tool printed a NUL; expected lines of text");
    } else if (failure->code == 0 && line->length > 0 && run->tool->take) {
        const char *kind = tool_field_next(&at);
        (void)run->tool->take(node, kind, at, run->tool->context, failure);
    }
    text_reset(line);
}

/* node_group_command.take: splits the output of NODE into lines. */
static void split_output(size_t node, const char *bytes, size_t length, void *context) {
    struct tool_run *run = context;
    for (const char *end = bytes + length, *newline; bytes < end; bytes = newline + 1) {
        newline = memchr(bytes, '\n', (size_t)(end - bytes));
        /* Its limit is that of the command's output. */
        (void)text_append(&run->lines[node], bytes, (size_t)((newline ? newline : end) - bytes));
        if (!newline)
            return;
        pass_line(run, node);
    }
}

/* RET: how the tool ended, with the first line of its stderr. Returns -EIO. */
static int fail_with_stderr(const struct node_result *result, struct failure *ret) {
    char how[128];
    const char *words = result->error.bytes ? result->error.bytes : "";
    return failure_set(ret, -EIO, "the agent's tool %s%s%.*s",
                       remote_exit_describe(&result->exit, how, sizeof how), *words ? ": " : "",
                       (int)strcspn(words, "\n"), words);
}

/* Sets the failure of NODE from how its tool ended. A tool that ended with status 1 has not failed if its
 * lines say what went wrong (is_told). */
static void check_reply(struct tool_run *run, size_t node, const struct node_result *result) {
    const struct node_tool *tool = run->tool;
    const struct remote_exit *exit = &result->exit;
    struct failure *failure = &run->failures[node];
    if (result->outcome == NODE_NOT_ASKED)
        return;
    if (result->outcome != NODE_DONE) {
        *failure = result->failure;
        return;
    }
    pass_line(run, node);
    if (exit->signalled || exit->timed_out || exit->code > 1 || (exit->code == 1 && exit->output_bytes == 0))
        fail_with_stderr(result, failure);
    else if (exit->output_cut)
        failure_set(failure, -EFBIG, "the agent's tool printed more than %d MiB", NODE_TOOL_OUTPUT_MAX >> 20);
    else if (failure->code == 0 &&
             !(tool->is_told ? tool->is_told(node, exit->code, tool->context) : exit->code == 0)) {
        if (exit->code == 0)
            failure_set(failure, -EPROTO, "the output of the agent's tool lacks lines that were asked for");
        else
            fail_with_stderr(result, failure);
    }
}

int node_group_run_tool(struct node_group *group, const struct node_tool *tool, struct failure **ret_failures,
                        struct failure *failure) {
    size_t count = node_group_count(group);
    cleanup_free struct failure *failures = xcalloc(count + 1, sizeof *failures);
    struct tool_run run = {
        .tool = tool, .failures = failures, .lines = xcalloc(count + 1, sizeof *run.lines)};
    for (size_t i = 0; i < count; i++)
        text_init(&run.lines[i], NODE_TOOL_OUTPUT_MAX);
    struct node_result *results = NULL;
    int r =
        node_group_run(group,
                       &(struct node_group_command){
                           .specify = specify, .take = split_output, .context = &run, .nodes = tool->nodes},
                       &results, failure);
    for (size_t i = 0; i < count; i++) {
        if (r == 0)
            check_reply(&run, i, &results[i]);
        text_clear(&run.lines[i]);
    }
    if (r == 0)
        node_results_free(group, results);
    free(run.lines);
    free(run.arguments);
    if (r == 0)
        *ret_failures = take_pointer(failures);
    return r;
}
