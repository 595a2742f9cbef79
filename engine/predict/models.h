/*
 * The models of a prediction: each read, given to its role, and evaluated for the plugin; drawn from its
 * covariance, where the plugin is run for a draw. Used by this room alone.
 */
#ifndef ASSAY_PREDICT_MODELS_H
#define ASSAY_PREDICT_MODELS_H

#include "engine/model/bound.h"
#include "engine/model/verdict.h"
#include "engine/plugin/library.h"

enum { MODELS_MAX = 4096 };

struct given_model {
    size_t role; /* of the plugin's */
    struct model *model, *drawn;
    struct model **draws; /* those that are kept */
    size_t draw_count;
    bool is_kept;                 /* `drawn` is one of `draws` */
    const struct model **seen;    /* where the plugin sees one of the two */
    struct predict_source source; /* texts are owned */
    char *content;                /* of its file, `length` bytes and a NUL */
    size_t length;
    enum report_grade grade;
    char *verdict; /* model_verdict() */
    /* A warning for the user: the model is NOT_USABLE, or its grade is UNKNOWN; NULL: none, or the file
     * was given before for another role. */
    char *remark;
    struct evaluator *evaluator; /* NULL: the kind is not evaluated row by row */
    /* In the scenario in hand: the sum of the means, in all and extrapolated, and the extrapolated row with
     * the largest mean. */
    double all, outside, largest;
    struct evaluator_value extrapolated;
};

struct bound_model {
    struct bound *bound;
    struct given_model *given;
    size_t group;
};

struct role_models {
    const struct library *library;
    struct predict_inputs view; /* what the plugin gets */
    struct given_model *items;  /* as they were given */
    size_t count, role_count;
    uint64_t seed;
    struct bound_model *calls; /* that the plugin bound */
    size_t call_count;
    char **notes; /* what the user must know of the models: sentences */
    size_t note_count;
};

/* WORDS are "ROLE=FILE", "FILE" where one role alone takes a model of that kind, or "NAME=FILE" for a role
 * that takes many. FAILURE_INPUT: a model of a kind that no role takes, a role without a model, ... MODELS is
 * to be cleared after failures too. TEXTS: of each the content, if that is not of FILE, or NULL; or NULL. */
int models_open(struct role_models *models, const struct library *library, const char *const *words,
                const char *const *texts, size_t count, uint64_t seed, struct failure *failure);
void models_clear(struct role_models *models);

/* The path in such a word. */
const char *models_path(const char *word);

/* Makes all models those of draw DRAW, from 1; 0: the models as they were read. */
void models_draw(struct role_models *models, uint64_t draw);
/* Before each run of the plugin. */
void models_begin(struct role_models *models);
/* After it: remarks to OUTPUT which models were extrapolated. */
void models_warn(const struct role_models *models, struct predict_output *output);

#endif
