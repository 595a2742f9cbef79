/* The nodes of a run as one group: the agents are delivered and reached, what happens to the links is noted
 * and journalled, and at the end the agents leave. */
#include "engine/run/nodes/nodes.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/nodes/answers.h"
#include "engine/run/nodes/kinds.h"
#include "engine/run/nodes/reservation.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t short_lease_ns = 20 * EVENT_SECOND;

/* When a switch goes, many links break within a second: they are noted together. */
static const int64_t news_delay_ns = 300 * EVENT_MILLISECOND;

/* ---- Words -----------------------------------------------------------------------------------------------
 */

char *node_set_fold(const struct node_set *set, const size_t *nodes, size_t count) {
    cleanup_free const char **names = xcalloc(count, sizeof *names);
    cleanup(text_clear) struct text words;
    text_init(&words, 16 << 20); /* more than NODE_GROUP_MAX names of NODE_NAME_MAX bytes */
    for (size_t i = 0; i < count; i++)
        names[i] = set->items[nodes[i]].name;
    (void)host_list_fold(names, count, &words);
    return xstrdup(words.bytes);
}

char *node_set_describe(const struct node_set *set, const size_t *nodes, size_t count) {
    cleanup_free char *folded = node_set_fold(set, nodes, count);
    return xformat("%s %s", count == 1 ? "node" : "nodes", folded);
}

void node_set_note_grouped(struct node_set *set, const struct node_texts *words) {
    cleanup(node_kinds_clear) struct node_kinds kinds = node_kinds_of(words);
    for (size_t k = 0; k < kinds.count; k++) {
        cleanup_free char *who = node_set_describe(set, kinds.items[k].nodes, kinds.items[k].count);
        record_note(set->record, "%s: %s", who, kinds.items[k].value);
    }
}

void node_set_report_news(struct node_set *set) {
    cleanup(node_texts_clear) struct node_texts news = node_texts_new(set->count);
    for (size_t i = 0; i < set->count; i++)
        news.items[i] = take_pointer(set->items[i].news);
    node_set_note_grouped(set, &news);
}

/* ---- What the links say ----------------------------------------------------------------------------------
 */

static void on_news_timer(struct event_source *source, void *context) {
    (void)source;
    node_set_report_news(context);
}

void node_set_add_news(struct node_set *set, struct run_node *node, const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE + 128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    free(node->news);
    node->news = xstrdup(sentence);
    if (set->news_timer && !event_source_timer_is_armed(set->news_timer))
        event_source_set_timer(set->news_timer, news_delay_ns, 0);
}

/* Records NODE's agent (path, version, how it came there) in the node and the journal. Called when the link
 * is ready for the first time: only then is the transport there to ask. */
static void record_agent(struct node_set *set, struct run_node *node) {
    struct testbed_agent agent =
        set->campaign->testbed.backend->agent(set->testbed, take_pointer(node->transport));
    node->agent_path = agent.path ? xstrdup(agent.path) : NULL;
    node->agent_delivered = agent.delivered;
    node->agent_built = agent.built;
    const struct agent_greeting *greeting = agent_link_greeting(node->link);
    const char *how = node->agent_built ? "built" : node->agent_delivered ? "delivered" : "there";
    struct journal *journal = node_set_begin_entry(set, "agent", node);
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
        record_note(set->record, "node %s: %s; a new agent was delivered", node->name, agent.damage);
    record_log(set->record, "node %s: agent %s, process %ld", node->name, greeting->version,
               (long)greeting->pid);
}

static void journal_link(struct node_set *set, const char *event, const struct run_node *node,
                         const struct failure *why) {
    struct journal *journal = node_set_begin_entry(set, event, node);
    if (why)
        journal_string(journal, "sentence", why->text);
    else
        journal_integer(journal, "outage_ns", node->outage_ns);
    journal_end(journal);
}

/* From collect on, a run that ends early closes broken links. The news that a link broke is reported first.
 */
void node_set_give_up_broken(struct node_set *set) {
    if (set->record->phase < RUN_COLLECT ||
        !(set->record->failed || set->record->interrupted || set->unreachable_at_seal))
        return;
    for (size_t i = 0; i < set->count; i++) {
        if (!set->items[i].link || agent_link_state(set->items[i].link) != AGENT_LINK_BROKEN)
            continue;
        node_set_report_news(set); /* first that it broke */
        record_note(set->record, "node %s: not reachable; the run continues without waiting for it",
                    set->items[i].name);
        agent_link_close(set->items[i].link);
    }
}

