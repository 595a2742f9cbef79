/* Any text as an expression: it is refused with a place inside it, or it is parsed and then has one value,
 * which parsing it again does not change. */
#include "engine/expression/expression.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(12, 2000);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    static const char *const names[] = {"m", "n", "k", "lda", "size_of_block"};
    static const double values[] = {1, -2.5, 1e300, 0, 4096};
    enum { NAME_COUNT = 5, LENGTH_MAX = 2 * EXPRESSION_LENGTH_MAX };
    if (length > LENGTH_MAX)
        return 0;
    char *text = fuzz_text(bytes, length);
    struct expression *expression = NULL, *again = NULL;
    struct failure failure = {0};
    int r = expression_parse(text, names, NAME_COUNT, "f", 1, 1, &expression, &failure);
    if (r < 0) {
        must(failure.kind == FAILURE_INPUT && failure.text[0] != '\0');
        must(strncmp(failure.place, "f:1:", 4) == 0);
        unsigned long column = strtoul(failure.place + 4, NULL, 10);
        must(column >= 1 && column <= strlen(text) + 1);
    } else {
        fuzz_passed++;
        double value = expression_value(expression, values);
        must(expression_parse(expression_text(expression), names, NAME_COUNT, NULL, 0, 0, &again, &failure) ==
             0);
        double same = expression_value(again, values);
        must(value == same || (value != value && same != same));
        for (size_t i = 0; i < NAME_COUNT; i++) /* a name that is used is in the text */
            must(!expression_uses(expression, i) || strstr(text, names[i]));
    }
    expression_free(expression);
    expression_free(again);
    free(text);
    return 0;
}
