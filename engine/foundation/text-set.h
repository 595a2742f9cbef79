/* Texts numbered 0, 1, 2, ... in the order in which they were added, and found again by hash. */
#ifndef ASSAY_FOUNDATION_TEXT_SET_H
#define ASSAY_FOUNDATION_TEXT_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed memory is an empty set. */
struct text_set {
    char **texts; /* owned, by number; each stays where it is, the array does not */
    size_t count, capacity;
    uint32_t *slots; /* open addressing: the number and one, or 0 */
    size_t slot_count;
};

void text_set_clear(struct text_set *set);

/* Sets the number of the text of LENGTH bytes, none of them a NUL; false: it is not in the set. */
bool text_set_find(const struct text_set *set, const char *text, size_t length, uint32_t *ret);
/* The same; a text that the set does not have is added. A caller that reads what others wrote limits how many
 * there may be, to 2^31 at most. */
uint32_t text_set_add(struct text_set *set, const char *text, size_t length);
/* Removes all but the first COUNT texts. */
void text_set_cut(struct text_set *set, size_t count);

#endif
