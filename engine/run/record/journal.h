/*
 * The journal: a run's append-only, durable record (archive-format/FORMAT.md, "journal.jsonl"). One JSON
 * object a line; its last member is the CRC-32C of everything before it, so that a line torn by a crash is
 * known.
 *
 * Entries are gathered in memory and reach the disk with journal_commit, many at a time. What the
 * user is shown was committed before.
 *
 *     journal_begin(journal, "block-started");
 *     journal_integer(journal, "block", 12);
 *     journal_end(journal);
 *     ...
 *     r = journal_commit(journal, failure);
 *
 * Adding never fails visibly: an entry that could not be kept in memory makes the next commit fail. Reading
 * is journal-read.h.
 */
#ifndef ASSAY_RECORD_JOURNAL_H
#define ASSAY_RECORD_JOURNAL_H

#include "engine/foundation/failure.h"
#include "engine/run/record/journal-read.h"

#include <stdint.h>

struct journal;

/* Creates the journal PATH, which must not exist. */
int journal_create(const char *path, struct journal **ret, struct failure *failure);
/* Continues the journal PATH, in which END (journal_replay) was found: it is cut at END->bytes, durably, and
 * the next entry has the number after END->entries. A caller that wants what is cut off keeps it first. */
int journal_open(const char *path, const struct journal_end *end, struct journal **ret,
                 struct failure *failure);
/* Commits nothing: call journal_commit first. NULL is fine. */
void journal_close(struct journal *journal);

/* An entry: begin (adds seq, the clocks t and m, and event), members, end. Entries do not nest. Events and
 * keys are written as they are: they have nothing that JSON would escape. */
void journal_begin(struct journal *journal, const char *event);
void journal_integer(struct journal *journal, const char *key, int64_t value);
/* Nanoseconds that may exceed 2^53: a text of digits, since many readers of JSON lose them otherwise. */
void journal_time(struct journal *journal, const char *key, int64_t value_ns);
void journal_number(struct journal *journal, const char *key, double value); /* not finite: null */
void journal_string(struct journal *journal, const char *key,
                    const char *value); /* any bytes; NULL is null */
/* A list of them; ITEMS ends with NULL. */
void journal_strings(struct journal *journal, const char *key, const char *const *items);
void journal_end(struct journal *journal);
/* An entry with one string member. */
void journal_note(struct journal *journal, const char *event, const char *key, const char *value);

/* Writes what was gathered and syncs it. On failure (a full disk, say) the file is cut back to its last
 * committed byte, so that it still ends in a whole line, and what was gathered is kept for another try. */
int journal_commit(struct journal *journal, struct failure *failure);
uint64_t journal_committed_bytes(const struct journal *journal);

#endif
