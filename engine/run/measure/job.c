#include "engine/run/measure/job.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/run/measure/job-mpi.h"
#include "engine/run/measure/measurement.h"
#include "engine/run/nodes/nodes.h"
#include "engine/run/nodes/software.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES_MAX = 256,
    MESSAGE_BYTES_MAX = 1 << 20,
    NOT_STARTED = 255, /* as ssh has it */
};
static const int64_t end_timeout_ns = 20 * EVENT_SECOND, check_period_ns = 5 * EVENT_SECOND;

/* A command that mpirun on one node has started on another. */
struct launch {
    struct job_node *from;
    unsigned number; /* the tool's */
    struct remote_command *command;
    struct launch *next;
};

/* The agent's --job tool on one node. */
struct job_node {
    struct job *job;
    struct run_node *node;
    struct remote_command *tool; /* NULL: not started, or ended */
    struct text input, errors;   /* the message that is not whole yet; why the tool ended */
    bool ready, load_asked;      /* load_asked: the tool was asked for busy_us and has not answered */
    unsigned sweeps;             /* sweeps that were asked for and have not ended */
    uint64_t busy_us;            /* processor time of the unit's processes, by the tool's last answer */
    uint64_t busy_before_us;     /* by the answer before */
};

struct job {
    struct measurement *measurement;
    char *link; /* "/tmp/assay-work-ID", of a later part "-2" */
    struct job_node *nodes;
    struct launch *launches;
    enum mpi_kind kind;
    size_t run_nodes;   /* nodes that took part when the job was made */
    bool closing;       /* job_free() is ending everything */
    int64_t checked_ns; /* monotonic: when stuck units were last looked for */
};

static struct job_node *node_of(const struct job *job, const struct run_node *node) {
    return &job->nodes[node - job->measurement->set->items];
}

/* ---- Speaking to the tools */

static void write_line(struct job_node *node, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sends a line to the node's --job tool. Nothing happens when the tool has ended. */
static void write_line(struct job_node *node, const char *format, ...) {
    char line[64];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (node->tool)
        (void)remote_command_write(node->tool, line, (size_t)length, NULL, NULL);
}

/* Sends output of LAUNCH to the mpirun that asked for it. It is dropped if too much waits to be sent: MPI
 * daemons rarely print anything of use. */
static void forward_output(struct launch *launch, enum remote_stream stream, const char *bytes,
                           size_t length) {
    struct remote_command *tool = launch->from->tool;
    if (!tool || remote_command_queued(tool) + LINE_BYTES_MAX + length > REMOTE_INPUT_LIMIT)
        return; /* the output of MPI daemons may be lost; it is rarely of use */
    write_line(launch->from, "output %u %d %zu\n", launch->number, stream == REMOTE_STDERR ? 2 : 1, length);
    (void)remote_command_write(tool, bytes, length, NULL, NULL);
}

/* ---- Launches */

static void free_launch(struct job *job, struct launch *launch) {
    struct launch **at = &job->launches;
    while (*at != launch)
        at = &(*at)->next;
    *at = launch->next;
    remote_command_free(launch->command);
    free(launch);
}

static void on_launch_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                             size_t length, void *context) {
    (void)command;
    forward_output(context, stream, bytes, length);
}

/* Tells the mpirun that asked for the launch how it ended, and frees it. */
static void on_launch_exit(struct remote_command *command, const struct remote_exit *exit,
                           const struct failure *failure, void *context) {
    (void)command;
    struct launch *launch = context;
    if (failure)
        forward_output(launch, REMOTE_STDERR, failure->text, strlen(failure->text));
    write_line(launch->from, "exit %u %d\n", launch->number,
               !exit             ? NOT_STARTED
               : exit->signalled ? 128 + exit->code
                                 : exit->code);
    free_launch(launch->from->job, launch);
}

static bool is_named(const char *name, const char *host) {
    return strcmp(name, host) == 0;
}

static bool is_named_short(const char *name, const char *host) {
    size_t length = strcspn(name, ".");
    return strlen(host) == length && memcmp(name, host, length) == 0;
}

/* Open MPI reads a name of digits in a host file as a number: "002" as 2. */
static bool is_numbered(const char *name, const char *host) {
    bool digits = name[0] && !name[strspn(name, "0123456789")];
    return digits && strcmp(name + strspn(name, "0"), host + strspn(host, "0")) == 0;
}

