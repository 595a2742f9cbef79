/* The controls of the nodes: the control phase; the state of each block, where the design has columns of
 * controls; and the restore phase. What was found and done is in nodes/NODE/controls.json. */
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/nodes/controls.h"
#include "engine/run/nodes/kinds.h"
#include "engine/run/nodes/out.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The record ------------------------------------------------------------------------------------------
 */

static void forget_expectations(struct node_control_record *record) {
    for (size_t i = 0; i < record->expectation_count; i++)
        free(record->expectations[i]);
    free(take_pointer(record->expectations));
    record->expectation_count = 0;
}

void node_control_record_clear(struct node_control_record *record) {
    forget_expectations(record);
    cJSON_Delete(record->json);
    *record = (struct node_control_record){0};
}

static cJSON *json_of(struct run_node *node) {
    if (!node->control.json)
        node->control.json = cJSON_CreateObject();
    return node->control.json;
}

/* A new item of the list NAME. BLOCK: 0, or the block that it is for. */
static cJSON *add_item(struct run_node *node, const char *name, size_t block) {
    cJSON *json = json_of(node), *array = cJSON_GetObjectItemCaseSensitive(json, name);
    cJSON *item = json_add_object(array ? array : json_add_array(json, name), NULL);
    if (block > 0)
        json_add_uint64(item, "block", block);
    return item;
}

/* Adds TEXT unless it is empty. */
static void add_text(cJSON *object, const char *key, const char *text) {
    if (text && text[0])
        json_add_string(object, key, text);
}

static int write_records(struct run *run, struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < run->node_count; i++)
        if (run->nodes[i].control.json)
            r = run_write_node_json(run, &run->nodes[i], "controls.json", run->nodes[i].control.json,
                                    failure);
    return r;
}

/* Every single write, in order; what a later change writes comes after it. */
static int append_writes(struct run *run, const struct run_node *node, const struct text *writes,
                         struct failure *failure) {
    cleanup_free char *name = run_node_path(run, node, "control-writes.tsv");
    return writes->length ? run_files_append(&run->files, name, writes->bytes, writes->length, failure) : 0;
}

/* ---- Looking and keeping ---------------------------------------------------------------------------------
 */

static void record_state(struct run_node *node, const struct node_control_state *state) {
    cJSON *json = json_of(node);
    json_add_string(json, "boot_id", state->boot_id);
    json_add_string(json, "driver", state->driver);
    if (state->base_hz > 0)
        json_add_double(json, "base_frequency_hz", state->base_hz);
    if (state->max_hz > 0)
        json_add_double(json, "max_frequency_hz", state->max_hz);
    for (size_t i = 0; i < state->count; i++) {
        const struct node_control *control = &state->controls[i];
        cJSON *item = add_item(node, "found", 0);
        json_add_string(item, "control", control->name);
        json_add_string(item, "status", node_control_status_name(control->status));
        json_add_string(item, "value", control->value);
        add_text(item, "possible", control->possible);
        add_text(item, "driver", control->driver);
        add_text(item, "why", control->why);
    }
}

static int look_at_controls(struct run *run, struct failure *failure) {
    struct node_control_state *states = NULL;
    cleanup_free struct failure *failures = NULL;
    int r = node_controls_show(run->group, &states, &failures, failure);
    if (r < 0)
        return r;
    for (struct run_node *node = NULL; (node = run_next_node(run, node));) {
        size_t i = node->number;
        if (failures[i].code == 0)
            record_state(node, &states[i]);
    }
    node_control_states_free(states, run->node_count);
    return run_merge_failures(run, failures, "controls", failure);
}

/* Durable on the node (the tool's work) and in the run before the first write. */
static int keep_controls(struct run *run, struct failure *failure) {
    cleanup_free struct text *snapshots = xcalloc(run->node_count, sizeof *snapshots);
    cleanup_free struct failure *failures = NULL;
    for (size_t i = 0; i < run->node_count; i++)
        text_init(&snapshots[i], 64 << 20);
    cleanup_free char *label = xformat("run:%s", run->id);
    int r = node_controls_keep(run->group, label, snapshots, &failures, failure);
    for (struct run_node *node = NULL; r == 0 && (node = run_next_node(run, node));) {
        size_t i = node->number;
        cleanup_free char *name = run_node_path(run, node, "controls-before.tsv");
        if (failures[i].code < 0)
            continue;
        node->control.kept = true;
        r = run_files_write(&run->files, name, snapshots[i].bytes, snapshots[i].length, failure);
        journal_note(run->journal, "controls-kept", "node", node->name);
    }
    for (size_t i = 0; i < run->node_count; i++)
        text_clear(&snapshots[i]);
    if (r == 0)
        r = run_merge_failures(run, failures, "keeping the controls", failure);
    int committed = run_commit(run, r == 0 ? failure : NULL);
    return r < 0 ? r : committed;
}

