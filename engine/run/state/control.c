/* The controls of the nodes: the control phase; the state of each block, where the design has columns of
 * controls; and the restore phase. What was found and done is in nodes/NODE/controls.json. */
#include "archive-format/layout.h"
#include "engine/run/state/state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/remote/nodes/controls.h"
#include "engine/run/nodes/kinds.h"
#include "engine/run/nodes/reservation.h"
#include "engine/run/state/observed.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The record ------------------------------------------------------------------------------------------
 */

static void forget_expectations(struct node_control_record *record) {
    free(take_pointer(record->expectations));
    record->expectation_count = 0;
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

/* Writes controls.json of every node that has one. */
static int write_records(struct node_set *set, struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < set->count; i++)
        if (set->items[i].control.json)
            r = record_write_node_json(set->record, set->items[i].name, ARCHIVE_NODE_CONTROLS,
                                       set->items[i].control.json, failure);
    return r;
}

/* Appends every write to a control file, in order, to the node's control-writes.tsv. */
static int append_writes(struct node_set *set, const struct run_node *node, const struct text *writes,
                         struct failure *failure) {
    cleanup_free char *name = node_set_path(set, node, "control-writes.tsv");
    return writes->length
               ? run_files_append(&set->record->files, name, writes->bytes, writes->length, failure)
               : 0;
}

/* ---- Looking and keeping ---------------------------------------------------------------------------------
 */

/* Records the controls as they were found, in the node's controls.json. */
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

/* Reads and records the controls of all nodes. */
static int read_controls(struct node_set *set, struct failure *failure) {
    struct node_control_state *states = NULL;
    cleanup_free struct failure *failures = NULL;
    int r = node_controls_show(set->group, &states, &failures, failure);
    if (r < 0)
        return r;
    for (struct run_node *node = NULL; (node = node_set_next(set, node));) {
        size_t i = node->number;
        if (failures[i].code == 0)
            record_state(node, &states[i]);
    }
    observed_note(set, states);
    node_control_states_free(states, set->count);
    return node_set_merge_failures(set, failures, "controls", failure);
}

/* Stores a snapshot of the settings of all controls on each node and in the run's folder, before the first
 * one is changed; both are durable on return. A node that fails may be taken out of the run
 * (node_set_merge_failures). */
static int save_controls(struct node_set *set, struct failure *failure) {
    cleanup_free struct text *snapshots = xcalloc(set->count, sizeof *snapshots);
    cleanup_free struct failure *failures = NULL;
    for (size_t i = 0; i < set->count; i++)
        text_init(&snapshots[i], 64 << 20);
    cleanup_free char *label = xformat("run:%s", set->record->id);
    int r = node_controls_keep(set->group, label, snapshots, &failures, failure);
    for (struct run_node *node = NULL; r == 0 && (node = node_set_next(set, node));) {
        size_t i = node->number;
        cleanup_free char *name = node_set_path(set, node, ARCHIVE_NODE_CONTROLS_BEFORE);
        if (failures[i].code < 0)
            continue;
        node->control.kept = true;
        r = run_files_write(&set->record->files, name, snapshots[i].bytes, snapshots[i].length, failure);
        journal_note(set->record->journal, "controls-kept", "node", node->name);
    }
    for (size_t i = 0; i < set->count; i++)
        text_clear(&snapshots[i]);
    if (r == 0)
        r = node_set_merge_failures(set, failures, "saving the controls", failure);
    int committed = record_commit(set->record, r == 0 ? failure : NULL);
    return r < 0 ? r : committed;
}

/* ---- Setting ---------------------------------------------------------------------------------------------
 */

enum { SENTENCE_MAX = 400 };

/* A daemon that is not installed counts as stopped. */
static bool is_bad(const struct node_setting *setting) {
    if (setting->status == NODE_SETTING_ABSENT && strcmp(setting->control, "daemons") == 0 &&
        strcmp(setting->asked, "stopped") == 0)
        return false;
    return setting->status != NODE_SETTING_DONE && setting->status != NODE_SETTING_UNCHANGED;
}

static bool is_unavailable(const struct node_setting *setting) {
    return setting->status == NODE_SETTING_ABSENT || setting->status == NODE_SETTING_READ_ONLY ||
           setting->status == NODE_SETTING_DENIED;
}

/* How the campaign takes a bad SETTING. A value that the node cannot have is always an error. */
static enum control_rigour rigour_of(const struct node_set *set, const struct node_setting *setting) {
    const struct control_settings *settings = &set->campaign->controls;
    /* A value that this node cannot have is always an error. */
    if (setting->status == NODE_SETTING_INVALID)
        return CONTROL_ERROR;
    return is_unavailable(setting) ? settings->unavailable : settings->mismatch;
}

