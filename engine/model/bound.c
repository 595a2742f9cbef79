#include "engine/model/bound.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/model/extrapolation.h"
#include "engine/model/formula.h"
#include "engine/model/model.h"
#include "engine/model/noise.h"
#include "engine/numerics/random.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * A row is laid out in slots: the constants 1, 0 and NaN, the caller's values, then powers and logarithms. A
 * term is the product of WIDTH slots, filled up with slot 0. A dummy of a text is constant, because the text
 * is known when the group is bound.
 */
enum {
    SLOT_ONE,
    SLOT_ZERO,
    SLOT_NAN,
    SLOT_VALUES,
    SLOTS_MAX = 256, /* a slot is a byte */
    WIDTH_USUAL = 3, /* factors of a term; a model with a longer one takes a slower loop */
    ROWS_AT_ONCE = 64,
    LINE = 64, /* bytes of a cache line */
};

struct power_slot {
    uint8_t from;
    int32_t power;
    bool is_logarithm;
};

/* The products of at most three columns A, B and C, in the order in which they are summed: that of M-2. */
enum { ONE, ABC, AB, AC, BC, A, B, C, PRODUCTS };

/* One part of the model, followed by an estimate and a noise coefficient for each term, then by the slots of
 * each term. The first `used` terms make the mean; terms from there to `count` are of sigma alone. */
struct bound_part {
    double constant, floor; /* of sigma */
    double scale, shift;    /* an offset is sigma x scale x (Z - shift), |Z| for a half-normal */
    const struct model_noise *noise;
    uint16_t used, count;
    bool has_noise, is_half, is_mixture;
    double numbers[];
};

typedef double pair __attribute__((vector_size(16)));
static const double half_shift = 0.79788456080286535588; /* the square root of 2 / pi */

/*
 * A sum of such products on one part, as most models are. It is evaluated without loops and branches: the
 * coefficient of a product that the model does not have is 0. Where the sum is not finite, which it is too if
 * such a product is infinite, the terms are evaluated one by one.
 */
struct straight {
    uint8_t columns[WIDTH_USUAL]; /* A, B and C: which of the caller's values */
    bool is_used, has_ranges, is_half;
    uint64_t key;                              /* of draws */
    double constant, floor, scale;             /* of sigma, as in struct bound_part */
    pair both[PRODUCTS];                       /* each estimate, and the coefficient of sigma */
    double estimates[PRODUCTS];                /* alone */
    double minima[PRODUCTS], maxima[PRODUCTS]; /* if has_ranges; otherwise the evaluator is asked */
};

struct bound {
    struct predict_call call;
    struct straight straight; /* up to `scale` in a line of the cache with `call` */
    void *owner;
    char *name;
    const struct model_group *group;
    const struct evaluator *evaluator;
    struct power_slot *powers;
    uint16_t value_count, power_count, width, term_max;
    uint16_t over;       /* slot of the segments' column; SLOT_ZERO: none */
    uint32_t first, end; /* parts; none: nothing is defined */
    size_t stride;       /* bytes of a part */
    size_t *sources;     /* by input of the evaluator: the index of its value */
    double *codes;       /* or the code of its text; NaN for numbers */
    char parts[];
};

const struct predict_call *bound_call(const struct bound *bound) {
    return &bound->call;
}

struct bound *bound_of(const struct predict_call *call) {
    return (struct bound *)call;
}

void *bound_owner(const struct bound *bound) {
    return bound->owner;
}

const char *bound_name(const struct bound *bound) {
    return bound->name;
}

static struct bound_part *part_at(const struct bound *bound, size_t i) {
    return (struct bound_part *)(bound->parts + i * bound->stride);
}

static uint8_t *slots_of(const struct bound *bound, const struct bound_part *part) {
    return (uint8_t *)(part->numbers + 2 * bound->term_max);
}

/* ---- Evaluating */

/* Fills in the slots X of a row, and returns the part of the model that holds for it; NULL: none does. */
static inline const struct bound_part *fill_slots(const struct bound *bound, const double *values,
                                                  double *x) {
    size_t count = bound->value_count, part = bound->first;
    x[SLOT_ONE] = 1;
    x[SLOT_ZERO] = 0;
    x[SLOT_NAN] = NAN;
    for (size_t i = 0; i < count; i++)
        x[SLOT_VALUES + i] = values[i];
    for (size_t i = 0; i < bound->power_count; i++) {
        const struct power_slot *power = &bound->powers[i];
        double value = power->is_logarithm ? log2(x[power->from]) : x[power->from];
        x[SLOT_VALUES + count + i] = power->power == 1 ? value : formula_power(value, power->power);
    }
    if (isnan(x[bound->over]) || bound->first == bound->end)
        return NULL;
    if (bound->over != SLOT_ZERO)
        part = evaluator_segment(bound->group, bound->first, bound->end, x[bound->over]);
    return part_at(bound, part - bound->first);
}

