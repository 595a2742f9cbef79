/* A model file of any bytes that is read: rows that make it surer are found, or refused with a sentence. */
#include "tests/fuzz/fuzz.h"

#include "engine/model/read.h"
#include "engine/next/next.h"

#include <math.h>

FUZZ_TARGET(5, 300);

static void find_rows(const struct model *model, enum optimal_criterion criterion, double budget) {
    const struct next_request request = {
        .model = model, .criterion = criterion, .budget = budget, .rows_most = 3};
    struct next_rows next;
    struct failure failure = {0};
    int r = next_find(&request, &next, &failure);
    if (r < 0) {
        must(failure.kind != FAILURE_NONE && failure.text[0] != '\0');
    } else {
        fuzz_passed++;
        must(next.rows.count >= 1 && next.rows.count <= 3 && isfinite(next.error_before));
        must(next.error_after <= next.error_before * (1 + 1e-6));
        for (size_t i = 0; i < next.rows.count; i++)
            must(next.rows.items[i] < next.candidates->row_count && next.rows.gains[i] >= 0);
    }
    next_clear(&next);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct model *model = NULL;
    struct failure failure = {0};
    if (model_file_parse("fuzz.json", (const char *)bytes, length, &model, &failure) < 0)
        return 0;
    if (model->group_count <= 8 && model->term_count <= 8) {
        find_rows(model, OPTIMAL_D, INFINITY);
        find_rows(model, OPTIMAL_I, 10);
    }
    model_free(model);
    return 0;
}