/* ---- Setting ---------------------------------------------------------------------------------------------
 */

enum { SENTENCE_MAX = 400 };

/* Daemons that are not installed are stopped as well as daemons can be. */
static bool is_bad(const struct node_setting *setting) {
    if (setting->status == NODE_SETTING_ABSENT && strcmp(setting->control, "daemons") == 0 &&
        strcmp(setting->asked, "stopped") == 0)
        return false;
    return setting->status != NODE_SETTING_DONE && setting->status != NODE_SETTING_UNCHANGED;
}

/* What the campaign says of such an answer. */
static enum control_rigour rigour_of(const struct run *run, const struct node_setting *setting) {
    const struct control_settings *settings = &run->campaign->controls;
    bool unavailable = setting->status == NODE_SETTING_ABSENT || setting->status == NODE_SETTING_READ_ONLY ||
                       setting->status == NODE_SETTING_DENIED;
    /* A value that this node cannot have is no matter of how well it was set. */
    if (setting->status == NODE_SETTING_INVALID)
        return CONTROL_ERROR;
    return unavailable ? settings->unavailable : settings->mismatch;
}

/* The bad answers of one node, of those with the given rigour, in one sentence; NULL if there is none. */
static char *complaint(const struct run *run, const struct node_change *change, enum control_rigour rigour) {
    cleanup(text_clear) struct text words;
    text_init(&words, NODE_CONTROLS_LIMIT * (SENTENCE_MAX + 64));
    for (size_t i = 0; i < change->count; i++) {
        const struct node_setting *setting = &change->settings[i];
        /* Whatever the node says, a setting that is bad is said to be. */
        if (is_bad(setting) && rigour_of(run, setting) == rigour)
            text_printf(&words, "%s%.32s: %s: %.*s", words.length ? "; " : "", setting->control,
                        node_setting_status_name(setting->status), SENTENCE_MAX, setting->sentence);
    }
    return words.length ? text_take(&words) : NULL;
}

/* In the journal, and in the node's record, which takes over what CHANGE expects. */
static void record_change(struct run *run, struct run_node *node, struct node_change *change, size_t block) {
    struct node_control_record *record = &node->control;
    record->target_min_hz = change->target_min_hz;
    record->target_max_hz = change->target_max_hz;
    forget_expectations(record);
    record->expectations = take_pointer(change->expectations);
    record->expectation_count = change->expectation_count;
    change->expectation_count = 0;
    for (size_t i = 0; i < change->count; i++) {
        const struct node_setting *setting = &change->settings[i];
        const char *const members[][2] = {{"control", setting->control},
                                          {"asked", setting->asked},
                                          {"before", setting->before},
                                          {"after", setting->after},
                                          {"status", node_setting_status_name(setting->status)}};
        cJSON *item = add_item(node, "set", block);
        struct journal *journal = run_begin_entry(run, "control", node);
        for (size_t k = 0; k < sizeof members / sizeof *members; k++) {
            json_add_string(item, members[k][0], members[k][1]);
            journal_string(journal, members[k][0], members[k][1]);
        }
        journal_end(journal);
        add_text(item, "sentence", setting->sentence);
    }
}

static int judge_changes(struct run *run, struct node_change *changes, struct failure *failures, size_t block,
                         struct failure *failure) {
    cleanup(node_texts_clear) struct node_texts words = node_texts_new(run->node_count);
    int r = 0;
    for (struct run_node *node = NULL; r == 0 && (node = run_next_node(run, node));) {
        size_t i = node->number;
        if (failures[i].code < 0)
            continue;
        words.items[i] = complaint(run, &changes[i], CONTROL_BEST_EFFORT);
        cleanup_free char *bad = complaint(run, &changes[i], CONTROL_ERROR);
        if (bad)
            failure_set_kind(&failures[i], FAILURE_EXPERIMENT, -EIO, "%s", bad);
        record_change(run, node, &changes[i], block);
        r = append_writes(run, node, &changes[i].writes, failure);
    }
    run_note_kinds(run, &words);
    return r < 0 ? r : run_merge_failures(run, failures, "setting the controls", failure);
}

