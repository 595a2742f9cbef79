#include "engine/remote/ssh/config.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/channel/child.h"
#include "engine/remote/channel/run.h"

#include <errno.h>
#include <fnmatch.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    ANSWER_MAX = 4 << 20, /* bytes of ssh's output, and of one configuration file */
    IDENTITIES_MAX = 100,
    PATTERNS_MAX = 1 << 20,
    PASSWD_SIZE = 16384,
    TIMEOUT_S = 20, /* of ssh, whose configuration may run commands (Match exec) */
};

/* ssh's output for the hosts that match the same patterns. */
struct answer {
    struct answer *next;
    char *class;
    char *output;
    bool names_host; /* its "hostname" is the name that was asked for, and differs for each host */
};

struct ssh_config {
    char *path; /* the file for ssh -F; NULL: ssh's usual files */
    char *home;
    bool none;
    struct answer *answers;
    bool scanned;    /* the files were read for their patterns */
    bool individual; /* the patterns do not tell which hosts have equal settings: ssh is run for each */
    char **patterns; /* of all Host lines */
    size_t pattern_count, pattern_capacity;
};

void ssh_host_clear(struct ssh_host *host) {
    for (size_t i = 0; i < host->identity_count; i++)
        free(host->identities[i]);
    for (size_t i = 0; i < host->certificate_count; i++)
        free(host->certificates[i]);
    free(host->identities);
    free(host->certificates);
    free(host->host_name);
    free(host->user);
    free(host->identity_agent);
    free(host->proxy_jump);
    free(host->proxy_command);
    free(host->known_hosts);
    free(host->revoked_keys);
    free(host->host_key_alias);
    *host = (struct ssh_host){0};
}

static const struct passwd *password_entry(char buffer[static PASSWD_SIZE], struct passwd *entry) {
    struct passwd *found = NULL;
    (void)getpwuid_r(getuid(), entry, buffer, PASSWD_SIZE, &found);
    return found;
}

/* The file for ssh -F where HOME is not the home folder of the password file, the only one that ssh uses;
 * NULL: it is. The caller frees. */
static char *find_path(const char *home) {
    char buffer[PASSWD_SIZE];
    struct passwd entry;
    const struct passwd *own = password_entry(buffer, &entry);
    if (own && strcmp(own->pw_dir, home) == 0)
        return NULL;
    cleanup_free char *path = xformat("%s/.ssh/config", home);
    static const char system_file[] = "/etc/ssh/ssh_config";
    const char *found = access(path, R_OK) == 0          ? path
                        : access(system_file, R_OK) == 0 ? system_file
                                                         : "none";
    return xstrdup(found);
}

int ssh_config_new(const char *path, const char *home, struct ssh_config **ret, struct failure *failure) {
    bool none = path && (!path[0] || strcmp(path, "none") == 0);
    if (path && !none && access(path, R_OK) < 0)
        return failure_set_kind(failure, FAILURE_INPUT, -errno, "cannot read the ssh configuration '%s': %s",
                                path, strerror(errno));
    struct ssh_config *config = xcalloc(1, sizeof *config);
    config->none = none;
    config->path = path ? xstrdup(path) : find_path(home);
    config->home = xstrdup(home);
    *ret = config;
    return 0;
}

void ssh_config_free(struct ssh_config *config) {
    if (!config)
        return;
    while (config->answers) {
        struct answer *answer = config->answers;
        config->answers = answer->next;
        free(answer->class);
        free(answer->output);
        free(answer);
    }
    for (size_t i = 0; i < config->pattern_count; i++)
        free(config->patterns[i]);
    free(config->patterns);
    free(config->path);
    free(config->home);
    free(config);
}

/* ---- running ssh */

/* Copies ": " and the first line of ssh's stderr that is neither its version nor a debug message. */
static void find_complaint(const char *errors, char *ret, size_t size) {
    for (const char *at = errors; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        if (strncmp(at, "OpenSSH_", 8) == 0 || strncmp(at, "debug", 5) == 0)
            continue;
        snprintf(ret, size, ": %.*s", (int)strcspn(at, "\r\n"), at);
        return;
    }
}

/* A run of `ssh -G HOST`, waited for in an event loop of its own. */
struct question {
    struct event_loop *loop;
    struct channel_run *run; /* NULL: ssh has ended */
    struct remote_channel_end end;
    struct text *output, *errors;
};

static void on_answer(const struct channel_run_result *result, const struct failure *failure, void *context) {
    (void)failure; /* never set for a child process */
    struct question *question = context;
    question->run = NULL;
    question->end = result->end;
    (void)text_append(question->output, result->output, result->output_length);
    (void)text_append(question->errors, result->error, result->error_length);
    event_loop_stop(question->loop);
}

