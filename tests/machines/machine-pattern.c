#include "tests/machines/machine-pattern.h"

#include "engine/foundation/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int machine_scope_add(struct machine_scope *scope, const char *name, size_t length, long value) {
    if (length == 0 || length >= MACHINE_NAME_SIZE)
        return -EINVAL;
    for (size_t i = 0; i < length; i++)
        if (!islower((unsigned char)name[i]))
            return -EINVAL;
    if (scope->count == MACHINE_SCOPE_MAX)
        return -ENOSPC;
    memcpy(scope->items[scope->count].name, name, length);
    scope->items[scope->count].name[length] = '\0';
    scope->items[scope->count++].value = value;
    return 0;
}

bool machine_scope_get(const struct machine_scope *scope, const char *name, size_t length, long *ret) {
    for (int i = scope->count; i-- > 0;)
        if (strlen(scope->items[i].name) == length && memcmp(scope->items[i].name, name, length) == 0) {
            *ret = scope->items[i].value;
            return true;
        }
    return false;
}

/* ---- Expressions */

static void skip_blanks(const char **at) {
    *at += strspn(*at, " ");
}

static int read_sum(const char **at, const struct machine_scope *scope, int depth, long *ret);

static int read_atom(const char **at, const struct machine_scope *scope, int depth, long *ret) {
    skip_blanks(at);
    if (**at == '(' && depth < 8) {
        ++*at;
        if (read_sum(at, scope, depth + 1, ret) < 0)
            return -EINVAL;
        skip_blanks(at);
        return *(*at)++ == ')' ? 0 : -EINVAL;
    }
    if (isdigit((unsigned char)**at)) {
        char *end;
        errno = 0;
        *ret = strtol(*at, &end, 10);
        *at = end;
        return errno == 0 ? 0 : -EINVAL;
    }
    size_t length = 0;
    while (islower((unsigned char)(*at)[length]))
        length++;
    if (!machine_scope_get(scope, *at, length, ret))
        return -EINVAL;
    *at += length;
    return 0;
}

/* LEFT SIGN RIGHT, in LEFT. */
static int combine(long *left, char sign, long right) {
    switch (sign) {
    case '+':
        return __builtin_add_overflow(*left, right, left) ? -EINVAL : 0;
    case '-':
        return __builtin_sub_overflow(*left, right, left) ? -EINVAL : 0;
    case '*':
        return __builtin_mul_overflow(*left, right, left) ? -EINVAL : 0;
    default:
        if (right <= 0)
            return -EINVAL;
        *left = sign == '/' ? *left / right : *left % right;
        return 0;
    }
}

/* A sum of products, or one of these, of atoms. */
static int read_chain(const char **at, const struct machine_scope *scope, int depth, bool sum, long *ret) {
    int status = sum ? read_chain(at, scope, depth, false, ret) : read_atom(at, scope, depth, ret);
    for (;;) {
        skip_blanks(at);
        char sign = **at;
        if (status < 0 || sign == '\0' || strchr(sum ? "+-" : "*/%", sign) == NULL)
            return status;
        ++*at;
        long right = 0;
        status = sum ? read_chain(at, scope, depth, false, &right) : read_atom(at, scope, depth, &right);
        if (status == 0)
            status = combine(ret, sign, right);
    }
}

static int read_sum(const char **at, const struct machine_scope *scope, int depth, long *ret) {
    return read_chain(at, scope, depth, true, ret);
}

int machine_pattern_number(const char **at, const struct machine_scope *scope, long *ret) {
    return read_sum(at, scope, 0, ret);
}

/* ---- Sets of processors: "A, B..C, D..E:STEP" up to a closing brace */

static bool take(const char **at, const char *token) {
    skip_blanks(at);
    if (strncmp(*at, token, strlen(token)) != 0)
        return false;
    *at += strlen(token);
    return true;
}

static int read_set(const char **at, const struct machine_scope *scope, unsigned char *set) {
    do {
        long first = 0, last, step = 1;
        if (machine_pattern_number(at, scope, &first) < 0)
            return -EINVAL;
        last = first;
        if (take(at, "..") && machine_pattern_number(at, scope, &last) < 0)
            return -EINVAL;
        if (take(at, ":") && machine_pattern_number(at, scope, &step) < 0)
            return -EINVAL;
        if (first < 0 || last >= MACHINE_PU_MAX || step < 1)
            return -EINVAL;
        for (long i = first; i <= last; i += step)
            set[i] = 1;
    } while (take(at, ","));
    return 0;
}

static int put_list(const unsigned char *set, struct text *ret) {
    int status = 0;
    bool any = false;
    for (int i = 0; status == 0 && i < MACHINE_PU_MAX; i++) {
        int last = i;
        while (set[i] && last + 1 < MACHINE_PU_MAX && set[last + 1])
            last++;
        if (!set[i])
            continue;
        status = text_printf(ret, last > i ? "%s%d-%d" : "%s%d", any ? "," : "", i, last);
        any = true;
        i = last;
    }
    return status;
}

/* As the kernel writes masks: groups of 32 bits, the highest first. */
static int put_mask(const unsigned char *set, struct text *ret) {
    int top = 0, status = 0;
    for (int i = 0; i < MACHINE_PU_MAX; i++)
        top = set[i] ? i / 32 : top;
    for (int group = top; status == 0 && group >= 0; group--) {
        unsigned bits = 0;
        for (int i = 0; i < 32; i++)
            bits |= (unsigned)set[32 * group + i] << i;
        status = group == top ? text_printf(ret, "%x", bits) : text_printf(ret, ",%08x", bits);
    }
    return status;
}

int machine_pattern_put_set(const unsigned char set[MACHINE_PU_MAX], bool mask, struct text *ret) {
    return mask ? put_mask(set, ret) : put_list(set, ret);
}

/* ---- Text */

/* What stands in braces; *AT is behind the first one, and then behind the last. */
static int expand_braces(const char **at, const struct machine_scope *scope, struct text *ret) {
    bool list = strncmp(*at, "list ", 5) == 0, mask = strncmp(*at, "mask ", 5) == 0;
    if (!list && !mask) {
        long number = 0;
        if (machine_pattern_number(at, scope, &number) < 0 || !take(at, "}"))
            return -EINVAL;
        return text_printf(ret, "%ld", number);
    }
    *at += 5;
    cleanup_free unsigned char *set = calloc(MACHINE_PU_MAX, 1);
    if (set == NULL)
        return -ENOMEM;
    if (read_set(at, scope, set) < 0 || !take(at, "}"))
        return -EINVAL;
    return machine_pattern_put_set(set, mask, ret);
}

int machine_pattern_expand(const char *text, const struct machine_scope *scope, struct text *ret,
                           bool *ret_open, struct failure *failure) {
    *ret_open = false;
    for (const char *at = text; *at != '\0';) {
        int status;
        const char *start = at;
        char character = *at++;
        if (character == '{')
            status = expand_braces(&at, scope, ret);
        else if (character != '\\')
            status = text_append_character(ret, character);
        else {
            const char *escapes = "nt\\{", *meant = "\n\t\\{";
            const char *which = *at == '\0' ? NULL : strchr(escapes, *at);
            if (*at == 'c') {
                *ret_open = true;
                return 0;
            }
            status = which == NULL ? -EINVAL : text_append_character(ret, meant[which - escapes]);
            at++;
        }
        if (status < 0)
            return failure_set(failure, status,
                               status == -EINVAL ? "cannot read '%.40s'" : "no room at '%.40s'", start);
    }
    return 0;
}