/* The settings of one node that were not made and count as RIGOUR, in a sentence; the caller frees. NULL:
 * none. *RET_UNAVAILABLE: the node does not have any of these controls, or does not let us set them. */
static char *describe_bad_settings(const struct node_set *set, const struct node_change *change,
                                   enum control_rigour rigour, bool *ret_unavailable) {
    cleanup(text_clear) struct text words;
    *ret_unavailable = true;
    text_init(&words, NODE_CONTROLS_LIMIT * (SENTENCE_MAX + 64));
    for (size_t i = 0; i < change->count; i++) {
        const struct node_setting *setting = &change->settings[i];
        /* A bad setting is reported even when the node gave no reason. */
        if (!is_bad(setting) || rigour_of(set, setting) != rigour)
            continue;
        *ret_unavailable = *ret_unavailable && is_unavailable(setting);
        text_printf(&words, "%s%.32s: %s: %.*s", words.length ? "; " : "", setting->control,
                    node_setting_status_name(setting->status), SENTENCE_MAX, setting->sentence);
    }
    if (words.length && *ret_unavailable && rigour == CONTROL_ERROR)
        text_append_string(&words, "; 'unavailable: best-effort' in 'controls' measures without it");
    return words.length ? text_take(&words) : NULL;
}

/* Records a CHANGE in the journal and in the node's record, which then owns the expectations of CHANGE. */
static void record_change(struct node_set *set, struct run_node *node, struct node_change *change,
                          size_t block) {
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
        struct journal *journal = node_set_begin_entry(set, "control", node);
        for (size_t k = 0; k < sizeof members / sizeof *members; k++) {
            json_add_string(item, members[k][0], members[k][1]);
            journal_string(journal, members[k][0], members[k][1]);
        }
        journal_end(journal);
        add_text(item, "sentence", setting->sentence);
    }
}

/* Records what was set on each node. Bad settings are a note (best effort) or fail the node (error), as the
 * campaign says. */
static int check_changes(struct node_set *set, struct node_change *changes, struct failure *failures,
                         size_t block, struct failure *failure) {
    cleanup(node_texts_clear) struct node_texts words = node_texts_new(set->count);
    int r = 0;
    for (struct run_node *node = NULL; r == 0 && (node = node_set_next(set, node));) {
        size_t i = node->number;
        if (failures[i].code < 0)
            continue;
        bool unavailable;
        words.items[i] = describe_bad_settings(set, &changes[i], CONTROL_BEST_EFFORT, &unavailable);
        cleanup_free char *bad = describe_bad_settings(set, &changes[i], CONTROL_ERROR, &unavailable);
        bool is_input = unavailable && set->record->phase < RUN_MEASURE;
        if (bad)
            failure_set_kind(&failures[i], is_input ? FAILURE_INPUT : FAILURE_EXPERIMENT, -EIO, "%s", bad);
        record_change(set, node, &changes[i], block);
        r = append_writes(set, node, &changes[i].writes, failure);
    }
    node_set_note_grouped(set, &words);
    return r < 0 ? r : node_set_merge_failures(set, failures, "setting the controls", failure);
}

/* The settings "NAME=VALUE" for the whole run and, with BLOCK, those of the block; for
 * experiment_arguments_free(). Those for the run are repeated for each block, whose controls may change them.
 */
static char **make_assignments(const struct node_set *set, const struct design_block *block) {
    const struct control_settings *settings = &set->campaign->controls;
    size_t count = 0, varying = plan_control_count(set->plan);
    char **assignments = xcalloc(CONTROL_KINDS + varying + 1, sizeof *assignments);
    /* For each block too: a control of the block before may have changed it, or brought PUs that never had
     * it. */
    for (size_t i = 0; i < CONTROL_KINDS; i++)
        if (settings->values[i])
            assignments[count++] = xformat("%s=%s", control_kinds[i].name, settings->values[i]);
    for (size_t i = 0; block && i < varying; i++)
        assignments[count++] =
            xformat("%s=%s", plan_control_name(set->plan, i), plan_control_value(set->plan, block->row, i));
    return assignments;
}

/* Sets the controls on all nodes, reads them back, and reports mismatches as the campaign says. NUMBER: the
 * block's, 0 for the run. */
