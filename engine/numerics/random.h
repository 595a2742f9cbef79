/*
 * Random numbers in named streams: the same seed, name and index give the same bits on every machine. A
 * stream is xoshiro256** 1.0 (D. Blackman, S. Vigna, ACM TOMS 47(4), 2021), its 256 bits filled by splitmix64
 * (G. Steele, D. Lea, C. Flood, OOPSLA 2014) from a hash of the three.
 */
#ifndef ASSAY_NUMERICS_RANDOM_H
#define ASSAY_NUMERICS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random_stream {
    uint64_t state[4];
};

/* Starts the stream of (SEED, NAME, INDEX). INDEX is the number of a scenario, a machine or a start: streams
 * of one NAME with different INDEX are independent. */
void random_stream_init(struct random_stream *ret, uint64_t seed, const char *name, uint64_t index);

uint64_t random_stream_bits(struct random_stream *stream);
/* A whole number from 0 to BOUND - 1, all equally likely; BOUND is at least 1. */
uint64_t random_stream_below(struct random_stream *stream, uint64_t bound);
/* An odd multiple of 2^-54 in (0, 1), all equally likely. */
double random_stream_uniform(struct random_stream *stream);
/* Mean 0, variance 1: by G. Marsaglia's polar method. */
double random_stream_normal(struct random_stream *stream);

/*
 * Counter-based random numbers: they have no state and may be called from any thread. random_counter_bits()
 * gives output NUMBER of the splitmix64 whose seed is output STREAM of the splitmix64 with the seed KEY. KEY
 * is random_counter_key(SEED).
 */
uint64_t random_counter_key(uint64_t seed);
uint64_t random_counter_bits(uint64_t key, uint64_t stream, uint64_t number);
/* The standard normal number that belongs to BITS: the ziggurat of G. Marsaglia and W. W. Tsang (J. Stat.
 * Software 5(8), 2000) with 256 layers, layer and height from different bits as J. A. Doornik (2005) advises.
 */
double random_counter_normal(uint64_t bits);
/* A number in (0, 1) that belongs to BITS and is independent of the normal one. */
double random_counter_uniform(uint64_t bits);

/* log x, and e^x: the same bits on every machine (foundation/portable-math.h, which plugins cannot include).
 */
double random_log(double x);
double random_exp(double x);

#endif
