#include "engine/agent/controls/snapshot.h"

#include "engine/agent/files/sha256.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first line. The number is raised when the format changes so that agents cannot read each other's files.
 */
#define HEAD "assay-controls\t3\n"

enum { DIGEST_LENGTH = 2 * SHA256_SIZE };

/* ---- files */

void snapshot_clear(struct snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->count; i++) {
        free(snapshot->files[i].path);
        free(snapshot->files[i].content);
    }
    free(snapshot->files);
    *snapshot = (struct snapshot){0};
}

/* Appends a file with a copy of its path and content. 0 or a negative errno. */
static int add_file(struct snapshot *snapshot, enum control_index control, bool late, const char *path,
                    const char *content, size_t length) {
    int r = list_reserve(&snapshot->files, &snapshot->capacity, snapshot->count + 1, sizeof *snapshot->files,
                         SNAPSHOT_FILES_MAX);
    if (r < 0)
        return r;
    struct saved_file *file = &snapshot->files[snapshot->count++];
    *file = (struct saved_file){.control = control, .late = late, .length = length};
    file->path = strdup(path);
    file->content = strndup(content, length);
    return file->path && file->content ? 0 : -ENOMEM;
}

int snapshot_add(struct snapshot *snapshot, const struct machine *machine, enum control_index control,
                 bool late, const char *path) {
    char content[SNAPSHOT_CONTENT_MAX_BYTES + 1];
    ssize_t length = machine_read_small(machine, path, content, sizeof content);
    if (length < 0 || memchr(content, '\0', (size_t)length))
        return 0;
    int r = add_file(snapshot, control, late, path, content, (size_t)length);
    return r < 0 ? r : 1;
}

/* Reads the files of all controls and the states of the daemons. 0 or a negative errno. */
int snapshot_read_files(const struct layout *layout, struct snapshot *ret) {
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    int r = 0;
    for (enum control_index index = 0; index < CONTROL_COUNT && r >= 0; index++) {
        cleanup(plan_clear) struct plan files = {0};
        control_list_files(control_at(index), layout, &files);
        r = files.error;
        for (size_t i = 0; i < files.count && r >= 0; i++)
            r = snapshot_add(&snapshot, layout->machine, index, false, files.writes[i].path);
    }
    if (r < 0)
        return r;
    daemons_read_states(layout->machine, snapshot.daemons);
    *ret = snapshot;
    snapshot = (struct snapshot){0};
    return 0;
}

/* ---- writing */

static void format_digest(const char *bytes, size_t length, char ret[static DIGEST_LENGTH + 1]) {
    struct sha256 hash;
    unsigned char digest[SHA256_SIZE];
    sha256_init(&hash);
    sha256_add(&hash, bytes, length);
    sha256_end(&hash, digest);
    sha256_to_hex(digest, ret);
}

static void put_daemons(const struct snapshot *snapshot, struct lines *lines) {
    for (size_t i = 0; i < DAEMON_COUNT; i++)
        lines_put(lines, "daemon", daemon_names[i], daemon_state_names[snapshot->daemons[i]], NULL);
}

void snapshot_format(const struct snapshot *snapshot, struct lines *ret) {
    const struct owner *owner = &snapshot->owner;
    char digest[DIGEST_LENGTH + 1];
    ret->error = text_append_string(&ret->text, HEAD);
    lines_put(ret, "boot", snapshot->boot, NULL);
    lines_put(ret, "owner", lines_field("%ld", (long)owner->pid), lines_field("%" PRIu64, owner->start),
              lines_field("%" PRIu64, owner->namespace), snapshot->session, snapshot->label,
              lines_field("%" PRId64, snapshot->wall_ns), NULL);
    for (enum control_index index = 0; index < CONTROL_COUNT; index++)
        if (snapshot->touched >> index & 1)
            lines_put(ret, "touched", control_at(index)->name, NULL);
    put_daemons(snapshot, ret);
    for (size_t i = 0; i < snapshot->count; i++) {
        const struct saved_file *file = &snapshot->files[i];
        lines_put(ret, file->late ? "late" : "file", control_at(file->control)->name, file->path,
                  file->content, NULL);
    }
    format_digest(ret->text.bytes, ret->text.length, digest);
    lines_put(ret, "end", digest, NULL);
}

/* ---- reading */

enum { FIELDS_MAX = 7 };

struct line {
    char *fields[FIELDS_MAX];
    size_t lengths[FIELDS_MAX];
    size_t count;
};

/* Splits the line from AT to END into RET. False if it is malformed or has more than FIELDS_MAX fields. */
static bool split_line(char *at, char *end, struct line *ret) {
    for (ret->count = 0; at && ret->count < FIELDS_MAX; ret->count++) {
        ret->fields[ret->count] = lines_read_field(&at, end, &ret->lengths[ret->count]);
        if (!ret->fields[ret->count])
            return false;
    }
    return !at;
}

/* True for a PATH below the folders that have files of controls, without "..". */
static bool is_control_path(const char *path) {
    return (strncmp(path, "sys/devices/system/cpu/", 23) == 0 || strncmp(path, "sys/kernel/mm/", 14) == 0 ||
            strncmp(path, "proc/sys/kernel/", 16) == 0) &&
           !strstr(path, "/../") && !strstr(path, "/./") && strlen(path) < PLAN_PATH_SIZE;
}

bool snapshot_is_session(const char *text) {
    size_t length = strlen(text);
    return length == 0 || (length == 16 && strspn(text, "0123456789abcdef") == 16);
}

