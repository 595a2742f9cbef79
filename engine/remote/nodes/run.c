/* The same command on many nodes. */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/remote/nodes/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    INPUT_CHUNK = 64 << 10, /* of stdin that is queued for a node at once; also the low mark */
    SYNCS_A_TURN = 8,
    SYNCED_TOGETHER = 8, /* as many files, or more */
};

/* A stream on its way. What does not fit in `kept` goes to the file at once, and what does at the end, so
 * that a file is open only while it is written to, however many nodes there are. */
struct capture {
    struct text kept;
    struct hash *hash;
    uint64_t received;
    uint64_t filed; /* bytes that are in the file */
};

struct node_run {
    struct group_run *run;
    struct node_asked *asked;
    struct node_result *result;
    struct remote_command *command;
    struct capture streams[2];
    size_t fed; /* bytes of the input */
};

struct group_run {
    struct node_round round;
    const struct node_group_command *command;
    struct node_run *nodes;
    struct node_result *results;
    int folder; /* -1: none */
    size_t kept_most;
};

static const char *const suffixes[] = {"out", "err"};

/* ---- streams */

static char *file_name(const struct node_run *node, int which) {
    const struct node_group *group = node->run->round.group;
    return text_format("%s.%s", node_group_name(group, (size_t)(node - node->run->nodes)), suffixes[which]);
}

static int complain_file(const struct group_run *run, const char *name, int code, struct failure *failure) {
    return failure_set(failure, code, "cannot write '%s/%s': %s", run->command->folder, name,
                       strerror(-code));
}

/* The first bytes make the file: whatever has the name is replaced, not followed. */
static int append_to_file(struct node_run *node, int which, const char *bytes, size_t length,
                          struct failure *failure) {
    struct group_run *run = node->run;
    struct capture *capture = &node->streams[which];
    cleanup_free char *name = file_name(node, which);
    if (!name)
        return failure_memory(failure);
    int flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC | (capture->filed ? O_APPEND : O_CREAT | O_EXCL);
    if (capture->filed == 0 && unlinkat(run->folder, name, 0) < 0 && errno != ENOENT)
        return complain_file(run, name, -errno, failure);
    cleanup_close int file = openat(run->folder, name, flags, 0666);
    if (file < 0)
        return complain_file(run, name, -errno, failure);
    int r = file_write_all(file, bytes, length);
    if (r < 0)
        return complain_file(run, name, r, failure);
    capture->filed += length;
    return 0;
}

static int spill(struct node_run *node, int which, const char *bytes, size_t length,
                 struct failure *failure) {
    struct capture *capture = &node->streams[which];
    int r = 0;
    if (node->run->folder < 0 || capture->received <= node->run->kept_most)
        return 0;
    /* All that was kept before these bytes came is not in the file yet. */
    size_t before = (size_t)(capture->received - length);
    if (capture->filed == 0 && before > 0)
        r = append_to_file(node, which, capture->kept.bytes, before, failure);
    return r < 0 ? r : append_to_file(node, which, bytes, length, failure);
}

static int take_output(struct node_run *node, int which, const char *bytes, size_t length,
                       struct failure *failure) {
    struct capture *capture = &node->streams[which];
    if (!capture->hash && !(capture->hash = hash_new()))
        return failure_memory(failure);
    hash_update(capture->hash, bytes, length);
    capture->received += length;
    int r = spill(node, which, bytes, length, failure);
    size_t room = node->run->kept_most - capture->kept.length;
    if (r == 0 && text_append(&capture->kept, bytes, length < room ? length : room) < 0)
        r = failure_memory(failure);
    return r;
}

/* TOTAL: what the command says that it wrote. */
static int end_stream(struct node_run *node, int which, uint64_t total, struct failure *failure) {
    struct capture *capture = &node->streams[which];
    struct node_stream *stream = which == 0 ? &node->result->output : &node->result->error;
    if (capture->hash)
        hash_finish(capture->hash, stream->hash);
    else if (hash_bytes("", 0, stream->hash) < 0)
        return failure_memory(failure);
    hash_free(take_pointer(capture->hash));
    stream->total = total;
    stream->received = capture->received;
    stream->length = capture->kept.length;
    int r = 0;
    if (node->run->folder >= 0 && capture->received > 0) {
        if (capture->filed == 0)
            r = append_to_file(node, which, capture->kept.bytes, capture->kept.length, failure);
        cleanup_free char *name = file_name(node, which);
        stream->file = name ? file_join(node->run->command->folder, name) : NULL;
        if (r == 0 && !stream->file)
            r = failure_memory(failure);
    }
    stream->bytes = text_take(&capture->kept);
    return r == 0 && !stream->bytes ? failure_memory(failure) : r;
}

