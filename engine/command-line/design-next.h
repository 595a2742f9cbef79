/* What the files design-next*.c share: `assay design next MODEL`, while it is done. */
#ifndef ASSAY_COMMAND_LINE_DESIGN_NEXT_H
#define ASSAY_COMMAND_LINE_DESIGN_NEXT_H

#include "engine/command-line/verb.h"
#include "engine/design/design.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/installation.h"
#include "engine/foundation/text.h"
#include "engine/plugin/candidates.h"
#include "engine/plugin/model-fit.h"
#include "engine/plugin/next-rows.h"
#include "engine/run/campaign/experiment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NEXT_NOTES_MAX = 64 };

struct next_design {
    const struct verb_arguments *arguments;
    const char *model_path;
    struct installation installation;
    struct model *model;
    struct model_fit *fit;
    size_t *groups; /* that are served */
    size_t group_count;

    /* The experiment, when it was found; where, for people. */
    struct experiment *experiment;
    struct document *document; /* that it was bound from */
    char *experiment_from;
    struct design_factors factors; /* its own; items NULL: there is none */

    struct candidate_range *ranges; /* by factor of the model: where points are drawn */
    struct plugin_range *domain;    /* by factor of the model: where it was fitted */
    struct candidates candidates;
    uint64_t seed;
    bool seeded, seed_drawn;

    struct next_request request;
    struct next_rows found;
    struct design *chosen; /* the rows that were found, in their order */
    char *notes[NEXT_NOTES_MAX];
    size_t note_count;
};

/* Something that the user should know: one sentence. 0 or -ENOMEM; beyond NEXT_NOTES_MAX it is not kept. */
int next_design_note(struct next_design *next, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The experiment that --experiment names; else that of an archive the model was fitted to, if it lies beside
 * the model or here; else the installed one of that name; else none. */
int next_design_find_experiment(struct next_design *next, struct failure *failure);
/* The rows from which is chosen: request.candidates, conforming to the experiment. */
int next_design_make_candidates(struct next_design *next, struct failure *failure);

/* What was found, for people on standard error; and for programs. */
int next_design_print(const struct next_design *next);
int next_design_append_json(const struct next_design *next, struct text *text, struct failure *failure);

/* assay design next */
int design_next(const struct verb_arguments *arguments, struct failure *failure);

#endif
