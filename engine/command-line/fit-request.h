/* What `assay fit` was asked for: its arguments, completed by what an archive suggests. */
#ifndef ASSAY_COMMAND_LINE_FIT_REQUEST_H
#define ASSAY_COMMAND_LINE_FIT_REQUEST_H

#include "engine/command-line/verb.h"
#include "engine/plugin/fitting.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "m,n,k" as names; the texts are the list's. */
struct name_list {
    char *text;
    const char **names;
    size_t count;
};

struct fitting_request {
    struct fitting_options options;
    struct name_list sizes, by, folds_by;
    const char **settings; /* owned; the texts are the arguments' */
    struct model_breaks breaks;
    const char *output, *plot;
    char *member; /* the table of archives that is read */
    bool json, brief;
    uint32_t folds;
    const char *const *inputs;
    size_t input_count;
};

/* From the arguments; the first of the COUNT OPERANDS may be a method. To be cleared after failures too. */
int fitting_request_read(const struct verb_arguments *arguments, const char *const *operands, size_t count,
                         const struct installation *installation, struct fitting_request *ret,
                         struct failure *failure);
/* Fills in what was not said: from the suggestion of an archive of TABLE, then by default. */
int fitting_request_complete(struct fitting_request *request, const struct verb_arguments *arguments,
                             const struct table *table, struct failure *failure);
void fitting_request_clear(struct fitting_request *request);

/* A fitting_note: to stderr. */
void fitting_request_note(void *context, const char *sentence);
/* Those of a table that was just opened. */
void fitting_request_notes(const struct table *table);

#endif
