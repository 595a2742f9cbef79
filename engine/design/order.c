#include "engine/design/order.h"

#include "engine/design/random.h"

#include <stdlib.h>

int design_order_new(enum design_order_kind kind, uint64_t seed, size_t rows, size_t repetitions,
                     struct design_order **ret, struct failure *failure) {
    if (rows == 0 || repetitions == 0)
        return failure_input(failure, NULL, 0, 0,
                             "%zu repetitions of %zu rows, expected at least one of each", repetitions, rows);
    if (rows > DESIGN_POSITIONS_MOST / repetitions)
        return failure_input(failure, NULL, 0, 0,
                             "%zu repetitions of %zu rows are more than the limit of %d measurements",
                             repetitions, rows, DESIGN_POSITIONS_MOST);
    struct design_order *order = calloc(1, sizeof *order);
    uint32_t *units = calloc(rows * repetitions, sizeof *units);
    if (!order || !units) {
        free(order);
        free(units);
        return failure_memory(failure);
    }
    *order = (struct design_order){.kind = kind,
                                   .seed = seed,
                                   .row_count = rows,
                                   .repetitions = repetitions,
                                   .count = rows * repetitions,
                                   .units = units};
    for (size_t i = 0; i < order->count; i++)
        units[i] = (uint32_t)i;
    if (kind == DESIGN_ORDER_RANDOM) {
        struct random_source source;
        random_start(&source, seed, RANDOM_STREAM_ORDER);
        random_shuffle(&source, units, order->count);
    }
    *ret = order;
    return 0;
}

void design_order_free(struct design_order *order) {
    if (!order)
        return;
    free(order->units);
    free(order);
}

const char *design_order_kind_name(enum design_order_kind kind) {
    return kind == DESIGN_ORDER_RANDOM ? "random" : "as-written";
}
