/* assay nodes show: what the nodes are, and who differs. */
#include "engine/command-line/nodes/nodes.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/link/facts.h"
#include "engine/remote/nodes/cpuinfo.h"
#include "engine/remote/nodes/tools.h"

#include <stdlib.h>
#include <string.h>

enum { CPUINFO_MAX = 4 << 20 /* bytes of /proc/cpuinfo; 1,500 per logical CPU is much */ };

/* What was read of all nodes. */
struct view {
    size_t count;
    struct node_facts **facts; /* NULL where they are not known */
    char **cpus;               /* models; NULL where not known */
    struct agent_clock *clocks;
    char **left; /* folders of agents that were killed, in a sentence; NULL: there are none */
};

static void clear_view(struct view *view) {
    for (size_t i = 0; i < view->count; i++) {
        if (view->facts)
            node_facts_free(view->facts[i]);
        free(view->cpus[i]);
        free(view->left[i]);
    }
    free((void *)view->facts);
    free(view->cpus);
    free(view->left);
    free(view->clocks);
}

static void on_cpuinfo(size_t node, size_t path, const char *bytes, size_t length, void *context) {
    (void)path;
    (void)length;
    ((struct view *)context)->cpus[node] = cpuinfo_model(bytes);
}

/* Called with a line of the agent's list: keeps the folders that killed agents have left on a node. */
static int on_left_over(size_t node, const char *kind, char *at, void *context, struct failure *failure) {
    (void)failure;
    struct view *view = context;
    if (strcmp(kind, "folder") != 0)
        return 0;
    (void)tool_field_next(&at); /* "abandoned" */
    char *before = view->left[node];
    view->left[node] = xformat("%s%s%s", before ? before : "", before ? ", " : "", tool_field_next(&at));
    free(before);
    return 0;
}

/* Reads the nodes' facts, CPU models, clocks and what was left over. The last may fail; the rest is then
 * known. */
static int read_nodes(struct nodes *nodes, struct view *view, struct failure *failure) {
    static const char *const arguments[] = {"--list", NULL};
    const struct node_tool list = {.arguments = arguments, .take = on_left_over, .context = view};
    cleanup_free struct failure *unread = NULL, *unlisted = NULL;
    int r = node_group_inspect(nodes->group, &view->facts, &nodes->failures, failure);
    if (r == 0)
        r = node_group_read(nodes->group, (const char *const[]){"/proc/cpuinfo", NULL}, CPUINFO_MAX,
                            on_cpuinfo, view, &unread, failure);
    if (r == 0)
        r = node_group_measure_clocks(nodes->group, &view->clocks, failure);
    if (r == 0) /* last: where this fails, the rest is known */
        r = node_group_run_tool(nodes->group, &list, &unlisted, failure);
    return r;
}

/* ---- one node */

static const char *plural(size_t count) {
    return count == 1 ? "" : "s";
}

/* The host name that the node NAME reports, or "as listed" where its first label is that of NAME. */
static const char *host_text(const char *name, const char *host) {
    size_t first = strcspn(name, ".");
    bool same = strcmp(name, host) == 0 ||
                (strncmp(name, host, first) == 0 && (host[first] == '\0' || host[first] == '.'));
    return same ? "as listed" : host;
}

/* Reports the counts of a node's sockets, cores and threads, and a sentence of them with its NUMA nodes. */
static void report_topology(struct report_section *to, const struct node_facts *facts) {
    size_t packages = 0, cores = 0;
    int last_package = -1;
    for (size_t i = 0; i < facts->pu_count; i++) {
        cores += facts->pus[i].first_sibling;
        if (facts->pus[i].package > last_package) {
            last_package = facts->pus[i].package;
            packages++;
        }
    }
    cleanup_free char *words =
        xformat("%zu socket%s, %zu core%s, %zu thread%s, %zu NUMA node%s", packages, plural(packages), cores,
                plural(cores), facts->pu_count, plural(facts->pu_count), facts->memory_count,
                plural(facts->memory_count));
    report_text(to, NULL, "topology", words, false);
    report_number(to, "sockets", NULL, (double)packages, NULL, 0, true);
    report_number(to, "cores", NULL, (double)cores, NULL, 0, true);
    report_number(to, "threads", NULL, (double)facts->pu_count, NULL, 0, true);
}

static void report_memory(struct report_section *to, const struct node_facts *facts) {
    static const struct column columns[] = {{.name = "number", .detail = true},
                                            {.name = "memory_bytes", .unit = "By", .detail = true}};
    char bytes[NUMBER_TEXT_SIZE];
    report_text(to, NULL, "memory", number_describe_bytes((double)facts->memory_total, bytes), false);
    report_number(to, "memory_bytes", NULL, (double)facts->memory_total, "By", 0, true);
    report_number(to, "memory_available_bytes", NULL, (double)facts->memory_available, "By", 0, true);
    struct report_table *table = report_table(to, "numa_nodes", NULL, columns, 2);
    for (size_t i = 0; i < facts->memory_count; i++) {
        report_cell(table, (double)facts->memories[i].numa_node);
        report_cell(table, (double)facts->memories[i].total);
    }
}

