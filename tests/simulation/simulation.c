/*
 * Links and agents over thousands of seeds: whatever the network does, leases, heartbeats, retries and
 * farewells keep their promises, and what programs print and read comes once and in order.
 *
 *     simulation [--count N] [--first SEED]     so many seeds, one after the other
 *     simulation --seed SEED                    one, with a trace
 */
#include "engine/foundation/cleanup.h"
#include "tests/simulation/world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* In which a link that is closed is over, and an agent that was told to leave has left: farewells of 30 s, 10
 * s for the stream's end, an attempt of 40 s, stalls and freezes. */
#define FAREWELL_MAX (150 * SECOND)
/* In which a link is ready again after all is well: the longest pause between attempts, and one that was
 * under way. */
#define RETURN_MAX (60 * SECOND)

/* In which bytes that are on their way come to an agent, and an agent that leaves ends its programs. */
#define ON_ITS_WAY (50 * SECOND)

enum { LINKS_MAX = 3 };

static int64_t end_ns; /* of what is wanted of the links */

static struct node *node_of(void *context) {
    return context;
}

/* ---- what the links tell */

static void on_ready(struct agent_link *link, void *context) {
    struct node *node = node_of(context);
    trace("link %zu is ready", node->number);
    must(!node->ready_ns, "link %zu is ready twice", node->number);
    node->ready_ns = node->answered_ns = now();
    counters.ready++;
}

static void on_broken(struct agent_link *link, const struct failure *why, void *context) {
    struct node *node = node_of(context);
    trace("link %zu is broken: %s", node->number, why->text);
    must(node->faulty, "link %zu breaks although nothing is wrong: %s", node->number, why->text);
    must(!node->broken_ns, "link %zu breaks twice", node->number);
    node->broken_ns = now();
    if (node->answered_ns < node->heard_from_ns)
        node->answered_ns = node->heard_from_ns;
    counters.broken++;
}

static void on_resumed(struct agent_link *link, void *context) {
    struct node *node = node_of(context);
    trace("link %zu is ready again after %.3f s", node->number, (double)(now() - node->broken_ns) / 1e9);
    must(node->broken_ns, "link %zu is ready again and was not broken", node->number);
    node->broken_ns = 0;
    node->heard_from_ns = now();
    counters.resumed++;
}

static bool agent_serves(const struct node *node) {
    return node->there && node->agent.state < AGENT_LEAVING;
}

static void check_left(void *context, int64_t born) {
    struct node *node = node_of(context);
    must(!node->there || node->born != (unsigned)born,
         "agent %zu is there after all the time that its link gave it (%.3f s)", node->number,
         (double)node->left_ns / 1e9);
}

static void on_closed(struct agent_link *link, const struct failure *why, void *context) {
    struct node *node = node_of(context);
    trace("link %zu is closed: %s; the agent may stay for %.3f s", node->number, why ? why->text : "as asked",
          (double)agent_link_left_ns(link) / 1e9);
    must(!node->closed_ns, "link %zu is closed twice", node->number);
    node->closed_ns = now();
    node->left_ns = agent_link_left_ns(link);
    if (!why) {
        must(node->closing_ns, "link %zu closes without having been asked to", node->number);
        counters.told += node->left_ns == 0;
        counters.left += node->left_ns > 0;
        must(node->left_ns > 0 || !agent_serves(node),
             "link %zu says that its agent was told to leave; it was not", node->number);
        later(NETWORK, node->left_ns + ON_ITS_WAY, check_left, node, node->born);
        return;
    }
    must(why->code != -EPROTO, "link %zu ends: %s", node->number, why->text);
    must(node->faulty, "link %zu ends although nothing is wrong: %s", node->number, why->text);
    if (why->code == -ESTALE || why->code == -ECONNREFUSED)
        must(!node->ready_ns || !agent_serves(node), "link %zu ends, but its agent is there: %s",
             node->number, why->text);
    if (why->code == -ETIMEDOUT && node->ready_ns) {
        counters.engine_leases++;
        /* Silent for a lease; or connected again and again without an answer for two. */
        bool is_mute = strstr(why->text, "accepted connections");
        must(is_mute ? now() - node->answered_ns >= 2 * node->policy.lease_ns
                     : now() - node->heard_from_ns >= node->policy.lease_ns,
             "link %zu gives its agent up after %.3f s", node->number,
             (double)(now() - node->heard_from_ns) / 1e9);
    }
}

