/*
 * A fit's results in memory, as the model that its file would give: what evaluation.h works on. Has what a
 * prediction of a row needs (estimates, segments, noise), neither values nor domain nor covariance.
 *
 *     fitted_model_new ; finish, with fitted_model_writer or fitted_model_listener ; fitted_model_view
 */
#ifndef ASSAY_PLUGIN_FITTED_MODEL_H
#define ASSAY_PLUGIN_FITTED_MODEL_H

#include "engine/plugin/fitting.h"
#include "plugins/interface/fit.h"
#include "plugins/interface/predict.h"

enum {
    FITTED_MODEL_GROUPS_MAX = 1 << 16,  /* of more groups those that come first are here */
    FITTED_MODEL_BYTES_MAX = 64u << 20, /* of all of them together */
};

struct fitted_model;

/* NAME, of the plugin, is for messages. Both texts are copied. */
int fitted_model_new(const char *name, const char *response, struct fitted_model **ret,
                     struct failure *failure);
void fitted_model_free(struct fitted_model *model);     /* NULL is fine */
void fitted_model_cleanup(struct fitted_model **model); /* for cleanup() */

const struct fitting_listener *fitted_model_listener(const struct fitted_model *model);
/* The ear of a plugin without a fitting: writes the groups in this ORDER, which is borrowed. */
struct fit_writer fitted_model_writer(struct fitted_model *model, const uint32_t *order,
                                      uint32_t group_count);

/* Of no use before the formula was heard. */
const struct predict_model *fitted_model_view(const struct fitted_model *model);
/* Which group of the view the group CODE is; SIZE_MAX: none, it was skipped or there was no room. */
size_t fitted_model_group(const struct fitted_model *model, uint32_t code);
/* Whether there was no room for some groups. */
bool fitted_model_is_cut(const struct fitted_model *model);

#endif
