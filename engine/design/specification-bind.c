/* From the `design:` of a document to a struct design_specification. */
#include "engine/design/design.h"
#include "engine/design/specification.h"
#include "engine/documents/bind.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_INTEGER ((double)DESIGN_INTEGER_MAX)
#define WRITTEN(key_, type_, member)                                                                         \
    .key = key_, .type = type_, .offset = offsetof(struct design_specification, member)

static const struct bind_field fields[] = {
    {WRITTEN("generate", BIND_CHOICE, kind), .choices = design_kind_names},
    {WRITTEN("file", BIND_TEXT, file)},
    {.key = "factors", .type = BIND_LATER, .kinds = 1 << DOCUMENT_SEQUENCE | 1 << DOCUMENT_MAPPING},
    {WRITTEN("rows", BIND_INTEGER, rows), .minimum = 1, .maximum = DESIGN_ROWS_MAX},
    {WRITTEN("max-product", BIND_NUMBER, product.max_product), .minimum = 1, .maximum = MOST_INTEGER},
    {WRITTEN("max-size", BIND_INTEGER, product.max_size), .minimum = 1, .maximum = MOST_INTEGER},
    {WRITTEN("products", BIND_INTEGER, product.products), .minimum = 1, .maximum = DESIGN_ROWS_MAX},
    {WRITTEN("batch", BIND_INTEGER, product.batch), .minimum = 1, .maximum = DESIGN_ROWS_MAX},
    {.key = "fixed", .type = BIND_LATER, .kinds = 1 << DOCUMENT_MAPPING},
    {.key = "add", .type = BIND_LATER, .kinds = 1 << DOCUMENT_SEQUENCE},
    {.key = "cross", .type = BIND_LATER, .kinds = 1 << DOCUMENT_MAPPING},
    {.key = "compute", .type = BIND_LATER, .kinds = 1 << DOCUMENT_MAPPING},
    {WRITTEN("repetitions", BIND_INTEGER, repetitions), .minimum = 1, .maximum = DESIGN_REPETITIONS_MAX},
    {.key = "repeat", .type = BIND_LATER},
    {WRITTEN("blocks", BIND_INTEGER, blocks), .minimum = 1, .maximum = DESIGN_REPETITIONS_MAX},
    {WRITTEN("order", BIND_CHOICE, order), .choices = design_order_names},
    {.key = "seed", .type = BIND_LATER, .kinds = 1 << DOCUMENT_NUMBER | 1 << DOCUMENT_TEXT},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

enum {
    DRAWS_ROWS = 1 << DESIGN_KIND_UNIFORM | 1 << DESIGN_KIND_LOG_UNIFORM | 1 << DESIGN_KIND_LATIN_HYPERCUBE,
    IS_PRODUCT = 1 << DESIGN_KIND_UNIFORM_PRODUCT,
    GENERATES = 1 << DESIGN_KIND_FACTORIAL | DRAWS_ROWS | IS_PRODUCT,
};

/* Keys that only some kinds use: a bit 1 << kind for each. */
static const struct {
    const char *key;
    unsigned kinds;
} uses[] = {
    {"factors", GENERATES},   {"rows", DRAWS_ROWS},  {"max-product", IS_PRODUCT}, {"max-size", IS_PRODUCT},
    {"products", IS_PRODUCT}, {"batch", IS_PRODUCT}, {"fixed", IS_PRODUCT},       {"add", IS_PRODUCT},
};

struct binding {
    const struct document *document;
    const struct document_node *node;
    struct design_specification *specification;
    struct failure *failure;
};

__attribute__((format(printf, 3, 4))) static int
refuse(const struct binding *binding, const struct document_node *at, const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return bind_refuse(binding->document, at, binding->failure, "%s", sentence);
}

/* Gives a failure without a place the place of AT. */
static int place_at(const struct binding *binding, const struct document_node *at, int code) {
    return failure_place(binding->failure, code, binding->document->file, at->line, at->column);
}

static bool is_scalar(const struct document_node *node) {
    return node->kind == DOCUMENT_NUMBER || node->kind == DOCUMENT_TEXT || node->kind == DOCUMENT_BOOLEAN;
}

/* The texts of a sequence of scalars. The caller frees the array; the texts are the document's. */
static int scalars_of(const struct binding *binding, const struct document_node *sequence, const char *what,
                      const char ***ret) {
    cleanup_free const char **texts = xcalloc(sequence->count + 1, sizeof *texts);
    for (size_t i = 0; i < sequence->count; i++) {
        const struct document_node *item = sequence->items[i];
        if (!is_scalar(item))
            return refuse(binding, item, "%s has %s, expected plain values", what,
                          document_kind_name(item->kind));
        texts[i] = item->text;
    }
    *ret = take_pointer(texts);
    return 0;
}

/* ---- Levels */

struct written_levels {
    char *from, *to, *step, *steps;
    int scale;
    const struct document_node *choices;
};
static const char *const scale_names[] = {"linear", "log", NULL};
#define LEVEL(key_, type_, member)                                                                           \
    .key = key_, .type = type_, .offset = offsetof(struct written_levels, member)

static const struct bind_field level_fields[] = {
    {LEVEL("from", BIND_TEXT, from)},
    {LEVEL("to", BIND_TEXT, to)},
    {LEVEL("step", BIND_TEXT, step)},
    {LEVEL("steps", BIND_TEXT, steps)},
    {LEVEL("scale", BIND_CHOICE, scale), .choices = scale_names},
    {LEVEL("choices", BIND_NODE, choices), .kinds = 1 << DOCUMENT_SEQUENCE},
};
enum { LEVEL_FIELD_COUNT = sizeof level_fields / sizeof *level_fields };

static void written_levels_clear(struct written_levels *written) {
    bind_clear(level_fields, LEVEL_FIELD_COUNT, written);
}

static struct levels_place place_of(const struct binding *binding, const struct document_node *node) {
    return (struct levels_place){.file = binding->document->file, .line = node->line, .column = node->column};
}

static bool is_number(const char *text, size_t length) {
    double value;
    return number_parse_double(text, length, &value);
}

/* -EINVAL for a range written as on the command line, 1..100, which would be taken for a text. Someone who
 * means the text writes {choices: ["1..100"]}. */
static int refuse_dots(const struct binding *binding, const char *name, const struct document_node *value) {
    const char *dots = value->text ? strstr(value->text, "..") : NULL;
    if (!dots || control_of_column(name)) /* of a frequency, it is one of its texts */
        return 0;
    const char *high = dots + 2;
    size_t length = strcspn(high, ":");
    if (!is_number(value->text, (size_t)(dots - value->text)) || !is_number(high, length))
        return 0;
    return refuse(binding, value,
                  "'%s' is the text '%.64s'; a range is written {from: %.*s, to: "
                  "%.*s%s%.32s}",
                  name, value->text, (int)(dots - value->text), value->text, (int)length, high,
                  high[length] ? ", step: " : "", high[length] ? high + length + 1 : "");
}

/* Makes levels of a sequence: a list, or, if IS_RANGE, low and high. */
static int levels_of_sequence(const struct binding *binding, const char *name,
                              const struct document_node *node, bool is_range, struct levels *ret) {
    cleanup_free const char **texts = NULL;
    int r = scalars_of(binding, node, name, &texts);
    if (r < 0)
        return r;
    if (!is_range)
        return levels_from_list(name, texts, node->count, place_of(binding, node), ret, binding->failure);
    if (node->count != 2)
        return refuse(binding, node,
                      "the range of '%s' has %zu values, expected two, low and high, or {choices: [...]}",
                      name, node->count);
    return levels_from_range(name, texts[0], texts[1], NULL, place_of(binding, node), ret, binding->failure);
}

/* Makes levels of a mapping: from and to, with step or steps, or choices. */
static int levels_of_mapping(const struct binding *binding, const char *name,
                             const struct document_node *node, struct levels *ret) {
    cleanup(written_levels_clear) struct written_levels written = {0};
    int r = bind_mapping(binding->document, node, name, level_fields, LEVEL_FIELD_COUNT, &written,
                         binding->failure);
    if (r < 0)
        return r;
    bool is_range = written.from && written.to,
         part_of_range = written.from || written.to || written.step || written.steps;
    if (written.choices ? part_of_range : !is_range)
        return refuse(binding, node,
                      "'%s' expects either 'from' and 'to', with 'step' or 'steps' if wanted, or 'choices'",
                      name);
    if (written.steps && written.step)
        return refuse(binding, node, "'%s' has both 'step' and 'steps'; remove one", name);
    if (!written.steps && document_get(node, "scale"))
        return refuse(binding, node, "'%s' has a 'scale' without 'steps'; set both", name);
    if (written.choices)
        return levels_of_sequence(binding, name, written.choices, false, ret);
    if (written.steps)
        return levels_from_steps(name, written.from, written.to, written.steps, written.scale == 1,
                                 place_of(binding, node), ret, binding->failure);
    return levels_from_range(name, written.from, written.to, written.step, place_of(binding, node), ret,
                             binding->failure);
}

/* Makes the levels of factor NAME from a list, a range or a single value. */
static int read_levels(const struct binding *binding, const char *name, const struct document_node *node,
                       bool sequence_is_range, struct levels *ret) {
    int r = refuse_dots(binding, name, node);
    for (size_t i = 0; r == 0 && node->kind == DOCUMENT_SEQUENCE && i < node->count; i++)
        r = refuse_dots(binding, name, node->items[i]);
    if (r < 0)
        return r;
    if (node->kind == DOCUMENT_SEQUENCE)
        return levels_of_sequence(binding, name, node, sequence_is_range, ret);
    if (node->kind == DOCUMENT_MAPPING)
        return levels_of_mapping(binding, name, node, ret);
    if (is_scalar(node))
        return levels_from_list(name, (const char *const[]){node->text}, 1, place_of(binding, node), ret,
                                binding->failure);
    return refuse(binding, node, "'%s' is %s, expected a list of values or a range", name,
                  document_kind_name(node->kind));
}

/* Calls ADD for the levels of each of FACTORS, which the document calls KEY. DRAWN: a sequence is a range. */
static int bind_factors(const struct binding *binding, const char *key, const struct document_node *factors,
                        bool drawn,
                        int (*add)(struct design_specification *, struct levels *, struct failure *)) {
    if (factors->kind != DOCUMENT_MAPPING)
        return refuse(binding, factors, "'%s' is %s, expected a mapping of factors to their values", key,
                      document_kind_name(factors->kind));
    for (size_t i = 0; i < factors->count; i++) {
        cleanup(levels_clear) struct levels levels = {0};
        const char *name = factors->keys[i]->text;
        int r = read_levels(binding, name, factors->items[i], drawn && !control_of_column(name), &levels);
        r = r < 0 ? r : add(binding->specification, &levels, binding->failure);
        if (r < 0)
            return r;
    }
    return factors->count > 0 ? 0
                              : refuse(binding, factors, "'%s' is empty, expected at least one factor", key);
}

/* ---- Uniform product */

/* Reads the rows of 'add'. */
static int bind_added(const struct binding *binding, const struct document_node *add) {
    struct uniform_product *product = &binding->specification->product;
    int r = uniform_product_add_row(product, NULL, 0, binding->failure);
    for (size_t i = 0; r == 0 && i < add->count; i++) {
        const struct document_node *item = add->items[i];
        cleanup_free const char **texts = NULL;
        if (item->kind != DOCUMENT_SEQUENCE || item->count == 0)
            return refuse(binding, item, "'add' has %s, expected rows such as [2048, 2048, 2048]",
                          item->kind == DOCUMENT_SEQUENCE ? "an empty row" : document_kind_name(item->kind));
        r = scalars_of(binding, item, "'add'", &texts);
        r = r < 0 ? r : uniform_product_add_row(product, texts, item->count, binding->failure);
        place_at(binding, item, r);
    }
    return r;
}

/* Reads the factors, fixed sizes and added rows of a uniform product. */
static int bind_product(const struct binding *binding, const struct document_node *factors) {
    struct uniform_product *product = &binding->specification->product;
    const struct document_node *fixed = document_get(binding->node, "fixed"),
                               *add = document_get(binding->node, "add");
    if (factors->kind != DOCUMENT_SEQUENCE)
        return refuse(binding, factors, "'factors' is %s, expected a list of names such as [m, n, k]",
                      document_kind_name(factors->kind));
    cleanup_free const char **names = NULL;
    int r = scalars_of(binding, factors, "'factors'", &names);
    for (size_t i = 0; r == 0 && i < factors->count; i++)
        r = place_at(binding, factors->items[i],
                     uniform_product_add_factor(product, names[i], binding->failure));
    for (size_t i = 0; r == 0 && fixed && i < fixed->count; i++) {
        const struct document_node *size = fixed->items[i];
        if (!is_scalar(size))
            return refuse(binding, size, "'%s' is fixed at %s, expected a size", fixed->keys[i]->text,
                          document_kind_name(size->kind));
        r = place_at(binding, size,
                     uniform_product_fix(product, fixed->keys[i]->text, size->text, binding->failure));
    }
    return r == 0 && add ? bind_added(binding, add) : r;
}

/* ---- The specification */

/* Finds the kind of design, and refuses keys that it does not use or lacks. */
static int check_kind(const struct binding *binding) {
    const struct document_node *node = binding->node, *generate = document_get(node, "generate"),
                               *file = document_get(node, "file"), *factors = document_get(node, "factors");
    struct design_specification *specification = binding->specification;
    if (generate && file)
        return refuse(binding, file, "both 'file' and 'generate' are set; remove one");
    if (!generate)
        specification->kind = file ? DESIGN_KIND_FILE : factors ? DESIGN_KIND_FACTORIAL : DESIGN_KIND_SINGLE;
    unsigned kind = 1u << specification->kind;
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        const struct document_node *value = document_get(node, uses[i].key);
        if (!value || uses[i].kinds & kind)
            continue;
        if (specification->kind == DESIGN_KIND_SINGLE)
            return refuse(binding, value, "'%s' is set without 'generate'; set 'generate', too", uses[i].key);
        return refuse(binding, value, "'%s' is not used by %s", uses[i].key,
                      file ? "a design from a file" : design_kind_names[specification->kind]);
    }
    if (kind & DRAWS_ROWS && specification->rows == 0)
        return refuse(binding, node, "'%s' needs 'rows'", design_kind_names[specification->kind]);
    if (generate && !factors)
        return refuse(binding, node, "'%s' needs 'factors'", design_kind_names[specification->kind]);
    return 0;
}

