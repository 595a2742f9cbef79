#include "engine/documents/column.h"

#include "engine/documents/unit.h"
#include "engine/foundation/memory.h"

char *column_heading(const struct column *column) {
    const char *unit = unit_label(column->unit), *label = column->label ? column->label : column->name;
    return unit[0] ? xformat("%s (%s)", label, unit) : xstrdup(label);
}
