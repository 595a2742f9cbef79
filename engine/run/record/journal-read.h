/*
 * Reading a journal back (journal.h), entry by entry and in bounded memory: a run's own, to resume it, and
 * one that came from a stranger. Only whole lines are shown: those that end in a newline, have the right
 * checksum, are JSON, and have the sequence number that follows. What lies behind the first line that is not
 * whole is counted and not shown.
 *
 *     static int take(const struct journal_entry *entry, void *context, struct failure *failure) {
 *         int64_t block;
 *         if (journal_entry_is(entry, "block-started") && journal_entry_integer(entry, "block", &block))
 *             ...
 *         return 0;
 *     }
 *     ...
 *     struct journal_end end = {0};
 *     r = journal_replay("runs/x/journal.jsonl", take, &context, &end, failure);
 */
#ifndef ASSAY_RECORD_JOURNAL_READ_H
#define ASSAY_RECORD_JOURNAL_READ_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Valid during the call that shows it. */
struct journal_entry {
    uint64_t sequence;
    int64_t wall_ns, monotonic_ns;
    const char *event;
    const struct cJSON *members; /* for the functions below */
};

/* Inline: a run's history asks this of each entry, for all the events that it knows. */
static inline bool journal_entry_is(const struct journal_entry *entry, const char *event) {
    return entry->event[0] == event[0] && strcmp(entry->event, event) == 0;
}
/* False when the member is not there, or is not a whole number up to 2^53. */
bool journal_entry_integer(const struct journal_entry *entry, const char *key, int64_t *ret);
/* Reads what journal_time() wrote: a whole number of 64 bits, as a text. False: it is none. */
bool journal_entry_time(const struct journal_entry *entry, const char *key, int64_t *ret);
/* Unescaped, ended by NUL, cut at SIZE, between two characters. False when the member is not there, or is not
 * a text. */
bool journal_entry_text(const struct journal_entry *entry, const char *key, char *buffer, size_t size);

struct journal_end {
    uint64_t bytes, entries; /* so much is whole lines in sequence */
    uint64_t file_bytes;     /* there is so much of it in all */
    uint64_t whole_after;    /* lines with a right checksum behind the first that is not whole */
};

/* Zeroed, it is the beginning of a journal. A replay that is given the end of an earlier one goes on from
 * there: a line that was torn then is read again.
 *
 * A negative result ends the replay, which then gives the same. */
typedef int journal_handler(const struct journal_entry *entry, void *context, struct failure *failure);
/* TAKE may be NULL: then it is only measured. A torn end is no failure: END says where it begins. After a
 * failure END is as it was. */
int journal_replay(const char *path, journal_handler *handle, void *context, struct journal_end *end,
                   struct failure *failure);

/* A source of a journal other than a file, which begins at END: READ puts at most ROOM bytes into BUFFER and
 * returns how many; 0 at the end; or a negative errno. NAME is for messages. */
struct journal_source {
    const char *name;
    int64_t (*read)(void *context, char *buffer, size_t room);
    void *context;
};
int journal_replay_from(const struct journal_source *source, journal_handler *handle, void *context,
                        struct journal_end *end, struct failure *failure);

enum {
    JOURNAL_LINE_BYTES_MAX = 1 << 20, /* without its newline; an entry that is longer is not kept */
    JOURNAL_TAIL_BYTES = sizeof ",\"crc32c\":\"00000000\"}" - 1,
};
/* The checksum as lines have it at their end, ended by NUL. */
void journal_format_tail(uint32_t crc, char tail[static JOURNAL_TAIL_BYTES + 1]);
/* Checks one LINE (LENGTH bytes without its newline). True when its checksum is right. */
bool journal_line_is_whole(const char *line, size_t length);

#endif
