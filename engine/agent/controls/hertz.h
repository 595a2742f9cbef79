/* Frequencies as campaigns write them and as the kernel counts them, in kHz. */
#ifndef ASSAY_CONTROLS_HERTZ_H
#define ASSAY_CONTROLS_HERTZ_H

#include "engine/foundation/failure.h"

#include <stddef.h>
#include <stdint.h>

enum { HERTZ_TEXT_SIZE = 32, HERTZ_RANGE_SIZE = 68 };

/* "2.1GHz", "2100 MHz", "2100000kHz", "2100000000Hz", rounded to kHz. 0 or -EINVAL. */
int hertz_parse(const char *text, size_t length, uint64_t *ret_khz);
/* "2.1GHz", "800MHz", "24kHz": to the digit; "unknown" of 0, which stands for what a machine does not say. */
const char *hertz_format(uint64_t khz, char buffer[static HERTZ_TEXT_SIZE]);
/* "800MHz..3.5GHz", or one alone if they are equal. */
const char *hertz_format_range(uint64_t min, uint64_t max, char buffer[static HERTZ_RANGE_SIZE]);

/* What words and percentages mean, in kHz; 0: not known here, or not a word of this control. */
struct hertz_words {
    uint64_t min, base, max;
};

/* A value or "MIN..MAX". What lies outside of WORDS' min and max is refused with a sentence. */
int hertz_parse_range(const char *asked, const struct hertz_words *words, uint64_t *ret_min,
                      uint64_t *ret_max, struct failure *failure);

#endif
