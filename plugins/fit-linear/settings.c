#include "plugins/fit-linear/linear.h"

#include <stdlib.h>

/* Groups the rows by setting: rows of setting s are rows[first[s]] to rows[first[s + 1] - 1]. -ENOMEM. To be
 * cleared in any case. */
int settings_find(const struct problem *problem, struct settings *ret) {
    size_t count = problem->setting_count;
    *ret = (struct settings){.rows = malloc((problem->rows + 1) * sizeof *ret->rows),
                             .first = calloc(count + 2, sizeof *ret->first),
                             .count = count};
    if (!ret->rows || !ret->first)
        return -ENOMEM;
    size_t *next = ret->first + 1; /* first[s + 1] runs from where setting s begins to where it ends */
    for (size_t i = 0; i < problem->rows; i++)
        next[problem->settings[i] + 1]++;
    for (size_t s = 0; s < count; s++)
        next[s + 1] += next[s];
    for (size_t i = 0; i < problem->rows; i++)
        ret->rows[next[problem->settings[i]]++] = i;
    return 0;
}

void settings_clear(struct settings *settings) {
    free(settings->rows);
    free(settings->first);
    *settings = (struct settings){0};
}
