/* OAR 2.5: oarsub, oarstat and oardel, or its REST API, which calls them. */
#include "engine/testbed/scheduler.h"

#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define ROW(key, type, member) BIND_ROW(key, type, scheduler_resources, member)
#define RANGED(key, type, member, least, most)                                                               \
    BIND_RANGED(key, type, scheduler_resources, member, least, most)

/* Reads a date as OAR writes it, "2026-12-01 19:00:00", taken as local time. False: TEXT is no date, or a day
 * that no calendar has. */
static bool parse_date(const char *text, time_t *ret) {
    struct tm fields = {.tm_isdst = -1};
    const char *end = strptime(text, "%Y-%m-%d %H:%M:%S", &fields);
    int day = fields.tm_mday;
    *ret = end ? mktime(&fields) : -1;
    return end && !*end && strlen(text) == strlen("2026-12-01 19:00:00") && fields.tm_mday == day;
}

const char *scheduler_oar_expect_date(const char *key, const char *value) {
    time_t date;
    (void)key;
    return parse_date(value, &date) ? NULL
                                    : "a date and a time of day, such as 2026-12-01 19:00:00; without "
                                      "'reservation' OAR starts the job as soon as it has nodes";
}

static const char *expect_number(const char *key, const char *value) {
    size_t digits = strspn(value, "0123456789");
    (void)key;
    return digits > 0 && digits < SCHEDULER_ID_SIZE && !value[digits] ? NULL : "the number of a job";
}

#define PRINTS_NUMBER "an option with which oarsub still prints the job's number"
#define ONLY_WAITS                                                                                           \
    "another option: assay submits a new job that holds its nodes and runs no program of its own"

/* Options of oarsub with which it submits no job or several, or does not print the job's number. */
static const struct scheduler_option refused[] = {
    {"--array", 0, SCHEDULER_ONE_JOB},
    {"--array-param-file", 0, SCHEDULER_ONE_JOB},
    {"--name", 'n', "none: the job is found again by the name that assay gives it"},
    {"--resource", 'l', "the keys 'nodes' and 'walltime', or 'resources'"},
    {"--reservation", 'r', "the key 'reservation'"},
    {"--resubmit", 0, ONLY_WAITS},
    {"--scanscript", 'S', ONLY_WAITS},
    {"--interactive", 'I', ONLY_WAITS},
    {"--connect", 'C', ONLY_WAITS},
    {"--help", 'h', PRINTS_NUMBER},
    {"--version", 'V', PRINTS_NUMBER},
    {"--json", 'J', PRINTS_NUMBER},
    {"--yaml", 'Y', PRINTS_NUMBER},
    {"--xml", 'X', PRINTS_NUMBER},
    {"--dumper", 'D', PRINTS_NUMBER},
};

static const char *expect_option(const char *key, const char *word) {
    (void)key;
    return scheduler_expect_option(refused, sizeof refused / sizeof *refused, "k", word);
}

static const struct bind_field fields[] = {
    {RANGED("nodes", BIND_INTEGER, nodes, 1, SCHEDULER_NODES_MAX)},
    {RANGED("walltime", BIND_QUANTITY, walltime, 1, SCHEDULER_WALLTIME_MAX), .dimension = UNIT_TIME},
    {ROW("cluster", BIND_TEXT, cluster), .expect = scheduler_expect_name},
    {ROW("properties", BIND_TEXT, constraint)},
    {ROW("resources", BIND_TEXT, resources)},
    {ROW("types", BIND_TEXTS, types)},
    {ROW("queue", BIND_TEXT, queue)},
    {ROW("project", BIND_TEXT, account)},
    {ROW("container", BIND_TEXT, container), .expect = expect_number},
    {ROW("reservation", BIND_TEXT, reservation), .expect = scheduler_oar_expect_date},
    {RANGED("extend", BIND_QUANTITY, extend, 60, SCHEDULER_WALLTIME_MAX), .dimension = UNIT_TIME},
    {RANGED("checkpoint", BIND_QUANTITY, checkpoint, 1, SCHEDULER_WALLTIME_MAX), .dimension = UNIT_TIME},
    {ROW("options", BIND_TEXTS, options), .expect = expect_option},
    {ROW("login", BIND_TEXT, login)},
    {ROW("api", BIND_TEXT, api)},
    {ROW("credentials", BIND_TEXT, credentials)},
    {ROW("authority", BIND_TEXT, authority)},
    {RANGED("at-most-wait", BIND_QUANTITY, at_most_wait, 1, SCHEDULER_WALLTIME_MAX), .dimension = UNIT_TIME},
};

