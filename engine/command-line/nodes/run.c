/* assay nodes run: one command on all nodes, and what they answered. */
#include "engine/command-line/nodes/nodes.h"

#include "engine/command-line/nodes/answers.h"
#include "engine/command-line/output.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/numerics/quantile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REPEAT_MAX = 1000000, INPUT_MAX = 1 << 30 };

/* The command line of 'assay nodes run', parsed. */
struct request {
    struct nodes_answers_style style;
    struct remote_command_specification specification;
    struct node_group_command command;
    const char **environment; /* owned */
    struct text input;
    uint64_t repeat;
};

static void clear_request(struct request *request) {
    free((void *)request->environment);
    text_clear(&request->input);
}

/* ---- what was asked for */

/* Reads --env NAME=VALUE; NAME twice is refused. */
static int read_environment(const struct verb_arguments *arguments, struct request *ret,
                            struct failure *failure) {
    int r = verb_check_settings(arguments, "--env", failure);
    if (r < 0)
        return r;
    ret->environment = xcalloc(arguments->option_count + 1, sizeof *ret->environment);
    const char *setting;
    for (size_t i = 0; (setting = verb_value_at(arguments, "--env", i)); i++) {
        if (setting[0] == '=' || !strchr(setting, '='))
            return failure_input(failure, arguments->verb->name, 0, 0, "--env '%s' is not NAME=VALUE",
                                 setting);
        ret->environment[i] = setting;
    }
    ret->specification.environment = ret->environment;
    return 0;
}

static int read_input(const struct verb_arguments *arguments, struct request *ret, struct failure *failure) {
    const char *path = verb_value(arguments, "--input");
    if (!path)
        return 0;
    int r = file_read_or_pipe(path, &ret->input, failure);
    if (r < 0)
        return r;
    ret->command.input = ret->input.bytes;
    ret->command.input_length = ret->input.length;
    return 0;
}

/* Reads the options and the command. */
static int read_request(const struct verb_arguments *arguments, struct request *ret,
                        struct failure *failure) {
    text_init(&ret->input, INPUT_MAX);
    ret->style = (struct nodes_answers_style){.json = verb_switch(arguments, "--json"),
                                              .quiet = verb_switch(arguments, "--quiet"),
                                              .apart = verb_switch(arguments, "--apart")};
    ret->repeat = 1;
    ret->command.partial = true;
    /* The words after "run"; the array of operands ends with NULL (verb_parse makes room for it). */
    ret->specification.arguments = arguments->operands + 1;
    ret->command.specification = &ret->specification;
    ret->command.folder = verb_value(arguments, "--output");
    uint64_t limit = 0;
    int64_t time_limit_ns = 0;
    int r = nodes_size_option(arguments, "--limit", &limit, failure);
    if (r == 0)
        r = nodes_time_option(arguments, "--time-limit", &time_limit_ns, failure);
    if (r == 0)
        r = verb_count(arguments, "--repeat", 1, REPEAT_MAX, &ret->repeat, failure);
    if (r == 0)
        r = read_environment(arguments, ret, failure);
    if (r == 0)
        r = read_input(arguments, ret, failure);
    if (r == 0 && ret->command.folder)
        r = file_make_folders(ret->command.folder, failure);
    ret->specification.output_limit = ret->specification.error_limit = limit;
    ret->specification.timeout_ms = (uint64_t)(time_limit_ns / EVENT_MILLISECOND);
    return r;
}

/* ---- rounds */

struct rounds {
    double *seconds; /* owned; of those that are done */
    size_t count;
    struct failure failure; /* of the first that failed somewhere; code 0: none */
};

static void clear_rounds(struct rounds *rounds) {
    free(rounds->seconds);
}

/* 3 when a command failed somewhere, 1 when nodes could not be reached or were lost. */
static enum failure_kind kind_of(const struct nodes *nodes, const struct node_result *results) {
    for (size_t i = 0; i < node_group_count(nodes->group); i++) {
        const struct node_result *result = &results[i];
        bool refused = result->outcome == NODE_FAILED && result->failure.kind == FAILURE_EXPERIMENT;
        if ((result->outcome == NODE_DONE && !node_result_is_good(result)) || refused)
            return FAILURE_EXPERIMENT;
    }
    return FAILURE_SYSTEM;
}

