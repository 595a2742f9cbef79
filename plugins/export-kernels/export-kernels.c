/*
 * The plugin export-kernels: models of kernels as a C header, for simulations that take a kernel's time from
 * its model instead of running it (SMPI with HPL's BLAS replaced; T. Cornebize, thesis, Grenoble 2021,
 * section 3.2). README.md has what is in the header.
 *
 * A column of the model is an argument x_COLUMN, so that no keyword, macro or other name of the header can be
 * meant; one whose name C cannot have is called by its number, x1.
 */
#include <assay/predict.h>
#include <assay/text.h>

#include <ctype.h>
#include <strings.h>

enum { NAME_SIZE = 72, NUMBER_MAX = 100000000, POWER_PRINTED = 3 /* as a product */ };
enum option { NOISE, FORM };
enum form { HEADER, HPL };

static const char *const kinds[] = {"linear", "piecewise", "maximum", NULL};
static const struct predict_role roles[] = {
    {"kernel", kinds, .is_time = true, .many = true,
     .help = "the durations of a kernel, given as NAME=FILE with the name for the "
             "kernel: dgemm=dgemm.json"},
    {.name = NULL},
};

static const char *const no_yes[] = {"no", "yes", NULL};
static const char *const forms[] = {[HEADER] = "header", [HPL] = "hpl-smpi", NULL};
static const struct plugin_parameter options[] = {
    [NOISE] = {"noise", PLUGIN_WORD, .choices = no_yes, .default_text = "yes",
               .help = "whether draws scatter about the mean (yes) or are the mean (no)"},
    [FORM] = {"form", PLUGIN_WORD, .choices = forms, .default_text = "header",
              .help = "what is written: a C header, or for dgemm the file dgemm_model.c of "
                      "HPL on SMPI"},
    {.name = NULL},
};

/* A kernel that is being written. */
struct kernel {
    const struct model *model;
    const struct predict_source *source;
    char name[NAME_SIZE], upper[NAME_SIZE];
    enum form form;
    bool noisy;
    double seconds; /* in a unit of the response */
    struct predict_output *output;
    struct plugin_message *message;
};

/* ---- Names */

/* Names the kernel by the user's word or the file's name, in lower case, with _ for other characters than
 * letters and digits. -EINVAL: it cannot be part of a C name. */
static int name_kernel(struct kernel *kernel) {
    const char *word = kernel->source->name;
    size_t length = strlen(word);
    if (length == 0 || length > NAME_SIZE - 8 || !isalpha((unsigned char)word[0]))
        return plugin_refuse(kernel->message, -EINVAL,
                             "the kernel's name '%.128s' cannot be part of a name in C; expected at "
                             "most %d letters, digits and _: give the model as NAME=%.128s",
                             word, NAME_SIZE - 8, kernel->source->file);
    for (size_t i = 0; i < length; i++) {
        kernel->name[i] = (char)(isalnum((unsigned char)word[i]) ? tolower((unsigned char)word[i]) : '_');
        kernel->upper[i] = (char)toupper((unsigned char)kernel->name[i]);
    }
    return 0;
}

/* The number of a column of the model, or column_count. */
static size_t find_column(const struct model *model, const char *name) {
    size_t i = 0;
    while (i < model->column_count && strcmp(model->columns[i].about.name, name) != 0)
        i++;
    return i;
}

/* The name in C of the argument for a column: x_NAME, or x with its number if C cannot have the name. In
 * BUFFER. */
static const char *argument_of(const struct model *model, size_t column, char buffer[static NAME_SIZE]) {
    const char *name = model->columns[column].about.name;
    size_t length = 0;
    while (isalnum((unsigned char)name[length]) || name[length] == '_')
        length++;
    if (length > 0 && length < NAME_SIZE - 2 && name[length] == '\0')
        snprintf(buffer, NAME_SIZE, "x_%s", name);
    else
        snprintf(buffer, NAME_SIZE, "x%zu", column + 1);
    return buffer;
}

/* ---- Models that cannot be exported */

/* -EINVAL unless all terms are products of numbers; for HPL, which need not include <math.h>, of m, n and
 * k. */
