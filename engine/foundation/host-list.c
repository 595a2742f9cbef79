#include "engine/foundation/host-list.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGITS_MOST = 18, /* of a number: it fits in 64 bits with room to count */
    FILE_MOST = HOST_LIST_MOST * (HOST_NAME_MOST + 1), /* bytes */
};

void host_list_clear(struct host_list *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
    free(list->slots);
    *list = (struct host_list){0};
}

/* ---- the names that are there: open addressing, a slot holds the name's place plus one */

/* FNV-1a. */
static size_t hash_name(const char *name) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return (size_t)(hash ^ (hash >> 32));
}

/* The slot that NAME is in, or the empty one where it would go. */
static size_t find_slot(const struct host_list *list, const char *name) {
    size_t mask = list->slot_count - 1, at = hash_name(name) & mask;
    while (list->slots[at] && strcmp(list->names[list->slots[at] - 1], name) != 0)
        at = (at + 1) & mask;
    return at;
}

/* At most half full, so that a search is short. */
static int make_slots(struct host_list *list, size_t count) {
    if (list->slot_count >= 2 * count)
        return 0;
    size_t slot_count = 16;
    while (slot_count < 2 * count)
        slot_count *= 2;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    free(list->slots);
    list->slots = slots;
    list->slot_count = slot_count;
    for (size_t i = 0; i < list->count; i++)
        slots[find_slot(list, list->names[i])] = (uint32_t)(i + 1);
    return 0;
}

/* 0 also when it was there already, -EFBIG beyond the limit, -ENOMEM. */
static int add(struct host_list *list, const char *name) {
    int r = make_slots(list, list->count + 1);
    if (r < 0)
        return r;
    if (list->slots[find_slot(list, name)])
        return 0;
    r = list_reserve(&list->names, &list->capacity, list->count + 1, sizeof *list->names, HOST_LIST_MOST);
    char *copy = r == 0 ? strdup(name) : NULL;
    if (r == 0 && !copy)
        r = -ENOMEM;
    if (r < 0)
        return r;
    list->slots[find_slot(list, name)] = (uint32_t)(list->count + 1);
    list->names[list->count++] = copy;
    return 0;
}

/* Back to the first COUNT names. Rare, so the slots are simply made anew when they are next needed. */
static void take_back(struct host_list *list, size_t count) {
    while (list->count > count)
        free(list->names[--list->count]);
    free(take_pointer(list->slots));
    list->slot_count = 0;
}

/* ---- what a name is */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* In names of hosts and users, in addresses with a zone, and in what parts them. Nothing that a shell, a
 * terminal or a path would take for something else. */
static bool is_name_character(char c) {
    return is_digit(c) || is_letter(c) || (c && strchr("-._@:%+", c));
}

/* Why a name of good characters is none, or NULL. */
static const char *why_no_name(const char *name) {
    if (strlen(name) > HOST_NAME_MOST)
        return "is longer than 255 bytes";
    const char *host = strchr(name, '@');
    if (host == name)
        return "has no user before the '@'";
    host = host ? host + 1 : name;
    if (strchr(host, '@'))
        return "has two '@'";
    if (name[0] == '-' || host[0] == '-')
        return "begins with '-', as options do";
    if (strspn(host, "-.:%+") == strlen(host) && strcmp(host, "::") != 0)
        return "names no host";
    return NULL;
}

/* ---- reading */

struct place {
    const char *file; /* NULL: a text that has no file, and so no lines */
    size_t line;
    const char *start; /* of the line */
};

static int refuse(const struct place *place, const char *at, const char *sentence, struct failure *failure) {
    size_t column = (size_t)(at - place->start) + 1;
    if (place->file)
        return failure_input(failure, place->file, place->line, column, "%s", sentence);
    return failure_input(failure, NULL, 0, 0, "%s, at column %zu of the host list", sentence, column);
}

__attribute__((format(printf, 4, 5))) static int
refuse_text(const struct place *place, const char *at, struct failure *failure, const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return refuse(place, at, sentence, failure);
}

struct range {
    uint64_t low, high;
    int width; /* digits at least */
};

/* A literal, then a bracket of RANGES[FIRST..FIRST+COUNT), 0 when the entry ends without one. */
struct piece {
    const char *literal;
    size_t length;
    size_t first, count;
    size_t current; /* while names are made: the range, and the number in it */
    uint64_t number;
};

struct entry {
    struct piece pieces[HOST_BRACKETS_MOST + 1];
    size_t piece_count;
    struct range *ranges;
    size_t range_count, range_capacity;
    uint64_t total; /* names that it stands for */
};

static void entry_clear(struct entry *entry) {
    free(entry->ranges);
}

/* The number at *AT, of *RET_DIGITS digits. */
static int read_number(const struct place *place, const char **at, const char *end, uint64_t *ret,
                       int *ret_digits, struct failure *failure) {
    const char *start = *at;
    uint64_t number = 0;
    for (; *at < end && is_digit(**at) && *at - start < DIGITS_MOST; ++*at)
        number = 10 * number + (uint64_t)(**at - '0');
    if (*at == start)
        return refuse(place, start, "expected a number in the bracket", failure);
    if (*at < end && is_digit(**at))
        return refuse_text(place, start, failure, "a number of more than %d digits", (int)DIGITS_MOST);
    *ret = number;
    *ret_digits = (int)(*at - start);
    return 0;
}