bool snapshot_is_label(const char *text) {
    if (strlen(text) > SNAPSHOT_LABEL_MAX_BYTES)
        return false;
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || *text == 0x7f)
            return false;
    return true;
}

static bool read_number(const struct line *line, size_t i, uint64_t max, uint64_t *ret) {
    return number_parse_uint64(line->fields[i], line->lengths[i], ret) && *ret <= max;
}

static bool read_owner(const struct line *line, struct snapshot *ret) {
    uint64_t pid, wall;
    if (!read_number(line, 1, INT32_MAX, &pid) || !read_number(line, 2, UINT64_MAX, &ret->owner.start) ||
        !read_number(line, 3, UINT64_MAX, &ret->owner.namespace) || !snapshot_is_session(line->fields[4]) ||
        !snapshot_is_label(line->fields[5]) || !read_number(line, 6, INT64_MAX, &wall))
        return false;
    ret->owner.pid = (pid_t)pid;
    ret->wall_ns = (int64_t)wall;
    snprintf(ret->session, sizeof ret->session, "%s", line->fields[4]);
    snprintf(ret->label, sizeof ret->label, "%s", line->fields[5]);
    return true;
}

static bool read_daemon(const struct line *line, struct snapshot *ret) {
    for (int i = 0; i < DAEMON_COUNT; i++)
        for (enum daemon_state state = DAEMON_ABSENT; state <= DAEMON_UNKNOWN; state++)
            if (strcmp(line->fields[1], daemon_names[i]) == 0 &&
                strcmp(line->fields[2], daemon_state_names[state]) == 0) {
                ret->daemons[i] = state;
                return true;
            }
    return false;
}

/* Reads one line of a snapshot into RET. 0, -EBADMSG or -ENOMEM. */
static int read_line(const struct line *line, struct snapshot *ret) {
    static const struct {
        const char *kind;
        size_t count;
    } kinds[] = {{"boot", 2}, {"owner", 7}, {"touched", 2}, {"daemon", 3}, {"file", 4}, {"late", 4}};
    size_t kind = 0;
    while (kind < 6 && (strcmp(line->fields[0], kinds[kind].kind) != 0 || line->count != kinds[kind].count))
        kind++;
    enum control_index control = line->count > 1 ? control_find(line->fields[1]) : CONTROL_COUNT;
    bool good = false;
    if (kind == 0)
        good = snprintf(ret->boot, sizeof ret->boot, "%s", line->fields[1]) < (int)sizeof ret->boot;
    else if (kind == 1)
        good = read_owner(line, ret);
    else if (kind == 2 && (good = control < CONTROL_COUNT))
        ret->touched |= 1u << control;
    else if (kind == 3)
        good = read_daemon(line, ret);
    else if (kind < 6 && control < CONTROL_COUNT && is_control_path(line->fields[2]) &&
             line->lengths[3] <= SNAPSHOT_CONTENT_MAX_BYTES)
        return add_file(ret, control, kind == 5, line->fields[2], line->fields[3], line->lengths[3]);
    return good ? 0 : -EBADMSG;
}

/* The number of bytes before the last line, if that line has their digest; else 0. */
static size_t checked_length(const char *bytes, size_t length) {
    const size_t last = strlen("end\t") + DIGEST_LENGTH + 1;
    char digest[DIGEST_LENGTH + 1];
    if (length < last + strlen(HEAD) || memcmp(bytes, HEAD, strlen(HEAD)) != 0)
        return 0;
    const char *end = bytes + length - last;
    if (memcmp(end, "end\t", 4) != 0 || bytes[length - 1] != '\n')
        return 0;
    format_digest(bytes, length - last, digest);
    return memcmp(end + 4, digest, DIGEST_LENGTH) == 0 ? length - last : 0;
}

int snapshot_parse(char *bytes, size_t length, struct snapshot *ret, struct failure *failure) {
    size_t checked = checked_length(bytes, length);
    if (checked == 0)
        return failure_set(failure, -EBADMSG, "it is incomplete or was changed: its checksum does not match");
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    size_t number = 1;
    for (char *at = bytes + strlen(HEAD), *end; at < bytes + checked; at = end + 1) {
        struct line line;
        end = memchr(at, '\n', (size_t)(bytes + checked - at));
        int r = end && split_line(at, end, &line) ? read_line(&line, &snapshot) : -EBADMSG;
        number++;
        if (r == -EBADMSG)
            return failure_set(failure, r, "line %zu is not one of a snapshot", number);
        if (r < 0)
            return failure_memory(failure);
    }
    *ret = snapshot;
    snapshot = (struct snapshot){0};
    return 0;
}

/* ---- lines for the reader of the tool */

void snapshot_print(const struct snapshot *snapshot, const char *path, struct lines *lines) {
    lines_put(lines, "snapshot", path, snapshot->boot, lines_field("%" PRId64, snapshot->wall_ns), NULL);
    for (size_t i = 0; i < snapshot->count; i++) {
        const struct saved_file *file = &snapshot->files[i];
        lines_put(lines, "file", control_at(file->control)->name, lines_field("/%s", file->path),
                  file->content, NULL);
    }
    put_daemons(snapshot, lines);
}

void snapshot_print_held(const struct snapshot *snapshot, struct lines *lines) {
    lines_put(lines, "held", snapshot->session, snapshot->label,
              owner_is_alive(&snapshot->owner) ? "alive" : "gone", lines_field("%" PRId64, snapshot->wall_ns),
              NULL);
}
