/* What a run copies into its folder before a node is touched: the experiment's own files, and its source. */
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/run/campaign/source-files.h"

static int copy_experiment(struct run *run, struct failure *failure) {
    cleanup(source_files_clear) struct source_files files = SOURCE_FILES_NONE;
    cleanup(text_clear) struct text words;
    cleanup_free char *folder = run_path(run, RUN_EXPERIMENT_FOLDER);
    struct source_choice choice = {
        .folder = run->experiment->folder, .skip_hidden = true, .runs = run->request->folder};
    text_init(&words, FAILURE_TEXT_SIZE);
    int r = source_files_read(&choice, &files, failure);
    if (r == 0)
        r = source_files_copy(&files, folder, RUN_EXPERIMENT_FOLDER, failure);
    source_files_describe(&files, &words);
    if (r == 0)
        run_log(run, "experiment '%s': %s", run->experiment->folder, words.bytes);
    return r;
}

static int pack_source(struct run *run, struct failure *failure) {
    const struct experiment_source *source = &run->experiment->source;
    cleanup(source_files_clear) struct source_files files = SOURCE_FILES_NONE;
    cleanup(text_clear) struct text manifest, words;
    cleanup_free char *tar = run_path(run, RUN_SOURCE_TAR), *list = run_path(run, RUN_SOURCE_MANIFEST);
    struct source_choice choice = {
        .folder = source->folder, .ignore = &source->ignore, .runs = run->request->folder};
    text_init(&manifest, 64 << 20);
    text_init(&words, FAILURE_TEXT_SIZE);
    int r = source_files_read(&choice, &files, failure);
    if (r == 0)
        r = source_files_pack(&files, tar, &manifest, failure);
    if (r == 0)
        r = file_replace(list, manifest.bytes, manifest.length, 0666, failure);
    source_files_describe(&files, &words);
    if (r == 0)
        run_note(run, "source '%s': %s", source->folder, words.bytes);
    return r;
}

/* The source of a run that is run again. */
static int copy_recorded_source(struct run *run, struct failure *failure) {
    static const char *const names[] = {RUN_SOURCE_TAR, RUN_SOURCE_MANIFEST, RUN_SOURCE_COMMIT};
    const struct experiment_source *source = &run->experiment->source;
    run_note(run, "experiment and source as in '%s'", file_base_name(source->recorded));
    int r = 0;
    for (size_t i = 0; r == 0 && i < 3; i++) {
        cleanup_free char *from = file_join(source->recorded, names[i]), *to = run_path(run, names[i]);
        cleanup(text_clear) struct text bytes;
        text_init(&bytes, 2 * SOURCE_BYTES_MOST); /* and what a tar needs for names */
        bool is_commit = i == 2;
        if (is_commit ? !source->git || !file_exists(from) : !source->folder)
            continue;
        r = file_read(from, &bytes, failure);
        if (r == 0)
            r = file_replace(to, bytes.bytes, bytes.length, 0666, failure);
    }
    return r;
}

int run_make_copies(struct run *run, struct failure *failure) {
    const struct experiment_source *source = &run->experiment->source;
    int r = run->experiment->folder ? copy_experiment(run, failure) : 0;
    if (r < 0 || (!source->recorded && !source->folder))
        return r;
    return source->recorded ? copy_recorded_source(run, failure) : pack_source(run, failure);
}
