#include "buffer.h"

#include "settings.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const content_words[] = {"random", "sequential", "constant", NULL};

uint64_t draw(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t draw_up_to(uint64_t *state, uint64_t most) {
    return (uint64_t)(((unsigned __int128)draw(state) * (most + 1)) >> 64);
}

const char *buffer_keep_local(void) {
    enum { POLICY_LOCAL = 4 }; /* MPOL_LOCAL of linux/mempolicy.h, Linux 3.8 */
    if (syscall(SYS_set_mempolicy, POLICY_LOCAL, NULL, 0UL) == 0)
        return "local";
    return errno == EPERM ? "as the process was started (set_mempolicy is not permitted)"
                          : "as the process was started (the system has no set_mempolicy)";
}

void *buffer_allocate(uint64_t bytes, const char *what) {
    void *memory = MAP_FAILED;
    errno = ENOMEM;
    if (bytes <= SIZE_MAX / 2)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        die(EXIT_SYSTEM, "cannot allocate %llu bytes for %s: %s", (unsigned long long)bytes, what,
            strerror(errno));
    return memory;
}

/* Element I of COUNT before scale and mask are applied. */
static double content_at(const struct content *content, uint64_t i, uint64_t count, uint64_t *state) {
    switch (content->kind) {
    case CONTENT_RANDOM: /* as many bits as the significand has */
        return content->is_single ? (double)(draw(state) >> 40) * 0x1p-24
                                  : (double)(draw(state) >> 11) * 0x1p-53;
    case CONTENT_SEQUENTIAL:
        return count > 1 ? (double)i / (double)(count - 1) : 0;
    case CONTENT_CONSTANT:
        break;
    }
    return content->value;
}

void content_fill(const struct content *content, void *elements, uint64_t count, uint64_t *state) {
    uint64_t ones = (UINT64_C(1) << content->mask) - 1, bits = 0;
    size_t size = content->is_single ? sizeof(float) : sizeof(double);
    for (uint64_t i = 0; i < count; i++) {
        char *element = (char *)elements + i * size;
        element_put(content->is_single, element, 0, content_at(content, i, count, state) * content->scale);
        memcpy(&bits, element, size); /* of a single: the low half, on a little-endian machine */
        bits |= ones;
        memcpy(element, &bits, size);
    }
}
