/* Every control of every made-up machine, set and put back to the byte. */
#include "tests/test.h"
#include "tests/unit/agent/controls.h"

static const char *const all_names[] = {
    "daemons",        "hyperthreads",           "governor",    "turbo",
    "frequency",      "energy-preference",      "idle-states", "uncore-frequency",
    "numa-balancing", "transparent-huge-pages", "aslr"};
enum { NAMES = sizeof all_names / sizeof *all_names };

static const char *const machines[] = {"intel-pstate", "intel-cpufreq", "acpi-cpufreq",  "amd-pstate",
                                       "arm-cppc",     "virtual",       "offline-cores", "two-sockets"};
enum { MACHINES = sizeof machines / sizeof *machines };

/* Another value than the present one, out of the possible ones. */
static bool choose(const char *name, char *ret, size_t size) {
    char value[2048], possible[2048], *rest = possible, *word;
    if (strcmp(told_of("control", name, 2), "available") != 0)
        return false;
    snprintf(value, sizeof value, "%s", told_of("control", name, 3));
    snprintf(possible, sizeof possible, "%s", told_of("control", name, 4));
    while ((word = strsep(&rest, " ")))
        if (*word && strcmp(word, value) != 0 && strcmp(word, "default") != 0 && !strstr(word, "..")) {
            snprintf(ret, size, "%s=%s", name, word);
            return true;
        }
    fail_msg("'%s' has no other value", name);
    return false;
}

/* Sets one alone, and puts it back. */
static void set_one(const char *machine, const char *name, const char *word) {
    KEEP_AND_SET(word);
    /* `online` of all does not follow that of one in a folder, and min is told as what it is. */
    bool told_otherwise =
        strstr(word, "=min") || (strstr(word, "hyperthreads") && strcmp(machine, "acpi-cpufreq") == 0);
    if (!told_otherwise)
        assert_string_equal(told_of("set", name, 4), strchr(word, '=') + 1);
    assert_true(count_told("write\t") > 0 && count_told("expect\t") > 0);
    /* What is so already is not written again. */
    assert_int_equal(TOOL("--set-controls", word), 0);
    assert_string_equal(told_of("set", name, 5), "unchanged");
    assert_int_equal(count_told("write\t"), 0);
    assert_int_equal(TOOL("--restore-controls"), 0);
}

/* All controls of all machines: told in the order in which they are set, set one by one, and all at once. */
TEST(controls_of_machines_come_back) {
    for (size_t m = 0; m < MACHINES; m++) {
        machine_make(machines[m]);
        char words[NAMES][128], name[64];
        const char *arguments[NAMES + 2] = {"--set-controls"};
        size_t count = 1;
        assert_int_equal(TOOL("--controls"), 0);
        const char *at = tool_output.bytes;
        for (size_t i = 0; i < NAMES; i++) {
            char prefix[64];
            int length = snprintf(prefix, sizeof prefix, "control\t%s\t", all_names[i]);
            assert_memory_equal(at, prefix, (size_t)length);
            at = strchr(at, '\n') + 1;
            if (choose(all_names[i], words[i], sizeof words[i]))
                arguments[count++] = words[i];
        }
        assert_memory_equal(at, "machine\t", 8);
        assert_string_equal(told("held"), "");
        machine_is_as_before();
        for (size_t i = 1; i < count; i++) {
            snprintf(name, sizeof name, "%.*s", (int)strcspn(arguments[i], "="), arguments[i]);
            set_one(machines[m], name, arguments[i]);
            machine_is_as_before();
        }
        assert_int_equal(TOOL("--snapshot-controls", "--label", "test"), 0);
        if (tool_run(arguments) != 0)
            fail_msg("%s: %s%s", machines[m], tool_output.bytes, tool_words.bytes);
        assert_int_equal(count_told("set\t"), count - 1);
        for (size_t i = 1; i < count; i++) {
            snprintf(name, sizeof name, "%.*s", (int)strcspn(arguments[i], "="), arguments[i]);
            assert_string_equal(told_of("set", name, 5), "done");
        }
        assert_int_equal(TOOL("--restore-controls"), 0);
        assert_string_equal(field(told("restored"), 2), "0");
        machine_is_as_before();
    }
}

/* Each alone, so that none hides behind another. */
/* ---- values */

