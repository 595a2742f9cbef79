#include "plugins/fit-linear/grouped.h"

#include <errno.h>
#include <stdlib.h>

int grouped_init(struct grouped *grouped, const uint32_t *groups, size_t stride, uint32_t count,
                 uint32_t group_count) {
    uint32_t *starts = calloc((size_t)group_count + 2, sizeof *starts);
    uint32_t *members = calloc((size_t)count + 1, sizeof *members);
    if (!starts || !members) {
        free(starts);
        free(members);
        return -ENOMEM;
    }
    /* Two places up, so that filling, which moves each group's start to its end, leaves them in place. */
    for (uint32_t i = 0; i < count; i++)
        starts[groups[i * stride] + 2]++;
    for (uint32_t group = 0; group < group_count; group++)
        starts[group + 1] += starts[group];
    for (uint32_t i = 0; i < count; i++)
        members[starts[groups[i * stride] + 1]++] = i;
    *grouped = (struct grouped){members, starts};
    return 0;
}

void grouped_clear(struct grouped *grouped) {
    free(grouped->members);
    free(grouped->starts);
    *grouped = (struct grouped){0};
}
