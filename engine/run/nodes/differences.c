/* What differs between the nodes of a run. Results of unlike nodes are compared all the same, by whoever does
 * not know: so it is said, and journalled. */
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/nodes/kinds.h"
#include "engine/run/nodes/out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Machines of one kind tell memory sizes that differ by what their firmware keeps. */
static const double memory_tolerance = 0.02;

enum { KINDS_SHOWN = 4 };

static char *cpu_model(const struct run_node *node) {
    return strdup(node->cpu_model ? node->cpu_model : node->facts->machine);
}

static char *core_count(const struct run_node *node) {
    return text_format("%zu", node->core_count);
}

static char *kernel(const struct run_node *node) {
    return text_format("%s %s", node->facts->kernel_name, node->facts->kernel_release);
}

static char *logical_cpus(const struct run_node *node) {
    return text_format("%zu", node->facts->pu_count);
}

static const struct {
    const char *what;
    char *(*value)(const struct run_node *node);
} properties[] = {
    {"processor", cpu_model},
    {"physical cores", core_count},
    {"logical CPUs", logical_cpus},
    {"kernel", kernel},
};

static void journal_kind(struct run *run, const char *what, const struct node_kind *kind) {
    cleanup_free char *who = run_fold_nodes(run, kind->nodes, kind->count);
    journal_begin(run->journal, "difference");
    journal_string(run->journal, "what", what);
    journal_string(run->journal, "value", kind->value);
    journal_string(run->journal, "nodes", who);
    journal_end(run->journal);
}

/* "the nodes differ in kernel: nodes a-[1-31]: Linux 6.1; node a-32: Linux 5.10" */
int run_note_difference(struct run *run, const char *what, const char *const *values,
                        struct failure *failure) {
    struct node_kinds kinds;
    if (node_kinds_init(&kinds, values, run->node_count) < 0)
        return failure_memory(failure);
    if (kinds.count > 1) {
        cleanup(text_clear) struct text sentence;
        text_init(&sentence, 16 << 10);
        for (size_t k = 0; k < kinds.count; k++) {
            cleanup_free char *who = run_nodes_in_words(run, kinds.items[k].nodes, kinds.items[k].count);
            if (who && k < KINDS_SHOWN)
                text_printf(&sentence, "%s%s: %s", k ? "; " : "", who, kinds.items[k].value);
            journal_kind(run, what, &kinds.items[k]);
        }
        if (kinds.count > KINDS_SHOWN)
            text_printf(&sentence, "; and %zu kinds more", kinds.count - KINDS_SHOWN);
        run_note(run, "the nodes differ in %s: %s", what, sentence.bytes);
    }
    node_kinds_clear(&kinds);
    return 0;
}

static int tell_property(struct run *run, const char *what, char *(*value)(const struct run_node *node),
                         struct failure *failure) {
    char **values = calloc(run->node_count, sizeof *values);
    int r = values ? 0 : failure_memory(failure);
    for (size_t i = 0; r == 0 && i < run->node_count; i++)
        if (run_node_is_in(&run->nodes[i]) && !(values[i] = value(&run->nodes[i])))
            r = failure_memory(failure);
    if (r == 0)
        r = run_note_difference(run, what, (const char *const *)values, failure);
    for (size_t i = 0; values && i < run->node_count; i++)
        free(values[i]);
    free(values);
    return r;
}

struct sized {
    uint64_t memory;
    size_t node;
};

static int compare_memories(const void *a, const void *b) {
    uint64_t left = ((const struct sized *)a)->memory, right = ((const struct sized *)b)->memory;
    return (left > right) - (left < right);
}

/* Nodes within the tolerance of the smallest of their kind are alike. */
static int tell_memory(struct run *run, struct failure *failure) {
    cleanup_free struct sized *sorted = xcalloc(run->node_count, sizeof *sorted);
    cleanup_free char *texts = xcalloc(run->node_count, NUMBER_TEXT_SIZE);
    cleanup_free const char **values = xcalloc(run->node_count, sizeof *values);
    size_t count = 0;
    for (size_t i = 0; i < run->node_count; i++)
        if (run_node_is_in(&run->nodes[i]))
            sorted[count++] = (struct sized){run->nodes[i].facts->memory_total, i};
    qsort(sorted, count, sizeof *sorted, compare_memories);
    double smallest = 0;
    for (size_t i = 0; i < count; i++) {
        double memory = (double)sorted[i].memory;
        bool alike = i > 0 && memory <= smallest * (1 + memory_tolerance);
        char *text = texts + i * NUMBER_TEXT_SIZE;
        if (!alike)
            smallest = memory;
        values[sorted[i].node] = number_describe_bytes(smallest, text);
    }
    return run_note_difference(run, "memory", values, failure);
}

/* Two names of one machine would measure each other. */
static int tell_machines(struct run *run, struct failure *failure) {
    cleanup_free const char **values = xcalloc(run->node_count, sizeof *values);
    for (size_t i = 0; i < run->node_count; i++)
        if (run_node_is_in(&run->nodes[i]) && run->nodes[i].facts->boot_id[0])
            values[i] = run->nodes[i].facts->boot_id;
    struct node_kinds kinds;
    if (node_kinds_init(&kinds, values, run->node_count) < 0)
        return failure_memory(failure);
    for (size_t k = 0; k < kinds.count; k++)
        if (kinds.items[k].count > 1) {
            cleanup_free char *who = run_nodes_in_words(run, kinds.items[k].nodes, kinds.items[k].count);
            run_note(run, "%s are one machine: they have the same boot id, and disturb each other",
                     who ? who : "nodes");
            journal_kind(run, "machine", &kinds.items[k]);
        }
    node_kinds_clear(&kinds);
    return 0;
}

int run_note_differences(struct run *run, struct failure *failure) {
    int r = 0;
    if (run_count_in(run) < 2)
        return 0;
    for (size_t i = 0; r == 0 && i < sizeof properties / sizeof *properties; i++)
        r = tell_property(run, properties[i].what, properties[i].value, failure);
    if (r == 0)
        r = tell_memory(run, failure);
    if (r == 0)
        r = tell_machines(run, failure);
    return r;
}
