#include "engine/testbed/scheduler.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/testbed/frontend.h"
#include "engine/testbed/node-names.h"
#include "engine/testbed/scheduler-environment.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Periods between two queries of the job's state. Queries are frequent at first, then rarer, frequent again
 * when the job is about to start, and rarer once it runs. OAR takes some 10 s to start a job on free nodes:
 * until then it is queried every few seconds. */
static const int64_t first_poll_ns = 200 * EVENT_MILLISECOND, soon_poll_ns = 3 * EVENT_SECOND,
                     late_poll_ns = 2 * EVENT_SECOND, starting_poll_ns = EVENT_SECOND,
                     first_watch_period_ns = 8 * EVENT_SECOND, early_poll_ns = 10 * EVENT_SECOND,
                     last_poll_ns = 30 * EVENT_SECOND, early_ns = 600 * EVENT_SECOND,
                     minute_ns = 60 * EVENT_SECOND;
/* How long a query is repeated while the scheduler does not answer (it may be restarting): before a job is
 * submitted, while a job waits in the queue, when nodes are lost, and when the job is deleted. */
static const int64_t reserve_timeout_ns = 300 * EVENT_SECOND, waiting_timeout_ns = 3600 * EVENT_SECOND,
                     lost_check_timeout_ns = 60 * EVENT_SECOND, release_timeout_ns = 120 * EVENT_SECOND;
/* A scheduler gets at most twelve requests in any minute: so many queries, and two more to delete the job. */
enum { OUTPUT_MAX = 64 << 20, QUERIES_A_MINUTE = 10 };

struct testbed {
    const struct testbed_settings *settings;
    struct testbed_request request;
    char *name; /* of the job */
    char *user; /* NULL: not known, or not needed */
    struct frontend *frontend;
    struct scheduler_job job;
    bool is_submitted;                        /* this engine submitted the job, not one that died */
    int64_t query_times_ns[QUERIES_A_MINUTE]; /* ring of the last queries' times; monotonic clock */
    size_t queries_made;                      /* in all; the next query's slot is this modulo the ring */
    char **node_names;                        /* one for each node of the job */
    struct bind_texts start, attach;
    struct launcher_words words;
    struct access *access;
    /* While the nodes are used, a timer queries whether the job still runs. */
    struct event_source *watch;
    int64_t watch_period_ns;
    unsigned times_missing; /* answers in a row in which the job was not listed or was ending */
    bool is_loss_reported;  /* request.over() was called */
};

/* ---- Commands */

void scheduler_report(const struct testbed_request *request, const char *format, va_list arguments) {
    char sentence[FAILURE_TEXT_SIZE];
    if (!request->report)
        return;
    vsnprintf(sentence, sizeof sentence, format, arguments);
    request->report(request->report_context, sentence);
}

static __attribute__((format(printf, 2, 3))) void report(const struct testbed *testbed, const char *format,
                                                         ...) {
    va_list arguments;
    va_start(arguments, format);
    scheduler_report(&testbed->request, format, arguments);
    va_end(arguments);
}

static bool is_rest(const struct testbed *testbed) {
    return testbed->settings->resources.api != NULL;
}

/* The name of a command in messages: PROGRAM of `env NAME=VALUE PROGRAM ...`, or the method and path of a
 * request. The caller frees. */
static char *name_command(const struct testbed *testbed, const struct bind_texts *words) {
    size_t i = strcmp(words->items[0], "env") == 0;
    if (is_rest(testbed))
        return xformat("%s %s", words->items[0], words->items[1]);
    while (i + 1 < words->count && strchr(words->items[i], '='))
        i++;
    return xstrdup(words->items[i]);
}

/* Fails for an HTTP answer with an error STATUS. -EPERM: the request is refused and would be refused again.
 * -EAGAIN: the server is in trouble (5xx, 408, 429), and a job may or may not have been submitted. */
static int refuse_status(const struct testbed *testbed, const char *name, int status, const char *problem,
                         struct failure *failure) {
    bool is_final = status < 500 && status != 408 && status != 429;
    const char *what = status == 401 || status == 403 ? " (wrong credentials?)" : "";
    return failure_set(failure, is_final ? -EPERM : -EAGAIN, "%s at %s was answered with status %d%s: %s",
                       name, testbed->settings->resources.api, status, what, problem);
}

/* Appends WORDS to RET as they are run: a program of the scheduler's with a cleaned environment, a request
 * unchanged. */
static void add_runnable(const struct testbed *testbed, const struct bind_texts *words,
                         struct bind_texts *ret) {
    if (!is_rest(testbed))
        scheduler_environment_words((const char *const *)words->items, ret);
    for (size_t i = 0; is_rest(testbed) && i < words->count; i++)
        bind_texts_add(ret, words->items[i]);
}

