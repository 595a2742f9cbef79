/* Options of the programs here: rows of a table, each with where its value goes. */
#ifndef ASSAY_TEST_OPTIONS_H
#define ASSAY_TEST_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TRY_TEXTS_MAX = 8 };

struct try_option {
    const char *name;  /* "--user" */
    const char **text; /* or, with a count, so many of them already */
    size_t *count;
    unsigned *number;
    int64_t *seconds_ns;
    bool *is_given; /* an option without a value */
};

/* The first of WORDS, which NULL ends, that is no option, or is behind "--". NULL: an option is not of ROWS,
 * which one without a name ends, or lacks its value. */
static char **try_options(const struct try_option *row, char **words) {
    const struct try_option *const rows = row;
    for (; *words && strncmp(*words, "--", 2) == 0 && (*words)[2]; words++) {
        size_t length = strcspn(*words, "=");
        for (row = rows; row->name && (strncmp(row->name, *words, length) != 0 || row->name[length]);)
            row++;
        const char *value = (*words)[length]              ? *words + length + 1
                            : !row->name || row->is_given ? ""
                                                          : *++words;
        if (!row->name || !value || (row->count && *row->count == TRY_TEXTS_MAX))
            return NULL;
        if (row->text)
            row->text[row->count ? (*row->count)++ : 0] = value;
        if (row->number)
            *row->number = (unsigned)strtoul(value, NULL, 10);
        if (row->seconds_ns)
            *row->seconds_ns = (int64_t)(strtod(value, NULL) * 1e9);
        if (row->is_given)
            *row->is_given = true;
    }
    return words + (*words && strcmp(*words, "--") == 0);
}

#endif
