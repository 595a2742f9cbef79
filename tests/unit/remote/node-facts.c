/* What INSPECT tells: of this machine, and of captured ones that stand in a folder. */
#include "tests/test.h"
#include "tests/unit/remote/fixture.h"

#include "engine/agent/wire/protocol.h"

#include <sched.h>
#include <sys/utsname.h>
#include <sys/wait.h>

static const char *tree;

static void put_file(const char *path, const char *content) {
    test_put_in(tree, path, content, strlen(content), 0600);
}

static void drop(const char *path) {
    assert_int_equal(file_remove_tree(test_formatted("%s/%s", tree, path), NULL), 0);
}

/* Two packages of four cores of two threads, numbered as Linux does: 0-3 and 4-7 the first threads, 8-11 and
 * 12-15 the second ones. PU 5 and PU 10 are offline, and so missing from their siblings' lists. */
static void put_topology(void) {
    put_file("sys/devices/system/cpu/online", "0-4,6-9,11-15\n");
    for (int pu = 0; pu < 16; pu++) {
        if (pu == 5 || pu == 10)
            continue;
        int sibling = pu < 8 ? pu + 8 : pu - 8, low = pu < sibling ? pu : sibling;
        char path[128], text[32];
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/topology/core_id", pu);
        snprintf(text, sizeof text, "%d\n", pu % 4 * 2);
        put_file(path, text);
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/topology/physical_package_id", pu);
        put_file(path, pu % 8 < 4 ? "0\n" : "1\n");
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", pu);
        if (sibling == 5 || sibling == 10)
            snprintf(text, sizeof text, "%d\n", pu);
        else
            snprintf(text, sizeof text, "%d,%d\n", low, low + 8);
        put_file(path, text);
    }
    put_file("sys/devices/system/node/online", "0-1\n");
    put_file("sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
    put_file("sys/devices/system/node/node1/cpulist", "4-7,12-15\n");
    put_file("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       97920000 kB\nNode 0 MemFree:   "
                                                      "     90000000 kB\nNode 0 MemUsed: 7920000 kB\n");
    put_file("sys/devices/system/node/node1/meminfo",
             "Node 1 MemTotal:       99000000 kB\nNode 1 MemFree:        98000000 kB\n");
}

static int set_up_tree(void **state) {
    tree = test_own_folder();
    put_topology();
    put_file("proc/self/status",
             "Name:\tassay-agent\nCpus_allowed:\tf7f6\nCpus_allowed_list:\t1-2,4-10,12-15\n");
    put_file("proc/meminfo", "MemTotal:       196920000 kB\nMemFree: 1 kB\nMemAvailable:   190000000 kB\n");
    put_file("proc/self/cgroup", "0::/user.slice/job_7\n");
    put_file("sys/fs/cgroup/user.slice/job_7/memory.max", "max\n");
    put_file("sys/fs/cgroup/user.slice/memory.max", "64000000000\n");
    put_file("proc/sys/kernel/hostname", "dahu-3.grenoble\n");
    put_file("proc/sys/kernel/ostype", "Linux\n");
    put_file("proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");
    put_file("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.55-1\n");
    put_file("proc/sys/kernel/arch", "x86_64\n");
    put_file("proc/sys/kernel/random/boot_id", "0a1b2c3d-1111-2222-3333-444455556666\n");
    return 0;
}

static struct node_facts *inspect(const char *root) {
    struct node_facts *facts = NULL;
    fixture_open(&f, root);
    assert_done(&f, agent_link_inspect_and_wait(f.link, &facts, &f.failure));
    fixture_close(&f);
    return facts;
}

static const struct node_pu *find_pu(const struct node_facts *facts, unsigned index) {
    for (size_t i = 0; i < facts->pu_count; i++)
        if (facts->pus[i].index == index)
            return &facts->pus[i];
    return NULL;
}

TEST(a_captured_machine_is_told_as_it_is) {
    struct node_facts *facts = inspect(tree);
    assert_string_equal(facts->host_name, "dahu-3.grenoble");
    assert_string_equal(facts->kernel_name, "Linux");
    assert_string_equal(facts->kernel_release, "6.1.0-13-amd64");
    assert_string_equal(facts->kernel_version, "#1 SMP PREEMPT_DYNAMIC Debian 6.1.55-1");
    assert_string_equal(facts->machine, "x86_64");
    assert_string_equal(facts->boot_id, "0a1b2c3d-1111-2222-3333-444455556666");
    assert_int_equal(facts->pu_count, 14);
    assert_null(find_pu(facts, 5));
    assert_null(find_pu(facts, 10));
    const struct node_pu *pu = find_pu(facts, 14);
    assert_int_equal(pu->core, 4);
    assert_int_equal(pu->package, 1);
    assert_int_equal(pu->numa_node, 1);
    assert_int_equal(pu->first_sibling_index, 6);
    assert_false(pu->first_sibling);
    assert_true(pu->allowed);
    pu = find_pu(facts, 13); /* its sibling 5 is offline */
    assert_true(pu->first_sibling);
    assert_int_equal(pu->first_sibling_index, 13);
    pu = find_pu(facts, 0);
    assert_true(pu->first_sibling);
    assert_false(pu->allowed);
    assert_int_equal(pu->numa_node, 0);
    assert_true(facts->memory_total == UINT64_C(196920000) * 1024);
    assert_true(facts->memory_available == UINT64_C(190000000) * 1024);
    assert_true(facts->memory_limit == UINT64_C(64000000000));
    assert_int_equal(facts->memory_count, 2);
    assert_int_equal(facts->memories[1].numa_node, 1);
    assert_true(facts->memories[1].total == UINT64_C(99000000) * 1024);
    assert_true(facts->memories[1].free == UINT64_C(98000000) * 1024);
    node_facts_free(facts);
}

/* What --capture takes of a machine, unpacked, is told as the machine was. */
TEST(a_capture_is_told_as_the_machine_was) {
    const char *copy = test_own_folder();
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", "\"$0\" --capture --root \"$1\" | tar xf - -C \"$2\"", test_agent(),
              tree, copy, (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    struct node_facts *before = inspect(tree), *after = inspect(copy);
    assert_string_equal(after->host_name, before->host_name);
    assert_string_equal(after->kernel_version, before->kernel_version);
    assert_string_equal(after->boot_id, before->boot_id);
    assert_int_equal(after->pu_count, before->pu_count);
    for (size_t i = 0; i < before->pu_count; i++) { /* not their bytes: some are padding */
        const struct node_pu *is = &after->pus[i], *was = &before->pus[i];
        assert_true(is->index == was->index && is->core == was->core && is->package == was->package);
        assert_true(is->numa_node == was->numa_node && is->first_sibling_index == was->first_sibling_index);
        assert_true(is->first_sibling == was->first_sibling && is->allowed == was->allowed);
    }
    assert_true(after->memory_total == before->memory_total);
    assert_true(after->memory_limit == before->memory_limit);
    assert_int_equal(after->memory_count, before->memory_count);
    assert_true(after->memories[1].free == before->memories[1].free);
    node_facts_free(before);
    node_facts_free(after);
}

TEST(one_allowed_pu_of_each_core) {
    struct node_facts *facts = inspect(tree);
    const struct node_pu **cores;
    size_t count;
    assert_int_equal(node_facts_physical_cores(facts, &cores, &count), 0);
    /* 0 is not allowed, so its core is used through 8; 3 and 11 are both not allowed; 5 is offline, 13 stands
     * in. */
    const unsigned expected[] = {1, 2, 4, 6, 7, 8, 13};
    assert_int_equal(count, 7);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(cores[i]->index, expected[i]);
    free(cores);
    for (size_t i = 0; i < facts->pu_count; i++)
        facts->pus[i].allowed = false;
    assert_int_equal(node_facts_physical_cores(facts, &cores, &count), 0);
    assert_int_equal(count, 0);
    free(cores);
    node_facts_free(facts);
}

TEST(a_limit_of_cgroup_version_1) {
    put_file("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/slurm/job_9/step_0\n0::/\n");
    put_file("sys/fs/cgroup/memory/slurm/job_9/step_0/memory.limit_in_bytes", "9223372036854771712\n");
    put_file("sys/fs/cgroup/memory/slurm/job_9/memory.limit_in_bytes", "17179869184\n");
    put_file("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "34359738368\n");
    struct node_facts *facts = inspect(tree);
    assert_true(facts->memory_limit == UINT64_C(17179869184));
    node_facts_free(facts);
    drop("sys/fs/cgroup");
    facts = inspect(tree);
    assert_true(facts->memory_limit == UINT64_MAX);
    node_facts_free(facts);
}

TEST(a_machine_that_says_little) {
    drop("sys/devices/system/node");
    drop("sys/devices/system/cpu/cpu7/topology");
    drop("proc/sys");
    drop("proc/self/cgroup");
    struct node_facts *facts = inspect(tree);
    assert_string_equal(facts->host_name, ""); /* and not the name of the machine that runs the test */
    assert_string_equal(facts->kernel_release, "");
    assert_string_equal(facts->machine, "");
    assert_string_equal(facts->boot_id, "");
    assert_int_equal(facts->memory_count, 0);
    assert_true(facts->memory_limit == UINT64_MAX);
    const struct node_pu *pu = find_pu(facts, 7);
    assert_int_equal(pu->core, -1);
    assert_int_equal(pu->package, -1);
    assert_int_equal(pu->numa_node, -1);
    assert_true(pu->first_sibling);
    node_facts_free(facts);
}

static void refused(const char *sentence) {
    struct node_facts *facts;
    fixture_open(&f, tree);
    assert_true(agent_link_inspect_and_wait(f.link, &facts, &f.failure) < 0);
    if (!strstr(f.failure.text, sentence))
        fail_msg("%s", f.failure.text);
    fixture_close(&f);
}

TEST(a_machine_that_says_nothing_is_refused) {
    put_file("proc/self/status", "Cpus_allowed_list:\t1-x\n");
    refused("'/proc/self/status' does not say which PUs may be used (Cpus_allowed_list)");
    put_file("proc/self/status", "Name:\tx\n");
    refused("'/proc/self/status' does not say which PUs may be used (Cpus_allowed_list)");
    put_file("proc/self/status", "Cpus_allowed_list:\t0\n");
    put_file("proc/meminfo", "MemFree: 12 kB\n");
    refused("'/proc/meminfo' does not say how much memory there is");
    put_file("sys/devices/system/cpu/online", "lots\n");
    refused("'/sys/devices/system/cpu/online' does not say which PUs there are: Invalid argument");
    drop("sys/devices/system/cpu/online");
    refused("'/sys/devices/system/cpu/online' does not say which PUs there are: No such file or directory");
}

TEST(this_machine) {
    setenv("OMP_PROC_BIND", "close", 1);
    setenv("ASSAY_TEST_SECRET", "x", 1);
    setenv("MPI_TOKEN", "x", 1);
    struct node_facts *facts = inspect(NULL);
    struct utsname name;
    uname(&name);
    assert_string_equal(facts->host_name, name.nodename);
    assert_string_equal(facts->kernel_name, name.sysname);
    assert_string_equal(facts->kernel_release, name.release);
    assert_string_equal(facts->kernel_version, name.version);
    assert_string_equal(facts->machine, name.machine);
    assert_int_equal(strlen(facts->boot_id), 36);
    assert_int_equal(facts->pu_count, sysconf(_SC_NPROCESSORS_ONLN));
    cpu_set_t mask;
    assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
    for (size_t i = 0; i < facts->pu_count; i++)
        assert_int_equal(facts->pus[i].allowed, CPU_ISSET(facts->pus[i].index, &mask));
    assert_true(facts->memory_total > 100 << 20);
    assert_true(facts->memory_available <= facts->memory_total);
    bool bind = false, path = false;
    for (size_t i = 0; i < facts->environment_count; i++) {
        bind |= strcmp(facts->environment[i], "OMP_PROC_BIND=close") == 0;
        path |= strncmp(facts->environment[i], "PATH=", 5) == 0;
        assert_null(strstr(facts->environment[i], "SECRET"));
        assert_null(strstr(facts->environment[i], "TOKEN"));
        if (i > 0)
            assert_true(strcmp(facts->environment[i - 1], facts->environment[i]) < 0);
    }
    assert_true(bind && path);
    node_facts_free(facts);
}

/* ---- the parser alone */

static struct text bytes;
static struct protocol_writer writer;

static void put_record(unsigned kind, const void *body, size_t length) {
    protocol_put_u16(&writer, (uint16_t)kind);
    protocol_put_u32(&writer, (uint32_t)length);
    protocol_put_bytes(&writer, body, length);
}

static void put_pu(uint32_t index, uint32_t first) {
    unsigned char body[24] = {0};
    memcpy(body, &index, 4);
    memcpy(body + 16, &first, 4);
    put_record(PROTOCOL_FACT_PU, body, sizeof body);
}

static void begin_facts(void) {
    static const char memory[24];
    text_reset(&bytes);
    protocol_begin(&writer, &bytes, PROTOCOL_FACTS);
    for (unsigned kind = PROTOCOL_FACT_HOST_NAME; kind <= PROTOCOL_FACT_BOOT_ID; kind++)
        put_record(kind, "x", 1);
    put_record(PROTOCOL_FACT_MEMORY, memory, sizeof memory);
}

static int parse(struct failure *failure) {
    struct node_facts *facts = NULL;
    assert_int_equal(protocol_end(&writer, 1, 0), 0);
    /* In memory of their exact size. */
    size_t length = bytes.length - PROTOCOL_HEADER_SIZE;
    char *copy = malloc(length);
    memcpy(copy, bytes.bytes + PROTOCOL_HEADER_SIZE, length);
    int r = node_facts_parse(copy, length, &facts, failure);
    free(copy);
    node_facts_free(facts);
    return r;
}

TEST(records_that_are_wrong) {
    struct failure failure;
    text_init(&bytes, 1 << 20);
    begin_facts();
    put_pu(0, 0);
    put_record(999, "from the future", 15);
    put_pu(1, 0);
    assert_int_equal(parse(&failure), 0);
    begin_facts();
    assert_int_equal(parse(&failure), -EPROTO); /* no PU */
    static const struct {
        uint32_t pu, first;
    } pus[] = {{0, 0} /* twice */, {8192, 0}, {2, 3} /* a first sibling that comes later */};
    for (size_t i = 0; i < sizeof pus / sizeof *pus; i++) {
        begin_facts();
        put_pu(0, 0);
        put_pu(pus[i].pu, pus[i].first);
        assert_int_equal(parse(&failure), -EPROTO);
        assert_string_equal(failure.text, "a malformed FACTS message: record of kind 7");
    }
    static const struct {
        unsigned kind;
        const char *body;
        size_t length;
    } records[] = {{PROTOCOL_FACT_HOST_NAME, "again", 5},
                   {PROTOCOL_FACT_ENVIRONMENT, "nothing", 7},
                   {PROTOCOL_FACT_ENVIRONMENT, "A=\0b", 4},
                   {PROTOCOL_FACT_NODE_MEMORY, "short", 5}};
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        begin_facts();
        put_pu(0, 0);
        put_record(records[i].kind, records[i].body, records[i].length);
        assert_int_equal(parse(&failure), -EPROTO);
    }
    begin_facts();
    put_pu(0, 0);
    protocol_put_u16(&writer, PROTOCOL_FACT_MACHINE);
    protocol_put_u32(&writer, 100); /* longer than what follows */
    protocol_put_u32(&writer, 0);
    assert_int_equal(parse(&failure), -EPROTO);
    text_clear(&bytes);
}

TEST_EACH(set_up_tree, NULL)