/* "7" or "01-16" at *AT. */
static int read_range(const struct place *place, const char **at, const char *end, struct range *ret,
                      struct failure *failure) {
    const char *start = *at;
    uint64_t low, high;
    int low_digits, high_digits;
    int r = read_number(place, at, end, &low, &low_digits, failure);
    if (r < 0)
        return r;
    high = low;
    if (*at < end && **at == '-') {
        const char *second = ++*at;
        r = read_number(place, at, end, &high, &high_digits, failure);
        if (r < 0)
            return r;
        if (high < low)
            return refuse_text(place, start, failure,
                               "the range %.*s runs backwards; expected the lower number first",
                               (int)(*at - start), start);
        if (*second == '0' && high_digits > 1 && high_digits != low_digits)
            return refuse_text(place, start, failure, "the ends of the range %.*s have two widths",
                               (int)(*at - start), start);
    }
    bool padded = *start == '0' && low_digits > 1;
    *ret = (struct range){low, high, padded ? low_digits : 1};
    return 0;
}

/* The ranges between "[" at *AT and "]", which is passed. */
static int read_bracket(const struct place *place, const char **at, const char *end, struct entry *entry,
                        struct failure *failure) {
    const char *open = (*at)++;
    struct piece *piece = &entry->pieces[entry->piece_count - 1];
    uint64_t numbers = 0;
    piece->first = entry->range_count;
    for (;;) {
        struct range range;
        int r = read_range(place, at, end, &range, failure);
        if (r < 0)
            return r;
        if (range.high - range.low >= HOST_LIST_MOST ||
            (numbers += range.high - range.low + 1) > HOST_LIST_MOST)
            return refuse_text(place, open, failure, "the bracket has more than %d numbers",
                               (int)HOST_LIST_MOST);
        r = list_reserve(&entry->ranges, &entry->range_capacity, entry->range_count + 1,
                         sizeof *entry->ranges, (size_t)HOST_LIST_MOST * HOST_BRACKETS_MOST);
        if (r < 0)
            return failure_memory(failure);
        entry->ranges[entry->range_count++] = range;
        piece->count++;
        if (*at < end && **at == ',') {
            ++*at;
            continue;
        }
        break;
    }
    if (*at == end || **at != ']')
        return *at == end ? refuse(place, open, "the bracket is not closed", failure)
                          : refuse(place, *at, "expected ',', '-' or ']' in the bracket", failure);
    ++*at;
    entry->total *= numbers; /* each is at most 2^16: no overflow before this is seen */
    if (entry->total > HOST_LIST_MOST)
        return refuse_text(place, entry->pieces[0].literal, failure,
                           "one entry stands for more than %d hosts", (int)HOST_LIST_MOST);
    return 0;
}

/* The length of "[address]" at AT, or 0 if that is no address: those have colons, and ranges have none. */
static size_t address_length(const char *at, const char *end) {
    const char *close = memchr(at, ']', (size_t)(end - at));
    return close && memchr(at, ':', (size_t)(close - at)) ? (size_t)(close - at) + 1 : 0;
}

static int refuse_character(const struct place *place, const char *at, struct failure *failure) {
    if (*at == ']')
        return refuse(place, at, "a ']' without a '['", failure);
    if (*at <= ' ' || *at == 0x7f)
        return refuse(place, at, "a byte that is in no host name", failure);
    return refuse_text(place, at, failure, "'%c' is in no host name", *at);
}

/* The entry from *AT, up to what ends it. Blanks, line ends and "#" are in no entry, not even in brackets. */
static int read_entry(const struct place *place, const char **at, const char *end, struct entry *entry,
                      struct failure *failure) {
    *entry = (struct entry){.piece_count = 1, .total = 1, .pieces[0].literal = *at};
    size_t length;
    while (*at < end && **at != ',') {
        struct piece *piece = &entry->pieces[entry->piece_count - 1];
        if (**at == '[' && (length = address_length(*at, end)) > 0) {
            for (const char *c = *at + 1; c < *at + length - 1; c++)
                if (!is_name_character(*c))
                    return refuse(place, c, "a character that no address has", failure);
            *at += length;
            piece->length += length;
        } else if (**at == '[') {
            if (entry->piece_count > HOST_BRACKETS_MOST)
                return refuse_text(place, *at, failure, "more than %d brackets in one name",
                                   (int)HOST_BRACKETS_MOST);
            int r = read_bracket(place, at, end, entry, failure);
            if (r < 0)
                return r;
            entry->pieces[entry->piece_count++].literal = *at;
        } else if (is_name_character(**at)) {
            ++*at;
            piece->length++;
        } else {
            return refuse_character(place, *at, failure);
        }
    }
    return 0;
}

/* ---- making names of an entry */

