/*
 * The BLAS of an emulated HPL: nothing is computed, each call takes the time that its model says. This file
 * is linked in place of a BLAS, of the functions of HPL that copy and swap rows (HPL_dlacpy, HPL_dlatcpy,
 * HPL_dlaswp*) and of the generator of its matrix (HPL_pdmatgen); all else of HPL runs as it is.
 *
 * build.sh includes two headers before this file: the models ('assay export kernels'), and what it writes
 * from them, for each kernel X the macros MEAN_X(group) and DRAW_X(group, z), over the variables m, n and k
 * of the function around them.
 *
 * Functions declare the leading arguments only, up to the last one that they read; by the calling conventions
 * of Linux what else the caller passes stays unread in registers and on the stack.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { UNKNOWN = -2, RIGHT = 142 };

/* SMPI gives each rank a copy of its own of all that is static. */
static double in_kernels; /* seconds since HPL_pdmatgen */
static double unslept;    /* fraction of a nanosecond, in s, which the next call adds */
static unsigned long calls;
static unsigned long long random_state;
static long memory; /* KiB */

/* Uniform in (0, 1), by splitmix64, from the seed and the rank alone: a simulation repeats to the last digit.
 */
static double uniform(void) {
    unsigned long long z = random_state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return ((double)((z ^ z >> 31) >> 12) + 0.5) / 4503599627370496.0;
}

/* A standard normal number (Box and Muller). */
static double normal(void) {
    double radius = sqrt(-2 * log(uniform()));
    return radius * cos(6.283185307179586 * uniform());
}

/* The whole number in an environment variable; 0 if it is unset. */
static int setting(const char *name) {
    const char *text = getenv(name);
    return text ? (int)strtol(text, NULL, 10) : 0;
}

/* The group of this rank in a model, by FIND, which returns a negative number if there is none: HOST/CORE,
 * with the rank's place on its host, else HOST, else negative: the mean of all groups. */
static int group_of_rank(int (*find)(const char *name)) {
    char host[MPI_MAX_PROCESSOR_NAME], core[MPI_MAX_PROCESSOR_NAME + 16];
    int length, rank;
    MPI_Get_processor_name(host, &length);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(core, sizeof core, "%s/%d", host, rank % setting("RANKS_PER_NODE"));
    return find(core) >= 0 ? find(core) : find(host);
}

/* Updates `memory`, the most that all ranks were seen to occupy, without the pages of programs and libraries:
 * the proportional set size, which counts shared pages once. */
static void measure_memory(void) {
    char line[256];
    long size, sum = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Pss_Anon: %ld kB", &size) == 1 || sscanf(line, "Pss_Shmem: %ld kB", &size) == 1)
            sum += size;
    if (file)
        fclose(file);
    memory = sum > memory ? sum : memory;
}

/* Advances the rank's simulated time by SECONDS, whatever speed the platform states for its host, since the
 * models are of that host. Ends the program if SECONDS is not a number. */