/* Finds a node by its name in the host file, or by what an MPI library makes of that. */
static const struct run_node *find_host(const struct node_set *set, const char *host) {
    static bool (*const ways[])(const char *, const char *) = {is_named, is_named_short, is_numbered};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
        for (size_t i = 0; i < set->count; i++)
            if (run_node_is_in(&set->items[i]) && ways[way](set->items[i].name, host))
                return &set->items[i];
    return NULL;
}

/* Starts COMMAND of an mpirun on the node HOST, with the software's environment and the mark by which ranks
 * are found. */
static int start_launch(struct launch *launch, const char *host, const char *command,
                        struct failure *failure) {
    struct node_set *set = launch->from->job->measurement->set;
    const struct run_node *on = find_host(set, host);
    if (!on)
        return failure_set_kind(failure, FAILURE_EXPERIMENT, -ENOENT,
                                "'%.200s' is not a node of this run that can start a command\n", host);
    cleanup_free char *mark = xformat("ASSAY_JOB=%s", set->record->id);
    const char *arguments[] = {"sh", "-c", command, NULL}, *own[] = {mark, NULL};
    cleanup_free const char **environment = software_join(software_environment(set, on), own);
    struct remote_command_specification specification = {.arguments = arguments, .environment = environment};
    struct remote_command_callbacks callbacks = {.on_output = on_launch_output, .on_exit = on_launch_exit};
    record_log(set->record, "node %s, for node %s: %s", on->name, launch->from->node->name, command);
    return remote_command_start(on->link, &specification, &callbacks, launch, &launch->command, failure);
}

/* Starts what an mpirun on FROM has asked for: REQUEST is HOST, NUL, COMMAND. A launch that cannot be started
 * is answered with its reason and NOT_STARTED. Ignored while the job's processes are being ended. */
static void begin_launch(struct job_node *from, unsigned number, const char *request, size_t length) {
    struct job *job = from->job;
    if (job->closing || from->sweeps > 0)
        return; /* the mpirun that asks for it is being ended */
    struct launch *launch = xcalloc(1, sizeof *launch);
    cleanup_free char *copy = xcalloc(length + 2, 1); /* two NULs, so that host and command both end */
    struct failure failure;
    memcpy(copy, request, length);
    *launch = (struct launch){.from = from, .number = number, .next = job->launches};
    job->launches = launch;
    if (start_launch(launch, copy, copy + strlen(copy) + 1, &failure) < 0) {
        forward_output(launch, REMOTE_STDERR, failure.text, strlen(failure.text));
        write_line(from, "exit %u %d\n", number, NOT_STARTED);
        free_launch(job, launch);
    }
}

/* The mpirun that asked for launch NUMBER has ended, so its command is ended too. */
static void handle_gone(struct job_node *from, unsigned number) {
    for (struct launch *launch = from->job->launches; launch; launch = launch->next)
        if (launch->from == from && launch->number == number && launch->command)
            remote_command_kill(launch->command, SIGTERM, NULL);
}

/* ---- What the tools say */

static void finish_sweep(struct job_node *node);

/* Handles a message of the node's tool that begins with LINE; *RET_BYTES is the number of bytes behind the
 * line that belong to it. False: these have not all come yet. */
static bool handle_message(struct job_node *node, const char *line, size_t length, size_t *ret_bytes) {
    char text[LINE_BYTES_MAX];
    unsigned number;
    size_t bytes, count, rest = node->input.length - length - 1;
    uint64_t busy_us;
    snprintf(text, sizeof text, "%.*s", (int)(length < sizeof text ? length : sizeof text - 1), line);
    if (sscanf(text, "launch %u %zu", &number, &bytes) == 2) {
        if (rest < bytes)
            return false;
        begin_launch(node, number, line + length + 1, bytes);
        *ret_bytes = bytes;
    } else if (sscanf(text, "gone %u", &number) == 1) {
        handle_gone(node, number);
    } else if (sscanf(text, "busy %" SCNu64 " %zu", &busy_us, &count) == 2) {
        node->busy_us = busy_us;
        node->load_asked = false;
    } else if (sscanf(text, "swept %zu", &count) == 1) {
        if (count > 0)
            record_note(node->job->measurement->set->record,
                        "node %s: %zu processes of a unit could not be ended", node->node->name, count);
        node->sweeps -= node->sweeps > 0;
        finish_sweep(node);
    } else if (strcmp(text, "ready") == 0) {
        node->ready = true;
    }
    return true;
}

