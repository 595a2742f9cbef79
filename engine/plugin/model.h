/*
 * A model file as it was read (plugins/interface/MODEL.md): what a predictor needs of it, checked. Members
 * that this version does not know are passed over; a number that is missing where one is needed is refused
 * with its place.
 */
#ifndef ASSAY_PLUGIN_MODEL_H
#define ASSAY_PLUGIN_MODEL_H

#include "engine/documents/document.h"
#include "engine/foundation/failure.h"
#include "plugins/interface/predict.h"

struct model;

int model_read(const char *path, struct model **ret, struct failure *failure);
/* The same from memory; NAME is for messages. */
int model_parse(const char *name, const char *bytes, size_t length, struct model **ret,
                struct failure *failure);
/* Hears what is not consistent in a file that can be read all the same, with its place; 0 or -ENOMEM. */
typedef int (*model_doubt)(void *context, size_t line, size_t column, const char *sentence);
/* Both again, going on where they refuse such things. Such a model is to be looked at, not to be evaluated.
 */
int model_read_doubting(const char *path, model_doubt doubt, void *context, struct model **ret,
                        struct failure *failure);
int model_parse_doubting(const char *name, const char *bytes, size_t length, model_doubt doubt, void *context,
                         struct model **ret, struct failure *failure);
void model_free(struct model *model);     /* NULL is fine */
void model_cleanup(struct model **model); /* for cleanup() */

/* Valid until model_free. */
const struct predict_model *model_view(const struct model *model);
/* Seconds in one unit of the response; NaN: it is no time; 0: the unit is not known. */
double model_seconds(const struct model *model);
/* The same in *RET for those who need a time: 1 where the unit is not known, FAILURE_INPUT where it is no
 * time. */
int model_time(const struct model *model, double *ret, struct failure *failure);
/* The file, for what the view does not have; its groups are those of the view, in the same order. */
const struct document *model_document(const struct model *model);
/* How many groups the fit had to skip. */
size_t model_skipped_count(const struct model *model);

/* The columns that the model has groups by; the caller frees the list, the texts are the model's. */
int model_labels(const struct model *model, const char ***ret, size_t *ret_count);
/* The label of GROUP for the column BY; "" where the file has none. */
const char *model_label(const struct model *model, size_t group, const char *by);
/* The group called NAME ("dahu-3/0"), or FAILURE_INPUT with the nearest one. */
int model_find_group(const struct model *model, const char *name, size_t *ret, struct failure *failure);
/* The unit that the file tells of column NAME (a factor or the response), or NULL. */
const char *model_unit(const struct model *model, const char *name);
/* The column of weights that it was fitted with, or NULL. */
const char *model_weights(const struct model *model);

#endif