enum { CLOCK_SIZE = 32 };

/* Formats DURATION, in seconds, as OAR's "H:MM:SS", rounded up. */
static const char *format_walltime(double duration, char ret[static CLOCK_SIZE]) {
    long seconds = lround(ceil(duration));
    snprintf(ret, CLOCK_SIZE, "%ld:%02ld:%02ld", seconds / 3600, seconds / 60 % 60, seconds % 60);
    return ret;
}

char *scheduler_oar_resources(const struct scheduler_resources *resources) {
    char walltime[CLOCK_SIZE];
    if (resources->resources)
        return xstrdup(resources->resources);
    format_walltime(resources->walltime > 0 ? resources->walltime : 3600, walltime);
    cleanup_free char *cluster =
        resources->cluster ? xformat("{cluster='%s'}/", resources->cluster) : xstrdup("");
    return xformat("%snodes=%lld,walltime=%s", cluster, (long long)resources->nodes, walltime);
}

/* Calls ADD for each option of the job that is submitted. The options are oarsub's long ones; the members of
 * the REST API have the same names. */
static void describe_job(const struct scheduler_resources *resources, const char *name, const char *output,
                         void (*add)(const char *option, const char *value, void *context), void *context) {
    cleanup_free char *job_resources = scheduler_oar_resources(resources);
    cleanup_free char *inner = resources->container ? xformat("inner=%s", resources->container) : NULL;
    cleanup_free char *checkpoint =
        resources->checkpoint > 0 ? xformat("%ld", lround(ceil(resources->checkpoint))) : NULL;
    const struct {
        const char *option, *value;
    } options[] = {{"name", name},
                   {"resource", job_resources},
                   {"property", resources->constraint},
                   {"queue", resources->queue},
                   {"project", resources->account},
                   {"reservation", resources->reservation},
                   {"type", inner},
                   {"checkpoint", checkpoint},
                   /* A working folder that every node has; no files of output are left. */
                   {"directory", "/"},
                   {"stdout", output ? output : "/dev/null"},
                   {"stderr", output ? output : "/dev/null"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].value)
            add(options[i].option, options[i].value, context);
    for (size_t i = 0; i < resources->types.count; i++)
        add("type", resources->types.items[i], context);
}

/* The command of the job: COMMAND or, with NULL, one that sleeps. NULL for a reservation at a given date: OAR
 * runs no command in it. */
static const char *job_command(const struct scheduler_resources *resources, const char *command) {
    return command ? command : resources->reservation ? NULL : "sleep infinity";
}

static void add_option_word(const char *option, const char *value, void *context) {
    scheduler_word(context, "--%s=%s", option, value);
}

/* Appends the oarsub command that submits the job; COMMAND NULL: the job only holds its nodes. */
static void submit(const struct scheduler_resources *resources, const char *name, const char *command,
                   const char *output, struct bind_texts *words) {
    scheduler_word(words, "oarsub");
    describe_job(resources, name, output, add_option_word, words);
    for (size_t i = 0; i < resources->options.count; i++)
        scheduler_word(words, "%s", resources->options.items[i]);
    command = job_command(resources, command);
    if (command)
        scheduler_word(words, "%s", command);
}

/* Refuses a reservation whose date is past. OAR on another machine may be in another time zone: there a date
 * within the last day is accepted. */
