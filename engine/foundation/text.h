/*
 * struct text: bytes that grow, up to a limit stated at birth. The bytes are always followed by a NUL
 * that does not count, so that `text.bytes` is a C string when the content has no NUL of its own.
 */
#ifndef ASSAY_FOUNDATION_TEXT_H
#define ASSAY_FOUNDATION_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct text {
    char *bytes; /* owned; never NULL after text_init, "" when empty */
    size_t length;
    size_t capacity; /* 0 while nothing is allocated */
    size_t limit;    /* most bytes it may hold; going over is -EFBIG */
    int error;       /* of the first append that failed, negative; for text_keep() */
};

/* An empty text that may grow to LIMIT bytes. Allocates nothing. */
void text_init(struct text *text, size_t limit);
/* Frees the bytes; the text is empty and usable again, with the same limit. */
void text_clear(struct text *text);
/* Forgets the content and keeps the memory. */
void text_reset(struct text *text);

/* Each returns 0, -ENOMEM, or -EFBIG when the limit would be passed; then nothing was appended. */
int text_append(struct text *text, const void *bytes, size_t length);
int text_append_string(struct text *text, const char *string);
int text_append_character(struct text *text, char character);
int text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int text_vprintf(struct text *text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
/* Any bytes as UTF-8: what is not valid, and NULs, become U+FFFD each. */
int text_append_utf8(struct text *text, const char *bytes, size_t length);
/* "a, b, c" of WORDS, NULL-ended; NULL: nothing. What is too long for a list that people read is cut. */
void text_append_words(struct text *text, const char *const *words);
/* The words of a command, NULL-ended, as a person would type them for a shell: each quoted if it must be. */
void text_append_command(struct text *text, const char *const *arguments);
/* Makes room for LENGTH more bytes and returns where they go in RET; text->length is the caller's to raise.
 */
int text_reserve(struct text *text, size_t length, char **ret);

/* Many appends with one check: those between text_mark() and text_keep() need none of their own. text_keep()
 * returns 0 when all of them succeeded; else the first one's error, and what was appended since is dropped.
 * Such pairs may be nested. */
struct text_mark {
    size_t length;
    int error;
};
struct text_mark text_mark(struct text *text);
int text_keep(struct text *text, struct text_mark mark);

/* Drops what is behind the first LENGTH bytes. */
void text_cut(struct text *text, size_t length);
/* Drops the first COUNT bytes. */
void text_consume(struct text *text, size_t count);
/* Hands the bytes over as a C string that the caller frees; the text is empty again. NULL when out of memory.
 */
char *text_take(struct text *text);

/* Offset of the first byte that is not valid UTF-8 (RFC 3629: no overlong forms, no surrogates), or LENGTH.
 */
size_t text_invalid_utf8(const char *bytes, size_t length);
/* Whether a character of TEXT is a control character (C0, DEL, or C1 in UTF-8): a terminal takes it for a
 * command. */
bool text_has_control(const char *text);

/* printf into fresh memory; NULL when out of memory. The caller frees. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether TEXT is longer than END and ends in it. */
bool text_ends_in(const char *text, const char *end);

/* Which of the COUNT names is nearest to WORD by edit distance (transpositions count one), when it is near
 * enough to be meant: at most a third of the longer word (or one letter), and at least one letter in common.
 * NULL if none. */
const char *text_nearest(const char *word, const char *const *names, size_t count);

#endif
