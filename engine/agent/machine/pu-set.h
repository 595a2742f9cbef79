/* Sets of PUs, which the kernel writes as "0-3,8,10-11". */
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
/* The lowest PU of the set, and the lowest above PU; PROTOCOL_PU_LIMIT: there is none. */
unsigned pu_set_first(const struct pu_set *set);
unsigned pu_set_next(const struct pu_set *set, unsigned pu);
unsigned pu_set_count(const struct pu_set *set);
/* Reads the set that TEXT names, up to its end or a newline; "" is the empty set. 0, or -EINVAL. */
int pu_set_parse(const char *text, struct pu_set *ret);
/* Set and get the PUs that the calling thread may use. 0 or a negative errno. The kernel ignores PUs of SET
 * that do not exist or are not allowed, if at least one is left. */
int pu_set_bind(const struct pu_set *set);
int pu_set_allowed(struct pu_set *ret);
/* Writes "0-3,8", cut at SIZE, and returns BUFFER. */
const char *pu_set_format(const struct pu_set *set, char *buffer, size_t size);

#endif
