/*
 * Whether a model file holds together: what model_read refuses, and beyond that the members that only people
 * and other programs need, whether estimates, standard errors and covariances agree, whether segments leave
 * gaps, and whether the noise is above zero wherever the group was observed.
 */
#ifndef ASSAY_PLUGIN_MODEL_CHECK_H
#define ASSAY_PLUGIN_MODEL_CHECK_H

#include "engine/foundation/failure.h"
#include "engine/plugin/model.h"

#include <stdbool.h>
#include <stddef.h>

struct model_finding {
    size_t line, column;
    bool warning; /* worth knowing, but nothing is wrong */
    const char *sentence;
};

/* 0, or -ENOMEM, which stops it. */
typedef int (*model_check_listener)(void *context, const struct model_finding *finding);

/* Tells LISTENER each finding, in no order. *RET is the caller's, and only to be looked at when there was a
 * finding that is no warning. A file that cannot be read to its end is a failure with its place: one more
 * finding, after which there are none. */
int model_check(const char *path, model_check_listener listener, void *context, struct model **ret,
                struct failure *failure);
/* The same from memory; NAME is for messages. */
int model_check_parse(const char *name, const char *bytes, size_t length, model_check_listener listener,
                      void *context, struct model **ret, struct failure *failure);

#endif
