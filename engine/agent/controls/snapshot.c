#include "engine/agent/controls/snapshot.h"

#include "engine/agent/files/sha256.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first line; the number goes up when a later agent could not read what an earlier one wrote. */
#define HEAD "assay-controls\t2\n"

enum { DIGEST_TEXT = 2 * SHA256_SIZE };

/* ---- what it holds */

void snapshot_clear(struct snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->count; i++) {
        free(snapshot->files[i].path);
        free(snapshot->files[i].content);
    }
    free(snapshot->files);
    *snapshot = (struct snapshot){0};
}

static int keep(struct snapshot *snapshot, enum control_index control, bool late, const char *path,
                const char *content, size_t length) {
    int r = list_reserve(&snapshot->files, &snapshot->capacity, snapshot->count + 1, sizeof *snapshot->files,
                         SNAPSHOT_FILES_LIMIT);
    if (r < 0)
        return r;
    struct kept_file *file = &snapshot->files[snapshot->count];
    *file = (struct kept_file){.control = control, .late = late, .length = length};
    file->path = strdup(path);
    file->content = strndup(content, length);
    snapshot->count++; /* half of it is cleared as the whole */
    return file->path && file->content ? 0 : -ENOMEM;
}

/* 1 if it was kept. */
static int keep_present(struct snapshot *snapshot, const struct machine *machine, enum control_index control,
                        bool late, const char *path, struct text *scratch) {
    if (machine_read_bytes(machine, path, scratch) < 0 || scratch->length > SNAPSHOT_CONTENT_LIMIT ||
        memchr(scratch->bytes, '\0', scratch->length))
        return 0;
    int r = keep(snapshot, control, late, path, scratch->bytes, scratch->length);
    return r < 0 ? r : 1;
}

int snapshot_take(const struct layout *layout, struct snapshot *ret) {
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    struct text scratch;
    text_init(&scratch, MACHINE_FILE_LIMIT);
    int r = 0;
    for (unsigned index = 0; index < CONTROL_COUNT && r >= 0; index++) {
        cleanup(control_files_clear) struct control_files files = {0};
        r = control_at((enum control_index)index)->files(layout, &files);
        for (size_t i = 0; i < files.count && r >= 0; i++)
            r = keep_present(&snapshot, layout->machine, (enum control_index)index, false, files.paths[i],
                             &scratch);
    }
    text_clear(&scratch);
    if (r < 0)
        return r;
    daemons_look(layout->machine, snapshot.daemons);
    *ret = snapshot;
    snapshot = (struct snapshot){0};
    return 0;
}

int snapshot_add_late(struct snapshot *snapshot, const struct machine *machine, enum control_index control,
                      const char *path) {
    struct text scratch;
    text_init(&scratch, MACHINE_FILE_LIMIT);
    int r = keep_present(snapshot, machine, control, true, path, &scratch);
    text_clear(&scratch);
    return r;
}

/* ---- as bytes */

static int put_line(struct text *text, const char *const *fields, size_t count) {
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        if (i > 0)
            r = text_append_character(text, '\t');
        if (r == 0)
            r = lines_escape(text, fields[i], strlen(fields[i]));
    }
    return r == 0 ? text_append_character(text, '\n') : r;
}