struct value_case {
    const char *machine, *word, *state, *after, *sentence; /* AFTER NULL: as before */
};

TEST(values_are_understood) {
    static const struct value_case cases[] = {
        {"intel-pstate", "frequency=2.1GHz", "done", "2.1GHz", ""},
        {"intel-pstate", "frequency=2100 MHz..3500000kHz", "done", "2.1GHz..3.5GHz", ""},
        {"intel-pstate", "frequency=base", "done", "2.1GHz", ""},
        {"intel-pstate", "frequency=50%", "done", "1.05GHz", ""},
        {"intel-pstate", "frequency=min..base", "done", "800MHz..2.1GHz", ""},
        {"intel-pstate", "frequency=min..max", "unchanged", NULL, ""},
        {"intel-pstate", "frequency=4GHz", "invalid", NULL,
         "'4GHz' is outside of 800MHz..3.5GHz, which is possible here"},
        {"intel-pstate", "frequency=2.1", "invalid", NULL, NULL},
        {"intel-pstate", "frequency=2GHz..1GHz", "invalid", NULL, "'2GHz..1GHz' begins above its end"},
        {"intel-pstate", "frequency=nan GHz", "invalid", NULL, NULL},
        {"intel-pstate", "frequency=-1GHz", "invalid", NULL, NULL},
        {"arm-cppc", "frequency=base", "invalid", NULL,
         "this machine does not report 'base'; expected a frequency such as 2.1GHz"},
        {"intel-pstate", "governor=ondemand", "invalid", NULL,
         "'ondemand' is not possible here; expected one of: performance powersave"},
        {"intel-pstate", "governor=power", "invalid", NULL, NULL},
        {"intel-pstate", "turbo=maybe", "invalid", NULL, "'maybe' is not possible; expected on or off"},
        {"intel-pstate", "energy-preference=balance-power", "done", "balance_power", ""},
        {"intel-pstate", "energy-preference=200", "done", "200", ""},
        {"intel-pstate", "energy-preference=256", "invalid", NULL, "'256' is too large; expected 0 to 255"},
        {"acpi-cpufreq", "energy-preference=balance-power", "done", "balance-power", ""},
        {"acpi-cpufreq", "energy-preference=3", "done", "3", ""},
        {"acpi-cpufreq", "energy-preference=16", "invalid", NULL, NULL},
        {"intel-pstate", "idle-states=C1", "done", "C1", ""},
        {"intel-pstate", "idle-states=c1e", "done", "C1E", ""},
        {"intel-pstate", "idle-states=POLL", "done", "POLL", ""},
        {"intel-pstate", "idle-states=0us", "done", "POLL", ""},
        {"intel-pstate", "idle-states=9us", "done", "C1", ""},
        {"intel-pstate", "idle-states=10000us", "unchanged", "all", ""},
        {"intel-pstate", "idle-states=C9", "invalid", NULL, NULL},
        {"intel-pstate", "uncore-frequency=1.5GHz..max", "done", "1.5GHz..2.4GHz", ""},
        {"intel-pstate", "uncore-frequency=base", "invalid", NULL, NULL},
        {"intel-pstate", "uncore-frequency=50%", "invalid", NULL, NULL},
        {"intel-pstate", "transparent-huge-pages=often", "invalid", NULL,
         "'often' is not possible here; expected one of: always madvise never"},
        {"intel-pstate", "transparent-huge-pages=madvise never", "invalid", NULL, NULL},
        {"intel-pstate", "aslr=0", "read-only", NULL, NULL},
        {"intel-pstate", "daemons=stopped", "absent", NULL, "nothing runs on a captured machine"},
        {"virtual", "turbo=off", "absent", NULL, NULL},
        {"virtual", "hyperthreads=off", "absent", NULL, NULL},
        {"acpi-cpufreq", "hyperthreads=off", "done", NULL, ""},
        {"offline-cores", "hyperthreads=off", "done", "off", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct value_case *one = &cases[i];
        char name[64], after[2048];
        if (i == 0 || strcmp(one->machine, cases[i - 1].machine) != 0) {
            machine_make(one->machine);
        }
        assert_int_equal(TOOL("--snapshot-controls"), 0);
        int status = TOOL("--set-controls", one->word);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(one->word, "="), one->word);
        if (strcmp(told_of("set", name, 5), one->state) != 0)
            fail_msg("%s: %s", one->word, told("set\t"));
        bool good = strcmp(one->state, "done") == 0 || strcmp(one->state, "unchanged") == 0;
        assert_int_equal(status, good ? 0 : 1);
        if (one->sentence)
            assert_string_equal(told_of("set", name, 6), one->sentence);
        else
            assert_string_not_equal(told_of("set", name, 6), "");
        snprintf(after, sizeof after, "%s", told_of("set", name, 4));
        if (one->after)
            assert_string_equal(after, one->after);
        else if (!good)
            assert_string_equal(told_of("set", name, 3), after);
        if (!good)
            assert_int_equal(count_told("write\t"), 0);
        restore_all();
    }
}

