#include "engine/command-line/run/recorded-run.h"

#include "archive-format/layout.h"
#include "archive-format/reader.h"
#include "engine/analysis/setup.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/run/record/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Sets RET to the run that is repeated: that of ARCHIVE, a file or a folder. */
static int note_origin(const char *path, struct archive_reader *archive, struct campaign_again *ret,
                       struct failure *failure) {
    char hex[HASH_HEX_SIZE];
    const char *run_id = archive_run(archive)->run_id;
    int r = archive_is_folder(archive) ? 0 : hash_file(path, hex, NULL, failure);
    if (r < 0)
        return r;
    ret->path = realpath(path, NULL);
    if (!ret->path)
        return failure_set(failure, -errno, "cannot resolve '%s': %s", path, strerror(errno));
    ret->origin = (struct archive_origin){.run_id = xstrdup(run_id ? run_id : ""),
                                          .archive = xstrdup(file_base_name(ret->path)),
                                          .sha256 = archive_is_folder(archive) ? NULL : xstrdup(hex)};
    return 0;
}

static bool has_folder(const struct archive_reader *archive, const char *name) {
    for (size_t i = 0; i < archive_member_count(archive); i++)
        if (strncmp(archive_member_name(archive, i), name, strlen(name)) == 0)
            return true;
    return false;
}

/* Extracts everything that a run is made from out of the archive into FOLDER. Refused: an archive without the
 * resolved campaign. */
static int extract_inputs(const char *path, const char *folder, struct campaign_again *ret_again,
                          struct failure *failure) {
    static const char *const files[] = {ARCHIVE_CAMPAIGN, ARCHIVE_CAMPAIGN_RESOLVED, ARCHIVE_INPUTS,
                                        ARCHIVE_DESIGN, ARCHIVE_SOURCE};
    static const char *const folders[] = {ARCHIVE_INPUT_FILES "/", ARCHIVE_SOFTWARE "/"};
    enum { FILES = sizeof files / sizeof *files, FOLDERS = sizeof folders / sizeof *folders };
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    const char *names[FILES + FOLDERS + 1];
    size_t count = 0;
    int r = archive_open(path, &archive, failure);
    r = r < 0 ? r : archive_check_measured(archive, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < FILES; i++)
        if (archive_find(archive, files[i], NULL))
            names[count++] = files[i];
    for (size_t k = 0; k < FOLDERS; k++)
        if (has_folder(archive, folders[k]))
            names[count++] = folders[k];
    const char *experiment = archive_run(archive)->experiment.folder;
    if (experiment)
        names[count++] = experiment;
    if (!archive_find(archive, ARCHIVE_CAMPAIGN_RESOLVED, NULL) ||
        !archive_find(archive, ARCHIVE_INPUTS, NULL))
        return failure_input(failure, path, 0, 0,
                             "this archive cannot be run again: it has no " ARCHIVE_CAMPAIGN_RESOLVED
                             " and inputs.json");
    r = archive_extract(archive, folder, names, count, failure);
    return r < 0 ? r : note_origin(path, archive, ret_again, failure);
}

/* The folder has the archive's name: it is what the new run says that it was made from. */
static int open_archive(const char *path, struct recorded_run *run, char **ret_folder,
                        struct failure *failure) {
    int r = file_make_temporary(&run->temporary, failure);
    if (r < 0)
        return r;
    *ret_folder = file_join(run->temporary, file_base_name(path));
    return extract_inputs(path, *ret_folder, &run->again, failure);
}

/* The folder of the run whose campaign PATH is, the caller's; NULL: it is no run's. */
static char *find_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    if (strcmp(file_base_name(path), ARCHIVE_CAMPAIGN) != 0)
        return NULL;
    cleanup_free char *folder =
        slash ? xstrndup(path, slash == path ? 1 : (size_t)(slash - path)) : xstrdup(".");
    cleanup_free char *inputs = file_join(folder, ARCHIVE_INPUTS);
    return file_exists(inputs) && run_status_is_run(folder) ? take_pointer(folder) : NULL;
}

static int note_folder(const char *folder, struct recorded_run *run, struct failure *failure) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    int r = archive_open(folder, &archive, failure);
    return r < 0 ? r : note_origin(folder, archive, &run->again, failure);
}

