/* The nodes of a run as one group: the agents are delivered and reached, what happens to the links is told
 * and journalled, and at the end the agents leave. */
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/nodes/answers.h"
#include "engine/run/nodes/kinds.h"
#include "engine/run/nodes/out.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* When a switch goes, many links break within a second: they are one piece of news. */
static const int64_t news_delay_ns = 300 * EVENT_MILLISECOND;
/* Between the word to leave and the end of commands, agent and folder. */
static const int64_t leave_timeout_ns = 30 * EVENT_SECOND;

/* ---- Words -----------------------------------------------------------------------------------------------
 */

char *run_fold_nodes(const struct run *run, const size_t *nodes, size_t count) {
    cleanup_free const char **names = xcalloc(count, sizeof *names);
    cleanup(text_clear) struct text words;
    text_init(&words, 16 << 20); /* more than NODE_GROUP_MOST names of NODE_NAME_MOST bytes */
    for (size_t i = 0; i < count; i++)
        names[i] = run->nodes[nodes[i]].name;
    (void)host_list_fold(names, count, &words);
    return xstrdup(words.bytes);
}

char *run_nodes_in_words(const struct run *run, const size_t *nodes, size_t count) {
    cleanup_free char *folded = run_fold_nodes(run, nodes, count);
    return xformat("%s %s", count == 1 ? "node" : "nodes", folded);
}

void run_note_kinds(struct run *run, const struct node_texts *words) {
    cleanup(node_kinds_clear) struct node_kinds kinds = node_kinds_of(words);
    for (size_t k = 0; k < kinds.count; k++) {
        cleanup_free char *who = run_nodes_in_words(run, kinds.items[k].nodes, kinds.items[k].count);
        run_note(run, "%s: %s", who, kinds.items[k].value);
    }
}

void run_tell_news(struct run *run) {
    cleanup(node_texts_clear) struct node_texts news = node_texts_new(run->node_count);
    for (size_t i = 0; i < run->node_count; i++)
        news.items[i] = take_pointer(run->nodes[i].news);
    run_note_kinds(run, &news);
}

/* ---- What the links say ----------------------------------------------------------------------------------
 */

static void on_news_timer(struct event_source *source, void *context) {
    (void)source;
    run_tell_news(context);
}

void run_add_news(struct run *run, struct run_node *node, const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE + 128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    free(node->news);
    node->news = xstrdup(sentence);
    if (run->news_timer && !event_source_timer_is_armed(run->news_timer))
        event_source_set_timer(run->news_timer, news_delay_ns, 0);
}

/* Copies what is known of the agent while its first transport is there. */
static void take_agent(struct run *run, struct run_node *node) {
    struct testbed_agent agent =
        run->campaign->testbed.backend->agent(run->testbed, take_pointer(node->transport));
    node->agent_path = agent.path ? xstrdup(agent.path) : NULL;
    node->agent_delivered = agent.delivered;
    node->agent_built = agent.built;
    const struct agent_greeting *greeting = agent_link_greeting(node->link);
    const char *how = node->agent_built ? "built" : node->agent_delivered ? "delivered" : "there";
    struct journal *journal = run_begin_entry(run, "agent", node);
    journal_string(journal, "version", greeting->version);
    journal_string(journal, "path", node->agent_path);
    journal_string(journal, "sha256", greeting->sha256[0] ? greeting->sha256 : NULL);
    journal_string(journal, "how", how);
    if (agent.damage)
        journal_string(journal, "damage", agent.damage);
    journal_integer(journal, "pid", greeting->pid);
    uint64_t session = agent_link_transport(node->link)->session;
    char digits[17];
    snprintf(digits, sizeof digits, "%016" PRIx64, session);
    if (session) /* without one, it leaves when we do */
        journal_string(journal, "session", digits);
    journal_end(journal);
    if (agent.damage)
        run_note(run, "node %s: %s; a new agent was delivered", node->name, agent.damage);
    run_log(run, "node %s: agent %s, process %ld", node->name, greeting->version, (long)greeting->pid);
}

static void journal_link(struct run *run, const char *event, const struct run_node *node,
                         const struct failure *why) {
    struct journal *journal = run_begin_entry(run, event, node);
    if (why)
        journal_string(journal, "sentence", why->text);
    else
        journal_integer(journal, "outage_ns", node->outage_ns);
    journal_end(journal);
}

