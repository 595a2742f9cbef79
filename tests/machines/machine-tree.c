#include "tests/machines/machine-tree.h"

#include "engine/foundation/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MACHINES_FOLDER
#error "MACHINES_FOLDER is to be the folder of the machines' files"
#endif

enum { LINE_SIZE = 8192, USE_DEPTH = 4, RANGES_MAX = 3, FILE_PATH_SIZE = 1024 };

/* One line while it is done. */
struct line {
    struct machine_tree *tree;
    const char *path, *access, *content;
    struct failure *failure;
};

/* ---- Entries */

static void clear_entry(struct machine_entry *entry) {
    free(entry->path);
    free(entry->content);
    free(entry->rule);
}

void machine_tree_clear(struct machine_tree *tree) {
    for (size_t i = 0; i < tree->count; i++)
        clear_entry(&tree->entries[i]);
    free(tree->entries);
    *tree = (struct machine_tree){0};
}

/* Takes the strings, also when it fails. */
static int add_entry(struct machine_tree *tree, struct machine_entry entry, struct failure *failure) {
    int status = 0;
    if (tree->count == MACHINE_TREE_ENTRIES_MAX)
        status = failure_set(failure, -E2BIG, "a machine has more than %d files", MACHINE_TREE_ENTRIES_MAX);
    else if (tree->count == tree->room) {
        size_t room = tree->room == 0 ? 1024 : 2 * tree->room;
        struct machine_entry *entries = realloc(tree->entries, room * sizeof *entries);
        if (entries != NULL) {
            tree->entries = entries;
            tree->room = room;
        } else
            status = failure_memory(failure);
    }
    if (status == 0 && (entry.path == NULL || entry.content == NULL || entry.rule == NULL))
        status = failure_memory(failure);
    if (status < 0) {
        clear_entry(&entry);
        return status;
    }
    entry.order = tree->count;
    tree->entries[tree->count++] = entry;
    return 0;
}

/* Takes PATH away and what is below it. */
static void remove_entries(struct machine_tree *tree, const char *path) {
    size_t kept = 0, length = strlen(path);
    for (size_t i = 0; i < tree->count; i++) {
        struct machine_entry *entry = &tree->entries[i];
        if (strncmp(entry->path, path, length) == 0 &&
            (entry->path[length] == '\0' || entry->path[length] == '/'))
            clear_entry(entry);
        else
            tree->entries[kept++] = *entry;
    }
    tree->count = kept;
}

/* ---- Lines */

/* "rw+:RULE" and the like into ENTRY, whose rule it makes. */
static int read_access(const struct line *line, struct machine_entry *entry) {
    static const struct {
        const char *word;
        enum machine_kind kind;
        unsigned mode;
    } words[] = {{"r", MACHINE_FILE, 0444},      {"rw", MACHINE_FILE, 0644}, {"w", MACHINE_FILE, 0200},
                 {"secret", MACHINE_FILE, 0400}, {"->", MACHINE_LINK, 0777}, {"dir", MACHINE_FOLDER, 0755}};
    size_t length = strcspn(line->access, "+:");
    const char *rest = line->access + length;
    entry->more = *rest == '+';
    rest += entry->more;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == length && memcmp(words[i].word, line->access, length) == 0) {
            entry->kind = words[i].kind;
            entry->mode = words[i].mode;
            if (*rest != '\0' && *rest != ':')
                break;
            struct text rule cleanup(text_clear);
            text_init(&rule, 512);
            bool open;
            int status = machine_pattern_expand(*rest == ':' ? rest + 1 : "", &line->tree->scope, &rule,
                                                &open, line->failure);
            entry->rule = strdup(rule.bytes);
            return status;
        }
    return failure_set(line->failure, -EINVAL, "'%s' is no kind of file", line->access);
}

/* The line for one PATH, with all names of its ranges set. */
static int add_path(const struct line *line, const char *path) {
    struct text name cleanup(text_clear);
    struct text content cleanup(text_clear);
    text_init(&name, MACHINE_TREE_PATH_SIZE - 1);
    text_init(&content, MACHINE_TREE_CONTENT_MAX);
    bool open;
    int status = machine_pattern_expand(path, &line->tree->scope, &name, &open, line->failure);
    if (status == 0 && strcmp(line->access, "none") == 0) {
        remove_entries(line->tree, name.bytes);
        return 0;
    }
    struct machine_entry entry = {0};
    if (status == 0)
        status = read_access(line, &entry);
    if (status == 0)
        status = machine_pattern_expand(line->content, &line->tree->scope, &content, &open, line->failure);
    if (status == 0 && entry.kind == MACHINE_FILE && !open)
        status = text_append_character(&content, '\n');
    if (status < 0) {
        free(entry.rule);
        return line->failure->text[0] != '\0' ? status
                                              : failure_set(line->failure, status, "cannot make '%s'", path);
    }
    entry.path = strdup(name.bytes);
    entry.content = strdup(content.bytes);
    return add_entry(line->tree, entry, line->failure);
}

/* Does the line for each value of the first range of PATH, which has been found to have DEPTH others before.
 */
