#include "archive-format/crate/readme.h"

#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"

#include <stdlib.h>
#include <string.h>

/* These are made after this one. */
static const char last_files[] =
    "- `ro-crate-preview.html`: this page for a browser, with every file\n"
    "- `ro-crate-metadata.json`: description for programs: Process Run Crate 0.5 (RO-Crate 1.1)\n"
    "- `manifest-sha256.txt`: SHA-256 of every other file\n";
static const char how_to_open[] = "\nTimes are nanoseconds since 1970, or UTC; units are UCUM codes.\n\n"
                                  "## Open and verify it\n\n"
                                  "With assay:\n\n"
                                  "    assay archive verify ARCHIVE.zip\n"
                                  "    assay archive list ARCHIVE.zip\n"
                                  "    assay archive extract ARCHIVE.zip -C FOLDER\n\n"
                                  "With what every system has:\n\n"
                                  "    unzip ARCHIVE.zip -d FOLDER\n"
                                  "    cd FOLDER && sha256sum -c manifest-sha256.txt\n\n";
static const char how_to_use[] =
    "## Use it\n\n"
    "    assay fit ARCHIVE.zip\n\n"
    "## Run it again\n\n"
    "    assay run ARCHIVE.zip\n\n"
    "It takes the experiment, the source, the rows and the seed, hence the order, from the archive, and the "
    "nodes that the campaign names. To change something, extract "
    "it, and edit `campaign.yaml`. `experiment: ./experiment` is then the archive's experiment, where it has "
    "that folder, and a source that was a folder is what `tar -xf source.tar -C FOLDER` unpacks: "
    "`source: {folder: FOLDER}`.\n\n";
static const char how_to_use_import[] = "## Use it\n\n"
                                        "    assay fit ARCHIVE.zip\n"
                                        "    assay report ARCHIVE.zip\n\n"
                                        "`run.json` says from which file it was imported (`import`), what "
                                        "was left out or assumed (`notes`), and which "
                                        "files of `imported/` are there only (`kept`).\n\n";
static const char how_to_use_prediction[] =
    "## Use it\n\n"
    "    assay report ARCHIVE.zip\n\n"
    "## Predict it again\n\n"
    "`run.json` has the command line (`command`), and which file of `models/` had which role "
    "(`prediction.models`), with the hashes of the archives that each was fitted from. The same models, "
    "scenarios, settings and seed give the same bytes of `results/results.csv`.\n\n";

/* ---- The machines, by the facts that are among the files: sealed again, the text is the same */

enum { MACHINES_SHOWN = 32 };

static int print_machines(const struct staging *staging, struct text *ret) {
    size_t count = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < staging->count; i++) {
        const char *name = staging->files[i].name;
        if (!describe_is_facts(name) || ++count > MACHINES_SHOWN)
            continue;
        cleanup_free char *machine = describe_machine(staging, name);
        r = text_printf(ret, "%s- `%s`: %s\n", count == 1 ? "\n## Where it was measured\n\n" : "", name,
                        machine ? machine : "see there");
    }
    return r == 0 && count > MACHINES_SHOWN ? text_printf(ret, "- and %zu more\n", count - MACHINES_SHOWN)
                                            : r;
}

/* Files that are in no copy, as inputs.json has them. */
static int print_left_out(const struct staging *staging, struct text *ret) {
    cleanup(document_cleanup) struct document *inputs = describe_read(staging, ARCHIVE_INPUTS);
    const struct document_node *names = inputs ? document_get(inputs->root, "left_out") : NULL;
    int r = 0;
    for (size_t i = 0; r == 0 && names && i < names->count; i++)
        r = text_printf(ret, "%s`%s`", i == 0 ? "\nLeft out, because they may hold secrets: " : ", ",
                        names->items[i]->text);
    return r == 0 && names && names->count > 0 ? text_append_string(ret, "\n") : r;
}

/* The result as it would stand on a terminal; then a line each on status, flags and failures. */
static int print_outcome(const struct sealed_content *content, struct text *ret) {
    cleanup(text_clear) struct text lines;
    text_init(&lines, ret->limit);
    struct text_mark mark = text_mark(ret);
    int r = describe_result(content, &lines);
    for (char *line = lines.bytes, *end; lines.length && (end = strchr(line, '\n')); line = end + 1)
        text_printf(ret, "    %.*s\n", (int)(end - line), line);
    text_append_string(ret, lines.length ? "\n" : "");
    text_reset(&lines);
    r = r < 0 ? r : describe_outcome(content, &lines);
    for (char *line = lines.bytes, *end; lines.length && (end = strchr(line, '\n')); line = end + 1)
        text_printf(ret, "- %.*s\n", (int)(end - line), line);
    return r < 0 ? r : text_keep(ret, mark);
}

static int print(const struct sealed_content *content, struct text *ret) {
    const struct staging *staging = content->staging;
    const struct archive_description *description = content->description;
    char started[CLOCK_TEXT_SIZE], ended[CLOCK_TEXT_SIZE];
    static const char *const uses[] = {[ARCHIVE_OF_RUN] = how_to_use,
                                       [ARCHIVE_OF_PREDICTION] = how_to_use_prediction,
                                       [ARCHIVE_IMPORTED] = how_to_use_import};
    const char *kind = archive_kind_name(description->kind);
    clock_format(description->started_ns, started);
    clock_format(description->ended_ns, ended);
    int r = text_printf(ret, "# %s\n\n", description->name);
    r = r == 0 ? print_outcome(content, ret) : r;
    r = r == 0 ? text_printf(ret,
                             "\n%s\n\nA sealed %s of assay %s, run %s.\n"
                             "Started %s, ended %s.\n",
                             description->text, kind, description->engine_version, description->run_id,
                             started, ended)
               : r;
    r = r == 0 ? print_machines(staging, ret) : r;
    r = r == 0 ? text_append_string(ret, "\n## What is in it\n\n") : r;
    for (size_t i = 0; r == 0 && i < archive_place_count; i++) {
        const struct archive_place *place = &archive_places[i];
        const struct staged_file *part = place->in_readme ? staging_find(staging, place->path) : NULL;
        if (part)
            r = text_printf(ret, "- `%s%s`: %s\n", place->path, part->folder ? "/" : "", place->description);
    }
    r = r == 0 ? text_append_string(ret, last_files) : r;
    if (r == 0)
        r = print_left_out(staging, ret);
    if (r == 0)
        r = text_append_string(ret, how_to_open);
    if (r == 0)
        r = text_append_string(ret, uses[description->kind]);
    if (r == 0)
        r = text_printf(ret,
                        "## Cite it\n\n"
                        "%s. Archive of an assay %s, urn:uuid:%s, %s. Licence: %s\n",
                        description->name, kind, description->run_id, ended,
                        description->license ? description->license : ARCHIVE_NO_LICENSE);
    return r;
}

int readme_print(const struct sealed_content *content, struct text *ret) {
    cleanup(text_clear) struct text page;
    text_init(&page, ret->limit);
    int r = print(content, &page);
    return r < 0 ? r : text_append_shown(ret, page.bytes, page.length, true);
}
