/* Whether the measurements of a run can be trusted, as a report. */
#ifndef ASSAY_ANALYSIS_TRUST_H
#define ASSAY_ANALYSIS_TRUST_H

#include "engine/analysis/measurements.h"
#include "engine/report/report.h"

/* Adds to IN a section with a verdict on what the tests of checks.h find, a warning for each finding, and,
 * WITH_TESTS, the tests. Where no test can be made, the verdict says why. In JSON:
 *
 *     checks          {verdict, grade, tests: [{check, test, size, size_unit, measurements, share, p,
 *                     p_adjusted, finding}], warnings: [sentence]}
 */
void trust_report(struct report_section *in, const struct measurements *measurements, bool with_tests);

#endif
