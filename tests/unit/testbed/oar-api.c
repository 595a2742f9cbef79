/* OAR asked by its REST API: a server that answers by a script, well, badly and not at all. */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/testbed/scheduler.h"
#include "tests/unit/testbed/scripted-server.h"

TEST_GROUP(scripted_clock_use, NULL)

#define RUN "11111111-2222-3333-4444-555555555555"
#define JOB(state) "{\"id\": 7, \"name\": \"assay-" RUN "\", \"owner\": \"me\", \"state\": \"" state "\"}"
#define ME                                                                                                   \
    { .status = "200 OK", .body = "{\"authenticated_user\": \"me@site\"}" }
#define NO_JOBS                                                                                              \
    { .status = "200 OK", .body = "{\"items\": [], \"total\": 0}" }
#define JOBS(jobs)                                                                                           \
    { .status = "200 OK", .body = "{\"items\": [" jobs "], \"total\": 1}" }
#define SUBMITTED                                                                                            \
    { .status = "201 Created", .body = "{\"id\": 7, \"cmd_output\": \"OAR_JOB_ID=7\"}" }
#define RUNS(more)                                                                                           \
    { .status = "200 OK", .body = "{\"state\": \"Running\", \"assigned_network_address\": [\"n1\"]" more "}" }
#define IS_OVER                                                                                              \
    { .status = "200 OK", .body = "{\"state\": \"Error\", \"message\": \"deleted\"}" }
#define DELETED                                                                                              \
    { .status = "202 Accepted", .body = "{\"id\": \"7\", \"status\": \"Delete request registered\"}" }
#define REFUSED(status_, message)                                                                            \
    { .status = (status_), .body = "{\"code\": 0, \"title\": \"Oh\", \"message\": \"" message "\"}" }

struct bed {
    struct scripted_server server;
    struct event_loop *loop;
    struct testbed_settings *settings;
    struct testbed_request request;
    char reports[4096];
    int64_t report_takes_ns; /* so much time passes in a report */
    char over[512];          /* what it was told last; "": nothing */
};
static struct bed bed; /* that of the test */
static struct testbed *testbed;

static void on_report(void *context, const char *sentence) {
    size_t length = strlen(bed.reports);
    snprintf(bed.reports + length, sizeof bed.reports - length, "%s\n", sentence);
    scripted_passed_ns += bed.report_takes_ns;
}

static void on_over(void *context, const char *sentence) {
    snprintf(bed.over, sizeof bed.over, "%s", sentence);
    event_loop_stop(bed.loop);
}

static int bind_text(const char *yaml, struct testbed_settings **ret, struct failure *failure) {
    struct document *document = NULL;
    assert_int_equal(document_parse_yaml("c.yaml", yaml, strlen(yaml), &document, failure), 0);
    struct testbed_written written = {.document = document, .node = document->root, .folder = "/"};
    int r = testbed_oar.bind(&written, ret, failure);
    document_free(document);
    return r;
}

static void bed_bind(const char *keys) {
    cleanup_free char *yaml = xformat("oar: {api: '%s', %s}", bed.server.url, keys);
    scheduler_free_settings(bed.settings);
    bed.settings = NULL;
    assert_int_equal(bind_text(yaml, &bed.settings, &test_failure), 0);
}

static void bed_open(const struct scripted_step *steps) {
    size_t count = 0;
    bed = (struct bed){0};
    testbed = NULL;
    while (count < SCRIPTED_STEPS_MAX && (steps[count].status || steps[count].header))
        count++;
    scripted_start(&bed.server, NULL, steps, count);
    bed.loop = event_loop_new(&test_failure);
    bed.request = (struct testbed_request){
        .loop = bed.loop, .run_id = RUN, .run_name = "run", .report = on_report, .over = on_over};
    bed_bind("cluster: dahu, nodes: 2, walltime: 90min, types: [deploy, allow_classic_ssh], container: 12");
}

static void bed_close(size_t steps) {
    assert_int_equal(bed.server.done, steps);
    scheduler_free_settings(bed.settings);
    event_loop_free(bed.loop);
    scripted_stop(&bed.server);
}

