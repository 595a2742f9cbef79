#include "plugins/fit-piecewise/joined.h"

#include "plugins/numerics/double-double.h"
#include "plugins/numerics/growth.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The search */

/* a h^2 + 2 b h + c, h the height at a knot. */
struct parabola {
    double a, b, c;
    uint32_t knot,
        parent; /* where the last segment begins, and which parabola of that place it goes on from */
};

struct parabolas {
    struct parabola *items;
    size_t count, capacity;
};

struct joined_search {
    const struct point *points;
    size_t count, minimum, segments;
    double *x, *y;                                     /* scaled; y less one line */
    double scale;                                      /* of y */
    struct parabolas *places[JOINED_SEGMENTS_MAX + 1]; /* by segments, by place */
    struct parabolas work;
};

static int add(struct parabolas *parabolas, struct parabola item) {
    int r = growth_reserve(&parabolas->items, &parabolas->capacity, parabolas->count + 1, sizeof item);
    if (r >= 0)
        parabolas->items[parabolas->count++] = item;
    return r;
}

int joined_new(const struct point *points, size_t count, size_t minimum, struct joined_search **ret) {
    struct joined_search *search = calloc(1, sizeof *search);
    if (!search)
        return -ENOMEM;
    *search = (struct joined_search){.points = points,
                                     .count = count,
                                     .minimum = minimum,
                                     .x = malloc(count * sizeof(double)),
                                     .y = malloc(count * sizeof(double))};
    if (!search->x || !search->y) {
        joined_free(search);
        return -ENOMEM;
    }
    struct line line;
    line_fit(points, count, false, &line);
    double width = points[count - 1].x - points[0].x;
    for (size_t i = 0; i < count; i++) {
        search->x[i] = (points[i].x - points[0].x) / width;
        search->y[i] = points[i].y - line_at(&line, points[i].x);
        search->scale = fmax(search->scale, fabs(search->y[i]));
    }
    for (size_t i = 0; search->scale > 0 && i < count; i++)
        search->y[i] /= search->scale;
    *ret = search;
    return 0;
}

void joined_free(struct joined_search *search) {
    if (!search)
        return;
    for (size_t k = 0; k <= JOINED_SEGMENTS_MAX; k++) {
        for (size_t i = 0; search->places[k] && i < search->count; i++)
            free(search->places[k][i].items);
        free(search->places[k]);
    }
    free(search->work.items);
    free(search->x);
    free(search->y);
    free(search);
}

/* What the points after a knot up to the next cost, by the heights at both: their sums over products of the
 * two shares a = 1 - u and b = u of the line. Grown from the right knot to the left, as sums about the right
 * one. */
struct stretch {
    double w, wd, wdd, wy, wdy, wyy; /* d: distance from the right knot */
};

static void lengthen(const struct joined_search *search, size_t right, size_t i, struct stretch *stretch) {
    double w = search->points[i].weight, d = search->x[right] - search->x[i], y = search->y[i];
    stretch->w += w;
    stretch->wd += w * d;
    stretch->wdd += w * d * d;
    stretch->wy += w * y;
    stretch->wdy += w * d * y;
    stretch->wyy += w * y * y;
}

/* The least over the height at the left knot, as a parabola in that of the right. */
static struct parabola carry(const struct parabola *from, const struct stretch *stretch, double length) {
    double left = 1 / length; /* share of the left height: d / length */
    double aa = stretch->wdd * left * left, ab = stretch->wd * left - aa;
    double bb = stretch->w - 2 * stretch->wd * left + aa;
    double ay = stretch->wdy * left, by = stretch->wy - ay;
    double sum = from->a + aa, rest = ay - from->b;
    return (struct parabola){
        .a = bb - ab * ab / sum, .b = ab * rest / sum - by, .c = from->c + stretch->wyy - rest * rest / sum};
}