static inline double product_of(const double *x, const uint8_t *slots, size_t width) {
    double product = x[slots[0]] * x[slots[1]] * x[slots[2]];
    for (size_t f = WIDTH_USUAL; f < width; f++)
        product *= x[slots[f]];
    return product;
}

/* The mean from the values Z of the terms, by the kind of model: sum, maximum, minimum or harmonic sum. Not
 * finite: the model is not defined there. */
static inline double combine_terms(const struct bound *bound, const struct bound_part *part,
                                   const double *z) {
    const enum evaluator_combine how = bound->evaluator->combine;
    double sum = how == EVALUATOR_MAXIMUM ? -INFINITY : how == EVALUATOR_MINIMUM ? INFINITY : 0;
    for (size_t t = 0; how == EVALUATOR_SUM && t < part->used; t++)
        sum += part->numbers[t] * z[t];
    for (size_t t = 0; how != EVALUATOR_SUM && t < part->used; t++) {
        double product = part->numbers[t] * z[t];
        if (isnan(product))
            return NAN;
        sum = how == EVALUATOR_HARMONIC  ? sum + 1 / product
              : how == EVALUATOR_MAXIMUM ? fmax(sum, product)
                                         : fmin(sum, product);
    }
    return how == EVALUATOR_HARMONIC ? 1 / sum : sum;
}

/* The standard deviation of the noise from the values Z of the terms, at least the floor; NaN: the part has
 * no noise, or its formula is below 0. */
static inline double sigma_at(const struct bound *bound, const struct bound_part *part, const double *z) {
    const double *coefficients = part->numbers + bound->term_max;
    double sigma = part->constant;
    if (part->is_mixture)
        return noise_sigma(part->noise, NULL, 0);
    for (size_t t = 0; t < part->count; t++)
        sigma += coefficients[t] != 0 ? coefficients[t] * z[t] : 0;
    sigma = sigma < part->floor ? part->floor : sigma;
    return part->has_noise && sigma >= 0 ? sigma : NAN;
}

/* The mean of a row, and, if RET_SIGMA is not NULL, the standard deviation of its noise; NaN where the model
 * is not defined. X and Z are scratch for all slots and terms; *RET_PART is the part of the row. */
static inline double value_in(const struct bound *bound, const double *values,
                              const struct bound_part **ret_part, double *ret_sigma, double *x, double *z) {
    const struct bound_part *part = *ret_part = fill_slots(bound, values, x);
    if (!part)
        return NAN;
    const uint8_t *slots = slots_of(bound, part);
    size_t width = bound->width, count = ret_sigma ? part->count : part->used;
    for (size_t t = 0; t < count; t++)
        z[t] = product_of(x, slots + t * width, width);
    double mean = combine_terms(bound, part, z);
    if (ret_sigma)
        *ret_sigma = isfinite(mean) ? sigma_at(bound, part, z) : NAN;
    return isfinite(mean) ? mean : NAN;
}

static double value_of(const struct bound *bound, const double *values, const struct bound_part **ret_part,
                       double *ret_sigma) {
    double x[SLOTS_MAX], z[MODEL_TERMS_MAX];
    return value_in(bound, values, ret_part, ret_sigma, x, z);
}

/* MEAN plus noise, drawn by counter from stream STREAM and number NUMBER, so that the same draw gives the
 * same value in any thread. Returns MEAN where the noise is not defined. */
static inline double add_noise(const struct bound *bound, const struct bound_part *part, double mean,
                               double sigma, uint64_t stream, uint64_t number) {
    uint64_t bits = random_counter_bits(bound->straight.key, stream, number);
    double normal = random_counter_normal(bits), offset;
    if (part->is_mixture)
        offset = noise_draw(part->noise, sigma, normal, random_counter_uniform(bits));
    else
        offset = sigma * part->scale * ((part->is_half ? fabs(normal) : normal) - part->shift);
    return isfinite(offset) ? mean + offset : mean;
}

__attribute__((noinline)) static double call_mean(const struct predict_call *call, const double *values) {
    const struct bound_part *part;
    return value_of((const struct bound *)call, values, &part, NULL);
}

