#include "engine/run/campaign/repeat.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int refuse_response(const struct campaign *campaign, struct failure *failure) {
    const struct experiment *experiment = campaign->experiment;
    const struct design_repeat *repeat = &campaign->design->repeat;
    cleanup_free const char **names = xcalloc(experiment->response_count, sizeof *names);
    char instead[TEXT_INSTEAD_SIZE];
    for (size_t i = 0; i < experiment->response_count; i++)
        names[i] = experiment->responses[i].about.name;
    return failure_input(failure, campaign->design->place_file, repeat->response_place.line,
                         repeat->response_place.column, "'%.64s' is not a response of experiment '%s'; %s",
                         repeat->response, experiment->name,
                         text_instead(repeat->response, names, experiment->response_count, instead));
}

int repeat_refuse_one_node(const struct campaign *campaign, struct failure *failure) {
    const struct design_repeat *repeat = &campaign->design->repeat;
    return failure_input(failure, campaign->design->place_file, repeat->between_place.line,
                         repeat->between_place.column,
                         "a mean over one node has no confidence interval, so no row could "
                         "reach the wanted error; use 'between: [node, block]', or more nodes");
}

/* Chooses the response whose mean decides when a row is repeated enough: `response`, else the model's, else
 * the first. *RET is its index. Refused: texts, unknown names, and `between: node` with one node. */
int repeat_choose_response(const struct campaign *campaign, size_t *ret, struct failure *failure) {
    const struct experiment *experiment = campaign->experiment;
    const struct design_repeat *repeat = &campaign->design->repeat;
    const struct testbed_choice *testbed = &campaign->testbed;
    *ret = 0;
    if (!repeat->wanted)
        return 0;
    const char *name = repeat->response    ? repeat->response
                       : experiment->model ? experiment->model->response
                                           : experiment->responses[0].about.name;
    while (*ret < experiment->response_count && strcmp(experiment->responses[*ret].about.name, name) != 0)
        ++*ret;
    if (*ret == experiment->response_count)
        return refuse_response(campaign, failure);
    if (experiment->responses[*ret].about.type == COLUMN_STRING) {
        struct design_repeat_place at = repeat->response ? repeat->response_place : repeat->place;
        return failure_input(failure, campaign->design->place_file, at.line, at.column,
                             "'%s' is a text, which has no mean; expected 'response: NAME' with the "
                             "name of a numeric response",
                             name);
    }
    if (repeat->between == DESIGN_BETWEEN_NODE && testbed->backend->expected_nodes(testbed->settings) == 1)
        return repeat_refuse_one_node(campaign, failure);
    return 0;
}

static const struct experiment_response *response_of(const struct plan *plan) {
    return &plan->campaign->experiment->responses[plan->repeat_response];
}

/* Appends the rule by which rows are repeated, for 'assay run --dry-run'. */
void repeat_describe(const struct plan *plan, struct text *ret) {
    static const char *const between[] = {
        [DESIGN_BETWEEN_NODE] = "nodes",
        [DESIGN_BETWEEN_BLOCK] = "blocks",
        [DESIGN_BETWEEN_NODE | DESIGN_BETWEEN_BLOCK] = "nodes and blocks",
    };
    const struct design_repeat *repeat = &plan->campaign->design->repeat;
    if (repeat->wanted)
        text_printf(
            ret,
            "             each row until the mean of '%s' between %s is known to %g %% (%g %%), after "
            "%" PRIu64 " to %" PRIu64 " repetitions, each with blocks of its own\n",
            response_of(plan)->about.name, between[repeat->between], repeat->ci * 100,
            repeat->confidence * 100, repeat->at_least, repeat->at_most);
}

/* The rule by which rows are repeated, for run.json; the caller frees. NULL: a fixed number of times. */
struct archive_repeat *repeat_of_plan(const struct plan *plan) {
    const struct design_repeat *repeat = &plan->campaign->design->repeat;
    if (!repeat->wanted)
        return NULL;
    struct archive_repeat *ret = xcalloc(1, sizeof *ret);
    *ret = (struct archive_repeat){.ci = repeat->ci,
                                   .confidence = repeat->confidence,
                                   .at_least = (int64_t)repeat->at_least,
                                   .at_most = (int64_t)repeat->at_most,
                                   .response = xstrdup(response_of(plan)->about.name)};
    if (repeat->between & DESIGN_BETWEEN_NODE)
        bind_texts_add(&ret->between, "node");
    if (repeat->between & DESIGN_BETWEEN_BLOCK)
        bind_texts_add(&ret->between, "block");
    return ret;
}
