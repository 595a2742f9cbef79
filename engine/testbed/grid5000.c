/* Grid'5000 as a scheduler whose commands are HTTP requests. When its job runs, the nodes are made ready by a
 * stage of its own: deployment, or root by sudo-g5k. */
#include "engine/testbed/grid5000.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/testbed/frontend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VLAN_MAX = 4095, KEY_MAX = 16 << 10 };

#define ROW(key, type, member) BIND_ROW(key, type, scheduler_resources, member)
#define RANGED(key, type, member, least, most)                                                               \
    BIND_RANGED(key, type, scheduler_resources, member, least, most)

/* For the .expect of `environment`. An address with a user or a password is refused, because it is archived.
 */
static const char *expect_environment(const char *key, const char *value) {
    const char *address = strstr(value, "://");
    (void)key;
    if (address && strchr(address, '@'))
        return "an address without a user and a password";
    return value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@:/~%")]
               ? "NAME, NAME@USER, or the address of a description"
               : NULL;
}

/* Fields of the mapping `nodes`; their members are in struct scheduler_resources itself, so that the mapping
 * has the offset 0. */
static const struct bind_field node_fields[] = {
    {RANGED("want", BIND_INTEGER, nodes, 1, SCHEDULER_NODES_MAX)},
    {RANGED("at-least", BIND_INTEGER, grid5000.at_least, 1, SCHEDULER_NODES_MAX)},
};

static const struct bind_field fields[] = {
    {ROW("site", BIND_TEXT, grid5000.site), .required = true, .expect = scheduler_expect_name},
    {ROW("cluster", BIND_TEXT, cluster), .expect = scheduler_expect_name},
    {.key = "nodes", .type = BIND_MAPPING, BIND_FIELDS(node_fields), .scalar = "want"},
    {RANGED("walltime", BIND_QUANTITY, walltime, 60, SCHEDULER_WALLTIME_MAX), .dimension = UNIT_TIME,
     .required = true},
    {ROW("environment", BIND_TEXT, grid5000.environment), .expect = expect_environment},
    {RANGED("version", BIND_INTEGER, grid5000.version, 1, 1e15)},
    {ROW("key", BIND_TEXT, grid5000.key)},
    {RANGED("vlan", BIND_INTEGER, grid5000.vlan, 1, VLAN_MAX)},
    {ROW("sudo-g5k", BIND_CHOICE, grid5000.sudo), .choices = (const char *const[]){"no", "yes", NULL}},
    {ROW("monitor", BIND_TEXTS, grid5000.monitor), .expect = scheduler_expect_name},
    {ROW("properties", BIND_TEXT, constraint)},
    {ROW("resources", BIND_TEXT, resources)},
    {ROW("types", BIND_TEXTS, types)},
    {ROW("queue", BIND_TEXT, queue)},
    {ROW("project", BIND_TEXT, account)},
    {ROW("reservation", BIND_TEXT, reservation), .expect = scheduler_oar_expect_date},
    {RANGED("at-most-wait", BIND_QUANTITY, at_most_wait, 1, SCHEDULER_WALLTIME_MAX), .dimension = UNIT_TIME},
    {ROW("api", BIND_TEXT, api)},
    {ROW("credentials", BIND_TEXT, credentials)},
    {ROW("authority", BIND_TEXT, authority)},
};

/* ---- Settings */

/* Refuses the setting KEY of the campaign with the sentence WHAT. */
static int refuse(const struct testbed_written *written, const char *key, struct failure *failure,
                  const char *what) {
    const struct document_node *own = document_get(written->node, "grid5000");
    const struct document_node *node = document_get(own, key);
    return bind_refuse(written->document, node ? node : own, failure, "%s", what);
}

/* Checks the settings of a deployment before anything is reserved: the public key can be read, and no key is
 * given without 'environment'. */
static int check_deployment(struct testbed_settings *settings, const struct testbed_written *written,
                            struct failure *failure) {
    struct grid5000_resources *own = &settings->resources.grid5000;
    if (own->environment && own->sudo)
        return refuse(written, "sudo-g5k", failure,
                      "'sudo-g5k' is for nodes without an 'environment'; remove one of the "
                      "two");
    if (!own->environment && (own->version || own->vlan || own->key))
        return refuse(written,
                      own->version ? "version"
                      : own->vlan  ? "vlan"
                                   : "key",
                      failure,
                      "this key is used only when an environment is deployed; add "
                      "'environment' or remove the key");
    if (!own->environment)
        return 0;
    if (!own->key && settings->access.identities.count == 0)
        return refuse(written, "environment", failure,
                      "deployed nodes accept logins by key only; expected 'key' (the file of "
                      "a public key) or 'identity'");
    if (!own->key)
        own->key = xformat("%s.pub", settings->access.identities.items[0]);
    access_place_path(&own->key, written->folder);
    cleanup(text_clear) struct text key;
    text_init(&key, KEY_MAX);
    struct failure why = {0};
    if (file_read(own->key, &key, &why) < 0)
        return refuse(written, "key", failure, why.text);
    return strstr(key.bytes, "PRIVATE")
               ? refuse(written, "key", failure,
                        "'key' is the file of a private key; expected the file of a public "
                        "key, such as ~/.ssh/id_ed25519.pub")
               : 0;
}