/* Where B, which is above A just right of AFTER, comes below it; INFINITY: nowhere. */
static double crossing(const struct parabola *a, const struct parabola *b, double after) {
    double da = b->a - a->a, db = b->b - a->b, dc = b->c - a->c, at;
    if (da == 0) {
        at = db < 0 ? -dc / (2 * db) : INFINITY;
    } else {
        double square = db * db - da * dc;
        if (!(square > 0))
            return INFINITY;
        /* The lesser root where it opens upwards, the greater where downwards: both (-db - root) / da. */
        double root = sqrt(square);
        at = db > 0 ? (-db - root) / da : dc / (root - db);
    }
    return at > after ? at : INFINITY;
}

/* Keeps those of the work that are the least at some height, from the left. */
static int keep_least(struct joined_search *search, struct parabolas *ret) {
    const struct parabola *items = search->work.items;
    size_t count = search->work.count, at = 0;
    for (size_t i = 1; i < count; i++)
        if (items[i].a < items[at].a || (items[i].a == items[at].a && items[i].b > items[at].b) ||
            (items[i].a == items[at].a && items[i].b == items[at].b && items[i].c < items[at].c))
            at = i;
    double height = -INFINITY;
    for (size_t steps = 0; count > 0 && steps <= 2 * count; steps++) {
        bool kept = false;
        for (size_t i = 0; i < ret->count; i++)
            kept = kept || (ret->items[i].knot == items[at].knot && ret->items[i].parent == items[at].parent);
        int r = kept ? 0 : add(ret, items[at]);
        if (r < 0)
            return r;
        double next = INFINITY;
        size_t who = count;
        for (size_t i = 0; i < count; i++) {
            double there = i == at ? INFINITY : crossing(&items[at], &items[i], height);
            if (there < next) {
                next = there;
                who = i;
            }
        }
        if (who == count)
            break;
        at = who;
        height = next;
    }
    return 0;
}

/* All ways to have a knot at RIGHT as the end of one segment more. */
static int arrive(struct joined_search *search, size_t right) {
    const struct parabolas *before = search->places[search->segments - 1];
    struct stretch stretch = {0};
    search->work.count = 0;
    for (size_t left = right; left-- > 0;) {
        lengthen(search, right, left + 1, &stretch);
        if (right - left < search->minimum)
            continue;
        for (size_t i = 0; i < before[left].count; i++) {
            struct parabola item =
                carry(&before[left].items[i], &stretch, search->x[right] - search->x[left]);
            item.knot = (uint32_t)left;
            item.parent = (uint32_t)i;
            int r = add(&search->work, item);
            if (r < 0)
                return r;
        }
    }
    return keep_least(search, &search->places[search->segments][right]);
}

static int begin(struct joined_search *search) {
    double w = search->points[0].weight, y = search->y[0];
    search->places[0] = calloc(search->count, sizeof *search->places[0]);
    return search->places[0] ? add(&search->places[0][0], (struct parabola){w, -w * y, w * y * y, 0, 0})
                             : -ENOMEM;
}

int joined_next(struct joined_search *search, double *ret_rss, size_t *ret_knots) {
    int r = search->segments == 0 ? begin(search) : 0;
    *ret_rss = INFINITY;
    if (r < 0 || search->segments == JOINED_SEGMENTS_MAX)
        return r;
    search->segments++;
    struct parabolas *places = calloc(search->count, sizeof *places);
    if (!places)
        return -ENOMEM;
    search->places[search->segments] = places;
    size_t minimum = search->minimum, last = search->count - 1;
    /* The first segment has its first point, too, and so may be one shorter. */
    for (size_t right = minimum > 1 ? minimum - 1 : 1; r >= 0 && right <= last; right++) {
        if (search->segments == 1) {
            search->minimum = minimum > 1 ? minimum - 1 : 1;
            r = arrive(search, right);
            search->minimum = minimum;
        } else {
            r = arrive(search, right);
        }
    }
    const struct parabola *best = NULL;
    double least = INFINITY;
    for (size_t i = 0; r >= 0 && i < places[last].count; i++) {
        const struct parabola *item = &places[last].items[i];
        double value = item->c - item->b * item->b / item->a;
        if (value < least) {
            least = value;
            best = item;
        }
    }
    if (r < 0 || !best)
        return r;
    *ret_rss = fmax(least, 0) * search->scale * search->scale;
    for (size_t k = search->segments; k-- > 1;) {
        ret_knots[k - 1] = best->knot;
        best = &search->places[k][best->knot].items[best->parent];
    }
    return 0;
}