/* Splits the tool's output into messages. A tool that sends more than MESSAGE_BYTES_MAX without a message is
 * ended. */
static void on_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                      size_t length, void *context) {
    (void)command;
    struct job_node *node = context;
    const char *end;
    if (text_append(stream == REMOTE_STDOUT ? &node->input : &node->errors, bytes, length) < 0)
        remote_command_kill(node->tool, SIGTERM, NULL); /* no message of the tool is so long */
    while (node->input.length > 0 && (end = memchr(node->input.bytes, '\n', node->input.length))) {
        size_t line = (size_t)(end - node->input.bytes), more = 0;
        if (!handle_message(node, node->input.bytes, line, &more))
            return;
        text_consume(&node->input, line + 1 + more);
    }
}

/* Fails the measurement when a tool ends early, or takes the node out when its link is lost. Sweeps that the
 * tool had not finished count as finished. */
static void on_tool_exit(struct remote_command *command, const struct remote_exit *exit,
                         const struct failure *failure, void *context) {
    struct job_node *node = context;
    struct job *job = node->job;
    struct failure why;
    node->tool = NULL;
    node->ready = node->load_asked = false;
    remote_command_free(command);
    if (exit && !job->closing) {
        failure_set_kind(&why, FAILURE_EXPERIMENT, -ECHILD, "node %s: the job helper exited: %.400s",
                         node->node->name, node->errors.length ? node->errors.bytes : "it gave no reason");
        measurement_fail(job->measurement, &why);
    } else if (!exit && !job->closing && run_node_is_in(node->node)) {
        measurement_lose_node(job->measurement, node->node, NODE_OUT_LOST, failure);
    }
    node->sweeps = 0;
    finish_sweep(node);
}

/* ---- Beginning and end */

bool job_is_wanted(const struct measurement *measurement) {
    const struct experiment *experiment = measurement->set->experiment;
    return experiment_has_ranks(experiment) || experiment->placement == EXPERIMENT_PLACEMENT_JOB;
}

void job_free_words(char ***words) {
    experiment_arguments_free(*words);
}

int job_new(struct measurement *measurement, struct job **ret, struct failure *failure) {
    struct node_set *set = measurement->set;
    struct job *job = *ret = xcalloc(1, sizeof *job);
    job->measurement = measurement;
    job->run_nodes = node_set_count_in(set);
    /* A link that an earlier part left on a node that lost its power points to a folder of that part. */
    job->link = set->record->part > 1 ? xformat("/tmp/assay-work-%s-%u", set->record->id, set->record->part)
                                      : xformat("/tmp/assay-work-%s", set->record->id);
    job->nodes = xcalloc(set->count, sizeof *job->nodes);
    for (size_t i = 0; i < set->count; i++) {
        job->nodes[i].job = job;
        job->nodes[i].node = &set->items[i];
        text_init(&job->nodes[i].input, MESSAGE_BYTES_MAX);
        text_init(&job->nodes[i].errors, MESSAGE_BYTES_MAX);
    }
    return experiment_has_ranks(set->experiment) ? mpi_find(set, &job->kind, failure) : 0;
}

/* Starts the agent's --job tool on one node. */
static int start_tool(struct job_node *node, struct failure *failure) {
    const struct node_set *set = node->job->measurement->set;
    const char *arguments[] = {"/proc/self/exe", "--job",         node->job->link,
                               RUN_WORK_FOLDER,  set->record->id, NULL};
    struct remote_command_specification specification = {
        .arguments = arguments, .input = REMOTE_INPUT_STREAM, .error_limit = MESSAGE_BYTES_MAX / 2};
    struct remote_command_callbacks callbacks = {.on_output = on_output, .on_exit = on_tool_exit};
    return remote_command_start(node->node->link, &specification, &callbacks, node, &node->tool, failure);
}

