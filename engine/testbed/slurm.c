/* Slurm: sbatch, squeue and scancel, of 22.05 and later, whose JSON comes in two shapes: numbers are plain,
 * or
 * {"set": true, "number": N} from 23.02 on; a state is a word, or a list of them from 23.11 on. */
#include "engine/testbed/scheduler.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
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
    {RANGED("at-most-wait", BIND_QUANTITY, at_most_wait, 0, WALLTIME_MAX), .dimension = UNIT_TIME},
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

/* "123", or "123;cluster". */
static bool read_id(const char *output, char id[static SCHEDULER_ID_SIZE]) {
    size_t digits = strspn(output, "0123456789");
    if (digits == 0 || digits >= SCHEDULER_ID_SIZE || (output[digits] != '\n' && output[digits] != ';'))
        return false;
    snprintf(id, SCHEDULER_ID_SIZE, "%.*s", (int)digits, output);
    return true;
}

static void query(const char *id, struct bind_texts *words) {
    scheduler_word(words, "squeue");
    scheduler_word(words, "--json");
    if (id[0])
        scheduler_word(words, "--jobs=%s", id);
    else
        scheduler_word(words, "--me");
}

static const char *text_of(const struct document_node *node) {
    return node && node->text && node->kind != DOCUMENT_NULL ? node->text : "";
}

/* 0: not set. */
static int64_t number_of(const struct document_node *node) {
    int64_t number = 0;
    if (node && node->kind == DOCUMENT_MAPPING) {
        if (strcmp(text_of(document_get(node, "set")), "true") != 0)
            return 0;
        node = document_get(node, "number");
    }
    const char *text = text_of(node);
    return number_parse_int64(text, strlen(text), &number) && number > 0 ? number : 0;
}

static bool has_state(const struct document_node *state, const char *word) {
    if (state && state->kind == DOCUMENT_SEQUENCE) {
        for (size_t i = 0; i < state->count; i++)
            if (strcmp(text_of(state->items[i]), word) == 0)
                return true;
        return false;
    }
    return strcmp(text_of(state), word) == 0;
}

static int take_job(const struct document_node *node, struct scheduler_job *ret, struct failure *failure) {
    const struct document_node *state = document_get(node, "job_state"),
                               *reason = document_get(node, "state_reason");
    const char *why = text_of(reason);
    snprintf(ret->id, sizeof ret->id, "%s", text_of(document_get(node, "job_id")));
    ret->state =
        has_state(state, "PENDING") || has_state(state, "CONFIGURING") || has_state(state, "SUSPENDED")
            ? SCHEDULER_JOB_WAITING
        : has_state(state, "RUNNING") ? SCHEDULER_JOB_RUNNING
                                      : SCHEDULER_JOB_OVER;
    snprintf(ret->reason, sizeof ret->reason, "%s", strcmp(why, "None") == 0 ? "" : why);
    ret->end_s = number_of(document_get(node, "end_time"));
    host_list_clear(&ret->nodes);
    return ret->state == SCHEDULER_JOB_RUNNING
               ? host_list_parse(&ret->nodes, text_of(document_get(node, "nodes")), failure)
               : 0;
}

static int read_job(const char *output, size_t length, const char *id, const char *name,
                    struct scheduler_job *ret, struct failure *failure) {
    struct document *document = NULL;
    ret->state = SCHEDULER_JOB_NONE;
    int r = document_parse_json("squeue --json", output, length, &document, failure);
    if (r < 0)
        return failure_set(failure, -EBADMSG, "squeue printed something else than JSON");
    const struct document_node *jobs = document_get(document->root, "jobs");
    for (size_t i = 0; jobs && i < jobs->count; i++) {
        const struct document_node *job = jobs->items[i];
        const char *key = id[0] ? "job_id" : "name";
        struct scheduler_job found = {0};
        if (strcmp(text_of(document_get(job, key)), id[0] ? id : name) != 0)
            continue;
        r = take_job(job, &found, failure);
        if (r < 0 || found.state >= ret->state) {
            host_list_clear(&ret->nodes);
            *ret = found;
        } else {
            host_list_clear(&found.nodes);
        }
    }
    document_free(document);
    return r;
}

static void cancel(const char *id, struct bind_texts *words) {
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
    .enter = enter,
};

static int bind(const struct testbed_written *written, struct testbed_settings **ret,
                struct failure *failure) {
    return scheduler_bind(&scheduler_slurm, written, ret, failure);
}

const struct testbed_backend testbed_slurm = SCHEDULER_BACKEND("slurm", "nodes that Slurm lends", bind);