#define PUT_LINE(text, ...)                                                                                  \
    put_line(text, (const char *const[]){__VA_ARGS__},                                                       \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void digest_text(const char *bytes, size_t length, char ret[static DIGEST_TEXT + 1]) {
    struct sha256 hash;
    unsigned char digest[SHA256_SIZE];
    sha256_init(&hash);
    sha256_add(&hash, bytes, length);
    sha256_end(&hash, digest);
    for (size_t i = 0; i < SHA256_SIZE; i++)
        snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

static int put_touched(const struct snapshot *snapshot, struct text *text) {
    int r = 0;
    for (unsigned index = 0; index < CONTROL_COUNT && r == 0; index++)
        if (snapshot->touched >> index & 1)
            r = PUT_LINE(text, "touched", control_at((enum control_index)index)->name);
    return r;
}

int snapshot_format(const struct snapshot *snapshot, struct text *ret) {
    char pid[NUMBER_TEXT_SIZE], start[NUMBER_TEXT_SIZE], wall[NUMBER_TEXT_SIZE], digest[DIGEST_TEXT + 1];
    number_format_int64(snapshot->owner.pid, pid);
    number_format_uint64(snapshot->owner.start, start);
    number_format_int64(snapshot->wall_ns, wall);
    size_t begin = ret->length;
    int r = text_append_string(ret, HEAD);
    if (r == 0)
        r = PUT_LINE(ret, "machine", snapshot->host, snapshot->boot, snapshot->machine_id);
    if (r == 0)
        r = PUT_LINE(ret, "owner", pid, start, snapshot->session, snapshot->label, wall);
    if (r == 0)
        r = put_touched(snapshot, ret);
    for (size_t i = 0; i < DAEMON_COUNT && r == 0; i++)
        r = PUT_LINE(ret, "daemon", daemon_names[i], daemon_state_names[snapshot->daemons[i]]);
    for (size_t i = 0; i < snapshot->count && r == 0; i++) {
        const struct kept_file *file = &snapshot->files[i];
        r = PUT_LINE(ret, file->late ? "late" : "file", control_at(file->control)->name, file->path,
                     file->content);
    }
    if (r < 0)
        return r;
    digest_text(ret->bytes + begin, ret->length - begin, digest);
    return PUT_LINE(ret, "end", digest);
}

/* ---- and back */

enum { FIELDS = 6 };

struct line {
    char *fields[FIELDS];
    size_t lengths[FIELDS];
    size_t count;
};

/* False if it is malformed or has more fields than any. */
static bool split(char *at, char *end, struct line *ret) {
    *ret = (struct line){0};
    while (at) {
        if (ret->count == FIELDS)
            return false;
        size_t i = ret->count++;
        ret->fields[i] = lines_take_field(&at, end, &ret->lengths[i]);
        if (!ret->fields[i])
            return false;
    }
    return true;
}

/* Only what controls are made of, and no way out of it. */
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
    if (strlen(text) > SNAPSHOT_LABEL_LIMIT)
        return false;
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || *text == 0x7f)
            return false;
    return true;
}

static bool take_owner(const struct line *line, struct snapshot *ret) {
    int64_t pid;
    if (line->count != 6 || !number_parse_int64(line->fields[1], line->lengths[1], &pid) || pid < 0 ||
        pid > INT32_MAX || !number_parse_uint64(line->fields[2], line->lengths[2], &ret->owner.start) ||
        !snapshot_is_session(line->fields[3]) || !snapshot_is_label(line->fields[4]) ||
        !number_parse_int64(line->fields[5], line->lengths[5], &ret->wall_ns))
        return false;
    ret->owner.pid = (pid_t)pid;
    snprintf(ret->session, sizeof ret->session, "%s", line->fields[3]);
    snprintf(ret->label, sizeof ret->label, "%s", line->fields[4]);
    return true;
}

static bool take_daemon(const struct line *line, struct snapshot *ret) {
    if (line->count != 3)
        return false;
    for (int i = 0; i < DAEMON_COUNT; i++)
        for (unsigned state = DAEMON_ABSENT; state <= DAEMON_UNKNOWN; state++)
            if (strcmp(line->fields[1], daemon_names[i]) == 0 &&
                strcmp(line->fields[2], daemon_state_names[state]) == 0) {
                ret->daemons[i] = (enum daemon_state)state;
                return true;
            }
    return false;
}

/* 0, -EBADMSG or -ENOMEM. */
static int take_file(const struct line *line, bool late, struct snapshot *ret) {
    if (line->count != 4 || !is_control_path(line->fields[2]) || line->lengths[3] > SNAPSHOT_CONTENT_LIMIT)
        return -EBADMSG;
    enum control_index control = control_find(line->fields[1]);
    if (control == CONTROL_COUNT)
        return -EBADMSG;
    return keep(ret, control, late, line->fields[2], line->fields[3], line->lengths[3]);
}

