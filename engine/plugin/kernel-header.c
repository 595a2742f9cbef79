#include "engine/plugin/kernel-header.h"

#include "engine/foundation/number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WORD_SIZE = KERNEL_NAME_MOST + 8 };

/* One kernel being written. The first append that fails is looked at in the end. */
struct writing {
    struct text *text;
    int error;
    const struct kernel *kernel;
    const struct predict_model *view;
    bool noisy;
    double seconds; /* in one unit of the response */
    char upper[WORD_SIZE];
    const char *factors[KERNEL_FACTORS_MOST]; /* columns, in order of first use */
    char arguments[KERNEL_FACTORS_MOST][WORD_SIZE];
    size_t factor_count;
    struct failure *failure;
};

__attribute__((format(printf, 2, 3))) static void put(struct writing *writing, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int r = text_vprintf(writing->text, format, arguments);
    va_end(arguments);
    if (r < 0 && !writing->error)
        writing->error = r;
}

/* As a literal of type double: the shortest that reads back. */
static void put_number(struct writing *writing, double value) {
    char digits[NUMBER_TEXT_SIZE];
    if (isinf(value)) {
        put(writing, "%sHUGE_VAL", value < 0 ? "-" : "");
        return;
    }
    number_format_double(value, digits);
    put(writing, "%s%s", digits, strpbrk(digits, ".e") ? "" : ".0");
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

/* A line of a comment, which what is in it cannot end. */
static void put_comment(struct writing *writing, const char *text) {
    put(writing, " * ");
    for (char before = ' '; *text; before = *text++)
        put(writing, "%c",
            (unsigned char)*text < ' ' || *text == 127 || (before == '*' && *text == '/') ? '?' : *text);
    put(writing, "\n");
}

/* ---- What a header cannot say */

static int check_part(const struct writing *writing, const struct predict_group *group,
                      const struct predict_part *part) {
    bool finite = true;
    for (size_t t = 0; t < writing->view->term_count; t++)
        finite = finite && isfinite(part->estimates[t]);
    if (!finite)
        return failure_input(writing->failure, writing->view->name, 0, 0,
                             "an estimate of the group '%.128s' is not finite", group->name);
    if (writing->noisy && part->noise && strncmp(part->noise->kind, "N-", 2) != 0)
        return failure_input(writing->failure, writing->view->name, 0, 0,
                             "the noise of the group '%.128s' is a %.32s, which the header has no words for; "
                             "--no-noise leaves it out",
                             group->name, part->noise->kind);
    return 0;
}

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
    if (view->term_count > KERNEL_TERMS_MOST)
        return failure_input(writing->failure, view->name, 0, 0,
                             "the model has %zu terms; expected at most %d", view->term_count,
                             (int)KERNEL_TERMS_MOST);
    int r = 0;
    for (size_t g = 0; r == 0 && g < view->group_count; g++)
        for (size_t p = 0; r == 0 && p < view->groups[g].part_count; p++)
            r = check_part(writing, &view->groups[g], &view->groups[g].parts[p]);
    return r;
}

static int check_name(const struct writing *writing) {
    const char *name = writing->kernel->name;
    size_t length = strlen(name);
    bool good = length > 0 && length <= KERNEL_NAME_MOST && name[0] >= 'a' && name[0] <= 'z' &&
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

static bool is_taken(const struct writing *writing, const char *word) {
    static const char *const words[] = {
        "auto",   "break",    "case",     "char",     "const", "continue", "default", "do",     "double",
        "else",   "enum",     "extern",   "float",    "for",   "goto",     "if",      "inline", "int",
        "long",   "register", "restrict", "return",   "short", "signed",   "sizeof",  "static", "struct",
        "switch", "typedef",  "union",    "unsigned", "void",  "volatile", "while",   "group",  "part",
        "z",      "bool",     "class",    "new",      "this"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], word) == 0)
            return true;
    for (size_t i = 0; i < writing->factor_count; i++)
        if (strcmp(writing->arguments[i], word) == 0)
            return true;
    return false;
}

