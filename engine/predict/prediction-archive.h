/*
 * A prediction sealed into an archive of the kind "prediction" (archive-format/FORMAT.md): results, the
 * models that they came from, the scenarios as they were given, what the user was told. It is made in a
 * folder of its own below TMPDIR and becomes the archive in one go; before that nothing has the archive's
 * name.
 *
 *     prediction_archive_open ; ..._take_scenarios ; prediction_make() with a sink that calls ..._add ;
 *     ..._seal ; ..._clear
 */
#ifndef ASSAY_PREDICT_PREDICTION_ARCHIVE_H
#define ASSAY_PREDICT_PREDICTION_ARCHIVE_H

#include "archive-format/reader.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/text-set.h"
#include "engine/predict/explain.h"
#include "engine/predict/prediction.h"

enum {
    PREDICTION_ARCHIVE_SENTENCES_MAX = 1000, /* warnings, and notes, in run.json; results.csv has all */
    PREDICTION_ARCHIVE_SHOWN_MAX = 10000,    /* rows that a report has */
};

/* What the user was told, each sentence once. */
struct prediction_sentences {
    struct text_set set;
    struct {
        size_t first, count; /* the scenario that it is of first, and of how many it is */
    } of[PREDICTION_ARCHIVE_SENTENCES_MAX];
};

struct prediction_archive {
    const char *target; /* borrowed */
    char *folder;       /* the folder in which it is made; removed by prediction_archive_clear() */
    char *results_path;
    struct report_file results;
    struct prediction_sentences warnings, notes;
    int64_t started_ns, scenarios, rows;
};

/* TARGET must end in ".zip", and not be there yet: FAILURE_INPUT. ARCHIVE is to be cleared after failures
 * too. */
int prediction_archive_open(struct prediction_archive *archive, const char *target, struct failure *failure);
/* Copies the table of scenarios PATH ("-": standard input; a pipe too) and sets *RET to the path of the
 * copy, from which to predict; the caller frees it. */
int prediction_archive_take_scenarios(struct prediction_archive *archive, const char *path, char **ret,
                                      struct failure *failure);
/* The scenarios from FIRST on, in their order: as the sink of a prediction is called. */
int prediction_archive_add(struct prediction_archive *archive, const struct prediction *prediction,
                           size_t first, struct failure *failure);
/* PREDICTION is complete; EXPLANATION (may be NULL) is what prediction_explain() has added, SETTINGS are the
 * NAME=VALUE that were given, COMMAND is the command line, ended by a NULL. The tables that were wanted are
 * in the archive too. SHA256 is that of the archive. */
int prediction_archive_seal(struct prediction_archive *archive, const struct prediction *prediction,
                            const struct explanation *explanation, const char *const *settings,
                            size_t setting_count, const char *const *command,
                            char sha256[static HASH_HEX_SIZE], struct failure *failure);
/* Removes the folder of an archive that was not sealed. */
void prediction_archive_clear(struct prediction_archive *archive);

/* Reports an archive of a prediction: models and settings, its table (FOR_PEOPLE: a list if there is one
 * scenario), warnings and notes. */
int prediction_archive_report(struct archive_reader *archive, bool for_people, struct report_section *in,
                              struct failure *failure);
/* The tables that `--plot` put into it, as a section each: curves as charts, intervals of time as Gantt
 * charts, of the first scenarios. For pages. */
int prediction_archive_charts(struct archive_reader *archive, struct report_section *in,
                              struct failure *failure);

#endif
