#include "plugins/fit-linear/formula.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    const struct plugin_host *host;
    const struct fit_request *request;
    const char *text, *at;
    struct formula *formula;
    struct plugin_message *message;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct parser *parser, const char *format, ...) {
    char reason[PLUGIN_MESSAGE_SIZE / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    snprintf(parser->message->text, sizeof parser->message->text, "terms '%.400s', column %zu: %s",
             parser->text, (size_t)(parser->at - parser->text) + 1, reason);
    return -EINVAL;
}

static void skip_blanks(struct parser *parser) {
    parser->at += strspn(parser->at, " \t");
}

static bool is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || (unsigned char)c >= 0x80;
}

/* The table's own copy of the column name that WORD is, or NULL. */
static const char *find_column(const struct fit_request *request, const char *word, size_t length) {
    for (size_t i = 0; i < request->column_count; i++)
        if (strlen(request->columns[i].name) == length && memcmp(request->columns[i].name, word, length) == 0)
            return request->columns[i].name;
    return NULL;
}

/* WORD, read just before, is no column: the place is where it began. */
static int no_such_column(struct parser *parser, const char *word, const char *start) {
    parser->at = start;
    const struct fit_request *request = parser->request;
    const char *names[256] = {NULL};
    size_t count = 0;
    for (; count < request->column_count && count < 256; count++)
        names[count] = request->columns[count].name;
    const char *nearest = parser->host->nearest(word, names, count);
    if (nearest)
        return refuse(parser, "there is no column '%s'; did you mean '%s'?", word, nearest);
    char list[512] = "";
    for (size_t i = 0, length = 0; i < count && length < sizeof list - 1; i++) {
        int written = snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", names[i]);
        length += written > 0 ? (size_t)written : 0;
    }
    return refuse(parser, "there is no column '%s'; there are: %s", word, list);
}

/* Multiplies TERM by column NAME to the POWER. */
static int multiply(struct parser *parser, struct formula_term *term, const char *name, int power) {
    struct formula *formula = parser->formula;
    if (strcmp(name, parser->request->response) == 0)
        return refuse(parser, "'%s' is the response and cannot explain itself", name);
    if (term->degree + power > FORMULA_DEGREE_MOST)
        return refuse(parser, "the powers of a term add up to more than %d", (int)FORMULA_DEGREE_MOST);
    size_t column = 0;
    while (column < formula->column_count && strcmp(formula->columns[column], name) != 0)
        column++;
    if (column == formula->column_count) {
        if (column == FORMULA_FACTORS_MOST)
            return refuse(parser, "more than %d different columns", (int)FORMULA_FACTORS_MOST);
        formula->columns[formula->column_count++] = name;
    }
    term->degree += power;
    for (size_t i = 0; i < term->factor_count; i++)
        if (term->factors[i].column == column) {
            term->factors[i].power += power;
            return 0;
        }
    term->factors[term->factor_count++] = (struct formula_factor){column, power};
    return 0;
}