static int check(const struct scheduler_resources *resources, struct failure *failure) {
    static const int64_t day_s = 86400;
    bool is_here = !resources->login && !resources->api;
    time_t date;
    if (!resources->reservation || !parse_date(resources->reservation, &date) ||
        date + (is_here ? 0 : day_s) > clock_wall_ns() / EVENT_SECOND)
        return 0;
    return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                            "'reservation' is %s, which is past; expected a time in the future",
                            resources->reservation);
}

bool scheduler_parse_id(const char *text, const char *ends, char ret[static SCHEDULER_ID_SIZE]) {
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits >= SCHEDULER_ID_SIZE || text[0] == '0' || !strchr(ends, text[digits]))
        return false;
    snprintf(ret, SCHEDULER_ID_SIZE, "%.*s", (int)digits, text);
    return true;
}

/* Reads the number of the new job. oarsub prints other lines too, and OAR_JOB_ID=123 or, where it refuses the
 * job, OAR_JOB_ID=-5. */
static bool read_id(const char *output, char id[static SCHEDULER_ID_SIZE]) {
    static const char key[] = "OAR_JOB_ID=";
    const char *found = strstr(output, key);
    return found && scheduler_parse_id(found + strlen(key), "\r\n", id);
}

/* Writes the command that asks OAR for the job ID, or, without one, for all jobs of the user. */
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
        scheduler_word(words, "-u"); /* without a name: the user on the login node */
    }
}

static bool is_one_of(const char *word, const char *const *words) {
    while (*words && strcasecmp(word, *words) != 0)
        words++;
    return *words;
}

/* True where the deletion of a job was requested: it still runs for some seconds. */
static bool is_deletion_requested(const struct document_node *node) {
    const struct document_node *events = document_get(node, "events");
    for (size_t i = 0; events && i < events->count; i++)
        if (strcmp(scheduler_text(events->items[i], "type"), "FRAG_JOB_REQUEST") == 0)
            return true;
    return false;
}

/* Reads one job object. States are compared without case, because Grid'5000 writes them in small letters. */
int scheduler_oar_read_job(const struct scheduler_oar_keys *keys, const char *id,
                           const struct document_node *job, struct scheduler_job *ret,
                           struct failure *failure) {
    static const char *const over_states[] = {"Terminated", "Error", "Finishing", "toError", NULL};
    static const char *const starting_states[] = {"toLaunch", "Launching", NULL};
    static const char *const running_states[] = {"Running", NULL};
    const char *state = scheduler_text(job, "state");
    const struct document_node *list = document_get(job, keys->nodes);
    int r = 0;
    if (!scheduler_parse_id(id, "", ret->id)) /* checked strictly, because it names a folder */
        return failure_set(failure, -EBADMSG, "OAR calls a job '%.64s', expected the number of a job", id);
    snprintf(ret->reason, sizeof ret->reason, "%s", scheduler_text(job, "message"));
    ret->state = is_one_of(state, over_states)      ? SCHEDULER_JOB_OVER
                 : is_deletion_requested(job)       ? SCHEDULER_JOB_ENDING
                 : is_one_of(state, running_states) ? SCHEDULER_JOB_RUNNING
                                                    : SCHEDULER_JOB_WAITING;
    ret->is_starting = is_one_of(state, starting_states);
    ret->start_s = scheduler_number(job, keys->start);
    int64_t walltime = scheduler_number(job, "walltime");
    ret->end_s = ret->start_s > 0 && walltime > 0 ? ret->start_s + walltime : 0;
    for (size_t i = 0; r == 0 && ret->state == SCHEDULER_JOB_RUNNING && list && i < list->count; i++)
        r = list->items[i]->text ? host_list_add(&ret->nodes, list->items[i]->text, failure) : 0;
    return r < 0 ? failure_prefix(failure, "the nodes of job %s", ret->id) : r;
}

/* Of several jobs of one name the most active is chosen: OAR submits a job whose node died again, under
 * another number and the same name. */
