/* How much memory is left. Read ten times a second at most: the kernel counts pages in batches anyway. */
#include "engine/agent/probes/probe.h"
#include "engine/agent/probes/source.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTENT = 16 << 10 };
#define EVERY_NS (PROBE_SECOND / 10)

static const char *const fields[] = {"MemAvailable:", "MemFree:"};

struct memory {
    struct source source;
    int64_t due_ns;
    char content[CONTENT];
};

/* "MemFree:        24198396 kB", at the beginning of a line. */
static bool find(const char *content, const char *field, uint64_t *ret) {
    size_t length = strlen(field);
    for (const char *line = content; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, field, length) != 0)
            continue;
        const char *digits = line + length + strspn(line + length, " \t");
        size_t count = strspn(digits, "0123456789");
        return number_parse_uint64(digits, count, ret) && strncmp(digits + count, " kB", 3) == 0 &&
               !__builtin_mul_overflow(*ret, UINT64_C(1024), ret);
    }
    return false;
}

static void sample(struct probing *probing) {
    struct memory *memory = probing->state;
    if (!probing->last && probing->now_ns < memory->due_ns)
        return;
    memory->due_ns = probing->now_ns + EVERY_NS;
    ssize_t length =
        source_read(&memory->source, probing->machine, probing->now_ns, memory->content, CONTENT);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        uint64_t bytes;
        if (length > 0 && find(memory->content, fields[i], &bytes))
            probing_put_number(probing, bytes);
        else
            probing_put_gone(probing);
    }
}

static int begin(struct probing *probing) {
    struct memory *memory = probing->state = calloc(1, sizeof *memory);
    if (!memory || source_init(&memory->source, "proc/meminfo") < 0)
        return -ENOMEM;
    ssize_t length =
        source_read(&memory->source, probing->machine, probing->now_ns, memory->content, CONTENT);
    if (length < 0)
        return probing_fail(probing, (int)length, "/proc/meminfo: %s", strerror((int)-length));
    snprintf(probing->source, sizeof probing->source, "/proc/meminfo");
    int r = probing_add_column(probing, "By", "available");
    return r < 0 ? r : probing_add_column(probing, "By", "free");
}

static void end(struct probing *probing) {
    struct memory *memory = probing->state;
    source_clear(&memory->source);
    free(memory);
    probing->state = NULL;
}

const struct probe probe_memory = {.name = "memory", .begin = begin, .sample = sample, .end = end};
