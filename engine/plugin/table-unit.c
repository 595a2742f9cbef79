#include "engine/plugin/table-unit.h"

#include "engine/documents/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The first input that tells the unit of column NAME; COUNT when none does. */
static size_t first_to_tell(const struct table_source *sources, size_t count, const char *name) {
    size_t i = 0;
    while (i < count) {
        const struct table_column *column = table_source_find(&sources[i], name);
        if (column && column->unit)
            break;
        i++;
    }
    return i;
}

const char *table_unit(const struct table_source *sources, size_t count, const char *name) {
    size_t first = first_to_tell(sources, count, name);
    return first < count ? table_source_find(&sources[first], name)->unit : NULL;
}

/* Of these inputs the first, and how many there are. */
struct named_inputs {
    const struct table_source *first;
    size_t count;
};

static void name_input(struct named_inputs *inputs, const struct table_source *source) {
    inputs->first = inputs->count++ == 0 ? source : inputs->first;
}

/* "the column 'x' of 'a.zip' and 2 more WHAT 'unit', as in 'b.zip'" */
static int note(struct text *notes, const char *name, const struct named_inputs *inputs, const char *what,
                const char *unit, const struct table_source *standard, struct failure *failure) {
    if (inputs->count == 0)
        return 0;
    char more[32] = "";
    if (inputs->count > 1)
        snprintf(more, sizeof more, " and %zu more", inputs->count - 1);
    int r = text_printf(notes, "the column '%s' of '%s'%s %s '%s', as in '%s'%c", name,
                        inputs->first->input.path, more, what, unit, standard->input.path, '\0');
    return r == -ENOMEM ? failure_memory(failure) : 0; /* notes that are too many to be read are left out */
}

int table_unit_check(const struct table_source *sources, size_t count, const char *name, bool number,
                     struct text *notes, struct failure *failure) {
    size_t standard = first_to_tell(sources, count, name);
    if (standard == count)
        return 0;
    const char *unit = table_source_find(&sources[standard], name)->unit;
    struct named_inputs converted = {0}, unknown = {0};
    for (size_t i = 0; i < count; i++) {
        const char *other = table_source_find(&sources[i], name)->unit;
        struct table_conversion conversion;
        if (!other) {
            name_input(&unknown, &sources[i]);
            continue;
        }
        if (strcmp(unit, other) == 0)
            continue;
        if (!number || !unit_conversion(other, unit, &conversion.multiply, &conversion.divide))
            return failure_input(failure, sources[i].input.path, 0, 0,
                                 "the column '%s' is in '%s'; expected '%s', as in '%s'%s", name, other, unit,
                                 sources[standard].input.path,
                                 number ? "" : ": groups are told by their texts");
        name_input(&converted, &sources[i]);
    }
    int r = note(notes, name, &converted, "is converted to", unit, &sources[standard], failure);
    if (r == 0 && number)
        r = note(notes, name, &unknown, "has no unit; it is taken to be in", unit, &sources[standard],
                 failure);
    return r;
}

struct table_conversion table_unit_conversion(const struct table_source *source, const char *name,
                                              const char *unit) {
    const char *other = table_source_find(source, name)->unit;
    struct table_conversion conversion = {1, 1};
    if (unit && other && strcmp(unit, other) != 0)
        unit_conversion(other, unit, &conversion.multiply, &conversion.divide);
    return conversion;
}
