/* Nodes that a program of the user's reserves and gives back; EXTERNAL.md has the protocol. A reservation has
 * a name made of the run's identifier, so that another engine, with another process of the program, finds it
 * again. */
#include "archive-format/layout.h"
#include "engine/testbed/testbed.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/testbed/access.h"
#include "engine/testbed/external-grant.h"
#include "engine/testbed/external-program.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ANSWER_DEFAULT = 300,
    ANSWER_MAX = 86400,
    WAIT_MAX = 366 * 86400 /* seconds */,
    ID_MAX = 200 /* bytes */
};

struct testbed_settings {
    struct external_settings {
        struct bind_texts program;
        double timeout, at_most_wait; /* seconds; at_most_wait 0: without limit */
    } external;
    cJSON *request; /* the campaign's `request`, an object that is passed to the program */
    struct access_settings access;
};

struct testbed {
    const struct testbed_settings *settings;
    struct testbed_request request;
    struct external_program *program;
    char *name, *id; /* of the reservation: ours, made of the run's identifier, and the program's */
    struct external_grant grant;
    struct launcher_words words;
    struct access *access; /* NULL: the nodes are not ready yet */
    bool is_over;          /* the end of the reservation was reported by request.over() */
};

/* ---- Settings */

#define ROW(key, type, member) BIND_ROW(key, type, external_settings, member)
#define SECONDS(key, member, most)                                                                           \
    BIND_RANGED(key, BIND_QUANTITY, external_settings, member, 1, most), .dimension = UNIT_TIME

static const struct bind_field external_fields[] = {
    {ROW("program", BIND_TEXTS, program), .required = true},
    {.key = "request", .type = BIND_LATER, .kinds = 1 << DOCUMENT_MAPPING},
    {SECONDS("timeout", timeout, ANSWER_MAX)},
    {SECONDS("at-most-wait", at_most_wait, WAIT_MAX)},
};

