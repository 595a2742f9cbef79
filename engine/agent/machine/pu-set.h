/* Sets of PUs as the kernel writes them: "0-3,8,10-11". */
#ifndef ASSAY_MACHINE_PU_SET_H
#define ASSAY_MACHINE_PU_SET_H

#include "engine/agent/wire/protocol.h"

#include <stdbool.h>
#include <stddef.h>

struct pu_set {
    unsigned char bits[PROTOCOL_PU_LIMIT / 8];
};

bool pu_set_has(const struct pu_set *set, unsigned pu);
void pu_set_add(struct pu_set *set, unsigned pu);
/* The lowest member, or PROTOCOL_PU_LIMIT. */
unsigned pu_set_first(const struct pu_set *set);
/* The set that TEXT (to its end, or to a line's end) names; an empty one is fine. 0, or -EINVAL. */
int pu_set_parse(const char *text, struct pu_set *ret);
/* Writes "0-3,8", cut at SIZE, and returns BUFFER. */
const char *pu_set_format(const struct pu_set *set, char *buffer, size_t size);

#endif
