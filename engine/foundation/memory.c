#include "engine/foundation/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void memory_exhausted(void) {
    static const char sentence[] = "assay: out of memory\n";
    (void)!write(STDERR_FILENO, sentence, sizeof sentence - 1);
    _exit(1);
}

static void *there(void *memory) {
    if (!memory)
        memory_exhausted();
    return memory;
}

void *xmalloc(size_t size) {
    return there(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size) {
    return there(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *memory, size_t size) {
    return there(realloc(memory, size ? size : 1));
}

char *xstrdup(const char *string) {
    return there(strdup(string));
}

char *xstrdup_or_null(const char *string) {
    return string ? xstrdup(string) : NULL;
}

char *xstrndup(const char *string, size_t length) {
    return there(strndup(string, length));
}

char *xformat(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *string = NULL;
    if (vasprintf(&string, format, arguments) < 0)
        string = NULL;
    va_end(arguments);
    return there(string);
}

/* Like realloc for large arrays, USED bytes of which are copied, on huge pages where the kernel has them. */
void *xrealloc_large(void *memory, size_t used, size_t size) {
    const uintptr_t page = 1 << 16; /* no machine's usual pages are larger */
    char *larger = xmalloc(size);
    uintptr_t start = ((uintptr_t)larger + page - 1) / page * page,
              end = ((uintptr_t)larger + size) / page * page;
    if (end > start)
        (void)madvise((void *)start, end - start, MADV_HUGEPAGE); /* without, it is only slower */
    if (used > 0)
        memcpy(larger, memory, used);
    free(memory);
    return larger;
}

void xappend(char ***list, size_t *count, char *text) {
    *list = xrealloc(*list, (*count + 1) * sizeof **list);
    (*list)[(*count)++] = text;
}
