/* Runs a command on many nodes, with its input, output and result. */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/remote/nodes/nodes-private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    INPUT_CHUNK = 64 << 10, /* bytes of stdin that are queued for a node at once; also the low mark */
};

/* One output stream of a running command. Its file is opened for each write, because there may be more nodes
 * than descriptors. */
struct capture {
    struct text kept;  /* the first bytes, for the result */
    struct hash *hash; /* of all bytes; NULL: none has come */
    uint64_t received; /* bytes */
};

/* The command on one node. */
struct node_run {
    struct group_run *run;
    struct node_asked *asked;
    struct node_result *result;
    struct remote_command *command;
    struct capture streams[2]; /* stdout, stderr */
    size_t fed;                /* bytes of the input that were queued */
};

/* A call of node_group_run(). */
struct group_run {
    struct node_round round;
    const struct node_group_command *command;
    struct node_run *nodes;      /* one a node */
    struct node_result *results; /* one a node */
    int folder;                  /* descriptor of command->folder; -1: none */
    size_t result_limit;         /* bytes of a stream in its result */
};

static const char *const suffixes[] = {"out", "err"};

/* ---- streams */

/* The name of the output file of a stream, below the folder; the caller frees. */
static char *file_name(const struct node_run *node, int which) {
    const struct node_group *group = node->run->round.group;
    return xformat("%s.%s", node_group_name(group, (size_t)(node - node->run->nodes)), suffixes[which]);
}

static int complain_file(const struct group_run *run, const char *name, int code, struct failure *failure) {
    return failure_set(failure, code, "cannot write '%s/%s': %s", run->command->folder, name,
                       strerror(-code));
}

/* Appends the bytes to the file of the stream; the first bytes create it. */
static int append_to_file(struct node_run *node, int which, const char *bytes, size_t length,
                          struct failure *failure) {
    struct group_run *run = node->run;
    cleanup_free char *name = file_name(node, which);
    bool first = node->streams[which].received == 0;
    cleanup_close int file =
        openat(run->folder, name,
               O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC | (first ? O_CREAT | O_EXCL : 0), 0666);
    int r = file < 0 ? -errno : file_write_all(file, bytes, length);
    return r < 0 ? complain_file(run, name, r, failure) : 0;
}

/* Adds bytes of a stream to its file, its hash and, as long as there is room, its result. */
static int add_output(struct node_run *node, int which, const char *bytes, size_t length,
                      struct failure *failure) {
    struct capture *capture = &node->streams[which];
    int r = node->run->folder >= 0 ? append_to_file(node, which, bytes, length, failure) : 0;
    if (r < 0)
        return r;
    if (!capture->hash && !(capture->hash = hash_new()))
        return failure_memory(failure);
    hash_update(capture->hash, bytes, length);
    capture->received += length;
    size_t room = node->run->result_limit - capture->kept.length;
    return text_append(&capture->kept, bytes, length < room ? length : room) < 0 ? failure_memory(failure)
                                                                                 : 0;
}

/* Fills the result of a stream and frees its capture. TOTAL: bytes that the command wrote. */
static int end_stream(struct node_run *node, int which, uint64_t total, struct failure *failure) {
    struct capture *capture = &node->streams[which];
    struct node_stream *stream = which == 0 ? &node->result->output : &node->result->error;
    if (!capture->hash && !(capture->hash = hash_new()))
        return failure_memory(failure);
    hash_finish(capture->hash, stream->hash);
    hash_free(take_pointer(capture->hash));
    stream->total = total;
    stream->received = capture->received;
    stream->length = capture->kept.length;
    if (node->run->folder >= 0 && capture->received > 0) {
        cleanup_free char *name = file_name(node, which);
        stream->file = xformat("%s/%s", node->run->command->folder, name);
    }
    stream->bytes = text_take(&capture->kept);
    return 0;
}

/* ---- one node's command */

