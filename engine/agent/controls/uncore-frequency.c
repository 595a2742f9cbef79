/* The limits of the frequency of what is not a core: mesh, last cache, memory controllers. Kernel:
 * admin-guide/pm/intel_uncore_frequency_scaling.rst. */
#include "engine/agent/controls/control.h"
#include "engine/agent/controls/hertz.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define UNCORE LAYOUT_CPU "/intel_uncore_frequency"

enum { FOLDER_SIZE = 128 };

/* Calls VISIT for the folder of each part; it returns 0 to go on. */
static int for_each(const struct layout *layout,
                    int (*visit)(const struct layout *layout, const char *folder, const char *name,
                                 void *context),
                    void *context) {
    cleanup(machine_names_clear) struct machine_names names = {0};
    int r = machine_list(layout->machine, UNCORE, "", &names);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    for (size_t i = 0; i < names.count && r == 0; i++) {
        char folder[FOLDER_SIZE];
        if (snprintf(folder, sizeof folder, UNCORE "/%s", names.items[i]) >= (int)sizeof folder ||
            !layout_has(layout, folder, "max_freq_khz"))
            continue;
        r = visit(layout, folder, names.items[i], context);
    }
    return r;
}

static struct hertz_words words_of(const struct layout *layout, const char *folder) {
    return (struct hertz_words){.min = layout_number(layout, folder, "initial_min_freq_khz"),
                                .max = layout_number(layout, folder, "initial_max_freq_khz")};
}

struct looking {
    struct control_look *look;
    struct values values;
};

static int look_at(const struct layout *layout, const char *folder, const char *name, void *context) {
    struct looking *looking = context;
    char text[HERTZ_RANGE_SIZE];
    control_note_path(looking->look, folder, "max_freq_khz");
    int r = 0;
    struct hertz_words words = words_of(layout, folder);
    if (looking->values.count == 0 && words.min && words.max)
        r = text_printf(&looking->look->possible, "%s min max",
                        hertz_format_range(words.min, words.max, text));
    if (r < 0)
        return r;
    hertz_format_range(layout_number(layout, folder, "min_freq_khz"),
                       layout_number(layout, folder, "max_freq_khz"), text);
    return values_add_named(&looking->values, text, name);
}

static int look(const struct layout *layout, struct control_look *ret) {
    struct looking looking = {.look = ret};
    int r = for_each(layout, look_at, &looking);
    if (r == 0 && looking.values.count == 0)
        r = control_absent(ret, "the kernel's module intel_uncore_frequency is not loaded, or the processor "
                                "has no such limits");
    else if (r == 0)
        r = values_put(&looking.values, &ret->value);
    if (looking.values.count)
        snprintf(ret->driver, sizeof ret->driver, "intel_uncore_frequency");
    values_clear(&looking.values);
    return r;
}

static int add_files(const struct layout *layout, const char *folder, const char *name, void *context) {
    (void)layout;
    (void)name;
    int r = control_add_file(context, folder, "min_freq_khz");
    return r == 0 ? control_add_file(context, folder, "max_freq_khz") : r;
}

static int files(const struct layout *layout, struct control_files *ret) {
    return for_each(layout, add_files, ret);
}

struct planning {
    const char *asked;
    struct plan *plan;
    struct failure *failure;
};

static int plan_one(const struct layout *layout, const char *folder, const char *name, void *context) {
    (void)name;
    struct planning *planning = context;
    struct hertz_words words = words_of(layout, folder);
    uint64_t min, max;
    int r = hertz_parse_range(planning->asked, &words, &min, &max, planning->failure);
    if (r < 0)
        return r;
    return plan_limits(planning->plan, -1, folder, "min_freq_khz", "max_freq_khz", min, max)
               ? 0
               : failure_memory(planning->failure);
}

static int plan(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure) {
    struct planning planning = {.asked = asked, .plan = ret, .failure = failure};
    int r = for_each(layout, plan_one, &planning);
    return r == -ENOMEM ? failure_memory(failure) : r;
}

const struct control control_uncore_frequency = {
    .name = "uncore-frequency", .look = look, .files = files, .plan = plan};