static void on_state(struct agent_link *link, enum agent_link_state state, const struct failure *why,
                     void *context) {
    if (state == AGENT_LINK_READY && agent_link_greeting(link)->resumed > 0)
        on_resumed(link, context);
    else if (state == AGENT_LINK_READY)
        on_ready(link, context);
    else if (state == AGENT_LINK_BROKEN)
        on_broken(link, why, context);
    else
        on_closed(link, why, context);
}

/* ---- what is wanted of them */

static void link_start(void *context, int64_t timeout_ns) {
    struct node *node = node_of(context);
    struct event_loop *loop = world.actors[ENGINE].loop;
    const struct agent_link_callbacks callbacks = {.on_state = on_state, .context = node};
    must(agent_link_new(loop, scripted_new(node), &callbacks, &node->link, NULL) == 0, "there is no link");
    agent_link_set_policy(node->link, &node->policy);
    must(agent_link_start(node->link, timeout_ns, NULL) == 0, "link %zu does not start", node->number);
}

static void on_clock(struct agent_link *link, const struct agent_clock *clock, const struct failure *failure,
                     void *context) {
    struct node *node = node_of(context);
    must(++node->answered <= node->asked, "a request is answered twice");
    must(!failure || agent_link_state(link) == AGENT_LINK_CLOSED, "a clock is not answered: %s",
         failure ? failure->text : "");
    if (clock)
        must(clock->node_monotonic_ns == clock->engine_monotonic_ns || clock->round_trip_ns > 0,
             "the clocks are not as they are");
}

static void clock_ask(void *context, int64_t exchanges) {
    struct node *node = node_of(context);
    if (node->link && agent_link_measure_clock(node->link, (unsigned)exchanges, on_clock, node, NULL) == 0)
        node->asked++;
}

static void link_end(void *context, int64_t freeing) {
    struct node *node = node_of(context);
    trace("link %zu is to be %s", node->number, freeing ? "freed" : "closed");
    node->closing_ns = now();
    if (!freeing) {
        agent_link_close(node->link);
        return;
    }
    node->freed = true;
    counters.freed++;
    agent_link_free(take_pointer(node->link));
}

/* ---- what goes wrong */

enum fault { CUT, HALF_CUT, STALL, REFUSE, FREEZE, DIE, FAULTS };

static void fault_happens(void *context, int64_t fault) {
    struct node *node = node_of(context);
    int64_t lease = node->policy.lease_ns,
            mild = (node->policy.silence_ns < lease ? node->policy.silence_ns : lease) / 3;
    int64_t duration = happens(40) ? draw_time(MS, mild) : draw_time(MS, lease + lease / 2);
    if (duration > 40 * SECOND)
        duration = 40 * SECOND;
    bool is_mild = (fault == STALL || fault == FREEZE) && duration <= mild && node->mild++ == 0;
    node->faulty |= !is_mild && fault != REFUSE && fault != CUT;
    if (node->mended_ns < now() + duration)
        node->mended_ns = now() + duration;
    switch (fault) {
    case CUT:
        if (happens(60))
            node->cuts_after = 1 + draw(happens(50) ? 100 : 30000);
        else
            network_cut(node, true, true);
        break;
    case HALF_CUT:
        network_cut(node, happens(30), happens(30));
        break;
    case STALL:
        trace("nothing moves to and from agent %zu for %.3f s", node->number, (double)duration / 1e9);
        node->stalled_until_ns = now() + duration;
        break;
    case REFUSE:
        trace("agent %zu cannot be reached anew for %.3f s", node->number, (double)duration / 1e9);
        node->refused_until_ns = now() + duration;
        node->faulty |= !node->ready_ns;
        if (happens(70))
            network_cut(node, true, happens(50));
        break;
    case FREEZE:
        freeze(FIRST_AGENT + node->number, duration);
        break;
    default:
        node_die(node);
    }
}