static void on_give_up(struct event_source *source, void *context) {
    (void)source;
    node_set_give_up_broken(context);
}

/* Called by the group when a link changes its state: ready, broken, ready again, or closed. News is noted
 * once for all nodes with the same news; a node that was connected and is lost is taken out. */
static void on_link_state(struct node_group *group, size_t number, enum agent_link_state state,
                          const struct failure *why, void *context) {
    (void)group;
    struct node_set *set = context;
    struct run_node *node = &set->items[number];
    bool was_ready = !node->transport;
    char outage[NUMBER_TEXT_SIZE];
    if (state == AGENT_LINK_READY && !was_ready) {
        record_agent(set, node);
    } else if (state == AGENT_LINK_READY) {
        node->outage_ns = clock_monotonic_ns() - node->broken_ns;
        node->broken_ns = 0;
        journal_link(set, "link-resumed", node, NULL);
        if (!node->left_reason)
            node_set_add_news(set, node, "reconnected after %s; no output lost",
                              number_describe_duration(ceil((double)node->outage_ns * 1e-9), outage));
    } else if (state == AGENT_LINK_BROKEN) {
        node->broken_ns = clock_monotonic_ns();
        node->breaks++;
        journal_link(set, "link-broken", node, why);
        if (!node->left_reason)
            node_set_add_news(set, node, "connection lost (%s); commands keep running; reconnecting",
                              why->text);
        /* A node may have been cut off long before its silence is noticed. Deferred, because the
         * link that reports this cannot be closed while it does. */
        event_source_defer(set->give_up);
    } else if (state == AGENT_LINK_CLOSED && why) {
        journal_link(set, "node-lost", node, why);
        /* Nodes that never were there are reported by connecting. Where the run cannot continue without
         * this one, what waits for it fails. */
        if (was_ready && node_set_take_out(set, node, NODE_OUT_LOST, why, NULL) < 0)
            node_set_add_news(set, node, "lost: %s", why->text);
    }
}

static void on_progress(struct node_group *group, size_t done, size_t total, void *context) {
    (void)group;
    const struct node_set *set = context;
    if (set->count > 1)
        record_report_event(set->record, &(struct run_event){.kind = RUN_EVENT_NODES,
                                                             .text = run_phase_names[set->record->phase],
                                                             .nodes_done = done,
                                                             .nodes_total = total,
                                                             .seconds_left = -1});
}

/* Merges the failures of one step. A node whose failure is its own, because some other node did not fail, is
 * taken out. */
int node_set_merge_failures(struct node_set *set, struct failure *failures, const char *what,
                            struct failure *failure) {
    if (set->loss.code < 0 && set->campaign->node_loss.action != NODE_LOSS_ABORT) {
        if (failure)
            *failure = set->loss;
        return set->loss.code;
    }
    bool works_somewhere = false;
    for (size_t i = 0; i < set->count; i++) {
        if (!node_set_has(set, i))
            failures[i].code = 0;
        else
            works_somewhere |= failures[i].code == 0;
    }
    for (size_t i = 0; works_somewhere && i < set->count; i++)
        if (failures[i].code < 0 && failures[i].kind == FAILURE_SYSTEM) {
            int r = node_set_take_out_unfit(set, i, what, &failures[i], failure);
            if (r < 0)
                return r;
            failures[i].code = r > 0 ? 0 : failures[i].code;
        }
    return node_failures_merge(set->group, failures, what, failure);
}

int node_set_check(struct node_set *set, struct failure *failure) {
    cleanup_free struct failure *failures = xcalloc(set->count, sizeof *failures);
    for (struct run_node *node = NULL; (node = node_set_next(set, node));) {
        size_t i = node->number;
        const struct failure *why = agent_link_failure(node->link);
        if (node_group_is_there(set->group, i))
            continue;
        failure_set(&failures[i], -ENOTCONN, "its agent no longer runs");
        if (why)
            failures[i] = *why;
    }
    return node_set_merge_failures(set, failures, "lost", failure);
}