TEST(a_job_is_submitted_and_deleted_once) {
    static const struct scripted_step steps[SCRIPTED_STEPS_MAX] = {
        ME, NO_JOBS, SUBMITTED, JOBS(JOB("Waiting")), DELETED, NO_JOBS, ME, NO_JOBS};
    bed_open(steps);
    assert_int_equal(scheduler_reserve(bed.settings, &bed.request, &testbed, &test_failure), 0);
    assert_string_equal(scheduler_id(testbed), "7");
    assert_int_equal(strncmp(bed.server.requests[2], "POST /api/jobs.json HTTP", 24), 0);
    const char *body = strstr(bed.server.requests[2], "\r\n\r\n");
    assert_says(body, "\"resource\":\"{cluster='dahu'}/nodes=2,walltime=1:30:00\"");
    assert_says(body, "\"name\":\"assay-" RUN "\"");
    assert_says(body, "\"type\":[\"inner=12\",\"deploy\",\"allow_classic_ssh\"]");
    assert_says(body, "\"command\":\"sleep infinity\"");
    /* An engine in a job of another cluster that has the same number is not in its own. */
    setenv("OAR_JOB_ID", "7", 1);
    setenv("OAR_JOB_NAME", "mine", 1);
    assert_int_equal(scheduler_release(testbed, &test_failure), 0);
    /* Others may call their jobs as ours: they are not even asked for. */
    assert_says(bed.server.requests[1], "GET /api/jobs.json?limit=100000&user=me HTTP");
    assert_int_equal(strncmp(bed.server.requests[4], "DELETE /api/jobs/7.json HTTP", 28), 0);
    assert_int_equal(scheduler_reclaim(bed.settings, &bed.request, &test_failure), 0);
    assert_says(bed.reports, "OAR has no job 'assay-" RUN "' that waits or runs");
    bed_close(8);
}

/* Of who asks, or of the jobs. */
TEST(what_is_no_answer_is_asked_again) {
    static const struct scripted_step wrong[] = {
        {.status = "500 Internal Server Error", .body = "<html>Oh</html>"},
        {.status = "200 OK", .body = "<html>maintenance</html>"},
        {.status = "200 OK", .body = "{\"items\": [{"},
        {.status = "200 OK", .body = "{\"items\":", .missing = 99},
        {.header = "none"},
        {.status = "503 Busy", .body = "back at noon\nor later"}};
    for (size_t i = 0; i < 2 * sizeof wrong / sizeof *wrong; i++) {
        const struct scripted_step of_user[SCRIPTED_STEPS_MAX] =
            {wrong[i / 2], ME, NO_JOBS, SUBMITTED, JOBS(JOB("Running")), DELETED, NO_JOBS},
                                   of_jobs[SCRIPTED_STEPS_MAX] = {ME,        wrong[i / 2],         NO_JOBS,
                                                                  SUBMITTED, JOBS(JOB("Running")), DELETED,
                                                                  NO_JOBS};
        struct failure failure = {0};
        bed_open(i % 2 ? of_jobs : of_user);
        assert_int_equal(scheduler_reserve(bed.settings, &bed.request, &testbed, &failure), 0);
        assert_says(bed.reports, "OAR does not answer; asking again: ");
        assert_int_equal(scheduler_release(testbed, &failure), 0);
        bed_close(7);
    }
}

TEST(a_job_is_given_back_by_a_server_in_trouble) {
    static const struct scripted_step steps[SCRIPTED_STEPS_MAX] = {
        ME,      NO_JOBS, SUBMITTED, {.status = "502 Bad Gateway"}, DELETED, JOBS(JOB("Running")),
        DELETED, NO_JOBS};
    bed_open(steps);
    assert_int_equal(scheduler_reserve(bed.settings, &bed.request, &testbed, &test_failure), 0);
    assert_int_equal(scheduler_release(testbed, &test_failure), 0);
    bed_close(8);
}

