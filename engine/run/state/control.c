/* The control phase, and the restore phase that takes it back. */
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/nodes/controls.h"
#include "engine/run/nodes/out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Words -----------------------------------------------------------------------------------------------
 */

/* Notes WORDS, and frees them. */
static int tell_kinds(struct run *run, char **words) {
    int r = run_note_kinds(run, (const char *const *)words);
    for (size_t i = 0; i < run->node_count; i++)
        free(words[i]);
    return r;
}

static char *frequency_words(double hz) {
    return text_format("%.3g GHz", hz * 1e-9);
}

/* ---- Files -----------------------------------------------------------------------------------------------
 */

static int write_record(struct run *run, const struct run_node *node, struct failure *failure) {
    return node->control.json ? run_write_node_json(run, node, "controls.json", node->control.json, failure)
                              : 0;
}

static int write_records(struct run *run, struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < run->node_count; i++)
        r = write_record(run, &run->nodes[i], failure);
    return r;
}

/* Every single write, in order; what a later change writes comes after it. */
static int append_writes(struct run *run, const struct run_node *node, const struct text *writes,
                         struct failure *failure) {
    if (writes->length == 0)
        return 0;
    cleanup_free char *folder = run_node_folder(run, node);
    cleanup_free char *name = folder ? file_join(folder, "control-writes.tsv") : NULL;
    return name ? run_append_file(run, name, writes->bytes, writes->length, failure)
                : failure_memory(failure);
}

/* ---- Looking and keeping ---------------------------------------------------------------------------------
 */

static int look(struct run *run, struct failure *failure) {
    struct node_control_state *states = NULL;
    cleanup_free struct failure *failures = NULL;
    int r = node_controls_show(run->group, &states, &failures, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < run->node_count; i++)
        if (failures[i].code == 0 && run_concerns(run, i))
            r = node_control_record_state(&run->nodes[i].control, &states[i]);
    node_control_states_free(states, run->node_count);
    return r < 0 ? failure_memory(failure) : run_merge_failures(run, failures, "controls", failure);
}

