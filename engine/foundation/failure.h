/*
 * The one error channel. A function that can fail returns 0 or a negative errno and fills a caller's
 * struct failure with one sentence for the user and, where there is one, the place. Outputs are
 * untouched on failure. Libraries neither print nor exit: the command line does both.
 *
 *     return failure_input(failure, campaign->file, node->line, node->column,
 *                          "'%s' is not a time; expected a number and a unit, such as 10min", text);
 *
 * Sentences start in lower case, have no full stop, and name what was found before what was expected.
 */
#ifndef ASSAY_FOUNDATION_FAILURE_H
#define ASSAY_FOUNDATION_FAILURE_H

#include <stddef.h>

/* What went wrong, coarsely: it decides the exit code of the program (README, "Exit codes"). */
enum failure_kind {
    FAILURE_NONE = 0,
    FAILURE_SYSTEM = 1,       /* a file, a process or memory failed us */
    FAILURE_INPUT = 2,        /* what the user gave is wrong: nothing has been touched */
    FAILURE_EXPERIMENT = 3,   /* the experiment ran and failed; an archive says so */
    FAILURE_INTERRUPTED = 4,  /* the user or a signal ended it; what there is was sealed */
    FAILURE_VERIFICATION = 5, /* an archive is damaged, hostile or not what its manifest says */
    FAILURE_PARTIAL = 6,      /* a run ended in good order before all was done; it can be resumed */
};

enum { FAILURE_PLACE_SIZE = 512, FAILURE_TEXT_SIZE = 1536 };

struct failure {
    enum failure_kind kind;
    int code;                       /* negative errno */
    char place[FAILURE_PLACE_SIZE]; /* "file:line:column", "node dahu-3", or empty */
    char text[FAILURE_TEXT_SIZE];
};

/* All four return CODE (negative), or -EINVAL for the input ones; FAILURE may be NULL. */
int failure_set(struct failure *failure, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int failure_set_kind(struct failure *failure, enum failure_kind kind, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Bad input at a place in a file. LINE and COLUMN count from 1; 0 means unknown. FILE may be NULL. */
int failure_input(struct failure *failure, const char *file, size_t line, size_t column, const char *format,
                  ...) __attribute__((format(printf, 5, 6)));

/* Gives a failure of input that has no place this one. Returns CODE. */
int failure_place(struct failure *failure, int code, const char *file, size_t line, size_t column);

/* A verification failure: the archive FILE is not what it says. Returns -EBADMSG. */
int failure_verification(struct failure *failure, const char *file, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "PREFIX: " before the sentence as the failure climbs. Returns the failure's code. */
int failure_prefix(struct failure *failure, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Out of memory, always the same sentence. Returns -ENOMEM. */
int failure_memory(struct failure *failure);

/* Writes "place: text" into BUFFER, cut at SIZE, and returns BUFFER. */
const char *failure_describe(const struct failure *failure, char *buffer, size_t size);

#endif
