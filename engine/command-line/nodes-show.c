/* assay nodes show: what the nodes are, and who differs. */
#include "engine/command-line/nodes.h"

#include "engine/command-line/nodes-answers.h"
#include "engine/command-line/nodes-values.h"
#include "engine/command-line/shown.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/link/facts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CPUINFO_MAX = 4 << 20, /* bytes of /proc/cpuinfo; 1,500 per logical CPU is much */
    CPU_NAME_MAX = 200,
    KEY_WIDTH = 14,
};

/* What is known of all of them. */
struct view {
    const struct nodes *nodes;
    size_t count;
    struct node_facts **facts; /* NULL where they are not known */
    char **cpus;               /* models; NULL where not known */
    struct agent_clock *clocks;
    struct failure *failures; /* of the facts: why they are not known */
};

static void clear_view(struct view *view) {
    for (size_t i = 0; i < view->count; i++) {
        if (view->facts)
            node_facts_free(view->facts[i]);
        if (view->cpus)
            free(view->cpus[i]);
    }
    free((void *)view->facts);
    free(view->cpus);
    free(view->clocks);
    free(view->failures);
}

/* ---- CPU models: what /proc/cpuinfo calls them differs from machine to machine */

/* The value of the first line "KEY : value" of BYTES; NULL if there is none. The caller frees. */
static char *find_value(const char *bytes, size_t length, const char *key) {
    size_t size = strlen(key);
    for (const char *at = bytes, *end = bytes + length; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t line = newline ? (size_t)(newline - at) : (size_t)(end - at);
        const char *colon = memchr(at, ':', line);
        if (colon && line > size && memcmp(at, key, size) == 0 &&
            strspn(at + size, " \t") == (size_t)(colon - at) - size) {
            const char *value = colon + 1;
            while (value < at + line && (*value == ' ' || *value == '\t'))
                value++;
            size_t rest = (size_t)(at + line - value);
            return strndup(value, rest < CPU_NAME_MAX ? rest : CPU_NAME_MAX);
        }
        at += line + 1;
    }
    return NULL;
}

static void take_cpu(size_t node, const char *bytes, size_t length, void *context) {
    struct view *view = context;
    static const char *const keys[] = {"model name", "cpu", "uarch", "cpu model"};
    char *name = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !name; i++)
        name = find_value(bytes, length, keys[i]);
    if (!name) { /* Arm has numbers only */
        cleanup_free char *maker = find_value(bytes, length, "CPU implementer");
        cleanup_free char *part = find_value(bytes, length, "CPU part");
        if (maker && part)
            name = text_format("implementer %s, part %s", maker, part);
    }
    view->cpus[node] = name;
}

static int look(struct nodes *nodes, struct view *view, struct failure *failure) {
    view->nodes = nodes;
    view->count = node_group_count(nodes->group);
    view->cpus = xcalloc(view->count + 1, sizeof *view->cpus);
    cleanup_free struct failure *unread = NULL;
    int r = node_group_inspect(nodes->group, &view->facts, &view->failures, failure);
    if (r == 0)
        r = node_group_read(nodes->group, "/proc/cpuinfo", CPUINFO_MAX, take_cpu, view, &unread, failure);
    if (r == 0)
        r = node_group_measure_clocks(nodes->group, &view->clocks, failure);
    return r;
}

/* ---- properties as text: one line of the table each */

struct shape {
    size_t packages, cores, pus;
};

static struct shape shape_of(const struct node_facts *facts) {
    struct shape shape = {.pus = facts->pu_count};
    int last_package = -1;
    for (size_t i = 0; i < facts->pu_count; i++) {
        shape.cores += facts->pus[i].first_sibling;
        if (facts->pus[i].package > last_package) {
            last_package = facts->pus[i].package;
            shape.packages++;
        }
    }
    return shape;
}

static const char *plural(size_t count) {
    return count == 1 ? "" : "s";
}

static char *topology_text(const struct view *view, size_t node) {
    const struct node_facts *facts = view->facts[node];
    struct shape shape = shape_of(facts);
    return text_format("%zu socket%s, %zu core%s, %zu thread%s, %zu NUMA node%s", shape.packages,
                       plural(shape.packages), shape.cores, plural(shape.cores), shape.pus, plural(shape.pus),
                       facts->memory_count, plural(facts->memory_count));
}