/* What the campaign wants for all of the run, and, with BLOCK, what that block does: "NAME=VALUE" each. For
 * experiment_arguments_free(). */
static char **make_assignments(const struct run *run, const struct design_block *block) {
    const struct control_settings *settings = &run->campaign->controls;
    size_t count = 0, varying = plan_control_count(run->plan);
    char **assignments = xcalloc(CONTROL_KINDS + varying + 1, sizeof *assignments);
    /* For each block too: a control of the block before may have changed it, or brought PUs that never had
     * it. */
    for (size_t i = 0; i < CONTROL_KINDS; i++)
        if (settings->values[i])
            assignments[count++] = xformat("%s=%s", control_kinds[i].name, settings->values[i]);
    for (size_t i = 0; block && i < varying; i++)
        assignments[count++] =
            xformat("%s=%s", plan_control_name(run->plan, i), plan_control_value(run->plan, block->row, i));
    return assignments;
}

/* Sets them on all nodes, reads back, and judges by what the campaign says of mismatches. NUMBER: 0, or that
 * of the block. */
static int set_controls(struct run *run, const struct design_block *block, size_t number,
                        struct failure *failure) {
    cleanup_free struct node_change *changes = xcalloc(run->node_count, sizeof *changes);
    cleanup_free struct failure *failures = NULL;
    char **assignments = make_assignments(run, block);
    for (size_t i = 0; i < run->node_count; i++)
        node_change_init(&changes[i]);
    int r = node_controls_set(run->group, (const char *const *)assignments, changes, &failures, failure);
    if (r == 0)
        r = judge_changes(run, changes, failures, number, failure);
    for (size_t i = 0; i < run->node_count; i++)
        node_change_clear(&changes[i]);
    experiment_arguments_free(assignments);
    return r;
}

/* ---- Proof -----------------------------------------------------------------------------------------------
 */

/* How fast the busy PUs of a node were. */
struct node_speed {
    double least, mean, most; /* Hz */
    size_t off;               /* how many were off the target */
};

static struct node_speed measure_speed(const struct run *run, const struct node_control_record *record,
                                       const struct node_proof *proof) {
    struct node_speed speed = {.least = INFINITY};
    double tolerance = run->campaign->controls.tolerance;
    for (size_t i = 0; i < proof->count; i++) {
        double hz = proof->hz[i];
        speed.least = fmin(speed.least, hz);
        speed.most = fmax(speed.most, hz);
        speed.mean += hz / (double)proof->count;
        speed.off += (record->target_min_hz > 0 && hz < record->target_min_hz * (1 - tolerance)) ||
                     (record->target_max_hz > 0 && hz > record->target_max_hz * (1 + tolerance));
    }
    return speed;
}

/* "2.1 GHz", "1.2 GHz to 2.1 GHz" */
static char *describe_range(double from_hz, double to_hz) {
    cleanup_free char *from = xformat("%.3g GHz", from_hz * 1e-9), *to = xformat("%.3g GHz", to_hz * 1e-9);
    return strcmp(from, to) == 0 || from_hz <= 0 ? take_pointer(to) : xformat("%s to %s", from, to);
}

/* "busy PUs run at 2.1 GHz (aperf), asked 2.1 GHz" */
static char *describe_speed(const struct node_control_record *record, const struct node_proof *proof,
                            const struct node_speed *speed) {
    if (proof->count == 0)
        return xstrdup("the frequency under load could not be measured");
    cleanup_free char *found = describe_range(speed->least, speed->most),
                      *asked = describe_range(record->target_min_hz, record->target_max_hz);
    bool any = record->target_max_hz > 0;
    return xformat("busy PUs run at %s (%s)%s%s", found, proof->source, any ? ", asked " : "",
                   any ? asked : "");
}

