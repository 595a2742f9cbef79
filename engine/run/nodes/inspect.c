/* The inspect phase: what each node is, from its agent, kept in nodes/<host>/ of the run's folder; and
 * whether the design fits into its memory. */
#include "archive-format/layout.h"
#include "engine/run/nodes/nodes.h"

#include "archive-format/reader.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/link/facts.h"
#include "engine/remote/nodes/cpuinfo.h"
#include "engine/run/nodes/kinds.h"
#include "engine/run/nodes/machine-record.h"
#include "engine/run/nodes/placement.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Kept as they are; no two of their paths end in the same name. No serial numbers, no hardware addresses:
 * those name a machine's owner, not its performance. */
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
    {"/sys/devices/system/clocksource/clocksource0/available_clocksource", "clocksources"},
    {"/proc/self/mounts", "mounts"},
    {"/proc/self/limits", "limits"}, /* the agent's, which commands inherit */
    {"/proc/swaps", "swaps"},
    {"/sys/devices/system/cpu/vulnerabilities/spectre_v2", "vulnerability-spectre_v2"},
};
enum { RAW_FILES = sizeof raw_files / sizeof *raw_files, RAW_MAX = 16 << 20 /* bytes of all of a node */ };

/* The raw files of all nodes. */
struct reading {
    struct node_set *set;
    struct machine_files files;
    bool *came; /* of node i, file j at i * RAW_FILES + j; owned, as is: */
    struct node_texts microcodes;
    struct failure failure; /* code 0: none */
};

static void clear_reading(struct reading *reading) {
    free(reading->came);
    machine_files_clear(&reading->files);
    node_texts_clear(&reading->microcodes);
}

/* Called with one file of raw_files of one node: keeps it, and reads the CPU model and microcode from
 * cpuinfo. */
static void on_raw_file(size_t number, size_t path, const char *bytes, size_t length, void *context) {
    struct reading *reading = context;
    struct node_set *set = reading->set;
    struct run_node *node = &set->items[number];
    const char *name = raw_files[path].name;
    reading->came[number * RAW_FILES + path] = true;
    if (strcmp(name, "cpuinfo") == 0) {
        node->cpu_model = cpuinfo_model(bytes);
        reading->microcodes.items[number] = cpuinfo_value(bytes, "microcode");
    }
    if (reading->failure.code == 0)
        machine_files_add(&reading->files, node, name, bytes, length, &reading->failure);
}

