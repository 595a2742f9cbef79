#include "engine/foundation/text.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static char empty_bytes[1] = "";

void text_init(struct text *text, size_t limit) {
    *text = (struct text){.bytes = empty_bytes, .limit = limit};
}

void text_clear(struct text *text) {
    if (text->capacity)
        free(text->bytes);
    text_init(text, text->limit);
}

void text_cut(struct text *text, size_t length) {
    text->length = length;
    if (text->capacity)
        text->bytes[length] = '\0';
}

void text_reset(struct text *text) {
    text_cut(text, 0);
    text->error = 0;
}

static int refuse(struct text *text, int error) {
    text->error = text->error ? text->error : error;
    return error;
}

/* Makes room for LENGTH more bytes, which *RET points to. -EFBIG: beyond the limit; -ENOMEM. */
int text_reserve(struct text *text, size_t length, char **ret) {
    if (length > text->limit || text->length > text->limit - length)
        return refuse(text, -EFBIG);
    size_t needed = text->length + length + 1;
    if (needed > text->capacity) {
        size_t capacity = text->capacity ? text->capacity : 64;
        while (capacity < needed)
            capacity += capacity;
        char *bytes = realloc(text->capacity ? text->bytes : NULL, capacity);
        if (!bytes)
            return refuse(text, -ENOMEM);
        bytes[text->length] = '\0';
        text->bytes = bytes;
        text->capacity = capacity;
    }
    *ret = text->bytes + text->length;
    return 0;
}

/* Appends LENGTH bytes. Negative, and the text unchanged: beyond its limit, or no memory. */
int text_append(struct text *text, const void *bytes, size_t length) {
    char *end;
    int r = text_reserve(text, length, &end);
    if (r < 0)
        return r;
    if (length)
        memcpy(end, bytes, length);
    end[length] = '\0';
    text->length += length;
    return 0;
}

int text_append_string(struct text *text, const char *string) {
    return text_append(text, string, strlen(string));
}

int text_append_character(struct text *text, char character) {
    return text_append(text, &character, 1);
}

/* Appends as vprintf() does. A negative errno: TEXT is at its limit, and unchanged. */
int text_vprintf(struct text *text, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0)
        return refuse(text, -EINVAL);
    char *end;
    int r = text_reserve(text, (size_t)length, &end);
    if (r < 0)
        return r;
    vsnprintf(end, (size_t)length + 1, format, arguments);
    text->length += (size_t)length;
    return 0;
}

int text_printf(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int r = text_vprintf(text, format, arguments);
    va_end(arguments);
    return r;
}

struct text_mark text_mark(struct text *text) {
    struct text_mark mark = {text->length, text->error};
    text->error = 0;
    return mark;
}

int text_keep(struct text *text, struct text_mark mark) {
    int r = text->error;
    if (r < 0)
        text_cut(text, mark.length);
    text->error = mark.error ? mark.error : r;
    return r;
}

void text_consume(struct text *text, size_t count) {
    if (count >= text->length) {
        text_reset(text);
        return;
    }
    memmove(text->bytes, text->bytes + count, text->length - count + 1);
    text->length -= count;
}

char *text_take(struct text *text) {
    char *bytes = text->capacity ? text->bytes : strdup("");
    text_init(text, text->limit);
    return bytes;
}

char *text_format(const char *format, ...) {
    char *result = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&result, format, arguments);
    va_end(arguments);
    return length < 0 ? NULL : result;
}

/* The length of the UTF-8 sequence at BYTES, of which AVAILABLE are there; 0: not valid UTF-8. */
static size_t utf8_sequence(const unsigned char *bytes, size_t available) {
    unsigned char first = bytes[0];
    if (first < 0x80)
        return 1;
    size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                    : (first & 0xf0) == 0xe0         ? 3
                    : first >= 0xf0 && first <= 0xf4 ? 4
                                                     : 0;
    if (length == 0 || length > available)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (first == 0xe0 && bytes[1] < 0xa0) || (first == 0xf0 && bytes[1] < 0x90);
    bool surrogate = first == 0xed && bytes[1] > 0x9f;
    bool too_large = first == 0xf4 && bytes[1] > 0x8f;
    return overlong || surrogate || too_large ? 0 : length;
}

/* The offset of the first byte that is not UTF-8; LENGTH if all is valid. */
size_t text_invalid_utf8(const char *bytes, size_t length) {
    size_t offset = 0;
    while (offset < length) {
        size_t step = utf8_sequence((const unsigned char *)bytes + offset, length - offset);
        if (step == 0)
            return offset;
        offset += step;
    }
    return length;
}

