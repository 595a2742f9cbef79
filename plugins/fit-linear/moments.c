#include "plugins/fit-linear/moments.h"

#include "plugins/fit-linear/moments-kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLAB_GROUPS = 64,     /* at most */
    SLAB_BYTES = 1 << 20, /* unless one group needs more */
    ALIGNMENT = 64,       /* a cache line; records begin on one */
};

/* Of a fold of a group. What most rows do not touch is apart from what all do, so that this stays near: a
 * group is the sums of its folds, its ranges, its folds' numbers of rows, and their records. */
struct record {
    uint64_t incomplete;
    double log_weights, log_weights_low;
    double negative; /* sum of w*y where y is below 0, scaled; to the digits of a plain sum */
};

/* Columns of one tile. */
struct scratch {
    double *factors;    /* scaled, one for each formula input, then the response, then the weights */
    double *high, *low; /* z0 .. zT+1 */
    double *weighted_high, *weighted_low; /* w * z */
    double *zero, *one;
};

struct moments {
    const struct formula *formula;
    const struct moments_kernel *kernel;
    bool weighted, scaled;
    uint32_t folds;
    size_t width, input_count;            /* of z; of columns that are added */
    double scale[FORMULA_INPUTS_MAX + 2]; /* of each input */
    int input_exponent[FORMULA_INPUTS_MAX + 2], exponent[FORMULA_TERMS_MAX + 2];

    double *memory; /* what scratch points into */
    struct scratch scratch;
    struct moments_product *products;
    const double **ranges;
    uint16_t *sum_index;   /* of the pair a, b: width * width */
    uint16_t *range_index; /* of each z */
    struct moments_tile tile;

    size_t sums_bytes, ranges_bytes, rows_bytes, group_bytes; /* of a fold; of a group the others */
    char **slabs;
    size_t slab_count, slab_capacity, slab_groups; /* a power of two groups each */
    unsigned slab_shift;
    uint32_t group_count;
    char *padding; /* a group that takes the rows that fill up a tile */
};

/* ---- Building */

static double *tile_column(double *base, size_t index) {
    return base + index * MOMENTS_TILE;
}

static size_t chunks_of(size_t lanes) {
    return (lanes + MOMENTS_LANES - 1) / MOMENTS_LANES;
}

static int allocate_scratch(struct moments *moments) {
    size_t width = moments->width, columns = moments->input_count + 4 * width + 2;
    moments->memory = aligned_alloc(ALIGNMENT, columns * MOMENTS_TILE * sizeof(double));
    if (!moments->memory)
        return -ENOMEM;
    memset(moments->memory, 0, columns * MOMENTS_TILE * sizeof(double));
    struct scratch *scratch = &moments->scratch;
    scratch->factors = moments->memory;
    scratch->high = tile_column(scratch->factors, moments->input_count);
    scratch->low = tile_column(scratch->high, width);
    scratch->weighted_high = tile_column(scratch->low, width);
    scratch->weighted_low = tile_column(scratch->weighted_high, width);
    scratch->zero = tile_column(scratch->weighted_low, width);
    scratch->one = tile_column(scratch->zero, 1);
    for (size_t r = 0; r < MOMENTS_TILE; r++)
        scratch->one[r] = 1;
    return 0;
}

/* Where z A of the tile lies. */
static const double *z_high(const struct moments *moments, size_t a) {
    const struct scratch *scratch = &moments->scratch;
    const struct formula *formula = moments->formula;
    if (a == 0)
        return scratch->one;
    if (a + 1 == moments->width)
        return tile_column(scratch->factors, formula->input_count);
    const struct formula_product *product = &formula->products[a];
    return product->degree == 1 ? tile_column(scratch->factors, product->factors[0].input)
                                : tile_column(scratch->high, a);
}

static const double *z_low(const struct moments *moments, size_t a) {
    bool inexact = a > 0 && a + 1 < moments->width && moments->formula->products[a].degree > 1;
    return inexact ? tile_column(moments->scratch.low, a) : moments->scratch.zero;
}

