#include "engine/remote/ssh/host-keys.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/remote/ssh/hashed-name.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINES_LIMIT = 1 << 20, PATTERN_SIZE = 512 };
#define SYNC_DELAY (100 * EVENT_MILLISECOND)

/* A line that says something, as pieces of its file's text, which may move. */
struct piece {
    uint32_t at, length;
};
struct key_line {
    struct piece hosts, type, key;
    uint32_t number;
    uint32_t hashed; /* the name, among the file's hashed ones; NOT_HASHED */
    bool revoked;
};
enum { NOT_HASHED = UINT32_MAX };

struct key_file {
    struct key_file *next;
    char *path;
    struct text text;
    struct key_line *lines;
    size_t line_count, line_capacity;
    struct hashed_name *hashed;
    size_t hashed_count, hashed_capacity;
    uint32_t newlines;
    struct failure trouble; /* what kept it from being read; code 0: nothing did */
};

struct host_keys {
    struct key_file *files;
    char *accepted; /* NULL: none */
    int descriptor; /* of it, -1 until the first key is noted */
    struct event_source *sync;
    int sync_error;
};

static bool is_absence(int code) {
    return code == -ENOENT || code == -ENOTDIR;
}

/* ---- reading */

static bool next_field(const char *text, uint32_t *at, uint32_t end, struct piece *ret) {
    while (*at < end && (text[*at] == ' ' || text[*at] == '\t'))
        ++*at;
    ret->at = *at;
    while (*at < end && text[*at] != ' ' && text[*at] != '\t')
        ++*at;
    ret->length = *at - ret->at;
    return ret->length > 0;
}

static bool piece_is(const char *text, struct piece piece, const char *word) {
    return strlen(word) == piece.length && memcmp(text + piece.at, word, piece.length) == 0;
}

/* False for lines that say nothing to us: empty ones, comments, certificates, and what is no such line. */
static bool parse_line(const char *text, uint32_t at, uint32_t end, struct key_line *ret) {
    if (end > at && text[end - 1] == '\r')
        end--;
    ret->revoked = false;
    if (!next_field(text, &at, end, &ret->hosts) || text[ret->hosts.at] == '#')
        return false;
    if (text[ret->hosts.at] == '@') {
        if (!piece_is(text, ret->hosts, "@revoked") || !next_field(text, &at, end, &ret->hosts))
            return false;
        ret->revoked = true;
    }
    return next_field(text, &at, end, &ret->type) && next_field(text, &at, end, &ret->key);
}

static int add_line(struct key_file *file, struct key_line *line) {
    const char *hosts = file->text.bytes + line->hosts.at;
    struct hashed_name name;
    line->number = file->newlines + 1;
    line->hashed = NOT_HASHED;
    if (*hosts == '|') {
        if (!hashed_name_parse(hosts, line->hosts.length, &name))
            return 0; /* hashed in a way of which nobody knows yet */
        int r = list_reserve(&file->hashed, &file->hashed_capacity, file->hashed_count + 1, sizeof name,
                             LINES_LIMIT);
        if (r < 0)
            return r;
        line->hashed = (uint32_t)file->hashed_count;
        file->hashed[file->hashed_count++] = name;
    }
    int r = list_reserve(&file->lines, &file->line_capacity, file->line_count + 1, sizeof *line, LINES_LIMIT);
    if (r == 0)
        file->lines[file->line_count++] = *line;
    return r;
}

/* Takes in the text from AT on. */
static int add_lines(struct key_file *file, uint32_t at) {
    const char *text = file->text.bytes;
    uint32_t length = (uint32_t)file->text.length;
    while (at < length) {
        const char *newline = memchr(text + at, '\n', length - at);
        uint32_t end = newline ? (uint32_t)(newline - text) : length;
        struct key_line line;
        int r = parse_line(text, at, end, &line) ? add_line(file, &line) : 0;
        if (r < 0)
            return r;
        file->newlines += newline != NULL;
        at = end + 1;
    }
    return 0;
}

static struct key_file *find_file(struct host_keys *keys, const char *path) {
    struct key_file *file = keys->files;
    while (file && strcmp(file->path, path) != 0)
        file = file->next;
    return file;
}

static void key_file_free(struct key_file *file) {
    free(file->path);
    text_clear(&file->text);
    free(file->lines);
    free(file->hashed);
    free(file);
}

static void fill_file(struct key_file *file) {
    struct failure *trouble = &file->trouble;
    int r = file_read(file->path, &file->text, trouble);
    if (r < 0)
        text_reset(&file->text);
    else if ((r = add_lines(file, 0)) < 0)
        failure_set(trouble, r, "cannot keep the host keys of '%s': %s", file->path, strerror(-r));
}

