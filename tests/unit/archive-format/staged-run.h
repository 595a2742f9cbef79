/*
 * The folder of a small run, as a run leaves it: with a journal that accounts for its results, a table that
 * is as datapackage.json says, and one of every kind of file that an archive has.
 */
#ifndef ASSAY_TESTS_STAGED_RUN_H
#define ASSAY_TESTS_STAGED_RUN_H

#include "archive-format/datapackage.h"
#include "archive-format/reader.h"
#include "archive-format/writer.h"
#include "engine/foundation/checksum.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "tests/test.h"

static const char staged_campaign[] = "experiment: dgemm   # kept byte for byte\r\n";
static const char staged_results[] =
    "row,repetition,order,block,attempt,node,core,start,start_monotonic,m,n,k,word,duration,state.frequency,"
    "state.temperature,state.flags\n"
    "1,1,1,1,1,n-1.site.example,all,2025-11-20T10:00:01.000000001Z,,100,200,300,\"x,y\",0.25,,,\n"
    "2,1,2,1,1,n-1.site.example,all,2025-11-20T10:00:02.000000002Z,,300,200,100,z,0.5,,,\n";

static const char run_json[] =
    "{\"archive_version\":\"1.1\",\"run_id\":\"3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b10\",\"name\":\"dgemm on "
    "n-1\",\"engine\":{\"name\":\"assay\",\"version\":\"0.1.0\",\"commit\":null},\"status\":\"completed\","
    "\"error\":null,\"started\":\"2025-11-20T10:00:00.123+00:00\",\"ended\":\"2025-11-20T10:02:03.456+00:"
    "00\",\"seed\":\"18446744073709551615\",\"generator\":\"xoshiro256**\",\"order\":\"as-written\","
    "\"counts\":{\"rows\":2,\"units_planned\":2,\"units_done\":2,\"units_failed\":0},\"nodes\":[\"n-1.site."
    "example\"],\"testbed\":\"local\",\"experiment\":{\"name\":\"dgemm\",\"folder\":\"dgemm\"},\"options\":{"
    "\"library\":\"openblas\"},\"model\":{\"method\":\"linear\",\"response\":\"duration\",\"terms\":\"M-2\","
    "\"sizes\":[\"m\",\"n\",\"k\"],\"by\":[\"node\",\"core\"]},\"command\":[\"assay\",\"run\",\"campaign."
    "yaml\"],\"phases\":[{\"name\":\"measure\",\"started\":\"2025-11-20T10:00:01.000+00:00\",\"ended\":"
    "\"2025-11-20T10:02:03.000+00:00\",\"status\":\"completed\"}]}\n";

#define STAGED_FACTS                                                                                         \
    "{\"host_name\":\"n-1\",\"kernel_name\":\"Linux\",\"kernel_release\":\"6.1.0\",\"machine\":\"x86_64\","  \
    "\"pus\":[{\"index\":0}],\"cpu_model\":\"Model "                                                         \
    "<T>\","                                                                                                 \
    "\"physical_cores_usable\":2,\"memory_total_bytes\":8589934592,\"agent\":{\"version\":\"0.1.0\","        \
    "\"sha256\":"                                                                                            \
    "\"5555555555555555555555555555555555555555555555555555555555555555\"}}\n"
#define STAGED_SOFTWARE                                                                                      \
    "{\"nodes\":{\"n-1.site.example\":{\"compiler\":\"cc 12.2.0\",\"mpi\":\"Open MPI "                       \
    "4.1.4\",\"source\":{\"git\":"                                                                           \
    "\"https://example.org/dgemm.git\",\"commit\":\"abcdef0\"},\"programs\":[{\"path\":\"/w/"                \
    "dgemm\",\"sha256\":"                                                                                    \
    "\"6666666666666666666666666666666666666666666666666666666666666666\",\"libraries\":[{\"name\":"         \
    "\"libblas.so.3\",\"path\":\"/usr/lib/libopenblas.so.0\",\"sha256\":"                                    \
    "\"7777777777777777777777777777777777777777777777777777777777777777\",\"package\":\"libopenblas0\"}]}]}" \
    "}}\n"

static const struct {
    const char *name, *content;
} staged[] = {
    {"run.json", run_json},
    {"campaign.yaml", staged_campaign},
    {"campaign.resolved.json", "{\"experiment\":\"dgemm\",\"order\":\"as-written\"}\n"},
    {"design.csv", "m,n,k,word\n100,200,300,\"x,y\"\n300,200,100,z\n"},
    {"results/results.csv", staged_results},
    {"results/raw/1/stdout", "hello\n"},
    {"logs/engine.log", "log\n"},
    {"nodes/n-1.site.example/facts.json", STAGED_FACTS},
    {"nodes/n-1.site.example/raw/cpuinfo", "processor : 0\n"},
    {"experiment/experiment.yaml", "name: dgemm\n"},
    {"experiment/src/dgemm.c", "int main(void) { return 0; }\n"},
    {"software/versions.json", STAGED_SOFTWARE},
};
enum { STAGED_FILES = sizeof staged / sizeof *staged + 2 /* datapackage.json, journal.jsonl */ };

/* A file in the staging folder NAME, or another folder. */
static inline const char *put(const char *name, const char *file, const char *text) {
    cleanup_free char *both = file_join(name, file);
    return test_put(both, text);
}

