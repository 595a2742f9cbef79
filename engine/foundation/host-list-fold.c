/* Names as few words: each is taken apart into numbers and what stands between them, and names that differ in
 * one number become one. */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 18 }; /* more are no number that a bracket may hold: they stay as they are */

/* One part of a name: text between numbers, a number, or a bracket that numbers were folded into. */
struct field {
    char *text;      /* owned */
    uint64_t number; /* for the order; of a bracket, the first */
    bool foldable;
};

/* Fields of even places are text, the first may be empty; those of odd places are numbers. */
struct form {
    struct field *fields;
    size_t count;
};

struct fold {
    struct form *forms;
    size_t count;
};

static void form_clear(struct form *form) {
    for (size_t i = 0; i < form->count; i++)
        free(form->fields[i].text);
    free(form->fields);
    *form = (struct form){0};
}

static void fold_clear(struct fold *fold) {
    for (size_t i = 0; i < fold->count; i++)
        form_clear(&fold->forms[i]);
    free(fold->forms);
}

static const char digits[] = "0123456789";

/* Splits NAME into texts and numbers. A name with brackets of its own (an IPv6 address with a port) stays one
 * text, since brackets do not nest. */
static void form_init(struct form *form, const char *name) {
    bool is_whole = strchr(name, '[');
    do {
        bool is_number = form->count % 2 == 1;
        size_t length = is_whole ? strlen(name) : is_number ? strspn(name, digits) : strcspn(name, digits);
        struct field field = {xstrndup(name, length), 0, is_number && length <= DIGITS_MAX};
        if (is_number)
            field.number = field.foldable ? strtoull(field.text, NULL, 10) : UINT64_MAX;
        form->fields = xrealloc(form->fields, (form->count + 1) * sizeof *form->fields);
        form->fields[form->count++] = field;
        name += length;
    } while (*name);
}

/* ---- order */

static int compare_fields(const struct field *a, const struct field *b) {
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return strcmp(a->text, b->text);
}

/* By all fields but number SKIPPED (SIZE_MAX: none is), a longer form after one that it begins with. */
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
    bool padded = first->text[0] == '0';
    char expected[DIGITS_MAX + 2];
    snprintf(expected, sizeof expected, "%0*" PRIu64, padded ? (int)strlen(first->text) : 1, next->number);
    return strcmp(expected, next->text) == 0;
}

/* The bracket, as "[1-3,7]", of the numbers at PLACE of COUNT forms, which are sorted. The caller frees. */
static char *make_bracket(const struct form *forms, size_t count, size_t place) {
    struct text bracket;
    text_init(&bracket, SIZE_MAX / 2);
    for (size_t i = 0; i < count;) {
        const struct field *first = &forms[i].fields[place], *last = first;
        while (++i < count && follows(first, last, &forms[i].fields[place]))
            last = &forms[i].fields[place];
        text_printf(&bracket, "%s%s", bracket.length > 0 ? "," : "[", first->text);
        if (last != first)
            text_printf(&bracket, "-%s", last->text);
    }
    text_append_character(&bracket, ']');
    return text_take(&bracket);
}

/* Merges forms that differ only in the number at PLACE into one form with a bracket. */
static void merge_at(struct fold *fold, size_t place) {
    qsort_r(fold->forms, fold->count, sizeof *fold->forms, by_others, &place);
    size_t kept = 0;
    for (size_t i = 0, same; i < fold->count; i += same) {
        struct form *first = &fold->forms[i];
        struct field *field = place < first->count ? &first->fields[place] : NULL;
        same = 1;
        while (field && field->foldable && i + same < fold->count &&
               compare_forms(first, &first[same], place) == 0 && first[same].fields[place].foldable)
            same++;
        if (same > 1) {
            char *bracket = make_bracket(first, same, place);
            free(field->text);
            *field = (struct field){bracket, field->number, false};
        }
        for (size_t j = 1; j < same; j++)
            form_clear(&first[j]);
        fold->forms[kept++] = *first;
    }
    fold->count = kept;
}

/* Removes names that occur twice from FOLD, which is sorted. */
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

/* Appends the names to RET in brackets, as "node-[1-3,7]": each is split into texts and numbers, and names
 * that differ in one number become one. Negative: beyond the limit of RET. */
int host_list_fold(const char *const *names, size_t count, struct text *ret) {
    cleanup(fold_clear) struct fold fold = {.forms = xcalloc(count, sizeof *fold.forms), .count = count};
    size_t most = 0;
    for (size_t i = 0; i < count; i++) {
        form_init(&fold.forms[i], names[i]);
        most = fold.forms[i].count > most ? fold.forms[i].count : most;
    }
    qsort(fold.forms, fold.count, sizeof *fold.forms, by_all);
    drop_doubles(&fold);
    for (size_t place = most; place-- > 0;)
        if (place % 2 == 1)
            merge_at(&fold, place);
    qsort(fold.forms, fold.count, sizeof *fold.forms, by_all);
    struct text_mark mark = text_mark(ret);
    for (size_t i = 0; i < fold.count; i++) {
        text_append_string(ret, i > 0 ? "," : "");
        for (size_t j = 0; j < fold.forms[i].count; j++)
            text_append_string(ret, fold.forms[i].fields[j].text);
    }
    return text_keep(ret, mark);
}