/* ---- Phases ----------------------------------------------------------------------------------------------
 */

/* Notes a sentence of the testbed. While nodes are waited for it is journalled too, so that 'assay status'
 * shows it. */
static void on_report(void *context, const char *sentence) {
    const struct node_set *set = context;
    record_note(set->record, "%s", sentence);
    if (set->record->phase != RUN_RESERVE)
        return;
    journal_note(set->record->journal, "reservation-note", "sentence", sentence);
    record_commit(set->record, NULL); /* a failure to write shows again at the phase's end */
}

static void on_log(void *context, const char *sentence) {
    const struct node_set *set = context;
    record_log(set->record, "%s", sentence);
}

/* Called when the reservation has ended. Before collect that interrupts the run, so that it seals. */
static void on_over(void *context, const char *sentence) {
    struct node_set *set = context;
    if (set->record->phase >= RUN_COLLECT) {
        record_note(set->record, "%s", sentence);
        return;
    }
    journal_note(set->record->journal, "reservation-over", "sentence", sentence);
    node_set_interrupt(set, RUN_REVOKED, sentence);
}

/* Journals a reservation and commits. ID NULL: it is about to be made, and may exist even if this engine
 * dies. */
static int note_reservation(struct node_set *set, const char *id, struct failure *failure) {
    journal_begin(set->record->journal, "reservation");
    journal_string(set->record->journal, "testbed", set->campaign->testbed.backend->name);
    if (id)
        journal_string(set->record->journal, "id", id);
    journal_end(set->record->journal);
    return record_commit(set->record, failure);
}

/* Journals the reservation's id, commits, and waits until the nodes are granted. */
static int wait_for_nodes(struct node_set *set, struct failure *failure) {
    const struct testbed_backend *backend = set->campaign->testbed.backend;
    int r = note_reservation(set, backend->id(set->testbed), failure);
    if (r == 0)
        r = backend->wait(set->testbed, failure);
    if (r < 0)
        return r;
    journal_begin(set->record->journal, "reservation-granted");
    journal_time(set->record->journal, "until_ns", backend->deadline(set->testbed));
    journal_end(set->record->journal);
    return 0;
}

/* Journals that nothing is reserved any more. Committed also after sealing, for the folder. Does nothing
 * where the testbed has no reservations. */
static void note_release(struct node_set *set) {
    if (!set->campaign->testbed.backend->wait)
        return;
    journal_begin(set->record->journal, "reservation-released");
    journal_end(set->record->journal);
    (void)journal_commit(set->record->journal, NULL);
}

static int give_back(struct node_set *set, struct failure *failure) {
    int r = set->campaign->testbed.backend->release(take_pointer(set->testbed), failure);
    if (r == 0)
        note_release(set);
    return r;
}

/* Gives back a reservation of an earlier part that this part did not take over. */
static int reclaim_reservation(struct node_set *set, struct failure *failure) {
    const struct testbed_choice *testbed = &set->campaign->testbed;
    const struct testbed_request request = {.loop = set->loop,
                                            .installation = set->installation,
                                            .run_id = set->record->id,
                                            .run_name = set->campaign->name,
                                            .folder = set->record->folder,
                                            .known_id = set->past->held.id,
                                            .report = on_report,
                                            .report_context = set};
    int r = testbed->backend->reclaim(testbed->settings, &request, failure);
    if (r == 0)
        note_release(set);
    return r;
}

/* Reserves the nodes and waits for them. Later parts reserve as "ID-PART", because agents of earlier parts
 * may still be there and remove their folders. */
