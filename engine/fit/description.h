/* What a fitted model says besides its groups. Used by this room alone. */
#ifndef ASSAY_FIT_DESCRIPTION_H
#define ASSAY_FIT_DESCRIPTION_H

struct fit_binding;
struct model;

/* Fills in MODEL, whose kind, terms and groups are complete: response, columns, units of terms, and how it
 * was fitted. Columns and ranges that the model does not use are left out. */
void description_fill(const struct fit_binding *binding, struct model *model);

#endif
