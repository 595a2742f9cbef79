#include "engine/numerics/random.h"

#include "engine/foundation/portable-math.h"

#include <math.h>

static uint64_t splitmix64(uint64_t *state) {
    uint64_t bits = *state += UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

void random_stream_init(struct random_stream *ret, uint64_t seed, const char *name, uint64_t index) {
    uint64_t state = seed;
    for (const char *c = name; *c; c++)
        state = splitmix64(&state) ^ (unsigned char)*c;
    state = splitmix64(&state) ^ index;
    for (size_t i = 0; i < 4; i++)
        ret->state[i] = splitmix64(&state);
}

static uint64_t rotate(uint64_t bits, unsigned count) {
    return bits << count | bits >> (64 - count);
}

uint64_t random_stream_bits(struct random_stream *stream) {
    uint64_t *state = stream->state, output = rotate(state[1] * 5, 7) * 9, shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate(state[3], 45);
    return output;
}

uint64_t random_stream_below(struct random_stream *stream, uint64_t bound) {
    uint64_t bits, too_many = (0 - bound) % bound; /* 2^64 mod BOUND */
    do
        bits = random_stream_bits(stream);
    while (bits < too_many);
    return bits % bound;
}

double random_stream_uniform(struct random_stream *stream) {
    return ((double)(random_stream_bits(stream) >> 11) + 0.5) * 0x1p-53;
}

double random_log(double x) {
    return portable_log(x);
}

double random_exp(double x) {
    return portable_exp(x);
}

double random_stream_normal(struct random_stream *stream) {
    double u, v, s;
    do {
        u = 2 * random_stream_uniform(stream) - 1;
        v = 2 * random_stream_uniform(stream) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s == 0);
    return u * sqrt(-2 * random_log(s) / s);
}
