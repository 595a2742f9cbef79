/* Notes and journals the differences between the nodes of a run, since results of unlike nodes are easily
 * compared unknowingly. */
#include "engine/run/nodes/nodes.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/nodes/kinds.h"

#include <string.h>

/* Machines of one kind report memory sizes that differ by what their firmware reserves. */
static const double memory_tolerance = 0.02;

enum { KINDS_SHOWN = 4 };

static char *cpu_model(const struct node_set *set, const struct run_node *node) {
    (void)set;
    return xstrdup(node->cpu_model ? node->cpu_model : node->facts->machine);
}

static char *core_count(const struct node_set *set, const struct run_node *node) {
    (void)set;
    return xformat("%zu", node->core_count);
}

static char *kernel(const struct node_set *set, const struct run_node *node) {
    (void)set;
    return xformat("%s %s", node->facts->kernel_name, node->facts->kernel_release);
}

static char *logical_cpus(const struct node_set *set, const struct run_node *node) {
    (void)set;
    return xformat("%zu", node->facts->pu_count);
}

/* The memory of NODE, rounded down to that of the smallest node within the tolerance, so that small
 * differences do not count. */
static char *memory(const struct node_set *set, const struct run_node *node) {
    char text[NUMBER_TEXT_SIZE];
    double own = (double)node->facts->memory_total, least = own;
    for (size_t i = 0; i < set->count; i++) {
        double other = run_node_is_in(&set->items[i]) ? (double)set->items[i].facts->memory_total : own;
        if (other < least && own <= other * (1 + memory_tolerance))
            least = other;
    }
    return xstrdup(number_describe_bytes(least, text));
}

static const struct {
    const char *what;
    char *(*value)(const struct node_set *set, const struct run_node *node);
} properties[] = {
    {"processor", cpu_model},
    {"physical cores", core_count},
    {"logical CPUs", logical_cpus},
    {"kernel", kernel},
    {"memory", memory},
};

static void journal_kind(struct node_set *set, const char *what, const struct node_kind *kind) {
    cleanup_free char *who = node_set_fold(set, kind->nodes, kind->count);
    journal_begin(set->record->journal, "difference");
    journal_string(set->record->journal, "what", what);
    journal_string(set->record->journal, "value", kind->value);
    journal_string(set->record->journal, "nodes", who);
    journal_end(set->record->journal);
}

/* "the nodes differ in kernel: nodes a-[1-31]: Linux 6.1; node a-32: Linux 5.10" */
void node_set_note_difference(struct node_set *set, const char *what, const struct node_texts *values) {
    cleanup(node_kinds_clear) struct node_kinds kinds = node_kinds_of(values);
    cleanup(text_clear) struct text sentence;
    text_init(&sentence, 16 << 10);
    if (kinds.count < 2)
        return;
    for (size_t k = 0; k < kinds.count; k++) {
        cleanup_free char *who = node_set_describe(set, kinds.items[k].nodes, kinds.items[k].count);
        if (k < KINDS_SHOWN)
            text_printf(&sentence, "%s%s: %s", k ? "; " : "", who, kinds.items[k].value);
        journal_kind(set, what, &kinds.items[k]);
    }
    if (kinds.count > KINDS_SHOWN)
        text_printf(&sentence, "; and %zu kinds more", kinds.count - KINDS_SHOWN);
    record_note(set->record, "the nodes differ in %s: %s", what, sentence.bytes);
}

/* Notes names that are one machine, by its boot id: they would measure each other. */
static void note_machines(struct node_set *set) {
    cleanup(node_texts_clear) struct node_texts values = node_texts_new(set->count);
    for (size_t i = 0; i < set->count; i++)
        if (run_node_is_in(&set->items[i]) && set->items[i].facts->boot_id[0])
            values.items[i] = xstrdup(set->items[i].facts->boot_id);
    cleanup(node_kinds_clear) struct node_kinds kinds = node_kinds_of(&values);
    for (size_t k = 0; k < kinds.count; k++) {
        if (kinds.items[k].count < 2)
            continue;
        cleanup_free char *who = node_set_describe(set, kinds.items[k].nodes, kinds.items[k].count);
        record_note(set->record,
                    "%s are one machine (they have the same boot id) and would disturb "
                    "each other; leave only one name in the testbed",
                    who);
        journal_kind(set, "machine", &kinds.items[k]);
    }
}

void node_set_note_differences(struct node_set *set) {
    if (node_set_count_in(set) < 2)
        return;
    for (size_t p = 0; p < sizeof properties / sizeof *properties; p++) {
        cleanup(node_texts_clear) struct node_texts values = node_texts_new(set->count);
        for (size_t i = 0; i < set->count; i++)
            if (run_node_is_in(&set->items[i]))
                values.items[i] = properties[p].value(set, &set->items[i]);
        node_set_note_difference(set, properties[p].what, &values);
    }
    note_machines(set);
}