/* Runs the command once on all nodes. Of several rounds only the last and those that failed are printed. */
static int run_round(struct nodes *nodes, const struct request *request, struct rounds *rounds,
                     struct failure *failure) {
    struct node_result *results = NULL;
    struct failure bad = {0};
    int64_t start = clock_monotonic_ns();
    int r = node_group_run(nodes->group, &request->command, &results, failure);
    if (r < 0 && !results)
        return r;
    rounds->seconds[rounds->count++] = (double)(clock_monotonic_ns() - start) / (double)EVENT_SECOND;
    bool failed = r == 0 && node_results_failure(nodes->group, results, &bad) < 0;
    if (failed && rounds->failure.code == 0) {
        rounds->failure = bad;
        rounds->failure.kind = kind_of(nodes, results);
    }
    /* When it was interrupted, what has come is shown. */
    if (r < 0 || rounds->count == request->repeat || failed || request->style.json) {
        nodes_doing(nodes, NULL);
        nodes_answers_print(nodes, results, request->repeat > 1 ? rounds->count : 0, &request->style);
        nodes_doing(nodes, "running");
    }
    node_results_free(nodes->group, results);
    if (r == 0 && output_flush() < 0)
        r = failure_set(failure, -EPIPE, "cannot write standard output");
    return r;
}

static size_t count_there(const struct nodes *nodes) {
    size_t there = 0;
    for (size_t i = 0; i < node_group_count(nodes->group); i++)
        there += node_group_is_there(nodes->group, i);
    return there;
}

static void print_summary_json(const struct nodes *nodes, const struct rounds *rounds, double connect) {
    cleanup(json_cleanup) cJSON *line = cJSON_CreateObject();
    cJSON *object = json_add_object(line, "summary");
    json_add_uint64(object, "nodes", node_group_count(nodes->group));
    json_add_uint64(object, "there", count_there(nodes));
    json_add_boolean(object, "good", rounds->failure.code == 0);
    json_add_double(object, "connect_seconds", connect);
    json_add_uint64(object, "rounds", rounds->count);
    json_add_double(object, "median_seconds", quantile(rounds->seconds, rounds->count, 0.5));
    json_add_double(object, "least_seconds", rounds->seconds[0]);
    json_add_double(object, "most_seconds", rounds->seconds[rounds->count - 1]);
    if (rounds->failure.code < 0)
        json_add_string(object, "failure", rounds->failure.text);
    output_json(line, false);
}

static void print_summary(const struct nodes *nodes, const struct request *request, struct rounds *rounds) {
    double connect = (double)nodes->connect_ns / (double)EVENT_SECOND;
    quantile_sort(rounds->seconds, rounds->count);
    if (request->style.json)
        print_summary_json(nodes, rounds, connect);
    else if (request->repeat > 1)
        printf("connected %zu of %zu nodes in %.4g s; %zu rounds: median %.4g s, least %.4g s, most %.4g s\n",
               count_there(nodes), node_group_count(nodes->group), connect, rounds->count,
               quantile(rounds->seconds, rounds->count, 0.5), rounds->seconds[0],
               rounds->seconds[rounds->count - 1]);
}

/* Answers are printed at the end, so that a reader who has gone (`| head`) would not be noticed before. */
static void on_look(struct event_source *self, void *context) {
    (void)self;
    struct nodes *nodes = context;
    if (output_is_broken_pipe())
        event_loop_stop(nodes->loop);
}

/* Runs all rounds, then prints the summary. The first failure is returned. */
static int run_all(struct nodes *nodes, const struct request *request, struct failure *failure) {
    cleanup(clear_rounds) struct rounds rounds = {.seconds = xcalloc(request->repeat, sizeof(double))};
    struct event_source *look =
        event_loop_add_timer(nodes->loop, EVENT_SECOND / 2, EVENT_SECOND / 2, on_look, nodes);
    nodes_doing(nodes, "running");
    int r = 0;
    while (r == 0 && rounds.count < request->repeat)
        r = run_round(nodes, request, &rounds, failure);
    event_source_remove(look);
    nodes_doing(nodes, NULL);
    if (r == -EINTR && output_is_broken_pipe())
        r = failure_set(failure, -EPIPE, "cannot write standard output: its reader has closed it");
    if (r == 0)
        print_summary(nodes, request, &rounds);
    if (r == 0 && rounds.failure.code < 0) {
        *failure = rounds.failure;
        r = failure->code;
    }
    return r;
}

int nodes_run(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(clear_request) struct request request = {0};
    int r = read_request(arguments, &request, failure);
    if (r < 0)
        return r;
    struct nodes nodes = {0};
    r = nodes_open(&nodes, arguments, false, failure);
    if (r == 0)
        r = run_all(&nodes, &request, failure);
    return nodes_close(&nodes, r, failure);
}
