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
    SMALL = 16,      /* slots of a row that is evaluated without the large arrays */
    WIDTH_USUAL = 3, /* factors of a term; a model with a longer one takes a slower loop */
    ROWS_AT_ONCE = 64,
    LINE = 64, /* bytes of a cache line */
};

struct power_slot {
    uint8_t from;
    int32_t power;
    bool is_logarithm;
};

/* The range of a column or term, a product of slots. */
struct slot_range {
    uint8_t slots[WIDTH_USUAL];
    double minimum, maximum;
};

/* What holds on one part, and after it: an estimate and a noise coefficient for each term, then the slots of
 * each term. The first `used` terms make the mean, those up to `count` only the sigma. */
struct bound_part {
    double constant, floor; /* of sigma */
    double scale, shift;    /* an offset is sigma x scale x (Z - shift), |Z| for a half-normal */
    const struct model_noise *noise;
    uint16_t used, count;
    bool has_noise, is_half, is_mixture;
    double numbers[];
};

struct bound {
    struct predict_call call;
    uint64_t key; /* of draws */
    void *owner;
    char *name;
    const struct model_group *group;
    const struct evaluator *evaluator;
    struct power_slot *powers;
    uint16_t value_count, power_count, width, term_max;
    uint16_t over;             /* slot of the segments' column; SLOT_ZERO: none */
    uint32_t first, end;       /* parts; none: nothing is defined */
    size_t stride;             /* bytes of a part */
    size_t *sources;           /* of each input of the evaluator: the value that it is */
    double *codes;             /* or the code of its text; NaN for numbers */
    struct slot_range *ranges; /* of a group of one part; NULL: the evaluator is asked */
    size_t range_count;
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

/* The slots of a row, and the part that it is in; NULL: none. */
static inline const struct bound_part *lay_out(const struct bound *bound, const double *values, double *x) {
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

/* The mean from the values Z of the terms. */
static inline double combine(const struct bound *bound, const struct bound_part *part, const double *z) {
    const enum evaluator_combine how = bound->evaluator->combine;
    double sum = how == EVALUATOR_MAXIMUM ? -INFINITY : how == EVALUATOR_MINIMUM ? INFINITY : 0;
    for (size_t t = 0; t < part->used; t++) {
        double product = part->numbers[t] * z[t];
        if (isnan(product))
            return NAN;
        sum = how == EVALUATOR_SUM        ? sum + product
              : how == EVALUATOR_HARMONIC ? sum + 1 / product
              : how == EVALUATOR_MAXIMUM  ? fmax(sum, product)
                                          : fmin(sum, product);
    }
    return how == EVALUATOR_HARMONIC ? 1 / sum : sum;
}

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

/* The mean, and, if RET_SIGMA is not NULL, sigma; NaN: not defined. X and Z have room for all slots and
 * terms. */
static inline double value_in(const struct bound *bound, const double *values,
                              const struct bound_part **ret_part, double *ret_sigma, double *x, double *z) {
    const struct bound_part *part = *ret_part = lay_out(bound, values, x);
    if (!part)
        return NAN;
    const uint8_t *slots = slots_of(bound, part);
    size_t width = bound->width, count = ret_sigma ? part->count : part->used;
    for (size_t t = 0; t < count; t++)
        z[t] = product_of(x, slots + t * width, width);
    double mean = combine(bound, part, z);
    if (ret_sigma)
        *ret_sigma = isfinite(mean) ? sigma_at(bound, part, z) : NAN;
    return isfinite(mean) ? mean : NAN;
}

static double value_of(const struct bound *bound, const double *values, const struct bound_part **ret_part,
                       double *ret_sigma) {
    double x[SLOTS_MAX], z[MODEL_TERMS_MAX];
    return value_in(bound, values, ret_part, ret_sigma, x, z);
}

/* A loop with a break is no call of memcpy(), which takes longer than three numbers. */
static inline void copy_values(const struct bound *bound, const double *values, double *x) {
    for (size_t i = 0; i < SMALL - SLOT_VALUES; i++) {
        if (i == bound->value_count)
            break;
        x[SLOT_VALUES + i] = values[i];
    }
}

/* The same of most models: a sum of few terms of at most WIDTH_USUAL factors, one part, no powers. */
static inline double small_value(const struct bound *bound, const double *values, double *ret_sigma) {
    const struct bound_part *part = (const struct bound_part *)bound->parts;
    const uint8_t *slots = slots_of(bound, part);
    const double *coefficients = part->numbers + bound->term_max;
    double x[SMALL], sum = 0, sigma = part->constant;
    x[SLOT_ONE] = 1;
    x[SLOT_ZERO] = 0;
    x[SLOT_NAN] = NAN;
    copy_values(bound, values, x);
    /* All terms of the model: groups alternate, and a number of terms of their own would be mispredicted.
     * What is left over is 0 times slot 0, and no term is infinite where the mean is finite. */
    for (size_t t = 0; t < bound->term_max; t++, slots += WIDTH_USUAL) {
        double z = x[slots[0]] * x[slots[1]] * x[slots[2]];
        sum += part->numbers[t] * z;
        if (ret_sigma)
            sigma += coefficients[t] * z;
    }
    if (ret_sigma) {
        sigma = sigma < part->floor ? part->floor : sigma;
        *ret_sigma = sigma >= 0 ? sigma : NAN;
    }
    return isfinite(sum) ? sum : NAN;
}

static inline double add_noise(const struct bound *bound, const struct bound_part *part, double mean,
                               double sigma, uint64_t stream, uint64_t number) {
    uint64_t bits = random_counter_bits(bound->key, stream, number);
    double normal = random_counter_normal(bits), offset;
    if (part->is_mixture)
        offset = noise_draw(part->noise, sigma, normal, random_counter_uniform(bits));
    else
        offset = sigma * part->scale * ((part->is_half ? fabs(normal) : normal) - part->shift);
    return isfinite(offset) ? mean + offset : mean;
}

static double call_mean(const struct predict_call *call, const double *values) {
    const struct bound_part *part;
    return value_of((const struct bound *)call, values, &part, NULL);
}

static double call_draw(const struct predict_call *call, const double *values, uint64_t stream,
                        uint64_t number) {
    const struct bound *bound = (const struct bound *)call;
    const struct bound_part *part;
    double sigma = NAN, mean = value_of(bound, values, &part, &sigma);
    return part && part->has_noise ? add_noise(bound, part, mean, sigma, stream, number) : mean;
}

static double small_mean(const struct predict_call *call, const double *values) {
    return small_value((const struct bound *)call, values, NULL);
}

static double small_draw(const struct predict_call *call, const double *values, uint64_t stream,
                         uint64_t number) {
    const struct bound *bound = (const struct bound *)call;
    const struct bound_part *part = (const struct bound_part *)bound->parts;
    double sigma, mean = small_value(bound, values, &sigma);
    return part->has_noise ? add_noise(bound, part, mean, sigma, stream, number) : mean;
}

/* Term by term over blocks of rows, where that is possible: the compiler makes vectors of the loop over a
 * block, whose length it knows. */
static void call_means(const struct predict_call *call, const double *const *columns, size_t count,
                       double *ret) {
    const struct bound *bound = (const struct bound *)call;
    const struct bound_part *part = part_at(bound, 0);
    const uint8_t *slots = slots_of(bound, part);
    double constants[SLOT_VALUES][ROWS_AT_ONCE];
    size_t row = 0, width = WIDTH_USUAL;
    for (size_t i = 0; i < ROWS_AT_ONCE; i++) {
        constants[SLOT_ONE][i] = 1;
        constants[SLOT_ZERO][i] = 0;
        constants[SLOT_NAN][i] = NAN;
    }
    for (; call->mean == small_mean && row + ROWS_AT_ONCE <= count; row += ROWS_AT_ONCE) {
        double sums[ROWS_AT_ONCE] = {0};
        for (size_t t = 0; t < part->used; t++) {
            const double *factors[WIDTH_USUAL], estimate = part->numbers[t];
            for (size_t f = 0; f < width; f++) {
                uint8_t slot = slots[t * width + f];
                factors[f] = slot < SLOT_VALUES ? constants[slot] : columns[slot - SLOT_VALUES] + row;
            }
            const double *one = factors[0], *two = factors[1], *three = factors[2];
            for (size_t i = 0; i < ROWS_AT_ONCE; i++)
                sums[i] += estimate * (one[i] * two[i] * three[i]);
        }
        for (size_t i = 0; i < ROWS_AT_ONCE; i++)
            ret[row + i] = isfinite(sums[i]) ? sums[i] : NAN;
    }
    for (; row < count; row++) {
        double values[SLOTS_MAX];
        for (size_t i = 0; i < bound->value_count; i++)
            values[i] = columns[i] ? columns[i][row] : NAN;
        ret[row] = call->mean(call, values);
    }
}

/* ---- The slow half: what the host alone asks */

/* The row as the evaluator has it. */
static void fill_inputs(const struct bound *bound, const double *values, double *inputs) {
    for (size_t i = 0; i < bound->evaluator->input_count; i++)
        inputs[i] = bound->evaluator->inputs[i].is_text ? bound->codes[i] : values[bound->sources[i]];
}

bool bound_is_outside(const struct bound *bound, const double *values) {
    double inputs[SLOTS_MAX], x[SMALL];
    struct evaluator_value value;
    fill_inputs(bound, values, inputs);
    if (!bound->ranges) {
        extrapolation_find(bound->evaluator, bound->group, inputs, &value);
        return extrapolation_is_outside(&value);
    }
    x[SLOT_ONE] = 1;
    copy_values(bound, values, x);
    for (size_t i = 0; i < bound->range_count; i++) {
        const struct slot_range *range = &bound->ranges[i];
        double at = x[range->slots[0]] * x[range->slots[1]] * x[range->slots[2]];
        if (at > range->maximum || at < range->minimum)
            return true;
    }
    return extrapolation_beyond_hull(bound->evaluator, inputs) > 0;
}

void bound_value(const struct bound *bound, const double *values, double *ret_mean, double *ret_sigma) {
    const struct bound_part *part = part_at(bound, 0);
    double sigma = NAN;
    *ret_mean = bound->call.mean == small_mean ? small_value(bound, values, &sigma)
                                               : value_of(bound, values, &part, &sigma);
    *ret_sigma = isnan(*ret_mean) || !part->has_noise ? NAN : sigma;
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

/* ---- Binding */

/* Each input of the evaluator: which of the caller's values it is, or the code of the text that a name
 * "operation=Send" gives. */
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
                                 "the model '%s' needs the column '%.128s'%s, which is not known here",
                                 evaluator->model->file, column->name, column->is_text ? ", a text" : "");
        bound->sources[i] = k;
        bound->codes[i] = column->is_text ? evaluator_code(evaluator, i, names[k] + length + 1) : NAN;
    }
    return 0;
}

