/*
 * The simplest of several models that suffices. Each model predicts the same rows, none of which it was
 * fitted to. The one-standard-error rule (L. Breiman et al., Classification and Regression Trees,
 * 1984, 3.4.3; T. Hastie, R. Tibshirani, J. Friedman, The Elements of Statistical Learning, 2nd ed.
 * 2009, 7.10) is applied to log likelihood ratios of two models, in two steps:
 *
 *   0. The common noise is the noise of the model whose predictions, with its own noise, are the likeliest.
 * If no model has a noise, it is homoscedastic, with the least root mean squared error of all models.
 *   1. The mean. Under the common noise, e = measured - mean, the ratio of a row is
 *      (e_other^2 - e_one^2) / (2 sigma^2). Of the models whose mean ratio to the best one is 0 but for
 *      CHOICE_MEAN_ERRORS standard errors, the one with the fewest parameters of the mean is chosen; of
 * equally many, a formula before segments, then the likelier one. So methods without a noise are compared as
 * well.
 *   2. The noise. Of the models with the chosen mean, the one with the fewest parameters of the noise is
 *      chosen whose likelihood, with its own noise, is the best but for one standard error.
 *
 * Squared errors without a noise would be those of the largest rows alone, where the noise grows. The ratio
 * of one row counts for at most log 20 (P. Huber, A robust version of the probability ratio test, Ann. Math.
 * Stat. 36, 1965): outliers and rows beyond those that a noise was fitted to do not decide alone. Ratios are
 * paired and their standard errors are over settings (score_compare() of model/score.h): what makes one model
 * miss a setting makes the others miss it, too.
 */
#ifndef ASSAY_FIT_CHOICE_H
#define ASSAY_FIT_CHOICE_H

#include "engine/model/score.h"
#include "engine/model/verdict.h"

/* A model of the mean counts as good as the best if its score is at most this many standard errors below.
 * The one-standard-error rule (Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, 7.10) with
 * 5 folds leaves out weak terms in 20 % of simulations, and adds terms that do not matter in 1 to 4 %; 0.75
 * with 10 folds does so in 9 % and in 3 to 7 %. Simulated were M-1 and M-2, 100 and 300 rows, noise of 2 and
 * 5 %. */
#define CHOICE_MEAN_ERRORS 0.75

struct contender {
    /* Description of its model, by contender_describe(): */
    uint64_t rows, groups, mean_parameters, noise_parameters; /* parameters of the mean, and of the noise */
    bool is_segmented; /* it may have breaks, which it found in the data */
    const char *noise; /* "N-1"; of its first part */
    char *formula;     /* owned */
    enum report_grade grade;
    char *verdict;               /* owned: model_verdict() */
    struct score_row *predicted; /* owned: of each row; NULL: it is not compared */
    /* Filled by choice_make(), over the rows that all compared ones predict: */
    bool is_compared;          /* it predicts nine tenths of the rows that any predicts */
    uint64_t missing;          /* rows that another predicts and it does not */
    struct score score;        /* as score_sum() */
    double below, below_error; /* log likelihood of a row below the best's; 0 for the best itself */
};

/* Indices of contenders; SIZE_MAX: there is none. */
struct choice {
    size_t best;          /* the likeliest mean */
    size_t sufficient;    /* the simplest that suffices */
    uint64_t rows;        /* on which they were compared */
    uint64_t rows_beyond; /* left out: some compared contender does not predict them */
};

void contender_describe(struct contender *contender, const struct model *model);
/* Converts its predictions of COUNT rows from the unit FROM to the unit TO; false where they have
 * different dimensions. NULL is any unit. */
bool contender_convert(struct contender *contender, size_t count, const char *from, const char *to);
void contender_clear(struct contender *contender);

void choice_make(struct contender *contenders, size_t count, const struct score_rows *rows,
                 struct choice *ret);

/* A line for each of COUNT contenders, which begins with LABEL_COUNT texts of LABELS (a line without them is
 * left out), and the verdict; where nothing was compared, only what the models are. UNIT is the response's.
 */
void choice_report(struct report_section *in, const struct column *columns, const char *const *labels,
                   size_t label_count, const struct contender *contenders, size_t count,
                   const struct choice *choice, const char *unit);

#endif
