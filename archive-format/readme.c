#include "archive-format/readme.h"

#include "archive-format/crate.h"
#include "engine/foundation/clock.h"

/* Described one by one, where they are there. */
static const char *const contents[] = {"run.json",
                                       "campaign.yaml",
                                       "campaign.resolved.json",
                                       "experiment",
                                       "source.tar",
                                       "design.csv",
                                       "datapackage.json",
                                       "results/results.csv",
                                       "results/repeat.csv",
                                       "results/tables",
                                       "results/raw",
                                       "journal.jsonl",
                                       "nodes",
                                       "software",
                                       "logs"};

/* The first two files are made after this one. */
static const char how_to_use[] =
    "- `ro-crate-metadata.json`: description for programs: Process Run Crate 0.5 (RO-Crate 1.1)\n"
    "- `manifest-sha256.txt`: SHA-256 of every other file\n"
    "\nTimes are nanoseconds since 1970, or UTC; units are UCUM codes.\n\n"
    "## Open and verify it\n\n"
    "With assay:\n\n"
    "    assay archive verify ARCHIVE.zip\n"
    "    assay archive list ARCHIVE.zip\n"
    "    assay archive extract ARCHIVE.zip -C FOLDER\n\n"
    "With what every system has:\n\n"
    "    unzip ARCHIVE.zip -d FOLDER\n"
    "    cd FOLDER && sha256sum -c manifest-sha256.txt\n\n"
    "## Use it\n\n"
    "    assay fit ARCHIVE.zip\n\n"
    "## Run it again\n\n"
    "    assay run ARCHIVE.zip\n\n"
    "It takes the experiment, the source, the rows and the seed, hence the order, from the archive, and the "
    "nodes that the campaign names. To change something, extract "
    "it, and edit `campaign.yaml`. `experiment: ./experiment` is then the archive's experiment, where it has "
    "that folder, and a source that was a folder is what `tar -xf source.tar -C FOLDER` unpacks: "
    "`source: {folder: FOLDER}`.\n\n";

int readme_print(const struct staging *staging, const struct archive_description *description,
                 struct text *ret) {
    char started[CLOCK_TEXT_SIZE], ended[CLOCK_TEXT_SIZE];
    clock_format(description->started_ns, started);
    clock_format(description->ended_ns, ended);
    int r = text_printf(ret,
                        "# %s\n\n%s\n\n"
                        "A sealed run of assay %s, run %s: **%s**%s%s.\n"
                        "Started %s, ended %s.\n\n## What is in it\n\n",
                        description->name, description->text, description->engine_version,
                        description->run_id, description->status, description->error ? ", " : "",
                        description->error ? description->error : "", started, ended);
    for (size_t i = 0; r == 0 && i < sizeof contents / sizeof *contents; i++) {
        const struct staged_file *part = staging_find(staging, contents[i]);
        if (part)
            r = text_printf(ret, "- `%s%s`: %s\n", contents[i], part->folder ? "/" : "",
                            crate_describe(contents[i]));
    }
    if (r == 0)
        r = text_append_string(ret, how_to_use);
    if (r == 0)
        r = text_printf(ret,
                        "## Cite it\n\n"
                        "%s. Archive of an assay run, urn:uuid:%s, %s. License: %s\n",
                        description->name, description->run_id, ended,
                        description->license ? description->license : ARCHIVE_DEFAULT_LICENSE);
    return r;
}
