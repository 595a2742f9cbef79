/* From the options of `assay nodes` to nodes that are connected, and back. */
#include "engine/command-line/nodes/nodes.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/installation.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/launch/agent-transport.h"
#include "engine/report/shown.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

static const int64_t terminal_period_ns = 100 * EVENT_MILLISECOND; /* between two drawings of the line */
static const int64_t plain_period_ns = 5 * EVENT_SECOND;           /* when stderr is no terminal */

/* ---- options */

static int refuse(const struct verb_arguments *arguments, const char *name, const char *expected,
                  struct failure *failure) {
    return failure_input(failure, arguments->verb->name, 0, 0, "%s '%s' is not %s", name,
                         verb_value(arguments, name), expected);
}

int nodes_time_option(const struct verb_arguments *arguments, const char *name, int64_t *ret_ns,
                      struct failure *failure) {
    const char *value = verb_value(arguments, name);
    double seconds;
    if (!value)
        return 0;
    if (!unit_parse(value, UNIT_TIME, &seconds))
        return refuse(arguments, name, unit_expectation(UNIT_TIME), failure);
    if (!(seconds >= 0.001 && seconds <= 366.0 * 86400))
        return refuse(arguments, name, "between 1 ms and 366 days", failure);
    *ret_ns = (int64_t)(seconds * (double)EVENT_SECOND);
    return 0;
}

int nodes_size_option(const struct verb_arguments *arguments, const char *name, uint64_t *ret,
                      struct failure *failure) {
    const char *value = verb_value(arguments, name);
    double bytes;
    if (!value)
        return 0;
    if (!unit_parse(value, UNIT_SIZE, &bytes) || !(bytes >= 1 && bytes <= 1e15))
        return refuse(arguments, name, unit_expectation(UNIT_SIZE), failure);
    *ret = (uint64_t)bytes;
    return 0;
}

static int add_host_list(struct host_list *list, const char *text, const char *from,
                         struct failure *failure) {
    if (text[0] == '@')
        return host_list_read(list, text + 1, failure);
    int r = host_list_parse(list, text, failure);
    if (r < 0 && failure->place[0] == '\0')
        snprintf(failure->place, sizeof failure->place, "%s", from);
    return r;
}

/* Reads the nodes of -w, or else of the variable ASSAY_NODES. Refused: no nodes. */
static int read_list(struct host_list *list, const struct verb_arguments *arguments,
                     struct failure *failure) {
    const char *text;
    for (size_t i = 0; (text = verb_value_at(arguments, "--nodes", i)); i++) {
        int r = add_host_list(list, text, "--nodes", failure);
        if (r < 0)
            return r;
    }
    const char *environment = getenv("ASSAY_NODES");
    if (!verb_value(arguments, "--nodes") && environment && environment[0]) {
        int r = add_host_list(list, environment, "ASSAY_NODES", failure);
        if (r < 0)
            return r;
    }
    if (list->count == 0)
        return failure_input(failure, arguments->verb->name, 0, 0,
                             "no nodes are given; expected -w LIST, such as -w 'dahu-[1-32].grenoble', --run "
                             "RUN, or the variable ASSAY_NODES");
    return 0;
}

/* Refuses options about nodes and connections beside --run: the run's campaign has these. */
static int check_run(const struct verb_arguments *arguments, struct failure *failure) {
    static const char *const others[] = {
        "--nodes",      "--user",   "--port",    "--identity", "--jump",  "--ssh-config", "--known-hosts",
        "--accept-new", "--window", "--timeout", "--lease",    "--agent", "--sudo",       "--workspace"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (verb_value(arguments, others[i]))
            return failure_input(
                failure, arguments->verb->name, 0, 0,
                "%s beside --run: the run's campaign says which nodes there are and how they "
                "are reached; expected one of the two",
                others[i]);
    return 0;
}

static int read_agent_kind(const struct verb_arguments *arguments, enum agent_kind *ret,
                           struct failure *failure) {
    const char *value = verb_value(arguments, "--agent");
    if (!value || strcmp(value, "auto") == 0)
        *ret = AGENT_AUTO;
    else if (strcmp(value, "binary") == 0)
        *ret = AGENT_BINARY;
    else if (strcmp(value, "source") == 0)
        *ret = AGENT_SOURCE;
    else
        return refuse(arguments, "--agent", "'auto', 'binary' or 'source'", failure);
    return 0;
}

/* The words of --sudo, separated by commas as the agent expects; NULL: none. The caller frees. */
static int read_sudo(const struct verb_arguments *arguments, char **ret, struct failure *failure) {
    const char *value = verb_value(arguments, "--sudo");
    *ret = NULL;
    if (!value)
        return 0;
    *ret = xstrdup(strcmp(value, "yes") == 0 ? "sudo -n" : value);
    if (strchr(value, ',') || !value[strspn(value, " ")])
        return refuse(arguments, "--sudo", "yes, or a command such as 'sudo -n', without commas", failure);
    for (char *at = *ret; (at = strchr(at, ' '));)
        *at = ',';
    return 0;
}

static int read_ssh_options(const struct verb_arguments *arguments, struct ssh_client_options *ret,
                            struct failure *failure) {
    uint64_t port = 0, window = 0;
    int r = verb_count(arguments, "--port", 1, 65535, &port, failure);
    if (r == 0)
        r = verb_count(arguments, "--window", 1, SSH_WINDOW_MAX, &window, failure);
    if (r == 0)
        r = nodes_time_option(arguments, "--timeout", &ret->timeout_ns, failure);
    ret->user = verb_value(arguments, "--user");
    ret->port = (unsigned)port;
    ret->identities = verb_values(arguments, "--identity", &ret->identity_count);
    ret->jump = verb_value(arguments, "--jump");
    ret->config = verb_value(arguments, "--ssh-config");
    ret->known_hosts = verb_value(arguments, "--known-hosts");
    ret->accepted_hosts = verb_value(arguments, "--accept-new");
    ret->window = (unsigned)window;
    return r;
}

/* Whose agents these are, for who finds them left over: "nodes@HOST:PID". */
static char *make_label(void) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    for (char *at = host; *at; at++)
        if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ||
              *at == '.' || *at == '-'))
            *at = '_';
    return xformat("nodes@%s:%ld", host, (long)getpid());
}

