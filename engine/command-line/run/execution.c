#include "engine/command-line/run/execution.h"

#include "engine/command-line/output.h"
#include "engine/command-line/report.h"
#include "engine/command-line/run/detach.h"
#include "engine/command-line/run/progress.h"
#include "engine/command-line/run/recorded-run.h"
#include "engine/command-line/run/until.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/model/durations.h"
#include "engine/report/shown.h"
#include "engine/run/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Refuses to continue if original files have changed since the run began; AS_RECORDED: only prints it. The
 * run's own copies are used in any case. */
int execution_check_changes(const struct inputs *inputs, bool as_recorded, struct failure *failure) {
    cleanup(text_clear) struct text differences;
    text_init(&differences, 1 << 20);
    int r = inputs_compare(inputs, &differences, failure);
    if (r < 0 || differences.length == 0)
        return r;
    if (as_recorded) {
        shown_print(stderr, differences.bytes, true);
        fputs("; continuing with the run's own copies\n", stderr);
        return 0;
    }
    return failure_set_kind(
        failure, FAILURE_INPUT, -EINVAL,
        "%.900s; expected what the run began with (--as-recorded continues with the run's "
        "own copies, 'assay run' begins another run)",
        differences.bytes);
}

/* Carries out one part of the run, and prints its archive. */
static int run_part(const struct run_request *request, const struct inputs *inputs, struct failure *failure) {
    cleanup_free char *archive = NULL;
    int r = inputs ? run_resume(request, inputs, &archive, failure) : run_execute(request, &archive, failure);
    /* The run was sealed before this call, so its archive has not been printed yet. */
    if (r == 0 && archive && !request->outcome->folder)
        printf("%s\n", archive);
    /* A run may have taken days: where its archive is must not be lost with a full disk under standard
     * output. */
    if (archive && output_flush() < 0)
        fprintf(stderr, "%s\n", archive);
    return r;
}

/* Carries out another part of the run in FOLDER, with the campaign as it was recorded. */
static int run_next_part(const struct run_request *first, const char *folder, struct run_outcome *outcome,
                         struct failure *failure) {
    cleanup(inputs_clear) struct inputs inputs = {0};
    cleanup(campaign_cleanup) struct campaign *campaign = NULL;
    int r = inputs_read(folder, &inputs, failure);
    if (r == 0)
        r = campaign_read_recorded(folder, first->installation, NULL, 0, &campaign, failure);
    if (r < 0)
        return r;
    struct run_request request = *first;
    request.campaign = campaign;
    request.overrides = NULL;
    request.outcome = outcome;
    return run_part(&request, &inputs, failure);
}

/* Carries out further parts as long as each ends because its reservation is over and has done at least one
 * unit. */
static int resubmit(const struct run_request *request, struct run_outcome *outcome, int result,
                    struct failure *failure) {
    while (result < 0 && outcome->reservation_over && failure->kind == FAILURE_PARTIAL) {
        if (outcome->units_done == 0)
            return failure_set_kind(failure, FAILURE_PARTIAL, -ECANCELED,
                                    "no unit was finished within the reservation, so that another one would "
                                    "not help; ask for a longer walltime");
        cleanup_free char *folder = take_pointer(outcome->folder);
        *outcome = (struct run_outcome){0};
        *failure = (struct failure){0};
        result = run_next_part(request, folder, outcome, failure);
    }
    return result;
}

int execution_check_limits(const struct execution *execution, int64_t *ret_until_ns,
                           struct failure *failure) {
    const char *until = verb_value(execution->arguments, "--until");
    *ret_until_ns = 0;
    int r = until ? until_parse(until, clock_wall_ns(), ret_until_ns, failure) : 0;
    if (r < 0 || !verb_switch(execution->arguments, "--resubmit"))
        return r;
    if (until)
        return failure_input(
            failure, NULL, 0, 0,
            "--resubmit continues after the walltime, and --until limits all parts together; "
            "expected one of them");
    if (execution->campaign->walltime.limit_seconds <= 0 && !execution->campaign->testbed.backend->reclaim)
        return failure_input(failure, execution->campaign->document->file, 0, 0,
                             "--resubmit continues when the walltime is over, and this campaign has none; "
                             "expected a 'walltime', or a testbed that lends nodes");
    return 0;
}