int scheduler_oar_read_jobs(const struct scheduler_oar_keys *keys, const struct document_node *jobs,
                            const char *id, const char *name, struct scheduler_job *ret,
                            struct failure *failure) {
    int r = 0;
    ret->state = SCHEDULER_JOB_NONE;
    for (size_t i = 0; r == 0 && jobs && i < jobs->count; i++) {
        const struct document_node *job = jobs->items[i];
        const char *number = keys->number ? scheduler_text(job, keys->number) : jobs->keys[i]->text;
        struct scheduler_job found = {0};
        if (strcmp(id[0] ? number : scheduler_text(job, "name"), id[0] ? id : name) != 0)
            continue;
        r = scheduler_oar_read_job(keys, number, job, &found, failure);
        scheduler_prefer_job(&found, ret);
    }
    return r;
}

/* Reads the output of `oarstat -fJ`: an object with one member a job, or nothing where there are no jobs. */
static int read_job(const char *output, size_t length, const char *id, const char *name,
                    struct scheduler_job *ret, struct failure *failure) {
    static const struct scheduler_oar_keys keys = {NULL, "startTime", "assigned_network_address"};
    cleanup(document_cleanup) struct document *document = NULL;
    ret->state = SCHEDULER_JOB_NONE;
    if (strspn(output, " \n") == length)
        return 0; /* no jobs */
    int r = scheduler_parse_object("oarstat", output, length, &document, failure);
    if (r == 0 && id[0]) /* oarstat -j finds jobs of any age, so it must print an object */
        return failure_set(failure, -EBADMSG,
                           "oarstat printed no JSON object; run it by hand to see what it prints");
    if (r <= 0)
        return r;
    return scheduler_oar_read_jobs(&keys, document->root, id, name, ret, failure);
}

/* Finds the job that this process runs in by OAR's environment variables, since nodes have no oarstat as a
 * rule. The walltime counts from the job's start, which is assumed to be MOMENT seconds ago. */
static int find_own(const char *name, struct scheduler_job *ret, struct failure *failure) {
    enum { MOMENT = 10 };
    const char *own = getenv("OAR_JOB_NAME"), *id = getenv("OAR_JOB_ID"), *nodes = getenv("OAR_NODEFILE"),
               *walltime = getenv("OAR_JOB_WALLTIME_SECONDS");
    int64_t seconds;
    if (!own || strcmp(own, name) != 0 || !id || !nodes || !walltime ||
        !number_parse_int64(walltime, strlen(walltime), &seconds) || !scheduler_parse_id(id, "", ret->id))
        return 0;
    int r = host_list_read(&ret->nodes, nodes, failure);
    ret->state = SCHEDULER_JOB_RUNNING;
    ret->end_s = clock_wall_ns() / EVENT_SECOND + seconds - MOMENT;
    return r < 0 ? r : 1;
}

static void cancel(const struct scheduler_resources *resources, const char *id, const char *name,
                   struct bind_texts *words) {
    (void)resources, (void)name;
    scheduler_word(words, "oardel");
    scheduler_word(words, "%s", id);
}

static void extend(double duration, const char *id, struct bind_texts *words) {
    char by[CLOCK_SIZE];
    scheduler_word(words, "oarwalltime");
    scheduler_word(words, "%s", id);
    scheduler_word(words, "+%s", format_walltime(duration, by));
}

/* Puts OAR_JOB_ID, by which oarsh knows the job, before the command WORDS. */
void scheduler_oar_enter(const struct scheduler_resources *resources, const char *id, bool is_start,
                         struct bind_texts *words) {
    struct bind_texts entered = {0};
    (void)resources, (void)is_start;
    scheduler_word(&entered, "env");
    scheduler_word(&entered, "OAR_JOB_ID=%s", id);
    for (size_t i = 0; i < words->count; i++)
        scheduler_word(&entered, "%s", words->items[i]);
    bind_texts_clear(words);
    *words = entered;
}

/* ---- The REST API */

