/* Facts of nodes that decide what a plan is: guesses before the nodes are known, the truth once they were
 * inspected. */
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/run/nodes/out.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Guesses ---------------------------------------------------------------------------------------------
 */

/* Physical cores of which this process may use a CPU: each by the first CPU that it has. */
static double count_cores(void) {
    cpu_set_t allowed, cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return 1;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        char path[96];
        unsigned long first = cpu; /* where the kernel does not say */
        cleanup(text_clear) struct text siblings;
        text_init(&siblings, 4096);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
        if (CPU_ISSET(cpu, &allowed) && file_read(path, &siblings, NULL) == 0) /* "0,4" or "0-1" */
            first = strtoul(siblings.bytes, NULL, 10);
        if (CPU_ISSET(cpu, &allowed) && first < CPU_SETSIZE)
            CPU_SET(first, &cores);
    }
    return CPU_COUNT(&cores);
}

static double find_memory(void) {
    static const char key[] = "MemAvailable:";
    struct text bytes;
    text_init(&bytes, 1 << 20);
    const char *at = file_read("/proc/meminfo", &bytes, NULL) == 0 ? strstr(bytes.bytes, key) : NULL;
    double memory = at ? strtod(at + sizeof key - 1, NULL) * 1024 : 0x1p30;
    text_clear(&bytes);
    return memory;
}

struct plan_facts plan_guess_facts(const struct campaign *campaign) {
    const struct testbed_choice *testbed = &campaign->testbed;
    size_t nodes = testbed->backend->expected_nodes(testbed->settings);
    return (struct plan_facts){
        .nodes = nodes ? (double)nodes : 1, .cores = count_cores(), .memory = find_memory()};
}

/* ---- The truth -------------------------------------------------------------------------------------------
 */

uint64_t run_available_memory(const struct run_node *node) {
    const struct node_facts *facts = node->facts;
    return facts->memory_limit < facts->memory_available ? facts->memory_limit : facts->memory_available;
}

static struct plan_facts find_facts(const struct run *run) {
    struct plan_facts facts = {.cores = INFINITY, .memory = INFINITY, .known = true};
    for (size_t i = 0; i < run->node_count; i++) {
        const struct run_node *node = &run->nodes[i];
        if (!run_node_is_in(node))
            continue;
        facts.nodes++;
        facts.cores = fmin(facts.cores, (double)node->core_count);
        facts.memory = fmin(facts.memory, (double)run_available_memory(node));
    }
    return facts;
}

static void record_facts(struct run *run, const struct plan_facts *facts) {
    char memory[NUMBER_TEXT_SIZE];
    journal_begin(run->journal, "facts");
    journal_integer(run->journal, "run_nodes", (int64_t)facts->nodes);
    journal_integer(run->journal, "node_cores", (int64_t)facts->cores);
    journal_integer(run->journal, "node_memory", (int64_t)facts->memory);
    journal_end(run->journal);
    run_note(run,
             "the design is made for %.0f node%s of %.0f physical core%s and %s of available memory each",
             facts->nodes, facts->nodes == 1 ? "" : "s", facts->cores, facts->cores == 1 ? "" : "s",
             number_describe_bytes(facts->memory, memory));
}

int run_plan_for_facts(struct run *run, struct failure *failure) {
    cleanup(plan_cleanup) struct plan *plan = NULL;
    if (run->plan->facts.known || !run->plan->uses_facts)
        return 0;
    struct plan_facts facts = find_facts(run);
    record_facts(run, &facts);
    int r = plan_new(run->campaign, &facts, &plan, failure);
    if (r < 0)
        return r;
    /* Others have the plan's address. */
    struct plan guessed = *run->plan;
    *run->plan = *plan;
    *plan = guessed;
    free(take_pointer(run->expected_seconds));
    r = run_read_expectations(run, failure);
    return r < 0 ? r : run_record_plan(run, failure);
}
