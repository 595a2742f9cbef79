/*
 * The one model in memory, struct model of <assay/model.h>: its pieces are made, found and freed here, drawn
 * from their covariance, and
 *
 *     formula.h     text -> terms -> values       read.h, write.h   the model file
 *     evaluator.h   mean, sigma of a row          check.h           what is wrong with a model
 *     hull.h        where rows lay together       score.h           a model against measurements
 *
 * All strings and arrays of a model are its own, from malloc. Out of memory ends the program.
 */
#ifndef ASSAY_MODEL_MODEL_H
#define ASSAY_MODEL_MODEL_H

#include "engine/documents/column.h"
#include "engine/foundation/failure.h"

#include <assay/model.h>

enum {
    MODEL_FORMAT = 2, /* the member "assay_model" of files */
    MODEL_TERMS_MAX = 1024,
    MODEL_FACTORS_MAX = 256, /* of a term */
    MODEL_COMPONENTS_MAX = 1024,
};

/* A model without anything; FILE is for messages. */
struct model *model_new(const char *file);
void model_free(struct model *model); /* also half-built; NULL is fine */
void model_cleanup(struct model **model);

void model_term_clear(struct model_term *term);
struct model_term model_term_copy(const struct model_term *term);
void model_noise_clear(struct model_noise *noise);
void model_part_clear(struct model_part *part);
void model_group_clear(struct model_group *group, size_t by_count);
void model_origin_clear(struct model_origin *origin);
void model_hull_free(struct model_hull *hull); /* NULL is fine */

/* What the unit of the response is in seconds: see struct model, response_seconds. */
double model_unit_seconds(const char *unit);
/* The unit of MODEL's response in seconds, 1 if it is not known. FAILURE_INPUT: the response is no time. */
int model_response_seconds(const struct model *model, double *ret, struct failure *failure);

/* Whether the response is a time by its unit, or, without one, by its usual name ("duration"). */
bool model_response_is_time(const struct model *model);

/* LABELS with "/" between them; "all" where there are none. The caller frees. */
char *model_group_name(char *const *labels, size_t count);
/* The group called NAME, or FAILURE_INPUT with the nearest one. */
int model_group_find(const struct model *model, const char *name, size_t *ret, struct failure *failure);

/* The column, the range, the value called NAME, or NULL. */
const struct model_column *model_column_find(const struct model *model, const char *name);
const struct model_range *model_range_find(const struct model_part *part, const char *name);
/* Adds VALUE to LIST of COUNT values, unless a value in it has the same name. Returns the value in the
 * list. The caller frees the list. */
const struct model_value *model_values_add(const struct model_value ***list, size_t *count,
                                           const struct model_value *value);
const struct model_value *model_value_find(const struct model_value *values, size_t count, const char *name);
/* The value of the group, or of its first part; NaN: there is none. */
double model_group_value(const struct model_group *group, const char *name);
/* The unit of a column or of the response, or NULL. */
const char *model_column_unit(const struct model *model, const char *name);

/*
 * A copy of MODEL with estimates drawn from the multivariate t that they, their covariance and its degrees of
 * freedom describe, and noise with the same factor; what has no covariance stays. All else in the copy is
 * MODEL's, which must outlive it. NORMAL gives a standard normal number of a stream ("GROUP/PART") by index:
 * the same streams give the same draw.
 */
struct model *model_draw(const struct model *model,
                         double (*normal)(void *context, const char *stream, uint64_t index), void *context);
void model_draw_free(struct model *drawn); /* NULL is fine */

#endif