static void record_proof(struct run_node *node, const struct node_proof *proof,
                         const struct node_speed *speed, size_t block) {
    const struct node_control_record *record = &node->control;
    cJSON *item = add_item(node, "proof", block);
    json_add_string(item, "source", proof->source);
    json_add_double(item, "target_min_hz", record->target_min_hz > 0 ? record->target_min_hz : NAN);
    json_add_double(item, "target_max_hz", record->target_max_hz > 0 ? record->target_max_hz : NAN);
    json_add_double(item, "mean_hz", speed->mean);
    cJSON *pus = json_add_array(item, "pus");
    for (size_t i = 0; i < proof->count; i++) {
        cJSON *pu = json_add_object(pus, NULL);
        json_add_uint64(pu, "index", proof->pus[i]);
        json_add_double(pu, "hz", proof->hz[i]);
    }
}

/* All PUs are busy for a moment: are they as fast as was asked? */
static int prove_controls(struct run *run, size_t block, struct failure *failure) {
    const struct control_settings *settings = &run->campaign->controls;
    if (settings->proof_seconds <= 0)
        return 0;
    struct node_proof *proofs = NULL;
    cleanup_free struct failure *failures = NULL;
    cleanup(node_texts_clear) struct node_texts words = node_texts_new(run->node_count);
    int r = node_controls_prove(run->group, (unsigned)(settings->proof_seconds * 1e3), &proofs, &failures,
                                failure);
    if (r < 0)
        return r;
    for (struct run_node *node = NULL; (node = run_next_node(run, node));) {
        size_t i = node->number;
        if (failures[i].code < 0)
            continue;
        struct node_speed speed = measure_speed(run, &node->control, &proofs[i]);
        words.items[i] = describe_speed(&node->control, &proofs[i], &speed);
        record_proof(node, &proofs[i], &speed, block);
        if (speed.off > 0 && settings->mismatch != CONTROL_BEST_EFFORT)
            failure_set_kind(&failures[i], FAILURE_EXPERIMENT, -ERANGE,
                             "%s; %zu of %zu PUs are off by more than %g %%", words.items[i], speed.off,
                             proofs[i].count, settings->tolerance * 100);
    }
    node_proofs_free(proofs, run->node_count);
    run_note_kinds(run, &words);
    return run_merge_failures(run, failures, "proving the controls", failure);
}

/* ---- The phases ------------------------------------------------------------------------------------------
 */

bool run_controls_vary(const struct run *run) {
    return plan_control_count(run->plan) > 0;
}

/* What holds for all of the run; where controls vary, each block is proved. */
static int set_constant(struct run *run, int64_t *proof_ns, struct failure *failure) {
    int r = set_controls(run, NULL, 0, failure);
    int64_t begun_ns = clock_monotonic_ns();
    if (r == 0 && !run_controls_vary(run))
        r = prove_controls(run, 0, failure);
    *proof_ns = clock_monotonic_ns() - begun_ns;
    return r < 0 ? r : run_take_facts(run, failure);
}

int run_phase_control(struct run *run, struct failure *failure) {
    bool constant = control_settings_any(&run->campaign->controls);
    bool any = constant || run_controls_vary(run);
    int64_t begun_ns = clock_monotonic_ns(), proof_ns = 0;
    int r = look_at_controls(run, failure);
    if (r == 0 && any)
        r = keep_controls(run, failure);
    if (r == 0 && constant)
        r = set_constant(run, &proof_ns, failure);
    struct failure written = {0};
    int w = write_records(run, &written);
    if (r == 0 && w < 0)
        *failure = written;
    if (any)
        deadline_took(&run->deadline, DEADLINE_RESTORE, clock_monotonic_ns() - begun_ns - proof_ns);
    return r < 0 ? r : w;
}

int run_set_block(struct run *run, size_t block, struct failure *failure) {
    if (!run_controls_vary(run) || !run_has_time_for_state(run))
        return 0;
    int64_t begun_ns = clock_monotonic_ns();
    /* The sampler knows what is expected when it starts, and which PUs there are. */
    int r = watch_stop(run, failure);
    if (r < 0)
        return r;
    int64_t setting_ns = clock_monotonic_ns();
    r = set_controls(run, &run->plan->order->blocks[block], run->block_number, failure);
    setting_ns = clock_monotonic_ns() - setting_ns;
    if (r == 0)
        r = prove_controls(run, run->block_number, failure);
    if (r == 0)
        r = run_take_facts(run, failure);
    if (r == 0)
        r = watch_start(run, failure);
    if (r == 0)
        r = run_warm_up(run, run->block_number, failure);
    if (r == 0)
        run_take_state_time(run, clock_monotonic_ns() - begun_ns, setting_ns);
    return r;
}

