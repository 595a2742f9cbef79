/* What a run writes about itself: its inputs before a node is touched, run.json and datapackage.json. */
#include "engine/run/nodes/software.h"
#include "engine/run/run-state.h"

#include "archive-format/datapackage.h"
#include "archive-format/writer.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/run/campaign/plan-describe.h"
#include "engine/run/measure/unit-tables.h"
#include "engine/run/nodes/out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int write_file(struct run *run, const char *name, const struct text *bytes, struct failure *failure) {
    cleanup_free char *path = run_path(run, name);
    return file_replace(path, bytes->bytes, bytes->length, 0666, failure);
}

static int write_json(struct run *run, const char *name, const cJSON *value, struct failure *failure) {
    cleanup_free char *path = run_path(run, name);
    return value ? run_write_json(path, value, failure) : failure_memory(failure);
}

/* ---- datapackage.json ------------------------------------------------------------------------------------
 */

static const struct archive_column unit_columns[] = {
    {"row", ARCHIVE_INTEGER, "", ARCHIVE_ROLE_ID, "row", "line of design.csv, from 1"},
    {"repetition", ARCHIVE_INTEGER, "", ARCHIVE_ROLE_ID, "repetition", "of the row, from 1"},
    {"order", ARCHIVE_INTEGER, "", ARCHIVE_ROLE_ID, "order", "position in the order of measurement, from 1"},
    {"block", ARCHIVE_INTEGER, "", ARCHIVE_ROLE_ID, "block",
     "of units that were measured one after the other in one state of the controls, from 1"},
    {"attempt", ARCHIVE_INTEGER, "", ARCHIVE_ROLE_ID, "attempt",
     "1, or higher where a gate had the unit measured again; all attempts have a line"},
    {"node", ARCHIVE_STRING, "", ARCHIVE_ROLE_ID, "node",
     "host name, or names of all nodes of the unit, folded"},
    {"core", ARCHIVE_STRING, "", ARCHIVE_ROLE_ID, "core", "number of the logical CPU, or all"},
    {"start", ARCHIVE_INTEGER, "ns", ARCHIVE_ROLE_TIME, "start",
     "when the unit began by the node's clock, since 1970-01-01T00:00:00Z"},
    {"start_monotonic", ARCHIVE_INTEGER, "ns", ARCHIVE_ROLE_TIME, "start, monotonic",
     "the same by the node's monotonic clock, which only means something on that node; empty where the "
     "experiment's kernel does not tell"},
};
static const struct archive_column state_columns[] = {
    {"state.frequency", ARCHIVE_NUMBER, "Hz", ARCHIVE_ROLE_COVARIATE, "frequency",
     "mean of the unit's PUs while it ran; empty where it is not known"},
    {"state.temperature", ARCHIVE_NUMBER, "Cel", ARCHIVE_ROLE_COVARIATE, "temperature",
     "of the hottest package at the unit's end; empty where it is not known"},
    {"state.flags", ARCHIVE_STRING, "", ARCHIVE_ROLE_COVARIATE, "flags",
     "gates that the unit did not pass, separated by semicolons"},
};
enum {
    UNIT_COLUMNS = sizeof unit_columns / sizeof *unit_columns,
    STATE_COLUMNS = sizeof state_columns / sizeof *state_columns,
};

static struct archive_column factor_column(const struct design_factor *factor) {
    static const enum archive_column_type types[] = {
        [DESIGN_INTEGER] = ARCHIVE_INTEGER, [DESIGN_NUMBER] = ARCHIVE_NUMBER, [DESIGN_TEXT] = ARCHIVE_STRING};
    return (struct archive_column){
        factor->name,        types[factor->type], factor->type == DESIGN_TEXT ? "" : factor->unit,
        ARCHIVE_ROLE_FACTOR, factor->name,        factor->description};
}

