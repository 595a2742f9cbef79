/*
 * What a line of a machine's file may say instead of plain text: README.md has the language.
 *
 * An expression is whole numbers and names with + - * / % and parentheses.
 */
#ifndef ASSAY_TESTS_MACHINE_PATTERN_H
#define ASSAY_TESTS_MACHINE_PATTERN_H

#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>

enum { MACHINE_NAME_SIZE = 24, MACHINE_SCOPE_MAX = 48, MACHINE_PU_MAX = 8192 };

struct machine_scope {
    struct {
        char name[MACHINE_NAME_SIZE];
        long value;
    } items[MACHINE_SCOPE_MAX];
    int count;
};

/* -EINVAL without a sentence if NAME (LENGTH bytes) is no name, -ENOSPC if there are too many. */
int machine_scope_add(struct machine_scope *scope, const char *name, size_t length, long value);
bool machine_scope_get(const struct machine_scope *scope, const char *name, size_t length, long *ret);

/* Reads an expression at *AT and moves *AT behind it. -EINVAL without a sentence. */
int machine_pattern_number(const char **at, const struct machine_scope *scope, long *ret);

/* Appends the processors of SET, a byte each that is 0 or 1, as the kernel writes lists or masks. */
int machine_pattern_put_set(const unsigned char set[MACHINE_PU_MAX], bool mask, struct text *ret);

/* Appends TEXT with its {EXPRESSION}, {list ...}, {mask ...} replaced and its \n \t \\ \{ resolved. A \c ends
 * it and makes *RET_OPEN true. */
int machine_pattern_expand(const char *text, const struct machine_scope *scope, struct text *ret,
                           bool *ret_open, struct failure *failure);

#endif
