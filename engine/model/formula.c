#include "engine/model/formula.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/model/model.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    const char *text, *at;
    const struct formula_context *context;
    struct formula *formula;
    struct failure *failure;
};

/* Fails with a sentence about the place AT of the formula. Returns -EINVAL. */
__attribute__((format(printf, 3, 4))) static int refuse(const struct parser *parser, const char *at,
                                                        const char *format, ...) {
    char reason[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return failure_input(parser->failure, NULL, 0, 0, "terms '%.400s', column %zu: %s", parser->text,
                         (size_t)(at - parser->text) + 1, reason);
}

void formula_clear(struct formula *formula) {
    for (size_t t = 0; t < formula->term_count; t++)
        model_term_clear(&formula->terms[t]);
    free(formula->terms), free(formula->places), free(formula->text), free(formula->note);
    *formula = (struct formula){0};
}

/* ---- Names */

static bool is_name_byte(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '.' || (unsigned char)c >= 0x80;
}

size_t formula_find_column(const struct model_column *columns, size_t count, const char *name) {
    size_t i = 0;
    while (i < count && strcmp(columns[i].about.name, name) != 0)
        i++;
    return i;
}

static bool holds_texts(const struct formula_context *context, const char *name) {
    size_t i = formula_find_column(context->columns, context->column_count, name);
    enum column_type type = i < context->column_count ? context->columns[i].about.type : COLUMN_UNKNOWN;
    return type == COLUMN_STRING || type == COLUMN_BOOLEAN;
}

static bool is_category(const struct model_factor *factor) {
    return factor->function && strcmp(factor->function, FORMULA_CATEGORY) == 0;
}

/* A column as a formula has it, between backquotes if need be. */
static void append_column(struct text *text, const char *name) {
    bool plain = name[0] != '\0' && strcmp(name, "1") != 0;
    for (const char *at = name; *at; at++)
        plain = plain && is_name_byte(*at);
    text_printf(text, plain ? "%s" : "`%s`", name);
}

/* The name of a term, as "m^2*n", "host[b]*m" or "category(host)"; a column of texts, by CONTEXT, needs no
 * category(). The caller frees. */
static char *term_name(const struct model_term *term, const struct formula_context *context) {
    cleanup(text_clear) struct text name;
    text_init(&name, SIZE_MAX);
    for (size_t f = 0; f < term->factor_count; f++) {
        const struct model_factor *factor = &term->factors[f];
        bool call =
            factor->function && !(is_category(factor) && context && holds_texts(context, factor->column));
        if (f > 0)
            text_append_character(&name, '*');
        if (call)
            text_printf(&name, "%s(", factor->function);
        append_column(&name, factor->column);
        if (call)
            text_append_character(&name, ')');
        if (factor->level)
            text_printf(&name, "[%s]", factor->level);
        if (factor->power != 1)
            text_printf(&name, "^%d", factor->power);
    }
    return term->factor_count == 0 ? xstrdup("1") : xstrdup(name.bytes);
}

char *formula_print(const struct formula *formula) {
    cleanup(text_clear) struct text text;
    text_init(&text, SIZE_MAX);
    for (size_t t = 0; t < formula->term_count; t++)
        text_printf(&text, "%s%s", t ? " + " : "", formula->terms[t].name);
    return xstrdup(text.bytes);
}

/* ---- Reading */

static void skip_blanks(struct parser *parser) {
    parser->at += strspn(parser->at, " \t");
}

static int no_such_column(const struct parser *parser, const char *at, const char *word) {
    const struct formula_context *context = parser->context;
    cleanup_free const char **names = xcalloc(context->column_count + 1, sizeof *names);
    char instead[TEXT_INSTEAD_SIZE];
    for (size_t i = 0; i < context->column_count; i++)
        names[i] = context->columns[i].about.name;
    return refuse(parser, at, "there is no column '%.256s'; %s", word,
                  text_instead(word, names, context->column_count, instead));
}

static bool is_column(const struct parser *parser, const char *word) {
    return formula_find_column(parser->context->columns, parser->context->column_count, word) <
           parser->context->column_count;
}

/* Multiplies TERM by a column to a power, or by a function of the column. -EINVAL: the product is not
 * allowed, as a power of a category. */
static int multiply_column(const struct parser *parser, const char *at, struct model_term *term,
                           const char *column, const char *function, int32_t power) {
    bool texts = holds_texts(parser->context, column);
    if (parser->context->response && strcmp(column, parser->context->response) == 0)
        return refuse(parser, at, "'%s' is the response, and cannot be a term of its own model", column);
    if (texts && function && strcmp(function, FORMULA_CATEGORY) != 0)
        return refuse(parser, at, "'%s' has texts; log2() needs a column of numbers", column);
    function = texts ? FORMULA_CATEGORY : function;
    bool category = function && strcmp(function, FORMULA_CATEGORY) == 0;
    if (category && power != 1)
        return refuse(parser, at, "'%s' is a category and cannot have a power; remove the '^'", column);
    int32_t powers = abs(power);
    for (size_t f = 0; f < term->factor_count; f++)
        powers += abs(term->factors[f].power);
    if (powers > FORMULA_POWERS_MAX)
        return refuse(parser, at, "the powers of a term add up to more than %d, the most accepted",
                      FORMULA_POWERS_MAX);
    for (size_t f = 0; f < term->factor_count; f++) {
        struct model_factor *factor = &term->factors[f];
        if (strcmp(factor->column, column) != 0 || !factor->function != !function ||
            (function && strcmp(factor->function, function) != 0))
            continue;
        factor->power += power;
        if (category)
            return refuse(parser, at, "the category '%s' occurs twice in the same term", column);
        return factor->power == 0
                   ? refuse(parser, at, "the powers of '%s' cancel; remove it from the term", column)
                   : 0;
    }
    term->factors = xrealloc(term->factors, (term->factor_count + 1) * sizeof *term->factors);
    term->factors[term->factor_count++] = (struct model_factor){
        .column = xstrdup(column), .power = power, .function = function ? xstrdup(function) : NULL};
    return 0;
}

/* Reads WORD, which is no column, as the product of its letters. -EINVAL: a letter is no column either. A
 * repeated letter is noted, for it may be a slip. */
static int multiply_letters(struct parser *parser, const char *at, struct model_term *term,
                            const char *word) {
    for (const char *letter = word; *letter; letter++)
        if (!is_column(parser, (char[]){*letter, '\0'}))
            return no_such_column(parser, at, word);
    if (*parser->at == '^')
        return refuse(parser, at,
                      "a power after '%s' may mean the last letter or the whole product; "
                      "separate the letters by '*'",
                      word);
    for (const char *letter = word; *letter; letter++) {
        int r = multiply_column(parser, at, term, (char[]){*letter, '\0'}, NULL, 1);
        if (r < 0)
            return r;
        if (memchr(word, *letter, (size_t)(letter - word)) && !parser->formula->note)
            parser->formula->note =
                xformat("'%.32s' is no column, and is read as the product of its letters; "
                        "write products with '*' to be clear",
                        word);
    }
    return 0;
}

/* Reads "^2" or "^-1" into *RET; 1 if there is no power. */
static int read_power(struct parser *parser, int32_t *ret) {
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
    long power = strtol(parser->at, NULL, 10); /* what is too large is the largest long */
    if (digits == 0 || power < 1 || power > FORMULA_POWERS_MAX || is_name_byte(parser->at[digits]))
        return refuse(parser, start, "expected a whole power from 1 to %d or from -%d to -1 after '^'",
                      FORMULA_POWERS_MAX, FORMULA_POWERS_MAX);
    parser->at += digits;
    *ret = (int32_t)(negative ? -power : power);
    return 0;
}

/* Reads a column's name or another word into *RET, which the caller frees. *RET_QUOTED: it was between
 * backquotes. */
static int read_word(struct parser *parser, char **ret, bool *ret_quoted) {
    skip_blanks(parser);
    const char *start = parser->at;
    *ret_quoted = *start == '`';
    size_t length = 0;
    if (*ret_quoted) {
        const char *end = strchr(++start, '`');
        if (!end)
            return refuse(parser, parser->at, "a backquote that is not closed");
        length = (size_t)(end - start);
        parser->at = end + 1;
    } else {
        while (is_name_byte(start[length]))
            length++;
        if (length == 0 && *start)
            return refuse(parser, start, "'%c' where a column or 1 was expected", *start);
        if (length == 0)
            return refuse(parser, start, "the terms end where a column or 1 was expected");
        parser->at = start + length;
    }
    skip_blanks(parser);
    *ret = xstrndup(start, length);
    return 0;
}

/* Reads "(column)" after FUNCTION, which is log2 or category, and multiplies TERM by it. */
static int read_call(struct parser *parser, const char *at, struct model_term *term, const char *function) {
    if (strcmp(function, "log2") != 0 && strcmp(function, FORMULA_CATEGORY) != 0)
        return refuse(parser, at, "there is no function '%s'; the functions are log2 and category", function);
    parser->at++;
    skip_blanks(parser);
    const char *start = parser->at;
    cleanup_free char *word = NULL;
    bool quoted;
    int32_t power;
    int r = read_word(parser, &word, &quoted);
    if (r < 0)
        return r;
    if (!is_column(parser, word))
        return no_such_column(parser, start, word);
    if (*parser->at != ')')
        return refuse(parser, parser->at, "expected ')' after the column of %s(", function);
    parser->at++;
    r = read_power(parser, &power);
    return r < 0 ? r : multiply_column(parser, at, term, word, function, power);
}

/* Reads one factor and multiplies TERM by it: a column, a power, a function of a column, or a word of one-
 * letter columns. */
static int read_factor(struct parser *parser, struct model_term *term) {
    skip_blanks(parser);
    const char *start = parser->at;
    cleanup_free char *word = NULL;
    bool quoted;
    int32_t power;
    int r = read_word(parser, &word, &quoted);
    if (r < 0)
        return r;
    if (!quoted && *parser->at == '(')
        return read_call(parser, start, term, word);
    if (is_column(parser, word))
        return (r = read_power(parser, &power)) < 0 ? r
                                                    : multiply_column(parser, start, term, word, NULL, power);
    if (quoted)
        return no_such_column(parser, start, word);
    if (isdigit((unsigned char)*start))
        return refuse(parser, start,
                      "'%s' where a column or 1 was expected (only the constant 1 is a number)", word);
    return multiply_letters(parser, start, term, word);
}

/* Moves the categories of a term before its numbers, in the order in which they are written. */
static void order_factors(struct model_term *term) {
    struct model_factor *ordered = xcalloc(term->factor_count + 1, sizeof *ordered);
    size_t count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t f = 0; f < term->factor_count; f++)
            if (is_category(&term->factors[f]) == (pass == 0))
                ordered[count++] = term->factors[f];
    free(term->factors);
    term->factors = ordered;
}

