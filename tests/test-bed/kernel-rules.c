/* What attributes take and show, after the kernel's sources (6.1): drivers/cpufreq/{cpufreq,intel_pstate}.c,
 * arch/x86/kernel/cpu/intel_epb.c, kernel/cpu.c, mm/huge_memory.c, drivers/cpuidle/sysfs.c. Where kernels
 * differ, the stricter one: before 5.4 a limit that crosses the other was refused. */
#include "tests/test-bed/kernel.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPU "sys/devices/system/cpu"

/* A whole number and nothing else. */
static int read_number(const char *value, long *ret) {
    char *end;
    if (value[0] == '\0' || strspn(value, "-0123456789") != strlen(value))
        return -EINVAL;
    errno = 0;
    *ret = strtol(value, &end, 10);
    return errno != 0 || end == value || *end != '\0' ? -EINVAL : 0;
}

static int store_number(struct kernel_file *file, long number) {
    char text[24];
    snprintf(text, sizeof text, "%ld", number);
    return kernel_store(file, text);
}

/* Whether WORD is one of the words of LIST, which SEPARATORS part. */
static bool is_listed(const char *word, const char *list, const char *separators) {
    size_t length = strlen(word);
    if (length == 0)
        return false;
    for (const char *at = list; *at != '\0';) {
        at += strspn(at, separators);
        size_t found = strcspn(at, separators);
        if (found == length && memcmp(at, word, length) == 0)
            return true;
        at += found;
    }
    return false;
}

/* The first two of a rule's arguments. */
static void read_range(const struct kernel_file *file, long *low, long *high) {
    *low = LONG_MIN;
    *high = LONG_MAX;
    sscanf(file->arguments, "%ld,%ld", low, high);
}

/* ---- Plain values */

static int write_text(struct kernel *kernel, struct kernel_file *file, char *value) {
    (void)kernel;
    return kernel_store(file, value);
}

static int write_number(struct kernel *kernel, struct kernel_file *file, char *value) {
    (void)kernel;
    long number, low, high;
    read_range(file, &low, &high);
    if (read_number(value, &number) < 0 || number < low || number > high)
        return -EINVAL;
    return store_number(file, number);
}

static int write_word(struct kernel *kernel, struct kernel_file *file, char *value) {
    (void)kernel;
    return is_listed(value, file->arguments, ",") ? kernel_store(file, value) : -EINVAL;
}

static int write_nothing(struct kernel *kernel, struct kernel_file *file, char *value) {
    (void)kernel, (void)file, (void)value;
    return -EINVAL;
}

/* "always [madvise] never": a word of these is written, and the brackets go there. */
static int write_choice(struct kernel *kernel, struct kernel_file *file, char *value) {
    (void)kernel;
    if (!is_listed(value, kernel_stored(file), " []\n"))
        return -EINVAL;
    struct text text cleanup(text_clear);
    text_init(&text, KERNEL_VALUE_SIZE);
    for (const char *at = kernel_stored(file); *at != '\0';) {
        at += strspn(at, " []\n");
        size_t length = strcspn(at, " []\n");
        bool chosen = length == strlen(value) && memcmp(at, value, length) == 0;
        if (length > 0 && text_printf(&text, chosen ? "%s[%.*s]" : "%s%.*s", text.length > 0 ? " " : "",
                                      (int)length, at) < 0)
            return -ENOMEM;
        at += length;
    }
    return kernel_store(file, text.bytes);
}

static int write_idle(struct kernel *kernel, struct kernel_file *file, char *value) {
    (void)kernel;
    long number;
    if (read_number(value, &number) < 0 || number < 0)
        return -EINVAL;
    return kernel_store(file, number != 0 ? "1" : "0");
}

/* ---- Processors */

/* Of which processors the list that FILE began with is, or the mask. */
static void read_list(const char *text, unsigned char *set) {
    for (long first, last; sscanf(text, "%ld", &first) == 1; text++) {
        text += strspn(text, "0123456789");
        last = first;
        if (*text == '-')
            last = strtol(text + 1, NULL, 10), text += 1 + strspn(text + 1, "0123456789");
        for (long pu = first; pu <= last && pu < KERNEL_PU_MAX; pu++)
            set[pu] = 1;
        if (*text != ',')
            return;
    }
}