static int check_settings(struct testbed_settings *settings, const struct testbed_written *written,
                          struct failure *failure) {
    struct scheduler_resources *resources = &settings->resources;
    if (resources->grid5000.at_least > resources->nodes)
        return refuse(written, "nodes", failure,
                      "'at-least' is larger than 'want'; expected at most as many nodes");
    return check_deployment(settings, written, failure);
}

static int bind(const struct testbed_written *written, struct testbed_settings **ret,
                struct failure *failure) {
    return scheduler_bind(&scheduler_grid5000, written, ret, failure);
}

/* ---- Jobs */

/* Adds the list of the job's types: those of the campaign, "deploy", and the metrics to monitor. */
static void add_types(const struct scheduler_resources *resources, cJSON *job) {
    const struct grid5000_resources *own = &resources->grid5000;
    cJSON *types = json_add_array(job, "types");
    cleanup(text_clear) struct text monitor;
    text_init(&monitor, 64 << 10);
    for (size_t i = 0; i < resources->types.count; i++)
        json_add_string(types, NULL, resources->types.items[i]);
    if (own->environment && !bind_texts_have(&resources->types, "deploy"))
        json_add_string(types, NULL, "deploy");
    for (size_t i = 0; i < own->monitor.count; i++) /* a regular expression */
        text_printf(&monitor, "%s%s", i ? "|" : "monitor=", own->monitor.items[i]);
    if (monitor.length)
        json_add_string(types, NULL, monitor.bytes);
}

/* Appends the request that submits the job, which only sleeps. COMMAND is never set: scheduler_submit()
 * refuses engines in jobs of Grid'5000. */