static bool has_factor(const struct model_term *term, const struct model_factor *factor) {
    for (size_t f = 0; f < term->factor_count; f++) {
        const struct model_factor *one = &term->factors[f];
        if (strcmp(one->column, factor->column) == 0 && one->power == factor->power &&
            !one->function == !factor->function &&
            (!factor->function || strcmp(one->function, factor->function) == 0))
            return true;
    }
    return false;
}

/* Whether terms A and B have the same factors; if NUMBERS, leaving their categories out. */
static bool is_same_product(const struct model_term *a, const struct model_term *b, bool numbers) {
    size_t counts[2] = {0, 0};
    for (size_t f = 0; f < b->factor_count; f++)
        counts[1] += !numbers || !is_category(&b->factors[f]);
    for (size_t f = 0; f < a->factor_count; f++) {
        if (numbers && is_category(&a->factors[f]))
            continue;
        counts[0]++;
        if (!has_factor(b, &a->factors[f]))
            return false;
    }
    return counts[0] == counts[1];
}

/* Reads a term and adds it to the formula. -EINVAL: the formula has it already, or has too many. */
static int read_term(struct parser *parser) {
    struct formula *formula = parser->formula;
    skip_blanks(parser);
    const char *start = parser->at;
    if (formula->term_count == FORMULA_TERMS_MAX)
        return refuse(parser, start, "more than %d terms, the most accepted", FORMULA_TERMS_MAX);
    size_t t = formula->term_count;
    formula->terms = xrealloc(formula->terms, (t + 1) * sizeof *formula->terms);
    formula->places = xrealloc(formula->places, (t + 1) * sizeof *formula->places);
    struct model_term *term = &formula->terms[formula->term_count++];
    *term = (struct model_term){0};
    formula->places[t] = (size_t)(start - parser->text) + 1;
    int r = 0;
    if (parser->at[0] == '1' && !is_name_byte(parser->at[1])) {
        parser->at++;
    } else {
        while ((r = read_factor(parser, term)) == 0 && (skip_blanks(parser), *parser->at == '*'))
            parser->at++;
    }
    if (r < 0)
        return r;
    order_factors(term);
    term->name = term_name(term, parser->context);
    for (size_t i = 0; i < t; i++)
        if (is_same_product(&formula->terms[i], term, false))
            return refuse(parser, start, "the term %s is given twice", term->name);
    return 0;
}

