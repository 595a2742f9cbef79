/* Before the first unit of a job: can each pair of its nodes exchange a byte by MPI? The program is that of
 * experiments/mpi-preflight, built on the nodes. */
#include "engine/run/measure/job-mpi.h"
#include "engine/run/measure/measurement.h"
#include "engine/run/nodes/command.h"
#include "engine/run/nodes/out.h"
#include "engine/run/nodes/software.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/run/nodes/answers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE ".preflight.c"
#define PROGRAM ".preflight"
#define LIMIT_SECONDS "10" /* for a pair */
enum { TIMEOUT_MS = 120000, SOURCE_BYTES_MAX = 1 << 20 };

/* ---- The program */

static void on_written(struct agent_link *link, const struct failure *failure, void *context) {
    (void)link;
    struct answer *answer = context;
    struct failure *failures = answer->answers->context;
    if (failure)
        failures[answer->node] = *failure;
    answers_take(answer);
}

static int write_source(struct run *run, const struct text *source, struct failure *failure) {
    cleanup_free struct failure *failures = xcalloc(run->node_count, sizeof *failures);
    cleanup(answers_clear) struct answers answers = {0};
    int r = answers_init(&answers, run->loop, run->node_count, failures, failure);
    for (size_t i = 0; r == 0 && i < run->node_count; i++) {
        if (!run_concerns(run, i))
            continue;
        struct answer *answer = answers_ask(&answers, run->nodes[i].link, i, 0);
        if (agent_link_write_file(answer->link, RUN_WORK_FOLDER "/" SOURCE, source->bytes, source->length,
                                  0666, on_written, answer, &failures[i]) < 0)
            answers_take(answer);
    }
    if (r == 0)
        r = answers_wait(&answers, failure);
    return r < 0 ? r : run_merge_failures(run, failures, "write '" SOURCE "'", failure);
}

static int write_hosts(struct lane *lane, const struct text *hosts, struct failure *failure) {
    struct run *run = lane->measurement->run;
    struct failure why = {0};
    cleanup(answers_clear) struct answers answers = {0};
    int r = answers_init(&answers, run->loop, 1, &why, failure);
    if (r < 0)
        return r;
    struct answer *answer = answers_ask(&answers, lane->at.node->link, 0, 0);
    r = agent_link_write_file(answer->link, RUN_WORK_FOLDER "/" JOB_HOST_FILE, hosts->bytes, hosts->length,
                              0666, on_written, answer, failure);
    if (r < 0)
        return r;
    r = answers_wait(&answers, failure);
    if (r == 0 && why.code < 0)
        *failure = why;
    return r < 0 ? r : why.code;
}

static int specify_build(struct run *run, size_t node, struct remote_command_specification *ret,
                         void *context, struct failure *failure) {
    (void)failure;
    ret->arguments = context;
    ret->environment = software_environment(run, &run->nodes[node]);
    ret->folder = RUN_WORK_FOLDER;
    return 0;
}

/* "mpicc" beside "mpirun", "mpicc.mpich" beside "mpirun.mpich". NULL when out of memory, or of another name.
 */
static char *name_compiler(const char *mpirun) {
    static const char *const names[] = {"mpirun", "mpiexec.hydra", "mpiexec"};
    const char *slash = strrchr(mpirun, '/'), *base = slash ? slash + 1 : mpirun;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(base, names[i], strlen(names[i])) == 0)
            return text_format("%.*smpicc%s", (int)(base - mpirun), mpirun, base + strlen(names[i]));
    return NULL;
}

/* 1: it cannot be built there, which is noted. */
static int build(struct run *run, struct failure *failure) {
    cleanup_free char *folder = NULL, *path = NULL, *compiler = NULL;
    cleanup(text_clear) struct text source;
    char **mpirun = NULL;
    text_init(&source, SOURCE_BYTES_MAX);
    int r = installation_find(run->request->installation, INSTALLATION_EXPERIMENT, "mpi-preflight", &folder,
                              failure);
    if (r == 0 && !(path = file_join(folder, "preflight.c")))
        r = failure_memory(failure);
    if (r == 0)
        r = file_read(path, &source, failure);
    if (r == 0)
        r = write_source(run, &source, failure);
    if (r == 0)
        r = mpi_program(run, &mpirun, failure);
    compiler = mpirun ? name_compiler(mpirun[0]) : NULL;
    experiment_arguments_free(mpirun);
    const char *arguments[] = {compiler ? compiler : "mpicc", "-O2", "-o", PROGRAM, SOURCE, NULL};
    struct node_result *results = NULL;
    if (r == 0)
        r = node_command_run(run, &(struct node_command){.specify = specify_build, .context = arguments},
                             &results, failure);
    for (size_t i = 0; r == 0 && i < run->node_count; i++)
        if (run_concerns(run, i) && !node_result_is_good(&results[i])) {
            run_note(run,
                     "whether MPI works between the nodes is not tried before: node %s has no %s that works",
                     run->nodes[i].name, arguments[0]);
            r = 1;
        }
    if (results)
        node_results_free(run->group, results);
    return r;
}

/* ---- The exchange */

struct exchange {
    struct event_loop *loop;
    struct text output, errors;
    struct remote_exit exit;
    struct failure failure;
    bool ended;
};

static void on_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                      size_t length, void *context) {
    (void)command;
    struct exchange *exchange = context;
    text_append(stream == REMOTE_STDOUT ? &exchange->output : &exchange->errors, bytes, length);
}

static void on_ended(struct remote_command *command, const struct remote_exit *exit,
                     const struct failure *failure, void *context) {
    (void)command;
    struct exchange *exchange = context;
    exchange->ended = true;
    if (exit)
        exchange->exit = *exit;
    if (failure)
        exchange->failure = *failure;
}

