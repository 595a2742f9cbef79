#include "engine/plugin/kernel-header.h"

#include "engine/plugin/kernel-text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { WORD_SIZE = KERNEL_NAME_MAX + 8 };

/* One kernel being written. The first append that fails is looked at in the end. */
struct writing {
    struct text *text;
    int error;
    const struct kernel *kernel;
    const struct predict_model *view;
    bool noisy;
    double seconds; /* in one unit of the response */
    char upper[WORD_SIZE];
    const char *factors[KERNEL_FACTORS_MAX]; /* columns, in order of first use */
    char arguments[KERNEL_FACTORS_MAX][WORD_SIZE];
    size_t factor_count;
    bool dropped[KERNEL_TERMS_MAX], any_dropped; /* terms that one part or another leaves out */
    struct failure *failure;
};

static void note(struct writing *writing, int r) {
    if (r < 0 && !writing->error)
        writing->error = r;
}

__attribute__((format(printf, 2, 3))) static void put(struct writing *writing, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    note(writing, text_vprintf(writing->text, format, arguments));
    va_end(arguments);
}

static void put_number(struct writing *writing, double value) {
    note(writing, kernel_text_number(writing->text, value));
}

/* A string literal; bytes that C might take for something else are written in octal. */
static void put_string(struct writing *writing, const char *text) {
    put(writing, "\"");
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < ' ' || byte > 126 || byte == '"' || byte == '\\' || byte == '?')
            put(writing, "\\%03o", byte);
        else
            put(writing, "%c", byte);
    }
    put(writing, "\"");
}

static void put_comment(struct writing *writing, const char *line) {
    put(writing, " * ");
    note(writing, kernel_text_comment(writing->text, line));
    put(writing, "\n");
}

/* ---- What a header cannot say */

static int check_model(const struct writing *writing) {
    const struct predict_model *view = writing->view;
    bool known = strcmp(view->kind, "linear") == 0 || strcmp(view->kind, "piecewise") == 0 ||
                 strcmp(view->kind, "maximum") == 0;
    if (!known)
        return failure_input(
            writing->failure, view->name, 0, 0,
            "a model of kind '%.64s' says nothing of one call; expected linear, piecewise or "
            "maximum",
            view->kind);
    if (view->term_count > KERNEL_TERMS_MAX)
        return failure_input(writing->failure, view->name, 0, 0,
                             "the model has %zu terms; expected at most %d", view->term_count,
                             (int)KERNEL_TERMS_MAX);
    return kernel_check_groups(view, writing->seconds, writing->noisy, writing->failure);
}

static int check_name(const struct writing *writing) {
    const char *name = writing->kernel->name;
    size_t length = strlen(name);
    bool good = length > 0 && length <= KERNEL_NAME_MAX && name[0] >= 'a' && name[0] <= 'z' &&
                strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
    if (good)
        return 0;
    return failure_input(
        writing->failure, NULL, 0, 0,
        "'%.64s' cannot be a part of names in C; expected small letters, digits and _ (%.128s "
        "can be given as NAME=MODEL)",
        name, writing->view->name);
}

/* ---- Arguments */