/* Who gave it back has to know. */
TEST(a_job_that_is_not_seen_to_be_gone) {
    static const struct scripted_step steps[SCRIPTED_STEPS_MAX] = {
        ME, NO_JOBS, SUBMITTED, {.status = "502 Bad Gateway"}, DELETED, JOBS(JOB("Running"))};
    struct failure failure = {0};
    bed_open(steps);
    assert_int_equal(scheduler_reserve(bed.settings, &bed.request, &testbed, &failure), 0);
    bed.report_takes_ns = 120 * EVENT_SECOND; /* that no answer came: as long as it is waited for */
    assert_true(scheduler_release(testbed, &failure) < 0);
    assert_int_equal(failure.kind, FAILURE_SYSTEM);
    assert_says(failure.text,
                "job 7 of OAR was not given back: it is there still; 'assay release' tries again, and "
                "`oardel 7` deletes the job by hand");
    bed_close(6);
}

/* An engine that died has written the number down; what OAR says of its jobs is no answer. */
TEST(a_job_whose_number_is_known_is_deleted_by_that) {
    static const struct scripted_step steps[SCRIPTED_STEPS_MAX] = {
        ME, {.status = "200 OK", .body = "<html>maintenance</html>"}, DELETED, NO_JOBS};
    bed_open(steps);
    bed.request.known_id = "7";
    assert_int_equal(scheduler_reclaim(bed.settings, &bed.request, &test_failure), 0);
    assert_int_equal(strncmp(bed.server.requests[2], "DELETE /api/jobs/7.json HTTP", 28), 0);
    assert_says(bed.reports, "job 7 of OAR is deleted");
    bed_close(4);
}

/* Longer than five minutes nobody waits for a first answer. */
TEST(patience_ends) {
    static const struct scripted_step steps[SCRIPTED_STEPS_MAX] = {
        {.status = "503 Busy", .body = "back at noon\nor later"},
        {.status = "503 Busy", .body = "back at noon\nor later"}};
    struct failure failure = {0};
    bed_open(steps);
    bed.report_takes_ns = 300 * EVENT_SECOND; /* between the two: no answer is late */
    assert_int_equal(scheduler_reserve(bed.settings, &bed.request, &testbed, &failure), -EAGAIN);
    assert_says(failure.text, "was answered with status 503: back at noon");
    assert_null(strstr(failure.text, "later"));
    assert_null(testbed);
    bed_close(2);
}

