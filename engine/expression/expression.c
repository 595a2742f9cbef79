#include "engine/expression/expression.h"

#include "engine/expression/expression-code.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The value of the expression, on a stack; VALUES are by name, then by comparison with a text. */
double expression_value(const struct expression *expression, const double *values) {
    double stack[EXPRESSION_STACK_MAX];
    size_t stack_size = 0;
    for (size_t i = 0; i < expression->count; i++) {
        const struct expression_instruction *step = &expression->code[i];
        if (step->two) {
            stack_size--;
            stack[stack_size - 1] = step->two(stack[stack_size - 1], stack[stack_size]);
        } else if (step->one) {
            stack[stack_size - 1] = step->one(stack[stack_size - 1]);
        } else {
            stack[stack_size++] = step->name == EXPRESSION_NO_NAME ? step->number : values[step->name];
        }
    }
    return stack[0];
}

bool expression_uses(const struct expression *expression, size_t name) {
    for (size_t i = 0; i < expression->count; i++)
        if (expression->code[i].name == name)
            return true;
    return false;
}

size_t expression_comparison_count(const struct expression *expression) {
    return expression->comparison_count;
}

const char *expression_comparison(const struct expression *expression, size_t j, size_t *ret_name) {
    *ret_name = expression->comparisons[j].name;
    return expression->comparisons[j].text;
}

const char *expression_text(const struct expression *expression) {
    return expression->text;
}

int expression_failure(const struct expression *expression, struct failure *failure, const char *format,
                       ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return failure_input(failure, expression->file, expression->line, expression->column, "%s", sentence);
}

void expression_free(struct expression *expression) {
    if (!expression)
        return;
    free(expression->text);
    free(expression->file);
    free(expression->code);
    for (size_t j = 0; j < expression->comparison_count; j++)
        free(expression->comparisons[j].text);
    free(expression->comparisons);
    free(expression);
}

void expression_cleanup(struct expression **expression) {
    expression_free(*expression);
}
