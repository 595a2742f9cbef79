#include "engine/agent/controls/layout.h"

#include "engine/agent/controls/hertz.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT = 256, LONG = 4096 };

int layout_value(const struct layout *layout, const char *folder, const char *name, char *buffer,
                 size_t size) {
    int r = machine_read_value(layout->machine, machine_path("%s/%s", folder, name), buffer, size);
    if (r < 0)
        buffer[0] = '\0';
    return r;
}

uint64_t layout_number(const struct layout *layout, const char *folder, const char *name) {
    char value[SHORT];
    uint64_t number;
    (void)layout_value(layout, folder, name, value, sizeof value);
    return number_parse_uint64(value, strlen(value), &number) ? number : 0;
}

bool layout_has(const struct layout *layout, const char *folder, const char *name) {
    return machine_has(layout->machine, machine_path("%s/%s", folder, name));
}

bool layout_answers(const struct layout *layout, const char *folder, const char *name) {
    char value[SHORT];
    return layout_value(layout, folder, name, value, sizeof value) == 0;
}

void layout_siblings(const struct layout *layout, unsigned pu, struct pu_set *ret) {
    machine_read_siblings(layout->machine, pu, ret);
    for (size_t i = 0; i < sizeof ret->bits; i++)
        ret->bits[i] &= layout->online.bits[i];
    pu_set_add(ret, pu);
}

/* The place number I of SCOPE, with its PUs and its folder in sysfs. False: there are no more places. */
bool layout_place(const struct layout *layout, enum layout_scope scope, const char *folder, size_t i,
                  struct layout_place *ret) {
    const size_t counts[] = {[LAYOUT_MACHINE] = 1,
                             [LAYOUT_POLICY] = layout->policy_count,
                             [LAYOUT_PU] = layout->pu_count,
                             [LAYOUT_UNCORE] = layout->uncore.count};
    *ret = (struct layout_place){.pu = -1};
    if (i >= counts[scope])
        return false;
    if (scope == LAYOUT_POLICY) {
        *ret = layout->policies[i];
    } else if (scope == LAYOUT_PU) {
        ret->pu = (int)layout->pus[i];
        pu_set_add(&ret->pus, layout->pus[i]);
        snprintf(ret->folder, sizeof ret->folder, LAYOUT_CPU "/cpu%u/%s", layout->pus[i], folder);
    } else if (scope == LAYOUT_UNCORE) {
        snprintf(ret->folder, sizeof ret->folder, LAYOUT_UNCORE_FOLDER "/%.32s", layout->uncore.items[i]);
    } else {
        snprintf(ret->folder, sizeof ret->folder, "%s", folder);
    }
    return true;
}

/* ---- policies */

/* Adds the cpufreq policy in FOLDER, which is named after PU. That of an offline PU is left out: its folder
 * remains, but its files cannot be read, or name no PU. 0 or -ENOMEM. */
static int add_policy(struct layout *layout, const char *folder, unsigned pu) {
    char list[LONG];
    struct layout_place policy = {0};
    snprintf(policy.folder, sizeof policy.folder, "%s", folder);
    int r = layout_value(layout, folder, "affected_cpus", list, sizeof list);
    /* "0 1 2 3", instead of the kernel's usual "0-3". */
    for (char *at = list; *at; at++)
        if (*at == ' ')
            *at = ',';
    if (r == -ENOENT && pu_set_has(&layout->online, pu))
        pu_set_add(&policy.pus, pu);
    else if (r < 0 || pu_set_parse(list, &policy.pus) < 0)
        return 0;
    policy.pu = (int)pu_set_first(&policy.pus);
    if (policy.pu == PROTOCOL_PU_LIMIT)
        return 0;
    struct layout_place *policies =
        realloc(layout->policies, (layout->policy_count + 1) * sizeof *layout->policies);
    if (!policies)
        return -ENOMEM;
    layout->policies = policies;
    policies[layout->policy_count++] = policy;
    return 0;
}

/* Finds the frequency policies, in folders of policies or, on old kernels, of PUs. 0, also when there are
 * none, or -ENOMEM. */
static int read_policies(struct layout *layout) {
    cleanup(machine_names_clear) struct machine_names names = {0};
    if (machine_list(layout->machine, LAYOUT_CPU "/cpufreq", "policy", &names) == -ENOMEM)
        return -ENOMEM;
    for (size_t i = 0; i < names.count; i++) {
        const char *digits = names.items[i] + strlen("policy");
        uint64_t number;
        if (number_parse_uint64(digits, strlen(digits), &number) && number < PROTOCOL_PU_LIMIT &&
            add_policy(layout, machine_path(LAYOUT_CPU "/cpufreq/%s", names.items[i]), (unsigned)number) < 0)
            return -ENOMEM;
    }
    /* Before Linux 4.4 each PU had a cpufreq folder of its own, equal for all PUs of a policy. */
    bool old = layout->policy_count == 0;
    for (size_t i = 0; old && i < layout->pu_count; i++) {
        size_t before = layout->policy_count;
        const char *folder = machine_path(LAYOUT_CPU "/cpu%u/cpufreq", layout->pus[i]);
        if (machine_has(layout->machine, folder) && add_policy(layout, folder, layout->pus[i]) < 0)
            return -ENOMEM;
        if (layout->policy_count > before && layout->policies[before].pu != (int)layout->pus[i])
            layout->policy_count--;
    }
    return 0;
}

