/*
 * What a run copies into its folder before a node is touched: the experiment's own files, its source, and the
 * files that options name.
 */
#ifndef ASSAY_CAMPAIGN_COPIES_H
#define ASSAY_CAMPAIGN_COPIES_H

#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"
#include "engine/run/campaign/experiment.h"

/* In the run's folder; the first also on the nodes, where there is a source; the second also there. */
#define RUN_EXPERIMENT_FOLDER "experiment"
#define RUN_INPUTS_FOLDER "inputs"
#define RUN_SOURCE_TAR "source.tar"
#define RUN_SOURCE_MANIFEST "software/source-sha256.txt"
#define RUN_SOURCE_COMMIT "software/source-commit.txt"

/* Copies them into FOLDER. RUNS is where runs are made, which is left out. EXPERIMENT_WORDS and SOURCE_WORDS
 * get a sentence each about what was copied, or stay empty. */
int copies_make(const struct experiment *experiment, const char *folder, const char *runs,
                struct text *experiment_words, struct text *source_words, struct failure *failure);

#endif