__attribute__((noinline)) static double call_draw(const struct predict_call *call, const double *values,
                                                  uint64_t stream, uint64_t number) {
    const struct bound *bound = (const struct bound *)call;
    const struct bound_part *part;
    double sigma = NAN, mean = value_of(bound, values, &part, &sigma);
    return part && part->has_noise ? add_noise(bound, part, mean, sigma, stream, number) : mean;
}

static inline double add_products(double sum, const double *by, double a, double b, double c) {
    return sum + by[ONE] + by[ABC] * (a * b * c) + by[AB] * (a * b) + by[AC] * (a * c) + by[BC] * (b * c) +
           by[A] * a + by[B] * b + by[C] * c;
}

/* Mean and standard deviation of a row, as a pair, for models that are one sum of products (struct
 * straight). */
static inline pair straight_value(const struct straight *straight, const double *values) {
    double a = values[straight->columns[0]], b = values[straight->columns[1]],
           c = values[straight->columns[2]];
    const pair *by = straight->both;
    pair sum = (pair){0, straight->constant} + by[ONE] + by[ABC] * (a * b * c) + by[AB] * (a * b) +
               by[AC] * (a * c) + by[BC] * (b * c) + by[A] * a + by[B] * b + by[C] * c;
    double sigma = sum[1] < straight->floor ? straight->floor : sum[1];
    sum[1] = sigma >= 0 ? sigma : NAN;
    return sum;
}

static double straight_mean(const struct predict_call *call, const double *values) {
    const struct straight *straight = &((const struct bound *)call)->straight;
    double mean = add_products(0, straight->estimates, values[straight->columns[0]],
                               values[straight->columns[1]], values[straight->columns[2]]);
    return isfinite(mean) ? mean : call_mean(call, values);
}

static double mean_as_draw(const struct predict_call *call, const double *values, uint64_t stream,
                           uint64_t number) {
    (void)stream, (void)number;
    return straight_mean(call, values);
}

static double straight_draw(const struct predict_call *call, const double *values, uint64_t stream,
                            uint64_t number) {
    const struct straight *straight = &((const struct bound *)call)->straight;
    double normal = random_counter_normal(random_counter_bits(straight->key, stream, number));
    pair value = straight_value(straight, values);
    normal = straight->is_half ? fabs(normal) - half_shift : normal;
    double offset = value[1] * straight->scale * normal;
    return isfinite(value[0] + offset) ? value[0] + offset : call_draw(call, values, stream, number);
}

/* The draws of a call that has no faster way. */
static void call_draws(const struct predict_call *call, const double *values, size_t count,
                       const uint64_t *streams, const uint64_t *numbers, double *ret) {
    for (size_t i = 0; i < count; i++)
        ret[i] = call->draw(call, values, streams[i], numbers[i]);
}

static void mean_as_draws(const struct predict_call *call, const double *values, size_t count,
                          const uint64_t *streams, const uint64_t *numbers, double *ret) {
    double mean = straight_mean(call, values);
    (void)streams, (void)numbers;
    for (size_t i = 0; i < count; i++)
        ret[i] = mean;
}

/* Draws COUNT times as straight_draw(), computing once what depends only on the values or the stream. */
static void straight_draws(const struct predict_call *call, const double *values, size_t count,
                           const uint64_t *streams, const uint64_t *numbers, double *ret) {
    const struct straight *straight = &((const struct bound *)call)->straight;
    pair value = straight_value(straight, values);
    double mean = value[0], scale = value[1] * straight->scale;
    uint64_t stream = ~streams[0], seed = 0;
    for (size_t i = 0; i < count; i++) {
        seed = streams[i] == stream ? seed : random_counter_seed(straight->key, streams[i]);
        stream = streams[i];
        double normal = random_counter_normal(random_seed_bits(seed, numbers[i]));
        ret[i] = mean + scale * (straight->is_half ? fabs(normal) - half_shift : normal);
        if (!isfinite(ret[i]))
            ret[i] = call_draw(call, values, stream, numbers[i]);
    }
}

static void call_means(const struct predict_call *call, const double *const *columns, size_t count,
                       double *ret) {
    bound_rows(bound_of(call), columns, count, ret, NULL, NULL);
}

/* ---- For the host alone, without need for speed */

/* The row as the evaluator has it. */
static void fill_inputs(const struct bound *bound, const double *values, double *inputs) {
    for (size_t i = 0; i < bound->evaluator->input_count; i++)
        inputs[i] = bound->evaluator->inputs[i].is_text ? bound->codes[i] : values[bound->sources[i]];
}