static int set_controls(struct node_set *set, const struct design_block *block, size_t number,
                        struct failure *failure) {
    cleanup_free struct node_change *changes = xcalloc(set->count, sizeof *changes);
    cleanup_free struct failure *failures = NULL;
    char **assignments = make_assignments(set, block);
    for (size_t i = 0; i < set->count; i++)
        node_change_init(&changes[i]);
    int r = node_controls_set(set->group, (const char *const *)assignments, changes, &failures, failure);
    if (r == 0)
        r = check_changes(set, changes, failures, number, failure);
    for (size_t i = 0; i < set->count; i++)
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

/* The least, greatest and mean frequency of the busy PUs, and how many are off the target by more than the
 * tolerance. */
static struct node_speed measure_speed(const struct node_set *set, const struct node_control_record *record,
                                       const struct node_proof *proof) {
    struct node_speed speed = {.least = INFINITY};
    double tolerance = set->campaign->controls.tolerance;
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
        return xstrdup("cannot measure the frequency under load");
    cleanup_free char *found = describe_range(speed->least, speed->most),
                      *asked = describe_range(record->target_min_hz, record->target_max_hz);
    bool any = record->target_max_hz > 0;
    return xformat("busy PUs run at %s (%s)%s%s", found, proof->source, any ? ", asked " : "",
                   any ? asked : "");
}

/* Records the frequencies of the busy PUs, and what was asked, in the node's controls.json. */
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

/* Keeps all PUs busy for a moment and compares their frequency with what was asked. A mismatch fails the
 * node, unless the campaign takes it as best effort. */
static int prove_controls(struct node_set *set, size_t block, struct failure *failure) {
    const struct control_settings *settings = &set->campaign->controls;
    if (settings->proof_seconds <= 0)
        return 0;
    struct node_proof *proofs = NULL;
    cleanup_free struct failure *failures = NULL;
    cleanup(node_texts_clear) struct node_texts words = node_texts_new(set->count);
    int r = node_controls_prove(set->group, (unsigned)(settings->proof_seconds * 1e3), &proofs, &failures,
                                failure);
    if (r < 0)
        return r;
    for (struct run_node *node = NULL; (node = node_set_next(set, node));) {
        size_t i = node->number;
        if (failures[i].code < 0)
            continue;
        struct node_speed speed = measure_speed(set, &node->control, &proofs[i]);
        words.items[i] = describe_speed(&node->control, &proofs[i], &speed);
        record_proof(node, &proofs[i], &speed, block);
        if (speed.off > 0 && settings->mismatch != CONTROL_BEST_EFFORT)
            failure_set_kind(&failures[i], FAILURE_EXPERIMENT, -ERANGE,
                             "%s; %zu of %zu PUs are off by more than %g %%", words.items[i], speed.off,
                             proofs[i].count, settings->tolerance * 100);
    }
    node_proofs_free(proofs, set->count);
    node_set_note_grouped(set, &words);
    return node_set_merge_failures(set, failures, "checking the controls under load", failure);
}

/* ---- The phases ------------------------------------------------------------------------------------------
 */

bool controls_vary(const struct node_set *set) {
    return plan_control_count(set->plan) > 0;
}

/* Sets the controls that hold for the whole run, and proves them unless each block is proved. *PROOF_NS: how
 * long the proof took. */
static int set_constant(struct node_set *set, int64_t *proof_ns, struct failure *failure) {
    int r = set_controls(set, NULL, 0, failure);
    int64_t begun_ns = clock_monotonic_ns();
    if (r == 0 && !controls_vary(set))
        r = prove_controls(set, 0, failure);
    *proof_ns = clock_monotonic_ns() - begun_ns;
    return r < 0 ? r : node_set_read_facts(set, failure);
}

/* The control phase: reads, saves and sets the controls. The records are written even if setting fails. */
int controls_begin(struct node_set *set, struct failure *failure) {
    bool constant = control_settings_any(&set->campaign->controls);
    bool any = constant || controls_vary(set);
    int64_t begun_ns = clock_monotonic_ns(), proof_ns = 0;
    int r = read_controls(set, failure);
    if (r == 0 && any)
        r = save_controls(set, failure);
    if (r == 0 && constant)
        r = set_constant(set, &proof_ns, failure);
    struct failure written = {0};
    int w = write_records(set, &written);
    if (r == 0 && w < 0)
        *failure = written;
    if (any)
        deadline_took(&set->deadline, DEADLINE_RESTORE, clock_monotonic_ns() - begun_ns - proof_ns);
    return r < 0 ? r : w;
}

/* Brings all nodes into the state of BLOCK. The sampler is stopped first: it must know the PUs and the
 * expected values when it starts. */
int controls_set_block(struct watch *watch, const struct design_block *block, size_t number,
                       struct failure *failure) {
    struct node_set *set = watch->set;
    if (!controls_vary(set) || !reservation_has_time_for_state(set))
        return 0;
    int64_t begun_ns = clock_monotonic_ns();
    /* The sampler knows what is expected when it starts, and which PUs there are. */
    int r = watch_stop(watch, failure);
    if (r < 0)
        return r;
    int64_t setting_ns = clock_monotonic_ns();
    r = set_controls(set, block, number, failure);
    setting_ns = clock_monotonic_ns() - setting_ns;
    if (r == 0)
        r = prove_controls(set, number, failure);
    if (r == 0)
        r = node_set_read_facts(set, failure);
    if (r == 0)
        r = watch_start(watch, failure);
    if (r == 0)
        r = warm_up(watch, number, failure);
    if (r == 0)
        reservation_add_state_time(set, clock_monotonic_ns() - begun_ns, setting_ns);
    return r;
}

/* ---- Restoring -------------------------------------------------------------------------------------------
 */

/* Sets NODES[i] for nodes with saved controls whose agents answer, also those that were taken out; returns
 * their number. Unreachable nodes are noted: their agents restore when the lease expires. */
static size_t choose_nodes_to_restore(struct node_set *set, bool *nodes) {
    cleanup_free size_t *away = xcalloc(set->count, sizeof *away);
    size_t away_count = 0, count = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct run_node *node = &set->items[i];
        if (!node->control.kept)
            continue;
        nodes[i] = node->link && node_group_is_there(set->group, i) &&
                   agent_link_state(node->link) == AGENT_LINK_READY;
        count += nodes[i];
        /* One that was taken out and still answers is put back as it was, like the others. */
        if (nodes[i])
            node_group_leave_out(set->group, i, false);
        else
            away[away_count++] = i;
    }
    cleanup_free char *who = node_set_describe(set, away, away_count);
    if (away_count > 0)
        record_note(set->record, NODE_SET_UNREACHABLE_SENTENCE, who);
    return count;
}

