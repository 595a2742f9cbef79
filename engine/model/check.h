/*
 * All that is wrong with a model file: what reading it would refuse, and beyond that whether it says what
 * others need, whether estimates, standard errors and covariances agree, whether segments leave gaps, and, at
 * the corners of what was observed, whether sigma is a standard deviation and times are above 0.
 */
#ifndef ASSAY_MODEL_CHECK_H
#define ASSAY_MODEL_CHECK_H

#include "engine/model/read.h"

/* Appends to FINDINGS, in no order. *RET (if RET is not NULL) is the caller's, to be looked at only where
 * there was no error among them. What is no model file, or cannot be read to its end, is a failure with its
 * place. */
int model_file_check(const char *path, struct model_findings *findings, struct model **ret,
                     struct failure *failure);
/* The same from memory; NAME is for messages. */
int model_file_check_bytes(const char *name, const char *bytes, size_t length,
                           struct model_findings *findings, struct model **ret, struct failure *failure);

#endif
