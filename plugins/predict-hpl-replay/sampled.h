/*
 * HPL's time from a replay of some of its panels: windows of panels that follow each other are replayed as
 * one shorter HPL. Each window begins with the clocks that the one before left, and its first panels are not
 * measured. The panels that are left out are a multiple of the process columns, if there are so many, so that
 * the processes stand to each other as in the whole. A window measures from when the processes have found one
 * panel, on the mean, until they have found another.
 *
 * The time between two panels is then a regression: on rows and columns of the process that has most, on
 * their product and a constant, all estimates at least 0. What it misses of a window, as a factor, is
 * interpolated to the next one (regression estimators: W. G. Cochran, Sampling Techniques, 3rd ed. 1977,
 * chapter 7).
 */
#ifndef ASSAY_PREDICT_HPL_REPLAY_SAMPLED_H
#define ASSAY_PREDICT_HPL_REPLAY_SAMPLED_H

#include "plugins/predict-hpl-replay/replay.h"

struct sampled {
    int panels;   /* in: to replay, about; 0: by the cost of one. Out: that were replayed */
    double error; /* s: the time is within this of that of all panels, in 95 % of cases */
};

/* As replay_run(), of some panels. 1: they cannot stand for all, because these are few or take no time;
 * replay all. OBSERVER is told of all panels after the replay, with estimates; its trace is not looked at.
 * PROGRESS, with OBSERVER's context, is told which share of the panels is done; its negative errno ends the
 * replay. NULL is fine. */
int sampled_run(const struct hpl *hpl, const struct replay_machine *machine,
                const struct replay_observer *observer, int (*progress)(void *context, double share),
                struct sampled *sampled, struct replay_times *ret);

#endif
