#include "engine/run/nodes/fetch-sources.h"

#include "archive-format/layout.h"
#include "archive-format/tar.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/run/campaign/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FETCH_TIMEOUT_MS = 3600 * 1000, EXIT_NO_SOURCE = 3, EXIT_TOO_LARGE = 4 };

/* Arguments: what is wanted, "git+ADDRESS[@COMMIT]" or a path, and the most bytes that are taken. Prints a
 * tar of the files, without links and .git, and the commit of a clone on standard error. Exits with 3 where
 * there is no source, with 4 where it is larger, of which it prints the hashes instead. */
static const char pack_script[] =
    "wanted=$1 most=$2 at=\n"
    "case $wanted in\n"
    "git+*)\n"
    "    wanted=${wanted#git+}\n"
    "    case ${wanted##*/} in *@*) at=${wanted##*@} wanted=${wanted%@*} ;; esac\n"
    "    rm -rf .cloned && git clone --quiet -- \"$wanted\" .cloned || exit 1\n"
    "    [ -z \"$at\" ] || git -C .cloned -c advice.detachedHead=false checkout --quiet \"$at\" -- || exit "
    "1\n"
    "    git -C .cloned rev-parse HEAD >&2 || exit 1\n"
    "    wanted=.cloned ;;\n"
    "esac\n"
    "if [ -d \"$wanted\" ]; then\n"
    "    cd -- \"$wanted\" || exit 1\n"
    "    [ -e src ] || [ ! -e bin ] || exit 3\n"
    "    set -- .\n"
    "elif [ -f \"$wanted\" ] && [ ! -x \"$wanted\" ]; then\n"
    "    cd -- \"$(dirname -- \"$wanted\")\" || exit 1\n"
    "    set -- \"./$(basename -- \"$wanted\")\"\n"
    "else exit 3; fi\n"
    "list() { find \"$1\" -name .git -prune -o ! -name . -type \"$2\" -print0; }\n"
    "bytes=$(list \"$1\" f | du -sbc --files0-from=- --no-dereference 2>/dev/null | tail -n 1 | cut -f 1)\n"
    "if [ \"${bytes:-0}\" -gt \"$most\" ]; then\n"
    "    list \"$1\" f | xargs -0 sha256sum 2>/dev/null | sed 's,  \\./,  ,' | LC_ALL=C sort -k 2\n"
    "    exit 4\n"
    "fi\n"
    "list \"$1\" f,d | LC_ALL=C sort -z | tar -cf - --no-recursion --null -T -\n";

static const char git_prefix[] = "git+";

/* The result of fetching a source. */
struct fetched {
    char *file; /* what was printed; NULL: nothing */
    char commit[HASH_HEX_SIZE];
    int status; /* of PACK_SCRIPT */
    const char *node;
};

static void clear_fetched(struct fetched *fetched) {
    if (fetched->file)
        unlink(fetched->file);
    free(fetched->file);
}

/* Packs the source WANTED on the first node, below FOLDER there, and copies it to RET->file. RET->status: 0;
 * EXIT_NO_SOURCE: WANTED is no source; EXIT_TOO_LARGE: above MOST bytes, and the file is a listing of hashes.
 */
static int fetch_source(struct node_set *set, const char *wanted, const char *folder, uint64_t most,
                        struct fetched *ret, struct failure *failure) {
    static const char *const no_questions[] = {"GIT_TERMINAL_PROMPT=0", NULL};
    const struct run_node *first = node_set_next(set, NULL);
    cleanup_free char *bytes = xformat("%llu", (unsigned long long)most),
                      *kept = record_path(set->record, ".fetched");
    const char *const arguments[] = {"sh", "-c", pack_script, "assay", wanted, bytes, NULL};
    const struct remote_command_specification specification = {.arguments = arguments,
                                                               .environment = no_questions,
                                                               .folder = folder,
                                                               .timeout_ms = FETCH_TIMEOUT_MS,
                                                               .error_limit = NODE_OUTPUT_KEPT};
    cleanup_free bool *nodes = xcalloc(set->count, sizeof *nodes);
    struct node_result *results = NULL;
    if (!first) {
        ret->status = EXIT_NO_SOURCE;
        return 0;
    }
    nodes[first->number] = true;
    record_log(set->record, "node %s: copy the source '%s'", first->name, wanted);
    int r = file_make_folders(kept, failure);
    if (r == 0)
        r = node_group_run(
            set->group,
            &(struct node_group_command){.specification = &specification, .folder = kept, .nodes = nodes},
            &results, failure);
    if (r < 0)
        return r;
    struct node_result *result = &results[first->number];
    ret->node = first->name;
    ret->file = take_pointer(result->output.file);
    ret->status = result->outcome == NODE_DONE && !result->exit.signalled ? result->exit.code : 1;
    if (result->error.length)
        snprintf(ret->commit, sizeof ret->commit, "%.*s", (int)strcspn(result->error.bytes, "\n"),
                 result->error.bytes);
    if (ret->status == 1)
        r = failure_set_kind(failure, FAILURE_EXPERIMENT, -ECHILD,
                             "on node %s, the source '%s' cannot be copied: %.300s", first->name, wanted,
                             result->error.length ? result->error.bytes : result->failure.text);
    node_results_free(set->group, results);
    return r;
}

/* Unpacks what was fetched as FILES, in FOLDER, which is the caller's to remove. */
static int unpack(const struct fetched *fetched, const char *folder, struct source_files *files,
                  struct failure *failure) {
    int r = file_remove_tree(folder, failure);
    if (r == 0)
        r = tar_extract(fetched->file, folder, failure);
    return r < 0 ? r : source_files_read(&(struct source_choice){.folder = folder}, files, failure);
}

