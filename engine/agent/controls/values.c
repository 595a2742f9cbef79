#include "engine/agent/controls/values.h"

#include "engine/foundation/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A list of all PUs with every second one missing has some 20 KiB. */
enum { VALUES_LIMIT = PROTOCOL_PU_LIMIT, SHOWN = 8, SET_SIZE = 32 << 10, NAMES_LIMIT = 4096 };

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

static struct value *find(struct values *values, const char *text) {
    for (size_t i = 0; i < values->count; i++)
        if (strcmp(values->items[i].text, text) == 0)
            return &values->items[i];
    if (list_reserve(&values->items, &values->capacity, values->count + 1, sizeof *values->items,
                     VALUES_LIMIT) < 0)
        return NULL;
    struct value *value = &values->items[values->count];
    value->text = strdup(text);
    if (!value->text)
        return NULL;
    text_init(&value->names, NAMES_LIMIT);
    values->count++;
    return value;
}

int values_add(struct values *values, const char *text, const struct pu_set *pus) {
    struct value *value = find(values, text);
    if (!value)
        return -ENOMEM;
    for (size_t i = 0; i < sizeof pus->bits; i++)
        value->pus.bits[i] |= pus->bits[i];
    return 0;
}

int values_add_pu(struct values *values, const char *text, unsigned pu) {
    struct value *value = find(values, text);
    if (!value)
        return -ENOMEM;
    pu_set_add(&value->pus, pu);
    return 0;
}

int values_add_named(struct values *values, const char *text, const char *name) {
    struct value *value = find(values, text);
    int r = value ? 0 : -ENOMEM;
    if (r == 0 && value->names.length)
        r = text_append_string(&value->names, ", ");
    return r == 0 ? text_append_string(&value->names, name) : r;
}

int values_put(const struct values *values, struct text *ret) {
    if (values->count == 1)
        return text_append_string(ret, values->items[0].text);
    char *set = malloc(SET_SIZE);
    if (!set)
        return -ENOMEM;
    int r = values->count ? text_append_string(ret, "mixed: ") : 0;
    for (size_t i = 0; i < values->count && i < SHOWN && r == 0; i++) {
        const struct value *value = &values->items[i];
        const char *whose =
            value->names.length ? value->names.bytes : pu_set_format(&value->pus, set, SET_SIZE);
        r = text_printf(ret, "%s%s (%s)", i ? ", " : "", value->text, whose);
    }
    if (r == 0 && values->count > SHOWN)
        r = text_printf(ret, ", and %zu more", values->count - SHOWN);
    free(set);
    return r;
}
