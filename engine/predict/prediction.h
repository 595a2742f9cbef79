/*
 * The host of predictors and exporters (plugins of <assay/predict.h>): opens the plugin, gives
 * the models to its roles, runs every scenario, and runs them again with models drawn from their covariance,
 * so that each number that comes of the models has an interval.
 *
 *     prediction_make(installation, "predict", "hpl", request) ; prediction_append_csv or _report, ... ;
 *     prediction_free
 */
#ifndef ASSAY_PREDICT_PREDICTION_H
#define ASSAY_PREDICT_PREDICTION_H

#include "engine/foundation/installation.h"
#include "engine/foundation/text.h"
#include "engine/predict/models.h"
#include "engine/predict/scenarios.h"
#include "engine/report/report.h"

enum {
    PREDICTION_DRAWS_MAX = 100000,
    PREDICTION_REMARKS_MAX = 32,      /* of a scenario; more are dropped */
    PREDICTION_NUMBERS_MAX = 1 << 26, /* rows x columns x draws of all scenarios */
    PREDICTION_ROWS_MAX = 1 << 24,    /* of one scenario */
    PREDICTION_TEXT_MAX = 1 << 30,    /* bytes */
    PREDICTION_KEPT_MAX = 100000,     /* scenarios, if results are kept in memory until the end */
    PREDICTION_SHOWN_MAX = 10000,     /* scenarios that stay in memory where all are written */
};

struct prediction;

struct prediction_request {
    const char *const *models;   /* "ROLE=FILE", or "FILE" if only one role takes its kind (models.h) */
    const char *const *texts;    /* of each the content, if that is not of FILE (models.h); or NULL */
    const char *const *settings; /* "NAME=VALUE": options, and parameters for all scenarios (scenarios.h) */
    size_t model_count, setting_count;
    const char *scenarios; /* a CSV table; or NULL */
    uint64_t seed;
    size_t draws;  /* 0: no intervals */
    size_t search; /* the number of runs in which to search for the best scenario (search.h); 0: run and keep
                      all */
    int64_t search_ns; /* the time limit of the search; 0: none */
    const char *goal;  /* the column that says how good a scenario is; NULL: prediction_main_column()'s */
    /* Pictures for picture_draw() (picture.h), NAME or NAME=FILE; checked before anything is predicted.
     * All scenarios of their tables are kept, at most PREDICTION_KEPT_MAX. */
    const char *const *pictures;
    size_t picture_count;
    /* Called after some scenarios, of which those from FIRST on are new; NULL: all are kept. */
    int (*sink)(void *context, const struct prediction *prediction, size_t first, struct failure *failure);
    /* Called now and then with the number of the scenario and the share of it that is done, 0 to 1; in a
     * search with the number of the run and the share of the search. NULL: not called. -ECANCELED ends the
     * prediction with FAILURE_INTERRUPTED, or a search with the best result so far. */
    int (*progress)(void *context, size_t scenario, double share);
    void *context;
    size_t threads; /* that the plugin may use; 0: as many as there are processors for this program */
};

struct prediction_remark {
    bool warning;
    char *sentence;
};

/* The summary of the draws of a number: their mean, and the quantiles between which 95 % of them lie. */
enum { PREDICTION_MEAN, PREDICTION_LOW, PREDICTION_HIGH, PREDICTION_INTERVAL };

struct prediction_row {
    double *values;                           /* one a column */
    char **texts;                             /* one a column, NULL for a number; or NULL: all are numbers */
    double (*intervals)[PREDICTION_INTERVAL]; /* one a column, NaN: not known; NULL: without draws */
};

struct prediction_rows {
    struct prediction_row *items;
    size_t count;
};

/* The results of a scenario, item I of prediction->scenarios. */
struct prediction_result {
    struct prediction_row *rows;
    size_t row_count;               /* 1, or as many as the plugin gave */
    struct prediction_rows *tables; /* one a table of the plugin; none have rows but those that are wanted */
    struct prediction_remark *remarks;
    size_t remark_count;
};

/* A table that the plugin declares. */
struct prediction_table {
    const struct predict_table *table;
    const struct column *columns; /* of intervals: lane, from, to, word */
    size_t column_count;
    bool is_wanted;
};

struct prediction {
    struct library *library;
    const struct predict_plugin *plugin;
    const char *prefix; /* borrowed: "predict" or "export" */
    struct role_models models;
    struct scenarios scenarios;
    struct prediction_result *results;
    size_t result_count;
    size_t searched;                 /* scenarios that a search has run; 0: there was none */
    size_t search_budget;            /* how many it may run; 0: it has ended */
    bool has_tried_all;              /* it has run all combinations that are not left out */
    size_t without_answer;           /* scenarios without an answer, of those that it has run */
    char *no_answer;                 /* the reason for the first one */
    bool is_interrupted;             /* the user interrupted the search: its result is the best so far */
    size_t scenario_count;           /* of which the first ones are in memory */
    size_t column_count;             /* of the plugin */
    size_t main_column;              /* of prediction_main_column() */
    struct prediction_table *tables; /* that the plugin declares */
    size_t table_count;
    bool has_pictures; /* tables or columns are drawn: all results are kept in memory */
    size_t draws;
    const struct prediction_request *request; /* of prediction_make(), while that runs */
    struct text text;                         /* of plugins whose result is a text */
    void *state;                              /* the plugin's */
};

/* Makes the prediction: opens the plugin and models, runs all scenarios and draws. PREFIX: "predict" or
 * "export". */
int prediction_make(const struct installation *installation, const char *prefix, const char *name,
                    const struct prediction_request *request, struct prediction **ret,
                    struct failure *failure);
void prediction_free(struct prediction *prediction); /* NULL is fine */
void prediction_cleanup(struct prediction **prediction);

/* The column that says how good a scenario is: that of the request, the first with a goal, or else the first
 * number; column_count: there is none. */
size_t prediction_main_column(const struct prediction *prediction);
/* Runs the plugin on the first scenario again, without remarks; RET is the value of COLUMN in its first
 * row. */
int prediction_run_again(struct prediction *prediction, size_t column, double *ret, struct failure *failure);

/* ---- The result as a table: name, parameters, columns, intervals, remarks */

/* For files and programs: of the scenarios from FIRST on. */
struct report_table *prediction_report_table(const struct prediction *prediction, size_t first,
                                             struct report_section *in);
/* Adds the table of results, and the models and settings that it was made of. */
void prediction_describe(const struct prediction *prediction, struct report_section *in);
/* Table TABLE of the plugin: the number of the scenario (from 1), then the table's columns. */
struct report_table *prediction_report_rows(const struct prediction *prediction, size_t table,
                                            struct report_section *in);
/* For people: a list of one scenario, a table of many. */
void prediction_report(const struct prediction *prediction, struct report_section *in);
/* Adds the parameters: a table of options and parameters with units, defaults and ranges; and the roles of
 * models. */
void prediction_report_parameters(const struct predict_plugin *plugin, struct report_section *in);

#endif