/* Makes FILES the copy of option NAME in the run's folder, records the origin and sets the option to the
 * copy. A single file that the option named stays a file. */
static int use_fetched_copy(struct node_set *set, const char *name, struct source_files *files,
                            struct source_origin *origin, struct failure *failure) {
    struct experiment *experiment = set->campaign->experiment;
    bool is_file = !origin->commit && files->tree.count == 2 && !files->tree.entries[1].is_folder &&
                   strcmp(file_base_name(origin->written), files->tree.entries[1].relative) == 0;
    cleanup_free char *below = xformat(ARCHIVE_INPUT_FILES "/%s", name),
                      *copy = record_path(set->record, below),
                      *value = is_file ? file_join(below, files->tree.entries[1].relative) : xstrdup(below);
    origin->copy = value;
    int r = file_make_folders(copy, failure);
    if (r == 0)
        r = source_files_copy(files, copy, below, failure);
    if (r == 0)
        r = sources_record(set->record->folder, files, origin, failure);
    if (r == 0)
        r = experiment_set_option(experiment, name, value, "sources", 0, 0, failure);
    if (r < 0)
        return r;
    bind_texts_add(&experiment->inputs, name);
    bind_texts_add(&experiment->input_paths, copy);
    bind_texts_add(&experiment->input_values, origin->written);
    return 0;
}

/* Copies the source that option NAME names on a node. An option that is no source stays as it is. A source
 * that is too large, or cannot be copied, is only noted, unless it is a commit. */
static int fetch_option(struct node_set *set, const char *name, struct failure *failure) {
    cleanup(clear_fetched) struct fetched fetched = {0};
    cleanup(source_files_clear) struct source_files files = SOURCE_FILES_NONE;
    cleanup_free char *written = xstrdup(experiment_option_value(set->experiment, name)),
                      *folder = record_path(set->record, ".fetched/files"),
                      *listing = xformat("%s/" ARCHIVE_SOFTWARE "/%s-sha256.txt", set->record->folder, name);
    int r = fetch_source(set, written, NULL, provenance_source_bytes(set->campaign->provenance), &fetched,
                         failure);
    if (r < 0 || fetched.status == EXIT_NO_SOURCE || !fetched.file)
        return r;
    struct source_origin origin = {.name = name, .written = written, .node = fetched.node};
    cleanup_free char *url = NULL;
    if (fetched.commit[0]) {
        const char *address = written + strlen(git_prefix), *slash = strrchr(address, '/'),
                   *at = slash ? strrchr(slash, '@') : NULL;
        url = xstrndup(address, at ? (size_t)(at - address) : strlen(address));
        origin.commit = fetched.commit;
        origin.url = url;
        origin.at = at ? at + 1 : NULL;
    }
    if (fetched.status == EXIT_TOO_LARGE) {
        record_note(set->record,
                    "the source '%s' is larger than %llu MiB: the archive has its hashes and no copy",
                    written, (unsigned long long)provenance_source_bytes(set->campaign->provenance) >> 20);
        r = file_copy(fetched.file, FILE_REGULAR, listing, failure);
        return r < 0 ? r : sources_record(set->record->folder, &files, &origin, failure);
    }
    r = unpack(&fetched, folder, &files, failure);
    if (r == 0)
        r = use_fetched_copy(set, name, &files, &origin, failure);
    file_remove_tree(folder, NULL);
    if (r == 0 || origin.commit || failure->kind != FAILURE_INPUT)
        return r;
    record_note(set->record, "the archive has no copy of the source '%s': %s", written, failure->text);
    return 0;
}

int sources_fetch(struct node_set *set, struct failure *failure) {
    const struct experiment *experiment = set->experiment;
    int r = 0;
    for (size_t i = 0; r == 0 && i < experiment->sources.count; i++) {
        const char *name = experiment->sources.items[i], *value = experiment_option_value(experiment, name);
        bool may_be = value[0] == '/' || strncmp(value, git_prefix, strlen(git_prefix)) == 0;
        if (may_be && !bind_texts_have(&experiment->inputs, name))
            r = fetch_option(set, name, failure);
    }
    return r;
}

/* Keeps the clone that the first node has made as the run's copy of the source, if it is not too large. */
int sources_fetch_clone(struct node_set *set, struct failure *failure) {
    cleanup(clear_fetched) struct fetched fetched = {0};
    cleanup(source_files_clear) struct source_files files = SOURCE_FILES_NONE;
    const struct experiment_source *source = &set->experiment->source;
    cleanup_free char *folder = record_path(set->record, ".fetched/files"),
                      *tar = record_path(set->record, ARCHIVE_SOURCE),
                      *commit = record_path(set->record, ARCHIVE_SOURCE_COMMIT);
    cleanup(text_clear) struct text line;
    text_init(&line, 4096);
    int r = fetch_source(set, ".", RUN_WORK_FOLDER, provenance_source_bytes(set->campaign->provenance),
                         &fetched, failure);
    if (r == 0)
        r = file_read(commit, &line, failure);
    if (r < 0 || fetched.status != 0 || !fetched.file)
        return r;
    line.bytes[strcspn(line.bytes, "\n")] = '\0';
    r = unpack(&fetched, folder, &files, failure);
    if (r == 0)
        r = source_files_pack(&files, tar, failure);
    if (r == 0)
        r = sources_record(set->record->folder, &files,
                           &(struct source_origin){.name = ARCHIVE_SOURCE_NAME,
                                                   .written = source->git,
                                                   .url = source->git,
                                                   .copy = ARCHIVE_SOURCE,
                                                   .commit = line.bytes,
                                                   .at = source->at},
                           failure);
    file_remove_tree(folder, NULL);
    return r;
}
