#include "engine/plugin/candidates.h"

#include "engine/design/random.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/foundation/portable-math.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEVELS_OF_CORNERS = 6,  /* ranges up to which there are middles between the corners: 3^6 */
    RANGES_OF_CORNERS = 10, /* ranges up to which there are corners: 2^10 */
    HALVINGS = 50,          /* on the way from a corner into what is admitted */
    ANCHORS_MAX = 16,       /* points towards which a corner is moved, of up to four ranges; of more, two */
};

static const double primes[CANDIDATES_FACTORS_MAX] = {2,  3,  5,  7,   11,  13,  17,  19,  23,  29, 31,
                                                      37, 41, 43, 47,  53,  59,  61,  67,  71,  73, 79,
                                                      83, 89, 97, 101, 103, 107, 109, 113, 127, 131};

bool candidate_range_is_logarithmic(const struct candidate_range *range) {
    return range->low > 0 && range->high / range->low >= CANDIDATES_DECADES;
}

/* The points found so far. */
struct drawing {
    const struct candidate_range *ranges;
    size_t range_count;
    candidate_admits admits;
    void *context;
    double *values; /* owned, RANGE_COUNT a point */
    double *shares; /* owned */
    size_t count, value_capacity, share_capacity;
    uint32_t *slots; /* owned hash table: point + 1, or 0 */
    size_t slot_count;
};

static void drawing_clear(struct drawing *drawing) {
    free(drawing->values);
    free(drawing->shares);
    free(drawing->slots);
}

/* PLACE runs from 0 to 1 over the range. */
static double value_at(const struct candidate_range *range, double place) {
    double low = range->low, high = range->whole ? range->high + 1 : range->high, value;
    if (candidate_range_is_logarithmic(range)) {
        double from = portable_log(low);
        value = portable_exp(from + place * (portable_log(high) - from));
    } else {
        value = low + place * (high - low);
    }
    if (range->whole)
        value = floor(value);
    /* The last place, and rounding. */
    return value < low ? low : value > range->high ? range->high : value;
}

static void place_values(const struct drawing *drawing, const double *places, double *ret) {
    for (size_t i = 0; i < drawing->range_count; i++)
        ret[i] = value_at(&drawing->ranges[i], places[i]);
}

/* The slot of a point, or the empty one where it belongs. */
static uint32_t *find_slot(const struct drawing *drawing, const double *values) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < drawing->range_count; i++) {
        uint64_t bits;
        double value = values[i] + 0.0; /* -0 is 0 */
        memcpy(&bits, &value, sizeof bits);
        hash ^= bits;
        hash = random_splitmix64(&hash);
    }
    for (size_t at = (size_t)hash & (drawing->slot_count - 1);; at = (at + 1) & (drawing->slot_count - 1)) {
        uint32_t *slot = &drawing->slots[at];
        bool same = *slot != 0;
        for (size_t i = 0; same && i < drawing->range_count; i++)
            same = drawing->values[(*slot - 1) * drawing->range_count + i] == values[i];
        if (same || *slot == 0)
            return slot;
    }
}

static int add_point(struct drawing *drawing, const double *values, double share) {
    uint32_t *slot = find_slot(drawing, values);
    if (*slot) {
        drawing->shares[*slot - 1] += share;
        return 0;
    }
    size_t width = drawing->range_count;
    if (list_reserve(&drawing->shares, &drawing->share_capacity, drawing->count + 1, sizeof *drawing->shares,
                     SIZE_MAX) < 0 ||
        list_reserve(&drawing->values, &drawing->value_capacity, (drawing->count + 1) * width + 1,
                     sizeof *drawing->values, SIZE_MAX) < 0)
        return -ENOMEM;
    if (width)
        memcpy(drawing->values + drawing->count * width, values, width * sizeof *values);
    drawing->shares[drawing->count++] = share;
    *slot = (uint32_t)drawing->count;
    return 0;
}

/* Admitted points, as places, from which a corner is seen. */
struct anchors {
    double places[ANCHORS_MAX][CANDIDATES_FACTORS_MAX];
    size_t count, most;
};

static int draw_points(struct drawing *drawing, size_t count, uint64_t seed, struct anchors *anchors) {
    struct random_source source;
    random_start(&source, seed, RANDOM_STREAM_CANDIDATES);
    double places[CANDIDATES_FACTORS_MAX] = {0}, values[CANDIDATES_FACTORS_MAX];
    double starts[CANDIDATES_FACTORS_MAX] = {0};
    for (size_t j = 0; j < drawing->range_count; j++)
        starts[j] = random_fraction(&source);
    size_t found = 0, most = drawing->range_count ? count * CANDIDATES_ATTEMPTS : 1;
    int r = 0;
    for (size_t i = 0; r == 0 && found < count && i < most; i++) {
        for (size_t j = 0; j < drawing->range_count; j++) {
            double along = (double)i * sqrt(primes[j]) + starts[j];
            places[j] = along - floor(along);
        }
        place_values(drawing, places, values);
        if (!drawing->admits(drawing->context, values))
            continue;
        found++;
        if (anchors->count < anchors->most)
            memcpy(anchors->places[anchors->count++], places, sizeof places);
        r = add_point(drawing, values, 1);
    }
    return r;
}

