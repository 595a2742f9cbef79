/* Slurm: sbatch, squeue and scancel. What squeue prints by --format is the same in all releases, which its
 * JSON is not. */
#include "engine/testbed/scheduler.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 65536, WALLTIME_MAX = 366 * 86400 };

#define ROW(key, type, member) BIND_ROW(key, type, scheduler_resources, member)
#define RANGED(key, type, member, least, most)                                                               \
    BIND_RANGED(key, type, scheduler_resources, member, least, most)

static const struct bind_field fields[] = {
    {RANGED("nodes", BIND_INTEGER, nodes, 1, NODES_MAX)},
    {RANGED("walltime", BIND_QUANTITY, walltime, 60, WALLTIME_MAX), .dimension = UNIT_TIME, .required = true},
    {ROW("partition", BIND_TEXT, queue)},
    {ROW("account", BIND_TEXT, account)},
    {ROW("constraint", BIND_TEXT, constraint)},
    {ROW("reservation", BIND_TEXT, reservation)},
    {ROW("options", BIND_TEXTS, options)},
    {ROW("login", BIND_TEXT, login)},
    {RANGED("at-most-wait", BIND_QUANTITY, at_most_wait, 1, WALLTIME_MAX), .dimension = UNIT_TIME},
};

/* The job itself does nothing: what it has is used from outside, or by steps. One that is requeued would
 * begin again, on other nodes, behind the engine's back. */
static void submit(const struct scheduler_resources *resources, const char *name, struct bind_texts *words) {
    long seconds = lround(ceil(resources->walltime));
    scheduler_word(words, "sbatch");
    scheduler_word(words, "--parsable");
    scheduler_word(words, "--job-name=%s", name);
    scheduler_word(words, "--nodes=%lld", (long long)resources->nodes);
    scheduler_word(words, "--time=%ld:%02ld", seconds / 60, seconds % 60);
    scheduler_word(words, "--exclusive");
    scheduler_word(words, "--no-requeue");
    scheduler_word(words, "--chdir=/"); /* which every node has */
    scheduler_word(words, "--output=/dev/null");
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
    scheduler_word(words, "--wrap=exec sleep %ld", seconds + 60);
}

/* "123", or "123;cluster", on a line of its own: a login shell may print others. */
static bool read_id(const char *output, char id[static SCHEDULER_ID_SIZE]) {
    bool is_found = false;
    for (const char *line = output; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        size_t digits = strspn(line, "0123456789");
        if (digits == 0 || digits >= SCHEDULER_ID_SIZE || !strchr("\n;", line[digits]))
            continue;
        snprintf(id, SCHEDULER_ID_SIZE, "%.*s", (int)digits, line);
        is_found = true;
    }
    return is_found;
}

/* By its name, because squeue refuses the number of a job that it has forgotten. Its JSON would be of all
 * jobs of the cluster up to 22.05. Times in seconds since 1970, whatever the time zone there is. */
static void query(const struct scheduler_resources *resources, const char *id, const char *name,
                  struct bind_texts *words) {
    (void)resources;
    (void)id;
    scheduler_word(words, "env");
    scheduler_word(words, "SLURM_TIME_FORMAT=%%s");
    scheduler_word(words, "squeue");
    scheduler_word(words, "--noheader");
    scheduler_word(words, "--states=all");
    scheduler_word(words, "--name=%s", name);
    scheduler_word(words, "--format=%%i|%%T|%%e|%%N|%%r");
}

enum { ID, STATE, END, NODES, REASON, COLUMNS };

/* Splits LINE, which is changed; false: it is no job's. The last column may have anything in it. */
static bool split(char *line, char *columns[static COLUMNS]) {
    for (size_t i = 0; i < COLUMNS; i++) {
        columns[i] = line;
        line = i + 1 < COLUMNS ? strchr(line, '|') : line + strlen(line);
        if (!line)
            return false;
        if (i + 1 < COLUMNS)
            *line++ = '\0';
    }
    return columns[ID][0] && strspn(columns[ID], "0123456789") == strlen(columns[ID]);
}

static enum scheduler_job_state state_called(const char *word) {
    static const char *const waiting[] = {"PENDING", "CONFIGURING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD"};
    for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++)
        if (strcmp(word, waiting[i]) == 0)
            return SCHEDULER_JOB_WAITING;
    return strcmp(word, "RUNNING") == 0 ? SCHEDULER_JOB_RUNNING : SCHEDULER_JOB_OVER;
}

static int take_job(char *const columns[static COLUMNS], struct scheduler_job *ret, struct failure *failure) {
    const char *reason = strcmp(columns[REASON], "None") == 0 ? "" : columns[REASON];
    snprintf(ret->id, sizeof ret->id, "%s", columns[ID]);
    ret->state = state_called(columns[STATE]);
    /* Of one that is over the state says more than the reason, which is that of its waiting. */
    snprintf(ret->reason, sizeof ret->reason, "%s",
             ret->state == SCHEDULER_JOB_OVER ? columns[STATE] : reason);
    if (!number_parse_int64(columns[END], strlen(columns[END]), &ret->end_s) || ret->end_s < 0)
        ret->end_s = 0; /* "N/A" */
    return ret->state == SCHEDULER_JOB_RUNNING ? host_list_parse(&ret->nodes, columns[NODES], failure) : 0;
}

static int read_job(const char *output, size_t length, const char *id, const char *name,
                    struct scheduler_job *ret, struct failure *failure) {
    cleanup_free char *lines = xstrndup(output, length);
    char *rest = lines, *columns[COLUMNS];
    int r = 0;
    (void)name; /* all are called that */
    ret->state = SCHEDULER_JOB_NONE;
    for (char *line; r == 0 && (line = strsep(&rest, "\n"));) {
        struct scheduler_job found = {0};
        if (!split(line, columns) || (id[0] && strcmp(columns[ID], id) != 0))
            continue;
        r = take_job(columns, &found, failure);
        scheduler_take_job(&found, ret);
    }
    return r;
}

static void cancel(const struct scheduler_resources *resources, const char *id, struct bind_texts *words) {
    (void)resources;
    scheduler_word(words, "scancel");
    scheduler_word(words, "%s", id);
}

/* srun JOB'S-OPTION ...: as if from within the job. */
static void enter(const char *id, struct bind_texts *words) {
    struct bind_texts entered = {0};
    for (size_t i = 0; i < words->count; i++) {
        scheduler_word(&entered, "%s", words->items[i]);
        if (i == 0)
            scheduler_word(&entered, "--jobid=%s", id);
    }
    bind_texts_clear(words);
    *words = entered;
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
    .read_job = read_job,
    .cancel = cancel,
    .launcher = "srun",
    .enter = enter,
};

static int bind(const struct testbed_written *written, struct testbed_settings **ret,
                struct failure *failure) {
    return scheduler_bind(&scheduler_slurm, written, ret, failure);
}

const struct testbed_backend testbed_slurm = SCHEDULER_BACKEND("slurm", "nodes that Slurm lends", bind);
