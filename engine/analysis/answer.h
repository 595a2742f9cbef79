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
 *     grade           where units were flagged; "do not trust: ..." where all were
 *     response, best_is ("most" or "least")
 *     measurements (attempts at a unit that a gate had measured again count each), measurements_flagged,
 *     units_failed, units_missing
 *     settings        an object a setting: its factors; replicates, mean, deviation, interval_low,
 *                     interval_high, p_adjusted, standing
 *     best_share      of the best setting, in %, where the experiment declares a share
 *     intervals, comparison   the methods, in words
 */
void answer_report(struct report_section *section, const struct measurements *measurements,
                   const struct ranking *ranking, size_t settings);

/* A table "settings" with the columns of the factors, and COUNT figures behind them. Factors that never vary,
 * and do not say how large the problem is, are details. */
struct report_table *answer_settings_table(struct report_section *section,
                                           const struct measurements *measurements,
                                           const struct column *figures, size_t count);
/* The cells of the factors, of SETTING. */
void answer_setting_cells(struct report_table *table, const struct measurements *measurements,
                          size_t setting);

/* Appends the best setting, of the largest size of the problem, to RET: what its first unit printed
 * behind `lines`, a line each, where the experiment declares these; else its factors, as NAME=VALUE.
 * FAILURE_INPUT: no setting has a value, or that unit's output has no such line. */
int answer_best(const struct measurements *measurements, const struct ranking *ranking, struct text *ret,
                struct failure *failure);

#endif
