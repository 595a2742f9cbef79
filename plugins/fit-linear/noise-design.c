#include "plugins/fit-linear/noise-design.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, PADDED = NOISE_KERNEL_LANES };

void noise_design_init(struct noise_design *design, const struct fit *fit, const struct noise_rows *rows,
                       uint32_t folds) {
    *design = (struct noise_design){.fit = fit, .rows = rows, .folds = folds};
    design->weighted = fit->request->weights != NULL;
}

void noise_design_clear(struct noise_design *design) {
    free(design->memory);
    free(design->scratch);
    free(design->active);
    *design = (struct noise_design){0};
}

/* ---- Columns */

static void choose_columns(struct noise_design *design) {
    const struct settled *settled = design->settled;
    const struct sums_layout *layout = settled->layout;
    size_t y = layout->width - 1;
    design->intercept = layout->intercept;
    design->columns[0] = (struct noise_column){0, layout->term_of[0], 1, true};
    design->width = 1;
    for (size_t a = 1; a < y; a++) {
        size_t term = layout->term_of[a];
        double least = settled->minimum[a], most = settled->maximum[a];
        double size = fmax(fabs(least), fabs(most));
        if (settled->result.estimates[term].dropped || !(size > 0))
            continue;
        design->columns[design->width++] =
            (struct noise_column){a, term, most <= 0 ? -size : size, least >= 0 || most <= 0};
    }
    design->unit = fmax(fabs(settled->minimum[y]), fabs(settled->maximum[y]));
    if (!(design->unit > 0))
        design->unit = 1;
}

/* Whether the cell's rows have the levels of the column's dummies. */
static bool is_active(const struct noise_design *design, const uint32_t *codes, size_t q) {
    const struct expansion *expansion = design->fit->expansion;
    if (q == 0)
        return true;
    const struct expanded_term *expanded = &expansion->terms[design->columns[q].term];
    const struct formula_term *term = &expansion->formula->terms[expanded->term];
    for (size_t c = 0; c < term->category_count; c++)
        if (expanded->levels[c] != codes[term->categories[c]])
            return false;
    return true;
}

/* Cells with a missing level are incomplete, as in sums_collect. */
static bool is_complete(const struct noise_design *design, const uint32_t *codes) {
    const struct expansion *expansion = design->fit->expansion;
    for (size_t c = 0; c < expansion->formula->category_count; c++)
        if (expansion->levels[c][codes[c]][0] == '\0')
            return false;
    return true;
}

static int list_cells(struct noise_design *design, uint32_t group) {
    struct cells *cells = design->fit->cells;
    int r = cells_of_group(cells, group, &design->cells, &design->cell_count);
    if (r < 0)
        return r;
    size_t bytes = design->cell_count * (design->width + 1) * sizeof(bool);
    if (bytes > design->active_bytes) {
        bool *grown = realloc(design->active, bytes);
        if (!grown)
            return -ENOMEM;
        design->active = grown;
        design->active_bytes = bytes;
    }
    for (size_t i = 0; i < design->cell_count; i++) {
        bool *active = design->active + i * (design->width + 1);
        const uint32_t *codes = cells_codes(cells, design->cells[i]);
        active[design->width] = is_complete(design, codes); /* all of the cell */
        for (size_t q = 0; q < design->width; q++)
            active[q] = is_active(design, codes, q);
    }
    return 0;
}

/* ---- Rows */

/* The first chunk of a cell's fold that is in the design. */
static const struct noise_chunk *first_chunk(const struct noise_design *design, size_t cell, uint32_t fold) {
    const bool *active = design->active + cell * (design->width + 1);
    return active[design->width] ? noise_rows_first(design->rows, design->cells[cell], fold) : NULL;
}

static void count_rows(struct noise_design *design) {
    design->count = 0;
    for (uint32_t f = 0; f < design->folds; f++) {
        design->fold_counts[f] = 0;
        for (size_t i = 0; i < design->cell_count; i++)
            for (const struct noise_chunk *chunk = first_chunk(design, i, f); chunk;
                 chunk = noise_rows_next(chunk))
                design->fold_counts[f] += noise_chunk_rows(chunk);
        design->count += design->fold_counts[f];
    }
}

/* The product of the term's inputs, over SCALE. */
static void make_column(const struct noise_design *design, size_t q, size_t rows, const double *inputs,
                        double *ret) {
    const struct noise_column *column = &design->columns[q];
    const struct expanded_term *term = &design->fit->expansion->terms[column->term];
    const struct formula_product *product = &design->fit->formula.products[term->product];
    double scale = 1 / column->scale;
    for (size_t r = 0; r < rows; r++)
        ret[r] = scale;
    for (size_t f = 0; f < product->factor_count; f++) {
        const double *input = inputs + product->factors[f].input * NOISE_ROWS_CHUNK;
        for (int power = 0; power < product->factors[f].power; power++)
            for (size_t r = 0; r < rows; r++)
                ret[r] *= input[r];
    }
}