int node_set_reserve(struct node_set *set, struct failure *failure) {
    const struct run_record *record = set->record;
    /* Agents of parts before may still be there, with folders that they will remove. */
    cleanup_free char *id =
        record->part > 1 ? xformat("%s-%u", record->id, record->part) : xstrdup(record->id);
    struct testbed_request request = {
        .loop = set->loop,
        .installation = set->installation,
        .run_id = id,
        .run_name = set->campaign->name,
        .folder = record->folder,
        .workspace = set->campaign->workspace,
        .report = on_report,
        .log = on_log,
        .over = on_over,
        .report_context = set,
    };
    const struct testbed_choice *testbed = &set->campaign->testbed;
    int r = testbed->backend->wait ? note_reservation(set, NULL, failure) : 0;
    if (r == 0)
        r = testbed->backend->reserve(testbed->settings, &request, &set->testbed, failure);
    if (!set->testbed && !set->past->held.is_held) /* of a part before there may be something still */
        note_release(set);
    if (r == 0 && testbed->backend->wait)
        r = wait_for_nodes(set, failure);
    if (r < 0)
        return r;
    size_t count = testbed->backend->node_count(set->testbed);
    set->count = count + testbed_spare_nodes(testbed);
    set->items = xcalloc(set->count, sizeof *set->items);
    for (size_t i = 0; i < set->count; i++) {
        set->items[i].number = i;
        set->items[i].warm_temperature = NAN;
        set->items[i].name = xstrdup(testbed->backend->node_name(set->testbed, i));
        node_set_enter(set, &set->items[i], i < count ? NODE_IN : NODE_SPARE);
        if (i < count)
            journal_note(record->journal, "node", "name", set->items[i].name);
    }
    if (record->part > 1) {
        if (testbed->backend->wait)
            node_set_leave_old_nodes(set);
        else
            r = node_set_check_names(set, failure);
        node_set_recall_spares(set);
    }
    return r < 0 ? r : reservation_read_testbed_deadline(set, failure);
}

/* Notes that the lease is short. Agents hear nothing while files are synced, and a slow disk could take
 * longer than that. */
static void note_short_lease(struct node_set *set, int64_t lease_ns) {
    char lease[NUMBER_TEXT_SIZE];
    if (lease_ns > 0 && lease_ns < short_lease_ns)
        record_note(set->record,
                    "'lease' is %s: if this machine needs longer than that to write the "
                    "run's files, agents end and their nodes are lost; set 20 s or more "
                    "with a slow disk",
                    number_describe_duration((double)lease_ns * 1e-9, lease));
}

/* Makes the group with a transport and a link for each node; nothing is connected yet. */
int node_set_deploy(struct node_set *set, struct failure *failure) {
    const struct testbed_backend *backend = set->campaign->testbed.backend;
    struct node_group_listener listener = {
        .on_node = on_link_state, .on_progress = on_progress, .context = set};
    set->news_timer = event_loop_add_timer(set->loop, -1, 0, on_news_timer, set);
    set->give_up = event_loop_add_deferred(set->loop, on_give_up, set);
    int r = node_group_new(set->loop, &listener, &set->group);
    if (!set->news_timer || !set->give_up || r < 0)
        return failure_memory(failure);
    struct agent_link_policy policy = backend->policy(set->testbed);
    note_short_lease(set, policy.lease_ns);
    for (size_t i = 0; i < set->count; i++) {
        struct transport *transport;
        r = backend->connect(set->testbed, i, &transport, failure);
        if (r == 0)
            r = node_group_add(set->group, transport, &policy, failure);
        if (r < 0)
            return r;
        set->items[i].transport = transport;
        set->items[i].link = node_group_link(set->group, i);
        node_group_leave_out(set->group, i, !run_node_is_in(&set->items[i]));
    }
    return 0;
}

/* Refuses names that cannot be looked up: they are mistyped, unlike hosts that are down. Only in part 1,
 * since later parts have met all their hosts. */
static int check_host_names(const struct node_set *set, struct failure *failure) {
    for (struct run_node *node = NULL; set->record->part == 1 && (node = node_set_next(set, node));) {
        const struct failure *why = agent_link_failure(node->link);
        if (why && (why->code == -ENOENT || why->code == -EAGAIN)) /* no such name; no name server answers */
            return failure_set_kind(failure, FAILURE_INPUT, why->code,
                                    "node %s: %s; expected names that can be looked up, or that the ssh "
                                    "configuration has",
                                    node->name, why->text);
    }
    return 0;
}

/* Connects all nodes. Unreachable ones are taken out if the run may continue without them; else the failure
 * names them all. */
static int connect_nodes(struct node_set *set, struct failure *failure) {
    int r = node_group_connect(set->group, failure);
    if (r < 0 && check_host_names(set, failure) < 0)
        return failure->code;
    if (r == 0 || failure->kind != FAILURE_SYSTEM)
        return r;
    return node_set_take_out_unreachable(set) ? 0 : r; /* else the sentence about all of them says more */
}

