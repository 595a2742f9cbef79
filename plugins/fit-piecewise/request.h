/*
 * What a fit is asked for: the column that lines are over, breaks that are given, and the parameters.
 *
 *     terms := [ "1" "+" ] [ column ] [ name ] { "|" number [ name ] }
 *
 * The column stands between backquotes where it is more than letters, digits, "_", "." and "-". A number is
 * the first size of a segment that begins there whatever the measurements say, a protocol threshold; names
 * are those of the segments: "size asynchronous | 1420 detached | 65536 synchronous".
 *
 * Without terms the column is the first of the sizes; without sizes the only column of numbers that is
 * neither response, weights nor part of the groups.
 */
#ifndef ASSAY_FIT_PIECEWISE_REQUEST_H
#define ASSAY_FIT_PIECEWISE_REQUEST_H

#include "plugins/interface/fit.h"

enum {
    REQUEST_BREAKS_MAX = 64,
    REQUEST_NAME_SIZE = 64,
    REQUEST_BYTES_MAX = 4096,
};

enum request_criterion { CRITERION_BIC, CRITERION_AIC, CRITERION_RELATIVE, CRITERION_LOG, CRITERION_RSS };

struct request {
    const char *over; /* borrowed from the request's columns */
    double breaks[REQUEST_BREAKS_MAX];
    size_t break_count;
    char names[REQUEST_BREAKS_MAX + 1][REQUEST_NAME_SIZE]; /* of segments; empty where not named */
    enum request_criterion criterion;
    double per_break;  /* parameters that a break more counts as */
    size_t segments;   /* exactly so many; 0: the criterion decides */
    size_t most;       /* segments at most; SIZE_MAX: as many as there is room for */
    size_t minimum;    /* sizes a segment */
    int equal;         /* enum points_equal */
    bool continuous;   /* lines meet at the breaks */
    bool between;      /* more breaks are looked for between those that are given */
    double confidence; /* of the intervals of breaks */
};

enum { REQUEST_PARAMETERS = 9 };
extern const struct plugin_parameter request_parameters[REQUEST_PARAMETERS];

int request_read(const struct plugin_host *host, const struct fit_request *from, struct request *ret,
                 struct plugin_message *message);

#endif
