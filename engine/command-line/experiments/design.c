/* assay design: writes the table of a design, in the order in which it is to be measured. */
#include "engine/design/design.h"
#include "engine/command-line/experiments/design-next.h"
#include "engine/command-line/output.h"
#include "engine/command-line/verb.h"
#include "engine/documents/document.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void free_order(struct design_order **order) {
    design_order_free(*order);
}

/* Reads a whole number from 1 to MOST, which may be written as 1e6. */
static int read_count(const char *option, const char *text, double most, int64_t *ret,
                      struct failure *failure) {
    double value;
    if (!number_parse_double(text, strlen(text), &value) || value != floor(value) || value < 1 ||
        value > most)
        return failure_input(failure, NULL, 0, 0, "%s %.64s, expected a whole number from 1 to %.0f", option,
                             text, most);
    *ret = (int64_t)value;
    return 0;
}

/* ---- Factors on the command line */

/* "a,b,c" as its parts, which point into a copy of TEXT. */
struct parts {
    char *copy;
    const char **items;
    size_t count;
};

static void parts_clear(struct parts *parts) {
    free(parts->copy);
    free((void *)parts->items);
}

static void split_list(const char *text, struct parts *ret) {
    size_t count = 1;
    for (const char *at = text; *at; at++)
        count += *at == ',';
    *ret = (struct parts){.copy = xstrdup(text), .items = xcalloc(count, sizeof *ret->items)};
    for (char *at = ret->copy; at;)
        ret->items[ret->count++] = strsep(&at, ",");
}

/* Reads the levels after the = of NAME=LOW..HIGH[:STEP] or NAME=A,B,C. */
static int read_levels(const char *name, const char *text, struct levels *ret, struct failure *failure) {
    const struct levels_place nowhere = {0};
    const char *dots = strstr(text, "..");
    if (dots && !control_of_column(name)) { /* of a frequency, it is one of its texts */
        cleanup_free char *low = xstrndup(text, (size_t)(dots - text)), *high = xstrdup(dots + 2);
        char *colon = strchr(high, ':');
        if (colon)
            *colon = '\0';
        return levels_from_range(name, low, high, colon ? colon + 1 : NULL, nowhere, ret, failure);
    }
    cleanup(parts_clear) struct parts parts = {0};
    split_list(text, &parts);
    return levels_from_list(name, parts.items, parts.count, nowhere, ret, failure);
}

/* Splits "NAME=VALUE". *RET_NAME is the caller's, *RET_VALUE points into TEXT. FAILURE_INPUT: TEXT has no =;
 * EXPECTED says what was. */
static int split_setting(const char *text, const char *expected, char **ret_name, const char **ret_value,
                         struct failure *failure) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return failure_input(failure, NULL, 0, 0, "'%.64s', expected %s", text, expected);
    char *name = xstrndup(text, (size_t)(equals - text));
    *ret_name = name;
    *ret_value = equals + 1;
    return 0;
}

static int read_factor(const char *text, struct levels *ret, struct failure *failure) {
    cleanup_free char *name = NULL;
    const char *value = NULL;
    int r = split_setting(text, "a factor such as n=1..5000, n=100..5000:100 or nb=64,128,256", &name, &value,
                          failure);
    return r < 0 ? r : read_levels(name, value, ret, failure);
}

typedef int add_levels(struct design_specification *specification, struct levels *levels,
                       struct failure *failure);

static int add_factor(struct design_specification *specification, const char *text, add_levels *add_to,
                      struct failure *failure) {
    cleanup(levels_clear) struct levels levels = {0};
    int r = read_factor(text, &levels, failure);
    return r < 0 ? r : add_to(specification, &levels, failure);
}

/* ---- Uniform product */

