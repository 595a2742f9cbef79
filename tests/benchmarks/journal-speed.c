/*
 * How fast a journal is written, and read back.
 *
 *     journal-speed FOLDER [ENTRIES]        default: 1000000
 *
 * Writes FOLDER/journal.jsonl as a run does in which so many units fail, a commit (with its fdatasync) every
 * 1,000 entries or 250 ms, whichever comes first; then reads it as a run does that goes on, with its ledger.
 * Prints
 *
 *     ENTRIES_PER_SECOND COMMITS BYTES_PER_ENTRY REPLAY_SECONDS
 *
 * The rate is by wall time, the disk's included; the replay by the CPU's.
 */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/record/history.h"
#include "engine/run/record/journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CORES = 32, GROUP = 1000 };
static const int64_t group_ns = 250000000;

static void end_unit(struct journal *journal, uint64_t unit) {
    char core[NUMBER_TEXT_SIZE];
    number_format_uint64(unit % CORES, core);
    journal_begin(journal, "unit-failed");
    journal_integer(journal, "order", (int64_t)(unit / CORES) + 1);
    journal_integer(journal, "attempt", 1);
    journal_string(journal, "node", "dahu-12.grenoble");
    journal_string(journal, "core", core);
    journal_string(journal, "sentence", "the command ended with exit code 1");
    journal_integer(journal, "row", (int64_t)(unit / CORES % 5000) + 1);
    journal_integer(journal, "repetition", 1);
    journal_integer(journal, "block", 1);
    journal_end(journal);
}

static int write_journal(const char *path, uint64_t entries, uint64_t *ret_commits, struct failure *failure) {
    struct journal *journal;
    int r = journal_create(path, &journal, failure);
    if (r < 0)
        return r;
    journal_note(journal, "run-started", "run_id", "x");
    int64_t last_ns = clock_monotonic_ns();
    for (uint64_t unit = 0, pending = 1; r == 0 && unit < entries; unit++, pending++) {
        end_unit(journal, unit);
        int64_t now_ns = pending % 16 ? last_ns : clock_monotonic_ns();
        if (pending < GROUP && now_ns - last_ns < group_ns && unit + 1 < entries)
            continue;
        r = journal_commit(journal, failure);
        ++*ret_commits;
        pending = 0;
        last_ns = clock_monotonic_ns();
    }
    journal_close(journal);
    return r;
}

static unsigned no_flags(const char *text) {
    (void)text;
    return 0;
}

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int measure(const char *folder, uint64_t entries, struct failure *failure) {
    cleanup_free char *path = xformat("%s/journal.jsonl", folder);
    uint64_t commits = 0;
    int64_t begin = clock_monotonic_ns();
    int r = write_journal(path, entries, &commits, failure);
    double wrote = (double)(clock_monotonic_ns() - begin) / 1e9;
    struct ledger *ledger = ledger_new((size_t)(entries / CORES) + 1);
    struct run_history_units units = {
        .ledger = ledger, .positions = (size_t)(entries / CORES) + 1, .parse_flags = no_flags};
    struct run_history history = {0};
    double before = cpu_seconds();
    if (r == 0)
        r = run_history_read(folder, &units, &history, failure);
    double replayed = cpu_seconds() - before;
    struct journal_end end = history.journal;
    if (r == 0 && (end.entries != entries + 1 || ledger_totals(ledger)->failed != entries))
        r = failure_set(failure, -1, "%" PRIu64 " entries were read, and %" PRIu64 " written", end.entries,
                        entries + 1);
    run_history_clear(&history);
    ledger_free(ledger);
    if (r == 0)
        printf("%.0f %" PRIu64 " %.1f %.3f\n", (double)entries / wrote, commits,
               (double)end.bytes / (double)entries, replayed);
    return r;
}

int main(int argc, char **argv) {
    uint64_t entries = 1000000;
    if (argc < 2 || argc > 3 || (argc == 3 && !number_parse_uint64(argv[2], strlen(argv[2]), &entries)) ||
        entries == 0) {
        fprintf(stderr, "usage: journal-speed FOLDER [ENTRIES]\n");
        return 2;
    }
    struct failure failure = {0};
    if (measure(argv[1], entries, &failure) == 0)
        return 0;
    fprintf(stderr, "journal-speed: %s\n", failure.text);
    return 1;
}