/* Runs the command or request WORDS on the front end, and gives what it printed in OUTPUT. A failure quotes
 * the scheduler's own message: -ENOENT where there is no such program, -EREMOTEIO where the program failed.
 */
static int command(struct testbed *testbed, const struct bind_texts *words, struct text *output,
                   struct failure *failure) {
    char problem[FAILURE_TEXT_SIZE];
    cleanup_free char *name = name_command(testbed, words);
    cleanup(bind_texts_clear) struct bind_texts runnable = {0};
    add_runnable(testbed, words, &runnable);
    text_init(output, OUTPUT_MAX);
    int r = frontend_run(testbed->frontend, (const char *const *)runnable.items, output, problem, failure);
    if (r < 0)
        return failure->kind == FAILURE_INTERRUPTED ? r : failure_prefix(failure, "%s", name);
    if (r > 0 && is_rest(testbed))
        return refuse_status(testbed, name, r, problem, failure);
    const char *what = problem[0]           ? problem
                       : output->length > 0 ? output->bytes
                                            : "the command printed nothing";
    int length;
    what = text_reason(what, &length);
    if (r > 0) /* 126 and 127: a shell, or env, found no program, and asking again would not help */
        return failure_set(failure, r == 127 || r == 126 ? -ENOENT : -EREMOTEIO,
                           "%s ended with exit status %d: %.*s", name, r, length, what);
    return 0;
}

/* Asks the scheduler for this user's name and remembers it in testbed->user. Does nothing where the name is
 * known or not needed. */
static int find_user(struct testbed *testbed, struct failure *failure) {
    const struct scheduler *scheduler = testbed->settings->scheduler;
    cleanup(bind_texts_clear) struct bind_texts words = {0};
    cleanup(text_clear) struct text output = {0};
    if (testbed->user || !scheduler->ask_user)
        return 0;
    scheduler->ask_user(&words);
    int r = command(testbed, &words, &output, failure);
    if (r < 0)
        return r;
    cleanup_free char *user = scheduler->read_user(output.bytes);
    if (!user)
        return failure_set(failure, -EBADMSG, "the answer of %s does not name the user", scheduler->name);
    if (!user[0])
        return failure_set(failure, -EPERM,
                           "%s does not name the user whose jobs are listed (wrong credentials?)",
                           scheduler->name);
    testbed->user = take_pointer(user);
    return 0;
}

static void count_query(struct testbed *testbed) {
    testbed->query_times_ns[testbed->queries_made++ % QUERIES_A_MINUTE] = clock_monotonic_ns();
}

/* How long to wait until the next query: PERIOD_NS, or longer where there were too many in the last minute.
 */
static int64_t pause_ns(const struct testbed *testbed, int64_t period_ns) {
    int64_t oldest_ns = testbed->query_times_ns[testbed->queries_made % QUERIES_A_MINUTE];
    int64_t least_ns =
        testbed->queries_made < QUERIES_A_MINUTE ? 0 : oldest_ns + minute_ns - clock_monotonic_ns();
    return period_ns > least_ns ? period_ns : least_ns;
}

static bool is_active(const struct scheduler_job *job) {
    return job->state == SCHEDULER_JOB_WAITING || job->state == SCHEDULER_JOB_RUNNING;
}

/* Asks the scheduler once for the job with the number ID. Where ID is "", it asks for the job that has our
 * name; if there is none, for the job that this engine submitted, which may have been renamed. On failure
 * RET->id is the number of a job that exists but cannot be read completely, or "". */
static int query_job(struct testbed *testbed, const char *id, struct scheduler_job *ret,
                     struct failure *failure) {
    const struct scheduler *scheduler = testbed->settings->scheduler;
    struct scheduler_resources resources = testbed->settings->resources; /* borrows */
    cleanup(bind_texts_clear) struct bind_texts words = {0};
    cleanup(text_clear) struct text output = {0};
    struct scheduler_job job = {0};
    int r = id[0] ? 0 : find_user(testbed, failure);
    resources.user = testbed->user;
    scheduler->query(&resources, id, testbed->name, &words);
    count_query(testbed);
    if (r == 0)
        r = command(testbed, &words, &output, failure);
    if (r == 0)
        r = scheduler->read_job(output.bytes, output.length, id, testbed->name, &job, failure);
    if (r == 0 && !id[0] && testbed->is_submitted && !is_rest(testbed) && !is_active(&job)) {
        struct scheduler_job own = {0};
        int read =
            scheduler->read_job(output.bytes, output.length, testbed->job.id, testbed->name, &own, failure);
        r = own.id[0] ? read : 0; /* the list need not contain our job */
        scheduler_prefer_job(&own, &job);
    }
    if (r < 0 && job.id[0])
        failure->kind = FAILURE_SYSTEM; /* what the user gave is not wrong */
    host_list_clear(&ret->nodes);
    *ret = job;
    return r;
}

