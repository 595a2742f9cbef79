/*
 * A campaign: the YAML file that a user writes, checked and bound before a node is touched. README.md beside
 * this is the user's side of it.
 *
 *     experiment: dgemm            # a name, a path, or a mapping: an experiment written in place
 *     name: quickstart             # default: the experiment's name
 *     testbed: local               # or a mapping: engine/testbed/host-settings.h; or a list of these
 *     options: {blas: openblas}
 *     modules: [gcc/12]            # settings.h; spack, container and prefix too
 *     controls: {turbo: off, frequency: base}   # settings.h has these
 *     probes: 1 s
 *     warm-up: steady
 *     gates: flag
 *     stop-after-failures: 3       # in a row, in one place: then the experiment is broken; or none
 *     node-loss: continue
 *     design: {generate: uniform-product, factors: [m, n, k], max-product: 1e8, repetitions: 3, seed: 7}
 *
 * A resolved campaign, campaign.resolved.json of a run, is one too: every default is filled in, and the paths
 * in it lead to the copies that the run has of its experiment and its design. What it has in `resolved` is
 * for readers.
 */
#ifndef ASSAY_CAMPAIGN_CAMPAIGN_H
#define ASSAY_CAMPAIGN_CAMPAIGN_H

#include "archive-format/layout.h"
#include "archive-format/run.h"
#include "engine/design/design.h"
#include "engine/documents/document.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/installation.h"
#include "engine/foundation/text.h"
#include "engine/run/campaign/experiment.h"
#include "engine/run/campaign/settings.h"
#include "engine/testbed/testbed.h"

enum { CAMPAIGN_BYTES_MAX = DOCUMENT_BYTES_MAX };

struct campaign {
    struct document *document;
    char *path;        /* of the file that a user wrote; */
    struct text bytes; /* its bytes */
    char *folder;      /* absolute folder of the file: paths in it are relative to this */
    char *name, *description;
    char *license; /* URI of the licence of the results */
    char *author;  /* a person's name; NULL: not stated */
    struct testbed_choice testbed;
    char *workspace; /* folder on the nodes; NULL: the node's choice */
    struct control_settings controls;
    struct probe_settings probes;
    struct warm_up_settings warm_up;
    struct gate_settings gates;
    int64_t stop_after_failures; /* units that fail in a row in one place; 0: never */
    struct node_loss_settings node_loss;
    struct walltime_settings walltime;
    enum provenance provenance;
    enum redact redact;
    struct experiment *experiment;
    struct design_specification *design;
    const struct document_node *design_node; /* that it was bound from; NULL: nothing was said */
};

/* The run that a campaign repeats. */
struct campaign_again {
    struct archive_origin origin;
    char *path; /* absolute, of its archive or folder */
};

struct campaign_overrides {
    const char *const *options; /* "name=value" from the command line */
    size_t option_count;
    const char *seed;         /* text of a seed, or NULL */
    const char *const *nodes; /* lists of nodes, or @FILE: they make the testbed `hosts` */
    size_t node_count;
    const char *const *spares; /* likewise, for the testbed's spares: a node that is lost is replaced */
    size_t spare_count;
    bool redact;                        /* REDACT_PEOPLE, whatever the campaign says */
    size_t testbed;                     /* which one of a list of testbeds, from 0 */
    const char *testbed_text;           /* what `testbed:` is, in YAML, whatever the file says; or NULL */
    const struct campaign_again *again; /* NULL: it repeats no run */
    const char
        *written; /* the file that a user wrote, of a run's resolved campaign that is run again; or NULL */
};

/* OVERRIDES may be NULL. */
int campaign_read(const char *path, const struct installation *installation,
                  const struct campaign_overrides *overrides, struct campaign **ret, struct failure *failure);
/* The campaign that the run in FOLDER was made from: its resolved one, with MORE_SPARES (lists of nodes, or
 * @FILE) beside those that it has. */
int campaign_read_recorded(const char *folder, const struct installation *installation,
                           const char *const *more_spares, size_t count, struct campaign **ret,
                           struct failure *failure);
void campaign_free(struct campaign *campaign);
void campaign_cleanup(struct campaign **campaign); /* for the cleanup attribute */

#endif
