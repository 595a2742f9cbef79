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

/* The mapping as bound, before it becomes a specification. */
struct written {
    int generate, order;
    char *file;
    int64_t rows, repetitions, blocks, max_size, products, batch;
    double max_product;
    const struct document_node *factors, *cross, *fixed, *add, *compute, *seed, *repeat;
};

#define MOST_INTEGER ((double)DESIGN_INTEGER_MOST)
#define WRITTEN(key_, type_, member) .key = key_, .type = type_, .offset = offsetof(struct written, member)

static const struct bind_field fields[] = {
    {WRITTEN("generate", BIND_CHOICE, generate), .choices = design_kind_names},
    {WRITTEN("file", BIND_TEXT, file)},
    {WRITTEN("factors", BIND_NODE, factors), .kinds = 1 << DOCUMENT_SEQUENCE | 1 << DOCUMENT_MAPPING},
    {WRITTEN("rows", BIND_INTEGER, rows), .minimum = 1, .maximum = DESIGN_ROWS_MOST},
    {WRITTEN("max-product", BIND_NUMBER, max_product), .minimum = 1, .maximum = MOST_INTEGER},
    {WRITTEN("max-size", BIND_INTEGER, max_size), .minimum = 1, .maximum = MOST_INTEGER},
    {WRITTEN("products", BIND_INTEGER, products), .minimum = 1, .maximum = DESIGN_ROWS_MOST},
    {WRITTEN("batch", BIND_INTEGER, batch), .minimum = 1, .maximum = DESIGN_ROWS_MOST},
    {WRITTEN("fixed", BIND_NODE, fixed), .kinds = 1 << DOCUMENT_MAPPING},
    {WRITTEN("add", BIND_NODE, add), .kinds = 1 << DOCUMENT_SEQUENCE},
    {WRITTEN("cross", BIND_NODE, cross), .kinds = 1 << DOCUMENT_MAPPING},
    {WRITTEN("compute", BIND_NODE, compute), .kinds = 1 << DOCUMENT_MAPPING},
    {WRITTEN("repetitions", BIND_INTEGER, repetitions), .minimum = 1, .maximum = DESIGN_REPETITIONS_MOST},
    {WRITTEN("repeat", BIND_NODE, repeat)},
    {WRITTEN("blocks", BIND_INTEGER, blocks), .minimum = 1, .maximum = DESIGN_REPETITIONS_MOST},
    {WRITTEN("order", BIND_CHOICE, order), .choices = design_order_names},
    {WRITTEN("seed", BIND_NODE, seed), .kinds = 1 << DOCUMENT_NUMBER | 1 << DOCUMENT_TEXT},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

/* Which kinds use a key that not all use, as 1 << kind. */
static const struct {
    const char *key;
    unsigned kinds;
} uses[] = {
    {"factors", 1 << DESIGN_KIND_FACTORIAL | 1 << DESIGN_KIND_UNIFORM | 1 << DESIGN_KIND_LOG_UNIFORM |
                    1 << DESIGN_KIND_LATIN_HYPERCUBE | 1 << DESIGN_KIND_UNIFORM_PRODUCT},
    {"rows", 1 << DESIGN_KIND_UNIFORM | 1 << DESIGN_KIND_LOG_UNIFORM | 1 << DESIGN_KIND_LATIN_HYPERCUBE},
    {"max-product", 1 << DESIGN_KIND_UNIFORM_PRODUCT},
    {"max-size", 1 << DESIGN_KIND_UNIFORM_PRODUCT},
    {"products", 1 << DESIGN_KIND_UNIFORM_PRODUCT},
    {"batch", 1 << DESIGN_KIND_UNIFORM_PRODUCT},
    {"fixed", 1 << DESIGN_KIND_UNIFORM_PRODUCT},
    {"add", 1 << DESIGN_KIND_UNIFORM_PRODUCT},
};

struct binding {
    const struct document *document;
    const struct document_node *node;
    struct design_specification *specification;
    struct failure *failure;
};

static int refuse(const struct binding *binding, const struct document_node *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int refuse(const struct binding *binding, const struct document_node *at, const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return failure_input(binding->failure, binding->document->file, at->line, at->column, "%s", sentence);
}

/* Gives a failure without a place the place of AT. */
static int place_at(const struct binding *binding, const struct document_node *at, int code) {
    struct failure *failure = binding->failure;
    if (code < 0 && failure && failure->kind == FAILURE_INPUT && !failure->place[0])
        refuse(binding, at, "%s", failure->text);
    return code;
}

static bool is_scalar(const struct document_node *node) {
    return node->kind == DOCUMENT_NUMBER || node->kind == DOCUMENT_TEXT || node->kind == DOCUMENT_BOOLEAN;
}

/* The texts of a sequence of scalars; the array is the caller's to free, its items are the document's. */
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
static const struct bind_field level_fields[] = {
    {.key = "from", .type = BIND_TEXT, .offset = offsetof(struct written_levels, from)},
    {.key = "to", .type = BIND_TEXT, .offset = offsetof(struct written_levels, to)},
    {.key = "step", .type = BIND_TEXT, .offset = offsetof(struct written_levels, step)},
    {.key = "steps", .type = BIND_TEXT, .offset = offsetof(struct written_levels, steps)},
    {.key = "scale",
     .type = BIND_CHOICE,
     .offset = offsetof(struct written_levels, scale),
     .choices = scale_names},
    {.key = "choices",
     .type = BIND_NODE,
     .offset = offsetof(struct written_levels, choices),
     .kinds = 1 << DOCUMENT_SEQUENCE},
};
enum { LEVEL_FIELD_COUNT = sizeof level_fields / sizeof *level_fields };

static struct levels_place place_of(const struct binding *binding, const struct document_node *node) {
    return (struct levels_place){.file = binding->document->file, .line = node->line, .column = node->column};
}

static bool is_number(const char *text, size_t length) {
    double value;
    return number_parse_double(text, length, &value);
}

/* "1..100" is how the command line writes a range; here it would be a text, and nobody means that. Who does
 * writes {choices: ["1..100"]}. */
static int refuse_dots(const struct binding *binding, const char *name, const struct document_node *value) {
    const char *dots = value->text ? strstr(value->text, "..") : NULL;
    if (!dots || control_of_column(name)) /* of a frequency, it is one of its texts */
        return 0;
    const char *high = dots + 2;
    size_t length = strcspn(high, ":");
    if (!is_number(value->text, (size_t)(dots - value->text)) || !is_number(high, length))
        return 0;
    return refuse(binding, value,
                  "'%s' is '%.64s', which is a text here, expected {from: %.*s, to: %.*s%s%.32s}", name,
                  value->text, (int)(dots - value->text), value->text, (int)length, high,
                  high[length] ? ", step: " : "", high[length] ? high + length + 1 : "");
}

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

static int levels_of_mapping(const struct binding *binding, const char *name,
                             const struct document_node *node, struct levels *ret) {
    struct written_levels written = {0};
    int r = bind_mapping(binding->document, node, name, level_fields, LEVEL_FIELD_COUNT, &written,
                         binding->failure);
    bool whole_range = written.from && written.to, stepped = written.steps != NULL,
         part_of_range = written.from || written.to || written.step || stepped;
    if (r == 0 && (written.choices ? part_of_range : !whole_range))
        r = refuse(binding, node,
                   "'%s' expects either 'from' and 'to', with 'step' or 'steps' if wanted, or 'choices'",
                   name);
    else if (r == 0 && (stepped ? written.step != NULL : document_get(node, "scale") != NULL))
        r = refuse(binding, node, "'%s' has %s", name,
                   stepped ? "both 'step' and 'steps', expected one of them"
                           : "a 'scale' without 'steps', expected both");
    else if (r == 0 && written.choices)
        r = levels_of_sequence(binding, name, written.choices, false, ret);
    else if (r == 0 && stepped)
        r = levels_from_steps(name, written.from, written.to, written.steps, written.scale == 1,
                              place_of(binding, node), ret, binding->failure);
    else if (r == 0)
        r = levels_from_range(name, written.from, written.to, written.step, place_of(binding, node), ret,
                              binding->failure);
    bind_clear(level_fields, LEVEL_FIELD_COUNT, &written);
    return r;
}

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

static int bind_factors(const struct binding *binding, const struct document_node *factors) {
    if (factors->kind != DOCUMENT_MAPPING)
        return refuse(binding, factors, "'factors' is %s, expected a mapping of factors to their values",
                      document_kind_name(factors->kind));
    bool drawn = binding->specification->kind != DESIGN_KIND_FACTORIAL;
    int r = 0;
    for (size_t i = 0; r == 0 && i < factors->count; i++) {
        cleanup(levels_clear) struct levels levels = {0};
        const char *name = factors->keys[i]->text;
        r = read_levels(binding, name, factors->items[i], drawn && !control_of_column(name), &levels);
        if (r == 0)
            r = design_specification_add_levels(binding->specification, &levels, binding->failure);
    }
    if (r == 0 && factors->count == 0)
        r = refuse(binding, factors, "'factors' is empty, expected at least one");
    return r;
}

static int bind_crossed(const struct binding *binding, const struct document_node *cross) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < cross->count; i++) {
        cleanup(levels_clear) struct levels levels = {0};
        r = read_levels(binding, cross->keys[i]->text, cross->items[i], false, &levels);
        if (r == 0)
            r = design_specification_add_crossed(binding->specification, &levels, binding->failure);
    }
    if (r == 0 && cross->count == 0)
        r = refuse(binding, cross, "'cross' is empty, expected at least one factor");
    return r;
}