/* Read or not; NULL when memory is short. */
static struct key_file *get_file(struct host_keys *keys, const char *path) {
    struct key_file *file = find_file(keys, path);
    if (file)
        return file;
    file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    text_init(&file->text, HOST_KEYS_FILE_LIMIT);
    file->path = strdup(path);
    if (!file->path) {
        key_file_free(file);
        return NULL;
    }
    fill_file(file);
    file->next = keys->files;
    return keys->files = file;
}

int host_keys_read(struct host_keys *keys, const char *path, struct failure *failure) {
    const struct key_file *file = get_file(keys, path);
    if (!file)
        return failure_memory(failure);
    if (failure && file->trouble.code < 0)
        *failure = file->trouble;
    return file->trouble.code;
}

/* ---- who is meant */

/* As match_pattern() of ssh: * and ?; both sides in lower case. */
static bool matches_pattern(const char *name, const char *pattern) {
    const char *star = NULL, *retry = NULL;
    while (*name) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star;
            name = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static bool matches_one(const char *name, const char *text, size_t length) {
    char pattern[PATTERN_SIZE];
    if (length == 0 || length >= sizeof pattern)
        return false;
    for (size_t i = 0; i < length; i++)
        pattern[i] = (char)tolower((unsigned char)text[i]);
    pattern[length] = '\0';
    return matches_pattern(name, pattern);
}

static bool matches(const char *name, const struct key_file *file, const struct key_line *line) {
    if (line->hashed != NOT_HASHED)
        return hashed_name_matches(&file->hashed[line->hashed], name);
    const char *at = file->text.bytes + line->hosts.at, *end = at + line->hosts.length;
    bool found = false;
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        bool negated = *at == '!';
        if (matches_one(name, at + negated, (size_t)(stop - at) - negated)) {
            if (negated)
                return false;
            found = true;
        }
        at = stop + 1;
    }
    return found;
}

/* Calls VISIT for each line about the host; ends when it returns true. */
typedef bool line_visitor(const struct key_file *file, const struct key_line *line, void *context);

static void visit_file(struct host_keys *keys, const char *path, const char *name, line_visitor *visit,
                       void *context) {
    const struct key_file *file = get_file(keys, path);
    for (size_t i = 0; file && i < file->line_count; i++)
        if (matches(name, file, &file->lines[i]) && visit(file, &file->lines[i], context))
            return;
}

static const char *file_at(const struct host_keys *keys, const struct host_key_place *place, size_t i) {
    return i < place->file_count ? place->files[i] : i == place->file_count ? keys->accepted : NULL;
}

static void visit_all(struct host_keys *keys, const struct host_key_place *place, line_visitor *visit,
                      void *context) {
    const char *path;
    for (size_t i = 0; (path = file_at(keys, place, i)); i++)
        visit_file(keys, path, place->name, visit, context);
}

/* ---- verdicts */

struct search {
    const char *type, *key;
    struct host_key_finding finding;
};

/* A revoked key is not to be trusted whatever else says so, a known one is whatever else is known. */
static bool judge(const struct key_file *file, const struct key_line *line, void *context) {
    struct search *search = context;
    bool same = piece_is(file->text.bytes, line->type, search->type) &&
                piece_is(file->text.bytes, line->key, search->key);
    if (line->revoked && !same)
        return false;
    enum host_key_verdict verdict = line->revoked ? HOST_KEY_REVOKED
                                    : same        ? HOST_KEY_KNOWN
                                                  : HOST_KEY_CHANGED;
    static const int weight[] = {
        [HOST_KEY_UNKNOWN] = 0, [HOST_KEY_CHANGED] = 1, [HOST_KEY_KNOWN] = 2, [HOST_KEY_REVOKED] = 3};
    if (weight[verdict] > weight[search->finding.verdict])
        search->finding =
            (struct host_key_finding){.verdict = verdict, .file = file->path, .line = line->number};
    return verdict == HOST_KEY_REVOKED;
}

/* A file that is not there says nothing. One that is there and cannot be read may say that the key is
 * revoked, or that another is the right one. */
static bool hides_something(struct host_keys *keys, const char *path, struct host_key_finding *ret) {
    const struct key_file *file = get_file(keys, path);
    if (file && (file->trouble.code == 0 || is_absence(file->trouble.code)))
        return false;
    *ret = (struct host_key_finding){.verdict = HOST_KEY_UNREADABLE,
                                     .file = file ? file->path : path,
                                     .reason = file ? file->trouble.text : strerror(ENOMEM)};
    return true;
}

struct host_key_finding host_keys_look_up(struct host_keys *keys, const struct host_key_place *place,
                                          const char *type, const char *key) {
    struct search search = {.type = type, .key = key, .finding.verdict = HOST_KEY_UNKNOWN};
    visit_all(keys, place, judge, &search);
    if (search.finding.verdict == HOST_KEY_CHANGED || search.finding.verdict == HOST_KEY_REVOKED)
        return search.finding;
    const char *path;
    for (size_t i = 0; (path = file_at(keys, place, i)); i++)
        if (hides_something(keys, path, &search.finding))
            break;
    return search.finding;
}

