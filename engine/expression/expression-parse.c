/* The parser of expressions: recursive descent, one function a level of precedence, instructions written as
 * the operators are met. */
#include "engine/documents/unit.h"
#include "engine/expression/expression-code.h"
#include "engine/expression/expression.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    struct expression *expression;
    const char *at;
    const char *const *names;
    size_t name_count;
    size_t depth; /* of recursion */
    size_t held;  /* values on the stack where we are */
    struct failure *failure;
};

/* A word is a name, a keyword, or what stands before the parenthesis of a call. */
static bool begins_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static size_t word_length(const char *at) {
    size_t length = 0;
    if (begins_word(*at))
        while (begins_word(at[length]) || is_digit(at[length]))
            length++;
    return length;
}

static void skip_blanks(struct parser *parser) {
    while (*parser->at == ' ' || *parser->at == '\t' || *parser->at == '\n' || *parser->at == '\r')
        parser->at++;
}

/* ---- Complaints -----------------------------------------------------------------------------------------
 */

static int refuse(const struct parser *parser, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int refuse(const struct parser *parser, const char *at, const char *format, ...) {
    const struct expression *expression = parser->expression;
    cleanup_free char *sentence = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&sentence, format, arguments);
    va_end(arguments);
    if (length < 0) {
        sentence = NULL;
        return failure_memory(parser->failure);
    }
    size_t column = expression->column ? expression->column + (size_t)(at - expression->text) : 0;
    return failure_input(parser->failure, expression->file, expression->line, column, "%s in '%.200s'",
                         sentence, expression->text);
}

/* What stands at the parser's place, with quotes, for a message. */
static const char *found(const struct parser *parser, char buffer[static 64]) {
    const char *at = parser->at;
    if (!*at)
        return "the end";
    size_t length = word_length(at);
    if (length == 0) /* whole characters: the bytes 10xxxxxx of UTF-8 belong to the one before */
        for (length = 1; ((unsigned char)at[length] & 0xc0) == 0x80; length++)
            ;
    snprintf(buffer, 64, "'%.*s'", (int)(length < 60 ? length : 60), at);
    return buffer;
}

static int unknown_name(const struct parser *parser, const char *at, size_t length) {
    cleanup_free char *word = xstrndup(at, length);
    cleanup(text_clear) struct text known;
    text_init(&known, FAILURE_TEXT_SIZE / 2);
    const char *nearest = text_nearest(word, parser->names, parser->name_count);
    if (nearest)
        return refuse(parser, at, "unknown name '%.64s', did you mean '%s',", word, nearest);
    for (size_t i = 0; i < parser->name_count; i++)
        if (text_printf(&known, "%s%s", i ? ", " : "", parser->names[i]) < 0)
            break;
    if (parser->name_count == 0)
        return refuse(parser, at, "unknown name '%.64s', expected numbers only,", word);
    return refuse(parser, at, "unknown name '%.64s', expected one of %s,", word, known.bytes);
}

/* ---- Writing instructions --------------------------------------------------------------------------------
 */

static int emit(struct parser *parser, struct expression_instruction instruction) {
    struct expression *expression = parser->expression;
    if (instruction.operation <= EXPRESSION_NAME && ++parser->held > EXPRESSION_STACK_MOST)
        return refuse(parser, parser->at, "too many unfinished operations, expected at most %d,",
                      EXPRESSION_STACK_MOST);
    if (instruction.operation >= EXPRESSION_ADD)
        parser->held--;
    /* Each byte of the text writes one instruction at most. */
    if (list_reserve(&expression->code, &expression->capacity, expression->count + 1,
                     sizeof *expression->code, EXPRESSION_LENGTH_MOST + 1) < 0)
        return failure_memory(parser->failure);
    expression->code[expression->count++] = instruction;
    return 0;
}

static int emit_operation(struct parser *parser, enum expression_operation operation) {
    return emit(parser, (struct expression_instruction){.operation = operation});
}

/* ---- Operators -------------------------------------------------------------------------------------------
 */

