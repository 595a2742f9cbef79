#include "engine/design/specification.h"

#include "engine/design/design.h"
#include "engine/design/generate.h"
#include "engine/design/random.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <stdlib.h>
#include <string.h>

const char *const design_kind_names[] = {"factorial",       "uniform",         "log-uniform",
                                         "latin-hypercube", "uniform-product", NULL};
const char *const design_order_names[] = {"random", "as-written", NULL};

/* A specification of one row, with a random seed. Negative with FAILURE: the system has no random numbers. */
int design_specification_new(struct design_specification **ret, struct failure *failure) {
    cleanup(design_specification_cleanup) struct design_specification *specification =
        xcalloc(1, sizeof *specification);
    uniform_product_init(&specification->product);
    specification->kind = DESIGN_KIND_SINGLE;
    specification->repetitions = 1;
    specification->order = DESIGN_ORDER_RANDOM;
    specification->seed_drawn = true;
    int r = random_system_seed(&specification->seed, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(specification);
    return 0;
}

void design_specification_cleanup(struct design_specification **specification) {
    design_specification_free(*specification);
}

/* Frees the specification; NULL is allowed. */
void design_specification_free(struct design_specification *specification) {
    if (!specification)
        return;
    free(specification->file);
    for (size_t i = 0; i < specification->level_count; i++)
        levels_clear(&specification->levels[i]);
    free(specification->levels);
    for (size_t i = 0; i < specification->crossed_count; i++)
        levels_clear(&specification->crossed[i]);
    free(specification->crossed);
    uniform_product_clear(&specification->product);
    for (size_t i = 0; i < specification->computed_count; i++) {
        free(specification->computed[i].name);
        free(specification->computed[i].text);
    }
    free(specification->computed);
    design_repeat_clear(&specification->repeat);
    free(specification->place_file);
    free(specification);
}

/* ---- Setting */

int design_specification_set_seed(struct design_specification *specification, const char *text,
                                  struct failure *failure) {
    uint64_t seed;
    if (!number_parse_uint64(text, strlen(text), &seed))
        return failure_input(failure, NULL, 0, 0,
                             "seed '%.64s', expected a whole number from 0 to 18446744073709551615", text);
    specification->seed = seed;
    specification->seed_drawn = false;
    return 0;
}

static int set_count(const char *what, const char *text, uint64_t *ret, struct failure *failure) {
    uint64_t count;
    if (!number_parse_uint64(text, strlen(text), &count) || count < 1 || count > DESIGN_REPETITIONS_MAX)
        return failure_input(failure, NULL, 0, 0, "%s '%.64s', expected a whole number from 1 to %d", what,
                             text, DESIGN_REPETITIONS_MAX);
    *ret = count;
    return 0;
}

int design_specification_set_repetitions(struct design_specification *specification, const char *text,
                                         struct failure *failure) {
    int r = set_count("repetitions", text, &specification->repetitions, failure);
    if (r == 0)
        design_repeat_clear(&specification->repeat);
    return r;
}

int design_specification_set_blocks(struct design_specification *specification, const char *text,
                                    struct failure *failure) {
    if (specification->repeat.wanted)
        return failure_input(failure, NULL, 0, 0,
                             "'blocks' cannot be set with 'repeat', which makes a block of each "
                             "state in every repetition; remove 'blocks'");
    return set_count("blocks", text, &specification->blocks, failure);
}

int design_specification_set_order(struct design_specification *specification, const char *name,
                                   struct failure *failure) {
    for (int i = 0; design_order_names[i]; i++) {
        if (strcmp(design_order_names[i], name) != 0)
            continue;
        specification->order = (enum design_order_kind)i;
        return 0;
    }
    return failure_input(failure, NULL, 0, 0, "order '%.64s', expected random or as-written", name);
}

/* Moves LEVELS to the end of a list. -EINVAL: the name occurs twice, or the list is full. */
static int add_levels(struct levels **list, size_t *count, struct levels *levels, struct failure *failure) {
    for (size_t i = 0; i < *count; i++)
        if (strcmp((*list)[i].name, levels->name) == 0)
            return levels_failure(levels, failure, "factor '%s' is given twice", levels->name);
    if (*count == DESIGN_COLUMNS_MAX)
        return levels_failure(levels, failure, "more than %d factors", DESIGN_COLUMNS_MAX);
    *list = xrealloc(*list, (*count + 1) * sizeof *levels);
    (*list)[(*count)++] = *levels;
    *levels = (struct levels){0};
    return 0;
}

int design_specification_add_levels(struct design_specification *specification, struct levels *levels,
                                    struct failure *failure) {
    return add_levels(&specification->levels, &specification->level_count, levels, failure);
}

int design_specification_add_crossed(struct design_specification *specification, struct levels *levels,
                                     struct failure *failure) {
    return add_levels(&specification->crossed, &specification->crossed_count, levels, failure);
}

/* Adds a column that is computed by an expression. -EINVAL: no name, a control, or too many. */
int design_specification_add_computed(struct design_specification *specification, const char *name,
                                      const char *text, size_t line, size_t column, struct failure *failure) {
    const char *file = specification->place_file;
    size_t count = specification->computed_count;
    if (name[0] == '\0')
        return failure_input(failure, file, line, column, "a computed column without a name");
    if (control_of_column(name))
        return failure_input(failure, file, line, column,
                             "'%.64s' is a control, whose values are texts and cannot be computed", name);
    if (count == DESIGN_COLUMNS_MAX)
        return failure_input(failure, file, line, column, "more than %d computed columns",
                             DESIGN_COLUMNS_MAX);
    specification->computed =
        xrealloc(specification->computed, (count + 1) * sizeof *specification->computed);
    specification->computed[count] = (struct design_computed){
        .name = xstrdup(name), .text = xstrdup(text), .line = line, .column = column};
    specification->computed_count++;
    return 0;
}

/* ---- Asking */

uint64_t design_specification_seed(const struct design_specification *specification) {
    return specification->seed;
}

bool design_specification_is_random(const struct design_specification *specification) {
    bool table_is_drawn =
        specification->kind >= DESIGN_KIND_UNIFORM && specification->kind <= DESIGN_KIND_UNIFORM_PRODUCT;
    return table_is_drawn || specification->order == DESIGN_ORDER_RANDOM;
}

/* ---- Making */

/* Gives a failure without a place that of the specification. Returns CODE. */
static int at_place(const struct design_specification *specification, int code, struct failure *failure) {
    return failure_place(failure, code, specification->place_file, specification->line,
                         specification->column);
}

/* The levels with the types of FACTORS; a shallow copy, of which the caller frees only the array. -EINVAL: no
 * such factor, or a value that it does not admit. */
static int adopt_levels(const struct levels *written, size_t count, const struct design_factors *factors,
                        struct levels **ret, struct failure *failure) {
    cleanup_free struct levels *levels = xcalloc(count + 1, sizeof *levels);
    for (size_t i = 0; i < count; i++) {
        levels[i] = written[i];
        if (!factors || control_factor_find(levels[i].name))
            continue; /* a control's have theirs */
        size_t found = design_factor_find(factors, levels[i].name);
        int r = found == SIZE_MAX ? design_factor_unknown(factors, levels[i].name, levels[i].file,
                                                          levels[i].line, levels[i].column, failure)
                                  : levels_adopt(&levels[i], &factors->items[found], failure);
        if (r < 0)
            return r;
    }
    *ret = take_pointer(levels);
    return 0;
}

/* Refuses names that the experiment does not know, before anything is drawn. */
static int check_names(const struct design_specification *specification, const struct design_factors *factors,
                       struct failure *failure) {
    const struct uniform_product *product = &specification->product;
    for (size_t i = 0; factors && i < product->count; i++)
        if (design_factor_find(factors, product->names[i]) == SIZE_MAX)
            return design_factor_unknown(factors, product->names[i], NULL, 0, 0, failure);
    return 0;
}

/* Generates the rows by kind. */
static int generate_rows(const struct design_specification *specification,
                         const struct design_factors *factors, struct design **ret, struct failure *failure) {
    struct random_source source;
    random_start(&source, specification->seed, RANDOM_STREAM_TABLE);
    cleanup_free struct levels *levels = NULL;
    int r = check_names(specification, factors, failure);
    r = r < 0 ? r
              : adopt_levels(specification->levels, specification->level_count, factors, &levels, failure);
    if (r < 0)
        return r;
    size_t count = specification->level_count, rows = (size_t)specification->rows;
    switch (specification->kind) {
    case DESIGN_KIND_FACTORIAL:
        return design_generate_factorial(levels, count, ret, failure);
    case DESIGN_KIND_UNIFORM:
        return design_generate_uniform(levels, count, rows, &source, ret, failure);
    case DESIGN_KIND_LOG_UNIFORM:
        return design_generate_log_uniform(levels, count, rows, &source, ret, failure);
    case DESIGN_KIND_LATIN_HYPERCUBE:
        return design_generate_latin_hypercube(levels, count, rows, &source, ret, failure);
    case DESIGN_KIND_UNIFORM_PRODUCT:
        return uniform_product_generate(&specification->product, &source, ret, failure);
    default:
        return design_new(1, ret, failure);
    }
}

/* Crosses every row with every combination of the crossed levels. */
static int cross_rows(const struct design_specification *specification, const struct design_factors *factors,
                      struct design **table, struct failure *failure) {
    cleanup_free struct levels *levels = NULL;
    struct design *crossed = NULL;
    size_t count = specification->crossed_count;
    int r = count > 0 ? adopt_levels(specification->crossed, count, factors, &levels, failure) : 0;
    if (r < 0 || count == 0)
        return r;
    r = design_generate_crossed(*table, levels, count, &crossed, failure);
    if (r < 0)
        return r;
    design_free(*table);
    *table = crossed;
    return 0;
}

static int generate_table(const struct design_specification *specification,
                          const struct design_factors *factors, struct design **ret,
                          struct failure *failure) {
    int r = at_place(specification, generate_rows(specification, factors, ret, failure), failure);
    if (r < 0)
        return r;
    (*ret)->file = specification->place_file ? xstrdup(specification->place_file) : NULL;
    (*ret)->line = specification->line;
    (*ret)->column = specification->column;
    return 0;
}

/* Makes the table: reads or generates it, crosses it, computes columns, and makes it conform to FACTORS. */
static int make_table(const struct design_specification *specification, const struct design_factors *factors,
                      struct design **ret, struct failure *failure) {
    int r = specification->kind == DESIGN_KIND_FILE ? design_read(specification->file, factors, ret, failure)
                                                    : generate_table(specification, factors, ret, failure);
    if (r == 0)
        r = at_place(specification, cross_rows(specification, factors, ret, failure), failure);
    for (size_t i = 0; r == 0 && i < specification->computed_count; i++) {
        const struct design_computed *one = &specification->computed[i];
        r = design_compute(*ret, one->name, one->text, specification->place_file, one->line, one->column,
                           failure);
    }
    return r == 0 && factors ? design_conform(*ret, factors, failure) : r;
}

/* Makes the order of rows and repetitions. -EINVAL: blocks without controls. */
static int make_order(const struct design_specification *specification, const struct design *design,
                      struct design_order **ret, struct failure *failure) {
    const struct design_repeat *repeat = &specification->repeat;
    /* What is wrong with blocks is wrong with `blocks` or with `at-most`. */
    size_t line = repeat->wanted ? repeat->at_most_place.line : specification->blocks_line,
           column = repeat->wanted ? repeat->at_most_place.column : specification->blocks_column,
           rounds = repeat->wanted          ? DESIGN_ROUND_EACH
                    : specification->blocks ? (size_t)specification->blocks
                                            : 1;
    struct design_states states = {0};
    int r = 0;
    if (design->control_count > 0)
        r = design_control_states(design, &states, failure);
    else if (specification->blocks > 0)
        r = failure_input(failure, NULL, 0, 0,
                          "'blocks' is the number of times that each state of the controls is "
                          "visited, but the design has no column of a control, such as "
                          "control.turbo; remove 'blocks'");
    if (r == 0)
        r = design_order_new(specification->order, specification->seed, design->row_count,
                             (size_t)specification->repetitions, states.items ? &states : NULL, rounds, ret,
                             failure);
    free(states.items);
    if (line > 0)
        failure_place(failure, r, specification->place_file, line, column);
    return at_place(specification, r, failure);
}

/* Makes design and order. The caller frees both; on failure neither is made. */
int design_specification_make(const struct design_specification *specification,
                              const struct design_factors *factors, struct design **ret_design,
                              struct design_order **ret_order, struct failure *failure) {
    cleanup(design_cleanup) struct design *design = NULL;
    struct design_order *order = NULL;
    int r = make_table(specification, factors, &design, failure);
    r = r < 0 ? r : make_order(specification, design, &order, failure);
    if (r < 0)
        return r;
    *ret_design = take_pointer(design);
    *ret_order = order;
    return 0;
}
