#include "engine/remote/ssh/config-inside.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    FILE_BYTES_MOST = 1 << 20,
    ALL_BYTES_MOST = 16 << 20,
    FILES_MOST = 1024,
    DIRECTIVES_MOST = 1 << 20,
    ARGUMENTS_MOST = 4096, /* of one line */
    SECONDS_MOST = 86400,  /* ConnectTimeout */
};

static const char system_file[] = "/etc/ssh/ssh_config";

/* Keywords that have one value, or (0) any number. */
static const struct {
    const char *word;
    enum ssh_keyword keyword;
    size_t most;
} keywords[] = {
    {"connecttimeout", SSH_KEYWORD_CONNECT_TIMEOUT, 1},
    {"host", SSH_KEYWORD_HOST, 0},
    {"hostkeyalias", SSH_KEYWORD_HOST_KEY_ALIAS, 1},
    {"hostname", SSH_KEYWORD_HOST_NAME, 1},
    {"identitiesonly", SSH_KEYWORD_IDENTITIES_ONLY, 1},
    {"identityagent", SSH_KEYWORD_IDENTITY_AGENT, 1},
    {"identityfile", SSH_KEYWORD_IDENTITY_FILE, 1},
    {"identityfile2", SSH_KEYWORD_IDENTITY_FILE, 1},
    {"include", SSH_KEYWORD_INCLUDE, 0},
    {"match", SSH_KEYWORD_MATCH, 0},
    {"port", SSH_KEYWORD_PORT, 1},
    {"proxycommand", SSH_KEYWORD_PROXY_COMMAND, 0},
    {"proxyjump", SSH_KEYWORD_PROXY_JUMP, 1},
    {"user", SSH_KEYWORD_USER, 1},
    {"userknownhostsfile", SSH_KEYWORD_USER_KNOWN_HOSTS_FILE, 0},
};

static void directive_clear(struct ssh_directive *directive) {
    for (size_t i = 0; i < directive->count; i++)
        free(directive->arguments[i]);
    free(directive->arguments);
    *directive = (struct ssh_directive){0};
}

void ssh_config_free(struct ssh_config *config) {
    if (!config)
        return;
    for (size_t i = 0; i < config->count; i++)
        directive_clear(&config->directives[i]);
    for (size_t i = 0; i < config->file_count; i++)
        free(config->files[i]);
    free(config->directives);
    free(config->files);
    free(config);
}

static void free_config(struct ssh_config **config) {
    ssh_config_free(*config);
}

/* ---- folders of users */

char *ssh_home_folder(const char *user, size_t length) {
    const char *home = length == 0 ? getenv("HOME") : NULL;
    if (home && home[0] == '/')
        return strdup(home);
    cleanup_free char *name = length > 0 ? strndup(user, length) : NULL;
    char *buffer = malloc(65536);
    struct passwd entry, *found = NULL;
    if (buffer && (name || length == 0)) {
        if (name)
            (void)getpwnam_r(name, &entry, buffer, 65536, &found);
        else
            (void)getpwuid_r(getuid(), &entry, buffer, 65536, &found);
    }
    char *folder = found ? strdup(found->pw_dir) : NULL;
    free(buffer);
    return folder;
}

int ssh_expand_home(const char *path, char **ret) {
    char *expanded;
    if (path[0] != '~') {
        expanded = strdup(path);
    } else {
        size_t length = strcspn(path + 1, "/");
        cleanup_free char *folder = ssh_home_folder(path + 1, length);
        if (!folder)
            return -ENOENT;
        expanded = text_format("%s%s", folder, path + 1 + length);
    }
    if (!expanded)
        return -ENOMEM;
    *ret = expanded;
    return 0;
}

/* ---- one line */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* The length of the argument at AT, quotes and all; its bytes, without them, go to BUFFER. -EINVAL: a quote
 * is not closed. */