static void submit(const struct scheduler_resources *resources, const char *name, const char *command,
                   const char *output, struct bind_texts *words) {
    (void)command, (void)output;
    cJSON *job = cJSON_CreateObject();
    cleanup_free char *job_resources = scheduler_oar_resources(resources),
                      *path = xformat("/sites/%s/jobs", resources->grid5000.site);
    const struct {
        const char *key, *value;
    } members[] = {{"name", name},
                   {"resources", job_resources},
                   {"command", "sleep infinity"},
                   {"stdout", "/dev/null"},
                   {"stderr", "/dev/null"},
                   {"properties", resources->constraint},
                   {"queue", resources->queue},
                   {"project", resources->account},
                   {"reservation", resources->reservation}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (members[i].value)
            json_add_string(job, members[i].key, members[i].value);
    add_types(resources, job);
    scheduler_oar_request(words, "POST", path, job);
}

static bool read_id(const char *output, char id[static SCHEDULER_ID_SIZE]) {
    return scheduler_oar_read_id(output, "uid", id);
}

/* Asks for job ID, or for the list of jobs called NAME; the list does not contain the jobs' nodes. */
static void query(const struct scheduler_resources *resources, const char *id, const char *name,
                  struct bind_texts *words) {
    const char *site = resources->grid5000.site;
    cleanup_free char *path = id[0] ? xformat("/sites/%s/jobs/%s", site, id)
                                    : xformat("/sites/%s/jobs?limit=500&name=%s", site, name);
    scheduler_oar_request(words, "GET", path, NULL);
}

/* Reads the answer to query(): one job, or a collection of jobs. */
static int read_job(const char *output, size_t length, const char *id, const char *name,
                    struct scheduler_job *ret, struct failure *failure) {
    static const struct scheduler_oar_keys keys = {"uid", "started_at", "assigned_nodes"};
    cleanup(document_cleanup) struct document *document = NULL;
    ret->state = SCHEDULER_JOB_NONE;
    if (document_parse_json("jobs", output, length, &document, failure) < 0)
        return failure_set(failure, -EBADMSG, "the answer of Grid'5000's API is not JSON");
    const struct document_node *items = document_get(document->root, "items");
    const struct document_node one = {.kind = DOCUMENT_SEQUENCE, .items = &document->root, .count = 1};
    return scheduler_oar_read_jobs(&keys, items ? items : &one, id, name, ret, failure);
}

static void cancel(const struct scheduler_resources *resources, const char *id, const char *name,
                   struct bind_texts *words) {
    (void)name;
    cleanup_free char *path = xformat("/sites/%s/jobs/%s", resources->grid5000.site, id);
    scheduler_oar_request(words, "DELETE", path, NULL);
}

/* ---- Stages */

/* Reports the limits of the campaign's cluster in the output of usagepolicycheck: {"time": 7200, "nb_cores":
 * 256}. */
static void report_limits(const struct scheduler_stage *stage, const struct text *answer) {
    const struct scheduler_resources *resources = &stage->settings->resources;
    cleanup(document_cleanup) struct document *document = NULL;
    cleanup(text_clear) struct text words;
    text_init(&words, 4096);
    if (scheduler_parse_object("usagepolicycheck", answer->bytes, answer->length, &document, NULL) <= 0)
        return;
    const struct document_node *limits =
        document_get(document_get(document->root, "limits"), resources->grid5000.site);
    limits = resources->cluster ? document_get(limits, resources->cluster) : NULL;
    for (size_t i = 0; limits && limits->kind == DOCUMENT_MAPPING && i < limits->count; i++)
        if (limits->items[i]->text)
            text_printf(&words, ", %s %s", limits->keys[i]->text, limits->items[i]->text);
    if (words.length > 0)
        grid5000_report(stage, "limits of usagepolicycheck for %s%s", resources->cluster, words.bytes);
}

/* Runs Grid'5000's usagepolicycheck, which exists on the sites' frontends only, and reports the user's limits
 * or its refusal. A refusal is no failure here: OAR decides about the job. */
static int check_usage(const struct scheduler_stage *stage, struct failure *failure) {
    static const char *const words[] = {"usagepolicycheck", "-t", NULL};
    char problem[FAILURE_TEXT_SIZE];
    cleanup(text_clear) struct text answer;
    struct frontend *this_machine = NULL;
    struct failure why = {0};
    text_init(&answer, 1 << 20);
    int r = frontend_open(stage->request->loop, NULL, NULL, NULL, NULL, &this_machine, failure);
    if (r < 0)
        return r;
    r = frontend_run(this_machine, words, &answer, problem, &why);
    frontend_close(this_machine);
    if (r == 0)
        report_limits(stage, &answer);
    else if (r != -ENOENT && r != -EINTR)
        grid5000_report(stage, "usagepolicycheck: %s", r < 0 ? why.text : problem);
    return r == -EINTR ? failure_set_kind(failure, FAILURE_INTERRUPTED, r, "interrupted") : 0;
}

/* Called before the job is submitted: checks that the site, the cluster and the environment exist, and the
 * usage policy. */
static int inquire(const struct scheduler_stage *stage, struct failure *failure) {
    const struct scheduler_resources *resources = &stage->settings->resources;
    cleanup_free char *clusters = xformat("/sites/%s/clusters?limit=500", resources->grid5000.site);
    int64_t version;
    int r = grid5000_find_item(stage, "/sites?limit=500", "Grid'5000", "site", resources->grid5000.site, NULL,
                               failure);
    if (r == 0 && resources->cluster)
        r = grid5000_find_item(stage, clusters, resources->grid5000.site, "cluster", resources->cluster, NULL,
                               failure);
    if (r == 0 && resources->grid5000.environment)
        r = grid5000_find_environment(stage, false, &version, failure);
    return r == 0 ? check_usage(stage, failure) : r;
}

/* Called once the job runs: records the nodes' description, then lets root in or deploys the environment. */
static int prepare(const struct scheduler_stage *stage, struct failure *failure) {
    const struct grid5000_resources *own = &stage->settings->resources.grid5000;
    int64_t version = 0;
    grid5000_record_reference(stage);
    if (own->sudo)
        return grid5000_open_root(stage, failure);
    if (!own->environment)
        return 0;
    int r = grid5000_find_environment(stage, true, &version, failure);
    return r < 0 ? r : grid5000_deploy(stage, version, failure);
}

static void collect(const struct scheduler_stage *stage) {
    if (stage->settings->resources.grid5000.monitor.count > 0)
        grid5000_record_metrics(stage);
}

const struct scheduler scheduler_grid5000 = {
    .key = "grid5000",
    .name = "Grid'5000",
    .fields = fields,
    .field_count = sizeof fields / sizeof *fields,
    .expected = "grid5000: {site: grenoble, cluster: dahu, nodes: 4, walltime: 2h}",
    .api = "https://api.grid5000.fr/stable",
    .ends_for_good = true,
    .check_settings = check_settings,
    .submit = submit,
    .read_id = read_id,
    .query = query,
    .read_job = read_job,
    .cancel = cancel,
    .launcher = "oarsh",
    .enter = scheduler_oar_enter,
    .inquire = inquire,
    .prepare = prepare,
    .collect = collect,
};

const struct testbed_backend testbed_grid5000 =
    SCHEDULER_BACKEND("grid5000", "nodes that Grid'5000 lends", bind);