/* ---- Uniform product */

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
        if (r == 0)
            r = place_at(binding, item,
                         uniform_product_add_row(product, texts, item->count, binding->failure));
    }
    return r;
}

static int bind_product(const struct binding *binding, const struct written *written) {
    struct uniform_product *product = &binding->specification->product;
    product->max_product = written->max_product;
    product->max_size = written->max_size;
    product->products = written->products;
    product->batch = written->batch;
    const struct document_node *factors = written->factors;
    if (factors->kind != DOCUMENT_SEQUENCE)
        return refuse(binding, factors, "'factors' is %s, expected a list of names such as [m, n, k]",
                      document_kind_name(factors->kind));
    cleanup_free const char **names = NULL;
    int r = scalars_of(binding, factors, "'factors'", &names);
    for (size_t i = 0; r == 0 && i < factors->count; i++)
        r = place_at(binding, factors->items[i],
                     uniform_product_add_factor(product, names[i], binding->failure));
    const struct document_node *fixed = written->fixed;
    for (size_t i = 0; r == 0 && fixed && i < fixed->count; i++) {
        const struct document_node *size = fixed->items[i];
        if (!is_scalar(size))
            return refuse(binding, size, "'%s' is fixed at %s, expected a size", fixed->keys[i]->text,
                          document_kind_name(size->kind));
        r = place_at(binding, size,
                     uniform_product_fix(product, fixed->keys[i]->text, size->text, binding->failure));
    }
    return r == 0 && written->add ? bind_added(binding, written->add) : r;
}

