#include "engine/agent/controls/plan.h"

#include "engine/foundation/clock.h"
#include "engine/foundation/list.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plan_write *plan_add(struct plan *plan, int pu, const char *folder, const char *name,
                            const char *wanted) {
    if (list_reserve(&plan->writes, &plan->capacity, plan->count + 1, sizeof *plan->writes, PLAN_LIMIT) < 0)
        return NULL;
    struct plan_write *write = &plan->writes[plan->count];
    *write = (struct plan_write){.pu = pu};
    if (snprintf(write->path, sizeof write->path, "%s/%s", folder, name) >= (int)sizeof write->path ||
        snprintf(write->wanted, sizeof write->wanted, "%s", wanted) >= (int)sizeof write->wanted)
        return NULL;
    plan->count++;
    return write;
}

struct plan_write *plan_add_number(struct plan *plan, int pu, const char *folder, const char *name,
                                   uint64_t wanted) {
    char digits[NUMBER_TEXT_SIZE];
    number_format_uint64(wanted, digits);
    struct plan_write *write = plan_add(plan, pu, folder, name, digits);
    if (write) {
        write->kind = PLAN_NUMBER;
        write->least = write->most = wanted;
    }
    return write;
}

struct plan_write *plan_limits(struct plan *plan, int pu, const char *folder, const char *lower,
                               const char *upper, uint64_t least, uint64_t most) {
    struct plan_write *write = plan_add_number(plan, pu, folder, lower, least);
    if (!write)
        return NULL;
    write->lower = true;
    return plan_add_number(plan, pu, folder, upper, most);
}

void plan_clear(struct plan *plan) {
    free(plan->writes);
    *plan = (struct plan){0};
}

void plan_choose(char *value) {
    char *open = strchr(value, '['), *close = open ? strchr(open, ']') : NULL;
    if (!close)
        return;
    size_t length = (size_t)(close - open - 1);
    memmove(value, open + 1, length);
    value[length] = '\0';
}

bool plan_holds(const struct plan_write *write) {
    if (write->kind == PLAN_LEAVE)
        return write->state == PLAN_WRITTEN;
    if (write->kind == PLAN_NUMBER) {
        uint64_t number;
        return number_parse_uint64(write->after, strlen(write->after), &number) && number >= write->least &&
               number <= write->most;
    }
    char value[PLAN_VALUE_SIZE];
    snprintf(value, sizeof value, "%s", write->after);
    if (write->kind == PLAN_CHOICE)
        plan_choose(value);
    return strcmp(value, write->wanted) == 0 || (write->other[0] && strcmp(value, write->other) == 0);
}

/* ---- writing */

static bool wait_a_little(struct hand *hand, int64_t *pause_ns) {
    if (hand->patience_ns < *pause_ns)
        return false;
    clock_sleep_ns(*pause_ns);
    hand->patience_ns -= *pause_ns;
    *pause_ns *= 2;
    return true;
}

int hand_write(struct hand *hand, const char *path, const char *before, const char *bytes, size_t length,
               char *after, size_t size) {
    int64_t pause_ns = 1000000;
    int r;
    do
        r = machine_write(hand->machine, path, bytes, length);
    while ((r == -EBUSY || r == -EAGAIN) && wait_a_little(hand, &pause_ns));
    if (r == 0)
        hand->changed++;
    char now[PLAN_VALUE_SIZE];
    int read = machine_read_value(hand->machine, path, now, sizeof now);
    if (read < 0)
        now[0] = '\0';
    if (r == 0)
        r = read;
    if (hand->lines->descriptor >= 0) {
        char shown[MACHINE_PATH_LIMIT + 1], written[PLAN_VALUE_SIZE], name[16];
        snprintf(shown, sizeof shown, "/%s", path);
        while (length > 0 && (bytes[length - 1] == '\n' || bytes[length - 1] == ' '))
            length--;
        snprintf(written, sizeof written, "%.*s", (int)length, bytes);
        lines_put(hand->lines, "write", hand->control, shown, before, written, now, lines_errno(r, name),
                  NULL);
    }
    snprintf(after, size, "%s", now);
    return r;
}

static void look_at(struct plan_write *write, const struct machine *machine) {
    write->error = machine_read_value(machine, write->path, write->after, sizeof write->after);
    if (write->error < 0)
        write->after[0] = '\0';
}

static void carry_out_one(struct plan_write *write, struct hand *hand) {
    if (write->error < 0) /* what cannot be read is not written: nobody could put it back */
        return;
    if (plan_holds(write) && write->kind != PLAN_LEAVE)
        return;
    /* With its newline, as every file of the kernel shows it. */
    char bytes[sizeof write->wanted + 1], before[PLAN_VALUE_SIZE];
    int length = snprintf(bytes, sizeof bytes, "%s\n", write->wanted);
    snprintf(before, sizeof before, "%s", write->after);
    write->error =
        hand_write(hand, write->path, before, bytes, (size_t)length, write->after, sizeof write->after);
    write->state = PLAN_WRITTEN;
}

/* The kernel refuses a lower limit above the upper, also in between. */
static bool upper_first(const struct plan_write *lower, const struct plan_write *upper) {
    uint64_t least, most;
    return number_parse_uint64(upper->after, strlen(upper->after), &most) &&
           number_parse_uint64(lower->wanted, strlen(lower->wanted), &least) && least > most;
}

void plan_carry_out(struct plan *plan, struct hand *hand) {
    for (size_t i = 0; i < plan->count; i++) {
        struct plan_write *write = &plan->writes[i];
        look_at(write, hand->machine);
        if (!write->lower || i + 1 == plan->count) {
            carry_out_one(write, hand);
            continue;
        }
        struct plan_write *upper = &plan->writes[++i];
        look_at(upper, hand->machine);
        bool first = upper_first(write, upper);
        carry_out_one(first ? upper : write, hand);
        carry_out_one(first ? write : upper, hand);
    }
}

static bool check_one(struct plan_write *write, const struct machine *machine) {
    int error = write->error;
    look_at(write, machine);
    bool holds = write->error == 0 && plan_holds(write);
    if (!holds && write->error == 0)
        write->error = error; /* why it could not be written is what is told */
    return holds;
}

bool plan_is_due(struct plan *plan, const struct machine *machine) {
    size_t i = 0;
    while (i < plan->count && check_one(&plan->writes[i], machine))
        i++;
    return i < plan->count;
}

void plan_check(struct plan *plan, const struct machine *machine) {
    for (size_t i = 0; i < plan->count; i++)
        (void)check_one(&plan->writes[i], machine);
}