/* Reads the raw files of all nodes into nodes/NODE/raw/. */
static int read_raw_files(struct reading *reading, struct failure *failure) {
    struct node_set *set = reading->set;
    for (struct run_node *node = NULL; (node = node_set_next(set, node));) {
        cleanup_free char *folder = node_set_path(set, node, "raw");
        int r = record_make_folder(set->record, folder, failure);
        if (r < 0)
            return r;
    }
    const char *paths[RAW_FILES + 1] = {NULL};
    for (size_t j = 0; j < RAW_FILES; j++)
        paths[j] = raw_files[j].path;
    cleanup_free struct failure *unread = NULL; /* by facts.json */
    int r = node_group_read(set->group, paths, RAW_MAX, on_raw_file, reading, &unread, failure);
    if (r < 0)
        return r;
    if (reading->failure.code < 0)
        *failure = reading->failure;
    return reading->failure.code;
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

static void describe_agent(const struct run_node *node, cJSON *object) {
    cJSON *agent = json_add_object(object, "agent");
    const struct agent_greeting *greeting = agent_link_greeting(node->link);
    json_add_string(agent, "version", greeting->version);
    json_add_string(agent, "path", node->agent_path);
    json_add_string(agent, "sha256", greeting->sha256[0] ? greeting->sha256 : NULL);
    json_add_boolean(agent, "delivered", node->agent_delivered);
    json_add_boolean(agent, "built", node->agent_built);
}

/* Writes nodes/NODE/facts.json. Raw files that could not be read are listed, so that missing is not taken for
 * empty. */
static int write_facts(struct reading *reading, const struct run_node *node, struct failure *failure) {
    const struct node_facts *facts = node->facts;
    size_t number = node->number;
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
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
    cJSON *missing = json_add_array(object, "unreadable");
    for (size_t j = 0; j < RAW_FILES; j++)
        if (!reading->came[number * RAW_FILES + j])
            json_add_string(missing, NULL, raw_files[j].path);
    json_add_string(object, "cpu_model", node->cpu_model);
    json_add_string(object, "microcode", reading->microcodes.items[number]);
    json_add_uint64(object, "physical_cores_usable", node->core_count);
    describe_agent(node, object);
    if (reading->files.shared[number])
        cJSON_AddItemToObject(object, "shared", take_pointer(reading->files.shared[number]));
    return record_write_node_json(reading->set->record, node->name, ARCHIVE_NODE_FACTS, object, failure);
}

/* Notes what the nodes are, in one sentence for all equal nodes. */
static void note_nodes(struct node_set *set) {
    cleanup(node_texts_clear) struct node_texts words = node_texts_new(set->count);
    for (struct run_node *node = NULL; (node = node_set_next(set, node));) {
        char memory[NUMBER_TEXT_SIZE];
        words.items[node->number] = xformat("%s, %zu physical core%s, %s of memory",
                                            node->cpu_model ? node->cpu_model : node->facts->machine,
                                            node->core_count, node->core_count == 1 ? "" : "s",
                                            number_describe_bytes((double)node->facts->memory_total, memory));
    }
    node_set_note_grouped(set, &words);
}

/* Notes what the agents found when they started, such as controls that an earlier run left changed. */
static void note_agent_notes(struct node_set *set) {
    bool more = true;
    for (size_t line = 0; more; line++) {
        cleanup(node_texts_clear) struct node_texts words = node_texts_new(set->count);
        more = false;
        for (struct run_node *node = NULL; (node = node_set_next(set, node));) {
            if (line >= node->facts->note_count)
                continue;
            words.items[node->number] = xstrdup(node->facts->notes[line]);
            node_set_note_entry(set, "agent-note", node, "text", node->facts->notes[line]);
            more = true;
        }
        node_set_note_grouped(set, &words);
    }
}

uint64_t run_node_available_memory(const struct run_node *node) {
    const struct node_facts *facts = node->facts;
    return facts->memory_limit < facts->memory_available ? facts->memory_limit : facts->memory_available;
}

/* Refused before anything is started: a design that cannot fit would be ended by the kernel halfway. */
static int check_memory(const struct node_set *set, const struct run_node *node, struct failure *failure) {
    cleanup_free char *where = xformat("node %s", node->name);
    return plan_check_memory(set->plan, where, (double)node->core_count,
                             (double)run_node_available_memory(node), failure);
}

/* Refuses a plan that needs more memory than some node has. The failure is about the first such node, with
 * all of them named. */
static int check_memories(const struct node_set *set, struct failure *failure) {
    cleanup_free size_t *small = xcalloc(set->count, sizeof *small);
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++)
        if (run_node_is_in(&set->items[i]) &&
            check_memory(set, &set->items[i], count == 0 ? failure : NULL) < 0)
            small[count++] = i;
    if (count == 0)
        return 0;
    cleanup_free char *who = node_set_describe(set, small, count);
    if (count > 1)
        failure_prefix(failure, "too large for %zu of %zu nodes, %.300s", count, set->count, who);
    return -ENOMEM;
}

enum {
    FILES_APART = 16384,  /* of an archive: all but the output of units, for a few nodes; and */
    FILES_OF_A_NODE = 64, /* of each */
};

