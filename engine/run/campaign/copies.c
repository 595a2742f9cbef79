/* What a run copies into its folder before a node is touched: the experiment's own files, and its source. */
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/run/campaign/source-files.h"

/* "3 files, 12.1 KiB"; the caller's. */
static int describe(const struct source_files *files, char **ret, struct failure *failure) {
    struct text words;
    text_init(&words, FAILURE_TEXT_SIZE);
    int r = source_files_describe(files, &words);
    *ret = text_take(&words);
    return r < 0 || !*ret ? failure_memory(failure) : 0;
}

static int copy_experiment(struct run *run, struct failure *failure) {
    cleanup(source_files_clear) struct source_files files = SOURCE_FILES_NONE;
    cleanup_free char *folder = run_path(run, RUN_EXPERIMENT_FOLDER), *words = NULL;
    struct source_choice choice = {
        .folder = run->experiment->folder, .skip_hidden = true, .runs = run->request->folder};
    if (!folder)
        return failure_memory(failure);
    int r = source_files_read(&choice, &files, failure);
    if (r == 0)
        r = source_files_copy(&files, folder, RUN_EXPERIMENT_FOLDER, failure);
    if (r == 0)
        r = describe(&files, &words, failure);
    if (r == 0)
        run_log(run, "experiment '%s': %s", run->experiment->folder, words);
    return r;
}

static int pack_source(struct run *run, struct failure *failure) {
    const struct experiment_source *source = &run->experiment->source;
    cleanup(source_files_clear) struct source_files files = SOURCE_FILES_NONE;
    cleanup(text_clear) struct text manifest;
    cleanup_free char *tar = run_path(run, RUN_SOURCE_TAR), *list = run_path(run, RUN_SOURCE_MANIFEST),
                      *words = NULL;
    struct source_choice choice = {
        .folder = source->folder, .ignore = &source->ignore, .runs = run->request->folder};
    text_init(&manifest, 64 << 20);
    if (!tar || !list)
        return failure_memory(failure);
    int r = source_files_read(&choice, &files, failure);
    if (r == 0)
        r = source_files_pack(&files, tar, &manifest, failure);
    if (r == 0)
        r = file_replace(list, manifest.bytes, manifest.length, 0666, failure);
    if (r == 0)
        r = describe(&files, &words, failure);
    if (r == 0)
        run_note(run, "source '%s': %s", source->folder, words);
    return r;
}

static int copy_recorded_file(struct run *run, const char *name, struct failure *failure) {
    cleanup_free char *from = file_join(run->experiment->source.recorded, name), *to = run_path(run, name);
    cleanup(text_clear) struct text bytes;
    text_init(&bytes, 2 * SOURCE_BYTES_MOST); /* and what a tar needs for names */
    if (!from || !to)
        return failure_memory(failure);
    int r = file_read(from, &bytes, failure);
    return r < 0 ? r : file_replace(to, bytes.bytes, bytes.length, 0666, failure);
}

/* The source of a run that is run again. */
static int take_recorded_source(struct run *run, struct failure *failure) {
    const struct experiment_source *source = &run->experiment->source;
    cleanup_free char *commit = file_join(source->recorded, RUN_SOURCE_COMMIT);
    if (!commit)
        return failure_memory(failure);
    run_note(run, "experiment and source as in '%s'", file_base_name(source->recorded));
    int r = source->folder ? copy_recorded_file(run, RUN_SOURCE_TAR, failure) : 0;
    if (r == 0 && source->folder)
        r = copy_recorded_file(run, RUN_SOURCE_MANIFEST, failure);
    return r == 0 && source->git && file_exists(commit) ? copy_recorded_file(run, RUN_SOURCE_COMMIT, failure)
                                                        : r;
}

int run_make_copies(struct run *run, struct failure *failure) {
    int r = run->experiment->folder ? copy_experiment(run, failure) : 0;
    if (r == 0 && run->experiment->source.recorded)
        return take_recorded_source(run, failure);
    return r == 0 && run->experiment->source.folder ? pack_source(run, failure) : r;
}