/* The slot of a factor, which is made if there is none; SLOTS_MAX: there are too many. */
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

/* The factors of all terms as slots, one term after the other. */
static int bind_terms(struct bound *bound, uint8_t *slots, struct failure *failure) {
    const struct model *model = bound->evaluator->model;
    for (size_t t = 0; t < model->term_count; t++)
        for (size_t f = 0; f < model->terms[t].factor_count; f++) {
            size_t slot = find_slot(bound, &model->terms[t].factors[f]);
            if (slot >= SLOTS_MAX)
                return failure_input(
                    failure, NULL, 0, 0,
                    "the terms of '%s' have more than %d columns and powers, the most that a "
                    "bound call has",
                    model->file, SLOTS_MAX - SLOT_VALUES);
            slots[t * bound->width + f] = (uint8_t)slot;
        }
    return 0;
}

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
                              .shift = noise->half_normal ? sqrt(M_2_PI) : 0};
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
    bool is_small = bound->evaluator->combine == EVALUATOR_SUM && width == WIDTH_USUAL && !to->is_mixture &&
                    bound->over == SLOT_ZERO && bound->power_count == 0 && to->used == to->count &&
                    SLOT_VALUES + bound->value_count <= SMALL;
    bound->call.mean = is_small ? small_mean : call_mean;
    bound->call.draw = is_small ? small_draw : call_draw;
}

