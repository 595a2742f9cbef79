#include "engine/agent/machine/facts.h"

#include "engine/agent/machine/machine.h"
#include "engine/agent/machine/pu-set.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"
#include "engine/foundation/path.h"
#include "engine/foundation/secret.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

enum {
    LARGE_FILE = 256 << 10,
    CGROUP_FILE = 16 << 10,
    NUMA_LIMIT = 1024,
    ENVIRONMENT_LIMIT = 512 << 10, /* bytes of the public variables; the rest of FACTS fits beside them */
};

static void put_head(struct protocol_writer *writer, enum protocol_fact kind, size_t length) {
    protocol_put_u16(writer, (uint16_t)kind);
    protocol_put_u32(writer, (uint32_t)length);
}

static void put_text(struct protocol_writer *writer, enum protocol_fact kind, const char *text) {
    size_t length = strlen(text);
    put_head(writer, kind, length);
    protocol_put_bytes(writer, text, length);
}

/* ---- names */

/* Appends the names of host, kernel and machine, from files or else from uname(2). */
static void put_names(struct protocol_writer *writer, const struct machine *machine, struct text *scratch) {
    struct utsname name = {0};
    if (!machine->captured)
        uname(&name);
    const struct {
        enum protocol_fact kind;
        const char *path, *otherwise;
    } facts[] = {
        {PROTOCOL_FACT_HOST_NAME, "proc/sys/kernel/hostname", name.nodename},
        {PROTOCOL_FACT_KERNEL_NAME, "proc/sys/kernel/ostype", name.sysname},
        {PROTOCOL_FACT_KERNEL_RELEASE, "proc/sys/kernel/osrelease", name.release},
        {PROTOCOL_FACT_KERNEL_VERSION, "proc/sys/kernel/version", name.version},
        {PROTOCOL_FACT_MACHINE, "proc/sys/kernel/arch", name.machine}, /* a file since Linux 6.1 */
        {PROTOCOL_FACT_BOOT_ID, "proc/sys/kernel/random/boot_id", ""},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        bool there = machine_read(machine, facts[i].path, scratch) == 0;
        put_text(writer, facts[i].kind, there ? scratch->bytes : facts[i].otherwise);
    }
}

/* ---- processors */

/* Finds the value in a line "NAME:<blanks>VALUE" of CONTENT, up to the line's end; NULL: there is no such
 * line. */
static const char *find_field(const char *content, const char *name) {
    size_t length = strlen(name);
    for (const char *line = content; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            return line + length + 1 + strspn(line + length + 1, " \t");
    }
    return NULL;
}

/* Reads the PUs that this process may use, from /proc/self/status. */
static int read_allowed(const struct machine *machine, struct text *scratch, struct pu_set *ret,
                        struct failure *failure) {
    int r = machine_read(machine, "proc/self/status", scratch);
    const char *list = r < 0 ? NULL : find_field(scratch->bytes, "Cpus_allowed_list");
    if (!list || pu_set_parse(list, ret) < 0)
        return failure_set(failure, r < 0 ? r : -EINVAL,
                           "'/proc/self/status' does not say which PUs may be used (Cpus_allowed_list)");
    return 0;
}

struct processors {
    struct pu_set online, allowed, nodes;
    int16_t node_of[PROTOCOL_PU_LIMIT];
};

/* Reads the NUMA nodes and which PUs they have; a kernel without NUMA has none. */
static void read_nodes(const struct machine *machine, struct processors *processors) {
    memset(processors->node_of, 0xff, sizeof processors->node_of); /* -1 */
    if (machine_read_set(machine, "sys/devices/system/node/online", &processors->nodes) < 0)
        processors->nodes = (struct pu_set){0};
    for (unsigned node = pu_set_first(&processors->nodes); node < NUMA_LIMIT;
         node = pu_set_next(&processors->nodes, node)) {
        struct pu_set members;
        const char *path = machine_path("sys/devices/system/node/node%u/cpulist", node);
        if (machine_read_set(machine, path, &members) < 0)
            continue;
        for (unsigned pu = pu_set_first(&members); pu < PROTOCOL_PU_LIMIT; pu = pu_set_next(&members, pu))
            processors->node_of[pu] = (int16_t)node;
    }
}

