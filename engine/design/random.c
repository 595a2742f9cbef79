#include "engine/design/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

/* One step of splitmix64: advances *STATE and returns its output. */
static uint64_t random_splitmix64(uint64_t *state) {
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t bits = *state;
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

static uint64_t rotate(uint64_t bits, unsigned count) {
    return bits << count | bits >> (64 - count);
}

uint64_t random_bits(struct random_source *source) {
    uint64_t *state = source->state;
    uint64_t output = rotate(state[1] * 5, 7) * 9;
    uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate(state[3], 45);
    return output;
}

/* 2^128 steps at once. A step is linear over GF(2), so 2^128 of them are a polynomial in one step; these are
 * its coefficients (Blackman and Vigna's), lowest first. */
static void jump(struct random_source *source) {
    static const uint64_t polynomial[4] = {UINT64_C(0x180ec6d33cfd0aba), UINT64_C(0xd5a61266f0c9392c),
                                           UINT64_C(0xa9582618e03fc9aa), UINT64_C(0x39abdc4529b1661c)};
    uint64_t sum[4] = {0};
    for (unsigned term = 0; term < 256; term++) {
        if (polynomial[term / 64] >> (term % 64) & 1)
            for (unsigned word = 0; word < 4; word++)
                sum[word] ^= source->state[word];
        random_bits(source);
    }
    memcpy(source->state, sum, sizeof sum);
}

void random_start(struct random_source *source, uint64_t seed, enum random_stream stream) {
    for (unsigned word = 0; word < 4; word++)
        source->state[word] = random_splitmix64(&seed);
    for (unsigned jumps = 0; jumps < (unsigned)stream; jumps++)
        jump(source);
}

/* The high and the low word of the product of A and B. */
static uint64_t multiply_wide(uint64_t a, uint64_t b, uint64_t *low) {
    unsigned __int128 product = (unsigned __int128)a * b;
    *low = (uint64_t)product;
    return (uint64_t)(product >> 64);
}

uint64_t random_below(struct random_source *source, uint64_t bound) {
    /* The high word of bits * bound is the answer; each answer has floor(2^64 / bound) or one more products.
     * The low words below 2^64 mod bound are those too many: drawn again. */
    uint64_t low, high = multiply_wide(random_bits(source), bound, &low);
    if (low < bound) {
        uint64_t too_many = (0 - bound) % bound;
        while (low < too_many)
            high = multiply_wide(random_bits(source), bound, &low);
    }
    return high;
}

double random_fraction(struct random_source *source) {
    return (double)(random_bits(source) >> 11) * 0x1p-53;
}

void random_shuffle(struct random_source *source, uint32_t *items, size_t count) {
    for (size_t i = count; i-- > 1;) {
        size_t j = (size_t)random_below(source, (uint64_t)i + 1);
        uint32_t item = items[i];
        items[i] = items[j];
        items[j] = item;
    }
}

/* Draws a seed from the system's random numbers (getrandom). */
int random_system_seed(uint64_t *ret, struct failure *failure) {
    uint64_t bits;
    ssize_t got;
    do
        got = getrandom(&bits, sizeof bits, 0);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof bits) /* so few bytes never come in parts */
        return failure_set(failure, got < 0 ? -errno : -EIO,
                           "cannot draw a random seed from the system (getrandom): %s",
                           got < 0 ? strerror(errno) : "too few bytes");
    *ret = bits >> (64 - RANDOM_SYSTEM_SEED_BITS);
    return 0;
}