static int64_t double_period(int64_t period_ns, int64_t most_ns) {
    return 2 * period_ns < most_ns ? 2 * period_ns : most_ns;
}

/* Queries job ID (query_job()) until the scheduler answers, for at most MOST_NS. The first query without an
 * answer is reported. Failures that repeating cannot mend end it at once. */
static int query_job_retrying(struct testbed *testbed, const char *id, int64_t most_ns,
                              struct scheduler_job *ret, struct failure *failure) {
    int64_t since_ns = clock_monotonic_ns(), period_ns = EVENT_SECOND;
    bool was_reported = false;
    for (;;) {
        int r = query_job(testbed, id, ret, failure);
        bool is_hopeless = r == -EINTR || r == -ENOENT || r == -EPERM || failure->kind == FAILURE_INPUT ||
                           (r < 0 && ret->id[0]);
        if (r == 0 || is_hopeless || clock_monotonic_ns() - since_ns > most_ns)
            return r;
        if (!was_reported)
            report(testbed, "%s does not answer; asking again: %s", testbed->settings->scheduler->name,
                   failure->text);
        was_reported = true;
        *failure = (struct failure){0};
        r = frontend_wait(testbed->frontend, pause_ns(testbed, period_ns), failure);
        if (r < 0)
            return r;
        period_ns = double_period(period_ns, last_poll_ns);
    }
}

/* ---- Reserving */

/* Frees the testbed. The job is not touched. */
void scheduler_leave(struct testbed *testbed) {
    if (!testbed)
        return;
    access_close(testbed->access);
    event_source_remove(testbed->watch);
    frontend_close(testbed->frontend);
    node_names_free(testbed->node_names, testbed->job.nodes.count);
    host_list_clear(&testbed->job.nodes);
    bind_texts_clear(&testbed->start);
    bind_texts_clear(&testbed->attach);
    free(testbed->name);
    free(testbed->user);
    free(testbed);
}

static void free_testbed_pointer(struct testbed **testbed) {
    scheduler_leave(*testbed);
}

static struct scheduler_stage stage_of(struct testbed *testbed) {
    return (struct scheduler_stage){testbed->settings, &testbed->request, testbed->frontend, &testbed->job};
}

/* Submits a job that runs LINE and prints into the file LOG; both NULL: the job only waits. */
static int submit(struct testbed *testbed, const char *line, const char *log, struct failure *failure) {
    const struct scheduler *scheduler = testbed->settings->scheduler;
    cleanup(bind_texts_clear) struct bind_texts words = {0};
    cleanup(text_clear) struct text output = {0};
    int r = scheduler->check ? scheduler->check(&testbed->settings->resources, failure) : 0;
    if (r < 0)
        return r;
    scheduler->submit(&testbed->settings->resources, testbed->name, line, log, &words);
    r = command(testbed, &words, &output, failure);
    bool is_there = (r == 0 || r == -EREMOTEIO) && scheduler->read_id(output.bytes, testbed->job.id);
    if (r == 0 && !is_there)
        r = failure_set(failure, -EBADMSG, "%s printed '%.*s', expected the number of a job", words.items[0],
                        (int)strcspn(output.bytes, "\n"), output.bytes);
    if (r == 0)
        report(testbed, "job %s of %s is submitted", testbed->job.id, scheduler->name);
    return r;
}

/* True where the result R of submit() means that certainly no job exists. */
static bool is_refused(const struct testbed *testbed, int r, const struct failure *failure) {
    return (r == -EREMOTEIO && !testbed->job.id[0]) || r == -ENOENT || r == -EPERM ||
           (r < 0 && failure->kind == FAILURE_INPUT);
}

/* Makes *RET and opens its front end; the caller frees it, on failure too. All parts of a run use one job
 * name: the first 36 characters of run_id are those of the run. */
static int open_testbed(const struct testbed_settings *settings, const struct testbed_request *request,
                        struct testbed **ret, struct failure *failure) {
    struct testbed *testbed = *ret = xcalloc(1, sizeof *testbed);
    testbed->settings = settings;
    testbed->request = *request;
    testbed->name = xformat("assay-%.36s", request->run_id);
    const struct scheduler_resources *resources = &settings->resources;
    struct http_settings api = {resources->api, resources->credentials, resources->authority};
    return frontend_open(request->loop, &settings->access, NULL, resources->login,
                         is_rest(testbed) ? &api : NULL, &testbed->frontend, failure);
}

/* Takes over the job of an engine that died, if there is one; otherwise submits a new job. With only_reserved
 * a run without a job is refused. */
