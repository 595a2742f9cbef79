#include "archive-format/redaction.h"

#include "archive-format/layout.h"
#include "archive-format/staging.h"
#include "engine/documents/bind.h"
#include "engine/foundation/checksum.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/secret.h"

#include <errno.h>
#include <pwd.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SALT_SIZE = 40,
    HASHED_DIGITS = 16,
    USER_MIN = 3,        /* shorter names are words of texts */
    COPY_MAX = 256 << 20 /* bytes of a file that is redacted; larger ones are copied */
};

/* What is looked for in a line that has NEEDLE (case does not count); the last group of PATTERN goes. */
static const struct {
    const char *needle, *pattern;
    unsigned group;
    bool hashed, for_strangers;
} rules[] = {
    {"://", "[a-z][a-z0-9+.-]*://([^/@ \t\"']+:[^/@ \t\"']+)@", 1, false, false},
    {"pass", "pass(word|wd|phrase)?[=:] *([^], \t\"'[]+)", 2, false, false},
    {"token", "token[=:] *([^], \t\"'[]+)", 1, false, false},
    {"secret", "secret[=:] *([^], \t\"'[]+)", 1, false, false},
    {"serial", "serial[a-z_ ]*(\" value=\"|: *|=)([^\"\n]*[^\" \t\n])", 2, true, false},
    {"uuid", "uuid(\" value=\"|: *)([^\"\n]*[^\" \t\n])", 2, true, false},
    {"asset", "asset[a-z_ ]*(\" value=\"|: *|=)([^\"\n]*[^\" \t\n])", 2, true, false},
    {":", "(^|[^0-9a-f])(([0-9a-f]{2}:){5,19}[0-9a-f]{2})([^0-9a-f:]|$)", 2, true, false},
    {":", "(^|[^0-9a-f:])([0-9a-f]{4}(:[0-9a-f]{4}){3,7})([^0-9a-f:.]|$)", 2, true, false},
    {".", "(^|[^0-9.])([0-9]{1,3}(\\.[0-9]{1,3}){3})\\.?([^0-9.]|$)", 2, false, true},
    {":", "(^|[^0-9a-f:])([0-9a-f]{1,4}(:[0-9a-f]{1,4}){7})([^0-9a-f:]|$)", 2, false, true},
    {"::", "(^|[^0-9a-f:])([0-9a-f]{1,4}(:[0-9a-f]{0,4}){2,7})([^0-9a-f:]|$)", 2, false, true},
};
enum { RULES = sizeof rules / sizeof *rules, GROUPS = 5, COLONS_MIN = 3 };

struct redaction {
    regex_t compiled[RULES]; /* those of which is_compiled */
    bool is_compiled[RULES];
    bool for_strangers;
    struct bind_texts users, kept; /* the latter: names in which nothing is hidden */
    char salt[SALT_SIZE];
};

/* ---- Making one ------------------------------------------------------------------------------------------
 */

static int draw(char salt[static SALT_SIZE], struct failure *failure) {
    cleanup(text_clear) struct text drawn;
    text_init(&drawn, 64);
    int r = file_read("/proc/sys/kernel/random/uuid", &drawn, failure);
    if (r == 0)
        snprintf(salt, SALT_SIZE, "%.36s", drawn.bytes);
    return r;
}

static int find_salt(char salt[static SALT_SIZE], struct failure *failure) {
    cleanup(text_clear) struct text kept;
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    cleanup_free char *folder = state && state[0] == '/' ? file_join(state, "assay")
                                : home && home[0] == '/' ? file_join(home, ".local/state/assay")
                                                         : NULL;
    cleanup_free char *path = folder ? file_join(folder, "salt") : NULL;
    text_init(&kept, 64);
    if (path && file_exists(path) && file_read(path, &kept, NULL) == 0 && kept.length == SALT_SIZE - 4) {
        memcpy(salt, kept.bytes, kept.length + 1);
        return 0;
    }
    int r = draw(salt, failure);
    if (r == 0 && folder && file_make_folders(folder, NULL) == 0)
        (void)file_replace(path, salt, strlen(salt), 0600, NULL);
    return r;
}

static void add_user(struct redaction *redaction, const char *name) {
    if (name && strlen(name) >= USER_MIN && strcmp(name, "root") != 0 &&
        !bind_texts_have(&redaction->users, name))
        bind_texts_add(&redaction->users, name);
}

