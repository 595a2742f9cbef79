#include "plugins/fit-linear/formula.h"

#include <errno.h>
#include <math.h>
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

/* A term while it is read. */
struct draft_factor {
    size_t column;
    bool logarithm;
    int power; /* of either sign */
};

struct draft {
    struct draft_factor factors[FORMULA_DEGREE_MAX];
    size_t count;
    unsigned categories; /* a bit for each */
    int degree;
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

static bool holds_texts(const struct fit_request *request, const char *name) {
    for (size_t i = 0; i < request->column_count; i++)
        if (strcmp(request->columns[i].name, name) == 0 && request->columns[i].type)
            return strcmp(request->columns[i].type, "string") == 0 ||
                   strcmp(request->columns[i].type, "boolean") == 0;
    return false;
}

/* The place of NAME among NAMES, where it is put if it is not yet there; MOST when there is no room. */
static size_t intern(const char **names, size_t *count, size_t most, const char *name) {
    size_t i = 0;
    while (i < *count && strcmp(names[i], name) != 0)
        i++;
    if (i == *count && i < most)
        names[(*count)++] = name;
    return i;
}

static int multiply_category(struct parser *parser, struct draft *draft, const char *name) {
    struct formula *formula = parser->formula;
    size_t category = intern(formula->categories, &formula->category_count, FORMULA_CATEGORIES_MAX, name);
    if (category == FORMULA_CATEGORIES_MAX)
        return refuse(parser, "more than %d different categories", (int)FORMULA_CATEGORIES_MAX);
    if (draft->categories & 1u << category)
        return refuse(parser, "the category '%s' is given twice in one term", name);
    draft->categories |= 1u << category;
    return 0;
}

/* Multiplies the term by NAME to the POWER, or by its logarithm. */
static int multiply(struct parser *parser, struct draft *draft, const char *name, bool logarithm, int power) {
    struct formula *formula = parser->formula;
    if (strcmp(name, parser->request->response) == 0)
        return refuse(parser, "'%s' is the response and cannot explain itself", name);
    if (!logarithm && holds_texts(parser->request, name))
        return power == 1 ? multiply_category(parser, draft, name)
                          : refuse(parser, "'%s' holds texts, which have no powers", name);
    draft->degree += abs(power);
    if (draft->degree > FORMULA_DEGREE_MAX)
        return refuse(parser, "the powers of a term add up to more than %d", (int)FORMULA_DEGREE_MAX);
    size_t column = intern(formula->columns, &formula->column_count, FORMULA_COLUMNS_MAX, name);
    if (column == FORMULA_COLUMNS_MAX)
        return refuse(parser, "more than %d different columns", (int)FORMULA_COLUMNS_MAX);
    for (size_t i = 0; i < draft->count; i++)
        if (draft->factors[i].column == column && draft->factors[i].logarithm == logarithm) {
            draft->factors[i].power += power;
            return draft->factors[i].power == 0 ? refuse(parser, "the powers of '%s' cancel out", name) : 0;
        }
    draft->factors[draft->count++] = (struct draft_factor){column, logarithm, power};
    return 0;
}

/* It may be a slip of the finger. */
static void note_repeated(const struct parser *parser, const char *word) {
    char note[128];
    snprintf(
        note, sizeof note,
        "'%.32s' is no column and is read as the product of its letters; '*' and '^' say so without doubt",
        word);
    parser->host->note(parser->host->context, note);
}

/* A word that is no column: the product of its letters where each is one. */
static int multiply_letters(struct parser *parser, struct draft *draft, const char *start, const char *word,
                            size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!find_column(parser->request, word + i, 1))
            return no_such_column(parser, word, start);
    if (*parser->at == '^')
        return refuse(parser, "a power after '%s' could mean the last letter or the whole; write it with '*'",
                      word);
    bool repeats = false;
    for (size_t i = 0; i < length; i++) {
        int r = multiply(parser, draft, find_column(parser->request, word + i, 1), false, 1);
        if (r < 0)
            return r;
        repeats = repeats || memchr(word, word[i], i);
    }
    if (repeats)
        note_repeated(parser, word);
    return 0;
}

static int read_power(struct parser *parser, int *ret) {
    *ret = 1;
    skip_blanks(parser);
    if (*parser->at != '^')
        return 0;
    parser->at++;
    skip_blanks(parser);
    const char *start = parser->at;
    bool negative = *start == '-';
    parser->at += negative;
    size_t digits = strspn(parser->at, "0123456789");
    int power = 0;
    for (size_t i = 0; i < digits && power <= FORMULA_DEGREE_MAX; i++)
        power = power * 10 + (parser->at[i] - '0');
    if (digits == 0 || power < 1 || power > FORMULA_DEGREE_MAX || is_name_byte(parser->at[digits])) {
        parser->at = start;
        return refuse(parser, "expected a whole power from 1 to %d or from -%d to -1 after '^'",
                      (int)FORMULA_DEGREE_MAX, (int)FORMULA_DEGREE_MAX);
    }
    parser->at += digits;
    *ret = negative ? -power : power;
    return 0;
}