static void read_mask(const char *text, unsigned char *set) {
    int pu = 0;
    for (const char *at = text + strcspn(text, "\n"); at > text; at--) {
        if (at[-1] == ',')
            continue;
        unsigned digit = 0;
        sscanf((char[]){at[-1], '\0'}, "%x", &digit);
        for (int i = 0; i < 4 && pu < KERNEL_PU_MAX; i++)
            set[pu++] = digit >> i & 1;
    }
}

enum { SET_ONLINE, SET_OFFLINE, SET_LIST, SET_MASK };

/* Those that are on, or are not, of all processors or of the set that FILE began with. */
static int show_set(struct kernel *kernel, const struct kernel_file *file, struct text *shown) {
    unsigned char set[MACHINE_PU_MAX] = {0};
    int form = file->rule->variant;
    if (form == SET_LIST)
        read_list(file->initial, set);
    else if (form == SET_MASK)
        read_mask(file->initial, set);
    else
        memset(set, 1, KERNEL_PU_MAX);
    for (int pu = 0; pu < KERNEL_PU_MAX; pu++)
        set[pu] = set[pu] && kernel->pus[pu].present && kernel->pus[pu].online == (form != SET_OFFLINE);
    int status = machine_pattern_put_set(set, form == SET_MASK, shown);
    return status == 0 ? text_append_string(shown, "\n") : status;
}

/* A policy's processors that are on, separated by blanks. */
static int show_affected(struct kernel *kernel, const struct kernel_file *file, struct text *shown) {
    int status = 0;
    bool any = false;
    for (int pu = 0; status == 0 && pu < KERNEL_PU_MAX; pu++)
        if (kernel->pus[pu].online && kernel->pus[pu].policy == file->parent) {
            status = text_printf(shown, "%s%d", any ? " " : "", pu);
            any = true;
        }
    return status == 0 ? text_append_string(shown, "\n") : status;
}

/* Whether threads other than the first of their core may be on. */
static bool smt_is_on(struct kernel *kernel) {
    const struct kernel_file *control = kernel_find(kernel, CPU "/smt/control");
    return control == NULL || (strcmp(kernel_stored(control), "off\n") != 0 &&
                               strcmp(kernel_stored(control), "forceoff\n") != 0);
}

static int write_smt(struct kernel *kernel, struct kernel_file *file, char *value) {
    const char *now = kernel_stored(file);
    if (strncmp(now, "not", 3) == 0) /* supported, implemented */
        return -ENODEV;
    if (!is_listed(value, "on off forceoff", " "))
        return -EINVAL;
    if (strcmp(now, "forceoff\n") == 0)
        return -EPERM;
    bool on = strcmp(value, "on") == 0;
    if (kernel_store(file, value) < 0)
        return -ENOMEM;
    /* "on" takes all that are off, those too that were taken off one by one. */
    for (int pu = 0; pu < KERNEL_PU_MAX; pu++)
        if (kernel->pus[pu].present && (on || !kernel->pus[pu].first))
            kernel_set_online(kernel, pu, on);
    return 0;
}

static int show_smt_active(struct kernel *kernel, const struct kernel_file *file, struct text *shown) {
    (void)file;
    bool active = false;
    for (int pu = 0; pu < KERNEL_PU_MAX; pu++)
        active = active || (kernel->pus[pu].online && !kernel->pus[pu].first);
    return text_append_string(shown, active ? "1\n" : "0\n");
}

static int write_online(struct kernel *kernel, struct kernel_file *file, char *value) {
    int pu = -1;
    sscanf(kernel->files[file->parent].name, "cpu%d", &pu);
    if (pu < 0 || pu >= KERNEL_PU_MAX || !kernel->pus[pu].present)
        return -ENODEV;
    bool on = is_listed(value, "1 y Y on", " ");
    if (!on && !is_listed(value, "0 n N off", " "))
        return -EINVAL;
    if (on && !kernel->pus[pu].first && !smt_is_on(kernel))
        return -EPERM;
    if (!on && kernel->pus[pu].online && kernel_online_count(kernel) == 1)
        return -EBUSY;
    kernel_set_online(kernel, pu, on);
    return 0;
}

/* ---- Frequencies. FILE is one of a policy's */

