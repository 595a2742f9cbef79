#include "engine/run/record/journal-read.h"

#include "engine/documents/json.h"
#include "engine/foundation/checksum.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <fcntl.h>
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

bool journal_line_is_whole(const char *line, size_t length) {
    char expected[JOURNAL_TAIL_BYTES + 1];
    if (length <= JOURNAL_TAIL_BYTES)
        return false;
    size_t body = length - JOURNAL_TAIL_BYTES;
    journal_format_tail(checksum_crc32c(line, body), expected);
    return memcmp(line + body, expected, JOURNAL_TAIL_BYTES) == 0;
}

/* ---- Members ----------------------------------------------------------------------------------- */

struct member {
    const char *key; /* as it is written; ours have nothing to unescape */
    size_t key_length;
    const char *value; /* as it is written: digits, "text" with its quotes, null */
    size_t length;
};

/* Behind the string whose opening quote is at AT; NULL if it has no end. */
static const char *skip_string(const char *at, const char *end) {
    while (at < end && (at = memchr(at + 1, '"', (size_t)(end - at - 1)))) {
        const char *slash = at;
        while (slash[-1] == '\\') /* at last the opening quote is met */
            slash--;
        if ((at - slash) % 2 == 0)
            return at + 1;
    }
    return NULL;
}

/* The member behind the brace or comma at *AT, which moves behind it. Values are strings and literals: ours
 * have no lists or objects. */
static bool next_member(const char **at, const char *end, struct member *ret) {
    const char *key = *at + 1;
    if (key >= end || *key != '"')
        return false;
    const char *colon = skip_string(key, end);
    if (!colon || colon == end || *colon != ':')
        return false;
    const char *value = colon + 1, *behind = value;
    if (value < end && *value == '"')
        behind = skip_string(value, end);
    if (!behind)
        return false;
    behind = memchr(behind, ',', (size_t)(end - behind));
    behind = behind ? behind : end;
    *ret = (struct member){key + 1, (size_t)(colon - key - 2), value, (size_t)(behind - value)};
    *at = behind;
    return true;
}

static bool find_member(const struct journal_entry *entry, const char *key, struct member *ret) {
    size_t length = strlen(key);
    for (const char *at = entry->line; next_member(&at, entry->line + entry->length, ret);)
        if (ret->key_length == length && memcmp(ret->key, key, length) == 0)
            return true;
    return false;
}

static bool parse_integer(const struct member *member, int64_t *ret) {
    size_t quote = member->length > 2 && member->value[0] == '"';
    return number_parse_int64(member->value + quote, member->length - 2 * quote, ret);
}

bool journal_entry_is(const struct journal_entry *entry, const char *event) {
    return strncmp(event, entry->event, entry->event_length) == 0 && event[entry->event_length] == '\0';
}

bool journal_entry_integer(const struct journal_entry *entry, const char *key, int64_t *ret) {
    struct member member;
    return find_member(entry, key, &member) && parse_integer(&member, ret);
}

bool journal_entry_text(const struct journal_entry *entry, const char *key, char *buffer, size_t size) {
    struct member member;
    cleanup(json_cleanup) cJSON *unescaped = NULL;
    if (!find_member(entry, key, &member) || member.length < 2 || member.value[0] != '"')
        return false;
    const char *text = member.value + 1;
    size_t length = member.length - 2;
    if (memchr(text, '\\', length)) {
        unescaped = cJSON_ParseWithLength(member.value, member.length);
        if (!cJSON_IsString(unescaped))
            return false;
        text = unescaped->valuestring;
        length = strlen(text);
    }
    if (length >= size) /* no half of a UTF-8 character stays */
        for (length = size - 1; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80;)
            length--;
    memcpy(buffer, text, length);
    buffer[length] = '\0';
    return true;
}

/* The members that every entry begins with; the others are looked for behind them. */
static bool parse_entry(const char *line, size_t length, struct journal_entry *ret) {
    static const char *const keys[] = {"seq", "t", "m", "event"};
    struct member members[4];
    int64_t sequence;
    *ret = (struct journal_entry){.line = line};
    for (size_t i = 0; i < 4; i++)
        if (!next_member(&ret->line, line + length, &members[i]) ||
            members[i].key_length != strlen(keys[i]) ||
            memcmp(members[i].key, keys[i], members[i].key_length) != 0)
            return false;
    if (!parse_integer(&members[0], &sequence) || sequence < 1 ||
        !parse_integer(&members[1], &ret->wall_ns) || !parse_integer(&members[2], &ret->monotonic_ns) ||
        ret->monotonic_ns < 0 || members[3].length < 2 || members[3].value[0] != '"')
        return false;
    ret->sequence = (uint64_t)sequence;
    ret->event = members[3].value + 1;
    ret->event_length = members[3].length - 2;
    ret->length = (size_t)(line + length - ret->line);
    return true;
}

/* ---- Replay ------------------------------------------------------------------------------------ */

struct replay {
    journal_taker *take;
    void *context;
    struct journal_end end;
    bool torn; /* a line that is not whole was met */
};

/* LINE without its newline. */
static int take_line(struct replay *replay, const char *line, size_t length, struct failure *failure) {
    bool whole = length <= JOURNAL_LINE_BYTES_MAX && journal_line_is_whole(line, length);
    struct journal_entry entry;
    if (!replay->torn && whole && parse_entry(line, length - JOURNAL_TAIL_BYTES, &entry) &&
        entry.sequence == replay->end.entries + 1) {
        replay->end.entries++;
        replay->end.bytes += length + 1;
        return replay->take ? replay->take(&entry, replay->context, failure) : 0;
    }
    replay->end.whole_after += replay->torn && whole;
    replay->torn = true;
    return 0;
}

int journal_replay_from(const struct journal_source *source, journal_taker *take, void *context,
                        struct journal_end *ret, struct failure *failure) {
    struct replay replay = {.take = take, .context = context};
    cleanup_free char *piece = xmalloc(READ_BYTES), *line = xmalloc(JOURNAL_LINE_BYTES_MAX + 1);
    size_t length = 0;
    int64_t got;
    while ((got = source->read(source->context, piece, READ_BYTES)) > 0) {
        replay.end.file_bytes += (uint64_t)got;
        for (int64_t i = 0; i < got; i++) {
            if (piece[i] != '\n') {
                if (length <= JOURNAL_LINE_BYTES_MAX) /* one byte more shows that it is too long */
                    line[length++] = piece[i];
                continue;
            }
            int r = take_line(&replay, line, length, failure);
            if (r < 0)
                return r;
            length = 0;
        }
    }
    if (got < 0)
        return failure_set(failure, (int)got, "cannot read '%s': %s", source->name, strerror((int)-got));
    *ret = replay.end;
    return 0;
}

static int64_t read_file(void *context, char *buffer, size_t room) {
    ssize_t got = TEMP_FAILURE_RETRY(read(*(const int *)context, buffer, room));
    return got < 0 ? -errno : got;
}

int journal_replay(const char *path, journal_taker *take, void *context, struct journal_end *ret,
                   struct failure *failure) {
    /* O_NONBLOCK: what looks like a journal may be a FIFO, which nobody should wait for. */
    cleanup_close int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) < 0)
        return failure_set(failure, -errno, "cannot open '%s': %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return failure_set(failure, -EINVAL, "'%s' is not a file", path);
    return journal_replay_from(&(struct journal_source){path, read_file, &file}, take, context, ret, failure);
}