int redaction_new(bool for_strangers, const char *const *users, struct redaction **ret,
                  struct failure *failure) {
    cleanup(redaction_free) struct redaction *redaction = xcalloc(1, sizeof *redaction);
    const struct passwd *own = for_strangers ? getpwuid(getuid()) : NULL;
    redaction->for_strangers = for_strangers;
    for (size_t i = 0; for_strangers && users && users[i]; i++)
        add_user(redaction, users[i]);
    if (own)
        add_user(redaction, own->pw_name);
    if (for_strangers)
        add_user(redaction, getenv("SUDO_USER"));
    int r = find_salt(redaction->salt, failure);
    if (r == 0)
        *ret = take_pointer(redaction);
    return r;
}

void redaction_free(struct redaction **redaction) {
    if (!*redaction)
        return;
    for (size_t i = 0; i < RULES; i++)
        if ((*redaction)->is_compiled[i])
            regfree(&(*redaction)->compiled[i]);
    bind_texts_clear(&(*redaction)->users);
    bind_texts_clear(&(*redaction)->kept);
    free(*redaction);
    *redaction = NULL;
}

void redaction_keep(struct redaction *redaction, const char *name) {
    bind_texts_add(&redaction->kept, name);
}

/* ---- Texts -----------------------------------------------------------------------------------------------
 */

/* Appends what stands for the LENGTH bytes at VALUE. */
static int append_hashed(const struct redaction *redaction, const char *value, size_t length,
                         struct text *ret) {
    char hex[HASH_HEX_SIZE];
    cleanup_free char *salted = xformat("%s %.*s", redaction->salt, (int)length, value);
    hash_bytes(salted, strlen(salted), hex);
    return text_printf(ret, "hashed:%.*s", HASHED_DIGITS, hex);
}

/* Are the LENGTH bytes at AT in LINE part of a name that is kept? */
static bool is_kept(const struct redaction *redaction, const char *line, const char *at, size_t length) {
    for (size_t i = 0; i < redaction->kept.count; i++) {
        size_t kept = strlen(redaction->kept.items[i]), before = (size_t)(at - line);
        for (size_t skip = 0; skip + length <= kept && skip <= before; skip++)
            if (strncmp(at - skip, redaction->kept.items[i], kept) == 0)
                return true;
    }
    return false;
}

/* Regular expressions are slow: most lines have nothing for them. */
static bool may_match(size_t rule, const char *line) {
    size_t colons = 0;
    if (strcmp(rules[rule].needle, ":") != 0)
        return strcasestr(line, rules[rule].needle);
    for (; (line = strchr(line, ':')); line++)
        colons++;
    return colons >= COLONS_MIN;
}

/* LINE becomes CHANGED and REST, unless COUNT, of the places that were changed, is 0. COUNT, or R where that
 * is negative. */
static int replace_line(struct text *line, struct text *changed, const char *rest, int count, int r) {
    if (r == 0 && count > 0)
        r = text_append_string(changed, rest);
    if (r == 0 && count > 0) {
        text_reset(line);
        r = text_append(line, changed->bytes, changed->length);
    }
    return r < 0 ? r : count;
}

/* Replaces in LINE, which is NUL-ended, what RULE says. The places that were changed, or a negative errno. */
static int apply_rule(struct redaction *redaction, size_t rule, struct text *line) {
    cleanup(text_clear) struct text changed;
    regmatch_t groups[GROUPS];
    const char *at = line->bytes;
    int count = 0, r = 0;
    text_init(&changed, line->limit);
    if ((rules[rule].for_strangers && !redaction->for_strangers) || !may_match(rule, at))
        return 0;
    if (!redaction->is_compiled[rule] &&
        regcomp(&redaction->compiled[rule], rules[rule].pattern, REG_EXTENDED | REG_ICASE) != 0)
        memory_exhausted();
    redaction->is_compiled[rule] = true;
    while (r == 0 &&
           regexec(&redaction->compiled[rule], at, GROUPS, groups, at > line->bytes ? REG_NOTBOL : 0) == 0) {
        const regmatch_t *match = &groups[rules[rule].group];
        size_t length = (size_t)(match->rm_eo - match->rm_so);
        const char *value = at + match->rm_so;
        r = text_append(&changed, at, (size_t)match->rm_so);
        bool is_done = strncmp(value, "hashed:", 7) == 0 || strncmp(value, "[redacted]", 10) == 0 ||
                       (rules[rule].for_strangers && is_kept(redaction, line->bytes, value, length));
        if (r == 0)
            r = is_done              ? text_append(&changed, value, length)
                : rules[rule].hashed ? append_hashed(redaction, value, length, &changed)
                                     : text_append_string(&changed, "[redacted]");
        count += !is_done;
        at += match->rm_eo;
    }
    return replace_line(line, &changed, at, count, r);
}