static const struct bind_field fields[] = {
    {.key = "external",
     .type = BIND_MAPPING,
     .offset = offsetof(struct testbed_settings, external),
     BIND_FIELDS(external_fields),
     .scalar = "program"},
    {.type = BIND_MAPPING,
     .offset = offsetof(struct testbed_settings, access),
     .fields = access_fields,
     .field_count = ACCESS_FIELDS},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static void free_settings(struct testbed_settings *settings) {
    if (!settings)
        return;
    bind_clear(fields, FIELD_COUNT, settings);
    cJSON_Delete(settings->request);
    free(settings);
}

static void free_settings_pointer(struct testbed_settings **settings) {
    free_settings(*settings);
}

/* Makes words that begin with "./", "../" or "~/" absolute paths, relative to the campaign's folder: a run
 * may be resumed from another folder. Refuses a program that cannot be executed. */
static int place_words(struct bind_texts *words, const struct testbed_written *written,
                       struct failure *failure) {
    for (size_t i = 0; i < words->count; i++)
        if (strchr(".~", words->items[i][0]) && words->items[i][strspn(words->items[i], ".~")] == '/')
            access_place_path(&words->items[i], written->folder);
    if (words->count == 0 || (strchr(words->items[0], '/') && access(words->items[0], X_OK) < 0))
        return bind_refuse(written->document, document_get(written->node, "external"), failure,
                           "cannot execute '%s', expected a program: {program: [./reserve, WORDS]}",
                           words->count > 0 ? words->items[0] : "");
    return 0;
}

/* Reads and checks the settings; the object `request` is passed to the program unread. */
static int bind(const struct testbed_written *written, struct testbed_settings **ret,
                struct failure *failure) {
    cleanup(free_settings_pointer) struct testbed_settings *settings = xcalloc(1, sizeof *settings);
    const struct document_node *own = document_get(written->node, "external");
    access_init(&settings->access);
    settings->external.timeout = ANSWER_DEFAULT;
    if (!own)
        return bind_refuse(written->document, own, failure,
                           "'external' names no program, expected external: {program: [./reserve, WORDS]}");
    int r =
        bind_mapping(written->document, written->node, "'testbed'", fields, FIELD_COUNT, settings, failure);
    if (r == 0)
        r = place_words(&settings->external.program, written, failure);
    if (r == 0)
        r = access_check(&settings->access, written, failure);
    const struct document_node *request = document_get(own, "request");
    settings->request = request ? json_from_node(request) : cJSON_CreateObject();
    if (r == 0)
        *ret = take_pointer(settings);
    return r;
}

static size_t expected_nodes(const struct testbed_settings *settings) {
    (void)settings;
    return 0;
}

static bool kills_agents(const struct testbed_settings *settings) {
    return access_kills_agents(&settings->access);
}

static int describe(const struct testbed_settings *settings, struct text *ret) {
    text_printf(ret, "%-12s ", "program");
    text_append_command(ret, (const char *const *)settings->external.program.items);
    text_printf(ret, "\n%-12s ", "request");
    json_print(settings->request, false, ret);
    text_append_character(ret, '\n');
    return access_describe(&settings->access, ret);
}

static void resolve(const struct testbed_settings *settings, cJSON *object) {
    bind_resolve(fields, FIELD_COUNT, settings, object);
    cJSON_AddItemToObject(cJSON_GetObjectItemCaseSensitive(object, "external"), "request",
                          cJSON_Duplicate(settings->request, true));
}

/* ---- What the program prints */

/* Passes SENTENCE to SINK, a function of the run's request or NULL, and frees it. */
static void report(const struct testbed *testbed, void (*sink)(void *context, const char *sentence),
                   char *sentence) {
    if (sink)
        sink(testbed->request.report_context, sentence);
    free(sentence);
}

static const char *name_of(const struct testbed *testbed) {
    return external_program_name(testbed->program);
}

static void on_note(void *context, const char *sentence) {
    const struct testbed *testbed = context;
    report(testbed, testbed->request.report, xformat("%s: %s", name_of(testbed), sentence));
}

static void on_log(void *context, const char *line) {
    const struct testbed *testbed = context;
    report(testbed, testbed->request.log, xformat("%s: %s", name_of(testbed), line));
}

/* The program says that the reservation has ended. The run is told by over() once, and only where it uses the
 * nodes: before that the request for them fails. */
static void on_over(void *context, const char *sentence) {
    struct testbed *testbed = context;
    bool is_news = testbed->access && !testbed->is_over;
    testbed->is_over |= is_news;
    report(testbed, is_news ? testbed->request.over : testbed->request.report,
           xformat("reservation %s of %s is over: %s", testbed->id, name_of(testbed), sentence));
}

/* Sends the request WHAT ("reserve", "nodes", "release") about our reservation and waits for the answer. */
static int send_request(struct testbed *testbed, const char *what, int64_t timeout_ns, struct document **ret,
                        struct failure *failure) {
    return external_program_ask(testbed->program, what, testbed->name, testbed->settings->request, timeout_ns,
                                ret, failure);
}

/* ---- Reserving */

/* Frees TESTBED; the reservation is kept. */
static void free_testbed(struct testbed *testbed) {
    if (!testbed)
        return;
    access_close(testbed->access);
    external_program_free(testbed->program);
    external_grant_clear(&testbed->grant);
    free(testbed->name);
    free(testbed->id);
    free(testbed);
}

static void free_testbed_pointer(struct testbed **testbed) {
    free_testbed(*testbed);
}

/* Makes a testbed whose program is not started yet. All parts of a run use one reservation name: the first 36
 * characters of run_id are those of the run. */
static struct testbed *open_testbed(const struct testbed_settings *settings,
                                    const struct testbed_request *request) {
    struct testbed *testbed = xcalloc(1, sizeof *testbed);
    struct external_listener listener = {.note = on_note, .log = on_log, .over = on_over, .context = testbed};
    testbed->settings = settings;
    testbed->request = *request;
    testbed->name = xformat("assay-%.36s", request->run_id);
    testbed->id = xstrdup(testbed->name);
    testbed->program =
        external_program_new(request->loop, (const char *const *)settings->external.program.items,
                             llround(settings->external.timeout * 1e9), &listener);
    return testbed;
}

/* Requests the nodes, or finds the reservation of the same name; with only_reserved nothing is requested.
 * *RET is set after most failures too, since something may have been reserved. */
static int reserve(const struct testbed_settings *settings, const struct testbed_request *request,
                   struct testbed **ret, struct failure *failure) {
    cleanup(free_testbed_pointer) struct testbed *testbed = open_testbed(settings, request);
    cleanup(document_cleanup) struct document *answer = NULL;
    int r = external_program_start(testbed->program, failure);
    if (r < 0)
        return r;
    if (!request->only_reserved)
        r = send_request(testbed, "reserve", -1, &answer, failure);
    if (r == -EREMOTEIO) /* the program has reserved nothing; after any other failure it may have */
        return r;
    const struct document_node *id = answer ? document_get(answer->root, "reservation") : NULL;
    if (id && id->text) {
        free(testbed->id);
        testbed->id = xformat("%.*s", ID_MAX, id->text);
    }
    *ret = take_pointer(testbed);
    return r;
}

static const char *reservation_id(const struct testbed *testbed) {
    return testbed->id;
}

/* Waits for the nodes and prepares connections to them. Host keys that the program gives are written into the
 * run's folder, and only these are then accepted for new hosts. */
static int wait_for_nodes(struct testbed *testbed, struct failure *failure) {
    cleanup(document_cleanup) struct document *answer = NULL;
    double most = testbed->settings->external.at_most_wait;
    char most_text[NUMBER_TEXT_SIZE];
    int r = send_request(testbed, "nodes", llround(most * 1e9), &answer, failure);
    if (r == -ETIMEDOUT)
        return failure_set(failure, r, "reservation %s has waited for %s ('at-most-wait') and is cancelled",
                           testbed->id, number_describe_duration(most, most_text));
    if (r == 0)
        r = external_grant_read(answer, &testbed->grant, failure);
    if (r < 0)
        return r;
    const struct access_settings *access = &testbed->settings->access;
    const struct text *keys = &testbed->grant.known_hosts;
    cleanup_free char *known =
        keys->length > 0 ? file_join(testbed->request.folder, ARCHIVE_KNOWN_HOSTS) : NULL;
    if (known)
        r = file_replace(known, keys->bytes, keys->length, 0644, failure);
    return r < 0 ? r
                 : access_open(access, &testbed->request, access_launcher(access, &testbed->words), known,
                               &testbed->access, failure);
}

/* Called when nodes are lost: asks for the nodes again. An error as the answer means that the reservation has
 * ended; no answer within a minute changes nothing. */
static void check_reservation(struct testbed *testbed) {
    static const int64_t timeout_ns = 60 * EVENT_SECOND;
    cleanup(document_cleanup) struct document *answer = NULL;
    struct failure why = {0};
    if (testbed->access && !testbed->is_over &&
        send_request(testbed, "nodes", timeout_ns, &answer, &why) == -EREMOTEIO)
        on_over(testbed, why.text + strlen(name_of(testbed)) + strlen(": "));
}

/* ---- The nodes */

static size_t node_count(const struct testbed *testbed) {
    return testbed->grant.hosts.count;
}

static const char *node_name(const struct testbed *testbed, size_t node) {
    return testbed->grant.names[node];
}

static int connect_node(struct testbed *testbed, size_t node, struct transport **ret,
                        struct failure *failure) {
    return ssh_nodes_transport(access_nodes(testbed->access), testbed->grant.hosts.names[node], ret, failure);
}

static struct agent_link_policy policy(const struct testbed *testbed) {
    return *ssh_nodes_policy(access_nodes(testbed->access));
}

static int64_t deadline(const struct testbed *testbed) {
    return testbed->grant.end_s * EVENT_SECOND;
}

/* ---- Giving back */

/* Asks the program to release the reservation with our name. *RET_HAD: there was one. */
static int give_back(struct testbed *testbed, bool *ret_had, struct failure *failure) {
    cleanup(document_cleanup) struct document *answer = NULL;
    int r = send_request(testbed, "release", -1, &answer, failure);
    const struct document_node *released = r == 0 ? document_get(answer->root, "released") : NULL;
    *ret_had = !(released && released->kind == DOCUMENT_BOOLEAN && released->text[0] == 'f');
    return r;
}

static int release(struct testbed *testbed, struct failure *failure) {
    struct failure why = {0};
    bool had;
    int r = give_back(testbed, &had, &why);
    if (r < 0)
        failure_set(failure, r,
                    "reservation %s was not given back: %s; give it back with 'assay "
                    "release'",
                    testbed->id, why.text);
    free_testbed(testbed);
    return r;
}

static int reclaim(const struct testbed_settings *settings, const struct testbed_request *request,
                   struct failure *failure) {
    cleanup(free_testbed_pointer) struct testbed *testbed = open_testbed(settings, request);
    bool had;
    int r = give_back(testbed, &had, failure);
    if (r == 0)
        report(testbed, request->report,
               xformat(had ? "%s has given reservation %s back" : "%s has no reservation %s",
                       name_of(testbed), testbed->name));
    return r;
}

const struct testbed_backend testbed_external = {
    .name = "external",
    .summary = "nodes that a program of the user's reserves",
    .bind = bind,
    .free_settings = free_settings,
    .expected_nodes = expected_nodes,
    .kills_agents = kills_agents,
    .describe = describe,
    .resolve = resolve,
    .reserve = reserve,
    .id = reservation_id,
    .wait = wait_for_nodes,
    .node_count = node_count,
    .node_name = node_name,
    .connect = connect_node,
    .policy = policy,
    .agent = access_agent,
    .deadline = deadline,
    .ask = check_reservation,
    .release = release,
    .leave = free_testbed,
    .reclaim = reclaim,
};
