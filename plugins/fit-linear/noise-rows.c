#include "plugins/fit-linear/noise-rows.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    SLAB_BYTES = 2 << 20,
    FIRST_ROWS = 8, /* of a chain's first chunk; each next is twice as long */
    CHAINS = 2,     /* of a cell and fold: narrow and wide */
    LINE = 64,
};

struct noise_chunk {
    struct noise_chunk *next;
    uint32_t capacity, left;
    bool wide;
    char bytes[]; /* row by row: inputs as floats or doubles, then the others as doubles, not aligned */
};

/* Half of a cache line: a cell and fold has one line. */
struct chain {
    struct noise_chunk *first, *last;
    char *at; /* where the next row goes */
    uint32_t
        left; /* rows that the last chunk still takes; its `rows` are brought up to date when they are read */
};

struct noise_rows {
    size_t inputs, others; /* others: the response, and the weight */
    uint32_t folds;
    struct chain *chains;
    size_t capacity; /* of chains */
    uint64_t memory; /* bytes of slabs before the file */
    char **slabs;
    size_t slab_count, slab_capacity, slab_used;
    int file; /* -1 as long as there is none */
};

int noise_rows_new(size_t inputs, bool weighted, uint32_t folds, uint64_t memory, struct noise_rows **ret) {
    struct noise_rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return -ENOMEM;
    rows->inputs = inputs;
    rows->others = weighted ? 2 : 1;
    rows->folds = folds > 1 ? folds : 1;
    rows->memory = memory;
    rows->slab_used = SLAB_BYTES;
    rows->file = -1;
    *ret = rows;
    return 0;
}

void noise_rows_free(struct noise_rows *rows) {
    if (!rows)
        return;
    for (size_t i = 0; i < rows->slab_count; i++)
        munmap(rows->slabs[i], SLAB_BYTES);
    if (rows->file >= 0)
        close(rows->file);
    free(rows->slabs);
    free(rows->chains);
    free(rows);
}

/* ---- Room */

static int open_file(void) {
    const char *folder = getenv("TMPDIR");
    int file = open(folder && *folder ? folder : "/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    return file < 0 ? -errno : file;
}

static int map_slab(struct noise_rows *rows, char **ret) {
    uint64_t before = (uint64_t)rows->slab_count * SLAB_BYTES;
    void *slab;
    if (before < rows->memory) {
        slab = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    } else {
        if (rows->file < 0 && (rows->file = open_file()) < 0)
            return rows->file;
        off_t offset = (off_t)(before - (rows->memory + SLAB_BYTES - 1) / SLAB_BYTES * SLAB_BYTES);
        int r = posix_fallocate(rows->file, offset,
                                SLAB_BYTES); /* a full disk is found out here, not by a signal */
        if (r != 0)
            return -r;
        slab = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, rows->file, offset);
    }
    if (slab == MAP_FAILED)
        return -errno;
    *ret = slab;
    return 0;
}

