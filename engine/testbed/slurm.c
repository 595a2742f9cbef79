/* Slurm: sbatch, squeue and scancel. What squeue prints by --format is the same from 22.05 to 24.11, which
 * its JSON is not: that has a state as a text or as a list, numbers plain or in objects, all jobs whatever is
 * asked for (22.05), and nothing at all where Slurm was built without it. */
#include "engine/testbed/scheduler.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ROW(key, type, member) BIND_ROW(key, type, scheduler_resources, member)
#define RANGED(key, type, member, least, most)                                                               \
    BIND_RANGED(key, type, scheduler_resources, member, least, most)

#define ONLY_SUBMITS "an option with which sbatch submits the job and ends"

/* Options of sbatch after which there is not one job, or it is not found again. */
static const struct scheduler_option refused[] = {
    {"--array", 'a', SCHEDULER_ONE_JOB},
    {"--het-group", 0, SCHEDULER_ONE_JOB},
    {":", 0, SCHEDULER_ONE_JOB},
    {"--clusters", 'M', "'login' on a machine of that cluster"},
    {"--job-name", 'J', "none: the job is found again by the name that assay gives it"},
    {"--uid", 0, "'login' as that user: the job is found again among one's own"},
    {"--nodes", 'N', "the key 'nodes'"},
    {"--time", 't', "the key 'walltime'"},
    {"--wait", 'W', ONLY_SUBMITS},
    {"--wrap", 0, ONLY_SUBMITS},
    {"--test-only", 0, ONLY_SUBMITS},
};

static const char *expect_option(const char *key, const char *word) {
    (void)key;
    return scheduler_expect_option(refused, sizeof refused / sizeof *refused, "hHIkOQsV", word);
}

static const struct bind_field fields[] = {
    {RANGED("nodes", BIND_INTEGER, nodes, 1, SCHEDULER_NODES_MAX)},
    {RANGED("walltime", BIND_QUANTITY, walltime, 60, SCHEDULER_WALLTIME_MAX), .dimension = UNIT_TIME,
     .required = true},
    {ROW("partition", BIND_TEXT, queue)},
    {ROW("account", BIND_TEXT, account)},
    {ROW("constraint", BIND_TEXT, constraint)},
    {ROW("reservation", BIND_TEXT, reservation)},
    {ROW("options", BIND_TEXTS, options), .expect = expect_option},
    {ROW("login", BIND_TEXT, login)},
    {RANGED("at-most-wait", BIND_QUANTITY, at_most_wait, 1, SCHEDULER_WALLTIME_MAX), .dimension = UNIT_TIME},
};

/* A job without a command does nothing: what it has is used from outside, or by steps. One that is requeued
 * would begin again, on other nodes, behind the engine's back. */
static void submit(const struct scheduler_resources *resources, const char *name, const char *command,
                   const char *output, struct bind_texts *words) {
    long seconds = lround(ceil(resources->walltime));
    scheduler_word(words, "sbatch");
    scheduler_word(words, "--parsable");
    scheduler_word(words, "--job-name=%s", name);
    scheduler_word(words, "--nodes=%lld", (long long)resources->nodes);
    scheduler_word(words, "--time=%ld:%02ld", seconds / 60, seconds % 60);
    scheduler_word(words, "--exclusive");
    scheduler_word(words, "--no-requeue");
    scheduler_word(words, "--chdir=/"); /* which every node has */
    scheduler_word(words, "--output=%s", output ? output : "/dev/null");
    if (output)
        scheduler_word(words, "--open-mode=append"); /* of an earlier part, too */
    if (resources->queue)
        scheduler_word(words, "--partition=%s", resources->queue);
    if (resources->account)
        scheduler_word(words, "--account=%s", resources->account);
    if (resources->constraint)
        scheduler_word(words, "--constraint=%s", resources->constraint);
    if (resources->reservation)
        scheduler_word(words, "--reservation=%s", resources->reservation);
    for (size_t i = 0; i < resources->options.count; i++)
        scheduler_word(words, "%s", resources->options.items[i]);
    if (command)
        scheduler_word(words, "--wrap=exec %s", command);
    else
        scheduler_word(words, "--wrap=exec sleep %ld", seconds + 60);
}

/* "123", or "123;cluster", on a line of its own: a login shell may print others. */
static bool read_id(const char *output, char id[static SCHEDULER_ID_SIZE]) {
    bool is_found = false;
    for (const char *line = output; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        is_found |= scheduler_take_id(line, "\r\n;", id);
    }
    return is_found;
}

/* All jobs of this user, since others may call theirs as ours: squeue refuses the number of a job that it has
 * forgotten, and a name may be changed. Those of hidden partitions, too. Its JSON would be of all jobs of the
 * cluster up to 22.05. Times in seconds since 1970, whatever the time zone there is. */
