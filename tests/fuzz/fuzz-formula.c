/* Any text as a formula: refused with a place inside it, or read; then it is printed, read again as the same,
 * written out, and its terms have values and units. */
#include "tests/fuzz/fuzz.h"

#include "engine/model/formula.h"

FUZZ_TARGET(10, 2000);

enum { ROWS = 3, LENGTH_MAX = FORMULA_BYTES_MAX + 16 };

#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers" /* columns of literals */

static char *levels[] = {"", "a", "b", "c"}, *few[] = {"p", "q"};
static const struct model_column columns[] = {
    {.about.name = "m", .about.unit = "By"},
    {.about.name = "n", .about.unit = "1"},
    {.about.name = "k", .about.unit = "s"},
    {.about.name = "host", .about.type = COLUMN_STRING, .levels = levels, .level_count = 4},
    {.about.name = "my size", .levels = few, .level_count = 2},
};
enum { COLUMN_COUNT = sizeof columns / sizeof *columns };

static void use(const struct formula *formula) {
    static const double numbers[ROWS] = {2, 0, -1};
    static const uint32_t codes[ROWS] = {0, 1, 2};
    struct formula_column data[2 * COLUMN_COUNT];
    for (size_t c = 0; c < COLUMN_COUNT; c++) {
        data[2 * c] = (struct formula_column){.name = columns[c].about.name, .numbers = numbers};
        data[2 * c + 1] = (struct formula_column){.name = columns[c].about.name,
                                                  .codes = codes,
                                                  .texts = (const char *const *)levels,
                                                  .text_count = 4};
    }
    for (size_t t = 0; t < formula->term_count; t++) {
        double values[ROWS];
        const char *missing;
        must(formula_values(&formula->terms[t], data, 2 * COLUMN_COUNT, ROWS, values, &missing) == 0);
        free(formula_unit(&formula->terms[t], "s", columns, COLUMN_COUNT));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    const struct formula_context context = {columns, COLUMN_COUNT, "k", NULL, 0};
    struct formula formula, again, expanded;
    struct failure failure = {0};
    if (length > LENGTH_MAX)
        return 0;
    char *text = fuzz_text(bytes, length);
    int r = formula_read(text, &context, &formula, &failure);
    free(text);
    if (r < 0) {
        must(failure.kind == FAILURE_INPUT && failure.text[0] != '\0');
        return 0;
    }
    fuzz_passed++;
    char *printed = formula_print(&formula);
    must(strlen(printed) > FORMULA_BYTES_MAX || formula_read(printed, &context, &again, &failure) == 0);
    if (strlen(printed) <= FORMULA_BYTES_MAX) {
        char *twice = formula_print(&again);
        must(strcmp(printed, twice) == 0);
        free(twice);
        formula_clear(&again);
    }
    free(printed);
    r = formula_expand(&formula, columns, COLUMN_COUNT, &expanded, &failure);
    must(r == 0 || (failure.kind == FAILURE_INPUT && failure.text[0] != '\0'));
    if (r == 0) {
        must(expanded.term_count > 0 && expanded.term_count <= FORMULA_TERMS_MAX);
        use(&expanded);
        formula_clear(&expanded);
    }
    formula_clear(&formula);
    return 0;
}
