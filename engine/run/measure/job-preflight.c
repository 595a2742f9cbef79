/* Before the first unit of a job: can each pair of its nodes exchange a byte by MPI? The program is that of
 * experiments/mpi-preflight, built on the nodes. */
#include "engine/run/measure/job-mpi.h"
#include "engine/run/measure/measurement.h"
#include "engine/run/nodes/nodes.h"
#include "engine/run/nodes/software.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE ".preflight.c"
#define PROGRAM ".preflight"
#define LIMIT_SECONDS "10" /* for a pair */
enum {
    TIMEOUT_MS = 120000,
    REASON_MAX = 1200, /* bytes of what mpirun prints: it says why first, and then much else */
};

/* ---- The program */

static int put_source(struct node_set *set, struct failure *failure) {
    cleanup_free char *folder = NULL, *path = NULL;
    cleanup_free struct failure *failures = NULL;
    int r = installation_find(set->installation, INSTALLATION_EXPERIMENT, "mpi-preflight", &folder, failure);
    if (r < 0)
        return r;
    path = xformat("%s/preflight.c", folder);
    struct node_put put = {path, RUN_WORK_FOLDER "/" SOURCE};
    r = node_group_put(set->group, &put, &failures, NULL, failure);
    return r < 0 ? r : node_set_merge_failures(set, failures, "put '" SOURCE "'", failure);
}

/* "mpicc" beside "mpirun", "mpicc.mpich" beside "mpirun.mpich". NULL: of another name. */
static char *name_compiler(const char *mpirun) {
    static const char *const names[] = {"mpirun", "mpiexec.hydra", "mpiexec"};
    const char *slash = strrchr(mpirun, '/'), *base = slash ? slash + 1 : mpirun;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(base, names[i], strlen(names[i])) == 0)
            return xformat("%.*smpicc%s", (int)(base - mpirun), mpirun, base + strlen(names[i]));
    return NULL;
}

/* Builds the program that tests MPI on all nodes. 1: it cannot be built, which is noted; negative: a failure.
 */
static int build_program(struct node_set *set, struct failure *failure) {
    cleanup(job_free_words) char **mpirun = NULL;
    struct node_result *results;
    int r = put_source(set, failure);
    if (r == 0)
        r = software_mpirun(set, &mpirun, failure);
    if (r < 0)
        return r;
    cleanup_free char *compiler = name_compiler(mpirun[0]);
    const char *arguments[] = {compiler ? compiler : "mpicc", "-O2", "-o", PROGRAM, SOURCE, NULL};
    r = mpi_run(set, arguments, &results, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < set->count; i++)
        if (node_set_has(set, i) && !node_result_is_good(&results[i])) {
            record_note(set->record,
                        "cannot test MPI between the nodes beforehand: node %s has no working "
                        "%s",
                        set->items[i].name, arguments[0]);
            r = 1;
        }
    node_results_free(set->group, results);
    return r;
}

/* ---- The exchange */

/* Finds the pair of ranks that cannot exchange a byte. Preferred is a pair that both ranks report; a rank
 * that only waits for another one is reported by one side. False: none is reported. */
static bool find_stuck(const char *output, unsigned *ret_a, unsigned *ret_b) {
    bool found = false;
    unsigned a, b;
    for (const char *at = output; (at = strstr(at, "stuck ")); at++) {
        char back[64];
        if (sscanf(at, "stuck %u %u", &a, &b) != 2)
            continue;
        snprintf(back, sizeof back, "stuck %u %u\n", b, a);
        bool both = strstr(output, back);
        if (!found || both) {
            *ret_a = a;
            *ret_b = b;
        }
        found = true;
        if (both)
            break;
    }
    return found;
}

/* Then the nodes that are left are tried again. */
static bool has_lost_node(const struct lane *lane) {
    for (size_t i = 0; i < lane->at.count; i++)
        if (!run_node_is_in(lane->at.shares[i].node))
            return true;
    return false;
}

/* Records what each rank's "network RANK NAME" says with the software of its node. */
static void record_networks(const struct lane *lane, const char *output) {
    for (size_t i = 0; i < lane->at.count; i++)
        cJSON_DeleteItemFromObjectCaseSensitive(lane->at.shares[i].node->software, "mpi_networks");
    for (const char *at = output; (at = strstr(at, "network ")); at++) {
        size_t rank;
        char name[256];
        if (sscanf(at, "network %zu %255[^\n]", &rank, name) != 2 || rank >= lane->at.count)
            continue;
        cJSON *software = lane->at.shares[rank].node->software,
              *list = cJSON_GetObjectItemCaseSensitive(software, "mpi_networks");
        json_add_string(list ? list : json_add_array(software, "mpi_networks"), NULL, name);
    }
}

/* Checks the output of the test: it is good once the pairs are counted. The failure names the nodes that
 * cannot reach each other, or says how the program ended. */
