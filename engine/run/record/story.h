/* What a journal tells of a run: the part of run-status.h that reads entries. Private to this room. */
#ifndef ASSAY_RECORD_STORY_H
#define ASSAY_RECORD_STORY_H

#include "engine/run/record/journal-read.h"
#include "engine/run/record/status.h"

/* The progress of one part, in samples that are STORY_SAMPLE_NS apart at least. */
enum { STORY_SAMPLES = 64 };
#define STORY_SAMPLE_NS INT64_C(5000000000)

struct story_sample {
    int64_t monotonic_ns;
    uint64_t units;
};

struct run_story {
    struct run_status *status; /* filled in as entries come */
    void *names;               /* of its nodes, as tsearch(3) has them */
    uint64_t entries;
    int64_t last_entry_ns; /* by the wall clock */
    char sealed[16];       /* what the last `sealing` says; "": none, or the run went on after it */
    int64_t highest_order; /* of all units */
    bool measuring;        /* the last part has begun to and has not ended */
    uint64_t units;        /* that ended in the last part */
    int64_t last_unit_ns;  /* monotonic, when the last of them did; -1: none did */
    struct story_sample samples[STORY_SAMPLES]; /* a ring */
    size_t sample_count;                        /* all that were taken */
};

/* All of the journal but which units have ended: a journal_taker; CONTEXT is the story. */
int run_story_take(const struct journal_entry *entry, void *context, struct failure *failure);
/* Units a second; nan when that is not known. */
double run_story_rate(const struct run_story *story);
void run_story_clear(struct run_story *story); /* not its status */

/* Counts the units of the journal PATH, whose story this is, into its status: done, failed, repeated. */
int run_story_count_units(const struct run_story *story, const char *path, struct failure *failure);

#endif
