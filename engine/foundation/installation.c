#include "engine/foundation/installation.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/path.h"
#include "engine/foundation/text-set.h"
#include "engine/foundation/text.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *word;     /* for messages */
    const char *in_entry; /* the folder inside an entry of ASSAY_PATH */
    const char *in_prefix;
    const char *suffix; /* of the file's name */
    const char *marker; /* a file that must exist besides: its name after the suffix */
} kinds[INSTALLATION_KINDS] = {
    [INSTALLATION_PLUGIN] = {"plugin", "plugins", "lib/assay/plugins", ".so", ""},
    [INSTALLATION_EXPERIMENT] = {"experiment", "experiments", "share/assay/experiments", "",
                                 "/experiment.yaml"},
};

void installation_names_clear(struct installation_names *names) {
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct installation_names){0};
}

void installation_clear(struct installation *installation) {
    free(installation->prefix);
    free(installation->agent);
    free(installation->agent_source);
    for (size_t kind = 0; kind < INSTALLATION_KINDS; kind++)
        installation_names_clear(&installation->folders[kind]);
    *installation = (struct installation){0};
}

static void close_folder(DIR **folder) {
    if (*folder)
        closedir(*folder);
}

/* The folder above the one of the running program, which the caller frees. If the program was replaced, the
 * kernel adds " (deleted)" to its file name; the folders stay right. */
static int prefix_of_program(char **ret, struct failure *failure) {
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program);
    if (length < 0 || (size_t)length == sizeof program) {
        int code = length < 0 ? -errno : -ENAMETOOLONG;
        return failure_set(failure, code,
                           "cannot find out where assay is installed: cannot read "
                           "'/proc/self/exe': %s",
                           strerror(-code));
    }
    program[length] = '\0';
    for (int level = 0; level < 2; level++) {
        char *slash = strrchr(program, '/');
        if (slash)
            *slash = '\0';
    }
    *ret = xstrdup(program);
    return 0;
}

/* PATH as an absolute path into *RET, which the caller frees; it need not exist. */
static int absolute(const char *path, char **ret, struct failure *failure) {
    cleanup_free char *here = path[0] == '/' ? xstrdup("") : getcwd(NULL, 0);
    if (!here)
        return failure_set(failure, -errno, "cannot find out the working directory: %s", strerror(errno));
    *ret = here[0] ? xformat("%s/%s", here, path) : xstrdup(path);
    return 0;
}

static void add_folders(struct installation *installation, const char *above, bool is_prefix) {
    for (enum installation_kind kind = 0; kind < INSTALLATION_KINDS; kind++) {
        struct installation_names *folders = &installation->folders[kind];
        folders->items[folders->count++] =
            xformat("%s/%s", above, is_prefix ? kinds[kind].in_prefix : kinds[kind].in_entry);
    }
}

/* Adds the folders of an ASSAY_PATH. -E2BIG: too many. */
static int add_entries(struct installation *installation, const char *path, struct failure *failure) {
    cleanup_free char *copy = xstrdup(path);
    size_t count = 0;
    char *rest = copy, *entry;
    while ((entry = strsep(&rest, ":"))) {
        cleanup_free char *folder = NULL;
        if (!entry[0])
            continue;
        if (++count > INSTALLATION_FOLDERS_MAX)
            return failure_set_kind(failure, FAILURE_INPUT, -E2BIG, "ASSAY_PATH names more than %d folders",
                                    (int)INSTALLATION_FOLDERS_MAX);
        int r = absolute(entry, &folder, failure);
        if (r < 0)
            return r;
        add_folders(installation, folder, false);
    }
    return 0;
}