struct operator{
    const char *text;
    enum expression_operation operation;
};

/* Longer ones first, where one begins like another. */
static const struct operator or_operators[] = {{"or", EXPRESSION_OR}, {0}};
static const struct operator and_operators[] = {{"and", EXPRESSION_AND}, {0}};
static const struct operator comparison_operators[] = {{"<=", EXPRESSION_LESS_OR_EQUAL},
                                                       {">=", EXPRESSION_GREATER_OR_EQUAL},
                                                       {"==", EXPRESSION_EQUAL},
                                                       {"!=", EXPRESSION_NOT_EQUAL},
                                                       {"<", EXPRESSION_LESS},
                                                       {">", EXPRESSION_GREATER},
                                                       {0}};
static const struct operator sum_operators[] = {{"+", EXPRESSION_ADD}, {"-", EXPRESSION_SUBTRACT}, {0}};
static const struct operator product_operators[] = {
    {"*", EXPRESSION_MULTIPLY}, {"/", EXPRESSION_DIVIDE}, {"%", EXPRESSION_REMAINDER}, {0}};
static const struct operator power_operators[] = {{"^", EXPRESSION_POWER}, {0}};

/* Takes one of OPERATORS if it comes next, and returns it, or NULL. */
static const struct operator* take_operator(struct parser *parser, const struct operator* operators) {
    skip_blanks(parser);
    for (const struct operator* one = operators; one->text; one++) {
        size_t length = strlen(one->text);
        if (strncmp(parser->at, one->text, length) != 0)
            continue;
        if (begins_word(one->text[0]) && word_length(parser->at) != length)
            continue;
        parser->at += length;
        return one;
    }
    return NULL;
}

static bool take_word(struct parser *parser, const char *word) {
    skip_blanks(parser);
    size_t length = word_length(parser->at);
    if (length != strlen(word) || memcmp(parser->at, word, length) != 0)
        return false;
    parser->at += length;
    return true;
}

static bool take_character(struct parser *parser, char character) {
    skip_blanks(parser);
    if (*parser->at != character)
        return false;
    parser->at++;
    return true;
}

static int parse_disjunction(struct parser *parser);

/* ---- Numbers, names, calls --------------------------------------------------------------------------------
 */

/* Digits, point, exponent; then letters, if any, are a unit of size. */
static int parse_number(struct parser *parser) {
    const char *from = parser->at, *at = from;
    while (is_digit(*at) || *at == '.')
        at++;
    if ((*at == 'e' || *at == 'E') &&
        (is_digit(at[1]) || ((at[1] == '-' || at[1] == '+') && is_digit(at[2]))))
        for (at += 2; is_digit(*at); at++)
            ;
    size_t digits = (size_t)(at - from), length = digits;
    while (begins_word(from[length]) || is_digit(from[length]) || from[length] == '.')
        length++;
    cleanup_free char *literal = xstrndup(from, length);
    double number;
    bool good = length == digits ? number_parse_double(from, digits, &number)
                                 : unit_parse(literal, UNIT_SIZE, &number) && isfinite(number);
    if (!good)
        return refuse(parser, from, "'%.64s' is not a number, expected one such as 12, 0.5, 1e9 or 64MiB,",
                      literal);
    parser->at += length;
    return emit(parser, (struct expression_instruction){.operation = EXPRESSION_NUMBER, .number = number});
}

struct function {
    const char *name;
    enum expression_operation operation;
    size_t arguments; /* so many; MANY: any number, folded from the left */
};

enum { MANY = 0 };
static const struct function functions[] = {
    {"min", EXPRESSION_MIN, MANY},
    {"max", EXPRESSION_MAX, MANY},
    {"ceil", EXPRESSION_CEIL, 1},
    {"floor", EXPRESSION_FLOOR, 1},
    {"sqrt", EXPRESSION_SQRT, 1},
    {"cbrt", EXPRESSION_CBRT, 1},
    {"abs", EXPRESSION_ABS, 1},
    {"log2", EXPRESSION_LOG2, 1},
    {"gcd", EXPRESSION_GCD, MANY},
    {"lcm", EXPRESSION_LCM, MANY},
    {"round_down", EXPRESSION_ROUND_DOWN, 2},
    {"grid_rows", EXPRESSION_GRID_ROWS, 1},
};
enum { FUNCTION_COUNT = sizeof functions / sizeof *functions };

