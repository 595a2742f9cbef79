/* The nodes that a run has reserved, for `assay nodes --run`: found and reached as the run's engine would. */
#include "engine/command-line/nodes/nodes.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/installation.h"
#include "engine/foundation/memory.h"
#include "engine/report/shown.h"
#include "engine/run/campaign/campaign.h"
#include "engine/run/record/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct reserved {
    struct campaign *campaign;
    struct testbed *testbed;
    char *folder, *id;
};

/* Why a job still waits, for one. */
static void on_report(void *context, const char *sentence) {
    const struct nodes *nodes = context;
    if (!nodes->quiet)
        fprintf(stderr, "assay: %s\n", shown(sentence).text);
}

/* Finds the reserved nodes through the testbed and waits until they can be used. FAILURE_INPUT: the run has
 * nothing reserved. */
static int find_nodes(struct reserved *reserved, const struct nodes *nodes,
                      const struct verb_arguments *arguments, bool is_held, bool leave_controls,
                      struct failure *failure) {
    const struct testbed_choice *testbed = &reserved->campaign->testbed;
    struct testbed_request request = {.loop = nodes->loop,
                                      .installation = arguments->installation,
                                      .run_id = reserved->id,
                                      .run_name = reserved->campaign->name,
                                      .folder = reserved->folder,
                                      .workspace = reserved->campaign->workspace,
                                      .only_reserved = true,
                                      .leave_controls = leave_controls,
                                      .report = on_report,
                                      .report_context = (void *)nodes};
    if (testbed->backend->wait && !is_held)
        return failure_input(
            failure, NULL, 0, 0,
            "the run has no nodes reserved; reserve with 'assay reserve' or 'assay resume' first");
    int r = testbed->backend->reserve(testbed->settings, &request, &reserved->testbed, failure);
    return r == 0 && testbed->backend->wait ? testbed->backend->wait(reserved->testbed, failure) : r;
}

/* Finds the nodes that the run of --run has reserved, and waits until they can be used. The agents get an id
 * of their own, apart from that of the run's agents. */
int reserved_open(const struct nodes *nodes, const struct verb_arguments *arguments, bool leave_controls,
                  struct reserved **ret, struct failure *failure) {
    struct reserved *reserved = *ret = xcalloc(1, sizeof *reserved);
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    int r = run_status_find_folder(verb_value(arguments, "--run"), &reserved->folder, failure);
    if (r == 0)
        r = run_status_read(reserved->folder, &status, failure);
    if (r == 0)
        r = campaign_read_recorded(reserved->folder, arguments->installation, NULL, 0, &reserved->campaign,
                                   failure);
    if (r < 0)
        return r;
    /* The run's own agents have folders of other names. */
    reserved->id = xformat("%.36s-nodes-%ld", status->run_id, (long)getpid());
    /* When the reservation ends may have changed since it was recorded, so the testbed is asked. */
    return find_nodes(reserved, nodes, arguments, status->history.held.is_held, leave_controls, failure);
}

int reserved_add(struct reserved *reserved, struct node_group *group, struct failure *failure) {
    const struct testbed_backend *backend = reserved->campaign->testbed.backend;
    struct agent_link_policy policy = backend->policy(reserved->testbed);
    int r = 0;
    for (size_t i = 0; r == 0 && i < backend->node_count(reserved->testbed); i++) {
        struct transport *transport = NULL;
        r = backend->connect(reserved->testbed, i, &transport, failure);
        if (r == 0)
            r = node_group_add(group, transport, &policy, failure);
    }
    return r;
}

void reserved_close(struct reserved *reserved) {
    if (!reserved)
        return;
    const struct testbed_backend *backend = reserved->testbed ? reserved->campaign->testbed.backend : NULL;
    if (backend && backend->leave)
        backend->leave(reserved->testbed);
    else if (backend) /* nothing was reserved */
        (void)backend->release(reserved->testbed, NULL);
    campaign_free(reserved->campaign);
    free(reserved->folder);
    free(reserved->id);
    free(reserved);
}
