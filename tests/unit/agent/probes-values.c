/* What each probe finds on made-up machines, and what becomes of values that are garbage, that go and that
 * come back. */
#include "tests/test.h"
#include "tests/unit/agent/made-tree.h"

/* ---- frequency */

static void make_pus(const char *online, const char *const *kilohertz, unsigned count) {
    put("sys/devices/system/cpu/online", online);
    for (unsigned pu = 0; pu < count; pu++) {
        char path[128];
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq", pu);
        put(path, kilohertz[pu]);
    }
}

TEST(frequency_is_of_pus_that_are_online) {
    make_pus("0-1,3\n", (const char *const[]){"2100000\n", "800123\n", "1\n", "0\n"}, 4);
    assert_int_equal(begin("frequency"), 0);
    expect_columns("cpu0:Hz cpu1:Hz cpu3:Hz");
    expect_sample(1, ",2100000000,800123000,0");
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3500000\n");
    expect_sample(2, ",3500000000,800123000,0");
    expect_events("");
}

TEST(a_pu_goes_offline_and_comes_back) {
    static const char path[] = "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq";
    make_pus("0-1\n", (const char *const[]){"2100000\n", "2200000\n"}, 2);
    assert_int_equal(begin("frequency"), 0);
    expect_sample(1, ",2100000000,2200000000");
    take_away(path);
    expect_sample(2, ",2100000000,");
    expect_events("gone frequency cpu1\n");
    expect_sample(2.5, ",2100000000,");
    expect_sample(4, ",2100000000,");
    put(path, "2300000\n");
    expect_events("");                   /* told once */
    expect_sample(4.01, ",2100000000,"); /* looked for once a second */
    expect_sample(5, ",2100000000,2300000000");
    expect_events("back frequency cpu1\n");
}

TEST(garbage_is_no_value) {
    static const char *const garbage[] = {"",    "\n",       "<unknown>\n",
                                          "12x", "1 2",      "--5",
                                          "-",   "0x10",     "1.5",
                                          "1e3", "\xff\xfe", "9999999999999999999999",
                                          "+7",  " 7",       "a much longer line than any number is"};
    make_pus("0\n", (const char *const[]){"2100000\n"}, 1);
    assert_int_equal(begin("frequency"), 0);
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", garbage[i]);
        expect_sample((double)(10 + 4 * i), ",");
        put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "5");
        expect_sample((double)(12 + 4 * i), ",5000");
        expect_events("gone frequency cpu0\nback frequency cpu0\n");
    }
}

TEST(nothing_there_is_said) {
    static const struct {
        const char *probe, *why;
    } all[] = {
        {"frequency", "/sys/devices/system/cpu/online: No such file or directory"},
        {"temperature", "no coretemp, k10temp, zenpower or apm_xgene in /sys/class/hwmon, and no zone of a "
                        "processor in /sys/class/thermal"},
        {"throttle", "/sys/devices/system/cpu/online: No such file or directory"},
        {"energy", "no RAPL zone in /sys/class/powercap"},
        {"power", "no chip in /sys/class/hwmon has powerN_average or powerN_input"},
        {"load", "/proc/stat: No such file or directory"},
        {"memory", "/proc/meminfo: No such file or directory"},
        {"network", "/proc/net/dev: No such file or directory"},
        {"kernel", "/dev/kmsg: No such file or directory"},
        {"drift", "nothing is expected (--expect)"},
    };
    assert_int_equal(sizeof all / sizeof *all, PROBE_LIMIT);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(begin(all[i].probe) < 0);
        assert_string_equal(tree.probing.why, all[i].why);
    }
    put("sys/devices/system/cpu/online", "0-3\n");
    assert_int_equal(begin("frequency"), -ENOENT);
    assert_string_equal(tree.probing.why, "no PU has /sys/devices/system/cpu/cpuN/cpufreq/scaling_cur_freq");
    put("sys/devices/system/cpu/online", "some");
    assert_int_equal(begin("throttle"), -EINVAL);
}

/* ---- temperature, power */

