/* Takes samples when they are due and writes their lines in batches, until a signal ends it. */
#ifndef ASSAY_PROBES_SAMPLER_H
#define ASSAY_PROBES_SAMPLER_H

#include "engine/agent/probes/probe.h"

#define SAMPLER_PERIOD_MIN_NS INT64_C(10000000)
#define SAMPLER_PERIOD_MAX_NS (86400 * PROBE_SECOND)

struct sampler_options {
    const struct machine *machine;
    struct {
        const struct probe *probe;
        int64_t period_ns;
    } probes[PROBE_LIMIT];
    size_t count;
    const char *const *expectations; /* for drift */
    size_t expectation_count;
    int64_t flush_ns; /* how long a line may wait for others to be written with */
    int descriptor;   /* to be written to */
};

/* Writes the header, samples until SIGTERM, SIGINT or SIGHUP, or until its reader has closed the output, then
 * the last samples and the cost (TOOLS.md, Probes). 0, or a negative errno: no memory, or not everything was
 * read
 * (-EPIPE, -ETIMEDOUT). */
int sampler_run(const struct sampler_options *options);

#endif
