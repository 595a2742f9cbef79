#include "engine/numerics/random.h"

#include "engine/foundation/portable-math.h"

#include <math.h>
#include <stdbool.h>

static const uint64_t golden = RANDOM_GOLDEN;

static uint64_t splitmix64(uint64_t *state) {
    return random_mix(*state += golden);
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

/* The next 64 bits, by xoshiro256** (D. Blackman, S. Vigna 2018). */
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
    return random_mix(seed + golden);
}

double random_counter_uniform(uint64_t bits) {
    return random_unit(random_mix(bits ^ UINT64_C(0xd1b54a32d192ed03)));
}

static const double tail = 3.6541528853610088, area = 0.00492867323399; /* of Marsaglia and Tsang */
struct random_layer random_layers[RANDOM_LAYERS + 1];

/* Fills the layers of the ziggurat for normal numbers (G. Marsaglia, W. Tsang 2000). */
__attribute__((constructor)) static void fill_layers(void) {
    struct random_layer *layers = random_layers;
    layers[0].edge = area / portable_exp(-0.5 * tail * tail);
    layers[1].edge = tail;
    for (size_t i = 2; i < RANDOM_LAYERS; i++)
        layers[i].edge =
            sqrt(-2 * portable_log(area / layers[i - 1].edge +
                                   portable_exp(-0.5 * layers[i - 1].edge * layers[i - 1].edge)));
    layers[RANDOM_LAYERS].edge = 0;
    for (size_t i = 0; i < RANDOM_LAYERS; i++)
        layers[i].ratio = layers[i + 1].edge / layers[i].edge;
}

/* A normal number beyond the last layer, by Marsaglia's method. */
static double normal_tail(uint64_t bits) {
    double x, y;
    do {
        bits = random_mix(bits + golden);
        x = -portable_log(random_unit(bits)) / tail;
        bits = random_mix(bits + golden);
        y = -portable_log(random_unit(bits));
    } while (2 * y < x * x);
    return tail + x;
}

/* The normal number of BITS, for the few that fall between a layer and the density. */
double random_counter_normal_edge(uint64_t bits) {
    static const double margin = 1e-12; /* more than is lost by rounding */
    size_t layer = bits & (RANDOM_LAYERS - 1);
    double sign = bits & RANDOM_LAYERS ? -1 : 1, edge = random_layers[layer].edge,
           next = random_layers[layer + 1].edge, x = random_unit(bits) * edge;
    bits = random_mix(bits + golden);
    if (layer == 0)
        return sign * normal_tail(bits);
    /* Most are decided by 1 - a <= e^-a <= 1 - a + a^2 / 2 and 1 + b <= e^b <= 1 + b + b^2, for b <= 1. */
    double a = 0.5 * (edge * edge - x * x), b = 0.5 * (x * x - next * next), unit = random_unit(bits);
    bool is_within = (1 - unit) * (b + b * b) < unit * (a - 0.5 * a * a) - margin && b <= 1;
    if (!is_within && (1 - unit) * b < unit * a + margin) {
        double low = portable_exp(-0.5 * (edge * edge - x * x)),
               high = portable_exp(-0.5 * (next * next - x * x));
        is_within = high + unit * (low - high) < 1;
    }
    if (is_within)
        return sign * x;
    return random_counter_normal(random_mix(bits + golden));
}