static int check_factors(const struct kernel *kernel) {
    const struct model *model = kernel->model;
    for (size_t t = 0; t < model->term_count; t++)
        for (size_t f = 0; f < model->terms[t].factor_count; f++) {
            const struct model_factor *factor = &model->terms[t].factors[f];
            bool good = !factor->level && find_column(model, factor->column) < model->column_count;
            if (kernel->form == HPL)
                good = good && strlen(factor->column) == 1 && strchr("mnk", factor->column[0]) &&
                       factor->power > 0 && factor->power <= POWER_PRINTED && !factor->function;
            if (!good)
                return plugin_refuse(kernel->message, -EINVAL,
                                     "the term '%.128s' of %.128s is not a product of %s",
                                     model->terms[t].name, kernel->source->file,
                                     kernel->form == HPL ? "m, n and k" : "numbers");
        }
    return 0;
}

/* The number by which HPL on SMPI selects GROUP: the node's (the first in its name), the cpu's, or 2 node +
 * cpu; -1: none. */
static long number_of(const struct model *model, const struct model_group *group) {
    long number = 0;
    size_t count = model->by_count;
    bool node = count > 0 && (strcasecmp(model->by[0], "node") == 0 || strcasecmp(model->by[0], "host") == 0),
         cpu = count > 0 && strcasestr(model->by[count - 1], "cpu");
    if (!(count == 1 && (node || cpu)) && !(count == 2 && node && cpu))
        return -1;
    for (size_t j = 0; j < count; j++) {
        const char *digits = strpbrk(group->labels[j], "0123456789");
        long own = digits ? strtol(digits, NULL, 10) : NUMBER_MAX;
        if (own >= NUMBER_MAX || (j == 1 && own > 1))
            return -1;
        number = 2 * number + own;
    }
    return number;
}

/* -EINVAL if HPL cannot select a group, or its noise is a mixture. */
static int check_groups(const struct kernel *kernel) {
    const struct model *model = kernel->model;
    for (size_t g = 0; g < model->group_count; g++) {
        const struct model_group *group = &model->groups[g];
        bool bad = kernel->form == HPL && number_of(model, group) < 0;
        for (size_t before = 0; kernel->form == HPL && before < g && !bad; before++)
            bad = number_of(model, &model->groups[before]) == number_of(model, group);
        if (bad)
            return plugin_refuse(kernel->message, -EINVAL,
                                 "the group '%.128s' of %.128s has no process number for HPL; expected "
                                 "groups by node (with a number in the name of the node), by node and "
                                 "cpu (0 or 1), or by cpu",
                                 group->name, kernel->source->file);
        for (size_t p = 0; p < group->part_count; p++)
            bad = bad || (kernel->noisy && group->parts[p].noise.kind == MODEL_NOISE_MIXTURE);
        if (bad)
            return plugin_refuse(kernel->message, -EINVAL,
                                 "the noise of the group '%.128s' of %.128s is a mixture, which cannot "
                                 "be exported; use a model with noise N-1 or N-2, or set noise=no",
                                 group->name, kernel->source->file);
    }
    return 0;
}

/* ---- Placeholders of the template */

/* Writes TEXT for a string literal, with bytes that C might read otherwise in octal. */
static void escape(struct predict_output *output, const char *text) {
    for (; *text; text++) {
        char octal[8];
        unsigned char byte = (unsigned char)*text;
        bool plain = byte >= ' ' && byte <= 126 && !strchr("\"\\?", byte);
        snprintf(octal, sizeof octal, "\\%03o", byte);
        output->text(output->context, plain ? text : octal, plain ? 1 : 4);
    }
}

#define put(kernel, ...) predict_print((kernel)->output, escape, __VA_ARGS__)

static void put_value(const struct kernel *kernel, double value) {
    if (isfinite(value))
        put(kernel, "%g, ", value);
    else
        put(kernel, value < 0 ? "-HUGE_VAL, " : "HUGE_VAL, ");
}

/* Writes the initialiser of a part. */
static void put_part(const struct kernel *kernel, const struct model_part *part) {
    const struct model_noise *noise = &part->noise;
    double sigma = kernel->noisy ? kernel->seconds : 0;
    put(kernel, "    {");
    if (kernel->form == HEADER) {
        put_value(kernel, part->from);
        put_value(kernel, part->to);
    }
    put_value(kernel, noise->constant * sigma);
    put(kernel, "%g, {", noise->half_normal ? 1.0 : 0.0);
    for (size_t t = 0; t < kernel->model->term_count; t++) {
        put(kernel, t ? ", {" : "{");
        put_value(kernel, part->estimates[t].estimate * kernel->seconds);
        put_value(kernel, noise->coefficients ? noise->coefficients[t] * sigma : 0);
        put(kernel, "}");
    }
    put(kernel, "}},\n");
}

