/* Files of one node: each request is a command, the agent's tool that packs or unpacks. */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/remote/link/inside.h"
#include "engine/remote/link/tool.h"
#include "engine/remote/link/tree-archive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OVERHEAD_MAX = 64 << 10 /* of the tar of a few files */ };

struct file_request {
    struct file_request *next; /* of the link */
    struct agent_link *link;
    struct remote_command *command;
    bool forgotten; /* the answer is not wanted any more */
    void *context;
    agent_file_callback *file; /* of reading; */
    const char *const *paths;  /* those that it is called for, by the caller */
    agent_done_callback *done;
    uint64_t limit;             /* bytes of the files that are read */
    struct text output, errors; /* of the command */
};

static void file_request_free(struct file_request *request) {
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

/* The file that the tar has next, for the one of its paths, of those from *PATH on, that ends in its name. */
static int unpack_file(struct file_request *request, struct archive *archive,
                       const struct tree_archive_entry *entry, size_t *path, struct failure *failure) {
    while (request->paths[*path] && strcmp(file_base_name(request->paths[*path]), entry->path) != 0)
        ++*path;
    if (!request->paths[*path] || entry->is_folder)
        return failure_set(failure, -EISDIR, "cannot read '%.256s': it is not a file",
                           request->paths[*path] ? request->paths[*path] : entry->path);
    const char *name = request->paths[*path];
    if (entry->size > request->limit)
        return failure_set(failure, -EFBIG, "'%.256s' has %llu bytes; at most %llu were asked for", name,
                           (unsigned long long)entry->size, (unsigned long long)request->limit);
    cleanup_free char *bytes = xmalloc((size_t)entry->size + 1);
    size_t length = 0;
    ssize_t got;
    while ((got = tree_archive_read(archive, bytes + length, (size_t)entry->size - length, failure)) > 0)
        length += (size_t)got;
    bytes[length] = '\0';
    char hex[HASH_HEX_SIZE];
    if (got < 0)
        return (int)got;
    if (hash_bytes(bytes, length, hex) < 0)
        return failure_memory(failure);
    if (strcmp(hex, entry->sha256) != 0)
        return failure_set(failure, -EBUSY, "'%.256s' has changed while it was read", name);
    if (!request->forgotten)
        request->file(request->link, *path, bytes, length, request->context);
    ++*path;
    return 0;
}

static int unpack(struct file_request *request, struct failure *failure) {
    cleanup(tree_archive_free) struct archive *archive = NULL;
    struct tree_archive_entry entry = {0};
    size_t path = 0;
    int r = tree_archive_open(-1, request->output.bytes, request->output.length, &archive, failure);
    while (r == 0 && (r = tree_archive_next(archive, &entry, failure)) > 0)
        r = unpack_file(request, archive, &entry, &path, failure);
    return r;
}

/* All that could be asked has ended with EXIT. */
static int judge(struct file_request *request, const struct remote_exit *exit, struct failure *failure) {
    if (exit->output_cut)
        return failure_set(failure, -EFBIG, "'%.256s' has more than the %llu bytes that were asked for",
                           request->paths[0], (unsigned long long)request->limit);
    /* What could be read has come even so. */
    int r = request->file && request->output.length > 0 ? unpack(request, failure) : 0;
    return r < 0 ? r : tool_failure(exit, request->errors.bytes, failure);
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
    struct failure why = {0}, own;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    if (failure)
        why = *failure;
    else if (judge(request, exit, &own) < 0)
        node_failure(&why, request->link->node, own.code, "%s", own.text);
    remote_command_free(command);
    if (!request->forgotten)
        request->done(request->link, why.code < 0 ? &why : NULL, request->context);
    file_request_free(request);
}

/* TOOL works on PATHS; RET is not yet sent anything. */
static int start(struct agent_link *link, const char *tool, const char *const *paths, uint64_t limit,
                 bool input, agent_done_callback *done, void *context, struct file_request **ret,
                 struct failure *failure) {
    size_t count = 0;
    for (; paths[count]; count++)
        if (paths[count][0] == '\0')
            return node_failure(failure, link->node, -EINVAL, "a path is empty");
    cleanup(free_request) struct file_request *request = xcalloc(1, sizeof *request);
    *request = (struct file_request){
        .link = link, .done = done, .context = context, .limit = limit, .next = link->files};
    text_init(&request->output, limit + 2 * OVERHEAD_MAX);
    text_init(&request->errors, 2 * FAILURE_TEXT_SIZE);
    cleanup_free const char **arguments = xcalloc(count + 3, sizeof *arguments);
    arguments[0] = NODE_TOOL_PROGRAM;
    arguments[1] = tool;
    memcpy(arguments + 2, paths, count * sizeof *paths);
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

int agent_link_read_files(struct agent_link *link, const char *const *paths, uint64_t limit,
                          agent_file_callback *file, agent_done_callback *done, void *context,
                          struct failure *failure) {
    struct file_request *request = NULL;
    if (limit > AGENT_FILE_LIMIT)
        limit = AGENT_FILE_LIMIT;
    int r = start(link, "--pack", paths, limit, false, done, context, &request, failure);
    if (r == 0) {
        request->file = file;
        request->paths = paths;
    }
    return r;
}

int agent_link_make_folder(struct agent_link *link, const char *path, agent_done_callback *callback,
                           void *context, struct failure *failure) {
    struct file_request *request = NULL;
    return start(link, "--unpack", (const char *const[]){path, NULL}, 0, false, callback, context, &request,
                 failure);
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
    r = start(link, "--unpack", (const char *const[]){folder, NULL}, 0, true, callback, context, &request,
              failure);
    if (r < 0)
        return r;
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