static int take_line(const struct line *line, struct snapshot *ret) {
    const char *kind = line->fields[0];
    if (strcmp(kind, "file") == 0 || strcmp(kind, "late") == 0)
        return take_file(line, kind[0] == 'l', ret);
    bool good = false;
    if (strcmp(kind, "machine") == 0 && line->count == 4) {
        good = snprintf(ret->host, sizeof ret->host, "%s", line->fields[1]) < (int)sizeof ret->host &&
               snprintf(ret->boot, sizeof ret->boot, "%s", line->fields[2]) < (int)sizeof ret->boot &&
               snprintf(ret->machine_id, sizeof ret->machine_id, "%s", line->fields[3]) <
                   (int)sizeof ret->machine_id;
    } else if (strcmp(kind, "owner") == 0) {
        good = take_owner(line, ret);
    } else if (strcmp(kind, "daemon") == 0) {
        good = take_daemon(line, ret);
    } else if (strcmp(kind, "touched") == 0 && line->count == 2) {
        enum control_index control = control_find(line->fields[1]);
        good = control < CONTROL_COUNT;
        if (good)
            ret->touched |= 1u << control;
    }
    return good ? 0 : -EBADMSG;
}

/* The bytes before the last line, if that is the digest of them; else 0. */
static size_t checked_length(const char *bytes, size_t length) {
    const size_t last = strlen("end\t") + DIGEST_TEXT + 1;
    char digest[DIGEST_TEXT + 1];
    if (length < last + strlen(HEAD) || memcmp(bytes, HEAD, strlen(HEAD)) != 0)
        return 0;
    const char *end = bytes + length - last;
    if (memcmp(end, "end\t", 4) != 0 || bytes[length - 1] != '\n')
        return 0;
    digest_text(bytes, length - last, digest);
    return memcmp(end + 4, digest, DIGEST_TEXT) == 0 ? length - last : 0;
}

int snapshot_parse(char *bytes, size_t length, struct snapshot *ret, struct failure *failure) {
    size_t checked = checked_length(bytes, length);
    if (checked == 0)
        return failure_set(failure, -EBADMSG,
                           "it is torn or was changed: its checksum is not that of its bytes");
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    size_t number = 1;
    for (char *at = bytes + strlen(HEAD), *end; at < bytes + checked; at = end + 1) {
        struct line line;
        end = memchr(at, '\n', (size_t)(bytes + checked - at));
        int r = end && split(at, end, &line) ? take_line(&line, &snapshot) : -EBADMSG;
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

/* ---- as lines */

void snapshot_tell(const struct snapshot *snapshot, const char *path, struct lines *lines) {
    char wall[NUMBER_TEXT_SIZE], shown[PLAN_PATH_SIZE + 1];
    number_format_int64(snapshot->wall_ns, wall);
    lines_put(lines, "snapshot", path, snapshot->boot, wall, NULL);
    for (size_t i = 0; i < snapshot->count; i++) {
        const struct kept_file *file = &snapshot->files[i];
        snprintf(shown, sizeof shown, "/%s", file->path);
        lines_put(lines, "file", control_at(file->control)->name, shown, file->content, NULL);
    }
    for (size_t i = 0; i < DAEMON_COUNT; i++)
        lines_put(lines, "daemon", daemon_names[i], daemon_state_names[snapshot->daemons[i]], NULL);
}

void snapshot_tell_held(const struct snapshot *snapshot, struct lines *lines) {
    char wall[NUMBER_TEXT_SIZE];
    number_format_int64(snapshot->wall_ns, wall);
    lines_put(lines, "held", snapshot->session, snapshot->label,
              owner_is_alive(&snapshot->owner) ? "alive" : "gone", wall, NULL);
}
