#include "tests/test-bed/kernel.h"

#include "engine/foundation/cleanup.h"
#include "tests/test-bed/settings.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES_MAX = 60000 };

/* An order while it is done: WORDS after its name. */
struct ordering {
    struct kernel *kernel;
    int count;
    const char *const *words;
    struct text *answer;
    struct failure *failure;
};

/* ---- Which files: a path, or a pattern as the shell has it */

/* PATH itself, be it a link. */
static struct kernel_file *find_unfollowed(struct kernel *kernel, const char *path) {
    char folder[MACHINE_TREE_PATH_SIZE];
    const char *name = strrchr(path, '/');
    if (name == NULL ||
        snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path) >= (int)sizeof folder)
        return NULL;
    const struct kernel_file *parent = kernel_find(kernel, folder);
    return parent == NULL ? NULL : kernel_child(kernel, kernel_number_of(kernel, parent), name + 1);
}

static int for_each(const struct ordering *ordering, const char *pattern,
                    int (*function)(const struct ordering *ordering, struct kernel_file *file)) {
    struct kernel *kernel = ordering->kernel;
    int status = 0, found = 0;
    if (strpbrk(pattern, "*?[") == NULL) {
        struct kernel_file *file = kernel_find(kernel, pattern), *link = find_unfollowed(kernel, pattern);
        if (file != NULL)
            found++, status = function(ordering, file);
        if (status == 0 && link != NULL && link != file)
            status = function(ordering, link);
    } else
        for (uint32_t i = KERNEL_ROOT + 1; status == 0 && i < kernel->count; i++) {
            char path[MACHINE_TREE_PATH_SIZE];
            if (fnmatch(pattern, kernel_path(kernel, &kernel->files[i], path), FNM_PATHNAME) == 0)
                found++, status = function(ordering, &kernel->files[i]);
        }
    if (status == 0 && found == 0)
        return failure_set(ordering->failure, -ENOENT, "the machine has no file '%s'", pattern);
    return status == -ENOMEM ? failure_memory(ordering->failure) : status;
}

/* ---- Faults of files; WORDS: kind, path, perhaps a number */

static int fault_number(const struct ordering *ordering, long otherwise, long *ret) {
    *ret = otherwise;
    if (ordering->count < 3)
        return 0;
    if (settings_number(ordering->words[2], 0, TIMES_MAX, ret) < 0)
        return failure_set(ordering->failure, -EINVAL, "'%s' is no number from 0 to %d", ordering->words[2],
                           TIMES_MAX);
    return 0;
}

static int set_fault(const struct ordering *ordering, struct kernel_file *file) {
    static const struct {
        const char *kind;
        int error;
    } refusals[] = {{"busy", EBUSY}, {"denied", EPERM}};
    const char *kind = ordering->words[0];
    struct kernel_fault *fault = kernel_fault_of(file);
    long number;
    if (fault == NULL)
        return -ENOMEM;
    int status = fault_number(ordering, -1, &number);
    if (status < 0)
        return status;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (strcmp(kind, refusals[i].kind) == 0) {
            fault->refuse = refusals[i].error;
            fault->refuse_times = number;
        }
    if (strcmp(kind, "stuck") == 0)
        fault->stuck = true;
    if (strcmp(kind, "gone") == 0 || strcmp(kind, "back") == 0)
        fault->gone = kind[0] == 'g';
    if (strcmp(kind, "unreadable") == 0)
        fault->unreadable = EIO;
    return 0;
}

static int clear_fault(const struct ordering *ordering, struct kernel_file *file) {
    (void)ordering;
    if (file->fault != NULL)
        free(file->fault->pinned);
    free(take_pointer(file->fault));
    return 0;
}

/* ---- Faults of the machine */

static int read_switch(const struct ordering *ordering, bool *ret) {
    const char *word = ordering->count > 1 ? ordering->words[1] : "on";
    if (strcmp(word, "on") != 0 && strcmp(word, "off") != 0)
        return failure_set(ordering->failure, -EINVAL, "'%s' is neither on nor off", word);
    *ret = strcmp(word, "on") == 0;
    return 0;
}

