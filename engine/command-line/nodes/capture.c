/*
 * assay nodes capture: the files in which each node shows itself, as FOLDER/NODE.tar. An archive has that
 * name only when it is whole: it comes in a folder of its own beside, is checked there, and is renamed.
 */
#include "engine/command-line/nodes/nodes.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"
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
};

static void clear_capturing(struct capturing *capturing) {
    if (capturing->results)
        node_results_free(capturing->nodes->group, capturing->results);
    if (capturing->staging)
        (void)file_remove_tree(capturing->staging, NULL);
    free(capturing->staging);
}

/* ---- one archive */

static int read_block(int file, off_t at, char *ret) {
    ssize_t got = pread(file, ret, TAR_BLOCK, at);
    return got == TAR_BLOCK ? 0 : got < 0 ? -errno : -EIO;
}

/* Checks that the file begins and ends as a tar archive. Its content is checked by tar when it is unpacked.
 */
static int check_tar(const char *path, uint64_t size, struct failure *failure) {
    char block[TAR_BLOCK] = "";
    cleanup_close int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return failure_set(failure, -errno, "cannot read '%s': %s", path, strerror(errno));
    if (size < (uint64_t)3 * TAR_BLOCK || size % TAR_BLOCK != 0 || read_block(file, 0, block) < 0 ||
        memcmp(block + TAR_MAGIC_AT, "ustar", 5) != 0)
        return failure_set(failure, -EBADMSG, "the capture (%" PRIu64 " bytes) is no tar archive", size);
    for (int i = 1; i <= 2; i++) {
        if (read_block(file, (off_t)size - (off_t)i * TAR_BLOCK, block) < 0)
            return failure_set(failure, -EIO, "cannot read '%s'", path);
        for (size_t k = 0; k < TAR_BLOCK; k++)
            if (block[k])
                return failure_set(failure, -EBADMSG, "the capture (%" PRIu64 " bytes) is cut off", size);
    }
    return 0;
}

/* 0 if the node has sent its whole capture; else FAILURE says why not. */
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

/* Renames the file that came from a node to PATH, if its hash is right and it is a tar archive. */
static int store_capture(const struct node_result *result, const char *path, uint64_t *ret_size,
                         struct failure *failure) {
    const struct node_stream *output = &result->output;
    char hash[HASH_HEX_SIZE];
    int r = check_result(result, failure);
    if (r == 0)
        r = hash_file(output->file, hash, ret_size, failure);
    if (r == 0 && (*ret_size != output->received || strcmp(hash, output->hash) != 0))
        r = failure_set(failure, -EIO, "'%s' is not what came; is the disk full?", output->file);
    if (r == 0)
        r = check_tar(output->file, *ret_size, failure);
    if (r == 0 && rename(output->file, path) < 0)
        r = failure_set(failure, -errno, "cannot write '%s': %s", path, strerror(errno));
    return r;
}

/* Stores the captures of all nodes. An older file of a node that failed is removed. */
static int store_captures(const struct capturing *capturing, struct failure *failure) {
    struct nodes *nodes = capturing->nodes;
    size_t count = node_group_count(nodes->group);
    nodes->failures = xcalloc(count + 1, sizeof *nodes->failures);
    nodes_report_sections(nodes);
    for (size_t i = 0; i < count; i++) {
        uint64_t size = 0;
        char words[NUMBER_TEXT_SIZE];
        cleanup_free char *path = xformat("%s/%s.tar", capturing->folder, node_group_name(nodes->group, i));
        if (store_capture(&capturing->results[i], path, &size, &nodes->failures[i]) < 0)
            (void)unlink(path); /* one of an earlier time must not pass for one of now */
        else if (!nodes->quiet)
            report_note(nodes->sections[i], REPORT_LINE, "%" PRIu64 " bytes (%s)", size,
                        number_describe_bytes((double)size, words));
    }
    return nodes_count_good(nodes) > 0 ? file_sync_folder_of(capturing->staging, failure) : 0;
}

/* ---- the action */

int nodes_capture_check(const struct verb_arguments *arguments, struct failure *failure) {
    const char *folder = verb_value(arguments, "--output");
    if (!folder)
        return failure_input(failure, NULL, 0, 0,
                             "'assay nodes capture' needs a folder for the captures; expected -o FOLDER");
    return file_make_folders(folder, failure);
}

int nodes_capture(struct nodes *nodes, const struct verb_arguments *arguments, struct failure *failure) {
    static const char *const words[] = {NODE_TOOL_PROGRAM, "--capture", NULL};
    const struct remote_command_specification specification = {.arguments = words,
                                                               .output_limit = CAPTURE_MAX,
                                                               .error_limit = FAILURE_TEXT_SIZE,
                                                               .timeout_ms = CAPTURE_TIMEOUT * 1000};
    cleanup(clear_capturing) struct capturing capturing = {.nodes = nodes,
                                                           .folder = verb_value(arguments, "--output")};
    cleanup_free char *staging = file_join(capturing.folder, ".capture-XXXXXX");
    if (!mkdtemp(staging))
        return failure_set(failure, -errno, "cannot make a folder in '%s': %s", capturing.folder,
                           strerror(errno));
    capturing.staging = take_pointer(staging);
    const struct node_group_command command = {.specification = &specification, .folder = capturing.staging};
    int r = node_group_run(nodes->group, &command, &capturing.results, failure);
    if (r == 0)
        r = store_captures(&capturing, failure);
    if (r == 0 && nodes_count_good(nodes) > 0 && !nodes->quiet)
        report_note(
            nodes->report->root, REPORT_LINE,
            "A capture, %s/NODE.tar, stands for its node once it is unpacked into a folder of its own:\n"
            "    mkdir DIR && tar -xf NODE.tar -C DIR && assay-agent --controls --root DIR",
            capturing.folder);
    return r;
}