static void on_timeout(struct event_source *self, void *context) {
    (void)self;
    event_loop_stop(((struct question *)context)->loop);
}

/* Runs 'ssh -G' for HOST and waits until its answer is in QUESTION. -ETIMEDOUT after TIMEOUT_S. */
static int run_ssh(const struct ssh_config *config, const char *host, struct question *question,
                   struct failure *failure) {
    const char *const with_file[] = {"ssh", "-G", "-v", "-T", "-F", config->path, "--", host, NULL};
    const char *const without[] = {"ssh", "-G", "-v", "-T", "--", host, NULL};
    struct remote_channel *channel;
    struct event_source *timeout =
        event_loop_add_timer(question->loop, TIMEOUT_S * EVENT_SECOND, 0, on_timeout, question);
    question->run = channel_run_new(NULL, 0, ANSWER_MAX, on_answer, question);
    struct remote_channel_listener listener = channel_run_listener(question->run);
    int r = child_channel_open(
        question->loop, &(struct child_channel_options){.arguments = config->path ? with_file : without},
        &listener, &channel, failure);
    if (r == 0) {
        channel_run_started(question->run, channel);
        r = event_loop_run(question->loop, failure);
    } else {
        failure->kind = FAILURE_INPUT;
        failure_prefix(failure,
                       "the ssh configuration is read by 'ssh -G'; install OpenSSH's client, or expect no "
                       "configuration (none)");
    }
    if (r == 0 && question->run)
        r = failure_set(failure, -ETIMEDOUT, "'ssh -G %s' did not end within %d s", host, TIMEOUT_S);
    channel_run_cancel(question->run);
    event_source_remove(timeout);
    return r;
}

/* Runs ssh -G for HOST: OUTPUT gets the settings, and ERRORS the names of the files that ssh has read, or its
 * errors. */
static int run_ssh_checked(const struct ssh_config *config, const char *host, struct text *output,
                           struct text *errors, struct failure *failure) {
    struct failure own = {0};
    struct question question = {.loop = event_loop_new(&own), .output = output, .errors = errors};
    int r = question.loop ? run_ssh(config, host, &question, &own) : own.code;
    event_loop_free(question.loop);
    if (r < 0) {
        if (failure)
            *failure = own;
        return r;
    }
    if (question.end.exited && question.end.code == 0)
        return 0;
    char complaint[1024] = "";
    find_complaint(errors->bytes, complaint, sizeof complaint);
    return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "ssh refuses its configuration%s", complaint);
}

/* ---- which hosts have equal settings */

/* Notes the patterns of a Host line; a Match line, or a pattern that fnmatch() reads otherwise, sets
 * `individual`. */
static void scan_line(struct ssh_config *config, char *line) {
    static const char blanks[] = " \t\r\f=";
    char *rest, *keyword = strtok_r(line, blanks, &rest);
    bool host = keyword && strcasecmp(keyword, "host") == 0;
    if (!host && !(keyword && strcasecmp(keyword, "match") == 0))
        return;
    for (char *word; (word = strtok_r(NULL, blanks, &rest));) {
        if (!host) {
            config->individual |= strcasecmp(word, "all") != 0 && strcasecmp(word, "final") != 0 &&
                                  strcasecmp(word, "canonical") != 0;
            continue;
        }
        config->individual |= strpbrk(word, "[\\\"'") != NULL; /* fnmatch() and ssh differ about these */
        if (list_reserve(&config->patterns, &config->pattern_capacity, config->pattern_count + 1,
                         sizeof *config->patterns, PATTERNS_MAX) < 0) {
            config->individual = true;
            return;
        }
        config->patterns[config->pattern_count++] = xstrdup(word + (word[0] == '!'));
    }
}

/* Notes the patterns of all files that ssh has read, whose names are in ERRORS, included files, too. */
static void scan_files(struct ssh_config *config, const struct text *errors) {
    static const char reading[] = "debug1: Reading configuration data ";
    config->scanned = true;
    for (const char *at = errors->bytes; (at = strstr(at, reading));) {
        at += sizeof reading - 1;
        cleanup_free char *path = xstrndup(at, strcspn(at, "\r\n"));
        cleanup(text_clear) struct text content;
        text_init(&content, ANSWER_MAX);
        if (file_read(path, &content, NULL) < 0)
            config->individual = true;
        char *rest, *line = strtok_r(content.length ? content.bytes : NULL, "\n", &rest);
        for (; content.length && line; line = strtok_r(NULL, "\n", &rest))
            scan_line(config, line);
    }
}