/* Connects, notes how agents were delivered, ends agents of earlier parts, and measures the clocks. */
int node_set_connect(struct node_set *set, struct failure *failure) {
    int r = connect_nodes(set, failure);
    size_t delivered = 0, built = 0;
    for (size_t i = 0; i < set->count; i++) {
        delivered += set->items[i].agent_delivered;
        built += set->items[i].agent_built;
    }
    if (built > 0)
        record_note(set->record,
                    "the agent was delivered to %zu of %zu nodes, and built there from its source on %zu",
                    delivered, set->count, built);
    else if (delivered > 0)
        record_note(set->record, "the agent was delivered to %zu of %zu nodes", delivered, set->count);
    if (r == 0 && set->record->part > 1)
        r = node_set_end_old_agents(set, failure);
    return r < 0 ? r : node_set_measure_clocks(set, RUN_CLOCK_START, failure);
}

/* How long agents are waited for to leave, in ns; at most until a second before the reservation ends. */
static int64_t leave_timeout(const struct node_set *set) {
    const int64_t leave_timeout_ns = NODE_GROUP_LEAVE_NS(set->count);
    int64_t left_ns = set->deadline.source != DEADLINE_NONE
                          ? set->deadline.end_ns - clock_monotonic_ns() - EVENT_SECOND
                          : leave_timeout_ns;
    return left_ns > leave_timeout_ns ? leave_timeout_ns : left_ns < EVENT_SECOND ? EVENT_SECOND : left_ns;
}

/* Ends the agents and gives the reservation back. Nodes that were given up restore themselves when their
 * leases expire: that is noted, and is not the run's failure. */
int node_set_release(struct node_set *set, struct failure *failure) {
    struct failure first = {0};
    if (set->group)
        node_group_close(set->group, leave_timeout(set), &first);
    /* Nodes that were given up are left to their leases: that is said, and is not how the run ended. */
    if (first.code < 0 && (set->record->interrupted || set->unreachable_at_seal)) {
        record_note(set->record, "%s", first.text);
        first = (struct failure){0};
    }
    if (set->news_timer)
        node_set_report_news(set);
    event_source_remove(take_pointer(set->news_timer));
    event_source_remove(take_pointer(set->give_up));
    node_group_free(take_pointer(set->group));
    for (size_t i = 0; i < set->count; i++)
        set->items[i].link = NULL;
    struct failure *why = first.code ? NULL : &first;
    if (set->testbed)
        give_back(set, why);
    else if (run_history_is_reserved(set->past, clock_wall_ns()) && set->campaign->testbed.backend->reclaim)
        reclaim_reservation(set, why);
    if (first.code && failure)
        *failure = first;
    return first.code;
}

/* ---- What it cost */

/* Journals what the agent of one node cost; nothing if it did not answer. */
static void on_statistics(struct agent_link *link, const struct agent_statistics *statistics,
                          const struct failure *failure, void *context) {
    (void)link;
    struct answer *answer = context;
    struct node_set *set = answer->answers->context;
    answers_take(answer);
    if (failure)
        return;
    const struct run_node *node = &set->items[answer->node];
    struct journal *journal = node_set_begin_entry(set, "agent-cost", node);
    journal_integer(journal, "user_us", statistics->user_us);
    journal_integer(journal, "system_us", statistics->system_us);
    journal_integer(journal, "rss_peak_bytes", (int64_t)statistics->rss_peak_bytes);
    journal_integer(journal, "link_breaks", node->breaks);
    journal_end(journal);
}

/* Journals what each agent cost, as the agents say. Those that do not answer have no entry. */
void node_set_record_costs(struct node_set *set) {
    cleanup(answers_clear) struct answers answers = {0};
    if (!set->group)
        return;
    answers_init(&answers, set->loop, set->count, set);
    for (size_t i = 0; i < set->count; i++) {
        if (!set->items[i].link || !node_group_is_there(set->group, i))
            continue;
        struct answer *answer = answers_ask(&answers, set->items[i].link, i, 0);
        if (agent_link_statistics(set->items[i].link, on_statistics, answer, NULL) < 0)
            answers_take(answer);
    }
    answers_wait(&answers, NULL);
}