static struct archive_column response_column(const struct experiment_response *response) {
    bool text = response->type == EXPERIMENT_RESPONSE_TEXT;
    return (struct archive_column){response->name, text ? ARCHIVE_STRING : ARCHIVE_NUMBER,
                                   response->unit, ARCHIVE_ROLE_RESPONSE,
                                   response->name, response->description};
}

/* Describes the further tables that are there in TABLES, *COUNT so far: some columns of RESULTS, and their
 * own, in COLUMNS, which has room for them. */
static void describe_tables(const struct run *run, const struct archive_column *results,
                            struct archive_column *columns, struct archive_table *tables, size_t *count) {
    const struct experiment *experiment = run->experiment;
    for (const struct experiment_table *table = experiment->tables;
         table < experiment->tables + experiment->table_count; table++) {
        cleanup_free char *path = run_path(run, table->file);
        if (!file_exists(path))
            continue;
        struct archive_table *described = &tables[(*count)++];
        *described = (struct archive_table){table->file, table->description, columns, 0};
        for (size_t i = 0; i < UNIT_COLUMNS + run->plan->design->column_count; i++)
            if (unit_tables_has(run, i))
                columns[described->column_count++] = results[i];
        for (size_t i = 0; i < table->column_count; i++)
            columns[described->column_count++] = response_column(&table->columns[i]);
        columns += described->column_count;
    }
}

static const struct archive_column why_column = {
    "why",
    ARCHIVE_STRING,
    "",
    ARCHIVE_ROLE_COVARIATE,
    "why",
    "failed (it was tried), lost (its node was), deadline, checkpoint, interrupted, or stopped (the run "
    "failed)"};

int run_record_columns(struct run *run, bool missing, struct failure *failure) {
    const struct experiment *experiment = run->experiment;
    const struct design *design = run->plan->design;
    size_t factors = experiment->factor_count, of_design = design->column_count,
           responses = experiment->response_count,
           count = UNIT_COLUMNS + of_design + responses + STATE_COLUMNS, further = 0;
    for (size_t i = 0; i < experiment->table_count; i++)
        further += UNIT_COLUMNS + of_design + experiment->tables[i].column_count;
    cleanup_free struct archive_column *columns = xcalloc(count + further, sizeof *columns);
    memcpy(columns, unit_columns, sizeof unit_columns);
    for (size_t i = 0; i < of_design; i++)
        columns[UNIT_COLUMNS + i] = factor_column(i < factors ? &experiment->factors[i]
                                                              : control_factor_find(design->columns[i].name));
    for (size_t i = 0; i < responses; i++)
        columns[UNIT_COLUMNS + of_design + i] = response_column(&experiment->responses[i]);
    memcpy(columns + count - STATE_COLUMNS, state_columns, sizeof state_columns);
    /* row, repetition, order, node, core */
    const struct archive_column missing_columns[] = {unit_columns[0], unit_columns[1], unit_columns[2],
                                                     unit_columns[5], unit_columns[6], why_column};
    struct archive_column settled[SETTLING_COLUMNS];
    settling_columns(run->plan, settled);
    struct archive_table tables[4 + EXPERIMENT_TABLES_MOST] = {
        {"results/results.csv", "one line a unit that was measured, in the order of the answers", columns,
         count},
    };
    size_t table_count = 1;
    if (of_design > 0)
        tables[table_count++] = (struct archive_table){"design.csv", "one line a row of the design",
                                                       columns + UNIT_COLUMNS, of_design};
    if (missing)
        tables[table_count++] =
            (struct archive_table){"results/missing.csv", "one line a unit that was planned and is not done",
                                   missing_columns, sizeof missing_columns / sizeof *missing_columns};
    if (run->settling)
        tables[table_count++] = (struct archive_table){
            "results/repeat.csv", "how well each row of the design is known", settled, SETTLING_COLUMNS};
    describe_tables(run, columns, columns + count, tables, &table_count);
    cleanup_free char *path = run_path(run, "datapackage.json");
    return archive_write_datapackage(path, run->campaign->name, tables, table_count, failure);
}

/* ---- Inputs */