/* Reads terms separated by '+' to the end of the text; anything else is an error. */
static int read_terms(struct parser *parser) {
    if (strlen(parser->text) > FORMULA_BYTES_MAX)
        return refuse(parser, parser->text, "the terms are longer than %d bytes, the most accepted",
                      FORMULA_BYTES_MAX);
    for (;; parser->at++) {
        int r = read_term(parser);
        if (r < 0)
            return r;
        skip_blanks(parser);
        if (*parser->at == '\0')
            return 0;
        if (*parser->at != '+')
            return refuse(parser, parser->at,
                          "'%c' where '+' or '*' was expected (names with other characters go between "
                          "backquotes)",
                          *parser->at);
    }
}

/* The formula of a named model: M-0 is 1, M-1 adds the product of the sizes, M-2 also the products without
 * one size each. NULL with FAILURE: a size is no column. The caller frees. */
static char *named_formula(const struct formula_context *context, char degree, struct failure *failure) {
    static const char *const matrix_sizes[] = {"m", "n", "k"};
    const char *const *sizes = context->size_count ? context->sizes : matrix_sizes;
    size_t count = context->size_count ? context->size_count : 3;
    cleanup(text_clear) struct text text;
    text_init(&text, SIZE_MAX);
    text_append_string(&text, "1");
    if (count > FORMULA_SIZES_MAX) {
        failure_input(failure, NULL, 0, 0, "%zu sizes are given; expected at most %d", count,
                      FORMULA_SIZES_MAX);
        return NULL;
    }
    for (size_t i = 0; degree > '0' && i < count; i++)
        if (formula_find_column(context->columns, context->column_count, sizes[i]) == context->column_count) {
            failure_input(failure, NULL, 0, 0,
                          "the model M-%c uses the sizes %s%s%s%s%s%s, but there is no column "
                          "'%s'; name the columns of the sizes with --sizes, or write the terms "
                          "with --terms",
                          degree, sizes[0], count > 1 ? ", " : "", count > 1 ? sizes[1] : "",
                          count > 2 ? ", " : "", count > 2 ? sizes[2] : "", count > 3 ? ", ..." : "",
                          sizes[i]);
            return NULL;
        }
    /* The product of all, then those without one of them; of one size that is the constant. */
    size_t products = degree == '0' ? 0 : degree == '1' || count == 1 ? 1 : count + 1;
    for (size_t p = 0; p < products; p++)
        for (size_t i = 0, factors = 0; i < count; i++)
            if (p == 0 || i != count - p)
                text_printf(&text, "%s`%s`", factors++ ? "*" : " + ", sizes[i]);
    return xstrdup(text.bytes);
}