TEST(what_is_refused_is_not_asked_again) {
    static const struct {
        const char *label;
        struct scripted_step steps[3];
        size_t count;
        const char *says;
    } cases[] = {
        {"wrong credentials",
         {{.status = "401 Unauthorized", .body = "<html>401</html>"}},
         1,
         "was answered with status 401 (wrong credentials?): the credentials are missing or wrong"},
        {"credentials of somebody else",
         {REFUSED("403 Forbidden", "not yours")},
         1,
         "was answered with status 403 (wrong credentials?): not yours"},
        {"another address", {{.status = "404 Not Found"}}, 1, "GET /whoami.json at http://127.0.0.1:"},
        {"nobody who is known",
         {{.status = "200 OK", .body = "{\"authenticated_user\": \"\"}"}},
         1,
         "OAR does not name the user whose jobs are listed (wrong credentials?)"},
        {"moved", {{.status = "301 Moved"}}, 1, "the API has moved to another address"},
        {"a job that OAR does not make",
         {ME, NO_JOBS, REFUSED("400 Bad Request", "exited with status 8:\\nnot enough resources")},
         3,
         "with status 400: exited with status 8: not enough resources"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct failure failure = {0};
        print_message("%s\n", cases[i].label);
        bed_open(cases[i].steps);
        assert_int_equal(scheduler_reserve(bed.settings, &bed.request, &testbed, &failure), -EPERM);
        assert_says(failure.text, cases[i].says);
        assert_null(testbed);
        bed_close(cases[i].count);
    }
}

/* Of a job that may have been submitted all the same nobody knows the number: it is found by its name. */
TEST(a_submission_without_an_answer_is_given_back) {
    static const struct scripted_step steps[SCRIPTED_STEPS_MAX] = {
        ME, NO_JOBS, {.status = "500 Oh", .body = "oops"}, JOBS(JOB("toLaunch")), DELETED, NO_JOBS};
    bed_open(steps);
    bed.report_takes_ns = 300 * EVENT_SECOND; /* between the two: no answer is late */
    assert_int_equal(scheduler_reserve(bed.settings, &bed.request, &testbed, &test_failure), -EAGAIN);
    assert_non_null(testbed);
    assert_int_equal(scheduler_release(testbed, &test_failure), 0);
    bed_close(6);
}

/* One that waits, then ends, and has no successor. */
TEST(a_job_that_is_over_before_it_has_begun) {
    static const struct scripted_step steps[SCRIPTED_STEPS_MAX] = {
        ME,
        NO_JOBS,
        SUBMITTED,
        {.status = "200 OK", .body = "{\"state\": \"Waiting\", \"message\": \"FIFO\"}"},
        {.status = "200 OK", .body = "{\"state\": \"Error\", \"message\": \"node died\"}"},
        NO_JOBS,
        NO_JOBS,
        REFUSED("404 Not Found", "no such job"),
        NO_JOBS};
    struct failure failure = {0};
    bed_open(steps);
    assert_int_equal(scheduler_reserve(bed.settings, &bed.request, &testbed, &failure), 0);
    assert_int_equal(scheduler_wait(testbed, &failure), -ECANCELED);
    assert_says(failure.text, "job 7 of OAR ended before it began: node died");
    assert_says(bed.reports, "job 7 of OAR waits: FIFO");
    assert_int_equal(strncmp(bed.server.requests[3], "GET /api/jobs/7.json?structure=oar HTTP", 39), 0);
    assert_int_equal(scheduler_release(testbed, &failure), 0);
    bed_close(9);
}

/* Once a request is there that has no answer. */
static void on_interrupt(struct event_source *source, void *context) {
    if (bed.server.done < 5)
        event_source_set_timer(source, EVENT_MILLISECOND, 0);
    else
        event_loop_stop(bed.loop);
}

/* After nodes were lost: has the job ended? Nothing of it depends on when the watch would have asked. */
TEST(a_job_is_asked_after_at_once) {
    enum { BEFORE = 4, ANSWERS = 4 };
    static const struct {
        const char *label;
        struct scripted_step answers[ANSWERS];
        size_t count;
        const char *over, *reports; /* NULL: nothing */
    } cases[] = {
        {"it runs", {RUNS("")}, 1, NULL, NULL},
        {"it is over", {IS_OVER}, 1, "job 7 of OAR was over before it was given back: deleted", NULL},
        {"it is about to be",
         {RUNS(", \"events\": [{\"type\": \"FRAG_JOB_REQUEST\"}]"), IS_OVER},
         2,
         "job 7 of OAR was over before it was given back: deleted",
         NULL},
        {"it is, for long",
         {RUNS(", \"message\": \"killed\", \"events\": [{\"type\": \"FRAG_JOB_REQUEST\"}]"),
          RUNS(", \"message\": \"killed\", \"events\": [{\"type\": \"FRAG_JOB_REQUEST\"}]")},
         2,
         "job 7 of OAR is ending before it was given back: killed",
         NULL},
        {"it is not known for a moment", {JOBS(""), RUNS("")}, 2, NULL, "does not answer; asking again"},
        {"the scheduler is in trouble",
         {{.status = "503 Busy"}, IS_OVER},
         2,
         "job 7 of OAR was over before it was given back: deleted",
         "does not answer; asking again"},
        {"for longer than anybody waits",
         {{.status = "503 Busy"}, {.status = "503 Busy"}},
         2,
         NULL,
         "does not answer; asking again"},
        {"it does not tell us", {REFUSED("403 Forbidden", "not yours")}, 1, NULL, NULL},
    };
    struct installation installation = {0};
    struct failure failure = {0};
    assert_int_equal(installation_init(&installation, getenv("ASSAY_BUILD"), NULL, &failure), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scripted_step steps[SCRIPTED_STEPS_MAX] = {ME, NO_JOBS, SUBMITTED, RUNS("")};
        print_message("%s\n", cases[i].label);
        memcpy(&steps[BEFORE], cases[i].answers, sizeof cases[i].answers);
        bed_open(steps);
        bed.request.installation = &installation;
        assert_int_equal(scheduler_reserve(bed.settings, &bed.request, &testbed, &failure), 0);
        if (scheduler_wait(testbed, &failure) < 0)
            fail_msg("%s", failure.text);
        bed.reports[0] = '\0';
        bed.report_takes_ns = 60 * EVENT_SECOND; /* that no answer came, say: as long as it is waited for */
        scheduler_ask(testbed);
        assert_int_equal(bed.server.done, BEFORE + cases[i].count);
        assert_int_equal(event_loop_is_stopped(bed.loop), cases[i].over != NULL);
        assert_string_equal(bed.over, cases[i].over ? cases[i].over : "");
        assert_says(bed.reports, cases[i].reports ? cases[i].reports : "");
        if (cases[i].over)
            scheduler_ask(testbed); /* what is over is not asked after again */
        scheduler_leave(testbed);
        bed_close(BEFORE + cases[i].count);
    }
    installation_clear(&installation);
}

/* A run that is interrupted while it asks. */
TEST(asking_is_interrupted) {
    static const struct scripted_step steps[SCRIPTED_STEPS_MAX] = {
        ME, NO_JOBS, SUBMITTED, RUNS(""), {.header = "", .is_silent = true}};
    struct installation installation = {0};
    assert_int_equal(installation_init(&installation, getenv("ASSAY_BUILD"), NULL, &test_failure), 0);
    bed_open(steps);
    bed.request.installation = &installation;
    assert_int_equal(scheduler_reserve(bed.settings, &bed.request, &testbed, &test_failure), 0);
    assert_int_equal(scheduler_wait(testbed, &test_failure), 0);
    event_loop_add_timer(bed.loop, 0, 0, on_interrupt, NULL);
    scheduler_ask(testbed);
    assert_true(event_loop_is_stopped(bed.loop));
    assert_string_equal(bed.over, "");
    scheduler_leave(testbed);
    bed_close(5);
    installation_clear(&installation);
}

TEST(campaigns) {
    static const struct {
        const char *yaml, *says; /* NULL: it is good */
    } cases[] = {
        {"oar: {api: 'https://server/oarapi', nodes: 2}", NULL},
        {"oar: {api: 'https://server/oarapi', reservation: 2026-12-01 19:00:00}", NULL},
        {"oar: {api: 'http://server/oarapi', nodes: 2}", "its scheme is not https"},
        {"oar: {api: 'https://server/oarapi', login: front}", "two ways to reach one scheduler"},
        {"oar: {credentials: netrc, nodes: 2}", "add 'api' or remove them"},
        {"oar: {api: 'https://server/oarapi', options: [--notify]}",
         "'options' cannot be passed to OAR's API"},
        {"oar: {api: 'https://server/oarapi', properties: 'a = \"b\"'}", "'properties' cannot be passed"},
        {"oar: {api: 'https://server/oarapi', types: ['a`b`']}", "'types' cannot be passed"},
        {"oar: {reservation: 2026-12-01}", "expected a date and a time of day"},
        {"oar: {reservation: 2026-02-30 10:00:00}", "expected a date and a time of day"},
        {"oar: {reservation: 2026-12-01 19:00:00 or so}", "expected a date and a time of day"},
        {"oar: {container: twelve}", "expected the number of a job"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct testbed_settings *settings = NULL;
        struct failure failure = {0};
        print_message("%s\n", cases[i].yaml);
        assert_int_equal(bind_text(cases[i].yaml, &settings, &failure), cases[i].says ? -EINVAL : 0);
        if (cases[i].says)
            assert_says(failure.text, cases[i].says);
        scheduler_free_settings(settings);
    }
}

TEST(a_reservation_in_the_past) {
    static const struct scripted_step steps[SCRIPTED_STEPS_MAX] = {ME, NO_JOBS};
    struct failure failure = {0};
    bed_open(steps);
    bed_bind("reservation: 2020-12-01 19:00:00");
    assert_int_equal(scheduler_reserve(bed.settings, &bed.request, &testbed, &failure), -EINVAL);
    assert_says(failure.text, "is 2020-12-01 19:00:00, which is past");
    assert_null(testbed);
    bed_close(2);
}