int scheduler_reserve(const struct testbed_settings *settings, const struct testbed_request *request,
                      struct testbed **ret, struct failure *failure) {
    cleanup(free_testbed_pointer) struct testbed *testbed = NULL;
    int r = open_testbed(settings, request, &testbed, failure);
    if (r == 0 && settings->scheduler->find_own)
        r = settings->scheduler->find_own(testbed->name, &testbed->job, failure);
    if (r == 0)
        r = query_job_retrying(testbed, "", reserve_timeout_ns, &testbed->job, failure);
    if (r < 0)
        return r;
    if (request->only_reserved && !is_active(&testbed->job))
        return failure_set_kind(failure, FAILURE_INPUT, -ENOENT,
                                "the run has no nodes reserved: %s has no job '%s' that waits or runs; "
                                "reserve with 'assay reserve' or 'assay resume' first",
                                settings->scheduler->name, testbed->name);
    if (request->only_reserved) {
        *ret = take_pointer(testbed);
        return 0;
    }
    if (is_active(&testbed->job)) {
        r = 0;
        report(testbed, "using job %s of %s, which exists already", testbed->job.id,
               settings->scheduler->name);
    } else {
        struct scheduler_stage stage = stage_of(testbed);
        testbed->job.id[0] = '\0';
        if (settings->scheduler->inquire)
            r = settings->scheduler->inquire(&stage, failure);
        if (r < 0)
            return r;
        r = submit(testbed, NULL, NULL, failure);
        /* After a refusal there is no job. After a time-out there may be one, which *RET must release. */
        testbed->is_submitted = testbed->job.id[0];
        if (is_refused(testbed, r, failure))
            return r;
    }
    *ret = take_pointer(testbed);
    return r;
}

const char *scheduler_id(const struct testbed *testbed) {
    return testbed->job.id;
}

/* ---- Waiting */

/* True where this engine runs inside the job itself, by number and name: deleting the job would end the
 * engine. The name is compared too, because a job of another cluster can have the same number. */
static bool runs_in_job(const struct testbed *testbed) {
    const struct scheduler *scheduler = testbed->settings->scheduler;
    const char *id = scheduler->job_variable ? getenv(scheduler->job_variable) : NULL,
               *name = id ? getenv(scheduler->name_variable) : NULL;
    return name && strcmp(id, testbed->job.id) == 0 && strcmp(name, testbed->name) == 0;
}

/* Fails with -ECANCELED and the scheduler's reason: the job is over and never ran. */
static int refuse_job(struct testbed *testbed, struct failure *failure) {
    const struct scheduler_job *job = &testbed->job;
    return failure_set(failure, -ECANCELED, "job %s of %s ended before it began%s%s", job->id,
                       testbed->settings->scheduler->name, job->reason[0] ? ": " : "", job->reason);
}

/* Called when the job is over before it ran: looks for a job with our name that replaces it. (OAR submits a
 * job again, with another number, when its node dies before the start.) -ECANCELED where there is none. */
static int find_replacement_job(struct testbed *testbed, struct failure *failure) {
    struct scheduler_job again = {0}, *job = &testbed->job;
    int r = query_job_retrying(testbed, "", waiting_timeout_ns, &again, failure);
    bool is_there = r == 0 && is_active(&again);
    if (is_there) {
        report(testbed, "job %s of %s took the place of job %s", again.id, testbed->settings->scheduler->name,
               job->id);
        scheduler_prefer_job(&again, job);
        job->state = SCHEDULER_JOB_WAITING; /* so that it is queried by its number, which gives details */
    }
    host_list_clear(&again.nodes);
    return r < 0 || is_there ? r : refuse_job(testbed, failure);
}

/* The query period that follows PERIOD_NS for a job that has waited for WAITED_NS: at most three times as
 * long. Schedulers that start no job at once get fewer queries in the first seconds, so that more are left
 * for the time of the start. */
static int64_t next_period(const struct testbed *testbed, int64_t period_ns, int64_t waited_ns) {
    bool is_late = testbed->settings->scheduler->starts_late;
    int64_t most_ns = waited_ns < early_ns ? early_poll_ns : last_poll_ns;
    int64_t least_ns = is_late ? late_poll_ns : soon_poll_ns, part_ns = waited_ns / (is_late ? 3 : 2);
    int64_t soon_ns = part_ns > least_ns ? part_ns : least_ns;
    most_ns = soon_ns < most_ns ? soon_ns : most_ns;
    return 3 * period_ns < most_ns ? 3 * period_ns : most_ns;
}

/* Waits until the job runs; the scheduler's reason for waiting is reported when it changes. -ETIMEDOUT after
 * 'at-most-wait', -ECANCELED where the job ended first, -EINTR where the loop was stopped. */
