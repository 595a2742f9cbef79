#include "engine/run/campaign/source-files.h"

#include "archive-format/secrets.h"
#include "archive-format/tar.h"
#include "archive-format/writer.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/secret.h"
#include "engine/run/record/status.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MANIFEST_BYTES_MAX = 64 << 20, LINE_SHOWN = 120, LIST_SHOWN = 240 };

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

/* By its name, or because it has a private key or a token. */
static bool is_secret(const char *path, const char *name, bool is_file) {
    return secret_is_file_name(name) ||
           (is_file && secrets_check_file(path, name, &(struct failure){0}) == -EKEYREJECTED);
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

/* Filter of local_tree_read(): true when the file or folder RELATIVE is not copied. The reason is counted. */
static bool is_left_out(void *context, const char *path, const char *relative, const struct stat *status) {
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
    else if (is_secret(path, name, is_file))
        why = SOURCE_SECRETS;
    else
        return false;
    choosing->files->left_out[why]++;
    if (why == SOURCE_SECRETS)
        bind_texts_add(&choosing->files->secrets, relative);
    return true;
}

/* Lists the files of a folder that are copied, and counts those left out. Output of this program itself is
 * left out, because it grows while it is copied. */
int source_files_read(const struct source_choice *choice, struct source_files *ret, struct failure *failure) {
    struct choosing choosing = {.choice = choice, .files = ret};
    struct stat top;
    choosing.has_runs = choice->runs && stat(choice->runs, &choosing.runs) == 0 &&
                        stat(choice->folder, &top) == 0 && !is_same(&top, &choosing.runs);
    for (int i = 0; i < 2; i++)
        if (fstat(i == 0 ? STDOUT_FILENO : STDERR_FILENO, &choosing.outputs[i]) < 0)
            choosing.outputs[i] = (struct stat){0};
    int r = local_tree_read(&ret->tree, choice->folder,
                            &(struct local_tree_filter){.leaves_out = is_left_out, .context = &choosing},
                            failure);
    if (r < 0)
        return r;
    ret->left_out[SOURCE_LINKS] = ret->tree.left_out;
    for (size_t i = 0; i < ret->tree.count; i++)
        ret->bytes += ret->tree.entries[i].size;
    if (ret->bytes <= SOURCE_BYTES_MAX)
        return 0;
    char bytes[NUMBER_TEXT_SIZE], most[NUMBER_TEXT_SIZE];
    return failure_set_kind(failure, FAILURE_INPUT, -EFBIG,
                            "'%s' has %s in %zu files, which each archive would have; expected at most %s "
                            "('ignore' in an experiment's 'source' leaves files out)",
                            choice->folder, number_describe_bytes((double)ret->bytes, bytes), ret->tree.files,
                            number_describe_bytes((double)SOURCE_BYTES_MAX, most));
}

void source_files_clear(struct source_files *files) {
    local_tree_clear(&files->tree);
    bind_texts_clear(&files->secrets);
}

void source_files_list_secrets(const struct bind_texts *names, struct text *ret) {
    cleanup(text_clear) struct text list;
    text_init(&list, LIST_SHOWN);
    text_append_words(&list, (const char *const *)names->items);
    text_printf(ret, " (%s%s)", list.bytes, list.error ? ", ..." : "");
}

void source_files_describe(const struct source_files *files, struct text *ret) {
    static const char *const words[SOURCE_LEFT_OUT_KINDS] = {
        [SOURCE_RUNS] = "of runs",
        [SOURCE_IGNORED] = "by 'ignore'",
        [SOURCE_VERSION_CONTROL] = "of version control",
        [SOURCE_OUTPUT] = "written by this program",
        [SOURCE_SECRETS] = "that may hold secrets",
        [SOURCE_LINKS] = "links and special files",
    };
    char bytes[NUMBER_TEXT_SIZE];
    const char *before = "; left out:";
    text_printf(ret, "%zu file%s, %s", files->tree.files, files->tree.files == 1 ? "" : "s",
                number_describe_bytes((double)files->bytes, bytes));
    for (int i = 0; i < SOURCE_LEFT_OUT_KINDS; i++)
        if (files->left_out[i] > 0) {
            text_printf(ret, "%s %zu %s", before, files->left_out[i], words[i]);
            if (i == SOURCE_SECRETS)
                source_files_list_secrets(&files->secrets, ret);
            before = ",";
        }
}

/* ---- Copies ----------------------------------------------------------------------------------------------
 */

char *source_copy_path(const char *run_folder, const char *name) {
    cleanup_free char *path = file_join(run_folder, name), *hidden = xformat("%s/.%s", run_folder, name);
    return file_exists(path) || !file_exists(hidden) ? take_pointer(path) : take_pointer(hidden);
}

/* Writes FILES to the tar PATH and notes the hash of each. A file name with a line break is refused. */
int source_files_pack(struct source_files *files, const char *path, struct failure *failure) {
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
    files->tree.hashed = r == 0 ? files->tree.count : 0;
    return r < 0 ? r : tar_finish(tar, failure);
}

int source_files_copy(const struct source_files *files, const char *folder, const char *archive_folder,
                      struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < files->tree.count; i++) {
        const struct local_entry *entry = &files->tree.entries[i];
        cleanup_free char *to = xformat("%s/%s", folder, entry->relative);
        cleanup_free char *name = xformat("%s/%s", archive_folder, entry->relative);
        cleanup(text_clear) struct text bytes;
        text_init(&bytes, SOURCE_BYTES_MAX);
        const char *problem = entry->is_folder ? NULL : archive_name_problem(name);
        if (problem)
            return failure_input(failure, entry->path, 0, 0, "an archive cannot hold this name: %s", problem);
        r = entry->is_folder ? file_make_folders(to, failure) : file_read(entry->path, &bytes, failure);
        if (r == 0 && !entry->is_folder)
            r = file_replace(to, bytes.bytes, bytes.length, entry->mode, failure);
    }
    return r;
}

