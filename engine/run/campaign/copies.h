/*
 * What a run copies into its folder before a node is touched: the experiment's own files, its source, and the
 * files that options name. Nodes get ARCHIVE_EXPERIMENT (where there is a source) and ARCHIVE_INPUT_FILES,
 * too.
 */
#ifndef ASSAY_CAMPAIGN_COPIES_H
#define ASSAY_CAMPAIGN_COPIES_H

#include "archive-format/layout.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"
#include "engine/run/campaign/experiment.h"

#include <stdint.h>

/* Copies them into FOLDER. RUNS is where runs are made, which is left out. What has more than KEPT bytes gets
 * a hidden name, so that the nodes have it and the archive does not (source_copy_path()); where each source
 * came from is recorded (sources.h). LEFT_OUT gets the members that are in no copy because they may hold
 * secrets: "experiment/id_rsa". EXPERIMENT_WORDS and SOURCE_WORDS get a sentence each about what was
 * copied, or stay empty. */
int copies_make(const struct experiment *experiment, const char *folder, const char *runs, uint64_t kept,
                struct bind_texts *left_out, struct text *experiment_words, struct text *source_words,
                struct failure *failure);

#endif