/* Whether the row lies outside the ranges or the hull of the measured rows. */
bool bound_is_outside(const struct bound *bound, const double *values) {
    const struct straight *straight = &bound->straight;
    double inputs[SLOTS_MAX];
    struct evaluator_value value;
    fill_inputs(bound, values, inputs);
    if (!straight->has_ranges) {
        extrapolation_find(bound->evaluator, bound->group, inputs, &value);
        return extrapolation_is_outside(&value);
    }
    double a = values[straight->columns[0]], b = values[straight->columns[1]],
           c = values[straight->columns[2]];
    const double products[] = {1, a * b * c, a * b, a * c, b * c, a, b, c};
    for (size_t i = 0; i < PRODUCTS; i++)
        if (products[i] < straight->minima[i] || products[i] > straight->maxima[i])
            return true;
    return extrapolation_beyond_hull(bound->evaluator, inputs) > 0;
}

/* Mean and sigma of a row; NaN where the model is not defined. */
void bound_value(const struct bound *bound, const double *values, double *ret_mean, double *ret_sigma) {
    const struct bound_part *part;
    pair value = {NAN, NAN};
    if (bound->straight.is_used)
        value = straight_value(&bound->straight, values);
    *ret_mean = value[0];
    *ret_sigma = value[1];
    if (isfinite(value[0]))
        return;
    *ret_mean = value_of(bound, values, &part, ret_sigma);
    if (isnan(*ret_mean) || !part->has_noise)
        *ret_sigma = NAN;
}

void bound_extrapolation(const struct bound *bound, const double *values, struct evaluator_value *ret) {
    double inputs[SLOTS_MAX];
    fill_inputs(bound, values, inputs);
    extrapolation_find(bound->evaluator, bound->group, inputs, ret);
}

double bound_standard_error(const struct bound *bound, const double *values) {
    double inputs[SLOTS_MAX];
    fill_inputs(bound, values, inputs);
    return evaluator_standard_error(bound->evaluator, bound->group, inputs);
}

/* ---- Many rows: the compiler makes vectors of a loop over a block, whose length it knows */

enum { OUTSIDE = 1, NEAR_HULL = 2 }; /* the latter: beyond the hull, unless that is rounding */

struct block {
    double means[ROWS_AT_ONCE], sigmas[ROWS_AT_ONCE];
    int64_t outside[ROWS_AT_ONCE];
};

/* Marks the rows of a block that lie beyond a side of the hull as NEAR_HULL in OUTSIDE. */
__attribute__((always_inline)) static inline void
compare_hull(const struct bound *bound, const double *const x[WIDTH_USUAL], int64_t *restrict outside) {
    const struct model_hull *hull = bound->evaluator->model->hull;
    for (size_t d = 0; bound->evaluator->hull && d < hull->direction_count; d++) {
        double sums[ROWS_AT_ONCE] = {0}, minimum = hull->minimum[d], maximum = hull->maximum[d];
        for (size_t c = 0; c < hull->column_count; c++) {
            double weight = hull->directions[d * hull->column_count + c] * hull->scale[c];
            size_t k = 0; /* all inputs are among the columns */
            while (bound->straight.columns[k] != bound->sources[bound->evaluator->hull[c]])
                k++;
            for (size_t i = 0; weight != 0 && i < ROWS_AT_ONCE; i++)
                sums[i] += weight * x[k][i];
        }
        for (size_t i = 0; i < ROWS_AT_ONCE; i++)
            outside[i] |= ((sums[i] < minimum) | (sums[i] > maximum)) * NEAR_HULL;
    }
}

/* Evaluates ROWS_AT_ONCE rows of a model that is one sum of products, with sigma and whether they are outside
 * the domain if asked for. X: columns A, B and C. false: some mean is not finite, and must be evaluated row
 * by row. */
