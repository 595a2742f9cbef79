#include "engine/testbed/host-settings.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/launch/package.h"
#include "engine/remote/nodes/group.h"
#include "engine/remote/nodes/ssh-nodes.h"
#include "engine/remote/ssh/client.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char *const host_key_names[] = {
    [HOST_KEYS_KNOWN] = "known", [HOST_KEYS_ACCEPT_NEW] = "accept-new", NULL};
static const char *const agent_names[] = {
    [AGENT_AUTO] = "auto", [AGENT_BINARY] = "binary", [AGENT_SOURCE] = "source", NULL};

/* A lease is no shorter than what it takes to find a broken link again. */
enum { LEASE_LEAST = 2, LEASE_MAX = 30 * 86400, TIMEOUT_MAX = 3600, LEASE_DEFAULT = 300 };

static const char *expect_launcher(const char *key, const char *value) {
    (void)key;
    return strcmp(value, "ssh") == 0 || launcher_words_find(value) ? NULL
                                                                   : "ssh, srun, oarsh, or {attach: [WORDS]}";
}

static const struct bind_field launcher_fields[] = {
    {BIND_ROW("by", BIND_TEXT, testbed_launcher, by), .expect = expect_launcher},
    {BIND_ROW("start", BIND_TEXTS, testbed_launcher, start)},
    {BIND_ROW("attach", BIND_TEXTS, testbed_launcher, attach)},
};

#define ROW(key, type, member) BIND_ROW(key, type, testbed_settings, member)
#define RANGED(key, type, member, least, most) BIND_RANGED(key, type, testbed_settings, member, least, most)