static ssize_t take_argument(const char *at, char *buffer) {
    const char *start = at;
    char quote = 0;
    for (; *at && (quote || !is_blank(*at)); at++) {
        if (*at == '\\' && at[1] && (strchr("'\"\\", at[1]) || (!quote && at[1] == ' ')))
            *buffer++ = *++at;
        else if (!quote && (*at == '"' || *at == '\''))
            quote = *at;
        else if (*at == quote)
            quote = 0;
        else
            *buffer++ = *at;
    }
    *buffer = '\0';
    return quote ? -EINVAL : at - start;
}

static int add_argument(struct ssh_directive *directive, size_t *capacity, const char *argument) {
    int r = list_reserve(&directive->arguments, capacity, directive->count + 1, sizeof *directive->arguments,
                         ARGUMENTS_MOST);
    if (r < 0)
        return r;
    if (!(directive->arguments[directive->count] = strdup(argument)))
        return -ENOMEM;
    directive->count++;
    return 0;
}

__attribute__((format(printf, 3, 4))) static int refuse(const struct ssh_directive *directive,
                                                        struct failure *failure, const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return failure_input(failure, directive->file, directive->line, 0, "%s", sentence);
}

/* What follows the keyword on the line; "#" where an argument could begin ends it. */
static int split_arguments(struct ssh_directive *directive, const char *at, struct failure *failure) {
    cleanup_free char *buffer = xmalloc(strlen(at) + 1);
    size_t capacity = 0;
    for (;;) {
        while (is_blank(*at))
            at++;
        if (*at == '\0' || *at == '#')
            return 0;
        ssize_t length = take_argument(at, buffer);
        if (length < 0)
            return refuse(directive, failure, "a quote is not closed");
        int r = add_argument(directive, &capacity, buffer);
        if (r == -EFBIG)
            return refuse(directive, failure, "more than %d words on a line", (int)ARGUMENTS_MOST);
        if (r < 0)
            return failure_memory(failure);
        at += length;
    }
}

/* "90", "1m30s": as sshd and ssh write times. */
static bool parse_seconds(const char *text, unsigned *ret) {
    static const char units[] = "smhdw";
    static const unsigned seconds[] = {1, 60, 3600, 86400, 604800};
    uint64_t total = 0;
    if (!*text)
        return false;
    while (*text) {
        size_t digits = strspn(text, "0123456789");
        uint64_t number;
        if (digits > 9 || !number_parse_uint64(text, digits, &number))
            return false;
        text += digits;
        const char *unit = *text ? strchr(units, *text | 0x20) : units;
        if (!unit)
            return false;
        text += *text != '\0';
        total += number * seconds[unit - units];
    }
    if (total > SECONDS_MOST)
        return false;
    *ret = (unsigned)total;
    return true;
}

static int check_jumps(const struct ssh_directive *directive, struct failure *failure) {
    const char *at = directive->arguments[0];
    if (strcasecmp(at, "none") == 0)
        return 0;
    for (;;) {
        size_t length = strcspn(at, ",");
        cleanup_free char *hop = xstrndup(at, length);
        cleanup_free char *user = NULL, *host = NULL;
        unsigned port;
        struct failure why = {0};
        if (ssh_destination_parse(hop, &user, &host, &port, &why) < 0)
            return why.code == -ENOMEM ? failure_memory(failure)
                                       : refuse(directive, failure, "ProxyJump: %s", why.text);
        if (!at[length])
            return 0;
        at += length + 1;
    }
}

static int check_value(struct ssh_directive *directive, struct failure *failure) {
    const char *value = directive->arguments[0];
    uint64_t port;
    switch (directive->keyword) {
    case SSH_KEYWORD_PORT:
        if (!number_parse_uint64(value, strlen(value), &port) || port < 1 || port > 65535)
            return refuse(directive, failure, "'%s' is not a port; expected 1 to 65535", value);
        directive->number = (unsigned)port;
        return 0;
    case SSH_KEYWORD_CONNECT_TIMEOUT:
        if (strcasecmp(value, "none") != 0 && !parse_seconds(value, &directive->number))
            return refuse(directive, failure,
                          "'%s' is not a time; expected seconds, such as 30 or 1m30s, up to a day", value);
        return 0;
    case SSH_KEYWORD_IDENTITIES_ONLY:
        directive->number = strcasecmp(value, "yes") == 0 || strcasecmp(value, "true") == 0;
        if (!directive->number && strcasecmp(value, "no") != 0 && strcasecmp(value, "false") != 0)
            return refuse(directive, failure, "'%s' is neither yes nor no", value);
        return 0;
    case SSH_KEYWORD_PROXY_JUMP:
        return check_jumps(directive, failure);
    default:
        return 0;
    }
}

