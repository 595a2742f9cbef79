/*
 * How long HPL takes, analytically: the scalability model of HPL's authors
 * (netlib.org/benchmark/hpl/scalability.html: right-looking LU with partial pivoting on a P x Q grid,
 * block-cyclic, increasing-ring broadcast (modified), no look-ahead), with dgemm taken from a fitted model.
 * Formulas: README.md. Units: seconds, bytes, flop.
 */
#ifndef ASSAY_PREDICT_HPL_HPL_H
#define ASSAY_PREDICT_HPL_HPL_H

#include <stdbool.h>
#include <stddef.h>

struct hpl_scenario {
    double n, nb, p, q; /* order, block size, grid */
    double latency;     /* alpha, s */
    double word;        /* beta, s per 8-byte word */
    /* Processes of a node that share one network card, at least 1 (0: 1). Nodes hold neighbours in a row of
     * the grid, as HPL has it by default: min(RANKS_PER_CARD, Q) process columns and RANKS_PER_CARD over that
     * process rows. A node sends a panel and pivots for each of its rows at once; rows of a swap, to and from
     * those that own the pivots, for each of its columns, and in the roll for each process. */
    double ranks_per_card;
    double gamma; /* gamma3, s per flop of matrix-matrix work */
    /* Whether the work of a panel is dgemm of its recursive halves, not smaller than LEAST_HALF (at least 1)
     * columns: what is narrower goes at the rate of that. Else all of it goes at gamma3, as in the source. */
    bool recursive;
    double least_half;
    double panel_gamma; /* not RECURSIVE: s per flop of factoring panels; 0: gamma */
    size_t nodes_max; /* panels are summed one by one up to so many; more, by so many nodes of Gauss's rule */
};

struct hpl_time {
    double factorisation, broadcast, update, swap; /* s, summed over the panels */
    double closed;                                 /* s: the closed form, with gamma alone */
    double panels;
    double hidden;  /* s, positive: what the panels below would have taken off */
    double clamped; /* for how many the work of the factorisation was negative and is taken as 0 */
};

/* What one panel that begins at column COLUMN takes, s. */
struct hpl_panel {
    double column, factorisation, broadcast, update, swap;
};

enum { HPL_CALLS_MAX = 64 };

/* Calls of dgemm C(m x n) += A(m x k) B(k x n), of one and the same part of as many panels. */
struct hpl_calls {
    size_t count;
    bool is_update; /* all processes do it at the same time */
    double times[HPL_CALLS_MAX], m[HPL_CALLS_MAX], n[HPL_CALLS_MAX], k[HPL_CALLS_MAX];
    double seconds[HPL_CALLS_MAX]; /* the result: of one call, which is done so many TIMES */
};
typedef void (*hpl_dgemm)(void *context, struct hpl_calls *calls);

/* Takes each panel that is summed, in order. */
typedef void (*hpl_panel_done)(void *context, const struct hpl_panel *panel);

/* PANEL_DONE may be NULL. */
struct hpl_time hpl_predict(const struct hpl_scenario *scenario, hpl_dgemm dgemm, hpl_panel_done panel_done,
                            void *context);
/* What HPL counts when it prints Gflop/s: 2/3 N^3 + 3/2 N^2. */
double hpl_flops(double n);

#endif
