/* Which factors the response of a run depends on, as a report. */
#ifndef ASSAY_ANALYSIS_INFLUENCE_H
#define ASSAY_ANALYSIS_INFLUENCE_H

#include "engine/analysis/measurements.h"
#include "engine/report/report.h"

/* Adds to IN the shares of the variance that the factors, their pairs, the nodes, and the order of the
 * measurements have (effects.h), and of each factor its best and its worst level; or the sentence that can be
 * said where nothing varies, or each setting was measured once. Where all values are positive they are taken
 * as logarithms, so that effects multiply. Factors that follow from others (lda from m), and terms that the
 *design does not tell from others, are named below the table. In JSON:
 *
 *     influence       {scale, assumptions, terms: [{term, share, freedom, p, best, worst, difference}],
 *residual_share, residual_freedom, following, unknown}
 */
void influence_report(struct report_section *in, const struct measurements *measurements);

#endif
