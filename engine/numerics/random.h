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
 * is random_counter_key(SEED). They are inline, because a model draws one in few nanoseconds.
 */
#define RANDOM_GOLDEN UINT64_C(0x9e3779b97f4a7c15)
static inline uint64_t random_mix(uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}
uint64_t random_counter_key(uint64_t seed);
static inline uint64_t random_counter_seed(uint64_t key, uint64_t stream) {
    return random_mix(key + (stream + 1) * RANDOM_GOLDEN);
}
static inline uint64_t random_seed_bits(uint64_t seed, uint64_t number) {
    return random_mix(seed + (number + 1) * RANDOM_GOLDEN);
}
static inline uint64_t random_counter_bits(uint64_t key, uint64_t stream, uint64_t number) {
    return random_seed_bits(random_counter_seed(key, stream), number);
}
/* An odd multiple of 2^-54 in (0, 1). */
static inline double random_unit(uint64_t bits) {
    return ((double)(int64_t)(bits >> 11) + 0.5) * 0x1p-53;
}
/* Layer I of the ziggurat reaches to EDGE; all of it is under the curve up to RATIO of that. */
enum { RANDOM_LAYERS = 256 };
extern struct random_layer { double edge, ratio; } random_layers[RANDOM_LAYERS + 1];
double random_counter_normal_edge(uint64_t bits); /* of BITS that are beyond RATIO */
/* The standard normal number that belongs to BITS: the ziggurat of G. Marsaglia and W. W. Tsang (J. Stat.
 * Software 5(8), 2000) with 256 layers, layer and height from different bits as J. A. Doornik (2005) advises.
 */
static inline double random_counter_normal(uint64_t bits) {
    const struct random_layer *layer = &random_layers[bits & (RANDOM_LAYERS - 1)];
    double unit = random_unit(bits),
           sign = 1 - (double)(int)(bits >> 7 & 2); /* no branch: it would be a guess */
    return unit < layer->ratio ? sign * unit * layer->edge : random_counter_normal_edge(bits);
}
/* A number in (0, 1) that belongs to BITS and is independent of the normal one. */
double random_counter_uniform(uint64_t bits);

/* log x, and e^x: the same bits on every machine (foundation/portable-math.h, which plugins cannot include).
 */
double random_log(double x);
double random_exp(double x);

#endif
