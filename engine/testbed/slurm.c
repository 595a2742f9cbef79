/* Slurm by its commands sbatch, squeue and scancel. squeue is read by its --format, which is the same
 * from 22.05 to 24.11. Its JSON is not: a state is a text or a list, numbers are plain or in objects, 22.05
 * lists all jobs whatever was asked, and some builds have no JSON. */
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

/* Options of sbatch with which it submits no job or several, or a job that assay cannot find again. */
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

/* Appends the sbatch command that submits the job. Without COMMAND the job sleeps, and its nodes are used by
 * ssh or by steps. It must not be requeued: Slurm would start it again on other nodes without the engine's
 * knowledge. */
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
    scheduler_word(words, "--chdir=/"); /* a folder that every node has */
    scheduler_word(words, "--output=%s", output ? output : "/dev/null");
    if (output)
        scheduler_word(words, "--open-mode=append"); /* keeps the output of an earlier part of the run */
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

/* Reads the number of the new job from sbatch's line "123" or "123;cluster". Other lines, as a login shell
 * may print, are skipped. */
static bool read_id(const char *output, char id[static SCHEDULER_ID_SIZE]) {
    bool is_found = false;
    for (const char *line = output; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        is_found |= scheduler_parse_id(line, "\r\n;", id);
    }
    return is_found;
}

/* Appends the squeue command that lists all jobs of this user; read_job() selects by number or name. squeue
 * itself is not asked for one job, since it refuses the number of a job that it has forgotten, and a job may
 * have been renamed. Jobs of hidden partitions are listed, too; times are in seconds since 1970. */
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

/* Splits LINE in place at '|' into COLUMNS; the last column may contain any character. False: LINE does not
 * describe a job. The number of a job is 123; the tasks of an array have 123_4 or 123_[5-9], the parts of a
 * heterogeneous job 123+0. */
static bool split_line(char *line, char *columns[static COLUMNS]) {
    for (size_t i = 0; i < COLUMNS; i++) {
        columns[i] = line;
        line = i + 1 < COLUMNS ? strchr(line, '|') : line + strlen(line);
        if (!line)
            return false;
        if (i + 1 < COLUMNS)
            *line++ = '\0';
    }
    char id[SCHEDULER_ID_SIZE];
    return scheduler_parse_id(columns[ID], "_+", id);
}

/* True where the squeue column ID is the job NUMBER or a part of it ("123_4"). */
static bool has_number(const char *id, const char *number) {
    size_t length = strlen(number);
    return strncmp(id, number, length) == 0 && strchr("_+", id[length]);
}

/* The state that squeue calls WORD (job_state_string() of src/common/slurm_protocol_defs.c; a job with
 * several flags gets one word). Unknown words count as waiting: Slurm soon forgets a job that is over, and
 * any other is deleted at the end. */
static enum scheduler_job_state parse_state(const char *word) {
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

/* Fills RET from the COLUMNS of a line of squeue. -EINVAL for a job of several parts; the nodes are read only
 * where the job runs. */
static int read_columns(char *const columns[static COLUMNS], struct scheduler_job *ret,
                        struct failure *failure) {
    const char *reason = strcmp(columns[REASON], "None") == 0 ? "" : columns[REASON];
    (void)scheduler_parse_id(columns[ID], "_+", ret->id);
    ret->state = parse_state(columns[STATE]);
    if (columns[ID][strlen(ret->id)])
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "job %s of Slurm has several parts (%s); assay needs a job that is "
                                "neither an array nor heterogeneous",
                                ret->id, columns[ID]);
    /* Where the job is over its state explains more: Slurm's reason is still that of its waiting. */
    snprintf(ret->reason, sizeof ret->reason, "%s",
             ret->state == SCHEDULER_JOB_OVER || ret->state == SCHEDULER_JOB_ENDING ? columns[STATE]
                                                                                    : reason);
    if (!number_parse_int64(columns[END], strlen(columns[END]), &ret->end_s) || ret->end_s < 0)
        ret->end_s = 0; /* "N/A" */
    if (ret->state != SCHEDULER_JOB_RUNNING || host_list_parse(&ret->nodes, columns[NODES], failure) == 0)
        return 0;
    return failure_prefix(failure, "the nodes '%s' of job %s of Slurm", columns[NODES], ret->id);
}

/* Finds in squeue's output the job ID or, where ID is "", the job called NAME. */
static int read_job(const char *output, size_t length, const char *id, const char *name,
                    struct scheduler_job *ret, struct failure *failure) {
    cleanup_free char *lines = xstrndup(output, length);
    char *rest = lines, *columns[COLUMNS];
    int r = 0;
    ret->state = SCHEDULER_JOB_NONE;
    for (char *line; r == 0 && (line = strsep(&rest, "\n"));) {
        struct scheduler_job found = {0};
        if (!split_line(line, columns))
            continue;
        if (id[0] ? !has_number(columns[ID], id) : strcmp(columns[NAME], name) != 0)
            continue;
        r = read_columns(columns, &found, failure);
        scheduler_prefer_job(&found, ret);
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

/* ---- Options that change controls of the nodes */

/* The value of the sbatch option NAME among OPTIONS, written NAME=VALUE or NAME VALUE; NULL: it is not there.
 */
static const char *option_value(const struct bind_texts *options, const char *name) {
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

/* Adds --jobid to the srun command WORDS, so that it runs as a step of job ID. The step that starts the agent
 * also gets the job's --cpu-freq, which sbatch passes only to steps of its own script. A step that attaches
 * must not have it: Slurm would undo the frequency at its end. */
static void enter(const struct scheduler_resources *resources, const char *id, bool is_start,
                  struct bind_texts *words) {
    const char *frequency = option_value(&resources->options, "--cpu-freq");
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

/* The governor that sbatch --cpu-freq="P1[-P2][:GOVERNOR]" or "GOVERNOR" selects, in small letters; one
 * frequency alone selects "userspace". NULL: none is selected. The caller frees. */
static char *governor_of_option(const char *frequency) {
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

/* The frequency limits of --cpu-freq="1200000-2400000" (kHz) as a campaign writes them, "1.2GHz..2.4GHz";
 * NULL: FREQUENCY has no two limits. The caller frees. */
static char *limits_of_option(const char *frequency) {
    double least, most;
    int end = 0;
    if (sscanf(frequency, "%lf-%lf%n", &least, &most, &end) != 2 || !strchr(":", frequency[end]))
        return NULL;
    return xformat("%gGHz..%gGHz", least * 1e-6, most * 1e-6);
}

/* The value that the options --cpu-freq, --hint and --threads-per-core give CONTROL on the job's nodes; NULL:
 * they do not change it. The caller frees. */
static char *asks(const struct scheduler_resources *resources, const char *control) {
    const char *frequency = option_value(&resources->options, "--cpu-freq"),
               *hint = option_value(&resources->options, "--hint"),
               *threads = option_value(&resources->options, "--threads-per-core");
    if (frequency && strcmp(control, "governor") == 0)
        return governor_of_option(frequency);
    if (frequency && strcmp(control, "frequency") == 0)
        return limits_of_option(frequency);
    bool is_one_thread =
        (hint && strcmp(hint, "nomultithread") == 0) || (threads && strcmp(threads, "1") == 0);
    return is_one_thread && strcmp(control, "hyperthreads") == 0 ? xstrdup("off") : NULL;
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