static int add_factor(struct writing *writing, const struct plugin_factor *factor) {
    if (factor->level)
        return failure_input(writing->failure, writing->view->name, 0, 0,
                             "'%.128s' is a category; the header takes numbers only", factor->name);
    for (size_t i = 0; i < writing->factor_count; i++)
        if (strcmp(writing->factors[i], factor->name) == 0)
            return 0;
    if (writing->factor_count == KERNEL_FACTORS_MOST)
        return failure_input(writing->failure, writing->view->name, 0, 0,
                             "the model is over more than %d columns", (int)KERNEL_FACTORS_MOST);
    char word[WORD_SIZE];
    size_t length = 0;
    for (const char *at = factor->name; *at && length < KERNEL_NAME_MOST; at++)
        word[length++] = isalnum((unsigned char)*at) ? *at : '_';
    word[length] = '\0';
    size_t i = writing->factor_count;
    if (isalpha((unsigned char)word[0]) && !is_taken(writing, word))
        snprintf(writing->arguments[i], WORD_SIZE, "%s", word);
    else
        snprintf(writing->arguments[i], WORD_SIZE, "x%zu", i + 1);
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

static double noise_of(const struct predict_part *part, size_t term) {
    if (!part->noise)
        return 0;
    double value = part->noise->coefficients ? part->noise->coefficients[term] : 0;
    return isfinite(value) ? value : 0;
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
    if (writing->noisy) {
        double coefficients[KERNEL_TERMS_MOST];
        const char *distribution = part->noise ? part->noise->distribution : NULL;
        for (size_t t = 0; t < writing->view->term_count; t++)
            coefficients[t] = noise_of(part, t);
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
    double estimates[KERNEL_TERMS_MOST] = {0}, coefficients[KERNEL_TERMS_MOST] = {0};
    double count = (double)view->group_count;
    struct plugin_noise noise = {.kind = "N-2", .coefficients = coefficients};
    const struct predict_part mean = {
        .from = -INFINITY, .to = INFINITY, .estimates = estimates, .noise = &noise};
    for (size_t g = 0; g < view->group_count; g++) {
        const struct predict_part *part = &view->groups[g].parts[0];
        for (size_t t = 0; t < view->term_count; t++) {
            estimates[t] += part->estimates[t] / count;
            coefficients[t] += noise_of(part, t) / count;
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

/* mean or sigma: both are sums over the terms, a "maximum" has the greatest of its terms. */
static void put_function(struct writing *writing, const char *what, bool sigma) {
    const struct predict_model *view = writing->view;
    const char *name = writing->kernel->name;
    bool greatest = !sigma && strcmp(view->kind, "maximum") == 0;
    put(writing, "static inline double assay_%s_%s(int group", name, what);
    put_arguments(writing, true);
    put(writing, ") {\n    int part = assay_%s_part(group, %s);\n", name,
        view->over ? argument_of(writing, view->over) : "0");
    put(writing, "    double value = %s;\n    if (part < 0)\n        return NAN;\n",
        sigma      ? "0"
        : greatest ? "-HUGE_VAL"
                   : "0");
    if (sigma)
        put(writing, "    value = assay_%s_parts[part].constant;\n", name);
    for (size_t t = 0; t < view->term_count; t++) {
        put(writing, "    value %s assay_%s_parts[part].%s[%zu] * (", greatest ? "= fmax(value," : "+=", name,
            sigma ? "sigma" : "mean", t);
        put_product(writing, &view->terms[t]);
        put(writing, ")%s;\n", greatest ? ")" : "");
    }
    put(writing, "    return %s;\n}\n\n", sigma ? "value > 0 ? value : 0" : "value");
}

static void put_draw(struct writing *writing) {
    const char *name = writing->kernel->name;
    put(writing, "static inline double assay_%s_draw(int group", name);
    put_arguments(writing, true);
    put(writing, ", double z) {\n    double value = assay_%s_mean(group", name);
    put_arguments(writing, false);
    put(writing, ");\n");
    if (writing->noisy) {
        put(writing, "    double sigma = assay_%s_sigma(group", name);
        put_arguments(writing, false);
        put(writing,
            ");\n    int part = assay_%s_part(group, %s);\n"
            "    if (part >= 0 && assay_%s_parts[part].half_normal)\n"
            "        value += sigma / sqrt(1 - 2 / 3.14159265358979323846) *\n"
            "                 (fabs(z) - sqrt(2 / 3.14159265358979323846));\n"
            "    else\n        value += sigma * z;\n",
            name, writing->view->over ? argument_of(writing, writing->view->over) : "0", name);
    } else {
        put(writing, "    (void)z;\n");
    }
    put(writing, "    return value < 0 ? 0 : value;\n}\n");
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
        "/* The part of GROUP that holds at X, or -1. */\n"
        "static inline int assay_%s_part(int group, double x) {\n"
        "    if (group < -1 || group >= ASSAY_%s_GROUPS)\n"
        "        return -1;\n"
        "    for (int i = assay_%s_first[group + 1]; i < assay_%s_first[group + 2]; i++)\n"
        "        if (assay_%s_parts[i].from <= x && x < assay_%s_parts[i].to)\n"
        "            return i;\n"
        "    return -1;\n}\n\n",
        name, writing->upper, name, name, name, name);
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
    put_function(writing, "mean", false);
    if (writing->noisy)
        put_function(writing, "sigma", true);
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
                  "no such group.\n");
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