/* Appends a record for each online PU: core, package, NUMA node, first sibling, flags. */
static int put_processors(struct protocol_writer *writer, const struct machine *machine,
                          struct processors *processors, struct text *scratch, struct failure *failure) {
    const struct pu_set *online = &processors->online;
    int r = machine_read_set(machine, "sys/devices/system/cpu/online", &processors->online);
    if (r < 0)
        return failure_set(failure, r,
                           "'/sys/devices/system/cpu/online' does not say which PUs there are: %s",
                           strerror(-r));
    r = read_allowed(machine, scratch, &processors->allowed, failure);
    if (r < 0)
        return r;
    read_nodes(machine, processors);
    for (unsigned pu = pu_set_first(online); pu < PROTOCOL_PU_LIMIT; pu = pu_set_next(online, pu)) {
        struct pu_set siblings;
        machine_read_siblings(machine, pu, &siblings);
        unsigned first = pu_set_first(&siblings);
        put_head(writer, PROTOCOL_FACT_PU, 24);
        protocol_put_u32(writer, pu);
        protocol_put_u32(writer, (uint32_t)machine_read_topology(machine, pu, "core_id"));
        protocol_put_u32(writer, (uint32_t)machine_read_topology(machine, pu, "physical_package_id"));
        protocol_put_u32(writer, (uint32_t)(int32_t)processors->node_of[pu]);
        protocol_put_u32(writer, first);
        protocol_put_u32(writer, (first == pu ? PROTOCOL_PU_FIRST_SIBLING : 0u) |
                                     (pu_set_has(&processors->allowed, pu) ? PROTOCOL_PU_ALLOWED : 0u));
    }
    return 0;
}

/* ---- memory */

/* VALUE, such as "16384 kB", in bytes; 0 if it is no number. */
static uint64_t kilobytes(const char *value) {
    uint64_t number;
    if (!value || !number_parse_uint64(value, strspn(value, "0123456789"), &number) ||
        __builtin_mul_overflow(number, UINT64_C(1024), &number))
        return 0;
    return number;
}

/* Visits our control group and all above it, whose limits hold for us, too. The lines of /proc/self/cgroup
 * are "ID:CONTROLLERS:GROUP" with the names of controllers separated by commas; version 2 has one line
 * without controllers. */
void facts_visit_memory_limits(const struct machine *machine, facts_visit_path *visit, void *context) {
    char content[CGROUP_FILE], list[256], *rest = content, *line;
    if (machine_read_value(machine, "proc/self/cgroup", content, sizeof content) < 0)
        return;
    while ((line = strsep(&rest, "\n"))) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        snprintf(list, sizeof list, ",%s,", ++controllers);
        if (*controllers && !strstr(list, ",memory,"))
            continue;
        const char *mount = *controllers ? "sys/fs/cgroup/memory" : "sys/fs/cgroup";
        const char *file = *controllers ? "memory.limit_in_bytes" : "memory.max";
        for (char *end = strcmp(group, "/") == 0 ? group : group + strlen(group); end;
             end = strrchr(group, '/')) {
            *end = '\0';
            visit(machine, machine_path("%s%s/%s", mount, group, file), context);
        }
    }
}

/* Lowers *CONTEXT to the limit in the file PATH. Without a limit the file has "max", or in version 1 a number
 * near 2^63, and is skipped. */
static void lower_limit(const struct machine *machine, const char *path, void *context) {
    char text[64];
    uint64_t value, *limit = context;
    if (machine_read_value(machine, path, text, sizeof text) == 0 &&
        number_parse_uint64(text, strlen(text), &value) && value < UINT64_C(1) << 62 && value < *limit)
        *limit = value;
}

/* Writes the memory of each NUMA node: total and free bytes. A node without meminfo is left out. */
static void put_node_memory(struct protocol_writer *writer, const struct machine *machine,
                            const struct processors *processors, struct text *scratch) {
    for (unsigned node = pu_set_first(&processors->nodes); node < NUMA_LIMIT;
         node = pu_set_next(&processors->nodes, node)) {
        char total[64], available[64];
        if (machine_read(machine, machine_path("sys/devices/system/node/node%u/meminfo", node), scratch) < 0)
            continue;
        snprintf(total, sizeof total, "Node %u MemTotal", node);
        snprintf(available, sizeof available, "Node %u MemFree", node);
        put_head(writer, PROTOCOL_FACT_NODE_MEMORY, 20);
        protocol_put_u32(writer, node);
        protocol_put_u64(writer, kilobytes(find_field(scratch->bytes, total)));
        protocol_put_u64(writer, kilobytes(find_field(scratch->bytes, available)));
    }
}

/* Writes the memory of the machine: total, available, and the lowest limit of the agent's cgroups. Fails when
 * /proc/meminfo has no total. */
