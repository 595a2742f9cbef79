#include "plugins/fit-linear/sums.h"

#include <stdlib.h>
#include <string.h>

void sums_layout_init(struct sums_layout *layout, const struct expansion *expansion, bool weighted) {
    *layout = (struct sums_layout){.expansion = expansion, .weighted = weighted, .width = 1};
    const struct formula *formula = expansion->formula;
    for (size_t t = 0; t < expansion->count; t++) {
        bool constant = formula_is_constant(&formula->terms[expansion->terms[t].term]);
        layout->intercept |= constant;
        size_t column = constant ? 0 : layout->width++;
        layout->term_of[column] = t;
        layout->product_of[column] = expansion->terms[t].product;
    }
    layout->product_of[layout->width++] = formula->product_count;
}

struct sums *sums_new(const struct sums_layout *layout) {
    struct sums *sums = calloc(1, sizeof *sums);
    if (!sums)
        return NULL;
    sums->layout = layout;
    sums->products = calloc(layout->width * layout->width, sizeof *sums->products);
    if (sums->products)
        return sums;
    free(sums);
    return NULL;
}

void sums_free(struct sums *sums) {
    if (!sums)
        return;
    free(sums->products);
    free(sums);
}

static void clear(struct sums *sums) {
    size_t width = sums->layout->width;
    sums->rows = sums->incomplete = 0;
    sums->log_weights = sums->negative = 0;
    memset(sums->products, 0, width * width * sizeof *sums->products);
    for (size_t a = 0; a < width; a++) {
        sums->minimum[a] = INFINITY;
        sums->maximum[a] = -INFINITY;
    }
}

bool sums_is_complete(const struct sums_layout *layout, const struct sums_cell *cell) {
    const struct expansion *expansion = layout->expansion;
    for (size_t c = 0; c < expansion->formula->category_count; c++)
        if (expansion->levels[c][cell->codes[c]][0] == '\0')
            return false;
    return true;
}

bool sums_is_active(const struct sums_layout *layout, size_t column, const struct sums_cell *cell) {
    if (column == 0 || column + 1 == layout->width)
        return true;
    const struct expanded_term *expanded = &layout->expansion->terms[layout->term_of[column]];
    const struct formula_term *term = &layout->expansion->formula->terms[expanded->term];
    for (size_t c = 0; c < term->category_count; c++)
        if (cell->codes[term->categories[c]] != expanded->levels[c])
            return false;
    return true;
}

static void widen(struct sums *sums, size_t a, double value) {
    sums->minimum[a] = fmin(sums->minimum[a], value);
    sums->maximum[a] = fmax(sums->maximum[a], value);
}

static void collect_cell(struct sums *sums, const struct moments *moments, const struct sums_cell *cell,
                         uint32_t fold) {
    const struct sums_layout *layout = sums->layout;
    uint64_t rows = moments_rows(moments, cell->cell, fold);
    sums->incomplete += moments_incomplete(moments, cell->cell, fold);
    if (!sums_is_complete(layout, cell)) {
        sums->incomplete += rows;
        return;
    }
    if (rows == 0)
        return;
    sums->rows += rows;
    sums->log_weights += moments_log_weights(moments, cell->cell, fold);
    sums->negative += moments_negative(moments, cell->cell, fold);
    size_t active[SUMS_COLUMNS_MAX], count = 0;
    for (size_t a = 0; a < layout->width; a++) {
        bool in_it = sums_is_active(layout, a, cell);
        if (in_it)
            active[count++] = a;
        if (in_it && layout->product_of[a] > 0)
            moments_widen(moments, cell->cell, layout->product_of[a], &sums->minimum[a], &sums->maximum[a]);
        else /* a dummy alone is 1, and all are 0 elsewhere */
            widen(sums, a, in_it);
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = i; j < count; j++) {
            size_t a = active[i], b = active[j];
            struct dd *sum = &sums->products[a * layout->width + b];
            *sum = dd_add(
                *sum, moments_sum(moments, cell->cell, fold, layout->product_of[a], layout->product_of[b]));
            sums->products[b * layout->width + a] = *sum;
        }
}

void sums_collect(struct sums *sums, const struct moments *moments, const struct sums_cell *cells,
                  size_t cell_count, uint32_t fold) {
    const struct sums_layout *layout = sums->layout;
    clear(sums);
    for (size_t a = 0; a < layout->width; a++)
        sums->exponents[a] = moments_exponent(moments, layout->product_of[a]);
    for (size_t i = 0; i < cell_count; i++)
        collect_cell(sums, moments, &cells[i], fold);
}

void sums_add(struct sums *to, const struct sums *other) {
    size_t width = to->layout->width;
    to->rows += other->rows;
    to->incomplete += other->incomplete;
    to->log_weights += other->log_weights;
    to->negative += other->negative;
    for (size_t a = 0; a < width; a++) {
        to->minimum[a] = fmin(to->minimum[a], other->minimum[a]);
        to->maximum[a] = fmax(to->maximum[a], other->maximum[a]);
        for (size_t b = a; b < width; b++)
            to->products[a * width + b] = to->products[b * width + a] =
                dd_add(to->products[a * width + b], other->products[a * width + b]);
    }
}

void sums_subtract(const struct sums *whole, const struct sums *part, struct sums *ret) {
    size_t width = whole->layout->width;
    struct dd *products = ret->products;
    *ret = *whole;
    ret->products = products;
    ret->rows -= part->rows;
    ret->incomplete -= part->incomplete;
    ret->log_weights -= part->log_weights;
    ret->negative -= part->negative;
    for (size_t i = 0; i < width * width; i++)
        products[i] = dd_subtract(whole->products[i], part->products[i]);
}
