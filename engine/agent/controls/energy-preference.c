/* Speed or economy, as a hint to the processor. Kernel: admin-guide/pm/intel_pstate.rst and amd-pstate.rst
 * (energy_performance_preference), intel_epb.rst (energy_perf_bias). */
#include "engine/agent/controls/control.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PREFERENCE "energy_performance_preference"
#define BIAS "energy_perf_bias"

static const struct {
    const char *name;
    unsigned number;
} biases[] = {
    {"performance", 0}, {"balance-performance", 4}, {"normal", 6}, {"balance-power", 8}, {"power", 15},
};

/* What a driver shows for numbers that have a name: Intel's, and AMD's where they differ. */
static const struct {
    const char *name;
    unsigned number;
} preferences[] = {
    {"performance", 0}, {"balance_performance", 128}, {"balance_power", 191}, {"balance_power", 192},
    {"power", 255},
};

static void power_folder(unsigned pu, char folder[static 64]) {
    snprintf(folder, 64, LAYOUT_CPU "/cpu%u/power", pu);
}

static bool has_preference(const struct layout *layout) {
    return layout->policy_count && layout_has(layout, layout->policies[0].folder, PREFERENCE);
}

static int look_at_preference(const struct layout *layout, struct control_look *ret, struct values *values) {
    char text[1024];
    int r = 0;
    for (size_t i = 0; i < layout->policy_count && r == 0; i++) {
        const struct policy *policy = &layout->policies[i];
        if (layout_value(layout, policy->folder, PREFERENCE, text, sizeof text) == 0)
            r = values_add(values, text, &policy->pus);
    }
    const char *folder = layout->policies[0].folder;
    control_note_path(ret, folder, PREFERENCE);
    if (r == 0 &&
        layout_value(layout, folder, "energy_performance_available_preferences", text, sizeof text) == 0)
        r = text_append_string(&ret->possible, text);
    return r;
}

static int look_at_bias(const struct layout *layout, struct control_look *ret, struct values *values) {
    int r = 0;
    for (size_t i = 0; i < layout->pu_count && r == 0; i++) {
        char folder[64], value[32];
        power_folder(layout->pus[i], folder);
        if (layout_value(layout, folder, BIAS, value, sizeof value) < 0)
            continue;
        control_note_path(ret, folder, BIAS);
        const char *name = value;
        for (size_t j = 0; j < sizeof biases / sizeof *biases; j++) {
            char digits[NUMBER_TEXT_SIZE];
            number_format_uint64(biases[j].number, digits);
            if (strcmp(digits, value) == 0)
                name = biases[j].name;
        }
        r = values_add_pu(values, name, layout->pus[i]);
    }
    for (size_t j = 0; j < sizeof biases / sizeof *biases && r == 0; j++)
        r = text_printf(&ret->possible, "%s%s", j ? " " : "", biases[j].name);
    return r;
}

static int look(const struct layout *layout, struct control_look *ret) {
    cleanup(values_clear) struct values values = {0};
    control_note_driver(layout, ret);
    int r = has_preference(layout) ? look_at_preference(layout, ret, &values)
                                   : look_at_bias(layout, ret, &values);
    if (r < 0)
        return r;
    if (values.count == 0)
        return control_absent(ret, "neither the driver of the frequency nor the processor has one");
    return values_put(&values, &ret->value);
}

static int files(const struct layout *layout, struct control_files *ret) {
    if (has_preference(layout))
        return control_add_policy_files(layout, ret, PREFERENCE);
    int r = 0;
    for (size_t i = 0; i < layout->pu_count && r == 0; i++) {
        char folder[64];
        power_folder(layout->pus[i], folder);
        r = control_add_file(ret, folder, BIAS);
    }
    return r;
}

static int add_preference(struct plan *plan, const struct policy *policy, const char *word) {
    struct plan_write *write =
        plan_add(plan, (int)pu_set_first(&policy->pus), policy->folder, PREFERENCE, word);
    if (!write)
        return -ENOMEM;
    if (strcmp(word, "default") == 0)
        write->kind = PLAN_LEAVE;
    uint64_t number;
    if (!number_parse_uint64(word, strlen(word), &number))
        return 0;
    for (size_t i = 0; i < sizeof preferences / sizeof *preferences; i++)
        if (preferences[i].number == number)
            snprintf(write->other, sizeof write->other, "%s", preferences[i].name);
    return 0;
}

static int plan_preference(const struct layout *layout, const char *asked, struct plan *ret,
                           struct failure *failure) {
    char word[64], list[1024];
    uint64_t number;
    bool is_number = number_parse_uint64(asked, strlen(asked), &number);
    if (is_number && number > 255)
        return failure_set(failure, -EINVAL, "'%s' is too large; expected 0 to 255", asked);
    snprintf(word, sizeof word, "%.63s", asked);
    for (char *at = word; *at; at++)
        if (*at == '-')
            *at = '_'; /* as the kernel writes it */
    for (size_t i = 0; i < layout->policy_count; i++) {
        const struct policy *policy = &layout->policies[i];
        if (!layout_has(layout, policy->folder, PREFERENCE))
            continue;
        int r = layout_value(layout, policy->folder, "energy_performance_available_preferences", list,
                             sizeof list);
        if (r == 0 && !is_number && (r = control_check_word(word, list, failure)) < 0)
            return r;
        if (add_preference(ret, policy, word) < 0)
            return failure_memory(failure);
    }
    return 0;
}

static int plan_bias(const struct layout *layout, const char *asked, struct plan *ret,
                     struct failure *failure) {
    uint64_t number = 16;
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++)
        if (strcmp(biases[i].name, asked) == 0)
            number = biases[i].number;
    if (number == 16 && (!number_parse_uint64(asked, strlen(asked), &number) || number > 15))
        return failure_set(failure, -EINVAL,
                           "'%s' is not possible here; expected 0 to 15, performance, balance-performance, "
                           "normal, balance-power or power",
                           asked);
    for (size_t i = 0; i < layout->pu_count; i++) {
        char folder[64];
        power_folder(layout->pus[i], folder);
        if (layout_has(layout, folder, BIAS) &&
            !plan_add_number(ret, (int)layout->pus[i], folder, BIAS, number))
            return failure_memory(failure);
    }
    return 0;
}

static int plan(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure) {
    return has_preference(layout) ? plan_preference(layout, asked, ret, failure)
                                  : plan_bias(layout, asked, ret, failure);
}

const struct control control_energy_preference = {
    .name = "energy-preference", .look = look, .files = files, .plan = plan};
