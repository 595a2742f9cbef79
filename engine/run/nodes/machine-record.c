#include "engine/run/nodes/machine-record.h"

#include "archive-format/redaction.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_MAX = 32 << 20, /* of a node */
    TIMEOUT_MS = 60000,
    SHARED_MIN = 1024, /* smaller contents are not worth a reference */
    SECTION = 1,       /* begins the line that names what follows; no text has this character */
};

/* Sections: a line of the character 1 and a name, and then what is kept as raw/NAME. */
#define SHELL_FUNCTIONS                                                                                      \
    "LC_ALL=C\n"                                                                                             \
    "section() { printf '\\001%s\\n' \"$1\"; }\n"                                                            \
    "kernel_log() { dmesg 2>/dev/null || journalctl -k -b -o short-monotonic --no-pager 2>/dev/null; }\n"

static const char machine_script[] = SHELL_FUNCTIONS
    "section topology.xml; lstopo-no-graphics --of xml 2>/dev/null || lstopo --of xml - 2>/dev/null\n"
    "section caches; cd /sys/devices/system/cpu && for file in level type size ways_of_associativity "
    "shared_cpu_list; do grep -Hs . cpu[0-9]*/cache/index*/$file; done | sed 's,^cpu[0-9]*/,,' | sort -u\n"
    "section numa; cd /sys/devices/system/node && grep -Hs . node*/cpulist node*/distance\n"
    "section pci; cd /sys/bus/pci/devices && for file in class vendor device subsystem_vendor "
    "subsystem_device "
    "revision numa_node max_link_speed max_link_width current_link_speed current_link_width; do "
    "grep -Hs . */$file; done\n"
    "section lspci; lspci -nnk 2>/dev/null\n"
    "section network; cd /sys/class/net && for file in address mtu speed duplex operstate device/uevent; do "
    "grep -Hs . */$file; done\n"
    "section infiniband; cd /sys/class/infiniband 2>/dev/null && grep -Hs . */fw_ver */board_id */hca_type "
    "*/ports/*/rate */ports/*/state */ports/*/link_layer\n"
    "section dmi; cd /sys/class/dmi/id 2>/dev/null && grep -Hs . product_version product_family board_vendor "
    "board_version bios_release ec_firmware_release chassis_type product_serial board_serial product_uuid\n"
    "section dmidecode; dmidecode -q 2>/dev/null\n"
    "section sysctl; cd /proc/sys && grep -Hs . vm/* kernel/sched_* kernel/perf_event_* kernel/*watchdog* "
    "kernel/timer_migration net/core/[rw]mem_* net/ipv4/tcp_[rw]mem net/ipv4/tcp_congestion_control\n"
    "section gpus; nvidia-smi --query-gpu=index,name,driver_version,vbios_version,power.limit,clocks.max.sm "
    "--format=csv 2>/dev/null\n"
    "section packages\n"
    "dpkg-query -W -f '${Package}\\t${Version}\\t${Architecture}\\n' 2>/dev/null || rpm -qa 2>/dev/null | "
    "sort\n"
    "section kernel-log; kernel_log\n"
    "exit 0\n";

/* The last line of before is remembered in the agent's folder. */
static const char mark_script[] = SHELL_FUNCTIONS "kernel_log | tail -n 1 >.kernel-log-mark\n";
static const char log_script[] =
    SHELL_FUNCTIONS "[ -s .kernel-log-mark ] || exit 0\n"
                    "section kernel-log-during\n"
                    "kernel_log | awk 'NR == FNR { mark = $0; next } found; $0 == mark { found = 1 } { all = "
                    "all $0 \"\\n\" } END { if (!found) printf \"%s\", all }' .kernel-log-mark -\n";

/* ---- Files -----------------------------------------------------------------------------------------------
 */

struct machine_file {
    char *name;   /* "packages" */
    char *member; /* that has it */
    char hash[HASH_HEX_SIZE];
};

struct machine_files machine_files_new(struct node_set *set) {
    return (struct machine_files){.set = set, .shared = xcalloc(set->count, sizeof(cJSON *))};
}

void machine_files_clear(struct machine_files *files) {
    for (size_t i = 0; i < files->count; i++) {
        free(files->kept[i].name);
        free(files->kept[i].member);
    }
    for (size_t i = 0; i < files->set->count; i++)
        cJSON_Delete(files->shared[i]);
    free(files->kept);
    free(files->shared);
}

/* The recorded file of another node that has the same name and content; NULL: no node has such a file. */
static const struct machine_file *find_same(const struct machine_files *files, const char *name,
                                            const char *hash) {
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->kept[i].hash, hash) == 0 && strcmp(files->kept[i].name, name) == 0)
            return &files->kept[i];
    return NULL;
}

