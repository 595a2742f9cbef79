#include "engine/table/row-places.h"

#include "engine/foundation/list.h"

#include <errno.h>
#include <stdlib.h>

/* Whether ROW of INPUT on LINE continues the last stretch, line by line. */
static bool follows(const struct row_places *places, uint64_t row, uint32_t input, uint64_t line) {
    if (places->count == 0)
        return false;
    const struct row_place *last = &places->stretches[places->count - 1];
    return last->input == input && last->line + (row - last->row) == line;
}

/* Adds ROWS rows with their lines, as stretches of consecutive lines. 0, also when the limit is reached and
 * later places are not known; -ENOMEM. */
int row_places_add(struct row_places *places, uint32_t input, size_t rows, const uint64_t *lines) {
    if (places->full)
        return 0;
    bool even = lines[rows - 1] - lines[0] == rows - 1; /* lines only ever grow */
    if (even && follows(places, places->rows, input, lines[0])) {
        places->rows += rows;
        return 0;
    }
    for (size_t i = 0; i < rows; i += even ? rows : 1) {
        if (follows(places, places->rows + i, input, lines[i]))
            continue;
        int r = list_reserve(&places->stretches, &places->capacity, places->count + 1,
                             sizeof *places->stretches, ROW_PLACES_MAX);
        places->full = r == -EFBIG;
        if (places->full)
            places->rows += i;
        if (r < 0)
            return places->full ? 0 : r;
        places->stretches[places->count++] = (struct row_place){places->rows + i, lines[i], input};
    }
    places->rows += rows;
    return 0;
}

/* Finds input and line of ROW, by bisection. false: not known. */
bool row_places_find(const struct row_places *places, uint64_t row, uint32_t *ret_input, uint64_t *ret_line) {
    if (row >= places->rows)
        return false;
    size_t low = 0, high = places->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (places->stretches[middle].row <= row)
            low = middle;
        else
            high = middle;
    }
    *ret_input = places->stretches[low].input;
    *ret_line = places->stretches[low].line + (row - places->stretches[low].row);
    return true;
}

void row_places_clear(struct row_places *places) {
    free(places->stretches);
    *places = (struct row_places){0};
}
