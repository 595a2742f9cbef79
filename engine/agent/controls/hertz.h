/* Frequencies as campaigns write them and as the kernel counts them, in kHz. */
#ifndef ASSAY_CONTROLS_HERTZ_H
#define ASSAY_CONTROLS_HERTZ_H

#include "engine/foundation/failure.h"

#include <stddef.h>
#include <stdint.h>

enum { HERTZ_TEXT_SIZE = 32, HERTZ_RANGE_SIZE = 68 };

/* Reads "2.1GHz", "2100 MHz", "2100000kHz" or "2100000000Hz", rounded to kHz. 0 or -EINVAL. */
int hertz_parse(const char *text, size_t length, uint64_t *ret_khz);
/* Formats exactly: "2.1GHz", "800MHz", "24kHz"; "unknown" for 0. Returns BUFFER. */
const char *hertz_format(uint64_t khz, char buffer[static HERTZ_TEXT_SIZE]);
/* Formats "800MHz..3.5GHz", or one frequency if both are equal. Returns BUFFER. */
const char *hertz_format_range(uint64_t min, uint64_t max, char buffer[static HERTZ_RANGE_SIZE]);

/* The frequencies of the words min, base and max, in kHz; 0: not known on this machine, or not a word of this
 * control. Percentages are of the base. */
struct hertz_words {
    uint64_t min, base, max;
};

/* Reads a value or "MIN..MAX". -EINVAL with a sentence for values outside of WORDS' min and max. */
int hertz_parse_range(const char *asked, const struct hertz_words *words, uint64_t *ret_min,
                      uint64_t *ret_max, struct failure *failure);

#endif