static void query(const struct scheduler_resources *resources, const char *id, const char *name,
                  struct bind_texts *words) {
    (void)resources, (void)id, (void)name;
    scheduler_word(words, "env");
    scheduler_word(words, "SLURM_TIME_FORMAT=%%s");
    scheduler_word(words, "squeue");
    scheduler_word(words, "--noheader");
    scheduler_word(words, "--all");
    scheduler_word(words, "--states=all");
    scheduler_word(words, "--me");
    scheduler_word(words, "--format=%%i|%%T|%%e|%%N|%%j|%%r");
}

static void describe(const char *id, struct bind_texts *words) {
    scheduler_word(words, "scontrol");
    scheduler_word(words, "--details");
    scheduler_word(words, "show");
    scheduler_word(words, "job");
    scheduler_word(words, "%s", id);
}

enum { ID, STATE, END, NODES, NAME, REASON, COLUMNS };

/* Splits LINE, which is changed; false: it is no job's. The last column may have anything in it. The number
 * is 123; of the tasks of an array 123_4 or 123_[5-9], of the parts of a heterogeneous job 123+0. */
static bool split(char *line, char *columns[static COLUMNS]) {
    for (size_t i = 0; i < COLUMNS; i++) {
        columns[i] = line;
        line = i + 1 < COLUMNS ? strchr(line, '|') : line + strlen(line);
        if (!line)
            return false;
        if (i + 1 < COLUMNS)
            *line++ = '\0';
    }
    char id[SCHEDULER_ID_SIZE];
    return scheduler_take_id(columns[ID], "_+", id);
}

static bool is_number(const char *id, const char *number) {
    size_t length = strlen(number);
    return strncmp(id, number, length) == 0 && strchr("_+", id[length]);
}

/* A job with several flags has the word of one (job_state_string() of src/common/slurm_protocol_defs.c). What
 * is not known is waited for: it is deleted at the end like any other, and forgotten by Slurm if it is over.
 */
static enum scheduler_job_state state_called(const char *word) {
    static const struct {
        const char *word;
        enum scheduler_job_state state;
    } states[] = {{"RUNNING", SCHEDULER_JOB_RUNNING},    {"RESIZING", SCHEDULER_JOB_RUNNING},
                  {"SIGNALING", SCHEDULER_JOB_RUNNING},  {"COMPLETING", SCHEDULER_JOB_ENDING},
                  {"STAGE_OUT", SCHEDULER_JOB_ENDING},   {"BOOT_FAIL", SCHEDULER_JOB_OVER},
                  {"CANCELLED", SCHEDULER_JOB_OVER},     {"COMPLETED", SCHEDULER_JOB_OVER},
                  {"DEADLINE", SCHEDULER_JOB_OVER},      {"FAILED", SCHEDULER_JOB_OVER},
                  {"LAUNCH_FAILED", SCHEDULER_JOB_OVER}, {"NODE_FAIL", SCHEDULER_JOB_OVER},
                  {"OUT_OF_MEMORY", SCHEDULER_JOB_OVER}, {"PREEMPTED", SCHEDULER_JOB_OVER},
                  {"RECONFIG_FAIL", SCHEDULER_JOB_OVER}, {"REVOKED", SCHEDULER_JOB_OVER},
                  {"TIMEOUT", SCHEDULER_JOB_OVER}};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (strcmp(word, states[i].word) == 0)
            return states[i].state;
    return SCHEDULER_JOB_WAITING;
}

static int take_job(char *const columns[static COLUMNS], struct scheduler_job *ret, struct failure *failure) {
    const char *reason = strcmp(columns[REASON], "None") == 0 ? "" : columns[REASON];
    (void)scheduler_take_id(columns[ID], "_+", ret->id);
    ret->state = state_called(columns[STATE]);
    if (columns[ID][strlen(ret->id)])
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "job %s of Slurm has several parts (%s); assay needs a job that is "
                                "neither an array nor heterogeneous",
                                ret->id, columns[ID]);
    /* Of one that is over the state says more than the reason, which is that of its waiting. */
    snprintf(ret->reason, sizeof ret->reason, "%s",
             ret->state == SCHEDULER_JOB_OVER || ret->state == SCHEDULER_JOB_ENDING ? columns[STATE]
                                                                                    : reason);
    if (!number_parse_int64(columns[END], strlen(columns[END]), &ret->end_s) || ret->end_s < 0)
        ret->end_s = 0; /* "N/A" */
    if (ret->state != SCHEDULER_JOB_RUNNING || host_list_parse(&ret->nodes, columns[NODES], failure) == 0)
        return 0;
    return failure_prefix(failure, "the nodes '%s' of job %s of Slurm", columns[NODES], ret->id);
}

