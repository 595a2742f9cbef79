/* What is to be said of rows that are outside of what a model was fitted to. */
#include "engine/plugin/evaluation.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

bool evaluation_outside(const struct evaluation_value *value) {
    return value->left_by != NULL || value->beyond_hull > 0;
}

const char *evaluation_describe(const struct evaluation_value *value,
                                char buffer[static EVALUATION_SENTENCE_SIZE]) {
    size_t size = EVALUATION_SENTENCE_SIZE;
    if (value->left_by && isfinite(value->left))
        snprintf(buffer, size, "'%.128s' is %.3g times %s value that was measured", value->left_by,
                 value->left, value->left_above ? "the greatest" : "below the least");
    else if (value->left_by)
        snprintf(buffer, size, "'%.128s' is outside of what was measured", value->left_by);
    else if (value->beyond_hull > 0 && isfinite(value->beyond_hull))
        snprintf(buffer, size,
                 "its values together lie outside of what was measured, by %.2g times its width, though each "
                 "is within its range",
                 value->beyond_hull);
    else if (value->beyond_hull > 0)
        snprintf(buffer, size, "its values together are none that was measured, though each is in its range");
    else
        snprintf(buffer, size, "it is inside of what was measured");
    return buffer;
}

void evaluation_tally_add(struct evaluation_tally *tally, const struct evaluation_value *value) {
    const struct evaluation_value *furthest = &tally->furthest;
    tally->rows++;
    tally->not_positive += tally->is_time && value->mean <= 0;
    if (!evaluation_outside(value))
        return;
    if (tally->outside++ == 0 || value->left > furthest->left ||
        (value->left == furthest->left && value->beyond_hull > furthest->beyond_hull))
        tally->furthest = *value;
}

const char *evaluation_tally_describe(const struct evaluation_tally *tally,
                                      char buffer[static EVALUATION_SENTENCE_SIZE]) {
    char clause[EVALUATION_SENTENCE_SIZE];
    int length = 0;
    if (tally->outside == 0 && tally->not_positive == 0)
        return NULL;
    if (tally->outside > 0)
        evaluation_describe(&tally->furthest, clause);
    if (tally->outside > 0 && tally->rows == 1)
        length = snprintf(buffer, EVALUATION_SENTENCE_SIZE,
                          "the row is outside of what the model was fitted to: %.600s", clause);
    else if (tally->outside > 0)
        length = snprintf(buffer, EVALUATION_SENTENCE_SIZE,
                          "%" PRIu64 " of %" PRIu64 " rows are outside of what the model was fitted to; of "
                          "the one furthest out, %.500s",
                          tally->outside, tally->rows, clause);
    size_t left = EVALUATION_SENTENCE_SIZE - (size_t)length;
    if (tally->not_positive > 0 && tally->rows == 1)
        snprintf(buffer + length, left, "%sthe predicted time is 0 or less", length ? "; " : "");
    else if (tally->not_positive > 0)
        snprintf(buffer + length, left,
                 "%sa time of 0 or less is predicted for %" PRIu64 " of %" PRIu64 " rows", length ? "; " : "",
                 tally->not_positive, tally->rows);
    return buffer;
}
