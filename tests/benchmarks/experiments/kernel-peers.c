/* What the kernels of experiments are compared with: `gemm ORDER LOOPS`, the loop of OpenBLAS's own benchmark
 * (benchmark/gemm.c: random content of -0.5 to 0.5, LOOPS calls at one place, each timed), and `triad BYTES
 * VOLUME ROUNDS`, a loop over three arrays. Prints s a call or pass, the least. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

extern void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
                   const double *, const int *, const double *, const int *, const double *, double *,
                   const int *);

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double *array(size_t count) {
    double *memory =
        mmap(NULL, count * sizeof *memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(1);
    for (size_t i = 0; i < count; i++)
        memory[i] = (double)rand() / (double)RAND_MAX - 0.5;
    return memory;
}

static double gemm(int order, int loops) {
    size_t count = (size_t)order * (size_t)order;
    double *a = array(count), *b = array(count), *c = array(count), alpha = -1, beta = 1, least = 0;
    for (int j = 0; j <= loops; j++) { /* one more, which does not count */
        double begin = now();
        dgemm_("N", "T", &order, &order, &order, &alpha, a, &order, b, &order, &beta, c, &order);
        double duration = now() - begin;
        least = j == 1 || (j > 1 && duration < least) ? duration : least;
    }
    return least;
}

__attribute__((noinline)) static void add(double *restrict a, const double *restrict b,
                                          const double *restrict c, double scalar, size_t count) {
    for (size_t i = 0; i < count; i++)
        a[i] = b[i] + scalar * c[i];
}

/* Before each round the arrays are filled and passed once, and read after it, as the kernel does: what the
 * caches of a large array's end have is in the times. */
static double triad(size_t bytes, size_t volume, int rounds) {
    size_t count = bytes / 24 / 8 * 8, passes = (volume + 24 * count - 1) / (24 * count), apart = count + 168;
    double *memory = array(3 * apart), least = 0;
    volatile double sum = 0;
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < 3 * apart; i++)
            memory[i] = (double)(i % 1024);
        add(memory, memory + apart, memory + 2 * apart, 1, count);
        double begin = now();
        for (size_t pass = 0; pass < passes; pass++) {
            add(memory, memory + apart, memory + 2 * apart, (double)(pass + 1), count);
            __asm__ volatile("" ::: "memory");
        }
        double duration = (now() - begin) / (double)passes;
        least = round == 0 || duration < least ? duration : least;
        for (size_t i = 0; i < count; i++)
            sum = sum + memory[i];
    }
    return least;
}

int main(int count, char **words) {
    if (count == 4 && strcmp(words[1], "gemm") == 0)
        printf("%.12f\n", gemm((int)strtol(words[2], NULL, 10), (int)strtol(words[3], NULL, 10)));
    else if (count == 5 && strcmp(words[1], "triad") == 0)
        printf("%.12f\n", triad(strtoull(words[2], NULL, 10), strtoull(words[3], NULL, 10),
                                (int)strtol(words[4], NULL, 10)));
    else
        return 2;
    return 0;
}
