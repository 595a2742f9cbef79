/* The groups of a model by their names, for who looks for many of them. */
#ifndef ASSAY_PLUGIN_GROUP_NAMES_H
#define ASSAY_PLUGIN_GROUP_NAMES_H

#include "engine/foundation/failure.h"
#include "plugins/interface/predict.h"

#include <stdbool.h>
#include <stddef.h>

struct group_names;

/* MODEL is borrowed. */
int group_names_new(const struct predict_model *model, struct group_names **ret, struct failure *failure);
void group_names_free(struct group_names *names);     /* NULL is fine */
void group_names_cleanup(struct group_names **names); /* for cleanup() */

/* The group called NAME; SIZE_MAX: there is none. */
size_t group_names_find(const struct group_names *names, const char *name);
/* The group that has the name of another one: the first such in the order of names from *NEXT on, which is 0
 * at first; SIZE_MAX: there is none any more. */
size_t group_names_twin(const struct group_names *names, size_t *next);
/* The name of the group with these COUNT labels, in BUFFER. False when it is too long for it. */
bool group_names_join(const char *const *labels, size_t count, char *buffer, size_t size);

#endif
