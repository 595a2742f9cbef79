#include "engine/foundation/secret.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

enum {
    TOKEN_LENGTH_MIN = 20, /* of a token in a file */
    PASSWORD_LENGTH_MIN = 6,
    KEY_DASHES = 5,
    KEY_LINE_MAX = 64,
};

enum place { ANYWHERE, WORD_END, WHOLE_WORD };

static const struct {
    const char *part;
    enum place place;
} name_parts[] = {
    {"TOKEN", ANYWHERE},      {"SECRET", ANYWHERE},        {"PASSWORD", ANYWHERE},   {"PASSWD", ANYWHERE},
    {"PASSPHRASE", ANYWHERE}, {"PASSFILE", ANYWHERE},      {"CREDENTIAL", ANYWHERE}, {"COOKIE", ANYWHERE},
    {"XAUTHORITY", ANYWHERE}, {"AUTHORIZATION", ANYWHERE}, {"SIGNATURE", ANYWHERE},  {"KEYRING", ANYWHERE},
    {"APIKEY", ANYWHERE},     {"PASS", WORD_END},          {"KEY", WORD_END},        {"KEYS", WORD_END},
    {"AUTH", WORD_END},       {"JWT", WORD_END},           {"PW", WORD_END},         {"PWD", WORD_END},
    {"PSWD", WORD_END},       {"PASSCODE", ANYWHERE},      {"WEBHOOK", ANYWHERE},    {"PAT", WHOLE_WORD},
    {"SIG", WHOLE_WORD},
};
/* ASKPASS is the path of a program that asks. */
static const char *const harmless_words[] = {"BYPASS", "COMPASS", "ASKPASS", "OLDPWD"};

/* Tokens by their first characters (as the services document them), and how many follow at least. */
static const struct {
    const char *beginning;
    size_t rest;
} tokens[] = {
    {"ghp_", 4},   {"gho_", 4},   {"ghu_", 4},      {"ghs_", 4},     {"ghr_", 4},   {"github_pat_", 4},
    {"glpat-", 4}, {"xoxa-", 4},  {"xoxb-", 4},     {"xoxe-", 4},    {"xoxo-", 4},  {"xoxp-", 4},
    {"xoxr-", 4},  {"xoxs-", 4},  {"AKIA", 12},     {"ASIA", 12},    {"AIza", 30},  {"hf_", 20},
    {"npm_", 20},  {"pypi-", 20}, {"dckr_pat_", 4}, {"sk-", 20},     {"glptt-", 4}, {"gldt-", 4},
    {"glrt-", 4},  {"xapp-", 4},  {"sk_live_", 4},  {"rk_live_", 4}, {"ATATT", 20}, {"hvs.", 20},
    {"hvb.", 20},  {"glsa_", 20}, {"dop_v1_", 20},  {"ya29.", 20},
};

static const char *const file_patterns[] = {
    ".env",      ".env.*",       ".envrc",  ".netrc",  "_netrc",    "id_rsa*",   "id_dsa*",
    "id_ecdsa*", "id_ed25519*",  "*.pem",   "*.ppk",   "*.p12",     "*.pfx",     "*.kdbx",
    "*.jks",     "*.keytab",     ".ssh",    ".aws",    ".azure",    ".gnupg",    ".git-credentials",
    ".kube",     ".dockercfg",   ".pgpass", ".my.cnf", ".npmrc",    ".pypirc",   ".htpasswd",
    ".s3cfg",    ".vault-token", ".docker", ".boto",   ".Renviron", "secrets.*", "credentials*",
};

static bool is_token_character(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Does a harmless word of NAME end at END? */
static bool is_harmless(const char *name, const char *end) {
    for (size_t i = 0; i < sizeof harmless_words / sizeof *harmless_words; i++) {
        size_t length = strlen(harmless_words[i]);
        if ((size_t)(end - name) >= length && strncasecmp(end - length, harmless_words[i], length) == 0)
            return true;
    }
    return false;
}

/* NAME has LENGTH characters; its words are between those that are neither letters nor digits. */
static bool is_secret_name(const char *name, size_t length) {
    if (length == 3 && strncmp(name, "PWD", length) == 0) /* the shell's working folder */
        return false;
    for (size_t i = 0; i < sizeof name_parts / sizeof *name_parts; i++) {
        size_t part = strlen(name_parts[i].part);
        for (const char *at = name; at + part <= name + length; at++) {
            const char *end = at + part;
            bool begins = at == name || !isalnum((unsigned char)at[-1]),
                 ends = end == name + length || !isalnum((unsigned char)*end);
            if (strncasecmp(at, name_parts[i].part, part) == 0 && (ends || name_parts[i].place == ANYWHERE) &&
                (begins || name_parts[i].place != WHOLE_WORD) && !is_harmless(name, end))
                return true;
        }
    }
    return false;
}

/* AUTHORITY follows "SCHEME://". The user of a URL of the web is a token, or has a password. */
static bool has_user(const char *scheme, const char *authority) {
    size_t length = strcspn(authority, "/?# \t\n");
    const char *at = memchr(authority, '@', length);
    return at && (*scheme == 'h' || memchr(authority, ':', (size_t)(at - authority)));
}

static size_t span_token(const char *at) {
    size_t length = 0;
    while (is_token_character(at[length]))
        length++;
    return length;
}

/* AT begins a word of token characters. */
static bool is_token(const char *at) {
    size_t length = span_token(at);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        size_t beginning = strlen(tokens[i].beginning);
        if (strncmp(at, tokens[i].beginning, beginning) == 0 && span_token(at + beginning) >= tokens[i].rest)
            return true;
    }
    /* A JSON Web Token (RFC 7519): base64 of '{"', a dot, and more. */
    return length > 8 && strncmp(at, "eyJ", 3) == 0 && at[length] == '.' &&
           is_token_character(at[length + 1]);
}

