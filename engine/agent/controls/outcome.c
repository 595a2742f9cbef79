#include "engine/agent/controls/outcome.h"

#include "engine/agent/controls/hertz.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *outcome_name(enum outcome_state state) {
    static const char *const names[] = {
        [OUTCOME_PENDING] = "failed",    [OUTCOME_DONE] = "done",     [OUTCOME_UNCHANGED] = "unchanged",
        [OUTCOME_MISMATCH] = "mismatch", [OUTCOME_ABSENT] = "absent", [OUTCOME_READ_ONLY] = "read-only",
        [OUTCOME_DENIED] = "denied",     [OUTCOME_FAILED] = "failed", [OUTCOME_INVALID] = "invalid",
    };
    return names[state];
}

void outcome_of_access(struct outcome *outcome, const struct control_look *look) {
    outcome->state = look->access == CONTROL_ABSENT      ? OUTCOME_ABSENT
                     : look->access == CONTROL_READ_ONLY ? OUTCOME_READ_ONLY
                                                         : OUTCOME_DENIED;
    snprintf(outcome->sentence, sizeof outcome->sentence, "%s", look->why);
}

/* The writes of one kind that are not as wanted. */
struct group {
    size_t count;
    const struct plan_write *first;
    struct pu_set pus;
};

static void add(struct group *group, const struct plan_write *write) {
    if (group->count++ == 0)
        group->first = write;
    if (write->pu >= 0)
        pu_set_add(&group->pus, (unsigned)write->pu);
}

static bool is_gone(const struct plan_write *write, const struct pu_set *online) {
    return write->pu >= 0 && write->error < 0 && !pu_set_has(online, (unsigned)write->pu);
}

/* "3 of 64 files; PUs 5,9" */
static void count_text(const struct group *group, const struct plan *plan, char *text, size_t size) {
    char pus[512];
    pu_set_format(&group->pus, pus, sizeof pus);
    if (plan->count == 1)
        text[0] = '\0';
    else
        snprintf(text, size, " (%zu of %zu files%s%s)", group->count, plan->count, pus[0] ? "; PUs " : "",
                 pus);
}

static void tell_error(struct outcome *outcome, enum control_index control, const struct group *group,
                       const struct plan *plan) {
    char count[640];
    int code = -group->first->error;
    count_text(group, plan, count, sizeof count);
    const char *hint = "";
    if (control == CONTROL_TURBO && code == EPERM && geteuid() == 0)
        hint = "; the firmware has it switched off";
    else if (control == CONTROL_ENERGY_PREFERENCE && code == EBUSY)
        hint = "; under the governor 'performance' some drivers take no other";
    snprintf(outcome->sentence, sizeof outcome->sentence, "'/%s' does not take '%s': %s%s%s",
             group->first->path, group->first->wanted, strerror(code), hint, count);
}

static bool as_hertz(const char *khz, char text[static HERTZ_TEXT_SIZE]) {
    uint64_t number;
    if (!number_parse_uint64(khz, strlen(khz), &number))
        return false;
    hertz_format(number, text);
    return true;
}

static void tell_mismatch(struct outcome *outcome, enum control_index control, const struct group *group,
                          const struct plan *plan) {
    char count[640], given[HERTZ_TEXT_SIZE], asked[HERTZ_TEXT_SIZE];
    const struct plan_write *first = group->first;
    count_text(group, plan, count, sizeof count);
    bool frequency =
        (control == CONTROL_FREQUENCY && !strstr(first->path, "_pct")) || control == CONTROL_UNCORE_FREQUENCY;
    if (frequency && as_hertz(first->after, given) && as_hertz(first->wanted, asked))
        snprintf(outcome->sentence, sizeof outcome->sentence, "the driver gave %s for %s in '/%s'%s", given,
                 asked, first->path, count);
    else
        snprintf(outcome->sentence, sizeof outcome->sentence, "'/%s' has '%.128s' where '%s' was written%s",
                 first->path, first->after, first->wanted, count);
}

/* What holds although it is not the number that was written. */
static void tell_capped(struct outcome *outcome, const struct plan *plan) {
    struct group capped = {0};
    for (size_t i = 0; i < plan->count; i++) {
        const struct plan_write *write = &plan->writes[i];
        if (write->kind == PLAN_NUMBER && write->least < write->most && !strstr(write->path, "_pct") &&
            strcmp(write->after, write->wanted) != 0)
            add(&capped, write);
    }
    char given[HERTZ_TEXT_SIZE], asked[HERTZ_TEXT_SIZE];
    if (capped.count && as_hertz(capped.first->after, given) && as_hertz(capped.first->wanted, asked))
        snprintf(outcome->sentence, sizeof outcome->sentence,
                 "the driver gave %s for %s, which is all there is without turbo", given, asked);
}

void outcome_of_plan(struct outcome *outcome, enum control_index control, const struct plan *plan,
                     const struct pu_set *online) {
    struct group gone = {0}, denied = {0}, failed = {0}, wrong = {0};
    bool written = false;
    for (size_t i = 0; i < plan->count; i++) {
        const struct plan_write *write = &plan->writes[i];
        written = written || write->state == PLAN_WRITTEN;
        if (write->error == 0 && plan_holds(write))
            continue;
        add(is_gone(write, online)                              ? &gone
            : write->error == -EPERM || write->error == -EACCES ? &denied
            : write->error < 0                                  ? &failed
                                                                : &wrong,
            write);
    }
    outcome->sentence[0] = '\0';
    outcome->state = written ? OUTCOME_DONE : OUTCOME_UNCHANGED;
    if (denied.count || failed.count) {
        outcome->state = denied.count ? OUTCOME_DENIED : OUTCOME_FAILED;
        tell_error(outcome, control, denied.count ? &denied : &failed, plan);
    } else if (gone.count) {
        char pus[512];
        outcome->state = OUTCOME_FAILED;
        snprintf(outcome->sentence, sizeof outcome->sentence, "PU %s went offline meanwhile",
                 pu_set_format(&gone.pus, pus, sizeof pus));
    } else if (wrong.count) {
        outcome->state = OUTCOME_MISMATCH;
        tell_mismatch(outcome, control, &wrong, plan);
    } else if (control == CONTROL_FREQUENCY) {
        tell_capped(outcome, plan);
    }
}
