/* The plugin fit-linear: see README.md for what it computes. */
#include "plugins/fit-linear/linear.h"
#include "plugins/fit-linear/noise.h"
#include "plugins/fit-linear/settle.h"
#include "plugins/fit-linear/telling.h"

#include <errno.h>
#include <gsl/gsl_errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1024 /* rows, when inputs have to be made */ };

/* ---- Beginning */

static void add_input(struct fit *fit, const char *column) {
    size_t need = 0;
    while (need < fit->need_count && strcmp(fit->needs[need], column) != 0)
        need++;
    if (need == fit->need_count)
        fit->needs[fit->need_count++] = column;
    fit->input_need[fit->input_count++] = need;
}

static void linear_close(struct fit *fit) {
    if (!fit)
        return;
    formula_clear(&fit->formula);
    expansion_free(fit->expansion);
    cells_free(fit->cells);
    moments_free(fit->moments);
    noise_free(fit->noise);
    for (size_t i = 0; i < LINEAR_INPUTS_MAX; i++)
        free(fit->derived[i]);
    free(fit->cell_codes);
    free(fit->held_numbers);
    free(fit->held_folds);
    free(fit->held_cells);
    grouped_rows_clear(&fit->held);
    free(fit);
}

static bool is_derived(const struct formula_input *input) {
    return input->logarithm || input->inverse;
}

static int list_inputs(struct fit *fit) {
    const struct formula *formula = &fit->formula;
    for (size_t i = 0; i < formula->input_count; i++) {
        add_input(fit, formula->columns[formula->inputs[i].column]);
        if (is_derived(&formula->inputs[i]) && !(fit->derived[i] = calloc(PIECE, sizeof(double))))
            return -ENOMEM;
    }
    add_input(fit, fit->request->response);
    if (fit->request->weights)
        add_input(fit, fit->request->weights);
    return 0;
}

/* Rows are held where one of the two looks at them again. */
static int begin_holding(struct fit *fit, struct plugin_message *message) {
    bool robust = linear_parameter(fit, PARAMETER_ROBUST) != ROBUST_NONE;
    fit->holds = robust || linear_parameter(fit, PARAMETER_OUTLIERS) > 0;
    if (robust && linear_parameter(fit, PARAMETER_OUTLIERS) > 0)
        snprintf(
            message->text, sizeof message->text,
            "both 'robust' and 'outliers' are set; expected one of them: robust weights leave no outliers");
    else if (robust && linear_parameter(fit, PARAMETER_SELECT) == SELECT_BIC)
        snprintf(
            message->text, sizeof message->text,
            "'select' is bic and 'robust' is set; a robust fit has no likelihood, so expected elimination "
            "or none");
    else
        return 0;
    return -EINVAL;
}

static int make_room_for_held(struct fit *fit) {
    if (!fit->holds)
        return 0;
    grouped_rows_init(&fit->held, fit->input_count + LINEAR_HELD_BESIDES);
    fit->held_numbers = calloc(PIECE, sizeof *fit->held_numbers);
    fit->held_folds = calloc(PIECE, sizeof *fit->held_folds);
    fit->held_cells = calloc(PIECE, sizeof *fit->held_cells);
    return fit->held_numbers && fit->held_folds && fit->held_cells ? 0 : -ENOMEM;
}

static int linear_begin(struct fit *fit, struct plugin_message *message) {
    const struct fit_request *request = fit->request;
    int r = formula_read(fit->host, request, &fit->formula, message);
    if (r < 0)
        return r;
    r = begin_holding(fit, message);
    if (r < 0)
        return r;
    const struct moments_options options = {.weighted = request->weights != NULL,
                                            .choice = MOMENTS_BEST,
                                            .folds = fit->holds ? 1 : linear_folds(fit)};
    r = moments_new(&fit->formula, &options, &fit->moments);
    r = r < 0 ? r : cells_new(fit->formula.category_count, &fit->cells);
    r = r < 0 ? r : list_inputs(fit);
    r = r < 0 ? r : make_room_for_held(fit);
    fit->cell_codes = calloc(PIECE, sizeof *fit->cell_codes);
    r = r < 0 ? r : fit->cell_codes ? 0 : -ENOMEM;
    return r < 0 ? r : noise_new(fit, &fit->noise, message);
}

