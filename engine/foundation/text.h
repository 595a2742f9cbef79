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
/* Appends bytes as UTF-8: each NUL and each invalid byte becomes U+FFFD. */
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

/* Cuts the text to its first LENGTH bytes. */
void text_cut(struct text *text, size_t length);
/* Drops the first COUNT bytes. */
void text_consume(struct text *text, size_t count);
/* Hands the bytes over as a C string that the caller frees; the text is empty again. NULL when out of memory.
 */
char *text_take(struct text *text);

/* Offset of the first byte that is not valid UTF-8 (RFC 3629: no overlong forms, no surrogates), or LENGTH.
 */
size_t text_invalid_utf8(const char *bytes, size_t length);
/* Length of the control character that LEFT > 0 BYTES begin with, and its number in RET; 0 if they begin with
 * none. These are C0, DEL and C1, which a terminal takes for commands; the line and paragraph separators; and
 * the marks that turn the direction of reading (Unicode TR 9: U+061C, U+200E, U+200F, U+202A to U+202E,
 * U+2066 to U+2069). */
size_t text_control(const char *bytes, size_t left, unsigned *ret);
/* Whether a character of TEXT is a control character. */
bool text_has_control(const char *text);
/* How a character of text that others wrote is shown to people, in a terminal, a log or a page. LEFT > 0
 * BYTES begin with it. RET: the character, or "\n", "\t", or "\xe2" for the first byte of a control
 * character, or of what is not UTF-8. RET_LENGTH: of RET, which no NUL ends. Returns how many bytes are
 * shown. LINES keeps newlines and tabs as they are. */
enum { TEXT_SHOWN_SIZE = 8 };
size_t text_show(const char *bytes, size_t left, bool lines, char ret[static TEXT_SHOWN_SIZE],
                 size_t *ret_length);
/* Appends all of LENGTH bytes as text_show() has them. */
int text_append_shown(struct text *text, const char *bytes, size_t length, bool lines);

/* Cuts the LENGTH bytes and the NUL behind them to at most MOST bytes, 16 or more. Of a longer text the
 * middle is replaced by three points between blanks; no character of UTF-8 is divided. Returns how many are
 * left. */
size_t text_shorten(char *bytes, size_t length, size_t most);
/* The line of OUTPUT, which a command that failed has printed, that says why: the first with a word such as
 * "error", "cannot" or "denied", for what follows often comes of it; without any, the last that is not blank.
 * Warnings, and lines that only repeat the exit status, come last. RET: its length without the blanks around
 * it, 0 if all lines are blank. */
const char *text_reason(const char *output, int *ret);

/* printf into fresh memory; NULL when out of memory. The caller frees. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The index of WORD among the COUNT names; COUNT where it is none of them. */
size_t text_find(const char *word, const char *const *names, size_t count);

/* Whether both are the same text, or both NULL. */
bool text_is_same(const char *one, const char *other);
/* Whether TEXT is longer than END and ends in it. */
bool text_ends_in(const char *text, const char *end);

/* Which of the COUNT names is nearest to WORD by edit distance (transpositions count one), when it is near
 * enough to be meant: at most a third of the longer word (or one letter), and at least one letter in common.
 * NULL if none. */
const char *text_nearest(const char *word, const char *const *names, size_t count);
/* The end of a sentence about a WORD that is none of the COUNT names: "did you mean 'NAME'?", "there are:
 * NAME, NAME", of which those that do not fit are left out, or "there are none". Written into RET, which is
 * returned. */
enum { TEXT_INSTEAD_SIZE = 768 };
const char *text_instead(const char *word, const char *const *names, size_t count,
                         char ret[static TEXT_INSTEAD_SIZE]);

#endif
