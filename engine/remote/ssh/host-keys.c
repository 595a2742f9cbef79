#include "engine/remote/ssh/host-keys.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/path.h"
#include "engine/remote/ssh/connection-private.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libssh/libssh.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINES_MAX = 1 << 20 };
#define SYNC_DELAY (100 * EVENT_MILLISECOND)

enum marker { MARKER_NONE, MARKER_REVOKED, MARKER_AUTHORITY };

struct key_line {
    char *text; /* in the form that libssh parses: without its marker, fields separated by blanks */
    size_t number;
    enum marker marker;
};

struct key_file {
    struct key_file *next;
    char *path;
    bool revokes;           /* RevokedHostKeys: public keys of any host */
    struct key_line *lines; /* lines with a host and a key */
    size_t count, capacity;
    size_t newlines;
    bool lacks_newline;     /* its last line has no newline */
    struct failure trouble; /* why it could not be read; code 0: it was read */
};

struct host_keys {
    struct key_file *files;
    char *accepted; /* file for new keys; NULL: none */
    bool is_sealed; /* no keys are added to it */
    int descriptor; /* of that file; -1 until the first key is added */
    struct event_source *sync;
    int sync_error;
};

static bool is_absence(int code) {
    return code == -ENOENT || code == -ENOTDIR;
}

/* ---- reading */

/* Adds a line of a file; lines without a host and a key are dropped. 0 or a negative errno. */
static int add_line(struct key_file *file, const char *at, size_t length) {
    static const char *const markers[] = {
        [MARKER_NONE] = "", [MARKER_REVOKED] = "@revoked ", [MARKER_AUTHORITY] = "@cert-authority "};
    cleanup_free char *line = xstrndup(at, length),
                      *text = xformat("%s%s", file->revokes ? "@revoked * " : "", line);
    for (char *c = text; *c; c++)
        if (*c == '\t' || *c == '\r')
            *c = ' ';
    char *start = text + strspn(text, " ");
    enum marker marker = MARKER_AUTHORITY;
    while (strncmp(start, markers[marker], strlen(markers[marker])) != 0)
        marker--;
    start += strlen(markers[marker]);
    start += strspn(start, " ");
    for (char *c = start; *start != '|' && *c && *c != ' '; c++)
        *c = (char)tolower((unsigned char)*c);
    if (!*start || *start == '#' || *start == '@')
        return 0;
    int r = list_reserve(&file->lines, &file->capacity, file->count + 1, sizeof *file->lines, LINES_MAX);
    if (r == 0)
        file->lines[file->count++] = (struct key_line){xstrdup(start), file->newlines + 1, marker};
    return r;
}

/* Parses the lines of TEXT into FILE, and notes whether the last one has a newline. */
static int add_lines(struct key_file *file, const char *text) {
    while (*text) {
        size_t length = strcspn(text, "\n");
        int r = add_line(file, text, length);
        if (r < 0)
            return r;
        text += length;
        file->lacks_newline = *text == '\0';
        file->newlines += !file->lacks_newline;
        text += !file->lacks_newline;
    }
    return 0;
}

/* Reads and parses the file; what is wrong with it is in file->trouble. */
static void fill_file(struct key_file *file) {
    cleanup(text_clear) struct text text;
    text_init(&text, HOST_KEYS_FILE_MAX);
    int r = file_read(file->path, &text, &file->trouble);
    if (r == 0 && file->revokes && text.length >= 6 && memcmp(text.bytes, "SSHKRL", 6) == 0)
        failure_set(
            &file->trouble, -EINVAL,
            "a key revocation list of ssh-keygen -k is not read; expected public keys, one a line, as "
            "RevokedHostKeys, or use " SSH_LAUNCHER);
    else if (r == 0 && strlen(text.bytes) != text.length)
        failure_set(&file->trouble, -EINVAL, "'%s' has a zero byte", file->path);
    else if (r == 0 && (r = add_lines(file, text.bytes)) < 0)
        failure_set(&file->trouble, r, "'%s' has more than %d lines", file->path, LINES_MAX);
}

