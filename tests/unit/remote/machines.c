/* The made-up machines of tests/machines: each can be made, says what its README says, and is one machine in
 * all of its files. */
#include "tests/machines/machine-tree.h"
#include "tests/unit/remote/fixture.h"

#include "engine/agent/machine/machine.h"
#include "tests/test.h"

#include <sys/stat.h>

static struct fixture f;
static char root[64];

static void make(const char *specification) {
    struct failure failure = {0};
    /* Thousands of small files: not on a disk. */
    snprintf(root, sizeof root, "%s/assay-machine-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(root));
    if (machine_tree_make(specification, root, &failure) < 0)
        fail_msg("%s: %s", specification, failure.text);
}

static void drop(void) {
    assert_int_equal(file_remove_tree(root, NULL), 0);
}

static const struct {
    const char *name, *driver; /* NULL: no cpufreq */
    size_t pus, cores, packages;
    const char *smt; /* NULL: no such file */
} machines[] = {
    {"intel-pstate", "intel_pstate", 8, 4, 1, "on"},
    {"intel-cpufreq", "intel_cpufreq", 8, 4, 1, "on"},
    {"acpi-cpufreq", "acpi-cpufreq", 8, 4, 1, NULL},
    {"amd-pstate", "amd-pstate-epp", 16, 8, 1, "on"},
    {"arm-cppc", "cppc_cpufreq", 8, 8, 1, "notimplemented"},
    {"virtual", NULL, 2, 2, 1, "notsupported"},
    {"offline-cores", "intel_pstate", 6, 3, 1, "on"},
    {"two-sockets", "intel_pstate", 32, 16, 2, "on"},
    {"two-sockets:cores=32,threads=1", "intel_pstate", 64, 64, 2, "notsupported"},
    {"two-sockets:cores=32", "intel_pstate", 128, 64, 2, "on"},
    {"intel-pstate:cores=1,threads=2", "intel_pstate", 2, 1, 1, "on"},
};
enum { MACHINES = sizeof machines / sizeof *machines };

TEST(each_tells_of_its_processors) {
    for (size_t i = 0; i < MACHINES; i++) {
        make(machines[i].name);
        struct node_facts *facts = NULL;
        const struct node_pu **cores = NULL;
        size_t count, packages = 0;
        fixture_open(&f, root);
        assert_done(&f, agent_link_inspect_and_wait(f.link, &facts, &f.failure));
        fixture_close(&f);
        assert_int_equal(node_facts_physical_cores(facts, &cores, &count), 0);
        assert_int_equal(facts->pu_count, machines[i].pus);
        assert_int_equal(count, machines[i].cores);
        for (size_t j = 0; j < facts->pu_count; j++) {
            const struct node_pu *pu = &facts->pus[j], *first = NULL;
            for (size_t k = 0; k < facts->pu_count; k++)
                if (facts->pus[k].index == pu->first_sibling_index)
                    first = &facts->pus[k];
            assert_non_null(first);
            assert_true(first->first_sibling && first->core == pu->core && first->package == pu->package);
            assert_int_equal(pu->numa_node, pu->package);
            assert_true(pu->allowed);
            packages = (size_t)pu->package >= packages ? (size_t)pu->package + 1 : packages;
        }
        assert_int_equal(packages, machines[i].packages);
        assert_int_equal(facts->memory_count, packages);
        uint64_t total = 0;
        for (size_t j = 0; j < packages; j++)
            total += facts->memories[j].total;
        assert_true(total == facts->memory_total);
        free(cores);
        node_facts_free(facts);
        drop();
    }
}

static int64_t number(const struct machine *machine, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int64_t number(const struct machine *machine, const char *format, ...) {
    char path[256];
    int64_t value;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    int status = machine_read_number(machine, path, &value);
    if (status < 0)
        fail_msg("%s: %s", path, strerror(-status));
    return value;
}

#define CPU "sys/devices/system/cpu"

static void check_word(const struct machine *machine, const char *path, const char *expected) {
    char word[64];
    if (expected == NULL) {
        assert_false(machine_has(machine, path));
        return;
    }
    assert_int_equal(machine_read_value(machine, path, word, sizeof word), 0);
    assert_string_equal(word, expected);
}

TEST(each_is_controlled_as_its_driver_is) {
    for (size_t i = 0; i < MACHINES; i++) {
        make(machines[i].name);
        struct machine machine;
        struct pu_set online;
        assert_int_equal(machine_open(root, &machine, NULL), 0);
        check_word(&machine, CPU "/cpu0/cpufreq/scaling_driver", machines[i].driver);
        check_word(&machine, CPU "/smt/control", machines[i].smt);
        assert_int_equal(machine_read_set(&machine, CPU "/online", &online), 0);
        size_t count = 0;
        for (unsigned pu = 0; pu < PROTOCOL_PU_LIMIT; pu++) {
            if (!pu_set_has(&online, pu))
                continue;
            count++;
            if (machines[i].driver == NULL)
                continue;
            int64_t low = number(&machine, CPU "/cpu%u/cpufreq/cpuinfo_min_freq", pu);
            int64_t high = number(&machine, CPU "/cpu%u/cpufreq/cpuinfo_max_freq", pu);
            int64_t least = number(&machine, CPU "/cpu%u/cpufreq/scaling_min_freq", pu);
            int64_t most = number(&machine, CPU "/cpu%u/cpufreq/scaling_max_freq", pu);
            assert_true(low <= least && least <= most && most <= high && low < high);
            assert_true(number(&machine, CPU "/cpu%u/cpuidle/state1/disable", pu) == 0);
        }
        assert_int_equal(count, machines[i].pus);
        machine_close(&machine);
        drop();
    }
}

/* Every link of a class leads to a folder with what the class has. */
TEST(sensors_are_found) {
    static const struct {
        const char *folder, *prefix, *file;
    } classes[] = {{"sys/class/hwmon", "hwmon", "name"},
                   {"sys/class/powercap", "intel-rapl:", "energy_uj"},
                   {"sys/class/thermal", "thermal_zone", "temp"}};
    static const struct {
        const char *machine;
        size_t counts[3];
    } expected[] = {{"intel-pstate", {2, 3, 2}},
                    {"amd-pstate", {1, 2, 0}},
                    {"two-sockets", {3, 5, 3}},
                    {"arm-cppc", {1, 0, 0}},
                    {"virtual", {0, 0, 0}}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        make(expected[i].machine);
        struct machine machine;
        assert_int_equal(machine_open(root, &machine, NULL), 0);
        for (size_t j = 0; j < 3; j++) {
            struct machine_names names = {0};
            int status = machine_list(&machine, classes[j].folder, classes[j].prefix, &names);
            assert_int_equal(status, expected[i].counts[j] == 0 ? -ENOENT : 0);
            assert_int_equal(names.count, expected[i].counts[j]);
            for (size_t k = 0; k < names.count; k++) {
                char path[256];
                snprintf(path, sizeof path, "%s/%s/%s", classes[j].folder, names.items[k], classes[j].file);
                assert_true(machine_has(&machine, path));
            }
            machine_names_clear(&names);
        }
        machine_close(&machine);
        drop();
    }
}

TEST(counters_wrap_where_they_say) {
    make("two-sockets");
    struct machine machine;
    assert_int_equal(machine_open(root, &machine, NULL), 0);
    int64_t first = number(&machine, "sys/class/powercap/intel-rapl:0/max_energy_range_uj");
    int64_t second = number(&machine, "sys/class/powercap/intel-rapl:1/max_energy_range_uj");
    assert_true(first != second);
    assert_true(number(&machine, "sys/class/powercap/intel-rapl:1/energy_uj") < second);
    machine_close(&machine);
    drop();
}

TEST(modes_are_those_of_the_kernel) {
    static const struct {
        const char *path;
        mode_t mode;
    } files[] = {{CPU "/cpufreq/policy0/cpuinfo_max_freq", 0444},
                 {CPU "/cpufreq/policy0/scaling_max_freq", 0644},
                 {"sys/class/powercap/intel-rapl:0/energy_uj", 0400},
                 {"proc/sys/vm/drop_caches", 0200}};
    make("intel-pstate");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[256];
        struct stat status;
        snprintf(path, sizeof path, "%s/%s", root, files[i].path);
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_mode & 07777, files[i].mode);
    }
    drop();
}

TEST(what_is_no_machine_is_refused) {
    static const struct {
        const char *specification, *sentence;
    } bad[] = {{"no-such", "there is no machine 'no-such'"},
               {"../machines/virtual", "is no machine"},
               {"virtual:cores=many", "cannot read the setting 'cores=many'"},
               {"virtual:cores=2/0", "cannot read the setting"},
               {"virtual:cores=100000", "cannot read"},
               {"virtual:", "cannot read the setting ''"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct failure failure = {0};
        struct machine_tree tree = {0};
        assert_true(machine_tree_read(&tree, bad[i].specification, &failure) < 0);
        if (strstr(failure.text, bad[i].sentence) == NULL)
            fail_msg("'%s' does not have '%s'", failure.text, bad[i].sentence);
        assert_null(tree.entries);
    }
}
