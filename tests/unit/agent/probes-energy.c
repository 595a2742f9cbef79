/* RAPL: zones by name, counters that start anew, zones that cannot be read. */
#include "tests/test.h"
#include "tests/unit/agent/made-tree.h"

static void make_zone(const char *entry, const char *name, const char *energy, const char *range) {
    char path[128];
    const char *const files[][2] = {{"name", name}, {"energy_uj", energy}, {"max_energy_range_uj", range}};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "sys/class/powercap/%s/%s", entry, files[i][0]);
        if (files[i][1])
            put(path, files[i][1]);
    }
}

static void set(const char *entry, const char *energy) {
    make_zone(entry, NULL, energy, NULL);
}

TEST(zones_are_told_by_name) {
    make_zone("intel-rapl:0", "package-1\n", "1000\n", "262143328850\n");
    make_zone("intel-rapl:0:0", "dram\n", "2000\n", "65712999613\n");
    make_zone("intel-rapl:1", "package-0\n", "3000\n", "262143328850\n");
    make_zone("intel-rapl:1:0", "core\n", "4000\n", "262143328850\n");
    make_zone("intel-rapl:1:1", "dram\n", "5000\n", "65712999613\n");
    make_zone("intel-rapl:2", "psys\n", "6000\n", "262143328850\n");
    make_zone("intel-rapl-mmio:0", "package-0\n", "1000\n", "262143328850\n");
    put("sys/class/powercap/intel-rapl/enabled", "1\n");
    make_zone("dtpm:0", "other\n", "1\n", "9\n");
    assert_int_equal(begin("energy"), 0);
    expect_columns("package-0:uJ package-0-core:uJ package-0-dram:uJ package-1:uJ package-1-dram:uJ psys:uJ");
    expect_sample(1, ",0,0,0,0,0,0");
    set("intel-rapl:0", "1011\n");
    set("intel-rapl:1:1", "7500\n");
    expect_sample(2, ",0,0,2500,11,0,0");
}

TEST(a_counter_starts_anew) {
    make_zone("intel-rapl:0", "package-0\n", "65712999000\n", "65712999613\n");
    assert_int_equal(begin("energy"), 0);
    set("intel-rapl:0", "65712999613\n");
    expect_sample(1, ",613");
    set("intel-rapl:0", "400\n");
    expect_sample(2, ",1013");
    /* more than once around in all: what is kept is wider than the counter */
    uint64_t total = 1013, last = 400;
    for (int i = 1; i <= 8; i++) {
        char text[32], expected[32];
        uint64_t counter = i % 2 ? UINT64_C(60000000000) : 100;
        snprintf(text, sizeof text, "%llu\n", (unsigned long long)counter);
        set("intel-rapl:0", text);
        total += counter > last ? counter - last : UINT64_C(65712999613) - last + counter;
        last = counter;
        snprintf(expected, sizeof expected, ",%llu", (unsigned long long)total);
        expect_sample(2 + i, expected);
    }
    assert_true(total > 4 * UINT64_C(65712999613));
}

TEST(between_samples_it_is_kept_up) {
    make_zone("intel-rapl:0", "package-0\n", "0\n", "1000\n");
    assert_int_equal(begin("energy"), 0);
    assert_int_equal(tree.probing.probe->refresh_ns, 10 * PROBE_SECOND);
    for (int i = 1; i <= 6; i++) { /* 600 a time, so once around in two */
        char text[16];
        snprintf(text, sizeof text, "%d\n", 600 * i % 1000);
        set("intel-rapl:0", text);
        tree.probing.now_ns = (100 + 10 * i) * PROBE_SECOND;
        probing_refresh(&tree.probing);
    }
    expect_sample(60, ",3600");
}

TEST(what_was_not_read_for_long_is_not_made_up) {
    make_zone("intel-rapl:0", "package-0\n", "10\n", "1000\n");
    make_zone("intel-rapl:1", "package-1\n", "10\n", "1000\n");
    assert_int_equal(begin("energy"), 0);
    expect_sample(10, ",0,0");
    set("intel-rapl:0", "\n");
    set("intel-rapl:1", "1001\n"); /* over its range */
    expect_sample(20, ",,");
    expect_events("gone energy package-0\ngone energy package-1\n");
    set("intel-rapl:0", "30\n");
    expect_sample(50, ",20,");
    expect_events("back energy package-0\n");
    set("intel-rapl:1", "30\n");
    expect_sample(71, ",20,"); /* 61 s without a reading: it may have gone round more than once */
    expect_sample(72, ",20,");
    expect_events("");
}

TEST(what_only_root_may_read_is_said) {
    if (geteuid() == 0) { /* whom nothing is denied: a file that cannot be read otherwise */
        make_zone("intel-rapl:0", "package-0\n", NULL, "1000\n");
        assert_int_equal(begin("energy"), -EACCES);
        assert_string_equal(
            tree.probing.why,
            "package-0: /sys/class/powercap/intel-rapl:0/energy_uj: No such file or directory");
        return;
    }
    make_zone("intel-rapl:0", "package-0\n", "10\n", "1000\n");
    assert_int_equal(fchmodat(tree.machine.root, "sys/class/powercap/intel-rapl:0/energy_uj", 0, 0), 0);
    assert_int_equal(begin("energy"), -EACCES);
    assert_string_equal(tree.probing.why, "package-0: /sys/class/powercap/intel-rapl:0/energy_uj: Permission "
                                          "denied (only root may read it)");
}

TEST(a_zone_without_a_range_is_left_out) {
    make_zone("intel-rapl:0", "package-0\n", "10\n", "1000\n");
    make_zone("intel-rapl:1", "package-1\n", "10\n", "0\n");
    assert_int_equal(begin("energy"), 0);
    expect_columns("package-0:uJ");
    assert_string_equal(tree.probing.why,
                        "package-1: /sys/class/powercap/intel-rapl:1/max_energy_range_uj: Invalid argument");
}