/* The file PATH, which is read at the first call; `trouble` tells whether that succeeded. */
static struct key_file *get_file(struct host_keys *keys, const char *path, bool revokes) {
    struct key_file *file = keys->files;
    while (file && (file->revokes != revokes || strcmp(file->path, path) != 0))
        file = file->next;
    if (file)
        return file;
    file = xcalloc(1, sizeof *file);
    file->path = xstrdup(path);
    file->revokes = revokes;
    fill_file(file);
    file->next = keys->files;
    return keys->files = file;
}

int host_keys_read(struct host_keys *keys, const char *path, struct failure *failure) {
    const struct key_file *file = get_file(keys, path, false);
    if (failure && file->trouble.code < 0)
        *failure = file->trouble;
    return file->trouble.code;
}

/* ---- matching host names */

/* True where TEXT matches the LENGTH bytes of PATTERN, in which "*" matches any bytes and "?" one byte. Only
 * the last "*" is tried again, so that the time is bounded by the product of both lengths. */
static bool matches(const char *pattern, size_t length, const char *text) {
    size_t at = 0, star = SIZE_MAX;
    const char *again = text;
    while (*text) {
        if (at < length && pattern[at] == '*') {
            star = at++;
            again = text;
        } else if (at < length && (pattern[at] == '?' || pattern[at] == *text)) {
            at++;
            text++;
        } else if (star != SIZE_MAX) {
            at = star + 1;
            text = ++again;
        } else {
            return false;
        }
    }
    while (at < length && pattern[at] == '*')
        at++;
    return at == length;
}

/* True where NAME matches one of the patterns at the beginning of LINE, separated by commas, and none that
 * begins with "!". */
static bool names(const char *line, const char *name) {
    const char *end = line + strcspn(line, " ");
    bool found = false;
    for (const char *at = line; at < end; at += strcspn(at, ", ") + 1) {
        bool excludes = *at == '!';
        const char *pattern = at + excludes;
        if (!matches(pattern, strcspn(pattern, ", "), name))
            continue;
        if (excludes)
            return false;
        found = true;
    }
    return found;
}

/* The key of LINE, if it is for NAME; NULL: it is not, or libssh does not know the kind of key. The caller
 * frees. The patterns are replaced by NAME for libssh, which might match them in exponential time; hashed
 * names are left to libssh. */
static ssh_key key_for(const char *name, const struct key_line *line) {
    struct ssh_knownhosts_entry *entry = NULL;
    bool hashed = *line->text == '|';
    if (!hashed && !names(line->text, name))
        return NULL;
    cleanup_free char *plain = hashed ? NULL : xformat("%s%s", name, line->text + strcspn(line->text, " "));
    if (ssh_known_hosts_parse_line(name, hashed ? line->text : plain, &entry) != SSH_OK)
        return NULL;
    ssh_key key = take_pointer(entry->publickey);
    ssh_knownhosts_entry_free(entry);
    return key;
}

/* The file number I of those to search for PLACE; NULL after the last. */
static const struct key_file *file_at(struct host_keys *keys, const struct host_key_place *place, size_t i) {
    if (place->revoked && i-- == 0)
        return get_file(keys, place->revoked, true);
    const char *path = i < place->file_count    ? place->files[i]
                       : i == place->file_count ? keys->accepted
                                                : NULL;
    return path ? get_file(keys, path, false) : NULL;
}

/* ---- verdicts */

/* Compares KEY, which the host NAME has shown, with all lines of FILE, and raises the verdict of FINDING:
 * revoked overrides known, known overrides changed. Of a @cert-authority line only the place is noted, since
 * host certificates are not supported. */
