/* OAR 2.5: oarsub, oarstat and oardel. */
#include "engine/testbed/scheduler.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 65536, WALLTIME_MAX = 366 * 86400 };

#define ROW(key, type, member) BIND_ROW(key, type, scheduler_resources, member)
#define RANGED(key, type, member, least, most)                                                               \
    BIND_RANGED(key, type, scheduler_resources, member, least, most)

static const char *expect_cluster(const char *key, const char *value) {
    (void)key;
    return value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")]
               ? "a name of letters, digits, '-', '_' and '.'"
               : NULL;
}

static const struct bind_field fields[] = {
    {RANGED("nodes", BIND_INTEGER, nodes, 1, NODES_MAX)},
    {RANGED("walltime", BIND_QUANTITY, walltime, 1, WALLTIME_MAX), .dimension = UNIT_TIME},
    {ROW("cluster", BIND_TEXT, cluster), .expect = expect_cluster},
    {ROW("properties", BIND_TEXT, constraint)},
    {ROW("resources", BIND_TEXT, resources)},
    {ROW("types", BIND_TEXTS, types)},
    {ROW("queue", BIND_TEXT, queue)},
    {ROW("project", BIND_TEXT, account)},
    {ROW("reservation", BIND_TEXT, reservation)},
    {ROW("options", BIND_TEXTS, options)},
    {ROW("login", BIND_TEXT, login)},
    {RANGED("at-most-wait", BIND_QUANTITY, at_most_wait, 1, WALLTIME_MAX), .dimension = UNIT_TIME},
};

static void submit(const struct scheduler_resources *resources, const char *name, struct bind_texts *words) {
    long seconds = resources->walltime > 0 ? lround(ceil(resources->walltime)) : 3600;
    scheduler_word(words, "oarsub");
    scheduler_word(words, "-n");
    scheduler_word(words, "%s", name);
    scheduler_word(words, "-l");
    if (resources->resources)
        scheduler_word(words, "%s", resources->resources);
    else if (resources->cluster)
        scheduler_word(words, "{cluster='%s'}/nodes=%lld,walltime=%ld:%02ld:%02ld", resources->cluster,
                       (long long)resources->nodes, seconds / 3600, seconds / 60 % 60, seconds % 60);
    else
        scheduler_word(words, "nodes=%lld,walltime=%ld:%02ld:%02ld", (long long)resources->nodes,
                       seconds / 3600, seconds / 60 % 60, seconds % 60);
    const struct {
        const char *option, *value;
    } single[] = {{"-p", resources->constraint},
                  {"-q", resources->queue},
                  {"--project", resources->account},
                  {"-r", resources->reservation}};
    for (size_t i = 0; i < sizeof single / sizeof *single; i++) {
        if (!single[i].value)
            continue;
        scheduler_word(words, "%s", single[i].option);
        scheduler_word(words, "%s", single[i].value);
    }
    for (size_t i = 0; i < resources->types.count; i++) {
        scheduler_word(words, "-t");
        scheduler_word(words, "%s", resources->types.items[i]);
    }
    for (size_t i = 0; i < resources->options.count; i++)
        scheduler_word(words, "%s", resources->options.items[i]);
    /* It begins where every node has a folder, and leaves no files. */
    scheduler_word(words, "--directory=/");
    scheduler_word(words, "--stdout=/dev/null");
    scheduler_word(words, "--stderr=/dev/null");
    if (!resources->reservation) /* a reservation has a time of its own, and starts nothing */
        scheduler_word(words, "sleep infinity");
}

/* oarsub prints what it thinks, and OAR_JOB_ID=123 or, where it refuses, OAR_JOB_ID=-5. */
static bool read_id(const char *output, char id[static SCHEDULER_ID_SIZE]) {
    static const char key[] = "OAR_JOB_ID=";
    const char *found = strstr(output, key);
    size_t digits = found ? strspn(found + strlen(key), "0123456789") : 0;
    if (digits == 0 || digits >= SCHEDULER_ID_SIZE)
        return false;
    snprintf(id, SCHEDULER_ID_SIZE, "%.*s", (int)digits, found + strlen(key));
    return true;
}

static void query(const struct scheduler_resources *resources, const char *id, const char *name,
                  struct bind_texts *words) {
    (void)resources;
    (void)name;
    scheduler_word(words, "oarstat");
    scheduler_word(words, "-fJ"); /* without -f there is no walltime */
    if (id[0]) {
        scheduler_word(words, "-j");
        scheduler_word(words, "%s", id);
    } else {
        scheduler_word(words, "-u"); /* whoever asks: on a login node that may be somebody else */
    }
}

