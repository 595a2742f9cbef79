/* The last samples of a node, read on from where they were read to. */
#include "engine/run/record/samples.h"
#include "engine/foundation/file.h"
#include "tests/test.h"

#include <unistd.h>

#define HEAD "time,monotonic,late,missed,busy,\"odd, name\"\n"

static void append(const char *name, const char *text) {
    cleanup_fclose FILE *file = fopen(test_path(name), "a");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
}

/* The probe of FILE, or NULL where it has no sample. */
static const struct samples_probe *probe_of(const struct samples *samples, const char *file) {
    for (size_t i = 0; i < samples->count; i++)
        if (strcmp(samples->probes[i].file, file) == 0 && samples->probes[i].count > 0)
            return &samples->probes[i];
    return NULL;
}

TEST(the_last_whole_line_counts) {
    cleanup(samples_clear) struct samples samples = {0};
    assert_ok(file_make_folders(test_path("nodes/n/probes"), &test_failure));
    samples_read(&samples, test_path("."), "n", 1);
    assert_int_equal(samples.count, 0);
    append("nodes/n/probes/load.csv", HEAD);
    append("nodes/n/probes/events.csv", "time,monotonic,kind,text\n1,1,begin,x\n");
    samples_read(&samples, test_path("."), "n", 1);
    assert_null(probe_of(&samples, "load.csv"));
    append("nodes/n/probes/load.csv", "17,1,0,0,0.5,3\n18,2,0,0,,4\n19,3,0,0,0.7");
    samples_read(&samples, test_path("."), "n", 1);
    const struct samples_probe *load = probe_of(&samples, "load.csv");
    assert_non_null(load);
    assert_int_equal(samples.count, 1);
    assert_int_equal(load->count, 2);
    assert_string_equal(load->names[1], "odd, name");
    assert_int_equal(load->time_ns, 18);
    assert_true(isnan(load->values[0]) && load->values[1] == 4);
    append("nodes/n/probes/load.csv", ",5\n");
    samples_read(&samples, test_path("."), "n", 1);
    load = probe_of(&samples, "load.csv");
    assert_int_equal(load->time_ns, 19);
    assert_null(load->units[0]); /* they are described when the sampler has begun */
    append("nodes/n/probes/datapackage.json", "{\"resources\":[{\"path\":\"load.csv\",\"schema\":{\"fields\":"
                                              "[{\"name\":\"busy\",\"unit\":\"%\"}]}}]}");
    samples_read(&samples, test_path("."), "n", 1);
    load = probe_of(&samples, "load.csv");
    assert_string_equal(load->units[0], "%");
    assert_null(load->units[1]);
    assert_true(load->values[0] == 0.7 && load->values[1] == 5);
}

/* What was read is not read again: it may be gone. A long file is read from its end. */
TEST(it_goes_on_from_a_byte) {
    cleanup(samples_clear) struct samples samples = {0};
    assert_ok(file_make_folders(test_path("nodes/m/part-2/probes"), &test_failure));
    const char *name = "nodes/m/part-2/probes/load.csv";
    append(name, HEAD);
    for (int i = 0; i < 5000; i++)
        append(name, "17,1,0,0,0.5,3\n");
    append(name, "18,1,0,0,1,2\n");
    samples_read(&samples, test_path("."), "m", 2);
    uint64_t bytes = probe_of(&samples, "load.csv")->bytes;
    assert_int_equal(bytes, sizeof HEAD - 1 + 5000 * 15 + 13);
    cleanup_fclose FILE *file = fopen(test_path(name), "r+");
    for (size_t i = 0; i < 1000; i++)
        assert_true(fputc('!', file) == '!');
    fflush(file);
    append(name, "19,1,0,0,3,4\n");
    samples_read(&samples, test_path("."), "m", 2);
    assert_int_equal(probe_of(&samples, "load.csv")->time_ns, 19);
    assert_true(probe_of(&samples, "load.csv")->values[1] == 4);
    samples_read(&samples, test_path("."), "m", 1); /* another part has other files */
    assert_int_equal(samples.count, 0);
}

/* A run's folder may come from anybody. */
TEST(of_strangers) {
    cleanup(samples_clear) struct samples samples = {0};
    assert_ok(file_make_folders(test_path("nodes/s/probes"), &test_failure));
    assert_ok(file_make_folders(test_path("out/probes"), &test_failure));
    append("out/probes/load.csv", HEAD "17,1,0,0,0.5,3\n");
    samples_read(&samples, test_path("nodes"), "../../out", 1);
    samples_read(&samples, test_path("."), "n/../../out", 1);
    assert_int_equal(samples.count, 0);
    assert_int_equal(symlink(test_path("out/probes/load.csv"), test_path("nodes/s/probes/load.csv")), 0);
    append("nodes/s/probes/few.csv", "time\n1\n");
    append("nodes/s/probes/twice.csv", "time,monotonic,late,missed,a,a\n1,1,0,0,1,2\n");
    append("nodes/s/probes/short.csv", HEAD "17\n");
    samples_read(&samples, test_path("."), "s", 1);
    assert_null(probe_of(&samples, "load.csv"));
    assert_null(probe_of(&samples, "few.csv"));
    assert_null(probe_of(&samples, "twice.csv"));
    const struct samples_probe *cut = probe_of(&samples, "short.csv");
    assert_true(!cut || cut->time_ns == 0);
}
