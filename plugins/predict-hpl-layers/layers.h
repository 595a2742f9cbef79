/*
 * How long HPL takes where processes are joined by several layers of communication: the memory of an
 * accelerator, PCI Express or NVLink within a node, networks between nodes. After Multi-communication layered
 * HPL model and its application to GPU clusters (ETRI Journal 43(3), 2021), equations (1) to (30), and in an
 * additive form. Formulas: README.md. Units: seconds, 8-byte words, flop.
 */
#ifndef ASSAY_PREDICT_HPL_LAYERS_LAYERS_H
#define ASSAY_PREDICT_HPL_LAYERS_LAYERS_H

#include <stdbool.h>
#include <stddef.h>

enum { LAYERS_MAX = 6 };

struct layer {
    double latency;       /* alpha, s */
    double word;          /* beta, s per 8-byte word */
    double rows, columns; /* m_j, n_j: trailing matrices up to this size use this layer or those below */
};

struct layers_scenario {
    double n, nb, p, q; /* order, block size, grid */
    double gamma;       /* gamma3, s per flop of matrix-matrix work */
    /* Whether layer 1 is the memory of an accelerator. Then each panel is broadcast and each row swapped
     * through the layers, also where Q or P is 1, as in the paper; else nothing is sent then. */
    bool is_memory_first;
    struct layer layers[LAYERS_MAX]; /* the boundary of the last is n x n; none is inside the one before */
    size_t count;                    /* at least 1 */
};

/* Communication, s. */
struct layers_share {
    double pivots, broadcast, swap;
};

struct layers_time {
    double computation; /* s, over all panels */
    struct layers_share layers[LAYERS_MAX];
    double padded;              /* N_new, equation (17): the printed form is that of a matrix of this order */
    double printed_computation; /* equation (25), s */
    struct layers_share printed[LAYERS_MAX]; /* equations (27), (28), (29), s */
    double original; /* equation (3), the model of HPL's authors, with the last layer alone, s */
};

/* What the panel that begins at column COLUMN takes, s; LAYER, from 0, is that of its broadcast. */
struct layers_panel {
    double column, computation, communication;
    size_t layer;
};
typedef void (*layers_panel_done)(void *context, const struct layers_panel *panel);

/* PANEL_DONE may be NULL; else it gets each panel, in order. */
struct layers_time layers_predict(const struct layers_scenario *scenario, layers_panel_done panel_done,
                                  void *context);

/* The part of a P x Q grid that COUNT processes are: as square as possible, its longer side along that of the
 * grid (section 3.1.4.2). False: no rectangle of so many fits. */
bool layers_grid(double count, double p, double q, double *ret_p, double *ret_q);

/* Equations (6) to (9): the memory of an accelerator of CORES cores as a layer. MEMORY: all its bandwidth,
 * B/s; WORDS: M W, the quad-words that the controllers read at once (0: the bandwidth of all is that of the
 * layer); CYCLES: the latency; CLOCK: Hz. Its boundary is not set. */
struct layer layers_memory(double cores, double memory, double words, double cycles, double clock);

#endif
