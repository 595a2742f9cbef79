/*
 * What the exports of kernels have in common (engine/plugin/kernel-header.h): numbers and comments of C, and
 * what C cannot say.
 */
#ifndef ASSAY_PLUGIN_KERNEL_TEXT_H
#define ASSAY_PLUGIN_KERNEL_TEXT_H

#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"
#include "engine/plugin/model.h"

#include <stdbool.h>
#include <stddef.h>

/* Appends VALUE as a literal of type double, never of int: the shortest that reads back. HUGE_VAL where it is
 * infinite. 0, -ENOMEM or -EFBIG. */
int kernel_text_number(struct text *text, double value);

/* Appends WORDS as a part of a comment, which nothing in them ends, begins anew or continues: other than
 * printable ASCII is a ?. As above. */
int kernel_text_comment(struct text *text, const char *words);

/* Of the deviation of one call; 0 where the part tells of none. */
double kernel_sigma(const struct predict_part *part, size_t term);

/* FAILURE_INPUT where a group has an estimate that is not finite in seconds (SECONDS: one unit of the
 * response), or, if NOISY, noise that is no N-1 or N-2. */
int kernel_check_groups(const struct predict_model *view, double seconds, bool noisy,
                        struct failure *failure);

#endif
