#include "archive-format/run.h"

#include "archive-format/name.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAJOR_VERSION = 1 };

#define TEXT(struct_, member_)                                                                               \
    { BIND_ROW(#member_, BIND_TEXT, struct_, member_) }
#define COUNT(key_, struct_, member_)                                                                        \
    { BIND_RANGED(key_, BIND_INTEGER, struct_, member_, 0, INFINITY) }
#define TIMES(struct_)                                                                                       \
    {BIND_ROW("started", BIND_TIME, struct_, started_ns)}, {                                                 \
        BIND_ROW("ended", BIND_TIME, struct_, ended_ns)                                                      \
    }

static const char *const kinds[] = {"run", "prediction", "import", NULL};
static const char *const bests[] = {"most", "least", "none", NULL};

static const struct bind_field engine_fields[] = {TEXT(archive_engine, name), TEXT(archive_engine, version),
                                                  TEXT(archive_engine, commit), TEXT(archive_engine, sha256)};
static const struct bind_field count_fields[] = {
    COUNT("rows", archive_counts, rows),
    COUNT("units_planned", archive_counts, planned),
    COUNT("units_done", archive_counts, done),
    COUNT("units_failed", archive_counts, failed),
    COUNT("units_flagged", archive_counts, flagged),
    COUNT("units_repeated", archive_counts, repeated),
    COUNT("rows_settled", archive_counts, rows_settled),
};
const struct bind_field archive_repeat_fields[ARCHIVE_REPEAT_FIELDS] = {
    {BIND_ROW("ci", BIND_NUMBER, archive_repeat, ci)},
    {BIND_ROW("confidence", BIND_NUMBER, archive_repeat, confidence)},
    COUNT("at_least", archive_repeat, at_least),
    COUNT("at_most", archive_repeat, at_most),
    {BIND_ROW("between", BIND_TEXTS, archive_repeat, between)},
    TEXT(archive_repeat, response),
};
const struct bind_field archive_model_fields[ARCHIVE_MODEL_FIELDS] = {
    {BIND_ROW("method", BIND_TEXT, archive_model, method), .required = true},
    {BIND_ROW("response", BIND_TEXT, archive_model, response), .required = true},
    TEXT(archive_model, terms),
    TEXT(archive_model, table),
    {BIND_ROW("sizes", BIND_TEXTS, archive_model, sizes)},
    {BIND_ROW("by", BIND_TEXTS, archive_model, by)},
    {BIND_ROW("set", BIND_TEXTS, archive_model, set)},
};
const struct bind_field archive_answer_fields[ARCHIVE_ANSWER_FIELDS] = {
    TEXT(archive_answer, response),
    TEXT(archive_answer, unit),
    {BIND_ROW("best", BIND_CHOICE, archive_answer, best), .choices = bests},
    TEXT(archive_answer, lines),
    {BIND_ROW("sizes", BIND_TEXTS, archive_answer, sizes)},
    TEXT(archive_answer, share),
    TEXT(archive_answer, of),
};
static const struct bind_field node_out_fields[] = {
    TEXT(archive_node_out, node),
    TEXT(archive_node_out, why),
    TEXT(archive_node_out, sentence),
    {BIND_ROW("replaced", BIND_BOOLEAN, archive_node_out, replaced)},
};
static const struct bind_field slow_node_fields[] = {TEXT(archive_slow_node, node),
                                                     TEXT(archive_slow_node, sentence)};
static const struct bind_field part_fields[] = {TIMES(archive_part), TEXT(archive_part, status),
                                                COUNT("units_done", archive_part, units_done),
                                                TEXT(archive_part, engine)};
static const struct bind_field phase_fields[] = {TEXT(archive_phase, name), TIMES(archive_phase),
                                                 TEXT(archive_phase, status)};
static const struct bind_field experiment_fields[] = {
    {BIND_ROW("name", BIND_TEXT, archive_run, experiment.name)},
    {BIND_ROW("folder", BIND_TEXT, archive_run, experiment.folder)},
};

static const struct bind_field input_fields[] = {
    TEXT(archive_model_input, name), TEXT(archive_model_input, sha256), TEXT(archive_model_input, run_id),
    TEXT(archive_model_input, experiment)};
static const struct bind_field prediction_model_fields[] = {
    TEXT(archive_prediction_model, role),
    TEXT(archive_prediction_model, member),
    TEXT(archive_prediction_model, file),
    TEXT(archive_prediction_model, sha256),
    TEXT(archive_prediction_model, grade),
    TEXT(archive_prediction_model, verdict),
    {BIND_ROW("inputs", BIND_ITEMS, archive_prediction_model, inputs),
     BIND_STRUCTS(archive_model_input, input_fields)},
};
static const struct bind_field prediction_fields[] = {
    {BIND_ROW("plugin", BIND_TEXT, archive_prediction, plugin), .required = true},
    TEXT(archive_prediction, version),
    COUNT("draws", archive_prediction, draws),
    COUNT("searched", archive_prediction, searched),
    {BIND_ROW("settings", BIND_TEXTS, archive_prediction, settings)},
    {BIND_ROW("models", BIND_ITEMS, archive_prediction, models),
     BIND_STRUCTS(archive_prediction_model, prediction_model_fields)},
    {BIND_ROW("warnings", BIND_TEXTS, archive_prediction, warnings)},
    {BIND_ROW("notes", BIND_TEXTS, archive_prediction, notes)},
};

static const struct bind_field import_fields[] = {
    {BIND_ROW("format", BIND_TEXT, archive_import, format), .required = true},
    TEXT(archive_import, file),
    TEXT(archive_import, sha256),
    TEXT(archive_import, engine),
    {BIND_ROW("kept", BIND_TEXTS, archive_import, kept)},
    {BIND_ROW("notes", BIND_TEXTS, archive_import, notes)},
};

static const struct bind_field origin_fields[] = {
    {BIND_ROW("run_id", BIND_TEXT, archive_origin, run_id), .required = true},
    TEXT(archive_origin, archive),
    TEXT(archive_origin, sha256),
};

static const struct bind_field fields[] = {
    {BIND_ROW("archive_version", BIND_TEXT, archive_run, version)},
    {BIND_ROW("kind", BIND_CHOICE, archive_run, kind), .choices = kinds},
    TEXT(archive_run, run_id),
    TEXT(archive_run, name),
    {BIND_ROW("engine", BIND_MAPPING, archive_run, engine), BIND_STRUCTS(archive_engine, engine_fields)},
    TEXT(archive_run, status),
    TEXT(archive_run, error),
    TIMES(archive_run),
    TEXT(archive_run, seed),
    TEXT(archive_run, generator),
    TEXT(archive_run, order),
    {BIND_ROW("counts", BIND_MAPPING, archive_run, counts), BIND_STRUCTS(archive_counts, count_fields)},
    {BIND_ROW("repeat", BIND_OPTIONAL, archive_run, repeat),
     BIND_STRUCTS(archive_repeat, archive_repeat_fields)},
    {BIND_ROW("nodes", BIND_TEXTS, archive_run, nodes)},
    {BIND_ROW("nodes_out", BIND_ITEMS, archive_run, nodes_out),
     BIND_STRUCTS(archive_node_out, node_out_fields)},
    {BIND_ROW("slow_nodes", BIND_ITEMS, archive_run, slow_nodes),
     BIND_STRUCTS(archive_slow_node, slow_node_fields)},
    TEXT(archive_run, testbed),
    {.key = "experiment", .type = BIND_MAPPING, BIND_FIELDS(experiment_fields), .is_open = true},
    {BIND_ROW("options", BIND_PAIRS, archive_run, options)},
    {BIND_ROW("model", BIND_OPTIONAL, archive_run, model), BIND_STRUCTS(archive_model, archive_model_fields)},
    {BIND_ROW("answer", BIND_OPTIONAL, archive_run, answer),
     BIND_STRUCTS(archive_answer, archive_answer_fields), .scalar = "best"},
    {BIND_ROW("prediction", BIND_OPTIONAL, archive_run, prediction),
     BIND_STRUCTS(archive_prediction, prediction_fields)},
    {BIND_ROW("import", BIND_OPTIONAL, archive_run, import), BIND_STRUCTS(archive_import, import_fields)},
    {BIND_ROW("based_on", BIND_OPTIONAL, archive_run, based_on), BIND_STRUCTS(archive_origin, origin_fields)},
    {BIND_ROW("command", BIND_TEXTS, archive_run, command)},
    {BIND_ROW("parts", BIND_ITEMS, archive_run, parts), BIND_STRUCTS(archive_part, part_fields)},
    {BIND_ROW("phases", BIND_ITEMS, archive_run, phases), BIND_STRUCTS(archive_phase, phase_fields)},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

void archive_engine_describe(struct archive_engine *ret) {
    char sha256[HASH_HEX_SIZE];
    bool is_hashed = hash_file("/proc/self/exe", sha256, NULL, NULL) == 0;
    *ret = (struct archive_engine){.name = xstrdup("assay"),
                                   .version = xstrdup(ASSAY_VERSION),
                                   .commit = ASSAY_COMMIT[0] ? xstrdup(ASSAY_COMMIT) : NULL,
                                   .sha256 = is_hashed ? xstrdup(sha256) : NULL};
}

const char *archive_kind_name(enum archive_kind kind) {
    return kinds[kind];
}

int archive_draw_id(char id[static ARCHIVE_ID_SIZE], struct failure *failure) {
    cleanup(text_clear) struct text drawn;
    text_init(&drawn, 64);
    int r = file_read("/proc/sys/kernel/random/uuid", &drawn, failure);
    if (r == 0)
        snprintf(id, ARCHIVE_ID_SIZE, "%.36s", drawn.bytes);
    return r;
}

static int check_version(const struct document *document, struct failure *failure) {
    const struct document_node *node = document_get(document->root, "archive_version");
    const char *version = node && node->kind == DOCUMENT_TEXT ? node->text : "";
    const char *dot = strchr(version, '.');
    char shown[ARCHIVE_NAME_SHOWN_SIZE];
    uint64_t major, minor;
    if (!dot || !number_parse_uint64(version, (size_t)(dot - version), &major) ||
        !number_parse_uint64(dot + 1, strlen(dot + 1), &minor))
        return bind_refuse(document, node, failure,
                           "run.json has the archive_version '%s'; expected a text such as \"1.0\"",
                           archive_name_show(node && node->text ? node->text : "", shown));
    if (major != MAJOR_VERSION)
        return bind_refuse(
            document, node, failure,
            "the archive is of version %s; this assay reads version %d.x, a newer one is needed", version,
            MAJOR_VERSION);
    return 0;
}

uint64_t archive_run_minor(const struct archive_run *run) {
    const char *minor = strchr(run->version, '.') + 1; /* check_version() has seen it */
    uint64_t number = 0;
    number_parse_uint64(minor, strlen(minor), &number);
    return number;
}

int archive_run_read(const struct document *document, struct archive_run *ret, struct failure *failure) {
    ret->counts.rows_settled = -1;
    int r = check_version(document, failure);
    if (r == 0)
        r = bind_mapping(document, document->root, NULL, fields, FIELD_COUNT, ret, failure);
    if (r == 0 && ret->kind == ARCHIVE_OF_PREDICTION && !ret->prediction)
        r = bind_refuse(document, document->root, failure,
                        "run.json is of the kind 'prediction', and has no member 'prediction'");
    if (r < 0 && failure)
        failure->kind = FAILURE_VERIFICATION; /* it was written like this: not the user's doing */
    return r;
}

int archive_run_write(const char *path, const struct archive_run *run, struct failure *failure) {
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    struct archive_run written = *run;
    written.version = (char *)ARCHIVE_VERSION;
    bind_resolve(fields, FIELD_COUNT, &written, object);
    return json_write_file(path, object, failure);
}

void archive_run_clear(struct archive_run *run) {
    bind_clear(fields, FIELD_COUNT, run);
}
