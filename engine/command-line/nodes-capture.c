/*
 * assay nodes capture: the files in which each node shows itself, as FOLDER/NODE.tar. An archive has that
 * name only when it is whole: it comes in a folder of its own beside, is checked there, and is renamed.
 */
#include "engine/command-line/nodes.h"

#include "engine/command-line/nodes-values.h"
#include "engine/command-line/shown.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/number.h"
#include "engine/remote/nodes/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CAPTURE_MAX = 80 << 20, /* bytes of one: 64 MiB of files at most, and their headers */
    CAPTURE_TIMEOUT = 300,  /* s */
    TAR_BLOCK = 512,        /* POSIX.1-2017, pax: ustar; the end is two blocks of zeros */
    TAR_MAGIC_AT = 257,
};

struct capturing {
    struct nodes *nodes;
    const char *folder;
    char *staging; /* where they come to; NULL: not made */
    struct node_result *results;
    struct failure *failures;
    uint64_t *sizes; /* of those that are there */
};

static void clear_capturing(struct capturing *capturing) {
    if (capturing->results)
        node_results_free(capturing->nodes->group, capturing->results);
    if (capturing->staging)
        (void)file_remove_tree(capturing->staging, NULL);
    free(capturing->staging);
    free(capturing->failures);
    free(capturing->sizes);
}

/* ---- one archive */

static int read_block(int file, off_t at, char *ret) {
    ssize_t got = pread(file, ret, TAR_BLOCK, at);
    return got == TAR_BLOCK ? 0 : got < 0 ? -errno : -EIO;
}

/* Does it begin and end as one? What is in it is not looked at: tar does that when it is unpacked. */
static int check_tar(const char *path, uint64_t size, struct failure *failure) {
    char block[TAR_BLOCK] = "";
    cleanup_close int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return failure_set(failure, -errno, "cannot read '%s': %s", path, strerror(errno));
    if (size < (uint64_t)3 * TAR_BLOCK || size % TAR_BLOCK != 0 || read_block(file, 0, block) < 0 ||
        memcmp(block + TAR_MAGIC_AT, "ustar", 5) != 0)
        return failure_set(failure, -EBADMSG, "what it sent (%" PRIu64 " bytes) is no tar archive", size);
    for (int i = 1; i <= 2; i++) {
        if (read_block(file, (off_t)size - (off_t)i * TAR_BLOCK, block) < 0)
            return failure_set(failure, -EIO, "cannot read '%s'", path);
        for (size_t k = 0; k < TAR_BLOCK; k++)
            if (block[k])
                return failure_set(failure, -EBADMSG, "what it sent (%" PRIu64 " bytes) has no end", size);
    }
    return 0;
}

static int check_result(const struct node_result *result, struct failure *failure) {
    char how[128];
    const struct node_stream *output = &result->output;
    const char *words = result->error.bytes ? result->error.bytes : "";
    if (result->outcome != NODE_DONE) {
        *failure = result->failure;
        return failure->code;
    }
    if (!node_result_is_good(result))
        return failure_set(failure, -EIO, "capturing %s%s%.*s",
                           remote_exit_describe(&result->exit, how, sizeof how), *words ? ": " : "",
                           (int)strcspn(words, "\n"), words);
    if (result->exit.output_cut || output->received < output->total)
        return failure_set(failure, -EFBIG, "it has %" PRIu64 " bytes; expected at most %d MiB",
                           output->total, CAPTURE_MAX >> 20);
    if (output->received == 0 || !output->file)
        return failure_set(failure, -ENODATA, "it sent nothing");
    return 0;
}

/* It is on the disk already (node_group_run); what is there must be what came. */
static int land(struct capturing *capturing, size_t node, struct failure *failure) {
    const struct node_stream *output = &capturing->results[node].output;
    int r = check_result(&capturing->results[node], failure);
    if (r < 0)
        return r;
    char hash[HASH_HEX_SIZE];
    uint64_t size = 0;
    r = hash_file(output->file, hash, &size, failure);
    if (r == 0 && (size != output->received || strcmp(hash, output->hash) != 0))
        r = failure_set(failure, -EIO, "'%s' is not what came; is the disk full?", output->file);
    if (r == 0)
        r = check_tar(output->file, size, failure);
    if (r < 0)
        return r;
    cleanup_free char *name = text_format("%s.tar", node_group_name(capturing->nodes->group, node));
    cleanup_free char *path = name ? file_join(capturing->folder, name) : NULL;
    if (!path)
        return failure_memory(failure);
    if (rename(output->file, path) < 0)
        return failure_set(failure, -errno, "cannot write '%s': %s", path, strerror(errno));
    capturing->sizes[node] = size;
    return 0;
}

