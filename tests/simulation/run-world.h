/*
 * What a run finds in the simulated world: machines, the testbed that gives them, and the programs that its
 * agents start there. An agent of a later part is another node of world.nodes than that of an earlier one,
 * though it may be on the same machine, as both may be there at once.
 */
#ifndef ASSAY_TESTS_SIMULATION_RUN_WORLD_H
#define ASSAY_TESTS_SIMULATION_RUN_WORLD_H

#include "tests/simulation/world.h"

#include <stdlib.h>

enum {
    HOSTS = 8,
    SPARES = 2,
    MACHINES = HOSTS + SPARES,
    PARTS_MAX = NODES_MAX / MACHINES,
    CORES = 2, /* of each */
};

struct machine_of_run {
    char name[16], root[64];
    bool is_lost;    /* its power is gone for good */
    bool was_harmed; /* something happened that it may be lost for */
    int64_t latency_ns, jitter_ns;
    size_t window;
};

/* How likely it is, in percent, that a program of a unit does so. */
struct habits {
    unsigned fails, hangs, is_stubborn, is_immortal, is_not_there, leaves_others;
    unsigned throttles;  /* a node, from one sample to the next */
    unsigned tool_hangs; /* of the agent's own, on HANGING */
};

struct run_world {
    struct machine_of_run machines[MACHINES];
    struct habits habits;
    size_t hanging;             /* machine */
    bool is_hung;               /* a tool on it has hung in this part */
    unsigned part;              /* that was reserved last, from 1 */
    struct event_loop *no_loop; /* the engine's, while there is no run */
    int64_t lease_ns;
};
extern struct run_world run_world;

/* Makes the machines' files, once for all seeds. */
void machines_make(const char *folder);
/* For a seed. */
void machines_init(void);
/* As the kernel starts: files have their values, and nothing is kept. */
void machine_boot(const struct machine_of_run *machine);
/* Every file of every machine is as it was, and nothing is kept of it; or only the former, of machines that
 * nothing happened to. */
void machines_check(bool harmed_too);
/* Calls FUNCTION with each agent's node of MACHINE. */
void machine_each(size_t machine, void (*function)(struct node *node, int64_t argument), int64_t argument);

static inline unsigned number_of(const char *text) {
    return (unsigned)strtoul(text, NULL, 10);
}
/* What a unit's program prints. */
unsigned unit_answer(unsigned row, unsigned repetition);
/* How many programs run now. */
size_t tasks_alive(void);

#define RUN_COUNTERS(X)                                                                                      \
    X(completed)                                                                                             \
    X(partial)                                                                                               \
    X(failed)                                                                                                \
    X(interrupted)                                                                                           \
    X(killed)                                                                                                \
    X(resumed_parts)                                                                                         \
    X(units)                                                                                                 \
    X(units_hung)                                                                                            \
    X(units_failed)                                                                                          \
    X(units_missing)                                                                                         \
    X(nodes_lost)                                                                                            \
    X(nodes_replaced)                                                                                        \
    X(leases_over)                                                                                           \
    X(controls_set)                                                                                          \
    X(old_agents_ended)                                                                                      \
    X(lines_repeated)                                                                                        \
    X(deadlines)                                                                                             \
    X(tools_hung)
struct run_counters {
    RUN_COUNTERS(COUNTER)
};
extern struct run_counters *run_counters; /* of all processes */

#endif
