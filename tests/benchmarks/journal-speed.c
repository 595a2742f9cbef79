/*
 * How fast a journal is written, and read back.
 *
 *     journal-speed FOLDER [ENTRIES]        default: 1000000
 *
 * Writes FOLDER/journal.jsonl as a run of so many units does, a commit (with its fdatasync) every 1,000
 * entries or 250 ms, whichever comes first; then reads it as a run does that goes on, with its ledger. Prints
 *
 *     ENTRIES_PER_SECOND COMMITS BYTES_PER_ENTRY REPLAY_SECONDS
 *
 * The rate is by wall time, the disk's included; the replay by the CPU's.
 */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/number.h"
#include "engine/run/record/journal.h"
#include "engine/run/record/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CORES = 32, GROUP = 1000 };
static const int64_t group_ns = 250000000;

static void end_unit(struct journal *journal, uint64_t unit) {
    char core[NUMBER_TEXT_SIZE], crc[16];
    number_format_uint64(unit % CORES, core);
    snprintf(crc, sizeof crc, "%08" PRIx32, (uint32_t)(unit * 2654435761u));
    journal_begin(journal, "unit");
    journal_integer(journal, "row", (int64_t)(unit / CORES % 5000) + 1);
    journal_integer(journal, "repetition", 1);
    journal_integer(journal, "order", (int64_t)(unit / CORES) + 1);
    journal_integer(journal, "block", 1);
    journal_string(journal, "node", "dahu-12.grenoble");
    journal_string(journal, "core", core);
    journal_string(journal, "status", "done");
    journal_integer(journal, "took_ns", (int64_t)(unit * 7919 % 1000000000));
    journal_string(journal, "line_crc32c", crc);
    journal_end(journal);
}

static int write_journal(const char *path, uint64_t entries, uint64_t *ret_commits, struct failure *failure) {
    struct journal *journal;
    int r = journal_create(path, &journal, failure);
    if (r < 0)
        return r;
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

static int take(const struct journal_entry *entry, void *context, struct failure *failure) {
    char node[256] = "", core[32] = "";
    int64_t order = 0;
    bool done = false;
    struct journal_member member;
    for (size_t at = 0; journal_entry_next(entry, &at, &member);) {
        if (journal_member_is(&member, "order"))
            journal_member_integer(&member, &order);
        else if (journal_member_is(&member, "node"))
            journal_member_text(&member, node, sizeof node);
        else if (journal_member_is(&member, "core"))
            journal_member_text(&member, core, sizeof core);
        else if (journal_member_is(&member, "status"))
            done = member.length == 6 && memcmp(member.value, "\"done\"", 6) == 0;
    }
    if (!journal_entry_is(entry, "unit") || order < 1 || !done)
        return failure_set(failure, -1, "entry %" PRIu64 " is not what was written", entry->sequence);
    struct ledger_attempt attempt = {.place = ledger_place(context, node, core),
                                     .position = (size_t)order - 1,
                                     .attempt = 1,
                                     .done = true};
    return ledger_take(context, &attempt);
}

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int measure(const char *path, uint64_t entries, struct failure *failure) {
    uint64_t commits = 0;
    int64_t begin = clock_monotonic_ns();
    int r = write_journal(path, entries, &commits, failure);
    double wrote = (double)(clock_monotonic_ns() - begin) / 1e9;
    struct ledger *ledger = NULL;
    if (r == 0 && (r = ledger_new((size_t)(entries / CORES) + 1, &ledger)) < 0)
        return failure_memory(failure);
    struct journal_end end = {0};
    double before = cpu_seconds();
    if (r == 0)
        r = journal_replay(path, take, ledger, &end, failure);
    double replayed = cpu_seconds() - before;
    if (r == 0 && (end.entries != entries || ledger_totals(ledger)->done != entries))
        r = failure_set(failure, -1, "%" PRIu64 " entries were read, and %" PRIu64 " written", end.entries,
                        entries);
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
    cleanup_free char *path = file_join(argv[1], "journal.jsonl");
    struct failure failure = {0};
    if (path && measure(path, entries, &failure) == 0)
        return 0;
    fprintf(stderr, "journal-speed: %s\n", failure.text);
    return 1;
}
