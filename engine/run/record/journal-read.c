#include "engine/run/record/journal-read.h"

#include "engine/foundation/checksum.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/record/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_BYTES = 128 << 10, /* at once: what was read is still in the cache when it is looked at */
    BUFFER_BYTES = JOURNAL_LINE_BYTES_MOST + 1 + READ_BYTES,
};

/* ---- One line ---------------------------------------------------------------------------------- */

void journal_write_tail(uint32_t crc, char tail[static JOURNAL_TAIL_BYTES]) {
    static const char form[] = ",\"crc32c\":\"00000000\"}", digits[] = "0123456789abcdef";
    enum { FIRST_DIGIT = sizeof ",\"crc32c\":\"" - 1 };
    memcpy(tail, form, JOURNAL_TAIL_BYTES);
    for (size_t i = 0; i < 8; i++)
        tail[FIRST_DIGIT + i] = digits[crc >> (28 - 4 * i) & 15];
}

bool journal_line_is_whole(const char *line, size_t length) {
    char expected[JOURNAL_TAIL_BYTES];
    if (length <= JOURNAL_TAIL_BYTES || line[length - 1] != '}')
        return false;
    size_t body = length - JOURNAL_TAIL_BYTES;
    journal_write_tail(checksum_crc32c(line, body), expected);
    return memcmp(line + body, expected, JOURNAL_TAIL_BYTES) == 0;
}

/* Steps *AT over EXPECTED. */
static bool skip_literal(const char **at, const char *end, const char *expected, size_t length) {
    if ((size_t)(end - *at) < length || memcmp(*at, expected, length) != 0)
        return false;
    *at += length;
    return true;
}

/* Where the string that begins at AT, behind its quote, has its closing quote; NULL if it has none. */
static const char *string_end(const char *at, const char *end) {
    for (; at < end && *at != '"'; at++)
        if (*at == '\\' && ++at == end)
            return NULL;
    return at < end ? at : NULL;
}

static bool is_literal_character(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.';
}

static const char *literal_end(const char *at, const char *end) {
    while (at < end && is_literal_character(*at))
        at++;
    return at;
}

/* Behind the list or object at AT, which a later format may have; NULL if it has no end. */
static const char *collection_end(const char *at, const char *end) {
    for (size_t depth = 0; at && at < end; at++) {
        if (*at == '"') {
            at = string_end(at + 1, end);
            if (!at)
                return NULL;
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if ((*at == '}' || *at == ']') && --depth == 0) {
            return at + 1;
        }
    }
    return NULL;
}

static const char *value_end(const char *at, const char *end) {
    if (at == end)
        return NULL;
    if (*at == '"') {
        const char *quote = string_end(at + 1, end);
        return quote ? quote + 1 : NULL;
    }
    if (*at == '{' || *at == '[')
        return collection_end(at, end);
    const char *behind = literal_end(at, end);
    return behind > at ? behind : NULL;
}

/* The digits of one number of ours, with no more than a sign: eighteen of them always fit. */
static bool parse_integer(const char *bytes, size_t length, int64_t *ret) {
    if (length == 0 || length > 18 || bytes[0] == '-')
        return number_parse_int64(bytes, length, ret);
    int64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned digit = (unsigned char)(bytes[i] - '0');
        if (digit > 9)
            return false;
        value = value * 10 + digit;
    }
    *ret = value;
    return true;
}

/* Takes KEY, which begins with its comma or brace and ends in its colon, and the integer behind it. */
static bool take_integer(const char **at, const char *end, const char *key, int64_t *ret) {
    const char *behind = *at;
    if (!skip_literal(&behind, end, key, strlen(key)))
        return false;
    const char *digits = behind;
    behind = literal_end(behind, end);
    if (!parse_integer(digits, (size_t)(behind - digits), ret))
        return false;
    *at = behind;
    return true;
}