/* Reads the options of a uniform-product design. */
static int read_product(const struct verb_arguments *arguments, struct uniform_product *product,
                        struct failure *failure) {
    static const char *const usual[] = {"m", "n", "k"};
    bool named = arguments->operand_count > 1;
    const char *const *names = named ? arguments->operands + 1 : usual;
    size_t count = named ? arguments->operand_count - 1 : 3;
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (strchr(names[i], '='))
            r = failure_input(failure, NULL, 0, 0, "'%.64s', expected only the name of a factor", names[i]);
        else
            r = uniform_product_add_factor(product, names[i], failure);
    }
    const char *text;
    if (r == 0 && (text = verb_value(arguments, "--max-product"))) {
        if (!number_parse_double(text, strlen(text), &product->max_product))
            r = failure_input(failure, NULL, 0, 0, "--max-product %.64s, expected a number", text);
    }
    const struct {
        const char *option;
        double most;
        int64_t *to;
    } counts[] = {{"--max-size", (double)DESIGN_INTEGER_MAX, &product->max_size},
                  {"--products", DESIGN_ROWS_MAX, &product->products},
                  {"--batch", DESIGN_ROWS_MAX, &product->batch}};
    for (size_t i = 0; r == 0 && i < sizeof counts / sizeof *counts; i++)
        if ((text = verb_value(arguments, counts[i].option)))
            r = read_count(counts[i].option, text, counts[i].most, counts[i].to, failure);
    for (size_t i = 0; r == 0 && (text = verb_value_at(arguments, "--fixed", i)); i++) {
        cleanup_free char *name = NULL;
        const char *size = NULL;
        r = split_setting(text, "a fixed factor such as k=128", &name, &size, failure);
        if (r == 0)
            r = uniform_product_fix(product, name, size, failure);
    }
    for (size_t i = 0; r == 0 && (text = verb_value_at(arguments, "--add", i)); i++) {
        cleanup(parts_clear) struct parts parts = {0};
        if (strcmp(text, "none") != 0)
            split_list(text, &parts);
        r = uniform_product_add_row(product, parts.items, parts.count, failure);
    }
    return r;
}

/* ---- The specification */