static void engine_freezes(void *context, int64_t duration) {
    if (happens(60))
        world.freeze_ns = duration; /* with something on its way */
    else
        freeze(ENGINE, duration);
}

/* ---- one seed */

static void plan_node(struct node *node) {
    int64_t lease = draw_time(3000, happens(20) ? 120000 : 30000) * MS;
    node->policy = (struct agent_link_policy){
        .lease_ns = lease, .silence_ns = AGENT_LINK_SILENCE_NS, .heartbeat_ns = AGENT_LINK_HEARTBEAT_NS};
    if (happens(50))
        node->policy = (struct agent_link_policy){.lease_ns = lease,
                                                  .silence_ns = draw_time(2000, 12000) * MS,
                                                  .heartbeat_ns = draw_time(500, 10000) * MS};
    /* Of a round trip, twice is less than the silence and the lease. */
    node->latency_ns = happens(10) ? draw_time(MS, 150 * MS) : draw_time(MS / 50, 5 * MS);
    node->jitter_ns = draw_time(0, node->latency_ns);
    /* Bytes on their way at once: so many that what is acknowledged in one piece takes no longer than a beat.
     */
    node->window = (size_t)PROTOCOL_ACKNOWLEDGE_BYTES >> draw(node->latency_ns > 5 * MS ? 2 : 9);
    node->start_ns = happens(50) ? 0 : draw_time(0, SECOND);
    later(ENGINE, node->start_ns, link_start, node, AGENT_LINK_HELLO_TIMEOUT);
    if (happens(25))
        return;
    for (uint64_t i = draw(6); i > 0; i--)
        later(NETWORK, draw_time(0, happens(15) ? node->start_ns + 12 * node->latency_ns : end_ns - now()),
              fault_happens, node, (int64_t)draw(happens(90) ? DIE : FAULTS));
}

static void plan_program(struct program *program) {
    bool is_large = happens(3); /* and more than is kept in memory while nobody reads it */
    int64_t start = draw_time(SECOND, end_ns - now());
    *program =
        (struct program){.node = &world.nodes[draw(world.node_count)],
                         .size = is_large ? (5 << 20) + draw(7 << 20) : draw(happens(50) ? 200 : 40000),
                         .piece = 1 + draw(is_large ? 60000 : 3000),
                         .pause_ns = is_large ? 10 * MS : draw_time(MS, 600 * MS),
                         .code = (int)draw(4),
                         .reads = happens(30),
                         .stubborn = happens(20),
                         .leaves_others = happens(15),
                         .failed = happens(5),
                         .out = -1,
                         .in = -1};
    if (program->reads)
        program->input = draw(happens(20) ? 600000 : 3000);
    later(ENGINE, start, program_start, program, 0);
    if (is_large)
        later(NETWORK, start + draw_time(0, 2 * SECOND), fault_happens, program->node, REFUSE);
}

static void plan(void) {
    world.node_count = 1 + draw(LINKS_MAX);
    end_ns = now() + draw_time(5 * SECOND, 150 * SECOND);
    for (size_t i = 0; i < world.node_count; i++) {
        struct node *node = &world.nodes[i];
        node->number = i;
        plan_node(node);
        for (uint64_t n = draw(4); n > 0; n--)
            later(ENGINE, draw_time(SECOND, end_ns - now()), clock_ask, node, (int64_t)draw(5));
        int64_t end =
            happens(10) ? draw_time(0, 12 * node->latency_ns) : end_ns - now() + draw_time(0, SECOND);
        later(ENGINE, node->start_ns + end, link_end, node, happens(15));
    }
    world.program_count = draw(PROGRAMS_MAX + 1);
    for (size_t i = 0; i < world.program_count; i++)
        plan_program(&world.programs[i]);
    if (!happens(15))
        return;
    int64_t duration = draw_time(MS, happens(70) ? 2 * SECOND : 40 * SECOND);
    for (size_t i = 0; i < world.node_count; i++) {
        struct node *node = &world.nodes[i];
        /* The beat before it may be as old as a beat is, and the one after it is to arrive. */
        node->faulty |= duration > node->policy.lease_ns / 2;
        node->mild++;
    }
    world.engine_frozen_ns = duration;
    later(NETWORK, draw_time(0, end_ns - now()), engine_freezes, NULL, duration);
}

