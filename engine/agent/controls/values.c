#include "engine/agent/controls/values.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* SET_SIZE: a list of all PUs with every second one missing has some 20 KiB. */
enum { VALUES_MAX = PROTOCOL_PU_LIMIT, SHOWN_MAX = 8, SET_SIZE = 32 << 10, NAMES_MAX_BYTES = 4096 };

struct value {
    char *text;
    struct pu_set pus;
    struct text names;
};

void values_clear(struct values *values) {
    for (size_t i = 0; i < values->count; i++) {
        free(values->items[i].text);
        text_clear(&values->items[i].names);
    }
    free(values->items);
    *values = (struct values){0};
}

/* Finds or adds the value TEXT; NULL: out of memory, which is noted. */
static struct value *find_or_add(struct values *values, const char *text) {
    for (size_t i = 0; i < values->count; i++)
        if (strcmp(values->items[i].text, text) == 0)
            return &values->items[i];
    char *copy = strdup(text);
    if (!copy || list_reserve(&values->items, &values->capacity, values->count + 1, sizeof *values->items,
                              VALUES_MAX) < 0) {
        free(copy);
        values->error = -ENOMEM;
        return NULL;
    }
    struct value *value = &values->items[values->count++];
    value->text = copy;
    text_init(&value->names, NAMES_MAX_BYTES);
    return value;
}

void values_add(struct values *values, const char *text, const struct pu_set *pus) {
    struct value *value = find_or_add(values, text);
    for (size_t i = 0; value && i < sizeof pus->bits; i++)
        value->pus.bits[i] |= pus->bits[i];
}

void values_add_named(struct values *values, const char *text, const char *name) {
    struct value *value = find_or_add(values, text);
    if (value && text_printf(&value->names, "%s%s", value->names.length ? ", " : "", name) < 0)
        values->error = -ENOMEM;
}

/* Appends the value, if all PUs have the same, or "mixed: " and each value with its PUs. */
int values_put(const struct values *values, struct text *ret) {
    if (values->error < 0 || values->count <= 1)
        return values->error < 0 || values->count == 0 ? values->error
                                                       : text_append_string(ret, values->items[0].text);
    cleanup_free char *set = malloc(SET_SIZE);
    if (!set)
        return -ENOMEM;
    int r = text_append_string(ret, "mixed: ");
    for (size_t i = 0; i < values->count && i < SHOWN_MAX && r == 0; i++) {
        const struct value *value = &values->items[i];
        const char *whose =
            value->names.length ? value->names.bytes : pu_set_format(&value->pus, set, SET_SIZE);
        r = text_printf(ret, "%s%s (%s)", i ? ", " : "", value->text, whose);
    }
    if (r == 0 && values->count > SHOWN_MAX)
        r = text_printf(ret, ", and %zu more", values->count - SHOWN_MAX);
    return r;
}
