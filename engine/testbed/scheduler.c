#include "engine/testbed/scheduler.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/nodes/group.h"
#include "engine/testbed/frontend.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A job is asked after soon, then ever more seldom: nine times in the first minute, then twice in one. */
static const int64_t first_poll_ns = 200 * EVENT_MILLISECOND, last_poll_ns = 30 * EVENT_SECOND;
/* A scheduler that is restarted is away for so long. */
static const int64_t patience_ns = 300 * EVENT_SECOND;
enum { OUTPUT_MAX = 64 << 20 };

struct testbed {
    const struct testbed_settings *settings;
    struct testbed_request request;
    char *name; /* of the job */
    struct frontend *frontend;
    struct scheduler_job job;
    char **node_names; /* one a node of the job */
    struct bind_texts start, attach;
    struct launcher_words words;
    struct access *access;
};

void scheduler_word(struct bind_texts *words, const char *format, ...) {
    cleanup(text_clear) struct text word;
    va_list arguments;
    text_init(&word, 64 << 10);
    va_start(arguments, format);
    (void)text_vprintf(&word, format, arguments);
    va_end(arguments);
    bind_texts_add(words, word.bytes);
}

/* ---- Settings --------------------------------------------------------------------------------------------
 */

static const struct bind_field access_field[] = {{.type = BIND_MAPPING,
                                                  .offset = offsetof(struct testbed_settings, access),
                                                  .fields = access_fields,
                                                  .field_count = ACCESS_FIELDS}};

static struct bind_field resources_field(const struct scheduler *scheduler) {
    return (struct bind_field){.key = scheduler->key,
                               .type = BIND_MAPPING,
                               .offset = offsetof(struct testbed_settings, resources),
                               .fields = scheduler->fields,
                               .field_count = scheduler->field_count};
}

void scheduler_free_settings(struct testbed_settings *settings) {
    if (!settings)
        return;
    bind_clear(access_field, 1, settings);
    bind_clear(settings->scheduler->fields, settings->scheduler->field_count, &settings->resources);
    free(settings);
}

static void free_settings_pointer(struct testbed_settings **settings) {
    scheduler_free_settings(*settings);
}

int scheduler_bind(const struct scheduler *scheduler, const struct testbed_written *written,
                   struct testbed_settings **ret, struct failure *failure) {
    const struct document_node *node = written->node, *own = document_get(node, scheduler->key);
    cleanup(free_settings_pointer) struct testbed_settings *settings = xcalloc(1, sizeof *settings);
    settings->scheduler = scheduler;
    settings->resources.nodes = 1;
    access_init(&settings->access);
    if (!own || own->kind != DOCUMENT_MAPPING)
        return bind_refuse(written->document, own ? own : node, failure,
                           "'%s' does not say what to reserve, expected %s", scheduler->key,
                           scheduler->expected);
    struct bind_field fields[] = {resources_field(scheduler), access_field[0]};
    int r = bind_mapping(written->document, node, "'testbed'", fields, 2, settings, failure);
    if (r == 0)
        r = access_check(&settings->access, written, failure);
    if (r == 0 && settings->resources.login && settings->access.launcher.by &&
        strcmp(settings->access.launcher.by, "ssh") != 0)
        r = bind_refuse(
            written->document, document_get(node, "launcher"), failure,
            "the launcher '%s' runs on this machine, and '%s' is only on the login node; expected "
            "ssh, or assay to run there",
            settings->access.launcher.by, scheduler->key);
    if (r == 0)
        *ret = take_pointer(settings);
    return r;
}

size_t scheduler_expected_nodes(const struct testbed_settings *settings) {
    return settings->resources.resources ? 0 : (size_t)settings->resources.nodes;
}

int scheduler_describe(const struct testbed_settings *settings, struct text *ret) {
    text_printf(ret, "%-12s ", "job");
    bind_describe(settings->scheduler->fields, settings->scheduler->field_count, &settings->resources, ret);
    text_append_character(ret, '\n');
    return access_describe(&settings->access, ret);
}

void scheduler_resolve(const struct testbed_settings *settings, cJSON *object) {
    bind_resolve(settings->scheduler->fields, settings->scheduler->field_count, &settings->resources,
                 json_add_object(object, settings->scheduler->key));
    bind_resolve(access_field, 1, settings, object);
}

/* ---- Commands --------------------------------------------------------------------------------------------
 */

