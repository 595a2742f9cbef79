#include "engine/foundation/host-list.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    DIGITS_MAX = 18, /* of a number: it fits in 64 bits with room to count */
    FILE_BYTES_MAX = HOST_LIST_MAX * (HOST_BYTES_MAX + 1),
};

/* Removes all names after the first COUNT. */
static void truncate_list(struct host_list *list, size_t count) {
    text_set_cut(&list->set, count);
    list->count = count;
}

void host_list_clear(struct host_list *list) {
    text_set_clear(&list->set);
    *list = (struct host_list){0};
}

/* Adds NAME unless the list has it. 0, or -EFBIG: the list is full. */
static int add_name(struct host_list *list, const char *name) {
    uint32_t number;
    if (list->count == HOST_LIST_MAX)
        return text_set_find(&list->set, name, strlen(name), &number) ? 0 : -EFBIG;
    text_set_add(&list->set, name, strlen(name));
    list->names = list->set.texts;
    list->count = list->set.count;
    return 0;
}

/* ---- what a name is */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether C may be in a name: letters, digits and what user names, addresses and zones have, but nothing that
 * has a meaning in shells, terminals or paths. */
static bool is_name_character(char c) {
    return is_digit(c) || is_letter(c) || (c && strchr("-._@:%+", c));
}

