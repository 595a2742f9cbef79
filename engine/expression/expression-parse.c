/* The parser of expressions: recursive descent by levels of precedence, which writes instructions for a
 * stack machine. */
#include "engine/documents/unit.h"
#include "engine/expression/expression-code.h"
#include "engine/expression/expression.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/portable-math.h"
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
    bool has_texts;    /* names may be compared with texts */
    size_t depth;      /* of recursion */
    size_t stack_size; /* values on the stack after the last instruction */
    struct failure *failure;
    int error; /* the first error, after which nothing is read; 0: none */
};

/* ---- Functions of the instructions */

/* Whether A is a whole number that a double holds exactly. */
static bool is_whole(double a) {
    return a == floor(a) && fabs(a) <= 0x1p53;
}

/* Euclid's algorithm; NaN unless A and B are whole numbers. */
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
    if (!(n >= 1 && n <= EXPRESSION_GRID_MAX && is_whole(n)))
        return NAN;
    double rows = floor(sqrt(n));
    while (fmod(n, rows) > 0)
        rows--;
    return rows;
}

/* Logical and: false if either is false, true if both are true, otherwise NaN. */
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

static double add(double a, double b) {
    return a + b;
}

static double subtract(double a, double b) {
    return a - b;
}

static double multiply(double a, double b) {
    return a * b;
}

static double divide(double a, double b) {
    return a / b;
}

static double less(double a, double b) {
    return isnan(a) || isnan(b) ? NAN : a < b;
}

static double less_or_equal(double a, double b) {
    return isnan(a) || isnan(b) ? NAN : a <= b;
}

static double greater(double a, double b) {
    return isnan(a) || isnan(b) ? NAN : a > b;
}

static double greater_or_equal(double a, double b) {
    return isnan(a) || isnan(b) ? NAN : a >= b;
}

static double equal(double a, double b) {
    return isnan(a) || isnan(b) ? NAN : a == b;
}

static double not_equal(double a, double b) {
    return isnan(a) || isnan(b) ? NAN : a != b;
}

static double negate(double a) {
    return -a;
}

static double opposite(double a) {
    return isnan(a) ? a : a == 0;
}

static double smaller(double a, double b) {
    return isnan(a) || a < b ? a : b;
}

static double larger(double a, double b) {
    return isnan(a) || a > b ? a : b;
}

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

/* ---- Errors */

/* Sets the error, if it is the first, with the place AT, and skips the rest of the text. */
__attribute__((format(printf, 3, 4))) static void refuse(struct parser *parser, const char *at,
                                                         const char *format, ...) {
    const struct expression *expression = parser->expression;
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (parser->error < 0)
        return;
    size_t column = expression->column ? expression->column + (size_t)(at - expression->text) : 0;
    parser->error = failure_input(parser->failure, expression->file, expression->line, column,
                                  "%s in '%.200s'", sentence, expression->text);
    parser->at = expression->text + strlen(expression->text);
}

/* The next word or character, in quotes, for a message; "the end" if there is none. Returns BUFFER or a
 * constant. */