/* The lines of MPI libraries' errors in one, without the rules around them. */
static const char *flatten(struct text *errors) {
    size_t kept = 0;
    for (size_t i = 0; i < errors->length; i++) {
        char c = errors->bytes[i] > ' ' ? errors->bytes[i] : ' ', last = kept ? errors->bytes[kept - 1] : ' ';
        if ((c != ' ' && c != '-') || last != c)
            errors->bytes[kept++] = c;
    }
    if (kept == 0)
        return "it printed nothing";
    errors->bytes[kept] = '\0';
    return errors->bytes;
}

/* The pair whose two ranks say so; or else the first: of a rank that waits for another only that one does. */
static bool find_stuck(const struct text *output, unsigned *ret_a, unsigned *ret_b) {
    bool found = false;
    unsigned a, b;
    for (const char *at = output->bytes; at && (at = strstr(at, "stuck ")); at++) {
        char back[64];
        if (sscanf(at, "stuck %u %u", &a, &b) != 2)
            continue;
        snprintf(back, sizeof back, "stuck %u %u\n", b, a);
        bool both = strstr(output->bytes, back);
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

/* Ranks that are stuck, and those that never began, are named by their nodes: each has one. */
static int judge(const struct lane *lane, struct exchange *exchange, struct failure *failure) {
    const struct remote_exit *exit = &exchange->exit;
    unsigned a, b;
    char how[128];
    if (exchange->failure.code < 0) {
        *failure = exchange->failure;
        return failure->code;
    }
    if (find_stuck(&exchange->output, &a, &b) && a < lane->at.count && b < lane->at.count)
        return failure_set_kind(failure, FAILURE_EXPERIMENT, -ENOTCONN,
                                "nodes %s and %s cannot exchange a byte by MPI within " LIMIT_SECONDS
                                " s, so that jobs would hang; is there a firewall, or an interface that the "
                                "others do not reach?",
                                lane->at.shares[a].node->name, lane->at.shares[b].node->name);
    if (exit->code == 0 && !exit->signalled && !exit->timed_out)
        return 0;
    return failure_set_kind(
        failure, FAILURE_EXPERIMENT, -ENOTCONN,
        "MPI does not work between the nodes: a program in which each pair of them exchanges "
        "a byte %s: %.500s",
        remote_exit_describe(exit, how, sizeof how), flatten(&exchange->errors));
}

static bool is_over(const struct text *output) {
    return output->length > 0 && strstr(output->bytes, "pairs ");
}

static int run_exchange(struct lane *lane, struct failure *failure) {
    struct run *run = lane->measurement->run;
    struct exchange exchange = {.loop = run->loop};
    struct experiment_shape shape = {lane->at.count, lane->at.count, 1, 1, false};
    struct experiment_values none = {0};
    struct remote_command *command = NULL;
    char **arguments = calloc(3, sizeof *arguments), **environment = calloc(1, sizeof *environment);
    cleanup(text_clear) struct text hosts;
    text_init(&hosts, 16 << 20);
    text_init(&exchange.output, 2 * LANE_ERRORS_MOST);
    text_init(&exchange.errors, 2 * LANE_ERRORS_MOST);
    int r = arguments && environment && (arguments[0] = strdup("./" PROGRAM)) &&
                    (arguments[1] = strdup(LIMIT_SECONDS)) && job_append_hosts(lane, &shape, &hosts) == 0
                ? 0
                : failure_memory(failure);
    if (r == 0)
        r = write_hosts(lane, &hosts, failure);
    if (r == 0)
        r = job_adapt(lane, &shape, &none, &arguments, &environment, failure);
    cleanup_free const char **added =
        r == 0 ? software_join(software_environment(run, lane->at.node), (const char *const *)environment)
               : NULL;
    struct remote_command_specification specification = {.arguments = (const char *const *)arguments,
                                                         .environment = added,
                                                         .folder = RUN_WORK_FOLDER,
                                                         .output_limit = LANE_ERRORS_MOST,
                                                         .error_limit = LANE_ERRORS_MOST,
                                                         .timeout_ms = TIMEOUT_MS};
    struct remote_command_callbacks callbacks = {.on_output = on_output, .on_exit = on_ended};
    if (r == 0)
        r = remote_command_start(lane->at.node->link, &specification, &callbacks, &exchange, &command,
                                 failure);
    /* All is known once the pairs are counted. What comes after may hang: MPICH 4.0.2 over UCX does in
     * MPI_Finalize. */
    while (r >= 0 && command && !exchange.ended && !is_over(&exchange.output) && !lane->measurement->ended &&
           !run->interrupted && !has_lost_node(lane))
        r = event_loop_run_once(run->loop, EVENT_SECOND, failure);
    r = r > 0 ? 0 : r;
    bool over = is_over(&exchange.output);
    if (r == 0 && exchange.ended && !over && !has_lost_node(lane))
        r = judge(lane, &exchange, failure);
    remote_command_free(command);
    experiment_arguments_free(arguments);
    experiment_arguments_free(environment);
    text_clear(&exchange.output);
    text_clear(&exchange.errors);
    job_end_unit(lane, false, NULL);
    return r;
}

int job_preflight(struct lane *lane, struct failure *failure) {
    struct run *run = lane->measurement->run;
    if (lane->at.count < 2 || !experiment_has_ranks(run->experiment))
        return 0;
    int r = build(run, failure);
    if (r == 0)
        r = run_exchange(lane, failure);
    return r < 0 && !has_lost_node(lane) ? r : 0;
}