/* Opens a campaign, or a run's campaign in its folder or archive, in which case the resolved campaign is
 * used. */
static int open_run(const char *path, struct recorded_run *run, struct failure *failure) {
    cleanup_free char *folder = NULL;
    char hex[HASH_HEX_SIZE];
    int r = 0;
    if (file_is_folder(path)) {
        cleanup_free char *inside = file_join(path, ARCHIVE_CAMPAIGN);
        return failure_input(failure, NULL, 0, 0,
                             "'%s' is a folder; expected a campaign, such as %s, or an archive%s", path,
                             inside, run_status_is_run(path) ? "; 'assay resume' continues a run" : "");
    }
    if (text_ends_in(path, ".zip"))
        r = open_archive(path, run, &folder, failure);
    else
        folder = find_folder(path);
    if (r < 0)
        return r;
    run->campaign = folder ? file_join(folder, ARCHIVE_CAMPAIGN) : xstrdup(path);
    if (!folder)
        return 0;
    r = inputs_read(folder, &run->inputs, failure);
    if (r == 0 && !run->again.path)
        r = note_folder(folder, run, failure);
    if (r == 0)
        r = inputs_restore_executables(&run->inputs, failure);
    if (r == 0)
        r = hash_file(run->campaign, hex, NULL, failure);
    if (r < 0)
        return r;
    run->is_recorded = strcmp(hex, run->inputs.campaign.sha256) == 0;
    if (!run->is_recorded && run->temporary)
        return failure_verification(failure, path,
                                    "its campaign.yaml has not the SHA-256 that its inputs.json has for it");
    if (!run->is_recorded)
        return 0;
    run->written = run->campaign;
    run->campaign = file_join(folder, ARCHIVE_CAMPAIGN_RESOLVED);
    return inputs_check_source(&run->inputs, failure);
}

int recorded_run_open(const char *path, struct recorded_run *ret, struct failure *failure) {
    cleanup(recorded_run_close) struct recorded_run run = {0};
    int r = open_run(path, &run, failure);
    if (r < 0)
        return r;
    *ret = run;
    run = (struct recorded_run){0};
    return 0;
}

void recorded_run_close(struct recorded_run *run) {
    if (run->temporary)
        file_remove_tree(run->temporary, NULL);
    inputs_clear(&run->inputs);
    free(run->again.path);
    free(run->again.origin.run_id);
    free(run->again.origin.archive);
    free(run->again.origin.sha256);
    free(run->campaign);
    free(run->written);
    free(run->temporary);
    *run = (struct recorded_run){0};
}

/* Adds to RET how the run in FOLDER differs from the one that it repeats, at most SENTENCES_MAX sentences. */
int recorded_run_compare(const char *folder, struct bind_texts *ret, struct failure *failure) {
    enum { SENTENCES_MAX = 20 };
    cleanup(inputs_clear) struct inputs inputs = {0};
    cleanup(setup_clear) struct setup setup = {0};
    size_t count = 0;
    int r = inputs_read(folder, &inputs, failure);
    if (r < 0 || !inputs.again)
        return r;
    r = setup_compare((const char *const[]){inputs.again, folder}, &setup, failure);
    if (r < 0)
        return r;
    const char *name = file_base_name(inputs.again);
    for (size_t i = 0; i < setup.count && setup.items[i].kind <= SETUP_NODES; i++) {
        cleanup_free char *difference = setup_describe(&setup.items[i]);
        cleanup_free char *sentence = xformat("not as in '%s': %s", name, difference);
        if (strcmp(setup.items[i].values[1], SETUP_NONE) == 0)
            continue; /* kernels tell it when they run */
        if (count++ < SENTENCES_MAX)
            bind_texts_add(ret, sentence);
    }
    cleanup_free char *last =
        count == 0
            ? xformat("nodes, controls, kernel, BLAS and compiler are as in '%s', as far as both are known",
                      name)
        : count > SENTENCES_MAX ? xformat("%zu more are not as in '%s'; 'assay compare --setup' lists them",
                                          count - SENTENCES_MAX, name)
                                : NULL;
    if (last)
        bind_texts_add(ret, last);
    return 0;
}
