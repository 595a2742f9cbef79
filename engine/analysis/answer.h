/*
 * The answer of a run: its settings, best first, as a report; and the best of them, in a form that can be
 * used.
 */
#ifndef ASSAY_ANALYSIS_ANSWER_H
#define ASSAY_ANALYSIS_ANSWER_H

#include "engine/analysis/ranking.h"
#include "engine/foundation/text.h"
#include "engine/report/report.h"

/* Adds to SECTION how far the figures can be trusted, the first SETTINGS settings of RANKING with their means
 * and intervals, and by which methods these were computed; or the sentence that no setting can be ranked, and
 * why. In JSON:
 *
 *     grade           "do not trust: ..." where every unit was flagged
 *     response, best_is ("most" or "least")
 *     measurements (attempts at a unit that a gate had measured again count each), measurements_flagged,
 *     units_failed, units_missing
 *     always          the factors of which all settings have the same level
 *     settings        an object a setting: its factors; replicates, mean, deviation, interval_low,
 *                     interval_high, p_adjusted, standing, measurements_flagged, units_failed, units_missing
 *     intervals, comparison   the methods, in words
 */
void answer_report(struct report_section *section, const struct measurements *measurements,
                   const struct ranking *ranking, size_t settings);

/* Appends the best setting to RET: what its best unit printed behind `lines`, a line each, where the
 * experiment declares these; else its factors, as NAME=VALUE. FAILURE_INPUT: no setting has a value, or that
 * unit's output has no such line. */
int answer_best(const struct measurements *measurements, const struct ranking *ranking, struct text *ret,
                struct failure *failure);

#endif
