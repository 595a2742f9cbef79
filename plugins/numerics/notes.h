/* What a reader of a group's numbers must know: a few sentences, for fit_group.notes. */
#ifndef ASSAY_NUMERICS_NOTES_H
#define ASSAY_NUMERICS_NOTES_H

#include <stddef.h>
#include <stdint.h>

enum { NOTES_MAX = 40, NOTE_SIZE = 512 };

struct notes {
    char texts[NOTES_MAX][NOTE_SIZE];
    const char *pointers[NOTES_MAX];
    size_t count;
};

/* Appends a sentence; what is too long is cut, and those beyond NOTES_MAX are left out. */
void notes_add(struct notes *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "3 rows left out: WHY"; nothing for 0 rows. */
void notes_add_left_out(struct notes *notes, uint64_t rows, const char *why);

#endif