/* Writes what placeholder WORD stands for, for all groups: names, numbers, first parts, or parts. */
static void put_groups(const struct kernel *kernel, char word) {
    size_t first = 0;
    for (size_t g = 0; g < kernel->model->group_count; g++) {
        const struct model_group *group = &kernel->model->groups[g];
        if (word == 'n')
            put(kernel, "    \"%s\",\n", group->name);
        if (word == 'f' || word == 'i')
            put(kernel, "%g, ", word == 'f' ? (double)first : (double)number_of(kernel->model, group));
        for (size_t p = 0; word == 'p' && p < group->part_count; p++)
            put_part(kernel, &group->parts[p]);
        first += group->part_count;
    }
    if (word == 'f')
        put(kernel, "%g", (double)first);
}

/* Writes what placeholder WORD stands for, for all columns: comments, parameters, arguments, or casts to
 * void. */
static void put_columns(const struct kernel *kernel, char word) {
    char argument[NAME_SIZE];
    for (size_t i = 0; i < kernel->model->column_count; i++) {
        const struct model_column *column = &kernel->model->columns[i];
        argument_of(kernel->model, i, argument);
        if (word == 'c')
            predict_print(kernel->output, predict_comment, " *   %s: %s, unit %s\n", argument,
                          column->about.name, column->about.unit ? column->about.unit : "not known");
        else
            put(kernel, word == 'A' ? ", double %s" : word == 'a' ? ", %s" : "    (void)%s;\n", argument);
    }
}

/* Writes the terms as C expressions, separated by commas. */
static void put_terms(const struct kernel *kernel) {
    const struct model *model = kernel->model;
    char argument[NAME_SIZE];
    for (size_t t = 0; t < model->term_count; t++) {
        put(kernel, t ? ", 1" : "1");
        for (size_t f = 0; f < model->terms[t].factor_count; f++) {
            const struct model_factor *factor = &model->terms[t].factors[f];
            const char *name = argument_of(model, find_column(model, factor->column), argument);
            if (factor->power < 0 || factor->power > POWER_PRINTED)
                put(kernel, factor->function ? " * pow(log2(%s), %g)" : " * pow(%s, %g)", name,
                    (double)factor->power);
            else
                for (int i = 0; i < factor->power; i++)
                    put(kernel, factor->function ? " * log2(%s)" : " * %s", name);
        }
    }
}

/* ---- The header */

static const char file_template[] =
    "/*\n"
    " * Models of kernels, written by %s. Seconds.\n"
    " *\n"
    " * ASSAY_KERNEL_GROUPS groups, from 0 in the model's order; -1 stands for the mean of all.\n"
    " * assay_KERNEL_group(name): the group called so, or -1.\n"
    " * assay_KERNEL_mean(group, sizes ...): what a call takes on average; NAN where there is no such group, "
    "or\n"
    " * no finite number.\n"
    " * assay_KERNEL_sigma(group, sizes ...): the standard deviation of one call.\n"
    " * assay_KERNEL_draw(group, sizes ..., z): what one call takes; z is a standard normal number.\n"
    " */\n"
    "#ifndef ASSAY_KERNELS_H\n"
    "#define ASSAY_KERNELS_H\n\n"
    "#include <math.h>\n"
    "#include <string.h>\n";