/* ---- files */

struct reading {
    struct ssh_config *config;
    const char *folder; /* what relative names of Include are in; NULL: there is no such folder */
    bool of_system;
    unsigned depth;
};

static int add_directive(struct ssh_config *config, struct ssh_directive *directive,
                         struct failure *failure) {
    int r = list_reserve(&config->directives, &config->capacity, config->count + 1,
                         sizeof *config->directives, DIRECTIVES_MOST);
    if (r == -EFBIG)
        return refuse(directive, failure, "more than %d lines of configuration", (int)DIRECTIVES_MOST);
    if (r < 0)
        return failure_memory(failure);
    config->directives[config->count++] = *directive;
    *directive = (struct ssh_directive){0};
    return 0;
}

static int read_one(const struct reading *reading, const char *path, bool needed, struct failure *failure);

/* Every file that PATTERN names, in the order of glob(3); none is fine, as ssh has it. */
static int include(const struct reading *reading, const struct ssh_directive *directive, const char *argument,
                   struct failure *failure) {
    cleanup_free char *pattern = NULL;
    int r;
    if (argument[0] == '~' && reading->of_system)
        return refuse(directive, failure, "the system's file cannot include from a home folder");
    if (argument[0] == '/' || argument[0] == '~') {
        r = ssh_expand_home(argument, &pattern);
        if (r == -ENOENT)
            return refuse(directive, failure, "'%s': there is no such user", argument);
    } else {
        if (!reading->folder)
            return 0;
        pattern = text_format("%s/%s", reading->folder, argument);
        r = pattern ? 0 : -ENOMEM;
    }
    if (r < 0)
        return failure_memory(failure);
    glob_t found = {0};
    int code = glob(pattern, 0, NULL, &found);
    if (code == GLOB_NOSPACE)
        r = failure_memory(failure);
    const struct reading below = {reading->config, reading->folder, reading->of_system, reading->depth + 1};
    for (size_t i = 0; code == 0 && r == 0 && i < found.gl_pathc; i++) {
        struct ssh_directive begin = {
            .keyword = SSH_KEYWORD_BEGIN, .file = directive->file, .line = directive->line};
        struct ssh_directive end = begin;
        end.keyword = SSH_KEYWORD_END;
        r = add_directive(reading->config, &begin, failure);
        if (r == 0)
            r = read_one(&below, found.gl_pathv[i], false, failure);
        if (r == 0)
            r = add_directive(reading->config, &end, failure);
    }
    globfree(&found);
    return r;
}

static int include_all(const struct reading *reading, const struct ssh_directive *directive,
                       struct failure *failure) {
    if (reading->depth >= SSH_INCLUDE_DEPTH_MOST)
        return refuse(directive, failure, "files include each other more than %d levels deep",
                      (int)SSH_INCLUDE_DEPTH_MOST);
    int r = 0;
    for (size_t i = 0; r == 0 && i < directive->count; i++)
        r = include(reading, directive, directive->arguments[i], failure);
    return r;
}

/* LINE without its end. Keywords that assay does not follow are passed over, whatever they say. */
static int read_line(const struct reading *reading, const char *line, const char *file, size_t number,
                     struct failure *failure) {
    line += strspn(line, " \t\r\f");
    size_t length = strcspn(line, " \t\r\f=");
    if (length == 0 || line[0] == '#')
        return 0;
    size_t at = 0, most = sizeof keywords / sizeof *keywords;
    while (at < most &&
           (strncasecmp(keywords[at].word, line, length) != 0 || keywords[at].word[length] != '\0'))
        at++;
    if (at == most)
        return 0;
    cleanup(directive_clear) struct ssh_directive directive = {
        .keyword = keywords[at].keyword, .file = file, .line = number};
    const char *rest = line + length + strspn(line + length, " \t\r\f");
    if (*rest == '=')
        rest += 1 + strspn(rest + 1, " \t\r\f");
    int r = split_arguments(&directive, rest, failure);
    if (r < 0)
        return r;
    if (directive.count == 0 || directive.arguments[0][0] == '\0')
        return refuse(&directive, failure, "%.*s has no value", (int)length, line);
    if (keywords[at].most > 0 && directive.count > keywords[at].most)
        return refuse(&directive, failure, "%.*s has more than one value", (int)length, line);
    r = check_value(&directive, failure);
    if (r < 0)
        return r;
    if (directive.keyword == SSH_KEYWORD_INCLUDE)
        return include_all(reading, &directive, failure);
    return add_directive(reading->config, &directive, failure);
}