/* Appends the chunk's rows to the columns, behind columns->count. */
static void expand(const struct noise_design *design, size_t cell, const struct noise_chunk *chunk,
                   struct noise_columns *columns) {
    size_t rows = noise_chunk_rows(chunk), inputs = design->fit->formula.input_count;
    const bool *active = design->active + cell * (design->width + 1);
    double *room = design->scratch;
    for (size_t i = 0; i < inputs; i++)
        noise_chunk_column(design->rows, chunk, i, room + i * NOISE_ROWS_CHUNK);
    for (size_t q = 0; q < design->width; q++) {
        double *z = (double *)columns->z + q * columns->stride + columns->count;
        if (q > 0 && active[q])
            make_column(design, q, rows, room, z);
        for (size_t r = 0; r < rows && (q == 0 || !active[q]); r++)
            z[r] = q == 0;
    }
    double *y = (double *)columns->y + columns->count, unit = 1 / design->unit;
    noise_chunk_column(design->rows, chunk, inputs, y);
    for (size_t r = 0; r < rows; r++)
        y[r] *= unit;
    if (columns->v) {
        double *v = (double *)columns->v + columns->count;
        noise_chunk_column(design->rows, chunk, inputs + 1, v);
        for (size_t r = 0; r < rows; r++)
            v[r] = sqrt(v[r]);
    }
    columns->count += rows;
}

/* Fills up to a multiple of the kernel's lanes with rows that weigh nothing. */
static void pad(const struct noise_design *design, struct noise_columns *columns) {
    columns->rows = (columns->count + PADDED - 1) / PADDED * PADDED;
    for (size_t r = columns->count; r < columns->rows; r++) {
        for (size_t q = 0; q < design->width; q++) {
            double *z = (double *)columns->z + q * columns->stride;
            z[r] = z[columns->count - 1];
        }
        ((double *)columns->y)[r] = 0;
        if (columns->v)
            ((double *)columns->v)[r] = 0;
    }
}

static int reserve(double **memory, size_t *capacity, size_t doubles) {
    if (doubles <= *capacity)
        return 0;
    free(*memory);
    *capacity = 0;
    *memory = aligned_alloc(ALIGNMENT, (doubles * sizeof(double) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!*memory)
        return -ENOMEM;
    *capacity = doubles;
    return 0;
}

static struct noise_columns columns_at(const struct noise_design *design, double *memory, size_t stride) {
    double *y = memory + design->width * stride;
    return (struct noise_columns){.width = design->width,
                                  .stride = stride,
                                  .z = memory,
                                  .y = y,
                                  .v = design->weighted ? y + stride : NULL};
}

static void expand_all(struct noise_design *design) {
    double *at = design->memory;
    for (uint32_t f = 0; f < design->folds; f++) {
        size_t stride = (design->fold_counts[f] + PADDED - 1) / PADDED * PADDED;
        struct noise_columns *segment = &design->segments[f];
        *segment = columns_at(design, at, stride);
        at += (design->width + 1 + design->weighted) * stride;
        for (size_t i = 0; i < design->cell_count; i++)
            for (const struct noise_chunk *chunk = first_chunk(design, i, f); chunk;
                 chunk = noise_rows_next(chunk))
                expand(design, i, chunk, segment);
        pad(design, segment);
    }
}

int noise_design_begin(struct noise_design *design, uint32_t group, const struct settled *settled,
                       size_t whole_most) {
    design->settled = settled;
    choose_columns(design);
    int r = list_cells(design, group);
    if (r < 0)
        return r;
    count_rows(design);
    size_t width = design->width + 1 + design->weighted;
    size_t doubles = width * (design->count + PADDED * design->folds);
    design->whole = doubles * sizeof(double) <= whole_most;
    r = reserve(&design->memory, &design->memory_doubles, design->whole ? doubles : width * NOISE_ROWS_CHUNK);
    size_t inputs = design->fit->formula.input_count, kernel = design->width + 2 + NOISE_GRAMS_MAX;
    size_t scratch = inputs > kernel ? inputs : kernel;
    r = r < 0 ? r : reserve(&design->scratch, &design->scratch_doubles, scratch * NOISE_ROWS_CHUNK);
    if (r == 0 && design->whole)
        expand_all(design);
    return r;
}

void noise_design_each(struct noise_design *design, uint32_t folds, noise_design_function each,
                       void *context) {
    for (uint32_t f = 0; f < design->folds; f++) {
        if (!(folds >> f & 1) || design->fold_counts[f] == 0)
            continue;
        if (design->whole) {
            each(context, &design->segments[f]);
            continue;
        }
        for (size_t i = 0; i < design->cell_count; i++)
            for (const struct noise_chunk *chunk = first_chunk(design, i, f); chunk;
                 chunk = noise_rows_next(chunk)) {
                struct noise_columns columns = columns_at(design, design->memory, NOISE_ROWS_CHUNK);
                expand(design, i, chunk, &columns);
                pad(design, &columns);
                each(context, &columns);
            }
    }
}

struct summing {
    const double *b, *c;
    bool gradient;
    unsigned grams;
    double *scratch;
    struct noise_sums *sums;
};

static void sum_columns(void *context, const struct noise_columns *columns) {
    const struct summing *summing = context;
    noise_kernel_add(columns, summing->b, summing->c, summing->gradient, summing->grams, summing->scratch,
                     summing->sums);
}

void noise_design_sum(struct noise_design *design, uint32_t folds, const double *b, const double *c,
                      bool gradient, unsigned grams, struct noise_sums *sums) {
    noise_sums_clear(sums);
    struct summing summing = {b, c, gradient, grams, design->scratch, sums};
    noise_design_each(design, folds, sum_columns, &summing);
}