TEST(packages_are_told_by_label_whatever_their_number) {
    put("sys/class/hwmon/hwmon5/name", "coretemp\n");
    put("sys/class/hwmon/hwmon5/temp1_label", "Package id 0\n");
    put("sys/class/hwmon/hwmon5/temp1_input", "47000\n");
    put("sys/class/hwmon/hwmon5/temp2_label", "Core 0\n");
    put("sys/class/hwmon/hwmon5/temp2_input", "950\n");
    put("sys/class/hwmon/hwmon5/temp10_label", "Core 8\n");
    put("sys/class/hwmon/hwmon5/temp10_input", "-1500\n");
    put("sys/class/hwmon/hwmon2/name", "coretemp\n");
    put("sys/class/hwmon/hwmon2/temp1_label", "Package id 1\n");
    put("sys/class/hwmon/hwmon2/temp1_input", "5\n");
    put("sys/class/hwmon/hwmon2/temp2_label", "Core 0\n");
    put("sys/class/hwmon/hwmon2/temp2_input", "0\n");
    put("sys/class/hwmon/hwmon3/name", "nvme\n");
    put("sys/class/hwmon/hwmon3/temp1_input", "33000\n");
    put("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
    put("sys/class/thermal/thermal_zone0/temp", "1000\n");
    assert_int_equal(begin("temperature"), 0);
    expect_columns("package-1:Cel core-1-0:Cel package-0:Cel core-0-0:Cel core-0-8:Cel");
    expect_sample(1, ",0.005,0.000,47.000,0.950,-1.500");
    assert_string_equal(tree.probing.source, "hwmon coretemp");
}

TEST(chips_come_in_the_order_of_their_devices) {
    for (unsigned i = 0; i < 2; i++) { /* hwmon0 is the second one */
        char path[128], link[128];
        snprintf(path, sizeof path, "sys/devices/pci0000:00/0000:00:%u8.3/hwmon/hwmon%u/name", 2 - i, i);
        put(path, "k10temp\n");
        snprintf(strrchr(path, '/'), 16, "/temp1_input");
        put(path, i == 0 ? "52125\n" : "41000\n");
        snprintf(strrchr(path, '/'), 16, "/temp1_label");
        put(path, "Tctl\n");
        snprintf(strrchr(path, '/'), 16, "/temp3_input");
        put(path, "39000\n");
        snprintf(strrchr(path, '/'), 16, "/temp3_label");
        put(path, "Tccd1\n");
        snprintf(path, sizeof path, "../../devices/pci0000:00/0000:00:%u8.3/hwmon/hwmon%u", 2 - i, i);
        snprintf(link, sizeof link, "sys/class/hwmon/hwmon%u", i);
        put_link(path, link);
    }
    assert_int_equal(begin("temperature"), 0);
    expect_columns("package-0:Cel package-0-ccd1:Cel package-1:Cel package-1-ccd1:Cel");
    expect_sample(1, ",41.000,39.000,52.125,39.000");
}

TEST(the_die_goes_before_what_fans_go_by) {
    put("sys/class/hwmon/hwmon0/name", "k10temp\n");
    put("sys/class/hwmon/hwmon0/temp1_label", "Tctl\n");
    put("sys/class/hwmon/hwmon0/temp1_input", "70000\n");
    put("sys/class/hwmon/hwmon0/temp2_label", "Tdie\n");
    put("sys/class/hwmon/hwmon0/temp2_input", "43000\n");
    assert_int_equal(begin("temperature"), 0);
    expect_columns("package-0-Tctl:Cel package-0:Cel");
    expect_sample(1, ",70.000,43.000");
}

TEST(a_chip_of_another_maker) {
    put("sys/class/hwmon/hwmon0/device/name", "apm_xgene\n"); /* where old kernels had it */
    put("sys/class/hwmon/hwmon0/device/temp1_label", "SoC Temperature\n");
    put("sys/class/hwmon/hwmon0/device/temp1_input", "34000\n");
    assert_int_equal(begin("temperature"), 0);
    expect_columns("package-0:Cel");
    expect_sample(1, ",34.000");
}

TEST(thermal_zones_are_taken_where_there_is_no_chip) {
    static const struct {
        const char *type, *temp;
    } zones[] = {{"acpitz\n", "1\n"},
                 {"x86_pkg_temp\n", "45000\n"},
                 {"x86_pkg_temp\n", "46000\n"},
                 {"cpu, big: 0\n", "30000\n"},
                 {"cpu, big: 0\n", "31000\n"}};
    for (unsigned i = 0; i < 5; i++) {
        char path[128];
        snprintf(path, sizeof path, "sys/class/thermal/thermal_zone%u/type", i);
        put(path, zones[i].type);
        snprintf(path, sizeof path, "sys/class/thermal/thermal_zone%u/temp", i);
        put(path, zones[i].temp);
    }
    assert_int_equal(begin("temperature"), 0);
    expect_columns("package-0:Cel package-1:Cel cpu--big--0:Cel cpu--big--0-2:Cel");
    expect_sample(1, ",45.000,46.000,30.000,31.000");
}

TEST(power_is_the_average_where_there_is_one) {
    put("sys/class/hwmon/hwmon0/name", "power_meter\n");
    put("sys/class/hwmon/hwmon0/power1_average", "215000000\n");
    put("sys/class/hwmon/hwmon0/power1_input", "1\n");
    put("sys/class/hwmon/hwmon1/name", "amdgpu\n");
    put("sys/class/hwmon/hwmon1/power1_label", "PPT\n");
    put("sys/class/hwmon/hwmon1/power1_input", "30000000\n");
    put("sys/class/hwmon/hwmon2/name", "amdgpu\n");
    put("sys/class/hwmon/hwmon2/power1_label", "PPT\n");
    put("sys/class/hwmon/hwmon2/power1_input", "31000000\n");
    put("sys/class/hwmon/hwmon3/name", "coretemp\n");
    assert_int_equal(begin("power"), 0);
    expect_columns("amdgpu-ppt:uW amdgpu-ppt-2:uW power_meter-power1:uW");
    expect_sample(1, ",30000000,31000000,215000000");
}

/* All bits set, as firmware says that it does not know, and as drivers scale it. */
TEST(what_firmware_does_not_know_is_empty) {
    static const char power_path[] = "sys/class/hwmon/hwmon0/power1_average";
    static const char *const power[] = {"4294967295000",
                                        "4294967295",
                                        "65535000",
                                        "-1",
                                        "-1000",
                                        "9223372036854775807",
                                        "2147483647000",
                                        "18446744073709551615",
                                        "-9223372036854775808",
                                        "65535000000"};
    put("sys/class/hwmon/hwmon0/name", "power_meter\n");
    put(power_path, "215000000\n");
    assert_int_equal(begin("power"), 0);
    for (size_t i = 0; i < sizeof power / sizeof *power; i++) {
        put(power_path, power[i]);
        expect_sample((double)(10 + 4 * i), ",");
        put(power_path, "255000000\n");
        expect_sample((double)(12 + 4 * i), ",255000000");
        expect_events("gone power power_meter-power1\nback power power_meter-power1\n");
    }
}

TEST(temperatures_that_no_chip_has_are_empty) {
    static const char path[] = "sys/class/thermal/thermal_zone0/temp";
    static const char *const values[] = {"255000",        "-1",    "-1000",      "-274000",
                                         "4294967295000", "65535", "-2147483648"};
    put("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
    put(path, "45000\n");
    assert_int_equal(begin("temperature"), 0);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        put(path, values[i]);
        expect_sample((double)(10 + 4 * i), ",");
        put(path, "-1500\n");
        expect_sample((double)(12 + 4 * i), ",-1.500");
        expect_events("gone temperature package-0\nback temperature package-0\n");
    }
}

/* ---- throttle */

static void make_throttle(unsigned pu, const char *package, const char *core, const char *siblings,
                          const char *counts[2]) {
    char path[128];
    const char *const files[][2] = {{"topology/physical_package_id", package},
                                    {"topology/core_id", core},
                                    {"topology/thread_siblings_list", siblings},
                                    {"thermal_throttle/core_throttle_count", counts[0]},
                                    {"thermal_throttle/package_throttle_count", counts[1]}};
    for (size_t i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%u/%s", pu, files[i][0]);
        put(path, files[i][1]);
    }
}

TEST(throttling_is_counted_once_a_core_and_once_a_package) {
    put("sys/devices/system/cpu/online", "0-6\n"); /* 7 is offline: its sibling is alone */
    make_throttle(0, "0\n", "0\n", "0,4\n", (const char *[]){"11\n", "7\n"});
    make_throttle(1, "0\n", "9\n", "1,5\n", (const char *[]){"12\n", "7\n"});
    make_throttle(2, "1\n", "0\n", "2,6\n", (const char *[]){"13\n", "8\n"});
    make_throttle(3, "1\n", "9\n", "3\n", (const char *[]){"14\n", "8\n"});
    for (unsigned pu = 4; pu < 7; pu++)
        make_throttle(pu, "0\n", "0\n",
                      pu == 4   ? "0,4\n"
                      : pu == 5 ? "1,5\n"
                                : "2,6\n",
                      (const char *[]){"99\n", "99\n"});
    assert_int_equal(begin("throttle"), 0);
    expect_columns("package-0:1 core-0-0:1 core-0-9:1 package-1:1 core-1-0:1 core-1-9:1");
    expect_sample(1, ",7,11,12,8,13,14");
}

/* ---- load, memory, network */

static const char stat_before[] = "cpu  100 10 50 800 5 3 2 30 0 0\ncpu0 100 10 50 800 5 3 2 30 0 0\n"
                                  "intr 5000 1 2 3\nctxt 7000\nbtime 1\n";
static const char stat_after[] = "cpu  150 10 70 860 35 3 2 70 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"
                                 "intr 5120 1 2 3\nctxt 7345\nbtime 1\n";

TEST(load_counts_from_the_beginning) {
    put("proc/stat", stat_before);
    put("proc/loadavg", "0.52 0.58 0.59 3/1234 56789\n");
    assert_int_equal(begin("load"), 0);
    expect_columns("load-1min:1 busy:1 foreign:1 context-switches:1 interrupts:1");
    expect_sample(1, ",0.52,,,0,0"); /* no tick since; a captured machine has no processes */
    put("proc/stat", stat_after);
    put("proc/loadavg", "12.00 0.58 0.59 3/1234 56789\n");
    expect_sample(1.05, ",,,,,"); /* not read so soon */
    expect_sample(1.5, ",,0.3500,,345,120");
    expect_events("");
    expect_sample(2, ",12.00,,,345,120");
    put("proc/stat", "cpu x\n");
    put("proc/loadavg", "much\n");
    expect_sample(3, ",,,,,");
    expect_events("gone load load-1min\ngone load busy\ngone load foreign\ngone load context-switches\n"
                  "gone load interrupts\n");
    put("proc/stat", stat_before);
    tree.probing.last = true;
    expect_sample(3.01, ",,,,0,0"); /* the last one spares nothing; ticks ran backwards */
}

TEST(memory_is_in_bytes) {
    put("proc/meminfo", "MemTotal:       196608000 kB\nMemFree:        100 kB\nMemAvailable:   200 kB\n");
    assert_int_equal(begin("memory"), 0);
    expect_columns("available:By free:By");
    expect_sample(1, ",204800,102400");
    put("proc/meminfo", "MemTotal: 1 kB\nMemFree: many kB\nXMemAvailable: 3 kB\n");
    expect_sample(1.09, ",,");
    expect_events("");
    expect_sample(1.1, ",,");
    expect_events("gone memory available\ngone memory free\n");
}

TEST(of_many_interfaces_the_first_are_taken) {
    struct text content;
    text_init(&content, 1 << 20);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(text_printf(&content, "tap%04d: %d 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n", i, i), 0);
    put("proc/net/dev", content.bytes);
    text_clear(&content);
    assert_int_equal(begin("network"), 0);
    assert_int_equal(tree.probing.count, PROBE_COLUMN_LIMIT / 6 * 6);
}

TEST(interfaces_come_and_go) {
    static const char header[] = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop\n";
    char content[1024];
    snprintf(content, sizeof content, "%s    lo: 1 1 1 1 0 0 0 0 1 1 1 1 0 0 0 0\n%s%s", header,
             "  eth0: 1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0\n",
             "eth0:1:50 5 0 0 0 0 0 0 60 6 0 0 0 0 0 0\n");
    put("proc/net/dev", content);
    assert_int_equal(begin("network"), 0);
    expect_columns("eth0-rx-bytes:By eth0-rx-packets:1 eth0-rx-errors:1 eth0-tx-bytes:By eth0-tx-packets:1 "
                   "eth0-tx-errors:1 eth0-1-rx-bytes:By eth0-1-rx-packets:1 eth0-1-rx-errors:1 "
                   "eth0-1-tx-bytes:By eth0-1-tx-packets:1 eth0-1-tx-errors:1");
    expect_sample(1, ",1000,10,3,2000,20,7,50,5,0,60,6,0");
    snprintf(content, sizeof content, "%s   new: 1 1 1 1 0 0 0 0 1 1 1 1 0 0 0 0\n%s", header,
             "eth0:1: 51 5 0 0 0 0 0 0 61 6 0 0 0 0 0 0\n");
    put("proc/net/dev", content);
    expect_sample(2, ",,,,,,,51,5,0,61,6,0");
    put("proc/net/dev", "eth0: 1 2 3\n");
    expect_sample(3, ",,,,,,,,,,,,");
    put("proc/net/dev", "    lo: 1 1 1 1 0 0 0 0 1 1 1 1 0 0 0 0\n");
    assert_int_equal(begin("network"), -ENOENT);
}

/* ---- kernel */

static void append(const char *path, const char *text) {
    int file = openat(tree.machine.root, path, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(file_write_all(file, text, strlen(text)), 0);
    close(file);
}

TEST(the_kernel_complains) {
    put("dev/kmsg", "3,1,100,-;before we came\n");
    assert_int_equal(begin("kernel"), 0);
    expect_columns("errors:1");
    expect_sample(1, ",0");
    append("dev/kmsg",
           "6,2,100,-;chatter\n SUBSYSTEM=x\n3,3,200,-;mce: [Hardware Error]: CPU 3\n DEVICE=+x\n"
           "11,4,300,-;a daemon's own error\ngarbage\n4,5,1,-;a warning\n0,6,1,-;so hot\n2;no comma\n");
    expect_sample(2, ",2");
    expect_events("kernel-error mce: [Hardware Error]: CPU 3\nkernel-error so hot\n");
    for (int i = 0; i < 100; i++)
        append("dev/kmsg", "3,9,9,-;again\n");
    expect_sample(3, ",102");
    size_t told = 0;
    for (const char *at = tree.events; (at = strstr(at, "again")); at++)
        told++;
    assert_int_equal(told, 16); /* a storm is counted, and not told at length */
}

TEST(memory_controllers_are_summed) {
    put("sys/devices/system/edac/mc/mc0/ce_count", "3\n");
    put("sys/devices/system/edac/mc/mc0/ue_count", "0\n");
    put("sys/devices/system/edac/mc/mc1/ce_count", "4\n");
    put("sys/devices/system/edac/mc/mc1/ue_count", "1\n");
    assert_int_equal(begin("kernel"), 0);
    assert_string_equal(tree.probing.why, "/dev/kmsg: No such file or directory"); /* and this beside it */
    expect_columns("corrected:1 uncorrected:1");
    expect_sample(1, ",7,1");
    put("sys/devices/system/edac/mc/mc1/ce_count", "\n");
    expect_sample(2, ",,1");
    expect_events("gone kernel corrected\n");
}

/* ---- drift */

TEST(what_was_set_is_watched) {
    static const char *const expected[] = {"/sys/a= 1 ", "/sys/thp=madvise", "/sys/missing=", "/sys/x=a=b"};
    put("sys/a", "1\n");
    put("sys/thp", "always [madvise] never\n");
    put("sys/missing", "\n");
    put("sys/x", "a=b\n");
    assert_int_equal(begin_with("drift", expected, 4), 0);
    expect_columns("drifted:1");
    expect_sample(1, ",0");
    put("sys/a", "0\n");
    put("sys/thp", "[always] madvise never\n");
    take_away("sys/missing");
    expect_sample(1.005, ",0"); /* 50 a second: none is due */
    expect_sample(1.025, ",1");
    expect_events("drift /sys/a: expected 1, found 0\n");
    expect_sample(2, ",3");
    expect_events("drift /sys/thp: expected madvise, found always\ndrift /sys/missing: expected , "
                  "found (No such file or directory)\n");
    put("sys/a", "1\n");
    put("sys/x", "c\n");
    tree.probing.last = true;
    expect_sample(2.001, ",3"); /* all of them */
    expect_events("drift /sys/x: expected a=b, found c\ndrift-over /sys/a: expected 1, found 1\n");
}
