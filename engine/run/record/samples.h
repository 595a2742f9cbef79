/*
 * The last samples of a node's sensors while a run goes on, from the ends of its sample files
 * (nodes/NODE/probes/KIND.csv; FORMAT.md, "nodes/"). What is read again goes on from the byte up to which it
 * was read, however long the files are. While it samples, the engine writes to the files at least twice a
 * minute.
 *
 * The files may come from strangers: texts can hold anything, links are not followed.
 */
#ifndef ASSAY_RECORD_SAMPLES_H
#define ASSAY_RECORD_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The last sample of one file; none yet, or no file of samples: count is 0. */
struct samples_probe {
    char *file;     /* "load.csv" */
    char **names;   /* of the columns */
    char **units;   /* UCUM; NULL: not known */
    double *values; /* of each; NaN: not known, or not sampled again */
    double *before; /* likewise of the sample that was read before; NULL: none was */
    int64_t before_ns;
    size_t count;
    bool has_units;  /* they were read; before the sampler has begun there are none */
    int64_t time_ns; /* wall clock of the node */
    char *head;      /* the header with its newline */
    uint64_t bytes;  /* the file was read up to here, the end of a line */
};

/* Zeroed, it is that of a node of which nothing was read. */
struct samples {
    unsigned part;                /* that they are of */
    struct samples_probe *probes; /* in no order */
    size_t count;
};

/* Reads on in the files of NODE in the run's FOLDER, as of its part PART. What is not there or cannot be
 * read, and a line whose end is not written yet, is ignored. */
void samples_read(struct samples *samples, const char *folder, const char *node, unsigned part);
void samples_clear(struct samples *samples);

#endif
