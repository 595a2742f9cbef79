/*
 * The archive of a made-up run, for the benchmark `report` and tests of pages:
 *
 *     report-archive FOLDER TARGET.zip NODES SECONDS
 *     report-archive --seal FOLDER TARGET.zip      FOLDER as it is, which was changed since
 *
 * Each node has 70 series at 1 Hz: frequencies of 64 CPUs, three temperatures, two RAPL zones, foreign load.
 * The last node is 2 % slower and clocks lower, node 1 has one sample of 95 degrees, the eighth throttles for
 * a minute. FOLDER, which must not be there, is what is sealed into TARGET.zip.
 */
#include "archive-format/datapackage.h"
#include "archive-format/writer.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CPUS = 64, REPETITIONS = 10, SETTINGS = 6, STATUS_USAGE = 2 };
static const int64_t begin_ns = 1795000000000000000, second_ns = 1000000000;

static uint64_t state = 1;

static double uniform(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15; /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return ((double)((z ^ z >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void) {
    double radius = sqrt(-2 * log(uniform()));
    return radius * cos(2 * M_PI * uniform());
}

static FILE *create(const char *folder, const char *name) {
    cleanup_free char *path = file_join(folder, name),
                      *parent = xstrndup(path, (size_t)(file_base_name(path) - path));
    FILE *stream = file_make_folders(parent, NULL) < 0 ? NULL : fopen(path, "we");
    if (!stream)
        perror(path), exit(1);
    return stream;
}

static FILE *create_probe(const char *folder, int node, const char *kind) {
    cleanup_free char *name = xformat("nodes/node-%d/probes/%s.csv", node, kind);
    FILE *stream = create(folder, name);
    fputs("time,monotonic,late,missed", stream);
    return stream;
}

static void begin_sample(FILE *stream, int second) {
    int64_t at = second_ns * second;
    fprintf(stream, "%" PRId64 ",%" PRId64 ",%d,0", begin_ns + at, 1000 + at, (int)(60000 * uniform()));
}

static void write_frequency(const char *folder, int node, int nodes, int seconds) {
    FILE *stream = create_probe(folder, node, "frequency");
    for (int cpu = 0; cpu < CPUS; cpu++)
        fprintf(stream, ",cpu%d", cpu);
    for (int s = 0; s < seconds; s++) {
        bool throttles = node == 8 && s > seconds / 2 && s < seconds / 2 + 60;
        double most = throttles ? 1.6e9 : node == nodes ? 2.94e9 : 3e9;
        fputc('\n', stream);
        begin_sample(stream, s);
        for (int cpu = 0; cpu < CPUS; cpu++)
            fprintf(stream, ",%.0f", 1e5 * floor((most + 2e7 * normal()) / 1e5));
    }
    fputc('\n', stream);
    fclose(stream);
}

static void write_others(const char *folder, int node, int seconds) {
    FILE *temperature = create_probe(folder, node, "temperature"),
         *energy = create_probe(folder, node, "energy"), *load = create_probe(folder, node, "load");
    uint64_t used[] = {0, 0};
    fputs(",package-0,core-0-0,core-0-1\n", temperature);
    fputs(",package-0,package-0-dram\n", energy);
    fputs(",foreign\n", load);
    for (int s = 0; s < seconds; s++) {
        double warm = 45 + 30 * (1 - exp(-s / 120.0));
        used[0] += (uint64_t)(1e6 * (180 + 4 * normal())), used[1] += (uint64_t)(1e6 * (22 + normal()));
        begin_sample(temperature, s);
        fprintf(temperature, ",%.0f,%.0f,%.0f\n", node == 1 && s == seconds / 3 ? 95 : warm + normal(),
                warm - 2 + normal(), warm - 3 + normal());
        begin_sample(energy, s);
        fprintf(energy, ",%" PRIu64 ",%" PRIu64 "\n", used[0], used[1]);
        begin_sample(load, s);
        fprintf(load, ",%.3f\n", 0.02 * uniform());
    }
    fclose(temperature), fclose(energy), fclose(load);
}

static const struct column results[] = {
    {"row", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .label = NULL},
    {"repetition", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .label = NULL},
    {"order", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .label = NULL},
    {"block", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .label = NULL},
    {"attempt", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .label = NULL},
    {"node", COLUMN_STRING, "", COLUMN_ROLE_ID, .label = NULL},
    {"core", COLUMN_STRING, "", COLUMN_ROLE_ID, .label = NULL},
    {"start", COLUMN_TIME, "", COLUMN_ROLE_TIME, .label = NULL},
    {"NB", COLUMN_INTEGER, "1", COLUMN_ROLE_FACTOR, .label = NULL},
    {"BCAST", COLUMN_STRING, "", COLUMN_ROLE_FACTOR, .label = NULL},
    {"rate", COLUMN_NUMBER, "Gflop/s", COLUMN_ROLE_RESPONSE, .label = NULL},
};

static void write_results(const char *folder, int nodes, int seconds) {
    static const char *const casts[] = {"1ring", "2ringM"};
    cleanup_free char *package = file_join(folder, "datapackage.json");
    FILE *stream = create(folder, "results/results.csv");
    const struct archive_table table = {"results/results.csv", "", results, sizeof results / sizeof *results};
    fputs("row,repetition,order,block,attempt,node,core,start,NB,BCAST,rate\n", stream);
    for (int order = 1; order <= SETTINGS * REPETITIONS; order++)
        for (int node = 1; node <= nodes; node++) {
            char start[CLOCK_TEXT_SIZE];
            int setting = order * 7 % SETTINGS, nb = 64 << setting % 3;
            double rate = (1000 + 40 * log2(nb) + 15 * (setting / 3)) * (node == nodes ? 0.98 : 1) *
                          (1 + 0.004 * normal());
            clock_format_ns(begin_ns + 600 * second_ns / 10 +
                                second_ns * order * (seconds - 120) / (SETTINGS * REPETITIONS),
                            start);
            fprintf(stream, "%d,%d,%d,1,1,node-%d,all,%s,%d,%s,%.3f\n", setting + 1, 1 + order / SETTINGS,
                    order, node, start, nb, casts[setting / 3], rate);
        }
    fclose(stream);
    if (archive_write_datapackage(package, "made up", &table, 1, NULL) < 0)
        exit(1);
}

static void write_run(const char *folder, int nodes, int seconds) {
    FILE *stream = create(folder, "run.json");
    char begin[CLOCK_TEXT_SIZE], warm[CLOCK_TEXT_SIZE], last[CLOCK_TEXT_SIZE], end[CLOCK_TEXT_SIZE];
    clock_format(begin_ns, begin), clock_format(begin_ns + 60 * second_ns, warm);
    clock_format(begin_ns + (seconds - 20) * second_ns, last),
        clock_format(begin_ns + seconds * second_ns, end);
    fprintf(stream,
            "{\"archive_version\": \"1.0\", \"run_id\": \"00000000-0000-4000-8000-000000000000\", \"name\": "
            "\"made-up\",\n"
            "\"status\": \"completed\", \"started\": \"%s\", \"ended\": \"%s\", \"testbed\": \"hosts\",\n"
            "\"experiment\": {\"name\": \"hpl\"}, \"answer\": {\"response\": \"rate\", \"unit\": "
            "\"Gflop/s\", \"best\": \"most\"},\n"
            "\"slow_nodes\": [{\"node\": \"node-%d\", \"sentence\": \"2 %% slower than the median of %d "
            "equal nodes\"}],\n"
            "\"phases\": [{\"name\": \"warm-up\", \"started\": \"%s\", \"ended\": \"%s\", \"status\": "
            "\"done\"},\n"
            "{\"name\": \"measure\", \"started\": \"%s\", \"ended\": \"%s\", \"status\": \"done\"},\n"
            "{\"name\": \"collect\", \"started\": \"%s\", \"ended\": \"%s\", \"status\": \"done\"}]}\n",
            begin, end, nodes, nodes, begin, warm, warm, last, last, end);
    fclose(stream);
}

static int seal(const char *folder, const char *target, int seconds) {
    char sha256[HASH_HEX_SIZE];
    struct failure failure = {0};
    const struct archive_description description = {.kind = ARCHIVE_OF_RUN,
                                                    .name = "made up",
                                                    .text = "A made-up run.",
                                                    .status = "completed",
                                                    .started_ns = begin_ns,
                                                    .ended_ns = begin_ns + seconds * second_ns,
                                                    .run_id = "00000000-0000-4000-8000-000000000000",
                                                    .engine_version = "0",
                                                    .command = "report-archive"};
    int r = archive_seal(folder, target, &description, sha256, &failure);
    if (r < 0)
        fprintf(stderr, "report-archive: %s\n", failure.text);
    return r < 0;
}

int main(int count, char **words) {
    if (count == 4 && strcmp(words[1], "--seal") == 0)
        return seal(words[2], words[3], 1);
    int nodes = count == 5 ? (int)strtol(words[3], NULL, 10) : 0,
        seconds = count == 5 ? (int)strtol(words[4], NULL, 10) : 0;
    if (nodes < 1 || seconds < 1) {
        fputs("usage: report-archive FOLDER TARGET.zip NODES SECONDS\n", stderr);
        return STATUS_USAGE;
    }
    write_run(words[1], nodes, seconds);
    write_results(words[1], nodes, seconds);
    for (int node = 1; node <= nodes; node++) {
        write_frequency(words[1], node, nodes, seconds);
        write_others(words[1], node, seconds);
    }
    return seal(words[1], words[2], seconds);
}
