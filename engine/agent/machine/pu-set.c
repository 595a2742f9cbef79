#include "engine/agent/machine/pu-set.h"

#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

bool pu_set_has(const struct pu_set *set, unsigned pu) {
    return pu < PROTOCOL_PU_LIMIT && set->bits[pu / 8] >> (pu % 8) & 1;
}

void pu_set_add(struct pu_set *set, unsigned pu) {
    if (pu < PROTOCOL_PU_LIMIT)
        set->bits[pu / 8] |= (unsigned char)(1u << (pu % 8));
}

unsigned pu_set_next(const struct pu_set *set, unsigned pu) {
    while (++pu < PROTOCOL_PU_LIMIT && !pu_set_has(set, pu))
        continue;
    return pu;
}

unsigned pu_set_first(const struct pu_set *set) {
    return pu_set_next(set, -1u);
}

unsigned pu_set_count(const struct pu_set *set) {
    unsigned count = 0;
    for (size_t i = 0; i < sizeof set->bits; i++)
        count += (unsigned)__builtin_popcount(set->bits[i]);
    return count;
}

int pu_set_parse(const char *text, struct pu_set *ret) {
    struct pu_set set = {0};
    size_t left = strcspn(text, "\n");
    while (left > 0) {
        size_t item = strcspn(text, ",\n"), first_length = strcspn(text, "-,\n");
        uint64_t first, last;
        if (!number_parse_uint64(text, first_length, &first))
            return -EINVAL;
        last = first;
        if (first_length < item &&
            !number_parse_uint64(text + first_length + 1, item - first_length - 1, &last))
            return -EINVAL;
        if (last < first || last >= PROTOCOL_PU_LIMIT)
            return -EINVAL;
        for (uint64_t pu = first; pu <= last; pu++)
            pu_set_add(&set, (unsigned)pu);
        if (item < left && item + 1 == left)
            return -EINVAL; /* a comma at the end */
        item += item < left;
        text += item;
        left -= item;
    }
    *ret = set;
    return 0;
}

const char *pu_set_format(const struct pu_set *set, char *buffer, size_t size) {
    size_t length = 0;
    buffer[0] = '\0';
    for (unsigned pu = pu_set_first(set); pu < PROTOCOL_PU_LIMIT && length < size;
         pu = pu_set_next(set, pu)) {
        unsigned last = pu;
        while (pu_set_has(set, last + 1))
            last++;
        const char *comma = length ? "," : "";
        int written = last == pu ? snprintf(buffer + length, size - length, "%s%u", comma, pu)
                                 : snprintf(buffer + length, size - length, "%s%u-%u", comma, pu, last);
        length += (size_t)written;
        pu = last;
    }
    return buffer;
}

/* A set is what the kernel takes as a mask, where the lowest byte of a word comes first. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "affinity masks are arrays of unsigned long");

int pu_set_bind(const struct pu_set *set) {
    return syscall(SYS_sched_setaffinity, 0, sizeof set->bits, set->bits) < 0 ? -errno : 0;
}

int pu_set_allowed(struct pu_set *ret) {
    *ret = (struct pu_set){0};
    return syscall(SYS_sched_getaffinity, 0, sizeof ret->bits, ret->bits) < 0 ? -errno : 0;
}
