#include "engine/command-line/nodes/answers.h"

#include "engine/command-line/output.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/number.h"
#include "engine/report/shown.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double seconds_of(const struct node_result *result) {
    int64_t ns; /* the node says when; no command takes as long as overflows */
    if (__builtin_sub_overflow(result->exit.monotonic_ns, result->start.monotonic_ns, &ns))
        return NAN;
    return (double)ns / (double)EVENT_SECOND;
}

/* ---- for programs */

static const char *const outcome_names[] = {[NODE_NOT_ASKED] = "not asked",
                                            [NODE_SKIPPED] = "unreachable",
                                            [NODE_DONE] = "done",
                                            [NODE_FAILED] = "failed"};

static void add_stream(cJSON *object, const char *name, const struct node_stream *stream) {
    cJSON *member = json_add_object(object, name);
    json_add_bytes(member, "kept", stream->bytes, stream->length);
    json_add_uint64(member, "bytes", stream->total);
    json_add_uint64(member, "received", stream->received);
    json_add_string(member, "sha256", stream->hash);
    if (stream->file)
        json_add_string(member, "file", stream->file);
}

static void add_end(cJSON *object, const struct node_result *result) {
    char started[CLOCK_TEXT_SIZE];
    const struct remote_exit *exit = &result->exit;
    json_add_int64(object, exit->signalled ? "signal" : "exit", exit->code);
    json_add_boolean(object, "timed_out", exit->timed_out);
    json_add_string(object, "started", clock_format(result->start.wall_ns, started));
    json_add_double(object, "seconds", seconds_of(result));
    json_add_double(object, "user_seconds", (double)exit->user_us / 1e6);
    json_add_double(object, "system_seconds", (double)exit->system_us / 1e6);
    json_add_uint64(object, "peak_resident_bytes", exit->rss_peak_bytes);
}

/* Prints a JSON object: how the command ended on NODE, and its output. ROUND is left out when it is 0. */
static void print_result_json(const struct nodes *nodes, size_t node, const struct node_result *result,
                              size_t round) {
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    json_add_string(object, "node", node_group_name(nodes->group, node));
    if (round > 0)
        json_add_uint64(object, "round", round);
    json_add_string(object, "outcome", outcome_names[result->outcome]);
    if (result->outcome == NODE_DONE)
        add_end(object, result);
    else
        json_add_string(object, "failure", result->failure.text);
    if (result->outcome != NODE_SKIPPED) {
        add_stream(object, "stdout", &result->output);
        add_stream(object, "stderr", &result->error);
    }
    output_json(object, false);
}

/* ---- for people */

static void print_stream(const struct node_stream *stream) {
    shown_write(stdout, stream->bytes, stream->length);
    if (stream->length > 0 && stream->bytes[stream->length - 1] != '\n')
        putchar('\n');
    if (stream->length < stream->total) {
        printf("[... %" PRIu64 " of %" PRIu64 " bytes are not shown", stream->total - stream->length,
               stream->total);
        if (stream->received < stream->total)
            printf("; the limit let %" PRIu64 " pass", stream->received);
        puts("]");
    }
}

/* "0.0123 s", or the shortest and the longest of several nodes. */
static void print_duration(const struct node_result *results, const struct node_answer *answer) {
    double least = seconds_of(&results[answer->nodes[0]]), most = least;
    for (size_t i = 1; i < answer->count; i++) {
        double seconds = seconds_of(&results[answer->nodes[i]]);
        least = seconds < least ? seconds : least;
        most = seconds > most ? seconds : most;
    }
    char a[32], b[32];
    snprintf(a, sizeof a, "%.3g", least);
    snprintf(b, sizeof b, "%.3g", most);
    if (strcmp(a, b) == 0)
        printf(", %s s", a);
    else
        printf(", %s to %s s", a, b);
}

static void print_head(const char *names, const struct node_result *results, const struct node_answer *answer,
                       size_t round) {
    const struct node_result *result = &results[answer->nodes[0]];
    shown_print(stdout, names, false);
    if (answer->count > 1)
        printf(" (%zu nodes)", answer->count);
    if (round > 0)
        printf(", round %zu", round);
    if (result->outcome == NODE_FAILED) {
        fputs(": ", stdout);
        shown_print(stdout, result->failure.text, false);
        putchar('\n');
        return;
    }
    const struct remote_exit *exit = &result->exit;
    printf(": %s%s %d", exit->timed_out ? "time limit, " : "", exit->signalled ? "signal" : "exit",
           exit->code);
    print_duration(results, answer);
    putchar('\n');
}

static void print_answer(const struct nodes *nodes, const struct node_result *results,
                         const struct node_answer *answer, size_t round) {
    const struct node_result *result = &results[answer->nodes[0]];
    cleanup_free char *names = nodes_fold(nodes, answer->nodes, answer->count);
    print_head(names, results, answer, round);
    print_stream(&result->output);
    if (result->error.total > 0) {
        shown_print(stdout, names, false);
        puts(", stderr:");
        print_stream(&result->error);
    }
}

static void print_apart(const struct nodes *nodes, const struct node_result *results, bool quiet,
                        size_t round) {
    for (size_t i = 0; i < node_group_count(nodes->group); i++)
        if (results[i].outcome != NODE_SKIPPED && !(quiet && node_result_is_good(&results[i])))
            print_answer(nodes, results, &(struct node_answer){.nodes = &i, .count = 1}, round);
}

/* Prints each distinct answer once, with the nodes that gave it; good answers first, unless QUIET. */
static void print_folded(const struct nodes *nodes, const struct node_result *results, bool quiet,
                         size_t round) {
    struct node_answer *answers;
    size_t count = node_results_fold(nodes->group, results, &answers);
    for (int good = !quiet; good >= 0; good--)
        for (size_t i = 0; i < count; i++) {
            const struct node_result *result = &results[answers[i].nodes[0]];
            if (result->outcome != NODE_SKIPPED && node_result_is_good(result) == good)
                print_answer(nodes, results, &answers[i], round);
        }
    node_answers_free(answers, count);
}

void nodes_answers_print(const struct nodes *nodes, const struct node_result *results, size_t round,
                         const struct nodes_answers_style *style) {
    for (size_t i = 0; style->json && i < node_group_count(nodes->group); i++)
        print_result_json(nodes, i, &results[i], round);
    if (!style->json && style->apart)
        print_apart(nodes, results, style->quiet, round);
    else if (!style->json)
        print_folded(nodes, results, style->quiet, round);
}
