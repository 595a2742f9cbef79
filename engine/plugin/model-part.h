/* One part of a group of a model file: on all of the group, or on a segment. Used by model.c alone. */
#ifndef ASSAY_PLUGIN_MODEL_PART_H
#define ASSAY_PLUGIN_MODEL_PART_H

#include "engine/plugin/model-reading.h"
#include "plugins/interface/predict.h"

enum { MODEL_COMPONENTS_MAX = 1024 };

/* MODEL has the terms already. On failure *RET is to be cleared all the same. */
int model_part_read(const struct reading *reading, const struct document_node *node,
                    const struct predict_model *model, struct predict_part *ret);
void model_part_clear(const struct predict_part *part);

#endif