__attribute__((target_clones("avx2", "default"))) static bool
evaluate_block(const struct bound *bound, const double *const x[WIDTH_USUAL], bool has_sigmas,
               bool has_outside, struct block *restrict block) {
    const struct straight *straight = &bound->straight;
    const double *a = x[0], *b = x[1], *c = x[2], *low = straight->minima, *high = straight->maxima,
                 floor = straight->floor;
    double by[PRODUCTS];
    int64_t all = OUTSIDE, not_finite = 0;
    memcpy(by, straight->estimates, sizeof by);
    for (size_t i = 0; i < ROWS_AT_ONCE; i++)
        block->means[i] = add_products(0, by, a[i], b[i], c[i]);
    for (size_t i = 0; i < ROWS_AT_ONCE; i++)
        not_finite |= !(fabs(block->means[i]) < INFINITY);
    for (size_t i = 0; i < PRODUCTS; i++)
        by[i] = straight->both[i][1];
    for (size_t i = 0; has_sigmas && i < ROWS_AT_ONCE; i++) {
        double sigma = add_products(straight->constant, by, a[i], b[i], c[i]);
        block->sigmas[i] = sigma < floor ? floor : sigma;
    }
    for (size_t i = 0; has_outside && i < ROWS_AT_ONCE; i++) {
        double ab = a[i] * b[i], ac = a[i] * c[i], bc = b[i] * c[i], abc = ab * c[i];
        block->outside[i] = (a[i] < low[A]) | (a[i] > high[A]) | (b[i] < low[B]) | (b[i] > high[B]) |
                            (c[i] < low[C]) | (c[i] > high[C]) | (ab < low[AB]) | (ab > high[AB]) |
                            (ac < low[AC]) | (ac > high[AC]) | (bc < low[BC]) | (bc > high[BC]) |
                            (abc < low[ABC]) | (abc > high[ABC]);
        all &= block->outside[i];
    }
    if (has_outside && all != OUTSIDE)
        compare_hull(bound, x, block->outside);
    return !not_finite;
}

void bound_values(const struct bound *bound, const double *const *columns, size_t row, double *ret) {
    for (size_t c = 0; c < bound->value_count; c++)
        ret[c] = columns[c] ? columns[c][row] : NAN;
}

/* Evaluates at most ROWS_AT_ONCE rows from row FIRST on: by block where possible, otherwise row by row.
 * RET_SIGMAS and RET_OUTSIDE may be NULL. */
static void evaluate_rows(const struct bound *bound, const double *const *columns, size_t first, size_t rows,
                          double *ret_means, double *ret_sigmas, bool *ret_outside) {
    const struct straight *straight = &bound->straight;
    double padded[WIDTH_USUAL][ROWS_AT_ONCE], values[BOUND_VALUES_MAX];
    const double *x[WIDTH_USUAL];
    bool has_outside = ret_outside && straight->has_ranges;
    struct block block;
    for (size_t k = 0; straight->is_used && k < WIDTH_USUAL; k++) {
        x[k] = columns[straight->columns[k]] + first;
        for (size_t i = 0; rows < ROWS_AT_ONCE && i < ROWS_AT_ONCE; i++)
            padded[k][i] = x[k][i < rows ? i : 0];
        x[k] = rows < ROWS_AT_ONCE ? padded[k] : x[k];
    }
    if (straight->is_used && evaluate_block(bound, x, ret_sigmas, has_outside, &block) && !ret_sigmas &&
        !ret_outside) {
        memcpy(ret_means, block.means, rows * sizeof *ret_means);
        return;
    }
    for (size_t i = 0; i < rows; i++) {
        bool is_straight = straight->is_used && isfinite(block.means[i]);
        int64_t outside = !ret_outside ? 0 : is_straight && has_outside ? block.outside[i] : NEAR_HULL;
        double sigma = is_straight && ret_sigmas && block.sigmas[i] >= 0 ? block.sigmas[i] : NAN;
        if (!is_straight || outside == NEAR_HULL)
            bound_values(bound, columns, first + i, values);
        if (is_straight)
            ret_means[i] = block.means[i];
        else
            bound_value(bound, values, &ret_means[i], &sigma);
        if (ret_sigmas)
            ret_sigmas[i] = sigma;
        if (ret_outside)
            ret_outside[i] = outside & OUTSIDE || (outside && bound_is_outside(bound, values));
    }
}

void bound_rows(const struct bound *bound, const double *const *columns, size_t count, double *ret_means,
                double *ret_sigmas, bool *ret_outside) {
    for (size_t i = 0; i < count; i += ROWS_AT_ONCE)
        evaluate_rows(bound, columns, i, count - i < ROWS_AT_ONCE ? count - i : ROWS_AT_ONCE, ret_means + i,
                      ret_sigmas ? ret_sigmas + i : NULL, ret_outside ? ret_outside + i : NULL);
}

/* ---- Binding */

/* Finds, for each input of the evaluator, its index among the caller's NAMES, or the code of the text that a
 * name like "operation=Send" gives. -EINVAL: an input has no value. */