static const char kernel_template[] =
    "\n/*\n * $k: $o\n$c */\n"
    "#define ASSAY_$K_GROUPS $G\n\n"
    "static const char *const assay_$k_names[ASSAY_$K_GROUPS] = {\n$n};\n\n"
    "static const struct {\n"
    "    double from, to, constant;\n"
    "    int half_normal;\n"
    "    struct { double mean, sigma; } terms[$T];\n"
    "} assay_$k_parts[] = {\n$p};\n\n"
    "/* Where the parts of each group begin. */\n"
    "static const int assay_$k_first[] = {$f};\n\n"
    "static inline int assay_$k_group(const char *name) {\n"
    "    for (int i = 0; i < ASSAY_$K_GROUPS; i++)\n"
    "        if (strcmp(assay_$k_names[i], name) == 0)\n"
    "            return i;\n"
    "    return -1;\n"
    "}\n\n"
    "/* The part of GROUP that holds at X, or the nearest; -1: there is no such group. */\n"
    "static inline int assay_$k_part(int group, double x) {\n"
    "    int i, last;\n"
    "    if (group < 0 || group >= ASSAY_$K_GROUPS || isnan(x))\n"
    "        return -1;\n"
    "    i = assay_$k_first[group];\n"
    "    last = assay_$k_first[group + 1] - 1;\n"
    "    while (i < last && assay_$k_parts[i + 1].from <= x)\n"
    "        i++;\n"
    "    if (i < last && x >= assay_$k_parts[i].to &&\n"
    "        x - assay_$k_parts[i].to > assay_$k_parts[i + 1].from - x)\n"
    "        i++;\n"
    "    return i;\n"
    "}\n\n"
    "static inline double assay_$k_both(int group, double *sigma, int *half_normal$A) {\n"
    "    const double terms[$T] = {$t};\n"
    "    double mean = 0, product, other;\n"
    "    int i, part = assay_$k_part(group, $x);\n"
    "$v"
    "    *sigma = 0;\n"
    "    for (i = 0; group == -1 && i < ASSAY_$K_GROUPS; i++) {\n"
    "        mean += assay_$k_both(i, &other, half_normal$a) / ASSAY_$K_GROUPS;\n"
    "        *sigma += other / ASSAY_$K_GROUPS;\n"
    "    }\n"
    "    if (group == -1)\n"
    "        return mean;\n"
    "    *sigma = part < 0 ? NAN : assay_$k_parts[part].constant;\n"
    "    *half_normal = part >= 0 && assay_$k_parts[part].half_normal;\n"
    "    mean = part < 0 ? NAN : $s;\n"
    "    for (i = 0; part >= 0 && i < $T; i++) {\n"
    "        product = assay_$k_parts[part].terms[i].mean * terms[i];\n"
    "        if (assay_$k_parts[part].terms[i].mean != 0)\n"
    "            mean = $m;\n"
    "        if (assay_$k_parts[part].terms[i].sigma != 0)\n"
    "            *sigma += assay_$k_parts[part].terms[i].sigma * terms[i];\n"
    "    }\n"
    "    *sigma = *sigma < 0 ? 0 : *sigma;\n"
    "    return isfinite(mean) ? mean : NAN;\n"
    "}\n\n"
    "static inline double assay_$k_mean(int group$A) {\n"
    "    double sigma;\n"
    "    int half_normal;\n"
    "    return assay_$k_both(group, &sigma, &half_normal$a);\n"
    "}\n\n"
    "static inline double assay_$k_sigma(int group$A) {\n"
    "    double sigma;\n"
    "    int half_normal;\n"
    "    assay_$k_both(group, &sigma, &half_normal$a);\n"
    "    return sigma;\n"
    "}\n\n"
    "static inline double assay_$k_draw(int group$A, double z) {\n"
    "    double sigma, mean;\n"
    "    int half_normal = 0;\n"
    "    mean = assay_$k_both(group, &sigma, &half_normal$a);\n"
    "    if (half_normal) {\n"
    "        sigma /= sqrt(1 - 2 / 3.14159265358979323846);\n"
    "        z = fabs(z) - sqrt(2 / 3.14159265358979323846);\n"
    "    }\n"
    "    mean += sigma * z;\n"
    "    return mean < 0 ? 0 : mean;\n"
    "}\n";

/* A node that the model does not have gets the mean over all groups. */
static const char hpl_template[] =
    "/* The body of dgemm_time(M, N, K) of HPL on SMPI, in its src/blas/dgemm_model.c: seconds.\n * $o */\n"
    "static const int numbers[] = {$i};\n"
    "static const struct {\n"
    "    double constant;\n"
    "    int half_normal;\n"
    "    struct { double mean, sigma; } terms[$T];\n"
    "} parts[] = {\n$p};\n"
    "const double x_m = M, x_n = N, x_k = K, terms[] = {$t};\n"
    "double mu, sigma, mean = 0, deviation = 0;\n"
    "int found = 0, number = get_$w();\n"
    "(void)x_m, (void)x_n, (void)x_k;\n"
    "for (int all = 0; found == 0; all++)\n"
    "    for (int i = 0; i < $G; i++)\n"
    "        if (all || numbers[i] == number) {\n"
    "            mu = 0;\n"
    "            sigma = parts[i].constant;\n"
    "            for (int t = 0; t < $T; t++) {\n"
    "                mu += parts[i].terms[t].mean * terms[t];\n"
    "                sigma += parts[i].terms[t].sigma * terms[t];\n"
    "            }\n"
    "            mean += mu;\n"
    "            deviation += sigma > 0 ? sigma : 0;\n"
    "            found++;\n"
    "        }\n"
    "mean /= found;\n"
    "deviation /= found;\n"
    "if (deviation > 0)\n"
    "    mean += parts[0].half_normal ? random_halfnormal_shifted(0, deviation) : deviation * "
    "random_normal();\n"
    "return mean;\n";

