/* Settled groups, as the host's listeners hear them: values, notes, domain. */
#ifndef ASSAY_FIT_LINEAR_TELLING_H
#define ASSAY_FIT_LINEAR_TELLING_H

#include "plugins/fit-linear/linear.h"
#include "plugins/fit-linear/noise.h"
#include "plugins/fit-linear/settle.h"

enum {
    TELLING_VALUES_MAX = 32,
    TELLING_NOTES_MAX = 32,
    TELLING_NOTE_SIZE = 512, /* what is longer is cut */
};

/* What is collected of one group before it is written. */
struct telling {
    struct fit_value values[TELLING_VALUES_MAX];
    size_t value_count;
    char notes[TELLING_NOTES_MAX][TELLING_NOTE_SIZE];
    const char *note_pointers[TELLING_NOTES_MAX];
    size_t note_count;
    const struct plugin_noise *noise; /* or NULL */
};

/* NAME must outlive the telling. What is more than the most is passed over. */
void telling_value(struct telling *telling, const char *name, double value, int32_t response_power);
__attribute__((format(printf, 2, 3))) void telling_note(struct telling *telling, const char *format, ...);

int telling_formula(const struct fit *fit, const struct fit_writer *writer);
/* TELLING is emptied first. */
int telling_group(const struct fit *fit, const struct fit_writer *writer, uint32_t group,
                  const struct settled *settled, const struct noise_told *noise, struct telling *telling);

#endif