static int linear_open(const struct plugin_host *host, const struct fit_request *request, struct fit **ret,
                       struct fit_needs *ret_needs, struct plugin_message *message) {
    /* GSL's default is to abort; what is asked of it here cannot fail but for memory, which is checked. */
    gsl_set_error_handler_off();
    struct fit *fit = calloc(1, sizeof *fit);
    if (!fit)
        return -ENOMEM;
    fit->host = host;
    fit->request = request;
    int r = linear_begin(fit, message);
    if (r < 0) {
        linear_close(fit);
        return r;
    }
    *ret = fit;
    *ret_needs = (struct fit_needs){.size = sizeof *ret_needs,
                                    .columns = fit->needs,
                                    .column_count = fit->need_count,
                                    .categories = fit->formula.categories,
                                    .category_count = fit->formula.category_count,
                                    .text_advice = "a column of texts is written as category(COLUMN) in the "
                                                   "terms"};
    return 0;
}

/* ---- Rows */

/* Some rows of a block: inputs and cells. */
struct piece {
    size_t start, rows;
    const double *columns[LINEAR_INPUTS_MAX + LINEAR_HELD_BESIDES];
    const uint8_t *folds;
    const uint32_t *cells;
    uint32_t cell_count;
};

/* Whether blocks can be taken as they are. */
static bool is_plain(const struct fit *fit) {
    if (fit->formula.category_count > 0 || fit->holds)
        return false;
    for (size_t i = 0; i < fit->formula.input_count; i++)
        if (is_derived(&fit->formula.inputs[i]))
            return false;
    return true;
}

static int find_cells(struct fit *fit, const struct fit_block *block, struct piece *piece,
                      struct plugin_message *message) {
    size_t categories = fit->formula.category_count, category;
    piece->cells = block->groups + piece->start;
    piece->cell_count = block->group_count;
    if (categories == 0)
        return 0;
    const uint32_t *codes[FORMULA_CATEGORIES_MAX];
    for (size_t c = 0; c < categories; c++)
        codes[c] = block->categories[c] + piece->start;
    int r = cells_assign(fit->cells, piece->rows, piece->cells, block->group_count, codes, fit->cell_codes,
                         &category);
    if (r == -ERANGE)
        snprintf(message->text, sizeof message->text,
                 "the category '%.200s' has more than %d levels; is it a number, or a column for --by?",
                 fit->formula.categories[category], (int)CELLS_LEVELS_MAX);
    else if (r == -E2BIG)
        snprintf(message->text, sizeof message->text,
                 "groups and levels of categories combine to more than %d", (int)CELLS_MAX);
    piece->cells = fit->cell_codes;
    piece->cell_count = cells_count(fit->cells);
    return r == -ERANGE || r == -E2BIG ? -EINVAL : r;
}

static int hold_piece(struct fit *fit, const struct fit_block *block, struct piece *piece,
                      struct plugin_message *message) {
    size_t count = fit->input_count, most = LINEAR_HELD_MAX / fit->held.columns;
    for (size_t r = 0; r < piece->rows; r++) {
        fit->held_numbers[r] = (double)(block->first_row + piece->start + r);
        fit->held_folds[r] = piece->folds ? piece->folds[r] : 0;
        fit->held_cells[r] = piece->cells[r];
    }
    piece->columns[count++] = fit->held_numbers;
    piece->columns[count++] = fit->held_folds;
    piece->columns[count++] = fit->held_cells;
    int r = fit->held.count + piece->rows > most
                ? -EFBIG
                : grouped_rows_add(&fit->held, piece->rows, piece->columns, block->groups + piece->start,
                                   block->group_count);
    if (r != -EFBIG)
        return r;
    snprintf(message->text, sizeof message->text,
             "'robust' and 'outliers' hold the rows in memory, %zu of this width at most; there are more",
             most);
    return -EINVAL;
}