static int record_design(struct run *run, struct failure *failure) {
    cleanup(json_cleanup) cJSON *resolved = plan_resolve(run->plan);
    int r = write_json(run, "campaign.resolved.json", resolved, failure);
    if (r < 0 || run->plan->design->column_count == 0)
        return r;
    cleanup(text_clear) struct text table;
    text_init(&table, 1 << 30);
    r = design_append(run->plan->design, NULL, &table, failure);
    return r < 0 ? r : write_file(run, "design.csv", &table, failure);
}

int run_record_plan(struct run *run, struct failure *failure) {
    /* It may have other rows; no place has measured any yet. */
    ledger_free(run->ledger);
    run->ledger = ledger_new(plan_positions(run->plan));
    run->units = ledger_totals(run->ledger);
    int r = record_design(run, failure);
    if (r == 0)
        r = run_commit(run, failure);
    return r < 0 ? r : inputs_take_plan(run->folder, run->plan, failure);
}

int run_record_inputs(struct run *run, struct failure *failure) {
    int r = write_file(run, "campaign.yaml", &run->campaign->bytes, failure);
    if (r == 0)
        r = record_design(run, failure);
    if (r == 0)
        r = run_make_copies(run, failure);
    if (r == 0)
        r = inputs_write(run->folder, run->plan, run->request->overrides, failure);
    if (r == 0)
        r = run_record_columns(run, false, failure);
    return r == 0 ? run_record_run(run, failure) : r;
}

/* ---- run.json --------------------------------------------------------------------------------------------
 */

static void add_texts(cJSON *object, const char *key, const struct bind_texts *texts) {
    cJSON *array = json_add_array(object, key);
    for (size_t i = 0; i < texts->count; i++)
        json_add_string(array, NULL, texts->items[i]);
}

/* What the experiment suggests. One fit for all states of the controls would be of none of them. */
static void add_model(const struct plan *plan, cJSON *object) {
    const struct experiment_model *model = plan->campaign->experiment->model;
    if (!model) {
        json_add_string(object, "model", NULL);
        return;
    }
    cJSON *item = json_add_object(object, "model");
    json_add_string(item, "method", model->method);
    json_add_string(item, "response", model->response);
    if (model->terms)
        json_add_string(item, "terms", model->terms);
    if (model->table)
        json_add_string(item, "table", model->table);
    if (model->sizes.count)
        add_texts(item, "sizes", &model->sizes);
    if (model->set.count)
        add_texts(item, "set", &model->set);
    add_texts(item, "by", &model->by);
    cJSON *by = cJSON_GetObjectItemCaseSensitive(item, "by");
    for (size_t i = 0; i < plan_control_count(plan); i++) {
        char column[CONTROL_VARIABLE_SIZE];
        snprintf(column, sizeof column, CONTROL_PREFIX "%s", plan_control_name(plan, i));
        json_add_string(by, NULL, column);
    }
}

static void add_phases(const struct run *run, cJSON *object) {
    cJSON *phases = json_add_array(object, "phases");
    for (int i = 0; i < RUN_PHASES; i++) {
        const struct run_phase_record *record = &run->phases[i];
        char when[CLOCK_TEXT_SIZE];
        cJSON *item = json_add_object(phases, NULL);
        json_add_string(item, "name", run_phase_names[i]);
        json_add_string(item, "started", record->started_ns ? clock_format(record->started_ns, when) : NULL);
        json_add_string(item, "ended", record->ended_ns ? clock_format(record->ended_ns, when) : NULL);
        json_add_string(item, "status",
                        record->status       ? record->status
                        : record->started_ns ? "running"
                                             : "not reached");
    }
}

static void add_part(cJSON *parts, const struct run_history_part *part) {
    char when[CLOCK_TEXT_SIZE];
    cJSON *item = json_add_object(parts, NULL);
    json_add_string(item, "started", clock_format(part->started_ns, when));
    json_add_string(item, "ended", part->ended_ns ? clock_format(part->ended_ns, when) : NULL);
    json_add_string(item, "status", part->status);
    json_add_uint64(item, "units_done", part->units_done);
    json_add_string(item, "engine", part->engine[0] ? part->engine : NULL);
}

