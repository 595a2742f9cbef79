#include "engine/testbed/testbed.h"

#include "engine/documents/bind.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/testbed/access.h"

#include <stdlib.h>
#include <string.h>

static const struct testbed_backend *const backends[] = {
    &testbed_local, &testbed_hosts, &testbed_slurm, &testbed_oar, &testbed_grid5000, &testbed_external};
static const char *const backend_names[] = {"local", "hosts", "slurm", "oar", "grid5000", "external"};
enum { BACKEND_COUNT = sizeof backends / sizeof *backends };
_Static_assert(sizeof backend_names / sizeof *backend_names == BACKEND_COUNT, "a name for every backend");

static const struct testbed_backend *find(const char *name) {
    for (size_t i = 0; i < BACKEND_COUNT; i++)
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    return NULL;
}

/* Refuses the value or key NODE, which names no testbed, and suggests the nearest name. */
static int refuse_name(const struct testbed_written *written, const struct document_node *node,
                       struct failure *failure) {
    char instead[TEXT_INSTEAD_SIZE];
    return bind_refuse(written->document, node, failure, "there is no testbed '%s'; %s", node->text,
                       text_instead(node->text, backend_names, BACKEND_COUNT, instead));
}

/* The backend that a key of the mapping NODE names. A mapping without such a key is passed to `hosts`, whose
 * bind() refuses it. */
static const struct testbed_backend *find_in_mapping(const struct document_node *node) {
    for (size_t i = 0; i < node->count; i++) {
        const struct testbed_backend *backend = find(node->keys[i]->text);
        if (backend)
            return backend;
    }
    return &testbed_hosts;
}

/* Finds a key of MAPPING that resembles the name of a testbed and is no key of `hosts`; NULL: there is none.
 */
static const struct document_node *find_misspelt(const struct document_node *mapping) {
    for (size_t i = 0; i < mapping->count; i++) {
        const char *key = mapping->keys[i]->text;
        size_t j = 0;
        while (j < ACCESS_FIELDS && strcmp(access_fields[j].key, key) != 0)
            j++;
        if (j == ACCESS_FIELDS && strcmp(key, "spares") != 0 && !find(key) &&
            text_nearest(key, backend_names, BACKEND_COUNT))
            return mapping->keys[i];
    }
    return NULL;
}

size_t testbed_spare_nodes(const struct testbed_choice *choice) {
    return choice->backend->spare_nodes ? choice->backend->spare_nodes(choice->settings) : 0;
}

/* Where `testbed:` is a list, replaces WRITTEN->node by the item to use, or by NULL where the command line
 * names the nodes, and sets the number and count of CHOICE. Refuses an empty list. */
static int choose_from_list(struct testbed_written *written, struct testbed_choice *choice,
                            struct failure *failure) {
    enum { TESTBEDS_MAX = 64 };
    const struct document_node *node = written->node;
    if (!node || node->kind != DOCUMENT_SEQUENCE)
        return 0;
    if (node->count <= written->choice || node->count > TESTBEDS_MAX)
        return bind_refuse(written->document, node, failure, "the list has %zu testbeds; expected 1 to %d",
                           node->count, TESTBEDS_MAX);
    written->node = written->node_count > 0 ? NULL : node->items[written->choice];
    if (node->count > 1 && written->node)
        *choice = (struct testbed_choice){.number = written->choice + 1, .count = node->count};
    return 0;
}

/* Chooses the backend: that of the command line's nodes, of the name or of the mapping's key, else `local`.
 */
int testbed_bind(const struct testbed_written *written, struct testbed_choice *ret, struct failure *failure) {
    struct testbed_written own = *written;
    struct testbed_choice choice = {0};
    int r = choose_from_list(&own, &choice, failure);
    if (r < 0)
        return r;
    written = &own;
    const struct document_node *node = own.node;
    const struct testbed_backend *backend = &testbed_local;
    if (node && node->kind == DOCUMENT_MAPPING) {
        const struct document_node *misspelt = find_misspelt(node);
        backend = find_in_mapping(node);
        if (misspelt && backend == &testbed_hosts && !document_get(node, "hosts"))
            return refuse_name(written, misspelt, failure);
    } else if (node) {
        if (!node->text || node->kind == DOCUMENT_NULL)
            return bind_refuse(written->document, node, failure,
                               "'testbed' is %s, expected a name or a mapping",
                               document_kind_name(node->kind));
        backend = find(node->text);
        if (!backend)
            return refuse_name(written, node, failure);
        own.node = NULL;
    }
    if (written->node_count > 0 && backend != &testbed_hosts) {
        const struct document_node *deploy = own.node ? document_get(own.node, "deploy") : NULL;
        if (deploy)
            return bind_refuse(written->document, deploy, failure,
                               "'deploy' of the testbed '%s' does not go with --nodes; write 'deploy' "
                               "beside 'hosts', or leave --nodes out",
                               backend->name);
        backend = &testbed_hosts;
        own.node = NULL;
    }
    if (written->spare_count > 0 && backend != &testbed_hosts)
        return failure_input(failure, NULL, 0, 0,
                             "--spares work with the testbed 'hosts' and with --nodes only; the "
                             "testbed is '%s'",
                             backend->name);
    choice.backend = backend;
    r = backend->bind(&own, &choice.settings, failure);
    if (r == 0)
        *ret = choice;
    return r;
}

void testbed_choice_clear(struct testbed_choice *choice) {
    if (choice->backend)
        choice->backend->free_settings(choice->settings);
    *choice = (struct testbed_choice){0};
}

int64_t testbed_job_deadline(const struct testbed *testbed) {
    static const int64_t second = 1000000000;
    const char *text = getenv("SLURM_JOB_END_TIME");
    int64_t seconds;
    (void)testbed;
    if (!text || !number_parse_int64(text, strlen(text), &seconds) || seconds <= 0 ||
        seconds > INT64_MAX / second)
        return 0;
    return seconds * second;
}