static int add_piece(struct fit *fit, const struct fit_block *block, struct piece *piece,
                     struct plugin_message *message) {
    for (size_t i = 0; i < fit->input_count; i++) {
        piece->columns[i] = block->columns[fit->input_need[i]] + piece->start;
        if (fit->derived[i]) {
            formula_derive(&fit->formula.inputs[i], piece->rows, piece->columns[i], fit->derived[i]);
            piece->columns[i] = fit->derived[i];
        }
    }
    int r = find_cells(fit, block, piece, message);
    if (r < 0)
        return r;
    size_t row;
    piece->folds = PLUGIN_HAS(block, folds) && block->folds ? block->folds + piece->start : NULL;
    r = moments_add(fit->moments, piece->rows, piece->columns, piece->cells, piece->cell_count, piece->folds,
                    &row);
    if (r == 0)
        r = noise_add(fit->noise, piece->rows, piece->columns, piece->cells, piece->folds, message);
    if (r == 0 && fit->holds)
        return hold_piece(fit, block, piece, message);
    if (r != -ERANGE)
        return r;
    char place[PLUGIN_PLACE_SIZE];
    snprintf(message->text, sizeof message->text, "the weight '%s' of %s is %g; expected 0 or more",
             fit->request->weights,
             fit->host->place(fit->host->context, block->first_row + piece->start + row, place, sizeof place),
             piece->columns[fit->input_count - 1][row]);
    return -EINVAL;
}

static int linear_block(struct fit *fit, const struct fit_block *block, struct plugin_message *message) {
    size_t most = is_plain(fit) ? block->rows : PIECE;
    int r = 0;
    for (size_t start = 0; r == 0 && start < block->rows; start += most) {
        size_t rows = block->rows - start < most ? block->rows - start : most;
        r = add_piece(fit, block, &(struct piece){.start = start, .rows = rows}, message);
    }
    fit->rows += block->rows;
    return r;
}

static void note_no_folds(const struct fit *fit) {
    char text[256];
    snprintf(
        text, sizeof text,
        "no cross-validation: it takes sums for each of %g folds, and the groups are more than %d or their "
        "sums more than %d MiB (--set folds=0 says so beforehand)",
        linear_parameter(fit, PARAMETER_FOLDS), (int)MOMENTS_FOLDS_GROUPS_MAX,
        (int)MOMENTS_FOLDS_BYTES_MAX >> 20);
    fit->host->note(fit->host->context, text);
}

static int linear_end_of_pass(struct fit *fit, struct plugin_message *message) {
    if (fit->rows == 0) {
        snprintf(message->text, sizeof message->text, "there are no rows to fit");
        return -EINVAL;
    }
    int r = expansion_new(fit->host, &fit->formula, &fit->expansion, message);
    r = r == 0 && fit->holds ? grouped_rows_sort(&fit->held) : r;
    if (r < 0)
        return r;
    if (!fit->holds && linear_folds(fit) > 1 && moments_folds(fit->moments) == 1)
        note_no_folds(fit);
    return FIT_DONE;
}

/* ---- Results */

static int linear_finish(struct fit *fit, const struct fit_writer *writer, struct plugin_message *message) {
    (void)message; /* whatever fails here is memory, or the writer, who knows */
    struct settling *settling = settling_new(fit);
    struct settled *settled = malloc(sizeof *settled);
    struct telling *telling = malloc(sizeof *telling);
    struct noise_told *told = malloc(sizeof *told);
    int r = settling && settled && telling && told ? telling_formula(fit, writer) : -ENOMEM;
    for (uint32_t i = 0; r >= 0 && i < writer->group_count; i++) {
        r = settle(settling, writer->order[i], settled);
        r = r < 0 ? r : noise_settle(fit->noise, fit, writer->order[i], settled, told);
        r = r < 0 ? r : telling_group(fit, writer, writer->order[i], settled, told, telling);
    }
    free(told);
    free(telling);
    free(settled);
    settling_free(settling);
    return r;
}

static const struct fit_operations operations = {
    .size = sizeof operations,
    .parameter_count = PARAMETER_COUNT,
    .parameters = linear_parameters,
    .open = linear_open,
    .block = linear_block,
    .end_of_pass = linear_end_of_pass,
    .finish = linear_finish,
    .close = linear_close,
};

ASSAY_PLUGIN_EXPORT extern const struct assay_plugin assay_plugin;
const struct assay_plugin assay_plugin = {
    .abi = ASSAY_PLUGIN_ABI,
    .size = sizeof assay_plugin,
    .kind = ASSAY_PLUGIN_FIT,
    .name = "fit-linear",
    .version = ASSAY_VERSION,
    .summary = "least squares on polynomial terms, group by group",
    .operations = &operations,
};
