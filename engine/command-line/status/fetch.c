/* assay archive fetch: brings the archive of a run that was carried out elsewhere, over ssh. */
#include "engine/command-line/status/fetch.h"
#include "archive-format/layout.h"
#include "engine/command-line/nodes/nodes.h"
#include "engine/command-line/verb.h"

#include "archive-format/reader.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/report/shown.h"
#include "engine/run/record/history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fetching {
    struct nodes nodes;
    const char *folder; /* that the archive is to be in */
    char *staging;      /* below it, for what has come and is not checked yet */
    char *run;          /* the run's folder there, absolute */
};

static int take_failure(const struct failure *failures, int result, struct failure *failure) {
    if (result < 0 || failures[0].code == 0)
        return result;
    *failure = failures[0];
    return failure->code;
}

/* The file NAME of the folder PATH there; *RET, the caller's, is where it lies here. */
static int get(struct fetching *fetching, const char *path, const char *name, char **ret,
               struct failure *failure) {
    struct node_group *group = fetching->nodes.group;
    cleanup_free char *remote = file_join(path, name);
    cleanup_free struct failure *failures = NULL;
    int r = node_group_get(group, remote, fetching->staging, &failures, failure);
    *ret = xformat("%s/%s/%s", fetching->staging, node_group_name(group, 0), name);
    return take_failure(failures, r, failure);
}

/* Finds the run's folder on the host. RUN may be relative to the home there, and may name the archive beside
 * the folder. */
static int find_run(struct fetching *fetching, const char *run, struct failure *failure) {
    size_t length = strlen(run) - (text_ends_in(run, ".zip") ? strlen(".zip") : 0);
    cleanup_free char *folder = xstrndup(run, length);
    const char *const words[] = {"sh", "-c",   "cd && cd -- \"$1\" && test -f " ARCHIVE_JOURNAL " && pwd -P",
                                 "sh", folder, NULL};
    const struct remote_command_specification specification = {
        .arguments = words, .output_limit = NODE_OUTPUT_KEPT, .error_limit = FAILURE_TEXT_SIZE};
    struct node_result *results = NULL;
    int r = node_group_run(fetching->nodes.group,
                           &(struct node_group_command){.specification = &specification}, &results, failure);
    if (r < 0)
        return r;
    if (results[0].outcome == NODE_DONE && !node_result_is_good(&results[0]))
        r = failure_set_kind(failure, FAILURE_INPUT, -ENOENT, "there is no folder of a run '%s' there",
                             folder);
    else
        r = node_results_failure(fetching->nodes.group, results, failure);
    const char *said = r == 0 ? results[0].output.bytes : "";
    size_t path = strcspn(said, "\n");
    if (r == 0 && (said[0] != '/' || strcmp(said + path, "\n") != 0))
        r = failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                             "the run '%s' is in a folder with a newline in its name; expected none", folder);
    if (r == 0)
        fetching->run = xstrndup(said, path);
    node_results_free(fetching->nodes.group, results);
    return r;
}

/* Is NAME, which comes from another host, safe as an archive's name: not hidden, printable, without a slash?
 */
static bool is_name_of_archive(const char *name) {
    return !strchr(".-", name[0]) && !strchr(name, '/') && text_ends_in(name, ".zip") &&
           strcmp(shown(name).text, name) == 0;
}

/* Refuses a run that is not sealed, by its journal alone: whether an engine works on it cannot be seen from
 * here. */
static int check_status(const struct fetching *fetching, const struct run_history *history, bool partial,
                        struct failure *failure) {
    char last[CLOCK_TEXT_SIZE];
    bool is_sealed = history->sealed_as[0] && history->archive_sha256[0];
    if (is_sealed && !is_name_of_archive(history->archive))
        return failure_verification(failure, fetching->run,
                                    "its journal names '%s', expected the name of an archive beside it",
                                    history->archive);
    if (is_sealed && (partial || strcmp(history->sealed_as, "completed") == 0))
        return 0;
    clock_format(history->part_count ? history->parts[history->part_count - 1].ended_ns : 0, last);
    return failure_set_kind(
        failure, FAILURE_INPUT, -EBUSY,
        "the run '%s' is %s%s: %" PRId64 " of %" PRId64 " units are done, last heard of %s; %s",
        fetching->run,
        is_sealed            ? history->sealed_as
        : history->submitted ? "queued"
                             : "not sealed, in phase ",
        is_sealed || history->submitted ? "" : history->phase, history->units_done, history->planned, last,
        is_sealed ? "--partial brings its archive all the same"
                  : "expected an archive, which it has once it has ended ('assay stop', 'assay resume')");
}