void bound_follow(struct bound *bound, const struct model_group *group, uint64_t seed) {
    bound->key = random_counter_key(seed);
    bound->group = group;
    for (size_t p = bound->first; p < bound->end; p++)
        fill_part(bound, (const uint8_t *)(bound->parts + (bound->end - bound->first) * bound->stride),
                  &group->parts[p], part_at(bound, p - bound->first));
}

/* Where evaluation is that of a small model, ranges are compared one by one. */
static void bind_ranges(struct bound *bound, const uint8_t *slots) {
    const struct evaluator *evaluator = bound->evaluator;
    const struct model *model = evaluator->model;
    const struct model_part *part = &bound->group->parts[bound->first];
    for (size_t i = 0; i < evaluator->input_count; i++)
        if (evaluator->inputs[i].is_text)
            return;
    if (bound->call.mean != small_mean)
        return;
    size_t inputs = evaluator->input_count;
    bound->ranges = xcalloc(inputs + model->term_count + 1, sizeof *bound->ranges);
    for (size_t i = 0; i < inputs + model->term_count; i++) {
        bool is_input = i < inputs;
        const struct model_range *found = NULL;
        if (is_input || extrapolation_has_range(model, &model->terms[i - inputs]))
            found =
                model_range_find(part, is_input ? evaluator->inputs[i].name : model->terms[i - inputs].name);
        if (!found)
            continue;
        struct slot_range *range = &bound->ranges[bound->range_count++];
        *range = (struct slot_range){.minimum = found->minimum, .maximum = found->maximum};
        if (is_input)
            range->slots[0] = (uint8_t)(SLOT_VALUES + bound->sources[i]);
        else
            memcpy(range->slots, slots + (i - inputs) * WIDTH_USUAL, WIDTH_USUAL);
    }
}