#define POLICY "sys/devices/system/cpu/cpufreq/policy"

TEST(mixed_values_are_told) {
    machine_make("intel-pstate");
    machine_put(POLICY "2/scaling_governor", "performance\n");
    machine_put(POLICY "5/scaling_max_freq", "1000000\n");
    machine_put("sys/devices/system/cpu/cpu1/cpuidle/state2/disable", "1\n");
    assert_int_equal(TOOL("--controls"), 0);
    assert_string_equal(told_of("control", "governor", 3), "mixed: powersave (0-1,3-7), performance (2)");
    assert_string_equal(told_of("control", "frequency", 3),
                        "mixed: 800MHz..3.5GHz (0-4,6-7), 800MHz..1GHz (5)");
    assert_string_equal(told_of("control", "idle-states", 3), "mixed: all (0,2-7), all but C1E (1)");
    /* Such, too, comes back. */
    machine_remember();
    KEEP_AND_SET("governor=performance", "frequency=3GHz", "idle-states=POLL");
    restore_all();
}

/* The lines that a write left, in order: of a pair of limits the one first that keeps them apart. */
TEST(limits_stay_in_order) {
    machine_make("intel-pstate:cores=1,threads=1");
    machine_put(POLICY "0/scaling_min_freq", "1000000\n");
    machine_put(POLICY "0/scaling_max_freq", "1500000\n");
    KEEP_AND_SET("frequency=3GHz");
    assert_non_null(strstr(told("write\t"), "scaling_max_freq"));
    assert_int_equal(TOOL("--set-controls", "frequency=800MHz"), 0);
    assert_non_null(strstr(told("write\t"), "scaling_min_freq"));
    assert_int_equal(TOOL("--restore-controls"), 0);
    assert_non_null(strstr(told("write\t"), "scaling_max_freq"));
    machine_expect(POLICY "0/scaling_min_freq", "1000000\n");
}

/* The switch of all and those of the policies: turbo is on where none of them is off. */
TEST(boost_of_a_policy_may_differ) {
    machine_make("amd-pstate");
    machine_put(POLICY "3/boost", "0\n");
    machine_remember();
    assert_int_equal(TOOL("--controls"), 0);
    assert_string_equal(told_of("control", "turbo", 3), "mixed: on (0-2,4-15), off (3)");
    KEEP_AND_SET("turbo=on");
    assert_string_equal(told_of("set", "turbo", 5), "done");
    assert_string_equal(told_of("set", "turbo", 4), "on");
    assert_int_equal(count_told("write\t"), 1);
    machine_expect(POLICY "3/boost", "1\n");
    restore_all();
    /* Off is off for all by one write: a kernel refuses the others then. */
    KEEP_AND_SET("turbo=off");
    assert_string_equal(told_of("set", "turbo", 4), "off");
    assert_int_equal(count_told("write\t"), 1);
    machine_expect("sys/devices/system/cpu/cpufreq/boost", "0\n");
    restore_all();
}

