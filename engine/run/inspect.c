/* The inspect phase: what each node is, from its agent, kept in nodes/<host>/ of the run's folder; and
 * whether the design fits into its memory. */
#include "engine/run/run-state.h"

#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Kept as they are. No serial numbers, no hardware addresses: those name a machine's owner, not its
 * performance. */
static const struct {
    const char *path; /* on the node */
    const char *name; /* in nodes/<host>/raw/ */
} raw_files[] = {
    {"/proc/cpuinfo", "cpuinfo"},
    {"/proc/meminfo", "meminfo"},
    {"/proc/cmdline", "cmdline"},
    {"/proc/version", "version"},
    {"/proc/modules", "modules"},
    {"/etc/os-release", "os-release"},
    {"/sys/class/dmi/id/sys_vendor", "dmi-sys_vendor"},
    {"/sys/class/dmi/id/product_name", "dmi-product_name"},
    {"/sys/class/dmi/id/board_name", "dmi-board_name"},
    {"/sys/class/dmi/id/bios_vendor", "dmi-bios_vendor"},
    {"/sys/class/dmi/id/bios_version", "dmi-bios_version"},
    {"/sys/class/dmi/id/bios_date", "dmi-bios_date"},
    {"/sys/devices/system/cpu/smt/control", "smt-control"},
    {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "scaling_driver"},
    {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "scaling_governor"},
    {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq", "scaling_min_freq"},
    {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "scaling_max_freq"},
    {"/sys/devices/system/cpu/intel_pstate/status", "intel_pstate-status"},
    {"/sys/devices/system/cpu/intel_pstate/no_turbo", "intel_pstate-no_turbo"},
    {"/sys/devices/system/cpu/cpufreq/boost", "cpufreq-boost"},
    {"/sys/devices/system/cpu/cpuidle/current_driver", "cpuidle-current_driver"},
    {"/sys/kernel/mm/transparent_hugepage/enabled", "transparent_hugepage-enabled"},
    {"/proc/sys/kernel/numa_balancing", "numa_balancing"},
    {"/proc/sys/kernel/randomize_va_space", "randomize_va_space"},
    {"/sys/devices/system/clocksource/clocksource0/current_clocksource", "clocksource"},
    {"/sys/devices/system/cpu/vulnerabilities/spectre_v2", "vulnerability-spectre_v2"},
};
enum { RAW_FILE_MOST = 8 << 20 };

/* Which raw files the node does not have is said in facts.json, so that absent is not taken for empty. */
static int take_raw_files(struct run *run, struct run_node *node, cJSON *facts, struct failure *failure) {
    cleanup_free char *folder = text_format("nodes/%s/raw", node->name);
    if (!folder)
        return failure_memory(failure);
    int r = run_make_folder(run, folder, failure);
    cJSON *unreadable = json_add_array(facts, "unreadable");
    for (size_t i = 0; r == 0 && i < sizeof raw_files / sizeof *raw_files; i++) {
        struct text bytes;
        text_init(&bytes, RAW_FILE_MOST);
        struct failure why = {0};
        if (agent_link_read_file_and_wait(node->link, raw_files[i].path, &bytes, &why) == 0) {
            cleanup_free char *name = text_format("%s/%s", folder, raw_files[i].name);
            cleanup_free char *path = name ? run_path(run, name) : NULL;
            r = path ? file_replace(path, bytes.bytes, bytes.length, 0666, failure) : failure_memory(failure);
        } else if (agent_link_state(node->link) != AGENT_LINK_READY || event_loop_is_stopped(run->loop)) {
            if (failure)
                *failure = why;
            r = why.code;
        } else {
            json_add_string(unreadable, NULL, raw_files[i].path);
        }
        text_clear(&bytes);
    }
    return r;
}

/* The value of the first "KEY : value" line of /proc/cpuinfo, or NULL; the caller frees. */
static char *cpuinfo_value(const struct run *run, const struct run_node *node, const char *key) {
    cleanup_free char *name = text_format("nodes/%s/raw/cpuinfo", node->name);
    cleanup_free char *path = name ? run_path(run, name) : NULL;
    struct text bytes;
    text_init(&bytes, RAW_FILE_MOST);
    char *value = NULL;
    if (path && file_exists(path) && file_read(path, &bytes, NULL) == 0) {
        for (const char *line = bytes.bytes; line && !value; line = strchr(line, '\n')) {
            line += *line == '\n';
            size_t length = strlen(key);
            if (strncmp(line, key, length) != 0 ||
                (line[length] != '\t' && line[length] != ' ' && line[length] != ':'))
                continue;
            const char *colon = strchr(line, ':');
            if (colon) {
                colon += 1 + strspn(colon + 1, " \t");
                value = strndup(colon, strcspn(colon, "\n"));
            }
        }
    }
    text_clear(&bytes);
    return value;
}

static void describe_topology(const struct node_facts *facts, cJSON *object) {
    cJSON *pus = json_add_array(object, "pus");
    for (size_t i = 0; i < facts->pu_count; i++) {
        const struct node_pu *pu = &facts->pus[i];
        cJSON *item = json_add_object(pus, NULL);
        json_add_uint64(item, "index", pu->index);
        json_add_int64(item, "core", pu->core);
        json_add_int64(item, "package", pu->package);
        json_add_int64(item, "numa_node", pu->numa_node);
        json_add_uint64(item, "first_sibling", pu->first_sibling_index);
        json_add_boolean(item, "allowed", pu->allowed);
    }
    cJSON *memories = json_add_array(object, "numa_memory");
    for (size_t i = 0; i < facts->memory_count; i++) {
        cJSON *item = json_add_object(memories, NULL);
        json_add_uint64(item, "numa_node", facts->memories[i].numa_node);
        json_add_uint64(item, "total_bytes", facts->memories[i].total);
    }
}

static int write_facts(struct run *run, struct run_node *node, struct failure *failure) {
    const struct node_facts *facts = node->facts;
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    if (!object)
        return failure_memory(failure);
    json_add_string(object, "host_name", facts->host_name);
    json_add_string(object, "kernel_name", facts->kernel_name);
    json_add_string(object, "kernel_release", facts->kernel_release);
    json_add_string(object, "kernel_version", facts->kernel_version);
    json_add_string(object, "machine", facts->machine);
    json_add_string(object, "boot_id", facts->boot_id);
    json_add_uint64(object, "memory_total_bytes", facts->memory_total);
    json_add_uint64(object, "memory_available_bytes", facts->memory_available);
    if (facts->memory_limit != UINT64_MAX)
        json_add_uint64(object, "memory_limit_bytes", facts->memory_limit);
    describe_topology(facts, object);
    cJSON *environment = json_add_array(object, "environment");
    for (size_t i = 0; i < facts->environment_count; i++)
        json_add_string(environment, NULL, facts->environment[i]);
    int r = take_raw_files(run, node, object, failure);
    if (r < 0)
        return r;
    cleanup_free char *model = cpuinfo_value(run, node, "model name");
    cleanup_free char *microcode = cpuinfo_value(run, node, "microcode");
    json_add_string(object, "cpu_model", model);
    json_add_string(object, "microcode", microcode);
    json_add_uint64(object, "physical_cores_usable", node->core_count);
    cleanup_free char *name = text_format("nodes/%s/facts.json", node->name);
    cleanup_free char *path = name ? run_path(run, name) : NULL;
    char memory[NUMBER_TEXT_SIZE];
    run_note(run, "node %s: %s, %zu physical core%s, %s of memory", node->name,
             model ? model : facts->machine, node->core_count, node->core_count == 1 ? "" : "s",
             number_describe_bytes((double)facts->memory_total, memory));
    return path ? run_write_json(path, object, failure) : failure_memory(failure);
}

/* Refused before anything is started: a design that cannot fit would be ended by the kernel halfway. */
static int check_memory(const struct run *run, const struct run_node *node, struct failure *failure) {
    if (run->plan->memory <= 0)
        return 0;
    size_t processes = run->experiment->placement == EXPERIMENT_PLACEMENT_CORE ? node->core_count : 1;
    double needed = run->plan->memory * (double)processes;
    uint64_t available = node->facts->memory_available;
    if (node->facts->memory_limit < available)
        available = node->facts->memory_limit;
    if (needed <= (double)available)
        return 0;
    char need[NUMBER_TEXT_SIZE], each[NUMBER_TEXT_SIZE], have[NUMBER_TEXT_SIZE];
    return failure_set_kind(
        failure, FAILURE_INPUT, -ENOMEM,
        "the design needs %s of memory on node %s (%zu process%s of %s), but %s are available; expected "
        "smaller sizes or fewer processes",
        number_describe_bytes(needed, need), node->name, processes, processes == 1 ? "" : "es",
        number_describe_bytes(run->plan->memory, each), number_describe_bytes((double)available, have));
}

int run_phase_inspect(struct run *run, struct failure *failure) {
    for (size_t i = 0; i < run->node_count; i++) {
        struct run_node *node = &run->nodes[i];
        int r = agent_link_inspect_and_wait(node->link, &node->facts, failure);
        if (r == 0)
            r = node_facts_physical_cores(node->facts, &node->cores, &node->core_count);
        if (r == 0 && node->core_count == 0)
            r = failure_set(failure, -ENODEV, "node %s has no core that the agent may use", node->name);
        if (r == 0)
            r = write_facts(run, node, failure);
        if (r == 0)
            r = check_memory(run, node, failure);
        if (r < 0)
            return r;
    }
    return 0;
}
