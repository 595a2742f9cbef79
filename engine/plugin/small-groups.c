#include "engine/plugin/small-groups.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/text.h"
#include "engine/plugin/grouping.h"
#include "engine/plugin/refit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 1 << 14 };

/* Share of the groups, and of the rows, that may be left out: one in so many. */
enum { GROUPS_SHARE = 2, ROWS_SHARE = 10 };

struct group {
    uint64_t rows;   /* that are still in; 0: none */
    uint32_t usable; /* of these */
    uint32_t most;   /* of these, in one fold */
    size_t first;    /* one of its rows */
};

struct search {
    const struct fitting *fitting;
    uint32_t fold_count;
    uint8_t *folds;
    struct small_groups *ret;
    struct text names;
    size_t by_count; /* of the groups in hand, which are: */
    uint32_t *codes; /* by row */
    struct group *groups;
    uint32_t group_count;
    uint32_t total[TABLE_LABELS_MAX + 1], left_out[TABLE_LABELS_MAX + 1]; /* groups, by by_count */
};

static void search_clear(struct search *search) {
    text_clear(&search->names);
    free(search->codes);
    free(search->groups);
}

/* ---- Counting */

/* Whether the row can be fitted to: all its numbers are there, and its weight is not 0. */
static bool is_usable(const struct fitting *fitting, size_t row) {
    const struct kept_rows *kept = fitting_kept_rows(fitting);
    const struct fit_needs *needs = fitting_needs(fitting);
    const char *weights = fitting_options(fitting)->weights;
    for (size_t i = 0; i < kept->column_count; i++) {
        double value = kept->columns[i][row];
        if (!isfinite(value) || (weights && value == 0 && strcmp(needs->columns[i], weights) == 0))
            return false;
    }
    return true;
}

/* The groups by the first BY_COUNT columns, of the rows that are still in. */
static int count_groups(struct search *search, size_t by_count, struct failure *failure) {
    const struct kept_rows *kept = fitting_kept_rows(search->fitting);
    cleanup(grouping_cleanup) struct grouping *grouping = NULL;
    const uint32_t *codes;
    int r = kept_rows_group(kept, by_count, &grouping, &codes, failure);
    if (r < 0)
        return r;
    search->by_count = by_count;
    search->group_count = grouping_count(grouping);
    memcpy(search->codes, codes, kept->count * sizeof *codes);
    free(search->groups);
    search->groups = calloc((size_t)search->group_count + 1, sizeof *search->groups);
    cleanup_free uint32_t *in_fold =
        calloc((size_t)search->group_count * search->fold_count + 1, sizeof *in_fold);
    if (!search->groups || !in_fold)
        return failure_memory(failure);
    for (size_t i = 0; i < kept->count; i++) {
        struct group *group = &search->groups[codes[i]];
        if (search->folds[i] == FOLDS_NONE)
            continue;
        group->first = group->rows++ == 0 ? i : group->first;
        if (!is_usable(search->fitting, i))
            continue;
        uint32_t *count = &in_fold[(size_t)codes[i] * search->fold_count + search->folds[i]];
        group->usable++;
        if (++*count > group->most)
            group->most = *count;
    }
    return 0;
}

/* One row more than terms tells how the rows scatter. */
static bool is_small(const struct group *group, size_t terms) {
    return group->rows > 0 && group->usable - group->most <= terms;
}

/* ---- Leaving out */

static int add_name(struct search *search, const struct group *group) {
    const struct kept_rows *kept = fitting_kept_rows(search->fitting);
    const struct table *table = fitting_table(search->fitting);
    if (search->ret->count++ >= SMALL_GROUPS_NAMED_MAX)
        return 0;
    int r = 0;
    for (size_t j = 0; r == 0 && j < search->by_count; j++) {
        const char *between = j ? ", " : search->names.length ? "; " : "";
        r = text_printf(&search->names, "%s%s %s", between, fitting_options(search->fitting)->by[j],
                        table_label(table, j, kept->labels[j][group->first]));
    }
    return r == -ENOMEM ? r : 0;
}

static int leave_out(struct search *search, size_t terms) {
    const struct kept_rows *kept = fitting_kept_rows(search->fitting);
    for (size_t i = 0; i < kept->count; i++)
        if (is_small(&search->groups[search->codes[i]], terms))
            search->folds[i] = FOLDS_NONE;
    int r = 0;
    for (uint32_t g = 0; r == 0 && g < search->group_count; g++)
        if (is_small(&search->groups[g], terms)) {
            search->ret->rows += search->groups[g].rows;
            r = add_name(search, &search->groups[g]);
        }
    return r;
}

/* The groups in hand that are too small for TERMS: 1 when some were left out, 0, or -ENOMEM. */
static int try_terms(struct search *search, size_t terms) {
    uint32_t count = 0, *left_out = &search->left_out[search->by_count];
    uint64_t rows = 0;
    for (uint32_t g = 0; g < search->group_count; g++)
        if (is_small(&search->groups[g], terms)) {
            count++;
            rows += search->groups[g].rows;
        }
    if (count == 0 || (uint64_t)(*left_out + count) * GROUPS_SHARE > search->total[search->by_count] ||
        (search->ret->rows + rows) * ROWS_SHARE > fitting_kept_rows(search->fitting)->count)
        return 0;
    *left_out += count;
    return leave_out(search, terms) < 0 ? -ENOMEM : 1;
}

/* Once through all first parts of `by`: 1 when some were left out, which can make others small. */
static int try_parts(struct search *search, const size_t *terms, size_t term_count, struct failure *failure) {
    int some = 0;
    for (size_t by_count = 1; by_count <= fitting_options(search->fitting)->by_count; by_count++) {
        int r = count_groups(search, by_count, failure);
        if (r < 0)
            return r;
        if (search->total[by_count] == 0)
            search->total[by_count] = search->group_count;
        for (size_t t = term_count; r == 0 && t-- > 0;)
            r = try_terms(search, terms[t]);
        if (r < 0)
            return failure_memory(failure);
        some |= r;
    }
    return some;
}

int small_groups_leave_out(const struct fitting *fitting, uint32_t fold_count, const size_t *terms,
                           size_t term_count, uint8_t *folds, struct small_groups *ret,
                           struct failure *failure) {
    *ret = (struct small_groups){0};
    cleanup(search_clear) struct search search = {
        .fitting = fitting, .fold_count = fold_count, .folds = folds, .ret = ret};
    text_init(&search.names, NAMES_MAX);
    search.codes = calloc(fitting_kept_rows(fitting)->count + 1, sizeof *search.codes);
    int r = search.codes ? 1 : failure_memory(failure);
    while (r > 0) /* each time some rows go: it ends */
        r = try_parts(&search, terms, term_count, failure);
    if (r < 0 || ret->count == 0)
        return r;
    if (ret->count > SMALL_GROUPS_NAMED_MAX)
        r = text_printf(&search.names, " and %u more", ret->count - (uint32_t)SMALL_GROUPS_NAMED_MAX);
    ret->names = r == -ENOMEM ? NULL : text_take(&search.names);
    return ret->names ? 0 : failure_memory(failure);
}

void small_groups_clear(struct small_groups *groups) {
    free(groups->names);
    *groups = (struct small_groups){0};
}