static long of_policy(const struct kernel *kernel, const struct kernel_file *file, const char *name,
                      long otherwise) {
    return kernel_stored_number(kernel, file->parent, name, otherwise);
}

static bool turbo_is_on(struct kernel *kernel, const struct kernel_file *file) {
    const struct kernel_file *no_turbo = kernel_find(kernel, CPU "/intel_pstate/no_turbo");
    const struct kernel_file *boost = kernel_find(kernel, CPU "/cpufreq/boost");
    if (no_turbo != NULL && kernel_stored(no_turbo)[0] == '1')
        return false;
    if (boost != NULL && kernel_stored(boost)[0] == '0')
        return false;
    return of_policy(kernel, file, "boost", 1) != 0;
}

/* Where turbo is above the largest limit (acpi-cpufreq), it changes no limit. */
static bool turbo_is_beyond(const struct kernel *kernel) {
    return kernel_setting(kernel, "turbo", 0) > 0;
}

/* The most that a limit may be now. */
static long highest(struct kernel *kernel, const struct kernel_file *file) {
    long most = of_policy(kernel, file, "cpuinfo_max_freq", 0), base = kernel_setting(kernel, "base", most);
    return turbo_is_on(kernel, file) || turbo_is_beyond(kernel) || base > most ? most : base;
}

static long highest_now(struct kernel *kernel, const struct kernel_file *file) {
    long limit = of_policy(kernel, file, "scaling_max_freq", 0), most = highest(kernel, file);
    return limit < most ? limit : most;
}

static long lowest_now(struct kernel *kernel, const struct kernel_file *file) {
    long limit = of_policy(kernel, file, "scaling_min_freq", 0), most = highest_now(kernel, file);
    return limit < most ? limit : most;
}

enum { IS_MIN, IS_MAX };

static int write_limit(struct kernel *kernel, struct kernel_file *file, char *value) {
    bool is_max = file->rule->variant == IS_MAX;
    long number, low = of_policy(kernel, file, "cpuinfo_min_freq", 0), high = highest(kernel, file);
    long most = of_policy(kernel, file, "cpuinfo_max_freq", 0);
    if (read_number(value, &number) < 0 || number < 0)
        return -EINVAL;
    /* What is above the cap without turbo is remembered, and holds with it. */
    number = number < low ? low : number > most ? most : number;
    long shown = number > high ? high : number;
    if (is_max ? shown < lowest_now(kernel, file) : shown > highest_now(kernel, file))
        return -EINVAL;
    return store_number(file, number);
}

static int show_limit(struct kernel *kernel, const struct kernel_file *file, struct text *shown) {
    bool is_max = file->rule->variant == IS_MAX;
    return text_printf(shown, "%ld\n", is_max ? highest_now(kernel, file) : lowest_now(kernel, file));
}

/* cpuinfo_max_freq where the driver lowers it without boost. */
static int show_highest(struct kernel *kernel, const struct kernel_file *file, struct text *shown) {
    return text_printf(shown, "%ld\n", highest(kernel, file));
}

/* Is the driver one whose governors are not the generic ones? */
static bool is_active(const struct kernel *kernel, const struct kernel_file *file) {
    const struct kernel_file *driver = kernel_child(kernel, file->parent, "scaling_driver");
    return driver != NULL && (strcmp(driver->initial, "intel_pstate\n") == 0 ||
                              strcmp(driver->initial, "amd-pstate-epp\n") == 0);
}

static bool has_governor(const struct kernel *kernel, const struct kernel_file *file, const char *name) {
    const struct kernel_file *governor = kernel_child(kernel, file->parent, "scaling_governor");
    return governor != NULL && strncmp(kernel_stored(governor), name, strlen(name)) == 0;
}

/* As if the processor were busy: who asks while it is not learns nothing from the difference. */
static int show_current(struct kernel *kernel, const struct kernel_file *file, struct text *shown) {
    long frequency = highest_now(kernel, file);
    struct kernel_file *pstate = kernel_find(kernel, CPU "/intel_pstate");
    if (pstate != NULL) {
        long percent = kernel_stored_number(kernel, kernel_number_of(kernel, pstate), "max_perf_pct", 100);
        long most = of_policy(kernel, file, "cpuinfo_max_freq", 0) / 100 * percent;
        frequency = frequency < most ? frequency : most;
    }
    if (turbo_is_beyond(kernel)) {
        long base = kernel_setting(kernel, "base", frequency);
        if (frequency > base)
            frequency = turbo_is_on(kernel, file) ? kernel_setting(kernel, "turbo", base) : base;
    }
    if (!is_active(kernel, file) && has_governor(kernel, file, "powersave"))
        frequency = lowest_now(kernel, file);
    return text_printf(shown, "%ld\n", frequency);
}