static const char *text_of(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    return value && value->text && value->kind != DOCUMENT_NULL ? value->text : "";
}

static int64_t number_of(const struct document_node *node, const char *key) {
    int64_t number = 0;
    const char *text = text_of(node, key);
    return number_parse_int64(text, strlen(text), &number) && number > 0 ? number : 0;
}

static bool is_one_of(const char *word, const char *const *words) {
    while (*words && strcmp(word, *words) != 0)
        words++;
    return *words;
}

static int take_job(const char *id, const struct document_node *node, struct scheduler_job *ret,
                    struct failure *failure) {
    static const char *const over[] = {"Terminated", "Error", "Finishing", "toError", NULL};
    const char *state = text_of(node, "state");
    const struct document_node *nodes = document_get(node, "assigned_network_address");
    int r = 0;
    snprintf(ret->id, sizeof ret->id, "%s", id);
    snprintf(ret->reason, sizeof ret->reason, "%s", text_of(node, "message"));
    ret->state = strcmp(state, "Running") == 0 ? SCHEDULER_JOB_RUNNING
                 : is_one_of(state, over)      ? SCHEDULER_JOB_OVER
                                               : SCHEDULER_JOB_WAITING;
    int64_t start = number_of(node, "startTime"), walltime = number_of(node, "walltime");
    ret->end_s = start > 0 && walltime > 0 ? start + walltime : 0;
    for (size_t i = 0; r == 0 && ret->state == SCHEDULER_JOB_RUNNING && nodes && i < nodes->count; i++)
        r = nodes->items[i]->text ? host_list_add(&ret->nodes, nodes->items[i]->text, failure) : 0;
    return r;
}

/* An object with the jobs' numbers as keys. A job of a dead node is submitted again under another number,
 * with the same name. */
static int read_job(const char *output, size_t length, const char *id, const char *name,
                    struct scheduler_job *ret, struct failure *failure) {
    struct document *document = NULL;
    ret->state = SCHEDULER_JOB_NONE;
    if (strspn(output, " \n") == length)
        return 0; /* no jobs */
    if (document_parse_json("oarstat -J", output, length, &document, failure) < 0)
        return failure_set(failure, -EBADMSG, "oarstat printed something else than JSON");
    const struct document_node *jobs = document->root;
    int r = 0;
    for (size_t i = 0; r == 0 && jobs->kind == DOCUMENT_MAPPING && i < jobs->count; i++) {
        const struct document_node *job = jobs->items[i];
        struct scheduler_job found = {0};
        if (strcmp(id[0] ? jobs->keys[i]->text : text_of(job, "name"), id[0] ? id : name) != 0)
            continue;
        r = take_job(jobs->keys[i]->text, job, &found, failure);
        scheduler_take_job(&found, ret);
    }
    document_free(document);
    return r;
}

static void cancel(const struct scheduler_resources *resources, const char *id, struct bind_texts *words) {
    (void)resources;
    scheduler_word(words, "oardel");
    scheduler_word(words, "%s", id);
}

/* oarsh asks its environment which job it is for. */
static void enter(const char *id, struct bind_texts *words) {
    struct bind_texts entered = {0};
    scheduler_word(&entered, "env");
    scheduler_word(&entered, "OAR_JOB_ID=%s", id);
    for (size_t i = 0; i < words->count; i++)
        scheduler_word(&entered, "%s", words->items[i]);
    bind_texts_clear(words);
    *words = entered;
}

const struct scheduler scheduler_oar = {
    .key = "oar",
    .name = "OAR",
    .fields = fields,
    .field_count = sizeof fields / sizeof *fields,
    .expected = "oar: {cluster: dahu, nodes: 2, walltime: 20min}",
    .submit = submit,
    .read_id = read_id,
    .query = query,
    .read_job = read_job,
    .cancel = cancel,
    .launcher = "oarsh",
    .enter = enter,
};

static int bind(const struct testbed_written *written, struct testbed_settings **ret,
                struct failure *failure) {
    return scheduler_bind(&scheduler_oar, written, ret, failure);
}

const struct testbed_backend testbed_oar = SCHEDULER_BACKEND("oar", "nodes that OAR lends", bind);