/* Nodes are mostly called what they call themselves, or by its first part. */
static char *host_text(const struct view *view, size_t node) {
    const char *name = node_group_name(view->nodes->group, node), *host = view->facts[node]->host_name;
    size_t first = strcspn(name, ".");
    bool same = strcmp(name, host) == 0 ||
                (strncmp(name, host, first) == 0 && (host[first] == '\0' || host[first] == '.'));
    return strdup(same ? "as listed" : host);
}

static char *kernel_text(const struct view *view, size_t node) {
    const struct node_facts *facts = view->facts[node];
    return text_format("%s %s", facts->kernel_name, facts->kernel_release);
}

static char *machine_text(const struct view *view, size_t node) {
    return strdup(view->facts[node]->machine);
}

static char *cpu_text(const struct view *view, size_t node) {
    return strdup(view->cpus[node] ? view->cpus[node] : "unknown");
}

static char *memory_text(const struct view *view, size_t node) {
    char bytes[NUMBER_TEXT_SIZE];
    return strdup(number_describe_bytes((double)view->facts[node]->memory_total, bytes));
}

/* The folder's name has the node's in it. */
static char *directory_text(const struct view *view, size_t node) {
    const char *path = view->facts[node]->run_directory, *name = node_group_name(view->nodes->group, node);
    if (!path)
        return strdup("unknown");
    size_t length = strlen(path), size = strlen(name);
    if (length > size && strcmp(path + length - size, name) == 0)
        return text_format("%.*sNODE", (int)(length - size), path);
    return strdup(path);
}

static const struct {
    const char *name;
    char *(*text)(const struct view *view, size_t node);
} properties[] = {
    {"host name", host_text},          {"kernel", kernel_text},
    {"machine", machine_text},         {"cpu", cpu_text},
    {"topology", topology_text},       {"memory", memory_text},
    {"run directory", directory_text},
};

/* ---- for people */

static int print_properties(const struct view *view, struct failure *failure) {
    cleanup(nodes_table_clear) struct nodes_table table;
    nodes_table_init(&table, view->nodes);
    int r = 0;
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        for (size_t node = 0; r == 0 && node < view->count; node++)
            if (view->facts[node])
                r = nodes_table_add(&table, node, properties[i].name, properties[i].text(view, node),
                                    failure);
    return r < 0 ? r : nodes_table_print(&table, KEY_WIDTH, failure);
}

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

static void print_clock(const struct view *view, size_t node, const char *name) {
    printf("%-*s  %+.6f s, give or take %.6f s   %s\n", KEY_WIDTH, name, offset_of(&view->clocks[node]),
           error_of(&view->clocks[node]), shown(node_group_name(view->nodes->group, node)).text);
}

/* The nodes whose clocks are furthest behind and ahead of this machine's. */
static void print_clocks(const struct view *view) {
    size_t least = SIZE_MAX, most = SIZE_MAX, slowest = SIZE_MAX, fastest = SIZE_MAX;
    for (size_t i = 0; i < view->count; i++) {
        if (view->clocks[i].exchanges == 0)
            continue;
        double offset = offset_of(&view->clocks[i]);
        int64_t trip = view->clocks[i].round_trip_ns;
        least = least == SIZE_MAX || offset < offset_of(&view->clocks[least]) ? i : least;
        most = most == SIZE_MAX || offset > offset_of(&view->clocks[most]) ? i : most;
        fastest = fastest == SIZE_MAX || trip < view->clocks[fastest].round_trip_ns ? i : fastest;
        slowest = slowest == SIZE_MAX || trip > view->clocks[slowest].round_trip_ns ? i : slowest;
    }
    if (least == SIZE_MAX)
        return;
    print_clock(view, least, "clock offset");
    if (most != least)
        print_clock(view, most, "  to");
    printf("%-*s  %.6f s", KEY_WIDTH, "round trip", 2 * error_of(&view->clocks[fastest]));
    if (slowest != fastest)
        printf(" to %.6f s", 2 * error_of(&view->clocks[slowest]));
    putchar('\n');
}

/* What our own agents found to do before they served. */
static int print_notes(const struct view *view, struct failure *failure) {
    cleanup(nodes_table_clear) struct nodes_table table;
    nodes_table_init(&table, view->nodes);
    int r = 0;
    for (size_t node = 0; node < view->count; node++)
        for (size_t i = 0; r == 0 && view->facts[node] && i < view->facts[node]->note_count; i++)
            r = nodes_table_add(&table, node, "", strdup(view->facts[node]->notes[i]), failure);
    return r < 0 ? r : nodes_table_print_row(&table, "", failure);
}