void scheduler_oar_request(struct bind_texts *words, const char *method, const char *path, cJSON *body) {
    cleanup(text_clear) struct text text = {0};
    scheduler_word(words, "%s", method);
    scheduler_word(words, "%s", path);
    if (!body)
        return;
    text_init(&text, 64 << 10);
    (void)json_print(body, false, &text);
    scheduler_word(words, "%s", text.bytes);
    cJSON_Delete(body);
}

/* Adds an option to the JSON object CONTEXT. Only "type" may occur more than once, and is a list. */
static void add_option_member(const char *option, const char *value, void *context) {
    cJSON *list = cJSON_GetObjectItem(context, option);
    if (strcmp(option, "type") != 0)
        json_add_string(context, option, value);
    else
        json_add_string(list ? list : json_add_array(context, option), NULL, value);
}

/* Appends the request that submits the job; as submit(). */
static void submit_rest(const struct scheduler_resources *resources, const char *name, const char *command,
                        const char *output, struct bind_texts *words) {
    cJSON *body = cJSON_CreateObject();
    describe_job(resources, name, output, add_option_member, body);
    json_add_string(body, "workdir", "/");
    command = job_command(resources, command);
    if (command)
        json_add_string(body, "command", command);
    scheduler_oar_request(words, "POST", "/jobs.json", body);
}

bool scheduler_oar_read_id(const char *output, const char *key, char id[static SCHEDULER_ID_SIZE]) {
    cleanup(document_cleanup) struct document *document = NULL;
    return document_parse_json("", output, strlen(output), &document, NULL) == 0 &&
           scheduler_parse_id(scheduler_text(document->root, key), "", id);
}

static bool read_id_rest(const char *output, char id[static SCHEDULER_ID_SIZE]) {
    return scheduler_oar_read_id(output, "id", id);
}

static void ask_user_rest(struct bind_texts *words) {
    scheduler_oar_request(words, "GET", "/whoami.json", NULL);
}

/* The user's name in the answer to /whoami.json: its first word, as the API itself reads the user of a job.
 * NULL: OUTPUT is no such answer; "": nobody is logged in. The caller frees. */
static char *read_user_rest(const char *output) {
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    cleanup(document_cleanup) struct document *document = NULL;
    if (document_parse_json("", output, strlen(output), &document, NULL) < 0 ||
        !document_get(document->root, "authenticated_user"))
        return NULL;
    const char *user = scheduler_text(document->root, "authenticated_user");
    user += strcspn(user, word);
    return xstrndup(user, strspn(user, word));
}

/* Asks for job ID or, where ID is "", for the user's jobs that are not over. Only OAR's own structure has the
 * nodes and the walltime of a job; the limit replaces the API's default of 500 jobs. */
static void query_rest(const struct scheduler_resources *resources, const char *id, const char *name,
                       struct bind_texts *words) {
    (void)name;
    cleanup_free char *path = id[0] ? xformat("/jobs/%s.json?structure=oar", id)
                                    : xformat("/jobs.json?limit=100000&user=%s", resources->user);
    scheduler_oar_request(words, "GET", path, NULL);
}

/* Reads the answer to query_rest(): one job or, where ID is "", a list of jobs. */
static int read_job_rest(const char *output, size_t length, const char *id, const char *name,
                         struct scheduler_job *ret, struct failure *failure) {
    static const struct scheduler_oar_keys keys = {"id", "startTime", "assigned_network_address"};
    cleanup(document_cleanup) struct document *document = NULL;
    ret->state = SCHEDULER_JOB_NONE;
    if (document_parse_json("the API of OAR", output, length, &document, failure) < 0 ||
        !document_get(document->root, id[0] ? "state" : "items"))
        return failure_set(failure, -EBADMSG,
                           "OAR's API answered without '%s', expected a job or a list of jobs",
                           id[0] ? "state" : "items");
    return id[0] ? scheduler_oar_read_job(&keys, id, document->root, ret, failure)
                 : scheduler_oar_read_jobs(&keys, document_get(document->root, "items"), id, name, ret,
                                           failure);
}

