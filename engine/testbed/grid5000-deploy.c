/* Makes the nodes of a job ready: deploys an environment on them, or allows logins as root. */
#include "archive-format/layout.h"
#include "engine/testbed/grid5000.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/testbed/frontend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 3, UID_SIZE = 64, POST_TRIES = 5, KEY_MAX = 16 << 10 };

/* The deployments of one job: in each round those nodes that are not deployed yet. */
struct deployments {
    const struct scheduler_stage *stage;
    int64_t version;
    struct host_list left;       /* nodes that are not deployed yet */
    unsigned round;              /* from 0 */
    char uids[ROUNDS][UID_SIZE]; /* the API's identifier of each round's deployment; "": not begun */
};

/* ---- Which nodes are left */

/* NODES as a list with ranges ("dahu-[1-3]"); the caller frees. */
static char *fold_names(const struct host_list *nodes) {
    struct text words;
    text_init(&words, 16 << 20);
    (void)host_list_fold((const char *const *)nodes->names, nodes->count, &words);
    return words.length ? text_take(&words) : xstrdup("");
}

static bool contains(const struct host_list *list, const char *name) {
    uint32_t number;
    return text_set_find(&list->set, name, strlen(name), &number);
}

/* Removes the nodes in FAILED from the job's list, and changes the names of the others to how they are
 * reached now (root@, VLAN). Fails where fewer than 'at-least' nodes are left. WHAT: what succeeded, for
 * messages. */
static int remove_failed_nodes(const struct scheduler_stage *stage, const struct host_list *failed,
                               const char *what, struct failure *failure) {
    const struct grid5000_resources *own = &stage->settings->resources.grid5000;
    struct host_list *nodes = &stage->job->nodes, usable = {0};
    size_t good = nodes->count - failed->count, least = own->at_least ? (size_t)own->at_least : nodes->count;
    cleanup_free char *names = fold_names(failed);
    if (good < least)
        return failure_set(failure, -EREMOTEIO,
                           "%s on %zu of %zu nodes; at least %zu are needed ('at-least'). Failed: "
                           "%s",
                           what, good, nodes->count, least, names);
    if (failed->count > 0)
        grid5000_report(stage,
                        "%s on %zu of %zu nodes, which 'at-least' accepts; %s failed, and %s "
                        "left out",
                        what, good, nodes->count, names, failed->count == 1 ? "is" : "are");
    int r = 0;
    for (size_t i = 0; r == 0 && i < nodes->count; i++) {
        const char *name = nodes->names[i];
        cleanup_free char *vlan = own->vlan ? xformat("-kavlan-%lld", (long long)own->vlan) : xstrdup("");
        cleanup_free char *short_name = grid5000_short_name(name);
        bool is_root = (own->environment && !stage->settings->access.user) || own->sudo;
        cleanup_free char *reached =
            xformat("%s%s%s%s", is_root ? "root@" : "", short_name, vlan, name + strlen(short_name));
        if (!contains(failed, name))
            r = host_list_add(&usable, reached, failure);
    }
    host_list_clear(nodes);
    *nodes = usable;
    return r;
}

/* ---- One deployment */

static char *round_file(const struct deployments *deployments) {
    cleanup_free char *name = xformat("deployment-%u.json", deployments->round + 1);
    return grid5000_file(deployments->stage, name);
}

/* Notes the uid of the round's deployment and writes its description into the round's file, so that an engine
 * that resumes the run finds the deployment again. */
