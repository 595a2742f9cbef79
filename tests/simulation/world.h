/*
 * The simulated world: an engine with a link to each of a few nodes, an agent on each, the network between
 * them and the programs that the agents run, in one process and virtual time. What happens when is drawn from
 * a seed.
 *
 *     world.c      time, chance, who acts next, what is wrong
 *     network.c    streams of bytes, the agents that they are attached to, and what goes wrong with them
 *     programs.c   programs of which nothing is real but their pipes
 *     simulation.c the story of one seed, and what must hold whatever happens
 *
 * In whole-run.c the engine is not a link to each node but a run; README.md has its files.
 *
 * Actors are the engine, the network (which is never frozen, and plays the nodes' kernels too) and the
 * agents; each has an event loop. At one instant they act in any order until none has anything to do; then
 * the clock goes on to the next deadline. A run turns its own loop, and the others act while it waits.
 */
#ifndef ASSAY_TESTS_SIMULATION_WORLD_H
#define ASSAY_TESTS_SIMULATION_WORLD_H

#include "engine/agent/serve/agent.h"
#include "engine/remote/link/command.h"
#include "engine/remote/link/link.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NODES_MAX = 40, PROGRAMS_MAX = 8, ENGINE = 0, NETWORK = 1, FIRST_AGENT = 2, ATTEMPTS_NOTED = 8 };

#define MS EVENT_MILLISECOND
#define SECOND EVENT_SECOND

struct wire;

struct node {
    size_t number;
    const char *name;          /* NULL: "testnode" */
    const char *root;          /* of its machine's files; NULL: those of this machine */
    struct event_source *door; /* deferred, in the agent's loop: wires that want to be attached */
    struct wire *attached;     /* the last one */
    struct agent agent;
    bool there;        /* is there an agent? */
    unsigned born;     /* how many there have been */
    int64_t heard_ns;  /* when bytes last reached the agent, */
    int64_t before_ns; /* and at the last instant before that */
    int64_t gone_ns;
    bool unread; /* bytes came while it was frozen */
    /* the network to it */
    int64_t latency_ns, jitter_ns, stalled_until_ns, refused_until_ns, mended_ns;
    int refusal;       /* what is said to who is refused; 0: -ECONNREFUSED */
    size_t cuts_after; /* bytes; 0: not */
    unsigned attempts;
    int64_t attempt_ns[ATTEMPTS_NOTED]; /* when the first ones began */
    size_t window;
    bool faulty;   /* something was done to it that may break a link */
    unsigned mild; /* how much was done that must not */
    /* the engine's side */
    struct agent_link *link;
    struct agent_link_policy policy;
    int64_t start_ns;                                            /* when it is started, from the beginning */
    int64_t ready_ns, broken_ns, closing_ns, closed_ns, left_ns; /* 0: not */
    int64_t heard_from_ns;                                       /* bytes last came to the engine */
    int64_t answered_ns;                                         /* ... before the link broke */
    bool freed;
    bool keeps_controls; /* it has a snapshot of them, and puts them back */
    bool is_of_run;      /* the engine tells the agent to leave when it likes */
    int asked, answered; /* clocks */
};

struct program {
    struct node *node;
    struct remote_command *command;
    int started, exits, spawned;
    size_t size, got; /* bytes of its output: all of it; what the engine has */
    size_t printed, piece;
    int64_t pause_ns; /* between pieces */
    size_t input, given, taken;
    int code;
    bool reads, stubborn, leaves_others, alive, others, killed, failed;
    int out, in; /* our ends of its pipes; -1 */
    struct event_source *step, *end;
    event_child_callback *callback;
    void *context;
};

struct world {
    uint64_t seed, state, chance;
    struct {
        struct event_loop *loop;
        bool frozen;
    } actors[FIRST_AGENT + NODES_MAX];
    struct node nodes[NODES_MAX];
    size_t node_count;
    struct program programs[PROGRAMS_MAX];
    size_t program_count;
    int64_t engine_frozen_ns; /* altogether */
    int64_t freeze_ns;        /* the engine freezes for so long when it has next written something; 0: not */
    bool trace;
    /* Of a run: its loop is the engine's actor, and turns by itself. Called whenever it waits; may not
     * return. */
    void (*on_wait)(void);
    bool others_act;            /* meanwhile */
    int directories[NODES_MAX]; /* run directories */
};
extern struct world world;

/* How often what happened: a simulation in which nothing happens proves nothing. */
#define COUNTERS(X)                                                                                          \
    X(ready)                                                                                                 \
    X(broken)                                                                                                \
    X(resumed)                                                                                               \
    X(exits)                                                                                                 \
    X(failed_programs)                                                                                       \
    X(agent_leases)                                                                                          \
    X(engine_leases)                                                                                         \
    X(told)                                                                                                  \
    X(left)                                                                                                  \
    X(freed)                                                                                                 \
    X(deaths)                                                                                                \
    X(kept_much)
#define COUNTER(name) uint64_t name;
struct counters {
    COUNTERS(COUNTER)
};
extern struct counters counters;

/* ---- world.c */

/* What a program is asked for: [--count N] [--first SEED], or --seed SEED, with a trace. False: it has said
 * what is wrong. */
bool world_read_seeds(int count, char **arguments, uint64_t *first, uint64_t *seeds);
void world_init(void);
/* For files; removed at the end of the process, unless there is a trace. */
const char *world_folder(void);
uint64_t draw(uint64_t below);
int64_t draw_time(int64_t from_ns, int64_t to_ns);
bool happens(unsigned percent);
int64_t now(void);
/* A line of --seed N. */
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints the seed and ends the program, unless HOLDS. */
void must(bool holds, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Lets all act until END_NS, or until IS_OVER (may be NULL), which is asked at every instant. */
void world_run(int64_t end_ns, bool (*is_over)(void), void (*at_each_instant)(void));
/* Calls FUNCTION once in the loop of ACTOR, DELAY_NS from now. */
void later(size_t actor, int64_t delay_ns, void (*function)(void *context, int64_t argument), void *context,
           int64_t argument);
void freeze(size_t actor, int64_t duration_ns);
/* The clock of an engine that turns its own loop: until it has something to do, the others act. */
void world_use_run_clock(void (*on_wait)(void));

/* ---- network.c */

struct transport *scripted_new(struct node *node);
/* Whoever does not see it finds that all it sends vanishes and that nothing comes. */
void network_cut(struct node *node, bool engine_sees, bool agent_sees);
void node_die(struct node *node); /* the agent and all of its programs */
/* The engine's process is gone; with SILENTLY its machine, so that the agents hear nothing of that. */
void network_lose_engine(bool silently);
void network_clear(void);
/* The turn of an agent is over. */
void node_look(struct node *node);

/* ---- programs.c */

/* In the engine's loop. */
void program_start(void *context, int64_t argument);
void programs_are_gone(const struct node *node);
void programs_clear(void);
/* The INDEXth byte of the output of a program, and of the input of all. */
char program_byte(size_t number, size_t index);

#endif