static void cancel_rest(const struct scheduler_resources *resources, const char *id, const char *name,
                        struct bind_texts *words) {
    (void)resources, (void)name;
    cleanup_free char *path = xformat("/jobs/%s.json", id);
    scheduler_oar_request(words, "DELETE", path, NULL);
}

static void extend_rest(double duration, const char *id, struct bind_texts *words) {
    char by[CLOCK_SIZE];
    cleanup_free char *path = xformat("/jobs/%s.json", id),
                      *walltime = xformat("+%s", format_walltime(duration, by));
    cJSON *body = cJSON_CreateObject();
    json_add_string(body, "method", "walltime-change");
    json_add_string(body, "walltime", walltime);
    scheduler_oar_request(words, "POST", path, body);
}

/* Refuses settings that the API cannot pass on safely: it makes a line for a shell of them. Options of
 * oarsub, and characters that a shell interprets within quotes, are refused. */
static int check_rest(struct testbed_settings *settings, const struct testbed_written *written,
                      struct failure *failure) {
    const struct scheduler_resources *resources = &settings->resources;
    const struct document_node *own = document_get(written->node, "oar");
    const struct {
        const char *key, *value;
    } texts[] = {{"properties", resources->constraint},
                 {"resources", resources->resources},
                 {"queue", resources->queue},
                 {"project", resources->account}};
    const char *key = resources->options.count > 0 ? "options" : NULL;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        key = texts[i].value && strpbrk(texts[i].value, "\\\"`$\n") ? texts[i].key : key;
    for (size_t i = 0; i < resources->types.count; i++)
        key = strpbrk(resources->types.items[i], "\\\"`$\n") ? "types" : key;
    if (!key)
        return 0;
    return bind_refuse(written->document, document_get(own, key), failure,
                       "'%s' cannot be passed to OAR's API; remove options of oarsub, and the "
                       "characters '\\', '\"', '`', '$' and line ends",
                       key);
}

#define OAR(CHECK_SETTINGS, SUBMIT, READ_ID, ASK_USER, READ_USER, QUERY, READ_JOB, CANCEL, EXTEND)           \
    {                                                                                                        \
        .key = "oar", .name = "OAR", .fields = fields, .field_count = sizeof fields / sizeof *fields,        \
        .expected = "oar: {cluster: dahu, nodes: 2, walltime: 20min}", .starts_late = true,                  \
        .ends_for_good = true, .check_settings = CHECK_SETTINGS, .check = check, .submit = SUBMIT,           \
        .read_id = READ_ID, .ask_user = ASK_USER, .read_user = READ_USER, .query = QUERY,                    \
        .read_job = READ_JOB, .cancel = CANCEL, .extend = EXTEND, .find_own = find_own,                      \
        .job_variable = "OAR_JOB_ID", .name_variable = "OAR_JOB_NAME", .launcher = "oarsh",                  \
        .enter = scheduler_oar_enter,                                                                        \
    }

const struct scheduler scheduler_oar =
    OAR(NULL, submit, read_id, NULL, NULL, query, read_job, cancel, extend);
const struct scheduler scheduler_oar_rest =
    OAR(check_rest, submit_rest, read_id_rest, ask_user_rest, read_user_rest, query_rest, read_job_rest,
        cancel_rest, extend_rest);

/* Chooses OAR's commands or its REST API: a campaign with the key 'api' uses the API. */
static int bind(const struct testbed_written *written, struct testbed_settings **ret,
                struct failure *failure) {
    bool is_rest = document_get(document_get(written->node, "oar"), "api");
    const struct scheduler *scheduler = is_rest ? &scheduler_oar_rest : &scheduler_oar;
    return scheduler_bind(scheduler, written, ret, failure);
}

const struct testbed_backend testbed_oar = SCHEDULER_BACKEND("oar", "nodes that OAR lends", bind);
