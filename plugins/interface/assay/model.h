/*
 * A model in memory: what assay reads from a model file and writes into one, and all that plugins see of it.
 * MODEL.md describes the file, whose members have the names of these. Everything is owned by whoever made the
 * model; a plugin reads it only.
 */
#ifndef ASSAY_ASSAY_MODEL_H
#define ASSAY_ASSAY_MODEL_H

#include <assay/column.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One factor of a term: a column to a power, its logarithm, or 1 where a category has a level and 0
 * elsewhere. */
struct model_factor {
    char *column;
    int32_t power;  /* not 0 */
    char *level;    /* NULL: the column's number; else of a category */
    char *function; /* NULL, or "log2": of the column, to the power */
};

/* A product of factors; no factors: the constant 1. */
struct model_term {
    char *name; /* for people: "1", "m*n*k", "host[b]*m" */
    char *unit; /* of its coefficient, UCUM; NULL: not known */
    struct model_factor *factors;
    size_t factor_count;
};

/* A column that terms, segments or names use. */
struct model_column {
    struct column about;
    char **levels; /* of a category: every text that it had, in natural order */
    size_t level_count;
};

struct model_estimate {
    double estimate;
    double standard_error, t, p; /* NaN: not defined */
    bool dropped;                /* the term was left out here: estimate 0, the rest NaN, covariances 0 */
    bool at_bound;               /* the estimate is 0 because it may not be negative */
};

/* The range in which a column or term was observed. */
struct model_range {
    char *name; /* of a column or term */
    double minimum, maximum;
};

/* A number that is fitted or derived: "sigma", "bandwidth". */
struct model_value {
    char *name;
    double value; /* NaN: not defined */
    char *unit;   /* UCUM; NULL: not known */
};

/* One normal of a mixture: its share, its mean from the mean of the part, its standard deviation. */
struct model_component {
    double weight, mean, sigma;
};

/* How single measurements scatter about the mean of their part (T. Cornebize, thesis, Grenoble 2021, ch. 4).
 */
enum model_noise_kind {
    MODEL_NOISE_NONE,            /* N-0: no noise is known */
    MODEL_NOISE_HOMOSCEDASTIC,   /* N-1: sigma is `constant` */
    MODEL_NOISE_HETEROSCEDASTIC, /* N-2: sigma = constant + sum of coefficient x term; not defined where that
                                    is below 0 */
    MODEL_NOISE_MIXTURE,         /* components */
};

/* The floor of an N-2's noise, a part of its constant with its own degrees of freedom: it is estimated
 * from small rows, the rest of the noise from the others. */
struct model_noise_floor {
    double sigma; /* of the floor; a row's sigma is at least this; 0: no floor */
    double freedom;
    double *covariance; /* the part of the estimates' covariance that is due to the floor */
};

struct model_noise {
    enum model_noise_kind kind;
    bool half_normal; /* mean + s |Z| - s sqrt(2/pi), s = sigma / sqrt(1 - 2/pi): the same mean and deviation
                       */
    char *method;     /* how it was found: "least-squares", "maximum-likelihood", ... */
    double constant;
    double *coefficients; /* one a term of the formula, that of term 1 is 0; NULL: none */
    struct model_noise_floor floor;
    struct model_component *components;
    size_t component_count;
};

/* The model of one part of a group: of all of it, one segment, or one population. */
struct model_part {
    char *kind;      /* "whole", "segment", or a word of the model's kind */
    char *name;      /* or NULL */
    double from, to; /* of a segment: from <= x < to, x the column `over`; infinite where not bounded */
    struct model_estimate *estimates; /* one a term of the formula */
    double *covariance;               /* of the estimates, row by row; NULL: not defined */
    double
        freedom; /* Student's degrees of freedom of covariance and noise, but for its floor; 0: not known */
    struct model_noise noise;
    struct model_value *values;
    size_t value_count;
    struct model_range *domain;
    size_t domain_count;
};

struct model_group {
    char **labels; /* one a column of `by` */
    char *name;    /* the labels with "/" between them; "all" where there are none */
    uint64_t rows; /* that were used */
    struct model_part *parts;
    size_t part_count;
    struct model_value *values; /* of all parts together: rss, r2, cv_rmse, ... */
    size_t value_count;
    char **notes; /* what a reader of the numbers must know: sentences */
    size_t note_count;
};

/* A group that could not be fitted. */
struct model_skipped {
    char **labels;
    char *name;
    uint64_t rows;
    char *reason;
};

/* The convex hull of the rows of all groups: in each direction the least and the greatest sum of direction
 * x scale x value. A row may be outside of the hull although each of its values is in the range of its
 * column. */
struct model_hull {
    char **columns;
    double *scale;
    size_t column_count;
    double *directions; /* row by row, one number a column */
    double *minimum, *maximum;
    size_t direction_count;
};

struct model_input {
    char *name; /* base name of the file */
    char sha256[65];
    char *run_id, *experiment; /* of an archive; or NULL */
    uint64_t rows;
};

struct model_origin {
    char *plugin, *version; /* "fit-linear" */
    char *engine, *created;
    uint64_t rows, seed;
    char *folds_by; /* "setting", "row", "columns"; NULL: not known */
    char **folds_columns;
    size_t folds_column_count;
    char **settings, **setting_values; /* the plugin's parameters, as set or by default */
    size_t setting_count;
    char *where; /* the condition that rows had to meet; or NULL */
    struct model_input *inputs;
    size_t input_count;
};

struct model {
    uint32_t size;
    char *file; /* for messages */
    /* How a row's mean comes from estimates and terms: "linear", "piecewise" (the sum), "maximum", "minimum",
     * "harmonic" (the reciprocal of the sum of reciprocals), "smpi" (as piecewise, of the parts whose name
     * the row has in `named_by`), or a plugin's own, which is not defined row by row ("population"). */
    char *kind;
    char *over;     /* the column that segments are over; or NULL */
    char *named_by; /* the column whose text names the parts of a row; or NULL */
    char *response, *response_unit;
    double response_seconds; /* one unit of the response in seconds; NaN: no time; 0: not known */
    char *weights;           /* the column or expression of weights; or NULL */
    struct model_term *terms;
    size_t term_count;
    struct model_column *columns;
    size_t column_count;
    char **by;
    size_t by_count;
    struct model_hull *hull; /* NULL: not known */
    struct model_origin origin;
    struct model_group *groups; /* in natural order of their labels */
    size_t group_count;
    struct model_skipped *skipped;
    size_t skipped_count;
    char **main_values; /* the names of values that a report shows first; others are details */
    size_t main_value_count;
};

#endif
