/* Units of a model. That of a coefficient is that of the response divided by those of the term's factors, as
 * a UCUM code. */
#ifndef ASSAY_PLUGIN_MODEL_UNIT_H
#define ASSAY_PLUGIN_MODEL_UNIT_H

#include "engine/plugin/fitting.h"

/* "s", "s/By2" in *RET, which the caller frees; NULL when the unit of the response or of a factor is not
 * known. 0 or -ENOMEM. */
int model_unit_of_term(const struct fitting *fitting, const struct plugin_term *term, char **ret);
/* The unit of what a model of this KIND tells of a term, as above: of its coefficient, or, in a population,
 * of the column that the term is. */
int model_unit_of_estimate(const struct fitting *fitting, const char *kind, const struct plugin_term *term,
                           char **ret);
/* The unit of the term itself, the product of its factors: "1", "By2"; NULL as above. */
int model_unit_of_product(const struct fitting *fitting, const struct plugin_term *term, char **ret);
/* The unit of the response to the POWER (1 or more); NULL as above. */
int model_unit_of_power(const struct fitting *fitting, int power, char **ret);

#endif
