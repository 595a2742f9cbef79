/* assay run: executes a campaign, or shows what it would do. */
#include "engine/command-line/output.h"
#include "engine/command-line/run/detach.h"
#include "engine/command-line/run/execution.h"
#include "engine/command-line/run/follow.h"
#include "engine/command-line/verb.h"

#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/report/shown.h"
#include "engine/run/campaign/campaign.h"
#include "engine/run/campaign/plan-describe.h"
#include "engine/run/campaign/unfinished.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A model that would be refused is so before the run, too. */
static int check_model(const struct plan *plan, struct failure *failure) {
    cleanup_free double *seconds = xcalloc(plan->design->row_count + 1, sizeof *seconds);
    return execution_predict(NULL, plan, seconds, failure);
}

/* Checks the plan as a run would on nodes like this machine. Refused if the run is on this machine; else only
 * a warning, because the nodes may be others. */
static int check_guess(const struct plan *plan, struct failure *failure) {
    struct failure why = {0};
    char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE], memory[NUMBER_TEXT_SIZE];
    int r = plan_check_guess(plan, &why);
    if (r < 0 && plan->campaign->testbed.backend == &testbed_local) {
        *failure = why;
        return r;
    }
    if (r < 0)
        fprintf(stderr,
                "assay: warning: a run on nodes like this machine (%.0f cores, %s of available memory) is "
                "refused: %s; a run asks its own nodes before it measures, and may refuse them\n",
                plan->facts.cores, number_describe_bytes(plan->facts.memory, memory),
                shown(failure_describe(&why, sentence, sizeof sentence)).text);
    return 0;
}

/* Prints the plan, as text or as JSON, and measures nothing. */
static int dry_run(const struct execution *execution, bool json, struct failure *failure) {
    cleanup(plan_cleanup) struct plan *plan = NULL;
    const struct campaign *campaign = execution->campaign;
    struct plan_facts facts = plan_guess_facts(campaign);
    int64_t until_ns;
    int r = execution_check_limits(execution, &until_ns, failure);
    if (r == 0)
        r = plan_new(campaign, &facts, &plan, failure);
    if (r == 0 && campaign->walltime.model)
        r = check_model(plan, failure);
    if (r == 0)
        r = check_guess(plan, failure);
    if (r < 0)
        return r;
    cleanup(text_clear) struct text description;
    text_init(&description, 256 << 20);
    if (json) {
        cleanup(json_cleanup) cJSON *object = plan_resolve(plan);
        json_print(object, true, &description);
        text_append_character(&description, '\n');
    } else {
        const struct campaign_again *again = execution->overrides->again;
        if (again)
            text_printf(&description,
                        "again        %s, run %s; what is not as it was there is reported before the first "
                        "unit\n",
                        again->origin.archive, again->origin.run_id);
        r = plan_describe(plan, execution->folder, &description, failure);
    }
    if (r == 0)
        output_bytes(description.bytes, description.length);
    return r;
}

/* Tells the user that an unfinished run of this campaign exists and how to continue it: this is a new run. */
static void note_unfinished_run(const struct inputs *inputs) {
    cleanup(text_clear) struct text differences;
    struct failure why = {0};
    text_init(&differences, 1 << 20);
    int r = inputs_compare(inputs, &differences, &why);
    if (r < 0) /* that run may be damaged, and this one has no need of it */
        fprintf(stderr,
                "a run of this campaign is not complete, '%s', and cannot be continued: %.900s; this is a "
                "new run\n",
                shown(inputs->run_folder).text, shown(why.text).text);
    else if (differences.length > 0)
        fprintf(stderr,
                "a run of this campaign is not complete, and %.900s; 'assay resume --as-recorded %s' "
                "continues it as it was; this is a new run\n",
                shown(differences.bytes).text, shown(inputs->run_folder).text);
    else
        fprintf(stderr,
                "a run of this campaign is not complete: 'assay resume %s' continues it, as would --resume "
                "here; this is a new run\n",
                shown(inputs->run_folder).text);
}

