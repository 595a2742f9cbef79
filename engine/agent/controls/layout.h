/* The PUs of a machine and its frequency policies, as the kernel shows them now. An offline PU has hardly any
 * files that can be set, so the layout is read again after PUs went on- or offline. */
#ifndef ASSAY_CONTROLS_LAYOUT_H
#define ASSAY_CONTROLS_LAYOUT_H

#include "engine/agent/machine/machine.h"
#include "engine/agent/machine/pu-set.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAYOUT_CPU "sys/devices/system/cpu"
#define LAYOUT_INTEL_PSTATE LAYOUT_CPU "/intel_pstate"
#define LAYOUT_UNCORE_FOLDER LAYOUT_CPU "/intel_uncore_frequency"

/* How many files a control has: one for the machine, or one for each policy, online PU or uncore domain. */
enum layout_scope { LAYOUT_MACHINE, LAYOUT_POLICY, LAYOUT_PU, LAYOUT_UNCORE };
struct layout_place {
    char folder[96];   /* LAYOUT_CPU "/cpufreq/policy0" */
    int pu;            /* the first of `pus`; -1: none */
    struct pu_set pus; /* the online PUs that the file controls; may be empty */
};

struct layout {
    const struct machine *machine;
    struct pu_set present, online;
    unsigned *pus; /* those online, ascending */
    size_t pu_count;
    struct layout_place *policies; /* cpufreq: PUs whose frequency is set together; ascending */
    size_t policy_count;
    struct machine_names uncore; /* entries of LAYOUT_UNCORE_FOLDER that have limits */
    uint64_t name_khz; /* the frequency in the processor's name, where no file has it; 0: not known */
};

/* Reads the layout of MACHINE; missing files give empty sets and no policies. 0 or -ENOMEM. */
int layout_read(const struct machine *machine, struct layout *ret);
void layout_clear(struct layout *layout);

/* Sets *RET to place number I of SCOPE; false after the last. FOLDER is the folder itself for LAYOUT_MACHINE,
 * the one inside "cpuN" for LAYOUT_PU, and ignored otherwise. */
bool layout_place(const struct layout *layout, enum layout_scope scope, const char *folder, size_t i,
                  struct layout_place *ret);

/* Sets *RET to the online PUs of PU's core, or to PU alone where the kernel does not say. */
void layout_siblings(const struct layout *layout, unsigned pu, struct pu_set *ret);

/* The number in FOLDER/NAME; 0: there is no such file, or no number in it. */
uint64_t layout_number(const struct layout *layout, const char *folder, const char *name);
/* Reads the trimmed content of FOLDER/NAME; on failure BUFFER is "", with a negative errno. */
int layout_value(const struct layout *layout, const char *folder, const char *name, char *buffer,
                 size_t size);
bool layout_has(const struct layout *layout, const char *folder, const char *name);
/* True where FOLDER/NAME exists and can be read: some files of a disabled driver remain, and fail with
 * EAGAIN. */
bool layout_answers(const struct layout *layout, const char *folder, const char *name);

/* The nominal (base) frequency of a policy's PUs, the highest without turbo, in kHz. 0: not known. */
uint64_t layout_base_khz(const struct layout *layout, const struct layout_place *policy);
/* Whether turbo is on: 1 on, 0 off, -1: there is no switch. The first is the switch for all PUs; the second
 * is that of a policy, on where neither the common switch (COMMON, of the first function) nor the policy's
 * own is off; the third is on where turbo is on for any policy. */
int layout_common_turbo(const struct layout *layout);
int layout_policy_turbo(const struct layout *layout, const struct layout_place *policy, int common);
int layout_turbo(const struct layout *layout);

#endif
