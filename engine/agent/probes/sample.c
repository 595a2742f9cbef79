/* The tools --sample, its arguments; and --probes, which lists what can be sampled on this machine. */
#include "engine/agent/controls/lines.h"
#include "engine/agent/machine/tool.h"
#include "engine/agent/probes/sampler.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Reads a probe to sample, "NAME" or "NAME=NS" with its own period. Returns 0, or 2 after a message. */
static int parse_probe(struct sampler_options *options, const char *text, int64_t period_ns) {
    char name[32];
    const char *equals = strchr(text, '=');
    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - text) : (int)strlen(text), text);
    const struct probe *probe = probe_find(name);
    if (!probe)
        return tool_complain(2, "there is no probe '%.100s'; see --probes", text);
    for (size_t i = 0; i < options->count; i++)
        if (options->probes[i].probe == probe)
            return tool_complain(2, "the probe %s is named twice", probe->name);
    if (equals && (!number_parse_int64(equals + 1, strlen(equals + 1), &period_ns) ||
                   period_ns < SAMPLER_PERIOD_MIN_NS || period_ns > SAMPLER_PERIOD_MAX_NS))
        return tool_complain(2, "--probe: '%.100s' is not a number from %lld to %lld", equals + 1,
                             (long long)SAMPLER_PERIOD_MIN_NS, (long long)SAMPLER_PERIOD_MAX_NS);
    options->probes[options->count].probe = probe;
    options->probes[options->count++].period_ns = period_ns;
    return 0;
}

static int parse_expectations(const struct tool_list *expected) {
    if (expected->count > PROBE_EXPECTATION_LIMIT)
        return tool_complain(2, "--expect: at most %d are kept", PROBE_EXPECTATION_LIMIT);
    for (size_t i = 0; i < expected->count; i++) {
        const char *text = expected->items[i], *equals = strchr(text, '=');
        if (text[0] != '/' || !equals || equals == text + 1 || equals - text >= MACHINE_PATH_LIMIT)
            return tool_complain(2, "--expect: '%.100s' is not /PATH=VALUE", text);
    }
    return 0;
}

/* Raises the soft limit of open files, usually 1,024: each sensor needs a descriptor. */
static void allow_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* --sample: samples the probes of its arguments, or all, until a signal ends it. The exit status. */
int tool_sample(int count, char **arguments) {
    cleanup(machine_close) struct machine machine = {.root = -1};
    cleanup_free const char **items = calloc((size_t)count + 1, 2 * sizeof *items);
    if (!items)
        return tool_complain(1, "out of memory");
    const char *root = NULL;
    int64_t period_ns = -1;
    struct tool_list probes = {.items = items}, expected = {.items = items + count};
    /* Lines may wait for a second to be written together. */
    struct sampler_options sampling = {.machine = &machine, .flush_ns = PROBE_SECOND, .descriptor = 1};
    const struct tool_option options[] = {
        {"--root", .text = &root},
        {"--period", .number = &period_ns, .min = SAMPLER_PERIOD_MIN_NS, .max = SAMPLER_PERIOD_MAX_NS},
        {"--flush", .number = &sampling.flush_ns, .max = SAMPLER_PERIOD_MAX_NS},
        {"--probe", .list = &probes},
        {"--expect", .list = &expected},
        {NULL}};
    int r = tool_parse(count, arguments, options, 0);
    if (r < 0 || parse_expectations(&expected) != 0)
        return 2;
    sampling.expectations = expected.items;
    sampling.expectation_count = expected.count;
    for (size_t i = 0; i < probes.count && r == 0; i++)
        r = parse_probe(&sampling, probes.items[i], period_ns);
    for (size_t i = 0; probes.count == 0 && probe_table[i] && r == 0; i++)
        r = parse_probe(&sampling, probe_table[i]->name, period_ns);
    for (size_t i = 0; i < sampling.count && r == 0; i++)
        if (sampling.probes[i].period_ns < 0)
            r = tool_complain(2,
                              "--sample: a probe has no period; expected --period NS, or =NS after its name");
    if (r != 0 || tool_open_machine(root, &machine) != 0)
        return 2;
    allow_descriptors();
    r = sampler_run(&sampling);
    return r < 0 ? tool_complain(1, "--sample: %s", strerror(-r)) : 0;
}

/* ---- --probes */

/* Begins PROBE to print its columns, or why it or a part of it is missing. */
static void list(const struct machine *machine, const struct probe *probe, struct lines *lines) {
    struct probing probing = {.probe = probe, .machine = machine, .now_ns = clock_monotonic_ns()};
    cleanup(text_clear) struct text columns;
    text_init(&columns, LINES_MAX_BYTES);
    int r = probing_begin(&probing);
    for (size_t i = 0; i < probing.count && lines->error == 0; i++)
        lines->error = text_printf(&columns, "%s%s:%s", i > 0 ? " " : "", probing.columns[i].name,
                                   probing.columns[i].unit);
    if (r == 0)
        lines_put(lines, "probe", probe->name, columns.bytes, probing.source, NULL);
    if (probing.why[0])
        lines_put(lines, "missing", probe->name, probing.why, NULL);
    probing_clear(&probing);
}

int tool_probes(int count, char **arguments) {
    const char *root = NULL;
    cleanup(machine_close) struct machine machine = {.root = -1};
    cleanup(lines_clear) struct lines lines;
    const struct tool_option options[] = {{"--root", .text = &root}, {NULL}};
    lines_init(&lines, LINES_MAX_BYTES);
    if (tool_parse(count, arguments, options, 0) < 0 || tool_open_machine(root, &machine) != 0)
        return 2;
    for (size_t i = 0; probe_table[i]; i++)
        list(&machine, probe_table[i], &lines);
    return lines_write(&lines, 1) == 0 ? 0 : 1;
}