/* Parses a formula or the name of one into RET, which the caller clears (formula.h). */
int formula_read(const char *text, const struct formula_context *context, struct formula *ret,
                 struct failure *failure) {
    cleanup_free char *named = NULL;
    if (strncmp(text, "M-", 2) == 0) {
        if (text[2] < '0' || text[2] > '2' || text[3] != '\0')
            return failure_input(failure, NULL, 0, 0,
                                 "there is no model '%.64s'; expected M-0, M-1 or M-2, or terms such as "
                                 "1+m*n*k",
                                 text);
        named = named_formula(context, text[2], failure);
        if (!named)
            return -EINVAL;
    }
    cleanup(formula_clear) struct formula formula = {.text = xstrdup(named ? named : text)};
    struct parser parser = {formula.text, formula.text, context, &formula, failure};
    int r = read_terms(&parser);
    if (r < 0)
        return r;
    *ret = formula;
    formula = (struct formula){0};
    return 0;
}

/* ---- Categories */

/* A set of dummy variables that a term spans: its product of numbers times contrasts of some categories, a
 * bit for each. A term with a dummy for each level of a category also spans the set without that category. */
struct term_space {
    size_t product; /* the first term with this product */
    uint64_t categories;
};

struct expansion {
    const struct formula *formula;
    struct formula *ret;
    struct failure *failure;
    const struct model_column *columns;
    size_t column_count;
    const struct model_column *categories[FORMULA_CATEGORIES_MAX];
    size_t category_count;
    struct term_space *terms;  /* by term: its product and all its categories */
    struct term_space *spaces; /* spanned by the terms that were expanded so far */
    size_t space_count;
};

