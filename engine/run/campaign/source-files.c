#include "engine/run/campaign/source-files.h"

#include "archive-format/tar.h"
#include "archive-format/writer.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/number.h"
#include "engine/run/record/status.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MANIFEST_BYTES_MOST = 64 << 20 };

/* ---- What is left out ------------------------------------------------------------------------------------
 */

struct choosing {
    const struct source_choice *choice;
    struct stat runs, outputs[2];
    bool has_runs;
    struct source_files *files;
};

static bool is_same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* By its first header: the member that every archive begins with (FORMAT.md, "Layout"). */
static bool is_archive(const char *path) {
    enum { NAME_AT = 30 };
    static const char name[] = "ro-crate-metadata.json";
    char begin[NAME_AT + sizeof name - 1];
    cleanup_close int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return file >= 0 && pread(file, begin, sizeof begin, 0) == sizeof begin &&
           memcmp(begin, "PK\3\4", 4) == 0 && memcmp(begin + NAME_AT, name, sizeof name - 1) == 0;
}

static bool is_version_control(const char *name) {
    return strcmp(name, ".git") == 0 || strcmp(name, ".hg") == 0 || strcmp(name, ".svn") == 0;
}

static bool is_ignored(const struct bind_texts *ignore, const char *relative) {
    for (size_t i = 0; ignore && i < ignore->count; i++) {
        const char *pattern = ignore->items[i];
        const char *subject = strchr(pattern, '/') ? relative : file_base_name(relative);
        if (fnmatch(pattern + (*pattern == '/'), subject, FNM_PATHNAME) == 0)
            return true;
    }
    return false;
}

static bool leaves_out(void *context, const char *path, const char *relative, const struct stat *status) {
    const struct choosing *choosing = context;
    const char *name = file_base_name(relative);
    bool is_folder = S_ISDIR(status->st_mode), is_file = S_ISREG(status->st_mode);
    enum source_left_out why;
    if (choosing->choice->skip_hidden && name[0] == '.')
        return true;
    if (is_version_control(name))
        why = SOURCE_VERSION_CONTROL;
    else if (is_ignored(choosing->choice->ignore, relative))
        why = SOURCE_IGNORED;
    else if (is_folder &&
             ((choosing->has_runs && is_same(status, &choosing->runs)) || run_status_is_run(path)))
        why = SOURCE_RUNS;
    else if (is_file && is_archive(path))
        why = SOURCE_RUNS;
    else if (is_file && (is_same(status, &choosing->outputs[0]) || is_same(status, &choosing->outputs[1])))
        why = SOURCE_OUTPUT;
    else
        return false;
    choosing->files->left_out[why]++;
    return true;
}

int source_files_read(const struct source_choice *choice, struct source_files *ret, struct failure *failure) {
    struct choosing choosing = {.choice = choice, .files = ret};
    struct stat top;
    choosing.has_runs = choice->runs && stat(choice->runs, &choosing.runs) == 0 &&
                        stat(choice->folder, &top) == 0 && !is_same(&top, &choosing.runs);
    for (int i = 0; i < 2; i++)
        if (fstat(i == 0 ? STDOUT_FILENO : STDERR_FILENO, &choosing.outputs[i]) < 0)
            choosing.outputs[i] = (struct stat){0};
    int r =
        local_tree_read(&ret->tree, choice->folder,
                        &(struct local_tree_filter){.leaves_out = leaves_out, .context = &choosing}, failure);
    if (r < 0)
        return r;
    ret->left_out[SOURCE_LINKS] = ret->tree.left_out;
    for (size_t i = 0; i < ret->tree.count; i++)
        ret->bytes += ret->tree.entries[i].size;
    if (ret->bytes <= SOURCE_BYTES_MOST)
        return 0;
    char bytes[NUMBER_TEXT_SIZE], most[NUMBER_TEXT_SIZE];
    return failure_set_kind(failure, FAILURE_INPUT, -EFBIG,
                            "'%s' has %s in %zu files, which each archive would have; expected at most %s "
                            "('ignore' in an experiment's 'source' leaves files out)",
                            choice->folder, number_describe_bytes((double)ret->bytes, bytes), ret->tree.files,
                            number_describe_bytes((double)SOURCE_BYTES_MOST, most));
}

void source_files_clear(struct source_files *files) {
    local_tree_clear(&files->tree);
}