/* Journals and records what was restored. Files that could not be set back are a failure, in RET. */
static void note_restored(struct node_set *set, struct run_node *node, const struct node_change *change,
                          struct failure *ret) {
    struct journal *journal = node_set_begin_entry(set, "controls-restored", node);
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

/* The failures of restoring, merged. A node that was lost meanwhile does not count: its agent restores it. */
static int merge_restored(struct node_set *set, struct failure *failures, struct failure *failure) {
    for (size_t i = 0; i < set->count; i++)
        if (failures[i].code < 0 && set->items[i].left_reason && !node_group_is_there(set->group, i)) {
            record_note(set->record, "node " NODE_SET_UNREACHABLE_SENTENCE, set->items[i].name);
            failures[i].code = 0;
        }
    return node_failures_merge(set->group, failures, "restoring the controls", failure);
}

/* The restore phase. That a node is not restored is a more important failure than that its record cannot be
 * written. */
int controls_restore(struct node_set *set, struct failure *failure) {
    cleanup_free bool *nodes = xcalloc(set->count, sizeof *nodes);
    cleanup_free struct node_change *changes = xcalloc(set->count, sizeof *changes);
    cleanup_free struct failure *failures = NULL;
    if (!set->group || choose_nodes_to_restore(set, nodes) == 0)
        return 0;
    for (size_t i = 0; i < set->count; i++)
        node_change_init(&changes[i]);
    int r = node_controls_restore(set->group, nodes, false, changes, &failures, failure), w = 0;
    if (r == -EINTR)
        record_note(set->record, "interrupted: the agents restore the controls when they end; check "
                                 "with 'assay nodes restore'");
    struct failure unwritten = {0};
    for (size_t i = 0; i < set->count; i++) {
        if (r == 0 && nodes[i] && failures[i].code == 0) {
            note_restored(set, &set->items[i], &changes[i], &failures[i]);
            if (w == 0)
                w = append_writes(set, &set->items[i], &changes[i].writes, &unwritten);
        }
        node_change_clear(&changes[i]);
    }
    if (r < 0)
        return r;
    if (w == 0)
        w = write_records(set, &unwritten);
    /* That a node is not as it was weighs more than that the disk is full. */
    r = merge_restored(set, failures, failure);
    if (r == 0 && w < 0)
        *failure = unwritten;
    return r < 0 ? r : w;
}
