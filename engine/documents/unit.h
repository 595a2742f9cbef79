/*
 * Units: what a number with a unit means, and how a unit is written in archives (UCUM codes, QUDT names).
 */
#ifndef ASSAY_DOCUMENTS_UNIT_H
#define ASSAY_DOCUMENTS_UNIT_H

#include <stdbool.h>
#include <stddef.h>

enum unit_dimension {
    UNIT_NONE,        /* a plain number; 1 */
    UNIT_TIME,        /* s: ns, us, ms, s, min, h, d */
    UNIT_FREQUENCY,   /* Hz: Hz, kHz, MHz, GHz */
    UNIT_SIZE,        /* byte: B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024) */
    UNIT_RATIO,       /* 1: "2%" is 0.02 */
    UNIT_BANDWIDTH,   /* byte/s: B/s, kB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s */
    UNIT_POWER,       /* W: mW, W, kW */
    UNIT_TEMPERATURE, /* Cel: Cel, C, °C */
    UNIT_ENERGY,      /* J: uJ, mJ, J, kJ, Wh, kWh */
    UNIT_WORK,        /* flop: flop, Mflop, Gflop, Tflop */
    UNIT_PERFORMANCE, /* flop/s: flop/s, Mflop/s, Gflop/s, Tflop/s */
};

/* "10min", "10 min", "2.4GHz", "64MiB", "3" -> the value in the dimension's SI unit. Case counts: "Mb" and
 * "MHZ" are no units. False if the number or the unit is not one of that dimension; *RET is untouched then.
 */
bool unit_parse(const char *text, enum unit_dimension dimension, double *ret);
/* "a time, such as 10min or 1.5 s", for messages. */
const char *unit_expectation(enum unit_dimension dimension);
/* How the dimension's SI unit is written by people: "s", "B", "Hz", or "" where it is 1. */
const char *unit_symbol(enum unit_dimension dimension);

/* The table of units that columns may have. CODE is the UCUM code ("s", "ns", "By", "Hz", "1", ...). */
struct unit {
    const char *code;  /* UCUM */
    const char *qudt;  /* full URI in the QUDT vocabulary; NULL where that has none */
    const char *label; /* for people: "s", "byte", "Hz", "" for 1 */
    double scale;      /* one of it in the dimension's SI unit */
    enum unit_dimension dimension;
};
/* By UCUM code, or NULL. The units of a user's own experiment may be any text: unknown ones have no row. */
const struct unit *unit_find(const char *code);
/* By UCUM code or as people write it, such as "MB/s", or NULL. */
const struct unit *unit_find_written(const char *text);
/* Numbers in the unit FROM, times *RET_MULTIPLY, divided by *RET_DIVIDE, are in the unit TO: two whole
 * numbers without a common factor. One of them is a power of two, so that the result is rounded once, but for
 * W.h beside kJ. False where a unit is not known or they are of different dimensions; a ratio in per cent and
 * a plain number are of the same one. */
bool unit_conversion(const char *from, const char *to, double *ret_multiply, double *ret_divide);

#endif