/* Verifies the archive CAME and links it to TARGET last of all, so that an interrupted fetch can be repeated.
 * An archive that exists is never replaced. SHA256: the hash in the run's journal. */
static int verify_and_store(const char *came, const char *target, const char *sha256,
                            struct failure *failure) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    char hex[HASH_HEX_SIZE];
    int r = archive_open(came, &archive, failure);
    if (r == 0)
        r = archive_verify(archive, failure);
    if (r == 0)
        r = hash_file(came, hex, NULL, failure);
    if (r == 0 && strcmp(hex, sha256) != 0)
        r = failure_verification(failure, file_base_name(target),
                                 "its SHA-256 is not the same as when it was sealed; `assay resume` of the "
                                 "run seals it again");
    if (r < 0)
        return r;
    cleanup_free char *path = xformat("%s.sha256", target),
                      *line = xformat("%s  %s\n", hex, file_base_name(target));
    r = file_replace(path, line, strlen(line), 0666, failure);
    if (r == 0 && link(came, target) < 0)
        r = failure_set(failure, -errno, "cannot make '%s': %s", target, strerror(errno));
    return r;
}

/* Fetches the journal, checks the run's status, then fetches and stores its archive. */
static int fetch_run(struct fetching *fetching, const char *run, bool partial, struct failure *failure) {
    cleanup(run_history_clear) struct run_history history = {0};
    cleanup_free char *journal = NULL, *came = NULL, *staging = file_join(fetching->folder, ".fetch-XXXXXX");
    if (!mkdtemp(staging))
        return failure_set(failure, -errno, "cannot make a folder in '%s': %s", fetching->folder,
                           strerror(errno));
    fetching->staging = take_pointer(staging);
    int r = find_run(fetching, run, failure);
    if (r == 0)
        r = get(fetching, fetching->run, ARCHIVE_JOURNAL, &journal, failure);
    if (r < 0)
        return r;
    *strrchr(journal, '/') = '\0';
    r = run_history_read(journal, NULL, &history, failure);
    if (r == 0)
        r = check_status(fetching, &history, partial, failure);
    if (r < 0)
        return r;
    cleanup_free char *target = file_join(fetching->folder, history.archive),
                      *there = xstrndup(fetching->run, (size_t)(strrchr(fetching->run, '/') - fetching->run));
    if (file_exists(target))
        return failure_input(failure, NULL, 0, 0, "'%s' is there already; expected a folder without it",
                             target);
    r = get(fetching, there, history.archive, &came, failure);
    if (r == 0)
        r = verify_and_store(came, target, history.archive_sha256, failure);
    if (r == 0)
        puts(target);
    return r;
}

int archive_fetch(const struct verb_arguments *arguments, struct failure *failure) {
    struct fetching fetching = {.folder = arguments->operand_count > 2 ? arguments->operands[2] : "."};
    const char *from = arguments->operands[1], *colon = strchr(from, ':');
    if (!colon || colon == from || !colon[1])
        return failure_input(failure, NULL, 0, 0, "'%s' is not HOST:RUN, such as login:runs/quickstart-1",
                             from);
    cleanup_free char *host = xstrndup(from, (size_t)(colon - from));
    int r = host_list_add(&fetching.nodes.list, host, failure);
    if (r == 0)
        r = file_make_folders(fetching.folder, failure);
    if (r == 0)
        r = nodes_open(&fetching.nodes, arguments, true, failure);
    if (r == 0)
        r = fetch_run(&fetching, colon + 1, verb_switch(arguments, "--partial"), failure);
    r = nodes_close(&fetching.nodes, r, failure);
    if (fetching.staging)
        file_remove_tree(fetching.staging, NULL);
    free(fetching.staging);
    free(fetching.run);
    return r;
}
