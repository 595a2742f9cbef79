/*
 * A fit plugin turns a table into a model. The host reads the table (archives and CSV files, several are one
 * after the other), forms the groups, and streams blocks of rows; the plugin keeps what it must, may ask for
 * the rows again, and hands its results over piece by piece. Neither side ever holds the table.
 *
 *     open(request) -> needs            which columns it wants as numbers
 *     { block(rows) ... end_of_pass } ...   again while end_of_pass says FIT_AGAIN
 *     finish(writer)                    formula once, then every group, fitted or skipped
 *     close
 *
 * All calls for one instance come from one thread. After a call failed only close follows.
 */
#ifndef ASSAY_INTERFACE_FIT_H
#define ASSAY_INTERFACE_FIT_H

#include "plugins/interface/plugin.h"

struct fit; /* an instance: the plugin's own */

/* A column that the table has. */
struct fit_column {
    const char *name;
    const char *unit; /* UCUM, or NULL where it is not known */
    const char
        *type; /* "integer", "number", "string", "boolean"; NULL where it is not known, as in plain CSV */
};

/* What the user asked for. Everything stays valid until close. */
struct fit_request {
    uint32_t size;
    const char *response;     /* the column to be explained; it exists */
    const char *terms;        /* formula in the plugin's own language, or NULL for its default */
    const char *const *sizes; /* the columns that named models (M-1, M-2) are over; not checked by the host */
    size_t size_count;        /* 0: not given */
    const char *weights;      /* column of weights; it exists; NULL for none */
    const char *const *by;    /* the columns that form the groups; for messages: the host forms them */
    size_t by_count;          /* 0: all rows are one group */
    const double *parameters; /* a value for each entry of fit_operations.parameters */
    const struct fit_column *columns; /* all that the table has, in its order */
    size_t column_count;
    uint64_t seed;  /* of whatever the plugin draws: the same table, request and seed give the same model */
    bool suggested; /* the terms are not the user's: an archive suggested them, or there are none */
    const char *other_method, *other_terms; /* what the archive suggests for another method; NULL: nothing */
    /* Where segments begin by another model; of a plugin that FIT_TAKES_BREAKS. */
    const double *breaks;
    size_t break_count;
    const char *breaks_from; /* which model, for people; NULL: none was given */
};

enum { FIT_TAKES_BREAKS = 1 }; /* bits of fit_operations.takes */

/* The columns that the plugin wants as numbers, in the order in which blocks shall carry them. Names without
 * duplicates, each one of request->columns. The plugin's memory, valid until close. */
struct fit_needs {
    uint32_t size;
    const char *const *columns;
    size_t column_count;
    /* Columns wanted as codes of their texts, in the order in which blocks shall carry them. Together with
     * the columns that form the groups at most 8. */
    const char *const *categories;
    size_t category_count;
    /* What the user should write where a column wanted as numbers holds texts: added to the message that says
     * so. NULL: nothing. */
    const char *text_advice;
};

/* Some rows, column by column; valid during the call. A value that the table leaves empty is a NaN; the
 * plugin decides what becomes of such a row, and says so. */
struct fit_block {
    uint32_t size;
    size_t rows;
    const double *const *columns; /* one array of ROWS values for each need */
    const uint32_t *groups;       /* the group of each row: 0, 1, 2 ... in order of first appearance */
    uint32_t group_count;         /* groups seen so far, this block included; all codes are below it */
    uint64_t first_row;           /* how many rows of this pass came before this block */
    /* One array of codes for each needed category: 0, 1, 2 ... in order of first appearance
     * (plugin_host.levels has their texts). */
    const uint32_t *const *categories;
    /* The fold of each row, 0 to the value of the plugin's parameter called `folds` less 1, for the plugin's
     * own cross-validation: the host knows which rows belong together. NULL where there is no such parameter
     * or it is below 2. */
    const uint8_t *folds;
};

enum fit_pass {
    FIT_DONE = 0,
    FIT_AGAIN = 1, /* the same rows once more, in the same order and blocks */
};

/* ---- Results ----------------------------------------------------------------------------------------------
 */

/* A number that says something about a group or one of its parts. */
struct fit_value {
    const char *name;       /* "sigma", "r2": fixed words of the plugin's README */
    double value;           /* NaN: not defined here; written as null */
    int32_t response_power; /* its unit is that of the response to this power; 0: a plain number */
};

struct fit_estimate {
    double estimate;
    double standard_error, t, p; /* NaN where not defined; p two-sided */
    bool dropped; /* the term was left out of this part: estimate 0, the rest NaN, covariances 0 */
};

