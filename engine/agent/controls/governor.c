/* Who chooses the frequency within the limits. Kernel: admin-guide/pm/cpufreq.rst. */
#include "engine/agent/controls/control.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LIST_SIZE = 1024, NAME_SIZE = 32, GOVERNORS = 8 };

static int look(const struct layout *layout, struct control_look *ret) {
    cleanup(values_clear) struct values values = {0};
    control_note_driver(layout, ret);
    char text[LIST_SIZE];
    int r = 0;
    for (size_t i = 0; i < layout->policy_count && r == 0; i++) {
        const struct policy *policy = &layout->policies[i];
        if (layout_value(layout, policy->folder, "scaling_governor", text, sizeof text) < 0)
            continue;
        control_note_path(ret, policy->folder, "scaling_governor");
        r = values_add(&values, text, &policy->pus);
    }
    if (r < 0)
        return r;
    if (values.count == 0)
        return control_absent(ret, CONTROL_NO_CPUFREQ);
    if (layout_value(layout, layout->policies[0].folder, "scaling_available_governors", text, sizeof text) ==
        0)
        r = text_append_string(&ret->possible, text);
    return r == 0 ? values_put(&values, &ret->value) : r;
}

/* ---- what goes with another governor: its own settings. They come after it, since they are its */

static bool can_be_written(const struct layout *layout, const char *folder, const char *name) {
    char path[MACHINE_PATH_LIMIT];
    struct stat status;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return false;
    cleanup_close int file = machine_open_file(layout->machine, path, O_PATH);
    return file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_mode & 0222;
}

/* The files of FOLDER/GOVERNOR, if there is that. */
static int add_settings(const struct layout *layout, const char *folder, const char *governor,
                        struct control_files *ret) {
    cleanup(machine_names_clear) struct machine_names names = {0};
    char path[PLAN_PATH_SIZE];
    if (snprintf(path, sizeof path, "%s/%s", folder, governor) >= (int)sizeof path)
        return 0;
    int r = machine_list(layout->machine, path, "", &names);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    for (size_t i = 0; i < names.count && r == 0; i++)
        if (can_be_written(layout, path, names.items[i]))
            r = control_add_file(ret, path, names.items[i]);
    return r;
}

/* The governor of a policy, which is part of a path. */
static bool read_governor(const struct layout *layout, const struct policy *policy,
                          char name[static NAME_SIZE]) {
    if (layout_value(layout, policy->folder, "scaling_governor", name, NAME_SIZE) < 0)
        return false;
    for (const char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '_' && *at != '-')
            return false;
    return name[0];
}

/* Those of all policies together, which some drivers have. */
static int add_common_settings(const struct layout *layout, struct control_files *ret) {
    char seen[GOVERNORS][NAME_SIZE];
    size_t count = 0, at;
    int r = 0;
    for (size_t i = 0; i < layout->policy_count && count < GOVERNORS && r == 0; i++) {
        if (!read_governor(layout, &layout->policies[i], seen[count]))
            continue;
        for (at = 0; strcmp(seen[at], seen[count]) != 0;)
            at++;
        if (at == count)
            r = add_settings(layout, LAYOUT_CPU "/cpufreq", seen[count++], ret);
    }
    return r;
}

/* Under the governor userspace, a number. */
static bool has_speed(const struct layout *layout, const struct policy *policy) {
    char value[64];
    uint64_t khz;
    return layout_value(layout, policy->folder, "scaling_setspeed", value, sizeof value) == 0 &&
           number_parse_uint64(value, strlen(value), &khz);
}

static int files(const struct layout *layout, struct control_files *ret) {
    int r = control_add_policy_files(layout, ret, "scaling_governor");
    if (r == 0)
        r = add_common_settings(layout, ret);
    for (size_t i = 0; i < layout->policy_count && r == 0; i++) {
        const struct policy *policy = &layout->policies[i];
        char governor[NAME_SIZE];
        if (has_speed(layout, policy))
            r = control_add_file(ret, policy->folder, "scaling_setspeed");
        if (r == 0 && read_governor(layout, policy, governor))
            r = add_settings(layout, policy->folder, governor, ret);
    }
    return r;
}

static int plan(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure) {
    for (size_t i = 0; i < layout->policy_count; i++) {
        const struct policy *policy = &layout->policies[i];
        char list[LIST_SIZE];
        int r = layout_value(layout, policy->folder, "scaling_available_governors", list, sizeof list);
        if (r == 0 && (r = control_check_word(asked, list, failure)) < 0)
            return r;
        if (!plan_add(ret, (int)pu_set_first(&policy->pus), policy->folder, "scaling_governor", asked))
            return failure_memory(failure);
    }
    return 0;
}

/* Some kernels switch turbo on again with the governor; 'performance' brings an energy preference along. */
const struct control control_governor = {.name = "governor",
                                         .also = 1u << CONTROL_TURBO | 1u << CONTROL_FREQUENCY |
                                                 1u << CONTROL_ENERGY_PREFERENCE,
                                         .look = look,
                                         .files = files,
                                         .plan = plan};
