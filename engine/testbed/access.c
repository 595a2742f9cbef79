#include "engine/testbed/access.h"

#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/launch/agent-transport.h"
#include "engine/remote/launch/package.h"
#include "engine/remote/ssh/client.h"
#include "engine/testbed/scheduler-environment.h"

#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char *const host_key_names[] = {
    [HOST_KEYS_KNOWN] = "known", [HOST_KEYS_ACCEPT_NEW] = "accept-new", NULL};
static const char *const agent_names[] = {
    [AGENT_AUTO] = "auto", [AGENT_BINARY] = "binary", [AGENT_SOURCE] = "source", NULL};

/* In seconds. A lease must last at least as long as reconnecting after a broken connection. */
enum { LEASE_LEAST = 2, LEASE_MAX = 30 * 86400, TIMEOUT_MAX = 3600, LEASE_DEFAULT = 300 };

static const char *expect_launcher(const char *key, const char *value) {
    (void)key;
    return strcmp(value, "ssh") == 0 || launcher_words_find(value) ? NULL
                                                                   : "ssh, srun, oarsh, or {attach: [WORDS]}";
}

/* For the .expect of `sudo`: its words become one argument of the agent, joined by commas, so that only plain
 * characters are accepted. */
static const char *expect_sudo(const char *key, const char *value) {
    (void)key;
    return agent_package_is_plain(value) && !strchr(value, ',')
               ? NULL
               : "yes, no, or the words of a command such as [sudo, -n], of letters, digits and _ @ % + = : "
                 ". / -";
}

static const struct bind_field launcher_fields[] = {
    {BIND_ROW("by", BIND_TEXT, access_launcher, by), .expect = expect_launcher},
    {BIND_ROW("start", BIND_TEXTS, access_launcher, start)},
    {BIND_ROW("attach", BIND_TEXTS, access_launcher, attach)},
};

#define ROW(key, type, member) BIND_ROW(key, type, access_settings, member)
#define RANGED(key, type, member, smaller_of, most)                                                          \
    BIND_RANGED(key, type, access_settings, member, smaller_of, most)

const struct bind_field access_fields[ACCESS_FIELDS] = {
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
    {DEPLOY_ROW(access_settings, deploy)},
    {RANGED("lease", BIND_QUANTITY, lease, LEASE_LEAST, LEASE_MAX), .dimension = UNIT_TIME},
    {ROW("sudo", BIND_TEXTS, sudo), .expect = expect_sudo},
};

/* ---- Paths */

static const char *home_folder(void) {
    const char *home = getenv("HOME");
    if (home && home[0])
        return home;
    const struct passwd *entry = getpwuid(getuid());
    return entry && entry->pw_dir ? entry->pw_dir : "/";
}

void access_place_path(char **path, const char *folder) {
    if (!*path || (*path)[0] == '/')
        return;
    bool home = (*path)[0] == '~' && (*path)[1] == '/';
    char *placed = home ? file_join(home_folder(), *path + 2) : file_join(folder, *path);
    free(*path);
    *path = placed;
}

static bool has_config(const struct access_settings *settings) {
    return settings->config && strcmp(settings->config, "none") != 0;
}

static void make_paths_absolute(struct access_settings *settings, const char *folder) {
    if (has_config(settings))
        access_place_path(&settings->config, folder);
    access_place_path(&settings->known_hosts, folder);
    for (size_t i = 0; i < settings->identities.count; i++)
        access_place_path(&settings->identities.items[i], folder);
}

/* Refuses files that cannot be read. Otherwise ssh would ignore them, and every node would refuse the login.
 */