static int print_text(const struct view *view, struct failure *failure) {
    cleanup_free bool *known = xcalloc(view->count + 1, sizeof *known);
    for (size_t i = 0; i < view->count; i++)
        known[i] = view->facts[i];
    int r = nodes_print_known(view->nodes, known, KEY_WIDTH, failure);
    if (r == 0)
        r = print_properties(view, failure);
    if (r == 0)
        print_clocks(view);
    return r == 0 ? print_notes(view, failure) : r;
}

/* ---- for programs */

static bool add_memories(cJSON *object, const struct node_facts *facts) {
    cJSON *array = json_add_array(object, "numa_nodes");
    bool added = array;
    for (size_t i = 0; i < facts->memory_count && added; i++) {
        cJSON *item = json_add_object(array, NULL);
        added = item && json_add_uint64(item, "number", facts->memories[i].numa_node) &&
                json_add_uint64(item, "memory_bytes", facts->memories[i].total);
    }
    return added;
}

static bool add_notes(cJSON *object, const struct node_facts *facts) {
    cJSON *array = json_add_array(object, "notes");
    bool added = array;
    for (size_t i = 0; i < facts->note_count && added; i++)
        added = json_add_string(array, NULL, facts->notes[i]);
    return added;
}

static bool add_facts(cJSON *object, const struct view *view, size_t node) {
    const struct node_facts *facts = view->facts[node];
    struct shape shape = shape_of(facts);
    return json_add_string(object, "host_name", facts->host_name) &&
           json_add_string(object, "kernel", facts->kernel_name) &&
           json_add_string(object, "kernel_release", facts->kernel_release) &&
           json_add_string(object, "kernel_version", facts->kernel_version) &&
           json_add_string(object, "machine", facts->machine) &&
           json_add_string(object, "boot_id", facts->boot_id) &&
           json_add_string(object, "cpu", view->cpus[node]) &&
           json_add_uint64(object, "sockets", shape.packages) &&
           json_add_uint64(object, "cores", shape.cores) && json_add_uint64(object, "threads", shape.pus) &&
           json_add_uint64(object, "memory_bytes", facts->memory_total) &&
           json_add_uint64(object, "memory_available_bytes", facts->memory_available) &&
           add_memories(object, facts) && add_notes(object, facts) &&
           json_add_string(object, "run_directory", facts->run_directory);
}

static bool add_clock(cJSON *object, const struct agent_clock *clock) {
    return json_add_double(object, "clock_offset_seconds", offset_of(clock)) &&
           json_add_double(object, "clock_error_seconds", error_of(clock)) &&
           json_add_double(object, "round_trip_seconds", 2 * error_of(clock));
}

static int print_json(const struct view *view, struct failure *failure) {
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    cJSON *array = object ? json_add_array(object, "nodes") : NULL;
    bool added = array;
    for (size_t i = 0; i < view->count && added; i++) {
        cJSON *item = json_add_object(array, NULL);
        added = item && json_add_string(item, "node", node_group_name(view->nodes->group, i)) &&
                json_add_boolean(item, "known", view->facts[i]);
        if (added && view->facts[i])
            added = add_facts(item, view, i);
        else if (added)
            added = json_add_string(item, "failure", view->failures[i].text);
        if (added && view->clocks[i].exchanges > 0)
            added = add_clock(item, &view->clocks[i]);
    }
    return added ? nodes_print_json(object, failure) : failure_memory(failure);
}

/* ---- the action */

static int show_all(struct nodes *nodes, bool json, struct failure *failure) {
    cleanup(clear_view) struct view view = {0};
    nodes_doing(nodes, "looking");
    int r = look(nodes, &view, failure);
    nodes_doing(nodes, NULL);
    if (r == 0)
        r = json ? print_json(&view, failure) : print_text(&view, failure);
    return r < 0 ? r : nodes_failures(nodes, view.failures, "looking", failure);
}

int nodes_show(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(nodes_clear) struct nodes nodes = {0};
    int r = nodes_open(&nodes, arguments, 0, failure);
    if (r == 0)
        r = show_all(&nodes, verb_switch(arguments, "--json"), failure);
    return nodes_close(&nodes, r, failure);
}
