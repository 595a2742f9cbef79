/* Single files of one node: each is a command, the agent's tool that packs or unpacks. */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/remote/link/inside.h"
#include "engine/remote/link/tool.h"
#include "engine/remote/link/tree-archive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OVERHEAD_MAX = 64 << 10 /* of the tar of one file */ };

struct file_request {
    struct file_request *next; /* of the link */
    struct agent_link *link;
    struct remote_command *command;
    bool forgotten; /* the answer is not wanted any more */
    void *context;
    agent_bytes_callback *bytes; /* of reading; or */
    agent_done_callback *done;
    char *path;
    uint64_t limit;             /* bytes of the file that is read */
    struct text output, errors; /* of the command */
};

static void file_request_free(struct file_request *request) {
    free(request->path);
    text_clear(&request->output);
    text_clear(&request->errors);
    free(request);
}

static void free_request(struct file_request **request) {
    if (*request)
        file_request_free(*request);
}

void file_request_forget(struct agent_link *link, const void *context) {
    for (struct file_request *request = link->files; request; request = request->next)
        request->forgotten |= request->context == context;
}

void file_request_free_all(struct agent_link *link) {
    for (struct file_request *request; (request = link->files);) {
        link->files = request->next;
        remote_command_leave(request->command);
        file_request_free(request);
    }
}

static void tell(struct file_request *request, const char *bytes, size_t length,
                 const struct failure *failure) {
    if (request->forgotten)
        return;
    if (request->bytes)
        request->bytes(request->link, bytes, length, failure, request->context);
    else
        request->done(request->link, failure, request->context);
}

/* The file in the tar that has come. */
static int unpack(const struct file_request *request, char **ret, size_t *ret_length,
                  struct failure *failure) {
    cleanup(tree_archive_free) struct archive *archive = NULL;
    struct tree_archive_entry entry = {0};
    int r = tree_archive_open(-1, request->output.bytes, request->output.length, &archive, failure);
    if (r == 0)
        r = tree_archive_next(archive, &entry, failure);
    if (r < 0)
        return r;
    if (r == 0 || entry.is_folder)
        return failure_set(failure, -EISDIR, "cannot read '%.256s': it is not a file", request->path);
    if (entry.size > request->limit)
        return failure_set(failure, -EFBIG, "'%.256s' has %llu bytes; at most %llu were asked for",
                           request->path, (unsigned long long)entry.size, (unsigned long long)request->limit);
    cleanup_free char *bytes = xmalloc((size_t)entry.size + 1);
    size_t length = 0;
    ssize_t got;
    while ((got = tree_archive_read(archive, bytes + length, (size_t)entry.size - length, failure)) > 0)
        length += (size_t)got;
    bytes[length] = '\0';
    char hex[HASH_HEX_SIZE];
    if (got < 0)
        return (int)got;
    if (hash_bytes(bytes, length, hex) < 0)
        return failure_memory(failure);
    if (strcmp(hex, entry.sha256) != 0)
        return failure_set(failure, -EBUSY, "'%.256s' has changed while it was read", request->path);
    *ret = take_pointer(bytes);
    *ret_length = length;
    return 0;
}

/* All that could be asked has ended: with EXIT, or with WHY. */
static int judge(const struct file_request *request, const struct remote_exit *exit, char **ret,
                 size_t *ret_length, struct failure *failure) {
    if (exit->output_cut)
        return failure_set(failure, -EFBIG, "'%.256s' has more than the %llu bytes that were asked for",
                           request->path, (unsigned long long)request->limit);
    int r = tool_failure(exit, request->errors.bytes, failure);
    return r < 0 || !request->bytes ? r : unpack(request, ret, ret_length, failure);
}

static void on_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                      size_t length, void *context) {
    (void)command;
    struct file_request *request = context;
    /* The limits of both are those of the command. */
    (void)text_append(stream == REMOTE_STDOUT ? &request->output : &request->errors, bytes, length);
}

static void on_exit_of(struct remote_command *command, const struct remote_exit *exit,
                       const struct failure *failure, void *context) {
    struct file_request *request = context, **at = &request->link->files;
    cleanup_free char *bytes = NULL;
    size_t length = 0;
    struct failure why = {0}, own;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    if (failure)
        why = *failure;
    else if (judge(request, exit, &bytes, &length, &own) < 0)
        node_failure(&why, request->link->node, own.code, "%s", own.text);
    remote_command_free(command);
    tell(request, bytes, length, why.code < 0 ? &why : NULL);
    file_request_free(request);
}