static int check_files(const struct access_settings *settings, const struct testbed_written *written,
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

/* ---- The launcher */

const struct launcher_words *access_launcher(const struct access_settings *settings,
                                             struct launcher_words *ret_words) {
    const struct access_launcher *launcher = &settings->launcher;
    if (launcher->by)
        return launcher_words_find(launcher->by);
    *ret_words = (struct launcher_words){.start = (const char *const *)launcher->start.items,
                                         .attach = (const char *const *)launcher->attach.items};
    return launcher->attach.count > 0 ? ret_words : NULL;
}

bool access_kills_agents(const struct access_settings *settings) {
    const char *by = settings->launcher.by;
    return by && (strcmp(by, "srun") == 0 || strcmp(by, "oarsh") == 0);
}

/* Settings that have a meaning for connections by libssh only. */
static const char *const libssh_keys[] = {"user",        "port",      "identity", "jump",   "ssh-config",
                                          "known-hosts", "host-keys", "window",   "timeout"};
enum { LIBSSH_KEYS = sizeof libssh_keys / sizeof *libssh_keys };

void access_leave_out(const struct access_settings *settings, cJSON *object) {
    struct launcher_words words;
    for (size_t i = 0; access_launcher(settings, &words) && i < LIBSSH_KEYS; i++)
        cJSON_DeleteItemFromObjectCaseSensitive(object, libssh_keys[i]);
}

/* Refuses a launcher that is incomplete, and settings of ssh beside another launcher, which would be ignored.
 */
static int check_launcher(const struct access_settings *settings, const struct testbed_written *written,
                          struct failure *failure) {
    const struct document_node *node = written->node ? document_get(written->node, "launcher") : NULL;
    const struct access_launcher *launcher = &settings->launcher;
    struct launcher_words words;
    if (!node)
        return 0;
    size_t words_given = launcher->start.count + launcher->attach.count;
    if (node->count == 0 && !launcher->by)
        return bind_refuse(written->document, node, failure,
                           "'launcher' is empty, expected ssh, srun, oarsh, or {attach: [WORDS]}");
    if (!launcher->by && words_given == 0)
        return 0; /* libssh, as a resolved campaign writes it */
    if (launcher->by && words_given > 0)
        return bind_refuse(written->document, node, failure,
                           "'launcher' has both 'by' and words of a command; remove one of them");
    if (!launcher->by && launcher->attach.count == 0)
        return bind_refuse(written->document, node, failure,
                           "'launcher' has 'start' without 'attach'; give both, or 'attach' alone");
    const char *problem = NULL, *key = "attach";
    if (!launcher->by)
        problem = launcher_words_problem((const char *const *)launcher->attach.items);
    if (!problem && launcher->start.count > 0) {
        key = "start";
        problem = launcher_words_problem((const char *const *)launcher->start.items);
    }
    if (problem)
        return bind_refuse(written->document, document_get(node, key), failure,
                           "'%s' lacks a placeholder; expected %s", key, problem);
    for (size_t i = 0; access_launcher(settings, &words) && i < LIBSSH_KEYS; i++) {
        const struct document_node *other = document_get(written->node, libssh_keys[i]);
        if (other)
            return bind_refuse(
                written->document, other, failure,
                "'%s' is used only where assay connects by ssh itself, and 'launcher' names another "
                "program; write it among the words of the launcher, or in the configuration of that program",
                libssh_keys[i]);
    }
    return 0;
}

/* Replaces "yes" by the command `sudo -n` and "no" by no command; other words stay. */
static void normalize_sudo(struct bind_texts *sudo) {
    static const char *const words[] = {"no", "false", "off", "yes", "true", "on"};
    enum { YES = 3, WORDS = 6 };
    size_t i = 0;
    while (i < WORDS && (sudo->count != 1 || strcasecmp(sudo->items[0], words[i]) != 0))
        i++;
    if (i < WORDS)
        bind_texts_clear(sudo);
    if (i >= YES && i < WORDS) {
        bind_texts_add(sudo, "sudo");
        bind_texts_add(sudo, "-n");
    }
}

void access_init(struct access_settings *settings) {
    settings->window = SSH_WINDOW_DEFAULT;
    settings->timeout = (double)SSH_TIMEOUT_DEFAULT_NS / EVENT_SECOND;
    settings->lease = LEASE_DEFAULT;
}

int access_check(struct access_settings *settings, const struct testbed_written *written,
                 struct failure *failure) {
    make_paths_absolute(settings, written->folder);
    normalize_sudo(&settings->sudo);
    int r = check_files(settings, written, failure);
    r = r < 0 ? r : check_launcher(settings, written, failure);
    return r < 0 ? r : deploy_check(&settings->deploy, written, failure);
}

/* ---- For people, and for programs */

/* Appends a line with a launcher's command. STEP: "started" or "reached". */
static void describe_words(const char *step, const char *const *words, struct text *ret) {
    text_printf(ret, "%-12s %s by", "launcher", step);
    for (size_t i = 0; words[i]; i++)
        text_printf(ret, " %s", words[i]);
    text_append_character(ret, '\n');
}

/* WORDS with the character BETWEEN between them; NULL: there are no words. The caller frees. */
static char *join(const struct bind_texts *words, char between) {
    struct text text;
    text_init(&text, 64 << 10);
    for (size_t i = 0; i < words->count; i++)
        text_printf(&text, "%.*s%s", i > 0, &between, words->items[i]);
    return words->count ? text_take(&text) : NULL;
}

/* Appends lines on how nodes are reached: the launcher's commands, or ssh's settings. */
static void describe_login(const struct access_settings *settings, struct text *ret) {
    struct launcher_words own;
    const struct launcher_words *words = access_launcher(settings, &own);
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
    text_printf(ret, "\n%-12s unknown host keys are %s; %lld connections set up at once, %g s a step\n", "",
                settings->host_keys == HOST_KEYS_KNOWN ? "refused" : "noted with the run, then expected",
                (long long)settings->window, settings->timeout);
}

/* Appends lines for 'assay check': login, image, agent, and what the nodes must have. */
int access_describe(const struct access_settings *settings, struct text *ret) {
    static const char *const agents[] = {
        [AGENT_AUTO] = "the binary where it runs, built from its source where it does not",
        [AGENT_BINARY] = "the binary",
        [AGENT_SOURCE] = "built from its source on every node"};
    char lease[NUMBER_TEXT_SIZE];
    struct launcher_words words;
    describe_login(settings, ret);
    deploy_describe(&settings->deploy, ret);
    text_printf(ret, "%-12s %s; it ends when it hears nothing from the engine for %s\n", "agent",
                agents[settings->agent], number_describe_duration(settings->lease, lease));
    if (settings->sudo.count > 0) {
        cleanup_free char *sudo = join(&settings->sudo, ' ');
        text_printf(ret, "%-12s controls are set by '%s'\n", "sudo", sudo);
    }
    return text_printf(ret, "%-12s on each: %slibc, and a folder that programs run from\n", "expected",
                       access_launcher(settings, &words) ? ""
                                                         : "sshd that lets the user in without a question, ");
}

/* ---- Nodes */

struct access {
    struct ssh_nodes *nodes;
    struct bind_texts start, attach;
    struct launcher_words words; /* start and attach; zeros: the launcher's words were not changed */
    struct agent_image image;    /* the system to deploy; zeros: none */
    char *accepted_hosts;        /* file of the run for new host keys; NULL: unknown host keys are refused */
};

static int64_t nanoseconds(double seconds) {
    return (int64_t)llround(seconds * 1e9);
}

static int64_t smaller_of(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* The time-outs of links to agents. With a short lease heartbeats are sent more often, and a silent link is
 * closed while there is still time to reconnect before the lease ends. */
static struct agent_link_policy make_policy(const struct access_settings *settings) {
    int64_t lease = nanoseconds(settings->lease);
    return (struct agent_link_policy){.lease_ns = lease,
                                      .heartbeat_ns = smaller_of(AGENT_LINK_HEARTBEAT_NS, lease / 8),
                                      .silence_ns = smaller_of(AGENT_LINK_SILENCE_NS, lease / 4)};
}

struct ssh_client_options access_ssh_options(const struct access_settings *settings,
                                             const char *accepted_hosts) {
    return (struct ssh_client_options){.user = settings->user,
                                       .port = (unsigned)settings->port,
                                       .identities = (const char *const *)settings->identities.items,
                                       .identity_count = settings->identities.count,
                                       .jump = settings->jump,
                                       .config = settings->config,
                                       .known_hosts = settings->known_hosts,
                                       .accepted_hosts = accepted_hosts,
                                       .window = (unsigned)settings->window,
                                       .timeout_ns = nanoseconds(settings->timeout)};
}

/* Makes srun run without the user's variables for Slurm. Other launchers log in to a machine, whose
 * environment is its own, and their WORDS are returned unchanged. */
static const struct launcher_words *clear_environment(struct access *access,
                                                      const struct launcher_words *words) {
    if (!words || strcmp(file_base_name(words->attach[0]), "srun") != 0)
        return words;
    if (words->start)
        scheduler_environment_words(words->start, &access->start);
    scheduler_environment_words(words->attach, &access->attach);
    access->words = (struct launcher_words){.start = (const char *const *)access->start.items,
                                            .attach = (const char *const *)access->attach.items};
    return &access->words;
}

static void close_pointer(struct access **access) {
    access_close(*access);
}

/* RET: what makes transports to the nodes by ssh; WORDS: by another launcher; access_close(). */
int access_open(const struct access_settings *settings, const struct testbed_request *request,
                const struct launcher_words *words, const char *known_hosts, struct access **ret,
                struct failure *failure) {
    cleanup(close_pointer) struct access *access = xcalloc(1, sizeof *access);
    int r = deploy_open(&settings->deploy, request, &access->image, failure);
    if (r < 0)
        return r;
    if (known_hosts)
        access->accepted_hosts = xstrdup(known_hosts);
    else if (settings->host_keys == HOST_KEYS_ACCEPT_NEW)
        access->accepted_hosts = file_join(request->folder, ARCHIVE_KNOWN_HOSTS);
    cleanup_free char *label = xformat("%s:%s", request->run_name, request->run_id);
    cleanup_free char *prefix = xformat("assay-%s", request->run_id);
    cleanup_free char *sudo = join(&settings->sudo, ',');
    struct ssh_nodes_options options = {.ssh = access_ssh_options(settings, access->accepted_hosts),
                                        .agent = (enum agent_kind)settings->agent,
                                        .workspace = request->workspace,
                                        .label = label,
                                        .sudo = sudo,
                                        .folder_prefix = prefix,
                                        .leave_controls = request->leave_controls,
                                        .remove_directory = true,
                                        .launcher = clear_environment(access, words),
                                        .image = access->image.tar ? &access->image : NULL,
                                        .policy = make_policy(settings)};
    options.ssh.accepts_no_more = known_hosts;
    r = ssh_nodes_new(request->loop, &options, request->installation, &access->nodes, failure);
    if (r == 0)
        *ret = take_pointer(access);
    return r;
}

void access_close(struct access *access) {
    if (!access)
        return;
    ssh_nodes_free(access->nodes);
    system_image_clear(&access->image);
    bind_texts_clear(&access->start);
    bind_texts_clear(&access->attach);
    free(access->accepted_hosts);
    free(access);
}

struct ssh_nodes *access_nodes(const struct access *access) {
    return access->nodes;
}

struct testbed_agent access_agent(const struct testbed *testbed, const struct transport *transport) {
    const struct agent_arrival *agent = agent_transport_arrival(transport);
    (void)testbed;
    if (!agent)
        return (struct testbed_agent){0};
    return (struct testbed_agent){
        .path = agent->path, .delivered = agent->delivered, .built = agent->built, .damage = agent->damage};
}
