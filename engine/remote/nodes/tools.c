#include "engine/remote/nodes/tools.h"

#include "engine/foundation/cleanup.h"
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

static char meant(char escaped) {
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
        *to++ = *from == '\\' && from[1] ? meant(*++from) : *from;
    *to = '\0';
    return field;
}

/* ---- on many nodes */

struct launch {
    const struct node_tool *tool;
    const char ***arguments; /* one a node; owned */
};

static const char **with_program(const char *const *arguments) {
    size_t count = 0;
    while (arguments[count])
        count++;
    const char **all = calloc(count + 2, sizeof *all);
    if (!all)
        return NULL;
    all[0] = NODE_TOOL_PROGRAM;
    memcpy(all + 1, arguments, count * sizeof *all);
    return all;
}

static int specify(size_t node, struct remote_command_specification *ret, void *context,
                   struct failure *failure) {
    struct launch *launch = context;
    const struct node_tool *tool = launch->tool;
    const char **arguments =
        with_program(tool->arguments_of ? tool->arguments_of(node, tool->context) : tool->arguments);
    if (!arguments)
        return failure_memory(failure);
    launch->arguments[node] = arguments;
    *ret = (struct remote_command_specification){.arguments = arguments,
                                                 .output_limit = NODE_TOOL_OUTPUT_MOST,
                                                 .error_limit = FAILURE_TEXT_SIZE,
                                                 .timeout_ms = tool->timeout_ms};
    return 0;
}

static int complain(const struct node_result *result, struct failure *ret) {
    char how[128];
    const char *words = result->error.bytes ? result->error.bytes : "";
    return failure_set(ret, -EIO, "the agent's tool %s%s%.*s",
                       remote_exit_describe(&result->exit, how, sizeof how), *words ? ": " : "",
                       (int)strcspn(words, "\n"), words);
}

/* Lines end at a NUL, and what comes after it would be lost without a word. */
static int check_output(const struct node_result *result, struct failure *ret) {
    if (result->exit.output_cut || result->output.length < result->output.total)
        return failure_set(ret, -EFBIG, "the agent's tool printed more than %d MiB",
                           NODE_TOOL_OUTPUT_MOST >> 20);
    if (result->output.bytes && strlen(result->output.bytes) < result->output.length)
        return failure_set(ret, -EPROTO, "the agent's tool printed a NUL; expected lines of text");
    return 0;
}

/* A status of 1 with lines may be told by them; without any, by what the tool said on stderr. */
static int take_result(const struct node_tool *tool, size_t node, struct node_result *result,
                       struct failure *ret) {
    if (result->outcome == NODE_NOT_ASKED)
        return 0;
    if (result->outcome != NODE_DONE) {
        *ret = result->failure;
        return result->failure.code;
    }
    const struct remote_exit *exit = &result->exit;
    if (exit->signalled || exit->timed_out || exit->code > 1 ||
        (exit->code == 1 && result->output.length == 0))
        return complain(result, ret);
    int r = check_output(result, ret);
    char *at = result->output.bytes, *line;
    while (r >= 0 && (line = tool_line_next(&at))) {
        const char *kind = tool_field_next(&line);
        r = tool->take(node, kind, line, tool->context, ret);
    }
    if (r < 0 || !tool->is_told || tool->is_told(node, exit->code, tool->context))
        return r;
    return exit->code == 0 ? failure_set(ret, -EPROTO, "the agent's tool left out what it was asked for")
                           : complain(result, ret);
}

int node_group_run_tool(struct node_group *group, const struct node_tool *tool, struct failure **ret_failures,
                        struct failure *failure) {
    size_t count = node_group_count(group);
    cleanup_free struct failure *failures = calloc(count + 1, sizeof *failures);
    struct launch launch = {.tool = tool, .arguments = calloc(count + 1, sizeof *launch.arguments)};
    struct node_result *results = NULL;
    int r = failures && launch.arguments ? 0 : failure_memory(failure);
    if (r == 0)
        r = node_group_run(
            group,
            &(struct node_group_command){
                .specify = specify, .context = &launch, .nodes = tool->nodes, .kept = NODE_TOOL_OUTPUT_MOST},
            &results, failure);
    for (size_t i = 0; r == 0 && i < count; i++)
        take_result(tool, i, &results[i], &failures[i]);
    if (results)
        node_results_free(group, results);
    for (size_t i = 0; launch.arguments && i < count; i++)
        free((void *)launch.arguments[i]);
    free((void *)launch.arguments);
    if (r < 0)
        return r;
    *ret_failures = take_pointer(failures);
    return 0;
}
