#include "engine/expression/expression.h"

#include "engine/expression/expression-code.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

double expression_value(const struct expression *expression, const double *values) {
    double stack[EXPRESSION_STACK_MAX];
    size_t held = 0;
    for (size_t i = 0; i < expression->count; i++) {
        const struct expression_instruction *step = &expression->code[i];
        if (step->two) {
            held--;
            stack[held - 1] = step->two(stack[held - 1], stack[held]);
        } else if (step->one) {
            stack[held - 1] = step->one(stack[held - 1]);
        } else {
            stack[held++] = step->name == EXPRESSION_NO_NAME ? step->number : values[step->name];
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