/* Fills the results of both streams of a node whose command has ended, or was not started. */
static void end_node(struct node_run *node) {
    struct failure failure;
    const struct remote_exit *exit = &node->result->exit;
    bool done = node->result->outcome == NODE_DONE;
    for (int i = 0; i < 2; i++) {
        uint64_t total = i == 0 ? exit->output_bytes : exit->error_bytes;
        if (end_stream(node, i, done ? total : node->streams[i].received, &failure) < 0)
            node_round_fail(&node->run->round, &failure);
    }
}

static void on_started(struct remote_command *command, const struct remote_start *start, void *context) {
    (void)command;
    struct node_run *node = context;
    node->result->start = *start;
}

static void on_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                      size_t length, void *context) {
    (void)command;
    struct node_run *node = context;
    const struct node_group_command *given = node->run->command;
    struct failure failure;
    if (given->take && stream == REMOTE_STDOUT)
        given->take(node->asked->node, bytes, length, given->context);
    else if (node->run->round.code == 0 &&
             add_output(node, stream == REMOTE_STDOUT ? 0 : 1, bytes, length, &failure) < 0)
        node_round_fail(&node->run->round, &failure);
}

/* Queues input for the command as long as less than INPUT_CHUNK bytes wait, and closes it after the last. */
static void feed(struct remote_command *command, struct node_run *node) {
    const struct node_group_command *given = node->run->command;
    size_t queued = remote_command_queued(command);
    while (node->fed < given->input_length && queued <= INPUT_CHUNK) {
        size_t left = given->input_length - node->fed;
        size_t size = left < INPUT_CHUNK ? left : INPUT_CHUNK;
        struct failure failure;
        int r =
            remote_command_write(command, (const char *)given->input + node->fed, size, &queued, &failure);
        if (r == -EPIPE)
            return; /* the command has ended; on_command_exit() is called */
        if (r < 0) {
            node_round_fail(&node->run->round, &failure);
            return;
        }
        node->fed += size;
    }
    if (node->fed == given->input_length)
        (void)remote_command_close_input(command, NULL);
}

static void on_drain(struct remote_command *command, void *context) {
    feed(command, context);
}

/* The command of a node has ended, or could not be started (FAILURE): its result is complete. */
static void on_command_exit(struct remote_command *command, const struct remote_exit *exit,
                            const struct failure *failure, void *context) {
    (void)command;
    struct node_run *node = context;
    if (exit) {
        node->result->outcome = NODE_DONE;
        node->result->exit = *exit;
    } else {
        node->result->outcome = NODE_FAILED;
        node->result->failure = *failure;
    }
    end_node(node);
    remote_command_free(take_pointer(node->command));
    node_round_answered(node->asked);
}

static const struct remote_command_callbacks callbacks = {
    .on_started = on_started, .on_output = on_output, .on_drain = on_drain, .on_exit = on_command_exit};

/* Starts the command on a node, as command->specify or command->specification says. */
static int start_node(struct node_run *node, struct failure *failure) {
    const struct group_run *run = node->run;
    const struct node_group_command *given = run->command;
    struct remote_command_specification specification = {0};
    int r = 0;
    if (given->specify)
        r = given->specify(node->asked->node, &specification, given->context, failure);
    else
        specification = *given->specification;
    if (r < 0)
        return r;
    specification.input = given->input ? REMOTE_INPUT_STREAM : REMOTE_INPUT_NULL;
    specification.low_mark = INPUT_CHUNK;
    return remote_command_start(node_group_link(run->round.group, node->asked->node), &specification,
                                &callbacks, node, &node->command, failure);
}

/* Removes the output files of an earlier command of the node, which this one may not write. */
static int remove_old_files(const struct node_run *node, struct failure *failure) {
    for (int i = 0; i < 2 && node->run->folder >= 0; i++) {
        cleanup_free char *name = file_name(node, i);
        if (unlinkat(node->run->folder, name, 0) < 0 && errno != ENOENT)
            return complain_file(node->run, name, -errno, failure);
    }
    return 0;
}

