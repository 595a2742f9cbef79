/*
 * Random numbers that are the same on every machine for the same seed: xoshiro256** 1.0 with 256 bits of
 * state (D. Blackman and S. Vigna, "Scrambled Linear Pseudorandom Number Generators", ACM Transactions on
 * Mathematical Software 47(4), 2021), its state filled from a 64-bit seed by four steps of splitmix64 (G.
 * Steele, D. Lea and C. Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014), as its authors
 * advise.
 *
 * One seed has many streams. Stream K begins K * 2^128 steps after the seed's state (the authors' jump), so
 * that two streams of a seed never meet: a table and the order of its rows are drawn from different ones, and
 * the order is the same whether the table was drawn or read.
 */
#ifndef ASSAY_DESIGN_RANDOM_H
#define ASSAY_DESIGN_RANDOM_H

#include "engine/foundation/failure.h"

#include <stddef.h>
#include <stdint.h>

enum random_stream {
    RANDOM_STREAM_TABLE = 0,  /* the values of a generated design */
    RANDOM_STREAM_ORDER = 1,  /* the order of its rows */
    RANDOM_STREAM_BLOCKS = 2, /* the order of the states of its controls */
};

/* Seeds that the system draws have this many bits, so that readers of JSON that know only doubles keep them.
 */
enum { RANDOM_SYSTEM_SEED_BITS = 53 };

struct random_source {
    uint64_t state[4]; /* not all zero */
};

/* Sets SOURCE to the beginning of STREAM of SEED. */
void random_start(struct random_source *source, uint64_t seed, enum random_stream stream);

/* 64 random bits. */
uint64_t random_bits(struct random_source *source);

/* A whole number from 0 to BOUND - 1, each exactly as likely (D. Lemire, "Fast Random Integer Generation in
 * an Interval", ACM TOMACS 29(1), 2019). BOUND is at least 1. */
uint64_t random_below(struct random_source *source, uint64_t bound);

/* A multiple of 2^-53 in [0, 1), each exactly as likely. */
double random_fraction(struct random_source *source);

/* Puts ITEMS in an order of which all are equally likely (Fisher and Yates; Durstenfeld, CACM 7(7), 1964):
 * for i from COUNT - 1 down to 1, item i changes places with item random_below(i + 1). */
void random_shuffle(struct random_source *source, uint32_t *items, size_t count);

/* A seed from the system (getrandom), of RANDOM_SYSTEM_SEED_BITS bits. */
int random_system_seed(uint64_t *ret, struct failure *failure);

#endif