static void compare_with_lines(const struct key_file *file, const char *name, ssh_key key,
                               struct host_key_finding *finding) {
    static const int weight[] = {
        [HOST_KEY_UNKNOWN] = 0, [HOST_KEY_CHANGED] = 1, [HOST_KEY_KNOWN] = 2, [HOST_KEY_REVOKED] = 3};
    for (size_t i = 0; i < file->count; i++) {
        const struct key_line *line = &file->lines[i];
        ssh_key known = key_for(name, line);
        bool same = known && ssh_key_cmp(known, key, SSH_KEY_CMP_PUBLIC) == 0;
        bool counts = known && (same || line->marker == MARKER_NONE);
        ssh_key_free(known);
        enum host_key_verdict verdict = line->marker == MARKER_REVOKED ? HOST_KEY_REVOKED
                                        : same                         ? HOST_KEY_KNOWN
                                                                       : HOST_KEY_CHANGED;
        if (known && line->marker == MARKER_AUTHORITY) {
            if (finding->verdict == HOST_KEY_UNKNOWN)
                *finding = (struct host_key_finding){
                    .file = file->path, .line = line->number, .verdict = HOST_KEY_UNKNOWN};
        } else if (counts && weight[verdict] > weight[finding->verdict]) {
            *finding = (struct host_key_finding){verdict, file->path, line->number, NULL};
        }
    }
}

/* Looks KEY up under NAME in all files of known and revoked keys of PLACE. */
static struct host_key_finding look_up(struct host_keys *keys, const struct host_key_place *place,
                                       const char *name, const struct ssh_key_struct *key) {
    struct host_key_finding finding = {.verdict = HOST_KEY_UNKNOWN};
    const struct key_file *file, *unreadable = NULL;
    for (size_t i = 0; (file = file_at(keys, place, i)); i++) {
        compare_with_lines(file, name, (ssh_key)key, &finding);
        /* As in OpenSSH, a missing file of revoked keys forbids all keys. */
        if (file->trouble.code < 0 && (file->revokes || !is_absence(file->trouble.code)))
            unreadable = file;
    }
    /* A file that exists and cannot be read may revoke the key, or have another. */
    if (unreadable && finding.verdict != HOST_KEY_CHANGED && finding.verdict != HOST_KEY_REVOKED)
        finding =
            (struct host_key_finding){HOST_KEY_UNREADABLE, unreadable->path, 0, unreadable->trouble.text};
    return finding;
}

struct host_key_finding host_keys_look_up(struct host_keys *keys, const struct host_key_place *place,
                                          const struct ssh_key_struct *key) {
    struct host_key_finding finding = look_up(keys, place, place->name, key);
    if (finding.verdict != HOST_KEY_UNKNOWN || !place->name_without_port)
        return finding;
    /* As in OpenSSH, a server at another port may have the key of the host, or another. */
    struct host_key_finding other = look_up(keys, place, place->name_without_port, key);
    bool counts = other.verdict == HOST_KEY_KNOWN || other.verdict == HOST_KEY_REVOKED ||
                  (other.verdict == HOST_KEY_UNKNOWN && !finding.file);
    return counts ? other : finding;
}

/* The signature algorithms of each type of key, in the order of preference where no key is known. */
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

/* Marks the types of the keys that the file has for the host. */
static void find_types(const struct key_file *file, const char *name, bool found[static KEY_TYPES]) {
    for (size_t i = 0; i < file->count; i++) {
        ssh_key key = file->lines[i].marker != MARKER_NONE ? NULL : key_for(name, &file->lines[i]);
        const char *type = key ? ssh_key_type_to_char(ssh_key_type(key)) : NULL;
        for (size_t k = 0; type && k < KEY_TYPES; k++)
            found[k] |= strcmp(type, key_types[k].type) == 0;
        ssh_key_free(key);
    }
}

