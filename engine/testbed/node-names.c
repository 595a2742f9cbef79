#include "engine/testbed/node-names.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/remote/nodes/group.h"
#include "engine/remote/nodes/ssh-nodes.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct named_host {
    const char *name, *destination;
};

static int compare_named(const void *a, const void *b) {
    return strcasecmp(((const struct named_host *)a)->name, ((const struct named_host *)b)->name);
}

/* Refuses names that differ in upper and lower case only: each name is a folder of the archive. */
static int check_differ(const struct host_list *hosts, char *const *names, struct failure *failure) {
    cleanup_free struct named_host *sorted = xcalloc(hosts->count, sizeof *sorted);
    for (size_t i = 0; i < hosts->count; i++)
        sorted[i] = (struct named_host){names[i], hosts->names[i]};
    qsort(sorted, hosts->count, sizeof *sorted, compare_named);
    for (size_t i = 1; i < hosts->count; i++)
        if (compare_named(&sorted[i - 1], &sorted[i]) == 0)
            return failure_input(failure, NULL, 0, 0,
                                 "two nodes would be called '%s': '%s' and '%s'; expected names that differ "
                                 "(an alias in ssh's configuration gives one)",
                                 sorted[i].name, sorted[i - 1].destination, sorted[i].destination);
    return 0;
}

int node_names_make(const struct host_list *hosts, char ***ret, struct failure *failure) {
    if (hosts->count == 0)
        return failure_input(failure, NULL, 0, 0, "the list of hosts is empty; expected at least one host");
    if (hosts->count > NODE_GROUP_MAX)
        return failure_input(failure, NULL, 0, 0, "the list has %zu hosts; at most %d are accepted",
                             hosts->count, NODE_GROUP_MAX);
    char **names = xcalloc(hosts->count, sizeof *names);
    int r = 0;
    for (size_t i = 0; i < hosts->count; i++)
        names[i] = ssh_node_name(hosts->names[i]);
    for (size_t i = 0; r == 0 && i < hosts->count; i++)
        r = ssh_node_check_name(names[i], hosts->names[i], failure);
    if (r == 0)
        r = check_differ(hosts, names, failure);
    if (r < 0)
        node_names_free(names, hosts->count);
    else
        *ret = names;
    return r;
}

void node_names_free(char **names, size_t count) {
    for (size_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
}
