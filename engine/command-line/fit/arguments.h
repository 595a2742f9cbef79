/* The arguments of `assay fit`: read from words and options, and completed by what the inputs suggest. */
#ifndef ASSAY_COMMAND_LINE_FIT_ARGUMENTS_H
#define ASSAY_COMMAND_LINE_FIT_ARGUMENTS_H

#include "engine/command-line/verb.h"
#include "engine/fit/fit.h"
#include "engine/foundation/installation.h"

/* "m, n, k" as names. */
struct name_list {
    char *text;
    const char **names;
    size_t count;
};

struct fit_arguments {
    const struct verb_arguments *given;
    const char *method; /* without "fit-"; NULL: what the inputs suggest, or linear */
    bool is_shadowed;   /* a file is called as the method, too */
    const char *const *inputs;
    size_t input_count;
    struct table_options table;
    struct fit_options options;
    const char *output, *plot;
    bool json, verbose, brief;
    /* Owned texts to which `options` and `table` point. */
    struct name_list sizes, by, folds_by, columns;
    const char **settings;
    char *member;
};

/* Reads OPERANDS, COUNT of them, as [METHOD] INPUT..., and the options. A first word that is an installed
 * method is that, whatever files there are; a file of that name is ./METHOD. */
int fit_arguments_read(const struct verb_arguments *arguments, const char *const *operands, size_t count,
                       struct fit_arguments *ret, struct failure *failure);
/* Is WORD an installed method? */
bool fit_arguments_is_method(const struct installation *installation, const char *word);
/* Completes the arguments by what TABLE suggests: all of it for the suggested method, sizes and groups for
 * any. */
int fit_arguments_complete(struct fit_arguments *ret, const struct table *table, struct failure *failure);
void fit_arguments_clear(struct fit_arguments *arguments);

#endif