/* What a key of a type signs with. In the order in which they are asked for when nothing is known. */
static const struct {
    const char *type, *algorithms;
} key_types[] = {
    {"ssh-ed25519", "ssh-ed25519"},
    {"ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256"},
    {"ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384"},
    {"ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521"},
    {"ssh-rsa", "rsa-sha2-512,rsa-sha2-256"},
};
enum { KEY_TYPES = sizeof key_types / sizeof key_types[0] };

static bool note_type(const struct key_file *file, const struct key_line *line, void *context) {
    bool *known = context;
    for (size_t i = 0; i < KEY_TYPES && !line->revoked; i++)
        if (piece_is(file->text.bytes, line->type, key_types[i].type))
            known[i] = true;
    return false;
}

int host_keys_algorithms(struct host_keys *keys, const struct host_key_place *place, struct text *ret,
                         struct failure *failure) {
    bool known[KEY_TYPES] = {false};
    visit_all(keys, place, note_type, known);
    int r = 0;
    for (int wanted = 1; wanted >= 0; wanted--)
        for (size_t i = 0; i < KEY_TYPES && r == 0; i++)
            if (known[i] == (wanted == 1))
                r = text_printf(ret, "%s%s", ret->length ? "," : "", key_types[i].algorithms);
    return r < 0 ? failure_memory(failure) : 0;
}

/* ---- the file of this run */

static void on_sync(struct event_source *self, void *context) {
    (void)self;
    struct host_keys *keys = context;
    if (fdatasync(keys->descriptor) < 0 && errno != EINVAL) /* EINVAL: it is a pipe or the like */
        keys->sync_error = -errno;
}

static int open_accepted(struct host_keys *keys, struct failure *failure) {
    if (keys->descriptor >= 0)
        return 0;
    int descriptor = open(keys->accepted, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0)
        return failure_set(failure, -errno, "cannot open '%s' to note a host key: %s", keys->accepted,
                           strerror(errno));
    int r = file_sync_folder_of(keys->accepted, failure);
    if (r < 0) {
        close(descriptor);
        return r;
    }
    keys->descriptor = descriptor;
    return 0;
}

int host_keys_accept(struct host_keys *keys, const char *name, const char *type, const char *key,
                     struct failure *failure) {
    if (!keys->accepted)
        return failure_set(failure, -ENOTSUP, "there is no file in which new host keys are noted");
    if (keys->sync_error < 0)
        return failure_set(failure, keys->sync_error, "cannot keep '%s' on the disk: %s", keys->accepted,
                           strerror(-keys->sync_error));
    int r = open_accepted(keys, failure);
    if (r < 0)
        return r;
    struct key_file *file = find_file(keys, keys->accepted);
    size_t before = file->text.length;
    /* Somebody else's last line may lack its newline. */
    const char *newline = before && file->text.bytes[before - 1] != '\n' ? "\n" : "";
    r = text_printf(&file->text, "%s%s %s %s\n", newline, name, type, key);
    if (r < 0)
        return failure_set(failure, r, "cannot keep the host keys of '%s': %s", keys->accepted, strerror(-r));
    r = file_write_all(keys->descriptor, file->text.bytes + before, file->text.length - before);
    if (r < 0) {
        file->text.bytes[file->text.length = before] = '\0';
        return failure_set(failure, r, "cannot note a host key in '%s': %s", keys->accepted, strerror(-r));
    }
    if (!event_source_timer_is_armed(keys->sync))
        event_source_set_timer(keys->sync, SYNC_DELAY, 0);
    return add_lines(file, (uint32_t)before) < 0 ? failure_memory(failure) : 0;
}

/* ---- life */

int host_keys_new(struct event_loop *loop, const char *accepted, struct host_keys **ret,
                  struct failure *failure) {
    struct host_keys *keys = xcalloc(1, sizeof *keys);
    keys->descriptor = -1;
    keys->sync = event_loop_add_timer(loop, -1, 0, on_sync, keys);
    keys->accepted = accepted ? strdup(accepted) : NULL;
    int r = 0;
    if (!keys->sync || (accepted && !keys->accepted))
        r = failure_memory(failure);
    else if (accepted && is_absence(r = host_keys_read(keys, accepted, failure)))
        r = 0; /* it is made when the first key is noted */
    if (r < 0) {
        host_keys_free(keys);
        return r;
    }
    *ret = keys;
    return 0;
}

void host_keys_free(struct host_keys *keys) {
    if (!keys)
        return;
    if (keys->sync && event_source_timer_is_armed(keys->sync))
        on_sync(keys->sync, keys);
    event_source_remove(keys->sync);
    cleanup_close_descriptor(&keys->descriptor);
    while (keys->files) {
        struct key_file *file = keys->files;
        keys->files = file->next;
        key_file_free(file);
    }
    free(keys->accepted);
    free(keys);
}