/* The class of a host: a character for each pattern, whether it matches. Hosts of one class have equal
 * settings. With `individual` it is the host's name. The caller frees. */
static char *host_class(const struct ssh_config *config, const char *host) {
    if (config->individual)
        return xstrdup(host);
    char *class = xcalloc(config->pattern_count + 1, 1);
    for (size_t i = 0; i < config->pattern_count; i++)
        class[i] = fnmatch(config->patterns[i], host, 0) == 0 ? '+' : '-';
    return class;
}

static const struct answer *find_answer(const struct ssh_config *config, const char *class) {
    const struct answer *answer = config->answers;
    while (answer && strcmp(answer->class, class) != 0)
        answer = answer->next;
    return answer;
}

/* The value of the first line "KEY VALUE" of OUTPUT, or NULL. The caller frees. */
static char *find_value(const char *output, const char *key) {
    size_t length = strlen(key);
    for (const char *at = output; *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (strncmp(at, key, length) == 0 && at[length] == ' ')
            return xstrndup(at + length + 1, strcspn(at + length + 1, "\r\n"));
    return NULL;
}

/* True where ssh's OUTPUT for HOST is also valid for other hosts of its class: no value but "hostname"
 * contains the name. *RET_NAMES_HOST is set where "hostname" is the name itself. */
static bool is_about_class(const char *output, const char *host, bool *ret_names_host) {
    for (const char *at = output; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        cleanup_free char *line = xstrndup(at, strcspn(at, "\r\n"));
        const char *value = line + strcspn(line, " ");
        bool is_name = strncmp(line, "hostname ", 9) == 0;
        if (is_name && strcasecmp(value + 1, host) == 0)
            *ret_names_host = true;
        else if (strncmp(line, "host ", 5) != 0 && strcasestr(value, host))
            return false;
    }
    return true;
}

/* ---- reading ssh's output */

/* Expands "~", and the tokens and ${VARIABLES} of ssh_config(5) except hashes of the connection (%C). A
 * variable that is not set is left unchanged. The caller frees. */
static char *expand(const struct ssh_config *config, const struct ssh_host *host, const char *destination,
                    const char *value) {
    char port[16], uid[16], local[256] = "", buffer[PASSWD_SIZE];
    struct passwd entry;
    const struct passwd *own = password_entry(buffer, &entry);
    const char *user = own ? own->pw_name : uid,
               *alias = host->host_key_alias ? host->host_key_alias : destination;
    snprintf(port, sizeof port, "%u", host->port);
    snprintf(uid, sizeof uid, "%u", (unsigned)getuid());
    (void)gethostname(local, sizeof local - 1);
    cleanup_free char *short_local = xstrndup(local, strcspn(local, "."));
    const struct {
        char letter;
        const char *text;
    } tokens[] = {
        {'d', config->home}, {'h', host->host_name}, {'n', destination}, {'r', host->user}, {'p', port},
        {'i', uid},          {'l', local},           {'L', short_local}, {'u', user},       {'k', alias},
        {'%', "%"}};
    cleanup(text_clear) struct text text;
    text_init(&text, ANSWER_MAX);
    if (value[0] == '~' && value[1] == '/')
        (void)text_append_string(&text, config->home);
    for (const char *at = value + (text.length > 0); *at;) {
        const char *found = NULL;
        size_t length = 2, end = strcspn(at, "}");
        for (size_t i = 0; at[0] == '%' && i < sizeof tokens / sizeof tokens[0]; i++)
            if (at[1] == tokens[i].letter)
                found = tokens[i].text;
        if (strncmp(at, "${", 2) == 0 && at[end]) {
            cleanup_free char *name = xstrndup(at + 2, end - 2);
            found = getenv(name);
            length = end + 1;
        }
        (void)(found ? text_append_string(&text, found) : text_append_character(&text, *at));
        at += found ? length : 1;
    }
    return xstrdup(text.bytes);
}

/* Appends the expanded paths of all lines that begin with KEY, except "none". */
static void read_paths(const struct ssh_config *config, const char *output, const char *key,
                       const char *destination, const struct ssh_host *host, char ***ret, size_t *ret_count) {
    size_t capacity = 0, length = strlen(key);
    for (const char *at = output; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        if (strncmp(at, key, length) != 0)
            continue;
        const char *value = at + length;
        cleanup_free char *path = xstrndup(value, strcspn(value, "\r\n"));
        if (strcmp(path, "none") != 0 &&
            list_reserve(ret, &capacity, *ret_count + 1, sizeof **ret, IDENTITIES_MAX) == 0)
            (*ret)[(*ret_count)++] = expand(config, host, destination, path);
    }
}

/* The value of KEY as a number of 1 to 65535; 0: it is not set, or no such number. */
static unsigned find_number(const char *output, const char *key) {
    cleanup_free char *value = find_value(output, key);
    uint64_t number = 0;
    if (!value || !number_parse_uint64(value, strlen(value), &number) || number > 65535)
        return 0;
    return (unsigned)number;
}

static void read_agent(const struct ssh_config *config, const char *output, const char *destination,
                       struct ssh_host *host) {
    cleanup_free char *value = find_value(output, "identityagent");
    if (value && value[0] == '$') { /* the name of a variable; where it is not set there is no agent */
        const char *path = getenv(value + 1);
        host->identity_agent = xstrdup(path && path[0] ? path : "none");
    } else if (value) {
        host->identity_agent = expand(config, host, destination, value);
    }
}

/* Fills RET from ssh's OUTPUT for DESTINATION. */
static void read_answer(const struct ssh_config *config, const char *output, const char *destination,
                        bool names_host, struct ssh_host *ret) {
    ret->host_name = names_host ? xstrdup(destination) : find_value(output, "hostname");
    ret->user = find_value(output, "user");
    ret->port = find_number(output, "port");
    ret->connect_timeout = find_number(output, "connecttimeout");
    ret->proxy_jump = find_value(output, "proxyjump");
    ret->proxy_command = find_value(output, "proxycommand");
    ret->host_key_alias = find_value(output, "hostkeyalias");
    cleanup_free char *only = find_value(output, "identitiesonly");
    ret->identities_only = only && strcmp(only, "yes") == 0;
    cleanup_free char *users = find_value(output, "userknownhostsfile");
    cleanup_free char *systems = find_value(output, "globalknownhostsfile");
    ret->known_hosts = xformat("%s %s", users ? users : "", systems ? systems : "");
    cleanup_free char *revoked = find_value(output, "revokedhostkeys");
    if (revoked && strcmp(revoked, "none") != 0)
        ret->revoked_keys = expand(config, ret, destination, revoked);
    read_agent(config, output, destination, ret);
    read_paths(config, output, "identityfile ", destination, ret, &ret->identities, &ret->identity_count);
    read_paths(config, output, "certificatefile ", destination, ret, &ret->certificates,
               &ret->certificate_count);
}

/* Fills RET with ssh's defaults, for an empty configuration. */
static void fill_default(const char *destination, struct ssh_host *ret) {
    char buffer[PASSWD_SIZE];
    struct passwd entry;
    const struct passwd *own = password_entry(buffer, &entry);
    ret->host_name = xstrdup(destination);
    ret->user = own ? xstrdup(own->pw_name) : xformat("%u", (unsigned)getuid());
    ret->port = 22;
    ret->known_hosts = xstrdup("~/.ssh/known_hosts ~/.ssh/known_hosts2 /etc/ssh/ssh_known_hosts "
                               "/etc/ssh/ssh_known_hosts2");
}

/* Runs 'ssh -G' for DESTINATION, or uses the answer for another host to which the same parts of the
 * configuration apply. */
int ssh_config_look_up(struct ssh_config *config, const char *destination, struct ssh_host *ret,
                       struct failure *failure) {
    if (config->none) {
        fill_default(destination, ret);
        return 0;
    }
    cleanup_free char *class = config->scanned ? host_class(config, destination) : NULL;
    const struct answer *known = class ? find_answer(config, class) : NULL;
    if (known) {
        read_answer(config, known->output, destination, known->names_host, ret);
        return 0;
    }
    cleanup(text_clear) struct text output;
    cleanup(text_clear) struct text errors;
    text_init(&output, ANSWER_MAX);
    text_init(&errors, ANSWER_MAX);
    int r = run_ssh_checked(config, destination, &output, &errors, failure);
    if (r < 0)
        return r;
    if (!config->scanned)
        scan_files(config, &errors);
    bool names_host = false;
    if (!is_about_class(output.bytes, destination, &names_host))
        config->individual = true;
    read_answer(config, output.bytes, destination, false, ret);
    if (!ret->host_name || !ret->user || !ret->port) {
        ssh_host_clear(ret);
        return failure_set(failure, -EPROTO, "'ssh -G %s' does not print a host name, a user and a port",
                           destination);
    }
    struct answer *answer = xcalloc(1, sizeof *answer);
    *answer = (struct answer){.next = config->answers,
                              .class = host_class(config, destination),
                              .output = xstrdup(output.bytes),
                              .names_host = names_host && !config->individual};
    config->answers = answer;
    return 0;
}
