#include "engine/documents/document-arena.h"

#include <stdlib.h>

enum {
    BLOCK_LEAST = 1 << 12,
    BLOCK_MOST = 1 << 20,
    ALIGNMENT = 16,
};

struct block {
    struct block *before;
    _Alignas(ALIGNMENT) char bytes[];
};

struct document_arena {
    struct block *last;
    size_t used, size; /* of the last block */
};

struct document_arena *document_arena_new(void) {
    return calloc(1, sizeof(struct document_arena));
}

void document_arena_free(struct document_arena *arena) {
    if (!arena)
        return;
    for (struct block *block = arena->last, *before; block; block = before) {
        before = block->before;
        free(block);
    }
    free(arena);
}

/* Blocks grow, so that a small document takes little and a large one few blocks. */
static int add_block(struct document_arena *arena, size_t least) {
    size_t size = arena->size < BLOCK_LEAST ? BLOCK_LEAST : 2 * arena->size;
    size = size > BLOCK_MOST ? BLOCK_MOST : size;
    size = size < least ? least : size;
    struct block *block = malloc(sizeof *block + size);
    if (!block)
        return -1;
    block->before = arena->last;
    arena->last = block;
    arena->used = 0;
    arena->size = size;
    return 0;
}

void *document_arena_take(struct document_arena *arena, size_t size) {
    size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (arena->size - arena->used < size && add_block(arena, size) < 0)
        return NULL;
    void *taken = arena->last->bytes + arena->used;
    arena->used += size;
    return taken;
}
