/* assay experiments new: a folder with an experiment that runs as it is, copied from a template. */
#include "engine/command-line/experiments/experiments.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/path.h"
#include "engine/report/shown.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { TEMPLATE_FILE_MAX = 1 << 20 };

/* How a template calls itself, so that it is an experiment too. */
static const char placeholder[] = "new-experiment";

/* The file at FROM as TO, the placeholder replaced by NAME. */
static int copy_file(const char *from, const char *to, const char *name, struct failure *failure) {
    cleanup(text_clear) struct text text, filled;
    text_init(&text, TEMPLATE_FILE_MAX);
    text_init(&filled, SIZE_MAX / 2);
    int r = file_read(from, &text, failure);
    if (r < 0)
        return r;
    const char *at = text.bytes, *next;
    for (; (next = strstr(at, placeholder)); at = next + strlen(placeholder)) {
        text_append(&filled, at, (size_t)(next - at));
        text_append_string(&filled, name);
    }
    text_append_string(&filled, at);
    return file_write_output(to, filled.bytes, filled.length, failure);
}

/* Copies the files of the folder FROM to TO, without hidden ones and folders; NAME replaces the example's
 * name in them. */
static int copy_files(const char *from, const char *to, const char *name, struct failure *failure) {
    DIR *entries = opendir(from);
    if (!entries)
        return failure_set(failure, -errno, "cannot read '%s': %s", from, strerror(errno));
    struct dirent *entry;
    int r = 0;
    while (r == 0 && (entry = readdir(entries))) {
        cleanup_free char *source = xformat("%s/%s", from, entry->d_name);
        cleanup_free char *target = xformat("%s/%s", to, entry->d_name);
        if (entry->d_name[0] != '.' && !file_is_folder(source))
            r = copy_file(source, target, name, failure);
    }
    closedir(entries);
    return r;
}

int experiments_new(const struct verb_arguments *arguments, struct failure *failure) {
    const char *name = arguments->operands[1], *folder = verb_value(arguments, "--output");
    if (!folder)
        folder = name;
    int r = experiment_name_check(name, NULL, 0, 0, failure);
    r = r < 0 ? r : path_check(folder, PATH_PLACE, failure);
    if (r < 0)
        return r;
    cleanup_free char *from =
        xformat("%s/share/assay/experiments/templates/%s", arguments->installation->prefix,
                verb_switch(arguments, "--mpi") ? "mpi" : "command");
    if (mkdir(folder, 0777) < 0) {
        int error = errno;
        return error == EEXIST
                   ? failure_input(failure, NULL, 0, 0,
                                   "'%s' is there already, expected the name of a new folder", folder)
                   : failure_set_kind(failure, FAILURE_INPUT, -error, "cannot make the folder '%s': %s",
                                      folder, strerror(error));
    }
    r = copy_files(from, folder, name, failure);
    if (r < 0) {
        (void)file_remove_tree(folder, NULL); /* the first failure is the one to report */
        return r;
    }
    printf("%s: an experiment that runs as it is; next:\n", shown(folder).text);
    printf("  assay run %s/campaign.yaml\n", shown(folder).text);
    return 0;
}