/* Durable on the node (the tool's work) and in the run before the first write. */
static int keep(struct run *run, struct failure *failure) {
    cleanup_free struct text *snapshots = xcalloc(run->node_count + 1, sizeof *snapshots);
    cleanup_free struct failure *failures = NULL;
    for (size_t i = 0; i < run->node_count; i++)
        text_init(&snapshots[i], 64 << 20);
    cleanup_free char *label = text_format("run:%s", run->id);
    int r = label ? node_controls_keep(run->group, label, snapshots, &failures, failure)
                  : failure_memory(failure);
    for (size_t i = 0; r == 0 && i < run->node_count; i++) {
        struct run_node *node = &run->nodes[i];
        cleanup_free char *folder = run_node_folder(run, node);
        cleanup_free char *name = folder ? file_join(folder, "controls-before.tsv") : NULL;
        if (failures[i].code < 0 || !run_concerns(run, i))
            continue;
        node->control.kept = true;
        r = name ? run_write_file(run, name, snapshots[i].bytes, snapshots[i].length, failure)
                 : failure_memory(failure);
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

enum { SENTENCE_MOST = 400 };

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
    struct text words;
    text_init(&words, NODE_CONTROLS_LIMIT * (SENTENCE_MOST + 64));
    for (size_t i = 0; i < change->count; i++) {
        const struct node_setting *setting = &change->settings[i];
        /* Whatever the node says, a setting that is bad is said to be. */
        if (is_bad(setting) && rigour_of(run, setting) == rigour)
            text_printf(&words, "%s%.32s: %s: %.*s", words.length ? "; " : "", setting->control,
                        node_setting_status_name(setting->status), SENTENCE_MOST, setting->sentence);
    }
    char *sentence = words.length ? text_take(&words) : NULL;
    text_clear(&words);
    return sentence;
}

static void journal_settings(struct run *run, const struct run_node *node, const struct node_change *change) {
    for (size_t i = 0; i < change->count; i++) {
        const struct node_setting *setting = &change->settings[i];
        journal_begin(run->journal, "control");
        journal_string(run->journal, "node", node->name);
        journal_string(run->journal, "control", setting->control);
        journal_string(run->journal, "asked", setting->asked);
        journal_string(run->journal, "before", setting->before);
        journal_string(run->journal, "after", setting->after);
        journal_string(run->journal, "status", node_setting_status_name(setting->status));
        journal_end(run->journal);
    }
}

static int judge_changes(struct run *run, struct node_change *changes, struct failure *failures, size_t block,
                         struct failure *failure) {
    cleanup_free char **recorded = xcalloc(run->node_count + 1, sizeof *recorded);
    int r = 0;
    for (size_t i = 0; i < run->node_count; i++) {
        struct run_node *node = &run->nodes[i];
        if (failures[i].code < 0 || !run_concerns(run, i))
            continue;
        recorded[i] = complaint(run, &changes[i], CONTROL_BEST_EFFORT);
        cleanup_free char *bad = complaint(run, &changes[i], CONTROL_ERROR);
        if (bad)
            failure_set_kind(&failures[i], FAILURE_EXPERIMENT, -EIO, "%s", bad);
        journal_settings(run, node, &changes[i]);
        if (r == 0 && node_control_record_change(&node->control, &changes[i], block) < 0)
            r = failure_memory(failure);
        if (r == 0)
            r = append_writes(run, node, &changes[i].writes, failure);
    }
    if (tell_kinds(run, recorded) < 0 && r == 0)
        r = failure_memory(failure);
    return r < 0 ? r : run_merge_failures(run, failures, "setting the controls", failure);
}

int run_set_controls(struct run *run, const char *const *assignments, size_t block, struct failure *failure) {
    cleanup_free struct node_change *changes = xcalloc(run->node_count + 1, sizeof *changes);
    cleanup_free struct failure *failures = NULL;
    for (size_t i = 0; i < run->node_count; i++)
        node_change_init(&changes[i]);
    int r = node_controls_set(run->group, assignments, changes, &failures, failure);
    if (r == 0)
        r = judge_changes(run, changes, failures, block, failure);
    for (size_t i = 0; i < run->node_count; i++)
        node_change_clear(&changes[i]);
    return r;
}

/* ---- Proof -----------------------------------------------------------------------------------------------
 */

/* "busy cores run at 2.1 GHz (aperf), as asked" */
static char *describe_speed(const struct node_control_record *record, const struct node_proof *proof,
                            const struct node_speed *speed) {
    cleanup_free char *least = frequency_words(speed->least), *most = frequency_words(speed->most);
    cleanup_free char *from = frequency_words(record->target_min_hz),
                      *to = frequency_words(record->target_max_hz);
    if (!least || !most || !from || !to)
        return NULL;
    bool same = strcmp(least, most) == 0;
    if (record->target_max_hz <= 0)
        return text_format("busy PUs run at %s%s%s (%s)", least, same ? "" : " to ", same ? "" : most,
                           proof->source);
    bool one = strcmp(from, to) == 0 || record->target_min_hz <= 0;
    return text_format("busy PUs run at %s%s%s (%s), asked %s%s%s", least, same ? "" : " to ",
                       same ? "" : most, proof->source, one ? "" : from, one ? "" : " to ", to);
}

static int judge_proof(struct run *run, const struct run_node *node, const struct node_proof *proof,
                       const struct node_speed *speed, char **ret_words, struct failure *ret) {
    char *words = proof->count ? describe_speed(&node->control, proof, speed)
                               : strdup("the frequency under load could not be measured");
    if (!words)
        return failure_memory(ret);
    *ret_words = words;
    if (speed->slow + speed->fast == 0 || run->campaign->controls.mismatch == CONTROL_BEST_EFFORT)
        return 0;
    return failure_set_kind(ret, FAILURE_EXPERIMENT, -ERANGE, "%s; %zu of %zu PUs are off by more than %g %%",
                            words, speed->slow + speed->fast, speed->count,
                            run->campaign->controls.tolerance * 100);
}

int run_prove_controls(struct run *run, size_t block, struct failure *failure) {
    double seconds = run->campaign->controls.proof_seconds;
    if (seconds <= 0)
        return 0;
    struct node_proof *proofs = NULL;
    cleanup_free struct failure *failures = NULL;
    cleanup_free char **words = xcalloc(run->node_count + 1, sizeof *words);
    int r = node_controls_prove(run->group, (unsigned)(seconds * 1e3), &proofs, &failures, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < run->node_count; i++) {
        struct run_node *node = &run->nodes[i];
        if (failures[i].code < 0 || !run_concerns(run, i))
            continue;
        struct node_speed speed =
            node_control_record_speed(&node->control, &proofs[i], run->campaign->controls.tolerance);
        judge_proof(run, node, &proofs[i], &speed, &words[i], &failures[i]);
        if (node_control_record_proof(&node->control, &proofs[i], &speed, block) < 0)
            r = failure_memory(failure);
    }
    node_proofs_free(proofs, run->node_count);
    if (tell_kinds(run, words) < 0 && r == 0)
        r = failure_memory(failure);
    return r < 0 ? r : run_merge_failures(run, failures, "proving the controls", failure);
}

int run_assign_controls(const struct run *run, char **assignments, size_t *count) {
    const struct control_settings *settings = &run->campaign->controls;
    for (size_t i = 0; i < CONTROL_KINDS; i++)
        if (settings->values[i] &&
            !(assignments[(*count)++] = text_format("%s=%s", control_kinds[i].name, settings->values[i])))
            return -ENOMEM;
    return 0;
}

/* ---- The phases ------------------------------------------------------------------------------------------
 */

int run_phase_control(struct run *run, struct failure *failure) {
    const struct control_settings *settings = &run->campaign->controls;
    int64_t begun_ns = clock_monotonic_ns(), proof_ns = 0;
    int r = look(run, failure);
    bool constant = control_settings_any(settings), varying = run_controls_vary(run);
    if (r == 0 && (constant || varying))
        r = keep(run, failure);
    if (r == 0 && constant) {
        char *assignments[CONTROL_KINDS + 1] = {0};
        size_t count = 0;
        r = run_assign_controls(run, assignments, &count) < 0 ? failure_memory(failure) : 0;
        if (r == 0)
            r = run_set_controls(run, (const char *const *)assignments, 0, failure);
        for (size_t i = 0; i < count; i++)
            free(assignments[i]);
        if (r == 0 && !varying) { /* else each block is proved */
            proof_ns = clock_monotonic_ns();
            r = run_prove_controls(run, 0, failure);
            proof_ns = clock_monotonic_ns() - proof_ns;
        }
        if (r == 0)
            r = run_take_facts(run, failure);
    }
    struct failure written = {0};
    int w = write_records(run, &written);
    if (r == 0 && w < 0)
        *failure = written;
    if (constant || varying)
        deadline_took(&run->deadline, DEADLINE_RESTORE, clock_monotonic_ns() - begun_ns - proof_ns);
    return r < 0 ? r : w;
}

/* Those that cannot be reached put themselves back when their lease is over: that is said. */
static void choose_nodes(struct run *run, bool *nodes, size_t *ret_count) {
    cleanup_free size_t *away = calloc(run->node_count + 1, sizeof *away);
    size_t away_count = 0;
    for (size_t i = 0; i < run->node_count; i++) {
        bool there = run->nodes[i].link && node_group_is_there(run->group, i) &&
                     agent_link_state(run->nodes[i].link) == AGENT_LINK_READY;
        nodes[i] = run->nodes[i].control.kept && there;
        /* One that was taken out and still answers is put back as it was, like the others. */
        if (nodes[i])
            node_group_leave_out(run->group, i, false);
        *ret_count += nodes[i];
        if (away && run->nodes[i].control.kept && !there)
            away[away_count++] = i;
    }
    if (away_count == 0)
        return;
    cleanup_free char *who = run_nodes_in_words(run, away, away_count);
    run_note(
        run,
        "%s: out of reach: an agent that is there puts the controls back when its lease is over, and after a "
        "restart nothing is to be put back; 'assay nodes restore -w ...' makes sure",
        who ? who : "some nodes");
}

static void judge_restored(struct run *run, size_t i, const struct node_change *change, struct failure *ret) {
    struct run_node *node = &run->nodes[i];
    journal_begin(run->journal, "controls-restored");
    journal_string(run->journal, "node", node->name);
    journal_integer(run->journal, "files_written", (int64_t)change->files_written);
    journal_integer(run->journal, "files_different", (int64_t)change->files_different);
    if (change->nothing)
        journal_string(run->journal, "sentence", change->nothing);
    journal_end(run->journal);
    node_control_record_restored(&node->control, change, change->nothing);
    if (change->files_different == 0) {
        node->control.kept = false;
        return;
    }
    cleanup_free char *first = strndup(change->different.bytes, strcspn(change->different.bytes, "\n"));
    for (char *at = first; at && (at = strchr(at, '\t'));)
        *at = ' ';
    failure_set(ret, -EIO, "%" PRIu64 " files could not be put back: %s; try 'assay nodes restore'",
                change->files_different, first ? first : "");
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
    cleanup_free bool *nodes = xcalloc(run->node_count + 1, sizeof *nodes);
    cleanup_free struct node_change *changes = xcalloc(run->node_count + 1, sizeof *changes);
    cleanup_free struct failure *failures = NULL;
    size_t count = 0;
    if (run->group)
        choose_nodes(run, nodes, &count);
    if (count == 0)
        return 0;
    for (size_t i = 0; i < run->node_count; i++)
        node_change_init(&changes[i]);
    int r = node_controls_restore(run->group, nodes, false, changes, &failures, failure);
    if (r == -EINTR)
        run_note(run, "interrupted: the agents put the controls back as they leave; 'assay nodes restore' "
                      "does it, or says that it is done");
    struct failure unwritten = {0};
    int w = 0;
    for (size_t i = 0; r == 0 && i < run->node_count; i++)
        if (nodes[i] && failures[i].code == 0) {
            judge_restored(run, i, &changes[i], &failures[i]);
            int one = append_writes(run, &run->nodes[i], &changes[i].writes, w == 0 ? &unwritten : NULL);
            w = w < 0 ? w : one;
        }
    for (size_t i = 0; i < run->node_count; i++)
        node_change_clear(&changes[i]);
    if (r == 0 && w == 0)
        w = write_records(run, &unwritten);
    /* That a node is not as it was weighs more than that the disk is full. */
    if (r == 0)
        r = merge_restored(run, failures, failure);
    if (r == 0 && w < 0)
        *failure = unwritten;
    return r < 0 ? r : w;
}
