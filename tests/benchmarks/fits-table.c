/*
 * fits-table ROWS: writes a table of dgemm calls on standard output, the same on every machine: columns host,
 * core, m, n, k, duration; 32 hosts of 32 cores in random order; durations by a polynomial, a factor of the
 * host and of the core, and 1 % of normal noise, with ten digits. Numbers by xoshiro256** (Blackman and
 * Vigna) seeded by splitmix64.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state[4];

static uint64_t rotate(uint64_t x, int k) {
    return (x << k) | (x >> (64 - k));
}

static uint64_t next(void) {
    uint64_t result = rotate(state[1] * 5, 7) * 9, t = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= t;
    state[3] = rotate(state[3], 45);
    return result;
}

static void seed(uint64_t x) {
    for (int i = 0; i < 4; i++) {
        uint64_t z = (x += UINT64_C(0x9e3779b97f4a7c15));
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        state[i] = z ^ (z >> 31);
    }
}

static double uniform(void) { /* in (0, 1) */
    return ((double)(next() >> 11) + 0.5) * 0x1p-53;
}

static double normal(void) { /* Box and Muller */
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

int main(int argc, char **argv) {
    long rows = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    if (rows < 1) {
        fprintf(stderr, "usage: fits-table ROWS\n");
        return 2;
    }
    seed(12345);
    double host_factor[32], core_factor[32][32];
    for (int h = 0; h < 32; h++)
        host_factor[h] = 1 + 0.03 * normal();
    for (int h = 0; h < 32; h++)
        for (int c = 0; c < 32; c++)
            core_factor[h][c] = 1 + 0.01 * normal();
    printf("host,core,m,n,k,duration\n");
    for (long i = 0; i < rows; i++) {
        int h = (int)(next() >> 59), c = (int)(next() >> 59);
        double m = floor(exp(log(9990.0) * uniform())) + 3, n = floor(exp(log(9990.0) * uniform())) + 3;
        double k = floor(exp(log(9990.0) * uniform())) + 3;
        double y = 4e-4 + 6.9e-11 * m * n * k + 5.8e-11 * m * n + 2.4e-9 * m * k + 3.2e-9 * n * k;
        y *= host_factor[h] * core_factor[h][c] * (1 + 0.01 * normal());
        printf("dahu-%d,%d,%.0f,%.0f,%.0f,%.9e\n", h + 1, c, m, n, k, y);
    }
    return fclose(stdout) == 0 ? 0 : 1;
}