static int wait_for_job(struct testbed *testbed, struct failure *failure) {
    int64_t begun_ns = clock_monotonic_ns(),
            period_ns = testbed->settings->scheduler->starts_late ? soon_poll_ns : first_poll_ns;
    double most = testbed->settings->resources.at_most_wait;
    struct scheduler_job *job = &testbed->job;
    char reason[sizeof job->reason] = "", most_text[NUMBER_TEXT_SIZE];
    if (job->state == SCHEDULER_JOB_RUNNING && runs_in_job(testbed))
        return 0;
    for (;;) {
        char id[SCHEDULER_ID_SIZE];
        memcpy(id, job->id, sizeof id);
        int r = query_job_retrying(testbed, id, waiting_timeout_ns, job, failure);
        memcpy(job->id, id, sizeof id);
        if (r == 0 && job->state <= SCHEDULER_JOB_OVER)
            r = find_replacement_job(testbed, failure);
        if (r < 0 || job->state == SCHEDULER_JOB_RUNNING)
            return r;
        if (strcmp(reason, job->reason) != 0)
            report(testbed, "job %s of %s waits: %s", job->id, testbed->settings->scheduler->name,
                   job->reason);
        memcpy(reason, job->reason, sizeof reason);
        if (most > 0 && clock_monotonic_ns() - begun_ns > (int64_t)llround(most * 1e9))
            return failure_set(failure, -ETIMEDOUT,
                               "job %s of %s has waited for %s ('at-most-wait') and is deleted%s%s", job->id,
                               testbed->settings->scheduler->name, number_describe_duration(most, most_text),
                               reason[0] ? ": " : "", reason);
        r = frontend_wait(testbed->frontend,
                          pause_ns(testbed, job->is_starting ? starting_poll_ns : period_ns), failure);
        if (r < 0)
            return r;
        period_ns = next_period(testbed, period_ns, clock_monotonic_ns() - begun_ns);
    }
}

static int make_node_names(struct testbed *testbed, struct failure *failure) {
    int r = node_names_make(&testbed->job.nodes, &testbed->node_names, failure);
    if (r == 0)
        return 0;
    failure->kind = FAILURE_SYSTEM; /* what the user gave is not wrong */
    return failure_prefix(failure, "the nodes of job %s", testbed->job.id);
}

/* Appends a launcher's command (NULL: nothing) to RET, changed by the scheduler so that it enters the job. */
static void copy_launcher_words(const char *const *words, const struct testbed *testbed, bool is_start,
                                struct bind_texts *ret) {
    const struct testbed_settings *settings = testbed->settings;
    for (size_t i = 0; words && words[i]; i++)
        bind_texts_add(ret, words[i]);
    if (words && settings->scheduler->enter)
        settings->scheduler->enter(&settings->resources, testbed->job.id, is_start, ret);
}

/* The launcher's commands that start and attach to agents on the nodes; NULL: ssh by the engine. Commands of
 * a launcher that the campaign names are changed so that they enter the job. */
static const struct launcher_words *find_launcher_words(struct testbed *testbed) {
    struct launcher_words own;
    const struct launcher_words *words = access_launcher(&testbed->settings->access, &own);
    if (!words || !testbed->settings->access.launcher.by)
        return words && !testbed->settings->access.launcher.by ? (testbed->words = *words, &testbed->words)
                                                               : words;
    copy_launcher_words(words->start, testbed, true, &testbed->start);
    copy_launcher_words(words->attach, testbed, false, &testbed->attach);
    testbed->words = (struct launcher_words){.start = (const char *const *)testbed->start.items,
                                             .attach = (const char *const *)testbed->attach.items};
    return &testbed->words;
}

/* ---- While the nodes are used */

/* Tells the run, by request.over(), that the job in the state of JOB no longer gives us its nodes. */
static void report_loss(struct testbed *testbed, const struct scheduler_job *job) {
    char sentence[FAILURE_TEXT_SIZE];
    const char *what = job->state == SCHEDULER_JOB_WAITING  ? "was taken off its nodes, and waits again"
                       : job->state == SCHEDULER_JOB_ENDING ? "is ending before it was given back"
                                                            : "was over before it was given back";
    snprintf(sentence, sizeof sentence, "job %s of %s %s%s%s", testbed->job.id,
             testbed->settings->scheduler->name, what, job->reason[0] ? ": " : "", job->reason);
    testbed->is_loss_reported = true;
    if (testbed->request.over)
        testbed->request.over(testbed->request.report_context, sentence);
}

/* Asks for more time where the campaign says 'extend' and this engine submitted the job. The granted time
 * shows in the job's end later; a refusal is only reported. */
static void extend(struct testbed *testbed) {
    double by = testbed->settings->resources.extend;
    const struct scheduler *scheduler = testbed->settings->scheduler;
    cleanup(bind_texts_clear) struct bind_texts words = {0};
    cleanup(text_clear) struct text output = {0};
    char by_text[NUMBER_TEXT_SIZE];
    struct failure why = {0};
    if (!testbed->is_submitted || !(by > 0))
        return;
    scheduler->extend(by, testbed->job.id, &words);
    if (command(testbed, &words, &output, &why) < 0)
        report(testbed, "cannot extend job %s of %s: %s", testbed->job.id, scheduler->name, why.text);
    else
        report(testbed, "asked to extend job %s of %s by %s; the scheduler may grant less", testbed->job.id,
               scheduler->name, number_describe_duration(by, by_text));
}