static int record(struct deployments *deployments, const struct document_node *item,
                  struct failure *failure) {
    cleanup_free char *path = round_file(deployments);
    cleanup(json_cleanup) cJSON *json = json_from_node(item);
    char *uid = deployments->uids[deployments->round];
    snprintf(uid, UID_SIZE, "%s", scheduler_text(item, "uid"));
    if (!uid[0] || uid[strspn(uid, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")])
        return failure_set(failure, -EAGAIN,
                           "a deployment has the uid '%s', expected letters, digits and '-'", uid);
    return json_write_file(path, json, failure);
}

static bool is_active(const struct document_node *item) {
    const char *status = scheduler_text(item, "status");
    return strcmp(status, "waiting") == 0 || strcmp(status, "processing") == 0;
}

/* True where the deployment has ended and its result is known. A terminated deployment without a result gets
 * it soon; unknown states count as running. */
static bool is_over(const struct document_node *item) {
    const char *status = scheduler_text(item, "status");
    return strcmp(status, "error") == 0 || strcmp(status, "canceled") == 0 ||
           (strcmp(status, "terminated") == 0 && document_get(item, "result"));
}

static bool is_new(const struct deployments *deployments, const char *uid) {
    for (unsigned i = 0; i < deployments->round; i++)
        if (strcmp(deployments->uids[i], uid) == 0)
            return false;
    return true;
}

/* Looks for a deployment of our nodes that no file of the run records: an engine died after it had requested
 * it, or the answer was lost. Returns 1 and records it where the API lists one, else 0. It must be ours,
 * since the job has the nodes alone. */
static int find_unrecorded(struct deployments *deployments, struct failure *failure) {
    const struct scheduler_stage *stage = deployments->stage;
    cleanup(grid5000_answer_clear) struct grid5000_answer answer = {0};
    cleanup_free char *path =
        xformat("/sites/%s/deployments?limit=100", stage->settings->resources.grid5000.site);
    int r = grid5000_request(stage, "GET", path, NULL, GRID5000_TRIES, &answer, failure);
    const struct document_node *items = r == 0 ? document_get(answer.document->root, "items") : NULL;
    for (size_t i = 0; r == 0 && items && i < items->count; i++) {
        const struct document_node *item = items->items[i], *nodes = document_get(item, "nodes");
        bool is_ours = false;
        for (size_t j = 0; nodes && j < nodes->count; j++)
            is_ours |=
                nodes->items[j]->text && strcmp(nodes->items[j]->text, deployments->left.names[0]) == 0;
        if (is_ours && is_active(item) && is_new(deployments, scheduler_text(item, "uid")) &&
            scheduler_number(item, "created_at") >= stage->job->start_s)
            return (r = record(deployments, item, failure)) < 0 ? r : 1;
    }
    return r;
}

/* Writes the JSON body of a deployment of the nodes that are left. */
static int make_request(const struct deployments *deployments, struct text *ret, struct failure *failure) {
    const struct grid5000_resources *own = &deployments->stage->settings->resources.grid5000;
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    cleanup(text_clear) struct text key;
    text_init(&key, KEY_MAX);
    int r = file_read(own->key, &key, failure);
    if (r < 0)
        return r;
    text_cut(&key, strcspn(key.bytes, "\r\n"));
    cJSON *nodes = json_add_array(object, "nodes");
    for (size_t i = 0; i < deployments->left.count; i++)
        json_add_string(nodes, NULL, deployments->left.names[i]);
    json_add_string(object, "environment", own->environment);
    json_add_string(object, "key", key.bytes);
    if (deployments->version)
        json_add_int64(object, "version", deployments->version);
    if (own->vlan)
        json_add_int64(object, "vlan", own->vlan);
    return json_print(object, false, ret);
}

/* Requests the round's deployment. Before each try the API's list is checked, so that no deployment is
 * requested twice. */
static int request_deployment(struct deployments *deployments, struct failure *failure) {
    const struct scheduler_stage *stage = deployments->stage;
    cleanup_free char *path = xformat("/sites/%s/deployments", stage->settings->resources.grid5000.site);
    cleanup(text_clear) struct text body;
    text_init(&body, 16 << 20);
    int r = make_request(deployments, &body, failure);
    for (unsigned number = 1; r == 0; number++) {
        cleanup(grid5000_answer_clear) struct grid5000_answer answer = {0};
        r = find_unrecorded(deployments, failure);
        if (r != 0)
            return r < 0 ? r : 0;
        r = grid5000_request(stage, "POST", path, body.bytes, GRID5000_ONCE, &answer, failure);
        if (r == 0)
            r = record(deployments, answer.document->root, failure);
        if (r != -EAGAIN || number >= POST_TRIES)
            return r;
        grid5000_report(stage, "asking Grid'5000 again: %s", failure->text);
        *failure = (struct failure){0};
        r = grid5000_pause(stage, &answer, failure);
    }
    return r;
}

/* True where the round was begun by an engine that died; *RET is the deployment as that engine recorded it.
 */
static bool read_recorded(struct deployments *deployments, struct document **ret) {
    cleanup_free char *path = round_file(deployments);
    if (document_read_json(path, ret, NULL) < 0)
        return false;
    snprintf(deployments->uids[deployments->round], UID_SIZE, "%s", scheduler_text((*ret)->root, "uid"));
    return deployments->uids[deployments->round][0];
}

/* Waits until the round's deployment has ended, and records it. -ETIMEDOUT at the end of the job. */
static int wait_for_deployment(struct deployments *deployments, struct grid5000_answer *ret,
                               struct failure *failure) {
    const struct scheduler_stage *stage = deployments->stage;
    const char *uid = deployments->uids[deployments->round];
    cleanup_free char *path =
        xformat("/sites/%s/deployments/%s", stage->settings->resources.grid5000.site, uid);
    for (;;) {
        int r = grid5000_request(stage, "GET", path, NULL, GRID5000_TRIES, ret, failure);
        if (r == 0 && is_over(ret->document->root))
            return record(deployments, ret->document->root, failure);
        if (r == 0 && stage->job->end_s > 0 && clock_wall_ns() / EVENT_SECOND >= stage->job->end_s)
            r = failure_set(failure, -ETIMEDOUT,
                            "deployment %s had not ended when the job's walltime was over; ask for "
                            "a longer 'walltime'",
                            uid);
        if (r == 0)
            r = grid5000_pause(stage, ret, failure);
        if (r < 0)
            return r;
    }
}

/* Removes the nodes that ITEM, an ended deployment, reports as deployed from those that are left; after an
 * error no node is. */
static int apply_result(struct deployments *deployments, const struct document_node *item,
                        struct failure *failure) {
    const struct scheduler_stage *stage = deployments->stage;
    const struct document_node *result = document_get(item, "result");
    const char *status = scheduler_text(item, "status");
    struct host_list failed = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < deployments->left.count; i++) {
        const char *name = deployments->left.names[i];
        const char *state = scheduler_text(document_get(result, name), "state");
        if (strcmp(status, "terminated") != 0 || strcmp(state, "OK") != 0)
            r = host_list_add(&failed, name, failure);
    }
    cleanup_free char *names = fold_names(&failed);
    grid5000_report(stage, "deployment %s of %s: %zu of %zu nodes are deployed%s%s",
                    deployments->uids[deployments->round], stage->settings->resources.grid5000.environment,
                    deployments->left.count - failed.count, deployments->left.count,
                    failed.count ? ", not " : "", names);
    host_list_clear(&deployments->left);
    deployments->left = failed;
    return r;
}

/* ---- All rounds */

/* Runs one deployment to its end, or continues the one that an engine that died has begun. */
static int run_round(struct deployments *deployments, struct failure *failure) {
    const struct scheduler_stage *stage = deployments->stage;
    cleanup(grid5000_answer_clear) struct grid5000_answer answer = {0};
    int r = 0;
    if (!read_recorded(deployments, &answer.document)) {
        r = request_deployment(deployments, failure);
        if (r == 0)
            grid5000_report(stage, "deployment %s of %s, version %lld, on %zu nodes has begun",
                            deployments->uids[deployments->round],
                            stage->settings->resources.grid5000.environment, (long long)deployments->version,
                            deployments->left.count);
    }
    if (r == 0 && !(answer.document && is_over(answer.document->root)))
        r = wait_for_deployment(deployments, &answer, failure);
    return r < 0 ? r : apply_result(deployments, answer.document->root, failure);
}

int grid5000_deploy(const struct scheduler_stage *stage, int64_t version, struct failure *failure) {
    struct deployments deployments = {.stage = stage, .version = version};
    int r = 0;
    for (size_t i = 0; r == 0 && i < stage->job->nodes.count; i++)
        r = host_list_add(&deployments.left, stage->job->nodes.names[i], failure);
    for (; r == 0 && deployments.left.count > 0 && deployments.round < ROUNDS; deployments.round++)
        r = run_round(&deployments, failure);
    if (r == 0)
        r = remove_failed_nodes(stage, &deployments.left, "the environment is deployed", failure);
    host_list_clear(&deployments.left);
    return r;
}

/* ---- Root without a deployment */

static const int64_t root_timeout_ns = 120 * EVENT_SECOND, poll_ns = 200 * EVENT_MILLISECOND;

struct opening {
    struct frontend *login;
    bool is_over, is_good;
};

static void on_opened(const char *output, size_t length, void *context) {
    struct opening *opening = context;
    (void)length;
    opening->is_over = true;
    opening->is_good = output != NULL;
}

/* Runs sudo-g5k on all nodes at once, because the first call on a node installs sudo. Nodes that cannot be
 * connected or do not finish in two minutes count as failed. */
int grid5000_open_root(const struct scheduler_stage *stage, struct failure *failure) {
    static const char *const words[] = {
        "sh", "-c", "cat ~/.ssh/authorized_keys | sudo-g5k tee -a /root/.ssh/authorized_keys >/dev/null",
        NULL};
    const struct host_list *nodes = &stage->job->nodes;
    cleanup_free struct opening *openings = xcalloc(nodes->count, sizeof *openings);
    cleanup_free char *accepted = file_join(stage->request->folder, ARCHIVE_KNOWN_HOSTS);
    bool is_accepting = stage->settings->access.host_keys == HOST_KEYS_ACCEPT_NEW;
    struct host_list failed = {0};
    int64_t until_ns = clock_monotonic_ns() + root_timeout_ns;
    size_t waiting = nodes->count;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < nodes->count; i++) {
        struct failure why = {0};
        r = frontend_open(stage->request->loop, &stage->settings->access, is_accepting ? accepted : NULL,
                          nodes->names[i], NULL, &openings[i].login, &why);
        if (r == 0) {
            frontend_start(openings[i].login, words, 4096, on_opened, &openings[i]);
            continue;
        }
        openings[i].is_over = true;
        grid5000_report(stage, "node %s: %s", nodes->names[i], why.text);
        r = r == -EINTR ? failure_set_kind(failure, FAILURE_INTERRUPTED, r, "interrupted") : 0;
    }
    while (r == 0 && waiting > 0 && clock_monotonic_ns() < until_ns) {
        waiting = 0;
        for (size_t i = 0; i < nodes->count; i++)
            waiting += !openings[i].is_over;
        r = waiting ? frontend_wait(stage->frontend, poll_ns, failure) : 0;
    }
    for (size_t i = 0; i < nodes->count; i++) {
        frontend_close(openings[i].login);
        if (r == 0 && !openings[i].is_good)
            r = host_list_add(&failed, nodes->names[i], failure);
    }
    if (r == 0)
        r = remove_failed_nodes(stage, &failed, "root can log in (sudo-g5k)", failure);
    host_list_clear(&failed);
    return r;
}