static int check_preflight(const struct lane *lane, const struct node_result *result,
                           struct failure *failure) {
    const struct remote_exit *exit = &result->exit;
    unsigned a, b;
    char how[128];
    cleanup(text_clear) struct text why;
    text_init(&why, REASON_MAX + sizeof how + 8);
    if (result->outcome != NODE_DONE) {
        *failure = result->failure;
        return failure->code;
    }
    if (strstr(result->output.bytes, "pairs ") || (exit->code == 0 && !exit->signalled && !exit->timed_out)) {
        record_networks(lane, result->output.bytes);
        return 0;
    }
    if (find_stuck(result->output.bytes, &a, &b) && a < lane->at.count && b < lane->at.count)
        return failure_set_kind(failure, FAILURE_EXPERIMENT, -ENOTCONN,
                                "nodes %s and %s cannot exchange a byte by MPI within " LIMIT_SECONDS
                                " s, so that jobs would hang; is there a firewall, or an interface that the "
                                "others do not reach?",
                                lane->at.shares[a].node->name, lane->at.shares[b].node->name);
    text_append_string(&why, remote_exit_describe(exit, how, sizeof how));
    lane_append_errors(result->error.bytes, true, REASON_MAX, &why);
    return failure_set_kind(failure, FAILURE_EXPERIMENT, -ENOTCONN,
                            "MPI does not work between the nodes: a program in which each pair of them "
                            "exchanges a byte %s",
                            why.bytes);
}

/* Writes the host file, and runs the test with one rank on each node. */
static int run_exchange(struct lane *lane, struct failure *failure) {
    struct node_set *set = lane->measurement->set;
    struct experiment_shape shape = {lane->at.count, lane->at.count, 1, 1, false};
    struct experiment_values none = {0};
    cleanup(job_free_words) char **arguments = xcalloc(3, sizeof *arguments);
    cleanup(job_free_words) char **environment = xcalloc(1, sizeof *environment);
    cleanup_free bool *nodes = xcalloc(set->count, sizeof *nodes);
    cleanup(text_clear) struct text hosts;
    text_init(&hosts, 16 << 20);
    arguments[0] = xstrdup("./" PROGRAM);
    arguments[1] = xstrdup(LIMIT_SECONDS);
    job_append_hosts(lane, &shape, &hosts);
    int r = agent_link_write_file_and_wait(lane->at.node->link, RUN_WORK_FOLDER "/" JOB_HOST_FILE,
                                           hosts.bytes, hosts.length, 0666, failure);
    if (r == 0)
        r = job_adapt(lane, &shape, &none, &arguments, &environment, failure);
    if (r < 0)
        return r;
    cleanup_free const char **added =
        software_join(software_environment(set, lane->at.node), (const char *const *)environment);
    struct remote_command_specification specification = {.arguments = (const char *const *)arguments,
                                                         .environment = added,
                                                         .folder = RUN_WORK_FOLDER,
                                                         .output_limit = LANE_ERRORS_MAX,
                                                         .error_limit = LANE_ERRORS_MAX,
                                                         .timeout_ms = TIMEOUT_MS};
    struct node_group_command command = {.specification = &specification, .nodes = nodes};
    struct node_result *results;
    nodes[lane->at.node->number] = true;
    r = node_group_run(set->group, &command, &results, failure);
    if (r < 0)
        return r;
    r = has_lost_node(lane) ? 0 : check_preflight(lane, &results[lane->at.node->number], failure);
    node_results_free(set->group, results);
    return r;
}

/* Refuses two names of one machine: MPI libraries connect such ranks in one run and not in the next.
 * Containers on a machine have host names of their own. */
static int refuse_same_machine(const struct lane *lane, struct failure *failure) {
    const struct placement_share *shares = lane->at.shares;
    for (size_t i = 0; i < lane->at.count; i++)
        for (size_t k = 0; k < i && shares[i].node->facts->boot_id[0]; k++) {
            const struct node_facts *one = shares[i].node->facts, *other = shares[k].node->facts;
            if (strcmp(one->boot_id, other->boot_id) == 0 && strcmp(one->host_name, other->host_name) == 0)
                return failure_set_kind(
                    failure, FAILURE_EXPERIMENT, -EINVAL,
                    "nodes %s and %s are one machine (host name '%s', the same boot id), on "
                    "which MPI cannot count as two; leave one of both names out of the "
                    "testbed",
                    shares[k].node->name, shares[i].node->name, one->host_name);
        }
    return 0;
}

/* Tests MPI between the lane's nodes by a program in which each pair exchanges a byte. With one node, or
 * without ranks, nothing is tested. */
int job_preflight(struct lane *lane, struct failure *failure) {
    struct node_set *set = lane->measurement->set;
    if (lane->at.count < 2 || !experiment_has_ranks(set->experiment))
        return 0;
    int r = refuse_same_machine(lane, failure);
    if (r == 0)
        r = build_program(set, failure);
    if (r == 0) {
        r = run_exchange(lane, failure);
        job_end_unit(lane, false, NULL);
    }
    return r < 0 && !has_lost_node(lane) ? r : 0;
}