/* ---- The fit */

/* Normal equations of the heights: each point lies between two knots, so they have one diagonal beside the
 * main one. */
struct normal {
    struct dd *diagonal, *beside, *right; /* knots; beside[i] couples i and i + 1 */
    double *inverse;                      /* knots x knots */
    double *at;                           /* where knots stand */
    size_t count;
};

static bool normal_init(struct normal *normal, size_t count) {
    *normal = (struct normal){.count = count,
                              .diagonal = calloc(3 * count, sizeof(struct dd)),
                              .inverse = calloc(count * count + count, sizeof(double))};
    if (!normal->diagonal || !normal->inverse)
        return false;
    normal->beside = normal->diagonal + count;
    normal->right = normal->beside + count;
    normal->at = normal->inverse + count * count;
    return true;
}

static void normal_clear(struct normal *normal) {
    free(normal->diagonal);
    free(normal->inverse);
}

/* The share of the right one of the knots K and K + 1 at X. */
static struct dd share(const struct normal *normal, size_t k, double x) {
    return dd_divide(dd_two_sum(x, -normal->at[k]), dd_two_sum(normal->at[k + 1], -normal->at[k]));
}

static void accumulate(struct normal *normal, const struct point *points, size_t count) {
    size_t k = 0;
    for (size_t i = 0; i < count; i++) {
        while (k + 2 < normal->count && points[i].x >= normal->at[k + 1])
            k++;
        struct dd b = share(normal, k, points[i].x), a = dd_subtract(dd_from(1), b);
        struct dd wa = dd_multiply(a, dd_from(points[i].weight));
        struct dd wb = dd_multiply(b, dd_from(points[i].weight));
        normal->diagonal[k] = dd_add(normal->diagonal[k], dd_multiply(wa, a));
        normal->diagonal[k + 1] = dd_add(normal->diagonal[k + 1], dd_multiply(wb, b));
        normal->beside[k] = dd_add(normal->beside[k], dd_multiply(wa, b));
        normal->right[k] = dd_add(normal->right[k], dd_multiply(wa, dd_from(points[i].y)));
        normal->right[k + 1] = dd_add(normal->right[k + 1], dd_multiply(wb, dd_from(points[i].y)));
    }
}

/* L D L' of the two diagonals, solved in place: `right` becomes the heights. False when they are not
 * independent. */
static bool solve(struct normal *normal) {
    size_t n = normal->count;
    for (size_t i = 0; i + 1 < n; i++) {
        double before = normal->diagonal[i + 1].high;
        if (!(normal->diagonal[i].high > 0))
            return false;
        struct dd lower = dd_divide(normal->beside[i], normal->diagonal[i]);
        normal->diagonal[i + 1] = dd_subtract(normal->diagonal[i + 1], dd_multiply(lower, normal->beside[i]));
        normal->right[i + 1] = dd_subtract(normal->right[i + 1], dd_multiply(lower, normal->right[i]));
        normal->beside[i] = lower;
        if (!(normal->diagonal[i + 1].high > 0x1p-80 * before))
            return false;
    }
    for (size_t i = n; i-- > 0;) {
        normal->right[i] = dd_divide(normal->right[i], normal->diagonal[i]);
        if (i + 1 < n)
            normal->right[i] =
                dd_subtract(normal->right[i], dd_multiply(normal->beside[i], normal->right[i + 1]));
    }
    return true;
}

/* Column by column, from the factors. */
static void invert(struct normal *normal) {
    size_t n = normal->count;
    for (size_t j = 0; j < n; j++) {
        double *column = normal->inverse + j * n;
        column[j] = 1;
        for (size_t i = j; i + 1 < n; i++)
            column[i + 1] = -normal->beside[i].high * column[i];
        for (size_t i = n; i-- > 0;) {
            column[i] /= normal->diagonal[i].high;
            if (i + 1 < n)
                column[i] -= normal->beside[i].high * column[i + 1];
        }
    }
}