static bool is_letter(char byte) { /* whatever the locale */
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

/* Words that are keywords or macros to some compiler of C or C++, and functions that are called here. */
static bool is_reserved(const char *word) {
    static const char words[] =
        " alignas alignof and and_eq asm assert auto bitand bitor bool break case catch cdecl "
        "char char16_t char32_t char8_t class co_await co_return co_yield compl complex "
        "concept const const_cast consteval constexpr constinit continue decltype default "
        "delete do double dynamic_cast else enum errno explicit export extern fabs false far "
        "float for fortran friend goto hppa hpux i386 if imaginary inline int interface "
        "isfinite isnan linux log2 long m68k math_errhandling mips mutable namespace near new "
        "noexcept noreturn not not_eq nullptr operator or or_eq pascal pixel powerpc private "
        "protected public register reinterpret_cast requires restrict return sgi short signed "
        "signgam sizeof small sparc sqrt static static_assert static_cast stderr stdin stdout "
        "strcmp struct sun switch template this thread_local throw true try typedef typeid "
        "typename typeof typeof_unqual union unix unsigned using vax vector virtual void "
        "volatile wchar_t while xor xor_eq ";
    char key[WORD_SIZE + 2];
    snprintf(key, sizeof key, " %s ", word);
    return strstr(words, key) != NULL;
}

static bool is_taken(const struct writing *writing, const char *word) {
    if (strcmp(word, "I") == 0 || is_reserved(word)) /* I is of <complex.h> */
        return true;
    for (size_t i = 0; i < writing->factor_count; i++)
        if (strcmp(writing->arguments[i], word) == 0)
            return true;
    return false;
}

/* The column's name as far as C has letters for it; with x before it where it begins with none, where it is
 * of capitals, as macros are, and where it begins as the header's own names do; with a number where it is
 * taken. A single letter stays as it is. */
static void name_argument(const struct writing *writing, const char *column, char ret[static WORD_SIZE]) {
    char word[KERNEL_NAME_MAX + 2] = "x";
    size_t length = 1;
    for (const char *at = column; *at && length <= KERNEL_NAME_MAX; at++) {
        bool known = is_letter(*at) || (*at >= '0' && *at <= '9');
        if (known || word[length - 1] != '_')
            word[length++] = known ? *at : '_';
    }
    while (word[length - 1] == '_')
        length--;
    word[length] = '\0';
    bool capitals = length > 2 && strpbrk(word + 1, "abcdefghijklmnopqrstuvwxyz") == NULL;
    bool plain = is_letter(word[1]) && !capitals && strncasecmp(word + 1, "assay", 5) != 0;
    snprintf(ret, WORD_SIZE, "%s", word + plain);
    for (size_t i = 1; is_taken(writing, ret); i++)
        snprintf(ret, WORD_SIZE, "%s_%zu", word + plain, i);
}

static int add_factor(struct writing *writing, const struct plugin_factor *factor) {
    if (factor->level)
        return failure_input(writing->failure, writing->view->name, 0, 0,
                             "'%.128s' is a category; the header takes numbers only", factor->name);
    for (size_t i = 0; i < writing->factor_count; i++)
        if (strcmp(writing->factors[i], factor->name) == 0)
            return 0;
    if (writing->factor_count == KERNEL_FACTORS_MAX)
        return failure_input(writing->failure, writing->view->name, 0, 0,
                             "the model is over more than %d columns", (int)KERNEL_FACTORS_MAX);
    size_t i = writing->factor_count;
    name_argument(writing, factor->name, writing->arguments[i]);
    writing->factors[i] = factor->name;
    writing->factor_count++;
    return 0;
}

static int collect_factors(struct writing *writing) {
    const struct predict_model *view = writing->view;
    int r = 0;
    for (size_t t = 0; r == 0 && t < view->term_count; t++)
        for (size_t f = 0; r == 0 && f < view->terms[t].factor_count; f++)
            r = add_factor(writing, &view->terms[t].factors[f]);
    if (r == 0 && view->over)
        r = add_factor(writing, &(struct plugin_factor){.name = view->over, .power = 1});
    return r;
}

static const char *argument_of(const struct writing *writing, const char *column) {
    size_t i = 0;
    while (i + 1 < writing->factor_count && strcmp(writing->factors[i], column) != 0)
        i++;
    return writing->arguments[i];
}

/* "double m, double n, double k", or the arguments alone. */
static void put_arguments(struct writing *writing, bool types) {
    for (size_t i = 0; i < writing->factor_count; i++)
        put(writing, ", %s%s", types ? "double " : "", writing->arguments[i]);
}

/* ---- Coefficients */

static void find_dropped(struct writing *writing) {
    const struct predict_model *view = writing->view;
    for (size_t g = 0; g < view->group_count; g++)
        for (size_t p = 0; p < view->groups[g].part_count; p++)
            for (size_t t = 0; view->groups[g].parts[p].dropped && t < view->term_count; t++) {
                writing->dropped[t] |= view->groups[g].parts[p].dropped[t];
                writing->any_dropped |= writing->dropped[t];
            }
}

static void put_list(struct writing *writing, const double *values, const char *after) {
    put(writing, "{");
    for (size_t t = 0; t < writing->view->term_count; t++) {
        put(writing, "%s", t ? ", " : "");
        put_number(writing, values[t] * writing->seconds);
    }
    put(writing, "}%s", after);
}

static void put_part(struct writing *writing, const struct predict_part *part) {
    put(writing, "    {");
    put_number(writing, writing->view->over ? part->from : -INFINITY);
    put(writing, ", ");
    put_number(writing, writing->view->over ? part->to : INFINITY);
    put(writing, ", ");
    put_list(writing, part->estimates, "");
    for (size_t t = 0; writing->any_dropped && t < writing->view->term_count; t++)
        put(writing, "%s%d%s", t ? ", " : ", {", part->dropped && part->dropped[t],
            t + 1 < writing->view->term_count ? "" : "}");
    if (writing->noisy) {
        double coefficients[KERNEL_TERMS_MAX];
        const char *distribution = part->noise ? part->noise->distribution : NULL;
        for (size_t t = 0; t < writing->view->term_count; t++)
            coefficients[t] = kernel_sigma(part, t);
        put(writing, ", ");
        put_number(writing, part->noise ? part->noise->constant * writing->seconds : 0);
        put(writing, ", ");
        put_list(writing, coefficients,
                 distribution && strcmp(distribution, "half-normal") == 0 ? ", 1" : ", 0");
    }
    put(writing, "},\n");
}

/* Only where every group has one part: segments of several groups have no mean. */
static bool has_mean_group(const struct predict_model *view) {
    for (size_t g = 0; g < view->group_count; g++)
        if (view->groups[g].part_count != 1)
            return false;
    return true;
}

static void put_mean_group(struct writing *writing) {
    const struct predict_model *view = writing->view;
    double estimates[KERNEL_TERMS_MAX] = {0}, coefficients[KERNEL_TERMS_MAX] = {0};
    bool dropped[KERNEL_TERMS_MAX] = {false}; /* by all groups */
    double count = (double)view->group_count;
    struct plugin_noise noise = {.kind = "N-2", .coefficients = coefficients};
    const struct predict_part mean = {
        .from = -INFINITY, .to = INFINITY, .estimates = estimates, .dropped = dropped, .noise = &noise};
    for (size_t g = 0; g < view->group_count; g++) {
        const struct predict_part *part = &view->groups[g].parts[0];
        for (size_t t = 0; t < view->term_count; t++) {
            estimates[t] += part->estimates[t] / count;
            coefficients[t] += kernel_sigma(part, t) / count;
            dropped[t] = (g == 0 || dropped[t]) && part->dropped && part->dropped[t];
        }
        noise.constant += part->noise ? part->noise->constant / count : 0;
        noise.distribution = part->noise ? part->noise->distribution : noise.distribution;
    }
    put_part(writing, &mean);
}

static void put_tables(struct writing *writing) {
    const struct predict_model *view = writing->view;
    const char *name = writing->kernel->name;
    bool mean = has_mean_group(view);
    put(writing, "static const char *const assay_%s_names[ASSAY_%s_GROUPS] = {\n", name, writing->upper);
    for (size_t g = 0; g < view->group_count; g++) {
        put(writing, "    ");
        put_string(writing, view->groups[g].name);
        put(writing, ",\n");
    }
    put(writing, "};\n\nstatic const struct {\n    double from, to;%s%s%s\n    double mean[%zu];\n",
        view->over ? " /* of " : "", view->over ? argument_of(writing, view->over) : "",
        view->over ? " */" : "", view->term_count);
    if (writing->any_dropped)
        put(writing, "    unsigned char dropped[%zu];\n", view->term_count);
    if (writing->noisy)
        put(writing, "    double constant, sigma[%zu];\n    int half_normal;\n", view->term_count);
    put(writing, "} assay_%s_parts[] = {\n", name);
    if (mean)
        put_mean_group(writing);
    for (size_t g = 0; g < view->group_count; g++)
        for (size_t p = 0; p < view->groups[g].part_count; p++)
            put_part(writing, &view->groups[g].parts[p]);
    put(writing, "};\n\n/* Where the parts of the groups -1, 0, 1 ... begin. */\n");
    put(writing, "static const int assay_%s_first[] = {0", name);
    size_t first = mean;
    for (size_t g = 0; g < view->group_count; first += view->groups[g].part_count, g++)
        put(writing, ", %zu", first);
    put(writing, ", %zu};\n\n", first);
}

/* ---- Functions */

static void put_product(struct writing *writing, const struct plugin_term *term) {
    if (term->factor_count == 0)
        put(writing, "1");
    for (size_t f = 0; f < term->factor_count; f++) {
        const struct plugin_factor *factor = &term->factors[f];
        const char *argument = argument_of(writing, factor->name);
        int power = factor->power < 0 ? -factor->power : factor->power;
        put(writing, "%s", f ? " * " : "");
        put(writing, "%s", factor->power < 0 ? "(1 / (" : "");
        for (int i = 0; i < power; i++)
            put(writing, factor->function ? "%slog2(%s)" : "%s%s", i ? " * " : "", argument);
        put(writing, "%s", factor->power < 0 ? "))" : "");
    }
}

static void put_head(struct writing *writing, const char *what, const char *after) {
    put(writing, "static inline double assay_%s_%s(int assay_group", writing->kernel->name, what);
    put_arguments(writing, true);
    put(writing, "%s) {\n", after);
}

static void put_call(struct writing *writing, const char *what) {
    put(writing, "    double assay_%s = assay_%s_%s(assay_group", what, writing->kernel->name, what);
    put_arguments(writing, false);
    put(writing, ");\n");
}

static void put_find_part(struct writing *writing) {
    put(writing, "    int assay_part = assay_%s_part(assay_group, %s);\n", writing->kernel->name,
        writing->view->over ? argument_of(writing, writing->view->over) : "0");
}

/* The sum of the terms, or the greatest. A term that the part leaves out has no say, whatever its value;
 * engine/plugin/evaluation.c does the same. */
static void put_mean(struct writing *writing) {
    const struct predict_model *view = writing->view;
    const char *name = writing->kernel->name;
    bool greatest = strcmp(view->kind, "maximum") == 0;
    put_head(writing, "mean", "");
    put_find_part(writing);
    put(writing, "    double assay_mean = %s;\n%s    if (assay_part < 0)\n        return NAN;\n",
        greatest ? "-HUGE_VAL" : "0", greatest ? "    double assay_term;\n" : "");
    for (size_t t = 0; t < view->term_count; t++) {
        bool dropped = writing->dropped[t];
        const char *indent = dropped ? "        " : "    ";
        if (dropped)
            put(writing, "    if (!assay_%s_parts[assay_part].dropped[%zu])%s\n", name, t,
                greatest ? " {" : "");
        put(writing, "%s%s assay_%s_parts[assay_part].mean[%zu] * (", indent,
            greatest ? "assay_term =" : "assay_mean +=", name, t);
        put_product(writing, &view->terms[t]);
        put(writing, ");\n");
        if (greatest)
            put(writing,
                "%sassay_mean = assay_term > assay_mean || isnan(assay_term) ? assay_term : assay_mean;\n%s",
                indent, dropped ? "    }\n" : "");
    }
    put(writing, "    return isfinite(assay_mean) ? assay_mean : NAN;\n}\n\n");
}

static void put_sigma(struct writing *writing) {
    const char *name = writing->kernel->name;
    put_head(writing, "sigma", "");
    put_find_part(writing);
    put(writing,
        "    double assay_sigma;\n    if (assay_part < 0)\n        return NAN;\n"
        "    assay_sigma = assay_%s_parts[assay_part].constant;\n",
        name);
    for (size_t t = 0; t < writing->view->term_count; t++) {
        put(writing,
            "    if (assay_%s_parts[assay_part].sigma[%zu] != 0)\n"
            "        assay_sigma += assay_%s_parts[assay_part].sigma[%zu] * (",
            name, t, name, t);
        put_product(writing, &writing->view->terms[t]);
        put(writing, ");\n");
    }
    put(writing, "    return assay_sigma < 0 ? 0 : assay_sigma;\n}\n\n");
}

static void put_draw(struct writing *writing) {
    put_head(writing, "draw", ", double assay_z");
    put_call(writing, "mean");
    if (writing->noisy) {
        put_call(writing, "sigma");
        put_find_part(writing);
        put(writing,
            "    if (assay_part >= 0 && assay_%s_parts[assay_part].half_normal)\n"
            "        assay_mean += assay_sigma / sqrt(1 - 2 / 3.14159265358979323846) *\n"
            "                      (fabs(assay_z) - sqrt(2 / 3.14159265358979323846));\n"
            "    else\n        assay_mean += assay_sigma * assay_z;\n",
            writing->kernel->name);
    } else {
        put(writing, "    (void)assay_z;\n");
    }
    put(writing, "    return assay_mean < 0 ? 0 : assay_mean;\n}\n");
}

static void put_lookups(struct writing *writing) {
    const char *name = writing->kernel->name;
    put(writing,
        "static inline int assay_%s_group(const char *name) {\n"
        "    for (int i = 0; i < ASSAY_%s_GROUPS; i++)\n"
        "        if (strcmp(assay_%s_names[i], name) == 0)\n"
        "            return i;\n"
        "    return -1;\n}\n\n",
        name, writing->upper, name);
    put(writing,
        "/* The part of GROUP that holds at X, or the nearest; -1 where there is no such group. */\n"
        "static inline int assay_%s_part(int group, double x) {\n"
        "    int i, last;\n"
        "    if (group < -1 || group >= ASSAY_%s_GROUPS || isnan(x))\n"
        "        return -1;\n"
        "    i = assay_%s_first[group + 1];\n"
        "    last = assay_%s_first[group + 2] - 1;\n"
        "    if (i > last)\n"
        "        return -1;\n"
        "    while (i < last && assay_%s_parts[i + 1].from <= x)\n"
        "        i++;\n"
        "    if (i < last && x >= assay_%s_parts[i].to &&\n"
        "        x - assay_%s_parts[i].to > assay_%s_parts[i + 1].from - x)\n"
        "        i++;\n"
        "    return i;\n}\n\n",
        name, writing->upper, name, name, name, name, name, name);
}

/* ---- All of it */

/* What the domain of all groups is, so that whoever calls can see when it is left. */
static void put_domain(struct writing *writing) {
    const struct predict_model *view = writing->view;
    for (size_t i = 0; i < writing->factor_count; i++) {
        double least = INFINITY, greatest = -INFINITY;
        for (size_t g = 0; g < view->group_count; g++)
            for (size_t p = 0; p < view->groups[g].part_count; p++)
                for (size_t d = 0; d < view->groups[g].parts[p].domain_count; d++) {
                    const struct plugin_range *range = &view->groups[g].parts[p].domain[d];
                    if (strcmp(range->name, writing->factors[i]) != 0)
                        continue;
                    least = fmin(least, range->minimum);
                    greatest = fmax(greatest, range->maximum);
                }
        char line[512];
        snprintf(line, sizeof line, "  %s: %.200s, %s", writing->arguments[i], writing->factors[i],
                 least <= greatest ? "measured" : "it is not told where it was measured");
        if (least <= greatest)
            snprintf(line + strlen(line), sizeof line - strlen(line), " from %.15g to %.15g", least,
                     greatest);
        put_comment(writing, line);
    }
}

static int write_kernel(struct writing *writing) {
    size_t i = 0;
    int r = check_name(writing);
    r = r < 0 ? r : check_model(writing);
    r = r < 0 ? r : collect_factors(writing);
    if (r < 0)
        return r;
    find_dropped(writing);
    for (const char *at = writing->kernel->name; *at; at++)
        writing->upper[i++] = (char)toupper((unsigned char)*at);
    char line[512];
    snprintf(line, sizeof line, "%s: %.200s", writing->kernel->name, writing->kernel->origin);
    put(writing, "\n/*\n");
    put_comment(writing, line);
    put_domain(writing);
    put(writing, " */\n#define ASSAY_%s_GROUPS %zu\n\n", writing->upper, writing->view->group_count);
    put_tables(writing);
    put_lookups(writing);
    put_mean(writing);
    if (writing->noisy)
        put_sigma(writing);
    put_draw(writing);
    return 0;
}

int kernel_header_write(const struct kernel *kernels, size_t count, bool noisy, struct text *ret,
                        struct failure *failure) {
    struct writing writing = {.text = ret, .failure = failure};
    put(&writing, "/*\n * Models of kernels, written by assay " ASSAY_VERSION ". Seconds.\n *\n"
                  " * ASSAY_KERNEL_GROUPS groups, from 0 in the model's order; -1: the mean of all.\n"
                  " * assay_KERNEL_group(name): the group called so, or -1.\n"
                  " * assay_KERNEL_mean(group, sizes ...): what a call takes on average; NAN where there is "
                  "no such group, or no finite number.\n");
    put(&writing,
        "%s * assay_KERNEL_draw(group, sizes ..., z): what one call takes; z is a standard normal "
        "number of the caller's.\n */\n",
        noisy ? " * assay_KERNEL_sigma(group, sizes ...): its standard deviation.\n" : "");
    put(&writing,
        "#ifndef ASSAY_KERNELS_H\n#define ASSAY_KERNELS_H\n\n#include <math.h>\n#include <string.h>\n");
    for (size_t k = 0; k < count; k++) {
        struct writing one = {.text = ret,
                              .error = writing.error,
                              .kernel = &kernels[k],
                              .view = model_view(kernels[k].model),
                              .noisy = noisy,
                              .failure = failure};
        int r = model_time(kernels[k].model, &one.seconds, failure);
        r = r < 0 ? r : write_kernel(&one);
        if (r < 0)
            return r;
        writing.error = one.error;
    }
    put(&writing, "\n#endif\n");
    if (writing.error == -EFBIG)
        return failure_set(failure, -EFBIG, "the header is larger than %zu bytes", ret->limit);
    return writing.error ? failure_memory(failure) : 0;
}