static int format_name(const struct entry *entry, char name[static HOST_NAME_MOST + 1]) {
    size_t length = 0;
    for (size_t i = 0; i < entry->piece_count; i++) {
        const struct piece *piece = &entry->pieces[i];
        if (piece->length > HOST_NAME_MOST - length)
            return -ENAMETOOLONG;
        memcpy(name + length, piece->literal, piece->length);
        length += piece->length;
        if (piece->count == 0)
            continue;
        int written = snprintf(name + length, HOST_NAME_MOST + 1 - length, "%0*" PRIu64,
                               entry->ranges[piece->current].width, piece->number);
        length += (size_t)written;
        if (length > HOST_NAME_MOST)
            return -ENAMETOOLONG;
    }
    name[length] = '\0';
    return 0;
}

static void rewind_piece(const struct entry *entry, struct piece *piece) {
    piece->current = piece->first;
    piece->number = entry->ranges[piece->first].low;
}

/* False when PIECE has had its last number, and is at its first again. */
static bool advance_piece(const struct entry *entry, struct piece *piece) {
    if (piece->number < entry->ranges[piece->current].high) {
        piece->number++;
        return true;
    }
    if (piece->current + 1 < piece->first + piece->count) {
        piece->number = entry->ranges[++piece->current].low;
        return true;
    }
    rewind_piece(entry, piece);
    return false;
}

/* The next combination, the last bracket fastest; false after the last. */
static bool advance(struct entry *entry) {
    for (size_t i = entry->piece_count; i-- > 0;)
        if (entry->pieces[i].count > 0 && advance_piece(entry, &entry->pieces[i]))
            return true;
    return false;
}

static int expand(struct host_list *list, struct entry *entry, const struct place *place,
                  struct failure *failure) {
    const char *start = entry->pieces[0].literal;
    for (size_t i = 0; i < entry->piece_count; i++)
        if (entry->pieces[i].count > 0)
            rewind_piece(entry, &entry->pieces[i]);
    bool first = true;
    do {
        char name[HOST_NAME_MOST + 1];
        if (format_name(entry, name) < 0)
            return refuse_text(place, start, failure, "a name of more than %d bytes", (int)HOST_NAME_MOST);
        const char *why = first ? why_no_name(name) : NULL; /* they differ in digits only */
        if (why)
            return refuse_text(place, start, failure, "'%s' %s", name, why);
        int r = add(list, name);
        if (r == -EFBIG)
            return refuse_text(place, start, failure, "more than %d hosts", (int)HOST_LIST_MOST);
        if (r < 0)
            return failure_memory(failure);
        first = false;
    } while (advance(entry));
    return 0;
}

/* One line, or a text that has none: what is between blanks. */
static int read_words(struct host_list *list, const struct place *place, const char *at, const char *end,
                      struct failure *failure) {
    while (at < end) {
        if (strchr(", \t\r\n\v\f", *at) && *at) {
            at++;
            continue;
        }
        const char *word_end = at;
        while (word_end < end && !(*word_end && strchr(" \t\r\n\v\f", *word_end)))
            word_end++;
        while (at < word_end && *at != ',') {
            cleanup(entry_clear) struct entry entry = {0};
            int r = read_entry(place, &at, word_end, &entry, failure);
            if (r == 0)
                r = expand(list, &entry, place, failure);
            if (r < 0)
                return r;
            at += at < word_end;
        }
    }
    return 0;
}

int host_list_parse(struct host_list *list, const char *text, struct failure *failure) {
    size_t count = list->count;
    const struct place place = {NULL, 0, text};
    int r = read_words(list, &place, text, text + strlen(text), failure);
    if (r < 0)
        take_back(list, count);
    return r;
}

int host_list_read(struct host_list *list, const char *path, struct failure *failure) {
    cleanup(text_clear) struct text content;
    text_init(&content, FILE_MOST);
    int r = file_read(path, &content, failure);
    if (r < 0)
        return r;
    size_t count = list->count;
    struct place place = {path, 0, NULL};
    const char *end = content.bytes + content.length;
    for (const char *at = content.bytes; r == 0 && at < end;) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        line_end = line_end ? line_end : end;
        const char *comment = memchr(at, '#', (size_t)(line_end - at));
        place.line++;
        place.start = at;
        r = read_words(list, &place, at, comment ? comment : line_end, failure);
        at = line_end + (line_end < end);
    }
    if (r < 0)
        take_back(list, count);
    return r;
}

int host_list_add(struct host_list *list, const char *name, struct failure *failure) {
    const char *why = name[0] ? why_no_name(name) : "names no host";
    for (const char *at = name; !why && *at; at++)
        if (!is_name_character(*at) && *at != '[' && *at != ']')
            why = "has a character that no host name has";
    if (why)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "'%s' %s", name, why);
    int r = add(list, name);
    if (r == -EFBIG)
        return failure_set_kind(failure, FAILURE_INPUT, r, "more than %d hosts", (int)HOST_LIST_MOST);
    return r < 0 ? failure_memory(failure) : 0;
}
