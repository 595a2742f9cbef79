/* What a parsed expression is: instructions for a stack, in the order in which they are done. For
 * expression.c, which runs them, and expression-parse.c, which writes them. */
#ifndef ASSAY_EXPRESSION_EXPRESSION_CODE_H
#define ASSAY_EXPRESSION_EXPRESSION_CODE_H

#include <stddef.h>
#include <stdint.h>

/* Replaces the last two values, or the last one, by what a function makes of them; or pushes a value. */
struct expression_instruction {
    double (*two)(double, double), (*one)(double);
    size_t name; /* whose value is pushed, or EXPRESSION_NO_NAME */
    double number;
};
#define EXPRESSION_NO_NAME SIZE_MAX

/* NAME == "text", a value that the caller has: that behind the names, in order of appearance. */
struct expression_comparison {
    size_t name;
    char *text; /* owned */
};

struct expression {
    char *text; /* owned */
    char *file; /* owned, or NULL */
    size_t line, column;
    struct expression_instruction
        *code; /* owned; leaves one value, never holds more than EXPRESSION_STACK_MAX */
    size_t count;
    struct expression_comparison *comparisons; /* owned */
    size_t comparison_count;
};

#endif