/* Handles an answer about the job while its nodes are used: notes its new end, or reports that it is lost. A
 * job that is not listed or is ending is lost only at the second such answer: then its reason is known. */
static void update_job_state(struct testbed *testbed, const struct scheduler_job *job) {
    bool is_unsure = job->state == SCHEDULER_JOB_NONE || job->state == SCHEDULER_JOB_ENDING;
    testbed->times_missing = is_unsure ? testbed->times_missing + 1 : 0;
    if (job->state == SCHEDULER_JOB_ENDING)
        testbed->watch_period_ns = EVENT_SECOND;
    if (job->state != SCHEDULER_JOB_RUNNING && (!is_unsure || testbed->times_missing > 1))
        report_loss(testbed, job);
    if (job->state == SCHEDULER_JOB_RUNNING && job->end_s > 0)
        testbed->job.end_s = job->end_s;
}

/* Receives the output of a query by the watch; OUTPUT is NULL where the scheduler did not answer, which
 * changes nothing. Sets the timer of the next query unless the job is lost. */
static void on_answer(const char *output, size_t length, void *context) {
    struct testbed *testbed = context;
    struct scheduler_job job = {0};
    if (output && testbed->settings->scheduler->read_job(output, length, testbed->job.id, testbed->name, &job,
                                                         NULL) == 0)
        update_job_state(testbed, &job);
    host_list_clear(&job.nodes);
    if (!testbed->is_loss_reported)
        event_source_set_timer(testbed->watch, pause_ns(testbed, testbed->watch_period_ns), 0);
}

/* The watch's timer: starts a query whose output on_answer() gets. */
static void on_watch(struct event_source *source, void *context) {
    struct testbed *testbed = context;
    cleanup(bind_texts_clear) struct bind_texts words = {0}, runnable = {0};
    testbed->watch_period_ns = double_period(testbed->watch_period_ns, last_poll_ns);
    /* The next query, should this one get no answer. */
    event_source_set_timer(source, last_poll_ns, 0);
    testbed->settings->scheduler->query(&testbed->settings->resources, testbed->job.id, testbed->name,
                                        &words);
    add_runnable(testbed, &words, &runnable);
    count_query(testbed);
    frontend_start(testbed->frontend, (const char *const *)runnable.items, OUTPUT_MAX, on_answer, testbed);
}

/* Waits until the job runs, prepares its nodes, and starts the watch that notices when the job is lost. */
int scheduler_wait(struct testbed *testbed, struct failure *failure) {
    struct scheduler_stage stage = stage_of(testbed);
    int r = wait_for_job(testbed, failure);
    if (r == 0 && testbed->settings->scheduler->prepare)
        r = testbed->settings->scheduler->prepare(&stage, failure);
    if (r == 0)
        r = make_node_names(testbed, failure);
    if (r < 0)
        return r;
    extend(testbed);
    testbed->watch_period_ns = first_watch_period_ns;
    testbed->watch = event_loop_add_timer(testbed->request.loop, pause_ns(testbed, first_watch_period_ns), 0,
                                          on_watch, testbed);
    if (!testbed->watch)
        return failure_memory(failure);
    return access_open(&testbed->settings->access, &testbed->request, find_launcher_words(testbed), NULL,
                       &testbed->access, failure);
}

/* Called when nodes are lost: queries now, instead of the watch, whether the job still runs, until the answer
 * is certain. Reports the loss if it does not. */
void scheduler_ask(struct testbed *testbed) {
    struct scheduler_job job = {0};
    struct failure why = {0};
    int64_t period_ns = 0;
    if (!testbed->watch || testbed->is_loss_reported)
        return;
    frontend_stop(testbed->frontend);
    event_source_set_timer(testbed->watch, -1, 0);
    while (frontend_wait(testbed->frontend, pause_ns(testbed, period_ns), &why) == 0 &&
           query_job_retrying(testbed, testbed->job.id, lost_check_timeout_ns, &job, &why) == 0) {
        update_job_state(testbed, &job);
        if (testbed->is_loss_reported || testbed->times_missing == 0)
            break;
        period_ns = EVENT_SECOND;
    }
    host_list_clear(&job.nodes);
    if (!testbed->is_loss_reported)
        event_source_set_timer(testbed->watch, pause_ns(testbed, testbed->watch_period_ns), 0);
}

/* ---- The nodes */

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

int64_t scheduler_deadline(const struct testbed *testbed) {
    return testbed->job.end_s * EVENT_SECOND;
}

/* Writes the scheduler's description of the job into the run's folder, testbed/job-ID/job.txt. Failures are
 * ignored: the run is complete without this file. */
