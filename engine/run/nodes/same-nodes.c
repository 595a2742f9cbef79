/* Whether the nodes of a run that is resumed are those that it began on. */
#include "archive-format/layout.h"
#include "engine/run/nodes/nodes.h"

#include "engine/documents/document.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool was_given(const struct run_history *past, const char *name) {
    for (size_t i = 0; i < past->node_count; i++)
        if (past->nodes[i]->given && strcmp(past->nodes[i]->name, name) == 0)
            return true;
    return false;
}

int node_set_check_names(const struct node_set *set, struct failure *failure) {
    const struct run_history *past = set->past;
    for (size_t i = 0; past->node_count > 0 && i < set->count; i++)
        if (set->items[i].state != NODE_SPARE && !was_given(past, set->items[i].name))
            return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                    "the testbed gives node %s, which this run has not measured on so far; "
                                    "expected %s%s",
                                    set->items[i].name, past->nodes[0]->name,
                                    past->node_count > 1 ? " and the others of its first part" : "");
    for (size_t i = 0; i < past->node_count; i++)
        if (past->nodes[i]->given && !node_set_find(set, past->nodes[i]->name))
            return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                    "the testbed no longer gives node %s; this run needs all nodes of its "
                                    "first part",
                                    past->nodes[i]->name);
    return 0;
}

/* A node measures all units of the design: what one that is not given again has left undone is done by those
 * that are. */
void node_set_leave_old_nodes(struct node_set *set) {
    const struct run_history *past = set->past;
    for (size_t i = 0; i < past->node_count; i++) {
        if (!past->nodes[i]->given || node_set_find(set, past->nodes[i]->name))
            continue;
        ledger_replace_node(set->record->ledger, past->nodes[i]->name);
        record_note(set->record,
                    "the testbed no longer gives node %s; its results are kept, and the "
                    "nodes of this part measure all units",
                    past->nodes[i]->name);
    }
}

static char *facts_path(const struct node_set *set, const struct run_node *node, unsigned part) {
    cleanup_free char *folder = archive_node_folder(node->name, part);
    return xformat("%s/%s/" ARCHIVE_NODE_FACTS, set->record->folder, folder);
}

/* nodes/NAME/facts.json of the last part before this one that inspected the node; NULL: no part did. */
static char *find_facts(const struct node_set *set, const struct run_node *node) {
    for (unsigned part = set->record->part - 1; part > 0; part--) {
        cleanup_free char *path = facts_path(set, node, part);
        if (file_exists(path))
            return take_pointer(path);
    }
    return NULL;
}

static const char *text_of(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    return value && value->text && value->kind != DOCUMENT_NULL ? value->text : "unknown";
}

/* Are the processors the same? They decide whether results can be compared. */
static bool same_processors(const struct document_node *before, const struct document_node *now) {
    static const char *const members[] = {"index", "core", "package", "numa_node"};
    const struct document_node *a = document_get(before, "pus"), *b = document_get(now, "pus");
    if (!a || !b || a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < sizeof members / sizeof *members; k++)
            if (strcmp(text_of(a->items[i], members[k]), text_of(b->items[i], members[k])) != 0)
                return false;
    return true;
}

static void note_change(struct node_set *set, const struct run_node *node, const char *what,
                        const char *before, const char *now) {
    record_note(set->record, "node %s: %s has changed since the part before: was %s, is %s", node->name, what,
                before, now);
    struct journal *journal = node_set_begin_entry(set, "node-changed", node);
    journal_string(journal, "what", what);
    journal_string(journal, "before", before);
    journal_string(journal, "now", now);
    journal_end(journal);
}

/* Refuses a node whose machine type, CPU model or processors differ from the earlier part. Other differences
 * are noted. */
static int compare_facts(struct node_set *set, const struct run_node *node,
                         const struct document_node *before, const struct document_node *now,
                         struct failure *failure) {
    static const char *const models[] = {"machine", "cpu_model"};
    static const char *const noted[] = {"kernel_release", "kernel_version", "microcode",
                                        "memory_total_bytes"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(text_of(before, models[i]), text_of(now, models[i])) != 0)
            return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                    "this is another machine than in the part before: its %s was %.100s, "
                                    "and is %.100s",
                                    models[i], text_of(before, models[i]), text_of(now, models[i]));
    if (!same_processors(before, now))
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "this node has other processors than in the part before; its remaining "
                                "units could not be compared with those measured");
    for (size_t i = 0; i < sizeof noted / sizeof *noted; i++)
        if (strcmp(text_of(before, noted[i]), text_of(now, noted[i])) != 0)
            note_change(set, node, noted[i], text_of(before, noted[i]), text_of(now, noted[i]));
    return 0;
}

static int check_node(struct node_set *set, const struct run_node *node, struct failure *failure) {
    cleanup_free char *past_path = find_facts(set, node), *path = facts_path(set, node, set->record->part);
    /* A file that a crash has torn is not compared. */
    cleanup(document_cleanup) struct document *before = NULL, *now = NULL;
    if (!past_path || document_read_json(past_path, &before, NULL) < 0)
        return 0;
    int r = document_read_json(path, &now, failure);
    return r < 0 ? r : compare_facts(set, node, before->root, now->root, failure);
}

int node_set_check_same(struct node_set *set, struct failure *failure) {
    cleanup_free struct failure *failures = xcalloc(set->count + 1, sizeof *failures);
    for (struct run_node *node = NULL; (node = node_set_next(set, node));)
        if (node->facts)
            check_node(set, node, &failures[node->number]);
    return node_set_merge_failures(set, failures, "checking", failure);
}