static int write_governor(struct kernel *kernel, struct kernel_file *file, char *value) {
    const struct kernel_file *known = kernel_child(kernel, file->parent, "scaling_available_governors");
    if (known == NULL || !is_listed(value, known->initial, " \n"))
        return -EINVAL;
    struct kernel_file *no_turbo = kernel_find(kernel, CPU "/intel_pstate/no_turbo");
    struct kernel_file *boost = kernel_find(kernel, CPU "/cpufreq/boost");
    if (kernel->resets_turbo && no_turbo != NULL)
        kernel_store(no_turbo, "0");
    if (kernel->resets_turbo && boost != NULL)
        kernel_store(boost, "1");
    return kernel_store(file, value);
}

/* ---- Turbo */

static int write_no_turbo(struct kernel *kernel, struct kernel_file *file, char *value) {
    (void)kernel;
    long number;
    if (read_number(value, &number) < 0 || number < 0)
        return -EINVAL;
    return kernel_store(file, number > 0 ? "1" : "0");
}

/* That of all: those of the policies, where they have one, follow. */
static int write_boost(struct kernel *kernel, struct kernel_file *file, char *value) {
    if (!is_listed(value, "0 1", " "))
        return -EINVAL;
    for (uint32_t at = kernel->files[file->parent].first; at != 0; at = kernel->files[at].next) {
        struct kernel_file *policy = kernel_child(kernel, at, "boost");
        if (policy != NULL && kernel_store(policy, value) < 0)
            return -ENOMEM;
    }
    return kernel_store(file, value);
}

/* That of a policy takes nothing while that of all is off. */
static int write_policy_boost(struct kernel *kernel, struct kernel_file *file, char *value) {
    const struct kernel_file *all = kernel_find(kernel, CPU "/cpufreq/boost");
    if (!is_listed(value, "0 1", " ") || (all != NULL && kernel_stored(all)[0] == '0'))
        return -EINVAL;
    return kernel_store(file, value);
}

static int write_percent(struct kernel *kernel, struct kernel_file *file, char *value) {
    bool is_max = file->rule->variant == IS_MAX;
    long number, low = 0, high = 100;
    if (read_number(value, &number) < 0 || number < 0)
        return -EINVAL;
    if (is_max)
        low = of_policy(kernel, file, "min_perf_pct", 0);
    else {
        high = of_policy(kernel, file, "max_perf_pct", 100);
        low = strtol(file->initial, NULL, 10);
    }
    return store_number(file, number > high ? high : number < low ? low : number);
}

/* ---- Preferences */

static bool holds_performance(const struct kernel *kernel, const struct kernel_file *file) {
    return is_active(kernel, file) && has_governor(kernel, file, "performance");
}

enum { WORDS_ONLY, WORDS_OR_NUMBERS };

static int write_preference(struct kernel *kernel, struct kernel_file *file, char *value) {
    static const struct {
        long number;
        const char *word;
    } named[] = {{0, "performance"}, {128, "balance_performance"}, {192, "balance_power"}, {255, "power"}};
    const struct kernel_file *known =
        kernel_child(kernel, file->parent, "energy_performance_available_preferences");
    long number;
    const char *word = value;
    bool listed = known != NULL && is_listed(value, known->initial, " \n");
    if (!listed &&
        (file->rule->variant == WORDS_ONLY || read_number(value, &number) < 0 || number < 0 || number > 255))
        return -EINVAL;
    for (size_t i = 0; !listed && i < sizeof named / sizeof *named; i++)
        if (named[i].number == number)
            word = named[i].word;
    if (holds_performance(kernel, file))
        return strcmp(word, "performance") == 0 ? 0 : -EBUSY;
    if (strcmp(word, "default") == 0) { /* shown by what it is */
        free(take_pointer(file->stored));
        return 0;
    }
    return kernel_store(file, word);
}

