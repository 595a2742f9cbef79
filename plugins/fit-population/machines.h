/* The machines of a table: one for each group and combination of the texts of the columns that tell machines
 * apart, numbered in the order in which they come. */
#ifndef ASSAY_FIT_POPULATION_MACHINES_H
#define ASSAY_FIT_POPULATION_MACHINES_H

#include <stddef.h>
#include <stdint.h>

enum { MACHINES_MAX = 1 << 24 };

struct machines {
    size_t columns;
    uint32_t count;
    uint32_t *keys; /* of each machine its group and COLUMNS codes */
    size_t key_capacity;
    uint32_t *slots; /* a hash table of machines + 1; 0: free */
    size_t slot_count;
};

void machines_init(struct machines *machines, size_t columns);
void machines_clear(struct machines *machines);

/* The number of the machine with these CODES in GROUP. 0, -EFBIG for more than MACHINES_MAX, -ENOMEM. */
int machines_find(struct machines *machines, uint32_t group, const uint32_t *codes, uint32_t *ret);
uint32_t machines_group(const struct machines *machines, uint32_t machine);

#endif
