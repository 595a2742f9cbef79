#include "engine/expression/expression.h"

#include "engine/expression/expression-code.h"
#include "engine/foundation/portable-math.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Beyond this, some whole numbers are no doubles, and a divisor would say nothing. */
static bool is_whole(double a) {
    return a == floor(a) && fabs(a) <= 0x1p53;
}

static double greatest_divisor(double a, double b) {
    if (!is_whole(a) || !is_whole(b))
        return NAN;
    a = fabs(a);
    b = fabs(b);
    while (b > 0) {
        double rest = fmod(a, b);
        a = b;
        b = rest;
    }
    return a;
}

static double least_multiple(double a, double b) {
    double divisor = greatest_divisor(a, b);
    if (divisor == 0)
        return 0;
    double multiple = fabs(a) / divisor * fabs(b);
    return is_whole(multiple) ? multiple : NAN;
}

static double round_down(double x, double multiple) {
    if (!(multiple > 0))
        return NAN;
    if (x > 0 && x < multiple)
        return multiple;
    double rest = fmod(x, multiple); /* exact, and of the sign of x */
    return x - rest - (rest < 0 ? multiple : 0);
}

static double grid_rows(double n) {
    if (!(n >= 1 && n <= EXPRESSION_GRID_MOST && is_whole(n)))
        return NAN;
    double rows = floor(sqrt(n));
    while (fmod(n, rows) > 0)
        rows--;
    return rows;
}

static double one_value(enum expression_operation operation, double a) {
    switch (operation) {
    case EXPRESSION_NEGATE:
        return -a;
    case EXPRESSION_NOT:
        return isnan(a) ? a : a == 0;
    case EXPRESSION_CEIL:
        return ceil(a);
    case EXPRESSION_FLOOR:
        return floor(a);
    case EXPRESSION_SQRT:
        return sqrt(a);
    case EXPRESSION_ABS:
        return fabs(a);
    case EXPRESSION_CBRT:
        return portable_cbrt(a);
    case EXPRESSION_GRID_ROWS:
        return grid_rows(a);
    default:
        return portable_log2(a);
    }
}

/* False if either is false, true if both are true, and nan where a nan decides. */
static double both(double a, double b) {
    if (a == 0 || b == 0)
        return 0;
    return isnan(a) || isnan(b) ? NAN : 1;
}

static double either(double a, double b) {
    bool a_true = a != 0 && !isnan(a), b_true = b != 0 && !isnan(b);
    if (a_true || b_true)
        return 1;
    return isnan(a) || isnan(b) ? NAN : 0;
}

static double two_values(enum expression_operation operation, double a, double b) {
    if (operation >= EXPRESSION_LESS && operation <= EXPRESSION_NOT_EQUAL && (isnan(a) || isnan(b)))
        return NAN;
    switch (operation) {
    case EXPRESSION_ADD:
        return a + b;
    case EXPRESSION_SUBTRACT:
        return a - b;
    case EXPRESSION_MULTIPLY:
        return a * b;
    case EXPRESSION_DIVIDE:
        return a / b;
    case EXPRESSION_REMAINDER:
        return fmod(a, b);
    case EXPRESSION_POWER:
        return portable_power(a, b);
    case EXPRESSION_LESS:
        return a < b;
    case EXPRESSION_LESS_OR_EQUAL:
        return a <= b;
    case EXPRESSION_GREATER:
        return a > b;
    case EXPRESSION_GREATER_OR_EQUAL:
        return a >= b;
    case EXPRESSION_EQUAL:
        return a == b;
    case EXPRESSION_NOT_EQUAL:
        return a != b;
    case EXPRESSION_AND:
        return both(a, b);
    case EXPRESSION_OR:
        return either(a, b);
    case EXPRESSION_LCM:
        return least_multiple(a, b);
    case EXPRESSION_GCD:
        return greatest_divisor(a, b);
    case EXPRESSION_ROUND_DOWN:
        return round_down(a, b);
    case EXPRESSION_MIN:
        return isnan(a) || a < b ? a : b;
    default:
        return isnan(a) || a > b ? a : b;
    }
}

double expression_value(const struct expression *expression, const double *values) {
    double stack[EXPRESSION_STACK_MOST];
    size_t held = 0;
    for (size_t i = 0; i < expression->count; i++) {
        const struct expression_instruction *step = &expression->code[i];
        if (step->operation == EXPRESSION_NUMBER) {
            stack[held++] = step->number;
        } else if (step->operation == EXPRESSION_NAME) {
            stack[held++] = values[step->name];
        } else if (step->operation < EXPRESSION_ADD) {
            stack[held - 1] = one_value(step->operation, stack[held - 1]);
        } else {
            held--;
            stack[held - 1] = two_values(step->operation, stack[held - 1], stack[held]);
        }
    }
    return stack[0];
}

bool expression_uses(const struct expression *expression, size_t name) {
    for (size_t i = 0; i < expression->count; i++)
        if (expression->code[i].operation == EXPRESSION_NAME && expression->code[i].name == name)
            return true;
    return false;
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
    free(expression);
}
