/*
 * A predict plugin turns a model and scenarios into times. The host reads the model file and the scenarios,
 * checks every parameter against the plugin's table, and writes what comes back as CSV or JSON.
 *
 *     open(model) ; scenario(parameters) -> values, remarks ... ; close
 */
#ifndef ASSAY_INTERFACE_PREDICT_H
#define ASSAY_INTERFACE_PREDICT_H

#include "plugins/interface/plugin.h"

struct predict; /* an instance: the plugin's own */

/* A number that the fit told of a part by name ("bandwidth", "sigma"); NaN: not defined. */
struct predict_value {
    const char *name;
    double value;
};

/* What holds on one part of a group: on all of it, or on a segment. */
struct predict_part {
    const char *kind;        /* "whole", "segment", or a word of the model's kind */
    const char *name;        /* or NULL */
    double from, to;         /* from <= x < to, x the column predict_model.over; infinite where not bounded */
    const double *estimates; /* one for each term */
    const struct plugin_noise *noise; /* NULL: the model tells of none (N-0) */
    const struct predict_value *values;
    size_t value_count;
    const struct plugin_range *domain;
    size_t domain_count;
    const bool *dropped;      /* for each term whether this part leaves it out (estimate 0); NULL: none */
    const double *covariance; /* of the estimates, row by row; NULL where it is not defined */
};

/* One group of a model as its file has it. */
struct predict_group {
    const char *name;                 /* its labels, "/" between them; "all" where the model has no groups */
    uint64_t rows;                    /* that it was fitted to */
    const struct predict_part *parts; /* at least one; one alone in a linear model */
    size_t part_count;
};

/* The texts of a category that the fit saw. */
struct predict_levels {
    const char *column;
    const char *const *texts;
    size_t count;
};

/* Where the rows of all groups together lay: in each of some fixed directions the least and the greatest sum
 * of direction x scale x value. What is within the ranges of each factor can be outside of this. */
struct predict_hull {
    const char *const *factors;
    const double *scale; /* a power of two for each factor */
    size_t factor_count;
    const double *directions; /* row by row, a number for each factor */
    const double *minimum, *maximum;
    size_t direction_count;
};

/* The model: the host's memory, valid until close. */
struct predict_model {
    uint32_t size;
    const char *name; /* of the file, for messages */
    const char *kind; /* "linear", "piecewise", ...: fit_formula.kind */
    const char *response;
    const char *response_unit; /* UCUM, or NULL where it is not known */
    double response_seconds; /* one unit of the response in seconds; NaN: it is no time; 0: it is not known */
    const struct plugin_term *terms;
    size_t term_count;
    const struct predict_group *groups; /* at least one */
    size_t group_count;
    const char *over; /* the column that tells which segment a row is in; NULL where there are none */
    const struct predict_levels *levels; /* of the categories, where they are known */
    size_t level_count;
    const struct predict_hull *hull; /* NULL where it is not known */
    const char *named_by; /* the column whose text is the name of the parts that a row is of; or NULL */
};

/* A column of the prediction. */
struct predict_column {
    const char *name;
    const char *unit;  /* UCUM, for files */
    const char *label; /* unit for people: "Gflop/s" */
    const char *help;
    bool minor; /* left out of a printed table of many scenarios */
};

enum predict_remark {
    PREDICT_NOTE,    /* how the number came about */
    PREDICT_WARNING, /* why it may be wrong */
};

/* Takes remarks on the scenario in hand: one sentence each, copied. */
struct predict_remarks {
    uint32_t size;
    void *context;
    void (*add)(void *context, enum predict_remark kind, const char *sentence);
};

struct predict_operations {
    uint32_t size;
    uint32_t parameter_count;
    const struct plugin_parameter *parameters;
    uint32_t column_count;
    const struct predict_column *columns;
    int (*open)(const struct plugin_host *host, const struct predict_model *model, struct predict **ret,
                struct plugin_message *message);
    /* PARAMETERS: a value for each entry of the table. RET_VALUES: one for each column, NaN for undefined. */
    int (*scenario)(struct predict *predict, const double *parameters, double *ret_values,
                    const struct predict_remarks *remarks, struct plugin_message *message);
    void (*close)(struct predict *predict); /* NULL is fine */
};

#endif
