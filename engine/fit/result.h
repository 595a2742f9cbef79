/* The results of a plugin's fit(), group by group, and the groups of a model made from them: the terms of
 * all groups become one formula; a term that a group lacks is dropped there. */
#ifndef ASSAY_FIT_RESULT_H
#define ASSAY_FIT_RESULT_H

#include "engine/report/report.h"

#include <assay/fit.h>

struct result_part {
    struct model_part
        part;      /* estimates, covariance and noise are over those that were given, in their order */
    size_t *terms; /* by estimate: the index of its term in `names` */
    size_t count;
};

/* The results of one call of fit(). */
struct result {
    struct formula_names *names; /* shared by the results of one model */
    struct result_part *parts;
    size_t part_count;
    struct model_value *values;
    size_t value_count;
    char **notes;
    size_t note_count;
    uint64_t rows;                 /* rows that the plugin used; 0: not recorded */
    size_t given_rows;             /* rows that fit() got */
    bool *outliers;                /* by row that fit() got; NULL: no row is an outlier */
    const char *problem;           /* how the plugin broke its contract; or NULL */
    const char *undefined;         /* why the group has no fit: a result is not a number; or NULL */
    struct report_section *tables; /* the section for its tables; NULL: they are ignored */
    struct report_table *table;
    size_t table_columns;
};

/* The names of a model's terms in order of first appearance, and its kind. */
struct formula_names {
    char **names;
    size_t count;
    char *kind, *over, *named_by;
    bool kind_is_set;
};

void formula_names_clear(struct formula_names *names);

/* Makes RESULT empty, and sets in RET the functions with which fit(), which gets ROWS rows, records results.
 */
void result_init(struct result *result, size_t rows, struct formula_names *names,
                 struct report_section *tables, struct fit_result *ret);
void result_clear(struct result *result);

/* Moves the result into GROUP, whose labels, name and rows are set: estimates and covariances over all
 * TERM_COUNT terms. t and p of an estimate are Student's with the part's value "degrees_of_freedom", or rows
 * less estimates. */
void result_finish(struct result *result, size_t term_count, struct model_group *group);

/* Widens GROUP, which was finished with FROM terms, to TO terms; the new ones are dropped in it. */
void result_widen(struct model_group *group, size_t from, size_t to);

#endif