/* ---- one node's command */

static void end_node(struct node_run *node) {
    struct failure failure;
    const struct remote_exit *exit = &node->result->exit;
    bool done = node->result->outcome == NODE_DONE;
    for (int i = 0; i < 2; i++) {
        uint64_t told = i == 0 ? exit->output_bytes : exit->error_bytes;
        if (end_stream(node, i, done ? told : node->streams[i].received, &failure) < 0)
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
    struct failure failure;
    if (node->run->round.code == 0 &&
        take_output(node, stream == REMOTE_STDOUT ? 0 : 1, bytes, length, &failure) < 0)
        node_round_fail(&node->run->round, &failure);
}

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
            return; /* it has ended, and its exit tells */
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

static void on_exit_of(struct remote_command *command, const struct remote_exit *exit,
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
    .on_started = on_started, .on_output = on_output, .on_drain = on_drain, .on_exit = on_exit_of};

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

/* A file of an earlier command must not pass for this one's. */
static int remove_old_files(const struct node_run *node, struct failure *failure) {
    for (int i = 0; i < 2 && node->run->folder >= 0; i++) {
        cleanup_free char *name = file_name(node, i);
        if (!name)
            return failure_memory(failure);
        if (unlinkat(node->run->folder, name, 0) < 0 && errno != ENOENT)
            return complain_file(node->run, name, -errno, failure);
    }
    return 0;
}

static bool ask_to_run(struct node_round *round, size_t number, struct node_asked *asked) {
    struct group_run *run = round->context;
    struct node_run *node = &run->nodes[number];
    *node = (struct node_run){.run = run, .asked = asked, .result = &run->results[number]};
    for (int i = 0; i < 2; i++)
        text_init(&node->streams[i].kept, run->kept_most);
    struct failure failure = {0};
    if (remove_old_files(node, &failure) < 0) {
        node_round_fail(round, &failure);
        return false;
    }
    if (!node_group_is_there(round->group, number)) {
        node->result->outcome = NODE_SKIPPED;
        node_group_complain_absent(round->group, number, &node->result->failure);
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

/* ---- all of them */

static int sync_file(const struct group_run *run, const char *path, struct failure *failure) {
    const char *name = file_base_name(path);
    cleanup_close int file = openat(run->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0 || fsync(file) < 0)
        return complain_file(run, name, -errno, failure);
    return 0;
}

/* After all have answered, and a few a turn. Many files share one commit of the file system; what is clean
 * then costs fsync little, and tells whether it could be written. */
static int sync_files(const struct group_run *run, struct failure *failure) {
    struct node_group *group = run->round.group;
    size_t synced = 0, files = 0;
    for (size_t i = 0; i < group->count; i++)
        files += (run->results[i].output.file != NULL) + (run->results[i].error.file != NULL);
    if (files >= SYNCED_TOGETHER && syncfs(run->folder) < 0)
        return failure_set(failure, -errno, "cannot write '%s': %s", run->command->folder, strerror(errno));
    for (size_t i = 0; i < group->count; i++) {
        const char *const written[] = {run->results[i].output.file, run->results[i].error.file};
        for (int k = 0; k < 2; k++) {
            if (!written[k])
                continue;
            int r = sync_file(run, written[k], failure);
            if (r == 0 && ++synced % SYNCS_A_TURN == 0)
                r = event_loop_run_once(group->loop, 0, failure);
            if (r < 0)
                return r;
        }
    }
    if (synced > 0 && fsync(run->folder) < 0)
        return failure_set(failure, -errno, "cannot write '%s': %s", run->command->folder, strerror(errno));
    return 0;
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

/* After an interruption: what has come until now is the answer of those that had not ended. */
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
        .command = command, .folder = -1, .kept_most = command->kept ? command->kept : NODE_OUTPUT_KEPT};
    run.round =
        (struct node_round){.group = group, .nodes = command->nodes, .ask = ask_to_run, .context = &run};
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