/* Lists the uncore domains that have limits. */
static int read_uncore(struct layout *layout) {
    if (machine_list(layout->machine, LAYOUT_UNCORE_FOLDER, "", &layout->uncore) == -ENOMEM)
        return -ENOMEM;
    size_t used = 0;
    for (size_t i = 0; i < layout->uncore.count; i++) {
        char *name = layout->uncore.items[i];
        if (layout_has(layout, machine_path(LAYOUT_UNCORE_FOLDER "/%.32s", name), "max_freq_khz"))
            layout->uncore.items[used++] = name;
        else
            free(name);
    }
    layout->uncore.count = used;
    return 0;
}

/* ---- base frequency and turbo */

/* The base frequency of a driver's table, in kHz: its highest entry but turbo, which acpi-cpufreq lists first
 * on Intel, 1 MHz above the base: 2101000 2100000 2000000 ... 0: TABLE has no number. */
static uint64_t base_khz_of_table(const char *table) {
    uint64_t first, second;
    size_t length = strcspn(table, " ");
    if (!number_parse_uint64(table, length, &first))
        return 0;
    const char *rest = table + length + (table[length] == ' ');
    bool turbo = number_parse_uint64(rest, strcspn(rest, " "), &second) && first - second == 1000;
    return turbo ? second : first;
}

/* The base frequency in the processor's name, "model name : ... CPU @ 2.10GHz", in kHz; 0: it has none. */
static uint64_t base_khz_of_name(const struct layout *layout) {
    struct text content;
    text_init(&content, 4 << 20); /* some 1.5 KiB a PU */
    uint64_t khz = 0;
    if (machine_read(layout->machine, "proc/cpuinfo", &content) == 0) {
        const char *line = strstr(content.bytes, "model name"), *end = line ? strchr(line, '\n') : NULL;
        const char *at = line ? strstr(line, "@ ") : NULL;
        if (at && (!end || at < end) && hertz_parse(at + 2, strcspn(at + 2, "\n"), &khz) < 0)
            khz = 0;
    }
    text_clear(&content);
    return khz;
}

/* The base frequency of a policy by the files that have it, in kHz; 0: no file has it. */
static uint64_t base_khz_of_files(const struct layout *layout, const struct layout_place *policy) {
    uint64_t khz = layout_number(layout, policy->folder, "base_frequency");
    if (khz)
        return khz;
    char text[LONG];
    if (layout_value(layout, policy->folder, "scaling_available_frequencies", text, sizeof text) == 0 &&
        (khz = base_khz_of_table(text)))
        return khz;
    return layout_number(layout, machine_path(LAYOUT_CPU "/cpu%d/acpi_cppc", policy->pu), "nominal_freq") *
           1000; /* MHz */
}

uint64_t layout_base_khz(const struct layout *layout, const struct layout_place *policy) {
    uint64_t khz = base_khz_of_files(layout, policy);
    return khz ? khz : layout->name_khz;
}

int layout_common_turbo(const struct layout *layout) {
    char value[SHORT];
    if (layout_value(layout, LAYOUT_INTEL_PSTATE, "no_turbo", value, sizeof value) == 0)
        return strcmp(value, "0") == 0;
    if (layout_value(layout, LAYOUT_CPU "/cpufreq", "boost", value, sizeof value) == 0)
        return strcmp(value, "0") != 0;
    return -1;
}

int layout_policy_turbo(const struct layout *layout, const struct layout_place *policy, int common) {
    char value[SHORT];
    if (common == 0 || layout_value(layout, policy->folder, "boost", value, sizeof value) < 0)
        return common;
    return strcmp(value, "0") != 0;
}

int layout_turbo(const struct layout *layout) {
    int common = layout_common_turbo(layout), turbo = layout->policy_count ? -1 : common;
    for (size_t i = 0; i < layout->policy_count && turbo < 1; i++) {
        int policy = layout_policy_turbo(layout, &layout->policies[i], common);
        turbo = policy > turbo ? policy : turbo;
    }
    return turbo;
}

/* ---- reading the layout */

int layout_read(const struct machine *machine, struct layout *ret) {
    cleanup(layout_clear) struct layout layout = {.machine = machine};
    if (machine_read_set(machine, LAYOUT_CPU "/online", &layout.online) < 0)
        layout.online = (struct pu_set){0};
    if (machine_read_set(machine, LAYOUT_CPU "/present", &layout.present) < 0)
        layout.present = layout.online;
    layout.pus = calloc(PROTOCOL_PU_LIMIT, sizeof *layout.pus);
    if (!layout.pus)
        return -ENOMEM;
    for (unsigned pu = pu_set_first(&layout.online); pu < PROTOCOL_PU_LIMIT;
         pu = pu_set_next(&layout.online, pu))
        layout.pus[layout.pu_count++] = pu;
    if (read_policies(&layout) < 0 || read_uncore(&layout) < 0)
        return -ENOMEM;
    if (layout.policy_count && base_khz_of_files(&layout, &layout.policies[0]) == 0)
        layout.name_khz = base_khz_of_name(&layout);
    *ret = layout;
    layout = (struct layout){0};
    return 0;
}

void layout_clear(struct layout *layout) {
    free(layout->pus);
    free(layout->policies);
    machine_names_clear(&layout->uncore);
    *layout = (struct layout){0};
}
