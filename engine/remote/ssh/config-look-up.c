/* Which lines of an ssh configuration are for a host, and what they say together. */
#include "engine/remote/ssh/config-inside.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"

#include <ctype.h>
#include <errno.h>
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
    IDENTITIES_MOST = 100,
    DESTINATION_MOST = 255,
    VALUE_MOST = 4096, /* bytes of a value, expanded */
};

void ssh_host_clear(struct ssh_host *host) {
    for (size_t i = 0; i < host->identity_count; i++)
        free(host->identities[i]);
    free(host->identities);
    free(host->host_name);
    free(host->user);
    free(host->identity_agent);
    free(host->proxy_jump);
    free(host->proxy_command);
    free(host->known_hosts);
    free(host->host_key_alias);
    *host = (struct ssh_host){0};
}

/* A search for what the lines say of one destination. */
struct search {
    const char *destination;
    struct ssh_host host;
    const struct ssh_directive *host_name, *identity_agent, *known_hosts;
    const struct ssh_directive *identities[IDENTITIES_MOST];
    size_t identity_count;
    bool said_identities_only, said_timeout;
    /* Where it is: whether lines are for this destination; and in files included from lines that are not,
     * none is. Those outside are kept while it is inside. */
    bool active, never;
    struct {
        bool active, never;
    } outside[SSH_INCLUDE_DEPTH_MOST + 1];
    size_t depth;
};

