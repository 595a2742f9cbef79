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

/* Calls MPI_Init() and sets the three variables above. PROGRAM begins each message. Collective. */
void ranks_begin(int *argc, char ***argv, const char *program);
/* Prints a sentence and aborts the job with the exit code CODE. */
__attribute__((noreturn, format(printf, 2, 3))) void ranks_die(int code, const char *format, ...);

/* The time in s, by CLOCK_MONOTONIC of this node. */
double ranks_now(void);
/* Zeroed memory, which the caller frees; ends the program if there is none. */
void *ranks_allocate(size_t count, size_t size);
/* Memory for messages, which this core has touched. It begins on a page: at malloc()'s 16 bytes off a page, a
 * message of 256 KiB over TCP took twice as long. */
char *ranks_allocate_buffer(size_t bytes);
/* A random number by splitmix64: a seed gives the same numbers on every machine. */
uint64_t ranks_draw(uint64_t *state);
/* Shuffles COUNT items of SIZE bytes each (Fisher and Yates). */
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

/* Reads the arguments --NAME VALUE: OPTIONS, ended by one without a name, and --sizes, --largest and --at.
 * Ends the program if one is unknown or wrong. */
void ranks_parse(int argc, char **argv, const struct ranks_option *options, struct ranks_sizes *sizes,
                 const char *usage);
/* Draws the sizes, unless --at gave them: one from each of COUNT intervals of equal length in the logarithm,
 * so that powers of two are no more frequent than by chance. Collective: nodes may differ in exp(). */
void ranks_draw_sizes(struct ranks_sizes *sizes, uint64_t *state);

/* ---- Load */

/* One product of two matrices of ORDER rows and columns by one thread of OpenBLAS. MATRICES: 3 * ORDER^2
 * numbers. */
void ranks_multiply(double *matrices, int order);
void ranks_fill_matrices(double *matrices, int order);

/* ---- What rank 0 prints: lines `library NAME` and `rank NUMBER NODE` */
void ranks_print_places(void);

#endif