/* intel_pstate's limits of all, which those of the policies do not show: tuned leaves them so, for one. */
TEST(limits_of_all_hold_too) {
    machine_make("intel-pstate");
    machine_put("sys/devices/system/cpu/intel_pstate/min_perf_pct", "40\n");
    machine_put("sys/devices/system/cpu/intel_pstate/max_perf_pct", "50\n");
    machine_remember();
    assert_int_equal(TOOL("--controls"), 0);
    assert_string_equal(told_of("control", "frequency", 3), "1.4GHz..1.8GHz");
    KEEP_AND_SET("governor=performance");
    assert_string_equal(told("target"), "target\t1800000000\t1800000000");
    assert_int_equal(TOOL("--set-controls", "frequency=1GHz..base"), 0);
    assert_string_equal(told_of("set", "frequency", 4), "1GHz..2.1GHz");
    assert_string_equal(told_of("set", "frequency", 6), "");
    machine_expect("sys/devices/system/cpu/intel_pstate/min_perf_pct", "22\n");
    machine_expect("sys/devices/system/cpu/intel_pstate/max_perf_pct", "100\n");
    restore_all();
}

/* Cores that are better than the first ones, or less: the per cent are of each one's own highest frequency.
 */
TEST(limits_of_all_are_of_each_core) {
    machine_make("intel-pstate");
    machine_put(POLICY "3/cpuinfo_max_freq", "3700000\n");
    machine_put(POLICY "3/scaling_max_freq", "3700000\n");
    machine_put(POLICY "2/cpuinfo_max_freq", "2500000\n");
    machine_put(POLICY "2/scaling_max_freq", "2500000\n");
    machine_remember();
    KEEP_AND_SET("frequency=max");
    assert_string_equal(told_of("set", "frequency", 6), "");
    restore_all();
    machine_put("sys/devices/system/cpu/intel_pstate/max_perf_pct", "60\n"); /* 1.5 GHz of the third's */
    KEEP_AND_SET("frequency=1GHz..base");
    assert_string_equal(told_of("set", "frequency", 4), "1GHz..2.1GHz");
    machine_expect("sys/devices/system/cpu/intel_pstate/max_perf_pct", "100\n");
    assert_int_equal(TOOL("--restore-controls"), 0);
}

/* Frequency goes down before hardware threads go, and up again after: and comes back with the rest. */
TEST(threads_go_at_the_lowest) {
    machine_make("intel-pstate");
    KEEP_AND_SET("hyperthreads=off");
    const char *order[] = {"min_perf_pct", "max_perf_pct", "smt/control", "max_perf_pct", "min_perf_pct"};
    const char *at = tool_output.bytes;
    unsigned found = 0;
    for (; found < 5 && (at = strstr(at, order[found])); found++)
        at++;
    assert_true(found >= 4); /* a minimum that was the lowest is not written */
    machine_expect("sys/devices/system/cpu/intel_pstate/max_perf_pct", "100\n");
    assert_int_equal(TOOL("--restore-controls"), 0);
}

