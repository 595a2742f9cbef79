/*
 * Models of the same table side by side, judged on rows that they were not fitted to: M-0, M-1 and M-2 times
 * the kinds of noise times pooled or by the first columns of --by. The table is read once; everything is
 * fitted to the rows that were kept, but for those of groups that are too small for some of them, where these
 * are a minority (small-groups.h).
 *
 * Which one suffices, in two steps (the one-standard-error rule: Breiman and others 1984, section 3.4.3):
 *   1. of terms and groups those with the fewest parameters whose error is within one standard error of the
 *      least error;
 *   2. of their kinds of noise the simplest whose log score is within one standard error of the best.
 */
#ifndef ASSAY_PLUGIN_ALTERNATIVES_H
#define ASSAY_PLUGIN_ALTERNATIVES_H

#include "engine/plugin/held-out.h"
#include "engine/plugin/small-groups.h"

enum { ALTERNATIVE_REASON_SIZE = 256 };

struct alternative {
    const char *terms;      /* "M-1" */
    const char *noise;      /* "N-0", "N-1", "N-2" */
    size_t by_count;        /* the first so many columns of by form its groups */
    uint32_t groups;        /* how many there are */
    uint64_t parameters;    /* of all groups: coefficients, and those of the noise */
    double seconds;         /* of processor time, to fit it once to all kept rows; NaN: not fitted */
    struct held_out errors; /* on rows left out */
    char reason[ALTERNATIVE_REASON_SIZE]; /* why there are no errors; else "" */
};

struct alternatives {
    struct alternative *items; /* by terms, then groups, then noise: from simple to complex */
    size_t count;
    size_t sufficient; /* which one; SIZE_MAX: none could be judged */
    size_t least;      /* the one with the least error; or SIZE_MAX */
    size_t best;       /* of its terms and groups the one with the best log score; or SIZE_MAX */
    uint32_t folds;
    struct small_groups left_out; /* of the judgement of all of them */
};

/* FITTING has read the rows for M-2, by all columns of by. A failure is one of all alternatives; one that
 * cannot be fitted has a reason. */
int alternatives_init(struct alternatives *alternatives, const struct fitting *fitting, uint32_t folds,
                      struct failure *failure);
void alternatives_clear(struct alternatives *alternatives);

#endif
