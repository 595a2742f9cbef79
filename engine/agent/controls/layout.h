/* The PUs of a machine and what governs their frequency, as the kernel shows them now. What is offline has
 * next to no files that can be set, so it is read anew after PUs came or went. */
#ifndef ASSAY_CONTROLS_LAYOUT_H
#define ASSAY_CONTROLS_LAYOUT_H

#include "engine/agent/machine/machine.h"
#include "engine/agent/machine/pu-set.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAYOUT_CPU "sys/devices/system/cpu"

/* A cpufreq policy: PUs whose frequency is set together. */
struct policy {
    char folder[64];   /* LAYOUT_CPU "/cpufreq/policy0" */
    struct pu_set pus; /* those online */
};

struct layout {
    const struct machine *machine;
    struct pu_set present, online;
    unsigned *pus; /* those online, ascending */
    size_t pu_count;
    struct policy *policies; /* those of PUs that are online, ascending */
    size_t policy_count;
    uint64_t name_khz; /* the frequency in the processor's name, where no file has it; 0: not known */
};

/* What a file does not say is empty: no PUs, no policies. 0 or -ENOMEM. */
int layout_read(const struct machine *machine, struct layout *ret);
void layout_clear(struct layout *layout);

/* The PUs of the core of PU that are online, or PU alone where nothing says. */
void layout_siblings(const struct layout *layout, unsigned pu, struct pu_set *ret);

/* The number in FOLDER/NAME, 0 if there is none. */
uint64_t layout_number(const struct layout *layout, const char *folder, const char *name);
/* What is in FOLDER/NAME, trimmed; a negative errno. */
int layout_value(const struct layout *layout, const char *folder, const char *name, char *buffer,
                 size_t size);
bool layout_has(const struct layout *layout, const char *folder, const char *name);
/* The same of one that can be read, too: some files of a driver that is switched off stay, and give EAGAIN.
 */
bool layout_answers(const struct layout *layout, const char *folder, const char *name);

/* The frequency that a policy's PUs are sold with, in kHz: what can be kept without turbo. 0: not known. */
uint64_t layout_base_khz(const struct layout *layout, const struct policy *policy);
/* Whether turbo is on: 1, 0; -1: there is none to switch. By the switch of all; of a policy, which has it
 * where neither that, which is COMMON, nor its own is off; and of any policy. */
int layout_common_turbo(const struct layout *layout);
int layout_policy_turbo(const struct layout *layout, const struct policy *policy, int common);
int layout_turbo(const struct layout *layout);

#endif
