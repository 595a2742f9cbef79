/* The made-up machines of tests/machines: each can be made, and is one machine in all of its files. What is
 * found on them: integration/agent/machines.sh. */
#include "tests/machines/machine-tree.h"
#include "tests/unit/remote/fixture.h"

#include "tests/test.h"

#include <sys/stat.h>

static const char *root;

static void make(const char *specification) {
    struct failure failure = {0};
    root = test_memory_folder();
    if (machine_tree_make(specification, root, &failure) < 0)
        fail_msg("%s: %s", specification, failure.text);
}

static void drop(void) {
    assert_int_equal(file_remove_tree(root, NULL), 0);
}

static const struct {
    const char *name;
    size_t pus, cores, packages;
} machines[] = {
    {"intel-pstate", 8, 4, 1},
    {"intel-cpufreq", 8, 4, 1},
    {"acpi-cpufreq", 8, 4, 1},
    {"amd-pstate", 16, 8, 1},
    {"arm-cppc", 8, 8, 1},
    {"virtual", 2, 2, 1},
    {"offline-cores", 6, 3, 1},
    {"two-sockets", 32, 16, 2},
    {"two-sockets:cores=32,threads=1", 64, 64, 2},
    {"two-sockets:cores=32", 128, 64, 2},
    {"intel-pstate:cores=1,threads=2", 2, 1, 1},
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

#define CPU "sys/devices/system/cpu"

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