int source_files_describe(const struct source_files *files, struct text *ret) {
    static const char *const words[SOURCE_LEFT_OUT_KINDS] = {
        [SOURCE_RUNS] = "of runs",
        [SOURCE_IGNORED] = "by 'ignore'",
        [SOURCE_VERSION_CONTROL] = "of version control",
        [SOURCE_OUTPUT] = "written by this program",
        [SOURCE_LINKS] = "links and special files",
    };
    char bytes[NUMBER_TEXT_SIZE];
    int r = text_printf(ret, "%zu file%s, %s", files->tree.files, files->tree.files == 1 ? "" : "s",
                        number_describe_bytes((double)files->bytes, bytes));
    const char *before = "; left out:";
    for (int i = 0; r == 0 && i < SOURCE_LEFT_OUT_KINDS; i++) {
        if (files->left_out[i] == 0)
            continue;
        r = text_printf(ret, "%s %zu %s", before, files->left_out[i], words[i]);
        before = ",";
    }
    return r;
}

/* ---- Copies ----------------------------------------------------------------------------------------------
 */

int source_files_pack(struct source_files *files, const char *path, struct text *manifest,
                      struct failure *failure) {
    cleanup(tar_free) struct tar_writer *tar = NULL;
    int r = tar_create(path, &tar, failure);
    for (size_t i = 1; r == 0 && i < files->tree.count; i++) { /* the first is the folder itself */
        struct local_entry *entry = &files->tree.entries[i];
        if (strchr(entry->relative, '\n'))
            return failure_input(failure, entry->path, 0, 0, "a source cannot have a name with a line break");
        r = entry->is_folder ? tar_add_folder(tar, entry->relative, entry->mode, failure)
                             : tar_add_file(tar, entry->relative, entry->mode, entry->size, entry->path,
                                            entry->hash, failure);
    }
    if (r == 0)
        r = tar_finish(tar, failure);
    return r == 0 && local_tree_manifest(&files->tree, manifest) < 0 ? failure_memory(failure) : r;
}

static int copy_file(const struct local_entry *entry, const char *to, const char *archive_folder,
                     struct failure *failure) {
    cleanup_free char *name = file_join(archive_folder, entry->relative);
    cleanup(text_clear) struct text bytes;
    text_init(&bytes, SOURCE_BYTES_MOST);
    if (!name)
        return failure_memory(failure);
    const char *problem = archive_name_problem(name);
    if (problem)
        return failure_input(failure, entry->path, 0, 0, "this name cannot be kept in an archive: %s",
                             problem);
    int r = file_read(entry->path, &bytes, failure);
    return r < 0 ? r : file_replace(to, bytes.bytes, bytes.length, entry->mode, failure);
}

int source_files_copy(const struct source_files *files, const char *folder, const char *archive_folder,
                      struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < files->tree.count; i++) {
        const struct local_entry *entry = &files->tree.entries[i];
        cleanup_free char *to = file_join(folder, entry->relative);
        if (!to)
            return failure_memory(failure);
        r = entry->is_folder ? file_make_folders(to, failure) : copy_file(entry, to, archive_folder, failure);
    }
    return r;
}

/* ---- What has changed ------------------------------------------------------------------------------------
 */

int source_files_difference(const char *manifest, const char *folder, char **ret, struct failure *failure) {
    enum { DIGITS = HASH_HEX_SIZE - 1, BLANKS = 2 };
    cleanup(text_clear) struct text lines;
    text_init(&lines, MANIFEST_BYTES_MOST);
    *ret = NULL;
    int r = file_read(manifest, &lines, failure);
    size_t length;
    for (const char *line = r == 0 ? lines.bytes : ""; r == 0 && !*ret && *line; line += length + 1) {
        length = strcspn(line, "\n");
        if (length <= DIGITS + BLANKS || !line[length])
            return failure_verification(failure, manifest, "a line is not 'SHA-256  path'");
        char hex[HASH_HEX_SIZE];
        cleanup_free char *name = strndup(line + DIGITS + BLANKS, length - DIGITS - BLANKS);
        cleanup_free char *path = name ? file_join(folder, name) : NULL;
        if (!path)
            return failure_memory(failure);
        bool there = file_exists(path) && !file_is_folder(path);
        r = there ? hash_file(path, hex, NULL, failure) : 0;
        if (r == 0 && (!there || memcmp(hex, line, DIGITS) != 0) &&
            !(*ret = text_format("'%s' %s", name, there ? "has changed" : "is gone")))
            r = failure_memory(failure);
    }
    return r;
}
