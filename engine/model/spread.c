#include "engine/model/spread.h"

#include "engine/foundation/memory.h"
#include "engine/model/model.h"
#include "engine/numerics/quantile.h"

#include <math.h>
#include <stdlib.h>

void model_spread_clear(struct model_spread *spread) {
    free(spread->values);
}

void model_spread_add(struct model_spread *spread, double value) {
    if (!isfinite(value))
        return;
    if ((spread->count & (spread->count - 1)) == 0) /* room doubles at each power of two */
        spread->values = xrealloc(spread->values, (2 * spread->count + 1) * sizeof *spread->values);
    spread->values[spread->count++] = value;
}

double model_spread_quantile(struct model_spread *spread, double share) {
    quantile_sort(spread->values, spread->count);
    return quantile(spread->values, spread->count, share);
}

struct model_spread model_spread_collect(const struct model *model, const char *name) {
    struct model_spread spread = {0};
    for (size_t g = 0; g < model->group_count; g++)
        model_spread_add(&spread, model_group_value(&model->groups[g], name));
    return spread;
}

/* The range of COLUMN over all parts of all groups. false: none has a range of it. */
bool model_spread_range(const struct model_group *groups, size_t count, const char *column, double *ret_low,
                        double *ret_high) {
    *ret_low = INFINITY;
    *ret_high = -INFINITY;
    for (size_t g = 0; g < count; g++)
        for (size_t p = 0; p < groups[g].part_count; p++) {
            const struct model_range *range = model_range_find(&groups[g].parts[p], column);
            *ret_low = range ? fmin(*ret_low, range->minimum) : *ret_low;
            *ret_high = range ? fmax(*ret_high, range->maximum) : *ret_high;
        }
    return *ret_low <= *ret_high;
}
