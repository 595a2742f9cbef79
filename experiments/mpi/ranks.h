/*
 * What the programs of experiments/mpi-* share: ranks that all make the same list of measurements from a
 * seed, sizes, options, time, and a load of matrix products.
 *
 * Exit codes: 0 done, 1 the system or MPI failed, 2 an option is wrong. A rank that fails aborts the job.
 */
#ifndef ASSAY_MPI_RANKS_H
#define ASSAY_MPI_RANKS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stddef.h>
#include <stdint.h>

enum {
    RANKS_LINES_MAX = 150000, /* of a job: what an engine keeps of its output has an end */
    RANKS_SIZES_MAX = 10000,
    RANKS_PAGE = 4096,
};

extern int rank, ranks;
extern char *rank_names; /* of each rank's node, MPI_MAX_PROCESSOR_NAME bytes each */

/* MPI_Init(), and the three above. PROGRAM is what messages begin with. */
void ranks_begin(int *argc, char ***argv, const char *program);
__attribute__((noreturn, format(printf, 2, 3))) void ranks_die(int code, const char *format, ...);

/* s, by CLOCK_MONOTONIC of this node. */
double ranks_now(void);
/* Zeroed. */
void *ranks_allocate(size_t count, size_t size);
/* For messages: begins on a page, since 16 bytes off it, as malloc() has it, one of 256 KiB over TCP took
 * twice as long; and is touched by this core. */
char *ranks_allocate_buffer(size_t bytes);
/* splitmix64: the same numbers from a seed on every machine. */
uint64_t ranks_draw(uint64_t *state);
/* The order of COUNT items of SIZE bytes each. */
void ranks_shuffle(void *items, size_t count, size_t size, uint64_t *state);

/* ---- Options */

struct ranks_option {
    const char *name;
    long *value;
    long least, most;
    const char *const
        *words; /* the value is the index of one of these, ended by NULL; NULL: a whole number */
};

/* Sizes: those of --at, or drawn. */
struct ranks_sizes {
    long count, largest;
    long at[RANKS_SIZES_MAX]; /* ascending */
    int given;                /* by --at */
};

/* --NAME VALUE: OPTIONS, ended by one without a name, and --sizes, --largest and --at. */
void ranks_parse(int argc, char **argv, const struct ranks_option *options, struct ranks_sizes *sizes,
                 const char *usage);
/* One size from each of as many intervals that are even in the logarithm: all decades have their share, and
 * no size is a power of two more often than chance has it. Collective: nodes may differ in exp(). */
void ranks_draw_sizes(struct ranks_sizes *sizes, uint64_t *state);

/* ---- Load */

/* One product of two matrices of ORDER rows and columns by one thread of OpenBLAS. MATRICES: 3 * ORDER^2
 * numbers. */
void ranks_multiply(double *matrices, int order);
void ranks_fill_matrices(double *matrices, int order);

/* ---- What rank 0 prints: lines `library NAME` and `rank NUMBER NODE` */
void ranks_print_places(void);

#endif
