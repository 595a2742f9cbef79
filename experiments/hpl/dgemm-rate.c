/*
 * Loaded into HPL by LD_PRELOAD: when MPI has started, every rank times a product of the shape of HPL's
 * update with the very BLAS that HPL calls, all ranks at once, and rank 0 prints the mean and the least rate:
 *
 *     assay: dgemm_rate=56.1 dgemm_rate_min=54.9 ranks=64
 *
 * in Gflop/s of one rank. Then HPL goes on as if nothing had been. The rates are 0 where a rank finds no
 * dgemm_, because the BLAS is a part of the program.
 *
 *     mpicc -O2 -fPIC -shared -o dgemm-rate.so dgemm-rate.c -ldl
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 1024, DEPTH = 192 }; /* C of SIZE x SIZE, which is more than caches hold; DEPTH as a usual NB */
static const double seconds_min = 0.1;

typedef void dgemm_function(const char *trans_a, const char *trans_b, const int *m, const int *n,
                            const int *k, const double *alpha, const double *a, const int *lda,
                            const double *b, const int *ldb, const double *beta, double *c, const int *ldc,
                            size_t trans_a_length, size_t trans_b_length);

/* The rate of this rank's dgemm in Gflop/s, over calls that last seconds_min together; 0 if there is no
 * dgemm_ or no memory. */
static double measure(void) {
    dgemm_function *dgemm = (dgemm_function *)dlsym(RTLD_DEFAULT, "dgemm_");
    size_t count = (size_t)SIZE * (SIZE + 2 * DEPTH);
    double *numbers = malloc(count * sizeof *numbers);
    if (!dgemm || !numbers) {
        free(numbers);
        return 0;
    }
    /* Numbers that differ in most bits, as HPL's do: constant ones draw less power and may be faster. */
    for (size_t i = 0; i < count; i++)
        numbers[i] = drand48() - 0.5;
    double *a = numbers, *b = a + SIZE * DEPTH, *c = b + SIZE * DEPTH;
    const int size = SIZE, depth = DEPTH;
    const double minus_one = -1, one = 1;
    double begin = 0, seconds = 0;
    int calls = -1; /* the first call is not counted: it initializes the library */
    do {
        if (calls++ == 0)
            begin = PMPI_Wtime();
        dgemm("N", "T", &size, &size, &depth, &minus_one, a, &size, b, &size, &one, c, &size, 1, 1);
        seconds = calls > 0 ? PMPI_Wtime() - begin : 0;
    } while (seconds < seconds_min);
    free(numbers);
    return 2e-9 * SIZE * SIZE * DEPTH * calls / seconds;
}

/* Measures on all ranks at once; rank 0 prints the mean and the least rate. Collective. */
static void report(void) {
    int rank = 0, ranks = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    PMPI_Barrier(MPI_COMM_WORLD);
    double rate = measure(), sum = 0, least = 0;
    PMPI_Reduce(&rate, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    PMPI_Reduce(&rate, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("assay: dgemm_rate=%.6g dgemm_rate_min=%.6g ranks=%d\n", least > 0 ? sum / ranks : 0, least,
               ranks);
        fflush(stdout);
    }
}

/* Calls the next MPI_Init in the order of loading, so that other preloaded libraries see the call as well. */
int MPI_Init(int *count, char ***words) {
    int (*next)(int *, char ***) = (int (*)(int *, char ***))dlsym(RTLD_NEXT, "MPI_Init");
    int r = next(count, words);
    if (r == MPI_SUCCESS)
        report();
    return r;
}

int MPI_Init_thread(int *count, char ***words, int required, int *provided) {
    int (*next)(int *, char ***, int, int *) =
        (int (*)(int *, char ***, int, int *))dlsym(RTLD_NEXT, "MPI_Init_thread");
    int r = next(count, words, required, provided);
    if (r == MPI_SUCCESS)
        report();
    return r;
}