/* Refuses more units than an archive has room for: each keeps its output in up to two files. */
int node_set_check_units(const struct node_set *set, uint64_t lanes, struct failure *failure) {
    const struct gate_settings *gates = &set->campaign->gates;
    uint64_t attempts = 1;
    for (size_t gate = 0; gate < GATE_KINDS; gate++)
        if (gates->actions[gate] == GATE_REPEAT)
            attempts = 1 + (uint64_t)gates->repeats;
    uint64_t units = lanes * plan_positions(set->plan) * attempts;
    uint64_t apart = FILES_APART + (uint64_t)set->count * FILES_OF_A_NODE;
    if (set->experiment->streamed || 2 * units + apart <= ARCHIVE_ENTRIES_MAX)
        return 0;
    return failure_set_kind(failure, FAILURE_INPUT, -EFBIG,
                            "%" PRIu64
                            " units would keep their output in more files than the %d of an archive; "
                            "expected fewer rows, repetitions, repeats or nodes",
                            units, ARCHIVE_ENTRIES_MAX);
}

/* Refuses, before hours of preparation, processes, units and memory that the nodes cannot provide. */
int node_set_check_fit(struct node_set *set, struct failure *failure) {
    uint64_t lanes = 0;
    for (size_t i = 0; i < set->count; i++) {
        size_t node_lanes = placement_count(set, &set->items[i]);
        if (!run_node_is_in(&set->items[i]))
            continue;
        if (node_lanes > REMOTE_COMMANDS_LIMIT)
            return failure_set_kind(failure, FAILURE_INPUT, -EFBIG,
                                    "node %s has %zu cores, and an agent runs at most %d programs at once; "
                                    "expected an experiment with one process a node",
                                    set->items[i].name, node_lanes, REMOTE_COMMANDS_LIMIT);
        lanes += node_lanes;
    }
    int r = node_set_check_units(set, lanes, failure);
    return r < 0 ? r : check_memories(set, failure);
}

/* Reads the facts and cores of all nodes. A node whose agent may use no core fails. */
int node_set_read_facts(struct node_set *set, struct failure *failure) {
    cleanup_free struct node_facts **facts = NULL;
    cleanup_free struct failure *failures = NULL;
    int r = node_group_inspect(set->group, &facts, &failures, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < set->count; i++) {
        struct run_node *node = &set->items[i];
        if (!facts[i])
            continue;
        free((void *)take_pointer(node->cores));
        node_facts_free(node->facts);
        node->facts = facts[i];
        if (node_facts_physical_cores(node->facts, &node->cores, &node->core_count) < 0) {
            node->core_count = 0;
            r = failure_memory(failure);
            continue;
        }
        if (node->core_count == 0)
            failure_set(&failures[i], -ENODEV,
                        "the agent may use no core of this node; check its CPU affinity "
                        "(cgroup, taskset)");
    }
    return r < 0 ? r : node_set_merge_failures(set, failures, "inspect", failure);
}

/* Reads and records what the nodes are, and notes how they differ. Nodes are checked after the raw files,
 * which a lost node does not have. */
int node_set_inspect(struct node_set *set, struct failure *failure) {
    cleanup(clear_reading) struct reading reading = {.set = set,
                                                     .files = machine_files_new(set),
                                                     .came = xcalloc(set->count, RAW_FILES * sizeof(bool)),
                                                     .microcodes = node_texts_new(set->count)};
    int r = node_set_read_facts(set, failure);
    if (r == 0)
        r = read_raw_files(&reading, failure);
    if (r == 0)
        r = machine_record(&reading.files, failure);
    if (r == 0) /* a file of a node that was lost was not read either */
        r = node_set_check(set, failure);
    for (struct run_node *node = NULL; r == 0 && (node = node_set_next(set, node));)
        r = write_facts(&reading, node, failure);
    if (r == 0 && set->record->part > 1)
        r = node_set_check_same(set, failure);
    if (r < 0)
        return r;
    note_nodes(set);
    note_agent_notes(set);
    node_set_note_differences(set);
    return 0;
}