void run_give_up_broken(struct run *run) {
    if (run->phase < RUN_COLLECT || !(run->failed || run->interrupted || run->nodes_given_up))
        return;
    for (size_t i = 0; i < run->node_count; i++) {
        if (!run->nodes[i].link || agent_link_state(run->nodes[i].link) != AGENT_LINK_BROKEN)
            continue;
        run_tell_news(run); /* first that it broke */
        run_note(run, "node %s: out of reach, and not waited for", run->nodes[i].name);
        agent_link_close(run->nodes[i].link);
    }
}

static void on_give_up(struct event_source *source, void *context) {
    (void)source;
    run_give_up_broken(context);
}

static void on_node(struct node_group *group, size_t number, enum agent_link_state state,
                    const struct failure *why, void *context) {
    (void)group;
    struct run *run = context;
    struct run_node *node = &run->nodes[number];
    bool was_ready = !node->transport;
    char outage[NUMBER_TEXT_SIZE];
    if (state == AGENT_LINK_READY && !was_ready) {
        take_agent(run, node);
    } else if (state == AGENT_LINK_READY) {
        node->outage_ns = clock_monotonic_ns() - node->broken_ns;
        node->broken_ns = 0;
        journal_link(run, "link-resumed", node, NULL);
        if (!node->out)
            run_add_news(run, node, "the link is there again after %s; nothing was lost",
                         number_describe_duration(ceil((double)node->outage_ns * 1e-9), outage));
    } else if (state == AGENT_LINK_BROKEN) {
        node->broken_ns = clock_monotonic_ns();
        node->breaks++;
        journal_link(run, "link-broken", node, why);
        if (!node->out)
            run_add_news(run, node, "the link broke (%s); what runs there goes on, and the link is sought",
                         why->text);
        /* A node may have been cut off long before its silence is noticed. Not at once: the link that tells
         * is not closed while it does. */
        event_source_defer(run->give_up);
    } else if (state == AGENT_LINK_CLOSED && why) {
        journal_link(run, "node-lost", node, why);
        /* Of those that never were there, connecting itself tells. Where the run cannot go on without it,
         * whoever waits for the node finds that out. */
        if (was_ready && run_take_out(run, node, NODE_OUT_LOST, why, NULL) < 0)
            run_add_news(run, node, "lost: %s", why->text);
    }
}

static void on_progress(struct node_group *group, size_t done, size_t total, void *context) {
    (void)group;
    const struct run *run = context;
    const struct run_observer *observer = &run->request->observer;
    if (observer->event && run->node_count > 1)
        observer->event(observer->context, &(struct run_event){.kind = RUN_EVENT_NODES,
                                                               .text = run_phase_names[run->phase],
                                                               .nodes_done = done,
                                                               .nodes_total = total,
                                                               .seconds_left = -1});
}

int run_merge_failures(struct run *run, struct failure *failures, const char *what, struct failure *failure) {
    if (run->loss.code < 0 && run->campaign->node_loss.action != NODE_LOSS_ABORT) {
        if (failure)
            *failure = run->loss;
        return run->loss.code;
    }
    for (size_t i = 0; i < run->node_count; i++)
        if (!run_concerns(run, i))
            failures[i].code = 0;
    return node_failures_merge(run->group, failures, what, failure);
}

int run_check_nodes(struct run *run, struct failure *failure) {
    cleanup_free struct failure *failures = xcalloc(run->node_count, sizeof *failures);
    for (struct run_node *node = NULL; (node = run_next_node(run, node));) {
        size_t i = node->number;
        const struct failure *why = agent_link_failure(node->link);
        if (node_group_is_there(run->group, i))
            continue;
        failure_set(&failures[i], -ENOTCONN, "its agent is gone");
        if (why)
            failures[i] = *why;
    }
    return run_merge_failures(run, failures, "lost", failure);
}

/* ---- Phases ----------------------------------------------------------------------------------------------
 */

