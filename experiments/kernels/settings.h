/*
 * What a program of an experiment can be set to, in one table: its options, its help, and, in a streamed
 * kernel, the columns of its rows (rows.h). Any of them that is `in_rows` may be given once for all rows, as
 * an option, or by each row, as a column of the same name.
 *
 * Everything here ends the program when it fails, with a sentence on standard error.
 */
#ifndef ASSAY_KERNELS_SETTINGS_H
#define ASSAY_KERNELS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit codes of all programs here. */
enum {
    EXIT_SYSTEM = 1, /* memory, or input and output failed */
    EXIT_INPUT = 2,  /* an option or a row is wrong */
    EXIT_WRONG = 3,  /* a library cannot be loaded, or a result is wrong */
};

enum setting_kind { SETTING_WHOLE, SETTING_NUMBER, SETTING_WORD, SETTING_TEXT, SETTING_FLAG };

struct setting {
    const char *name;
    enum setting_kind kind;
    uint64_t least, most;     /* of a whole number; MOST is at least 9 */
    double low, high;         /* of a number */
    const char *const *words; /* of a word, NULL at the end */
    const char *fallback;     /* its text unless it is given; NULL: it must be given */
    bool in_rows;
    const char *help;
};

struct value {
    bool given; /* as an option */
    bool known; /* it has a value: given, or its fallback */
    uint64_t whole;
    double number;
    int word; /* its place among the words */
    const char *text;
};

/* "PROGRAM: " and the sentence, and the program ends. */
__attribute__((noreturn, format(printf, 2, 3))) void die(int code, const char *format, ...);

/* The value that TEXT stands for; WHERE and the setting's name begin the sentence when it is none: "--m '8x'
 * is not a whole number", "line 3: m '8x' is ...". */
void setting_set(const struct setting *setting, const char *text, const char *where, struct value *ret);

/* The options --NAME VALUE of the COUNT settings, into VALUES. --help prints them, after USAGE, and ends the
 * program. Missing ones are not known; settings_require() refuses them. */
void settings_read(int argc, char **argv, const char *usage, const struct setting *settings, size_t count,
                   struct value *values);
/* All but those that rows have must be known. */
void settings_require(const struct setting *settings, size_t count, const struct value *values);

#endif