/* Sets the CSV file of the design; a relative path begins in FOLDER. */
static int set_file(const struct binding *binding, const struct document_node *at, const char *folder) {
    const char *path = at->text;
    if (path[0] == '\0')
        return refuse(binding, at, "an empty path, expected that of a CSV file");
    binding->specification->kind = DESIGN_KIND_FILE;
    free(binding->specification->file);
    binding->specification->file =
        path[0] == '/' || !folder || !folder[0] ? xstrdup(path) : file_join(folder, path);
    return 0;
}

/* Reads 'compute', the expressions of computed columns. */
static int bind_computed(const struct binding *binding, const struct document_node *compute) {
    for (size_t i = 0; i < compute->count; i++) {
        const struct document_node *value = compute->items[i];
        if (!is_scalar(value))
            return refuse(binding, value, "'%s' is %s, expected an expression", compute->keys[i]->text,
                          document_kind_name(value->kind));
        int r = design_specification_add_computed(binding->specification, compute->keys[i]->text, value->text,
                                                  value->line, value->column, binding->failure);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Reads 'repeat', which replaces 'repetitions' and 'blocks'. */
static int bind_repeat(const struct binding *binding, const struct document_node *repeat) {
    static const char *const others[] = {"repetitions", "blocks"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const struct document_node *other = document_get(binding->node, others[i]);
        if (other)
            return refuse(binding, other, "both '%s' and 'repeat' are set; remove one", others[i]);
    }
    struct design_specification *specification = binding->specification;
    int r = design_repeat_bind(binding->document, repeat, &specification->repeat, binding->failure);
    if (r == 0)
        specification->repetitions = specification->repeat.at_most;
    return r;
}

/* Reads all members of the mapping 'design'. */
static int bind_members(const struct binding *binding, const char *folder) {
    struct design_specification *specification = binding->specification;
    const struct document_node *node = binding->node, *file = document_get(node, "file"),
                               *blocks = document_get(node, "blocks"), *seed = document_get(node, "seed"),
                               *factors = document_get(node, "factors"), *cross = document_get(node, "cross"),
                               *compute = document_get(node, "compute"),
                               *repeat = document_get(node, "repeat");
    int r = check_kind(binding);
    if (r < 0)
        return r;
    specification->blocks_line = blocks ? blocks->line : 0;
    specification->blocks_column = blocks ? blocks->column : 0;
    if (seed)
        r = place_at(binding, seed,
                     design_specification_set_seed(specification, seed->text, binding->failure));
    if (r == 0 && file)
        r = set_file(binding, file, folder);
    else if (r == 0 && specification->kind == DESIGN_KIND_UNIFORM_PRODUCT)
        r = bind_product(binding, factors);
    else if (r == 0 && factors)
        r = bind_factors(binding, "factors", factors, specification->kind != DESIGN_KIND_FACTORIAL,
                         design_specification_add_levels);
    if (r == 0 && cross)
        r = bind_factors(binding, "cross", cross, false, design_specification_add_crossed);
    if (r == 0 && compute)
        r = bind_computed(binding, compute);
    return r == 0 && repeat ? bind_repeat(binding, repeat) : r;
}

/* Reads 'design': the path of a CSV file, or a mapping. */
static int bind_node(const struct binding *binding, const char *folder) {
    const struct document_node *node = binding->node;
    if (node->kind == DOCUMENT_TEXT)
        return set_file(binding, node, folder);
    if (node->kind != DOCUMENT_MAPPING)
        return refuse(binding, node, "'design' is %s, expected the path of a CSV file or a mapping",
                      document_kind_name(node->kind));
    int r = bind_mapping(binding->document, node, "design", fields, FIELD_COUNT, binding->specification,
                         binding->failure);
    return r < 0 ? r : bind_members(binding, folder);
}

/* Reads the node 'design' of a campaign; NULL or null is a design of one row. */
int design_specification_from_node(const struct document *document, const struct document_node *node,
                                   const char *folder, struct design_specification **ret,
                                   struct failure *failure) {
    cleanup(design_specification_cleanup) struct design_specification *specification = NULL;
    int r = design_specification_new(&specification, failure);
    if (r == 0 && node && node->kind != DOCUMENT_NULL) {
        specification->place_file = xstrdup(document->file);
        specification->line = node->line;
        specification->column = node->column;
        struct binding binding = {
            .document = document, .node = node, .specification = specification, .failure = failure};
        r = bind_node(&binding, folder);
    }
    if (r < 0)
        return r;
    *ret = take_pointer(specification);
    return 0;
}
