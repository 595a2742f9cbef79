/* assay run: executes a campaign, or shows what it would do. */
#include "engine/command-line/detach.h"
#include "engine/command-line/execution.h"
#include "engine/command-line/follow.h"
#include "engine/command-line/output.h"
#include "engine/command-line/verb.h"

#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/report/shown.h"
#include "engine/run/campaign/campaign.h"
#include "engine/run/campaign/plan-describe.h"
#include "engine/run/campaign/unfinished.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct verb_option options[] = {
    EXECUTION_OPTION_OUTPUT,
    EXECUTION_OPTION_SET,
    EXECUTION_OPTION_SEED,
    {"--nodes", 0, "LIST",
     "runs on these nodes, reached by ssh, whatever testbed the campaign names: names and ranges such as "
     "dahu-[1-32].grenoble, or @FILE with a list of them; the campaign's other keys of 'hosts' count",
     true},
    {"--spares", 0, "LIST",
     "likewise, nodes that take the places of lost ones, whatever the campaign says; with --resume, beside "
     "those that the run has",
     true},
    EXECUTION_OPTION_UNTIL,
    EXECUTION_OPTION_RESUBMIT,
    EXECUTION_OPTION_DETACH,
    {"--resume", 0, NULL,
     "continues the last run of this campaign in FOLDER that is not complete, instead of beginning another",
     false},
    {"--dry-run", 'n', NULL, "prints phases, units, commands, memory and time expected, and touches nothing",
     false},
    {"--json", 0, NULL, "prints events as JSON, one a line, on standard output; with --dry-run, the plan",
     false},
    EXECUTION_OPTION_QUIET,
    {NULL, 0, NULL, NULL, false},
};

/* A model that would be refused is so before the run, too. */
static int check_model(const struct plan *plan, struct failure *failure) {
    cleanup_free double *seconds = xcalloc(plan->design->row_count + 1, sizeof *seconds);
    return execution_predict(NULL, plan, seconds, failure);
}

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
    if (r < 0)
        return r;
    cleanup(text_clear) struct text description;
    text_init(&description, 256 << 20);
    if (json) {
        cleanup(json_cleanup) cJSON *object = plan_resolve(plan);
        json_print(object, true, &description);
        text_append_character(&description, '\n');
    } else {
        r = plan_describe(plan, execution->folder, &description, failure);
    }
    if (r == 0)
        output_bytes(description.bytes, description.length);
    return r;
}

/* This is a new run; whoever wanted to continue another one should know. */
static void announce(const struct inputs *inputs) {
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

/* A run of this campaign that did not end, in the same folder: it is continued, or named. */
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
        announce(&inputs);
    if (found == INPUTS_OTHER || !wanted)
        return execution_carry_out(execution, failure);
    int r = execution_check_changes(&inputs, false, failure);
    if (r == 0) /* the run has those that it began with */
        r = campaign_read_recorded(inputs.run_folder, execution->installation, execution->overrides->spares,
                                   execution->overrides->spare_count, &campaign, failure);
    if (r < 0)
        return r;
    struct execution other = *execution;
    other.campaign = campaign;
    other.overrides = NULL;
    other.inputs = &inputs;
    return execution_carry_out(&other, failure);
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

static int begin_one(const struct execution *execution, struct each *each, size_t i,
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

static int run_each(const struct execution *execution, const char *path, struct failure *failure) {
    const struct verb_arguments *arguments = execution->arguments;
    bool is_followed = !verb_switch(arguments, "--dry-run") && !verb_switch(arguments, "--detach");
    size_t count = execution->campaign->testbed.count;
    if (verb_switch(arguments, "--resume") || (is_followed && verb_switch(arguments, "--json")))
        return failure_input(
            failure, path, 0, 0,
            "--resume and --json are for one run, and this campaign has a run on each of %zu "
            "testbeds; expected 'assay resume' or 'assay attach --json' with the folder of one",
            count);
    cleanup(clear_each) struct each each = {.count = count,
                                            .overrides = xcalloc(count, sizeof *each.overrides),
                                            .campaigns = xcalloc(count, sizeof *each.campaigns),
                                            .folders = xcalloc(count, sizeof *each.folders)};
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) { /* all, before one begins */
        each.overrides[i] = *execution->overrides;
        each.overrides[i].testbed = i;
        r = campaign_read(path, execution->installation, &each.overrides[i], &each.campaigns[i], failure);
    }
    for (size_t i = 0; r == 0 && i < count; i++)
        r = begin_one(execution, &each, i, failure);
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
        return run_each(execution, execution->path, failure);
    if (verb_switch(arguments, "--dry-run"))
        return dry_run(execution, verb_switch(arguments, "--json"), failure);
    return begin_or_continue(execution, failure);
}

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    return execution_begin(arguments, carry_out, failure);
}

