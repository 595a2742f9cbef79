#include "archive-format/layout.h"
#include "engine/run/nodes/nodes.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/run/nodes/kinds.h"
#include "engine/run/nodes/placement.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void node_set_enter(const struct node_set *set, struct run_node *node, enum node_state state) {
    node->state = state;
    if (set->group)
        node_group_leave_out(set->group, node->number, !node_set_has(set, node->number));
}

bool run_node_is_in(const struct run_node *node) {
    return node->state == NODE_IN || node->state == NODE_LATE || node->state == NODE_CATCHING_UP;
}

struct run_node *node_set_find(const struct node_set *set, const char *name) {
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->items[i].name, name) == 0)
            return &set->items[i];
    return NULL;
}

char *node_set_path(const struct node_set *set, const struct run_node *node, const char *file) {
    cleanup_free char *folder = archive_node_folder(node->name, set->record->part);
    return xformat("%s/%s", folder, file);
}

bool node_set_has(const struct node_set *set, size_t node) {
    return run_node_is_in(&set->items[node]) && (!set->joining || set->joining == &set->items[node]);
}

struct run_node *node_set_next(const struct node_set *set, const struct run_node *node) {
    for (size_t i = node ? node->number + 1 : 0; i < set->count; i++)
        if (node_set_has(set, i))
            return &set->items[i];
    return NULL;
}

struct journal *node_set_begin_entry(const struct node_set *set, const char *event,
                                     const struct run_node *node) {
    journal_begin(set->record->journal, event);
    journal_string(set->record->journal, "node", node->name);
    return set->record->journal;
}

void node_set_note_entry(const struct node_set *set, const char *event, const struct run_node *node,
                         const char *key, const char *value) {
    journal_string(node_set_begin_entry(set, event, node), key, value);
    journal_end(set->record->journal);
}

size_t node_set_count_in(const struct node_set *set) {
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++)
        count += run_node_is_in(&set->items[i]);
    return count;
}

/* ---- Taking out ------------------------------------------------------------------------------------------
 */

/* Spares that wait count as left: they are brought in. */
static size_t count_left(const struct node_set *set) {
    size_t count = node_set_count_in(set) - 1;
    for (size_t i = 0; i < set->count; i++)
        count += set->items[i].state == NODE_SPARE;
    return count;
}

/* 0 if the run can continue without NODE; else FAILURE says why not. From collect on, and in a run that ends,
 * it always can. */
static int check_loss(const struct node_set *set, const struct run_node *node, const char *word,
                      const struct failure *why, struct failure *failure) {
    const struct node_loss_settings *settings = &set->campaign->node_loss;
    size_t left = count_left(set);
    if (settings->action == NODE_LOSS_ABORT) {
        *failure = *why;
        return why->code;
    }
    if (left >= (size_t)settings->at_least || set->record->phase >= RUN_COLLECT || set->record->failed ||
        set->record->interrupted)
        return 0;
    if (left == 0)
        return failure_set_kind(failure, why->kind, why->code,
                                "no node is left (has the reservation ended?); the last was %s, %s: %s",
                                node->name, word, why->text);
    return failure_set_kind(failure, why->kind, why->code,
                            "without node %s %zu %s left, but 'node-loss' needs at least %lld; the "
                            "node is %s: %s",
                            node->name, left, left == 1 ? "is" : "are", (long long)settings->at_least, word,
                            why->text);
}

/* Takes NODE out of the run. A node that is joining in place of a lost one gets the reason "unfit", so that
 * nobody is brought in for it. */
int node_set_take_out(struct node_set *set, struct run_node *node, const char *word,
                      const struct failure *why, struct failure *failure) {
    struct failure ending = {0};
    if (!run_node_is_in(node))
        return 0;
    if (node == set->joining) /* however it was lost: nobody is to measure in its place */
        word = NODE_OUT_UNFIT;
    if (check_loss(set, node, word, why, &ending) < 0) {
        if (set->loss.code == 0)
            set->loss = ending;
        if (failure)
            *failure = ending;
        return ending.code;
    }
    node_set_enter(set, node, NODE_OUT);
    node->left_reason = word;
    node->out_sentence = xstrdup(why->text);
    struct journal *journal = node_set_begin_entry(set, "node-out", node);
    journal_string(journal, "why", word);
    journal_string(journal, "sentence", why->text);
    journal_end(journal);
    node_set_add_news(set, node, "taken out of the run (%s): %s; its results are kept, %s", word, why->text,
                      node_set_count_in(set) > 0 ? "and the others continue" : "and no node is left");
    return 0;
}

int node_set_take_out_unfit(struct node_set *set, size_t node, const char *what, struct failure *why,
                            struct failure *failure) {
    if (set->campaign->node_loss.action == NODE_LOSS_ABORT || set->record->phase >= RUN_COLLECT ||
        !node_set_has(set, node))
        return 0;
    failure_prefix(why, "%s", what);
    int r = node_set_take_out(set, &set->items[node], NODE_OUT_UNFIT, why, failure);
    return r < 0 ? r : 1;
}