static int expand_ranges(const struct line *line, const char *path, int depth) {
    static const char *const names[RANGES_MAX] = {"i", "j", "k"};
    const char *open = strchr(path, '[');
    if (open == NULL)
        return add_path(line, path);
    const char *at = open + 1;
    bool silent = *at == ':';
    at += silent;
    long first, last;
    struct machine_scope *scope = &line->tree->scope;
    if (depth == RANGES_MAX || machine_pattern_number(&at, scope, &first) < 0 || strncmp(at, "..", 2) != 0)
        return failure_set(line->failure, -EINVAL, "cannot read the range at '%s'", open);
    at += 2;
    if (machine_pattern_number(&at, scope, &last) < 0 || *at != ']')
        return failure_set(line->failure, -EINVAL, "cannot read the range at '%s'", open);
    int count = scope->count, status = 0;
    for (long value = first; status == 0 && value <= last; value++) {
        char next[2 * MACHINE_TREE_PATH_SIZE], number[24];
        snprintf(number, sizeof number, "%ld", value);
        if (snprintf(next, sizeof next, "%.*s%s%s", (int)(open - path), path, silent ? "" : number, at + 1) >=
            (int)sizeof next)
            return failure_set(line->failure, -ENAMETOOLONG, "'%s' is too long", path);
        status = machine_scope_add(scope, names[depth], 1, value);
        if (status == 0)
            status = expand_ranges(line, next, depth + 1);
        scope->count = count;
    }
    return status;
}

/* "NAME EXPRESSION"; a setting that there is already stays. */
static int do_set(struct machine_tree *tree, const char *text, struct failure *failure) {
    size_t length = strcspn(text, " =");
    const char *at = text + length + strspn(text + length, " =");
    long value, before;
    if (machine_pattern_number(&at, &tree->scope, &value) < 0 || *at != '\0')
        return failure_set(failure, -EINVAL, "cannot read the setting '%s'", text);
    if (machine_scope_get(&tree->scope, text, length, &before))
        return 0;
    if (machine_scope_add(&tree->scope, text, length, value) < 0)
        return failure_set(failure, -EINVAL, "'%s': expected a short name in small letters", text);
    return 0;
}

static int read_file(struct machine_tree *tree, const char *name, int depth, struct failure *failure);

static int do_line(struct machine_tree *tree, char *text, int depth, struct failure *failure) {
    text += strspn(text, " ");
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    if (length == 0 || text[0] == '#')
        return 0;
    if (strncmp(text, "set ", 4) == 0)
        return do_set(tree, text + 4, failure);
    if (strncmp(text, "use ", 4) == 0)
        return read_file(tree, text + 4, depth + 1, failure);
    /* Three fields; a range or a rule may have no blanks. */
    char *rest = text;
    const char *path = strsep(&rest, " ");
    rest += rest != NULL ? strspn(rest, " ") : 0;
    const char *access = rest != NULL ? strsep(&rest, " ") : NULL;
    if (access == NULL)
        return failure_set(failure, -EINVAL, "'%s': expected a path, a kind and a content", path);
    rest += rest != NULL ? strspn(rest, " ") : 0;
    const struct line line = {.tree = tree,
                              .path = path,
                              .access = access,
                              .content = rest != NULL ? rest : "",
                              .failure = failure};
    return expand_ranges(&line, path, 0);
}

static int read_file(struct machine_tree *tree, const char *name, int depth, struct failure *failure) {
    char path[FILE_PATH_SIZE], line[LINE_SIZE];
    snprintf(path, sizeof path, "%s/%s.machine", MACHINES_FOLDER, name);
    if (depth > USE_DEPTH)
        return failure_set(failure, -ELOOP, "'%s': files use each other too deeply", path);
    cleanup_fclose FILE *stream = fopen(path, "re");
    if (stream == NULL)
        return failure_set(failure, -errno, "there is no machine '%s': cannot read '%s': %s", name, path,
                           strerror(errno));
    for (int number = 1; fgets(line, sizeof line, stream) != NULL; number++) {
        struct failure own = {0};
        int status = strchr(line, '\n') == NULL ? failure_set(&own, -E2BIG, "the line is too long")
                                                : do_line(tree, line, depth, &own);
        if (status < 0 && own.text[0] == '\0')
            failure_set(&own, status, "%s", strerror(-status));
        /* A file that this one uses has said where. */
        if (status < 0 && strncmp(own.text, MACHINES_FOLDER, strlen(MACHINES_FOLDER)) == 0)
            return failure_set(failure, status, "%s", own.text);
        if (status < 0)
            return failure_set(failure, status, "%s:%d: %s", path, number, own.text);
    }
    return ferror(stream) ? failure_set(failure, -EIO, "cannot read '%s'", path) : 0;
}

/* ---- All of it */

static int compare_entries(const void *a, const void *b) {
    const struct machine_entry *first = a, *second = b;
    int order = strcmp(first->path, second->path);
    return order != 0 ? order : first->order < second->order ? -1 : 1;
}

