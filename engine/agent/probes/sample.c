/* --sample: its arguments; --probes: what could be sampled here. */
#include "engine/agent/controls/lines.h"
#include "engine/agent/probes/sampler.h"
#include "engine/agent/serve/tool.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct arguments {
    const char *root;
    int64_t period_ns, flush_ns; /* -1: not given */
    struct sampler_options options;
    const char **expectations;
};

static int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("assay-agent: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return 2;
}

static int parse_time(const char *option, const char *text, int64_t min_ns, int64_t max_ns, int64_t *ret) {
    int64_t value;
    if (!number_parse_int64(text, strlen(text), &value) || value < min_ns || value > max_ns)
        return complain("%s: '%.100s' is not a number of ns from %lld to %lld", option, text,
                        (long long)min_ns, (long long)max_ns);
    *ret = value;
    return 0;
}

/* "NAME" or "NAME=NS" */
static int parse_probe(struct arguments *arguments, const char *text) {
    char name[32];
    const char *equals = strchr(text, '=');
    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - text) : (int)strlen(text), text);
    const struct probe *probe = probe_find(name);
    struct sampler_options *options = &arguments->options;
    if (!probe)
        return complain("there is no probe '%.100s'; see --probes", text);
    for (size_t i = 0; i < options->count; i++)
        if (options->probes[i].probe == probe)
            return complain("the probe %s is named twice", probe->name);
    options->probes[options->count].probe = probe;
    options->probes[options->count].period_ns = -1;
    int r = !equals ? 0
                    : parse_time("--probe", equals + 1, SAMPLER_PERIOD_MIN_NS, SAMPLER_PERIOD_MAX_NS,
                                 &options->probes[options->count].period_ns);
    options->count++;
    return r;
}

static int parse_expectation(struct arguments *arguments, const char *text) {
    const char *equals = strchr(text, '=');
    struct sampler_options *options = &arguments->options;
    if (text[0] != '/' || !equals || equals == text + 1 || equals - text >= MACHINE_PATH_LIMIT)
        return complain("--expect: '%.100s' is not /PATH=VALUE", text);
    if (options->expectation_count == PROBE_EXPECTATION_LIMIT)
        return complain("--expect: at most %d are kept", PROBE_EXPECTATION_LIMIT);
    arguments->expectations[options->expectation_count++] = text;
    return 0;
}

static int parse(int count, char **given, struct arguments *ret) {
    int r = 0;
    for (int i = 0; i < count && r == 0; i += 2) {
        const char *name = given[i], *value = i + 1 < count ? given[i + 1] : NULL;
        if (!value)
            return complain("%.100s lacks its value, or is no option; see --help", name);
        if (strcmp(name, "--root") == 0)
            ret->root = value;
        else if (strcmp(name, "--period") == 0)
            r = parse_time(name, value, SAMPLER_PERIOD_MIN_NS, SAMPLER_PERIOD_MAX_NS, &ret->period_ns);
        else if (strcmp(name, "--flush") == 0)
            r = parse_time(name, value, 0, SAMPLER_PERIOD_MAX_NS, &ret->flush_ns);
        else if (strcmp(name, "--probe") == 0)
            r = parse_probe(ret, value);
        else if (strcmp(name, "--expect") == 0)
            r = parse_expectation(ret, value);
        else
            return complain("--sample: unknown option '%.100s'", name);
    }
    return r;
}

/* All probes if none is named; a period for each. */
static int complete(struct arguments *arguments) {
    struct sampler_options *options = &arguments->options;
    if (options->count == 0)
        for (; probe_table[options->count]; options->count++) {
            options->probes[options->count].probe = probe_table[options->count];
            options->probes[options->count].period_ns = -1;
        }
    for (size_t i = 0; i < options->count; i++) {
        int64_t *period_ns = &options->probes[i].period_ns;
        if (*period_ns < 0 && arguments->period_ns < 0)
            return complain("--sample: how often? --period NS, or =NS after the name of each probe");
        *period_ns = *period_ns < 0 ? arguments->period_ns : *period_ns;
    }
    /* A line need not wait if the next one comes so late. */
    options->flush_ns = arguments->flush_ns < 0 ? PROBE_SECOND : arguments->flush_ns;
    options->expectations = arguments->expectations;
    options->descriptor = 1;
    return 0;
}

/* A descriptor for each sensor; the usual soft limit is 1,024. */
static void allow_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

int tool_sample(int count, char **given) {
    struct arguments arguments = {.period_ns = -1, .flush_ns = -1};
    struct failure failure = {0};
    cleanup(machine_close) struct machine machine = {.root = -1};
    cleanup_free const char **expectations = calloc((size_t)count / 2 + 1, sizeof *expectations);
    if (!expectations)
        return complain("out of memory");
    arguments.expectations = expectations;
    if (parse(count, given, &arguments) != 0 || complete(&arguments) != 0)
        return 2;
    if (machine_open(arguments.root, &machine, &failure) < 0)
        return complain("%s", failure.text);
    allow_descriptors();
    arguments.options.machine = &machine;
    int r = sampler_run(&arguments.options);
    if (r < 0)
        complain("--sample: %s", strerror(-r));
    return r < 0;
}

/* ---- --probes */

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
    struct failure failure = {0};
    struct machine machine;
    cleanup(lines_clear) struct lines lines;
    lines_init(&lines, LINES_MAX_BYTES);
    if (count != 0 && (count != 2 || strcmp(arguments[0], "--root") != 0))
        return complain("usage: --probes [--root DIR]");
    if (machine_open(count ? arguments[1] : NULL, &machine, &failure) < 0)
        return complain("%s", failure.text);
    for (size_t i = 0; probe_table[i]; i++)
        list(&machine, probe_table[i], &lines);
    machine_close(&machine);
    return lines_write(&lines, 1) == 0 ? 0 : 1;
}
