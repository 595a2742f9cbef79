/*
 * The parts of a run that are over, from its journal and its results: what a part that goes on must know.
 *
 * The journal is the truth. Its k-th unit that is done has the k-th line of results.csv, whose checksum it
 * carries. Lines that no entry speaks of were never shown to anybody and are cut off; entries whose line is
 * not on the disk (a file system that lost what it had promised to keep) are void from the first of them on,
 * and their units are measured again. Private to this room.
 */
#ifndef ASSAY_RECORD_PAST_H
#define ASSAY_RECORD_PAST_H

#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"
#include "engine/run/campaign/plan.h"
#include "engine/run/record/journal.h"
#include "engine/run/record/ledger.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One part, for run.json. */
struct past_part {
    int64_t started_ns, ended_ns; /* wall; the latter: of its last entry */
    uint64_t units_done;          /* in this part */
    char status[16];              /* what it was sealed as; "stopped": it was not */
    char engine[32];              /* its version; "": not known */
};

/* An agent that may still be there: it leaves when it is told to, or when its lease is over. */
struct past_agent {
    char *node;
    char session[17];
};

/* BY measures the whole share of NODE, which was lost. */
struct past_replacement {
    char *node, *by;
};

struct past {
    char id[40];
    struct past_part *parts;
    size_t part_count;
    char **nodes; /* that the run had */
    size_t node_count;
    struct past_agent *agents;
    size_t agent_count;
    struct past_replacement *replacements;
    size_t replacement_count;
    size_t block_number;    /* the last */
    unsigned commands_kept; /* folders in logs/commands/ */
    bool sealed;            /* the last part was, by its journal */
    char archive[256];      /* the file name of its archive; "": not known */
    bool lacks_node;        /* one was taken out since that began */
    bool measured;          /* the last part that measured came to the end of it, and no node was out */
    uint64_t planned;       /* units, in all; 0: it did not get so far */

    struct journal_end journal;
    uint64_t results_bytes, results_end; /* so much of it stands; so much there is */
    uint64_t lost_from;                  /* sequence of the first unit that is void since; 0: none is */
    uint64_t lost;                       /* so many are */
};

/* Called for each line of the results that stands, in order, without its newline: for those who learn from
 * values. */
typedef int past_line_taker(const char *line, size_t length, void *context, struct failure *failure);

/* Reads the run in FOLDER, which has PLAN and whose results begin with the line HEADER (with its newline).
 * *RET_LEDGER is the caller's. LINE may be NULL. Refused: a folder without a journal, results with another
 * header, units that the plan does not have. */
int past_read(const char *folder, const struct plan *plan, const char *header, past_line_taker *line,
              void *context, struct past *ret, struct ledger **ret_ledger, struct failure *failure);
void past_clear(struct past *past);

#endif