/* What LINE says before its checksum at END; false when it does not begin as ours do. */
static bool parse_entry(const char *line, const char *end, struct journal_entry *ret) {
    static const char event[] = ",\"event\":\"";
    const char *at = line;
    int64_t sequence;
    if (!take_integer(&at, end, "{\"seq\":", &sequence) || sequence < 1 ||
        !take_integer(&at, end, ",\"t\":", &ret->wall_ns))
        return false;
    if (!take_integer(&at, end, ",\"m\":", &ret->monotonic_ns))
        ret->monotonic_ns = -1;
    if (!skip_literal(&at, end, event, sizeof event - 1))
        return false;
    const char *quote = string_end(at, end);
    if (!quote)
        return false;
    ret->sequence = (uint64_t)sequence;
    ret->event = at;
    ret->event_length = (size_t)(quote - at);
    ret->members = quote + 1;
    ret->length = (size_t)(end - ret->members);
    return true;
}

/* ---- Members ----------------------------------------------------------------------------------- */

/* Most keys differ in their first letter already. */
static bool is_same(const char *bytes, size_t length, const char *string) {
    if (length == 0 || bytes[0] != string[0])
        return length == 0 && string[0] == '\0';
    return strlen(string) == length && memcmp(bytes, string, length) == 0;
}

bool journal_entry_is(const struct journal_entry *entry, const char *event) {
    return is_same(entry->event, entry->event_length, event);
}

bool journal_member_is(const struct journal_member *member, const char *key) {
    return is_same(member->key, member->key_length, key);
}

bool journal_entry_next(const struct journal_entry *entry, size_t *at, struct journal_member *ret) {
    const char *here = entry->members + *at, *end = entry->members + entry->length;
    if (!skip_literal(&here, end, ",\"", 2))
        return false;
    const char *key = here;
    const char *quote = string_end(here, end);
    if (!quote)
        return false;
    here = quote + 1;
    if (!skip_literal(&here, end, ":", 1))
        return false;
    const char *behind = value_end(here, end);
    if (!behind)
        return false;
    *ret = (struct journal_member){key, (size_t)(quote - key), here, (size_t)(behind - here)};
    *at = (size_t)(behind - entry->members);
    return true;
}

bool journal_member_integer(const struct journal_member *member, int64_t *ret) {
    return parse_integer(member->value, member->length, ret);
}

bool journal_member_number(const struct journal_member *member, double *ret) {
    return number_parse_double(member->value, member->length, ret);
}

/* The four digits of \uXXXX at AT. */
static bool take_unit(const char **at, const char *end, uint32_t *ret) {
    uint32_t value = 0;
    if (end - *at < 4)
        return false;
    for (size_t i = 0; i < 4; i++) {
        char c = (*at)[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                : 16;
        if (digit == 16)
            return false;
        value = value << 4 | digit;
    }
    *at += 4;
    *ret = value;
    return true;
}

/* The character of \uXXXX, both halves of it if it takes two; U+FFFD for what is none. */
static uint32_t take_unicode(const char **at, const char *end) {
    uint32_t high, low;
    if (!take_unit(at, end, &high) || high == 0 || (high >= 0xdc00 && high <= 0xdfff))
        return 0xfffd;
    if (high < 0xd800 || high > 0xdbff)
        return high;
    const char *second = *at;
    if (!skip_literal(&second, end, "\\u", 2) || !take_unit(&second, end, &low) || low < 0xdc00 ||
        low > 0xdfff)
        return 0xfffd;
    *at = second;
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

static uint32_t take_escape(const char **at, const char *end) {
    char letter = *at < end ? *(*at)++ : '\0';
    switch (letter) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'u':
        return take_unicode(at, end);
    case '"':
    case '\\':
    case '/':
        return (unsigned char)letter;
    default:
        return 0xfffd;
    }
}

static size_t encode(uint32_t character, char bytes[static 4]) {
    if (character < 0x80) {
        bytes[0] = (char)character;
        return 1;
    }
    size_t length = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, character >>= 6)
        bytes[i] = (char)(0x80 | (character & 0x3f));
    bytes[0] = (char)((0xf00 >> length & 0xff) | character);
    return length;
}

/* The next character of the inside of a string as UTF-8. */
static size_t take_character(const char **at, const char *end, char bytes[static 4]) {
    char first = *(*at)++;
    if (first == '\\')
        return encode(take_escape(at, end), bytes);
    if (first == '\0')
        return encode(0xfffd, bytes);
    size_t length = 1;
    bytes[0] = first;
    while ((unsigned char)first >= 0xc0 && length < 4 && *at < end && ((unsigned char)**at & 0xc0) == 0x80)
        bytes[length++] = *(*at)++;
    return length;
}

