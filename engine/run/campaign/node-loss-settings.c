#include "engine/run/campaign/node-loss-settings.h"

#include "engine/documents/bind.h"
#include "engine/remote/nodes/group.h"

const char *const node_loss_action_names[] = {
    [NODE_LOSS_ABORT] = "abort", [NODE_LOSS_CONTINUE] = "continue", [NODE_LOSS_REPLACE] = "replace", NULL};

struct written {
    int action;
    int64_t at_least;
};

static const struct bind_field fields[] = {
    {.key = "do",
     .type = BIND_CHOICE,
     .offset = offsetof(struct written, action),
     .choices = node_loss_action_names},
    {.key = "at-least",
     .type = BIND_INTEGER,
     .offset = offsetof(struct written, at_least),
     .minimum = 1,
     .maximum = NODE_GROUP_MOST},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static const struct bind_field alone = {
    .key = "node-loss", .type = BIND_CHOICE, .choices = node_loss_action_names};

/* What cannot come about is said now, not when a node is lost in the night. */
static int check(const struct document *document, const struct document_node *node,
                 const struct testbed_choice *testbed, const struct written *written,
                 struct failure *failure) {
    const struct document_node *action = document_get(node, "do"), *least = document_get(node, "at-least");
    size_t nodes = testbed->backend->expected_nodes(testbed->settings), spares = testbed_spare_nodes(testbed);
    if (!action)
        action = node;
    if (written->action == NODE_LOSS_REPLACE && spares == 0)
        return failure_input(failure, document->file, action->line, action->column,
                             "'node-loss' is 'replace', and the testbed has no spares; expected 'spares' "
                             "beside the 'hosts' of 'testbed'");
    if (written->action != NODE_LOSS_REPLACE && spares > 0)
        return failure_input(failure, document->file, action->line, action->column,
                             "'node-loss' is '%s', and the testbed has %zu spare%s that nobody would use; "
                             "expected 'replace'",
                             node_loss_action_names[written->action], spares, spares == 1 ? "" : "s");
    if (least && written->action == NODE_LOSS_ABORT)
        return failure_input(failure, document->file, least->line, least->column,
                             "'at-least' is how many nodes must be left to go on, and a run that aborts does "
                             "not; expected 'do: continue' or 'do: replace'");
    if (least && nodes > 0 && (size_t)written->at_least > nodes)
        return failure_input(failure, document->file, least->line, least->column,
                             "'at-least' is %lld, and the run has %zu node%s", (long long)written->at_least,
                             nodes, nodes == 1 ? "" : "s");
    return 0;
}

int node_loss_settings_bind(const struct document *document, const struct document_node *node,
                            const struct testbed_choice *testbed, bool replace,
                            struct node_loss_settings *ret, struct failure *failure) {
    struct written written = {.at_least = 1};
    written.action = testbed_spare_nodes(testbed) > 0                           ? NODE_LOSS_REPLACE
                     : testbed->backend->expected_nodes(testbed->settings) == 1 ? NODE_LOSS_ABORT
                                                                                : NODE_LOSS_CONTINUE;
    int r = 0;
    if (node && node->kind == DOCUMENT_MAPPING)
        r = bind_mapping(document, node, "node-loss", fields, FIELD_COUNT, &written, failure);
    else if (node)
        r = bind_value(document, node, &alone, &written.action, failure);
    if (replace)
        written.action = NODE_LOSS_REPLACE;
    if (r == 0 && node)
        r = check(document, node, testbed, &written, failure);
    if (r == 0)
        *ret = (struct node_loss_settings){(enum node_loss_action)written.action, written.at_least};
    return r;
}
