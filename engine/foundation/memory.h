/*
 * Memory that is always there: when there is none, the program says so and ends with exit code 1. A run that
 * ends so is resumed from its journal, and nodes restore themselves. The agent and plugins must not end so;
 * they use malloc().
 */
#ifndef ASSAY_FOUNDATION_MEMORY_H
#define ASSAY_FOUNDATION_MEMORY_H

#include <stddef.h>

/* Says that memory is out and ends the program. */
_Noreturn void memory_exhausted(void);
/* As malloc(), calloc(), realloc(), strdup() and strndup(); never NULL. The caller frees. */
void *xmalloc(size_t size) __attribute__((malloc, alloc_size(1), returns_nonnull));
void *xcalloc(size_t count, size_t size) __attribute__((malloc, alloc_size(1, 2), returns_nonnull));
void *xrealloc(void *memory, size_t size) __attribute__((alloc_size(2), returns_nonnull));
char *xstrdup(const char *string) __attribute__((malloc, returns_nonnull));
char *xstrdup_or_null(const char *string) __attribute__((malloc)); /* NULL of NULL */
char *xstrndup(const char *string, size_t length) __attribute__((malloc, returns_nonnull));
/* printf into fresh memory; never NULL. The caller frees. */
char *xformat(const char *format, ...) __attribute__((format(printf, 1, 2), malloc, returns_nonnull));
/* As xrealloc(), but keeps only the first USED bytes, for SIZE bytes that will all be written: where it can
 * be it is in large pages, so that there are fewer faults and reads in any order are quicker. */
void *xrealloc_large(void *memory, size_t used, size_t size) __attribute__((alloc_size(3), returns_nonnull));
/* Appends TEXT, which it takes over, to the COUNT texts of LIST. */
void xappend(char ***list, size_t *count, char *text);

#endif
