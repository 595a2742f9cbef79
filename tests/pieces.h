/* What tests share that read a stream: the bytes come in pieces of one size. */
#ifndef ASSAY_TESTS_PIECES_H
#define ASSAY_TESTS_PIECES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct pieces {
    const char *bytes;
    size_t left, size;
};

static int64_t read_piece(void *context, char *buffer, size_t room) {
    struct pieces *pieces = context;
    size_t step = pieces->size < room ? pieces->size : room;
    step = step < pieces->left ? step : pieces->left;
    memcpy(buffer, pieces->bytes, step);
    pieces->bytes += step;
    pieces->left -= step;
    return (int64_t)step;
}

#endif
