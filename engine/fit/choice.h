/*
 * Which of several models suffices: each says something of the same rows, none of which it was fitted to.
 *
 * The one-standard-error rule (L. Breiman et al., Classification and Regression Trees, 1984, 3.4.3) in two
 * steps, on differences that are paired setting by setting (score_compare() of model/score.h), since what
 * makes one model miss a setting makes the others miss it, too:
 *
 *   1. Of all whose mean squared error is above the least by no more than one standard error of that
 *      difference, those with the fewest parameters of the mean.
 *   2. Of these the simplest noise whose log score is below the best by no more than one standard error.
 */
#ifndef ASSAY_FIT_CHOICE_H
#define ASSAY_FIT_CHOICE_H

#include "engine/model/score.h"
#include "engine/model/verdict.h"

struct contender {
    /* What its model is: contender_describe(). */
    uint64_t rows, groups, of_mean, of_noise; /* parameters of the mean, and of the noise */
    const char *noise;                        /* "N-1"; of its first part */
    char *formula;                            /* owned */
    enum model_grade grade;
    char *verdict;               /* owned: model_verdict() */
    struct score_row *predicted; /* owned: of each row; NULL: it is not judged */
    /* Filled by choice_make(), over the rows that all judged ones predict: */
    bool is_judged;                /* it predicts nine tenths of the rows that any predicts */
    uint64_t missing;              /* rows that another predicts and it does not */
    struct score score;            /* as score_sum() */
    struct score_difference above; /* its error above the least; zeros for that itself */
};

/* Indices of contenders; SIZE_MAX: there is none. */
struct choice {
    size_t least;         /* the least error */
    size_t best_score;    /* of those with as few parameters of the mean as `sufficient` the best log score */
    size_t sufficient;    /* the simplest that suffices */
    uint64_t rows;        /* on which they were judged */
    uint64_t rows_beyond; /* left out: some judged contender does not predict them */
};

void contender_describe(struct contender *contender, const struct model *model);
/* Converts what it says of COUNT rows from the unit FROM to the unit TO; false where they have different
 * dimensions. NULL is any unit. */
bool contender_convert(struct contender *contender, size_t count, const char *from, const char *to);
void contender_clear(struct contender *contender);

/* How far the root mean squared error of a judged contender is above that of the LEAST, in the response's
 * unit, and the standard error of that: from the difference of the squares, a^2 - b^2 = (a - b)(a + b). */
double contender_above(const struct contender *contender, const struct contender *least, double *ret_error);

void choice_make(struct contender *contenders, size_t count, const struct score_rows *rows,
                 struct choice *ret);

#endif