/* A column's name or another word, between backquotes if need be; the caller frees it. */
static int read_word(struct parser *parser, char **ret, bool *ret_quoted) {
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
    skip_blanks(parser);
    *ret = strndup(start, length);
    *ret_quoted = quoted;
    return *ret ? 0 : -ENOMEM;
}

/* The column in the parentheses that follow. */
static int read_argument(struct parser *parser, const char *function, const char **ret) {
    parser->at++;
    skip_blanks(parser);
    const char *start = parser->at;
    char *word = NULL;
    bool quoted;
    int r = read_word(parser, &word, &quoted);
    if (r < 0)
        return r;
    *ret = find_column(parser->request, word, strlen(word));
    if (!*ret)
        r = no_such_column(parser, word, start);
    else if (*parser->at != ')')
        r = refuse(parser, "expected ')' after the column of %s(", function);
    else
        parser->at++;
    free(word);
    return r;
}

static int read_function(struct parser *parser, struct draft *draft, const char *function,
                         const char *start) {
    bool logarithm = strcmp(function, "log2") == 0;
    if (!logarithm && strcmp(function, "category") != 0) {
        parser->at = start;
        return refuse(parser, "there is no function '%s'; there are: log2, category", function);
    }
    const char *name;
    int power, r = read_argument(parser, function, &name);
    if (r < 0)
        return r;
    if (logarithm)
        return (r = read_power(parser, &power)) < 0 ? r : multiply(parser, draft, name, true, power);
    skip_blanks(parser);
    if (*parser->at == '^')
        return refuse(parser, "a category has no powers");
    if (strcmp(name, parser->request->response) == 0)
        return refuse(parser, "'%s' is the response and cannot explain itself", name);
    return multiply_category(parser, draft, name);
}

static int read_factor(struct parser *parser, struct draft *draft) {
    skip_blanks(parser);
    const char *start = parser->at;
    char *word = NULL;
    bool quoted;
    int power, r = read_word(parser, &word, &quoted);
    if (r < 0)
        return r;
    const char *name = find_column(parser->request, word, strlen(word));
    if (!quoted && *parser->at == '(')
        r = read_function(parser, draft, word, start);
    else if (name)
        r = (r = read_power(parser, &power)) < 0 ? r : multiply(parser, draft, name, false, power);
    else if (quoted || (start[0] >= '0' && start[0] <= '9'))
        r = quoted ? no_such_column(parser, word, start)
                   : refuse(parser, "'%s' where a column or 1 was expected (only the constant 1 is a number)",
                            word);
    else
        r = multiply_letters(parser, draft, start, word, strlen(word));
    free(word);
    return r;
}

/* Appends "*column", or whatever it is to its power, to NAME. False when it does not fit. */
static bool append_factor(char *name, size_t size, size_t *length, const char *column, bool logarithm,
                          int power) {
    char exponent[16] = "";
    if (power != 1)
        snprintf(exponent, sizeof exponent, "^%d", power);
    int written = snprintf(name + *length, size - *length, "%s%s%s%s%s", *length ? "*" : "",
                           logarithm ? "log2(" : "", column, logarithm ? ")" : "", exponent);
    if (written < 0 || (size_t)written >= size - *length)
        return false;
    *length += (size_t)written;
    return true;
}

int formula_product_name(const struct formula *formula, const struct formula_product *product, char *name,
                         size_t size) {
    size_t length = 0;
    if (product->factor_count == 0)
        return snprintf(name, size, "1") < (int)size ? 1 : -1;
    for (size_t i = 0; i < product->factor_count; i++) {
        const struct formula_input *input = &formula->inputs[product->factors[i].input];
        int power = input->inverse ? -product->factors[i].power : product->factors[i].power;
        if (!append_factor(name, size, &length, formula->columns[input->column], input->logarithm, power))
            return -1;
    }
    return (int)length;
}

/* "host*m*n^2" into *RET. */
static int make_name(const struct formula *formula, const struct formula_term *term, char **ret) {
    char name[FORMULA_BYTES_MAX] = "1";
    size_t length = 0;
    for (size_t i = 0; i < term->category_count; i++)
        if (!append_factor(name, sizeof name, &length, formula->categories[term->categories[i]], false, 1))
            return -ENAMETOOLONG;
    if (term->product > 0) {
        if (length > 0 && length + 1 < sizeof name)
            name[length++] = '*';
        if (formula_product_name(formula, &formula->products[term->product], name + length,
                                 sizeof name - length) < 0)
            return -ENAMETOOLONG;
    }
    *ret = strdup(name);
    return *ret ? 0 : -ENOMEM;
}

static bool same_product(const struct formula_product *a, const struct formula_product *b) {
    if (a->factor_count != b->factor_count)
        return false;
    for (size_t i = 0; i < a->factor_count; i++) {
        size_t j = 0;
        while (j < b->factor_count && a->factors[i].input != b->factors[j].input)
            j++;
        if (j == b->factor_count || a->factors[i].power != b->factors[j].power)
            return false;
    }
    return true;
}