bool node_set_take_out_unreachable(struct node_set *set) {
    const struct failure why = {.kind = FAILURE_SYSTEM, .code = -ENOTCONN, .text = "it could not be reached"};
    for (struct run_node *node = NULL; (node = node_set_next(set, node));) {
        const struct failure *known = agent_link_failure(node->link);
        if (!node_group_is_there(set->group, node->number) &&
            node_set_take_out(set, node, NODE_OUT_UNREACHABLE, known ? known : &why, NULL) < 0)
            return false;
    }
    return true;
}

void node_set_note_replacement(const struct node_set *set, const struct run_node *lost,
                               const struct run_node *by) {
    ledger_replace_node(set->record->ledger, lost->name);
    struct journal *journal = node_set_begin_entry(set, "node-replaced", lost);
    journal_string(journal, "by", by->name);
    journal_integer(journal, "units_failed", (int64_t)set->record->units->failed);
    journal_end(journal);
}

void node_set_recall_spares(struct node_set *set) {
    const struct run_history *past = set->past;
    for (size_t i = 0; i < past->replacement_count; i++) {
        const struct run_history_replacement *one = &past->replacements[i];
        struct run_node *node = node_set_find(set, one->node), *by = node_set_find(set, one->by);
        if (!node || !by)
            continue; /* the testbed does not give them any more: the nodes that it gives measure what is
                       * missing
                       */
        node_set_enter(set, by, NODE_IN);
        node_set_enter(set, node, NODE_REPLACED);
        node->left_reason = NODE_OUT_REPLACED;
        node_set_note_replacement(set, node, by);
    }
}

void node_set_interrupt(struct node_set *set, enum run_interruption by, const char *sentence) {
    if (set->record->interrupted || set->record->phase >= RUN_COLLECT)
        return;
    set->record->interrupted = by;
    record_note(set->record, "%s", sentence);
    event_loop_stop(set->loop);
}

/* ---- What is missing -------------------------------------------------------------------------------------
 */

/* All units of a node are missing when its cores were never known. */
bool node_set_has_all_units(const struct node_set *set, const struct run_node *node) {
    bool job = set->experiment->placement == EXPERIMENT_PLACEMENT_JOB; /* whose units are all nodes' */
    size_t positions = plan_positions(set->plan), places = job ? 1 : placement_count(set, node);
    for (size_t i = 0; i < places; i++) {
        size_t place = placement_place(set, node, i);
        if (ledger_count_done(set->record->ledger, place, 0, positions) < positions)
            return false;
    }
    return places > 0;
}

/* A job whose units are done is less than it was to be without one of its nodes. */
bool node_set_lacks_units(const struct node_set *set) {
    bool job = set->experiment->placement == EXPERIMENT_PLACEMENT_JOB;
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i].state == NODE_OUT && (job || !node_set_has_all_units(set, &set->items[i])))
            return true;
    return false;
}

char *node_set_describe_out(const struct node_set *set) {
    cleanup(node_texts_clear) struct node_texts words = node_texts_new(set->count);
    for (size_t i = 0; i < set->count; i++)
        words.items[i] = set->items[i].state == NODE_OUT ? xstrdup(set->items[i].left_reason) : NULL;
    cleanup(node_kinds_clear) struct node_kinds kinds = node_kinds_of(&words);
    cleanup(text_clear) struct text text;
    text_init(&text, 64 << 10);
    for (size_t k = 0; k < kinds.count; k++) {
        cleanup_free char *who = node_set_describe(set, kinds.items[k].nodes, kinds.items[k].count);
        text_printf(&text, "%s%s (%s)", k == 0 ? "without " : ", ", who, kinds.items[k].value);
    }
    return text.length ? text_take(&text) : NULL;
}

static void clear_node(struct run_node *node) {
    free((char *)node->name);
    free(node->agent_path);
    free(node->news);
    node_facts_free(node->facts);
    free(node->cpu_model);
    free(node->cores);
    free(node->control.expectations);
    cJSON_Delete(node->control.json);
    cJSON_Delete(node->warm_up);
    cJSON_Delete(node->software);
    experiment_arguments_free(node->environment);
    free(node->out_sentence);
    free(node->slow);
}

void node_set_clear(struct node_set *set) {
    event_source_remove(set->news_timer);
    event_source_remove(set->give_up);
    event_source_remove(set->deadline_timer);
    node_group_free(set->group);
    for (size_t i = 0; i < set->count; i++)
        clear_node(&set->items[i]);
    free(set->items);
    if (set->testbed)
        set->campaign->testbed.backend->release(set->testbed, NULL);
}