static char *make_folder_prefix(void) {
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = (uint64_t)clock_wall_ns() ^ ((uint64_t)getpid() << 40);
    return xformat("assay-nodes-%016" PRIx64, random);
}

/* ---- progress */

static void clear_line(struct nodes *nodes) {
    if (nodes->is_line_drawn)
        fputs("\r\033[K", stderr);
    nodes->is_line_drawn = false;
}

void nodes_doing(struct nodes *nodes, const char *doing) {
    clear_line(nodes);
    nodes->doing = doing;
    /* The first progress is only shown after a period: a short wait is not worth a line. */
    nodes->last_shown_ns = clock_monotonic_ns();
}

/* Shows how many nodes have answered, on a line of the terminal, or now and then. */
static void on_progress(struct node_group *group, size_t done, size_t total, void *context) {
    (void)group;
    struct nodes *nodes = context;
    int64_t now = clock_monotonic_ns();
    int64_t period = nodes->is_terminal ? terminal_period_ns : plain_period_ns;
    if (nodes->quiet || !nodes->doing || now - nodes->last_shown_ns < period)
        return;
    nodes->last_shown_ns = now;
    fprintf(stderr, "%s%s: %zu of %zu nodes%s", nodes->is_terminal ? "\r\033[K" : "",
            shown(nodes->doing).text, done, total, nodes->is_terminal ? "" : "\n");
    nodes->is_line_drawn = nodes->is_terminal;
}

static void print_news(struct nodes *nodes, size_t node, const char *what, const struct failure *why) {
    clear_line(nodes);
    fprintf(stderr, "assay: node %s: %s%s%s\n", shown(node_group_name(nodes->group, node)).text, what,
            why ? ": " : "", why ? shown(why->text).text : "");
}

/* Prints that a connection broke or is back: waiting took longer because of that. Nodes that were never
 * connected, or are lost, are named at the end. */
static void on_link_state(struct node_group *group, size_t node, enum agent_link_state state,
                          const struct failure *why, void *context) {
    struct nodes *nodes = context;
    if (nodes->quiet || group != nodes->group)
        return;
    const struct transport *transport = agent_link_transport(node_group_link(group, node));
    const struct agent_arrival *agent =
        state == AGENT_LINK_READY && transport ? agent_transport_arrival(transport) : NULL;
    if (agent && agent->damage)
        print_news(nodes, node, agent->damage, &(struct failure){.text = "a new agent was delivered"});
    if (state == AGENT_LINK_BROKEN)
        print_news(nodes, node, "the connection broke; trying again", why);
    else if (state == AGENT_LINK_READY && agent_link_greeting(node_group_link(group, node))->resumed > 0)
        print_news(nodes, node, "the connection is back", NULL);
}

/* ---- signals */

static void on_signal(struct event_source *self, int signal_number, void *context) {
    (void)self;
    (void)signal_number;
    event_loop_stop(context);
}

static int watch_signals(struct nodes *nodes, struct failure *failure) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!event_loop_add_signal(nodes->loop, numbers[i], on_signal, nodes->loop))
            return failure_set(failure, -errno, "cannot watch for signals: %s", strerror(errno));
    return 0;
}

/* ---- opening */