/* ---- Restoring -------------------------------------------------------------------------------------------
 */

/* Those that cannot be reached put themselves back when their lease is over: that is said. Returns how many
 * can be. */
static size_t choose_nodes(struct run *run, bool *nodes) {
    cleanup_free size_t *away = xcalloc(run->node_count, sizeof *away);
    size_t away_count = 0, count = 0;
    for (size_t i = 0; i < run->node_count; i++) {
        const struct run_node *node = &run->nodes[i];
        if (!node->control.kept)
            continue;
        nodes[i] = node->link && node_group_is_there(run->group, i) &&
                   agent_link_state(node->link) == AGENT_LINK_READY;
        count += nodes[i];
        /* One that was taken out and still answers is put back as it was, like the others. */
        if (nodes[i])
            node_group_leave_out(run->group, i, false);
        else
            away[away_count++] = i;
    }
    cleanup_free char *who = run_nodes_in_words(run, away, away_count);
    if (away_count > 0)
        run_note(
            run,
            "%s: out of reach: an agent that is there puts the controls back when its lease is over, and "
            "after a restart nothing is to be put back; 'assay nodes restore -w ...' makes sure",
            who);
    return count;
}

static void judge_restored(struct run *run, struct run_node *node, const struct node_change *change,
                           struct failure *ret) {
    struct journal *journal = run_begin_entry(run, "controls-restored", node);
    journal_integer(journal, "files_written", (int64_t)change->files_written);
    journal_integer(journal, "files_different", (int64_t)change->files_different);
    if (change->nothing)
        journal_string(journal, "sentence", change->nothing);
    journal_end(journal);
    cJSON *object = json_add_object(json_of(node), "restored");
    json_add_uint64(object, "files_written", change->files_written);
    json_add_uint64(object, "files_different", change->files_different);
    add_text(object, "sentence", change->nothing);
    add_text(object, "different", change->different.bytes);
    if (change->files_different == 0) {
        node->control.kept = false;
        return;
    }
    cleanup_free char *first = xstrndup(change->different.bytes, strcspn(change->different.bytes, "\n"));
    for (char *at = first; (at = strchr(at, '\t'));)
        *at = ' ';
    failure_set(ret, -EIO, "%" PRIu64 " files could not be put back: %s; try 'assay nodes restore'",
                change->files_different, first);
}

/* What was lost while it was put back is left to its agent, as choose_nodes() says of others. */
static int merge_restored(struct run *run, struct failure *failures, struct failure *failure) {
    for (size_t i = 0; i < run->node_count; i++)
        if (failures[i].code < 0 && run->nodes[i].out && !node_group_is_there(run->group, i)) {
            run_note(run,
                     "node %s: lost before its controls were put back: its agent does it when its lease "
                     "is over; 'assay nodes restore' makes sure",
                     run->nodes[i].name);
            failures[i].code = 0;
        }
    return node_failures_merge(run->group, failures, "putting the controls back", failure);
}

int run_phase_restore(struct run *run, struct failure *failure) {
    cleanup_free bool *nodes = xcalloc(run->node_count, sizeof *nodes);
    cleanup_free struct node_change *changes = xcalloc(run->node_count, sizeof *changes);
    cleanup_free struct failure *failures = NULL;
    if (!run->group || choose_nodes(run, nodes) == 0)
        return 0;
    for (size_t i = 0; i < run->node_count; i++)
        node_change_init(&changes[i]);
    int r = node_controls_restore(run->group, nodes, false, changes, &failures, failure), w = 0;
    if (r == -EINTR)
        run_note(run, "interrupted: the agents put the controls back as they leave; 'assay nodes restore' "
                      "does it, or says that it is done");
    struct failure unwritten = {0};
    for (size_t i = 0; i < run->node_count; i++) {
        if (r == 0 && nodes[i] && failures[i].code == 0) {
            judge_restored(run, &run->nodes[i], &changes[i], &failures[i]);
            if (w == 0)
                w = append_writes(run, &run->nodes[i], &changes[i].writes, &unwritten);
        }
        node_change_clear(&changes[i]);
    }
    if (r < 0)
        return r;
    if (w == 0)
        w = write_records(run, &unwritten);
    /* That a node is not as it was weighs more than that the disk is full. */
    r = merge_restored(run, failures, failure);
    if (r == 0 && w < 0)
        *failure = unwritten;
    return r < 0 ? r : w;
}