/* Each time that an engine worked on it. */
static void add_parts(const struct run *run, cJSON *object) {
    cJSON *parts = json_add_array(object, "parts");
    for (size_t i = 0; i < run->past.part_count; i++)
        add_part(parts, &run->past.parts[i]);
    struct run_history_part own = {.started_ns = run->part_started_ns,
                                   .ended_ns = run->ended_ns,
                                   .units_done = run->units->done - run->units_before,
                                   .engine = ASSAY_VERSION};
    snprintf(own.status, sizeof own.status, "%s", run_status(run));
    add_part(parts, &own);
}

static void add_outcome(const struct run *run, cJSON *object) {
    char when[CLOCK_TEXT_SIZE], sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
    json_add_string(object, "status", run_status(run));
    if (run->failed)
        failure_describe(&run->why, sentence, sizeof sentence);
    else
        run_describe_ending(run, sentence, sizeof sentence);
    json_add_string(object, "error", sentence[0] ? sentence : NULL);
    json_add_string(object, "started", clock_format(run->started_ns, when));
    json_add_string(object, "ended", run->ended_ns ? clock_format(run->ended_ns, when) : NULL);
}

/* A new item of the array KEY, which is there only when it has any. */
static cJSON *add_item(cJSON *object, const char *key) {
    cJSON *array = cJSON_GetObjectItemCaseSensitive(object, key);
    return json_add_object(array ? array : json_add_array(object, key), NULL);
}

static void add_nodes(const struct run *run, cJSON *object) {
    cJSON *nodes = json_add_array(object, "nodes");
    for (const struct run_node *node = run->nodes; node < run->nodes + run->node_count; node++) {
        if (node->state != NODE_SPARE)
            json_add_string(nodes, NULL, node->name);
        if (node->out) {
            cJSON *item = add_item(object, "nodes_out");
            json_add_string(item, "node", node->name);
            json_add_string(item, "why", node->out);
            json_add_string(item, "sentence", node->out_sentence);
            json_add_boolean(item, "replaced", node->state == NODE_REPLACED);
        }
        if (node->slow) {
            cJSON *item = add_item(object, "slow_nodes");
            json_add_string(item, "node", node->name);
            json_add_string(item, "sentence", node->slow);
        }
    }
}

static void add_counts(const struct run *run, cJSON *object) {
    cJSON *counts = json_add_object(object, "counts");
    json_add_uint64(counts, "rows", run->plan->design->row_count);
    json_add_uint64(counts, "units_planned", run->units_planned);
    json_add_uint64(counts, "units_done", run->units->done);
    json_add_uint64(counts, "units_failed", run->units->failed);
    json_add_uint64(counts, "units_flagged", run->units->flagged);
    json_add_uint64(counts, "units_repeated", run->units->repeated);
    if (run->settling)
        json_add_uint64(counts, "rows_settled", settling_count(run));
}

int run_record_run(struct run *run, struct failure *failure) {
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    if (!object)
        return failure_memory(failure);
    json_add_string(object, "archive_version", "1.3");
    json_add_string(object, "run_id", run->id);
    json_add_string(object, "name", run->campaign->name);
    cJSON *engine = json_add_object(object, "engine");
    json_add_string(engine, "name", "assay");
    json_add_string(engine, "version", ASSAY_VERSION);
    json_add_string(engine, "commit", ASSAY_COMMIT[0] ? ASSAY_COMMIT : NULL);
    add_outcome(run, object);
    plan_add_seed(run->plan, object);
    settling_resolve(run->plan, object);
    add_counts(run, object);
    add_nodes(run, object);
    json_add_string(object, "testbed", run->campaign->testbed.backend->name);
    cJSON *experiment = json_add_object(object, "experiment");
    json_add_string(experiment, "name", run->experiment->name);
    json_add_string(experiment, "folder", run->experiment->folder ? "experiment" : NULL);
    plan_add_options(run->plan, object);
    add_model(run->plan, object);
    cJSON *command = json_add_array(object, "command");
    for (size_t i = 0; run->request->command && run->request->command[i]; i++)
        json_add_string(command, NULL, run->request->command[i]);
    add_parts(run, object);
    add_phases(run, object);
    return write_json(run, "run.json", object, failure);
}

