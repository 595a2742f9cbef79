/* What a parsed expression is: instructions for a stack, in the order in which they are done. For
 * expression.c, which runs them, and expression-parse.c, which writes them. */
#ifndef ASSAY_EXPRESSION_EXPRESSION_CODE_H
#define ASSAY_EXPRESSION_EXPRESSION_CODE_H

#include <stddef.h>

enum expression_operation {
    EXPRESSION_NUMBER, /* push .number */
    EXPRESSION_NAME,   /* push the value of name .name */
    /* One value */
    EXPRESSION_NEGATE,
    EXPRESSION_NOT,
    EXPRESSION_CEIL,
    EXPRESSION_FLOOR,
    EXPRESSION_SQRT,
    EXPRESSION_ABS,
    EXPRESSION_LOG2,
    EXPRESSION_CBRT,
    EXPRESSION_GRID_ROWS,
    /* Two values: all from here on */
    EXPRESSION_ADD,
    EXPRESSION_SUBTRACT,
    EXPRESSION_MULTIPLY,
    EXPRESSION_DIVIDE,
    EXPRESSION_REMAINDER,
    EXPRESSION_POWER,
    EXPRESSION_LESS,
    EXPRESSION_LESS_OR_EQUAL,
    EXPRESSION_GREATER,
    EXPRESSION_GREATER_OR_EQUAL,
    EXPRESSION_EQUAL,
    EXPRESSION_NOT_EQUAL,
    EXPRESSION_AND,
    EXPRESSION_OR,
    EXPRESSION_MIN,
    EXPRESSION_MAX,
    EXPRESSION_LCM,
    EXPRESSION_GCD,
    EXPRESSION_ROUND_DOWN,
};

struct expression_instruction {
    enum expression_operation operation;
    size_t name;
    double number;
};

struct expression {
    char *text; /* owned */
    char *file; /* owned, or NULL */
    size_t line, column;
    struct expression_instruction
        *code; /* owned; leaves one value, never holds more than EXPRESSION_STACK_MOST */
    size_t count, capacity;
};

#endif