static int read_lines(const struct reading *reading, struct text *content, const char *file,
                      struct failure *failure) {
    char *end = content->bytes + content->length;
    size_t number = 0;
    int r = 0;
    for (char *at = content->bytes; r == 0 && at < end;) {
        char *line_end = memchr(at, '\n', (size_t)(end - at));
        line_end = line_end ? line_end : end;
        number++;
        if (memchr(at, '\0', (size_t)(line_end - at)))
            return failure_input(failure, file, number, 0, "a zero byte; expected text");
        char *stripped = line_end;
        while (stripped > at && strchr(" \t\r\f", stripped[-1]))
            stripped--;
        *stripped = '\0'; /* in place: at the very end of the content there is a zero byte already */
        r = read_line(reading, at, file, number, failure);
        at = line_end + 1;
    }
    return r;
}

static int read_one(const struct reading *reading, const char *path, bool needed, struct failure *failure) {
    struct ssh_config *config = reading->config;
    cleanup(text_clear) struct text content;
    text_init(&content, FILE_BYTES_MOST);
    struct failure why = {0};
    int r = file_read(path, &content, &why);
    if ((r == -ENOENT || r == -ENOTDIR || r == -EISDIR) && !needed)
        return 0;
    if (r < 0) {
        if (failure)
            *failure = why;
        return r;
    }
    config->bytes += content.length;
    if (config->bytes > ALL_BYTES_MOST || config->file_count == FILES_MOST)
        return failure_input(failure, path, 0, 0, "the ssh configuration is more than %d files or %d MiB",
                             (int)FILES_MOST, (int)ALL_BYTES_MOST >> 20);
    r = list_reserve(&config->files, &config->file_capacity, config->file_count + 1, sizeof *config->files,
                     FILES_MOST);
    char *file = r == 0 ? strdup(path) : NULL;
    if (!file)
        return failure_memory(failure);
    config->files[config->file_count++] = file;
    return read_lines(reading, &content, file, failure);
}

static int read_file(const struct reading *reading, const char *path, bool needed, struct failure *failure) {
    struct ssh_directive start = {.keyword = SSH_KEYWORD_FILE};
    int r = add_directive(reading->config, &start, failure);
    return r < 0 ? r : read_one(reading, path, needed, failure);
}

int ssh_config_read(const char *path, struct ssh_config **ret, struct failure *failure) {
    cleanup(free_config) struct ssh_config *config = calloc(1, sizeof *config);
    if (!config)
        return failure_memory(failure);
    cleanup_free char *home = ssh_home_folder(NULL, 0);
    cleanup_free char *folder = home ? file_join(home, ".ssh") : NULL;
    if (home && !folder)
        return failure_memory(failure);
    const struct reading of_user = {config, folder, false, 0};
    const struct reading of_system = {config, "/etc/ssh", true, 0};
    int r = 0;
    if (!path) {
        cleanup_free char *usual = folder ? file_join(folder, "config") : NULL;
        if (folder && !usual)
            return failure_memory(failure);
        if (usual)
            r = read_file(&of_user, usual, false, failure);
        if (r == 0)
            r = read_file(&of_system, system_file, false, failure);
    } else if (path[0] && strcmp(path, "none") != 0) {
        r = read_file(&of_user, path, true, failure);
    }
    if (r < 0)
        return r;
    *ret = take_pointer(config);
    return 0;
}
