#include "tests/test-bed/kernel.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINKS_MAX = 8 };

#define CPU "sys/devices/system/cpu"

/* ---- Finding */

uint32_t kernel_number_of(const struct kernel *kernel, const struct kernel_file *file) {
    return (uint32_t)(file - kernel->files);
}

static struct kernel_file *child_named(const struct kernel *kernel, uint32_t folder, const char *name,
                                       size_t length) {
    for (uint32_t i = kernel->files[folder].first; i != 0; i = kernel->files[i].next)
        if (strncmp(kernel->files[i].name, name, length) == 0 && kernel->files[i].name[length] == '\0')
            return &kernel->files[i];
    return NULL;
}

struct kernel_file *kernel_child(const struct kernel *kernel, uint32_t folder, const char *name) {
    return child_named(kernel, folder, name, strlen(name));
}

static struct kernel_file *resolve(struct kernel *kernel, uint32_t start, const char *path, int links) {
    uint32_t at = start;
    while (*path != '\0') {
        size_t length = strcspn(path, "/");
        if (length == 2 && memcmp(path, "..", 2) == 0)
            at = kernel->files[at].parent;
        else if (length > 0) {
            struct kernel_file *file = child_named(kernel, at, path, length);
            if (file == NULL || links == LINKS_MAX)
                return NULL;
            if (file->kind == MACHINE_LINK)
                file = resolve(kernel, at, file->initial, links + 1);
            if (file == NULL)
                return NULL;
            at = kernel_number_of(kernel, file);
        }
        path += length + (path[length] == '/');
    }
    return &kernel->files[at];
}

struct kernel_file *kernel_find(struct kernel *kernel, const char *path) {
    return resolve(kernel, KERNEL_ROOT, path, 0);
}

const char *kernel_path(const struct kernel *kernel, const struct kernel_file *file,
                        char path[MACHINE_TREE_PATH_SIZE]) {
    char *at = path + MACHINE_TREE_PATH_SIZE - 1;
    *at = '\0';
    for (; file != &kernel->files[KERNEL_ROOT]; file = &kernel->files[file->parent]) {
        size_t length = strlen(file->name);
        if (at - path < (long)length + 1)
            break;
        at -= length;
        memcpy(at, file->name, length);
        *--at = '/';
    }
    return memmove(path, at, strlen(at) + 1);
}

/* ---- Coming up */

static void add_file(struct kernel *kernel, uint32_t parent, const char *name, enum machine_kind kind,
                     unsigned mode) {
    uint32_t number = kernel->count++;
    kernel->files[number] = (struct kernel_file){
        .name = name, .parent = parent, .kind = kind, .mode = mode, .initial = "", .arguments = "", .pu = -1};
    if (number == KERNEL_ROOT)
        return;
    /* Behind the others: a machine's files are sorted. */
    uint32_t *last = &kernel->files[parent].first;
    while (*last != 0)
        last = &kernel->files[*last].next;
    *last = number;
}

/* How many folders, at most, the machine's paths have above their files: those that begin where the path
 * before was another. */
static size_t count_folders(const struct machine_tree *machine) {
    size_t count = 0;
    const char *before = "";
    for (size_t i = 0; i < machine->count; i++) {
        const char *path = machine->entries[i].path;
        size_t common = 0;
        while (path[common] != '\0' && path[common] == before[common])
            common++;
        for (const char *slash = strchr(path + common, '/'); slash != NULL; slash = strchr(slash + 1, '/'))
            count++;
        before = path;
    }
    return count;
}

/* The rule "NAME,ARGUMENTS" of ENTRY. */
static int take_rule(struct kernel_file *file, const struct machine_entry *entry, struct failure *failure) {
    size_t length = strcspn(entry->rule, ",");
    if (length == 0)
        return 0;
    file->rule = kernel_rule_find(entry->rule, length);
    file->arguments = entry->rule + length + (entry->rule[length] == ',');
    if (file->rule == NULL)
        return failure_set(failure, -EINVAL, "'%s' of the machine has the rule '%s', which nobody knows",
                           entry->path, entry->rule);
    return 0;
}

static int take_entry(struct kernel *kernel, const struct machine_entry *entry, struct failure *failure) {
    uint32_t at = KERNEL_ROOT;
    const char *rest = entry->path;
    for (const char *slash; (slash = strchr(rest, '/')) != NULL; rest = slash + 1) {
        struct kernel_file *folder = child_named(kernel, at, rest, (size_t)(slash - rest));
        if (folder == NULL) {
            char *name = strndup(rest, (size_t)(slash - rest));
            if (name == NULL)
                return failure_memory(failure);
            add_file(kernel, at, name, MACHINE_FOLDER, 0755);
            at = kernel->count - 1;
            kernel->files[at].own_name = name;
        } else
            at = kernel_number_of(kernel, folder);
    }
    struct kernel_file *known = kernel_child(kernel, at, rest);
    if (known != NULL && known->kind == MACHINE_FOLDER)
        return 0;
    add_file(kernel, at, rest, entry->kind, entry->mode);
    struct kernel_file *file = &kernel->files[kernel->count - 1];
    file->initial = entry->content;
    return take_rule(file, entry, failure);
}