/* What was not set is not ours to put back. */
TEST(others_changes_stay) {
    machine_make("intel-pstate");
    KEEP_AND_SET("turbo=off");
    machine_put("proc/sys/kernel/numa_balancing", "0\n");
    machine_put(POLICY "1/scaling_governor", "performance\n");
    assert_int_equal(TOOL("--restore-controls"), 0);
    assert_string_equal(field(told("restored"), 1), "1");
    machine_expect("proc/sys/kernel/numa_balancing", "0\n");
    machine_expect(POLICY "1/scaling_governor", "performance\n");
    machine_expect("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
}

/* Files of a driver that is switched off stay, and cannot be read. */
TEST(a_driver_that_is_off_is_passed_by) {
    machine_make("acpi-cpufreq");
    assert_int_equal(mkdir(on_machine("sys/devices/system/cpu/intel_pstate"), 0755), 0);
    /* Sockets, which are there and cannot be opened. */
    assert_int_equal(mknod(on_machine("sys/devices/system/cpu/intel_pstate/no_turbo"), S_IFSOCK | 0644, 0),
                     0);
    assert_int_equal(
        mknod(on_machine("sys/devices/system/cpu/intel_pstate/max_perf_pct"), S_IFSOCK | 0644, 0), 0);
    machine_remember();
    assert_int_equal(TOOL("--controls"), 0);
    assert_string_equal(told_of("control", "turbo", 2), "available");
    KEEP_AND_SET("turbo=off");
    machine_expect("sys/devices/system/cpu/cpufreq/boost", "0\n");
    assert_int_equal(TOOL("--set-controls", "hyperthreads=off"), 0);
    assert_int_equal(count_told("write\tfrequency\t/sys/devices/system/cpu/intel_pstate/"), 0);
    assert_true(count_told("write\tfrequency\t/" POLICY "0/scaling_max_freq") > 0);
    restore_all();
}

/* Another governor takes with it what the first was set to. */
TEST(a_governors_settings_come_back) {
    machine_make("intel-cpufreq");
    machine_put(POLICY "0/scaling_governor", "userspace\n");
    machine_put(POLICY "0/scaling_setspeed", "1500000\n");
    assert_int_equal(mkdir(on_machine(POLICY "1/schedutil"), 0755), 0);
    machine_put(POLICY "1/schedutil/rate_limit_us", "700\n");
    machine_put(POLICY "1/schedutil/read_only", "1\n");
    assert_int_equal(chmod(on_machine(POLICY "1/schedutil/read_only"), 0444), 0);
    machine_put("sys/devices/system/cpu/cpufreq/schedutil/rate_limit_us", "900\n");
    machine_remember();
    assert_int_equal(TOOL("--snapshot-controls"), 0);
    assert_int_equal(count_told("file\tgovernor\t/sys/devices/system/cpu/cpufreq/schedutil/"), 1);
    assert_int_equal(count_told("file\tgovernor\t/" POLICY "1/schedutil/"), 1);
    assert_int_equal(count_told("file\tgovernor\t/" POLICY "0/scaling_setspeed\t1500000"), 1);
    assert_int_equal(count_told("file\tgovernor\t/" POLICY "1/scaling_setspeed"), 0);
    assert_int_equal(TOOL("--set-controls", "governor=performance"), 0);
    machine_put(POLICY "0/scaling_setspeed", "800000\n");
    machine_put(POLICY "1/schedutil/rate_limit_us", "500\n");
    machine_put("sys/devices/system/cpu/cpufreq/schedutil/rate_limit_us", "500\n");
    assert_int_equal(TOOL("--restore-controls"), 0);
    const char *governor = strstr(tool_output.bytes, "policy0/scaling_governor\t");
    const char *speed = strstr(tool_output.bytes, "policy0/scaling_setspeed\t");
    assert_true(governor && speed && governor < speed);
    machine_is_as_before();
}

/* A content without a newline, or with blanks, comes back as it was. */
TEST(bytes_come_back) {
    machine_make("intel-pstate");
    machine_put("proc/sys/kernel/numa_balancing", "1");
    machine_put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never \n\n");
    machine_put("sys/devices/system/cpu/intel_pstate/no_turbo", "0 \\ \t x\n\n");
    machine_remember();
    assert_int_equal(TOOL("--snapshot-controls"), 0);
    assert_non_null(strstr(tool_output.bytes, "no_turbo\t0 \\\\ \\t x\\n\\n\n"));
    assert_int_equal(
        TOOL("--set-controls", "numa-balancing=off", "transparent-huge-pages=always", "turbo=off"), 0);
    restore_all();
}

TEST(wrong_arguments_are_refused) {
    machine_make("virtual");
    assert_int_equal(TOOL("--set-controls"), 2);
    assert_int_equal(TOOL("--set-controls", "turbo"), 2);
    assert_int_equal(TOOL("--set-controls", "turbo="), 2);
    assert_int_equal(TOOL("--set-controls", "boost=on"), 2);
    assert_string_equal(tool_words.bytes,
                        "assay-agent: there is no control 'boost'; 'assay-agent --controls' lists them\n");
    assert_int_equal(TOOL("--set-controls", "turbo=on", "turbo=off"), 2);
    assert_int_equal(TOOL("--controls", "--what"), 2);
    assert_int_equal(TOOL("--snapshot-controls", "--label", "two words"), 2);
    assert_int_equal(TOOL("--snapshot-controls", "--session", "xyz"), 2);
    assert_int_equal(TOOL("--set-controls", "turbo=on"), 1);
    assert_string_equal(tool_words.bytes,
                        "assay-agent: this node has no snapshot; run --snapshot-controls first\n");
    assert_int_equal(TOOL("--restore-controls"), 0);
    assert_string_equal(tool_output.bytes, "nothing\tno control was changed: this node has no snapshot\n");
}

static int find_program(void **state) {
    machine_find_program();
    return 0;
}

TEST_EACH(machine_setup, machine_teardown)
TEST_GROUP(find_program, NULL)