static void expansion_clear(struct expansion *expansion) {
    free(expansion->terms), free(expansion->spaces);
}

static int refuse_term(const struct expansion *expansion, size_t t, const char *sentence) {
    const struct formula *formula = expansion->formula;
    return failure_input(expansion->failure, NULL, 0, 0, "terms '%.400s', column %zu: the term '%.200s' %s",
                         formula->text, formula->places[t], formula->terms[t].name, sentence);
}

static bool has_space(const struct term_space *spaces, size_t count, struct term_space space) {
    for (size_t i = 0; i < count; i++)
        if (spaces[i].product == space.product && spaces[i].categories == space.categories)
            return true;
    return false;
}

/* The bit of a category; 0 where it is not in the list. */
static uint64_t find_category(const struct expansion *expansion, const char *name) {
    for (size_t c = 0; c < expansion->category_count; c++)
        if (strcmp(expansion->categories[c]->about.name, name) == 0)
            return UINT64_C(1) << c;
    return 0;
}

/* Puts a category into the list; false where its levels are not known, or the list is full. */
static bool add_category(struct expansion *expansion, const char *name) {
    size_t i = formula_find_column(expansion->columns, expansion->column_count, name);
    if (find_category(expansion, name))
        return true;
    if (i == expansion->column_count || expansion->category_count == FORMULA_CATEGORIES_MAX)
        return false;
    expansion->categories[expansion->category_count++] = &expansion->columns[i];
    return true;
}

/* Lists the categories that the formula uses, and describes each term by its product of numbers and its set
 * of categories. -EINVAL: levels are not known, or there are too many categories. */
