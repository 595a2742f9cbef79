/* A model file of any bytes: refused with a sentence, or read; then it is checked, written, read again as the
 * same, drawn and evaluated. What is checked without an error is read, and the other way round. */
#include "tests/fuzz/fuzz.h"

#include "engine/foundation/cleanup.h"
#include "engine/model/check.h"
#include "engine/model/evaluator.h"
#include "engine/model/write.h"
#include "engine/next/next.h"

#include <math.h>

FUZZ_TARGET(8, 1500);

static double draw(void *context, const char *stream, uint64_t index) {
    *(uint64_t *)context += strlen(stream);
    return (double)(index % 5) - 2;
}

static void evaluate(const struct model *model) {
    struct evaluator *evaluator = NULL;
    struct failure failure = {0};
    if (evaluator_new(model, &evaluator, &failure) < 0) {
        must(failure.text[0] != '\0');
        return;
    }
    cleanup_free double *inputs = calloc(evaluator->input_count + 1, sizeof *inputs);
    for (int round = 0; round < 5; round++)
        for (size_t g = 0; g < model->group_count && g < 8; g++) {
            for (size_t i = 0; i < evaluator->input_count; i++)
                inputs[i] = evaluator->inputs[i].is_text
                                ? evaluator_code(evaluator, i, round == 1 ? "x" : evaluator->inputs[i].name)
                                : round * 3.5 - 2;
            if (evaluator->named_by != SIZE_MAX && evaluator->inputs[evaluator->named_by].text_count > 0)
                inputs[evaluator->named_by] =
                    (double)((size_t)round % evaluator->inputs[evaluator->named_by].text_count);
            struct evaluator_value value;
            int r = evaluator_predict(evaluator, &model->groups[g], inputs, &value);
            must(r < 0 ? isnan(value.mean) && isnan(value.sigma) : isfinite(value.mean));
            must(!(value.sigma < 0) && !(value.standard_error < 0) && value.extrapolated_by >= 1);
        }
    evaluator_free(evaluator);
}

static void write_again(const struct model *model) {
    struct text first, second;
    struct failure failure = {0};
    struct model *again = NULL;
    text_init(&first, SIZE_MAX);
    text_init(&second, SIZE_MAX);
    must(model_file_append(model, &first, &failure) == 0);
    must(model_file_parse("again.json", first.bytes, first.length, &again, &failure) == 0);
    must(model_file_append(again, &second, &failure) == 0);
    must(first.length == second.length && memcmp(first.bytes, second.bytes, first.length) == 0);
    model_free(again);
    text_clear(&first);
    text_clear(&second);
}

/* The next rows that would make it surer are found, or refused. */
static void find_rows(const struct model *model) {
    const struct next_request request = {
        .model = model, .criterion = OPTIMAL_D, .budget = INFINITY, .rows_most = 3};
    struct next_rows next = {0};
    struct failure failure = {0};
    if (model->columns && model->column_count > 3)
        return; /* a grid of many columns takes long */
    int r = next_find(&request, &next, &failure);
    must(r == 0 || failure.text[0] != '\0');
    must(r < 0 || (next.rows.count <= 3 && !(next.error_after > next.error_before * (1 + 1e-6))));
    next_clear(&next);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct model *model = NULL, *checked = NULL;
    struct failure failure = {0};
    struct model_findings findings = {0};
    int r = model_file_parse("fuzz.json", (const char *)bytes, length, &model, &failure);
    must(r == 0 || (failure.kind == FAILURE_INPUT && failure.text[0] != '\0' && !model));
    int c = model_file_check_bytes("fuzz.json", (const char *)bytes, length, &findings, &checked, &failure);
    must(c < 0 ? r < 0 && findings.count == 0 : (r == 0 || findings.error_count > 0));
    for (size_t i = 0; i < findings.count; i++)
        must(findings.items[i].sentence[0] != '\0' && findings.items[i].line > 0);
    model_findings_clear(&findings);
    model_free(checked);
    if (r < 0)
        return 0;
    fuzz_passed++;
    write_again(model);
    evaluate(model);
    uint64_t streams = 0;
    struct model *drawn = model_draw(model, draw, &streams);
    must(drawn->group_count == model->group_count);
    model_draw_free(drawn);
    find_rows(model);
    model_free(model);
    return 0;
}
