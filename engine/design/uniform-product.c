#include "engine/design/uniform-product.h"

#include "engine/design/design.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/portable-math.h"
#include "engine/foundation/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_CUBE = 2048, DEFAULT_TINY_MAX = 4, JITTER_PARTS = 1000 };

void uniform_product_init(struct uniform_product *product) {
    *product = (struct uniform_product){.max_product = 1e10, .max_size = 15500, .products = 30, .batch = 3};
}

void uniform_product_clear(struct uniform_product *product) {
    for (size_t i = 0; i < product->count; i++)
        free(product->names[i]);
    free(product->added);
    *product = (struct uniform_product){0};
}

/* Adds a factor. -EINVAL: too many, no name, a control, or given twice. */
int uniform_product_add_factor(struct uniform_product *product, const char *name, struct failure *failure) {
    if (product->count == UNIFORM_PRODUCT_FACTORS_MAX)
        return failure_input(failure, NULL, 0, 0, "more than %d factors", UNIFORM_PRODUCT_FACTORS_MAX);
    if (name[0] == '\0')
        return failure_input(failure, NULL, 0, 0, "a factor without a name");
    if (control_of_column(name))
        return failure_input(failure, NULL, 0, 0,
                             "'%.64s' is a control, which has no size; use 'cross' for controls", name);
    if (text_find(name, (const char *const *)product->names, product->count) < product->count)
        return failure_input(failure, NULL, 0, 0, "factor '%s' is given twice", name);
    product->names[product->count++] = xstrdup(name);
    return 0;
}

/* Reads a size: a whole number from 1 to 2^53, which may be written as 1e4. */
static int read_size(const char *text, int64_t *ret, struct failure *failure) {
    double value;
    if (!number_parse_double(text, strlen(text), &value) || value < 1 || value > (double)DESIGN_INTEGER_MAX ||
        value != floor(value))
        return failure_input(failure, NULL, 0, 0, "size '%.64s', expected a whole number of at least 1",
                             text);
    *ret = (int64_t)value;
    return 0;
}

/* Fixes a factor at a size. -EINVAL: no such factor, or no size. */
int uniform_product_fix(struct uniform_product *product, const char *name, const char *size,
                        struct failure *failure) {
    const char *const *names = (const char *const *)product->names;
    size_t i = text_find(name, names, product->count);
    if (i < product->count && product->fixed[i])
        return failure_input(failure, NULL, 0, 0, "factor '%s' is fixed twice", name);
    if (i < product->count)
        return read_size(size, &product->fixed[i], failure);
    char instead[TEXT_INSTEAD_SIZE];
    return failure_input(failure, NULL, 0, 0, "'%.64s' cannot be fixed; %s", name,
                         text_instead(name, names, product->count, instead));
}

/* Adds a row of COUNT sizes; 0 only says that the default rows are not wanted. -EINVAL: another number of
 * factors, or no sizes. */
int uniform_product_add_row(struct uniform_product *product, const char *const *sizes, size_t count,
                            struct failure *failure) {
    product->adds = true;
    if (count == 0)
        return 0;
    if (count != product->count)
        return failure_input(failure, NULL, 0, 0, "an added row has %zu sizes, expected %zu", count,
                             product->count);
    if (product->added_count == UNIFORM_PRODUCT_ADDED_MAX)
        return failure_input(failure, NULL, 0, 0, "more than %d added rows", UNIFORM_PRODUCT_ADDED_MAX);
    product->added = xrealloc(product->added, (product->added_count + 1) * count * sizeof *product->added);
    int64_t *row = product->added + product->added_count * count;
    for (size_t i = 0; i < count; i++) {
        int r = read_size(sizes[i], &row[i], failure);
        if (r < 0)
            return r;
    }
    product->added_count++;
    return 0;
}

/* ---- Generating */

struct drawing {
    const struct uniform_product *product;
    struct random_source *source;
    struct design *design;
    size_t row;                                      /* index of the next row to write */
    size_t free_places[UNIFORM_PRODUCT_FACTORS_MAX]; /* of the factors that are not fixed */
    size_t free_count;
    double fixed_product;
};

/* The product of a row's sizes; a double above 2^53 is off by a rounding, which no cap can notice. */
static double product_of(const int64_t *sizes, size_t count) {
    double result = 1;
    for (size_t i = 0; i < count; i++)
        result *= (double)sizes[i];
    return result;
}