/* TOOL works on PATH; RET is not yet sent anything. */
static int start(struct agent_link *link, const char *tool, const char *path, uint64_t limit, bool input,
                 void *context, struct file_request **ret, struct failure *failure) {
    if (path[0] == '\0')
        return node_failure(failure, link->node, -EINVAL, "a path is empty");
    cleanup(free_request) struct file_request *request = xcalloc(1, sizeof *request);
    *request = (struct file_request){
        .link = link, .context = context, .path = xstrdup(path), .limit = limit, .next = link->files};
    text_init(&request->output, limit + 2 * OVERHEAD_MAX);
    text_init(&request->errors, 2 * FAILURE_TEXT_SIZE);
    const char *const arguments[] = {NODE_TOOL_PROGRAM, tool, path, NULL};
    static const struct remote_command_callbacks callbacks = {.on_output = on_output, .on_exit = on_exit_of};
    int r = remote_command_start(
        link,
        &(struct remote_command_specification){.arguments = arguments,
                                               .input = input ? REMOTE_INPUT_STREAM : REMOTE_INPUT_NULL,
                                               .output_limit = limit + OVERHEAD_MAX,
                                               .error_limit = FAILURE_TEXT_SIZE},
        &callbacks, request, &request->command, failure);
    if (r < 0)
        return r;
    *ret = link->files = take_pointer(request);
    return 0;
}

int agent_link_read_file(struct agent_link *link, const char *path, uint64_t limit,
                         agent_bytes_callback *callback, void *context, struct failure *failure) {
    struct file_request *request = NULL;
    if (limit > AGENT_FILE_LIMIT)
        limit = AGENT_FILE_LIMIT;
    int r = start(link, "--pack", path, limit, false, context, &request, failure);
    if (r == 0)
        request->bytes = callback;
    return r;
}

int agent_link_make_folder(struct agent_link *link, const char *path, agent_done_callback *callback,
                           void *context, struct failure *failure) {
    struct file_request *request = NULL;
    int r = start(link, "--unpack", path, 0, false, context, &request, failure);
    if (r == 0)
        request->done = callback;
    return r;
}

int agent_link_write_file(struct agent_link *link, const char *path, const void *bytes, size_t length,
                          unsigned mode, agent_done_callback *callback, void *context,
                          struct failure *failure) {
    if (length > AGENT_FILE_LIMIT - 2 * OVERHEAD_MAX)
        return node_failure(failure, link->node, -EFBIG,
                            "'%.256s' is to have %zu bytes; at most %llu are allowed", path, length,
                            (unsigned long long)AGENT_FILE_LIMIT - 2 * OVERHEAD_MAX);
    cleanup_free char *folder = tool_folder_of(path);
    cleanup(text_clear) struct text tar;
    text_init(&tar, AGENT_FILE_LIMIT);
    int r = tree_archive_of_file(file_base_name(path), mode, bytes, length, &tar, failure);
    if (r < 0)
        return r;
    struct file_request *request = NULL;
    r = start(link, "--unpack", folder, 0, true, context, &request, failure);
    if (r < 0)
        return r;
    request->done = callback;
    r = remote_command_write(request->command, tar.bytes, tar.length, NULL, failure);
    (void)remote_command_close_input(request->command, NULL);
    if (r < 0)
        request->forgotten = true; /* the caller is told here */
    return r;
}

struct waiting {
    bool done;
    struct failure failure;
};

static void on_written(struct agent_link *link, const struct failure *failure, void *context) {
    (void)link;
    struct waiting *waiting = context;
    waiting->done = true;
    if (failure)
        waiting->failure = *failure;
}

int agent_link_write_file_and_wait(struct agent_link *link, const char *path, const void *bytes,
                                   size_t length, unsigned mode, struct failure *failure) {
    struct waiting waiting = {0};
    int r = agent_link_write_file(link, path, bytes, length, mode, on_written, &waiting, failure);
    while (r >= 0 && !waiting.done)
        r = event_loop_is_stopped(link->loop)
                ? failure_set_kind(failure, FAILURE_INTERRUPTED, -EINTR, "interrupted")
                : event_loop_run_once(link->loop, -1, failure);
    if (r < 0) {
        agent_link_forget(link, &waiting);
        return r;
    }
    if (waiting.failure.code < 0 && failure)
        *failure = waiting.failure;
    return waiting.failure.code;
}