static void report(const struct testbed *testbed, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void report(const struct testbed *testbed, const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    if (!testbed->request.report)
        return;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    testbed->request.report(testbed->request.report_context, sentence);
}

/* Runs WORDS. What fails is said in the scheduler's own words. */
static int command(struct testbed *testbed, const struct bind_texts *words, struct text *output,
                   struct failure *failure) {
    char problem[FAILURE_TEXT_SIZE];
    text_init(output, OUTPUT_MAX);
    int r = frontend_run(testbed->frontend, (const char *const *)words->items, output, problem, failure);
    if (r > 0)
        return failure_set(failure, -EIO, "%s ended with exit status %d: %s", words->items[0], r,
                           problem[0] ? problem : "it printed nothing");
    return r;
}

/* Asks once for the job ID, or that of our name where ID is "". */
static int ask(struct testbed *testbed, const char *id, struct scheduler_job *ret, struct failure *failure) {
    const struct scheduler *scheduler = testbed->settings->scheduler;
    cleanup(bind_texts_clear) struct bind_texts words = {0};
    cleanup(text_clear) struct text output;
    scheduler->query(id, &words);
    int r = command(testbed, &words, &output, failure);
    return r < 0 ? r : scheduler->read_job(output.bytes, output.length, id, testbed->name, ret, failure);
}

static int64_t longer(int64_t period_ns) {
    return 2 * period_ns < last_poll_ns ? 2 * period_ns : last_poll_ns;
}

/* Asks until there is an answer: a scheduler may be away for a while. */
static int ask_patiently(struct testbed *testbed, const char *id, struct scheduler_job *ret,
                         struct failure *failure) {
    int64_t since_ns = clock_monotonic_ns(), period_ns = EVENT_SECOND;
    bool was_reported = false;
    for (;;) {
        int r = ask(testbed, id, ret, failure);
        bool is_hopeless = r == -EINTR || r == -ENOENT || failure->kind == FAILURE_INPUT;
        if (r == 0 || is_hopeless || clock_monotonic_ns() - since_ns > patience_ns)
            return r;
        if (!was_reported)
            report(testbed, "%s does not answer, and is asked again: %s", testbed->settings->scheduler->name,
                   failure->text);
        was_reported = true;
        *failure = (struct failure){0};
        r = frontend_wait(testbed->frontend, period_ns, failure);
        if (r < 0)
            return r;
        period_ns = longer(period_ns);
    }
}

/* ---- Reserving -------------------------------------------------------------------------------------------
 */

static void free_testbed(struct testbed *testbed) {
    if (!testbed)
        return;
    access_close(testbed->access);
    frontend_close(testbed->frontend);
    for (size_t i = 0; testbed->node_names && i < testbed->job.nodes.count; i++)
        free(testbed->node_names[i]);
    free(testbed->node_names);
    host_list_clear(&testbed->job.nodes);
    bind_texts_clear(&testbed->start);
    bind_texts_clear(&testbed->attach);
    free(testbed->name);
    free(testbed);
}

static void free_testbed_pointer(struct testbed **testbed) {
    free_testbed(*testbed);
}

static int submit(struct testbed *testbed, struct failure *failure) {
    const struct scheduler *scheduler = testbed->settings->scheduler;
    cleanup(bind_texts_clear) struct bind_texts words = {0};
    cleanup(text_clear) struct text output;
    scheduler->submit(&testbed->settings->resources, testbed->name, &words);
    int r = command(testbed, &words, &output, failure);
    if (r == 0 && !scheduler->read_id(output.bytes, testbed->job.id))
        r = failure_set(failure, -EBADMSG, "%s printed '%.*s', expected the number of a job", words.items[0],
                        (int)strcspn(output.bytes, "\n"), output.bytes);
    return r;
}

/* The job of an engine that died is taken over; otherwise a new one is submitted. */
int scheduler_reserve(const struct testbed_settings *settings, const struct testbed_request *request,
                      struct testbed **ret, struct failure *failure) {
    cleanup(free_testbed_pointer) struct testbed *testbed = xcalloc(1, sizeof *testbed);
    testbed->settings = settings;
    testbed->request = *request;
    testbed->name = xformat("assay-%.36s", request->run_id);
    int r = frontend_open(request->loop, &settings->access, settings->resources.login, &testbed->frontend,
                          failure);
    if (r == 0)
        r = ask_patiently(testbed, "", &testbed->job, failure);
    bool is_there =
        testbed->job.state == SCHEDULER_JOB_WAITING || testbed->job.state == SCHEDULER_JOB_RUNNING;
    if (r == 0 && is_there)
        report(testbed, "job %s of %s is there already", testbed->job.id, settings->scheduler->name);
    else if (r == 0)
        r = submit(testbed, failure);
    if (r == 0)
        *ret = take_pointer(testbed);
    return r;
}

const char *scheduler_id(const struct testbed *testbed) {
    return testbed->job.id;
}

/* ---- Waiting ---------------------------------------------------------------------------------------------
 */

static int refuse_job(struct testbed *testbed, struct failure *failure) {
    const struct scheduler_job *job = &testbed->job;
    return failure_set(failure, -ECANCELED, "job %s of %s is over before it has begun%s%s", job->id,
                       testbed->settings->scheduler->name, job->reason[0] ? ": " : "", job->reason);
}

/* Waits until the job runs; its reason for waiting is reported when it changes. */
static int wait_for_job(struct testbed *testbed, struct failure *failure) {
    int64_t begun_ns = clock_monotonic_ns(), period_ns = first_poll_ns;
    double most = testbed->settings->resources.at_most_wait;
    char reason[sizeof testbed->job.reason] = "", most_text[NUMBER_TEXT_SIZE];
    for (;;) {
        struct scheduler_job *job = &testbed->job;
        char id[SCHEDULER_ID_SIZE];
        memcpy(id, job->id, sizeof id);
        int r = ask_patiently(testbed, id, job, failure);
        memcpy(job->id, id, sizeof id);
        if (r < 0 || job->state == SCHEDULER_JOB_RUNNING)
            return r;
        if (job->state != SCHEDULER_JOB_WAITING)
            return refuse_job(testbed, failure);
        if (strcmp(reason, job->reason) != 0)
            report(testbed, "job %s of %s waits: %s", job->id, testbed->settings->scheduler->name,
                   job->reason);
        memcpy(reason, job->reason, sizeof reason);
        if (most > 0 && clock_monotonic_ns() - begun_ns > (int64_t)llround(most * 1e9))
            return failure_set(failure, -ETIMEDOUT, "job %s of %s has waited for %s, and is given up%s%s",
                               job->id, testbed->settings->scheduler->name,
                               number_describe_duration(most, most_text), reason[0] ? ": " : "", reason);
        r = frontend_wait(testbed->frontend, period_ns, failure);
        if (r < 0)
            return r;
        period_ns = longer(period_ns);
    }
}

static int name_nodes(struct testbed *testbed, struct failure *failure) {
    const struct host_list *nodes = &testbed->job.nodes;
    int r = 0;
    if (nodes->count == 0 || nodes->count > NODE_GROUP_MAX)
        return failure_set(failure, -EBADMSG, "job %s has %zu nodes, expected 1 to %d", testbed->job.id,
                           nodes->count, NODE_GROUP_MAX);
    testbed->node_names = xcalloc(nodes->count, sizeof *testbed->node_names);
    for (size_t i = 0; r == 0 && i < nodes->count; i++) {
        testbed->node_names[i] = ssh_node_name(nodes->names[i]);
        r = ssh_node_check_name(testbed->node_names[i], nodes->names[i], failure);
    }
    return r;
}

static void copy_words(const char *const *words, const struct testbed *testbed, struct bind_texts *ret) {
    for (size_t i = 0; words && words[i]; i++)
        bind_texts_add(ret, words[i]);
    if (words && testbed->settings->scheduler->enter)
        testbed->settings->scheduler->enter(testbed->job.id, ret);
}

/* What leads to the nodes; a launcher that the scheduler has is led into the job. */
static const struct launcher_words *find_words(struct testbed *testbed) {
    struct launcher_words own;
    const struct launcher_words *words = access_launcher(&testbed->settings->access, &own);
    if (!words || !testbed->settings->access.launcher.by)
        return words && !testbed->settings->access.launcher.by ? (testbed->words = *words, &testbed->words)
                                                               : words;
    copy_words(words->start, testbed, &testbed->start);
    copy_words(words->attach, testbed, &testbed->attach);
    testbed->words = (struct launcher_words){.start = (const char *const *)testbed->start.items,
                                             .attach = (const char *const *)testbed->attach.items};
    return &testbed->words;
}

int scheduler_wait(struct testbed *testbed, struct failure *failure) {
    int r = wait_for_job(testbed, failure);
    if (r == 0)
        r = name_nodes(testbed, failure);
    return r < 0 ? r
                 : access_open(&testbed->settings->access, &testbed->request, find_words(testbed),
                               &testbed->access, failure);
}

/* ---- The nodes -------------------------------------------------------------------------------------------
 */

size_t scheduler_node_count(const struct testbed *testbed) {
    return testbed->job.nodes.count;
}

const char *scheduler_node_name(const struct testbed *testbed, size_t node) {
    return testbed->node_names[node];
}

int scheduler_connect(struct testbed *testbed, size_t node, struct transport **ret, struct failure *failure) {
    return ssh_nodes_transport(access_nodes(testbed->access), testbed->job.nodes.names[node], ret, failure);
}

struct agent_link_policy scheduler_policy(const struct testbed *testbed) {
    return *ssh_nodes_policy(access_nodes(testbed->access));
}

struct testbed_agent scheduler_agent(const struct testbed *testbed, const struct transport *transport) {
    (void)testbed;
    return access_agent(transport);
}

int64_t scheduler_deadline(const struct testbed *testbed) {
    return testbed->job.end_s * EVENT_SECOND;
}

int scheduler_release(struct testbed *testbed, struct failure *failure) {
    cleanup(bind_texts_clear) struct bind_texts words = {0};
    cleanup(text_clear) struct text output;
    struct failure why = {0};
    testbed->settings->scheduler->cancel(testbed->job.id, &words);
    int r = command(testbed, &words, &output, &why);
    struct scheduler_job job = {0};
    /* One that is over cannot be deleted, and need not be. */
    if (r < 0 && ask(testbed, testbed->job.id, &job, NULL) == 0 &&
        (job.state == SCHEDULER_JOB_NONE || job.state == SCHEDULER_JOB_OVER))
        r = 0;
    host_list_clear(&job.nodes);
    if (r < 0 && failure)
        failure_set(failure, r, "job %s of %s was not given back: %s", testbed->job.id,
                    testbed->settings->scheduler->name, why.text);
    free_testbed(testbed);
    return r;
}
