/* Memory of a document that is freed as a whole: millions of small pieces cost no call each. Internal to this
 * room. */
#ifndef ASSAY_DOCUMENTS_DOCUMENT_ARENA_H
#define ASSAY_DOCUMENTS_DOCUMENT_ARENA_H

#include <stddef.h>

struct document_arena;

struct document_arena *document_arena_new(void);
/* SIZE bytes (at most half of what there can be), aligned for any node, not cleared; NULL when out of memory.
 */
void *document_arena_take(struct document_arena *arena, size_t size);
void document_arena_free(struct document_arena *arena); /* NULL is fine */

#endif