/* ---- The whole */

static int check_kind(const struct binding *binding, const struct written *written) {
    const struct document_node *node = binding->node;
    struct design_specification *specification = binding->specification;
    if (written->generate >= 0 && written->file)
        return refuse(binding, document_get(node, "file"),
                      "both 'file' and 'generate', expected one of them");
    specification->kind = written->generate >= 0 ? (enum design_kind)written->generate
                          : written->file        ? DESIGN_KIND_FILE
                          : written->factors     ? DESIGN_KIND_FACTORIAL
                                                 : DESIGN_KIND_SINGLE;
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        const struct document_node *value = document_get(node, uses[i].key);
        if (!value || uses[i].kinds & 1u << specification->kind)
            continue;
        if (specification->kind == DESIGN_KIND_SINGLE)
            return refuse(binding, value, "'%s' without 'generate', expected that too", uses[i].key);
        return refuse(binding, value, "'%s' is not used by %s", uses[i].key,
                      specification->kind == DESIGN_KIND_FILE ? "a design from a file"
                                                              : design_kind_names[specification->kind]);
    }
    bool draws_rows = specification->kind == DESIGN_KIND_UNIFORM ||
                      specification->kind == DESIGN_KIND_LOG_UNIFORM ||
                      specification->kind == DESIGN_KIND_LATIN_HYPERCUBE;
    if (draws_rows && written->rows == 0)
        return refuse(binding, node, "'%s' needs 'rows'", design_kind_names[specification->kind]);
    if (written->generate >= 0 && !written->factors)
        return refuse(binding, node, "'%s' needs 'factors'", design_kind_names[specification->kind]);
    return 0;
}