/* FILE and what is below it are there only with processor PU. */
static void tie(struct kernel *kernel, struct kernel_file *file, int pu) {
    file->pu = pu;
    for (uint32_t i = file->first; i != 0; i = kernel->files[i].next)
        tie(kernel, &kernel->files[i], pu);
}

static void find_pu(struct kernel *kernel, int pu) {
    static const char *const tied[] = {"topology", "cache",   "thermal_throttle", "power",
                                       "cpuidle",  "cpufreq", "acpi_cppc"};
    char path[128];
    snprintf(path, sizeof path, CPU "/cpu%d", pu);
    struct kernel_file *folder = kernel_find(kernel, path), *online, *siblings, *policy;
    if (folder == NULL)
        return;
    struct kernel_pu *known = &kernel->pus[pu];
    known->present = true;
    uint32_t number = kernel_number_of(kernel, folder);
    online = kernel_child(kernel, number, "online");
    known->online = online == NULL || kernel_stored(online)[0] == '1';
    snprintf(path, sizeof path, CPU "/cpu%d/topology/thread_siblings_list", pu);
    siblings = kernel_find(kernel, path);
    known->first = siblings == NULL || strtol(siblings->initial, NULL, 10) == pu;
    snprintf(path, sizeof path, CPU "/cpu%d/cpufreq", pu);
    policy = kernel_find(kernel, path);
    known->policy = policy == NULL ? 0 : kernel_number_of(kernel, policy);
    if (policy != NULL) {
        policy->policy = true;
        for (uint32_t i = policy->first; i != 0; i = kernel->files[i].next)
            kernel->files[i].policy = true;
    }
    for (size_t i = 0; i < sizeof tied / sizeof *tied; i++) {
        struct kernel_file *file = kernel_child(kernel, number, tied[i]);
        if (file != NULL)
            tie(kernel, file, pu);
    }
}

int kernel_new(const char *machine, struct kernel **ret, struct failure *failure) {
    struct kernel *kernel = calloc(1, sizeof *kernel);
    if (kernel == NULL)
        return failure_memory(failure);
    kernel->offline_next = -1;
    int status = machine_tree_read(&kernel->machine, machine, failure);
    if (status == 0) {
        size_t most = kernel->machine.count + count_folders(&kernel->machine) + 2;
        kernel->files = calloc(most, sizeof *kernel->files);
        if (kernel->files == NULL)
            status = failure_memory(failure);
    }
    if (status == 0) {
        kernel->count = KERNEL_ROOT;
        add_file(kernel, KERNEL_ROOT, "", MACHINE_FOLDER, 0755);
    }
    for (size_t i = 0; status == 0 && i < kernel->machine.count; i++)
        status = take_entry(kernel, &kernel->machine.entries[i], failure);
    for (int pu = 0; status == 0 && pu < KERNEL_PU_MAX; pu++)
        find_pu(kernel, pu);
    if (status < 0) {
        kernel_free(kernel);
        return status;
    }
    clock_gettime(CLOCK_MONOTONIC, &kernel->heat.last);
    *ret = kernel;
    return 0;
}

void kernel_free(struct kernel *kernel) {
    if (kernel == NULL)
        return;
    for (uint32_t i = 0; i < kernel->count; i++) {
        free(kernel->files[i].own_name);
        free(kernel->files[i].stored);
        if (kernel->files[i].fault != NULL)
            free(kernel->files[i].fault->pinned);
        free(kernel->files[i].fault);
    }
    for (size_t i = 0; i < kernel->logged && i < KERNEL_LOG_MAX; i++)
        free(kernel->log[i].value);
    free(kernel->files);
    machine_tree_clear(&kernel->machine);
    free(kernel);
}

/* ---- Values */

const char *kernel_stored(const struct kernel_file *file) {
    return file->stored != NULL ? file->stored : file->initial;
}

int kernel_store(struct kernel_file *file, const char *value) {
    char *copy;
    if (asprintf(&copy, "%s\n", value) < 0)
        return -ENOMEM;
    free(file->stored);
    file->stored = copy;
    return 0;
}

long kernel_stored_number(const struct kernel *kernel, uint32_t folder, const char *name, long otherwise) {
    const struct kernel_file *file = folder == 0 ? NULL : kernel_child(kernel, folder, name);
    return file == NULL ? otherwise : strtol(kernel_stored(file), NULL, 10);
}

long kernel_setting(const struct kernel *kernel, const char *name, long otherwise) {
    long value;
    return machine_scope_get(&kernel->machine.scope, name, strlen(name), &value) ? value : otherwise;
}

