#include "engine/run/nodes/out.h"

#include "engine/foundation/cleanup.h"
#include "engine/run/campaign/placement.h"
#include "engine/run/nodes/kinds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool run_node_is_in(const struct run_node *node) {
    return !node->out && !node->spare;
}

bool run_concerns(const struct run *run, size_t node) {
    return run_node_is_in(&run->nodes[node]) && (!run->newcomer || run->newcomer == &run->nodes[node]);
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
        count += run->nodes[i].spare;
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
    node->out = word;
    node->out_sentence = strdup(why->text);
    if (run->group)
        node_group_leave_out(run->group, (size_t)(node - run->nodes), true);
    journal_begin(run->journal, "node-out");
    journal_string(run->journal, "node", node->name);
    journal_string(run->journal, "why", word);
    journal_string(run->journal, "sentence", why->text);
    journal_end(run->journal);
    run_add_news(run, node, RUN_NEWS_OUT, why);
    return 0;
}

bool run_take_out_unreachable(struct run *run) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < run->node_count; i++) {
        struct failure why = {.kind = FAILURE_SYSTEM, .code = -ENOTCONN, .text = "it could not be reached"};
        const struct failure *told = agent_link_failure(run->nodes[i].link);
        if (run_concerns(run, i) && !node_group_is_there(run->group, i))
            r = run_take_out(run, &run->nodes[i], NODE_OUT_UNREACHABLE, told ? told : &why, NULL);
    }
    return r == 0;
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
        if (place == SIZE_MAX || ledger_count_done(run->ledger, place, 0, positions) < positions)
            return false;
    }
    return places > 0;
}

/* A job whose units are done is less than it was to be without one of its nodes. */
bool run_lacks_units(const struct run *run) {
    bool job = run->experiment->placement == EXPERIMENT_PLACEMENT_JOB;
    for (size_t i = 0; i < run->node_count; i++)
        if (run->nodes[i].out && !run->nodes[i].replaced && (job || !run_has_all_units(run, &run->nodes[i])))
            return true;
    return false;
}

char *run_describe_out(const struct run *run) {
    cleanup_free const char **words = calloc(run->node_count + 1, sizeof *words);
    struct node_kinds kinds = {0};
    if (!words)
        return NULL;
    for (size_t i = 0; i < run->node_count; i++)
        words[i] = run->nodes[i].replaced ? NULL : run->nodes[i].out;
    struct text text;
    text_init(&text, 64 << 10);
    if (node_kinds_init(&kinds, words, run->node_count) == 0)
        for (size_t k = 0; k < kinds.count; k++) {
            cleanup_free char *who = run_nodes_in_words(run, kinds.items[k].nodes, kinds.items[k].count);
            text_printf(&text, "%s%s (%s)", k == 0 ? "without " : ", ", who ? who : "nodes",
                        kinds.items[k].value);
        }
    node_kinds_clear(&kinds);
    char *result = text.length ? text_take(&text) : NULL;
    text_clear(&text);
    return result;
}
