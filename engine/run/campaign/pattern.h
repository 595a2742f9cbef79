/*
 * The pattern of a response: a POSIX extended regular expression, compiled and matched by TRE, which takes
 * time in proportion to the text and memory in proportion to the pattern, whatever both are; on much text
 * some patterns take minutes all the same, so the search has a limit. (The C library's takes exponentially
 * long to compile some short patterns, and the square of a line's length to match others.) Compiling takes
 * the square of a pattern's size, which is why that has limits; a second and 64 MiB are the most it takes.
 */
#ifndef ASSAY_CAMPAIGN_PATTERN_H
#define ASSAY_CAMPAIGN_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include <tre/tre.h>

enum {
    PATTERN_BYTES_MAX = 500,
    PATTERN_NESTING_MAX = 10,   /* parentheses within parentheses */
    PATTERN_WRITTEN_MAX = 1000, /* characters, classes and groups, with a{3} written as aaa */
    PATTERN_REASON_SIZE = 256,
    PATTERN_MATCH_MAX = 16 << 10, /* bytes */
    PATTERN_CPU_SECONDS_MAX = 5,
};

/* A pattern beyond a limit, with a back reference, that does not compile or has no group: -EINVAL and the
 * REASON, which follows "the pattern". -ENOMEM. What is compiled is freed with tre_regfree. */
int pattern_compile(const char *pattern, regex_t *ret, char reason[static PATTERN_REASON_SIZE]);
/* Finds the first group of the first match in TEXT; ^ and $ match at every line. Of a match longer than
 * PATTERN_MATCH_MAX a part may be found. 1: found; 0: no match; -ETIMEDOUT: the search was given up after
 * PATTERN_CPU_SECONDS_MAX of processor time. */
int pattern_find(const regex_t *compiled, const char *text, size_t length, const char **ret_match,
                 size_t *ret_length);

#endif