static int set_file(const struct binding *binding, const char *path, const char *folder) {
    const struct document_node *at =
        binding->node->kind == DOCUMENT_MAPPING ? document_get(binding->node, "file") : binding->node;
    if (path[0] == '\0')
        return refuse(binding, at, "an empty path, expected that of a CSV file");
    binding->specification->kind = DESIGN_KIND_FILE;
    binding->specification->file =
        path[0] == '/' || !folder || !folder[0] ? strdup(path) : file_join(folder, path);
    return binding->specification->file ? 0 : failure_memory(binding->failure);
}

static int bind_computed(const struct binding *binding, const struct document_node *compute) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < compute->count; i++) {
        const struct document_node *value = compute->items[i];
        if (!is_scalar(value))
            return refuse(binding, value, "'%s' is %s, expected an expression", compute->keys[i]->text,
                          document_kind_name(value->kind));
        r = design_specification_add_computed(binding->specification, compute->keys[i]->text, value->text,
                                              value->line, value->column, binding->failure);
    }
    return r;
}

/* `repeat` says how often, and has blocks of its own. */
static int bind_repeat(const struct binding *binding, const struct document_node *repeat) {
    static const char *const others[] = {"repetitions", "blocks"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const struct document_node *other = document_get(binding->node, others[i]);
        if (other)
            return refuse(binding, other, "both '%s' and 'repeat', expected one of them", others[i]);
    }
    struct design_specification *specification = binding->specification;
    int r = design_repeat_bind(binding->document, repeat, &specification->repeat, binding->failure);
    if (r == 0)
        specification->repetitions = specification->repeat.at_most;
    return r;
}

static int bind_written(const struct binding *binding, const struct written *written, const char *folder) {
    struct design_specification *specification = binding->specification;
    int r = check_kind(binding, written);
    if (r < 0)
        return r;
    specification->repetitions = (uint64_t)written->repetitions;
    specification->order = (enum design_order_kind)written->order;
    specification->blocks = (uint64_t)written->blocks;
    const struct document_node *blocks = document_get(binding->node, "blocks");
    specification->blocks_line = blocks ? blocks->line : 0;
    specification->blocks_column = blocks ? blocks->column : 0;
    specification->rows = (uint64_t)written->rows;
    if (written->seed)
        r = place_at(binding, written->seed,
                     design_specification_set_seed(specification, written->seed->text, binding->failure));
    if (r == 0 && written->file)
        r = set_file(binding, written->file, folder);
    else if (r == 0 && specification->kind == DESIGN_KIND_UNIFORM_PRODUCT)
        r = bind_product(binding, written);
    else if (r == 0 && written->factors)
        r = bind_factors(binding, written->factors);
    if (r == 0 && written->cross)
        r = bind_crossed(binding, written->cross);
    if (r == 0 && written->compute)
        r = bind_computed(binding, written->compute);
    if (r == 0 && written->repeat)
        r = bind_repeat(binding, written->repeat);
    return r;
}

static int bind_node(const struct binding *binding, const char *folder) {
    const struct document_node *node = binding->node;
    if (node->kind == DOCUMENT_TEXT)
        return set_file(binding, node->text, folder);
    if (node->kind != DOCUMENT_MAPPING)
        return refuse(binding, node, "'design' is %s, expected the path of a CSV file or a mapping",
                      document_kind_name(node->kind));
    const struct design_specification *born = binding->specification;
    struct written written = {.generate = -1,
                              .order = (int)born->order,
                              .repetitions = (int64_t)born->repetitions,
                              .max_product = born->product.max_product,
                              .max_size = born->product.max_size,
                              .products = born->product.products,
                              .batch = born->product.batch};
    int r = bind_mapping(binding->document, node, "design", fields, FIELD_COUNT, &written, binding->failure);
    if (r == 0)
        r = bind_written(binding, &written, folder);
    bind_clear(fields, FIELD_COUNT, &written);
    return r;
}

int design_specification_from_node(const struct document *document, const struct document_node *node,
                                   const char *folder, struct design_specification **ret,
                                   struct failure *failure) {
    struct design_specification *specification = NULL;
    int r = design_specification_new(&specification, failure);
    if (r < 0)
        return r;
    if (node && node->kind != DOCUMENT_NULL) {
        specification->place_file = strdup(document->file);
        specification->line = node->line;
        specification->column = node->column;
        struct binding binding = {
            .document = document, .node = node, .specification = specification, .failure = failure};
        r = specification->place_file ? bind_node(&binding, folder) : failure_memory(failure);
    }
    if (r < 0) {
        design_specification_free(specification);
        return r;
    }
    *ret = specification;
    return 0;
}
