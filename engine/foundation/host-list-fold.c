/* Names as few words: each is taken apart into numbers and what stands between them, and names that differ in
 * one number become one. */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/host-list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MOST = 18 }; /* more are no number that a bracket may hold: they stay as they are */

/* What is between two numbers, or a number, or a bracket that numbers were folded into. */
struct field {
    const char *text; /* not ended by a NUL unless it is a bracket */
    size_t length;
    uint64_t number; /* for the order; of a bracket, the first */
    bool foldable;
    char *bracket; /* owned; TEXT then */
};

/* Fields of even places are text, may be empty; those of odd places are numbers. */
struct form {
    struct field *fields;
    size_t count;
};

struct fold {
    struct form *forms;
    size_t count;
};

static void form_clear(struct form *form) {
    for (size_t i = 0; form->fields && i < form->count; i++)
        free(form->fields[i].bracket);
    free(form->fields);
    *form = (struct form){0};
}

static void fold_clear(struct fold *fold) {
    for (size_t i = 0; fold->forms && i < fold->count; i++)
        form_clear(&fold->forms[i]);
    free(fold->forms);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static size_t span(const char *at, bool digits) {
    size_t length = 0;
    while (at[length] && is_digit(at[length]) == digits)
        length++;
    return length;
}

/* A name with brackets of its own (an IPv6 address with a port) stays one text: brackets do not nest. */
static size_t count_fields(const char *name) {
    size_t count = 1;
    if (strchr(name, '['))
        return count;
    for (const char *at = name + span(name, false); *at; at += span(at, false)) {
        at += span(at, true);
        count += 2;
    }
    return count;
}

static struct field number_field(const char *text, size_t length) {
    struct field field = {.text = text, .length = length, .foldable = length <= DIGITS_MOST};
    field.number = field.foldable ? 0 : UINT64_MAX;
    for (size_t i = 0; field.foldable && i < length; i++)
        field.number = 10 * field.number + (uint64_t)(text[i] - '0');
    return field;
}

static int form_init(struct form *form, const char *name) {
    form->count = count_fields(name);
    form->fields = calloc(form->count, sizeof *form->fields);
    if (!form->fields)
        return -ENOMEM;
    for (size_t i = 0; i < form->count; i++) {
        size_t length = form->count == 1 ? strlen(name) : span(name, i % 2 == 1);
        form->fields[i] =
            i % 2 == 1 ? number_field(name, length) : (struct field){.text = name, .length = length};
        name += length;
    }
    return 0;
}

/* ---- order */

static int compare_fields(const struct field *a, const struct field *b) {
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    size_t shorter = a->length < b->length ? a->length : b->length;
    int r = memcmp(a->text, b->text, shorter);
    return r != 0 ? r : (a->length > b->length) - (a->length < b->length);
}

/* By all fields but number SKIPPED (SIZE_MAX: none is), a form that goes on after one that ends. */
static int compare_forms(const struct form *a, const struct form *b, size_t skipped) {
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        int r = i == skipped ? 0 : compare_fields(&a->fields[i], &b->fields[i]);
        if (r != 0)
            return r;
    }
    return (a->count > b->count) - (a->count < b->count);
}

static int by_all(const void *a, const void *b) {
    return compare_forms(a, b, SIZE_MAX);
}

/* First by what must be the same to be folded at *PLACE, then by what is there. */
static int by_others(const void *a, const void *b, void *place) {
    size_t at = *(const size_t *)place;
    const struct form *first = a, *second = b;
    int r = compare_forms(first, second, at);
    if (r != 0 || at >= first->count)
        return r;
    return compare_fields(&first->fields[at], &second->fields[at]);
}

/* ---- folding */

/* Whether NEXT is what counting on from LAST gives, in a range that began with FIRST: [08-10], [9-11]. */
static bool follows(const struct field *first, const struct field *last, const struct field *next) {
    if (next->number != last->number + 1)
        return false;
    bool padded = first->length > 1 && first->text[0] == '0';
    char expected[DIGITS_MOST + 2];
    int length =
        snprintf(expected, sizeof expected, "%0*" PRIu64, padded ? (int)first->length : 1, next->number);
    return (size_t)length == next->length && memcmp(expected, next->text, next->length) == 0;
}

