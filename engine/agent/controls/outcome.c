#include "engine/agent/controls/outcome.h"

#include "engine/agent/controls/hertz.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void outcome_set(struct outcome *outcome, const char *state, const char *sentence) {
    outcome->state = state;
    snprintf(outcome->sentence, sizeof outcome->sentence, "%.1000s", sentence);
}

/* The trouble of a write, worse ones later. */
enum trouble { NO_TROUBLE, CAPPED, DIFFERENT, OFFLINE, REFUSED, FORBIDDEN, TROUBLES };

static enum trouble classify(const struct plan_write *write, const struct pu_set *online) {
    bool holds = write->error == 0 && plan_is_fulfilled(write);
    if (write->pu >= 0 && write->error < 0 && !pu_set_has(online, (unsigned)write->pu))
        return OFFLINE;
    if (write->error < 0)
        return write->error == -EPERM || write->error == -EACCES ? FORBIDDEN : REFUSED;
    if (!holds)
        return DIFFERENT;
    bool other =
        write->kind == PLAN_NUMBER && write->min < write->max && strcmp(write->after, write->wanted) != 0;
    return other ? CAPPED : NO_TROUBLE;
}

static const char *hint(enum control_index control, int code) {
    if (control == CONTROL_TURBO && code == EPERM && geteuid() == 0)
        return "; the firmware has it switched off";
    if (control == CONTROL_ENERGY_PREFERENCE && code == EBUSY)
        return "; under the governor 'performance' some drivers take no other";
    return "";
}

/* Formats the found and the wanted frequency of a write. False: its file has no frequency. */
static bool format_frequencies(const struct plan_write *write, char found[static HERTZ_TEXT_SIZE],
                               char wanted[static HERTZ_TEXT_SIZE]) {
    uint64_t found_khz, wanted_khz;
    if (strstr(write->path, "_pct") || !strstr(write->path, "_freq") ||
        !number_parse_uint64(write->after, strlen(write->after), &found_khz) ||
        !number_parse_uint64(write->wanted, strlen(write->wanted), &wanted_khz))
        return false;
    hertz_format(found_khz, found);
    hertz_format(wanted_khz, wanted);
    return true;
}

/* Writes the sentence about WRITE, the first with the worst TROUBLE. SUFFIX: how many writes have it. */
static void describe(struct outcome *outcome, enum control_index control, enum trouble trouble,
                     const struct plan_write *write, const char *pus, const char *suffix) {
    char *sentence = outcome->sentence, found[HERTZ_TEXT_SIZE], wanted[HERTZ_TEXT_SIZE];
    const size_t size = sizeof outcome->sentence;
    bool hertz = format_frequencies(write, found, wanted);
    if (trouble == FORBIDDEN || trouble == REFUSED)
        snprintf(sentence, size, "'/%s' does not take '%s': %s%s%s", write->path, write->wanted,
                 strerror(-write->error), hint(control, -write->error), suffix);
    else if (trouble == OFFLINE)
        snprintf(sentence, size, "PU %s went offline meanwhile", pus);
    else if (trouble == DIFFERENT && hertz)
        snprintf(sentence, size, "the driver gave %s for %s in '/%s'%s", found, wanted, write->path, suffix);
    else if (trouble == DIFFERENT)
        snprintf(sentence, size, "'/%s' has '%.128s' where '%s' was written%s", write->path, write->after,
                 write->wanted, suffix);
    else if (trouble == CAPPED && control == CONTROL_FREQUENCY && hertz)
        snprintf(sentence, size, "the driver gave %s for %s, its highest frequency with turbo off", found,
                 wanted);
}

/* Sets the outcome by the worst write of PLAN; the sentence names the first such write, and how many there
 * are. */
void outcome_of_plan(struct outcome *outcome, enum control_index control, const struct plan *plan,
                     const struct pu_set *online) {
    static const char *const states[TROUBLES] = {
        [DIFFERENT] = "mismatch", [OFFLINE] = "failed", [REFUSED] = "failed", [FORBIDDEN] = "denied"};
    const struct plan_write *first = NULL;
    enum trouble worst = NO_TROUBLE;
    struct pu_set set = {0};
    size_t count = 0;
    bool written = false;
    char pus[512], suffix[640] = "";
    for (size_t i = 0; i < plan->count; i++) {
        const struct plan_write *write = &plan->writes[i];
        enum trouble trouble = classify(write, online);
        written = written || write->written;
        if (trouble > worst) {
            worst = trouble;
            first = write;
            count = 0;
            set = (struct pu_set){0};
        }
        if (trouble == NO_TROUBLE || trouble < worst)
            continue;
        count++;
        if (write->pu >= 0)
            pu_set_add(&set, (unsigned)write->pu);
    }
    outcome_set(outcome, states[worst] ? states[worst] : written ? "done" : "unchanged", "");
    if (!first)
        return;
    pu_set_format(&set, pus, sizeof pus);
    if (plan->count > 1)
        snprintf(suffix, sizeof suffix, " (%zu of %zu files%s%s)", count, plan->count, pus[0] ? "; PUs " : "",
                 pus);
    describe(outcome, control, worst, first, pus, suffix);
}