static int add_machine_file(struct machine_files *files, const char *name, const char *member,
                            const char *hash, struct failure *failure) {
    if (list_reserve(&files->kept, &files->capacity, files->count + 1, sizeof *files->kept, SIZE_MAX) < 0)
        return failure_memory(failure);
    struct machine_file *file = &files->kept[files->count++];
    *file = (struct machine_file){.name = xstrdup(name), .member = xstrdup(member)};
    memcpy(file->hash, hash, sizeof file->hash);
    return 0;
}

/* Keeps one file of a node, redacted. Large files that are the same on several nodes are kept once: `shared`
 * in facts.json names the member. */
int machine_files_add(struct machine_files *files, const struct run_node *node, const char *name,
                      const char *bytes, size_t length, struct failure *failure) {
    struct run_record *record = files->set->record;
    char hash[HASH_HEX_SIZE];
    cleanup(text_clear) struct text redacted;
    cleanup_free char *file = xformat("raw/%s", name), *member = node_set_path(files->set, node, file);
    text_init(&redacted, 2 * (size_t)ANSWER_MAX);
    hash_bytes(bytes, length, hash);
    const struct machine_file *same = length < SHARED_MIN ? NULL : find_same(files, name, hash);
    if (same) {
        if (!files->shared[node->number])
            files->shared[node->number] = cJSON_CreateObject();
        json_add_string(files->shared[node->number], name, same->member);
        return 0;
    }
    int r = record->redaction ? 0 : redaction_new(false, NULL, &record->redaction, failure);
    if (r < 0)
        return r;
    r = redaction_apply(record->redaction, bytes, length, &redacted);
    if (r < 0)
        return failure_set(failure, r, "cannot keep '%s': %s", member, strerror(-r));
    r = length < SHARED_MIN ? 0 : add_machine_file(files, name, member, hash, failure);
    return r < 0 ? r : run_files_write(&record->files, member, redacted.bytes, redacted.length, failure);
}

/* ---- Answers ---------------------------------------------------------------------------------------------
 */

/* Adds the sections of an ANSWER as files; empty ones are left out. */
static int add_sections(struct machine_files *files, const struct run_node *node, const char *answer,
                        struct failure *failure) {
    int r = 0;
    for (const char *at = strchr(answer, SECTION), *next; r == 0 && at; at = next) {
        const char *line = strchr(at, '\n');
        next = line ? strchr(line, SECTION) : NULL;
        if (!line)
            break;
        cleanup_free char *name = xstrndup(at + 1, (size_t)(line - at - 1));
        size_t length = next ? (size_t)(next - line - 1) : strlen(line + 1);
        if (length > 0)
            r = machine_files_add(files, node, name, line + 1, length, failure);
    }
    return r;
}

/* Runs SCRIPT on all nodes that are connected and keeps the sections of their answers. The answers are large,
 * so they lie in files meanwhile. */
static int run_script(struct machine_files *files, const char *script, struct failure *failure) {
    struct node_set *set = files->set;
    const char *const arguments[] = {"sh", "-c", script, "assay", NULL};
    const struct remote_command_specification specification = {.arguments = arguments,
                                                               .timeout_ms = TIMEOUT_MS,
                                                               .output_limit = ANSWER_MAX,
                                                               .error_limit = NODE_OUTPUT_KEPT,
                                                               .coalesce_ms = 5000};
    cleanup_free char *folder = record_path(set->record, ".machine");
    cleanup_free bool *nodes = xcalloc(set->count, sizeof *nodes);
    struct node_result *results = NULL;
    for (struct run_node *node = NULL; (node = node_set_next(set, node));)
        nodes[node->number] = node_group_is_there(set->group, node->number);
    int r = file_make_folders(folder, failure);
    if (r == 0)
        r = node_group_run(set->group,
                           &(struct node_group_command){
                               .specification = &specification, .folder = folder, .nodes = nodes, .kept = 1},
                           &results, failure);
    for (size_t i = 0; results && r == 0 && i < set->count; i++) {
        cleanup(text_clear) struct text answer;
        text_init(&answer, ANSWER_MAX);
        if (results[i].output.file)
            r = file_read(results[i].output.file, &answer, failure);
        if (r == 0 && answer.length > 0)
            r = add_sections(files, &set->items[i], answer.bytes, failure);
    }
    if (results)
        node_results_free(set->group, results);
    file_remove_tree(folder, NULL);
    return r;
}

int machine_record(struct machine_files *files, struct failure *failure) {
    if (files->set->campaign->provenance != PROVENANCE_FULL)
        return 0;
    cleanup_free char *script = xformat("%s%s", mark_script, machine_script);
    return run_script(files, script, failure);
}

int machine_record_log(struct node_set *set, struct failure *failure) {
    cleanup(machine_files_clear) struct machine_files files = machine_files_new(set);
    return set->campaign->provenance == PROVENANCE_FULL ? run_script(&files, log_script, failure) : 0;
}
