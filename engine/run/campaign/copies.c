#include "engine/run/campaign/copies.h"

#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/run/campaign/source-files.h"
#include "engine/run/campaign/sources.h"

#include <stdlib.h>
#include <string.h>

/* Adds the names of FILES that may hold secrets to RET, as if they were in the folder COPY. */
static void take_left_out(const struct source_files *files, const char *copy, struct bind_texts *ret) {
    for (size_t i = 0; i < files->secrets.count; i++) {
        cleanup_free char *name = file_join(copy, files->secrets.items[i]);
        bind_texts_add(ret, name);
    }
}

static int copy_experiment(const struct experiment *experiment, const char *folder, const char *runs,
                           struct bind_texts *left_out, struct text *words, struct failure *failure) {
    cleanup(source_files_clear) struct source_files files = SOURCE_FILES_NONE;
    cleanup_free char *copy = xformat("%s/" ARCHIVE_EXPERIMENT, folder);
    struct source_choice choice = {.folder = experiment->folder, .skip_hidden = true, .runs = runs};
    int r = source_files_read(&choice, &files, failure);
    take_left_out(&files, ARCHIVE_EXPERIMENT, left_out);
    text_printf(words, "experiment '%s': ", experiment->folder);
    source_files_describe(&files, words);
    return r < 0 ? r : source_files_copy(&files, copy, ARCHIVE_EXPERIMENT, failure);
}

/* NAME, or .NAME where files of so many BYTES are not kept. The caller frees. */
static char *choose_name(const char *name, uint64_t bytes, uint64_t kept) {
    return xformat("%s%s", bytes > kept ? "." : "", name);
}

/* Packs the experiment's source into FOLDER and records its origin. WORDS gets what was packed and left out.
 */
static int pack_source(const struct experiment_source *source, const char *folder, const char *runs,
                       uint64_t kept, struct bind_texts *left_out, struct text *words,
                       struct failure *failure) {
    cleanup(source_files_clear) struct source_files files = SOURCE_FILES_NONE;
    struct source_choice choice = {.folder = source->folder, .ignore = &source->ignore, .runs = runs};
    int r = source_files_read(&choice, &files, failure);
    cleanup_free char *name = choose_name(ARCHIVE_SOURCE, files.bytes, kept), *tar = file_join(folder, name);
    struct source_origin origin = {.name = ARCHIVE_SOURCE_NAME,
                                   .written = source->folder,
                                   .copy = files.bytes > kept ? NULL : ARCHIVE_SOURCE};
    if (r == 0)
        r = source_files_pack(&files, tar, failure);
    take_left_out(&files, ARCHIVE_SOURCE, left_out);
    text_printf(words, "source '%s': ", source->folder);
    source_files_describe(&files, words);
    return r < 0 ? r : sources_record(folder, &files, &origin, failure);
}

/* For a run that repeats another: copies the source and its records from that run. Refused when its archive
 * has only hashes. */
static int copy_recorded_source(const struct experiment_source *source, const char *folder,
                                struct text *words, struct failure *failure) {
    static const char *const names[] = {ARCHIVE_SOURCE, "." ARCHIVE_SOURCE, ARCHIVE_SOURCE_MANIFEST,
                                        ARCHIVE_SOURCE_COMMIT, ARCHIVE_SOURCES};
    cleanup_free char *software = file_join(folder, ARCHIVE_SOFTWARE);
    text_printf(words, "experiment and source as in '%s'", file_base_name(source->recorded));
    int r = file_make_folders(software, failure);
    for (size_t i = 0; r == 0 && i < sizeof names / sizeof *names; i++) {
        cleanup_free char *from = file_join(source->recorded, names[i]), *to = file_join(folder, names[i]);
        if (file_exists(from))
            r = file_copy(from, FILE_REGULAR, to, failure);
    }
    cleanup_free char *copy = source_copy_path(folder, ARCHIVE_SOURCE);
    if (r == 0 && source->folder && !file_exists(copy))
        return failure_input(
            failure, source->recorded, 0, 0,
            "the archive has no copy of the experiment's source, only its hashes in " ARCHIVE_SOURCES
            "; run campaign.yaml where the source is");
    return r;
}

/* Copies input I below the name of its option: an input whole, since it may be an archive; a source without
 * the files that source_files_read() leaves out. The origin of a source is recorded, unless the run that is
 * repeated has recorded it. */
static int copy_input(const struct experiment *experiment, size_t i, const char *folder, const char *runs,
                      uint64_t kept, struct bind_texts *left_out, struct failure *failure) {
    cleanup(source_files_clear) struct source_files files = SOURCE_FILES_NONE;
    const char *option = experiment->inputs.items[i], *path = experiment->input_paths.items[i];
    bool is_source = bind_texts_have(&experiment->sources, option);
    struct source_choice choice = {.folder = path, .runs = runs};
    int r = is_source ? source_files_read(&choice, &files, failure)
                      : local_tree_read(&files.tree, path, NULL, failure);
    if (r < 0)
        return r;
    cleanup_free char *below = xformat(ARCHIVE_INPUT_FILES "/%s", option),
                      *name = choose_name(below, files.bytes, kept), *copy = file_join(folder, name);
    take_left_out(&files, below, left_out);
    const char *written = experiment->input_values.items[i];
    bool is_recorded = experiment->source.recorded && strncmp(written, below, strlen(below)) == 0;
    const struct source_origin origin = {
        .name = option,
        .written = is_recorded ? NULL : written,
        .copy = files.bytes > kept ? NULL : experiment_option_value(experiment, option)};
    r = file_make_folders(copy, failure);
    if (r == 0)
        r = source_files_copy(&files, copy, below, failure);
    return r < 0 || !is_source ? r : sources_record(folder, &files, &origin, failure);
}

int copies_make(const struct experiment *experiment, const char *folder, const char *runs, uint64_t kept,
                struct bind_texts *left_out, struct text *experiment_words, struct text *source_words,
                struct failure *failure) {
    const struct experiment_source *source = &experiment->source;
    int r = experiment->folder
                ? copy_experiment(experiment, folder, runs, left_out, experiment_words, failure)
                : 0;
    if (r == 0 && source->recorded)
        r = copy_recorded_source(source, folder, source_words, failure);
    else if (r == 0 && source->folder)
        r = pack_source(source, folder, runs, kept, left_out, source_words, failure);
    for (size_t i = 0; r == 0 && i < experiment->inputs.count; i++)
        r = copy_input(experiment, i, folder, runs, kept, left_out, failure);
    return r;
}