/* "[1-3,7]" of the fields at PLACE of forms that are sorted by it. */
static char *make_bracket(const struct form *forms, size_t count, size_t place) {
    cleanup(text_clear) struct text bracket;
    text_init(&bracket, SIZE_MAX);
    int r = text_append_character(&bracket, '[');
    for (size_t i = 0; r == 0 && i < count;) {
        const struct field *first = &forms[i].fields[place], *last = first;
        while (++i < count && follows(first, last, &forms[i].fields[place]))
            last = &forms[i].fields[place];
        r = text_append(&bracket, first->text, first->length);
        if (r == 0 && last != first) {
            r = text_append_character(&bracket, '-');
            if (r == 0)
                r = text_append(&bracket, last->text, last->length);
        }
        if (r == 0)
            r = text_append_character(&bracket, i < count ? ',' : ']');
    }
    return r == 0 ? text_take(&bracket) : NULL;
}

/* Forms that are the same but for a number at PLACE become the first of them. */
static int merge_at(struct fold *fold, size_t place) {
    qsort_r(fold->forms, fold->count, sizeof *fold->forms, by_others, &place);
    size_t kept = 0;
    for (size_t i = 0; i < fold->count;) {
        struct form *first = &fold->forms[i];
        size_t same = 1;
        if (place < first->count && first->fields[place].foldable)
            while (i + same < fold->count && compare_forms(first, &fold->forms[i + same], place) == 0 &&
                   fold->forms[i + same].fields[place].foldable)
                same++;
        if (same > 1) {
            struct field *field = &first->fields[place];
            char *bracket = make_bracket(first, same, place);
            if (!bracket) { /* what is left is moved to where it will be freed */
                memmove(&fold->forms[kept], first, (fold->count - i) * sizeof *first);
                fold->count -= i - kept;
                return -ENOMEM;
            }
            *field = (struct field){bracket, strlen(bracket), field->number, false, bracket};
        }
        for (size_t j = 1; j < same; j++)
            form_clear(&fold->forms[i + j]);
        fold->forms[kept++] = *first;
        i += same;
    }
    fold->count = kept;
    return 0;
}

/* Whether any two forms differ there: most numbers ("grid5000") are in all names of a list. */
static bool differs_at(const struct fold *fold, size_t place) {
    const struct field *seen = NULL;
    for (size_t i = 0; i < fold->count; i++) {
        if (place >= fold->forms[i].count)
            continue;
        const struct field *field = &fold->forms[i].fields[place];
        if (seen && compare_fields(seen, field) != 0)
            return true;
        seen = field;
    }
    return false;
}

static int append_form(struct text *text, const struct form *form) {
    for (size_t i = 0; i < form->count; i++) {
        int r = text_append(text, form->fields[i].text, form->fields[i].length);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Drops names given twice. FOLD is sorted. */
static void drop_doubles(struct fold *fold) {
    size_t kept = 0;
    for (size_t i = 0; i < fold->count; i++) {
        if (kept > 0 && by_all(&fold->forms[kept - 1], &fold->forms[i]) == 0)
            form_clear(&fold->forms[i]);
        else
            fold->forms[kept++] = fold->forms[i];
    }
    fold->count = kept;
}

int host_list_fold(const char *const *names, size_t count, struct text *ret) {
    if (count == 0)
        return 0;
    cleanup(fold_clear) struct fold fold = {.forms = calloc(count, sizeof *fold.forms)};
    if (!fold.forms)
        return -ENOMEM;
    size_t most = 0;
    for (; fold.count < count; fold.count++) {
        struct form *form = &fold.forms[fold.count];
        if (form_init(form, names[fold.count]) < 0)
            return -ENOMEM;
        most = form->count > most ? form->count : most;
    }
    qsort(fold.forms, fold.count, sizeof *fold.forms, by_all);
    drop_doubles(&fold);
    int r = 0;
    for (size_t place = most; r == 0 && place-- > 0;)
        if (place % 2 == 1 && differs_at(&fold, place))
            r = merge_at(&fold, place);
    if (r < 0)
        return r;
    qsort(fold.forms, fold.count, sizeof *fold.forms, by_all);
    size_t before = ret->length;
    for (size_t i = 0; r == 0 && i < fold.count; i++) {
        r = i > 0 ? text_append_character(ret, ',') : 0;
        if (r == 0)
            r = append_form(ret, &fold.forms[i]);
    }
    if (r < 0 && ret->length > before) {
        ret->length = before;
        ret->bytes[before] = '\0';
    }
    return r;
}
