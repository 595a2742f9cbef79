#include "tests/test-bed/kernel-trees.h"

#include "engine/foundation/cleanup.h"
#include "tests/test-bed/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROCESSORS = 8, CORES = 4, IDLE_STATES = 4, CACHES = 4 };

/* One tree being made; after the first failure nothing more is done. */
struct tree {
    const char *folder;
    int status;
    struct failure *failure;
};

/* "VALUE\n" into the file that FORMAT names, with the folders above it. */
static void put(struct tree *tree, const char *value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void put(struct tree *tree, const char *value, const char *format, ...) {
    if (tree->status < 0)
        return;
    char path[BED_PATH_SIZE], text[512];
    int length = snprintf(path, sizeof path, "%s/", tree->folder);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path + length, sizeof path - (size_t)length, format, arguments);
    va_end(arguments);
    snprintf(text, sizeof text, "%s\n", value);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    tree->status = access(path, F_OK) == 0 ? 0 : layer_folder(path, 0755, tree->failure);
    *slash = '/';
    if (tree->status == 0)
        tree->status = layer_write(path, text, 0644, tree->failure);
}

static void put_number(struct tree *tree, long value, const char *folder, const char *name) {
    char text[32];
    snprintf(text, sizeof text, "%ld", value);
    put(tree, text, "%s/%s", folder, name);
}