/* Why NAME, whose characters are allowed, names no host; NULL: it is a name. */
static const char *find_name_error(const char *name) {
    if (strlen(name) > HOST_BYTES_MAX)
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

struct reading {
    struct host_list *list;
    struct failure *failure;
    const char *file; /* NULL: a text that has no file, and so no lines */
    size_t line;
    const char *line_start;
    const char *entry; /* where the entry begins that is being read */
    const char *end;   /* of the word that the entry is in */
    char name[HOST_BYTES_MAX + 1];
    size_t expanded; /* names that the entry has given */
};

/* Fails with a sentence about the place AT in the list. Returns -EINVAL. */
__attribute__((format(printf, 3, 4))) static int refuse(const struct reading *reading, const char *at,
                                                        const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    size_t column = (size_t)(at - reading->line_start) + 1;
    if (reading->file)
        return failure_input(reading->failure, reading->file, reading->line, column, "%s", sentence);
    return failure_input(reading->failure, NULL, 0, 0, "%s, at column %zu of the host list", sentence,
                         column);
}

struct range {
    uint64_t low, high;
    int width; /* digits at least */
};

/* Reads the number at *AT, which moves after it. *RET_DIGITS: its digits, leading zeros too. */
static int read_number(const struct reading *reading, const char **at, uint64_t *ret, int *ret_digits) {
    const char *start = *at;
    size_t digits = strspn(start, "0123456789");
    if (digits == 0)
        return refuse(reading, start, "expected a number in the bracket");
    if (digits > DIGITS_MAX)
        return refuse(reading, start, "a number of more than %d digits", (int)DIGITS_MAX);
    (void)number_parse_uint64(start, digits, ret);
    *ret_digits = (int)digits;
    *at += digits;
    return 0;
}

/* Reads a range of a bracket, "7" or "01-16", at *AT, which moves after it. */
static int read_range(const struct reading *reading, const char **at, struct range *ret) {
    *ret = (struct range){0};
    const char *start = *at;
    int low_digits = 0, high_digits = 0;
    int r = read_number(reading, at, &ret->low, &low_digits);
    if (r < 0)
        return r;
    ret->high = ret->low;
    ret->width = *start == '0' ? low_digits : 1;
    if (**at != '-')
        return 0;
    const char *second = ++*at;
    r = read_number(reading, at, &ret->high, &high_digits);
    if (r < 0)
        return r;
    int length = (int)(*at - start);
    if (ret->high < ret->low)
        return refuse(reading, start, "the range %.*s runs backwards; expected the lower number first",
                      length, start);
    if (*second == '0' && high_digits > 1 && high_digits != low_digits)
        return refuse(reading, start,
                      "the ends of the range %.*s have different numbers of digits; expected "
                      "the same number, such as 08-12",
                      length, start);
    return 0;
}

static int read_rest(struct reading *reading, const char **at, size_t length, size_t brackets);

/* Reads the bracket at *AT: the rest of the entry is added to the list once for each of its numbers. LENGTH:
 * bytes of reading->name before it; BRACKETS: brackets before it. */
static int read_bracket(struct reading *reading, const char **at, size_t length, size_t brackets) {
    const char *open = *at, *close = memchr(open, ']', (size_t)(reading->end - open)), *rest = NULL;
    if (brackets == HOST_BRACKETS_MAX)
        return refuse(reading, open, "more than %d brackets in one name", (int)HOST_BRACKETS_MAX);
    if (!close)
        return refuse(reading, open, "the bracket is not closed");
    uint64_t numbers = 0;
    do {
        struct range range;
        ++*at;
        int r = read_range(reading, at, &range);
        if (r < 0)
            return r;
        numbers += range.high - range.low + 1; /* below 2^64: each has at most 18 digits, and it ends here */
        if (numbers > HOST_LIST_MAX)
            return refuse(reading, open, "the bracket has more than %d numbers", (int)HOST_LIST_MAX);
        if (**at != ',' && *at != close)
            return refuse(reading, *at, "expected ',', '-' or ']' in the bracket");
        for (uint64_t number = range.low; number <= range.high; number++) {
            size_t room = sizeof reading->name - length;
            int digits = snprintf(reading->name + length, room, "%0*" PRIu64, range.width, number);
            if ((size_t)digits >= room)
                return refuse(reading, reading->entry, "a name of more than %d bytes", (int)HOST_BYTES_MAX);
            rest = close + 1;
            r = read_rest(reading, &rest, length + (size_t)digits, brackets + 1);
            if (r < 0)
                return r;
        }
    } while (**at == ',');
    *at = rest;
    return 0;
}

/* The length of "[address]" at AT, or 0 if that is no address: those have colons, and ranges have none. */
static size_t address_length(const char *at, const char *end) {
    const char *close = memchr(at, ']', (size_t)(end - at));
    return close && memchr(at, ':', (size_t)(close - at)) ? (size_t)(close - at) + 1 : 0;
}

static int refuse_character(const struct reading *reading, const char *at, bool in_address) {
    if (in_address)
        return refuse(reading, at, "a character that no address has");
    if (*at == ']')
        return refuse(reading, at, "a ']' without a '['");
    if (*at <= ' ' || *at == 0x7f)
        return refuse(reading, at, "a byte that is in no host name");
    return refuse(reading, at, "'%c' is in no host name", *at);
}

/* Adds the names that begin with the first LENGTH bytes of reading->name, made from BRACKETS brackets, and
 * continue as the entry does at *AT. *AT moves to the end of the entry. */
static int read_rest(struct reading *reading, const char **at, size_t length, size_t brackets) {
    size_t address = 0; /* bytes that are left of one */
    for (; *at < reading->end && (**at != ',' || address > 0); ++*at, address -= address > 0) {
        bool opens = address == 0 && **at == '[';
        if (opens)
            address = address_length(*at, reading->end);
        if (opens && address == 0)
            return read_bracket(reading, at, length, brackets);
        if (!opens && address != 1 && !is_name_character(**at))
            return refuse_character(reading, *at, address > 0);
        if (length == HOST_BYTES_MAX)
            return refuse(reading, reading->entry, "a name of more than %d bytes", (int)HOST_BYTES_MAX);
        reading->name[length++] = **at;
    }
    reading->name[length] = '\0';
    const char *why = find_name_error(reading->name);
    if (why)
        return refuse(reading, reading->entry, "'%s' %s", reading->name, why);
    if (++reading->expanded > HOST_LIST_MAX || add_name(reading->list, reading->name) < 0)
        return refuse(reading, reading->entry, "more than %d hosts", (int)HOST_LIST_MAX);
    return 0;
}

/* Reads the entries from AT to END, which are separated by blanks and commas. Blanks end an entry even inside
 * brackets. */
static int read_words(struct reading *reading, const char *at, const char *end) {
    while (at < end) {
        at += strspn(at, ", \t\r\n\v\f");
        reading->end = at + strcspn(at, " \t\r\n\v\f");
        if (reading->end > end)
            reading->end = end;
        while (at < reading->end && *at != ',') {
            reading->entry = at;
            reading->expanded = 0;
            int r = read_rest(reading, &at, 0, 0);
            if (r < 0)
                return r;
            at += at < reading->end;
        }
    }
    return 0;
}

int host_list_parse(struct host_list *list, const char *text, struct failure *failure) {
    size_t count = list->count;
    struct reading reading = {.list = list, .failure = failure, .line_start = text};
    int r = read_words(&reading, text, text + strlen(text));
    if (r < 0)
        truncate_list(list, count);
    return r;
}

/* Reads a file of host names into LIST; "#" begins a comment. Negative with FAILURE, and LIST unchanged, on
 * any error. */
int host_list_read(struct host_list *list, const char *path, struct failure *failure) {
    cleanup(text_clear) struct text content;
    text_init(&content, FILE_BYTES_MAX);
    int r = file_read_or_pipe(path, &content, failure);
    if (r < 0)
        return r;
    if (strlen(content.bytes) < content.length)
        return failure_input(failure, path, 0, 0, "a NUL byte, expected a list of hosts");
    size_t count = list->count;
    struct reading reading = {.list = list, .failure = failure, .file = path};
    char *start = content.bytes + (strncmp(content.bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
    for (char *at = start, *next; r == 0 && at; at = next) {
        next = strchr(at, '\n');
        if (next)
            *next++ = '\0';
        reading.line++;
        reading.line_start = at;
        r = read_words(&reading, at, at + strcspn(at, "#"));
    }
    if (r < 0)
        truncate_list(list, count);
    return r;
}

/* Adds one name, without expanding brackets. -EINVAL: it names no host. */
int host_list_add(struct host_list *list, const char *name, struct failure *failure) {
    const char *why = name[0] ? find_name_error(name) : "names no host";
    for (const char *at = name; !why && *at; at++)
        if (!is_name_character(*at) && *at != '[' && *at != ']')
            why = "has a character that no host name has";
    if (why)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "'%s' %s", name, why);
    if (add_name(list, name) < 0)
        return failure_set_kind(failure, FAILURE_INPUT, -EFBIG, "more than %d hosts", (int)HOST_LIST_MAX);
    return 0;
}
