#include "engine/run/campaign/pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The last character of the bracket expression that begins at P, or of the pattern. */
static const char *skip_bracket(const char *p) {
    p += p[1] == '^' ? 2 : 1;
    for (const char *first = p; *p && (*p != ']' || p == first); p++) {
        if (p[0] != '[' || !strchr(":.=", p[1]) || !p[1])
            continue;
        const char end[] = {p[1], ']', '\0'}, *found = strstr(p + 2, end);
        if (found)
            p = found + 1;
    }
    return *p ? p : p - 1;
}

/* How often what a brace follows is written: a{2,5} is aaa?a?a?. */
static size_t count_times(const char *p) {
    size_t times = 1;
    for (; *p && *p != '}'; p++)
        if (isdigit((unsigned char)*p)) {
            char *end;
            unsigned long number = strtoul(p, &end, 10);
            times = number > times ? number : times;
            p = end - 1;
        }
    return times > PATTERN_WRITTEN_MAX ? PATTERN_WRITTEN_MAX + 1 : times;
}

/* Refuses patterns that would take much memory or time: nested above PATTERN_NESTING_MAX, or with more than
 * PATTERN_WRITTEN_MAX characters once repetitions such as a{3} are written out. REASON gets a clause. */
static int check_pattern_size(const char *pattern, char reason[static PATTERN_REASON_SIZE]) {
    size_t outside[PATTERN_NESTING_MAX], level = 0; /* what was written before each open group */
    size_t written = 0, last = 0;                   /* in the innermost group, and of that its last piece */
    for (const char *p = pattern; *p; p++) {
        size_t piece = 1;
        if (*p == '\\' && (isdigit((unsigned char)p[1]) || p[1] == 'Q')) {
            snprintf(reason, PATTERN_REASON_SIZE, "has '\\%c', which extended regular expressions do not",
                     p[1]);
            return -EINVAL;
        }
        if (*p == '\\' && p[1]) {
            p++;
        } else if (*p == '[') {
            p = skip_bracket(p);
        } else if (*p == '(') {
            if (level == PATTERN_NESTING_MAX) {
                snprintf(reason, PATTERN_REASON_SIZE, "has parentheses %zu deep, expected at most %d",
                         level + 1, (int)PATTERN_NESTING_MAX);
                return -EINVAL;
            }
            outside[level++] = written;
            written = last = 0;
            continue;
        } else if (*p == ')' && level > 0) {
            piece = written + 1;
            written = outside[--level];
        } else if (*p == '{') {
            piece = last * (count_times(p) - 1); /* once it is there already */
            p += strcspn(p, "}") - (strchr(p, '}') == NULL);
        } else if (strchr("*+?", *p)) {
            continue;
        }
        written += piece;
        last = *p == '}' ? last + piece : piece;
        if (written > PATTERN_WRITTEN_MAX) {
            snprintf(reason, PATTERN_REASON_SIZE,
                     "has more than %d characters when its repetitions, such as a{3}, are written out",
                     (int)PATTERN_WRITTEN_MAX);
            return -EINVAL;
        }
    }
    return 0;
}

/* Compiles PATTERN, which must have a group. -EINVAL with a clause in REASON, or -ENOMEM. */
int pattern_compile(const char *pattern, regex_t *ret, char reason[static PATTERN_REASON_SIZE]) {
    size_t length = strlen(pattern);
    if (length > PATTERN_BYTES_MAX) {
        snprintf(reason, PATTERN_REASON_SIZE, "has %zu bytes, expected at most %d", length,
                 (int)PATTERN_BYTES_MAX);
        return -EINVAL;
    }
    int r = check_pattern_size(pattern, reason);
    if (r < 0)
        return r;
    int code = tre_regncomp(ret, pattern, length, REG_EXTENDED | REG_NEWLINE);
    if (code == REG_OK && ret->re_nsub > 0)
        return 0;
    if (code == REG_OK) {
        tre_regfree(ret);
        snprintf(reason, PATTERN_REASON_SIZE, "has no group, expected parentheses around the number");
        return -EINVAL;
    }
    if (code == REG_ESPACE)
        return -ENOMEM;
    char why[128];
    tre_regerror(code, ret, why, sizeof why);
    snprintf(reason, PATTERN_REASON_SIZE, "is not an extended regular expression: %s", why);
    return -EINVAL;
}

/* Searches in pieces, so that the processor time can be checked in between. A match that begins in the last
 * PATTERN_MATCH_MAX bytes of a piece may continue behind it, so it is left to the next piece, which begins
 * with those bytes. 1: found; 0: not; -ETIMEDOUT. */
int pattern_find(const regex_t *compiled, const char *text, size_t length, const char **ret_match,
                 size_t *ret_length) {
    enum { PIECE = 128 << 10 };
    clock_t start = clock();
    for (size_t begin = 0, end;; begin = end - PATTERN_MATCH_MAX) {
        end = length - begin > PIECE ? begin + PIECE : length;
        int flags = (begin > 0 && text[begin - 1] != '\n' ? REG_NOTBOL : 0) |
                    (end < length && text[end] != '\n' ? REG_NOTEOL : 0);
        regmatch_t groups[2];
        bool found = tre_regnexec(compiled, text + begin, end - begin, 2, groups, flags) == REG_OK;
        if (found && (end == length || groups[0].rm_so < PIECE - PATTERN_MATCH_MAX)) {
            if (groups[1].rm_so < 0)
                return 0;
            *ret_match = text + begin + groups[1].rm_so;
            *ret_length = (size_t)(groups[1].rm_eo - groups[1].rm_so);
            return 1;
        }
        if (end == length)
            return 0;
        if (clock() - start > PATTERN_CPU_SECONDS_MAX * CLOCKS_PER_SEC)
            return -ETIMEDOUT;
    }
}