static const char *describe_next(const struct parser *parser, char buffer[static 64]) {
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

/* Refuses a WORD that is no name, with the nearest name or a list. */
static void refuse_name(struct parser *parser, const char *at, const char *word) {
    cleanup(text_clear) struct text known;
    text_init(&known, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; i < parser->name_count; i++)
        text_printf(&known, "%s%s", i ? ", " : "one of ",
                    parser->names[i]); /* a list over the limit is cut */
    const char *nearest = text_nearest(word, parser->names, parser->name_count);
    if (nearest)
        refuse(parser, at, "unknown name '%.64s', did you mean '%s',", word, nearest);
    else
        refuse(parser, at, "unknown name '%.64s', expected %s,", word,
               parser->name_count == 0 ? "numbers only" : known.bytes);
}

/* ---- Writing instructions */

/* Appends an instruction, keeping count of the stack; an error if the stack would be too deep. */
static void emit(struct parser *parser, struct expression_instruction instruction) {
    struct expression *expression = parser->expression;
    if (parser->error < 0)
        return;
    if (instruction.two)
        parser->stack_size--;
    else if (!instruction.one && ++parser->stack_size > EXPRESSION_STACK_MAX)
        refuse(parser, parser->at, "too many unfinished operations, expected at most %d,",
               EXPRESSION_STACK_MAX);
    /* Each byte of the text writes one instruction at most. */
    expression->code[expression->count++] = instruction;
}

static void emit_one(struct parser *parser, double (*function)(double)) {
    emit(parser, (struct expression_instruction){.one = function, .name = EXPRESSION_NO_NAME});
}

static void emit_two(struct parser *parser, double (*function)(double, double)) {
    emit(parser, (struct expression_instruction){.two = function, .name = EXPRESSION_NO_NAME});
}

/* ---- Operators, loosest first */

enum level { LEVEL_OR, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARISON, LEVEL_SUM, LEVEL_PRODUCT, LEVEL_POWER };

struct operator{
    const char *text;
    enum level level;
    double (*function)(double, double); /* NULL of one that stands before its value */
};

/* Longer ones first, where one begins like another. */
static const struct operator operators[] = {
    {"or", LEVEL_OR, either},
    {"and", LEVEL_AND, both},
    {"not", LEVEL_NOT, NULL},
    {"<=", LEVEL_COMPARISON, less_or_equal},
    {">=", LEVEL_COMPARISON, greater_or_equal},
    {"==", LEVEL_COMPARISON, equal},
    {"!=", LEVEL_COMPARISON, not_equal},
    {"<", LEVEL_COMPARISON, less},
    {">", LEVEL_COMPARISON, greater},
    {"+", LEVEL_SUM, add},
    {"-", LEVEL_SUM, subtract},
    {"*", LEVEL_PRODUCT, multiply},
    {"/", LEVEL_PRODUCT, divide},
    {"%", LEVEL_PRODUCT, fmod},
    {"^", LEVEL_POWER, portable_power},
};
enum { OPERATOR_COUNT = sizeof operators / sizeof *operators };

/* Reads an operator of LEVEL if one comes next; NULL: another thing comes. */
static const struct operator* read_operator(struct parser *parser, enum level level) {
    skip_blanks(parser);
    for (size_t i = 0; i < OPERATOR_COUNT; i++) {
        const struct operator* one = & operators[i];
        size_t length = strlen(one->text);
        if (one->level != level || strncmp(parser->at, one->text, length) != 0 ||
            (begins_word(one->text[0]) && word_length(parser->at) != length))
            continue;
        parser->at += length;
        return one;
    }
    return NULL;
}

static bool read_character(struct parser *parser, char character) {
    skip_blanks(parser);
    if (*parser->at != character)
        return false;
    parser->at++;
    return true;
}

static void parse_level(struct parser *parser, enum level level);

/* ---- Numbers, names, calls */

/* Reads a number: digits, point, exponent; letters after it are a unit of size, as 64MiB. */
static void parse_number(struct parser *parser) {
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
    parser->at += length;
    if (good)
        emit(parser, (struct expression_instruction){.name = EXPRESSION_NO_NAME, .number = number});
    else
        refuse(parser, from, "'%.64s' is not a number, expected one such as 12, 0.5, 1e9 or 64MiB,", literal);
}

/* A function of one argument, of two, or, if `folded`, of any number, applied from the left. */
struct function {
    const char *name;
    double (*one)(double);
    double (*two)(double, double);
    bool folded;
};

static const struct function functions[] = {
    {.name = "min", .two = smaller, .folded = true},
    {.name = "max", .two = larger, .folded = true},
    {.name = "ceil", .one = ceil},
    {.name = "floor", .one = floor},
    {.name = "sqrt", .one = sqrt},
    {.name = "cbrt", .one = portable_cbrt},
    {.name = "abs", .one = fabs},
    {.name = "log2", .one = portable_log2},
    {.name = "gcd", .two = greatest_divisor, .folded = true},
    {.name = "lcm", .two = least_multiple, .folded = true},
    {.name = "round_down", .two = round_down},
    {.name = "grid_rows", .one = grid_rows},
};
enum { FUNCTION_COUNT = sizeof functions / sizeof *functions };

/* Refuses a WORD that is no function, with the nearest one or a list. */
static void refuse_function(struct parser *parser, const char *at, const char *word) {
    const char *names[FUNCTION_COUNT];
    for (size_t i = 0; i < FUNCTION_COUNT; i++)
        names[i] = functions[i].name;
    const char *nearest = text_nearest(word, names, FUNCTION_COUNT);
    if (nearest)
        refuse(parser, at, "unknown function '%.64s', did you mean '%s',", word, nearest);
    else
        refuse(parser, at,
               "unknown function '%.64s', expected one of min, max, ceil, floor, sqrt, cbrt, abs, log2, "
               "gcd, lcm, round_down, grid_rows,",
               word);
}

static void expect_parenthesis(struct parser *parser) {
    char buffer[64];
    if (!read_character(parser, ')'))
        refuse(parser, parser->at, "found %s, expected ')' or an operator", describe_next(parser, buffer));
}

/* Reads the arguments of a call of the function WORD, which stands at AT, after the parenthesis. */
static void parse_call(struct parser *parser, const char *at, const char *word) {
    const struct function *function = functions;
    while (function < functions + FUNCTION_COUNT && strcmp(function->name, word) != 0)
        function++;
    if (function == functions + FUNCTION_COUNT) {
        refuse_function(parser, at, word);
        return;
    }
    size_t arguments = 0, most = function->folded ? SIZE_MAX : function->two ? 2 : 1;
    do {
        parse_level(parser, LEVEL_OR);
        if (++arguments > most)
            refuse(parser, at, "more than %s of '%s', expected %s,",
                   most == 1 ? "one argument" : "two arguments", word, most == 1 ? "one" : "two");
        if (arguments > 1)
            emit_two(parser, function->two);
    } while (read_character(parser, ','));
    expect_parenthesis(parser);
    if (arguments == 1 && most == 2)
        refuse(parser, at, "one argument of '%s', expected two,", word);
    if (function->one)
        emit_one(parser, function->one);
}

/* Reads == or != and a quoted text after the name NAME, as one value. false, with nothing read: something
 * else comes. */
static bool parse_comparison(struct parser *parser, size_t name) {
    struct expression *expression = parser->expression;
    const char *from = parser->at;
    skip_blanks(parser);
    bool is_equal = strncmp(parser->at, "==", 2) == 0;
    if (parser->has_texts && (is_equal || strncmp(parser->at, "!=", 2) == 0)) {
        parser->at += 2;
        skip_blanks(parser);
        char quote = *parser->at;
        const char *end = quote == '\'' || quote == '"' ? strchr(parser->at + 1, quote) : NULL;
        if (end) {
            size_t count = expression->comparison_count++;
            expression->comparisons =
                xrealloc(expression->comparisons, (count + 1) * sizeof *expression->comparisons);
            expression->comparisons[count] = (struct expression_comparison){
                name, xstrndup(parser->at + 1, (size_t)(end - parser->at - 1))};
            parser->at = end + 1;
            emit(parser, (struct expression_instruction){.name = parser->name_count + count});
            if (!is_equal)
                emit_one(parser, opposite);
            return true;
        }
    }
    parser->at = from;
    return false;
}

/* Reads a name, a comparison of it with a text, or a call. */
static void parse_word(struct parser *parser) {
    const char *at = parser->at;
    cleanup_free char *word = xstrndup(at, word_length(at));
    parser->at += word_length(at);
    if (read_character(parser, '(')) {
        parse_call(parser, at, word);
        return;
    }
    size_t i = text_find(word, parser->names, parser->name_count);
    if (i == parser->name_count)
        refuse_name(parser, at, word);
    else if (!parse_comparison(parser, i))
        emit(parser, (struct expression_instruction){.name = i});
}

static bool is_keyword(const char *word, size_t length) {
    for (size_t i = 0; i < OPERATOR_COUNT; i++)
        if (strlen(operators[i].text) == length && memcmp(operators[i].text, word, length) == 0)
            return true;
    return false;
}

/* Reads a number, a name, a call or an expression in parentheses. */
static void parse_atom(struct parser *parser) {
    skip_blanks(parser);
    const char *at = parser->at;
    size_t length = word_length(at);
    char buffer[64];
    if (is_digit(*at) || (*at == '.' && is_digit(at[1]))) {
        parse_number(parser);
    } else if (length > 0 && !is_keyword(at, length)) {
        parse_word(parser);
    } else if (read_character(parser, '(')) {
        parse_level(parser, LEVEL_OR);
        expect_parenthesis(parser);
    } else {
        refuse(parser, at, "found %s, expected a number, a name or '('", describe_next(parser, buffer));
    }
}

/* ---- Levels of precedence */

static void descend(struct parser *parser) {
    if (++parser->depth > EXPRESSION_DEPTH_MAX)
        refuse(parser, parser->at, "more than %d levels of nesting", EXPRESSION_DEPTH_MAX);
}

/* Reads a sign or a power; an exponent may have a sign too, as in 2^-3. */
static void parse_signed(struct parser *parser) {
    descend(parser);
    if (read_character(parser, '-')) {
        parse_signed(parser);
        emit_one(parser, negate);
    } else if (read_character(parser, '+')) {
        parse_signed(parser);
    } else {
        parse_atom(parser);
        if (read_operator(parser, LEVEL_POWER)) {
            parse_signed(parser);
            emit_two(parser, portable_power);
        }
    }
    parser->depth--;
}

/* Reads operands that bind more tightly than LEVEL, joined by operators of LEVEL, from the left. */
static void parse_level(struct parser *parser, enum level level) {
    if (level == LEVEL_POWER) {
        parse_signed(parser);
        return;
    }
    if (level == LEVEL_NOT && read_operator(parser, level)) {
        descend(parser);
        parse_level(parser, level);
        emit_one(parser, opposite);
        parser->depth--;
        return;
    }
    parse_level(parser, level + 1);
    for (bool again = false; level != LEVEL_NOT; again = true) {
        const char *at = parser->at;
        const struct operator* one = read_operator(parser, level);
        if (!one)
            return;
        if (level == LEVEL_COMPARISON && again)
            refuse(parser, at, "a second comparison, expected 'and' between two,");
        parse_level(parser, level + 1);
        emit_two(parser, one->function);
    }
}

/* Parses the whole text; an error if anything is left over. */
static void parse_text(struct parser *parser) {
    struct expression *expression = parser->expression;
    size_t length = strnlen(expression->text, EXPRESSION_LENGTH_MAX + 1);
    char buffer[64];
    if (length > EXPRESSION_LENGTH_MAX) {
        parser->error = failure_input(parser->failure, expression->file, expression->line, expression->column,
                                      "an expression of %zu bytes, expected at most %d",
                                      strlen(expression->text), EXPRESSION_LENGTH_MAX);
        return;
    }
    expression->code = xcalloc(length + 1, sizeof *expression->code);
    parse_level(parser, LEVEL_OR);
    skip_blanks(parser);
    if (*parser->at)
        refuse(parser, parser->at, "found %s, expected an operator or the end",
               describe_next(parser, buffer));
}

/* Parses TEXT, in which NAMES may occur, into *RET, which the caller frees. -EINVAL with the place in
 * FILE. */
static int parse(const char *text, const char *const *names, size_t count, bool has_texts, const char *file,
                 size_t line, size_t column, struct expression **ret, struct failure *failure) {
    cleanup(expression_cleanup) struct expression *expression = xcalloc(1, sizeof *expression);
    expression->text = xstrdup(text);
    expression->file = file ? xstrdup(file) : NULL;
    expression->line = line;
    expression->column = column;
    struct parser parser = {.expression = expression,
                            .at = expression->text,
                            .names = names,
                            .name_count = count,
                            .has_texts = has_texts,
                            .failure = failure};
    parse_text(&parser);
    if (parser.error < 0)
        return parser.error;
    *ret = take_pointer(expression);
    return 0;
}

int expression_parse(const char *text, const char *const *names, size_t count, const char *file, size_t line,
                     size_t column, struct expression **ret, struct failure *failure) {
    return parse(text, names, count, false, file, line, column, ret, failure);
}

int expression_parse_condition(const char *text, const char *const *names, size_t count,
                               struct expression **ret, struct failure *failure) {
    return parse(text, names, count, true, NULL, 0, 0, ret, failure);
}