static bool within_caps(const struct uniform_product *product, const int64_t *sizes) {
    for (size_t i = 0; i < product->count; i++)
        if (sizes[i] > product->max_size)
            return false;
    return product_of(sizes, product->count) <= product->max_product;
}

static void put_row(struct drawing *drawing, const int64_t *sizes) {
    for (size_t i = 0; i < drawing->product->count; i++)
        drawing->design->columns[i].integers[drawing->row] = sizes[i];
    drawing->row++;
}

/* Draws the free sizes of one row, whose product with the fixed ones is about TARGET, each at most the root
 * of what is left. */
static void draw_tuple(struct drawing *drawing, double target, int64_t *ret) {
    double done = drawing->fixed_product;
    target /= done;
    for (size_t i = 0; i < drawing->free_count; i++) {
        unsigned still = (unsigned)(drawing->free_count - i);
        double size = target;
        if (still > 1) {
            double root = target > 1 ? portable_root(target, still) : 1;
            size = 1 + random_fraction(drawing->source) * (root - 1);
        }
        double whole = portable_round(size);
        if (still == 1 && done * whole > drawing->product->max_product)
            whole = floor(size);
        size = whole < 1 ? 1 : whole;
        ret[i] = (int64_t)size;
        target /= size;
        done *= size;
    }
}

/* Writes a row for each order of the free sizes of TUPLE. Places from FROM on are still open; TAKEN marks the
 * sizes that earlier places use. */
static void put_orders(struct drawing *drawing, const int64_t *tuple, size_t from, unsigned used,
                       int64_t *row) {
    if (from == drawing->free_count) {
        put_row(drawing, row);
        return;
    }
    for (size_t i = 0; i < drawing->free_count; i++) {
        if (used & 1u << i)
            continue;
        row[drawing->free_places[from]] = tuple[i];
        put_orders(drawing, tuple, from + 1, used | 1u << i, row);
    }
}

/* Draws a tuple within the caps and writes all its orders. -EINVAL: no draw was within the caps. */
static int put_tuple(struct drawing *drawing, double target, struct failure *failure) {
    const struct uniform_product *product = drawing->product;
    int64_t tuple[UNIFORM_PRODUCT_FACTORS_MAX] = {0}, row[UNIFORM_PRODUCT_FACTORS_MAX];
    memcpy(row, product->fixed, sizeof row);
    for (int attempt = 0; attempt < UNIFORM_PRODUCT_ATTEMPTS_MAX; attempt++) {
        draw_tuple(drawing, target, tuple);
        for (size_t i = 0; i < drawing->free_count; i++)
            row[drawing->free_places[i]] = tuple[i];
        if (!within_caps(product, row))
            continue;
        put_orders(drawing, tuple, 0, 0, row);
        return 0;
    }
    return failure_input(failure, NULL, 0, 0,
                         "no sizes of at most %" PRId64
                         " with a product near %.0f (at most %.0f) in %d draws, expected "
                         "a larger max-size or a smaller max-product",
                         product->max_size, target, product->max_product, UNIFORM_PRODUCT_ATTEMPTS_MAX);
}

/* Writes the rows that are added by default, cubes of usual and tiny sizes; RET NULL: none is written.
 * Returns their number. */
static size_t default_rows(const struct uniform_product *product, struct drawing *ret) {
    size_t count = 0;
    for (int which = 0; which <= DEFAULT_TINY_MAX; which++) {
        int64_t row[UNIFORM_PRODUCT_FACTORS_MAX] = {0};
        for (size_t i = 0; i < product->count; i++)
            row[i] = product->fixed[i] ? product->fixed[i] : which == 0 ? DEFAULT_CUBE : which;
        if (!within_caps(product, row))
            continue;
        if (ret)
            put_row(ret, row);
        count++;
    }
    return count;
}

/* Checks the settings of the product. -EINVAL: a limit or an added row is not possible. */
static int check_product(const struct uniform_product *product, struct failure *failure) {
    if (product->count == 0)
        return failure_input(failure, NULL, 0, 0, "no factors, expected names such as m, n, k");
    if (!(product->max_product >= 1 && product->max_product <= (double)DESIGN_INTEGER_MAX))
        return failure_input(failure, NULL, 0, 0, "max-product %g, expected from 1 to 2^53",
                             product->max_product);
    if (product->max_size < 1 || product->products < 1 || product->batch < 1)
        return failure_input(failure, NULL, 0, 0, "max-size, products and batch must be at least 1");
    for (size_t i = 0; i < product->added_count; i++)
        if (!within_caps(product, product->added + i * product->count))
            return failure_input(failure, NULL, 0, 0,
                                 "added row %zu has a size above the max-size of %" PRId64
                                 " or a product above the max-product of %.0f",
                                 i + 1, product->max_size, product->max_product);
    return 0;
}

