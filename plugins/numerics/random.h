/*
 * Random numbers for what a fit draws (starts, folds): the same on every machine for the same seed. One
 * number after another is splitmix64's output (G. Steele, D. Lea and C. Flood, "Fast Splittable Pseudorandom
 * Number Generators", OOPSLA 2014).
 */
#ifndef ASSAY_NUMERICS_RANDOM_H
#define ASSAY_NUMERICS_RANDOM_H

#include <stdint.h>

struct random_numbers {
    uint64_t state; /* the seed to begin with; any number */
};

/* 64 random bits. */
uint64_t random_numbers_bits(struct random_numbers *numbers);

/* A multiple of 2^-53 in [0, 1), each as likely. */
double random_numbers_fraction(struct random_numbers *numbers);

#endif