/* One of an earlier time must not pass for one of now. */
static void remove_old(const struct capturing *capturing, size_t node) {
    cleanup_free char *name = text_format("%s.tar", node_group_name(capturing->nodes->group, node));
    cleanup_free char *path = name ? file_join(capturing->folder, name) : NULL;
    if (path)
        (void)unlink(path);
}

static int land_all(struct capturing *capturing, struct failure *failure) {
    int r = 0;
    bool any = false;
    for (size_t i = 0; i < node_group_count(capturing->nodes->group); i++) {
        if (land(capturing, i, &capturing->failures[i]) < 0)
            remove_old(capturing, i);
        else
            any = true;
    }
    if (any)
        r = file_sync_folder_of(capturing->staging, failure);
    return r;
}

/* ---- words */

static int print_sizes(const struct capturing *capturing, struct failure *failure) {
    cleanup(nodes_table_clear) struct nodes_table table;
    nodes_table_init(&table, capturing->nodes);
    int r = 0;
    for (size_t i = 0; i < node_group_count(capturing->nodes->group) && r == 0; i++) {
        char size[NUMBER_TEXT_SIZE];
        if (capturing->failures[i].code == 0)
            r = nodes_table_add(&table, i, "",
                                text_format("%" PRIu64 " bytes (%s)", capturing->sizes[i],
                                            number_describe_bytes((double)capturing->sizes[i], size)),
                                failure);
    }
    if (r == 0)
        r = nodes_table_print_row(&table, "", failure);
    if (r < 0 || table.count == 0)
        return r;
    printf("A capture, %s/NODE.tar, stands for its node once it is unpacked into a folder of its own:\n"
           "    mkdir DIR && tar -xf NODE.tar -C DIR && assay-agent --controls --root DIR\n",
           shown(capturing->folder).text);
    return 0;
}

/* ---- the action */

static int capture(struct capturing *capturing, struct failure *failure) {
    static const char *const arguments[] = {NODE_TOOL_PROGRAM, "--capture", NULL};
    const struct remote_command_specification specification = {.arguments = arguments,
                                                               .output_limit = CAPTURE_MAX,
                                                               .error_limit = FAILURE_TEXT_SIZE,
                                                               .timeout_ms = CAPTURE_TIMEOUT * 1000};
    const struct node_group_command command = {.specification = &specification, .folder = capturing->staging};
    return node_group_run(capturing->nodes->group, &command, &capturing->results, failure);
}

static int capture_all(struct nodes *nodes, const char *folder, struct failure *failure) {
    cleanup(clear_capturing) struct capturing capturing = {.nodes = nodes, .folder = folder};
    size_t count = node_group_count(nodes->group);
    capturing.failures = calloc(count + 1, sizeof *capturing.failures);
    capturing.sizes = calloc(count + 1, sizeof *capturing.sizes);
    cleanup_free char *staging = file_join(folder, ".capture-XXXXXX");
    if (!capturing.failures || !capturing.sizes || !staging)
        return failure_memory(failure);
    if (!mkdtemp(staging))
        return failure_set(failure, -errno, "cannot make a folder in '%s': %s", folder, strerror(errno));
    capturing.staging = take_pointer(staging);
    nodes_doing(nodes, "capturing");
    int r = capture(&capturing, failure);
    if (r == 0)
        r = land_all(&capturing, failure);
    nodes_doing(nodes, NULL);
    if (r == 0 && !nodes->quiet)
        r = print_sizes(&capturing, failure);
    return r < 0 ? r : nodes_failures(nodes, capturing.failures, "capturing", failure);
}

int nodes_capture(const struct verb_arguments *arguments, struct failure *failure) {
    const char *folder = verb_value(arguments, "--output");
    if (!folder)
        return failure_input(failure, NULL, 0, 0,
                             "'assay nodes capture' needs a folder for the captures; expected -o FOLDER");
    int r = file_make_folders(folder, failure);
    if (r < 0)
        return r;
    cleanup(nodes_clear) struct nodes nodes = {0};
    r = nodes_open(&nodes, arguments, NODES_LEAVE_CONTROLS, failure);
    if (r == 0)
        r = capture_all(&nodes, folder, failure);
    return nodes_close(&nodes, r, failure);
}
