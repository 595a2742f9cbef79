/* A model file of any bytes: refused with a sentence, or read; and then it is checked, evaluated, and rows
 * for it are found, or each of them refused. What is checked without a finding is read, too. */
#include "tests/fuzz/trees.h"

#include "engine/plugin/evaluation.h"
#include "engine/plugin/model-check.h"
#include "engine/plugin/model-fit.h"
#include "engine/plugin/next-rows.h"

#include <math.h>

enum { CANDIDATES = 7, FACTORS_MAX = 20 };

static void check_refused(int r, const struct failure *failure) {
    must(r < 0 && failure->kind != FAILURE_NONE && failure->text[0] != '\0');
}

static struct design *make_candidates(const struct model_fit *fit) {
    struct design *design = NULL;
    struct failure failure = {0};
    must(design_new(CANDIDATES, &design, &failure) == 0);
    for (size_t i = 0; i < fit->factor_count && i < FACTORS_MAX; i++) {
        struct design_column *column = NULL;
        if (design_add_column(design, fit->factors[i].name, DESIGN_NUMBER, &column, &failure) < 0)
            break; /* a control, or no name at all */
        for (size_t row = 0; row < CANDIDATES; row++)
            column->numbers[row] = (double)((row * (i + 3) + i) % CANDIDATES) - 2.5;
    }
    return design;
}

static void find_rows(const struct model_fit *fit, const struct design *design,
                      enum optimal_criterion criterion) {
    size_t group = 0;
    const struct next_request request = {
        .fit = fit,
        .groups = &group,
        .group_count = 1,
        .candidates = design,
        .criterion = criterion,
        .budget = criterion == OPTIMAL_D ? INFINITY : 10,
        .rows_most = 3,
    };
    struct next_rows next = {0};
    struct failure failure = {0};
    int r = next_rows_find(&request, &next, &failure);
    if (r < 0) {
        check_refused(r, &failure);
        return;
    }
    must(next.rows.count >= 1 && next.rows.count <= 3);
    for (size_t i = 0; i < next.rows.count; i++)
        must(next.rows.items[i] < CANDIDATES && next.rows.gains[i] >= 0);
    must(isfinite(next.error_before) && next.error_after <= next.error_before * (1 + 1e-6));
    next_rows_clear(&next);
}

static int count_finding(void *context, const struct model_finding *finding) {
    size_t *errors = context;
    must(finding->sentence[0] != '\0' && finding->line > 0 && finding->column > 0);
    *errors += !finding->warning;
    return 0;
}

static void check_file(const char *bytes, size_t length, bool reads) {
    struct model *model = NULL;
    struct failure failure = {0};
    size_t errors = 0;
    int r = model_check_parse("fuzz.json", bytes, length, count_finding, &errors, &model, &failure);
    if (r < 0)
        check_refused(r, &failure);
    must(reads ? r == 0 : r < 0 || errors > 0);
    model_free(model);
}

/* Whatever values there are, what comes back is what the header says. */
static void evaluate(const struct predict_model *view) {
    static const double choices[] = {0, 1, -3.5, 1e6, NAN};
    cleanup_free const char **columns = NULL;
    cleanup(evaluation_cleanup) struct evaluation *evaluation = NULL;
    size_t count;
    struct failure failure = {0};
    must(evaluation_columns(view, &columns, &count) == 0);
    int r = evaluation_new(view, columns, count, &evaluation, &failure);
    if (r < 0) {
        check_refused(r, &failure);
        return;
    }
    cleanup_free double *values = calloc(count + 1, sizeof *values);
    cleanup_free const char **texts = calloc(count + 1, sizeof *texts);
    must(values && texts);
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++)
        for (size_t g = 0; g < view->group_count && g < 8; g++) {
            struct evaluation_value value;
            char sentence[EVALUATION_SENTENCE_SIZE];
            for (size_t c = 0; c < count; c++) {
                values[c] = choices[k] * (double)(c + 1);
                texts[c] = k & 1 ? "a" : "b";
            }
            r = evaluation_row(evaluation, g, values, texts, &value);
            must(r == 0 ? isfinite(value.mean) != 0 : isnan(value.mean) != 0);
            must(!(value.sigma < 0) && value.left >= 1 && value.beyond_hull >= 0);
            must(evaluation_outside(&value) == (value.left_by || value.beyond_hull > 0));
            must(evaluation_describe(&value, sentence)[0] != '\0');
            must(!(evaluation_standard_error(evaluation, g, values, texts) < 0));
        }
}

FUZZ_TARGET(13, 2000);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct model *model = NULL;
    struct model_fit *fit = NULL;
    struct failure failure = {0};
    int r = model_parse("fuzz.json", (const char *)bytes, length, &model, &failure);
    check_file((const char *)bytes, length, r == 0);
    if (r < 0) {
        must(model == NULL);
        check_refused(r, &failure);
        return 0;
    }
    fuzz_passed++;
    evaluate(model_view(model));
    r = model_fit_read(model, &fit, &failure);
    if (r < 0) {
        must(fit == NULL);
        check_refused(r, &failure);
    } else if (fit->view->term_count <= OPTIMAL_TERMS_MAX) {
        struct design *design = make_candidates(fit);
        find_rows(fit, design, OPTIMAL_D);
        find_rows(fit, design, OPTIMAL_I);
        design_free(design);
    }
    model_fit_free(fit);
    model_free(model);
    return 0;
}
