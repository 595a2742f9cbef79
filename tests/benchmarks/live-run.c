/*
 * live-run FOLDER NODES SECONDS: writes the folder of a run of NODES nodes as an engine does that measures on
 * them, once a second: their samples, a line of the results of each, and the journal. It has the run's lock
 * until it ends, after SECONDS or by a signal.
 */
#include "archive-format/layout.h"
#include "engine/foundation/checksum.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/memory.h"
#include "engine/run/record/history.h"
#include "engine/run/record/journal.h"
#include "engine/run/record/lock.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CORES = 32, FILES = 3, UNITS = 1000000 };
static const struct {
    const char *name, *column, *unit;
    int columns;
} probes[FILES] = {{"temperature", "package-", "Cel", 2},
                   {"frequency", "cpu", "Hz", CORES},
                   {"energy", "package-", "uJ", 2}};

static void stop(const struct failure *failure) {
    fprintf(stderr, "live-run: %s\n", failure->text);
    exit(1);
}

static FILE *make(const char *folder, const char *name) {
    cleanup_free char *path = xformat("%s/%s", folder, name);
    FILE *file = fopen(path, "a");
    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

static void make_folder(const char *folder, const char *name) {
    cleanup_free char *path = xformat("%s/%s", folder, name);
    if (mkdir(path, 0777) < 0 && errno != EEXIST) {
        perror(path);
        exit(1);
    }
}

static char *probes_of(int node) {
    return xformat("nodes/node-%d/probes", node);
}

static void make_node(const char *folder, int node) {
    cleanup_free char *home = xformat("nodes/node-%d", node), *place = probes_of(node);
    make_folder(folder, home);
    make_folder(folder, place);
    cleanup_free char *package = xformat("%s/" ARCHIVE_DATAPACKAGE, place);
    FILE *json = make(folder, package);
    fputs("{\"name\": \"probes\", \"resources\": [", json);
    for (int i = 0; i < FILES; i++) {
        cleanup_free char *name = xformat("%s/%s.csv", place, probes[i].name);
        FILE *csv = make(folder, name);
        fprintf(json,
                "%s{\"name\": \"%s\", \"path\": \"%s.csv\", \"schema\": {\"fields\": [{\"name\": \"time\"}",
                i ? "," : "", probes[i].name, probes[i].name);
        fputs("time,monotonic,late,missed", csv);
        for (int c = 0; c < probes[i].columns; c++) {
            fprintf(json, ", {\"name\": \"%s%d\", \"type\": \"number\", \"unit\": \"%s\"}", probes[i].column,
                    c, probes[i].unit);
            fprintf(csv, ",%s%d", probes[i].column, c);
        }
        fputs("]}}", json);
        fputc('\n', csv);
        fclose(csv);
    }
    fputs("]}\n", json);
    fclose(json);
}

/* What sensors and results have at SECOND. */
static double value_of(int probe, int node, int second) {
    if (probe == 0)
        return 45 + node % 20 + second % 5;
    return probe == 1 ? 2.1e9 + 1e6 * ((node + second) % 100) : 2e8 * second;
}

static void write_samples(const char *folder, int node, int second) {
    cleanup_free char *place = probes_of(node);
    for (int i = 0; i < FILES; i++) {
        cleanup_free char *name = xformat("%s/%s.csv", place, probes[i].name);
        FILE *csv = make(folder, name);
        fprintf(csv, "%lld,%lld,0,0", (long long)clock_wall_ns(), (long long)clock_monotonic_ns());
        for (int c = 0; c < probes[i].columns; c++)
            fprintf(csv, ",%.10g", value_of(i, node, second));
        fputc('\n', csv);
        fclose(csv);
    }
}

static void commit(struct journal *journal) {
    struct failure failure = {0};
    if (journal_commit(journal, &failure) < 0)
        stop(&failure);
}

/* Appends LINES to the results, and says so in the journal. */
static void write_results(const char *folder, struct journal *journal, const char *lines, uint64_t *bytes,
                          int64_t units) {
    FILE *results = make(folder, ARCHIVE_RESULTS);
    char crc[16];
    fputs(lines, results);
    fclose(results);
    *bytes += strlen(lines);
    snprintf(crc, sizeof crc, "%08x", checksum_crc32c(lines, strlen(lines)));
    journal_begin(journal, "results");
    journal_integer(journal, "bytes", (int64_t)*bytes);
    journal_string(journal, "bytes_crc32c", crc);
    journal_integer(journal, "units_done", units);
    journal_integer(journal, "units_failed", 0);
    journal_integer(journal, "lines_flagged", 0);
    journal_integer(journal, "left_ns", (UNITS - units) * 4000000);
    journal_end(journal);
    commit(journal);
}

static struct journal *begin(const char *folder, int nodes) {
    cleanup_free char *path = xformat("%s/" ARCHIVE_JOURNAL, folder);
    struct failure failure = {0};
    struct journal *journal;
    if (journal_create(path, &journal, &failure) < 0)
        stop(&failure);
    journal_begin(journal, "run-started");
    journal_string(journal, "run_id", "00000000-0000-4000-8000-000000000000");
    journal_integer(journal, "part", 1);
    journal_string(journal, "campaign", "live");
    journal_end(journal);
    for (int i = 1; i <= nodes; i++) {
        cleanup_free char *name = xformat("node-%d", i);
        journal_note(journal, "node", "name", name);
    }
    journal_note(journal, "note", "sentence", "a run that is made up");
    journal_note(journal, "phase-started", "phase", run_phase_names[RUN_MEASURE]);
    journal_begin(journal, "planned");
    journal_integer(journal, "units", UNITS);
    journal_end(journal);
    commit(journal);
    return journal;
}

int main(int count, char **words) {
    struct failure failure = {0};
    struct run_lock *lock = NULL;
    if (count != 4) {
        fprintf(stderr, "usage: live-run FOLDER NODES SECONDS\n");
        return 2;
    }
    const char *folder = words[1];
    int nodes = (int)strtol(words[2], NULL, 10), seconds = (int)strtol(words[3], NULL, 10);
    make_folder(folder, "");
    make_folder(folder, "nodes");
    make_folder(folder, ARCHIVE_RESULTS_FOLDER);
    for (int i = 1; i <= nodes; i++)
        make_node(folder, i);
    if (run_lock_take(folder, &lock, &failure) < 0)
        stop(&failure);
    struct journal *journal = begin(folder, nodes);
    uint64_t bytes = 0;
    int64_t units = 0;
    write_results(folder, journal,
                  "row,repetition,order,block,attempt,node,core,start,start_monotonic,a,rate,state.frequency,"
                  "state.temperature,state.flags\n",
                  &bytes, 0);
    for (int second = 1; second <= seconds; second++) {
        size_t size = 0;
        cleanup_free char *lines = xmalloc((size_t)nodes * 128);
        for (int i = 1; i <= nodes; i++, units++) {
            write_samples(folder, i, second);
            size += (size_t)snprintf(lines + size, 128,
                                     "%d,%d,%lld,1,1,node-%d,all,2026-11-28T13:11:25Z,1,%d,%g,,,%s\n",
                                     1 + second % 4, second, (long long)units + 1, i, second % 4,
                                     100.0 + i % 7 + second % 4, i % 50 ? "" : "load");
        }
        write_results(folder, journal, lines, &bytes, units);
        poll(NULL, 0, 1000);
    }
    journal_close(journal);
    run_lock_free(lock);
    return 0;
}