/* What a link that is ready owes: silence is found out about, on time. */
static void check_silence(const struct node *node) {
    const struct agent_link_policy *policy = &node->policy;
    if (!node->link || agent_link_state(node->link) != AGENT_LINK_READY)
        return;
    int64_t since = node->heard_from_ns > node->ready_ns ? node->heard_from_ns : node->ready_ns;
    int64_t beat =
        policy->silence_ns / 2 < policy->heartbeat_ns ? policy->silence_ns / 2 : policy->heartbeat_ns;
    /* After an absence of its own the link waits for the whole silence once more. */
    int64_t absence = world.engine_frozen_ns ? world.engine_frozen_ns + policy->silence_ns : 0;
    must(now() - since <= beat + policy->silence_ns + SECOND + absence,
         "link %zu is ready, but its agent was silent for %.3f s", node->number,
         (double)(now() - since) / 1e9);
}

static void check_all(void) {
    for (size_t i = 0; i < world.node_count; i++) {
        const struct node *node = &world.nodes[i];
        check_silence(node);
        int64_t lease =
            !agent_serves(node) || node->agent.inbox.received ? node->policy.lease_ns : AGENT_FIRST_LEASE;
        if (agent_serves(node) && !world.actors[FIRST_AGENT + i].frozen)
            must(now() - node->heard_ns <= lease,
                 "agent %zu stays after a silence of %.3f s; its lease is %.3f s", i,
                 (double)(now() - node->heard_ns) / 1e9, (double)lease / 1e9);
        if (node->broken_ns && !node->closing_ns && !node->closed_ns) {
            int64_t since = node->broken_ns > node->mended_ns ? node->broken_ns : node->mended_ns;
            must(now() - since <= RETURN_MAX + world.engine_frozen_ns,
                 "link %zu does not come back, and does not end", i);
        }
        if (node->closing_ns && !node->closed_ns && !node->freed)
            must(now() - node->closing_ns <= FAREWELL_MAX, "link %zu does not end", i);
    }
}

static bool is_over(void) {
    for (size_t i = 0; i < world.node_count; i++) {
        const struct node *node = &world.nodes[i];
        if (node->there || !(node->closed_ns || node->freed) || !node->closing_ns)
            return false;
    }
    return true;
}

static void simulate(uint64_t seed) {
    world.seed = seed;
    world_init();
    plan();
    world_run(end_ns + 2 * FAREWELL_MAX + 120 * SECOND, is_over, check_all);
    must(is_over(), "an agent or a link is left over");
    for (size_t i = 0; i < world.node_count; i++)
        must(world.nodes[i].freed || world.nodes[i].answered == world.nodes[i].asked,
             "a request was not answered");
    for (size_t i = 0; i < world.program_count; i++) {
        const struct program *program = &world.programs[i];
        must(!program->command || program->node->freed || program->exits == 1,
             "nobody hears of the end of program %zu", i);
    }
    programs_clear();
    for (size_t i = 0; i < world.node_count; i++)
        agent_link_free(world.nodes[i].link);
    network_clear();
}

#define PRINT(name) printf(" %s %" PRIu64, #name, counters.name);
#define HAPPENED(name) &&counters.name > 0

int main(int count, char **arguments) {
    uint64_t first = 1, seeds = 2500;
    if (!world_read_seeds(count, arguments, &first, &seeds))
        return 2;
    for (uint64_t seed = first; seed < first + seeds; seed++)
        simulate(seed);
    printf("%" PRIu64 " seeds:", seeds);
    COUNTERS(PRINT)
    putchar('\n');
    for (size_t i = 0; i < FIRST_AGENT + NODES_MAX; i++)
        event_loop_free(world.actors[i].loop);
    if (seeds >= 500 && !(1 COUNTERS(HAPPENED))) {
        fprintf(stderr, "something never happened\n");
        return 1;
    }
    return 0;
}