static int list_categories(struct expansion *expansion) {
    const struct formula *formula = expansion->formula;
    for (size_t t = 0; t < formula->term_count; t++) {
        struct term_space *space = &expansion->terms[t];
        const struct model_term *term = &formula->terms[t];
        while (!is_same_product(&formula->terms[space->product], term, true))
            space->product++;
        for (size_t f = 0; f < term->factor_count; f++) {
            if (!is_category(&term->factors[f]))
                continue;
            if (!add_category(expansion, term->factors[f].column))
                return refuse_term(expansion, t,
                                   "has a category whose levels are not known, or more than 64 categories "
                                   "are used");
            space->categories |= find_category(expansion, term->factors[f].column);
        }
        if (__builtin_popcountll(space->categories) > FORMULA_CROSSED_MAX)
            return refuse_term(expansion, t, "has more than 8 categories, the most accepted");
    }
    return 0;
}

/* Fails because term T, with a dummy for every combination of levels, contains other terms; the message names
 * the terms to add to the formula. */
static int refuse_rank_deficient(const struct expansion *expansion, size_t t) {
    const struct model_term *term = &expansion->formula->terms[t];
    const struct term_space all = expansion->terms[t];
    cleanup(text_clear) struct text missing, sentence;
    text_init(&missing, 512);
    text_init(&sentence, SIZE_MAX);
    for (uint64_t part = 0; part != all.categories; part = (part - all.categories) & all.categories) {
        if (has_space(expansion->terms, expansion->formula->term_count,
                      (struct term_space){all.product, part}))
            continue;
        struct model_term lower = {.factors = xcalloc(term->factor_count + 1, sizeof *lower.factors)};
        for (size_t f = 0; f < term->factor_count; f++)
            if (!is_category(&term->factors[f]) || (part & find_category(expansion, term->factors[f].column)))
                lower.factors[lower.factor_count++] = term->factors[f];
        cleanup_free char *name = term_name(&lower, NULL);
        text_printf(&missing, "%s%s", missing.length ? " + " : "", name);
        free(lower.factors);
    }
    text_printf(&sentence,
                "is rank deficient: with a dummy variable for each combination of "
                "levels it contains other terms; add '%s' to the formula",
                missing.bytes);
    return refuse_term(expansion, t, sentence.bytes);
}

/* Chooses the categories of term T whose first level gets no dummy, a bit for each in *RET: those without
 * which the product is in the formula already. -EINVAL: the term would be linearly dependent on others. */
static int choose_contrasts(struct expansion *expansion, size_t t, uint64_t *ret) {
    size_t count = expansion->formula->term_count;
    const struct term_space all = expansion->terms[t];
    *ret = 0;
    for (uint64_t left = all.categories; left; left &= left - 1) {
        struct term_space rest = {all.product, all.categories & ~(left & -left)};
        if (has_space(expansion->terms, count, rest) ||
            has_space(expansion->spaces, expansion->space_count, rest))
            *ret |= left & -left;
    }
    uint64_t full = all.categories & ~*ret, part = full;
    expansion->spaces = xrealloc(expansion->spaces, (expansion->space_count + (1 << FORMULA_CROSSED_MAX)) *
                                                        sizeof *expansion->spaces);
    do {
        part = (part - full) & full; /* the next part of full; after all of it, none */
        struct term_space space = {all.product, *ret | part};
        if (has_space(expansion->spaces, expansion->space_count, space) ||
            (part != full && has_space(expansion->terms, count, space)))
            return refuse_rank_deficient(expansion, t);
        expansion->spaces[expansion->space_count++] = space;
    } while (part != full);
    return 0;
}

/* The level of COLUMN that is number INDEX of those that are no empty text; NULL: there are not that many. */
static const char *level_at(const struct model_column *column, size_t index) {
    for (size_t i = 0; i < column->level_count; i++)
        if (column->levels[i][0] != '\0' && index-- == 0)
            return column->levels[i];
    return NULL;
}

static size_t level_count(const struct model_column *column) {
    size_t count = column->level_count;
    for (size_t i = 0; i < column->level_count; i++)
        count -= column->levels[i][0] == '\0';
    return count;
}

/* Adds the term for the INDEX-th combination of the levels of T's categories; the last category varies
 * fastest. */