static int read_job(const char *output, size_t length, const char *id, const char *name,
                    struct scheduler_job *ret, struct failure *failure) {
    cleanup_free char *lines = xstrndup(output, length);
    char *rest = lines, *columns[COLUMNS];
    int r = 0;
    ret->state = SCHEDULER_JOB_NONE;
    for (char *line; r == 0 && (line = strsep(&rest, "\n"));) {
        struct scheduler_job found = {0};
        if (!split(line, columns))
            continue;
        if (id[0] ? !is_number(columns[ID], id) : strcmp(columns[NAME], name) != 0)
            continue;
        r = take_job(columns, &found, failure);
        scheduler_take_job(&found, ret);
    }
    return r;
}

static void cancel(const struct scheduler_resources *resources, const char *id, const char *name,
                   struct bind_texts *words) {
    (void)resources;
    scheduler_word(words, "scancel");
    if (name)
        scheduler_word(words, "--name=%s", name);
    scheduler_word(words, "%s", id);
}

/* ---- What is asked of the processors ---------------------------------------------------------------------
 */

/* The value of an option of sbatch's, NAME=VALUE or NAME VALUE; NULL: it is not there. */
static const char *value_of(const struct bind_texts *options, const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < options->count; i++) {
        const char *word = options->items[i];
        if (strncmp(word, name, length) != 0)
            continue;
        if (word[length] == '=')
            return word + length + 1;
        if (!word[length] && i + 1 < options->count)
            return options->items[i + 1];
    }
    return NULL;
}

/* srun JOB'S-OPTION ...: as if from within the job. sbatch keeps --cpu-freq for the steps of its script, and
 * the agent's step is none of those; an attached one must not have it, since its end would undo it. */
static void enter(const struct scheduler_resources *resources, const char *id, bool is_start,
                  struct bind_texts *words) {
    const char *frequency = value_of(&resources->options, "--cpu-freq");
    struct bind_texts entered = {0};
    for (size_t i = 0; i < words->count; i++) {
        scheduler_word(&entered, "%s", words->items[i]);
        if (i == 0)
            scheduler_word(&entered, "--jobid=%s", id);
        if (i == 0 && is_start && frequency)
            scheduler_word(&entered, "--cpu-freq=%s", frequency);
    }
    bind_texts_clear(words);
    *words = entered;
}

/* Of "P1[-P2][:GOVERNOR]" or "GOVERNOR": a governor alone, or what one frequency alone selects. */
static char *governor_of(const char *frequency) {
    static const char *const frequencies[] = {"low", "medium", "high", "highm1"};
    const char *colon = strchr(frequency, ':'), *word = colon ? colon + 1 : frequency;
    bool is_frequency = !colon && strchr("0123456789", *word);
    for (size_t i = 0; i < sizeof frequencies / sizeof *frequencies; i++)
        is_frequency |= !colon && strncasecmp(word, frequencies[i], strcspn(word, "-")) == 0;
    if (is_frequency)
        return strchr(word, '-') ? NULL : xstrdup("userspace");
    char *governor = xstrdup(word);
    for (char *c = governor; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return governor;
}

/* "1200000-2400000", in kHz, as a campaign has it. */
static char *limits_of(const char *frequency) {
    double least, most;
    int end = 0;
    if (sscanf(frequency, "%lf-%lf%n", &least, &most, &end) != 2 || !strchr(":", frequency[end]))
        return NULL;
    return xformat("%gGHz..%gGHz", least * 1e-6, most * 1e-6);
}

static char *asks(const struct scheduler_resources *resources, const char *control) {
    const char *frequency = value_of(&resources->options, "--cpu-freq"),
               *hint = value_of(&resources->options, "--hint"),
               *threads = value_of(&resources->options, "--threads-per-core");
    if (frequency && strcmp(control, "governor") == 0)
        return governor_of(frequency);
    if (frequency && strcmp(control, "frequency") == 0)
        return limits_of(frequency);
    bool is_alone = (hint && strcmp(hint, "nomultithread") == 0) || (threads && strcmp(threads, "1") == 0);
    return is_alone && strcmp(control, "hyperthreads") == 0 ? xstrdup("off") : NULL;
}

const struct scheduler scheduler_slurm = {
    .key = "slurm",
    .name = "Slurm",
    .fields = fields,
    .field_count = sizeof fields / sizeof *fields,
    .expected = "slurm: {nodes: 4, walltime: 2h, partition: NAME}",
    .submit = submit,
    .read_id = read_id,
    .query = query,
    .describe = describe,
    .read_job = read_job,
    .cancel = cancel,
    .job_variable = "SLURM_JOB_ID",
    .name_variable = "SLURM_JOB_NAME",
    .launcher = "srun",
    .enter = enter,
    .asks = asks,
};

static int bind(const struct testbed_written *written, struct testbed_settings **ret,
                struct failure *failure) {
    return scheduler_bind(&scheduler_slurm, written, ret, failure);
}

const struct testbed_backend testbed_slurm = SCHEDULER_BACKEND("slurm", "nodes that Slurm lends", bind);