int bound_new(const struct evaluator *evaluator, const struct model_group *group, const char *const *names,
              size_t count, void *owner, struct bound **ret, struct failure *failure) {
    const struct model *model = evaluator->model;
    struct bound head = {.call = {call_mean, call_draw, call_means},
                         .owner = owner,
                         .group = group,
                         .evaluator = evaluator,
                         .width = WIDTH_USUAL,
                         .term_max = (uint16_t)model->term_count,
                         .value_count = (uint16_t)count};
    size_t first = 0, end = 0;
    if (count + SLOT_VALUES >= SLOTS_MAX || evaluator->input_count >= SLOTS_MAX)
        return failure_input(failure, NULL, 0, 0,
                             "a call of a model binds %zu columns, at most %d are accepted; bind only "
                             "columns that the model has",
                             count, SLOTS_MAX - SLOT_VALUES - 1);
    for (size_t t = 0; t < model->term_count; t++)
        if (model->terms[t].factor_count > head.width)
            head.width = (uint16_t)model->terms[t].factor_count;
    int r = bind_inputs(&head, names, count, failure);
    if (r == 0 && evaluator_run(evaluator, group, head.codes, &first, &end)) {
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
    struct bound *bound = xcalloc(1, sizeof head + parts * head.stride + slots + 1);
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
    free(bound->name), free(bound->powers), free(bound->sources), free(bound->codes), free(bound->ranges);
    free(bound);
}