/* Makes the specification of a generated design from the first operand and the options. */
static int specify_kind(const struct verb_arguments *arguments, struct design_specification **ret,
                        struct failure *failure) {
    size_t kind = 0;
    cleanup(design_specification_cleanup) struct design_specification *specification = NULL;
    int r = design_specification_new(&specification, failure);
    if (r < 0)
        return r;
    while (strcmp(design_kind_names[kind], arguments->operands[0]) != 0) /* it is one of the actions */
        kind++;
    specification->kind = (enum design_kind)kind;
    const char *rows = verb_value(arguments, "--rows");
    int64_t count = 0;
    if (kind != DESIGN_KIND_FACTORIAL && kind != DESIGN_KIND_UNIFORM_PRODUCT)
        r = rows ? read_count("--rows", rows, DESIGN_ROWS_MAX, &count, failure)
                 : failure_input(failure, NULL, 0, 0, "%s needs --rows", design_kind_names[kind]);
    specification->rows = (uint64_t)count;
    if (r == 0 && kind == DESIGN_KIND_UNIFORM_PRODUCT)
        r = read_product(arguments, &specification->product, failure);
    for (size_t i = 1; r == 0 && kind != DESIGN_KIND_UNIFORM_PRODUCT && i < arguments->operand_count; i++)
        r = add_factor(specification, arguments->operands[i], design_specification_add_levels, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(specification);
    return 0;
}

/* Makes the specification from FILE: a table, also in a pipe, or a document with a design (a campaign, an
 * experiment, or the design itself). */
static int specify_from(const char *file, struct design_specification **ret, struct failure *failure) {
    cleanup(design_specification_cleanup) struct design_specification *specification = NULL;
    struct stat status;
    int r;
    if (strcmp(file, "-") == 0 || text_ends_in(file, ".csv") ||
        (stat(file, &status) == 0 && S_ISFIFO(status.st_mode))) {
        r = design_specification_new(&specification, failure);
        if (r < 0)
            return r;
        specification->kind = DESIGN_KIND_FILE;
        specification->file = xstrdup(file);
        *ret = take_pointer(specification);
        return 0;
    }
    cleanup(document_cleanup) struct document *document = NULL;
    r = document_read_yaml(file, &document, failure);
    if (r < 0)
        return r;
    const struct document_node *root = document->root, *node = document_get(root, "design");
    if (!node)
        node = document_get(root, "generate") || document_get(root, "file") ? root : NULL;
    if (!node)
        return failure_input(failure, file, root->line, root->column, "no 'design', expected one");
    cleanup_free char *folder = xstrndup(file, (size_t)(file_base_name(file) - file));
    return design_specification_from_node(document, node, folder, ret, failure);
}

static const struct {
    const char *option;
    int (*set)(struct design_specification *specification, const char *text, struct failure *failure);
} setters[] = {{"--seed", design_specification_set_seed},
               {"--order", design_specification_set_order},
               {"--repetitions", design_specification_set_repetitions},
               {"--blocks", design_specification_set_blocks}};

/* Makes the specification from --from, or from the operands, and sets the options that go with both. */
static int read_specification(const struct verb_arguments *arguments, struct design_specification **ret,
                              struct failure *failure) {
    const char *from = verb_value(arguments, "--from");
    cleanup(design_specification_cleanup) struct design_specification *specification = NULL;
    int r =
        from ? specify_from(from, &specification, failure) : specify_kind(arguments, &specification, failure);
    const char *text;
    for (size_t i = 0; r == 0 && i < sizeof setters / sizeof *setters; i++)
        if ((text = verb_value(arguments, setters[i].option)))
            r = setters[i].set(specification, text, failure);
    for (size_t i = 0; r == 0 && (text = verb_value_at(arguments, "--cross", i)); i++)
        r = add_factor(specification, text, design_specification_add_crossed, failure);
    for (size_t i = 0; r == 0 && (text = verb_value_at(arguments, "--compute", i)); i++) {
        cleanup_free char *name = NULL;
        const char *expression = NULL;
        r = split_setting(text, "a column such as 'lda=max(m, n, k)'", &name, &expression, failure);
        if (r == 0)
            r = design_specification_add_computed(specification, name, expression, 0, 0, failure);
    }
    if (r < 0)
        return r;
    *ret = take_pointer(specification);
    return 0;
}

/* ---- The verb */

enum { OUTPUT_MAX = 1 << 30 };

int design_output(const struct design *design, const struct design_order *order, const char *output,
                  struct failure *failure) {
    if (!output || strcmp(output, "-") == 0)
        return design_write(design, order, STDOUT_FILENO, "standard output", failure);
    cleanup(text_clear) struct text text;
    text_init(&text, OUTPUT_MAX);
    int r = design_append(design, order, &text, failure);
    return r < 0 ? r : file_write_output(output, text.bytes, text.length, failure);
}

/* Writes a design as CSV. The seed is printed, so that the design can be made again. */
static int make_design(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(design_specification_cleanup) struct design_specification *specification = NULL;
    cleanup(design_cleanup) struct design *design = NULL;
    cleanup(free_order) struct design_order *order = NULL;
    const char *from = verb_value(arguments, "--from"), *output = verb_value(arguments, "--output");
    bool to_file = output && strcmp(output, "-") != 0;
    int r = to_file ? output_check(output, &from, 1, failure) : 0;
    if (r == 0)
        r = read_specification(arguments, &specification, failure);
    /* A document may name the table that it takes. */
    if (r == 0 && to_file)
        r = output_check(output, (const char *const[]){specification->file}, 1, failure);
    if (r == 0)
        r = design_specification_make(specification, NULL, &design, &order, failure);
    if (r == 0 && design->column_count == 0)
        r = failure_input(failure, from, 0, 0, "this design has no table, so that there is nothing to write");
    if (r < 0)
        return r;
    uint64_t seed = design_specification_seed(specification);
    if (design_specification_is_random(specification) && specification->seed_drawn)
        fprintf(stderr, "seed %" PRIu64 " (drawn from the system; --seed %" PRIu64 " repeats this design)\n",
                seed, seed);
    else if (design_specification_is_random(specification))
        fprintf(stderr, "seed %" PRIu64 "\n", seed);
    if (specification->repeat.wanted)
        fprintf(stderr,
                "%" PRIu64 " repetitions, the most that 'repeat' allows: a run stops earlier when a row is "
                "known well enough, a table cannot; --repetitions R writes another number\n",
                specification->repetitions);
    return design_output(design, order, output, failure);
}

#define MADE "--seed --order --repetitions --cross --blocks --compute "

static const struct verb_action actions[] = {
    {"factorial", 1, SIZE_MAX, "factors, such as n=1..5000", MADE, make_design},
    {"uniform", 1, SIZE_MAX, "factors, such as n=1..5000", MADE "--rows", make_design},
    {"log-uniform", 1, SIZE_MAX, "factors, such as size=1..64MiB", MADE "--rows", make_design},
    {"latin-hypercube", 1, SIZE_MAX, "factors, such as n=1..5000", MADE "--rows", make_design},
    {"uniform-product", 0, SIZE_MAX, NULL, MADE "--max-product --max-size --products --batch --fixed --add",
     make_design},
    {"next", 1, 1, "a model",
     "--rows --criterion --budget --within --set --group --experiment --candidates --distinct "
     "--repeats --lack-of-fit --cost "
     "--weights "
     "--json",
     design_next},
    {"--from", 0, 0, "none", MADE "--from", make_design},
    {0},
};

int command_design(const struct verb_arguments *arguments, struct failure *failure) {
    bool from = verb_switch(arguments, "--from");
    if (from && arguments->operand_count > 0)
        return failure_input(failure, NULL, 0, 0,
                             "--from and a kind of design are both given; expected one of them");
    if (!from && arguments->operand_count == 0)
        return failure_input(failure, NULL, 0, 0,
                             "expected a kind of design, or --from FILE; see assay design --help");
    return verb_run_action(arguments, actions, from ? "--from" : arguments->operands[0], failure);
}
