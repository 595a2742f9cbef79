#include "engine/numerics/random.h"

#include "engine/foundation/portable-math.h"

#include <math.h>

static const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);

static inline uint64_t mix(uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

static uint64_t splitmix64(uint64_t *state) {
    return mix(*state += golden);
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

/* ---- By counter */

uint64_t random_counter_key(uint64_t seed) {
    return mix(seed + golden);
}

uint64_t random_counter_bits(uint64_t key, uint64_t stream, uint64_t number) {
    return mix(mix(key + (stream + 1) * golden) + (number + 1) * golden);
}

static inline double unit_of(uint64_t bits) {
    return ((double)(bits >> 11) + 0.5) * 0x1p-53;
}

double random_counter_uniform(uint64_t bits) {
    return unit_of(mix(bits ^ UINT64_C(0xd1b54a32d192ed03)));
}

enum { LAYERS = 256 };
static const double tail = 3.6541528853610088, area = 0.00492867323399; /* of Marsaglia and Tsang */
static double edges[LAYERS + 1], ratios[LAYERS];

/* Layer i reaches to edges[i], all of it under the curve up to edges[i + 1]. */
__attribute__((constructor)) static void fill_layers(void) {
    edges[0] = area / portable_exp(-0.5 * tail * tail);
    edges[1] = tail;
    for (size_t i = 2; i < LAYERS; i++)
        edges[i] =
            sqrt(-2 * portable_log(area / edges[i - 1] + portable_exp(-0.5 * edges[i - 1] * edges[i - 1])));
    edges[LAYERS] = 0;
    for (size_t i = 0; i < LAYERS; i++)
        ratios[i] = edges[i + 1] / edges[i];
}

static double normal_tail(uint64_t bits) {
    double x, y;
    do {
        bits = mix(bits + golden);
        x = -portable_log(unit_of(bits)) / tail;
        bits = mix(bits + golden);
        y = -portable_log(unit_of(bits));
    } while (2 * y < x * x);
    return tail + x;
}

double random_counter_normal(uint64_t bits) {
    for (;; bits = mix(bits + golden)) {
        size_t layer = bits & (LAYERS - 1);
        double u = unit_of(bits), sign = 1 - (double)(bits >> 7 & 2); /* no branch: it would be a guess */
        if (u < ratios[layer])
            return sign * u * edges[layer];
        bits = mix(bits + golden);
        if (layer == 0)
            return sign * normal_tail(bits);
        double x = u * edges[layer], low = portable_exp(-0.5 * (edges[layer] * edges[layer] - x * x)),
               high = portable_exp(-0.5 * (edges[layer + 1] * edges[layer + 1] - x * x));
        if (high + unit_of(bits) * (low - high) < 1)
            return sign * x;
    }
}
