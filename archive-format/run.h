/*
 * run.json: an archive in short (FORMAT.md, "run.json"). This struct is its only form in memory, and one
 * table of fields (run.c) reads and writes it. Zeroed members are not known.
 */
#ifndef ASSAY_ARCHIVE_FORMAT_RUN_H
#define ASSAY_ARCHIVE_FORMAT_RUN_H

#include "engine/documents/bind.h"
#include "engine/documents/document.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stdint.h>

/* Of this version archives are written; every minor version of its major version is read. */
#define ARCHIVE_VERSION "1.1"

enum { ARCHIVE_ID_SIZE = 40 };

/* What the archive is of; a run.json that does not say so is a run's. */
enum archive_kind { ARCHIVE_OF_RUN, ARCHIVE_OF_PREDICTION, ARCHIVE_IMPORTED };

struct archive_engine {
    char *name, *version, *commit, *sha256;
};

/* Of units, but for the rows of the design. */
struct archive_counts {
    int64_t rows, planned, done, failed, flagged, repeated;
    int64_t rows_settled; /* negative: rows were not repeated until they were known */
};

/* The limits of a campaign's `repeat: {until: ...}`; `ci` and `confidence` are fractions. */
struct archive_repeat {
    double ci, confidence;
    int64_t at_least, at_most;
    struct bind_texts between; /* "node", "block" */
    char *response;
};

/* What `assay fit ARCHIVE` does by default. */
struct archive_model {
    char *method, *response, *terms;
    char *table; /* the further table that it is of, or NULL */
    struct bind_texts sizes, by;
    struct bind_texts set; /* parameters of the method, NAME=VALUE */
};

/* Whether `assay report` puts the setting with the greatest or the least response first. */
enum archive_best { ARCHIVE_BEST_MOST, ARCHIVE_BEST_LEAST, ARCHIVE_BEST_NONE /* no settings are compared */ };
struct archive_answer {
    char *response; /* a response, or an expression over responses and factors */
    char *unit;     /* UCUM; of a response, its own unless it is given; of an expression "1" */
    int best;       /* enum archive_best */
    char *lines;    /* the beginning of lines of a unit's output; the rest of them says how to run it again */
    struct bind_texts sizes; /* factors whose levels are no alternatives; none: the sizes of the model */
    char *share,
        *of; /* a response: which share of what can be had was reached (0: not known); of what, in words */
};

struct archive_node_out {
    char *node, *why, *sentence;
    bool replaced;
};
struct archive_slow_node {
    char *node, *sentence;
};
struct archive_part {
    int64_t started_ns, ended_ns, units_done;
    char *status, *engine;
};
struct archive_phase {
    char *name, *status;
    int64_t started_ns, ended_ns;
};

/* A model file that a prediction was made from: its member in the archive, and the files that it was fitted
 * from, each by the hash that it had. */
struct archive_model_input {
    char *name, *sha256, *run_id, *experiment; /* the last two: of an archive of a run */
};
struct archive_prediction_model {
    char *role, *member, *file; /* FILE: the base name that it was read under */
    char *sha256, *grade, *verdict;
    struct bind_items inputs; /* struct archive_model_input */
};

/* What a prediction was made with. Numbers of scenarios are in the counts of the run. */
struct archive_prediction {
    char *plugin, *version;
    int64_t draws, searched;    /* searched: scenarios that were run to find the best ones; 0: no search */
    struct bind_texts settings; /* NAME=VALUE, as given */
    struct bind_items models;   /* struct archive_prediction_model */
    struct bind_texts warnings, notes; /* sentences, each once; results.csv has those of each scenario */
};

/* What an import was made from. */
struct archive_import {
    char *format, *file, *sha256; /* "peanut" or "csv"; its base name, and the SHA-256 of its bytes */
    char *engine;                 /* that measured: "peanut 0.0.1"; NULL: not known */
    struct bind_texts kept;       /* files of imported/ that nothing else in the archive was made from */
    struct bind_texts notes;      /* sentences: what was left out, and what was assumed */
};

/* The run that another one repeats (`assay run ARCHIVE`). */
struct archive_origin {
    char *run_id, *archive; /* the archive's base name, or that of the run's folder */
    char *sha256;           /* of the archive; NULL: of a folder */
};

/* Times are wall clock, ns since 1970. */
struct archive_run {
    char *version; /* read only: "1.0" */
    int kind;      /* enum archive_kind */
    char *run_id, *name, *status, *error;
    struct archive_engine engine;
    int64_t started_ns, ended_ns;
    char *seed, *generator, *order;
    struct archive_counts counts;
    struct archive_repeat *repeat; /* NULL: there is none; likewise the pointers below */
    struct bind_texts nodes;
    struct bind_items nodes_out;  /* struct archive_node_out */
    struct bind_items slow_nodes; /* struct archive_slow_node */
    char *testbed;
    struct {
        char *name, *folder;
    } experiment;
    struct bind_texts options; /* names, each followed by its value */
    struct archive_model *model;
    struct archive_answer *answer;
    struct archive_prediction *prediction;
    struct archive_import *import;
    struct archive_origin *based_on;
    struct bind_texts command;
    struct bind_items parts;  /* struct archive_part */
    struct bind_items phases; /* struct archive_phase; of the last part */
};

enum { ARCHIVE_REPEAT_FIELDS = 6, ARCHIVE_MODEL_FIELDS = 7, ARCHIVE_ANSWER_FIELDS = 7 };
extern const struct bind_field archive_repeat_fields[ARCHIVE_REPEAT_FIELDS],
    archive_model_fields[ARCHIVE_MODEL_FIELDS], archive_answer_fields[ARCHIVE_ANSWER_FIELDS];

/* This program; RET is zeroed. */
void archive_engine_describe(struct archive_engine *ret);
/* The minor version of the format that RUN, which was read, was written in. */
uint64_t archive_run_minor(const struct archive_run *run);
/* "run", "prediction" or "import". */
const char *archive_kind_name(enum archive_kind kind);
/* A new random run_id: a UUID (RFC 4122, version 4). */
int archive_draw_id(char id[static ARCHIVE_ID_SIZE], struct failure *failure);

/* Reads DOCUMENT into RET, which is zeroed and the caller's to clear, also after a failure. A version that
 * this reader does not know, and a member that is not what it has to be, are FAILURE_VERIFICATION. */
int archive_run_read(const struct document *document, struct archive_run *ret, struct failure *failure);
/* Writes PATH whole, durably and at once. */
int archive_run_write(const char *path, const struct archive_run *run, struct failure *failure);
void archive_run_clear(struct archive_run *run);

#endif