bool journal_member_text(const struct journal_member *member, char *buffer, size_t size) {
    if (size == 0 || member->length < 2 || member->value[0] != '"')
        return false;
    const char *at = member->value + 1, *end = member->value + member->length - 1;
    size_t length = 0;
    while (at < end) {
        char bytes[4];
        size_t more = take_character(&at, end, bytes);
        if (length + more >= size)
            break;
        memcpy(buffer + length, bytes, more);
        length += more;
    }
    buffer[length] = '\0';
    return true;
}

static bool find_member(const struct journal_entry *entry, const char *key, struct journal_member *ret) {
    size_t at = 0;
    while (journal_entry_next(entry, &at, ret))
        if (journal_member_is(ret, key))
            return true;
    return false;
}

bool journal_entry_integer(const struct journal_entry *entry, const char *key, int64_t *ret) {
    struct journal_member member;
    return find_member(entry, key, &member) && journal_member_integer(&member, ret);
}

bool journal_entry_number(const struct journal_entry *entry, const char *key, double *ret) {
    struct journal_member member;
    return find_member(entry, key, &member) && journal_member_number(&member, ret);
}

bool journal_entry_text(const struct journal_entry *entry, const char *key, char *buffer, size_t size) {
    struct journal_member member;
    return find_member(entry, key, &member) && journal_member_text(&member, buffer, size);
}

/* ---- Replay ------------------------------------------------------------------------------------ */

struct replay {
    journal_taker *take;
    void *context;
    struct journal_end end;
    bool torn;     /* a line that is not whole was met */
    bool too_long; /* the line whose rest is read next has more than it may: none of it is kept */
};

/* LINE without its newline. */
static int take_line(struct replay *replay, const char *line, size_t length, struct failure *failure) {
    bool whole =
        !replay->too_long && length <= JOURNAL_LINE_BYTES_MOST && journal_line_is_whole(line, length);
    replay->too_long = false;
    struct journal_entry entry;
    if (!replay->torn && whole && parse_entry(line, line + length - JOURNAL_TAIL_BYTES, &entry) &&
        entry.sequence == replay->end.entries + 1) {
        replay->end.entries++;
        replay->end.bytes += length + 1;
        return replay->take ? replay->take(&entry, replay->context, failure) : 0;
    }
    replay->end.whole_after += replay->torn && whole;
    replay->torn = true;
    return 0;
}

/* Takes the lines that end in the LENGTH bytes of BUFFER, of which SEEN are known to have no newline, and
 * moves what is left to the front; *RET_LEFT says how much. */
static int take_lines(struct replay *replay, char *buffer, size_t seen, size_t length, size_t *ret_left,
                      struct failure *failure) {
    const char *line = buffer, *end = buffer + length, *newline;
    for (const char *from = buffer + seen; (newline = memchr(from, '\n', (size_t)(end - from)));
         from = line) {
        int r = take_line(replay, line, (size_t)(newline - line), failure);
        if (r < 0)
            return r;
        line = newline + 1;
    }
    size_t left = (size_t)(end - line);
    if (left > JOURNAL_LINE_BYTES_MOST) {
        replay->too_long = replay->torn = true;
        left = 0;
    }
    memmove(buffer, line, left);
    *ret_left = left;
    return 0;
}

int journal_replay_from(const struct journal_source *source, journal_taker *take, void *context,
                        struct journal_end *ret, struct failure *failure) {
    struct replay replay = {.take = take, .context = context};
    cleanup_free char *buffer = xmalloc(BUFFER_BYTES);
    size_t kept = 0;
    for (;;) {
        int64_t got = source->read(source->context, buffer + kept, READ_BYTES);
        if (got < 0)
            return failure_set(failure, (int)got, "cannot read '%s': %s", source->name, strerror((int)-got));
        if (got == 0)
            break;
        replay.end.file_bytes += (uint64_t)got;
        int r = take_lines(&replay, buffer, kept, kept + (size_t)got, &kept, failure);
        if (r < 0)
            return r;
    }
    *ret = replay.end;
    return 0;
}

static int64_t read_file(void *context, char *buffer, size_t room) {
    const int *file = context;
    ssize_t got;
    do
        got = read(*file, buffer, room);
    while (got < 0 && errno == EINTR);
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
