#include "engine/agent/serve/memory.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Set by the linker: where the program begins in memory, and where its code ends. */
extern const char __executable_start[], etext[];

enum { LARGE_BLOCK = 128 << 10 };

void memory_return_blocks(void) {
#ifdef __GLIBC__
    /* Set explicitly, the thresholds stay fixed; otherwise each large block that is freed raises them. */
    mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
    mallopt(M_TRIM_THRESHOLD, LARGE_BLOCK);
#endif
}

void memory_forget_code(void) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)__executable_start & ~(page - 1), end = (uintptr_t)etext & ~(page - 1);
    /* Only comfort is lost if it fails. */
    (void)madvise((void *)start, end - start, MADV_DONTNEED);
}