/* The folder's name has the node's in it. */
static void report_directory(struct report_section *to, const char *path, const char *name) {
    size_t length = path ? strlen(path) : 0, size = strlen(name);
    bool ends_in_name = length > size && strcmp(path + length - size, name) == 0;
    cleanup_free char *common = ends_in_name ? xformat("%.*sNODE", (int)(length - size), path) : NULL;
    report_text(to, NULL, "run directory", common ? common : path ? path : "unknown", false);
    report_text(to, "run_directory", NULL, path, true);
}

/* Adds the facts of one node. */
static void report_facts(struct report_section *to, const char *name, const struct node_facts *facts,
                         const char *cpu, const char *left) {
    cleanup_free char *kernel = xformat("%s %s", facts->kernel_name, facts->kernel_release);
    report_text(to, NULL, "host name", host_text(name, facts->host_name), false);
    report_text(to, "host_name", NULL, facts->host_name, true);
    report_text(to, NULL, "kernel", kernel, false);
    report_text(to, "kernel", NULL, facts->kernel_name, true);
    report_text(to, "kernel_release", NULL, facts->kernel_release, true);
    report_text(to, "kernel_version", NULL, facts->kernel_version, true);
    report_text(to, "machine", NULL, facts->machine, false);
    report_text(to, "boot_id", NULL, facts->boot_id, true);
    report_text(to, "cpu", NULL, cpu, false);
    report_topology(to, facts);
    report_memory(to, facts);
    report_directory(to, facts->run_directory, name);
    for (size_t i = 0; i < facts->note_count; i++) /* what our own agent found to do before it served */
        report_note(to, REPORT_LINE, "%s", facts->notes[i]);
    if (left)
        report_note(to, REPORT_LINE,
                    "left over by agents that were killed: %s; 'assay nodes clean' removes this", left);
}

/* ---- clocks */

static double offset_of(const struct agent_clock *clock) {
    int64_t ns; /* the node may say anything */
    if (__builtin_sub_overflow(clock->node_wall_ns, clock->engine_wall_ns, &ns))
        ns = clock->node_wall_ns < clock->engine_wall_ns ? INT64_MIN : INT64_MAX;
    return (double)ns / (double)EVENT_SECOND;
}

/* Half the round trip: the clock was read somewhere in it. */
static double error_of(const struct agent_clock *clock) {
    return (double)clock->round_trip_ns / 2 / (double)EVENT_SECOND;
}

static void report_offset(const struct nodes *nodes, const struct view *view, size_t node,
                          const char *label) {
    const struct agent_clock *clock = &view->clocks[node];
    cleanup_free char *line = xformat("%+.6f s, give or take %.6f s   %s", offset_of(clock), error_of(clock),
                                      node_group_name(nodes->group, node));
    report_text(nodes->report->root, NULL, label, line, false);
}

/* Adds the clocks of all nodes: the one furthest behind and the one furthest ahead, and the round trips. */
static void report_clocks(const struct nodes *nodes, const struct view *view) {
    size_t least = SIZE_MAX, most = SIZE_MAX;
    double fastest = 0, slowest = 0;
    for (size_t i = 0; i < view->count; i++) {
        const struct agent_clock *clock = &view->clocks[i];
        if (clock->exchanges == 0)
            continue;
        double offset = offset_of(clock), trip = 2 * error_of(clock);
        bool is_first = least == SIZE_MAX;
        least = is_first || offset < offset_of(&view->clocks[least]) ? i : least;
        most = is_first || offset > offset_of(&view->clocks[most]) ? i : most;
        fastest = is_first || trip < fastest ? trip : fastest;
        slowest = is_first || trip > slowest ? trip : slowest;
        struct report_section *section = nodes->sections[i];
        report_number(section, "clock_offset_seconds", NULL, offset, "s", 0, true);
        report_number(section, "clock_error_seconds", NULL, error_of(clock), "s", 0, true);
        report_number(section, "round_trip_seconds", NULL, trip, "s", 0, true);
    }
    if (least == SIZE_MAX)
        return;
    report_offset(nodes, view, least, "clock offset");
    if (most != least)
        report_offset(nodes, view, most, "  to");
    cleanup_free char *one = xformat("%.6f s", fastest), *two = xformat("%.6f s to %.6f s", fastest, slowest);
    report_text(nodes->report->root, NULL, "round trip", slowest > fastest ? two : one, false);
}

int nodes_show(struct nodes *nodes, const struct verb_arguments *arguments, struct failure *failure) {
    (void)arguments;
    size_t count = node_group_count(nodes->group);
    cleanup(clear_view) struct view view = {.count = count,
                                            .cpus = xcalloc(count + 1, sizeof *view.cpus),
                                            .left = xcalloc(count + 1, sizeof *view.left)};
    int r = read_nodes(nodes, &view, failure);
    if (r < 0)
        return r;
    nodes_report_known(nodes);
    for (size_t i = 0; i < count; i++)
        if (nodes->failures[i].code == 0)
            report_facts(nodes->sections[i], node_group_name(nodes->group, i), view.facts[i], view.cpus[i],
                         view.left[i]);
    report_clocks(nodes, &view);
    return 0;
}