static struct moments_product product_of(const struct moments *moments, size_t a, size_t b) {
    struct moments_product product = {z_high(moments, a), z_low(moments, a), z_high(moments, b),
                                      z_low(moments, b)};
    if (moments->weighted) {
        product.left = tile_column(moments->scratch.weighted_high, a);
        product.left_low = tile_column(moments->scratch.weighted_low, a);
    }
    return product;
}

/* Lists the sums: all pairs but z0 z0, which without weights is the number of rows. */
static int list_products(struct moments *moments) {
    size_t width = moments->width, most = width * (width + 1) / 2 + MOMENTS_LANES;
    moments->products = calloc(most, sizeof *moments->products);
    moments->sum_index = calloc(width * width, sizeof *moments->sum_index);
    if (!moments->products || !moments->sum_index)
        return -ENOMEM;
    size_t count = 0;
    for (size_t a = 0; a < width; a++)
        for (size_t b = a; b < width; b++) {
            if (b == 0 && !moments->weighted)
                continue;
            moments->sum_index[a * width + b] = moments->sum_index[b * width + a] = (uint16_t)count;
            moments->products[count++] = product_of(moments, a, b);
        }
    const double *zero = moments->scratch.zero;
    while (count % MOMENTS_LANES != 0)
        moments->products[count++] = (struct moments_product){zero, zero, zero, zero};
    moments->tile.products = moments->products;
    moments->tile.product_chunks = chunks_of(count);
    return 0;
}

/* Lists the ranges: every input but the weights, then every product of more than one factor. */
static int list_ranges(struct moments *moments) {
    size_t inputs = moments->formula->input_count + 1;
    moments->ranges = calloc(inputs + moments->width + MOMENTS_LANES, sizeof *moments->ranges);
    moments->range_index = calloc(moments->width, sizeof *moments->range_index);
    if (!moments->ranges || !moments->range_index)
        return -ENOMEM;
    size_t count = 0;
    for (; count < inputs; count++)
        moments->ranges[count] = tile_column(moments->scratch.factors, count);
    for (size_t a = 1; a + 1 < moments->width; a++) {
        const struct formula_product *product = &moments->formula->products[a];
        moments->range_index[a] = (uint16_t)(product->degree == 1 ? product->factors[0].input : count);
        if (product->degree > 1)
            moments->ranges[count++] = z_high(moments, a);
    }
    moments->range_index[moments->width - 1] = (uint16_t)(inputs - 1);
    while (count % MOMENTS_LANES != 0)
        moments->ranges[count++] = moments->scratch.zero;
    moments->tile.ranges = moments->ranges;
    moments->tile.range_chunks = chunks_of(count);
    return 0;
}

/* ---- Groups */

static char *group_at(const struct moments *moments, uint32_t group) {
    return moments->slabs[group >> moments->slab_shift] +
           (group & (moments->slab_groups - 1)) * moments->group_bytes;
}

static double *sums_of(const struct moments *moments, char *group, uint32_t fold) {
    return (double *)(void *)(group + fold * moments->sums_bytes);
}

static double *ranges_of(const struct moments *moments, char *group) {
    return (double *)(void *)(group + moments->folds * moments->sums_bytes);
}

static uint64_t *rows_of(const struct moments *moments, char *group, uint32_t fold) {
    return (uint64_t *)(void *)((char *)ranges_of(moments, group) + moments->ranges_bytes) + fold;
}

static struct record *record_of(const struct moments *moments, char *group, uint32_t fold) {
    return (struct record *)(void *)((char *)rows_of(moments, group, 0) + moments->rows_bytes) + fold;
}

static void init_group(const struct moments *moments, char *group) {
    memset(group, 0, moments->group_bytes);
    double *range = ranges_of(moments, group);
    for (size_t c = 0; c < moments->tile.range_chunks; c++, range += MOMENTS_CHUNK)
        for (size_t lane = 0; lane < MOMENTS_LANES; lane++) {
            range[lane] = INFINITY;
            range[MOMENTS_LANES + lane] = -INFINITY;
        }
}