static int add_slab(struct noise_rows *rows) {
    if (rows->slab_count == rows->slab_capacity) {
        size_t capacity = rows->slab_capacity ? 2 * rows->slab_capacity : 64;
        char **grown = realloc(rows->slabs, capacity * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        rows->slabs = grown;
        rows->slab_capacity = capacity;
    }
    int r = map_slab(rows, &rows->slabs[rows->slab_count]);
    if (r < 0)
        return r;
    rows->slab_count++;
    rows->slab_used = 0;
    return 0;
}

static size_t row_bytes(const struct noise_rows *rows, bool wide) {
    return rows->inputs * (wide ? sizeof(double) : sizeof(float)) + rows->others * sizeof(double);
}

static int add_chunk(struct noise_rows *rows, struct chain *chain, bool wide) {
    uint32_t capacity = FIRST_ROWS;
    if (chain->last)
        capacity =
            2 * chain->last->capacity < NOISE_ROWS_CHUNK ? 2 * chain->last->capacity : NOISE_ROWS_CHUNK;
    size_t bytes = sizeof(struct noise_chunk) + capacity * row_bytes(rows, wide);
    bytes = (bytes + 15) / 16 * 16;
    if (bytes > SLAB_BYTES - rows->slab_used) {
        int r = add_slab(rows);
        if (r < 0)
            return r;
    }
    char *room = rows->slabs[rows->slab_count - 1] + rows->slab_used;
    rows->slab_used += bytes;
    struct noise_chunk *chunk = (struct noise_chunk *)(void *)room;
    *chunk = (struct noise_chunk){.capacity = capacity, .wide = wide};
    if (chain->last)
        chain->last->next = chunk;
    else
        chain->first = chunk;
    chain->last = chunk;
    chain->at = chunk->bytes;
    chain->left = capacity;
    return 0;
}

/* ---- Rows */

static size_t chain_of(const struct noise_rows *rows, uint32_t cell, uint32_t fold) {
    if (cell < NOISE_ROWS_FOLDED_CELLS)
        return CHAINS * ((size_t)cell * rows->folds + fold);
    return CHAINS * ((size_t)NOISE_ROWS_FOLDED_CELLS * rows->folds + (cell - NOISE_ROWS_FOLDED_CELLS));
}

static int reserve_chain(struct noise_rows *rows, size_t chain) {
    if (chain + CHAINS <= rows->capacity)
        return 0;
    size_t capacity = 2 * (chain + CHAINS);
    struct chain *grown = aligned_alloc(LINE, (capacity * sizeof *grown + LINE - 1) / LINE * LINE);
    if (!grown)
        return -ENOMEM;
    memcpy(grown, rows->chains ? rows->chains : grown, rows->capacity * sizeof *grown);
    memset(grown + rows->capacity, 0, (capacity - rows->capacity) * sizeof *grown);
    free(rows->chains);
    rows->chains = grown;
    rows->capacity = capacity;
    return 0;
}

/* Whether a row needs more than floats, for COUNT rows. */
static void find_wide(const struct noise_rows *rows, size_t first, size_t count, const double *const *columns,
                      uint8_t *ret) {
    memset(ret, 0, count);
    for (size_t i = 0; i < rows->inputs; i++)
        for (size_t r = 0; r < count; r++)
            ret[r] |= (double)(float)columns[i][first + r] != columns[i][first + r];
}

/* Appends row R to one of the place's chains. */
static int append(struct noise_rows *rows, size_t place, const double *const *columns, size_t r, bool wide) {
    struct chain *chain = &rows->chains[place + wide];
    if (chain->left == 0) {
        int e = add_chunk(rows, chain, wide);
        if (e < 0)
            return e;
    }
    char *at = chain->at;
    size_t i = 0;
    for (; !wide && i < rows->inputs; i++, at += sizeof(float)) {
        float narrow = (float)columns[i][r];
        memcpy(at, &narrow, sizeof narrow);
    }
    for (; i < rows->inputs + rows->others; i++, at += sizeof(double))
        memcpy(at, &columns[i][r], sizeof(double));
    chain->at = at;
    chain->left--;
    return 0;
}

int noise_rows_add(struct noise_rows *rows, size_t count, const double *const *columns, const uint32_t *cells,
                   const uint32_t *folds) {
    /* Where rows go is all over the place: it is fetched before it is needed. */
    enum { AHEAD = 24, NEAR = 12, SOME = 128 };
    for (size_t r = 0; r < count; r++) {
        if (folds[r] == NOISE_ROWS_NONE)
            continue;
        int e = reserve_chain(rows, chain_of(rows, cells[r], folds[r]));
        if (e < 0)
            return e;
    }
    uint8_t wide[SOME];
    for (size_t r = 0; r < count; r++) {
        if (r % SOME == 0)
            find_wide(rows, r, count - r < SOME ? count - r : SOME, columns, wide);
        if (r + AHEAD < count && folds[r + AHEAD] != NOISE_ROWS_NONE)
            __builtin_prefetch(&rows->chains[chain_of(rows, cells[r + AHEAD], folds[r + AHEAD])], 1);
        if (r + NEAR < count && folds[r + NEAR] != NOISE_ROWS_NONE)
            __builtin_prefetch(rows->chains[chain_of(rows, cells[r + NEAR], folds[r + NEAR])].at, 1);
        if (folds[r] == NOISE_ROWS_NONE)
            continue;
        int e = append(rows, chain_of(rows, cells[r], folds[r]), columns, r, wide[r % SOME]);
        if (e < 0)
            return e;
    }
    return 0;
}

const struct noise_chunk *noise_rows_first(const struct noise_rows *rows, uint32_t cell, uint32_t fold) {
    size_t place = chain_of(rows, cell, fold);
    if (place + CHAINS > rows->capacity || (cell >= NOISE_ROWS_FOLDED_CELLS && fold > 0))
        return NULL;
    struct chain *narrow = &rows->chains[place], *wide = narrow + 1;
    if (wide->last)
        wide->last->left = wide->left;
    if (!narrow->first)
        return wide->first;
    narrow->last->left = narrow->left;
    narrow->last->next = wide->first; /* one list of both */
    return narrow->first;
}

const struct noise_chunk *noise_rows_next(const struct noise_chunk *chunk) {
    return chunk->next;
}

size_t noise_chunk_rows(const struct noise_chunk *chunk) {
    return chunk->capacity - chunk->left;
}

void noise_chunk_column(const struct noise_rows *rows, const struct noise_chunk *chunk, size_t i,
                        double *ret) {
    size_t stride = row_bytes(rows, chunk->wide), count = noise_chunk_rows(chunk);
    bool narrow = !chunk->wide && i < rows->inputs;
    size_t offset = i * sizeof(double);
    if (!chunk->wide)
        offset =
            narrow ? i * sizeof(float) : rows->inputs * sizeof(float) + (i - rows->inputs) * sizeof(double);
    const char *at = chunk->bytes + offset;
    for (size_t row = 0; row < count; row++, at += stride) {
        float value;
        if (narrow) {
            memcpy(&value, at, sizeof value);
            ret[row] = (double)value;
        } else {
            memcpy(&ret[row], at, sizeof *ret);
        }
    }
}