/* Lists the free factors. -EINVAL: no draw can satisfy the fixed sizes and the caps. */
static int find_free_factors(struct drawing *drawing, struct failure *failure) {
    const struct uniform_product *product = drawing->product;
    drawing->fixed_product = 1;
    for (size_t i = 0; i < product->count; i++) {
        if (product->fixed[i] > product->max_size)
            return failure_input(failure, NULL, 0, 0,
                                 "'%s' is fixed at %" PRId64 ", above the max-size of %" PRId64,
                                 product->names[i], product->fixed[i], product->max_size);
        if (product->fixed[i])
            drawing->fixed_product *= (double)product->fixed[i];
        else
            drawing->free_places[drawing->free_count++] = i;
    }
    if (drawing->free_count == 0)
        return failure_input(failure, NULL, 0, 0,
                             "all factors are fixed, expected at least one that is free");
    if (drawing->fixed_product > product->max_product)
        return failure_input(failure, NULL, 0, 0,
                             "the fixed sizes have a product above the max-product of %.0f",
                             product->max_product);
    /* The largest of the sizes is at least the root of what they have to make; half a size and a jitter are
     * forgiven. */
    double least = portable_root(product->max_product / drawing->fixed_product * (1 - 1.0 / JITTER_PARTS),
                                 (unsigned)drawing->free_count);
    if (least > (double)product->max_size + 0.5)
        return failure_input(failure, NULL, 0, 0,
                             "sizes of at most %" PRId64
                             " cannot have a product of %.0f, expected a max-size of about %.0f or more, "
                             "or a smaller max-product",
                             product->max_size, product->max_product / drawing->fixed_product, least);
    return 0;
}

/* Allocates the design. -EINVAL: too many rows. */
static int make_design(struct drawing *drawing, struct failure *failure) {
    const struct uniform_product *product = drawing->product;
    double rows = (double)product->products * (double)product->batch;
    for (size_t i = 2; i <= drawing->free_count; i++)
        rows *= (double)i;
    rows += (double)(product->adds ? product->added_count : default_rows(product, NULL));
    if (rows > DESIGN_ROWS_MAX)
        return failure_input(
            failure, NULL, 0, 0,
            "the design has %.0f rows; expected at most %d: set fewer products or a smaller batch", rows,
            DESIGN_ROWS_MAX);
    int r = design_new((size_t)rows, &drawing->design, failure);
    struct design_column *column;
    for (size_t i = 0; r == 0 && i < product->count; i++)
        r = design_add_column(drawing->design, product->names[i], COLUMN_INTEGER, &column, failure);
    return r;
}

/* Writes all rows: batches of tuples for each product, then added rows. */
static int write_rows(struct drawing *drawing, struct failure *failure) {
    const struct uniform_product *product = drawing->product;
    double jitter_most = product->max_product / JITTER_PARTS;
    for (int64_t i = 0; i < product->products; i++) {
        double target = product->max_product * (double)(product->products - i) / (double)product->products;
        target += (2 * random_fraction(drawing->source) - 1) * jitter_most;
        target = fmax(1, fmin(target, product->max_product));
        for (int64_t j = 0; j < product->batch; j++) {
            int r = put_tuple(drawing, target, failure);
            if (r < 0)
                return r;
        }
    }
    if (!product->adds)
        default_rows(product, drawing);
    for (size_t i = 0; i < product->added_count; i++)
        put_row(drawing, product->added + i * product->count);
    return 0;
}

/* Generates the design of a uniform product (uniform-product.h). */
int uniform_product_generate(const struct uniform_product *product, struct random_source *source,
                             struct design **ret, struct failure *failure) {
    struct drawing drawing = {.product = product, .source = source};
    int r = check_product(product, failure);
    r = r < 0 ? r : find_free_factors(&drawing, failure);
    r = r < 0 ? r : make_design(&drawing, failure);
    r = r < 0 ? r : write_rows(&drawing, failure);
    if (r < 0)
        design_free(drawing.design);
    else
        *ret = drawing.design;
    return r;
}
