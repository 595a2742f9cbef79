/*
 * Numbers as text, without losing a digit and without asking the locale.
 */
#ifndef ASSAY_FOUNDATION_NUMBER_H
#define ASSAY_FOUNDATION_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NUMBER_TEXT_SIZE = 32,    /* longest text that number_format_* writes, with its NUL */
    NUMBER_LENGTH_MAX = 1200, /* bytes of a number that is read; enough for all digits of any double */
};

/* The whole of BYTES[0..LENGTH) must be one decimal number: an optional sign, digits with an optional
 * point, an optional exponent; no blanks, no hexadecimal, no inf or nan. Correctly rounded. False if it
 * is not such a number, or is too large for a double. BYTES need not end in NUL. */
bool number_parse_double(const char *bytes, size_t length, double *ret);

/* Reads a whole number in the range of int64_t; "1e3" and "1.0" are refused. */
bool number_parse_int64(const char *bytes, size_t length, int64_t *ret);
bool number_parse_uint64(const char *bytes, size_t length, uint64_t *ret);

/* The shortest of %.15g, %.16g and %.17g that reads back as the same double; whole numbers below 2^53 are
 * written without exponent. "nan", "inf" and "-inf" for what is not finite. Returns the length written. */
size_t number_format_double(double value, char buffer[static NUMBER_TEXT_SIZE]);
/* The one spelling of the number that TEXT is, by its value: "100000" for "1e+05" and "100000.0", "7" for
 * "007", "0" for "-0". False, with BUFFER untouched: TEXT is no number, or one of 2^53 or more, where texts
 * that differ may be one double. */
bool number_spell(const char *text, char buffer[static NUMBER_TEXT_SIZE]);
/* Whether two texts are the same, or the same number. */
bool number_texts_equal(const char *left, const char *right);
size_t number_format_int64(int64_t value, char buffer[static NUMBER_TEXT_SIZE]);
size_t number_format_uint64(uint64_t value, char buffer[static NUMBER_TEXT_SIZE]);

/* "a number from 1 to 10 s", "a number of at least 1", "a number of at most 10" or "a number": WHAT between
 * LOW and HIGH in UNIT, which may be "". Infinities are no bounds. Returns BUFFER, cut at SIZE. */
const char *number_describe_range(const char *what, double low, double high, const char *unit, char *buffer,
                                  size_t size);

/* For people: VALUE with three significant digits and a prefix, such as "1.53 GiB" (binary, UNIT "B") or
 * "12.5 Gflop/s" (decimal). Returns BUFFER. */
const char *number_describe_bytes(double bytes, char buffer[static NUMBER_TEXT_SIZE]);
const char *number_describe_duration(double seconds, char buffer[static NUMBER_TEXT_SIZE]);

#endif
