#include "engine/run/record/journal-read.h"

#include "engine/documents/json.h"
#include "engine/foundation/checksum.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 128 << 10 };

/* ---- Lines ------------------------------------------------------------------------------------- */

void journal_format_tail(uint32_t crc, char tail[static JOURNAL_TAIL_BYTES + 1]) {
    memcpy(tail, ",\"crc32c\":\"00000000\"}", JOURNAL_TAIL_BYTES + 1);
    for (size_t digit = JOURNAL_TAIL_BYTES - 3; crc; digit--, crc >>= 4)
        tail[digit] = "0123456789abcdef"[crc & 15];
}

/* A line is whole if the checksum in its last member is right. */
bool journal_line_is_whole(const char *line, size_t length) {
    char expected[JOURNAL_TAIL_BYTES + 1];
    if (length <= JOURNAL_TAIL_BYTES)
        return false;
    size_t body = length - JOURNAL_TAIL_BYTES;
    journal_format_tail(checksum_crc32c(line, body), expected);
    return memcmp(line + body, expected, JOURNAL_TAIL_BYTES) == 0;
}

/* ---- Members ----------------------------------------------------------------------------------- */

static const cJSON *find_member(const struct journal_entry *entry, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(entry->members, key);
}

/* False for numbers beyond 2^53, which JSON readers do not keep exactly. */
static bool integer_of(const cJSON *member, int64_t *ret) {
    static const double exact = 9007199254740992; /* 2^53 */
    if (!cJSON_IsNumber(member) || !(fabs(member->valuedouble) <= exact) ||
        floor(member->valuedouble) != member->valuedouble)
        return false;
    *ret = (int64_t)member->valuedouble;
    return true;
}

static bool time_of(const cJSON *member, int64_t *ret) {
    const char *digits = cJSON_GetStringValue(member);
    return digits ? number_parse_int64(digits, strlen(digits), ret) : integer_of(member, ret);
}

bool journal_entry_integer(const struct journal_entry *entry, const char *key, int64_t *ret) {
    return integer_of(find_member(entry, key), ret);
}

bool journal_entry_time(const struct journal_entry *entry, const char *key, int64_t *ret) {
    return time_of(find_member(entry, key), ret);
}

/* Copies the text KEY of ENTRY into BUFFER; false: there is none. A text that is too long is cut between
 * UTF-8 characters. */
bool journal_entry_text(const struct journal_entry *entry, const char *key, char *buffer, size_t size) {
    const char *text = cJSON_GetStringValue(find_member(entry, key));
    if (!text)
        return false;
    size_t length = strlen(text);
    if (length >= size) /* no half of a UTF-8 character stays */
        for (length = size - 1; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80;)
            length--;
    memcpy(buffer, text, length);
    buffer[length] = '\0';
    return true;
}

/* Parses a whole line: an object that begins with seq, t, m and event. False: it does not. */
static bool parse_entry(cJSON *members, struct journal_entry *ret) {
    static const char *const keys[] = {"seq", "t", "m", "event"};
    const cJSON *first[4], *member = cJSON_IsObject(members) ? members->child : NULL;
    int64_t sequence;
    for (size_t i = 0; i < 4; i++, member = member->next) {
        if (!member || strcmp(member->string, keys[i]) != 0)
            return false;
        first[i] = member;
    }
    *ret = (struct journal_entry){.members = members, .event = cJSON_GetStringValue(first[3])};
    if (!ret->event || !integer_of(first[0], &sequence) || sequence < 1 ||
        !time_of(first[1], &ret->wall_ns) || !time_of(first[2], &ret->monotonic_ns) || ret->monotonic_ns < 0)
        return false;
    ret->sequence = (uint64_t)sequence;
    return true;
}

/* ---- Replay ------------------------------------------------------------------------------------ */

struct replay {
    journal_handler *handle;
    void *context;
    struct journal_end end;
    bool torn; /* a line that is not whole was met */
    struct json_arena *arena;
};

/* Hands a whole LINE, without newline, to the handler, if its number is the next. After the first bad line
 * only whole lines are counted. */
static int replay_line(struct replay *replay, const char *line, size_t length, struct failure *failure) {
    bool whole = length <= JOURNAL_LINE_BYTES_MAX && journal_line_is_whole(line, length);
    cJSON *members = whole && !replay->torn ? json_arena_parse(replay->arena, line, length) : NULL;
    struct journal_entry entry;
    int r = 0;
    if (parse_entry(members, &entry) && entry.sequence == replay->end.entries + 1) {
        replay->end.entries++;
        replay->end.bytes += length + 1;
        r = replay->handle ? replay->handle(&entry, replay->context, failure) : 0;
    } else {
        replay->end.whole_after += replay->torn && whole;
        replay->torn = true;
    }
    json_arena_delete(replay->arena, members);
    return r;
}

/* Reads lines from SOURCE and replays them. Lines above JOURNAL_LINE_BYTES_MAX count as torn. */
int journal_replay_from(const struct journal_source *source, journal_handler *handle, void *context,
                        struct journal_end *end, struct failure *failure) {
    cleanup_free struct json_arena *arena = xmalloc(sizeof *arena);
    struct replay replay = {.handle = handle,
                            .context = context,
                            .arena = arena,
                            .end = {.bytes = end->bytes, .entries = end->entries}};
    replay.end.file_bytes = end->bytes;
    cleanup_free char *piece = xmalloc(READ_BYTES), *line = xmalloc(JOURNAL_LINE_BYTES_MAX + 1);
    size_t length = 0;
    int64_t got;
    while ((got = source->read(source->context, piece, READ_BYTES)) > 0) {
        replay.end.file_bytes += (uint64_t)got;
        for (char *at = piece, *stop = piece + got; at < stop;) {
            char *newline = memchr(at, '\n', (size_t)(stop - at));
            size_t more = (size_t)((newline ? newline : stop) - at),
                   room = JOURNAL_LINE_BYTES_MAX + 1 - length;
            memcpy(line + length, at,
                   more < room ? more : room); /* one byte more shows that it is too long */
            length += more < room ? more : room;
            at += more + 1;
            int r = newline ? replay_line(&replay, line, length, failure) : 0;
            if (r < 0)
                return r;
            length = newline ? 0 : length;
        }
    }
    if (got < 0)
        return failure_set(failure, (int)got, "cannot read '%s': %s", source->name, strerror((int)-got));
    *end = replay.end;
    return 0;
}

static int64_t read_file(void *context, char *buffer, size_t room) {
    ssize_t got = TEMP_FAILURE_RETRY(read(*(const int *)context, buffer, room));
    return got < 0 ? -errno : got;
}

/* Calls HANDLE for each whole entry of the journal PATH after END->bytes. Fails if the file is shorter than
 * that. */
int journal_replay(const char *path, journal_handler *handle, void *context, struct journal_end *end,
                   struct failure *failure) {
    /* O_NONBLOCK: what looks like a journal may be a FIFO, which would block. */
    cleanup_close int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) < 0)
        return failure_set(failure, -errno, "cannot open '%s': %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return failure_set(failure, -EINVAL, "'%s' is not a file", path);
    if ((uint64_t)status.st_size < end->bytes || lseek(file, (off_t)end->bytes, SEEK_SET) < 0)
        return failure_set(failure, -EBADMSG,
                           "'%s' was cut short by another program while it was read; run the command again",
                           path);
    return journal_replay_from(&(struct journal_source){path, read_file, &file}, handle, context, end,
                               failure);
}
