#include "plugins/fit-linear/linear.h"

#include "engine/numerics/random.h"

#include <stdlib.h>

int settings_find(const struct problem *problem, struct settings *ret) {
    size_t count = problem->setting_count;
    struct random_stream stream;
    size_t *place = malloc((count + 1) * sizeof *place); /* of each setting in the order */
    *ret = (struct settings){.rows = malloc((problem->rows + 1) * sizeof *ret->rows),
                             .first = calloc(count + 2, sizeof *ret->first),
                             .count = count};
    if (!place || !ret->rows || !ret->first) {
        free(place);
        return -ENOMEM;
    }
    random_stream_init(&stream, problem->request->seed, "settings", 0);
    for (size_t s = 0; s < count; s++) { /* Fisher and Yates, inside out */
        size_t at = random_stream_below(&stream, s + 1);
        place[s] = place[at];
        place[at] = s;
    }
    size_t *next = ret->first + 1; /* first[s + 1] runs from where setting s begins to where it ends */
    for (size_t i = 0; i < problem->rows; i++)
        next[place[problem->settings[i]] + 1]++;
    for (size_t s = 0; s < count; s++)
        next[s + 1] += next[s];
    for (size_t i = 0; i < problem->rows; i++)
        ret->rows[next[place[problem->settings[i]]]++] = i;
    free(place);
    return 0;
}

void settings_clear(struct settings *settings) {
    free(settings->rows);
    free(settings->first);
    *settings = (struct settings){0};
}