static void record_description(struct testbed *testbed) {
    cleanup(bind_texts_clear) struct bind_texts words = {0};
    cleanup(text_clear) struct text output = {0};
    struct failure why = {0};
    cleanup_free char *folder = xformat("%s/testbed/job-%s", testbed->request.folder, testbed->job.id),
                      *path = file_join(folder, "job.txt");
    const struct scheduler *scheduler = testbed->settings->scheduler;
    if (scheduler->describe)
        scheduler->describe(testbed->job.id, &words);
    else
        scheduler->query(&testbed->settings->resources, testbed->job.id, testbed->name, &words);
    count_query(testbed);
    if (command(testbed, &words, &output, &why) == 0 && file_make_folders(folder, &why) == 0)
        (void)file_replace(path, output.bytes, output.length, 0666, &why);
}

void scheduler_collect(struct testbed *testbed) {
    struct scheduler_stage stage = stage_of(testbed);
    if (testbed->access)
        record_description(testbed);
    if (testbed->access && testbed->settings->scheduler->collect)
        testbed->settings->scheduler->collect(&stage);
}

/* ---- Giving back */

/* Deletes job ID. A job that this engine did not submit must have our name, too: another cluster's job may
 * have the same number. */
static int cancel(struct testbed *testbed, const char *id, struct failure *failure) {
    cleanup(bind_texts_clear) struct bind_texts words = {0};
    cleanup(text_clear) struct text output = {0};
    testbed->settings->scheduler->cancel(&testbed->settings->resources, id,
                                         testbed->is_submitted ? NULL : testbed->name, &words);
    return command(testbed, &words, &output, failure);
}

/* Fails with R: job ID ("": number not known) may still exist, because of WHY. The message says how to delete
 * it by hand. */
static int refuse_deletion(const struct testbed *testbed, const char *id, int r, const struct failure *why,
                           struct failure *failure) {
    const struct scheduler *scheduler = testbed->settings->scheduler;
    const char *login = testbed->settings->resources.login;
    cleanup(bind_texts_clear) struct bind_texts words = {0};
    cleanup(text_clear) struct text by_hand;
    text_init(&by_hand, 4096);
    if (is_rest(testbed))
        scheduler_word(&words, "oardel"), scheduler_word(&words, "%s", id);
    else
        scheduler->cancel(&testbed->settings->resources, id, NULL, &words);
    text_append_command(&by_hand, (const char *const *)words.items);
    if (!id[0])
        return failure_set(failure, r,
                           "%s may have a job '%s' that was not given back: %s; 'assay release' tries again",
                           scheduler->name, testbed->name, why->text);
    return failure_set(
        failure, r,
        "job %s of %s was not given back: %s; 'assay release' tries again, and `%s`%s%s deletes the "
        "job by hand",
        id, scheduler->name, why->text, by_hand.bytes, login ? " on " : "", login ? login : "");
}

/* True where the user interrupts the deletion for the second time. The first interruption, noted in
 * *WAS_INTERRUPTED, is ignored and the loop goes on. */
static bool is_interrupted(const struct testbed *testbed, bool *was_interrupted) {
    if (!event_loop_is_stopped(testbed->request.loop) || *was_interrupted)
        return event_loop_is_stopped(testbed->request.loop);
    *was_interrupted = true;
    event_loop_resume(testbed->request.loop);
    return false;
}

/* Deletes the job with our name or number, and jobs that replace it, and queries for up to two minutes until
 * none waits or runs. KNOWN is the number to use where the answers have none; "": not known. Returns 1 where
 * a job was deleted, 0 where none had to be. *RET is the job before its deletion. */
static int delete_job(struct testbed *testbed, const char *known, struct scheduler_job *ret,
                      struct failure *failure) {
    const struct scheduler *scheduler = testbed->settings->scheduler;
    int64_t begun_ns = clock_monotonic_ns(), period_ns = 0;
    char id[SCHEDULER_ID_SIZE];
    bool was_deleted = false, was_interrupted = false, is_first = true;
    struct failure refused = {0};
    struct scheduler_job job = {0};
    snprintf(id, sizeof id, "%s", known);
    for (;; is_first = false) {
        struct failure why = {0};
        bool is_last =
            is_interrupted(testbed, &was_interrupted) || clock_monotonic_ns() - begun_ns > release_timeout_ns;
        int r = query_job(testbed, "", &job, &why);
        host_list_clear(&job.nodes);
        if (is_first)
            *ret = job;
        bool is_ending =
            job.state == SCHEDULER_JOB_ENDING && (was_deleted || scheduler->ends_for_good || is_last);
        /* A job that we submitted and that is not listed is over, or hidden from us. */
        bool is_hidden = is_first && testbed->is_submitted && job.state == SCHEDULER_JOB_NONE;
        if (r == 0 && !is_hidden && (job.state <= SCHEDULER_JOB_OVER || is_ending))
            return was_deleted;
        if (r == 0)
            failure_set(&why, -EBUSY, "it is there still%s%s", refused.text[0] ? ": " : "", refused.text);
        if (job.id[0])
            memcpy(id, job.id, sizeof id);
        bool is_hopeless = r == -ENOENT || r == -EPERM || (r < 0 && why.kind == FAILURE_INPUT);
        if (is_last || (is_hopeless && (!id[0] || was_deleted)))
            return refuse_deletion(testbed, id, r < 0 ? r : -EBUSY, &why, failure);
        if (r < 0 && !job.id[0] && is_first)
            report(testbed, "%s does not answer; asking again: %s", scheduler->name, why.text);
        refused = (struct failure){0};
        if (id[0] && cancel(testbed, id, &refused) == 0)
            was_deleted |= r < 0 || is_active(&job);
        if (!is_first)
            (void)frontend_wait(testbed->frontend, pause_ns(testbed, period_ns), &why);
        period_ns = is_first ? EVENT_SECOND : double_period(period_ns, last_poll_ns);
    }
}