static int unknown_function(const struct parser *parser, const char *at, size_t length) {
    const char *names[FUNCTION_COUNT];
    for (size_t i = 0; i < FUNCTION_COUNT; i++)
        names[i] = functions[i].name;
    cleanup_free char *word = xstrndup(at, length);
    const char *nearest = text_nearest(word, names, FUNCTION_COUNT);
    if (nearest)
        return refuse(parser, at, "unknown function '%.64s', did you mean '%s',", word, nearest);
    return refuse(parser, at,
                  "unknown function '%.64s', expected one of min, max, ceil, floor, sqrt, cbrt, abs, log2, "
                  "gcd, lcm, round_down, grid_rows,",
                  word);
}

/* After the parenthesis of a call of the function whose name stands at NAME. */
static int parse_call(struct parser *parser, const char *name, size_t length) {
    const struct function *function = NULL;
    for (size_t i = 0; i < FUNCTION_COUNT; i++)
        if (strlen(functions[i].name) == length && memcmp(functions[i].name, name, length) == 0)
            function = &functions[i];
    if (!function)
        return unknown_function(parser, name, length);
    size_t arguments = 0;
    do {
        int r = parse_disjunction(parser);
        if (r == 0 && ++arguments > function->arguments && function->arguments != MANY)
            r = refuse(parser, name, "more than %s of '%s', expected %s,",
                       function->arguments == 1 ? "one argument" : "two arguments", function->name,
                       function->arguments == 1 ? "one" : "two");
        if (r == 0 && arguments > 1)
            r = emit_operation(parser, function->operation);
        if (r < 0)
            return r;
    } while (take_character(parser, ','));
    char buffer[64];
    if (!take_character(parser, ')'))
        return refuse(parser, parser->at, "found %s, expected ')' or an operator", found(parser, buffer));
    if (arguments < function->arguments)
        return refuse(parser, name, "one argument of '%s', expected two,", function->name);
    return function->arguments == 1 ? emit_operation(parser, function->operation) : 0;
}

static bool is_keyword(const char *word, size_t length) {
    return (length == 2 && memcmp(word, "or", 2) == 0) ||
           (length == 3 && (memcmp(word, "and", 3) == 0 || memcmp(word, "not", 3) == 0));
}

static int parse_word(struct parser *parser) {
    const char *word = parser->at;
    size_t length = word_length(word);
    parser->at += length;
    if (take_character(parser, '('))
        return parse_call(parser, word, length);
    for (size_t i = 0; i < parser->name_count; i++)
        if (strlen(parser->names[i]) == length && memcmp(parser->names[i], word, length) == 0)
            return emit(parser, (struct expression_instruction){.operation = EXPRESSION_NAME, .name = i});
    return unknown_name(parser, word, length);
}

static int parse_atom(struct parser *parser) {
    skip_blanks(parser);
    const char *at = parser->at;
    char buffer[64];
    if (is_digit(*at) || (*at == '.' && is_digit(at[1])))
        return parse_number(parser);
    size_t length = word_length(at);
    if (length > 0 && !is_keyword(at, length))
        return parse_word(parser);
    if (!take_character(parser, '('))
        return refuse(parser, at, "found %s, expected a number, a name or '('", found(parser, buffer));
    int r = parse_disjunction(parser);
    if (r == 0 && !take_character(parser, ')'))
        r = refuse(parser, parser->at, "found %s, expected ')' or an operator", found(parser, buffer));
    return r;
}

/* ---- Levels of precedence, tightest first */

