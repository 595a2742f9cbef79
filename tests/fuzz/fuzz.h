/* What every target has. It counts the inputs that get past its first check, and replay.c fails when they are
 * fewer of a hundred than the target says: what is refused at once tests nothing behind it. */
#ifndef ASSAY_TESTS_FUZZ_FUZZ_H
#define ASSAY_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* Defined by each target with FUZZ_TARGET(so many of a hundred, mutations of each file of its corpus). */
extern uint64_t fuzz_passed;
extern const uint64_t fuzz_least_percent, fuzz_mutations;
#define FUZZ_TARGET(least_percent, mutations)                                                                \
    uint64_t fuzz_passed;                                                                                    \
    const uint64_t fuzz_least_percent = least_percent, fuzz_mutations = mutations

/* The bytes as a text of exactly their length, which the caller frees. */
static inline char *fuzz_text(const uint8_t *bytes, size_t length) {
    char *text = malloc(length + 1);
    if (!text)
        abort();
    memcpy(text, bytes, length);
    text[length] = '\0';
    return text;
}

static inline void must(bool holds) {
    if (!holds)
        abort();
}

#endif
