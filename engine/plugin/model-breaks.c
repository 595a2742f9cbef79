#include "engine/plugin/model-breaks.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/plugin/model.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char wanted[] = "PingPong"; /* from which SMPI's factors come */

static bool is_wanted(const char *text) {
    size_t skipped = strncasecmp(text, "MPI_", 4) == 0 ? 4 : 0;
    return strcasecmp(text + skipped, wanted) == 0;
}

/* Whether one of the group's labels, which stand in its name with "/" between them, is PingPong. */
static bool has_label(const struct model *model, size_t group, const char *const *by, size_t by_count) {
    for (size_t j = 0; j < by_count; j++)
        if (is_wanted(model_label(model, group, by[j])))
            return true;
    return false;
}

static int choose_group(const struct model *model, const char *name, size_t *ret, struct failure *failure) {
    const struct predict_model *view = model_view(model);
    if (name)
        return model_find_group(model, name, ret, failure);
    cleanup_free const char **by = NULL;
    size_t by_count, found = 0;
    int r = model_labels(model, &by, &by_count);
    if (r < 0)
        return r;
    *ret = 0;
    for (size_t g = 0; g < view->group_count; g++)
        if (has_label(model, g, by, by_count)) {
            *ret = g;
            found++;
        }
    if (view->group_count == 1 || found == 1)
        return 0;
    return failure_input(
        failure, view->name, 0, 0,
        "the model has %zu groups, %zu of them of %s; expected --breaks-group, such as '%.128s'",
        view->group_count, found, wanted, view->groups[0].name);
}

static int check(const struct model *model, struct failure *failure) {
    const struct predict_model *view = model_view(model);
    if (!view->over)
        return failure_input(failure, view->name, 0, 0,
                             "the model has no segments; expected one of 'assay fit piecewise' or 'assay fit "
                             "smpi'");
    const char *unit = model_unit(model, view->over);
    if (unit && strcmp(unit, "By") != 0)
        return failure_input(failure, view->name, 0, 0,
                             "the segments are over '%.128s' in %.64s; expected bytes (By)", view->over,
                             unit);
    return 0;
}

static int take(const struct predict_model *view, const struct predict_group *group, struct model_breaks *ret,
                struct failure *failure) {
    ret->at = xcalloc(group->part_count + 1, sizeof *ret->at);
    for (size_t p = 0; p < group->part_count; p++) {
        const struct predict_part *part = &group->parts[p];
        bool other = view->named_by && (!part->name || !is_wanted(part->name));
        if (other || strcmp(part->kind, "segment") != 0 || !(part->from > 0) || !isfinite(part->from))
            continue;
        if (ret->count > 0 && part->from <= ret->at[ret->count - 1])
            return failure_input(failure, view->name, 0, 0,
                                 "the segments of the group '%.128s' are not in ascending order",
                                 group->name);
        ret->at[ret->count++] = part->from;
        if (ret->count > MODEL_BREAKS_MAX)
            return failure_input(failure, view->name, 0, 0, "the group '%.128s' has more than %d segments",
                                 group->name, (int)MODEL_BREAKS_MAX);
    }
    return 0;
}

int model_breaks_read(const char *path, const char *group, struct model_breaks *ret,
                      struct failure *failure) {
    cleanup(model_cleanup) struct model *model = NULL;
    char sha256[HASH_HEX_SIZE];
    size_t g = 0;
    *ret = (struct model_breaks){0};
    int r = model_read(path, &model, failure);
    r = r < 0 ? r : hash_file(path, sha256, NULL, failure);
    r = r < 0 ? r : check(model, failure);
    r = r < 0 ? r : choose_group(model, group, &g, failure);
    r = r < 0 ? r : take(model_view(model), &model_view(model)->groups[g], ret, failure);
    if (r == 0) {
        ret->from = text_format("%s (SHA-256 %.12s), group %s", file_base_name(path), sha256,
                                model_view(model)->groups[g].name);
        r = ret->from ? 0 : failure_memory(failure);
    }
    if (r < 0)
        model_breaks_clear(ret);
    return r;
}

void model_breaks_clear(struct model_breaks *breaks) {
    free(breaks->at);
    free(breaks->from);
    *breaks = (struct model_breaks){0};
}