/* Starts the command on node NUMBER. False: it was not started, and its result says why. */
static bool ask_to_run(struct node_round *round, size_t number, struct node_asked *asked) {
    struct group_run *run = round->context;
    struct node_run *node = &run->nodes[number];
    *node = (struct node_run){.run = run, .asked = asked, .result = &run->results[number]};
    for (int i = 0; i < 2; i++)
        text_init(&node->streams[i].kept, run->result_limit);
    struct failure failure = {0};
    if (remove_old_files(node, &failure) < 0) {
        node_round_fail(round, &failure);
        return false;
    }
    if (!node_group_is_there(round->group, number)) {
        node->result->outcome = NODE_SKIPPED;
        node_group_fail_unconnected(round->group, number, &node->result->failure);
    } else if (start_node(node, &node->result->failure) < 0) {
        node->result->outcome = NODE_FAILED;
    } else {
        if (run->command->input)
            feed(node->command, node);
        return true;
    }
    end_node(node);
    return false;
}

/* ---- the command on all nodes */

/* Syncs the output files to the disk, if there are any. */
static int sync_files(const struct group_run *run, struct failure *failure) {
    return run->folder >= 0 && syncfs(run->folder) < 0
               ? failure_set(failure, -errno, "cannot write '%s': %s", run->command->folder, strerror(errno))
               : 0;
}

static void clear_run(struct group_run *run) {
    for (size_t i = 0; run->nodes && i < run->round.group->count; i++) {
        struct node_run *node = &run->nodes[i];
        remote_command_free(node->command); /* kills what still runs */
        for (int k = 0; k < 2; k++) {
            text_clear(&node->streams[k].kept);
            hash_free(node->streams[k].hash);
        }
    }
    free(run->nodes);
    node_results_free(run->round.group, run->results);
    cleanup_close_descriptor(&run->folder);
}

/* After an interruption: kills the commands that have not ended, and fills their results with what has come
 * until now. */
static int end_early(struct group_run *run, struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < run->round.group->count; i++) {
        struct node_run *node = &run->nodes[i];
        if (!node->command || node->result->outcome != NODE_NOT_ASKED)
            continue;
        remote_command_free(take_pointer(node->command)); /* kills it */
        node->result->outcome = NODE_FAILED;
        failure_set_kind(&node->result->failure, FAILURE_INTERRUPTED, -EINTR,
                         "interrupted, and its command was killed");
        for (int k = 0; r == 0 && k < 2; k++)
            r = end_stream(node, k, node->streams[k].received, failure);
    }
    return r == 0 ? sync_files(run, failure) : r;
}

int node_group_run(struct node_group *group, const struct node_group_command *command,
                   struct node_result **ret, struct failure *failure) {
    cleanup(clear_run) struct group_run run = {
        .command = command, .folder = -1, .result_limit = command->kept ? command->kept : NODE_OUTPUT_KEPT};
    run.round = (struct node_round){.group = group,
                                    .nodes = command->nodes,
                                    .at_once = command->at_once,
                                    .ask = ask_to_run,
                                    .context = &run};
    run.nodes = xcalloc(group->count + 1, sizeof *run.nodes);
    run.results = xcalloc(group->count + 1, sizeof *run.results);
    if (command->folder) {
        run.folder = open(command->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (run.folder < 0)
            return failure_set(failure, -errno, "cannot open the folder '%s': %s", command->folder,
                               strerror(errno));
    }
    int r = node_round_run(&run.round, failure);
    if (r == -EINTR && command->partial) {
        struct failure why = {0};
        if (end_early(&run, &why) == 0) {
            *ret = take_pointer(run.results);
            return r;
        }
        if (failure)
            *failure = why;
        return why.code;
    }
    if (r == 0)
        r = sync_files(&run, failure);
    if (r == 0)
        *ret = take_pointer(run.results);
    return r;
}
