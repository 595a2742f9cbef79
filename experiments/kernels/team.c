#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { SPINS = 1 << 14 }; /* between calls of sched_yield(), in case other programs need the PU */

static struct {
    cpu_set_t allowed; /* the PUs that the process may run on, as it was started */
    pthread_mutex_t mutex;
    pthread_cond_t begun;
    unsigned round; /* of work, under the mutex */
    unsigned active;
    void (*work)(unsigned index, void *context);
    void *context;
    atomic_uint awake, done, released; /* released: the round that may run */
} team = {.mutex = PTHREAD_MUTEX_INITIALIZER, .begun = PTHREAD_COND_INITIALIZER};

/* Pins the calling thread to the PU number INDEX of those that the process may run on. */
static void pin(unsigned index) {
    int cpu = 0;
    for (unsigned left = index + 1; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &team.allowed) && --left == 0)
            break;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(cpu, &own);
    if (sched_setaffinity(0, sizeof own, &own) < 0)
        die(EXIT_SYSTEM, "cannot pin a thread to CPU %d", cpu);
}

/* Waits, without sleeping, until the counter has the value; yields the PU now and then. */
static void spin_until(atomic_uint *counter, unsigned value) {
    for (unsigned spins = 1; atomic_load_explicit(counter, memory_order_acquire) != value; spins++)
        if (spins % SPINS == 0)
            sched_yield();
}

/* The main function of a thread of the team. It sleeps until a round begins in which it is active, reports
 * that it is awake, spins until all are released, and does the work. */
static void *thread_main(void *argument) {
    unsigned index = (unsigned)(uintptr_t)argument, seen = 0;
    pin(index);
    for (;;) {
        pthread_mutex_lock(&team.mutex);
        while (team.round == seen)
            pthread_cond_wait(&team.begun, &team.mutex);
        seen = team.round;
        bool is_active = index < team.active;
        pthread_mutex_unlock(&team.mutex);
        if (!is_active)
            continue;
        atomic_fetch_add(&team.awake, 1);
        spin_until(&team.released, seen);
        team.work(index, team.context);
        atomic_fetch_add_explicit(&team.done, 1, memory_order_release);
    }
    return NULL;
}

/* How many PUs the process may run on. */
static unsigned team_most(void) {
    if (CPU_COUNT(&team.allowed) == 0 && sched_getaffinity(0, sizeof team.allowed, &team.allowed) < 0)
        die(EXIT_SYSTEM, "cannot read which CPUs this process may run on");
    return (unsigned)CPU_COUNT(&team.allowed);
}

/* Starts COUNT - 1 threads and pins each, and the caller, to its own PU; ends the program if there are too
 * few. */
void team_start(unsigned count) {
    if (count > team_most())
        die(EXIT_INPUT,
            "%u threads are set; expected at most %u, the number of CPUs that this "
            "process may run on",
            count, team_most());
    for (unsigned i = 1; i < count; i++) {
        pthread_t thread;
        int failed = pthread_create(&thread, NULL, thread_main, (void *)(uintptr_t)i);
        if (failed)
            die(EXIT_SYSTEM, "cannot start a thread: %s", strerror(failed));
    }
    pin(0);
}

/* Runs WORK in the first ACTIVE threads, the caller included; WATCH runs from when all are awake until all
 * are done. */
void team_run(unsigned active, void (*work)(unsigned index, void *context), void *context,
              struct stopwatch *watch) {
    pthread_mutex_lock(&team.mutex);
    team.active = active;
    team.work = work;
    team.context = context;
    atomic_store(&team.awake, 0);
    atomic_store(&team.done, 0);
    unsigned round = ++team.round;
    pthread_cond_broadcast(&team.begun);
    pthread_mutex_unlock(&team.mutex);
    spin_until(&team.awake, active - 1);
    if (watch)
        stopwatch_start(watch);
    atomic_store_explicit(&team.released, round, memory_order_release);
    work(0, context);
    spin_until(&team.done, active - 1);
    if (watch)
        stopwatch_stop(watch);
}