static size_t aligned(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Slabs hold as many groups as are not too large together. */
static void size_slabs(struct moments *moments) {
    moments->rows_bytes = aligned(moments->folds * sizeof(uint64_t));
    moments->group_bytes = moments->folds * moments->sums_bytes + moments->ranges_bytes +
                           moments->rows_bytes + aligned(moments->folds * sizeof(struct record));
    moments->slab_groups = SLAB_GROUPS;
    while (moments->slab_groups > 1 && moments->slab_groups * moments->group_bytes > SLAB_BYTES)
        moments->slab_groups /= 2;
    moments->slab_shift = (unsigned)__builtin_ctzl(moments->slab_groups);
}

int moments_new(const struct formula *formula, const struct moments_options *options, struct moments **ret) {
    struct moments *moments = calloc(1, sizeof *moments);
    if (!moments)
        return -ENOMEM;
    moments->formula = formula;
    moments->weighted = options->weighted;
    moments->folds = options->folds > 1 ? options->folds : 1;
    moments->kernel = options->choice == MOMENTS_PORTABLE ? &moments_kernel_portable : moments_kernel_best();
    moments->width = formula->product_count + 1;
    moments->input_count = formula->input_count + 1 + moments->weighted;
    int r = allocate_scratch(moments);
    r = r < 0 ? r : list_products(moments);
    r = r < 0 ? r : list_ranges(moments);
    if (r == 0) {
        moments->sums_bytes = moments->tile.product_chunks * MOMENTS_CHUNK * sizeof(double);
        moments->ranges_bytes = moments->tile.range_chunks * MOMENTS_CHUNK * sizeof(double);
        size_slabs(moments);
        moments->padding = aligned_alloc(ALIGNMENT, moments->group_bytes);
        r = moments->padding ? 0 : -ENOMEM;
    }
    if (r < 0) {
        moments_free(moments);
        return r;
    }
    init_group(moments, moments->padding);
    *ret = moments;
    return 0;
}

static void free_slabs(struct moments *moments) {
    for (size_t i = 0; i < moments->slab_count; i++)
        free(moments->slabs[i]);
    free(moments->slabs);
    moments->slabs = NULL;
    moments->slab_count = moments->slab_capacity = 0;
}

void moments_reset(struct moments *moments) {
    for (size_t i = 0; i < moments->slab_count * moments->slab_groups; i++)
        init_group(moments, group_at(moments, (uint32_t)i));
    moments->group_count = 0;
}

void moments_free(struct moments *moments) {
    if (!moments)
        return;
    free_slabs(moments);
    free(moments->padding);
    free(moments->memory);
    free(moments->products);
    free(moments->ranges);
    free(moments->sum_index);
    free(moments->range_index);
    free(moments);
}

/* ---- Adding rows */

static int add_slab(struct moments *moments) {
    if (moments->slab_count == moments->slab_capacity) {
        size_t capacity = moments->slab_capacity + moments->slab_capacity / 2 + 1;
        char **grown = realloc(moments->slabs, capacity * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        moments->slabs = grown;
        moments->slab_capacity = capacity;
    }
    char *slab = aligned_alloc(ALIGNMENT, moments->slab_groups * moments->group_bytes);
    if (!slab)
        return -ENOMEM;
    for (size_t i = 0; i < moments->slab_groups; i++)
        init_group(moments, slab + i * moments->group_bytes);
    moments->slabs[moments->slab_count++] = slab;
    return 0;
}

static struct dd sum_at(const double *sums, size_t index) {
    const double *chunk = sums + index / MOMENTS_LANES * MOMENTS_CHUNK;
    return dd_two_sum(chunk[index % MOMENTS_LANES], chunk[MOMENTS_LANES + index % MOMENTS_LANES]);
}

static void unite_records(const struct record *from, struct record *to) {
    to->incomplete += from->incomplete;
    struct dd weights = dd_add(dd_two_sum(to->log_weights, to->log_weights_low),
                               dd_two_sum(from->log_weights, from->log_weights_low));
    to->log_weights = weights.high;
    to->log_weights_low = weights.low;
    to->negative += from->negative;
}

/* The one fold of TO takes in those that the group FROM had. */
static void unite_folds(const struct moments *before, char *from, const struct moments *moments, char *to) {
    double *sums = sums_of(moments, to, 0);
    for (uint32_t fold = 0; fold < before->folds; fold++) {
        *rows_of(moments, to, 0) += *rows_of(before, from, fold);
        unite_records(record_of(before, from, fold), record_of(moments, to, 0));
        for (size_t i = 0; i < moments->tile.product_chunks * MOMENTS_LANES; i++) {
            struct dd sum = dd_add(sum_at(sums, i), sum_at(sums_of(before, from, fold), i));
            double *chunk = sums + i / MOMENTS_LANES * MOMENTS_CHUNK;
            chunk[i % MOMENTS_LANES] = sum.high;
            chunk[MOMENTS_LANES + i % MOMENTS_LANES] = sum.low;
        }
    }
    memcpy(ranges_of(moments, to), ranges_of(before, from), moments->ranges_bytes);
}

/* Unites the folds of every group. */
static int give_up_folds(struct moments *moments) {
    struct moments before = *moments;
    moments->folds = 1;
    moments->slabs = NULL;
    moments->slab_count = moments->slab_capacity = 0;
    size_slabs(moments);
    int r = 0;
    for (uint32_t group = 0; r == 0 && group < before.group_count; group++) {
        if (group / moments->slab_groups == moments->slab_count)
            r = add_slab(moments);
        if (r == 0)
            unite_folds(&before, group_at(&before, group), moments, group_at(moments, group));
    }
    free_slabs(&before);
    return r;
}

static int make_groups(struct moments *moments, uint32_t count) {
    int r = 0;
    if (moments->folds > 1 &&
        (count > MOMENTS_FOLDS_GROUPS_MAX || count * moments->group_bytes > MOMENTS_FOLDS_BYTES_MAX))
        r = give_up_folds(moments);
    while (r == 0 && moments->slab_count * moments->slab_groups < count)
        r = add_slab(moments);
    if (count > moments->group_count)
        moments->group_count = count;
    return r;
}

/* Scales every input but the weights so that its largest magnitude in the first block lies in [1, 2). */
static void choose_scales(struct moments *moments, size_t rows, const double *const *columns) {
    size_t inputs = moments->formula->input_count + 1;
    for (size_t i = 0; i < moments->input_count; i++) {
        double most = 0;
        for (size_t r = 0; i < inputs && r < rows; r++)
            if (isfinite(columns[i][r]) && fabs(columns[i][r]) > most)
                most = fabs(columns[i][r]);
        int exponent = most > 0 ? ilogb(most) : 0;
        /* 2^1074 is more than a double holds; what is that small keeps some of its smallness. */
        moments->input_exponent[i] = exponent < -1000 ? -1000 : exponent;
        moments->scale[i] = ldexp(1, -moments->input_exponent[i]);
    }
    for (size_t a = 1; a + 1 < moments->width; a++) {
        const struct formula_product *product = &moments->formula->products[a];
        for (size_t f = 0; f < product->factor_count; f++)
            moments->exponent[a] +=
                moments->input_exponent[product->factors[f].input] * product->factors[f].power;
    }
    moments->exponent[moments->width - 1] = moments->input_exponent[inputs - 1];
    moments->scaled = true;
}

/* Takes the rows out of the tile that cannot be used, and counts why. Returns how many stay, or -ERANGE. */
static int64_t keep_usable(struct moments *moments, size_t rows, struct record **records, size_t *ret_row) {
    struct moments_place *places = moments->tile.places;
    double *factors = moments->scratch.factors;
    size_t kept = 0;
    for (size_t r = 0; r < rows; r++) {
        bool finite = true;
        for (size_t i = 0; i < moments->input_count; i++)
            finite = finite && isfinite(tile_column(factors, i)[r]);
        double weight = moments->weighted ? tile_column(factors, moments->input_count - 1)[r] : 1;
        if (finite && weight < 0) {
            *ret_row = r;
            return -ERANGE;
        }
        records[r]->incomplete += !finite;
        if (!finite || weight == 0)
            continue;
        for (size_t i = 0; i < moments->input_count; i++)
            tile_column(factors, i)[kept] = tile_column(factors, i)[r];
        places[kept] = places[r];
        records[kept++] = records[r];
    }
    return (int64_t)kept;
}

/* The products of the tile's rows, and with weights what the products' left sides are. Returns whether all
 * are exact. */
static bool make_products(struct moments *moments, size_t rows) {
    const struct moments_kernel *kernel = moments->kernel;
    struct scratch *scratch = &moments->scratch;
    bool exact = !moments->weighted;
    for (size_t a = 1; a + 1 < moments->width; a++) {
        const struct formula_product *product = &moments->formula->products[a];
        if (product->degree == 1)
            continue;
        double *high = tile_column(scratch->high, a), *low = tile_column(scratch->low, a);
        memcpy(high, tile_column(scratch->factors, product->factors[0].input), rows * sizeof *high);
        memset(low, 0, rows * sizeof *low);
        for (size_t f = 0; f < product->factor_count; f++)
            for (int power = f == 0; power < product->factors[f].power; power++)
                exact &= kernel->multiply(rows, high, low,
                                          tile_column(scratch->factors, product->factors[f].input));
    }
    for (size_t a = 0; moments->weighted && a < moments->width; a++) {
        double *high = tile_column(scratch->weighted_high, a), *low = tile_column(scratch->weighted_low, a);
        memcpy(high, z_high(moments, a), rows * sizeof *high);
        memcpy(low, z_low(moments, a), rows * sizeof *low);
        kernel->multiply(rows, high, low, tile_column(scratch->factors, moments->input_count - 1));
    }
    return exact;
}

static void add_log_weights(struct moments *moments, size_t rows, struct record **records) {
    const double *weights = tile_column(moments->scratch.factors, moments->input_count - 1);
    for (size_t r = 0; r < rows; r++) {
        struct dd sum = dd_two_sum(records[r]->log_weights, log(weights[r]));
        records[r]->log_weights = sum.high;
        records[r]->log_weights_low += sum.low;
    }
}

static void find_places(struct moments *moments, size_t rows, const uint32_t *groups, const uint8_t *folds,
                        struct record **records) {
    for (size_t r = 0; r < rows; r++) {
        uint32_t fold = folds && moments->folds > 1 ? folds[r] : 0;
        char *group = group_at(moments, groups[r]);
        moments->tile.places[r] = (struct moments_place){
            sums_of(moments, group, fold), ranges_of(moments, group), rows_of(moments, group, fold)};
        records[r] = record_of(moments, group, fold);
    }
}

static void add_negative(struct moments *moments, size_t rows, struct record **records) {
    const double *response = tile_column(moments->scratch.factors, moments->formula->input_count);
    const double *weights = moments->weighted ? response + MOMENTS_TILE : moments->scratch.one;
    for (size_t r = 0; r < rows; r++)
        if (response[r] < 0)
            records[r]->negative += response[r] * weights[r];
}

static int add_tile(struct moments *moments, size_t start, size_t rows, const double *const *columns,
                    const uint32_t *groups, const uint8_t *folds, size_t *ret_row) {
    struct record *records[MOMENTS_TILE];
    bool usable = !moments->weighted; /* weights are looked at one by one */
    for (size_t i = 0; i < moments->input_count; i++)
        usable &= moments->kernel->load(rows, columns[i] + start, moments->scale[i],
                                        tile_column(moments->scratch.factors, i));
    find_places(moments, rows, groups + start, folds ? folds + start : NULL, records);
    if (!usable) {
        int64_t kept = keep_usable(moments, rows, records, ret_row);
        if (kept < 0) {
            *ret_row += start;
            return (int)kept;
        }
        rows = (size_t)kept;
    }
    struct moments_tile *tile = &moments->tile;
    for (size_t r = 0; r < rows; r++)
        ++*tile->places[r].rows;
    if (moments->weighted)
        add_log_weights(moments, rows, records);
    add_negative(moments, rows, records);
    for (tile->rows = rows; tile->rows % MOMENTS_LANES != 0; tile->rows++) {
        tile->places[tile->rows] = (struct moments_place){sums_of(moments, moments->padding, 0),
                                                          ranges_of(moments, moments->padding), NULL};
        for (size_t i = 0; i < moments->input_count; i++)
            tile_column(moments->scratch.factors, i)[tile->rows] = 0;
    }
    tile->exact = make_products(moments, tile->rows);
    moments->kernel->accumulate(tile);
    return 0;
}

int moments_add(struct moments *moments, size_t rows, const double *const *columns, const uint32_t *groups,
                uint32_t group_count, const uint8_t *folds, size_t *ret_row) {
    int r = make_groups(moments, group_count);
    if (r == 0 && !moments->scaled && rows > 0)
        choose_scales(moments, rows, columns);
    for (size_t start = 0; r == 0 && start < rows; start += MOMENTS_TILE) {
        size_t count = rows - start < MOMENTS_TILE ? rows - start : MOMENTS_TILE;
        r = add_tile(moments, start, count, columns, groups, folds, ret_row);
    }
    return r;
}

/* ---- Asking */

uint32_t moments_group_count(const struct moments *moments) {
    return moments->group_count;
}

uint32_t moments_folds(const struct moments *moments) {
    return moments->folds;
}

uint64_t moments_rows(const struct moments *moments, uint32_t group, uint32_t fold) {
    return *rows_of(moments, group_at(moments, group), fold);
}

uint64_t moments_incomplete(const struct moments *moments, uint32_t group, uint32_t fold) {
    return record_of(moments, group_at(moments, group), fold)->incomplete;
}

size_t moments_width(const struct moments *moments) {
    return moments->width;
}

struct dd moments_sum(const struct moments *moments, uint32_t group, uint32_t fold, size_t a, size_t b) {
    char *at = group_at(moments, group);
    if (a == 0 && b == 0 && !moments->weighted)
        return dd_from((double)*rows_of(moments, at, fold));
    return sum_at(sums_of(moments, at, fold), moments->sum_index[a * moments->width + b]);
}

int moments_exponent(const struct moments *moments, size_t a) {
    return moments->exponent[a];
}

double moments_log_weights(const struct moments *moments, uint32_t group, uint32_t fold) {
    const struct record *record = record_of(moments, group_at(moments, group), fold);
    return record->log_weights + record->log_weights_low;
}

double moments_negative(const struct moments *moments, uint32_t group, uint32_t fold) {
    return ldexp(record_of(moments, group_at(moments, group), fold)->negative,
                 moments->exponent[moments->width - 1]);
}

static void widen(const struct moments *moments, uint32_t group, size_t index, int exponent, double *minimum,
                  double *maximum) {
    const double *chunk =
        ranges_of(moments, group_at(moments, group)) + index / MOMENTS_LANES * MOMENTS_CHUNK;
    size_t lane = index % MOMENTS_LANES;
    *minimum = fmin(*minimum, ldexp(chunk[lane], exponent));
    *maximum = fmax(*maximum, ldexp(chunk[MOMENTS_LANES + lane], exponent));
}

void moments_widen_input(const struct moments *moments, uint32_t group, size_t i, double *minimum,
                         double *maximum) {
    widen(moments, group, i, moments->input_exponent[i], minimum, maximum);
}

void moments_widen(const struct moments *moments, uint32_t group, size_t a, double *minimum,
                   double *maximum) {
    widen(moments, group, moments->range_index[a], moments->exponent[a], minimum, maximum);
}