/* ---- seal ------------------------------------------------------------------------------------------------
 */

/* What the engine itself cost, beside the agents': a measured machine that it shares should know. */
static void record_own_cost(struct run *run) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) < 0)
        return;
    journal_begin(run->journal, "engine-cost");
    journal_integer(run->journal, "user_us",
                    (int64_t)usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec);
    journal_integer(run->journal, "system_us",
                    (int64_t)usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec);
    journal_integer(run->journal, "rss_peak_bytes", (int64_t)usage.ru_maxrss * 1024);
    journal_end(run->journal);
}

/* "dgemm on 12 nodes", without spares that nobody needed. */
static char *describe_title(const struct run *run) {
    size_t nodes = 0;
    for (size_t i = 0; i < run->node_count; i++)
        nodes += run->nodes[i].state != NODE_SPARE;
    return nodes == 1 ? xformat("%s on %s", run->campaign->name, run->nodes[0].name)
                      : xformat("%s on %zu nodes", run->campaign->name, nodes);
}

static int seal_folder(struct run *run, char sha256[static HASH_HEX_SIZE], struct failure *failure) {
    char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
    cleanup_free char *title = describe_title(run);
    cleanup(text_clear) struct text command; /* as people type it */
    text_init(&command, 64 << 10);
    if (run->request->command)
        experiment_command_describe((char *const *)run->request->command, &command);
    struct archive_description description = {
        .name = title,
        .text = run->campaign->description ? run->campaign->description
                : run->experiment->summary ? run->experiment->summary
                                           : run->experiment->name,
        .license = run->campaign->license,
        .status = run_status(run),
        .error = run->failed ? failure_describe(&run->why, sentence, sizeof sentence) : NULL,
        .started_ns = run->started_ns,
        .ended_ns = run->ended_ns,
        .run_id = run->id,
        .engine_version = ASSAY_VERSION,
        .command = command.bytes,
        .agent = run->campaign->author,
    };
    return archive_seal(run->folder, run->archive, &description, sha256, failure);
}

int run_phase_seal(struct run *run, struct failure *failure) {
    uint64_t missing = 0;
    unit_tables_write(run);
    int r = run_record_missing(run, &missing, failure); /* and which columns there are */
    if (r < 0)
        return r;
    record_own_cost(run);
    /* The archive's journal ends with this entry; its own phase cannot be in it. */
    run->ended_ns = clock_wall_ns();
    journal_begin(run->journal, "sealing");
    journal_string(run->journal, "status", run_status(run));
    journal_string(run->journal, "archive", file_base_name(run->archive));
    journal_integer(run->journal, "units_done", (int64_t)run->units->done);
    journal_integer(run->journal, "units_failed", (int64_t)run->units->failed);
    journal_integer(run->journal, "units_missing", (int64_t)missing);
    journal_end(run->journal);
    char sha256[HASH_HEX_SIZE];
    r = run_commit(run, failure);
    if (r == 0)
        r = settling_record(run, failure);
    if (r == 0)
        r = software_write(run, failure);
    if (r == 0)
        r = run_record_run(run, failure);
    if (r == 0)
        r = seal_folder(run, sha256, failure);
    if (r < 0)
        return r;
    const struct run_observer *observer = &run->request->observer;
    if (observer->event)
        observer->event(observer->context, &(struct run_event){.kind = RUN_EVENT_SEALED,
                                                               .text = run->archive,
                                                               .sha256 = sha256,
                                                               .units_done = run->units->done,
                                                               .units_failed = run->units->failed,
                                                               .units_total = run->units_planned,
                                                               .seconds_left = -1});
    return 0;
}
