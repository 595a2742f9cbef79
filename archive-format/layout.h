/*
 * Where things lie in an archive, and in the folder of a run, which becomes one: FORMAT.md, "Layout". Nothing
 * else in assay spells these paths.
 */
#ifndef ASSAY_ARCHIVE_FORMAT_LAYOUT_H
#define ASSAY_ARCHIVE_FORMAT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#define ARCHIVE_CRATE "ro-crate-metadata.json"
#define ARCHIVE_PREVIEW "ro-crate-preview.html"
#define ARCHIVE_MANIFEST "manifest-sha256.txt"
#define ARCHIVE_SIGNATURE ARCHIVE_MANIFEST ".sig" /* of the manifest, which does not have it */
#define ARCHIVE_RUN "run.json"
#define ARCHIVE_README "README.md"
#define ARCHIVE_DATAPACKAGE "datapackage.json"

#define ARCHIVE_CAMPAIGN "campaign.yaml"
#define ARCHIVE_CAMPAIGN_RESOLVED "campaign.resolved.json"
#define ARCHIVE_INPUTS "inputs.json"
#define ARCHIVE_INPUT_FILES "inputs" /* that options of the experiment name */
#define ARCHIVE_EXPERIMENT "experiment"
#define ARCHIVE_EXPERIMENT_FILE "experiment.yaml" /* in ARCHIVE_EXPERIMENT */
#define ARCHIVE_SOURCE "source.tar"
#define ARCHIVE_DESIGN "design.csv"

/* Of an import: what was imported, as it was. */
#define ARCHIVE_IMPORTS "imported"

/* Of a prediction. */
#define ARCHIVE_MODELS "models"
#define ARCHIVE_SCENARIOS "scenarios.csv"

#define ARCHIVE_RESULTS_FOLDER "results"
#define ARCHIVE_RESULTS "results/results.csv"
#define ARCHIVE_REPEAT "results/repeat.csv"
#define ARCHIVE_MISSING "results/missing.csv"
#define ARCHIVE_TABLES "results/tables"
#define ARCHIVE_RAW "results/raw"

#define ARCHIVE_JOURNAL "journal.jsonl"
#define ARCHIVE_LOGS "logs"
#define ARCHIVE_LOG "logs/engine.log"
#define ARCHIVE_COMMAND_TABLE "logs/commands.csv" /* of an import */
#define ARCHIVE_CUT "logs/cut"
#define ARCHIVE_COMMANDS "logs/commands"

#define ARCHIVE_SOFTWARE "software"
#define ARCHIVE_VERSIONS "software/versions.json"
#define ARCHIVE_SOURCES "software/sources.json"
#define ARCHIVE_SOURCE_NAME "source" /* of the experiment's source, in ARCHIVE_SOURCES */
#define ARCHIVE_SOURCE_MANIFEST "software/source-sha256.txt"
#define ARCHIVE_SOURCE_COMMIT "software/source-commit.txt"
#define ARCHIVE_KNOWN_HOSTS "known_hosts"

#define ARCHIVE_NODES "nodes"
/* In the folder of a node. */
#define ARCHIVE_NODE_FACTS "facts.json"
#define ARCHIVE_NODE_CLOCK "clock.json"
#define ARCHIVE_NODE_CONTROLS "controls.json"
#define ARCHIVE_NODE_CONTROLS_BEFORE "controls-before.tsv"
#define ARCHIVE_NODE_WARM_UP "warm-up.json"

/* A file or folder with a meaning of its own, as README.md and ro-crate-metadata.json describe it. */
struct archive_place {
    const char *path;
    const char *name, *description; /* a few words, a sentence */
    bool in_readme;
    enum archive_place_role {
        ARCHIVE_PLACE_OTHER,
        ARCHIVE_PLACE_OBJECT, /* what the run was made from */
        ARCHIVE_PLACE_RESULT, /* what it gave */
    } role;
};

extern const struct archive_place archive_places[];
extern const size_t archive_place_count;
/* The place PATH, or NULL. */
const struct archive_place *archive_place_find(const char *path);

/* Each is the caller's. */
/* "results/tables/NAME.csv"; of NULL "results/results.csv". */
char *archive_table_path(const char *name);
/* "results/raw/12-dahu-3-all.out"; of a later attempt "results/raw/12-dahu-3-all-again-2.out". ORDER from 1.
 */
char *archive_output_path(size_t order, const char *node, const char *core, unsigned attempt,
                          const char *suffix);
/* "models/2-dgemm.json": model NUMBER, from 1, of the role ROLE. ENDING is left out unless it is a point and
 * a few small letters and digits; NULL: none. */
char *archive_model_path(size_t number, const char *role, const char *ending);
/* "nodes/NODE", where the files of a node are; from part 2 on "nodes/NODE/part-K". */
char *archive_node_folder(const char *node, unsigned part);

#endif