/* SECOND, of the same path and later, takes the place of FIRST or goes behind it. */
static int fold(struct machine_entry *first, struct machine_entry *second, struct failure *failure) {
    if (second->more) {
        struct text content cleanup(text_clear);
        text_init(&content, MACHINE_TREE_CONTENT_MAX);
        int status = text_append_string(&content, first->content);
        if (status == 0)
            status = text_append_string(&content, second->content);
        if (status < 0)
            return failure_set(failure, status, "'%s' has more than %d bytes", first->path,
                               MACHINE_TREE_CONTENT_MAX);
        free(second->content);
        second->content = text_take(&content);
    }
    clear_entry(first);
    *first = *second;
    return 0;
}

static int sort_and_fold(struct machine_tree *tree, struct failure *failure) {
    if (tree->count == 0)
        return failure_set(failure, -EINVAL, "a machine has no files");
    qsort(tree->entries, tree->count, sizeof *tree->entries, compare_entries);
    size_t kept = 1, at = 1;
    int status = 0;
    for (; status == 0 && at < tree->count; at++) {
        struct machine_entry *last = &tree->entries[kept - 1], *next = &tree->entries[at];
        if (strcmp(last->path, next->path) != 0)
            tree->entries[kept++] = *next;
        else if ((status = fold(last, next, failure)) < 0)
            clear_entry(next);
    }
    for (; at < tree->count; at++)
        clear_entry(&tree->entries[at]);
    tree->count = kept;
    return status;
}

int machine_tree_read(struct machine_tree *ret, const char *specification, struct failure *failure) {
    struct machine_tree tree = {0};
    char copy[512], *rest = copy;
    if (snprintf(copy, sizeof copy, "%s", specification) >= (int)sizeof copy || strchr(copy, '.') != NULL)
        return failure_set(failure, -EINVAL, "'%s' is no machine: expected NAME or NAME:SETTING=NUMBER,...",
                           specification);
    const char *name = strsep(&rest, ":");
    int status = 0;
    for (char *setting; status == 0 && (setting = strsep(&rest, ",")) != NULL;)
        status = do_set(&tree, setting, failure);
    if (status == 0)
        status = read_file(&tree, name, 0, failure);
    if (status == 0)
        status = sort_and_fold(&tree, failure);
    if (status < 0) {
        machine_tree_clear(&tree);
        return status;
    }
    *ret = tree;
    return 0;
}

static int compare_path(const void *path, const void *entry) {
    return strcmp(path, ((const struct machine_entry *)entry)->path);
}

const struct machine_entry *machine_tree_find(const struct machine_tree *tree, const char *path) {
    return bsearch(path, tree->entries, tree->count, sizeof *tree->entries, compare_path);
}

/* ---- In a folder */

/* PATH with the folders above it, but for those that it has in common with the one made before. */
static int make_folders(int root, const char *path, size_t known, struct failure *failure) {
    char part[MACHINE_TREE_PATH_SIZE];
    for (size_t i = known; path[i] != '\0'; i++) {
        if (path[i] != '/')
            continue;
        snprintf(part, sizeof part, "%.*s", (int)i, path);
        if (mkdirat(root, part, 0755) < 0 && errno != EEXIST)
            return failure_set(failure, -errno, "cannot make the folder '%s': %s", part, strerror(errno));
    }
    return 0;
}

static int write_entry(int root, const struct machine_entry *entry, struct failure *failure) {
    int status = 0;
    if (entry->kind == MACHINE_FOLDER)
        status = mkdirat(root, entry->path, entry->mode) < 0 && errno != EEXIST ? -errno : 0;
    else if (entry->kind == MACHINE_LINK)
        status = symlinkat(entry->content, root, entry->path) < 0 ? -errno : 0;
    else {
        size_t length = strlen(entry->content);
        cleanup_close int file = openat(root, entry->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file < 0 || write(file, entry->content, length) != (ssize_t)length ||
            fchmod(file, entry->mode) < 0)
            status = -errno;
    }
    return status == 0 ? 0
                       : failure_set(failure, status, "cannot make '%s': %s", entry->path, strerror(-status));
}

int machine_tree_write(const struct machine_tree *tree, const char *folder, struct failure *failure) {
    if (mkdir(folder, 0755) < 0 && errno != EEXIST)
        return failure_set(failure, -errno, "cannot make the folder '%s': %s", folder, strerror(errno));
    cleanup_close int root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return failure_set(failure, -errno, "cannot open '%s': %s", folder, strerror(errno));
    const char *before = "";
    int status = 0;
    for (size_t i = 0; status == 0 && i < tree->count; i++) {
        const char *path = tree->entries[i].path;
        size_t common = 0;
        while (path[common] != '\0' && path[common] == before[common])
            common++;
        status = make_folders(root, path, common, failure);
        if (status == 0)
            status = write_entry(root, &tree->entries[i], failure);
        before = path;
    }
    return status;
}

int machine_tree_make(const char *specification, const char *folder, struct failure *failure) {
    struct machine_tree tree = {0};
    int status = machine_tree_read(&tree, specification, failure);
    if (status == 0)
        status = machine_tree_write(&tree, folder, failure);
    machine_tree_clear(&tree);
    return status;
}
