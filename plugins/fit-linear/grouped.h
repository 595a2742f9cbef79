/* Things sorted by their group, by counting: those of one group lie together, in the order that they had. */
#ifndef ASSAY_FIT_LINEAR_GROUPED_H
#define ASSAY_FIT_LINEAR_GROUPED_H

#include <stddef.h>
#include <stdint.h>

struct grouped {
    uint32_t *members; /* the things' numbers */
    uint32_t *starts;  /* where those of each group start, and where the last end */
};

/* The group of thing i is GROUPS[i * stride], below GROUP_COUNT. 0 or -ENOMEM. */
int grouped_init(struct grouped *grouped, const uint32_t *groups, size_t stride, uint32_t count,
                 uint32_t group_count);
void grouped_clear(struct grouped *grouped);

#endif