/* What holds on one part of a group: on all of it (linear), on a segment, or for a component of a mixture. */
struct fit_part {
    uint32_t size;
    const char *kind;                     /* "whole", "segment", "component" */
    const struct fit_estimate *estimates; /* one for each term of the formula */
    const double *covariance;             /* of the estimates, row by row; NULL where not defined */
    const struct fit_value *values;
    size_t value_count;
    const struct plugin_range *domain; /* factors first, then the terms that are more than one factor */
    size_t domain_count;
    /* Holds where from <= x < to, x the column fit_formula.over; -INFINITY and INFINITY where it is not
     * bounded. Not looked at when the formula is over no column. */
    double from, to;
    const char *name;                 /* of the part, where a kind needs one ("Isend"); or NULL */
    const struct plugin_noise *noise; /* or NULL: none is told */
};

struct fit_group {
    uint32_t size;
    uint32_t code;
    uint64_t rows; /* that were used */
    const struct fit_part *parts;
    size_t part_count;
    const char *const *notes; /* what a reader of this group's numbers must know: sentences */
    size_t note_count;
    const struct fit_value *values; /* of all parts together; a group of one part has them there */
    size_t value_count;
};

struct fit_formula {
    uint32_t size;
    /* Of the model; decides how the parts are to be read (MODEL.md): "linear" and "piecewise" (a part's mean
     * is the sum of its terms), "maximum" and "minimum" (the greatest and the least of its terms), "harmonic"
     * (the reciprocal of the sum of its terms' reciprocals), "smpi" (as piecewise, of the parts that
     * `named_by` chooses), or a kind of its plugin's own, which cannot be evaluated row by row
     * ("population"). */
    const char *kind;
    const struct plugin_term *terms;
    size_t term_count;
    const char *over; /* the column that tells which segment a row is in; NULL where there are none */
    /* The category whose text is the name of the parts that a row is of; NULL: all parts are for all rows. */
    const char *named_by;
};

/* How a row is compared with the model where it says something only together with others. */
struct fit_comparison {
    uint32_t size;
    bool none;      /* it says nothing */
    const char *as; /* its text in fit_formula.named_by; NULL: that of the table */
    double plus;    /* added to its response, and then */
    double divisor; /* this many together took that */
    uint64_t first; /* the first of the rows that are one observation: they are left out of a fit together */
};

/* The host's ear. What is passed is copied or written before the call returns. Each returns 0 or a negative
 * errno, which finish passes on as it is; the host then knows the reason. */
struct fit_writer {
    uint32_t size;
    void *context;
    const uint32_t *order; /* the groups' codes in the order in which they shall be written */
    uint32_t group_count;
    int (*formula)(void *context, const struct fit_formula *formula); /* once, before any group */
    int (*group)(void *context, const struct fit_group *group);
    /* A group that could not be fitted: ROWS usable rows, and why in one clause. It does not stop the others.
     */
    int (*skipped)(void *context, uint32_t code, uint64_t rows, const char *reason);
};

/* ---- Distances
 *
 * Of a model that is of the rows' values together and says nothing of one of them (a population): how far
 * each of what it is of is from the others. */
struct fit_distance {
    uint64_t row;     /* where it is, or where it is seen first */
    const char *name; /* of what it is, for people: "node 3, cpu 0" */
    const char *part; /* of the model that it was compared with: "slow" */
    double value;     /* of the response */
    double expected;  /* and what that part says of it */
    double square;    /* of the distance, in standard deviations in all directions (Mahalanobis) */
    double quantile;  /* that of chi-squared for the rank of this square in its group */
    double p;         /* that chi-squared is greater than the square */
};

struct fit_distances {
    uint32_t size;
    const char *what; /* "machine": what one of them is called, and of whom more */
    const char *whats;
    const char *from;                 /* what the distances are from: "their population's mean" */
    uint32_t freedom;                 /* of chi-squared */
    uint64_t left_out;                /* that have none */
    const struct fit_distance *items; /* the plugin's, valid until close; group by group */
    size_t count;
};

enum { FIT_DISTANCES_MAX = 1 << 18 }; /* of a kind: of more none are told */

struct fit_operations {
    uint32_t size;
    uint32_t parameter_count;
    const struct plugin_parameter *parameters;
    int (*open)(const struct plugin_host *host, const struct fit_request *request, struct fit **ret,
                struct fit_needs *ret_needs, struct plugin_message *message);
    int (*block)(struct fit *fit, const struct fit_block *block, struct plugin_message *message);
    /* FIT_DONE, FIT_AGAIN, or a negative errno. */
    int (*end_of_pass)(struct fit *fit, struct plugin_message *message);
    int (*finish)(struct fit *fit, const struct fit_writer *writer, struct plugin_message *message);
    void (*close)(struct fit *fit); /* NULL is fine */
    /* After the last pass: how ROW (0, 1, ... as in fit_block) is compared. *RET is as for a row that stands
     * for itself. NULL: they all do. */
    void (*compare)(const struct fit *fit, uint64_t row, struct fit_comparison *ret);
    /* After finish: the SET-th kind of distances; false: there are no more. NULL: none. */
    bool (*distances)(const struct fit *fit, size_t set, struct fit_distances *ret);
    uint32_t takes; /* what of the request it knows of that not every plugin does */
};

#endif
