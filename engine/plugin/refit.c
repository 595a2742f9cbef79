#include "engine/plugin/refit.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/plugin/category-levels.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_ROWS = 2048 };

/* An instance under way. */
struct instance {
    const struct refit *refit;
    const struct fit_operations *operations;
    struct fit *fit;
    struct fit_needs needs;
    struct plugin_host host;
    struct plugin_levels levels[TABLE_LABELS_MAX];
    size_t *columns;                 /* which kept column each need is */
    size_t labels[TABLE_LABELS_MAX]; /* which kept label column each category is */

    /* The block in hand. */
    double *numbers;
    uint32_t *codes, *groups;
    const double **number_lists;
    const uint32_t *code_lists[TABLE_LABELS_MAX];
};

static void instance_clear(struct instance *instance) {
    if (instance->operations)
        instance->operations->close(instance->fit);
    for (size_t i = 0; i < TABLE_LABELS_MAX; i++)
        category_levels_clear(&instance->levels[i]);
    free(instance->columns);
    free((void *)instance->number_lists);
    free(instance->numbers);
    free(instance->codes);
    free(instance->groups);
}

/* ---- What the plugin may ask */

static void pass_note(void *context, const char *sentence) {
    (void)context;
    (void)sentence;
}

static int pass_levels(void *context, size_t category, struct plugin_levels *ret) {
    struct instance *instance = context;
    if (category >= instance->needs.category_count)
        return -EINVAL;
    struct plugin_levels *levels = &instance->levels[category];
    int r = category_levels_fill(levels, fitting_table(instance->refit->fitting), instance->labels[category]);
    *ret = *levels;
    return r;
}

/* The rows that an instance sees are numbered anew. */
static const char *pass_place(void *context, uint64_t row, char *buffer, size_t size) {
    (void)context;
    snprintf(buffer, size, "row %" PRIu64 " of those that were kept", row + 1);
    return buffer;
}

/* ---- Beginning */

static int bind_needs(struct instance *instance, struct failure *failure) {
    const struct fitting *fitting = instance->refit->fitting;
    const struct fit_needs *kept = fitting_needs(fitting), *needs = &instance->needs;
    size_t by_count = fitting_options(fitting)->by_count;
    if (needs->category_count > TABLE_LABELS_MAX)
        return failure_set(failure, -E2BIG, "%s needs more categories than were kept",
                           fitting_plugin(fitting)->name);
    instance->columns = xcalloc(needs->column_count + 1, sizeof *instance->columns);
    for (size_t i = 0; i < needs->column_count; i++) {
        size_t k = 0;
        while (k < kept->column_count && strcmp(kept->columns[k], needs->columns[i]) != 0)
            k++;
        if (k == kept->column_count)
            return failure_set(failure, -ENOENT, "the column '%s' was not kept", needs->columns[i]);
        instance->columns[i] = k;
    }
    for (size_t i = 0; i < needs->category_count; i++) {
        size_t k = 0;
        while (k < kept->category_count && strcmp(kept->categories[k], needs->categories[i]) != 0)
            k++;
        if (k == kept->category_count)
            return failure_set(failure, -ENOENT, "the category '%s' was not kept", needs->categories[i]);
        instance->labels[i] = by_count + k;
    }
    return 0;
}

static int make_blocks(struct instance *instance) {
    const struct fit_needs *needs = &instance->needs;
    instance->numbers = calloc((needs->column_count + 1) * BLOCK_ROWS, sizeof *instance->numbers);
    instance->codes = calloc((needs->category_count + 1) * BLOCK_ROWS, sizeof *instance->codes);
    instance->groups = calloc(BLOCK_ROWS, sizeof *instance->groups);
    instance->number_lists = calloc(needs->column_count + 1, sizeof *instance->number_lists);
    if (!instance->number_lists || !instance->numbers || !instance->codes || !instance->groups)
        return -ENOMEM;
    for (size_t i = 0; i < needs->column_count; i++)
        instance->number_lists[i] = instance->numbers + i * BLOCK_ROWS;
    for (size_t i = 0; i < needs->category_count; i++)
        instance->code_lists[i] = instance->codes + i * BLOCK_ROWS;
    return 0;
}

/* What the plugin said when it returned R. */
static int complain(const struct instance *instance, int r, const struct plugin_message *message,
                    struct failure *failure) {
    return failure_set(failure, r, "%s: %s", fitting_plugin(instance->refit->fitting)->name,
                       message->text[0] ? message->text : strerror(-r));
}

