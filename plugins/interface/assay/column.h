/*
 * What a column of a table, or an axis of a chart, is. It is described once: for files, for programs that
 * read them, and for people. The unit is written once, as UCUM code; how people write it follows from the
 * code.
 */
#ifndef ASSAY_ASSAY_COLUMN_H
#define ASSAY_ASSAY_COLUMN_H

#include <stdbool.h>

/* A time is ISO 8601 in UTC; readers take it as a string. */
enum column_type {
    COLUMN_UNKNOWN,
    COLUMN_NUMBER,
    COLUMN_INTEGER,
    COLUMN_STRING,
    COLUMN_BOOLEAN,
    COLUMN_TIME
};

enum column_role {
    COLUMN_ROLE_NONE,      /* none given, or one that this version does not know */
    COLUMN_ROLE_FACTOR,    /* set by the design */
    COLUMN_ROLE_RESPONSE,  /* measured */
    COLUMN_ROLE_COVARIATE, /* observed beside it: temperature, frequency */
    COLUMN_ROLE_ID,        /* names the unit: row, repetition, node, core */
    COLUMN_ROLE_TIME,      /* when */
};

/* Which of two values is better: for a search. */
enum column_goal { COLUMN_NO_GOAL, COLUMN_LESS, COLUMN_MORE };

/* Texts are borrowed, unless whoever has the column says otherwise. */
struct column {
    const char *name;
    enum column_type type;
    const char *unit; /* UCUM; NULL or "": none, as of texts, or not known; "1": a plain ratio or count */
    enum column_role role;
    const char *label; /* a few words for people; NULL: the name */
    const char *help;  /* a sentence; NULL or "": none */
    /* How a report shows it. */
    int digits;  /* significant ones; 0: a text, or as many as there are */
    bool detail; /* printed only when details are asked for; in JSON and files always */
    bool words;  /* texts are words separated by blanks; in JSON an array of them */
    /* Only of a predictor's results. */
    bool exact; /* no interval is given for it */
    enum column_goal goal;
    const char *part_of; /* the column of which it is a part, such as "time": shares are shown by --explain */
};

#endif
