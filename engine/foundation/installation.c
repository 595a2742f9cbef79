#include "engine/foundation/installation.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
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
    const char *suffix; /* what follows the name */
    const char *marker; /* what must be there too, after the suffix */
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

/* The folder above the one of the running program. Should the program have been replaced meanwhile, the
 * kernel adds " (deleted)" to its name; the folders before it stay right. */
static int prefix_of_program(char **ret, struct failure *failure) {
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program);
    if (length < 0 || (size_t)length == sizeof program) {
        int code = length < 0 ? -errno : -ENAMETOOLONG;
        return failure_set(failure, code,
                           "cannot tell where assay is installed: cannot read '/proc/self/exe': %s",
                           strerror(-code));
    }
    program[length] = '\0';
    for (int level = 0; level < 2; level++) {
        char *slash = strrchr(program, '/');
        if (slash)
            *slash = '\0';
    }
    char *prefix = xstrdup(program[0] ? program : "/");
    *ret = prefix;
    return 0;
}

/* An absolute path that need not exist. */
static char *absolute(const char *path) {
    if (path[0] == '/')
        return strdup(path);
    cleanup_free char *here = getcwd(NULL, 0);
    return here ? file_join(here, path) : NULL;
}

static int add_folder(struct installation *installation, enum installation_kind kind, const char *above,
                      const char *inside, struct failure *failure) {
    struct installation_names *folders = &installation->folders[kind];
    folders->items[folders->count] = file_join(above, inside);
    if (!folders->items[folders->count])
        return failure_memory(failure);
    folders->count++;
    return 0;
}

static int add_entries(struct installation *installation, const char *path, struct failure *failure) {
    size_t entries = 0;
    for (const char *at = path; *at;) {
        size_t length = strcspn(at, ":");
        if (length > 0) {
            if (++entries > INSTALLATION_FOLDERS_MOST)
                return failure_set_kind(failure, FAILURE_INPUT, -E2BIG,
                                        "ASSAY_PATH names more than %d folders",
                                        (int)INSTALLATION_FOLDERS_MOST);
            cleanup_free char *entry = strndup(at, length);
            cleanup_free char *folder = entry ? absolute(entry) : NULL;
            if (!folder)
                return failure_memory(failure);
            for (enum installation_kind kind = 0; kind < INSTALLATION_KINDS; kind++) {
                int r = add_folder(installation, kind, folder, kinds[kind].in_entry, failure);
                if (r < 0)
                    return r;
            }
        }
        at += length + (at[length] == ':');
    }
    return 0;
}

static int fill(struct installation *installation, const char *prefix, const char *path,
                struct failure *failure) {
    int r;
    if (prefix) {
        installation->prefix = absolute(prefix);
        if (!installation->prefix)
            return failure_memory(failure);
    } else if ((r = prefix_of_program(&installation->prefix, failure)) < 0) {
        return r;
    }
    installation->agent = file_join(installation->prefix, "libexec/assay/assay-agent");
    installation->agent_source = file_join(installation->prefix, "share/assay/agent-source");
    if (!installation->agent || !installation->agent_source)
        return failure_memory(failure);
    for (size_t kind = 0; kind < INSTALLATION_KINDS; kind++) {
        installation->folders[kind].items = xcalloc(INSTALLATION_FOLDERS_MOST + 1, sizeof(char *));
    }
    if (path && (r = add_entries(installation, path, failure)) < 0)
        return r;
    for (enum installation_kind kind = 0; kind < INSTALLATION_KINDS; kind++)
        if ((r = add_folder(installation, kind, installation->prefix, kinds[kind].in_prefix, failure)) < 0)
            return r;
    return 0;
}