static int descend(struct parser *parser) {
    if (++parser->depth > EXPRESSION_DEPTH_MOST)
        return refuse(parser, parser->at, "more than %d levels of nesting", EXPRESSION_DEPTH_MOST);
    return 0;
}

/* A sign, or a power: what stands after ^ may have a sign too, as in 2^-3. */
static int parse_signed(struct parser *parser) {
    int r = descend(parser);
    if (r < 0)
        return r;
    if (take_character(parser, '-')) {
        r = parse_signed(parser);
        if (r == 0)
            r = emit_operation(parser, EXPRESSION_NEGATE);
    } else if (take_character(parser, '+')) {
        r = parse_signed(parser);
    } else {
        r = parse_atom(parser);
        if (r == 0 && take_operator(parser, power_operators)) {
            r = parse_signed(parser);
            if (r == 0)
                r = emit_operation(parser, EXPRESSION_POWER);
        }
    }
    parser->depth--;
    return r;
}

/* NEXT, or several of them joined by OPERATORS, done from the left. */
static int parse_chain(struct parser *parser, const struct operator* operators,
                       int (*next)(struct parser *)) {
    int r = next(parser);
    const struct operator* one;
    while (r == 0 && (one = take_operator(parser, operators))) {
        r = next(parser);
        if (r == 0)
            r = emit_operation(parser, one->operation);
    }
    return r;
}

static int parse_product(struct parser *parser) {
    return parse_chain(parser, product_operators, parse_signed);
}

static int parse_sum(struct parser *parser) {
    return parse_chain(parser, sum_operators, parse_product);
}

static int parse_comparison(struct parser *parser) {
    int r = parse_sum(parser);
    const struct operator* one = r == 0 ? take_operator(parser, comparison_operators) : NULL;
    if (!one)
        return r;
    r = parse_sum(parser);
    if (r == 0)
        r = emit_operation(parser, one->operation);
    if (r == 0) {
        const char *at = parser->at;
        if (take_operator(parser, comparison_operators))
            r = refuse(parser, at, "a second comparison, expected 'and' between two,");
    }
    return r;
}

static int parse_negation(struct parser *parser) {
    if (!take_word(parser, "not"))
        return parse_comparison(parser);
    int r = descend(parser);
    if (r == 0)
        r = parse_negation(parser);
    if (r == 0)
        r = emit_operation(parser, EXPRESSION_NOT);
    parser->depth--;
    return r;
}

static int parse_conjunction(struct parser *parser) {
    return parse_chain(parser, and_operators, parse_negation);
}

static int parse_disjunction(struct parser *parser) {
    return parse_chain(parser, or_operators, parse_conjunction);
}

static int parse_all(struct parser *parser) {
    const char *text = parser->expression->text;
    if (strnlen(text, EXPRESSION_LENGTH_MOST + 1) > EXPRESSION_LENGTH_MOST)
        return failure_input(parser->failure, parser->expression->file, parser->expression->line,
                             parser->expression->column, "an expression of %zu bytes, expected at most %d",
                             strlen(text), EXPRESSION_LENGTH_MOST);
    int r = parse_disjunction(parser);
    char buffer[64];
    skip_blanks(parser);
    if (r == 0 && *parser->at)
        r = refuse(parser, parser->at, "found %s, expected an operator or the end", found(parser, buffer));
    return r;
}

int expression_parse(const char *text, const char *const *names, size_t count, const char *file, size_t line,
                     size_t column, struct expression **ret, struct failure *failure) {
    struct expression *expression = xcalloc(1, sizeof *expression);
    expression->text = strdup(text);
    expression->file = file ? strdup(file) : NULL;
    expression->line = line;
    expression->column = column;
    struct parser parser = {.expression = expression,
                            .at = expression->text,
                            .names = names,
                            .name_count = count,
                            .failure = failure};
    int r = expression->text && (!file || expression->file) ? parse_all(&parser) : failure_memory(failure);
    if (r < 0) {
        expression_free(expression);
        return r;
    }
    *ret = expression;
    return 0;
}