static int bind_inputs(struct bound *bound, const char *const *names, size_t count, struct failure *failure) {
    const struct evaluator *evaluator = bound->evaluator;
    bound->sources = xcalloc(evaluator->input_count + 1, sizeof *bound->sources);
    bound->codes = xcalloc(evaluator->input_count + 1, sizeof *bound->codes);
    for (size_t i = 0; i < evaluator->input_count; i++) {
        const struct evaluator_input *column = &evaluator->inputs[i];
        size_t length = strlen(column->name), k = 0;
        while (k < count && (strncmp(names[k], column->name, length) != 0 ||
                             names[k][length] != (column->is_text ? '=' : '\0')))
            k++;
        if (k == count)
            return failure_input(failure, NULL, 0, 0,
                                 "the model '%s' needs the column '%.128s'%s, for which this method has "
                                 "no value",
                                 evaluator->model->file, column->name, column->is_text ? ", a text" : "");
        bound->sources[i] = k;
        bound->codes[i] = column->is_text ? evaluator_code(evaluator, i, names[k] + length + 1) : NAN;
    }
    return 0;
}

/* The slot of a factor; a new one for a power or logarithm that has none yet. SLOTS_MAX or more: too many. */
static size_t find_slot(struct bound *bound, const struct model_factor *factor) {
    const struct evaluator *evaluator = bound->evaluator;
    size_t input = 0, p = 0;
    while (evaluator->inputs[input].is_text != (factor->level != NULL) ||
           strcmp(evaluator->inputs[input].name, factor->column) != 0)
        input++;
    if (factor->level) {
        double code = bound->codes[input];
        return isnan(code)                                               ? SLOT_NAN
               : code == evaluator_code(evaluator, input, factor->level) ? SLOT_ONE
                                                                         : SLOT_ZERO;
    }
    struct power_slot power = {(uint8_t)(SLOT_VALUES + bound->sources[input]), factor->power,
                               factor->function != NULL};
    if (power.power == 1 && !power.is_logarithm)
        return power.from;
    while (p < bound->power_count &&
           (bound->powers[p].from != power.from || bound->powers[p].power != power.power ||
            bound->powers[p].is_logarithm != power.is_logarithm))
        p++;
    if (p == bound->power_count && SLOT_VALUES + bound->value_count + p < SLOTS_MAX) {
        bound->powers = xrealloc(bound->powers, (p + 1) * sizeof *bound->powers);
        bound->powers[bound->power_count++] = power;
    }
    return SLOT_VALUES + bound->value_count + p;
}

/* Writes the slots of each term's factors, term by term, into SLOTS. -EINVAL: more slots than SLOTS_MAX. */
static int bind_terms(struct bound *bound, uint8_t *slots, struct failure *failure) {
    const struct model *model = bound->evaluator->model;
    for (size_t t = 0; t < model->term_count; t++)
        for (size_t f = 0; f < model->terms[t].factor_count; f++) {
            size_t slot = find_slot(bound, &model->terms[t].factors[f]);
            if (slot >= SLOTS_MAX)
                return failure_input(failure, NULL, 0, 0,
                                     "the terms of the model '%s' have more than %d columns and powers, the "
                                     "most accepted",
                                     model->file, SLOTS_MAX - SLOT_VALUES);
            slots[t * bound->width + f] = (uint8_t)slot;
        }
    return 0;
}

/* Copies estimates, noise and slots of part FROM into TO, terms of the mean first, then terms of sigma alone;
 * other terms are left out. */
static void fill_part(struct bound *bound, const uint8_t *slots, const struct model_part *from,
                      struct bound_part *to) {
    const struct model_noise *noise = &from->noise;
    memset(to, 0, bound->stride);
    const size_t terms = bound->evaluator->model->term_count, width = bound->width;
    *to = (struct bound_part){.noise = noise,
                              .constant = noise->constant,
                              .floor = noise->floor.sigma > 0 ? noise->floor.sigma : -INFINITY,
                              .is_half = noise->half_normal,
                              .is_mixture = noise->kind == MODEL_NOISE_MIXTURE,
                              .has_noise = noise->kind != MODEL_NOISE_NONE,
                              .scale = noise->half_normal ? 1 / sqrt(1 - M_2_PI) : 1,
                              .shift = noise->half_normal ? half_shift : 0};
    for (int pass = 0; pass < 2; pass++) { /* terms of the mean, then those of the sigma alone */
        for (size_t t = 0; t < terms; t++) {
            double coefficient = noise->coefficients ? noise->coefficients[t] : 0;
            if (pass == 0 ? from->estimates[t].dropped : !from->estimates[t].dropped || coefficient == 0)
                continue;
            to->numbers[to->count] = pass == 0 ? from->estimates[t].estimate : 0;
            to->numbers[bound->term_max + to->count] = coefficient;
            memcpy(slots_of(bound, to) + to->count++ * width, slots + t * width, width);
        }
        to->used = pass == 0 ? to->count : to->used;
    }
}