static void add_combination(struct expansion *expansion, const struct model_term *term, size_t t,
                            uint64_t contrasts, size_t index) {
    struct formula *ret = expansion->ret;
    struct model_term *dummy = &ret->terms[ret->term_count];
    ret->places[ret->term_count++] = expansion->formula->places[t];
    *dummy = model_term_copy(term);
    for (size_t f = term->factor_count; f-- > 0;) {
        if (!is_category(&term->factors[f]))
            continue;
        struct model_factor *factor = &dummy->factors[f];
        uint64_t bit = find_category(expansion, factor->column);
        const struct model_column *column = expansion->categories[__builtin_ctzll(bit)];
        size_t first = (contrasts & bit) != 0, dummies = level_count(column) - first;
        factor->level = xstrdup(level_at(column, index % dummies + first));
        free(factor->function);
        factor->function = NULL;
        index /= dummies;
    }
    if (expansion->terms[t].categories) {
        free(dummy->name);
        dummy->name = term_name(dummy, NULL);
    }
}

/* Adds to the result a term for each combination of levels of the categories of term T. */
static int expand_term(struct expansion *expansion, size_t t) {
    uint64_t contrasts;
    int r = choose_contrasts(expansion, t, &contrasts);
    if (r < 0)
        return r;
    size_t count = 1;
    for (size_t c = 0; c < expansion->category_count; c++) {
        uint64_t bit = UINT64_C(1) << c;
        size_t levels = level_count(expansion->categories[c]);
        if (expansion->terms[t].categories & bit)
            count *= levels - (levels > 0 && (contrasts & bit));
        if (expansion->ret->term_count + count > FORMULA_TERMS_MAX)
            return refuse_term(expansion, t,
                               "makes more than 1024 terms with a dummy variable for each level of "
                               "its categories; fit groups with --by instead");
    }
    for (size_t i = 0; i < count; i++)
        add_combination(expansion, &expansion->formula->terms[t], t, contrasts, i);
    return 0;
}

/* Replaces categories by dummy variables (formula.h), as treatment contrasts where a lower term is in the
 * formula. */
int formula_expand(const struct formula *formula, const struct model_column *columns, size_t column_count,
                   struct formula *ret, struct failure *failure) {
    cleanup(formula_clear) struct formula expanded = {.text = xstrdup(formula->text),
                                                      .note = formula->note ? xstrdup(formula->note) : NULL};
    cleanup(expansion_clear) struct expansion expansion = {.formula = formula,
                                                           .ret = &expanded,
                                                           .failure = failure,
                                                           .columns = columns,
                                                           .column_count = column_count};
    expanded.terms = xcalloc(FORMULA_TERMS_MAX, sizeof *expanded.terms);
    expanded.places = xcalloc(FORMULA_TERMS_MAX, sizeof *expanded.places);
    expansion.terms = xcalloc(formula->term_count + 1, sizeof *expansion.terms);
    int r = list_categories(&expansion);
    for (size_t t = 0; r == 0 && t < formula->term_count; t++)
        r = expand_term(&expansion, t);
    if (r == 0 && expanded.term_count == 0)
        r = failure_input(failure, NULL, 0, 0,
                          "terms '%.400s': no term is left, because the categories have a single "
                          "level, and the first level has no dummy variable",
                          formula->text);
    if (r < 0)
        return r;
    *ret = expanded;
    expanded = (struct formula){0};
    return 0;
}

/* ---- Units */

struct unit_power {
    const char *unit;
    int32_t power;
};

/* A unit with an operator or a digit inside gets parentheses when it is raised or divided by. */
static void append_unit(struct text *text, const char *unit, int32_t power, bool divided) {
    bool compound = strpbrk(unit, "./0123456789+-") && (power > 1 || divided);
    text_printf(text, compound ? "(%s)" : "%s", unit);
    if (power > 1)
        text_printf(text, "%d", power);
}

/* The unit of a term's coefficient: the response's unit over the units of the factors. NULL: some unit is not
 * known. The caller frees. */
