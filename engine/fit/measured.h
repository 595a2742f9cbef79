/*
 * The rows of a table as a model sees them: each input of its evaluator a column in the model's unit, each
 * row in its group. For scoring a model on measurements (engine/model/score.h), and for evaluating it row by
 * row.
 */
#ifndef ASSAY_FIT_MEASURED_H
#define ASSAY_FIT_MEASURED_H

#include "engine/foundation/failure.h"
#include "engine/model/score.h"
#include "engine/table/table.h"

struct measured_options {
    bool response; /* load the response too, and the weights if the model has any */
    const char *where;
    bool with_flagged;
};

struct measured {
    struct evaluator *evaluator;
    struct evaluator_column *columns; /* one for each input */
    struct score_rows rows;           /* groups by the table's columns that the model's are by */
};

/* Reads TABLE, which was opened and must outlive *RET. Rows whose labels no group of MODEL has
 * belong to no group. If the model has no columns of labels, all rows belong to its one group. FAILURE_INPUT
 * for a column that is missing or in a unit of another dimension. */
int measured_read(const struct model *model, struct table *table, const struct measured_options *options,
                  struct measured **ret, struct failure *failure);
void measured_free(struct measured *measured); /* NULL is fine */
void measured_cleanup(struct measured **measured);

#endif