/* The product of columns (ONE to C) that the term with SLOTS is; PRODUCTS: it is none of them. A column that
 * no earlier term has becomes the next of A, B and C, counted in *COLUMN_COUNT. *RET_IS_ZERO: the term has a
 * dummy of another level. */
static size_t find_product(struct bound *bound, const uint8_t *slots, size_t *column_count,
                           bool *ret_is_zero) {
    static const uint8_t products[] = {ONE, A, B, AB, C, AC, BC, ABC}; /* by a bit for each column */
    size_t bits = 0;
    *ret_is_zero = false;
    for (size_t f = 0; f < WIDTH_USUAL; f++) {
        size_t value = slots[f] - (size_t)SLOT_VALUES, k = 0;
        *ret_is_zero = *ret_is_zero || slots[f] == SLOT_ZERO;
        if (slots[f] == SLOT_ZERO || slots[f] == SLOT_ONE)
            continue;
        while (k < *column_count && bound->straight.columns[k] != value)
            k++;
        if (value >= bound->value_count || k == WIDTH_USUAL || bits >> k & 1)
            return PRODUCTS;
        bits |= (size_t)1 << k;
        bound->straight.columns[k] = (uint8_t)value;
        *column_count += k == *column_count;
    }
    return products[bits];
}

/* Decides whether the one part of the model is a sum of products of at most three columns, and if so, fills
 * in the coefficients and sets the faster functions. SLOTS: of the model's terms. */
static void fill_straight(struct bound *bound, const uint8_t *slots, const struct model_part *part) {
    const struct bound_part *filled = part_at(bound, 0);
    struct straight *straight = &bound->straight;
    size_t columns = 0, product = 0;
    bool is_zero;
    memset(straight->estimates, 0, sizeof straight->estimates);
    memset(straight->both, 0, sizeof straight->both);
    for (size_t t = 0; product < PRODUCTS && t < bound->term_max; t++) {
        product = find_product(bound, slots + t * WIDTH_USUAL, &columns, &is_zero);
        if (product == PRODUCTS || is_zero)
            continue;
        double estimate = part->estimates[t].dropped ? 0 : part->estimates[t].estimate;
        straight->estimates[product] += estimate;
        straight->both[product] +=
            (pair){estimate, part->noise.coefficients ? part->noise.coefficients[t] : 0};
    }
    for (size_t k = columns; columns > 0 && k < WIDTH_USUAL; k++) /* any that is a number */
        straight->columns[k] = straight->columns[0];
    straight->is_used = columns > 0 && product < PRODUCTS;
    straight->is_half = filled->is_half;
    straight->constant = !filled->has_noise   ? NAN
                         : filled->is_mixture ? noise_sigma(filled->noise, NULL, 0)
                                              : filled->constant;
    straight->floor = filled->floor;
    straight->scale = filled->scale;
    if (!straight->is_used)
        return;
    bool varies = straight->constant != 0 || straight->floor > 0;
    for (size_t p = 0; p < PRODUCTS; p++)
        varies |= straight->both[p][1] != 0;
    bound->call.mean = straight_mean;
    if (!filled->has_noise || !varies) {
        bound->call.draw = mean_as_draw;
        bound->call.draws = mean_as_draws;
    } else if (!filled->is_mixture) {
        bound->call.draw = straight_draw;
        bound->call.draws = straight_draws;
    }
}

/* Binds to the estimates of GROUP, of the same model or a draw of it, and starts draws anew with SEED. */
void bound_follow(struct bound *bound, const struct model_group *group, uint64_t seed) {
    size_t parts = bound->end - bound->first;
    bound->straight.key = random_counter_key(seed);
    bound->straight.is_used = false;
    bound->group = group;
    bound->call = (struct predict_call){call_mean, call_draw, call_means, call_draws};
    const uint8_t *slots = (const uint8_t *)(bound->parts + parts * bound->stride);
    for (size_t p = 0; p < parts; p++)
        fill_part(bound, slots, &group->parts[bound->first + p], part_at(bound, p));
    if (parts == 1 && bound->over == SLOT_ZERO && bound->width == WIDTH_USUAL &&
        bound->evaluator->combine == EVALUATOR_SUM)
        fill_straight(bound, slots, &group->parts[bound->first]);
}

