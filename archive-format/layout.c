#include "archive-format/layout.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <string.h>

/* In the order in which README.md has them. */
const struct archive_place archive_places[] = {
    {ARCHIVE_MANIFEST, "Manifest", "SHA-256 of every other file, as sha256sum writes and checks it", false,
     ARCHIVE_PLACE_OTHER},
    {ARCHIVE_README, "Read me", "How to open, verify, cite and repeat this run", false, ARCHIVE_PLACE_OTHER},
    {ARCHIVE_RUN, "Run record", "The run in short: status, times, seed, counts, nodes, options", true,
     ARCHIVE_PLACE_OTHER},
    {ARCHIVE_CAMPAIGN, "Campaign", "What was asked for, byte for byte as the user wrote it", true,
     ARCHIVE_PLACE_OBJECT},
    {ARCHIVE_CAMPAIGN_RESOLVED, "Resolved campaign", "The campaign with every default filled in", true,
     ARCHIVE_PLACE_OBJECT},
    {ARCHIVE_EXPERIMENT, "Experiment", "The experiment's own files: declaration and sources", true,
     ARCHIVE_PLACE_OBJECT},
    {ARCHIVE_SOURCE, "Source", "What the experiment built, before it was built", true, ARCHIVE_PLACE_OTHER},
    {ARCHIVE_DESIGN, "Design", "The planned rows; results.csv says in which order they ran", true,
     ARCHIVE_PLACE_OBJECT},
    {ARCHIVE_IMPORTS, "Imported files",
     "What was imported, byte for byte, but for the files of nodes; run.json has its name and hash", true,
     ARCHIVE_PLACE_OBJECT},
    {ARCHIVE_MODELS, "Models", "The models that the prediction was made from; run.json has their roles", true,
     ARCHIVE_PLACE_OBJECT},
    {ARCHIVE_SCENARIOS, "Scenarios", "The table of scenarios, byte for byte as it was given", true,
     ARCHIVE_PLACE_OBJECT},
    {ARCHIVE_DATAPACKAGE, "Columns", "Type, unit and role of every column of every table (Data Package 2.0)",
     true, ARCHIVE_PLACE_OTHER},
    {ARCHIVE_RESULTS_FOLDER, "Results", "The table of results, and what the experiment wrote besides", false,
     ARCHIVE_PLACE_OTHER},
    {ARCHIVE_RESULTS, "Results",
     "One row for each unit that was done, or scenario that was predicted; datapackage.json has the columns",
     true, ARCHIVE_PLACE_RESULT},
    {ARCHIVE_REPEAT, "How well rows are known",
     "One row for each of the design: how often it was repeated, and how narrow its mean's interval is", true,
     ARCHIVE_PLACE_RESULT},
    {ARCHIVE_TABLES, "Further tables", "What units printed line by line, one file a table", true,
     ARCHIVE_PLACE_RESULT},
    {ARCHIVE_RAW, "Raw results", "Files and outputs of the experiment as they were; the manifest lists each",
     true, ARCHIVE_PLACE_RESULT},
    {ARCHIVE_JOURNAL, "Journal", "What the engine did, in order, one JSON object a line", true,
     ARCHIVE_PLACE_OTHER},
    {ARCHIVE_NODES, "Nodes", "What each machine is, one folder a node", true, ARCHIVE_PLACE_RESULT},
    {ARCHIVE_SOFTWARE, "Software", "The software that the experiment used", true, ARCHIVE_PLACE_RESULT},
    {ARCHIVE_SOURCES, "Sources", "Where each source came from that was built, its hash, and its copy here",
     false, ARCHIVE_PLACE_OTHER},
    {ARCHIVE_INPUT_FILES, "Inputs", "Files and sources that options of the experiment name", true,
     ARCHIVE_PLACE_OBJECT},
    {ARCHIVE_VERSIONS, "Software versions", "Compiler, libraries and programs that the experiment used",
     false, ARCHIVE_PLACE_OTHER},
    {ARCHIVE_LOGS, "Logs", "Logs of the engine and of the experiment", true, ARCHIVE_PLACE_OTHER},
    {ARCHIVE_COMMAND_TABLE, "Commands", "The commands that the other engine ran, one a line", false,
     ARCHIVE_PLACE_OTHER},
    {ARCHIVE_LOG, "Engine log", "What the engine printed for its user", false, ARCHIVE_PLACE_OTHER},
};
const size_t archive_place_count = sizeof archive_places / sizeof *archive_places;

const struct archive_place *archive_place_find(const char *path) {
    for (size_t i = 0; i < archive_place_count; i++)
        if (strcmp(archive_places[i].path, path) == 0)
            return &archive_places[i];
    return NULL;
}

char *archive_table_path(const char *name) {
    return name ? xformat(ARCHIVE_TABLES "/%s.csv", name) : xstrdup(ARCHIVE_RESULTS);
}

char *archive_output_path(size_t order, const char *node, const char *core, unsigned attempt,
                          const char *suffix) {
    cleanup_free char *again = attempt > 1 ? xformat("-again-%u", attempt) : xstrdup("");
    return xformat(ARCHIVE_RAW "/%zu-%s-%s%s.%s", order, node, core, again, suffix);
}

char *archive_model_path(size_t number, const char *role, const char *ending) {
    bool is_plain = ending && ending[0] == '.' && strlen(ending) < 16 &&
                    !ending[1 + strspn(ending + 1, "abcdefghijklmnopqrstuvwxyz0123456789")];
    return xformat(ARCHIVE_MODELS "/%zu-%s%s", number, role, is_plain ? ending : "");
}

char *archive_node_folder(const char *node, unsigned part) {
    return part > 1 ? xformat(ARCHIVE_NODES "/%s/part-%u", node, part) : xformat(ARCHIVE_NODES "/%s", node);
}