bool secret_is_text(const char *text) {
    const char *word = text; /* where the token characters begin that end at AT */
    for (const char *at = text; *at; at++) {
        if (strncmp(at, "-----BEGIN ", 11) == 0 || (at == word && is_token(at)))
            return true;
        if (strncmp(at, "://", 3) == 0 && has_user(word, at + 3))
            return true;
        /* An option, or one of several pairs: a text that is one pair ("X_TOKEN=1") may be a setting. */
        bool is_pair = isalpha((unsigned char)*word) &&
                       (word == text ? strchr(at + 1, '=') != NULL : strchr("?&; \t\n,", word[-1]) != NULL);
        bool is_named = *at == '=' && at > word && (is_pair || strncmp(word, "--", 2) == 0);
        if (is_named && at[1] && is_secret_name(word, (size_t)(at - word)))
            return true;
        if (!is_token_character(*at))
            word = at + 1;
    }
    return false;
}

/* ---- Files ---- */

/* A token as services make them: random, so of both cases and digits; AWS's has one case. Words of texts that
 * begin alike are not. */
static bool is_random_token(const char *at, size_t length) {
    bool upper = false, lower = false, digit = false;
    if (length < TOKEN_LENGTH_MIN)
        return false;
    for (size_t i = 0; i < length; i++) {
        upper |= isupper((unsigned char)at[i]);
        lower |= islower((unsigned char)at[i]);
        digit |= isdigit((unsigned char)at[i]);
    }
    return upper && digit && (lower || at[0] == 'A') && is_token(at);
}

/* "password=VALUE", as in connection strings and files of settings: NAME has LENGTH characters. A value is of
 * letters and digits at least; what code passes under that name (a variable, a call) is none. */
static bool is_password(const char *name, size_t length) {
    static const char *const names[] = {"PASSWORD", "PASSWD", "PASSPHRASE"};
    const char *value = name + length + 1;
    bool letter = false, digit = false, is_named = false;
    for (size_t i = 0; name[length] == '=' && i < sizeof names / sizeof *names; i++)
        is_named |= length >= strlen(names[i]) &&
                    strncasecmp(value - 1 - strlen(names[i]), names[i], strlen(names[i])) == 0;
    size_t size = is_named ? strcspn(value, " \t\r\n&\"'") : 0;
    for (size_t i = 0; i < size; i++) {
        letter |= isalpha((unsigned char)value[i]) != 0;
        digit |= isdigit((unsigned char)value[i]) != 0;
    }
    return size >= PASSWORD_LENGTH_MIN && letter && digit && strcspn(value, "${}()<>[],;`") >= size;
}

/* What begins at AT, a word of LENGTH token characters, in a text that is NUL-ended; NULL: nothing. */
static const char *name_secret(const char *at, size_t length) {
    static const char key[] = "-----BEGIN ";
    const char *end;
    if (strncmp(at, key, sizeof key - 1) == 0) {
        end = strstr(at, "PRIVATE KEY");
        return end && end - at < KEY_LINE_MAX ? "a private key" : NULL;
    }
    if (is_password(at, length))
        return "a password";
    /* "hvs.": the rest is behind the dot. */
    size_t rest = length < KEY_DASHES && at[length] == '.' ? 1 + span_token(at + length + 1) : 0;
    return is_random_token(at, length + rest) ? "a token" : NULL;
}

const char *secret_find(const char *text, size_t length, size_t *ret_offset) {
    const char *what = NULL;
    for (const char *at = text, *end = text + length; at < end && !what; at++) {
        size_t word = span_token(at);
        if (word == 0)
            continue;
        what = name_secret(at, word);
        *ret_offset = (size_t)(at - text);
        at += word;
    }
    return what;
}

bool secret_is_variable(const char *variable) {
    size_t length = strcspn(variable, "=");
    bool is_proxy = length >= 5 && strncasecmp(variable + length - 5, "proxy", 5) == 0;
    /* The value of a proxy may be "user:password@host", without a scheme. */
    return (is_proxy && strchr(variable + length, '@')) || is_secret_name(variable, length) ||
           (variable[length] && secret_is_text(variable + length + 1));
}

bool secret_is_file_name(const char *name) {
    for (size_t i = 0; i < sizeof file_patterns / sizeof *file_patterns; i++)
        if (fnmatch(file_patterns[i], name, FNM_CASEFOLD) == 0)
            return true;
    return false;
}
