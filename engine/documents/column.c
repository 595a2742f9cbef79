#include "engine/documents/column.h"

#include "engine/documents/unit.h"
#include "engine/foundation/memory.h"

#include <stdlib.h>
#include <string.h>

static const char *const type_names[] = {
    [COLUMN_NUMBER] = "number",   [COLUMN_INTEGER] = "integer", [COLUMN_STRING] = "string",
    [COLUMN_BOOLEAN] = "boolean", [COLUMN_TIME] = "datetime",
};

const char *column_type_name(enum column_type type) {
    return type_names[type];
}

enum column_type column_type_find(const char *name) {
    enum column_type type = COLUMN_TIME;
    while (type != COLUMN_UNKNOWN && (!name || strcmp(type_names[type], name) != 0))
        type--;
    return type;
}

char *column_heading(const struct column *column) {
    const char *unit = unit_label(column->unit), *label = column->label ? column->label : column->name;
    return unit[0] ? xformat("%s (%s)", label, unit) : xstrdup(label);
}

struct column column_copy(const struct column *column) {
    struct column copy = *column;
    copy.name = xstrdup_or_null(column->name);
    copy.unit = xstrdup_or_null(column->unit);
    copy.label = xstrdup_or_null(column->label);
    copy.help = xstrdup_or_null(column->help);
    return copy;
}

void column_clear(struct column *column) {
    free((char *)column->name);
    free((char *)column->unit);
    free((char *)column->label);
    free((char *)column->help);
    *column = (struct column){0};
}
