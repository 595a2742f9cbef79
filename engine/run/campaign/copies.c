#include "engine/run/campaign/copies.h"

#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/run/campaign/source-files.h"

#include <stdlib.h>

static int copy_experiment(const struct experiment *experiment, const char *folder, const char *runs,
                           struct text *words, struct failure *failure) {
    cleanup(source_files_clear) struct source_files files = SOURCE_FILES_NONE;
    cleanup_free char *copy = xformat("%s/" ARCHIVE_EXPERIMENT, folder);
    struct source_choice choice = {.folder = experiment->folder, .skip_hidden = true, .runs = runs};
    int r = source_files_read(&choice, &files, failure);
    text_printf(words, "experiment '%s': ", experiment->folder);
    source_files_describe(&files, words);
    return r < 0 ? r : source_files_copy(&files, copy, ARCHIVE_EXPERIMENT, failure);
}

static int pack_source(const struct experiment_source *source, const char *folder, const char *runs,
                       struct text *words, struct failure *failure) {
    cleanup(source_files_clear) struct source_files files = SOURCE_FILES_NONE;
    cleanup(text_clear) struct text manifest;
    cleanup_free char *tar = xformat("%s/" ARCHIVE_SOURCE, folder),
                      *list = xformat("%s/" ARCHIVE_SOURCE_MANIFEST, folder);
    struct source_choice choice = {.folder = source->folder, .ignore = &source->ignore, .runs = runs};
    text_init(&manifest, 64 << 20);
    int r = source_files_read(&choice, &files, failure);
    if (r == 0)
        r = source_files_pack(&files, tar, &manifest, failure);
    text_printf(words, "source '%s': ", source->folder);
    source_files_describe(&files, words);
    return r < 0 ? r : file_replace(list, manifest.bytes, manifest.length, 0666, failure);
}

/* The source of a run that is run again. */
static int copy_recorded_source(const struct experiment_source *source, const char *folder,
                                struct text *words, struct failure *failure) {
    static const char *const names[] = {ARCHIVE_SOURCE, ARCHIVE_SOURCE_MANIFEST, ARCHIVE_SOURCE_COMMIT};
    text_printf(words, "experiment and source as in '%s'", file_base_name(source->recorded));
    int r = 0;
    for (size_t i = 0; r == 0 && i < 3; i++) {
        cleanup_free char *from = xformat("%s/%s", source->recorded, names[i]),
                          *to = xformat("%s/%s", folder, names[i]);
        cleanup(text_clear) struct text bytes;
        text_init(&bytes, 2 * SOURCE_BYTES_MAX); /* and what a tar needs for names */
        bool is_commit = i == 2;
        if (is_commit ? !source->git || !file_exists(from) : !source->folder)
            continue;
        r = file_read(from, &bytes, failure);
        if (r == 0)
            r = file_replace(to, bytes.bytes, bytes.length, 0666, failure);
    }
    return r;
}

/* Each below the name of its option, as it is: an input may be an archive. */
static int copy_inputs(const struct experiment *experiment, const char *folder, struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < experiment->input_paths.count; i++) {
        cleanup(source_files_clear) struct source_files files = SOURCE_FILES_NONE;
        cleanup_free char *name = xformat(ARCHIVE_INPUT_FILES "/%s", experiment->inputs.items[i]),
                          *copy = file_join(folder, name);
        r = local_tree_read(&files.tree, experiment->input_paths.items[i], NULL, failure);
        if (r == 0)
            r = file_make_folders(copy, failure);
        if (r == 0)
            r = source_files_copy(&files, copy, name, failure);
    }
    return r;
}

int copies_make(const struct experiment *experiment, const char *folder, const char *runs,
                struct text *experiment_words, struct text *source_words, struct failure *failure) {
    const struct experiment_source *source = &experiment->source;
    int r = experiment->folder ? copy_experiment(experiment, folder, runs, experiment_words, failure) : 0;
    if (r == 0 && source->recorded)
        r = copy_recorded_source(source, folder, source_words, failure);
    else if (r == 0 && source->folder)
        r = pack_source(source, folder, runs, source_words, failure);
    return r < 0 ? r : copy_inputs(experiment, folder, failure);
}
