/* assay design next: the experiment whose factors the rows must have. */
#include "engine/command-line/design-next.h"

#include "archive-format/reader.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <stdlib.h>
#include <string.h>

enum { DESCRIPTION_BYTES_MAX = 4 << 20 };

static bool ends_in(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

/* From an experiment.yaml, or from a campaign that names one or has one in it. Takes DOCUMENT over. */
static int take_document(struct next_design *next, struct document *document, const char *folder,
                         struct failure *failure) {
    next->document = document;
    const struct document_node *root = document->root, *node = document_get(root, "experiment");
    if (!node)
        return experiment_from_node(document, root, folder, &next->experiment, failure);
    if (node->kind == DOCUMENT_MAPPING)
        return experiment_from_node(document, node, folder, &next->experiment, failure);
    if (node->kind != DOCUMENT_TEXT)
        return failure_input(failure, document->file, node->line, node->column,
                             "'experiment' is %s, expected a name, a path, or an experiment written in place",
                             document_kind_name(node->kind));
    return experiment_find(node->text, folder, &next->installation, document->file, node->line, node->column,
                           &next->experiment, failure);
}

static int read_yaml(struct next_design *next, const char *path, struct failure *failure) {
    struct document *document = NULL;
    int r = document_read_yaml(path, &document, failure);
    cleanup_free char *folder = strndup(path, (size_t)(file_base_name(path) - path));
    if (r == 0 && !folder) {
        document_free(document);
        return failure_memory(failure);
    }
    return r < 0 ? r : take_document(next, document, folder[0] ? folder : ".", failure);
}

/* The experiment's own description, or the campaign that it is written in; NULL: the archive has neither. */
static const char *find_description(struct archive_reader *archive) {
    static const char *const members[] = {"experiment/experiment.yaml", "campaign.yaml"};
    size_t index;
    return archive_find(archive, members[0], &index)   ? members[0]
           : archive_find(archive, members[1], &index) ? members[1]
                                                       : NULL;
}

static int read_archive(struct next_design *next, const char *path, struct archive_reader *archive,
                        struct failure *failure) {
    const char *member = find_description(archive);
    if (!member)
        return failure_input(failure, path, 0, 0, "the archive has neither its experiment nor its campaign");
    cleanup(text_clear) struct text text;
    text_init(&text, DESCRIPTION_BYTES_MAX);
    cleanup_free char *name = xformat("%s:%s", path, member);
    struct document *document = NULL;
    int r = archive_read_member(archive, member, &text, failure);
    r = r < 0 ? r : document_parse_yaml(name, text.bytes, text.length, &document, failure);
    return r < 0 ? r : take_document(next, document, ".", failure);
}

static void forget(struct next_design *next) {
    experiment_free(next->experiment);
    document_free(next->document);
    next->experiment = NULL;
    next->document = NULL;
}

static int keep_place(struct next_design *next, const char *place) {
    next->experiment_from = xstrdup(place);
    return 0;
}

/* Whether the archive at PATH is there and is the run RUN_ID; if its experiment cannot be had from it, that
 * is noted, since others may know it. */
static int try_archive(struct next_design *next, const char *path, const char *run_id,
                       struct failure *failure) {
    cleanup(archive_close_reader) struct archive_reader *archive = NULL;
    struct failure why = {0};
    if (!file_exists(path) || archive_open(path, &archive, &why) < 0)
        return 0;
    const char *found = archive_run_text(archive, "run_id", NULL);
    if (!found || strcmp(found, run_id) != 0 || !find_description(archive))
        return 0;
    if (read_archive(next, path, archive, &why) == 0)
        return keep_place(next, path);
    forget(next);
    char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE + 4];
    failure_describe(&why, sentence, sizeof sentence);
    int r = next_design_note(next, "the experiment in '%s' cannot be used: %.600s", path, sentence);
    return r < 0 ? failure_memory(failure) : 0;
}

static int try_archives(struct next_design *next, struct failure *failure) {
    cleanup_free char *folder =
        strndup(next->model_path, (size_t)(file_base_name(next->model_path) - next->model_path));
    if (!folder)
        return failure_memory(failure);
    int r = 0;
    for (size_t i = 0; r == 0 && !next->experiment && i < next->fit->input_count; i++) {
        const struct model_fit_input *input = &next->fit->inputs[i];
        if (!input->file || !input->run_id || strchr(input->file, '/'))
            continue;
        cleanup_free char *beside = xformat("%s%s", folder, input->file);
        r = try_archive(next, beside, input->run_id, failure);
        if (r == 0 && !next->experiment && folder[0])
            r = try_archive(next, input->file, input->run_id, failure);
    }
    return r;
}

/* An experiment that is installed, by the name that the model has of it. */
static int try_installed(struct next_design *next) {
    for (size_t i = 0; i < next->fit->input_count; i++) {
        const char *name = next->fit->inputs[i].experiment;
        struct failure why = {0};
        if (!name || strchr(name, '/') ||
            experiment_find(name, ".", &next->installation, NULL, 0, 0, &next->experiment, &why) < 0)
            continue;
        return keep_place(next, name);
    }
    return 0;
}

static int read_named(struct next_design *next, const char *name, struct failure *failure) {
    int r;
    if (ends_in(name, ".zip")) {
        cleanup(archive_close_reader) struct archive_reader *archive = NULL;
        r = archive_open(name, &archive, failure);
        r = r < 0 ? r : read_archive(next, name, archive, failure);
    } else if (ends_in(name, ".yaml") || ends_in(name, ".yml")) {
        r = read_yaml(next, name, failure);
    } else {
        r = experiment_find(name, ".", &next->installation, "--experiment", 0, 0, &next->experiment, failure);
    }
    return r < 0 ? r : keep_place(next, name);
}

int next_design_find_experiment(struct next_design *next, struct failure *failure) {
    const char *name = verb_value(next->arguments, "--experiment");
    bool none = name && strcmp(name, "none") == 0;
    int r = name && !none ? read_named(next, name, failure) : 0;
    if (r == 0 && !name)
        r = try_archives(next, failure);
    if (r == 0 && !name && !next->experiment)
        r = try_installed(next);
    if (r == 0 && next->experiment)
        next->factors = (struct design_factors){.items = next->experiment->factors,
                                                .count = next->experiment->factor_count,
                                                .file = next->experiment->file};
    return r;
}