/* Turns the loop while WAITS is true of some node. 0 also when the measurement is ending; -ETIMEDOUT. */
static int wait_for_nodes(struct job *job, bool (*waits)(const struct job_node *node), int64_t timeout_ns,
                          struct failure *failure) {
    const struct node_set *set = job->measurement->set;
    int64_t deadline = clock_monotonic_ns() + timeout_ns, left;
    for (;;) {
        bool any = false;
        for (size_t i = 0; i < set->count; i++)
            any |= waits(&job->nodes[i]);
        if (!any || (!job->closing && (job->measurement->ended || set->record->interrupted)))
            return 0;
        if ((left = deadline - clock_monotonic_ns()) <= 0)
            return -ETIMEDOUT;
        event_loop_resume(set->loop); /* it was stopped for a node that was lost, perhaps */
        int r = event_loop_run_once(set->loop, left, failure);
        if (r < 0)
            return r;
    }
}

static bool is_awaited(const struct job_node *node) {
    return run_node_is_in(node->node) && ((node->tool && !node->ready) || node->sweeps > 0);
}

int job_make_ready(struct job *job, struct failure *failure) {
    const struct node_set *set = job->measurement->set;
    for (size_t i = 0; i < set->count; i++) {
        struct job_node *node = &job->nodes[i];
        struct failure why = {0};
        if (!run_node_is_in(node->node) || node->tool)
            continue;
        if (start_tool(node, &why) < 0 && run_node_is_in(node->node))
            measurement_lose_node(job->measurement, node->node, NODE_OUT_LOST, &why);
    }
    return wait_for_nodes(job, is_awaited, INT64_MAX / 2, failure);
}

static bool is_ending(const struct job_node *node) {
    return node->tool && agent_link_state(node->node->link) == AGENT_LINK_READY;
}

void job_free(struct job *job) {
    if (!job)
        return;
    const struct node_set *set = job->measurement->set;
    job->closing = true;
    while (job->launches)
        free_launch(job, job->launches);
    for (size_t i = 0; i < set->count; i++)
        if (job->nodes[i].tool)
            (void)remote_command_close_input(job->nodes[i].tool, NULL);
    (void)wait_for_nodes(job, is_ending, end_timeout_ns, NULL);
    for (size_t i = 0; i < set->count; i++) {
        remote_command_leave(job->nodes[i].tool);
        text_clear(&job->nodes[i].input);
        text_clear(&job->nodes[i].errors);
    }
    free(job->nodes);
    free(job->link);
    free(job);
}

/* ---- Starting units */

void job_append_hosts(const struct lane *lane, const struct experiment_shape *shape, struct text *text) {
    mpi_append_hosts(lane->measurement->job->kind, &lane->at, shape, text);
}

/* The nodes, ranks and threads of the lane's next unit. The smallest core count among the lane's nodes
 * counts. */
int job_shape(const struct lane *lane, struct experiment_shape *ret, struct failure *failure) {
    const struct node_set *set = lane->measurement->set;
    const struct design *design = set->plan->design;
    size_t cores = lane->at.shares[0].pu_count;
    cleanup_free double *factors = xcalloc(design->column_count + 1, sizeof *factors);
    double memory = set->plan->facts.memory;
    for (size_t i = 1; i < lane->at.count; i++)
        cores = lane->at.shares[i].pu_count < cores ? lane->at.shares[i].pu_count : cores;
    design_numbers(design, design_order_row(set->plan->order, lane_position(lane, lane->next)), factors);
    struct experiment_facts facts = {(double)lane->measurement->job->run_nodes, (double)cores, memory};
    return experiment_job_shape(set->experiment, factors, &facts, ret, failure);
}

int job_adapt(const struct lane *lane, const struct experiment_shape *shape,
              const struct experiment_values *values, char ***arguments, char ***environment,
              struct failure *failure) {
    const struct job *job = lane->measurement->job;
    return mpi_adapt(lane->measurement->set, job->kind, job->link, shape, values, arguments, environment,
                     failure);
}

/* ---- The end of a unit */

/* Is some node of LANE still ending what is left of the unit? */
static bool is_sweeping(const struct job *job, const struct lane *lane) {
    for (size_t i = 0; i < lane->at.count; i++)
        if (run_node_is_in(lane->at.shares[i].node) && node_of(job, lane->at.shares[i].node)->sweeps > 0)
            return true;
    return false;
}

