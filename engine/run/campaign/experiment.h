/*
 * An experiment: what `experiment.yaml` declares, checked. A campaign names one by its folder's name, gives a
 * path, or writes one in place. experiments/README.md is the user's side of this.
 */
#ifndef ASSAY_CAMPAIGN_EXPERIMENT_H
#define ASSAY_CAMPAIGN_EXPERIMENT_H

#include "archive-format/run.h"
#include "engine/design/design.h"
#include "engine/documents/bind.h"
#include "engine/documents/document.h"
#include "engine/expression/expression.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/installation.h"
#include "engine/run/campaign/experiment-command.h"
#include "engine/run/campaign/experiment-job.h"
#include "engine/run/campaign/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EXPERIMENT_NAMES_MAX = 256, /* factors, responses, options, maxima, and columns of a table, each */
    EXPERIMENT_TABLES_MAX = 16,
    EXPERIMENT_TEXT_MAX = 256, /* bytes of a response that is a text */
};

struct experiment_option {
    struct design_factor factor; /* its name, type, bounds, choices and default */
    char *value;                 /* the default until the campaign says otherwise; as text */
    bool given;                  /* by the campaign */
};

/* A value that is read from a unit's output: a response, or a column of a table. */
struct experiment_response {
    struct column about; /* a number or a string; texts owned; the unit may be any text of the user's own */
    /* The rest is a response's only. */
    char *pattern;             /* POSIX extended regular expression with one group; NULL when streamed */
    struct bind_texts choices; /* of a text; none: any */
    struct bind_texts pass;    /* those of the choices with which a unit passes; none: all */
};

/* A further table, of which every line of a unit's output that the pattern matches is a row. */
struct experiment_table {
    char *name, *file; /* of an archive: "results/tables/NAME.csv" */
    char *description;
    char *pattern; /* with a group for each column */
    struct experiment_response *columns;
    size_t column_count;
};

/* The source that setup builds, if it is not in the experiment's own folder. */
struct experiment_source {
    char *git;                /* URL, or NULL */
    char *at;                 /* tag, branch or commit; NULL: the remote's default */
    char *folder;             /* absolute path of a folder on this machine, or NULL */
    struct bind_texts ignore; /* source-files.h */
    char *recorded;           /* the folder of a run that has a copy of it; NULL: there is none yet */
    uint32_t line, column;    /* of the folder, in the experiment's file */
};

/* A named expression whose largest value over the design commands may use. */
struct experiment_maximum {
    char *name;
    struct expression *expression; /* over the factors */
};

#define IDLE_TIMEOUT_SECONDS 180 /* by default */
#define OVERRUN_SECONDS_MIN 600

enum experiment_placement {
    EXPERIMENT_PLACEMENT_CORE,
    EXPERIMENT_PLACEMENT_NODE,
    EXPERIMENT_PLACEMENT_JOB,
};

struct experiment {
    struct document *document;              /* owned; NULL when the campaign wrote it in place */
    const struct document *source_document; /* the one it was bound from: the above, or the campaign's */
    const char *file;                       /* for messages */
    char *folder;                           /* absolute; NULL when written in place */
    char *name, *summary;

    struct design_factor *factors;
    size_t factor_count;
    struct expression **conditions; /* what must hold of every row; over the factors */
    size_t condition_count;
    struct experiment_response *responses;
    size_t response_count;
    struct experiment_table *tables;
    size_t table_count;
    struct experiment_option *options;
    size_t option_count;
    struct experiment_maximum *maxima;
    size_t maximum_count;
    struct expression *memory;   /* bytes a process; over the maxima; or NULL */
    struct expression *estimate; /* seconds a unit; over the factors; or NULL */

    struct bind_texts packages; /* of Debian, needed on a node */
    struct software_settings software;
    struct experiment_source source;
    struct bind_texts inputs;  /* options that name files or folders of which a run takes copies */
    struct bind_texts sources; /* options that may name a source; those that do are inputs too, once set */
    /* For each input: its absolute path, known once the options are set; its value as it was written. */
    struct bind_texts input_paths, input_values;
    struct experiment_command *setup, *teardown;
    size_t setup_count, teardown_count;
    struct experiment_command run;
    struct experiment_job job;
    struct expression
        *pass;     /* over the responses: what must be true, so neither 0 nor nan, of a unit; or NULL */
    bool streamed; /* the run command takes rows on its input; see experiments/kernels/README.md */
    char *placement_text; /* core, node, {option}, or NULL */
    uint32_t placement_line, placement_column;
    enum experiment_placement placement; /* after experiment_resolve */
    double timeout; /* seconds for one unit: from its start, or, streamed, from the answer before; 0: none */
    double idle_timeout; /* seconds: units with ranks that print nothing and use no processor; 0: none */
    double overrun;      /* times its estimate, but at least OVERRUN_SECONDS_MIN: as a timeout; 0: none */

    struct archive_model *model;             /* or NULL */
    struct archive_answer *answer;           /* or NULL */
    bool ranks_nothing;                      /* the answer is "none" */
    const struct document_node *design_node; /* the default design, or NULL */
};

/* Finds NAME (a path with a slash, relative to BASE_FOLDER, or the name of an experiment of the INSTALLATION)
 * and reads its experiment.yaml. PLACE_* say where the name was written. */
int experiment_find(const char *name, const char *base_folder, const struct installation *installation,
                    const char *place_file, size_t place_line, size_t place_column, struct experiment **ret,
                    struct failure *failure);
/* From a mapping inside another document, which must live as long as the experiment. Paths are relative to
 * BASE_FOLDER. */
int experiment_from_node(const struct document *document, const struct document_node *node,
                         const char *base_folder, struct experiment **ret, struct failure *failure);
void experiment_free(struct experiment *experiment);

/* Refuses what cannot be the `name` of an experiment; the place is where it was written. */
int experiment_name_check(const char *name, const char *file, size_t line, size_t column,
                          struct failure *failure);

/* A package of Debian that a node needs beside those that the experiment names; one that is there already is
 * fine. */
void experiment_add_package(struct experiment *experiment, const char *name);

/* Sets an option from the campaign or the command line, checked; messages are about DOCUMENT's NODE. */
int experiment_set_option(struct experiment *experiment, const char *name, const char *value,
                          const char *file, size_t line, size_t column, struct failure *failure);
/* "core", "node", "job". */
const char *experiment_placement_name(enum experiment_placement placement);
/* After the options are set: resolves what depends on them (placement). */
int experiment_resolve(struct experiment *experiment, struct failure *failure);

/* Refuses a source that is a folder which is not there, unless there is a copy of it. */
int experiment_check_source(const struct experiment *experiment, struct failure *failure);

/* The `default-note` of OPTION while its value is the default, a sentence; otherwise NULL. */
const char *experiment_option_note(const struct experiment_option *option);
/* Has the option NAME the value that it has where nothing else is set? */
bool experiment_option_is_default(const struct experiment *experiment, const char *name);
/* The value of an option, or NULL. */
const char *experiment_option_value(const struct experiment *experiment, const char *name);
/* TEXT, or what it stands for when it is {OPTION}: NULL, if there is none. */
const char *experiment_resolve_text(const struct experiment *experiment, const char *text);

#endif
