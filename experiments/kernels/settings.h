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
    const char *fallback;     /* the default, as text; NULL: it must be given */
    bool in_rows;
    const char *help;
};

struct value {
    bool given; /* as an option */
    bool known; /* it has a value: given, or the default */
    uint64_t whole;
    double number;
    int word; /* the index among the words */
    const char *text;
};

/* Prints "PROGRAM: " and the sentence to standard error, and exits with CODE. */
__attribute__((noreturn, format(printf, 2, 3))) void die(int code, const char *format, ...);

/* Sets *RET to the value that TEXT stands for. Ends the program if it is not a value of the setting; the
 * message begins with WHERE and the setting's name: "--m '8x' is not ...", "line 3: m '8x' is not ...". */
void setting_set(const struct setting *setting, const char *text, const char *where, struct value *ret);

/* Reads the options --NAME VALUE of the COUNT settings into VALUES. --help prints them, after USAGE, and ends
 * the program. An option that is missing and has no default is not `known`; settings_require() checks that.
 */
void settings_read(int argc, char **argv, const char *usage, const struct setting *settings, size_t count,
                   struct value *values);
/* Ends the program if a setting that rows cannot have is not known. */
void settings_require(const struct setting *settings, size_t count, const struct value *values);

#endif
