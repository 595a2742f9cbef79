#include "engine/foundation/natural-order.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Compares as people sort: numbers by value, before texts; digits inside texts by value (strverscmp). */
int natural_order_compare(const char *a, const char *b) {
    double x, y;
    bool a_is_number = number_parse_double(a, strlen(a), &x),
         b_is_number = number_parse_double(b, strlen(b), &y);
    if (a_is_number && b_is_number && x != y)
        return x < y ? -1 : 1;
    if (a_is_number != b_is_number) /* else 2 < 10 < 1x < 2 would be a circle */
        return a_is_number ? -1 : 1;
    int order = strverscmp(a, b);
    return order ? order : strcmp(a, b);
}

struct placed {
    const char *text;
    uint32_t index;
};

static int compare_placed(const void *a, const void *b) {
    const struct placed *left = a, *right = b;
    int order = natural_order_compare(left->text, right->text);
    return order ? order : left->index < right->index ? -1 : left->index > right->index;
}

/* The place of each text in natural order into *RET, which the caller frees. -ENOMEM. */
int natural_order_ranks(const char *const *texts, size_t count, uint32_t **ret) {
    cleanup_free struct placed *placed = calloc(count + 1, sizeof *placed);
    uint32_t *ranks = calloc(count + 1, sizeof *ranks);
    if (!placed || !ranks) {
        free(ranks);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++)
        placed[i] = (struct placed){texts[i], (uint32_t)i};
    qsort(placed, count, sizeof *placed, compare_placed);
    for (size_t i = 0; i < count; i++)
        ranks[placed[i].index] = (uint32_t)i;
    *ret = ranks;
    return 0;
}
