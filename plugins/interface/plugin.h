/*
 * What every plugin of assay is: a shared object that exports one const struct under one fixed symbol.
 *
 *     ASSAY_PLUGIN_EXPORT const struct assay_plugin assay_plugin = {
 *         .abi = ASSAY_PLUGIN_ABI, .size = sizeof(struct assay_plugin), .kind = ASSAY_PLUGIN_FIT,
 *         .name = "fit-linear", .version = "0.1.0", .summary = "least squares on polynomial terms",
 *         .operations = &operations, // struct fit_operations of fit.h
 *     };
 *
 * A plugin includes the headers of this folder and links nothing of ours. What it needs from its host comes
 * as arguments; memory is plain malloc and stays with the side that allocated it.
 *
 * Growth. Every struct here that starts with `size` is filled by one side with its sizeof; the other side
 * uses only the members that this size covers (PLUGIN_HAS). Within one ABI number members are only ever added
 * at the end. Any other change raises ASSAY_PLUGIN_ABI, and the loader refuses what was built for another
 * number, aloud. The first two members of struct assay_plugin keep their place for good, so that this refusal
 * can say both numbers.
 *
 * Errors. A function that can fail returns 0 or a negative errno and writes one sentence for the user into
 * the struct plugin_message that it was given: lower case, no full stop, what was found before what was
 * expected. -EINVAL means that what the user gave is wrong; anything else that the machine failed. A plugin
 * neither prints nor exits, and starts no threads that outlive a call.
 */
#ifndef ASSAY_INTERFACE_PLUGIN_H
#define ASSAY_INTERFACE_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ASSAY_PLUGIN_ABI 2u
#define ASSAY_PLUGIN_SYMBOL "assay_plugin"
#define ASSAY_PLUGIN_EXPORT __attribute__((visibility("default")))

/* Whether STRUCTURE, filled by the other side, reaches as far as MEMBER. */
#define PLUGIN_HAS(structure, member)                                                                        \
    ((structure)->size >= offsetof(__typeof__(*(structure)), member) + sizeof((structure)->member))

enum assay_plugin_kind {
    ASSAY_PLUGIN_FIT = 1,     /* tables -> a model: operations is a struct fit_operations */
    ASSAY_PLUGIN_PREDICT = 2, /* a model and scenarios -> times: a struct predict_operations */
};

struct assay_plugin {
    uint32_t abi;  /* ASSAY_PLUGIN_ABI of the headers it was built with */
    uint32_t size; /* sizeof(struct assay_plugin) */
    uint32_t kind; /* enum assay_plugin_kind */
    uint32_t reserved;
    const char *name;    /* its file's name without ".so": "fit-METHOD" or "predict-METHOD" */
    const char *version; /* of the plugin; written into what it makes */
    const char *summary; /* one line for people */
    const void *operations;
};

enum {
    PLUGIN_MESSAGE_SIZE = 1280,
    PLUGIN_PLACE_SIZE = 512, /* room for what plugin_host.place says */
};

struct plugin_message {
    char text[PLUGIN_MESSAGE_SIZE]; /* NUL-ended; snprintf cuts what is too long */
};

/* The texts of a column that is read as codes (fit_needs.categories). */
struct plugin_levels {
    const char *const *texts; /* by code */
    const uint32_t *order;    /* the codes in natural order of their texts: dahu-2 before dahu-10 */
    uint32_t count;
};

/* What the host does for a plugin. Lives as long as the instance that it was given to. */
struct plugin_host {
    uint32_t size;
    void *context;
    /* Something the user should know although the work goes on: one sentence. */
    void (*note)(void *context, const char *sentence);
    /* Which of the COUNT names is near enough to WORD to be meant, or NULL: for "did you mean". */
    const char *(*nearest)(const char *word, const char *const *names, size_t count);
    /* A fit plugin's: the levels of the CATEGORY-th of its needed categories that were seen so far; valid
     * until more rows are seen. 0, or a negative errno. */
    int (*levels)(void *context, size_t category, struct plugin_levels *ret);
    /* Where a row of the table begins: "NAME line LINE" for messages, of ROW (0, 1, ... as in fit_block) in
     * BUFFER, which is returned. */
    const char *(*place)(void *context, uint64_t row, char *buffer, size_t size);
};

/* A knob that the user may set (--set NAME=VALUE, or a column of a scenario table). The plugin declares a
 * table of these; it gets one double for each, checked by the host: a number in UNIT, or the index of a word.
 */
struct plugin_parameter {
    const char *name;
    const char *unit;         /* UCUM code ("1", "s", "By/s"); plain numbers are in it; NULL for words */
    const char *const *words; /* the words it may be, ended by NULL; NULL for a number */
    double fallback;          /* what it is when not given; NAN: NAN is passed on, for the plugin to judge */
    double minimum, maximum;  /* of a number, both included */
    bool whole;               /* the number must be whole */
    bool required;            /* it must be given */
    const char *help;
};

/* A product of powers of columns: one regressor of a polynomial. No factors: the constant 1. */
struct plugin_factor {
    const char *name; /* of a column */
    int32_t power;    /* not 0; of a level 1 */
    /* NULL: the column's number. Otherwise the column is a category, and the factor is 1 where its text is
     * this one and 0 elsewhere (a dummy). */
    const char *level;
    /* NULL: the number itself. "log2": its binary logarithm, to the power. */
    const char *function;
};

struct plugin_term {
    const char *name; /* for people: "1", "m*n*k", "m^2" */
    const struct plugin_factor *factors;
    size_t factor_count;
};

/* Where something was observed: the least and the greatest value of a column or a term. */
struct plugin_range {
    const char *name;
    double minimum, maximum;
};

/* One normal of a mixture. */
struct plugin_component {
    double weight; /* its share; all of a mixture add up to 1 */
    double mean;   /* from the mean of the part, in the response's unit */
    double sigma;  /* standard deviation, in the response's unit */
};

/*
 * How single measurements scatter about the mean that a part's terms give (the thesis of T. Cornebize, 2021,
 * chapter 4). N-0 is no noise at all: no struct plugin_noise.
 *
 *     N-1      sigma is `constant` everywhere
 *     N-2      sigma = constant + sum of coefficients[t] x term t, at least 0
 *     mixture  components, about the part's mean
 *
 * All in the response's unit. A half-normal has the same mean and standard deviation as the normal would, and
 * its steep side below: mean + s|Z| - s sqrt(2/pi), s = sigma / sqrt(1 - 2/pi), Z standard normal.
 */
struct plugin_noise {
    uint32_t size;
    const char *kind;         /* "N-1", "N-2", "mixture" */
    const char *distribution; /* "normal", "half-normal" */
    const char *method;       /* how it was found: "least-squares", "robust", "rule", ... (MODEL.md) */
    double constant;          /* of N-1 and N-2 */
    const double
        *coefficients; /* of N-2: one for each term of the formula (that of the term 1 is 0); or NULL */
    const struct plugin_component *components; /* of a mixture */
    size_t component_count;
};

#endif