static void search_clear(struct search *search) {
    ssh_host_clear(&search->host);
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

/* ---- patterns */

static bool is_same(char a, char b, bool fold_case) {
    return a == b || (fold_case && tolower((unsigned char)a) == tolower((unsigned char)b));
}

/* "*" is any number of bytes, "?" is one. Only the last "*" is ever gone back to, so the time is bounded by
 * the product of the lengths. */
static bool matches(const char *text, const char *pattern, size_t length, bool fold_case) {
    const char *end = pattern + length, *star = NULL, *from = NULL;
    while (*text) {
        if (pattern < end && *pattern == '*') {
            star = pattern++;
            from = text;
        } else if (pattern < end && (*pattern == '?' || is_same(*text, *pattern, fold_case))) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++from;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

/* Host: one pattern must match, and none with a "!". */
static bool host_is_for(const struct ssh_directive *directive, const char *destination) {
    bool found = false;
    for (size_t i = 0; i < directive->count; i++) {
        const char *pattern = directive->arguments[i];
        bool negated = pattern[0] == '!';
        pattern += negated;
        if (!matches(destination, pattern, strlen(pattern), false))
            continue;
        if (negated)
            return false;
        found = true;
    }
    return found;
}

/* The same for patterns parted by commas, whatever the case of letters. */
static bool list_matches(const char *text, const char *list) {
    bool found = false;
    for (;;) {
        size_t length = strcspn(list, ",");
        bool negated = list[0] == '!';
        if (matches(text, list + negated, length - negated, true)) {
            if (negated)
                return false;
            found = true;
        }
        if (!list[length])
            return found;
        list += length + 1;
    }
}

/* ---- tokens */

struct tokens {
    const char *host, *original, *home, *local_user, *user;
    unsigned port;
    bool only_host; /* HostName knows no others */
};

static int append_token(struct text *text, char letter, const struct tokens *tokens) {
    if (letter == '%')
        return text_append_character(text, '%');
    if (letter == 'h')
        return text_append_string(text, tokens->host);
    if (tokens->only_host)
        return -EINVAL;
    switch (letter) {
    case 'd':
        return text_append_string(text, tokens->home);
    case 'i':
        return text_printf(text, "%u", (unsigned)getuid());
    case 'n':
        return text_append_string(text, tokens->original);
    case 'p':
        return text_printf(text, "%u", tokens->port);
    case 'r':
        return text_append_string(text, tokens->user);
    case 'u':
        return text_append_string(text, tokens->local_user);
    default:
        return -EINVAL;
    }
}

static int expand_tokens(const struct ssh_directive *directive, const char *value,
                         const struct tokens *tokens, char **ret, struct failure *failure) {
    cleanup(text_clear) struct text text;
    text_init(&text, VALUE_MOST);
    int r = 0;
    for (const char *at = value; r == 0 && *at; at++) {
        r = *at == '%' ? append_token(&text, at[1], tokens) : text_append_character(&text, *at);
        if (r == -EINVAL)
            return refuse(directive, failure, "'%%%.1s' in '%s' is not known; expected one of %s", at + 1,
                          value, tokens->only_host ? "%h %%" : "%d %h %i %n %p %r %u %%");
        at += *at == '%' && r == 0;
    }
    if (r == -EFBIG)
        return refuse(directive, failure, "a value of more than %d bytes", (int)VALUE_MOST);
    char *expanded = r == 0 ? text_take(&text) : NULL;
    if (!expanded)
        return failure_memory(failure);
    *ret = expanded;
    return 0;
}

/* A file: "~" first, as ssh has it, so that a user of that name cannot come out of a token. */
static int expand_path(const struct ssh_directive *directive, const char *value, const struct tokens *tokens,
                       char **ret, struct failure *failure) {
    cleanup_free char *path = NULL;
    int r = ssh_expand_home(value, &path);
    if (r == -ENOENT)
        return refuse(directive, failure, "'%s': there is no such user", value);
    return r < 0 ? failure_memory(failure) : expand_tokens(directive, path, tokens, ret, failure);
}

/* ---- the lines, in their order */

/* Match: every criterion must hold. What assay does not follow never does, neither with a "!" before it. */
static int match_is_for(const struct search *search, const struct ssh_directive *directive, bool *ret,
                        struct failure *failure) {
    cleanup_free char *host = NULL;
    const struct tokens tokens = {.host = search->destination, .only_host = true};
    const struct ssh_directive *said = search->host_name;
    int r = 0;
    if (said)
        r = expand_tokens(said, said->arguments[0], &tokens, &host, failure);
    if (r < 0)
        return r;
    bool all = true;
    for (size_t i = 0; i < directive->count; i++) {
        const char *word = directive->arguments[i], *list;
        bool negated = word[0] == '!';
        word += negated;
        size_t length = strcspn(word, "=");
        if (strcasecmp(word, "all") == 0) {
            if (directive->count != 1 || negated)
                return refuse(directive, failure, "'all' must be the only criterion of a Match");
            break;
        }
        bool original = length == 12 && strncasecmp(word, "originalhost", length) == 0;
        if (!original && !(length == 4 && strncasecmp(word, "host", length) == 0)) {
            all = false;
            break;
        }
        list = word[length] ? word + length + 1 : ++i < directive->count ? directive->arguments[i] : "";
        if (!list[0])
            return refuse(directive, failure, "Match %.*s has no pattern", (int)length, word);
        all = all && list_matches(original || !host ? search->destination : host, list) != negated;
    }
    *ret = all;
    return 0;
}

static int set_string(char **field, const char *value) {
    if (*field)
        return 0;
    *field = strdup(value);
    return *field ? 0 : -ENOMEM;
}

/* A command is shell text with its blanks; it is only shown to the user, when it is refused. */
static int set_command(char **field, const struct ssh_directive *directive) {
    cleanup(text_clear) struct text text;
    text_init(&text, SIZE_MAX);
    int r = 0;
    for (size_t i = 0; r == 0 && i < directive->count; i++)
        r = text_printf(&text, "%s%s", i > 0 ? " " : "", directive->arguments[i]);
    return r < 0 ? r : set_string(field, text.bytes);
}

static int note_identity(struct search *search, const struct ssh_directive *directive,
                         struct failure *failure) {
    const char *path = directive->arguments[0];
    for (size_t i = 0; i < search->identity_count; i++)
        if (strcmp(search->identities[i]->arguments[0], path) == 0)
            return 0;
    if (search->identity_count == IDENTITIES_MOST)
        return refuse(directive, failure, "more than %d files with keys", (int)IDENTITIES_MOST);
    search->identities[search->identity_count++] = directive;
    return 0;
}

/* The first that was said stands; of ProxyJump and ProxyCommand, the first of either. */
static int take_value(struct search *search, const struct ssh_directive *directive, struct failure *failure) {
    struct ssh_host *host = &search->host;
    const char *value = directive->arguments[0];
    int r = 0;
    switch (directive->keyword) {
    case SSH_KEYWORD_CONNECT_TIMEOUT:
        if (!search->said_timeout)
            host->connect_timeout = directive->number;
        search->said_timeout = true;
        break;
    case SSH_KEYWORD_HOST_KEY_ALIAS:
        r = set_string(&host->host_key_alias, value);
        break;
    case SSH_KEYWORD_HOST_NAME:
        search->host_name = search->host_name ? search->host_name : directive;
        break;
    case SSH_KEYWORD_IDENTITIES_ONLY:
        if (!search->said_identities_only)
            host->identities_only = directive->number != 0;
        search->said_identities_only = true;
        break;
    case SSH_KEYWORD_IDENTITY_AGENT:
        search->identity_agent = search->identity_agent ? search->identity_agent : directive;
        break;
    case SSH_KEYWORD_IDENTITY_FILE:
        return note_identity(search, directive, failure);
    case SSH_KEYWORD_PORT:
        host->port = host->port ? host->port : directive->number;
        break;
    case SSH_KEYWORD_PROXY_COMMAND:
        r = host->proxy_jump ? 0 : set_command(&host->proxy_command, directive);
        break;
    case SSH_KEYWORD_PROXY_JUMP:
        r = host->proxy_command ? 0 : set_string(&host->proxy_jump, value);
        break;
    case SSH_KEYWORD_USER:
        r = set_string(&host->user, value);
        break;
    case SSH_KEYWORD_USER_KNOWN_HOSTS_FILE:
        search->known_hosts = search->known_hosts ? search->known_hosts : directive;
        break;
    default:
        break;
    }
    return r < 0 ? failure_memory(failure) : 0;
}

static int follow(struct search *search, const struct ssh_directive *directive, struct failure *failure) {
    switch (directive->keyword) {
    case SSH_KEYWORD_FILE:
        search->active = true;
        search->never = false;
        return 0;
    case SSH_KEYWORD_BEGIN:
        search->outside[search->depth].active = search->active;
        search->outside[search->depth++].never = search->never;
        search->never = !search->active;
        return 0;
    case SSH_KEYWORD_END:
        search->active = search->outside[--search->depth].active;
        search->never = search->outside[search->depth].never;
        return 0;
    case SSH_KEYWORD_HOST:
        search->active = !search->never && host_is_for(directive, search->destination);
        return 0;
    case SSH_KEYWORD_MATCH: {
        bool is_for = false;
        int r = match_is_for(search, directive, &is_for, failure);
        search->active = is_for && !search->never;
        return r;
    }
    default:
        return search->active ? take_value(search, directive, failure) : 0;
    }
}

/* ---- what they say together */

static int fill_identities(struct search *search, const struct tokens *tokens, struct failure *failure) {
    struct ssh_host *host = &search->host;
    size_t capacity = 0;
    for (size_t i = 0; i < search->identity_count; i++) {
        const struct ssh_directive *said = search->identities[i];
        if (strcasecmp(said->arguments[0], "none") == 0)
            continue;
        if (list_reserve(&host->identities, &capacity, host->identity_count + 1, sizeof *host->identities,
                         IDENTITIES_MOST) < 0)
            return failure_memory(failure);
        int r =
            expand_path(said, said->arguments[0], tokens, &host->identities[host->identity_count], failure);
        if (r < 0)
            return r;
        host->identity_count++;
    }
    return 0;
}

static int fill_agent(struct search *search, const struct tokens *tokens, struct failure *failure) {
    const struct ssh_directive *said = search->identity_agent;
    const char *value = said ? said->arguments[0] : NULL;
    if (!value)
        return 0;
    if (value[0] == '$') { /* the name of a variable; one that is not set means no agent */
        const char *path = getenv(value + 1);
        value = path && path[0] ? path : "none";
    } else if (strcasecmp(value, "none") != 0 && strcmp(value, "SSH_AUTH_SOCK") != 0) {
        return expand_path(said, value, tokens, &search->host.identity_agent, failure);
    }
    return set_string(&search->host.identity_agent, value) < 0 ? failure_memory(failure) : 0;
}

static int fill_known_hosts(struct search *search, const struct tokens *tokens, struct failure *failure) {
    const struct ssh_directive *said = search->known_hosts;
    if (!said)
        return 0;
    cleanup(text_clear) struct text files;
    text_init(&files, SIZE_MAX);
    for (size_t i = 0; i < said->count; i++) {
        cleanup_free char *file = NULL;
        int r = expand_path(said, said->arguments[i], tokens, &file, failure);
        if (r < 0)
            return r;
        if (strpbrk(file, " \t"))
            return refuse(said, failure, "UserKnownHostsFile: '%s' has a blank in its name", file);
        if (text_printf(&files, "%s%s", i > 0 ? " " : "", file) < 0)
            return failure_memory(failure);
    }
    search->host.known_hosts = text_take(&files);
    return search->host.known_hosts ? 0 : failure_memory(failure);
}

static char *local_user_name(void) {
    cleanup_free char *buffer = malloc(65536);
    struct passwd entry, *found = NULL;
    if (buffer)
        (void)getpwuid_r(getuid(), &entry, buffer, 65536, &found);
    return found ? strdup(found->pw_name) : text_format("%u", (unsigned)getuid());
}

static int fill(struct search *search, struct failure *failure) {
    struct ssh_host *host = &search->host;
    const struct ssh_directive *said = search->host_name;
    struct tokens tokens = {.host = search->destination, .original = search->destination, .only_host = true};
    int r = expand_tokens(said, said ? said->arguments[0] : "%h", &tokens, &host->host_name, failure);
    if (r < 0)
        return r;
    for (char *at = host->host_name; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    cleanup_free char *home = ssh_home_folder(NULL, 0);
    cleanup_free char *local_user = local_user_name();
    if (!local_user)
        return failure_memory(failure);
    tokens = (struct tokens){host->host_name,
                             search->destination,
                             home ? home : "",
                             local_user,
                             host->user ? host->user : local_user,
                             host->port ? host->port : 22,
                             false};
    r = fill_identities(search, &tokens, failure);
    if (r == 0)
        r = fill_agent(search, &tokens, failure);
    if (r == 0)
        r = fill_known_hosts(search, &tokens, failure);
    return r;
}

int ssh_config_look_up(const struct ssh_config *config, const char *destination, struct ssh_host *ret,
                       struct failure *failure) {
    cleanup(search_clear) struct search search = {.destination = destination};
    if (strlen(destination) > DESTINATION_MOST)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "a destination of more than %d bytes",
                                (int)DESTINATION_MOST);
    for (size_t i = 0; i < config->count; i++) {
        int r = follow(&search, &config->directives[i], failure);
        if (r < 0)
            return r;
    }
    int r = fill(&search, failure);
    if (r < 0)
        return r;
    *ret = search.host;
    search.host = (struct ssh_host){0};
    return 0;
}