static void advance_time(double seconds) {
    if (isnan(seconds)) {
        fprintf(stderr, "hpl-smpi: a model has no finite duration for a call\n");
        exit(1);
    }
    calls++;
    if ((calls & (calls - 1)) == 0) /* the 1st, 2nd, 4th, 8th ... */
        measure_memory();
    if (seconds <= 0)
        return;
    in_kernels += seconds;
    unslept += seconds;
    struct timespec time = {.tv_sec = (time_t)unslept};
    time.tv_nsec = (long)((unslept - (double)time.tv_sec) * 1e9);
    unslept -= (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
    nanosleep(&time, NULL);
}

#define SPEND(X)                                                                                             \
    do {                                                                                                     \
        static int group = UNKNOWN, noise;                                                                   \
        if (group == UNKNOWN) {                                                                              \
            group = group_of_rank(assay_##X##_group);                                                        \
            noise = setting("NOISE");                                                                        \
        }                                                                                                    \
        advance_time(noise ? DRAW_##X(group, normal()) : MEAN_##X(group));                                   \
    } while (0)

/* ---- What HPL calls */

void cblas_dgemm(int order, int a, int b, int m, int n, int k) {
    (void)order, (void)a, (void)b;
    if (m > 0 && n > 0 && k > 0)
        SPEND(dgemm);
}

/* k is the order of the triangle: n on the right, else m. */
void cblas_dtrsm(int order, int side, int uplo, int trans, int diag, int m, int n) {
    (void)order, (void)uplo, (void)trans, (void)diag;
    int k = side == RIGHT ? n : m;
    (void)k;
    if (m > 0 && n > 0)
        SPEND(dtrsm);
}

void cblas_dgemv(int order, int trans, int m, int n) {
    (void)order, (void)trans;
    if (m > 0 && n > 0)
        SPEND(dgemv);
}

void cblas_dger(int order, int m, int n) {
    (void)order;
    if (m > 0 && n > 0)
        SPEND(dger);
}

void cblas_dtrsv(int order, int uplo, int trans, int diag, int n) {
    (void)order, (void)uplo, (void)trans, (void)diag;
    if (n > 0)
        SPEND(dtrsv);
}

#define VECTOR(X)                                                                                            \
    void cblas_##X(int n) {                                                                                  \
        if (n > 0)                                                                                           \
            SPEND(X);                                                                                        \
    }
VECTOR(dswap)
VECTOR(daxpy)
VECTOR(dscal)

/* This one copies: HPL uses it on the message by which the processes of a column agree on a pivot. */
void cblas_dcopy(int n, const double *x, int x_increment, double *y, int y_increment) {
    for (int i = 0; i < n; i++)
        y[(size_t)i * (size_t)y_increment] = x[(size_t)i * (size_t)x_increment];
    if (n > 0)
        SPEND(dcopy);
}

/* The pivot. Which row it is decides which process sends its row, so it is drawn: any of the n is as likely,
 * and its value is distributed as the largest of n, so that the process with more rows wins more often. It is
 * written where HPL reads it next, and nothing depends on what else is in the matrix. */
int cblas_idamax(int n, double *x, int increment) {
    if (n <= 0)
        return 0;
    SPEND(idamax);
    int at = (int)(uniform() * n);
    x[(size_t)at * (size_t)increment] = pow(uniform(), 1.0 / n);
    return at;
}

#define ROWS(FUNCTION, X)                                                                                    \
    void FUNCTION(int m, int n) {                                                                            \
        if (m > 0 && n > 0)                                                                                  \
            SPEND(X);                                                                                        \
    }
ROWS(HPL_dlacpy, dlacpy)
ROWS(HPL_dlatcpy, dlatcpy)
ROWS(HPL_dlaswp00N, dlaswp)
ROWS(HPL_dlaswp01N, dlaswp)
ROWS(HPL_dlaswp01T, dlaswp)
ROWS(HPL_dlaswp02N, dlaswp)
ROWS(HPL_dlaswp03N, dlaswp)
ROWS(HPL_dlaswp03T, dlaswp)
ROWS(HPL_dlaswp04N, dlaswp)
ROWS(HPL_dlaswp04T, dlaswp)
ROWS(HPL_dlaswp05N, dlaswp)
ROWS(HPL_dlaswp05T, dlaswp)
ROWS(HPL_dlaswp06N, dlaswp)
ROWS(HPL_dlaswp06T, dlaswp)
ROWS(HPL_dlaswp10N, dlaswp)

/* HPL calls it once, just before its timer starts: seeds the random numbers. */
void HPL_pdmatgen(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    random_state = (unsigned long long)setting("SEED") << 32 | (unsigned)rank;
    in_kernels = 0;
}

/* After the time was taken: the maximum over the ranks of what HPL calls the wall time is the first of USER.
 * HPL prints it with two decimals; here it comes with all, and with the mean over ranks of the time in
 * kernels, and the memory that was seen. */
void __real_HPL_ptimer_combine(MPI_Comm comm, int operation, int type, int n, int first, double *user);
void __wrap_HPL_ptimer_combine(MPI_Comm comm, int operation, int type, int n, int first, double *user);
void __wrap_HPL_ptimer_combine(MPI_Comm comm, int operation, int type, int n, int first, double *user) {
    __real_HPL_ptimer_combine(comm, operation, type, n, first, user);
    int rank, ranks;
    double sum = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    MPI_Reduce(&in_kernels, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, comm);
    if (rank == 0)
        printf("simulated: %.12g s, in kernels: %.12g s, memory: %ld KiB\n", user[0], sum / ranks, memory);
}