static int do_offline(const struct ordering *ordering) {
    struct kernel *kernel = ordering->kernel;
    long pu, after;
    if (ordering->count < 2 || settings_number(ordering->words[1], 1, KERNEL_PU_MAX - 1, &pu) < 0 ||
        !kernel->pus[pu].present)
        return failure_set(ordering->failure, -EINVAL, "'%s' is no processor that can go away",
                           ordering->count < 2 ? "" : ordering->words[1]);
    int status = fault_number(ordering, -1, &after);
    if (status < 0)
        return status;
    if (after < 0)
        kernel_set_online(kernel, (int)pu, false);
    else {
        kernel->offline_next = (int)pu;
        kernel->offline_after = after;
    }
    return 0;
}

static int do_none(const struct ordering *ordering) {
    struct kernel *kernel = ordering->kernel;
    if (ordering->count > 1)
        return for_each(ordering, ordering->words[1], clear_fault);
    for (uint32_t i = 0; i < kernel->count; i++)
        clear_fault(ordering, &kernel->files[i]);
    kernel->resets_turbo = kernel->remembers = false;
    kernel->offline_next = -1;
    return 0;
}

static int do_fault(const struct ordering *ordering) {
    static const char *const kinds[] = {"busy", "denied", "stuck", "gone", "back", "unreadable"};
    const char *kind = ordering->words[0];
    if (strcmp(kind, "resets-turbo") == 0)
        return read_switch(ordering, &ordering->kernel->resets_turbo);
    if (strcmp(kind, "remembers") == 0)
        return read_switch(ordering, &ordering->kernel->remembers);
    if (strcmp(kind, "offline") == 0)
        return do_offline(ordering);
    if (strcmp(kind, "none") == 0)
        return do_none(ordering);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return ordering->count > 1
                       ? for_each(ordering, ordering->words[1], set_fault)
                       : failure_set(ordering->failure, -EINVAL, "fault %s: expected a path", kind);
    return failure_set(ordering->failure, -EINVAL, "'%s' is no fault; see bed help", kind);
}

/* ---- Values */

/* What can be written changes as if somebody had; what cannot shows the value from now on. */
static int set_value(const struct ordering *ordering, struct kernel_file *file) {
    const char *value = ordering->words[1];
    if (file->kind != MACHINE_FILE)
        return 0;
    if (file->rule != NULL && file->rule->write != NULL) {
        int status = kernel_change(ordering->kernel, file, value, strlen(value));
        return status == 0 ? 0
                           : failure_set(ordering->failure, status, "'%s' does not take '%s': %s", file->name,
                                         value, strerror(-status));
    }
    struct kernel_fault *fault = kernel_fault_of(file);
    char *pinned = NULL;
    if (fault == NULL || asprintf(&pinned, "%s\n", value) < 0)
        return -ENOMEM;
    free(fault->pinned);
    fault->pinned = pinned;
    return 0;
}

static int unset_value(const struct ordering *ordering, struct kernel_file *file) {
    (void)ordering;
    if (file->fault != NULL)
        free(take_pointer(file->fault->pinned));
    return 0;
}

static int do_set(const struct ordering *ordering) {
    return for_each(ordering, ordering->words[0], set_value);
}

static int do_unset(const struct ordering *ordering) {
    return for_each(ordering, ordering->words[0], unset_value);
}

static int do_load(const struct ordering *ordering) {
    struct kernel_heat *heat = &ordering->kernel->heat;
    long percent = 0;
    bool automatic = strcmp(ordering->words[0], "auto") == 0;
    if (!automatic && settings_number(ordering->words[0], 0, 100, &percent) < 0)
        return failure_set(ordering->failure, -EINVAL, "'%s' is neither auto nor a number from 0 to 100",
                           ordering->words[0]);
    kernel_heat_advance(ordering->kernel);
    heat->forced = !automatic;
    heat->load = (double)percent / 100;
    return 0;
}

/* ---- What there is */

/* As the agent's lines have fields. */
static int put_field(struct text *answer, const char *field) {
    int status = 0;
    for (; status == 0 && *field != '\0'; field++) {
        const char *escaped = *field == '\n'   ? "\\n"
                              : *field == '\t' ? "\\t"
                              : *field == '\\' ? "\\\\"
                                               : NULL;
        status =
            escaped != NULL ? text_append_string(answer, escaped) : text_append_character(answer, *field);
    }
    return status;
}

