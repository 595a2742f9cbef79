#include "engine/foundation/file.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int failure_errno(struct failure *failure, const char *what, const char *path) {
    int code = -errno;
    enum failure_kind kind =
        code == -ENOENT || code == -ENOTDIR || code == -EISDIR ? FAILURE_INPUT : FAILURE_SYSTEM;
    return failure_set_kind(failure, kind, code, "cannot %s '%s': %s", what, path, strerror(-code));
}

/* ---- Inputs */

static int refuse_size(const char *path, size_t most, const char *advice, struct failure *failure) {
    return failure_set_kind(failure, FAILURE_INPUT, -EFBIG, "'%s' is larger than the limit of %zu bytes%s",
                            path, most, advice);
}

/* Reads the pipe FROM to its end into a file in memory. Returns its descriptor, or a negative errno with
 * FAILURE: too long, or no writer within FILE_WRITER_WAIT_S. */
static int read_pipe(int from, const char *path, bool is_standard_input, struct failure *failure) {
    cleanup_close int memory = memfd_create("assay-pipe", MFD_CLOEXEC);
    struct pollfd wait = {.fd = from, .events = POLLIN};
    char buffer[65536];
    size_t length = 0;
    if (!is_standard_input) /* without a writer it is at its end */
        (void)poll(&wait, 1, FILE_WRITER_WAIT_S * 1000);
    for (ssize_t got; (got = read(from, buffer, sizeof buffer)) != 0;) {
        if (got < 0 && errno == EAGAIN)
            (void)poll(&wait, 1, -1);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0)
            return failure_errno(failure, "read", path);
        length += (size_t)got;
        if (length > FILE_PIPE_BYTES_MAX)
            return refuse_size(path, FILE_PIPE_BYTES_MAX, " of a pipe; write it to a file first", failure);
        if (file_write_all(memory, buffer, (size_t)got) < 0)
            return failure_memory(failure);
    }
    if (length == 0 && !is_standard_input)
        return failure_set_kind(
            failure, FAILURE_INPUT, -ENODATA,
            "'%s' is a pipe to which nothing is written (waited for %d s); start the command "
            "that writes to it first, or give a file",
            path, (int)FILE_WRITER_WAIT_S);
    return lseek(memory, 0, SEEK_SET) < 0 ? failure_memory(failure) : take_descriptor(memory);
}

/* Opens an input: a file, or a pipe or "-" if KINDS allows. Returns a descriptor, which the caller closes, or
 * negative with FAILURE. */
int file_open(const char *path, enum file_kinds kinds, struct failure *failure) {
    bool is_standard_input = kinds == FILE_OR_PIPE && strcmp(path, "-") == 0;
    cleanup_close int file = is_standard_input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                               : open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    path = is_standard_input ? "standard input" : path;
    if (file < 0 || fstat(file, &status) < 0)
        return failure_errno(failure, "open", path);
    bool is_null = S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
    if (S_ISREG(status.st_mode) || is_null)
        return take_descriptor(file);
    if (S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return failure_errno(failure, "read", path);
    }
    if (!is_standard_input && (kinds == FILE_REGULAR || !S_ISFIFO(status.st_mode)))
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "'%s' is a %s; expected a file%s", path,
                                S_ISFIFO(status.st_mode) ? "pipe" : "device",
                                kinds == FILE_OR_PIPE ? " or a pipe" : "");
    return read_pipe(file, path, is_standard_input, failure);
}