int installation_init(struct installation *installation, const char *prefix, const char *path,
                      struct failure *failure) {
    cleanup(installation_clear) struct installation filled = {0};
    int r = fill(&filled, prefix, path, failure);
    if (r < 0)
        return r;
    *installation = filled;
    filled = (struct installation){0};
    return 0;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the names of KIND in FOLDER; one that cannot be read has none. */
static int list_folder(enum installation_kind kind, const char *folder, struct installation_names *names,
                       size_t *capacity, struct failure *failure) {
    DIR *entries = opendir(folder);
    if (!entries)
        return 0;
    int r = 0;
    struct dirent *entry;
    while (r == 0 && (entry = readdir(entries))) {
        size_t length = strlen(entry->d_name), suffix = strlen(kinds[kind].suffix);
        if (entry->d_name[0] == '.' || length <= suffix ||
            strcmp(entry->d_name + length - suffix, kinds[kind].suffix) != 0)
            continue;
        cleanup_free char *mark = text_format("%s/%s%s", folder, entry->d_name, kinds[kind].marker);
        if (mark && !file_exists(mark))
            continue;
        char *name = mark ? strndup(entry->d_name, length - suffix) : NULL;
        r = name ? list_reserve(&names->items, capacity, names->count + 1, sizeof *names->items,
                                INSTALLATION_NAMES_MOST)
                 : -ENOMEM;
        if (r == 0)
            names->items[names->count++] = name;
        else
            free(name);
    }
    closedir(entries);
    if (r == -EFBIG)
        return failure_set(failure, r, "'%s' holds more than %d entries", folder,
                           (int)INSTALLATION_NAMES_MOST);
    return r < 0 ? failure_memory(failure) : 0;
}

int installation_list(const struct installation *installation, enum installation_kind kind,
                      struct installation_names *ret, struct failure *failure) {
    cleanup(installation_names_clear) struct installation_names names = {0};
    size_t capacity = 0;
    for (size_t i = 0; i < installation->folders[kind].count; i++) {
        int r = list_folder(kind, installation->folders[kind].items[i], &names, &capacity, failure);
        if (r < 0)
            return r;
    }
    if (names.count > 0)
        qsort(names.items, names.count, sizeof *names.items, compare_names);
    size_t kept = 0;
    for (size_t i = 0; i < names.count; i++) {
        if (kept > 0 && strcmp(names.items[kept - 1], names.items[i]) == 0)
            free(names.items[i]);
        else
            names.items[kept++] = names.items[i];
    }
    names.count = kept;
    *ret = names;
    names = (struct installation_names){0};
    return 0;
}

static void append_names(struct text *text, const struct installation_names *names, const char *separator) {
    for (size_t i = 0; i < names->count; i++)
        if (text_printf(text, "%s%s", i > 0 ? separator : "", names->items[i]) < 0)
            return; /* a long list is cut: it is only a hint */
}

static int not_found(const struct installation *installation, enum installation_kind kind, const char *name,
                     struct failure *failure) {
    cleanup(installation_names_clear) struct installation_names names = {0};
    int r = installation_list(installation, kind, &names, failure);
    if (r < 0)
        return r;
    const char *word = kinds[kind].word;
    const char *nearest = text_nearest(name, (const char *const *)names.items, names.count);
    if (nearest)
        return failure_set_kind(failure, FAILURE_INPUT, -ENOENT, "there is no %s '%s'; did you mean '%s'?",
                                word, name, nearest);
    cleanup(text_clear) struct text hint;
    text_init(&hint, FAILURE_TEXT_SIZE / 2);
    if (names.count > 0) {
        append_names(&hint, &names, ", ");
        return failure_set_kind(failure, FAILURE_INPUT, -ENOENT, "there is no %s '%s'; there are: %s", word,
                                name, hint.bytes);
    }
    append_names(&hint, &installation->folders[kind], ", ");
    return failure_set_kind(failure, FAILURE_INPUT, -ENOENT, "there is no %s '%s', and none at all in %s",
                            word, name, hint.bytes);
}

int installation_find(const struct installation *installation, enum installation_kind kind, const char *name,
                      char **ret, struct failure *failure) {
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/'))
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "'%s' cannot be the name of %s %s", name,
                                kind == INSTALLATION_EXPERIMENT ? "an" : "a", kinds[kind].word);
    const struct installation_names *folders = &installation->folders[kind];
    for (size_t i = 0; i < folders->count; i++) {
        cleanup_free char *path = text_format("%s/%s%s", folders->items[i], name, kinds[kind].suffix);
        cleanup_free char *mark = path ? text_format("%s%s", path, kinds[kind].marker) : NULL;
        if (!mark)
            return failure_memory(failure);
        if (file_exists(mark)) {
            *ret = take_pointer(path);
            return 0;
        }
    }
    return not_found(installation, kind, name, failure);
}