/* Writes what the placeholder $WORD of a template stands for. */
static void put_word(const struct kernel *kernel, char word) {
    const struct model *model = kernel->model;
    bool greatest = strcmp(model->kind, "maximum") == 0;
    char argument[NAME_SIZE];
    if (word == 'k' || word == 'K')
        put(kernel, "%s", word == 'k' ? kernel->name : kernel->upper);
    else if (word == 'o')
        predict_print(kernel->output, predict_comment, "%s (SHA-256 %s)%s%s", kernel->source->file,
                      kernel->source->sha256, kernel->source->warning ? "; warning: " : "",
                      kernel->source->warning ? kernel->source->warning : "");
    else if (word == 'G' || word == 'T')
        put(kernel, "%g", (double)(word == 'G' ? model->group_count : model->term_count));
    else if (word == 't')
        put_terms(kernel);
    else if (word == 'x')
        put(kernel, "%s",
            model->over ? argument_of(model, find_column(model, model->over), argument) : "0.0");
    else if (word == 's')
        put(kernel, greatest ? "-HUGE_VAL" : "0");
    else if (word == 'm')
        put(kernel, greatest ? "product > mean || isnan(product) ? product : mean" : "mean + product");
    else if (word == 'w')
        put(kernel, model->by_count == 1 && !strcasestr(model->by[0], "cpu") ? "nodeid" : "cpuid");
    else if (strchr("nfpi", word))
        put_groups(kernel, word);
    else
        put_columns(kernel, word);
}

/* Writes one kernel by its template. -EINVAL: it cannot be exported. */
static int write_kernel(struct kernel *kernel) {
    int r = name_kernel(kernel);
    r = r < 0 ? r : check_factors(kernel);
    r = r < 0 ? r : check_groups(kernel);
    for (const char *text = kernel->form == HPL ? hpl_template : kernel_template; r == 0 && *text;) {
        size_t plain = strcspn(text, "$");
        kernel->output->text(kernel->output->context, text, plain);
        text += plain;
        if (*text == '$') {
            put_word(kernel, text[1]);
            text += 2;
        }
    }
    return r;
}

/* -EINVAL if two kernels have one name, or HPL's form gets more than one linear model. */
static int check_models(const struct predict_inputs *inputs, struct plugin_message *message) {
    const struct predict_source *sources = inputs->sources[0];
    bool hpl = inputs->options[FORM].number == HPL;
    if (hpl && (inputs->model_counts[0] > 1 || strcmp(inputs->models[0][0]->kind, "linear") != 0))
        return plugin_refuse(message, -EINVAL,
                             "%zu models are given, the first of the kind '%.64s'; this format "
                             "needs a single linear model of dgemm",
                             inputs->model_counts[0], inputs->models[0][0]->kind);
    for (size_t i = 0; i < inputs->model_counts[0]; i++)
        for (size_t k = 0; k < i; k++)
            if (strcasecmp(sources[k].name, sources[i].name) == 0)
                return plugin_refuse(message, -EINVAL,
                                     "two kernels are called '%.64s'; rename one with NAME=%.128s",
                                     sources[i].name, sources[i].file);
    return 0;
}

/* Writes the header, or the body of HPL's dgemm_time(). */
static int run(void *state, const struct predict_inputs *inputs, const struct plugin_value *parameters,
               double *ret_values, struct predict_output *output, struct plugin_message *message) {
    (void)state, (void)parameters, (void)ret_values;
    enum form form = (enum form)inputs->options[FORM].number;
    int r = check_models(inputs, message);
    if (form == HEADER)
        predict_print(output, predict_comment, file_template, inputs->engine);
    for (size_t i = 0; r == 0 && i < inputs->model_counts[0]; i++) {
        struct kernel kernel = {.model = inputs->models[0][i],
                                .source = &inputs->sources[0][i],
                                .form = form,
                                .noisy = inputs->options[NOISE].number > 0,
                                .seconds = inputs->models[0][i]->response_seconds,
                                .output = output,
                                .message = message};
        r = write_kernel(&kernel);
    }
    if (form == HEADER)
        predict_print(output, NULL, "\n#endif\n");
    return r;
}

ASSAY_PREDICT_PLUGIN("kernels", ASSAY_VERSION, "models of kernels as a C header: mean, sigma and draws",
                     .roles = roles, .options = options, .suffix = ".h", .run = run);