/* Fills in the domain's range of each product of columns; has_ranges becomes false if a range is of anything
 * else. */
static void bind_ranges(struct bound *bound, const uint8_t *slots) {
    const struct evaluator *evaluator = bound->evaluator;
    const struct model *model = evaluator->model;
    struct straight *straight = &bound->straight;
    size_t inputs = evaluator->input_count, columns = WIDTH_USUAL;
    straight->has_ranges = straight->is_used;
    for (size_t i = 0; i < PRODUCTS; i++) {
        straight->minima[i] = -INFINITY;
        straight->maxima[i] = INFINITY;
    }
    for (size_t i = 0; straight->has_ranges && i < inputs + model->term_count; i++) {
        const struct model_term *term = i < inputs ? NULL : &model->terms[i - inputs];
        uint8_t column[WIDTH_USUAL] = {(uint8_t)(SLOT_VALUES + (term ? 0 : bound->sources[i]))};
        bool is_zero;
        size_t product =
            find_product(bound, term ? slots + (i - inputs) * WIDTH_USUAL : column, &columns, &is_zero);
        const struct model_range *range =
            !term || extrapolation_has_range(model, term)
                ? model_range_find(&bound->group->parts[bound->first],
                                   term ? term->name : evaluator->inputs[i].name)
                : NULL;
        straight->has_ranges = product < PRODUCTS && (term || !evaluator->inputs[i].is_text);
        if (!range || !straight->has_ranges)
            continue;
        straight->minima[product] = fmax(straight->minima[product], range->minimum);
        straight->maxima[product] = fmin(straight->maxima[product], range->maximum);
    }
}

/* Binds one group of a model to COUNT named values of a caller (bound.h), in one block of memory, so that a
 * call touches few cache lines. -EINVAL: too many columns, or an input without a value. */
int bound_new(const struct evaluator *evaluator, const struct model_group *group, const char *const *names,
              size_t count, void *owner, struct bound **ret, struct failure *failure) {
    const struct model *model = evaluator->model;
    struct bound head = {.owner = owner,
                         .group = group,
                         .evaluator = evaluator,
                         .width = WIDTH_USUAL,
                         .term_max = (uint16_t)model->term_count,
                         .value_count = (uint16_t)count};
    size_t first = 0, end = 0;
    if (count > BOUND_VALUES_MAX || evaluator->input_count >= SLOTS_MAX)
        return failure_input(failure, NULL, 0, 0,
                             "a call of a model binds %zu columns, at most %d are accepted; bind only "
                             "columns that the model has",
                             count, BOUND_VALUES_MAX);
    for (size_t t = 0; t < model->term_count; t++)
        if (model->terms[t].factor_count > head.width)
            head.width = (uint16_t)model->terms[t].factor_count;
    int r = bind_inputs(&head, names, count, failure);
    if (r == 0 && evaluator_parts_named(evaluator, group, head.codes, &first, &end)) {
        head.first = (uint32_t)first;
        head.end = (uint32_t)(evaluator->over == SIZE_MAX ? first + 1 : end);
    }
    if (r == 0 && evaluator->over != SIZE_MAX)
        head.over = (uint16_t)(SLOT_VALUES + head.sources[evaluator->over]);
    else
        head.over = SLOT_ZERO;
    size_t parts = head.end - head.first, slots = model->term_count * head.width;
    head.stride = sizeof(struct bound_part) + 2 * model->term_count * sizeof(double) + slots;
    head.stride = (head.stride + LINE - 1) / LINE * LINE;
    size_t size = sizeof head + parts * head.stride + slots + 1;
    struct bound *bound = aligned_alloc(LINE, (size + LINE - 1) / LINE * LINE);
    if (!bound)
        memory_exhausted();
    memset(bound, 0, size);
    *bound = head;
    bound->name = xstrdup(count ? names[0] : "1");
    uint8_t *terms = (uint8_t *)(bound->parts + parts * bound->stride);
    r = r < 0 ? r : bind_terms(bound, terms, failure);
    if (r < 0) {
        bound_free(bound);
        return r;
    }
    bound_follow(bound, group, 0);
    bind_ranges(bound, terms);
    *ret = bound;
    return 0;
}

void bound_free(struct bound *bound) {
    if (!bound)
        return;
    free(bound->name), free(bound->powers), free(bound->sources), free(bound->codes);
    free(bound);
}