/* Called when NODE has no sweep left: lanes whose nodes are all done continue. */
static void finish_sweep(struct job_node *node) {
    struct job *job = node->job;
    for (size_t i = 0; i < job->measurement->lane_count; i++) {
        struct lane *lane = &job->measurement->lanes[i];
        if (!lane->unit.after_sweep || is_sweeping(job, lane))
            continue;
        void (*then)(struct lane *) = lane->unit.after_sweep;
        lane->unit.after_sweep = NULL;
        then(lane);
    }
}

/* Ends all launches of the mpirun on FROM. True if there were any. */
static bool end_launches(struct job *job, const struct run_node *from) {
    bool any = false;
    for (struct launch *launch = job->launches, *next; launch; launch = next) {
        next = launch->next;
        if (launch->from->node == from) {
            free_launch(job, launch);
            any = true;
        }
    }
    return any;
}

/* Ends what is left of the lane's unit on its nodes, then calls THEN. A node that is out is also told, since
 * it may still hear it. */
void job_end_unit(struct lane *lane, bool good, void (*then)(struct lane *lane)) {
    struct job *job = lane->measurement->job;
    bool left = end_launches(job, lane->at.node);
    for (size_t i = 0; (left || !good) && i < lane->at.count; i++) {
        struct job_node *node = node_of(job, lane->at.shares[i].node);
        write_line(node, "sweep\n"); /* also to a node that is out: it may still receive it */
        node->sweeps += node->tool != NULL;
    }
    if (is_sweeping(job, lane))
        lane->unit.after_sweep = then;
    else if (then)
        then(lane);
}

bool job_nodes_are_reachable(const struct lane *lane) {
    for (size_t i = 0; i < lane->shares; i++)
        if (agent_link_state(lane->at.shares[i].node->link) != AGENT_LINK_READY)
            return false;
    return true;
}

/* ---- Stuck units */

/* Have the ranks on NODE used processor time between the last two answers of its tool? More than a hundredth
 * of a core counts: daemons of MPI use less, on any number of nodes, and one rank that works is seen among
 * many that wait. Less time than before means that processes have ended. */
static bool has_worked(struct job_node *node) {
    uint64_t before_us = node->busy_before_us;
    node->busy_before_us = node->busy_us;
    return node->busy_us > before_us + (uint64_t)check_period_ns / 1000 / 100 || node->busy_us < before_us;
}

/* Ends LANE's unit if for the experiment's `idle-timeout` its ranks have used no processor and it has printed
 * nothing: first by SIGTERM, at the next check by SIGKILL. While a node is out of reach or has not answered,
 * it counts as working. */
static void end_stuck_unit(struct job *job, struct lane *lane, int64_t now_ns) {
    struct lane_unit *unit = &lane->unit;
    double limit = job->measurement->set->experiment->idle_timeout;
    uint64_t printed = unit->output.length + lane->errors.length;
    bool works = printed != unit->printed || unit->idle_since_ns == 0;
    for (size_t i = 0; i < lane->shares; i++) {
        struct job_node *node = node_of(job, lane->at.shares[i].node);
        if (node->load_asked || !node->tool || !job_nodes_are_reachable(lane)) {
            unit->idle_since_ns = now_ns; /* a node that is out of reach is not known to be idle */
            return;
        }
        works |= has_worked(node);
    }
    if (works)
        unit->idle_since_ns = now_ns;
    unit->printed = printed;
    if (limit <= 0 || (double)(now_ns - unit->idle_since_ns) * 1e-9 < limit)
        return;
    remote_command_kill(lane->command, unit->stuck ? SIGKILL : SIGTERM, NULL);
    unit->stuck = true;
}

/* Every few seconds: ends units that are stuck, and asks each tool for its processor time, for the next
 * check. */
void job_end_stuck_units(struct job *job) {
    struct measurement *measurement = job->measurement;
    int64_t now_ns = clock_monotonic_ns();
    if (now_ns - job->checked_ns < check_period_ns)
        return;
    job->checked_ns = now_ns;
    for (size_t i = 0; i < measurement->lane_count; i++) {
        struct lane *lane = &measurement->lanes[i];
        if (!lane->command || lane->finished || lane->unit.fetching_files)
            continue;
        end_stuck_unit(job, lane, now_ns);
        for (size_t k = 0; k < lane->shares; k++) {
            struct job_node *node = node_of(job, lane->at.shares[k].node);
            if (!node->load_asked)
                write_line(node, "look\n");
            node->load_asked = node->tool;
        }
    }
}