/* ---- What has changed ------------------------------------------------------------------------------------
 */

/* A sentence on the first line that differs between the contents BEFORE and NOW of the file NAME; the caller
 * frees. */
static char *describe_line(const struct text *before, const struct text *now, const char *name) {
    const char *a = before->bytes, *b = now->bytes;
    for (size_t line = 1;; line++) {
        size_t a_length = strcspn(a, "\n"), b_length = strcspn(b, "\n");
        if (a_length != b_length || memcmp(a, b, a_length) != 0)
            return xformat("'%s' has changed at line %zu: was '%.*s', is '%.*s'", name, line,
                           (int)(a_length < LINE_SHOWN ? a_length : LINE_SHOWN), a,
                           (int)(b_length < LINE_SHOWN ? b_length : LINE_SHOWN), b);
        if (!a[a_length] || !b[b_length])
            return xformat("'%s' has changed at line %zu: lines were added or removed at its end", name,
                           line);
        a += a_length + 1;
        b += b_length + 1;
    }
}

int file_difference(const char *before, const char *now, char **ret, struct failure *failure) {
    cleanup(text_clear) struct text a, b;
    text_init(&a, SOURCE_BYTES_MAX);
    text_init(&b, SOURCE_BYTES_MAX);
    *ret = NULL;
    int r = file_read(before, &a, failure);
    if (r == 0)
        r = file_read(now, &b, failure);
    if (r < 0 || (a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0))
        return r;
    bool shown = a.length > 0 && b.length > 0 && strlen(a.bytes) == a.length && strlen(b.bytes) == b.length;
    *ret = shown ? describe_line(&a, &b, now)
                 : xformat("'%s' has changed: had %zu bytes, has %zu", now, a.length, b.length);
    return 0;
}

int tree_difference(const char *before, const char *now, char **ret, struct failure *failure) {
    cleanup(local_tree_clear) struct local_tree tree = LOCAL_TREE_NONE;
    *ret = NULL;
    int r = local_tree_read(&tree, before, NULL, failure);
    for (size_t i = 0; r == 0 && !*ret && i < tree.count; i++) {
        const struct local_entry *entry = &tree.entries[i];
        cleanup_free char *path = xformat("%s/%s", now, entry->relative);
        if (!file_exists(path) || file_is_folder(path) != entry->is_folder)
            *ret = xformat("'%s' is gone", path);
        else if (!entry->is_folder)
            r = file_difference(entry->path, path, ret, failure);
    }
    return r;
}

/* *RET is a sentence about the first file of MANIFEST (lines of sha256sum) that has changed or is missing in
 * FOLDER; NULL: none. */
int source_files_difference(const char *manifest, const char *folder, char **ret, struct failure *failure) {
    enum { DIGITS = HASH_HEX_SIZE - 1, BLANKS = 2 };
    cleanup(text_clear) struct text lines;
    text_init(&lines, MANIFEST_BYTES_MAX);
    *ret = NULL;
    int r = file_read(manifest, &lines, failure);
    size_t length;
    for (const char *line = lines.bytes; r == 0 && !*ret && *line; line += length + 1) {
        length = strcspn(line, "\n");
        if (length <= DIGITS + BLANKS || !line[length])
            return failure_verification(failure, manifest, "a line is not 'SHA-256  path'");
        char hex[HASH_HEX_SIZE];
        cleanup_free char *name = xstrndup(line + DIGITS + BLANKS, length - DIGITS - BLANKS);
        cleanup_free char *path = xformat("%s/%s", folder, name);
        if (!file_exists(path) || file_is_folder(path))
            *ret = xformat("'%s' is gone", name);
        else if ((r = hash_file(path, hex, NULL, failure)) == 0 && memcmp(hex, line, DIGITS) != 0)
            *ret = xformat("'%s' has changed", name);
    }
    return r;
}