/* The place of the input among the formula's, where it is put if need be; FORMULA_INPUTS_MAX: no room. */
static size_t intern_input(struct formula *formula, size_t column, bool logarithm, bool inverse) {
    for (size_t i = 0; i < formula->input_count; i++)
        if (formula->inputs[i].column == column && formula->inputs[i].logarithm == logarithm &&
            formula->inputs[i].inverse == inverse)
            return i;
    if (formula->input_count == FORMULA_INPUTS_MAX)
        return FORMULA_INPUTS_MAX;
    formula->inputs[formula->input_count] = (struct formula_input){column, logarithm, inverse};
    return formula->input_count++;
}

/* The place of the draft's product among the formula's. */
static int intern_product(struct parser *parser, const struct draft *draft, size_t *ret) {
    struct formula *formula = parser->formula;
    struct formula_product *product = &formula->products[formula->product_count];
    *product = (struct formula_product){.factor_count = draft->count};
    for (size_t i = 0; i < draft->count; i++) {
        const struct draft_factor *factor = &draft->factors[i];
        /* Its range is told, whatever is made of it. */
        size_t itself = intern_input(formula, factor->column, false, false);
        size_t input = intern_input(formula, factor->column, factor->logarithm, factor->power < 0);
        if (itself == FORMULA_INPUTS_MAX || input == FORMULA_INPUTS_MAX)
            return refuse(parser, "more than %d different columns, inverses and logarithms",
                          (int)FORMULA_INPUTS_MAX);
        formula->column_inputs[factor->column] = itself;
        product->factors[i] = (struct formula_factor){input, abs(factor->power)};
        product->degree += abs(factor->power);
    }
    *ret = 0;
    while (*ret < formula->product_count && !same_product(&formula->products[*ret], product))
        ++*ret;
    formula->product_count += *ret == formula->product_count;
    return 0;
}

static bool same_term(const struct formula_term *a, const struct formula_term *b) {
    return a->product == b->product && a->category_count == b->category_count &&
           memcmp(a->categories, b->categories, a->category_count * sizeof *a->categories) == 0;
}

static int read_term(struct parser *parser) {
    struct formula *formula = parser->formula;
    skip_blanks(parser);
    const char *start = parser->at;
    if (formula->term_count == FORMULA_TERMS_MAX)
        return refuse(parser, "more than %d terms", (int)FORMULA_TERMS_MAX);
    struct formula_term *term = &formula->terms[formula->term_count];
    struct draft draft = {0};
    *term = (struct formula_term){0};
    int r = 0;
    if (parser->at[0] == '1' && !is_name_byte(parser->at[1])) {
        parser->at++;
    } else {
        while ((r = read_factor(parser, &draft)) == 0 && (skip_blanks(parser), *parser->at == '*'))
            parser->at++;
    }
    r = r < 0 ? r : intern_product(parser, &draft, &term->product);
    if (r < 0)
        return r;
    for (size_t c = 0; c < formula->category_count; c++)
        if (draft.categories & 1u << c)
            term->categories[term->category_count++] = c;
    if ((r = make_name(formula, term, &term->name)) < 0)
        return r == -ENOMEM ? r
                            : refuse(parser, "the name of a term is longer than %d bytes", FORMULA_BYTES_MAX);
    formula->term_count++;
    for (size_t i = 0; i + 1 < formula->term_count; i++)
        if (same_term(&formula->terms[i], term)) {
            parser->at = start;
            return refuse(parser, "the term %s is given twice", term->name);
        }
    return 0;
}

static int read_terms(struct parser *parser) {
    if (strlen(parser->text) > FORMULA_BYTES_MAX)
        return refuse(parser, "longer than %d bytes", (int)FORMULA_BYTES_MAX);
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
    if (count > FORMULA_SIZES_MAX) {
        snprintf(message->text, sizeof message->text, "%zu sizes; expected at most %d", count,
                 (int)FORMULA_SIZES_MAX);
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
    char expanded[FORMULA_BYTES_MAX];
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
    formula->product_count = 1; /* the constant */
    int r = read_terms(&parser);
    if (r < 0)
        formula_clear(formula);
    else
        *ret = *formula;
    free(formula);
    return r;
}

void formula_clear(struct formula *formula) {
    for (size_t i = 0; i < FORMULA_TERMS_MAX; i++)
        free(formula->terms[i].name);
    *formula = (struct formula){0};
}

bool formula_is_constant(const struct formula_term *term) {
    return term->product == 0 && term->category_count == 0;
}

void formula_derive(const struct formula_input *input, size_t rows, const double *values, double *ret) {
    for (size_t r = 0; r < rows; r++) {
        double value = input->logarithm ? log2(values[r]) : values[r];
        ret[r] = input->inverse ? 1 / value : value;
    }
}