static const struct bind_field fields[] = {
    {.key = "hosts", .type = BIND_LATER},
    {.key = "spares", .type = BIND_LATER},
    {ROW("user", BIND_TEXT, user)},
    {RANGED("port", BIND_INTEGER, port, 1, 65535)},
    {ROW("identity", BIND_TEXTS, identities)},
    {ROW("jump", BIND_TEXT, jump)},
    {ROW("ssh-config", BIND_TEXT, config)},
    {ROW("known-hosts", BIND_TEXT, known_hosts)},
    {ROW("host-keys", BIND_CHOICE, host_keys), .choices = host_key_names},
    {RANGED("window", BIND_INTEGER, window, 1, SSH_WINDOW_MAX)},
    {RANGED("timeout", BIND_QUANTITY, timeout, 1, TIMEOUT_MAX), .dimension = UNIT_TIME},
    {ROW("agent", BIND_CHOICE, agent), .choices = agent_names},
    {ROW("launcher", BIND_MAPPING, launcher), BIND_FIELDS(launcher_fields), .scalar = "by"},
    {RANGED("lease", BIND_QUANTITY, lease, LEASE_LEAST, LEASE_MAX), .dimension = UNIT_TIME},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

/* ---- Hosts -----------------------------------------------------------------------------------------------
 */

/* A failure has the place of what was written, also of the text of a list. */
static int add_hosts(struct testbed_settings *settings, const char *text, const char *file, size_t line,
                     size_t column, struct failure *failure) {
    return failure_place(failure, host_list_parse(&settings->hosts, text, failure), file, line, column);
}

static int bind_hosts_file(struct testbed_settings *settings, const struct testbed_written *written,
                           const char *key, const struct document_node *node, struct failure *failure) {
    static const struct bind_field file_field[] = {{.key = "file", .type = BIND_TEXT, .required = true}};
    cleanup_free char *file = NULL;
    int r = bind_mapping(written->document, node, key, file_field, 1, &file, failure);
    if (r < 0)
        return r;
    cleanup_free char *path = file[0] == '/' ? xstrdup(file) : file_join(written->folder, file);
    if (!file_exists(path))
        return bind_refuse(written->document, document_get(node, "file"), failure, "there is no file '%s'",
                           path);
    return host_list_read(&settings->hosts, path, failure);
}

static int bind_hosts_text(struct testbed_settings *settings, const struct testbed_written *written,
                           const char *key, const struct document_node *node, struct failure *failure) {
    if (!node->text || node->kind == DOCUMENT_NULL)
        return bind_refuse(written->document, node, failure,
                           "%s is %s, expected names or ranges such as dahu-[1-32].grenoble, a list of "
                           "them, or {file: FILE}",
                           key, document_kind_name(node->kind));
    return add_hosts(settings, node->text, written->document->file, node->line, node->column, failure);
}

static int bind_hosts(struct testbed_settings *settings, const struct testbed_written *written,
                      const char *key, const struct document_node *node, struct failure *failure) {
    if (node->kind == DOCUMENT_MAPPING)
        return bind_hosts_file(settings, written, key, node, failure);
    if (node->kind != DOCUMENT_SEQUENCE)
        return bind_hosts_text(settings, written, key, node, failure);
    int r = 0;
    for (size_t i = 0; r == 0 && i < node->count; i++)
        r = bind_hosts_text(settings, written, key, node->items[i], failure);
    return r;
}

/* LISTS are of the command line, by OPTION. */
static int take_given(struct testbed_settings *settings, const char *const *lists, size_t count,
                      const char *option, struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = lists[i][0] == '@' ? host_list_read(&settings->hosts, lists[i] + 1, failure)
                               : add_hosts(settings, lists[i], option, 0, 0, failure);
    return r;
}

/* ---- Names -----------------------------------------------------------------------------------------------
 */

struct named_host {
    const char *name, *destination;
};

static int compare_named(const void *a, const void *b) {
    return strcasecmp(((const struct named_host *)a)->name, ((const struct named_host *)b)->name);
}

static void free_names(struct testbed_settings *settings) {
    for (size_t i = 0; i < settings->name_count; i++)
        free(settings->names[i]);
    free(take_pointer(settings->names));
    settings->name_count = 0;
}

/* The results of nodes are distinguished by the node's name, which is a folder of the archive too. */
static int name_nodes(struct testbed_settings *settings, const char *file, size_t line, size_t column,
                      struct failure *failure) {
    size_t count = settings->hosts.count;
    if (count == 0)
        return failure_input(failure, file, line, column,
                             "the list of hosts is empty, expected one at least");
    if (count > NODE_GROUP_MAX)
        return failure_input(failure, file, line, column, "there are %zu hosts, expected at most %d", count,
                             NODE_GROUP_MAX);
    free_names(settings);
    settings->names = xcalloc(count, sizeof *settings->names);
    settings->name_count = count;
    cleanup_free struct named_host *sorted = xcalloc(count, sizeof *sorted);
    for (size_t i = 0; i < count; i++) {
        settings->names[i] = ssh_node_name(settings->hosts.names[i]);
        int r = ssh_node_check_name(settings->names[i], settings->hosts.names[i], failure);
        if (r < 0)
            return failure_place(failure, r, file, line, column);
        sorted[i] = (struct named_host){settings->names[i], settings->hosts.names[i]};
    }
    qsort(sorted, count, sizeof *sorted, compare_named);
    for (size_t i = 1; i < count; i++)
        if (compare_named(&sorted[i - 1], &sorted[i]) == 0)
            return failure_input(failure, file, line, column,
                                 "two nodes would be called '%s': '%s' and '%s'; expected names that differ "
                                 "(an alias in ssh's configuration gives one)",
                                 sorted[i].name, sorted[i - 1].destination, sorted[i].destination);
    return 0;
}

/* Behind the hosts, of which none may be one. NODE is what is written; NULL: nothing. */
static int add_spares(struct testbed_settings *settings, const struct testbed_written *written,
                      const struct document_node *node, struct failure *failure) {
    static const char option[] = "--spares";
    bool given = written->spare_count > 0;
    const char *file = given ? option : written->document->file;
    size_t line = given || !node ? 0 : node->line, column = given || !node ? 0 : node->column;
    struct testbed_settings own = {0};
    if (!given && !node)
        return 0;
    int r = given ? take_given(&own, written->spares, written->spare_count, option, failure)
                  : bind_hosts(&own, written, "'spares'", node, failure);
    for (size_t i = 0; r == 0 && i < own.hosts.count; i++) {
        size_t before = settings->hosts.count;
        r = host_list_add(&settings->hosts, own.hosts.names[i], failure);
        if (r == 0 && settings->hosts.count == before)
            r = failure_input(failure, file, line, column,
                              "the spare '%s' is one of the hosts too, expected others", own.hosts.names[i]);
    }
    host_list_clear(&own.hosts);
    return r < 0 ? r : name_nodes(settings, file, line, column, failure); /* once more, with them */
}

/* HOSTS is what is written; NULL: nothing. */
static int add_nodes(struct testbed_settings *settings, const struct testbed_written *written,
                     const struct document_node *hosts, struct failure *failure) {
    static const char option[] = "--nodes";
    const struct document_node *node = written->node;
    if (written->node_count > 0) {
        int r = take_given(settings, written->nodes, written->node_count, option, failure);
        return r < 0 ? r : name_nodes(settings, option, 0, 0, failure);
    }
    if (hosts) {
        int r = bind_hosts(settings, written, "'hosts'", hosts, failure);
        return r < 0 ? r : name_nodes(settings, written->document->file, hosts->line, hosts->column, failure);
    }
    return bind_refuse(written->document, node ? node : document_get(written->document->root, "testbed"),
                       failure,
                       "the testbed has no 'hosts', expected {hosts: 'dahu-[1-32].grenoble'} or --nodes");
}

/* ---- Paths -----------------------------------------------------------------------------------------------
 */

static const char *home_folder(void) {
    const char *home = getenv("HOME");
    if (home && home[0])
        return home;
    const struct passwd *entry = getpwuid(getuid());
    return entry && entry->pw_dir ? entry->pw_dir : "/";
}

/* Makes *PATH absolute: below the home folder, or that of the campaign. NULL stays. */
static void place_path(char **path, const char *folder) {
    if (!*path || (*path)[0] == '/')
        return;
    bool home = (*path)[0] == '~' && (*path)[1] == '/';
    char *placed = home ? file_join(home_folder(), *path + 2) : file_join(folder, *path);
    free(*path);
    *path = placed;
}

static bool has_config(const struct testbed_settings *settings) {
    return settings->config && strcmp(settings->config, "none") != 0;
}

static void place_paths(struct testbed_settings *settings, const char *folder) {
    if (has_config(settings))
        place_path(&settings->config, folder);
    place_path(&settings->known_hosts, folder);
    for (size_t i = 0; i < settings->identities.count; i++)
        place_path(&settings->identities.items[i], folder);
}

/* A file that is named and is not there would surface as a login that is refused, on every node. */
static int check_files(const struct testbed_settings *settings, const struct testbed_written *written,
                       struct failure *failure) {
    const struct document_node *node = written->node;
    for (size_t i = 0; i < settings->identities.count; i++) {
        const char *path = settings->identities.items[i];
        const struct document_node *at = document_get(node, "identity");
        if (at && at->kind == DOCUMENT_SEQUENCE)
            at = at->items[i];
        if (at && access(path, R_OK) < 0)
            return bind_refuse(written->document, at, failure, "cannot read the key '%s': %s", path,
                               strerror(errno));
    }
    const struct document_node *at = document_get(node, "ssh-config");
    if (at && has_config(settings) && access(settings->config, R_OK) < 0)
        return bind_refuse(written->document, at, failure, "cannot read '%s': %s", settings->config,
                           strerror(errno));
    return 0;
}

/* ---- The launcher ----------------------------------------------------------------------------------------
 */

const struct launcher_words *host_settings_launcher(const struct testbed_settings *settings,
                                                    struct launcher_words *ret_words) {
    const struct testbed_launcher *launcher = &settings->launcher;
    if (launcher->by)
        return launcher_words_find(launcher->by);
    *ret_words = (struct launcher_words){.start = (const char *const *)launcher->start.items,
                                         .attach = (const char *const *)launcher->attach.items};
    return launcher->attach.count > 0 ? ret_words : NULL;
}

/* What is said of a connection that is not made would be passed over without a word. */
static int check_launcher(const struct testbed_settings *settings, const struct testbed_written *written,
                          struct failure *failure) {
    static const char *const of_ssh[] = {"user",        "port",      "identity", "jump",   "ssh-config",
                                         "known-hosts", "host-keys", "window",   "timeout"};
    const struct document_node *node = written->node ? document_get(written->node, "launcher") : NULL;
    const struct testbed_launcher *launcher = &settings->launcher;
    struct launcher_words words;
    if (!node)
        return 0;
    size_t words_given = launcher->start.count + launcher->attach.count;
    if (node->count == 0 && !launcher->by)
        return bind_refuse(written->document, node, failure,
                           "'launcher' is empty, expected ssh, srun, oarsh, or {attach: [WORDS]}");
    if (!launcher->by && words_given == 0)
        return 0; /* as a resolved campaign has it: libssh */
    if (launcher->by && words_given > 0)
        return bind_refuse(written->document, node, failure,
                           "'launcher' has 'by' beside words, expected one of the two");
    if (!launcher->by && launcher->attach.count == 0)
        return bind_refuse(written->document, node, failure,
                           "'launcher' has 'start' without 'attach', expected both, or 'attach' alone");
    const char *problem = NULL, *key = "attach";
    if (!launcher->by)
        problem = launcher_words_problem((const char *const *)launcher->attach.items);
    if (!problem && launcher->start.count > 0) {
        key = "start";
        problem = launcher_words_problem((const char *const *)launcher->start.items);
    }
    if (problem)
        return bind_refuse(written->document, document_get(node, key), failure,
                           "'%s' lacks what it needs, expected %s", key, problem);
    for (size_t i = 0; host_settings_launcher(settings, &words) && i < sizeof of_ssh / sizeof *of_ssh; i++) {
        const struct document_node *other = document_get(written->node, of_ssh[i]);
        if (other)
            return bind_refuse(
                written->document, other, failure,
                "'%s' is of connections by libssh, and 'launcher' names another way; expected it "
                "among the words of the launcher, or in the configuration of its program",
                of_ssh[i]);
    }
    return 0;
}

/* ---- All of it -------------------------------------------------------------------------------------------
 */

void host_settings_free(struct testbed_settings *settings) {
    if (!settings)
        return;
    free_names(settings);
    host_list_clear(&settings->hosts);
    bind_clear(fields, FIELD_COUNT, settings);
    free(settings);
}

static void free_settings_pointer(struct testbed_settings **settings) {
    host_settings_free(*settings);
}

int host_settings_bind(const struct testbed_written *written, struct testbed_settings **ret,
                       struct failure *failure) {
    cleanup(free_settings_pointer) struct testbed_settings *settings = xcalloc(1, sizeof *settings);
    settings->window = SSH_WINDOW_DEFAULT;
    settings->timeout = (double)SSH_TIMEOUT_DEFAULT_NS / EVENT_SECOND;
    settings->lease = LEASE_DEFAULT;
    const struct document_node *node = written->node;
    int r =
        node ? bind_mapping(written->document, node, "'testbed'", fields, FIELD_COUNT, settings, failure) : 0;
    if (r < 0)
        return r;
    place_paths(settings, written->folder);
    r = check_files(settings, written, failure);
    r = r < 0 ? r : check_launcher(settings, written, failure);
    r = r < 0 ? r : add_nodes(settings, written, document_get(node, "hosts"), failure);
    settings->host_count = settings->hosts.count;
    r = r < 0 ? r : add_spares(settings, written, document_get(node, "spares"), failure);
    if (r == 0)
        *ret = take_pointer(settings);
    return r;
}

/* ---- For people, and for programs */

static void describe_words(const char *step, const char *const *words, struct text *ret) {
    text_printf(ret, "%-12s %s by", "launcher", step);
    for (size_t i = 0; words[i]; i++)
        text_printf(ret, " %s", words[i]);
    text_append_character(ret, '\n');
}

static void describe_login(const struct testbed_settings *settings, struct text *ret) {
    struct launcher_words own;
    const struct launcher_words *words = host_settings_launcher(settings, &own);
    if (words && words->start)
        describe_words("started", words->start, ret);
    if (words) {
        describe_words("reached", words->attach, ret);
        return;
    }
    text_printf(ret, "%-12s user %s, port ", "ssh", settings->user ? settings->user : "as configured");
    if (settings->port)
        text_printf(ret, "%lld", (long long)settings->port);
    else
        text_append_string(ret, "as configured");
    for (size_t i = 0; i < settings->identities.count; i++)
        text_printf(ret, "%s%s", i ? ", " : ", key ", settings->identities.items[i]);
    if (settings->jump)
        text_printf(ret, ", through %s", settings->jump);
    text_printf(ret,
                "\n%-12s host keys that nobody knows are %s; %lld connections set up at once, %g s a step\n",
                "", settings->host_keys == HOST_KEYS_KNOWN ? "refused" : "noted with the run, then expected",
                (long long)settings->window, settings->timeout);
}

int host_settings_describe(const struct testbed_settings *settings, struct text *ret) {
    static const char *const agents[] = {
        [AGENT_AUTO] = "the binary where it runs, built from its source where it does not",
        [AGENT_BINARY] = "the binary",
        [AGENT_SOURCE] = "built from its source on every node"};
    char lease[NUMBER_TEXT_SIZE];
    size_t count = settings->host_count, spares = settings->hosts.count - count;
    text_printf(ret, "%-12s %zu: ", "nodes", count);
    int r = host_list_fold((const char *const *)settings->hosts.names, count, ret);
    if (r == 0 && spares > 0) {
        text_printf(ret, "\n%-12s %zu: ", "spares", spares);
        r = host_list_fold((const char *const *)settings->hosts.names + count, spares, ret);
    }
    if (r < 0)
        return r;
    text_append_character(ret, '\n');
    describe_login(settings, ret);
    text_printf(ret, "%-12s %s; it leaves when it has not heard from here for %s\n", "agent",
                agents[settings->agent], number_describe_duration(settings->lease, lease));
    struct launcher_words words;
    return text_printf(
        ret, "%-12s on each: %slibc, and a folder that programs run from\n", "expected",
        host_settings_launcher(settings, &words) ? "" : "sshd that lets the user in without a question, ");
}

void host_settings_resolve(const struct testbed_settings *settings, cJSON *object) {
    cJSON *hosts = json_add_array(object, "hosts");
    cJSON *spares = settings->host_count < settings->hosts.count ? json_add_array(object, "spares") : NULL;
    for (size_t i = 0; i < settings->hosts.count; i++)
        json_add_string(i < settings->host_count ? hosts : spares, NULL, settings->hosts.names[i]);
    bind_resolve(fields, FIELD_COUNT, settings, object);
}