/* A journal of these ENTRIES, each without its braces and numbered, with their checksums. */
static inline void stage_journal(const char *name, const char *const *entries, size_t count) {
    cleanup(text_clear) struct text journal;
    text_init(&journal, 1 << 20);
    for (size_t i = 0; i < count; i++) {
        size_t begin = journal.length;
        text_printf(&journal, "{\"seq\":%zu,\"t\":\"176363280%zu000000000\",\"m\":\"1\",%s", i + 1, i % 10,
                    entries[i]);
        uint32_t crc = checksum_crc32c(journal.bytes + begin, journal.length - begin);
        text_printf(&journal, ",\"crc32c\":\"%08x\"}\n", crc);
    }
    put(name, "journal.jsonl", journal.bytes);
}

static const char *const staged_commands[] = {
    "\"event\":\"unit-command\",\"node\":\"n-1.site.example\",\"core\":\"all\",\"block\":1,\"order\":1,"
    "\"attempt\":"
    "1,\"arguments\":[\"./dgemm\",\"100\"],\"environment\":[\"library=openblas\"]",
    "\"event\":\"unit-command\",\"node\":\"n-1.site.example\",\"core\":\"all\",\"block\":1,\"order\":2,"
    "\"attempt\":"
    "1"};

/* The journal of a run whose results are TABLE, of units that had these COMMANDS. */
static inline void stage_run_journal(const char *name, const char *bytes, const char *const commands[2]) {
    cleanup_free char *committed = text_format(
        "\"event\":\"results\",\"bytes\":%zu,\"bytes_crc32c\":\"%08x\",\"units_done\":2,\"units_failed\":0",
        strlen(bytes), checksum_crc32c(bytes, strlen(bytes)));
    const char *const entries[] = {
        "\"event\":\"run-started\",\"run_id\":\"3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b10\",\"part\":1",
        "\"event\":\"node\",\"name\":\"n-1.site.example\"",
        "\"event\":\"phase-started\",\"phase\":\"measure\"",
        "\"event\":\"block-started\",\"block\":1,\"first\":1,\"last\":2",
        commands[0],
        commands[1],
        committed,
        "\"event\":\"block-ended\",\"block\":1,\"status\":\"done\"",
        "\"event\":\"phase-ended\",\"phase\":\"measure\",\"status\":\"done\"",
        "\"event\":\"sealing\",\"status\":\"completed\"",
    };
    stage_journal(name, entries, sizeof entries / sizeof *entries);
}

/* A staging folder as a run leaves it. */
static inline const char *stage(const char *name) {
    for (size_t i = 0; i < sizeof staged / sizeof *staged; i++)
        put(name, staged[i].name, staged[i].content);
    stage_run_journal(name, staged_results, staged_commands);
    const struct column columns[] = {
        {"row", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .help = "line of design.csv"},
        {"repetition", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .label = NULL},
        {"order", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .label = NULL},
        {"block", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .label = NULL},
        {"attempt", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .label = NULL},
        {"node", COLUMN_STRING, "", COLUMN_ROLE_ID, .label = NULL},
        {"core", COLUMN_STRING, "", COLUMN_ROLE_ID, .label = NULL},
        {"start", COLUMN_TIME, "", COLUMN_ROLE_TIME, .label = NULL},
        {"start_monotonic", COLUMN_INTEGER, "ns", COLUMN_ROLE_TIME, .label = NULL},
        {"m", COLUMN_INTEGER, "1", COLUMN_ROLE_FACTOR, .label = NULL},
        {"n", COLUMN_INTEGER, "1", COLUMN_ROLE_FACTOR, .label = NULL},
        {"k", COLUMN_INTEGER, "1", COLUMN_ROLE_FACTOR, .label = NULL},
        {"word", COLUMN_STRING, "", COLUMN_ROLE_FACTOR, .label = NULL},
        {"duration", COLUMN_NUMBER, "s", COLUMN_ROLE_RESPONSE, .label = "Time"},
        {"state.frequency", COLUMN_NUMBER, "Hz", COLUMN_ROLE_COVARIATE, .label = NULL},
        {"state.temperature", COLUMN_NUMBER, "Cel", COLUMN_ROLE_COVARIATE, .label = NULL},
        {"state.flags", COLUMN_STRING, "", COLUMN_ROLE_COVARIATE, .label = NULL},
    };
    const struct archive_table table = {"results/results.csv", "Results", columns,
                                        sizeof columns / sizeof *columns};
    const char *folder = test_path(name);
    cleanup_free char *package = file_join(folder, "datapackage.json");
    assert_ok(archive_write_datapackage(package, "dgemm", &table, 1, &test_failure));
    return folder;
}

static inline struct archive_description describe(void) {
    return (struct archive_description){
        .name = "dgemm on n-1",
        .text = "A calibration of dgemm.",
        .status = "completed",
        .started_ns = INT64_C(1763632800123000000),
        .ended_ns = INT64_C(1763632923456000000),
        .run_id = "3f0e6d2c-8f5b-4b58-9a54-2f1f2f9e8b10",
        .engine_version = "0.1.0",
        .command = "assay run campaign.yaml",
        .agent = "Josiah Carberry",
    };
}

/* Seals what was staged as NAME; DESCRIPTION may be NULL. *RET: the archive NAME.zip, which the caller
 * closes. */
static inline void seal_staged(const char *name, const struct archive_description *description,
                               struct archive_reader **ret) {
    const struct archive_description usual = describe();
    cleanup_free char *zip = text_format("%s.zip", name), *staging = xstrdup(test_path(name));
    char sha256[HASH_HEX_SIZE];
    assert_ok(
        archive_seal(staging, test_path(zip), description ? description : &usual, sha256, &test_failure));
    assert_ok(archive_open(test_path(zip), ret, &test_failure));
}

#endif
