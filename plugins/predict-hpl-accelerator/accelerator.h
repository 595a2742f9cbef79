/*
 * How long HPL takes on nodes with accelerators, panel by panel, with what is overlapped: the model of the
 * Sugon exascale prototype, Journal of Software 32(8), 2021, page 2322, equations (2) to (5); the split
 * update and the node-local grid are those of rocHPL (N. Chalmers and others, arXiv 2304.10397, 2023).
 * Formulas: README.md. Units: seconds, bytes, flop.
 */
#ifndef ASSAY_PREDICT_HPL_ACCELERATOR_ACCELERATOR_H
#define ASSAY_PREDICT_HPL_ACCELERATOR_ACCELERATOR_H

#include <stddef.h>

enum accelerator_overlap {
    ACCELERATOR_NO_OVERLAP,
    ACCELERATOR_LOOK_AHEAD, /* the next panel is factored and broadcast during the update */
    ACCELERATOR_SPLIT, /* rows are swapped, too, for one part of the columns while the other is updated */
};

struct accelerator_link {
    double latency, bandwidth; /* s, B/s */
};

struct accelerator_scenario {
    double n, nb, p, q; /* order, block size, grid */
    double panel_share; /* f_fact */
    double panel_rate;  /* P_cpu|acc E_cpu|dgemm, flop/s */
    double dtrsm_rate;  /* P_acc E_dtrsm, flop/s */
    enum accelerator_overlap overlap;
    double split;                     /* share of the columns of the part that is updated last */
    struct accelerator_link links[2]; /* of a node to others, and within it */
    double node_rows, node_columns;   /* the part of the grid that a node is; 1 x 1: all messages leave it */
};

/* The seconds of one dgemm C(m x n) += A(m x k) B(k x n). */
typedef double (*accelerator_dgemm)(void *context, double m, double n, double k);

/* The four parts of an iteration, or of all, s, and how long the update does not hide them: the time is
 * update
 * + exposed_panels + exposed_swap. */
struct accelerator_time {
    double factorisation, broadcast, swap, update, exposed_panels, exposed_swap;
};

typedef void (*accelerator_panel_done)(void *context, double column, const struct accelerator_time *panel);

/* PANEL_DONE may be NULL; else it gets each panel, in order. The first panel, which nothing hides, is counted
 * in iteration 1, and what hides the factorisation of panel i in iteration i - 1. */
struct accelerator_time accelerator_predict(const struct accelerator_scenario *scenario,
                                            accelerator_dgemm dgemm, accelerator_panel_done panel_done,
                                            void *context);

#endif
