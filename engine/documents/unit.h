/*
 * Units: what a number with a unit means, and how a unit is written in archives (UCUM codes, QUDT names).
 */
#ifndef ASSAY_DOCUMENTS_UNIT_H
#define ASSAY_DOCUMENTS_UNIT_H

#include <stdbool.h>
#include <stddef.h>

enum unit_dimension {
    UNIT_NONE,      /* a plain number; 1 */
    UNIT_TIME,      /* s: ns, us, ms, s, min, h, d */
    UNIT_FREQUENCY, /* Hz: Hz, kHz, MHz, GHz */
    UNIT_SIZE,      /* byte: B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024) */
    UNIT_RATIO,     /* 1: "2%" is 0.02 */
    UNIT_BANDWIDTH, /* byte/s: B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, bit/s, kbit/s, Mbit/s, Gbit/s
                     */
    UNIT_POWER,     /* W: mW, W, kW */
    UNIT_TEMPERATURE, /* Cel: Cel, C, °C */
    UNIT_ENERGY,      /* J: uJ, mJ, J, kJ, Wh, kWh */
    UNIT_WORK,        /* flop: flop, Mflop, Gflop, Tflop */
    UNIT_PERFORMANCE, /* flop/s: flop/s, Mflop/s, Gflop/s, Tflop/s */
};

/* "10min", "10 min", "2.4GHz", "64MiB", "3" -> the value in the dimension's SI unit. Units are written as
 * unit_find_written() reads them. False if the number or the unit is not one of that dimension; *RET is
 * untouched then.
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
/* How people write the unit CODE, which may be unknown: CODE itself; "" for NULL and "1". */
const char *unit_label(const char *code);
/* By UCUM code or as people write it: "MB/s", "MBytes/sec", "usec", "µs" (with U+00B5 or U+03BC), "GFLOPS",
 * "Gbps", "percent". NULL: no unit. Case counts: "Mb" and "MHZ" are no units, nor is "KB", which may be 1000
 * or 1024 bytes. */
const struct unit *unit_find_written(const char *text);

enum unit_place {
    UNIT_PLACE_NONE,     /* the name says no unit */
    UNIT_PLACE_BRACKETS, /* "duration [us]", "Latency(us)"; or something else in brackets: "x (mean)" */
    UNIT_PLACE_BEHIND,   /* "duration, us", "duration in us" */
    UNIT_PLACE_SUFFIX,   /* "duration_us", "duration.us" */
};
/* Where the LENGTH bytes at NAME, a column's name as people write it, say a unit: that in *RET_UNIT (NULL:
 * what is in brackets is no unit), and how long the name is without it in *RET_STEM. A suffix is a unit of
 * time (s and less), size, frequency, bandwidth, power, energy or temperature of at least two letters; _s
 * only behind words for a time (wall_time_s, latency_s; not bus_s). "min" is a minute in square brackets
 * only, and a minimum elsewhere. */
enum unit_place unit_read_name(const char *name, size_t length, size_t *ret_stem,
                               const struct unit **ret_unit);
/* Whether the LENGTH bytes at NAME end with a word for a time: "duration", "latency", "wall_time". */
bool unit_is_time_name(const char *name, size_t length);
/* The unit that a column without one has by its usual name: "s" of "duration", "By" of "size"; NULL: none. */
const char *unit_of_name(const char *column);
/* Whether quantities in the unit CODE are above 0 by nature: a time, a size, a rate, an energy, ... */
bool unit_is_positive(const char *code);
/* Numbers in the unit FROM, times *RET_MULTIPLY, divided by *RET_DIVIDE, are in the unit TO: two whole
 * numbers without a common factor. One of them is a power of two, so that the result is rounded once, but for
 * W.h beside kJ. False where a unit is not known or they are of different dimensions; a ratio in per cent and
 * a plain number are of the same one. */
bool unit_conversion(const char *from, const char *to, double *ret_multiply, double *ret_divide);

#endif
