/*
 * What differs between two runs beside their results: each fact that both archives record, such as
 * `options.blas` or `microcode`, is compared by its name, over all nodes. The differences are sorted by what
 * usually matters for the results.
 *
 *     run.json, campaign.resolved.json, inputs.json     each member, "controls.turbo"
 *     nodes/NODE/facts.json, controls.json, raw/NAME    likewise, "microcode", "set[turbo].after", "cmdline"
 *     software/versions.json                            likewise, "libraries[libopenblas.so.0].sha256"
 *     design.csv, source.tar, experiment/, inputs/      the SHA-256 of each file
 *
 * What differs between any two runs (times, identifiers, paths of temporary folders, free memory) is left
 * out. What only one of the archives records is not compared, and `not_compared` says so.
 */
#ifndef ASSAY_ANALYSIS_SETUP_H
#define ASSAY_ANALYSIS_SETUP_H

#include "engine/documents/bind.h"
#include "engine/foundation/failure.h"
#include "engine/report/report.h"

#include <stddef.h>

/* In the order of the differences. */
enum setup_kind {
    SETUP_CONTROLS,
    SETUP_PROCESSOR, /* the microcode, too */
    SETUP_KERNEL,
    SETUP_BLAS,
    SETUP_COMPILER, /* and its flags */
    SETUP_NODES,
    SETUP_DESIGN,
    SETUP_SEED,
    SETUP_OTHER,
    SETUP_KINDS,
};

#define SETUP_NONE "-"
/* VALUES: of both runs; SETUP_NONE where a run or a node has none. Where the nodes of a run have several
 * values, each is followed by its nodes, folded: "0x1 (n-[1-3]), 0x2 (n-4)". */
struct setup_difference {
    enum setup_kind kind;
    char *object, *values[2];
};

struct setup {
    struct setup_difference *items;
    size_t count, alike;            /* how many differ, and how many do not */
    struct bind_texts not_compared; /* sentences */
};

/* PATHS: archives or folders of two runs; imports are runs, and a prediction is FAILURE_INPUT. RET is to be
 * cleared after failures, too. */
int setup_compare(const char *const paths[2], struct setup *ret, struct failure *failure);
void setup_clear(struct setup *setup);
/* "microcode: 0x1 | 0x2"; the caller's. Long values are shortened. */
char *setup_describe(const struct setup_difference *difference);
/* A line a difference. In JSON `setup` has:
 *
 *     differences      a list of kind, object, base, new
 *     differ, alike    numbers
 */
void setup_report(struct report_section *in, const struct setup *setup);

#endif
