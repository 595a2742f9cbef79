/* assay nodes put and get. */
#include "engine/command-line/nodes/nodes.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/report/shown.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int check_absolute(const char *path, struct failure *failure) {
    if (path[0] == '/')
        return 0;
    return failure_input(failure, NULL, 0, 0,
                         "'%s' is a relative path; expected an absolute one: an agent's own folder is gone "
                         "when it leaves",
                         path);
}

static void report_done(const struct nodes *nodes, const char *what, int64_t start_ns) {
    char duration[NUMBER_TEXT_SIZE];
    number_describe_duration((double)(clock_monotonic_ns() - start_ns) / (double)EVENT_SECOND, duration);
    if (!nodes->quiet)
        report_note(nodes->report->root, REPORT_LINE, "%s: %zu of %zu nodes, verified, in %s", what,
                    nodes_count_good(nodes), node_group_count(nodes->group), duration);
}

/* ---- put */

/* *RET is the path that FILE gets on the nodes: DESTINATION, or, INTO, its own name in it. The caller frees.
 */
static int name_there(const char *file, const char *destination, bool into, char **ret,
                      struct failure *failure) {
    if (!into) {
        *ret = xstrdup(destination);
        return 0;
    }
    size_t length = strlen(file);
    while (length > 1 && file[length - 1] == '/')
        length--;
    cleanup_free char *trimmed = xstrndup(file, length);
    const char *name = file_base_name(trimmed);
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "/") == 0)
        return failure_input(failure, NULL, 0, 0,
                             "'%s' does not end in a name, which it needs in '%s'; expected its name too",
                             file, destination);
    *ret = file_join(destination, name);
    return 0;
}

static int check_files(const struct verb_arguments *arguments, struct failure *failure) {
    for (size_t i = 1; i + 1 < arguments->operand_count; i++) {
        struct stat status;
        if (stat(arguments->operands[i], &status) < 0)
            return failure_input(failure, NULL, 0, 0, "cannot read '%s': %s", arguments->operands[i],
                                 strerror(errno));
    }
    return 0;
}

/* Refuses two files that would have one name on the nodes, before any is sent. */
static int check_names(const struct verb_arguments *arguments, struct failure *failure) {
    size_t last = arguments->operand_count - 1;
    const char *destination = arguments->operands[last];
    int r = 0;
    for (size_t i = 2; r == 0 && i < last; i++) {
        cleanup_free char *name = NULL;
        r = name_there(arguments->operands[i], destination, true, &name, failure);
        for (size_t k = 1; r == 0 && k < i; k++) {
            cleanup_free char *other = NULL;
            r = name_there(arguments->operands[k], destination, true, &other, failure);
            if (r == 0 && strcmp(name, other) == 0)
                r = failure_input(failure, NULL, 0, 0, "'%s' and '%s' would both become '%s' on the nodes",
                                  arguments->operands[k], arguments->operands[i], name);
        }
    }
    return r;
}

int nodes_put_check(const struct verb_arguments *arguments, struct failure *failure) {
    int r = check_absolute(arguments->operands[arguments->operand_count - 1], failure);
    if (r == 0)
        r = check_files(arguments, failure);
    return r < 0 ? r : check_names(arguments, failure);
}

/* Copies FILE to all nodes. Links and special files in it are left out, which is printed. */
static int put_one(struct nodes *nodes, const char *file, const char *destination, bool into,
                   struct failure *failure) {
    cleanup_free char *remote = NULL;
    int r = name_there(file, destination, into, &remote, failure);
    if (r < 0)
        return r;
    size_t left_out = 0;
    cleanup_free struct failure *failures = NULL;
    r = node_group_put(nodes->group, &(struct node_put){.local = file, .remote = remote}, &failures,
                       &left_out, failure);
    nodes_add_failures(nodes, failures);
    if (r == 0 && left_out > 0 && !nodes->quiet)
        fprintf(stderr, "assay: %zu links and special files of '%s' were left out\n", left_out,
                shown(file).text);
    return r;
}

/* Several files, or a destination that ends in '/', go into the destination by their own names. */
int nodes_put(struct nodes *nodes, const struct verb_arguments *arguments, struct failure *failure) {
    nodes->failures = xcalloc(node_group_count(nodes->group) + 1, sizeof *nodes->failures);
    size_t last = arguments->operand_count - 1;
    const char *destination = arguments->operands[last];
    bool into = last > 2 || destination[strlen(destination) - 1] == '/';
    int64_t start = clock_monotonic_ns();
    int r = 0;
    for (size_t i = 1; i < last && r == 0; i++)
        r = put_one(nodes, arguments->operands[i], destination, into, failure);
    if (r == 0)
        report_done(nodes, "put", start);
    return r;
}

/* ---- get */

int nodes_get_check(const struct verb_arguments *arguments, struct failure *failure) {
    int r = check_absolute(arguments->operands[1], failure);
    return r < 0 ? r : file_make_folders(arguments->operands[2], failure);
}

int nodes_get(struct nodes *nodes, const struct verb_arguments *arguments, struct failure *failure) {
    int64_t start = clock_monotonic_ns();
    int r = node_group_get(nodes->group, arguments->operands[1], arguments->operands[2], &nodes->failures,
                           failure);
    if (r == 0)
        report_done(nodes, "get", start);
    return r;
}
