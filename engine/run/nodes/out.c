#include "engine/run/nodes/out.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/run/nodes/kinds.h"
#include "engine/run/nodes/placement.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void run_node_enter(const struct run *run, struct run_node *node, enum node_state state) {
    node->state = state;
    if (run->group)
        node_group_leave_out(run->group, node->number, !run_concerns(run, node->number));
}

bool run_node_is_in(const struct run_node *node) {
    return node->state == NODE_IN || node->state == NODE_LATE || node->state == NODE_CATCHING_UP;
}

struct run_node *run_find_node(const struct run *run, const char *name) {
    for (size_t i = 0; i < run->node_count; i++)
        if (strcmp(run->nodes[i].name, name) == 0)
            return &run->nodes[i];
    return NULL;
}

char *run_node_path(const struct run *run, const struct run_node *node, const char *file) {
    cleanup_free char *folder = run_node_folder(run, node);
    return xformat("%s/%s", folder, file);
}

bool run_concerns(const struct run *run, size_t node) {
    return run_node_is_in(&run->nodes[node]) && (!run->newcomer || run->newcomer == &run->nodes[node]);
}

struct run_node *run_next_node(const struct run *run, const struct run_node *node) {
    for (size_t i = node ? node->number + 1 : 0; i < run->node_count; i++)
        if (run_concerns(run, i))
            return &run->nodes[i];
    return NULL;
}

struct journal *run_begin_entry(const struct run *run, const char *event, const struct run_node *node) {
    journal_begin(run->journal, event);
    journal_string(run->journal, "node", node->name);
    return run->journal;
}

void run_note_entry(const struct run *run, const char *event, const struct run_node *node, const char *key,
                    const char *value) {
    journal_string(run_begin_entry(run, event, node), key, value);
    journal_end(run->journal);
}

size_t run_count_in(const struct run *run) {
    size_t count = 0;
    for (size_t i = 0; i < run->node_count; i++)
        count += run_node_is_in(&run->nodes[i]);
    return count;
}

/* ---- Taking out ------------------------------------------------------------------------------------------
 */

/* Spares that wait count as left: they are brought in. */
static size_t count_left(const struct run *run) {
    size_t count = run_count_in(run) - 1;
    for (size_t i = 0; i < run->node_count; i++)
        count += run->nodes[i].state == NODE_SPARE;
    return count;
}

/* Can the run go on without NODE? */
static int check_loss(const struct run *run, const struct run_node *node, const char *word,
                      const struct failure *why, struct failure *failure) {
    const struct node_loss_settings *settings = &run->campaign->node_loss;
    size_t left = count_left(run);
    if (settings->action == NODE_LOSS_ABORT) {
        *failure = *why;
        return why->code;
    }
    if (left >= (size_t)settings->at_least || run->phase >= RUN_COLLECT || run->failed || run->interrupted)
        return 0;
    if (left == 0)
        return failure_set_kind(failure, why->kind, why->code,
                                "no node is left, perhaps because their reservation has ended; the last was "
                                "%s, %s: %s",
                                node->name, word, why->text);
    return failure_set_kind(failure, why->kind, why->code,
                            "without node %s %zu %s left, and 'node-loss' wants %lld at least; it is %s: %s",
                            node->name, left, left == 1 ? "is" : "are", (long long)settings->at_least, word,
                            why->text);
}

int run_take_out(struct run *run, struct run_node *node, const char *word, const struct failure *why,
                 struct failure *failure) {
    struct failure ending = {0};
    if (!run_node_is_in(node))
        return 0;
    if (check_loss(run, node, word, why, &ending) < 0) {
        if (run->loss.code == 0)
            run->loss = ending;
        if (failure)
            *failure = ending;
        return ending.code;
    }
    run_node_enter(run, node, NODE_OUT);
    node->out = word;
    node->out_sentence = xstrdup(why->text);
    struct journal *journal = run_begin_entry(run, "node-out", node);
    journal_string(journal, "why", word);
    journal_string(journal, "sentence", why->text);
    journal_end(journal);
    run_add_news(run, node, "taken out of the run (%s): %s; what was measured there is kept, %s", word,
                 why->text, run_count_in(run) > 0 ? "and the others go on" : "and nobody is left");
    return 0;
}

bool run_take_out_unreachable(struct run *run) {
    const struct failure why = {.kind = FAILURE_SYSTEM, .code = -ENOTCONN, .text = "it could not be reached"};
    for (struct run_node *node = NULL; (node = run_next_node(run, node));) {
        const struct failure *told = agent_link_failure(node->link);
        if (!node_group_is_there(run->group, node->number) &&
            run_take_out(run, node, NODE_OUT_UNREACHABLE, told ? told : &why, NULL) < 0)
            return false;
    }
    return true;
}

/* ---- What is missing -------------------------------------------------------------------------------------
 */

/* In all places that earlier parts knew of. */
static bool had_all_units(const struct run *run, const struct run_node *node) {
    size_t positions = plan_positions(run->plan), places = 0;
    for (size_t i = 0; i < ledger_place_count(run->ledger); i++)
        if (strcmp(ledger_place_node(run->ledger, i), node->name) == 0) {
            places++;
            if (ledger_count_done(run->ledger, i, 0, positions) < positions)
                return false;
        }
    return places > 0;
}

/* Of a node whose cores nobody ever knew, all is missing. */
bool run_has_all_units(const struct run *run, const struct run_node *node) {
    bool job = run->experiment->placement == EXPERIMENT_PLACEMENT_JOB; /* whose units are all nodes' */
    if (node->core_count == 0 && !job)
        return had_all_units(run, node);
    size_t positions = plan_positions(run->plan), places = job ? 1 : placement_count(run, node);
    for (size_t i = 0; i < places; i++) {
        size_t place = placement_place(run, node, i);
        if (ledger_count_done(run->ledger, place, 0, positions) < positions)
            return false;
    }
    return places > 0;
}

/* A job whose units are done is less than it was to be without one of its nodes. */
bool run_lacks_units(const struct run *run) {
    bool job = run->experiment->placement == EXPERIMENT_PLACEMENT_JOB;
    for (size_t i = 0; i < run->node_count; i++)
        if (run->nodes[i].state == NODE_OUT && (job || !run_has_all_units(run, &run->nodes[i])))
            return true;
    return false;
}

char *run_describe_out(const struct run *run) {
    cleanup(node_texts_clear) struct node_texts words = node_texts_new(run->node_count);
    for (size_t i = 0; i < run->node_count; i++)
        words.items[i] = run->nodes[i].state == NODE_OUT ? xstrdup(run->nodes[i].out) : NULL;
    cleanup(node_kinds_clear) struct node_kinds kinds = node_kinds_of(&words);
    cleanup(text_clear) struct text text;
    text_init(&text, 64 << 10);
    for (size_t k = 0; k < kinds.count; k++) {
        cleanup_free char *who = run_nodes_in_words(run, kinds.items[k].nodes, kinds.items[k].count);
        text_printf(&text, "%s%s (%s)", k == 0 ? "without " : ", ", who, kinds.items[k].value);
    }
    return text.length ? text_take(&text) : NULL;
}