/* The same of tokens of known services (secret.h). A private key, of which this is one line of many, stays: a
 * file with one is not sealed. */
static int hide_tokens(struct text *line) {
    static const char of_token[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    cleanup(text_clear) struct text changed;
    const char *at = line->bytes, *what;
    size_t offset;
    int count = 0, r = 0;
    text_init(&changed, line->limit);
    while (r == 0 && (what = secret_find(at, strlen(at), &offset)) && strcmp(what, "a token") == 0) {
        r = text_printf(&changed, "%.*s[redacted]", (int)offset, at);
        at += offset + strspn(at + offset, of_token);
        count++;
    }
    return replace_line(line, &changed, at, count, r);
}

static bool is_of_name(char character) {
    return character == '_' || (character >= '0' && character <= '9') ||
           (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z');
}

/* The same of a user's name, as a word; the key of a member in JSON is none. */
static int hide_user(const struct redaction *redaction, const char *user, struct text *line) {
    cleanup(text_clear) struct text changed;
    size_t length = strlen(user);
    const char *from = line->bytes, *at = from;
    int count = 0, r = 0;
    text_init(&changed, line->limit);
    while (r == 0 && (at = strstr(at, user))) {
        char before = '\0';
        if (at > line->bytes)
            before = at[-1];
        bool is_key = before == '"' && strncmp(at + length, "\":", 2) == 0;
        bool is_word = !is_of_name(before) && !is_of_name(at[length]) && !is_key &&
                       !is_kept(redaction, line->bytes, at, length);
        if (is_word && (r = text_append(&changed, from, (size_t)(at - from))) == 0)
            r = text_append_string(&changed, "[user]");
        count += is_word;
        at += length;
        from = is_word ? at : from;
    }
    return replace_line(line, &changed, from, count, r);
}

int redaction_apply(struct redaction *redaction, const char *bytes, size_t length, struct text *ret) {
    cleanup(text_clear) struct text line;
    int count = 0, r = 0;
    text_init(&line, ret->limit);
    if (memchr(bytes, '\0', length))
        return text_append(ret, bytes, length);
    for (const char *at = bytes, *end = bytes + length; r >= 0 && at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        text_reset(&line);
        r = text_append(&line, at, (size_t)((newline ? newline : end) - at));
        for (size_t i = 0; r >= 0 && i<RULES; i++, count += r> 0 ? r : 0)
            r = apply_rule(redaction, i, &line);
        if (r >= 0 && (r = hide_tokens(&line)) > 0)
            count += r;
        for (size_t i = 0; r >= 0 && i<redaction->users.count; i++, count += r> 0 ? r : 0)
            r = hide_user(redaction, redaction->users.items[i], &line);
        if (r >= 0)
            r = text_append(ret, line.bytes, line.length);
        if (r >= 0 && newline)
            r = text_append_character(ret, '\n');
        at = newline ? newline + 1 : end;
    }
    return r < 0 ? r : count;
}

/* ---- Folders ---------------------------------------------------------------------------------------------
 */

/* Not: the user's own files, tables, and what is packed. */
static bool is_redacted(const char *name) {
    static const char *const folders[] = {ARCHIVE_EXPERIMENT "/", ARCHIVE_INPUT_FILES "/",
                                          ARCHIVE_IMPORTS "/", ARCHIVE_MODELS "/"};
    static const char *const endings[] = {".csv", ".tsv", ".tar", ".zip", ".gz", ".xz", ".bz2"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strncmp(name, folders[i], strlen(folders[i])) == 0)
            return false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (text_ends_in(name, endings[i]))
            return false;
    return true;
}

/* The lines of a journal with the checksums of what they are now (FORMAT.md, "journal.jsonl"). */
static int renew_checksums(const struct text *journal, struct text *ret) {
    static const char mark[] = ",\"crc32c\":\"";
    int r = 0;
    for (const char *line = journal->bytes, *next; r == 0 && *line; line = next) {
        const char *newline = strchr(line, '\n'), *end = NULL;
        next = newline ? newline + 1 : line + strlen(line);
        for (const char *at = line; (at = strstr(at, mark)) && at < next; at++)
            end = at;
        r = end ? text_append(ret, line, (size_t)(end - line))
                : text_append(ret, line, (size_t)(next - line));
        if (r == 0 && end)
            r = text_printf(ret, "%s%08x\"}\n", mark, checksum_crc32c(line, (size_t)(end - line)));
    }
    return r;
}

static int copy_redacted(struct redaction *redaction, const char *from, const char *to, const char *name,
                         struct failure *failure) {
    cleanup(text_clear) struct text content, redacted, journal;
    text_init(&content, COPY_MAX);
    text_init(&redacted, 2 * (size_t)COPY_MAX);
    text_init(&journal, 2 * (size_t)COPY_MAX);
    int r = file_read(from, &content, failure);
    if (r < 0)
        return r;
    int count = redaction_apply(redaction, content.bytes, content.length, &redacted);
    const struct text *result = count > 0 && strcmp(name, ARCHIVE_JOURNAL) == 0 ? &journal : &redacted;
    if (result == &journal)
        r = renew_checksums(&redacted, &journal);
    if (count < 0 || r < 0)
        return failure_set(failure, count < 0 ? count : r, "cannot redact '%s': %s", from,
                           strerror(count < 0 ? -count : -r));
    return file_replace(to, result->bytes, result->length, 0644, failure);
}

/* inputs.json has the hash of the campaign, by which a run that is made again knows it. */
static int renew_hash(const char *from, const char *to, struct failure *failure) {
    char before[HASH_HEX_SIZE], after[HASH_HEX_SIZE];
    cleanup(text_clear) struct text content;
    cleanup_free char *written = file_join(from, ARCHIVE_CAMPAIGN), *copy = file_join(to, ARCHIVE_CAMPAIGN),
                      *inputs = file_join(to, ARCHIVE_INPUTS);
    text_init(&content, COPY_MAX);
    if (!file_exists(copy) || !file_exists(inputs))
        return 0;
    int r = hash_file(written, before, NULL, failure);
    if (r == 0)
        r = hash_file(copy, after, NULL, failure);
    if (r == 0)
        r = file_read(inputs, &content, failure);
    char *at = r == 0 ? strstr(content.bytes, before) : NULL;
    if (!at || strcmp(before, after) == 0)
        return r;
    memcpy(at, after, strlen(after));
    return file_replace(inputs, content.bytes, content.length, 0644, failure);
}

/* Whether the file at PATH is one that is read whole, and its CONTENT. */
static bool read_text(const char *path, struct text *content) {
    text_init(content, COPY_MAX);
    return file_read(path, content, NULL) == 0;
}

/* Campaigns often lie in the experiment's folder: whether the file NAME, at PATH, is there, and a line of it
 * begins as one of theirs. */
static bool is_campaign(const char *path, const char *name) {
    static const char folder[] = ARCHIVE_EXPERIMENT "/", key[] = "\nexperiment:";
    cleanup(text_clear) struct text content = {0};
    return strncmp(name, folder, strlen(folder)) == 0 && read_text(path, &content) &&
           (strncmp(content.bytes, key + 1, strlen(key + 1)) == 0 || strstr(content.bytes, key));
}

/* Adds NAME to STAYED if the file at PATH, which is not redacted, has the name of a user. */
static void note_user(const struct redaction *redaction, const char *path, const char *name,
                      struct text *stayed) {
    cleanup(text_clear) struct text content;
    bool is_found = false;
    if (!read_text(path, &content))
        return;
    for (size_t i = 0; i < redaction->users.count; i++) {
        const char *user = redaction->users.items[i], *at = content.bytes, *end = at + content.length;
        size_t length = strlen(user);
        for (; !is_found && (at = memmem(at, (size_t)(end - at), user, length)); at++)
            is_found = !is_kept(redaction, content.bytes, at, length);
    }
    if (is_found) /* a list that is too long just ends */
        (void)text_printf(stayed, "%s%s", stayed->length ? ", " : "", name);
}

int redaction_copy(struct redaction *redaction, const char *from, const char *to, struct text *stayed,
                   struct failure *failure) {
    cleanup(staging_clear) struct staging staging = {0};
    int r = file_make_folders(to, failure);
    if (r == 0)
        r = staging_scan(from, &staging, failure);
    for (size_t i = 0; r == 0 && i < staging.count; i++) {
        const struct staged_file *file = &staging.files[i];
        cleanup_free char *source = file_join(from, file->name), *target = file_join(to, file->name);
        bool is_changed =
            file->size <= COPY_MAX && (is_redacted(file->name) || is_campaign(source, file->name));
        if (file->folder)
            r = file_make_folders(target, failure);
        else if (is_changed)
            r = copy_redacted(redaction, source, target, file->name, failure);
        else if (link(source, target) < 0)
            r = file_copy(source, FILE_REGULAR, target, failure);
        if (!file->folder && !is_changed)
            note_user(redaction, source, file->name, stayed);
    }
    return r < 0 ? r : renew_hash(from, to, failure);
}