struct kernel_fault *kernel_fault_of(struct kernel_file *file) {
    if (file->fault == NULL)
        file->fault = calloc(1, sizeof *file->fault);
    return file->fault;
}

/* ---- Processors */

int kernel_online_count(const struct kernel *kernel) {
    int count = 0;
    for (int i = 0; i < KERNEL_PU_MAX; i++)
        count += kernel->pus[i].online;
    return count;
}

static bool policy_is_active(const struct kernel *kernel, uint32_t folder) {
    for (int i = 0; i < KERNEL_PU_MAX; i++)
        if (kernel->pus[i].online && kernel->pus[i].policy == folder)
            return true;
    return false;
}

static void forget(struct kernel *kernel, struct kernel_file *file) {
    free(take_pointer(file->stored));
    for (uint32_t i = file->first; i != 0; i = kernel->files[i].next)
        forget(kernel, &kernel->files[i]);
}

void kernel_set_online(struct kernel *kernel, int pu, bool online) {
    struct kernel_pu *known = &kernel->pus[pu];
    if (known->online == online)
        return;
    char path[128];
    snprintf(path, sizeof path, CPU "/cpu%d/online", pu);
    struct kernel_file *file = kernel_find(kernel, path);
    if (file != NULL)
        kernel_store(file, online ? "1" : "0");
    /* What comes back is as after a boot: a policy when its first processor does. */
    if (online && !kernel->remembers) {
        if (known->policy != 0 && !policy_is_active(kernel, known->policy))
            forget(kernel, &kernel->files[known->policy]);
        snprintf(path, sizeof path, CPU "/cpu%d", pu);
        struct kernel_file *folder = kernel_find(kernel, path);
        for (uint32_t i = folder->first; i != 0; i = kernel->files[i].next)
            if (kernel->files[i].pu == pu)
                forget(kernel, &kernel->files[i]);
    }
    known->online = online;
}

/* ---- Reading and writing */

bool kernel_is_there(const struct kernel *kernel, const struct kernel_file *file) {
    if (file->pu >= 0 && !kernel->pus[file->pu].online)
        return false;
    for (;; file = &kernel->files[file->parent]) {
        if (file->fault != NULL && file->fault->gone)
            return false;
        if (file == &kernel->files[KERNEL_ROOT])
            return true;
    }
}

/* What keeps FILE from being read or written at all: 0 or a negative errno. */
static int trouble_with(const struct kernel *kernel, const struct kernel_file *file) {
    if (!kernel_is_there(kernel, file))
        return -ENODEV;
    return file->policy && !policy_is_active(kernel, file->parent) ? -EBUSY : 0;
}

int kernel_read(struct kernel *kernel, const struct kernel_file *file, struct text *shown) {
    int status = trouble_with(kernel, file);
    if (status == 0 && file->fault != NULL)
        status = -file->fault->unreadable;
    if (status < 0)
        return status;
    if (file->fault != NULL && file->fault->pinned != NULL)
        return text_append_string(shown, file->fault->pinned);
    if (file->rule != NULL && file->rule->show != NULL)
        return file->rule->show(kernel, file, shown);
    return text_append_string(shown, kernel_stored(file));
}

int kernel_change(struct kernel *kernel, struct kernel_file *file, const char *bytes, size_t length) {
    char value[KERNEL_VALUE_SIZE];
    if (file->rule == NULL || file->rule->write == NULL)
        return -EACCES;
    if (length >= sizeof value || memchr(bytes, '\0', length) != NULL)
        return -EINVAL;
    memcpy(value, bytes, length);
    if (length > 0 && value[length - 1] == '\n')
        length--;
    value[length] = '\0';
    return file->rule->write(kernel, file, value);
}

static int write_with_faults(struct kernel *kernel, struct kernel_file *file, const char *bytes,
                             size_t length) {
    struct kernel_fault none = {0}, *fault = file->fault != NULL ? file->fault : &none;
    if (kernel->offline_next >= 0 && kernel->offline_after-- == 0) {
        kernel_set_online(kernel, kernel->offline_next, false);
        kernel->offline_next = -1;
    }
    int status = trouble_with(kernel, file);
    if (status < 0)
        return status;
    if (fault->refuse != 0 && fault->refuse_times != 0) {
        fault->refuse_times -= fault->refuse_times > 0;
        return -fault->refuse;
    }
    return fault->stuck ? 0 : kernel_change(kernel, file, bytes, length);
}

int kernel_write(struct kernel *kernel, struct kernel_file *file, const char *bytes, size_t length) {
    int status = write_with_faults(kernel, file, bytes, length);
    struct kernel_write *entry = &kernel->log[kernel->logged++ % KERNEL_LOG_MAX];
    free(entry->value);
    *entry = (struct kernel_write){
        .file = kernel_number_of(kernel, file),
        .status = status,
        .value = strndup(bytes, length > 0 && bytes[length - 1] == '\n' ? length - 1 : length)};
    return status;
}