static int show_epp(struct kernel *kernel, const struct kernel_file *file, struct text *shown) {
    return text_append_string(shown, holds_performance(kernel, file) ? "performance\n" : kernel_stored(file));
}

static int write_epb(struct kernel *kernel, struct kernel_file *file, char *value) {
    static const char *const words[] = {"performance", "balance-performance", "normal", "balance-power",
                                        "power"};
    static const long numbers[] = {0, 4, 6, 8, 15};
    (void)kernel;
    long number;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(value, words[i]) == 0)
            return store_number(file, numbers[i]);
    return read_number(value, &number) < 0 || number < 0 || number > 15 ? -EINVAL
                                                                        : store_number(file, number);
}

/* ---- The uncore: whole 100 MHz in seven bits */

static int write_uncore(struct kernel *kernel, struct kernel_file *file, char *value) {
    (void)kernel;
    long number;
    if (read_number(value, &number) < 0 || number / 100000 < 1 || number / 100000 > 127)
        return -EINVAL;
    return store_number(file, number / 100000 * 100000);
}

static int show_uncore(struct kernel *kernel, const struct kernel_file *file, struct text *shown) {
    return text_printf(shown, "%ld\n", of_policy(kernel, file, "max_freq_khz", 0));
}

/* ---- Sensors. Arguments: the package, and what this one has over it: millidegrees, or percent of its watts
 */

static int show_temperature(struct kernel *kernel, const struct kernel_file *file, struct text *shown) {
    long package, offset;
    read_range(file, &package, &offset);
    kernel_heat_advance(kernel);
    return text_printf(shown, "%ld\n", kernel_heat_temperature(kernel) + offset);
}

static int show_energy(struct kernel *kernel, const struct kernel_file *file, struct text *shown) {
    long package, percent;
    read_range(file, &package, &percent);
    kernel_heat_advance(kernel);
    double used = kernel_heat_microjoules(kernel) * (double)percent / 100;
    double range = (double)of_policy(kernel, file, "max_energy_range_uj", LONG_MAX);
    return text_printf(shown, "%.0f\n",
                       floor(fmod((double)strtol(kernel_stored(file), NULL, 10) + used, range)));
}

/* ---- All of them */

static const struct kernel_rule rules[] = {
    {"text", write_text, NULL, 0},
    {"number", write_number, NULL, 0},
    {"word", write_word, NULL, 0},
    {"refuse", write_nothing, NULL, 0},
    {"choice", write_choice, NULL, 0},
    {"idle", write_idle, NULL, 0},
    {"list", NULL, show_set, SET_LIST},
    {"mask", NULL, show_set, SET_MASK},
    {"online-list", NULL, show_set, SET_ONLINE},
    {"offline-list", NULL, show_set, SET_OFFLINE},
    {"affected", NULL, show_affected, 0},
    {"smt", write_smt, NULL, 0},
    {"smt-active", NULL, show_smt_active, 0},
    {"online", write_online, NULL, 0},
    {"max-freq", write_limit, show_limit, IS_MAX},
    {"min-freq", write_limit, show_limit, IS_MIN},
    {"highest-freq", NULL, show_highest, 0},
    {"current-freq", NULL, show_current, 0},
    {"governor", write_governor, NULL, 0},
    {"no-turbo", write_no_turbo, NULL, 0},
    {"boost", write_boost, NULL, 0},
    {"policy-boost", write_policy_boost, NULL, 0},
    {"max-percent", write_percent, NULL, IS_MAX},
    {"min-percent", write_percent, NULL, IS_MIN},
    {"epp", write_preference, show_epp, WORDS_OR_NUMBERS},
    {"epp-words", write_preference, show_epp, WORDS_ONLY},
    {"epb", write_epb, NULL, 0},
    {"uncore", write_uncore, NULL, 0},
    {"uncore-current", NULL, show_uncore, 0},
    {"temperature", NULL, show_temperature, 0},
    {"energy", NULL, show_energy, 0},
};

const struct kernel_rule *kernel_rule_find(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strlen(rules[i].name) == length && memcmp(rules[i].name, name, length) == 0)
            return &rules[i];
    return NULL;
}
