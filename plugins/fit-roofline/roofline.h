/*
 * Peaks of a machine from what kernels do and how long they take: flops F, bytes B, duration T.
 *
 *     improved    T = F x + B y + a        x = 1/Fpeak, y = 1/Bpeak, a what is neither; all at least 0
 *     classical   T = max(F x, B y)
 *
 * Both are the global minimum of
 *
 *     BY_RELATIVE  sum w ((T - m)/T)^2      BY_TIME  sum w (T - m)^2
 *     BY_LOG       sum w (log T - log m)^2  (classical)
 */
#ifndef ASSAY_FIT_ROOFLINE_ROOFLINE_H
#define ASSAY_FIT_ROOFLINE_ROOFLINE_H

#include <assay/fit.h>

enum criterion { BY_RELATIVE, BY_TIME, BY_LOG };
enum { FLOPS, BYTES, OVERHEAD, TERMS_MAX };

struct kernel {
    double flops, bytes, duration, w; /* flop, By, s; not both of the first are 0 */
};

struct kernels {
    enum criterion criterion;
    size_t count, terms; /* terms: 2, or 3 with an overhead */
    struct kernel *rows;
    const char *names[2]; /* columns of flops and bytes, for messages */
};

struct roofline {
    double estimates[TERMS_MAX];           /* x, y, a; 0 where `found` is false */
    bool found[TERMS_MAX];                 /* whether any row has a part in it */
    double inverse[TERMS_MAX * TERMS_MAX]; /* covariance / sigma^2, TERMS_MAX a row */
    double rss, total;                     /* of the criterion; total about the mean or about 0 */
    size_t memory_bound;                   /* classical: rows */
    bool tied;                             /* classical: the ridge is at a measured intensity */
    double bound; /* classical: what a peak without rows is at least; NaN otherwise */
};

/* 0; -EDOM with the reason in MESSAGE; -ENOMEM. classical_fit sorts the rows by intensity. */
int improved_fit(const struct kernels *kernels, struct roofline *ret, struct plugin_message *message);
int classical_fit(struct kernels *kernels, struct roofline *ret, struct plugin_message *message);

#endif