/* Intercept and slope of the line from knot K to the next are sums of the two heights. */
static void make_line(const struct normal *normal, size_t k, double variance, struct line *ret) {
    struct dd width = dd_two_sum(normal->at[k + 1], -normal->at[k]);
    struct dd slope = dd_divide(dd_subtract(normal->right[k + 1], normal->right[k]), width);
    struct dd intercept = dd_subtract(normal->right[k], dd_multiply(slope, dd_from(normal->at[k])));
    ret->estimates[0].estimate = dd_to_double(intercept);
    ret->estimates[1].estimate = dd_to_double(slope);
    double w = dd_to_double(width);
    double parts[2][2] = {{normal->at[k + 1] / w, -normal->at[k] / w}, {-1 / w, 1 / w}};
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++) {
            double sum = 0;
            for (size_t p = 0; p < 2; p++)
                for (size_t q = 0; q < 2; q++)
                    sum += parts[i][p] * parts[j][q] * normal->inverse[(k + p) * normal->count + k + q];
            ret->covariance[2 * i + j] = variance * sum;
        }
}

/* What the broken line leaves of each segment. */
static double judge_segments(const struct normal *normal, const struct point *points, size_t count,
                             struct line *lines) {
    struct dd rss = {0, 0}, sum = {0, 0}, weight = {0, 0}, raw = {0, 0};
    double all = 0;
    for (size_t i = 0, k = 0; i < count; i++) {
        struct dd b = share(normal, k, points[i].x);
        struct dd height =
            dd_add(normal->right[k], dd_multiply(b, dd_subtract(normal->right[k + 1], normal->right[k])));
        struct dd distance = dd_subtract(dd_from(points[i].y), height), w = dd_from(points[i].weight);
        rss = dd_add(rss, dd_add(dd_multiply(w, dd_multiply(distance, distance)), dd_from(points[i].within)));
        sum = dd_add(sum, dd_multiply(w, dd_from(points[i].y)));
        raw = dd_add(
            raw, dd_add(dd_multiply(w, dd_two_product(points[i].y, points[i].y)), dd_from(points[i].within)));
        weight = dd_add(weight, w);
        bool end = i + 1 == count || (k + 2 < normal->count && points[i + 1].x >= normal->at[k + 1]);
        if (!end)
            continue;
        struct dd total = dd_subtract(raw, dd_divide(dd_multiply(sum, sum), weight));
        lines[k].rss = rss.high > 0x1p-98 * raw.high ? dd_to_double(rss) : 0;
        lines[k].r2 = total.high > 0x1p-98 * raw.high ? 1 - lines[k].rss / dd_to_double(total) : NAN;
        all += lines[k].rss;
        rss = sum = weight = raw = dd_from(0);
        while (k + 2 < normal->count && i + 1 < count && points[i + 1].x >= normal->at[k + 1])
            k++;
    }
    return all;
}

int joined_fit(const struct point *points, size_t count, const double *knots, size_t knot_count, double rows,
               struct line *lines, double *ret_rss) {
    struct normal normal;
    if (!normal_init(&normal, knot_count + 2)) {
        normal_clear(&normal);
        return -ENOMEM;
    }
    normal.at[0] = points[0].x;
    if (knot_count > 0)
        memcpy(normal.at + 1, knots, knot_count * sizeof *knots);
    normal.at[knot_count + 1] = points[count - 1].x;
    accumulate(&normal, points, count);
    bool solved = solve(&normal);
    *ret_rss = NAN;
    if (solved) {
        memset(lines, 0, (knot_count + 1) * sizeof *lines);
        *ret_rss = judge_segments(&normal, points, count, lines);
        invert(&normal);
        double degrees = rows - (double)normal.count;
        double sigma = degrees > 0 ? sqrt(*ret_rss / degrees) : NAN;
        for (size_t k = 0; k <= knot_count; k++) {
            lines[k].rows = rows;
            lines[k].degrees = degrees;
            lines[k].sigma = sigma;
            lines[k].has_covariance = degrees > 0;
            make_line(&normal, k, sigma * sigma, &lines[k]);
            line_judge(&lines[k]);
        }
    }
    normal_clear(&normal);
    return solved;
}