int execution_predict(void *context, const struct plan *plan, double *ret_seconds, struct failure *failure) {
    (void)context;
    char warning[EXTRAPOLATION_SENTENCE_SIZE];
    const char *file = plan->campaign->walltime.model;
    int r = durations_predict(file, plan->design, ret_seconds, warning, failure);
    if (r == 0 && warning[0])
        fprintf(stderr, "assay: warning: %s: %s\n", shown(file).text, shown(warning).text);
    return r;
}

/* Carries out the execution in this process: reserves or begins only, or measures a part, and with --resubmit
 * further parts. */
int execution_perform(const struct execution *execution, struct run_observer observer,
                      struct failure *failure) {
    int64_t until_ns;
    int r = execution_check_limits(execution, &until_ns, failure);
    if (r < 0)
        return r;
    struct run_outcome outcome = {0};
    struct run_request request = {
        .campaign = execution->campaign,
        .overrides = execution->overrides,
        .outcome = &outcome,
        .installation = execution->arguments->installation,
        .folder = execution->folder,
        .observer = observer,
        .compare = recorded_run_compare,
        .command = execution->arguments->command,
        .until_ns = until_ns,
        .predict = execution_predict,
        .describe_result = report_best_settings,
    };
    if (execution->ret_reserved)
        return run_reserve(&request, execution->ret_reserved, failure);
    if (execution->ret_begun)
        return run_begin(&request, execution->ret_begun, failure);
    r = run_part(&request, execution->inputs, failure);
    if (verb_switch(execution->arguments, "--resubmit"))
        r = resubmit(&request, &outcome, r, failure);
    free(outcome.folder);
    return r;
}

int execution_begin(const struct verb_arguments *arguments,
                    int (*carry_out)(const struct execution *execution, struct failure *failure),
                    struct failure *failure) {
    int r = verb_check_settings(arguments, "--set", failure);
    if (r < 0)
        return r;
    size_t setting_count = 0, node_count = 0, spare_count = 0;
    cleanup_free const char **settings = verb_values(arguments, "--set", &setting_count);
    cleanup_free const char **nodes = verb_values(arguments, "--nodes", &node_count);
    cleanup_free const char **spares = verb_values(arguments, "--spares", &spare_count);
    struct campaign_overrides overrides = {.options = settings,
                                           .option_count = setting_count,
                                           .seed = verb_value(arguments, "--seed"),
                                           .nodes = nodes,
                                           .node_count = node_count,
                                           .spares = spares,
                                           .spare_count = spare_count,
                                           .testbed_text = verb_value(arguments, "--testbed"),
                                           .redact = verb_switch(arguments, "--redact")};
    cleanup(recorded_run_close) struct recorded_run recorded = {0};
    cleanup(campaign_cleanup) struct campaign *campaign = NULL;
    r = recorded_run_open(arguments->operands[0], &recorded, failure);
    if (r == 0 && recorded.is_recorded && verb_switch(arguments, "--resume"))
        return failure_input(failure, arguments->operands[0], 0, 0,
                             "what was run before is run again from its beginning; to continue a run that "
                             "has ended early give 'assay resume' its folder");
    overrides.written = recorded.written;
    overrides.again = recorded.again.path ? &recorded.again : NULL;
    if (r == 0)
        r = campaign_read(recorded.campaign, arguments->installation, &overrides, &campaign, failure);
    if (r < 0)
        return r;
    const char *folder = verb_value(arguments, "--output");
    return carry_out(&(struct execution){.arguments = arguments,
                                         .campaign = campaign,
                                         .path = recorded.campaign,
                                         .overrides = &overrides,
                                         .folder = folder ? folder : "runs"},
                     failure);
}

/* Starts the engine in another process or in a job, and prints the run's folder. */
static int detach(const struct execution *execution, struct failure *failure) {
    cleanup_free char *folder = NULL;
    int r = detach_execution(execution, &folder, failure);
    if (r < 0 || !folder)
        return r;
    puts(folder);
    fprintf(stderr, "'assay watch %s' follows it, and ends with its settings, best first\n",
            shown(folder).text);
    return 0;
}

int execution_run(const struct execution *execution, struct failure *failure) {
    struct progress progress;
    const struct verb_arguments *arguments = execution->arguments;
    if (verb_switch(arguments, "--detach"))
        return detach(execution, failure);
    progress_init(&progress, verb_switch(arguments, "--json"), verb_switch(arguments, "--quiet"));
    int r = execution_perform(execution, progress_observer(&progress), failure);
    progress_end(&progress);
    return r;
}