/* Appends the content of the file PATH to RET. -EFBIG with FAILURE: it is longer than RET's limit. */
static int append_content(const char *path, enum file_kinds kinds, struct text *ret,
                          struct failure *failure) {
    cleanup_close int descriptor = file_open(path, kinds, failure);
    if (descriptor < 0)
        return descriptor;
    for (;;) {
        size_t room = ret->limit - ret->length;
        size_t step = room < 65536 ? room : 65536;
        char *end;
        char beyond;
        if (step > 0 && text_reserve(ret, step, &end) < 0)
            return failure_memory(failure);
        ssize_t got = read(descriptor, step > 0 ? end : &beyond, step > 0 ? step : 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failure_errno(failure, "read", path);
        if (got == 0)
            break;
        if (step == 0)
            return refuse_size(path, ret->limit, "", failure);
        ret->length += (size_t)got;
    }
    text_cut(ret, ret->length);
    return 0;
}

static int read_whole(const char *path, enum file_kinds kinds, struct text *ret, struct failure *failure) {
    size_t before = ret->length;
    int r = append_content(path, kinds, ret, failure);
    if (r < 0)
        text_cut(ret, before);
    return r;
}

int file_read(const char *path, struct text *ret, struct failure *failure) {
    return read_whole(path, FILE_REGULAR, ret, failure);
}

int file_read_or_pipe(const char *path, struct text *ret, struct failure *failure) {
    return read_whole(path, FILE_OR_PIPE, ret, failure);
}

/* Writes all LENGTH bytes. 0 or a negative errno. */
int file_write_all(int descriptor, const void *bytes, size_t length) {
    const char *at = bytes;
    while (length > 0) {
        ssize_t written = write(descriptor, at, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        at += written;
        length -= (size_t)written;
    }
    return 0;
}

/* Syncs the folder of PATH to the disk, so that a new name in it survives a power cut. */
int file_sync_folder_of(const char *path, struct failure *failure) {
    const char *slash = strrchr(path, '/');
    cleanup_free char *folder =
        slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (!folder)
        return failure_memory(failure);
    cleanup_close int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return failure_errno(failure, "open", folder);
    if (fsync(descriptor) < 0 && errno != EINVAL)
        return failure_errno(failure, "sync", folder);
    return 0;
}

/* ---- Outputs */

static int fail_output(const struct file_output *output, int code, struct failure *failure) {
    return failure_set(failure, code, "cannot write '%s': %s", output->path, strerror(-code));
}

/* Opens a hidden temporary file beside the target, which file_output_commit() renames to the target; what a
 * crash leaves behind is then not sealed into an archive. */
static int open_temporary(struct file_output *output, unsigned mode, struct failure *failure) {
    const char *name = file_base_name(output->target);
    output->staged =
        text_format("%.*s.%s.%ld.part", (int)(name - output->target), output->target, name, (long)getpid());
    if (!output->staged)
        return failure_memory(failure);
    unlink(output->staged); /* of a process of our number that was killed, or put there by another user */
    output->descriptor =
        open(output->staged, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t)mode);
    if (output->descriptor >= 0)
        return 0;
    int r = failure_errno(failure, "create", output->path);
    free(take_pointer(output->staged)); /* there is nothing to remove */
    return r;
}

/* Finds the target of the links at PATH. A link to a file that does not exist makes that file, as open(2)
 * would; OUTPUT remembers to remove it on failure. */
static int resolve_links(struct file_output *output, unsigned mode, struct failure *failure) {
    struct stat status;
    if (lstat(output->path, &status) < 0 || !S_ISLNK(status.st_mode))
        return (output->target = strdup(output->path)) ? 0 : failure_memory(failure);
    if (!file_exists(output->path)) {
        cleanup_close int made = open(output->path, O_WRONLY | O_CREAT | O_CLOEXEC, (mode_t)mode);
        if (made < 0)
            return failure_errno(failure, "create", output->path);
        output->made_target = true;
    }
    output->target = realpath(output->path, NULL);
    return output->target ? 0 : failure_errno(failure, "resolve", output->path);
}

static bool is_standard_output(const struct stat *status) {
    struct stat standard;
    return fstat(STDOUT_FILENO, &standard) == 0 && standard.st_dev == status->st_dev &&
           standard.st_ino == status->st_ino;
}

/* Opens an output whose content replaces PATH all at once on commit (file.h); devices, pipes and standard
 * output are written directly. */
int file_output_open(const char *path, unsigned mode, struct file_output *ret, struct failure *failure) {
    cleanup(file_output_clear) struct file_output output = FILE_OUTPUT_NONE;
    if (!(output.path = strdup(path)))
        return failure_memory(failure);
    struct stat status;
    bool exists = stat(path, &status) == 0;
    int r = 0;
    if (exists && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return failure_errno(failure, "write", path);
    }
    if (exists && is_standard_output(&status)) /* also where that is a file: written at its present end */
        output.descriptor = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    else if (exists && !S_ISREG(status.st_mode))
        output.descriptor = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    else if ((r = path_check(path, PATH_PLACE, failure)) == 0 &&
             (r = resolve_links(&output, mode, failure)) == 0)
        r = open_temporary(&output, mode, failure);
    if (r < 0)
        return r;
    if (output.descriptor < 0)
        return failure_errno(failure, "open", path);
    *ret = output;
    output = FILE_OUTPUT_NONE;
    return 0;
}

int file_output_write(struct file_output *output, const void *bytes, size_t length, struct failure *failure) {
    int r = file_write_all(output->descriptor, bytes, length);
    return r < 0 ? fail_output(output, r, failure) : 0;
}

/* Syncs the output and gives it its final name. Negative with FAILURE: the old file is unchanged. */
int file_output_commit(struct file_output *output, struct failure *failure) {
    int r = 0;
    /* A pipe, a terminal and most devices cannot be synced. */
    if (fsync(output->descriptor) < 0 && (output->staged || (errno != EINVAL && errno != EROFS)))
        r = -errno;
    if (close(take_descriptor(output->descriptor)) < 0 && r == 0)
        r = -errno;
    if (r == 0 && output->staged && rename(output->staged, output->target) < 0)
        r = -errno;
    if (r < 0)
        return fail_output(output, r, failure);
    output->made_target = false;
    if (!output->staged)
        return 0;
    free(take_pointer(output->staged));
    return file_sync_folder_of(output->target, failure);
}

bool file_output_is_file(const struct file_output *output) {
    return output->target != NULL;
}

/* Closes the output; what was not committed is removed. */
void file_output_clear(struct file_output *output) {
    cleanup_close_descriptor(&output->descriptor);
    if (output->staged)
        unlink(output->staged);
    if (output->made_target)
        unlink(output->target);
    free(output->staged);
    free(output->target);
    free(output->path);
    *output = FILE_OUTPUT_NONE;
}

/* Replaces the file PATH by LENGTH bytes, all at once: after a crash it has the old content or the new. */
int file_replace(const char *path, const void *bytes, size_t length, unsigned mode, struct failure *failure) {
    cleanup(file_output_clear) struct file_output output = FILE_OUTPUT_NONE;
    output.path = strdup(path);
    output.target = strdup(path);
    if (!output.path || !output.target)
        return failure_memory(failure);
    int r = open_temporary(&output, mode, failure);
    r = r < 0 ? r : file_output_write(&output, bytes, length, failure);
    return r < 0 ? r : file_output_commit(&output, failure);
}

int file_write_output(const char *path, const void *bytes, size_t length, struct failure *failure) {
    cleanup(file_output_clear) struct file_output output = FILE_OUTPUT_NONE;
    int r = file_output_open(path, 0666, &output, failure);
    r = r < 0 ? r : file_output_write(&output, bytes, length, failure);
    return r < 0 ? r : file_output_commit(&output, failure);
}

/* ---- Folders */

int file_make_folders(const char *path, struct failure *failure) {
    cleanup_close int folder = path_make(path, failure);
    return folder < 0 ? folder : 0;
}

int file_make_temporary(char **ret, struct failure *failure) {
    const char *parent = getenv("TMPDIR");
    cleanup_free char *path = file_join(parent && *parent ? parent : "/tmp", "assay-XXXXXX");
    if (!mkdtemp(path))
        return failure_set(failure, -errno, "cannot make folder '%s': %s", path, strerror(errno));
    *ret = take_pointer(path);
    return 0;
}

/* Opens the folder NAME in PARENT with all rights of its owner, so that it can be emptied, without following
 * links. Returns a descriptor or a negative errno. */
static int file_open_to_empty(int parent, const char *name) {
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0 && errno == EACCES) {
        /* Not even readable: chmod by a descriptor that needs no right, which only /proc gives a name to. */
        cleanup_close int place = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", place);
        if (place < 0 || chmod(path, S_IRWXU) < 0)
            return -EACCES;
        folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (folder < 0)
        return -errno;
    struct stat status;
    if (fstat(folder, &status) == 0 && (status.st_mode & S_IRWXU) != S_IRWXU)
        (void)fchmod(folder, (status.st_mode & 07777) | S_IRWXU); /* not ours: removing will say so */
    return folder;
}

static int remove_at(int parent, const char *name);

/* Removes everything in FOLDER, but not FOLDER itself. 0 or a negative errno. */
int file_empty_folder(int folder) {
    cleanup_close int listed = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = listed < 0 ? NULL : fdopendir(listed);
    if (!entries)
        return -errno;
    (void)take_descriptor(listed); /* closedir closes it */
    int r = 0;
    struct dirent *entry;
    while (r == 0 && (entry = readdir(entries)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = remove_at(folder, entry->d_name);
    closedir(entries);
    return r;
}

/* Removes NAME, a file or a whole tree, from the folder PARENT; by descriptors, so that no link is followed.
 * 0 also if it does not exist, or a negative errno. */
static int remove_at(int parent, const char *name) {
    if (unlinkat(parent, name, 0) == 0)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return errno == ENOENT ? 0 : -errno;
    int code = -errno;
    cleanup_close int folder = file_open_to_empty(parent, name);
    if (folder < 0)
        /* No folder: then why it was not unlinked counts. */
        return folder == -ENOTDIR || folder == -ELOOP ? code : folder;
    int r = file_empty_folder(folder);
    if (r == 0 && unlinkat(parent, name, AT_REMOVEDIR) < 0)
        r = -errno;
    return r;
}

int file_remove_tree(const char *path, struct failure *failure) {
    int r = remove_at(AT_FDCWD, path);
    return r < 0 ? failure_set(failure, r, "cannot remove '%s': %s", path, strerror(-r)) : 0;
}

bool file_exists(const char *path) {
    return access(path, F_OK) == 0;
}

static bool stat_file(const char *path, struct stat *ret) {
    int r = strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, ret) : stat(path, ret);
    return r == 0 && (S_ISREG(ret->st_mode) || S_ISBLK(ret->st_mode));
}

/* Copies a file or pipe to TO, which is replaced all at once. */
int file_copy(const char *from, enum file_kinds kinds, const char *to, struct failure *failure) {
    cleanup_close int source = file_open(from, kinds, failure);
    cleanup(file_output_clear) struct file_output output = FILE_OUTPUT_NONE;
    char piece[1 << 16];
    int r = source < 0 ? source : file_output_open(to, 0666, &output, failure);
    while (r == 0) {
        ssize_t got = TEMP_FAILURE_RETRY(read(source, piece, sizeof piece));
        if (got < 0)
            return failure_set(failure, -errno, "cannot read '%s': %s", from, strerror(errno));
        if (got == 0)
            break;
        r = file_output_write(&output, piece, (size_t)got, failure);
    }
    return r < 0 ? r : file_output_commit(&output, failure);
}

bool file_is_same(const char *a, const char *b) {
    struct stat x, y;
    return stat_file(a, &x) && stat_file(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool file_is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

int file_size(const char *path, uint64_t *ret, struct failure *failure) {
    struct stat status;
    if (stat(path, &status) < 0)
        return failure_errno(failure, "stat", path);
    *ret = (uint64_t)status.st_size;
    return 0;
}

char *file_join(const char *folder, const char *name) {
    size_t length = strlen(folder);
    return text_format(length && folder[length - 1] == '/' ? "%s%s" : "%s/%s", folder, name);
}

const char *file_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