char *formula_unit(const struct model_term *term, const char *response_unit,
                   const struct model_column *columns, size_t column_count) {
    cleanup_free struct unit_power *powers = xcalloc(term->factor_count + 1, sizeof *powers);
    size_t count = 1;
    powers[0] = (struct unit_power){response_unit, 1};
    for (size_t f = 0; f < term->factor_count; f++) {
        const struct model_factor *factor = &term->factors[f];
        size_t c = formula_find_column(columns, column_count, factor->column), i = 0;
        if (factor->level || factor->function)
            continue;
        if (c == column_count || !columns[c].about.unit || !response_unit)
            return NULL;
        while (i < count && strcmp(powers[i].unit, columns[c].about.unit) != 0)
            i++;
        powers[i].unit = columns[c].about.unit;
        powers[i].power -= factor->power;
        count += i == count;
    }
    cleanup(text_clear) struct text unit;
    text_init(&unit, SIZE_MAX);
    for (size_t i = 0; response_unit && i < count; i++)
        if (powers[i].power > 0 && strcmp(powers[i].unit, "1") != 0) {
            text_append_string(&unit, unit.length ? "." : "");
            append_unit(&unit, powers[i].unit, powers[i].power, false);
        }
    if (unit.length == 0)
        text_append_string(&unit, "1");
    for (size_t i = 0; response_unit && i < count; i++)
        if (powers[i].power < 0 && strcmp(powers[i].unit, "1") != 0) {
            text_append_string(&unit, "/");
            append_unit(&unit, powers[i].unit, -powers[i].power, true);
        }
    return response_unit ? xstrdup(unit.bytes) : NULL;
}

/* ---- Values */

/* VALUE to a whole power, by repeated squaring. */
double formula_power(double value, int32_t power) {
    uint32_t left = power < 0 ? -(uint32_t)power : (uint32_t)power;
    double square = value, product = 1;
    for (; left; left >>= 1) {
        if (left & 1)
            product *= square;
        square *= square;
    }
    return power < 0 ? 1 / product : product;
}

/* Multiplies by 1 where the column has the level, by NaN where its text is missing. */
static void multiply_dummy(const struct formula_column *column, const char *level, size_t count,
                           double *ret) {
    cleanup_free double *values = xcalloc(column->text_count + 1, sizeof *values);
    for (size_t i = 0; i < column->text_count; i++)
        values[i] = column->texts[i][0] == '\0' ? NAN : strcmp(column->texts[i], level) == 0;
    for (size_t i = 0; i < count; i++)
        ret[i] *= values[column->codes[i]];
}

static void multiply_number(const double *numbers, bool logarithm, int32_t power, size_t count, double *ret) {
    if (!logarithm && power == 1)
        for (size_t i = 0; i < count; i++)
            ret[i] *= numbers[i];
    else if (!logarithm)
        for (size_t i = 0; i < count; i++)
            ret[i] *= formula_power(numbers[i], power);
    else
        for (size_t i = 0; i < count; i++)
            ret[i] *= formula_power(log2(numbers[i]), power);
}

/* The value of TERM in COUNT rows, into RET. -ENOENT: a column is missing, whose name is *RET_MISSING. */
int formula_values(const struct model_term *term, const struct formula_column *columns, size_t column_count,
                   size_t count, double *ret, const char **ret_missing) {
    for (size_t i = 0; i < count; i++)
        ret[i] = 1;
    for (size_t f = 0; f < term->factor_count; f++) {
        const struct model_factor *factor = &term->factors[f];
        size_t c = 0;
        while (c < column_count && (strcmp(columns[c].name, factor->column) != 0 ||
                                    (factor->level ? !columns[c].codes : !columns[c].numbers)))
            c++;
        *ret_missing = factor->column;
        if (c == column_count)
            return -ENOENT;
        if (factor->level)
            multiply_dummy(&columns[c], factor->level, count, ret);
        else
            multiply_number(columns[c].numbers, factor->function != NULL, factor->power, count, ret);
    }
    return 0;
}
