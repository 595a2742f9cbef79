/*
 * Memory that a kernel works on: of the processor that it is pinned to, with a content that is known, and
 * more of it than a call needs, so that each call can begin elsewhere.
 */
#ifndef ASSAY_KERNELS_BUFFER_H
#define ASSAY_KERNELS_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* SplitMix64: one word of state, good enough for content and offsets, and the same everywhere. */
uint64_t draw(uint64_t *state);
/* A whole number from 0 to MOST, which is below 2^57. */
uint64_t draw_up_to(uint64_t *state, uint64_t most);

/* Sets the memory policy "local": pages come from the NUMA node of the processor that first touches them.
 * Returns the policy in words, also when it could not be set. */
const char *buffer_keep_local(void);

/* Zeroed pages, never freed; ends the program, with WHAT in the sentence, if there are none. */
void *buffer_allocate(uint64_t bytes, const char *what);

/* The order is that of content_words. */
enum content_kind { CONTENT_RANDOM, CONTENT_SEQUENTIAL, CONTENT_CONSTANT };
extern const char *const content_words[];

/* What content_fill() sets COUNT elements to: uniform in [0, 1), i / (COUNT - 1), or VALUE; times SCALE; then
 * the low MASK bits of each are set to one. */
struct content {
    enum content_kind kind;
    double value, scale;
    unsigned mask;
    bool is_single;
};
void content_fill(const struct content *content, void *elements, uint64_t count, uint64_t *state);

static inline void element_put(bool is_single, void *elements, size_t i, double value) {
    if (is_single)
        ((float *)elements)[i] = (float)value;
    else
        ((double *)elements)[i] = value;
}
static inline double element_get(bool is_single, const void *elements, size_t i) {
    return is_single ? (double)((const float *)elements)[i] : ((const double *)elements)[i];
}

#endif