static void put_link(struct tree *tree, const char *to, const char *name) {
    if (tree->status < 0)
        return;
    char path[BED_PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", tree->folder, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    tree->status = layer_folder(path, 0755, tree->failure);
    *slash = '/';
    if (tree->status == 0 && symlink(to, path) < 0)
        tree->status =
            failure_set(tree->failure, -errno, "cannot make the link '%s': %s", path, strerror(errno));
}

/* The mask and the list of a set of processors, as topology and cache files have them. */
static void put_set(struct tree *tree, unsigned mask, const char *list, const char *folder,
                    const char *name) {
    char text[32];
    snprintf(text, sizeof text, "%x", mask);
    put(tree, text, "%s/%s", folder, name);
    put(tree, list, "%s/%s_list", folder, name);
}

static void put_topology(struct tree *tree, int processor) {
    char folder[64], siblings[16];
    int core = processor % CORES;
    snprintf(folder, sizeof folder, "devices/system/cpu/cpu%d/topology", processor);
    snprintf(siblings, sizeof siblings, "%d,%d", core, core + CORES);
    unsigned pair = 1U << core | 1U << (core + CORES), all = (1U << PROCESSORS) - 1;
    put_number(tree, core, folder, "core_id");
    put_number(tree, 0, folder, "physical_package_id");
    put_number(tree, 0, folder, "die_id");
    /* lscpu wants the old names and the new ones. */
    put_set(tree, pair, siblings, folder, "thread_siblings");
    put_set(tree, pair, siblings, folder, "core_cpus");
    put_set(tree, all, "0-7", folder, "core_siblings");
    put_set(tree, all, "0-7", folder, "package_cpus");
    put_set(tree, all, "0-7", folder, "die_cpus");
}

static void put_caches(struct tree *tree, int processor) {
    static const struct {
        const char *level, *type, *size, *ways, *sets;
    } caches[CACHES] = {{"1", "Data", "32K", "8", "64"},
                        {"1", "Instruction", "32K", "8", "64"},
                        {"2", "Unified", "1024K", "16", "1024"},
                        {"3", "Unified", "22528K", "11", "32768"}};
    char siblings[16];
    int core = processor % CORES;
    snprintf(siblings, sizeof siblings, "%d,%d", core, core + CORES);
    for (int i = 0; i < CACHES; i++) {
        char folder[64];
        snprintf(folder, sizeof folder, "devices/system/cpu/cpu%d/cache/index%d", processor, i);
        put(tree, caches[i].level, "%s/level", folder);
        put(tree, caches[i].type, "%s/type", folder);
        put(tree, caches[i].size, "%s/size", folder);
        put(tree, caches[i].ways, "%s/ways_of_associativity", folder);
        put(tree, caches[i].sets, "%s/number_of_sets", folder);
        put(tree, "64", "%s/coherency_line_size", folder);
        bool shared = i == CACHES - 1;
        char mask[16];
        snprintf(mask, sizeof mask, "%x",
                 shared ? (1U << PROCESSORS) - 1 : 1U << core | 1U << (core + CORES));
        put(tree, mask, "%s/shared_cpu_map", folder);
        put(tree, shared ? "0-7" : siblings, "%s/shared_cpu_list", folder);
    }
}

static void put_frequency(struct tree *tree, int processor) {
    static const struct {
        const char *name, *value;
    } files[] = {{"scaling_driver", "intel_pstate"},
                 {"scaling_governor", "powersave"},
                 {"scaling_available_governors", "performance powersave"},
                 {"scaling_min_freq", "800000"},
                 {"scaling_max_freq", "3500000"},
                 {"scaling_cur_freq", "2700000"},
                 {"cpuinfo_min_freq", "800000"},
                 {"cpuinfo_max_freq", "3500000"},
                 {"cpuinfo_transition_latency", "0"},
                 {"base_frequency", "2100000"},
                 {"scaling_setspeed", "<unsupported>"},
                 {"energy_performance_preference", "balance_performance"},
                 {"energy_performance_available_preferences",
                  "default performance balance_performance balance_power power"}};
    char folder[64], link[64], to[32], number[16];
    snprintf(folder, sizeof folder, "devices/system/cpu/cpufreq/policy%d", processor);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        put(tree, files[i].value, "%s/%s", folder, files[i].name);
    snprintf(number, sizeof number, "%d", processor);
    put(tree, number, "%s/affected_cpus", folder);
    put(tree, number, "%s/related_cpus", folder);
    snprintf(link, sizeof link, "devices/system/cpu/cpu%d/cpufreq", processor);
    snprintf(to, sizeof to, "../cpufreq/policy%d", processor);
    put_link(tree, to, link);
}

static void put_idle_states(struct tree *tree, int processor) {
    static const struct {
        const char *name, *description;
        int latency, residency; /* us */
    } states[IDLE_STATES] = {{"POLL", "CPUIDLE CORE POLL IDLE", 0, 0},
                             {"C1", "MWAIT 0x00", 2, 2},
                             {"C1E", "MWAIT 0x01", 10, 20},
                             {"C6", "MWAIT 0x20", 133, 600}};
    for (int i = 0; i < IDLE_STATES; i++) {
        char folder[64];
        snprintf(folder, sizeof folder, "devices/system/cpu/cpu%d/cpuidle/state%d", processor, i);
        put(tree, states[i].name, "%s/name", folder);
        put(tree, states[i].description, "%s/desc", folder);
        put_number(tree, states[i].latency, folder, "latency");
        put_number(tree, states[i].residency, folder, "residency");
        put_number(tree, 1000L * (i + 1), folder, "usage");
        put_number(tree, 1000000L * (i + 1), folder, "time");
        put(tree, "0", "%s/disable", folder);
        put(tree, "enabled", "%s/default_status", folder);
    }
}

static void put_processors(struct tree *tree) {
    static const struct {
        const char *name, *value;
    } files[] = {{"smt/control", "on"},
                 {"smt/active", "1"},
                 {"intel_pstate/status", "active"},
                 {"intel_pstate/no_turbo", "0"},
                 {"intel_pstate/max_perf_pct", "100"},
                 {"intel_pstate/min_perf_pct", "22"},
                 {"intel_pstate/num_pstates", "28"},
                 {"intel_pstate/turbo_pct", "52"},
                 {"intel_pstate/hwp_dynamic_boost", "0"},
                 {"cpuidle/current_driver", "intel_idle"},
                 {"cpuidle/current_governor", "menu"},
                 {"cpuidle/current_governor_ro", "menu"},
                 {"cpuidle/available_governors", "menu"},
                 {"online", "0-7"},
                 {"present", "0-7"},
                 {"possible", "0-7"},
                 {"offline", ""},
                 {"isolated", ""},
                 {"kernel_max", "8191"},
                 {"vulnerabilities/meltdown", "Mitigation: PTI"},
                 {"vulnerabilities/spectre_v2", "Mitigation: IBRS"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        put(tree, files[i].value, "devices/system/cpu/%s", files[i].name);
    for (int i = 0; i < PROCESSORS; i++) {
        if (i > 0) /* processor 0 cannot be taken away */
            put(tree, "1", "devices/system/cpu/cpu%d/online", i);
        put(tree, "6", "devices/system/cpu/cpu%d/power/energy_perf_bias", i);
        put(tree, "0", "devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count", i);
        put(tree, "0", "devices/system/cpu/cpu%d/thermal_throttle/package_throttle_count", i);
        put_topology(tree, i);
        put_caches(tree, i);
        put_frequency(tree, i);
        put_idle_states(tree, i);
    }
}

static void put_sensors(struct tree *tree) {
    static const struct {
        const char *name, *value;
    } files[] = {
        {"devices/virtual/thermal/thermal_zone0/type", "x86_pkg_temp"},
        {"devices/virtual/thermal/thermal_zone0/temp", "45000"},
        {"devices/virtual/thermal/thermal_zone0/policy", "step_wise"},
        {"devices/virtual/powercap/intel-rapl/intel-rapl:0/name", "package-0"},
        {"devices/virtual/powercap/intel-rapl/intel-rapl:0/enabled", "1"},
        {"devices/virtual/powercap/intel-rapl/intel-rapl:0/energy_uj", "123456789"},
        {"devices/virtual/powercap/intel-rapl/intel-rapl:0/max_energy_range_uj", "262143328850"},
        {"devices/virtual/powercap/intel-rapl/intel-rapl:0/constraint_0_name", "long_term"},
        {"devices/virtual/powercap/intel-rapl/intel-rapl:0/constraint_0_power_limit_uw", "125000000"},
        {"devices/virtual/powercap/intel-rapl/intel-rapl:0/intel-rapl:0:0/name", "dram"},
        {"devices/virtual/powercap/intel-rapl/intel-rapl:0/intel-rapl:0:0/energy_uj", "23456789"},
        {"devices/virtual/powercap/intel-rapl/intel-rapl:0/intel-rapl:0:0/max_energy_range_uj",
         "65712999613"},
        {"devices/platform/coretemp.0/hwmon/hwmon0/name", "coretemp"},
        {"devices/platform/coretemp.0/hwmon/hwmon0/temp1_label", "Package id 0"},
        {"devices/platform/coretemp.0/hwmon/hwmon0/temp1_input", "47000"},
        {"devices/platform/coretemp.0/hwmon/hwmon0/temp1_max", "92000"},
        {"devices/platform/coretemp.0/hwmon/hwmon0/temp1_crit", "102000"},
        {"devices/platform/coretemp.0/hwmon/hwmon0/temp2_label", "Core 0"},
        {"devices/platform/coretemp.0/hwmon/hwmon0/temp2_input", "46000"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        put(tree, files[i].value, "%s", files[i].name);
    put_link(tree, "../../devices/virtual/thermal/thermal_zone0", "class/thermal/thermal_zone0");
    put_link(tree, "../../devices/virtual/powercap/intel-rapl", "class/powercap/intel-rapl");
    put_link(tree, "../../devices/virtual/powercap/intel-rapl/intel-rapl:0", "class/powercap/intel-rapl:0");
    put_link(tree, "../../devices/virtual/powercap/intel-rapl/intel-rapl:0/intel-rapl:0:0",
             "class/powercap/intel-rapl:0:0");
    put_link(tree, "../../devices/platform/coretemp.0/hwmon/hwmon0", "class/hwmon/hwmon0");
}

static void put_rest(struct tree *tree) {
    static const struct {
        const char *name, *value;
    } files[] = {
        {"devices/system/node/online", "0"},
        {"devices/system/node/possible", "0"},
        {"devices/system/node/has_cpu", "0"},
        {"devices/system/node/has_memory", "0"},
        {"devices/system/node/node0/cpulist", "0-7"},
        {"devices/system/node/node0/cpumap", "ff"},
        {"devices/system/node/node0/distance", "10"},
        {"devices/system/node/node0/meminfo",
         "Node 0 MemTotal:       196608000 kB\nNode 0 MemFree:        190000000 kB"},
        {"devices/system/clocksource/clocksource0/current_clocksource", "tsc"},
        {"devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm"},
        {"devices/virtual/dmi/id/sys_vendor", "Dell Inc."},
        {"devices/virtual/dmi/id/product_name", "PowerEdge C6420"},
        {"devices/virtual/dmi/id/bios_version", "2.12.2"},
        {"devices/virtual/dmi/id/bios_date", "07/09/2021"},
        {"kernel/mm/transparent_hugepage/enabled", "always [madvise] never"},
        {"kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never"},
        {"kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0"},
        {"module/intel_idle/parameters/max_cstate", "9"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        put(tree, files[i].value, "%s", files[i].name);
    put_link(tree, "../../devices/virtual/dmi/id", "class/dmi/id");
    /* Where a node's own network devices are shown. */
    static const char *const folders[] = {"devices/virtual/net", "class/net", "fs/cgroup"};
    for (size_t i = 0; tree->status == 0 && i < sizeof folders / sizeof *folders; i++) {
        char path[BED_PATH_SIZE];
        snprintf(path, sizeof path, "%s/%s", tree->folder, folders[i]);
        tree->status = layer_folder(path, 0755, tree->failure);
    }
}

int kernel_trees_make_sys(const char *folder, struct failure *failure) {
    struct tree tree = {.folder = folder, .failure = failure};
    put_processors(&tree);
    put_sensors(&tree);
    put_rest(&tree);
    return tree.status;
}

/* What nftw's callback cannot be given. */
static struct { const char *from, *to; } copying;

static int copy_entry(const char *path, const struct stat *status, int type, struct FTW *walk) {
    (void)walk;
    char target[BED_PATH_SIZE], text[8192];
    if (snprintf(target, sizeof target, "%s%s", copying.to, path + strlen(copying.from)) >=
        (int)sizeof target)
        return 0;
    if (type == FTW_D)
        return layer_folder(target, 0755, NULL) < 0;
    if (!S_ISREG(status->st_mode))
        return 0;
    /* Some can only be written, some have values of a moment: what cannot be read is there and empty. */
    cleanup_close int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
    text[length < 0 ? 0 : length] = '\0';
    return layer_write(target, text, status->st_mode & 07777, NULL) < 0;
}

int kernel_trees_copy_settings(const char *folder, struct failure *failure) {
    static const char *const parts[] = {"kernel", "vm"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char from[32], to[BED_PATH_SIZE];
        snprintf(from, sizeof from, "/proc/sys/%s", parts[i]);
        snprintf(to, sizeof to, "%s/%s", folder, parts[i]);
        copying.from = from;
        copying.to = to;
        if (layer_folder(folder, 0755, failure) < 0 || nftw(from, copy_entry, 8, FTW_PHYS) != 0)
            return failure_set(failure, -EIO, "cannot copy '%s' to '%s'", from, to);
    }
    return 0;
}