static int put_file(const struct ordering *ordering, const struct kernel_file *file) {
    struct kernel *kernel = ordering->kernel;
    char path[MACHINE_TREE_PATH_SIZE];
    struct text shown cleanup(text_clear);
    text_init(&shown, KERNEL_SHOWN_MAX);
    kernel_path(kernel, file, path);
    bool both = file->kind == MACHINE_FILE && (file->mode & 0444) != 0 && (file->mode & 0222) != 0;
    if (!both || !kernel_is_there(kernel, file) ||
        (ordering->count > 0 && fnmatch(ordering->words[0], path, 0) != 0))
        return 0;
    int status = kernel_read(kernel, file, &shown);
    if (status < 0)
        return text_printf(ordering->answer, "%s\t!%s\n", path, strerrorname_np(-status));
    status = text_printf(ordering->answer, "%s\t", path);
    if (status == 0)
        status = put_field(ordering->answer, shown.bytes);
    return status == 0 ? text_append_string(ordering->answer, "\n") : status;
}

/* The files are in the order of their paths already, but for folders that came in between. */
static int put_folder(const struct ordering *ordering, uint32_t folder) {
    const struct kernel *kernel = ordering->kernel;
    int status = 0;
    for (uint32_t i = kernel->files[folder].first; status == 0 && i != 0; i = kernel->files[i].next)
        status = kernel->files[i].kind == MACHINE_FOLDER ? put_folder(ordering, i)
                                                         : put_file(ordering, &kernel->files[i]);
    return status;
}

static int do_files(const struct ordering *ordering) {
    if (put_folder(ordering, KERNEL_ROOT) < 0)
        return failure_set(ordering->failure, -EFBIG, "the machine's files are too much for an answer");
    return 0;
}

static int do_writes(const struct ordering *ordering) {
    struct kernel *kernel = ordering->kernel;
    if (ordering->count > 0) {
        if (strcmp(ordering->words[0], "forget") != 0)
            return failure_set(ordering->failure, -EINVAL, "writes: expected nothing or 'forget'");
        for (size_t i = 0; i < kernel->logged && i < KERNEL_LOG_MAX; i++)
            free(take_pointer(kernel->log[i].value));
        kernel->logged = 0;
        return 0;
    }
    size_t first = kernel->logged > KERNEL_LOG_MAX ? kernel->logged - KERNEL_LOG_MAX : 0;
    for (size_t i = first; i < kernel->logged; i++) {
        const struct kernel_write *entry = &kernel->log[i % KERNEL_LOG_MAX];
        char path[MACHINE_TREE_PATH_SIZE];
        int status =
            text_printf(ordering->answer, "%s\t", kernel_path(kernel, &kernel->files[entry->file], path));
        if (status == 0)
            status = put_field(ordering->answer, entry->value != NULL ? entry->value : "");
        if (status == 0)
            status = text_printf(ordering->answer, "\t%s\n",
                                 entry->status < 0 ? strerrorname_np(-entry->status) : "");
        if (status < 0)
            return failure_set(ordering->failure, status, "the writes are too many for an answer");
    }
    return 0;
}

int kernel_order(struct kernel *kernel, int count, const char *const *words, struct text *answer,
                 struct failure *failure) {
    static const struct {
        const char *name;
        int least;
        int (*function)(const struct ordering *ordering);
    } orders[] = {{"fault", 1, do_fault}, {"set", 2, do_set},     {"unset", 1, do_unset},
                  {"load", 1, do_load},   {"files", 0, do_files}, {"writes", 0, do_writes}};
    const struct ordering ordering = {
        .kernel = kernel, .count = count - 1, .words = words + 1, .answer = answer, .failure = failure};
    for (size_t i = 0; count > 0 && i < sizeof orders / sizeof *orders; i++)
        if (strcmp(words[0], orders[i].name) == 0 && count > orders[i].least)
            return orders[i].function(&ordering);
    return failure_set(failure, -EINVAL, "an order that is none");
}
