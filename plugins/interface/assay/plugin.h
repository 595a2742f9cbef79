/*
 * What every plugin of assay is: a shared object with one const struct under one fixed symbol, which the
 * macros of fit.h and predict.h define. It includes these headers, links nothing of assay, and is found by
 * its file's name (fit-METHOD.so, predict-METHOD.so, export-FORMAT.so) in the folders of
 * ASSAY_PATH and in assay's own.
 *
 * Growth. Every struct that begins with `size` is filled by one side, which writes its sizeof there; the
 * other side uses no member beyond that (PLUGIN_HAS). Within one ABI number members are only added at the
 * end. A plugin that was built for another number is refused with both numbers.
 *
 * Errors. A function that can fail returns 0 or a negative errno, and writes one sentence for the user into
 * the struct plugin_message that it was given: lower case, no full stop, what was found before what was
 * expected. -EINVAL means that what the user gave is wrong; -EDOM that it is right but has no answer;
 * anything else that the machine failed. A plugin neither prints nor exits, and starts no threads that
 * outlive a call.
 */
#ifndef ASSAY_ASSAY_PLUGIN_H
#define ASSAY_ASSAY_PLUGIN_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A plugin may leave out trailing members of its structs, which are then 0, without a warning of the
 * compiler. The engine, which includes this header too, keeps the warning. */
#ifndef ASSAY_ENGINE
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#endif

#define ASSAY_PLUGIN_ABI 4u
#define ASSAY_PLUGIN_SYMBOL "assay_plugin"

/* Whether STRUCTURE, filled by the other side, is new enough to have MEMBER. */
#define PLUGIN_HAS(structure, member)                                                                        \
    ((structure)->size >= offsetof(__typeof__(*(structure)), member) + sizeof((structure)->member))

enum plugin_kind {
    PLUGIN_FIT = 1,     /* rows -> a model: struct fit_plugin */
    PLUGIN_PREDICT = 2, /* models and a scenario -> numbers or a text: struct predict_plugin */
};

/* What the symbol is. The first two members keep their place for good, so that a refusal can say both
 * numbers. */
struct assay_plugin {
    uint32_t abi;  /* ASSAY_PLUGIN_ABI of the headers it was built with */
    uint32_t size; /* sizeof(struct assay_plugin) */
    uint32_t kind; /* enum plugin_kind */
    uint32_t reserved;
    const char *name;    /* "mean": the file is fit-mean.so */
    const char *version; /* of the plugin; recorded in models and texts that it makes */
    const char *summary; /* one line for people */
    const void *operations;
};

enum { PLUGIN_MESSAGE_SIZE = 1280 };

struct plugin_message {
    char text[PLUGIN_MESSAGE_SIZE]; /* NUL-ended; longer texts are cut */
};

/* Writes the sentence and returns CODE: return plugin_refuse(message, -EINVAL, "..."); */
__attribute__((format(printf, 3, 4))) static inline int plugin_refuse(struct plugin_message *message,
                                                                      int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message->text, sizeof message->text, format, arguments);
    va_end(arguments);
    return code;
}

/* ---- Parameters: what the user may set (--set NAME=VALUE, or a column of a table of scenarios)
 * ---------------- */

enum plugin_type {
    PLUGIN_NUMBER,     /* in `unit`; the host converts and checks the range */
    PLUGIN_NUMBERS,    /* a list of them, separated by commas */
    PLUGIN_WORD,       /* one of `choices` */
    PLUGIN_TEXT,       /* any text */
    PLUGIN_TEXTS,      /* a list, separated by commas */
    PLUGIN_COLUMN,     /* of a fit: a column of numbers, in `unit` */
    PLUGIN_COLUMNS,    /* several */
    PLUGIN_CATEGORY,   /* a column of texts */
    PLUGIN_CATEGORIES, /* several */
};

struct plugin_parameter {
    const char *name;
    enum plugin_type type;
    const char *unit; /* UCUM ("1", "s", "By/s") of a number or column; NULL: any, as the table has it */
    /* The words that are accepted. Of a column: the usual names, of which the first that the table has is
     * the default; of several columns: all that the table has. Ended by NULL; NULL: none. */
    const char *const *choices;
    /* As the user would write it; NULL: there is none. A number that is not set and has no default is NaN, a
     * text NULL, a list empty, a column absent. */
    const char *default_text;
    double minimum, maximum; /* of a number, both included; both 0: any */
    bool integer;            /* the number must be whole */
    bool required;           /* it must be set, or a column be found */
    const char *help;        /* one line */
    /* Of a number: outside of these the user is warned, with the unit; both 0: any is plausible. */
    double plausible_minimum, plausible_maximum;
    /* Of a predictor: the role whose model replaces the parameter; the host refuses to have both. NULL:
     * none. */
    const char *instead_of;
};

/* The value of a parameter. */
struct plugin_value {
    bool is_set;              /* by the user, not the default */
    double number;            /* of a number; of a word its index in `choices` */
    const char *text;         /* of a word or text; of one column its name */
    const double *numbers;    /* of a list */
    const char *const *texts; /* of a list; of columns their names */
    size_t count;             /* of a list; of columns how many, 0 or 1 where it is one */
    size_t first;             /* of columns: where they begin in fit_rows.columns, or .categories */
};

#endif