/* Adds the last point that is admitted on the way from ANCHOR to CORNER. */
static int add_border(struct drawing *drawing, const double *corner, const double *anchor) {
    double values[CANDIDATES_FACTORS_MAX], places[CANDIDATES_FACTORS_MAX];
    double in = 0, out = 1; /* so far out */
    for (size_t i = 0; i <= HALVINGS; i++) {
        double at = i < HALVINGS ? (in + out) / 2 : in;
        for (size_t j = 0; j < drawing->range_count; j++)
            places[j] = anchor[j] + at * (corner[j] - anchor[j]);
        place_values(drawing, places, values);
        if (drawing->admits(drawing->context, values))
            in = at;
        else
            out = at;
    }
    return add_point(drawing, values, 0);
}

static int add_corner(struct drawing *drawing, const double *corner, const struct anchors *anchors) {
    double values[CANDIDATES_FACTORS_MAX];
    place_values(drawing, corner, values);
    if (drawing->admits(drawing->context, values))
        return add_point(drawing, values, 0);
    int r = 0;
    for (size_t i = 0; r == 0 && i < anchors->count; i++)
        r = add_border(drawing, corner, anchors->places[i]);
    return r;
}

static int add_corners(struct drawing *drawing, const struct anchors *anchors) {
    size_t width = drawing->range_count;
    if (width == 0 || width > RANGES_OF_CORNERS)
        return 0;
    size_t levels = width <= LEVELS_OF_CORNERS ? 3 : 2, count = 1;
    for (size_t j = 0; j < width; j++)
        count *= levels;
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        double corner[CANDIDATES_FACTORS_MAX] = {0};
        size_t rest = i;
        for (size_t j = 0; j < width; j++, rest /= levels)
            corner[j] = (double)(rest % levels) / (double)(levels - 1);
        r = add_corner(drawing, corner, anchors);
    }
    return r;
}

static int write_design(const struct drawing *drawing, struct design **ret, struct failure *failure) {
    struct design *design = NULL;
    int r = design_new(drawing->count, &design, failure);
    for (size_t j = 0; r == 0 && j < drawing->range_count; j++) {
        const struct candidate_range *range = &drawing->ranges[j];
        struct design_column *column = NULL;
        r = design_add_column(design, range->name, range->whole ? DESIGN_INTEGER : DESIGN_NUMBER, &column,
                              failure);
        for (size_t i = 0; r == 0 && i < drawing->count; i++) {
            double value = drawing->values[i * drawing->range_count + j];
            if (range->whole)
                column->integers[i] = (int64_t)value;
            else
                column->numbers[i] = value;
        }
    }
    if (r < 0)
        design_free(design);
    else
        *ret = design;
    return r;
}

int candidates_draw(const struct candidate_range *ranges, size_t range_count, size_t count, uint64_t seed,
                    candidate_admits admits, void *context, struct candidates *ret, struct failure *failure) {
    if (range_count > CANDIDATES_FACTORS_MAX || count < 1 || count > CANDIDATES_MAX)
        return failure_input(failure, NULL, 0, 0,
                             "%zu points over %zu factors, expected 1 to %d over at most %d", count,
                             range_count, CANDIDATES_MAX, CANDIDATES_FACTORS_MAX);
    cleanup(drawing_clear) struct drawing drawing = {
        .ranges = ranges,
        .range_count = range_count,
        .admits = admits,
        .context = context,
        .slot_count = 4 * (size_t)CANDIDATES_MAX, /* with the corners at most half full */
    };
    drawing.slots = calloc(drawing.slot_count, sizeof *drawing.slots);
    struct anchors anchors = {.most = range_count <= 4 ? ANCHORS_MAX : 2};
    int r = drawing.slots ? draw_points(&drawing, count, seed, &anchors) : -ENOMEM;
    if (r == 0 && drawing.count == 0)
        return failure_input(failure, NULL, 0, 0, "not one of %zu points lies within the domain",
                             count * CANDIDATES_ATTEMPTS);
    r = r < 0 ? r : add_corners(&drawing, &anchors);
    if (r < 0)
        return failure_memory(failure);
    r = write_design(&drawing, &ret->design, failure);
    if (r == 0)
        ret->shares = take_pointer(drawing.shares);
    return r;
}

void candidates_clear(struct candidates *candidates) {
    design_free(candidates->design);
    free(candidates->shares);
    *candidates = (struct candidates){0};
}

/* ---- Picking */

static int pick_column(const struct design_column *from, const size_t *rows, size_t count,
                       struct design *design, struct failure *failure) {
    struct design_column *column = NULL;
    int r = design_add_column(design, from->name, from->type, &column, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && from->type == DESIGN_TEXT && i < from->labels.count; i++) {
        /* the same codes as there, in the same order */
        text_set_add(&column->labels, from->labels.texts[i], strlen(from->labels.texts[i]));
    }
    for (size_t i = 0; i < count; i++) {
        if (from->type == DESIGN_TEXT)
            column->codes[i] = from->codes[rows[i]];
        else
            column->integers[i] = from->integers[rows[i]]; /* numbers take as many bytes */
    }
    return 0;
}

int design_pick(const struct design *design, const size_t *rows, size_t count, struct design **ret,
                struct failure *failure) {
    struct design *picked = NULL;
    int r = design_new(count, &picked, failure);
    for (size_t j = 0; r == 0 && j < design->column_count; j++)
        r = pick_column(&design->columns[j], rows, count, picked, failure);
    if (r < 0)
        design_free(picked);
    else
        *ret = picked;
    return r;
}
