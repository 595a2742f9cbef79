/* Requests for files of one node. Each runs a command, the agent's tool that packs or unpacks a tar. */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/path.h"
#include "engine/remote/link/link-private.h"
#include "engine/remote/link/tool.h"
#include "engine/remote/link/tree-archive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OVERHEAD_MAX = 64 << 10 /* bytes of a tar for each file, beside its content */ };

struct file_request {
    struct file_request *next; /* in the link's list */
    struct agent_link *link;
    struct remote_command *command;
    bool forgotten; /* the answer is dropped (agent_link_forget()) */
    void *context;
    agent_file_callback *file; /* for requests that read files; else NULL */
    agent_done_callback *done;
    char **paths;
    size_t count;               /* number of paths */
    size_t next_path;           /* the path after the last file that came */
    size_t came;                /* number of files that came */
    uint64_t limit;             /* most bytes of all files to read */
    struct text output, errors; /* of the command */
};

static void file_request_free(struct file_request *request) {
    for (size_t i = 0; i < request->count; i++)
        free(request->paths[i]);
    free(request->paths);
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

/* Reads the content of ENTRY and checks its hash; *RET is the caller's. -EBUSY: the file changed while it was
 * read. */
static int read_bytes(struct archive *archive, const struct tree_archive_entry *entry, const char *path,
                      char **ret, struct failure *failure) {
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
        return failure_set(failure, -EBUSY, "'%.256s' changed while it was read", path);
    *ret = take_pointer(bytes);
    return 0;
}

/* Passes the file ENTRY to the callback, as the next path that ends in its name. The tool packs in the order
 * of its arguments, so that skipped paths do not come later. */
static int pass_file(struct file_request *request, struct archive *archive,
                     const struct tree_archive_entry *entry, struct failure *failure) {
    size_t i = request->next_path;
    while (i < request->count && strcmp(file_base_name(request->paths[i]), entry->path) != 0)
        i++;
    const char *path = i < request->count ? request->paths[i] : entry->path;
    if (i == request->count || entry->is_folder)
        return failure_set(failure, -EISDIR, "cannot read '%.256s': it is not a regular file", path);
    request->next_path = i + 1;
    if (entry->size > request->limit)
        return failure_set(failure, -EFBIG, "'%.256s' has %llu bytes; at most %llu were asked for", path,
                           (unsigned long long)entry->size, (unsigned long long)request->limit);
    cleanup_free char *bytes = NULL;
    int r = read_bytes(archive, entry, path, &bytes, failure);
    if (r < 0)
        return r;
    request->came++;
    if (!request->forgotten)
        request->file(request->link, i, bytes, (size_t)entry->size, request->context);
    return 0;
}

/* Unpacks the tool's output and passes each file to the callback. A file that fails does not stop the others;
 * FAILURE is that of the first. */
static int pass_files(struct file_request *request, struct failure *failure) {
    cleanup(tree_archive_free) struct archive *archive = NULL;
    struct tree_archive_entry entry = {0};
    struct failure own = {0}, first = {0};
    int r = tree_archive_open(-1, request->output.bytes, request->output.length, &archive, &own);
    while (r == 0 && (r = tree_archive_next(archive, &entry, &own)) > 0) {
        r = 0;
        if (pass_file(request, archive, &entry, &own) < 0 && first.code == 0)
            first = own;
    }
    if (r < 0 && first.code == 0)
        first = own;
    if (first.code < 0)
        *failure = first;
    return first.code;
}

/* Checks the tool's end, and passes the files that it has read. Returns 0 or negative with a sentence. */
static int check_result(struct file_request *request, const struct remote_exit *exit,
                        struct failure *failure) {
    if (exit->output_cut)
        return failure_set(failure, -EFBIG, "'%.256s'%s larger than %llu bytes, the limit of this request",
                           request->paths[0], request->count > 1 ? " and other files are together" : " is",
                           (unsigned long long)request->limit);
    struct failure own = {0};
    int unpacked = request->file && request->output.length > 0 ? pass_files(request, &own) : 0;
    int r = tool_failure(exit, request->errors.bytes, failure); /* readable files were passed even so */
    if (r < 0 || !request->file)
        return r;
    if (unpacked < 0)
        *failure = own;
    else if (request->came < request->count)
        unpacked = failure_set(failure, -EBADMSG, "the agent sent %zu of the %zu files that it was asked for",
                               request->came, request->count);
    return unpacked;
}

static void on_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                      size_t length, void *context) {
    (void)command;
    struct file_request *request = context;
    /* Bounded by the output limits of the command. */
    (void)text_append(stream == REMOTE_STDOUT ? &request->output : &request->errors, bytes, length);
}

/* The tool has ended: calls DONE and frees the request. */
static void on_tool_exit(struct remote_command *command, const struct remote_exit *exit,
                         const struct failure *failure, void *context) {
    struct file_request *request = context, **at;
    struct failure why = {0}, own;
    if (failure)
        why = *failure;
    else if (check_result(request, exit, &own) < 0)
        node_failure(&why, request->link->node, own.code, "%s", own.text);
    for (at = &request->link->files; *at != request;)
        at = &(*at)->next;
    *at = request->next;
    remote_command_free(command);
    if (!request->forgotten)
        request->done(request->link, why.code < 0 ? &why : NULL, request->context);
    file_request_free(request);
}

/* Starts the command TOOL PATHS... for a new request *RET. INPUT: it reads stdin, which the caller writes. */
static int start(struct agent_link *link, const char *tool, const char *const *paths, uint64_t limit,
                 bool input, agent_done_callback *done, void *context, struct file_request **ret,
                 struct failure *failure) {
    cleanup(free_request) struct file_request *request = xcalloc(1, sizeof *request);
    *request = (struct file_request){
        .link = link, .done = done, .context = context, .limit = limit, .next = link->files};
    while (paths[request->count])
        request->count++;
    request->paths = xcalloc(request->count + 1, sizeof *request->paths);
    cleanup_free const char **arguments = xcalloc(request->count + 3, sizeof *arguments);
    arguments[0] = NODE_TOOL_PROGRAM;
    arguments[1] = tool;
    for (size_t i = 0; i < request->count; i++) {
        if (paths[i][0] == '\0')
            return node_failure(failure, link->node, -EINVAL, "a path is empty");
        arguments[2 + i] = request->paths[i] = xstrdup(paths[i]);
    }
    uint64_t output_limit = limit + request->count * OVERHEAD_MAX;
    text_init(&request->output, output_limit + OVERHEAD_MAX);
    text_init(&request->errors, 2 * FAILURE_TEXT_SIZE);
    static const struct remote_command_callbacks callbacks = {.on_output = on_output,
                                                              .on_exit = on_tool_exit};
    int r = remote_command_start(
        link,
        &(struct remote_command_specification){.arguments = arguments,
                                               .environment = path_trust_environment(),
                                               .input = input ? REMOTE_INPUT_STREAM : REMOTE_INPUT_NULL,
                                               .output_limit = output_limit,
                                               .error_limit = FAILURE_TEXT_SIZE,
                                               .idle_limit_ms = REMOTE_FILES_IDLE_LIMIT_MS},
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
    if (r == 0)
        request->file = file;
    return r;
}

/* Sends the file as a tar to the agent's tool --unpack, in the folder of PATH. */
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
        request->forgotten = true; /* the failure is returned here */
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
        r = event_loop_turn(link->loop, -1, failure);
    if (r < 0) {
        agent_link_forget(link, &waiting);
        return r;
    }
    if (waiting.failure.code < 0 && failure)
        *failure = waiting.failure;
    return waiting.failure.code;
}