/* A descriptor a node and more; the usual soft limit, 1,024, is there for select(2), which we do not use. */
static void raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Makes the transports by ssh from the options. */
static int open_ssh(struct nodes *nodes, const struct verb_arguments *arguments, bool leave_controls,
                    struct failure *failure) {
    cleanup_free char *label = make_label(), *prefix = make_folder_prefix();
    struct ssh_nodes_options options = {.workspace = verb_value(arguments, "--workspace"),
                                        .label = label,
                                        .folder_prefix = prefix,
                                        .leave_controls = leave_controls,
                                        .remove_directory = true};
    int r = read_ssh_options(arguments, &options.ssh, failure);
    cleanup_free const char *const *identities = options.ssh.identities;
    cleanup_free char *sudo = NULL;
    if (r == 0)
        r = read_sudo(arguments, &sudo, failure);
    options.sudo = sudo;
    if (r == 0)
        r = read_agent_kind(arguments, &options.agent, failure);
    if (r == 0)
        r = nodes_time_option(arguments, "--lease", &options.policy.lease_ns, failure);
    return r < 0 ? r : ssh_nodes_new(nodes->loop, &options, arguments->installation, &nodes->ssh, failure);
}

/* Makes the group of all nodes. */
static int add_nodes(struct nodes *nodes, struct failure *failure) {
    struct node_group_listener listener = {
        .on_node = on_link_state, .on_progress = on_progress, .context = nodes};
    int r = node_group_new(nodes->loop, &listener, &nodes->group);
    if (r == 0 && nodes->reserved)
        return reserved_add(nodes->reserved, nodes->group, failure);
    for (size_t i = 0; i < nodes->list.count && r == 0; i++) {
        struct transport *transport = NULL;
        r = ssh_nodes_transport(nodes->ssh, nodes->list.names[i], &transport, failure);
        if (r == 0)
            r = node_group_add(nodes->group, transport, ssh_nodes_policy(nodes->ssh), failure);
    }
    return r;
}

static bool any_is_there(const struct node_group *group) {
    for (size_t i = 0; i < node_group_count(group); i++)
        if (node_group_is_there(group, i))
            return true;
    return false;
}

int nodes_open(struct nodes *nodes, const struct verb_arguments *arguments, bool leave_controls,
               struct failure *failure) {
    nodes->quiet = verb_switch(arguments, "--quiet");
    nodes->is_terminal = isatty(STDERR_FILENO);
    const char *run = verb_value(arguments, "--run");
    int r = run                     ? check_run(arguments, failure)
            : nodes->list.count > 0 ? 0
                                    : read_list(&nodes->list, arguments, failure);
    if (r < 0)
        return r;
    raise_descriptor_limit();
    nodes->loop = event_loop_new(failure);
    if (!nodes->loop)
        return failure->code;
    r = watch_signals(nodes, failure);
    if (r == 0 && run)
        r = reserved_open(nodes, arguments, leave_controls, &nodes->reserved, failure);
    else if (r == 0)
        r = open_ssh(nodes, arguments, leave_controls, failure);
    if (r == 0)
        r = add_nodes(nodes, failure);
    if (r < 0)
        return r;
    nodes_doing(nodes, "connecting");
    int64_t start = clock_monotonic_ns();
    r = node_group_connect(nodes->group, failure);
    nodes->connect_ns = clock_monotonic_ns() - start;
    nodes_doing(nodes, NULL);
    /* The action does what it can with those that are there, and names the others when it is done. */
    return r < 0 && r != -EINTR && any_is_there(nodes->group) ? 0 : r;
}

/* ---- closing */

static void clear_nodes(struct nodes *nodes) {
    clear_line(nodes);
    node_group_free(nodes->group);
    ssh_nodes_free(nodes->ssh);
    reserved_close(nodes->reserved);
    event_loop_free(nodes->loop); /* and its signals */
    host_list_clear(&nodes->list);
    report_free(nodes->report);
    free(nodes->sections);
    free(nodes->failures);
}

/* Ends the agents and frees NODES; returns R, or why an agent could not end. If R is negative, that failure
 * is printed. */
int nodes_close(struct nodes *nodes, int r, struct failure *failure) {
    struct failure own = {0};
    nodes_doing(nodes, "leaving");
    if (nodes->loop)
        event_loop_resume(nodes->loop); /* a second signal ends the waiting */
    int closed = nodes->group ? node_group_close(nodes->group,
                                                 NODE_GROUP_LEAVE_NS(node_group_count(nodes->group)), &own)
                              : 0;
    clear_nodes(nodes); /* the line of progress too */
    if (r == 0 && closed < 0)
        *failure = own;
    else if (closed < 0) /* the whole is known by another failure; this one must not be lost */
        fprintf(stderr, "assay: %s%s%s\n", shown(own.place).text, own.place[0] ? ": " : "",
                shown(own.text).text);
    return r < 0 ? r : closed;
}