int run_phase_deploy(struct run *run, struct failure *failure) {
    const struct testbed_backend *backend = run->campaign->testbed.backend;
    struct node_group_listener listener = {.on_node = on_node, .on_progress = on_progress, .context = run};
    run->news_timer = event_loop_add_timer(run->loop, -1, 0, on_news_timer, run);
    run->give_up = event_loop_add_deferred(run->loop, on_give_up, run);
    int r = node_group_new(run->loop, &listener, &run->group);
    if (!run->news_timer || !run->give_up || r < 0)
        return failure_memory(failure);
    struct agent_link_policy policy = backend->policy(run->testbed);
    for (size_t i = 0; i < run->node_count; i++) {
        struct transport *transport;
        r = backend->connect(run->testbed, i, &transport, failure);
        if (r == 0)
            r = node_group_add(run->group, transport, &policy, failure);
        if (r < 0)
            return r;
        run->nodes[i].transport = transport;
        run->nodes[i].link = node_group_link(run->group, i);
        node_group_leave_out(run->group, i, !run_node_is_in(&run->nodes[i]));
    }
    return 0;
}

/* Those that cannot be reached are out, if the run may go on without them. */
static int connect_nodes(struct run *run, struct failure *failure) {
    int r = node_group_connect(run->group, failure);
    if (r == 0 || failure->kind != FAILURE_SYSTEM)
        return r;
    return run_take_out_unreachable(run) ? 0 : r; /* else the sentence about all of them says more */
}

int run_phase_connect(struct run *run, struct failure *failure) {
    int r = connect_nodes(run, failure);
    size_t delivered = 0, built = 0;
    for (size_t i = 0; i < run->node_count; i++) {
        delivered += run->nodes[i].agent_delivered;
        built += run->nodes[i].agent_built;
    }
    if (built > 0)
        run_note(run, "the agent was delivered to %zu of %zu nodes, and built there from its source on %zu",
                 delivered, run->node_count, built);
    else if (delivered > 0)
        run_note(run, "the agent was delivered to %zu of %zu nodes", delivered, run->node_count);
    if (r == 0 && run->part > 1)
        r = run_end_old_agents(run, failure);
    return r < 0 ? r : run_measure_clocks(run, RUN_CLOCK_START, failure);
}

int run_phase_release(struct run *run, struct failure *failure) {
    struct failure first = {0};
    watch_free(take_pointer(run->watch));
    if (run->group)
        node_group_close(run->group, leave_timeout_ns, &first);
    /* Nodes that were given up are left to their leases: that is said, and is not how the run ended. */
    if (first.code < 0 && (run->interrupted || run->nodes_given_up)) {
        run_note(run, "%s", first.text);
        first = (struct failure){0};
    }
    if (run->news_timer)
        run_tell_news(run);
    event_source_remove(take_pointer(run->news_timer));
    event_source_remove(take_pointer(run->give_up));
    node_group_free(take_pointer(run->group));
    for (size_t i = 0; i < run->node_count; i++)
        run->nodes[i].link = NULL;
    if (run->testbed)
        run->campaign->testbed.backend->release(take_pointer(run->testbed), first.code ? NULL : &first);
    if (first.code && failure)
        *failure = first;
    return first.code;
}

/* ---- What it cost */

static void take_statistics(struct agent_link *link, const struct agent_statistics *statistics,
                            const struct failure *failure, void *context) {
    (void)link;
    struct answer *answer = context;
    struct run *run = answer->answers->context;
    answers_take(answer);
    if (failure)
        return;
    const struct run_node *node = &run->nodes[answer->node];
    struct journal *journal = run_begin_entry(run, "agent-cost", node);
    journal_integer(journal, "user_us", statistics->user_us);
    journal_integer(journal, "system_us", statistics->system_us);
    journal_integer(journal, "rss_peak_bytes", (int64_t)statistics->rss_peak_bytes);
    journal_integer(journal, "link_breaks", node->breaks);
    journal_end(journal);
}

void run_record_agent_costs(struct run *run) {
    cleanup(answers_clear) struct answers answers = {0};
    if (!run->group || answers_init(&answers, run->loop, run->node_count, run, NULL) < 0)
        return;
    for (size_t i = 0; i < run->node_count; i++) {
        if (!run->nodes[i].link || !node_group_is_there(run->group, i))
            continue;
        struct answer *answer = answers_ask(&answers, run->nodes[i].link, i, 0);
        if (agent_link_statistics(run->nodes[i].link, take_statistics, answer, NULL) < 0)
            answers_take(answer);
    }
    answers_wait(&answers, NULL);
}