/* Deletes the job and frees TESTBED. Where the engine runs inside the job, the job is left: it ends with the
 * engine. A job that was found to be lost is reported to the run. */
int scheduler_release(struct testbed *testbed, struct failure *failure) {
    struct scheduler_job job = {0};
    frontend_stop(testbed->frontend);
    event_source_remove(take_pointer(testbed->watch));
    bool is_ours_alone = !runs_in_job(testbed);
    int r = is_ours_alone ? delete_job(testbed, testbed->job.id, &job, failure) : 0;
    if (is_ours_alone && r == 0 && testbed->access && !testbed->is_loss_reported)
        report_loss(testbed, &job);
    scheduler_leave(testbed);
    return r < 0 ? r : 0;
}

/* Deletes the job that an engine that died left behind, by the number of REQUEST->known_id or the run's job
 * name, and reports whether there was one. */
int scheduler_reclaim(const struct testbed_settings *settings, const struct testbed_request *request,
                      struct failure *failure) {
    cleanup(free_testbed_pointer) struct testbed *testbed = NULL;
    int r = open_testbed(settings, request, &testbed, failure);
    const char *known = request->known_id ? request->known_id : "";
    if (known[strspn(known, "0123456789")])
        known = "";
    if (r == 0)
        r = delete_job(testbed, known, &testbed->job, failure);
    if (r < 0)
        return r;
    if (r > 0)
        report(testbed, "job %s of %s is deleted", testbed->job.id[0] ? testbed->job.id : known,
               settings->scheduler->name);
    else
        report(testbed, "%s has no job '%s' that waits or runs", settings->scheduler->name, testbed->name);
    return 0;
}

/* ---- A job with the engine in it */

/* Submits a job that runs COMMAND, an engine, inside the job. Refused where a job of the run exists, and for
 * schedulers and logins that cannot run one. A job that may exist after a failure is deleted. */
int scheduler_submit(const struct testbed_settings *settings, const struct testbed_request *request,
                     const char *const *command, const char *output, struct failure *failure) {
    cleanup(free_testbed_pointer) struct testbed *testbed = NULL;
    cleanup(text_clear) struct text line;
    text_init(&line, 64 << 10);
    if (!settings->scheduler->job_variable)
        return failure_set_kind(
            failure, FAILURE_INPUT, -EINVAL,
            "an engine cannot be in a job of %s, whose nodes may be deployed; expected slurm, "
            "oar, or --detach alone",
            settings->scheduler->name);
    if (settings->resources.login)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "an engine in the job needs a folder of runs that it shares with this "
                                "machine; expected no 'login', and assay to be called there");
    /* The line passes through several shells of the scheduler's: only characters that no shell interprets are
     * accepted. */
    text_append_command(&line, command);
    if (strchr(line.bytes, '\''))
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "%s cannot be the command of a job, expected letters, digits and "
                                "'-_./=:,+@%%' alone",
                                line.bytes);
    int r = open_testbed(settings, request, &testbed, failure);
    if (r == 0)
        r = query_job_retrying(testbed, "", reserve_timeout_ns, &testbed->job, failure);
    if (r == 0 && is_active(&testbed->job))
        r = failure_set_kind(failure, FAILURE_INPUT, -EEXIST,
                             "job %s of %s exists already; delete it with 'assay release'", testbed->job.id,
                             settings->scheduler->name);
    if (r < 0)
        return r;
    struct scheduler_job job;
    struct failure why = {0};
    testbed->job.id[0] = '\0';
    r = submit(testbed, line.bytes, output, failure);
    testbed->is_submitted = testbed->job.id[0];
    if (r < 0 && !is_refused(testbed, r, failure) && delete_job(testbed, testbed->job.id, &job, &why) < 0)
        failure_prefix(failure, "%s", why.text);
    return r;
}
