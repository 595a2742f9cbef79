#include "engine/run/copy.h"

#include "archive-format/writer.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct copying {
    const struct copy_target *target;
    bool skips; /* the folder that these name */
    dev_t skipped_device;
    ino_t skipped_inode;
    size_t files, left_out;
};

enum { FILE_BYTES_MOST = 1 << 30 }; /* of one that goes into the run's folder: it passes through memory */

static int check_archive_name(const struct copy_target *target, const char *from, const char *relative,
                              struct failure *failure) {
    if (!target->archive_folder)
        return 0;
    cleanup_free char *name = file_join(target->archive_folder, relative);
    if (!name)
        return failure_memory(failure);
    const char *problem = archive_name_problem(name);
    return problem ? failure_input(failure, from, 0, 0, "this name cannot be kept in an archive: %s", problem)
                   : 0;
}

static int copy_file(struct copying *copying, const char *from, const char *to, const char *relative,
                     mode_t mode, struct failure *failure) {
    const struct copy_target *target = copying->target;
    if (++copying->files > COPY_FILES_MOST)
        return failure_set_kind(failure, FAILURE_INPUT, -EFBIG, "'%s' is one file more than the limit of %d",
                                from, COPY_FILES_MOST);
    int r = check_archive_name(target, from, relative, failure);
    if (r < 0)
        return r;
    struct text bytes;
    text_init(&bytes, FILE_BYTES_MOST);
    r = file_read(from, &bytes, failure);
    if (r == 0)
        r = file_replace(to, bytes.bytes, bytes.length, mode & 0777, failure);
    text_clear(&bytes);
    return r;
}

static int not_dots(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int copy_folder(struct copying *copying, const char *from, const char *to, const char *relative,
                       int depth, struct failure *failure);

static int copy_entry(struct copying *copying, const char *from, const char *to, const char *relative,
                      const char *name, int depth, struct failure *failure) {
    cleanup_free char *source = file_join(from, name);
    cleanup_free char *destination = file_join(to, name);
    cleanup_free char *below = relative[0] ? file_join(relative, name) : strdup(name);
    struct stat status;
    if (!source || !destination || !below)
        return failure_memory(failure);
    if (lstat(source, &status) < 0)
        return failure_set(failure, -errno, "cannot look at '%s': %s", source, strerror(errno));
    if (S_ISREG(status.st_mode))
        return copy_file(copying, source, destination, below, status.st_mode, failure);
    if (S_ISDIR(status.st_mode) && copying->skips && status.st_dev == copying->skipped_device &&
        status.st_ino == copying->skipped_inode)
        return 0;
    if (S_ISDIR(status.st_mode))
        return copy_folder(copying, source, destination, below, depth + 1, failure);
    copying->left_out++;
    return 0;
}

static int copy_folder(struct copying *copying, const char *from, const char *to, const char *relative,
                       int depth, struct failure *failure) {
    if (depth > COPY_DEPTH_MOST)
        return failure_set_kind(failure, FAILURE_INPUT, -ELOOP, "'%s' is nested deeper than %d folders", from,
                                COPY_DEPTH_MOST);
    int r = file_make_folders(to, failure);
    if (r < 0)
        return r;
    struct dirent **entries;
    int count = scandir(from, &entries, not_dots, compare_names);
    if (count < 0)
        return failure_set(failure, -errno, "cannot list '%s': %s", from, strerror(errno));
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        bool skipped = copying->target->skip_hidden && name[0] == '.';
        if (r == 0 && !skipped)
            r = copy_entry(copying, from, to, relative, name, depth, failure);
        free(entries[i]);
    }
    free(entries);
    return r;
}

int copy_check_skipped(const char *source, const char *skipped, struct failure *failure) {
    struct stat status, root;
    if (!skipped || stat(skipped, &status) < 0 || stat(source, &root) < 0 || root.st_dev != status.st_dev ||
        root.st_ino != status.st_ino)
        return 0;
    return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                            "runs would be made in '%s', which is copied into each run; expected another "
                            "folder for them (-o)",
                            source);
}

int copy_tree(const char *source, const struct copy_target *target, size_t *ret_left_out,
              struct failure *failure) {
    struct copying copying = {.target = target};
    struct stat status;
    int r = copy_check_skipped(source, target->skip_folder, failure);
    if (r < 0)
        return r;
    if (target->skip_folder && stat(target->skip_folder, &status) == 0) {
        copying.skips = true;
        copying.skipped_device = status.st_dev;
        copying.skipped_inode = status.st_ino;
    }
    r = copy_folder(&copying, source, target->folder, "", 0, failure);
    if (r == 0 && ret_left_out)
        *ret_left_out = copying.left_out;
    return r;
}
