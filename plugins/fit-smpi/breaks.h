/*
 * Where the segments of SMPI's tables begin: as they are given (by parameters, by the terms, by the host from
 * a model file, or by an archive whose experiment tells thresholds for fit-piecewise), or found by the exact
 * segmentation of fit-piecewise in the ping-pongs of each group. See README.md.
 */
#ifndef ASSAY_FIT_SMPI_BREAKS_H
#define ASSAY_FIT_SMPI_BREAKS_H

#include "plugins/fit-smpi/tables.h"
#include "plugins/interface/fit.h"

enum { BREAKS_NOTE_SIZE = 512, BREAKS_COLUMN_SIZE = 256 };

/* The words of the parameter `breaks`. */
enum breaks_choice { BREAKS_AUTO, BREAKS_FOUND, BREAKS_NONE };

struct breaks {
    double at[TABLES_BREAKS_MAX]; /* bytes, ascending; of those that are found none yet */
    size_t count;
    bool find;
    char from[BREAKS_NOTE_SIZE]; /* "set by break1, break2, ..." */
};

/* Splits TERMS, "column | 1420 [name] | 65536 [name]", where no column is called so: what stands before the
 * first "|" in COLUMN (the terms themselves where there is none, "" where they are NULL), the rest in *RET.
 */
int breaks_read_terms(const struct fit_request *request, char column[static BREAKS_COLUMN_SIZE],
                      struct breaks *ret, struct plugin_message *message);

/* Completes *RET, which has those of the terms: SET has TABLES_BREAKS_MAX parameters, NaN where they are not
 * set. Refused: a gap, breaks that do not grow, more than one source that the user gave. */
int breaks_choose(const struct fit_request *request, enum breaks_choice choice, const double *set,
                  struct breaks *ret, struct plugin_message *message);

/* Those of one group, into SETTINGS: what BREAKS has, or what is found in the COUNT ping-pongs in PING_PONG.
 * Tells in NOTE which it was. 0 or -ENOMEM. */
int breaks_of_group(const struct breaks *breaks, const struct call *ping_pong, size_t count,
                    struct tables_settings *settings, char note[static BREAKS_NOTE_SIZE]);

#endif