/* Finds the folders of plugins and experiments: those of ASSAY_PATH first, then the installed ones. */
int installation_init(struct installation *installation, const char *prefix, const char *path,
                      struct failure *failure) {
    cleanup(installation_clear) struct installation filled = {0};
    int r = prefix ? absolute(prefix, &filled.prefix, failure) : prefix_of_program(&filled.prefix, failure);
    if (r < 0)
        return r;
    filled.agent = xformat("%s/libexec/assay/assay-agent", filled.prefix);
    filled.agent_source = xformat("%s/share/assay/agent-source", filled.prefix);
    for (size_t kind = 0; kind < INSTALLATION_KINDS; kind++)
        filled.folders[kind].items = xcalloc(INSTALLATION_FOLDERS_MAX + 1, sizeof(char *));
    r = path ? add_entries(&filled, path, failure) : 0;
    if (r < 0)
        return r;
    add_folders(&filled, filled.prefix, true);
    *installation = filled;
    filled = (struct installation){0};
    return 0;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the names of KIND in FOLDER to NAMES; a folder that cannot be read has none. */
static int list_folder(enum installation_kind kind, const char *folder, struct text_set *names,
                       struct failure *failure) {
    cleanup(close_folder) DIR *entries = opendir(folder);
    struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        const char *suffix = kinds[kind].suffix;
        size_t length = strlen(entry->d_name), name_length = length - strlen(suffix);
        if (entry->d_name[0] == '.' || length <= strlen(suffix) ||
            strcmp(entry->d_name + name_length, suffix) != 0)
            continue;
        cleanup_free char *mark = xformat("%s/%s%s", folder, entry->d_name, kinds[kind].marker);
        if (!file_exists(mark))
            continue;
        text_set_add(names, entry->d_name, name_length);
        if (names->count > INSTALLATION_NAMES_MAX)
            return failure_set(failure, -EFBIG, "'%s' holds more than %d entries", folder,
                               (int)INSTALLATION_NAMES_MAX);
    }
    return 0;
}

/* Lists the names of all installed plugins or experiments, sorted. The caller clears RET. */
int installation_list(const struct installation *installation, enum installation_kind kind,
                      struct installation_names *ret, struct failure *failure) {
    cleanup(text_set_clear) struct text_set names = {0};
    for (size_t i = 0; i < installation->folders[kind].count; i++) {
        int r = list_folder(kind, installation->folders[kind].items[i], &names, failure);
        if (r < 0)
            return r;
    }
    *ret = (struct installation_names){names.texts, names.count};
    names = (struct text_set){.slots = names.slots};
    if (ret->count > 0)
        qsort(ret->items, ret->count, sizeof *ret->items, compare_names);
    return 0;
}

/* Fails with -ENOENT and the nearest name, or the names that there are. */
static int not_found(const struct installation *installation, enum installation_kind kind, const char *name,
                     struct failure *failure) {
    cleanup(installation_names_clear) struct installation_names names = {0};
    int r = installation_list(installation, kind, &names, failure);
    if (r < 0)
        return r;
    const struct installation_names *listed = names.count > 0 ? &names : &installation->folders[kind];
    const char *nearest = text_nearest(name, (const char *const *)names.items, names.count);
    cleanup(text_clear) struct text hint;
    text_init(&hint, FAILURE_TEXT_SIZE / 2);
    text_append_string(&hint, nearest           ? "; did you mean '"
                              : names.count > 0 ? "; there are: "
                                                : ", and none at all in ");
    /* Of plugins only those that do the same thing, 'fit-...', if there are such. */
    const size_t verb = strcspn(name, "-");
    size_t alike = 0;
    for (size_t i = 0; kind == INSTALLATION_PLUGIN && i < names.count; i++)
        alike = strncmp(names.items[i], name, verb) == 0 && names.items[i][verb] == '-' ? verb + 1 : alike;
    const char *comma = "";
    for (size_t i = 0; !nearest && i < listed->count; i++) {
        if (strncmp(listed->items[i], name, alike) != 0)
            continue;
        text_printf(&hint, "%s%s", comma, listed->items[i]); /* a list over the limit is cut */
        comma = ", ";
    }
    if (nearest)
        text_printf(&hint, "%s'?", nearest);
    return failure_set_kind(failure, FAILURE_INPUT, -ENOENT, "there is no %s '%s'%s", kinds[kind].word, name,
                            hint.bytes);
}

/* The path of the plugin or experiment NAME into *RET, which the caller frees. -ENOENT: it is not
 * installed. */
int installation_find(const struct installation *installation, enum installation_kind kind, const char *name,
                      char **ret, struct failure *failure) {
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/'))
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "'%s' cannot be the name of %s %s", name,
                                kind == INSTALLATION_EXPERIMENT ? "an" : "a", kinds[kind].word);
    const struct installation_names *folders = &installation->folders[kind];
    for (size_t i = 0; i < folders->count; i++) {
        cleanup_free char *path = xformat("%s/%s%s", folders->items[i], name, kinds[kind].suffix);
        cleanup_free char *mark = xformat("%s%s", path, kinds[kind].marker);
        if (file_exists(mark)) {
            int r = path_check(mark, PATH_SOURCE, failure);
            *ret = r < 0 ? NULL : take_pointer(path);
            return r;
        }
    }
    return not_found(installation, kind, name, failure);
}