/* Begins a run, or with --resume continues the unfinished one of this campaign in the same folder. */
static int begin_or_continue(const struct execution *execution, struct failure *failure) {
    cleanup(inputs_clear) struct inputs inputs = {0};
    cleanup(campaign_cleanup) struct campaign *campaign = NULL;
    bool wanted = verb_switch(execution->arguments, "--resume");
    enum inputs_match found =
        unfinished_find(execution->folder, execution->campaign, execution->overrides, &inputs);
    if (found == INPUTS_OTHER && wanted)
        fprintf(stderr, "no run of this campaign in '%s' can be continued; this is a new one\n",
                execution->folder);
    if (found != INPUTS_OTHER && !wanted)
        note_unfinished_run(&inputs);
    if (found == INPUTS_OTHER || !wanted)
        return execution_run(execution, failure);
    int r = execution_check_changes(&inputs, false, failure);
    if (r == 0) /* the run has those that it began with */
        r = campaign_read_recorded(inputs.run_folder, execution->arguments->installation,
                                   execution->overrides->spares, execution->overrides->spare_count, &campaign,
                                   failure);
    if (r < 0)
        return r;
    struct execution other = *execution;
    other.campaign = campaign;
    other.overrides = NULL;
    other.inputs = &inputs;
    return execution_run(&other, failure);
}

/* ---- On several testbeds ---------------------------------------------------------------------------------
 */

/* A campaign on each of its testbeds: runs that have nothing to do with one another. */
struct each {
    size_t count;
    struct campaign_overrides *overrides;
    struct campaign **campaigns;
    char **folders; /* of those that have begun */
};

static void clear_each(struct each *each) {
    for (size_t i = 0; i < each->count; i++) {
        campaign_free(each->campaigns[i]);
        free(each->folders[i]);
    }
    free(each->overrides);
    free(each->campaigns);
    free(each->folders);
}

/* Begins the detached run on testbed number I, or with --dry-run prints its plan. */
static int begin_on_testbed(const struct execution *execution, struct each *each, size_t i,
                            struct failure *failure) {
    struct execution own = *execution;
    own.campaign = each->campaigns[i];
    own.overrides = &each->overrides[i];
    if (verb_switch(own.arguments, "--dry-run")) {
        fprintf(verb_switch(own.arguments, "--json") ? stderr : stdout,
                "testbed %zu of %zu, a run of its own:\n", i + 1, each->count);
        return dry_run(&own, verb_switch(own.arguments, "--json"), failure);
    }
    int r = detach_execution(&own, &each->folders[i], failure);
    if (r < 0)
        return failure_prefix(failure, "testbed %zu of %zu (those before it run, detached)", i + 1,
                              each->count);
    fprintf(verb_switch(own.arguments, "--detach") ? stdout : stderr, "%s\n", each->folders[i]);
    return 0;
}

/* For a list of testbeds: begins a detached run on each, and follows them all unless --detach is given. */
static int run_on_each_testbed(const struct execution *execution, const char *path, struct failure *failure) {
    const struct verb_arguments *arguments = execution->arguments;
    bool is_followed = !verb_switch(arguments, "--dry-run") && !verb_switch(arguments, "--detach");
    size_t count = execution->campaign->testbed.count;
    if (verb_switch(arguments, "--resume") || (is_followed && verb_switch(arguments, "--json")))
        return failure_input(
            failure, path, 0, 0,
            "--resume and --json are for one run, and this campaign has a run on each of %zu "
            "testbeds; expected 'assay resume' or 'assay watch --json' with the folder of one",
            count);
    cleanup(clear_each) struct each each = {.count = count,
                                            .overrides = xcalloc(count, sizeof *each.overrides),
                                            .campaigns = xcalloc(count, sizeof *each.campaigns),
                                            .folders = xcalloc(count, sizeof *each.folders)};
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) { /* all, before one begins */
        each.overrides[i] = *execution->overrides;
        each.overrides[i].testbed = i;
        r = campaign_read(path, execution->arguments->installation, &each.overrides[i], &each.campaigns[i],
                          failure);
    }
    for (size_t i = 0; r == 0 && i < count; i++)
        r = begin_on_testbed(execution, &each, i, failure);
    if (r < 0 || !is_followed)
        return r;
    struct progress progress;
    bool is_interrupted;
    progress_init(&progress, false, verb_switch(arguments, "--quiet"));
    return follow_runs((const char *const *)each.folders, count, &progress, true, &is_interrupted, failure);
}

static int carry_out(const struct execution *execution, struct failure *failure) {
    const struct verb_arguments *arguments = execution->arguments;
    if (execution->campaign->testbed.count > 0)
        return run_on_each_testbed(execution, execution->path, failure);
    if (verb_switch(arguments, "--dry-run"))
        return dry_run(execution, verb_switch(arguments, "--json"), failure);
    return begin_or_continue(execution, failure);
}

int command_run(const struct verb_arguments *arguments, struct failure *failure) {
    return execution_begin(arguments, carry_out, failure);
}