/* The algorithms to offer the server: first those of the known keys of the host, then the others. */
void host_keys_algorithms(struct host_keys *keys, const struct host_key_place *place, struct text *ret) {
    bool known[KEY_TYPES] = {false};
    const struct key_file *file;
    bool any = false;
    for (size_t i = 0; (file = file_at(keys, place, i)); i++)
        find_types(file, place->name, known);
    for (size_t k = 0; k < KEY_TYPES; k++)
        any |= known[k];
    for (size_t i = 0; !any && place->name_without_port && (file = file_at(keys, place, i)); i++)
        find_types(file, place->name_without_port, known);
    for (int wanted = 1; wanted >= 0; wanted--)
        for (size_t i = 0; i < KEY_TYPES; i++)
            if (known[i] == (wanted == 1))
                (void)text_printf(ret, "%s%s", ret->length ? "," : "", key_types[i].algorithms);
}

/* ---- adding keys to the file of this run */

static void on_sync(struct event_source *self, void *context) {
    (void)self;
    struct host_keys *keys = context;
    if (fdatasync(keys->descriptor) < 0 && errno != EINVAL) /* EINVAL: it is a pipe or the like */
        keys->sync_error = -errno;
}

/* Opens the file that accepted keys are appended to, once, and makes it if it does not exist. */
static int open_accepted(struct host_keys *keys, struct failure *failure) {
    if (keys->descriptor >= 0)
        return 0;
    int r = path_check(keys->accepted, PATH_PLACE, failure);
    if (r < 0)
        return r;
    cleanup_close int descriptor = open(keys->accepted, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0)
        return failure_set(failure, -errno, "cannot open '%s' to note a host key: %s", keys->accepted,
                           strerror(errno));
    r = file_sync_folder_of(keys->accepted, failure);
    if (r == 0)
        keys->descriptor = take_descriptor(descriptor);
    return r;
}

/* Appends an unknown host key to the file of accepted keys, which is synced a little later. -ENOTSUP: no such
 * file is configured. */
int host_keys_accept(struct host_keys *keys, const char *name, const char *type, const char *key,
                     struct failure *failure) {
    if (!keys->accepted || keys->is_sealed)
        return failure_set(failure, -ENOTSUP, "no file is configured for new host keys (UserKnownHostsFile)");
    if (keys->sync_error < 0)
        return failure_set(failure, keys->sync_error, "cannot write '%s' to the disk: %s", keys->accepted,
                           strerror(-keys->sync_error));
    int r = open_accepted(keys, failure);
    if (r < 0)
        return r;
    struct key_file *file = get_file(keys, keys->accepted, false);
    cleanup_free char *line = xformat("%s%s %s %s\n", file->lacks_newline ? "\n" : "", name, type, key);
    r = file_write_all(keys->descriptor, line, strlen(line));
    if (r == 0)
        r = add_lines(file, line);
    if (r < 0)
        return failure_set(failure, r, "cannot note a host key in '%s': %s", keys->accepted, strerror(-r));
    if (!event_source_timer_is_armed(keys->sync))
        event_source_set_timer(keys->sync, SYNC_DELAY, 0);
    return 0;
}

/* ---- making and freeing */

int host_keys_new(struct event_loop *loop, const char *accepted, struct host_keys **ret,
                  struct failure *failure) {
    struct host_keys *keys = xcalloc(1, sizeof *keys);
    keys->descriptor = -1;
    keys->sync = event_loop_add_timer(loop, -1, 0, on_sync, keys);
    keys->accepted = accepted ? xstrdup(accepted) : NULL;
    int r = keys->sync ? 0 : failure_memory(failure);
    if (r == 0 && accepted)
        r = host_keys_read(keys, accepted, failure);
    if (r < 0 && !is_absence(r)) { /* an absent file is made when the first key is added */
        host_keys_free(keys);
        return r;
    }
    *ret = keys;
    return 0;
}

void host_keys_seal(struct host_keys *keys) {
    keys->is_sealed = true;
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
        for (size_t i = 0; i < file->count; i++)
            free(file->lines[i].text);
        free(file->lines);
        free(file->path);
        free(file);
    }
    free(keys->accepted);
    free(keys);
}
