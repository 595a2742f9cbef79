/* The PUs of a machine and what governs their frequency, as the kernel shows them now. A PU that
 * is offline has hardly any files that can be set, so the layout is read again after PUs came or went. */
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

/* Where a control has a file: one of the machine, one a policy, one a PU that is online, one an uncore part.
 */
enum layout_scope { LAYOUT_MACHINE, LAYOUT_POLICY, LAYOUT_PU, LAYOUT_UNCORE };
struct layout_place {
    char folder[96];   /* LAYOUT_CPU "/cpufreq/policy0" */
    int pu;            /* the first of `pus`; -1: none */
    struct pu_set pus; /* the PUs online that it belongs to; may be empty */
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

/* What a file does not say is empty: no PUs, no policies. 0 or -ENOMEM. */
int layout_read(const struct machine *machine, struct layout *ret);
void layout_clear(struct layout *layout);

/* The place number I of SCOPE; FOLDER: of the machine's the folder itself, of a PU's the one in "cpuN", else
 * not looked at. False after the last. */
bool layout_place(const struct layout *layout, enum layout_scope scope, const char *folder, size_t i,
                  struct layout_place *ret);

/* The PUs of the core of PU that are online, or PU alone where nothing says. */
void layout_siblings(const struct layout *layout, unsigned pu, struct pu_set *ret);

/* The number in FOLDER/NAME; 0 without such a file. */
uint64_t layout_number(const struct layout *layout, const char *folder, const char *name);
/* What is in FOLDER/NAME, trimmed; "" and a negative errno. */
int layout_value(const struct layout *layout, const char *folder, const char *name, char *buffer,
                 size_t size);
bool layout_has(const struct layout *layout, const char *folder, const char *name);
/* The same of one that can be read, too: some files of a driver that is switched off stay, and give EAGAIN.
 */
bool layout_answers(const struct layout *layout, const char *folder, const char *name);

/* The frequency that a policy's PUs are sold with, in kHz: what can be kept without turbo. 0: not known. */
uint64_t layout_base_khz(const struct layout *layout, const struct layout_place *policy);
/* Whether turbo is on: 1, 0; -1: there is none to switch. By the switch of all; of a policy, which has it
 * where neither that, which is COMMON, nor its own is off; and of any policy. */
int layout_common_turbo(const struct layout *layout);
int layout_policy_turbo(const struct layout *layout, const struct layout_place *policy, int common);
int layout_turbo(const struct layout *layout);

#endif