/* A word that is no column: the product of its letters where each is one. */
static int multiply_letters(struct parser *parser, struct formula_term *term, const char *start,
                            const char *word, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!find_column(parser->request, word + i, 1))
            return no_such_column(parser, word, start);
    if (*parser->at == '^')
        return refuse(parser, "a power after '%s' could mean the last letter or the whole; write it with '*'",
                      word);
    for (size_t i = 0; i < length; i++) {
        int r = multiply(parser, term, find_column(parser->request, word + i, 1), 1);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_power(struct parser *parser, int *ret) {
    *ret = 1;
    skip_blanks(parser);
    if (*parser->at != '^')
        return 0;
    parser->at++;
    skip_blanks(parser);
    size_t digits = strspn(parser->at, "0123456789");
    int power = 0;
    for (size_t i = 0; i < digits && power <= FORMULA_DEGREE_MOST; i++)
        power = power * 10 + (parser->at[i] - '0');
    if (digits == 0 || power < 1 || power > FORMULA_DEGREE_MOST || is_name_byte(parser->at[digits]))
        return refuse(parser, "expected a whole power from 1 to %d after '^'", (int)FORMULA_DEGREE_MOST);
    parser->at += digits;
    *ret = power;
    return 0;
}

static int read_factor(struct parser *parser, struct formula_term *term) {
    skip_blanks(parser);
    const char *start = parser->at;
    bool quoted = *start == '`';
    size_t length = 0;
    if (quoted) {
        const char *end = strchr(++start, '`');
        if (!end)
            return refuse(parser, "a backquote that is not closed");
        length = (size_t)(end - start);
        parser->at = end + 1;
    } else {
        while (is_name_byte(start[length]))
            length++;
        if (length == 0)
            return *start ? refuse(parser, "'%c' where a column or 1 was expected", *start)
                          : refuse(parser, "it ends where a column or 1 was expected");
        parser->at = start + length;
    }
    char *word = strndup(start, length);
    if (!word)
        return -ENOMEM;
    skip_blanks(parser);
    const char *name = find_column(parser->request, start, length);
    int power, r;
    if (name)
        r = (r = read_power(parser, &power)) < 0 ? r : multiply(parser, term, name, power);
    else if (quoted || (start[0] >= '0' && start[0] <= '9'))
        r = quoted ? no_such_column(parser, word, start)
                   : refuse(parser, "'%s' where a column or 1 was expected (only the constant 1 is a number)",
                            word);
    else
        r = multiply_letters(parser, term, start, word, length);
    free(word);
    return r;
}

/* "m*n^2" into *RET; columns as the formula has them. */
static int make_name(const struct formula *formula, const struct formula_term *term, char **ret) {
    char name[FORMULA_BYTES_MOST] = "1";
    size_t length = 0;
    for (size_t i = 0; i < term->factor_count; i++) {
        const char *column = formula->columns[term->factors[i].column];
        int written = term->factors[i].power == 1
                          ? snprintf(name + length, sizeof name - length, "%s%s", i ? "*" : "", column)
                          : snprintf(name + length, sizeof name - length, "%s%s^%d", i ? "*" : "", column,
                                     term->factors[i].power);
        if (written < 0 || (size_t)written >= sizeof name - length)
            return -ENAMETOOLONG;
        length += (size_t)written;
    }
    char *copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    *ret = copy;
    return 0;
}

static bool same_product(const struct formula_term *a, const struct formula_term *b) {
    if (a->factor_count != b->factor_count)
        return false;
    for (size_t i = 0; i < a->factor_count; i++) {
        size_t j = 0;
        while (j < b->factor_count && a->factors[i].column != b->factors[j].column)
            j++;
        if (j == b->factor_count || a->factors[i].power != b->factors[j].power)
            return false;
    }
    return true;
}

static int read_term(struct parser *parser) {
    struct formula *formula = parser->formula;
    skip_blanks(parser);
    const char *start = parser->at;
    if (formula->term_count == FORMULA_TERMS_MOST)
        return refuse(parser, "more than %d terms", (int)FORMULA_TERMS_MOST);
    struct formula_term *term = &formula->terms[formula->term_count];
    *term = (struct formula_term){0};
    int r = 0;
    if (parser->at[0] == '1' && !is_name_byte(parser->at[1])) {
        parser->at++;
    } else {
        while ((r = read_factor(parser, term)) == 0 && (skip_blanks(parser), *parser->at == '*'))
            parser->at++;
    }
    if (r < 0)
        return r;
    if ((r = make_name(formula, term, &term->name)) < 0)
        return r == -ENOMEM
                   ? r
                   : refuse(parser, "the name of a term is longer than %d bytes", FORMULA_BYTES_MOST);
    formula->term_count++;
    for (size_t i = 0; i + 1 < formula->term_count; i++)
        if (same_product(&formula->terms[i], term)) {
            parser->at = start;
            return refuse(parser, "the term %s is given twice", term->name);
        }
    return 0;
}

static int read_terms(struct parser *parser) {
    if (strlen(parser->text) > FORMULA_BYTES_MOST)
        return refuse(parser, "longer than %d bytes", (int)FORMULA_BYTES_MOST);
    for (;;) {
        int r = read_term(parser);
        if (r < 0)
            return r;
        skip_blanks(parser);
        if (*parser->at == '\0')
            return 0;
        if (*parser->at != '+')
            return refuse(parser,
                          "'%c' where '+' or '*' was expected (names with other characters go between "
                          "backquotes)",
                          *parser->at);
        parser->at++;
    }
}

/* Appends "+" and the product of all sizes but number LEFT_OUT (any number from COUNT on: none). */
static int append_product(char *text, size_t size, const char *const *sizes, size_t count, size_t left_out) {
    size_t length = strlen(text);
    const char *before = "+";
    for (size_t i = 0; i < count; i++) {
        if (i == left_out)
            continue;
        int written = snprintf(text + length, size - length, "%s`%s`", before, sizes[i]);
        if (written < 0 || (size_t)written >= size - length)
            return -ENAMETOOLONG;
        length += (size_t)written;
        before = "*";
    }
    return 0;
}

/* Writes the formula of M-DEGREE over the request's sizes into TEXT. */
static int expand_named(const struct fit_request *request, int degree, char *text, size_t size,
                        struct plugin_message *message) {
    static const char *const matrix_sizes[] = {"m", "n", "k"};
    const char *const *sizes = request->size_count ? request->sizes : matrix_sizes;
    size_t count = request->size_count ? request->size_count : 3;
    if (count > FORMULA_SIZES_MOST) {
        snprintf(message->text, sizeof message->text, "%zu sizes; expected at most %d", count,
                 (int)FORMULA_SIZES_MOST);
        return -EINVAL;
    }
    for (size_t i = 0; degree > 0 && i < count; i++)
        if (!find_column(request, sizes[i], strlen(sizes[i]))) {
            snprintf(message->text, sizeof message->text,
                     "M-%d is over the sizes %s%s%s%s%s%s, and there is no column '%s'; say which columns "
                     "they are "
                     "with --sizes, or write the --terms",
                     degree, sizes[0], count > 1 ? ", " : "", count > 1 ? sizes[1] : "",
                     count > 2 ? ", " : "", count > 2 ? sizes[2] : "", count > 3 ? ", ..." : "", sizes[i]);
            return -EINVAL;
        }
    snprintf(text, size, "1");
    int r = degree >= 1 ? append_product(text, size, sizes, count, count) : 0;
    /* Of one size the product that leaves it out is the constant, which is there already. */
    for (size_t i = count; degree >= 2 && count > 1 && r == 0 && i-- > 0;)
        r = append_product(text, size, sizes, count, i);
    if (r < 0)
        snprintf(message->text, sizeof message->text, "the names of the sizes are too long");
    return r < 0 ? -EINVAL : 0;
}

int formula_read(const struct plugin_host *host, const struct fit_request *request, struct formula *ret,
                 struct plugin_message *message) {
    const char *text = request->terms ? request->terms : "M-2";
    char expanded[FORMULA_BYTES_MOST];
    if (text[0] == 'M' && text[1] == '-') {
        if (text[2] < '0' || text[2] > '2' || text[3] != '\0') {
            snprintf(message->text, sizeof message->text,
                     "there is no model '%s'; expected M-0, M-1 or M-2, or terms such as 1+m*n*k", text);
            return -EINVAL;
        }
        int r = expand_named(request, text[2] - '0', expanded, sizeof expanded, message);
        if (r < 0)
            return r;
        text = expanded;
    }
    struct formula *formula = calloc(1, sizeof *formula);
    if (!formula)
        return -ENOMEM;
    struct parser parser = {host, request, text, text, formula, message};
    int r = read_terms(&parser);
    if (r < 0)
        formula_clear(formula);
    else
        *ret = *formula;
    free(formula);
    return r;
}

void formula_clear(struct formula *formula) {
    for (size_t i = 0; i < FORMULA_TERMS_MOST; i++)
        free(formula->terms[i].name);
    *formula = (struct formula){0};
}