static int put_memory(struct protocol_writer *writer, const struct machine *machine, struct text *scratch,
                      struct failure *failure) {
    int r = machine_read(machine, "proc/meminfo", scratch);
    uint64_t total = r < 0 ? 0 : kilobytes(find_field(scratch->bytes, "MemTotal"));
    uint64_t available = r < 0 ? 0 : kilobytes(find_field(scratch->bytes, "MemAvailable"));
    if (total == 0)
        return failure_set(failure, r < 0 ? r : -EINVAL,
                           "'/proc/meminfo' does not say how much memory there is");
    put_head(writer, PROTOCOL_FACT_MEMORY, 24);
    protocol_put_u64(writer, total);
    protocol_put_u64(writer, available);
    uint64_t limit = UINT64_MAX;
    facts_visit_memory_limits(machine, lower_limit, &limit);
    protocol_put_u64(writer, limit);
    return 0;
}

/* ---- environment */

/* The beginnings of public variables "NAME=VALUE", each followed by a blank. */
static const char public_beginnings[] =
    "PATH= LANG= LANGUAGE= TZ= LC_ LD_LIBRARY_PATH= LD_PRELOAD= "
    "SLURM_JOB_ID= SLURM_NNODES= SLURM_NTASKS= SLURM_JOB_NODELIST= SLURM_CPU_BIND= SLURM_CPUS_PER_TASK= "
    "OAR_JOB_ID= OAR_NODEFILE= OAR_JOB_NAME= OAR_WORKDIR= "
    "OMP_ KMP_ GOMP_ OPENBLAS_ GOTO_ MKL_ BLIS_ MALLOC_ OMPI_ MPI NUMA_ UCX_ PSM2_ PSM3_ FI_ I_MPI_ HWLOC_ "
    "GLIBC_TUNABLES ";

bool facts_environment_is_public(const char *variable) {
    if (!strchr(variable, '=') || secret_is_variable(variable))
        return false;
    /* Compared with case: "path" is not PATH. */
    for (const char *at = public_beginnings, *end; *at; at = end + 1) {
        end = strchr(at, ' ');
        if (strncmp(variable, at, (size_t)(end - at)) == 0)
            return true;
    }
    return false;
}

static int compare_strings(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends the agent's public variables, sorted. -E2BIG beyond ENVIRONMENT_LIMIT. */
static int put_environment(struct protocol_writer *writer, struct failure *failure) {
    size_t count = 0, shown = 0, bytes = 0;
    while (environ[count])
        count++;
    cleanup_free char **variables = calloc(count + 1, sizeof *variables);
    if (!variables)
        return failure_memory(failure);
    for (size_t i = 0; i < count; i++)
        if (facts_environment_is_public(environ[i])) {
            variables[shown++] = environ[i];
            bytes += strlen(environ[i]);
        }
    if (bytes > ENVIRONMENT_LIMIT)
        return failure_set(failure, -E2BIG,
                           "the public environment of the agent has %zu bytes; at most %d fit", bytes,
                           ENVIRONMENT_LIMIT);
    qsort(variables, shown, sizeof *variables, compare_strings);
    for (size_t i = 0; i < shown; i++)
        put_text(writer, PROTOCOL_FACT_ENVIRONMENT, variables[i]);
    return 0;
}

/* ---- the run directory */

void facts_put_directory(struct protocol_writer *writer, int directory) {
    char path[PATH_MAX];
    (void)path_of_file(directory, "", path, sizeof path);
    put_text(writer, PROTOCOL_FACT_DIRECTORY, path);
    struct statvfs system;
    if (fstatvfs(directory, &system) < 0)
        return;
    put_head(writer, PROTOCOL_FACT_SPACE, 12);
    protocol_put_u32(writer, (system.f_flag & ST_NOEXEC ? PROTOCOL_SPACE_NO_EXEC : 0u) |
                                 (system.f_flag & ST_RDONLY ? PROTOCOL_SPACE_READ_ONLY : 0u));
    protocol_put_u64(writer, (uint64_t)system.f_bavail * system.f_frsize);
}

void facts_put_note(struct protocol_writer *writer, const char *note) {
    if (note[0])
        put_text(writer, PROTOCOL_FACT_NOTE, note);
}

int facts_put(struct protocol_writer *writer, const struct machine *machine, struct failure *failure) {
    cleanup(text_clear) struct text scratch;
    cleanup_free struct processors *processors = calloc(1, sizeof *processors);
    text_init(&scratch, LARGE_FILE);
    if (!processors)
        return failure_memory(failure);
    put_names(writer, machine, &scratch);
    int r = put_processors(writer, machine, processors, &scratch, failure);
    if (r == 0)
        r = put_memory(writer, machine, &scratch, failure);
    if (r < 0)
        return r;
    put_node_memory(writer, machine, processors, &scratch);
    return put_environment(writer, failure);
}
