/*
 * Which columns are the coefficients, and which tell the machines apart:
 *
 *     terms   := column { "+" column } [ "|" column { "," column } ]
 *     column  := letters, digits, "_" and "."; anything else between backquotes
 *
 * The response is the first of the coefficients, whether it is written or not. Without "|" machines are told
 * apart by the columns node, host, cpu and core, as many of them as there are.
 */
#ifndef ASSAY_FIT_POPULATION_TERMS_H
#define ASSAY_FIT_POPULATION_TERMS_H

#include "plugins/interface/fit.h"

enum {
    COEFFICIENTS_MAX = 16,
    MACHINE_COLUMNS_MAX = 8,
    TERMS_BYTES_MAX = 4096, /* of the text */
};

struct terms {
    const char *coefficients[COEFFICIENTS_MAX]; /* names of the request's columns */
    size_t coefficient_count;
    const char *machines[MACHINE_COLUMNS_MAX];
    size_t machine_count;
};

/* 0, or -EINVAL with a message. */
int terms_read(const struct plugin_host *host, const struct fit_request *request, struct terms *ret,
               struct plugin_message *message);

#endif
