#include "engine/command-line/fit-print.h"

#include "engine/command-line/shown.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/plugin/model-unit.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *fit_print_count(uint64_t value, char buffer[static FIT_PRINT_COUNT_MAX]) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, value);
    char *at = buffer;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return buffer;
}

const char *fit_print_rows(uint64_t rows, char buffer[static FIT_PRINT_COUNT_MAX]) {
    fit_print_count(rows, buffer);
    size_t length = strlen(buffer); /* 26 at most */
    memcpy(buffer + length, rows == 1 ? " row" : " rows", rows == 1 ? 5 : 6);
    return buffer;
}

void fit_print_number(FILE *stream, int width, int digits, double value) {
    if (isnan(value))
        fprintf(stream, "%*s", width, "-");
    else
        fprintf(stream, "%*.*g", width, digits, value);
}

void fit_print_fold_units(FILE *stream, const struct fitting *fitting) {
    enum folds_unit by = fitting_folds_by(fitting);
    if (by != FOLDS_BY_COLUMNS)
        fprintf(stream, "%s", by == FOLDS_BY_SETTING ? "settings" : "rows");
    for (size_t i = 0; by == FOLDS_BY_COLUMNS && i < fitting_fold_column_count(fitting); i++)
        fprintf(stream, "%s%s", i ? ", " : "values of ", shown(fitting_fold_column(fitting, i)).text);
}