const struct verb verb_run = {
    .name = "run",
    .summary = "run a campaign and seal its archive",
    .synopsis =
        "assay run CAMPAIGN.yaml|ARCHIVE.zip [-o FOLDER] [--set NAME=VALUE]... [--seed SEED] "
        "[--nodes LIST]... [--spares LIST]... [--until WHEN] [--resubmit] [--detach[=job]] [--resume] "
        "[--dry-run]",
    .description =
        "Runs the campaign: reserves its nodes, prepares the experiment on them, measures every unit of the "
        "design in the order that the design says (random unless it says otherwise), and seals results and "
        "provenance into one archive, whose path is printed on standard output.\n\n"
        "A unit that is shown as done is on disk. Ctrl-C ends the measurements and seals what there is; a "
        "run that fails is sealed too, and its archive says so. The run's folder, beside the archive, keeps "
        "the same files.\n\n"
        "A run whose time is limited (--until, the campaign's walltime, the end of the Slurm job that this "
        "program runs in; the earliest counts) begins no unit that could not end in time, and is restored "
        "and sealed before it is over, as is one that gets SIGUSR2 or SIGTERM. Unless all was done by then, "
        "its status is partial, the exit code 6, and results/missing.csv in its archive has the units that "
        "are not done.\n\n"
        "A run that was killed, or that ended before all was measured, is continued by 'assay resume'. When "
        "such a run of the same campaign, with the same options, is in the folder, this says so before it "
        "begins a new one; with --resume it continues that one instead, or refuses with the difference where "
        "the campaign was changed since.\n\n"
        "An archive is run again: its campaign, with the experiment, the source, the design and the seed "
        "that it has, on the nodes that it names; --set, --seed and --nodes count over what it was run with. "
        "So is the campaign.yaml of an archive that was extracted, or of a run's folder, unless it was "
        "edited.\n\n"
        "Without a seed, in the campaign or by --seed, one is drawn from the system; it is printed and "
        "recorded, and giving it again gives the same design in the same order.\n\n"
        "Nodes come from the campaign's testbed. With --nodes the same campaign runs on the machines of a "
        "list, over ssh; they need nothing but sshd and libc.\n\n"
        "With --detach the run is carried out by a process without a terminal, and this command returns as "
        "soon as that has begun: the run's folder is printed, 'assay attach' follows it, 'assay stop' ends "
        "it, and what it prints is in the file RUN.out beside the folder. Logging out does not end it, "
        "unless the system ends all that a user has left ('loginctl enable-linger' prevents that where it is "
        "allowed). With --detach=job the engine itself is in the job of Slurm or OAR, on its first node, and "
        "nothing stays behind on the login node; the folder of runs and this program must be where the nodes "
        "see them, and the run ends with the job. 'assay fetch' brings archives from there.\n\n"
        "A campaign with a list of testbeds runs on each of them, side by side, each a run and an archive of "
        "its own with a number after its name; they are shown with a line each, Ctrl-C ends all of them, and "
        "the exit code is that of the one that ended worst.\n\n"
        "How the nodes are set, watched and judged is the campaign's: controls (turbo, hyperthreads, "
        "governor, frequency, energy-preference, idle-states, uncore-frequency, numa-balancing, "
        "transparent-huge-pages, daemons; mismatch, unavailable, proof, tolerance), probes (a period, or one "
        "for each), warm-up (a time, or steady) and gates (none, flag, repeat, drop or stop, or one for "
        "each). 'assay nodes controls' says what nodes can do. Whatever was set is put back as it was found, "
        "at the end, on Ctrl-C, and by the nodes themselves when this program is killed.\n\n"
        "A node that is lost is taken out, and the others continue; with node-loss: abort the run ends, with "
        "replace one of the testbed's spares measures its share. A run that lacks units is partial.\n\n"
        "  assay run examples/quickstart.yaml\n"
        "  assay run examples/quickstart.yaml --nodes 'dahu-[1-32].grenoble'\n"
        "  assay run examples/quickstart.yaml --set blas=reference --seed 42\n"
        "  assay run examples/quickstart.yaml --until 18:30\n"
        "  assay run examples/quickstart.yaml --detach\n"
        "  assay run examples/quickstart.yaml --dry-run\n"
        "  assay run runs/quickstart-20261122T120000-1a2b3c4d.zip",
    .options = options,
    .operands_least = 1,
    .operands_most = 1,
    .run = run,
};
