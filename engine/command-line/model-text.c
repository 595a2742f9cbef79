#include "engine/command-line/model-command.h"

#include "engine/command-line/shown.h"

#include <math.h>
#include <string.h>

double model_part_value(const struct predict_part *part, const char *name) {
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->values[i].name, name) == 0)
            return part->values[i].value;
    return NAN;
}

void model_print_number(FILE *stream, int width, int digits, double number) {
    if (isnan(number))
        fprintf(stream, "%*s", width, "-");
    else
        fprintf(stream, "%*.*g", width, digits, number);
}

const char *model_unit_text(const char *unit, char buffer[static 64]) {
    bool plain = !unit || strcmp(unit, "1") == 0 || unit[0] == '\0';
    snprintf(buffer, 64, "%s%.60s", plain ? "" : " ", plain ? "" : shown(unit).text);
    return buffer;
}