static int open_instance(struct instance *instance, struct failure *failure) {
    const struct fitting *fitting = instance->refit->fitting;
    const struct fit_operations *operations = fitting_plugin(fitting)->operations;
    instance->host = (struct plugin_host){sizeof instance->host, instance,    pass_note,
                                          text_nearest,          pass_levels, pass_place};
    struct plugin_message message = {0};
    int r = operations->open(&instance->host, instance->refit->request, &instance->fit, &instance->needs,
                             &message);
    if (r < 0)
        return complain(instance, r, &message, failure);
    instance->operations = operations;
    r = bind_needs(instance, failure);
    if (r < 0)
        return r;
    return make_blocks(instance) < 0 ? failure_memory(failure) : 0;
}

/* ---- Rows */

/* The next rows from *AT on that are seen, into the block. Returns how many. */
static size_t gather(struct instance *instance, size_t *at) {
    const struct refit *refit = instance->refit;
    const struct kept_rows *kept = fitting_kept_rows(refit->fitting);
    uint32_t chosen[BLOCK_ROWS];
    size_t count = 0;
    for (; *at < kept->count && count < BLOCK_ROWS; ++*at)
        if (!refit->folds || (refit->folds[*at] != refit->left_out && refit->folds[*at] != FOLDS_NONE))
            chosen[count++] = (uint32_t)*at;
    for (size_t i = 0; i < instance->needs.column_count; i++) {
        const double *from = kept->columns[instance->columns[i]];
        for (size_t k = 0; k < count; k++)
            instance->numbers[i * BLOCK_ROWS + k] = from[chosen[k]];
    }
    for (size_t i = 0; i < instance->needs.category_count; i++) {
        const uint32_t *from = kept->labels[instance->labels[i]];
        for (size_t k = 0; k < count; k++)
            instance->codes[i * BLOCK_ROWS + k] = from[chosen[k]];
    }
    for (size_t k = 0; k < count; k++)
        instance->groups[k] = refit->groups[chosen[k]];
    return count;
}

static int stream_rows(struct instance *instance, struct failure *failure) {
    struct fit_block block = {
        .size = sizeof block,
        .columns = instance->number_lists,
        .groups = instance->groups,
        .group_count = instance->refit->group_count,
        .categories = instance->needs.category_count ? instance->code_lists : NULL,
    };
    for (size_t at = 0; (block.rows = gather(instance, &at)) > 0; block.first_row += block.rows) {
        struct plugin_message message = {0};
        int r = instance->operations->block(instance->fit, &block, &message);
        if (r < 0)
            return complain(instance, r, &message, failure);
    }
    return 0;
}

static int stream_passes(struct instance *instance, struct failure *failure) {
    for (int pass = 0; pass < FITTING_PASSES_MAX; pass++) {
        int r = stream_rows(instance, failure);
        if (r < 0)
            return r;
        struct plugin_message message = {0};
        r = instance->operations->end_of_pass(instance->fit, &message);
        if (r < 0)
            return complain(instance, r, &message, failure);
        if (r != FIT_AGAIN)
            return 0;
    }
    return failure_set(failure, -ELOOP, "%s asked for the rows more than %d times",
                       fitting_plugin(instance->refit->fitting)->name, (int)FITTING_PASSES_MAX);
}

static int finish(struct instance *instance, struct fitted_model *model, struct failure *failure) {
    uint32_t count = instance->refit->group_count;
    cleanup_free uint32_t *order = xcalloc((size_t)count + 1, sizeof *order);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    const struct fit_writer writer = fitted_model_writer(model, order, count);
    struct plugin_message message = {0};
    int r = instance->operations->finish(instance->fit, &writer, &message);
    return r < 0 ? complain(instance, r, &message, failure) : 0;
}

int refit_run(const struct refit *refit, struct fitted_model **ret, struct failure *failure) {
    cleanup(instance_clear) struct instance instance = {.refit = refit};
    cleanup(fitted_model_cleanup) struct fitted_model *model = NULL;
    int r = fitted_model_new(fitting_plugin(refit->fitting)->name, refit->request->response, &model, failure);
    r = r < 0 ? r : open_instance(&instance, failure);
    r = r < 0 ? r : stream_passes(&instance, failure);
    r = r < 0 ? r : finish(&instance, model, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(model);
    return 0;
}