/* The length of the control character that BYTES begins with, its code in *RET; 0: another character.
 * Controls of writing direction and line separators count, for they change what a terminal shows. */
size_t text_control(const char *bytes, size_t left, unsigned *ret) {
    static const unsigned ranges[][2] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
                                         {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
    const unsigned char *at = (const unsigned char *)bytes;
    size_t length = utf8_sequence(at, left);
    if (length == 0 || length == 4)
        return 0;
    *ret = length == 1   ? at[0]
           : length == 2 ? (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu)
                         : (at[0] & 0x0fu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (*ret >= ranges[i][0] && *ret <= ranges[i][1])
            return length;
    return 0;
}

bool text_has_control(const char *text) {
    unsigned code;
    for (size_t left = strlen(text); left > 0; text++, left--)
        if (text_control(text, left, &code))
            return true;
    return false;
}

/* The first character of BYTES as a user may see it: itself, or "\\xNN" if it is a control character or not
 * UTF-8. LINES: newlines and tabs stay. Returns the number of bytes that it took. */
size_t text_show(const char *bytes, size_t left, bool lines, char ret[static TEXT_SHOWN_SIZE],
                 size_t *ret_length) {
    unsigned code;
    bool is_line = lines && (*bytes == '\n' || *bytes == '\t');
    size_t length = utf8_sequence((const unsigned char *)bytes, left);
    if (length == 0 || (!is_line && text_control(bytes, left, &code))) {
        const char *name = *bytes == '\n' ? "n" : *bytes == '\t' ? "t" : NULL;
        *ret_length = (size_t)(name ? snprintf(ret, TEXT_SHOWN_SIZE, "\\%s", name)
                                    : snprintf(ret, TEXT_SHOWN_SIZE, "\\x%02x", (unsigned char)*bytes));
        return 1;
    }
    memcpy(ret, bytes, length);
    *ret_length = length;
    return length;
}

int text_append_shown(struct text *text, const char *bytes, size_t length, bool lines) {
    struct text_mark mark = text_mark(text);
    char piece[TEXT_SHOWN_SIZE];
    for (size_t at = 0, shown; at < length;) {
        at += text_show(bytes + at, length - at, lines, piece, &shown);
        text_append(text, piece, shown);
    }
    return text_keep(text, mark);
}

/* Shortens a text of LENGTH bytes to MOST by replacing its middle by " ... ", between UTF-8 characters.
 * Returns the new length. */
size_t text_shorten(char *bytes, size_t length, size_t most) {
    static const char gap[] = " ... ";
    size_t around = most - (sizeof gap - 1), head = around / 2, tail = length - (around - head);
    if (length <= most)
        return length;
    while (head > 0 && (bytes[head] & 0xc0) == 0x80)
        head--;
    while ((bytes[tail] & 0xc0) == 0x80)
        tail++;
    memcpy(bytes + head, gap, sizeof gap - 1);
    memmove(bytes + head + sizeof gap - 1, bytes + tail, length - tail + 1);
    return head + sizeof gap - 1 + length - tail;
}

static bool has_word(const char *line, size_t length, const char *const *words) {
    for (; *words; words++)
        for (size_t at = 0, size = strlen(*words); at + size <= length; at++)
            if ((line[at] | 0x20) == **words && strncasecmp(line + at, *words, size) == 0)
                return true;
    return false;
}

/* The line of a program's OUTPUT that best says why it failed: the first that has a word like "error", else
 * the last without "exit code", else the last. *RET is its length; it is not terminated. */
const char *text_reason(const char *output, int *ret) {
    static const char *const reasons[] = {"error",    "fail",   "cannot",  "can't",    "could not", "unable",
                                          "not ",     "denied", "refused", "invalid",  "illegal",   "no such",
                                          "no space", "fatal",  "unknown", "expected", NULL},
                             *const others[] = {"warning",     "exit code", "exit status",
                                                "exited with", "*** [",     NULL};
    const char *best = output, *line = output;
    int best_rank = 0;
    *ret = 0;
    for (size_t length; *line; line += length + (line[length] == '\n')) {
        length = strcspn(line, "\n");
        size_t begin = strspn(line, " \t\r"), end = length;
        while (end > begin && (unsigned char)line[end - 1] <= ' ')
            end--;
        int rank = end <= begin ? 0 : has_word(line, end, others) ? 1 : has_word(line, end, reasons) ? 3 : 2;
        if (rank == 0 || rank < best_rank || best_rank == 3)
            continue;
        best_rank = rank;
        best = line + begin;
        *ret = (int)(end - begin);
    }
    return best;
}

/* Appends bytes as UTF-8, with U+FFFD for each byte that is NUL or not valid. */
int text_append_utf8(struct text *text, const char *bytes, size_t length) {
    struct text_mark mark = text_mark(text);
    for (size_t at = 0, end, step; at < length; at = end) {
        for (end = at; end < length && bytes[end]; end += step)
            if ((step = utf8_sequence((const unsigned char *)bytes + end, length - end)) == 0)
                break;
        text_append(text, bytes + at, end - at);
        if (end < length) {
            text_append(text, "\xef\xbf\xbd", 3);
            end++;
        }
    }
    return text_keep(text, mark);
}

enum { NEAREST_LONGEST = 64 };

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Optimal string alignment distance: the number of insertions, deletions, substitutions and swaps of
 * neighbours between A and B. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t table[NEAREST_LONGEST + 1][NEAREST_LONGEST + 1]; /* between the first I and the first J bytes */
    for (size_t i = 0; i <= a_length; i++)
        for (size_t j = 0; j <= b_length; j++) {
            size_t *best = &table[i][j];
            *best = i + j;
            if (i == 0 || j == 0)
                continue;
            *best = least(table[i - 1][j], table[i][j - 1]) + 1;
            *best = least(*best, table[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                *best = least(*best, table[i - 2][j - 2] + 1);
        }
    return table[a_length][b_length];
}

/* The name that is most like WORD, for "did you mean"; NULL: none is within a third of its length in
 * edits. */
const char *text_nearest(const char *word, const char *const *names, size_t count) {
    size_t length = strlen(word), best_distance = SIZE_MAX;
    const char *best = NULL;
    if (length > NEAREST_LONGEST)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t name_length = strlen(names[i]);
        if (name_length > NEAREST_LONGEST)
            continue;
        size_t longer = length > name_length ? length : name_length;
        size_t distance = edit_distance(word, length, names[i], name_length);
        size_t allowed = longer < 3 ? 1 : longer / 3;
        if (distance <= allowed && distance < longer && distance < best_distance) {
            best_distance = distance;
            best = names[i];
        }
    }
    return best;
}

void text_append_words(struct text *text, const char *const *words) {
    for (size_t i = 0; words && words[i]; i++)
        if (text_printf(text, "%s%s", i ? ", " : "", words[i]) < 0)
            return;
}

/* Appends a command line, quoted for a shell. */
void text_append_command(struct text *text, const char *const *arguments) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";
    for (size_t i = 0; arguments[i]; i++) {
        const char *argument = arguments[i];
        const char *quote = argument[0] && argument[strspn(argument, plain)] == '\0' ? "" : "'";
        text_printf(text, "%s%s", i ? " " : "", quote);
        for (const char *at = argument; *at; at++)
            if (text_append_string(text, *at == '\'' ? "'\\''" : (const char[]){*at, '\0'}) < 0)
                return;
        text_append_string(text, quote);
    }
}

/* A hint for a WORD that is none of NAMES: "did you mean 'x'?" or the list of names. Returns RET. */
const char *text_instead(const char *word, const char *const *names, size_t count,
                         char ret[static TEXT_INSTEAD_SIZE]) {
    const char *nearest = text_nearest(word, names, count);
    if (nearest) {
        snprintf(ret, TEXT_INSTEAD_SIZE, "did you mean '%s'?", nearest);
        return ret;
    }
    int used = snprintf(ret, TEXT_INSTEAD_SIZE, count > 0 ? "there are: " : "there are none");
    const char *comma = "";
    for (size_t i = 0; i < count; i++) {
        if ((size_t)used + strlen(comma) + strlen(names[i]) >= TEXT_INSTEAD_SIZE)
            continue;
        used += snprintf(ret + used, TEXT_INSTEAD_SIZE - (size_t)used, "%s%s", comma, names[i]);
        comma = ", ";
    }
    return ret;
}

size_t text_find(const char *word, const char *const *names, size_t count) {
    size_t i = 0;
    while (i < count && strcmp(names[i], word) != 0)
        i++;
    return i;
}

bool text_is_same(const char *one, const char *other) {
    return one && other ? strcmp(one, other) == 0 : one == other;
}

bool text_ends_in(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}
