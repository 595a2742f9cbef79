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
    int r =
        list_reserve(&plan->writes, &plan->capacity, plan->count + 1, sizeof *plan->writes, PLAN_WRITES_MAX);
    struct plan_write *write = r < 0 ? &plan->spare : &plan->writes[plan->count];
    *write = (struct plan_write){.pu = pu};
    if (r == 0 && (snprintf(write->path, sizeof write->path, "%s/%s", folder, name) >= PLAN_PATH_SIZE ||
                   snprintf(write->wanted, sizeof write->wanted, "%s", wanted) >= (int)sizeof write->wanted))
        r = -ENAMETOOLONG;
    plan->count += r == 0;
    plan->error = plan->error < 0 ? plan->error : r;
    return write;
}

struct plan_write *plan_add_number(struct plan *plan, int pu, const char *folder, const char *name,
                                   uint64_t wanted) {
    char digits[NUMBER_TEXT_SIZE];
    number_format_uint64(wanted, digits);
    struct plan_write *write = plan_add(plan, pu, folder, name, digits);
    write->kind = PLAN_NUMBER;
    write->min = write->max = wanted;
    return write;
}

void plan_add_limits(struct plan *plan, int pu, const char *folder, const char *lower, const char *upper,
                     uint64_t min, uint64_t max, struct plan_write **ret_lower,
                     struct plan_write **ret_upper) {
    plan_add_number(plan, pu, folder, lower, min)->lower = true;
    struct plan_write *write = plan_add_number(plan, pu, folder, upper, max);
    if (ret_upper)
        *ret_upper = write;
    if (ret_lower)
        *ret_lower = plan->error < 0 ? &plan->spare : write - 1;
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
    if (write->kind == PLAN_ALIAS)
        return write->written;
    if (write->kind == PLAN_NUMBER) {
        uint64_t number;
        return number_parse_uint64(write->after, strlen(write->after), &number) && number >= write->min &&
               number <= write->max;
    }
    char value[PLAN_VALUE_SIZE];
    snprintf(value, sizeof value, "%s", write->after);
    if (write->kind == PLAN_CHOICE)
        plan_choose(value);
    return strcmp(value, write->wanted) == 0 || (write->other[0] && strcmp(value, write->other) == 0);
}

bool plan_crosses(const char *lower_wanted, const char *upper_now) {
    uint64_t min, max;
    return number_parse_uint64(upper_now, strcspn(upper_now, "\n"), &max) &&
           number_parse_uint64(lower_wanted, strcspn(lower_wanted, "\n"), &min) && min > max;
}

/* ---- writing */

static bool pause_briefly(struct write_context *context, int64_t *pause_ns) {
    if (context->patience_ns < *pause_ns)
        return false;
    clock_sleep_ns(*pause_ns);
    context->patience_ns -= *pause_ns;
    *pause_ns *= 2;
    return true;
}

int write_file(struct write_context *context, const char *path, const char *before, const char *bytes,
               size_t length, char *after, size_t size) {
    int64_t pause_ns = 1000000;
    int r;
    do
        r = machine_write(context->machine, path, bytes, length);
    while ((r == -EBUSY || r == -EAGAIN) && pause_briefly(context, &pause_ns));
    context->changed += r == 0;
    int read = machine_read_value(context->machine, path, after, size);
    if (read < 0)
        after[0] = '\0';
    if (r == 0)
        r = read;
    char shown[MACHINE_PATH_LIMIT + 1], written[PLAN_VALUE_SIZE], name[16];
    snprintf(shown, sizeof shown, "/%s", path);
    while (length > 0 && (bytes[length - 1] == '\n' || bytes[length - 1] == ' '))
        length--;
    snprintf(written, sizeof written, "%.*s", (int)length, bytes);
    lines_put(context->lines, "write", context->control, shown, before, written, after, lines_errno(r, name),
              NULL);
    return r;
}

static void read_now(struct plan_write *write, const struct machine *machine) {
    write->error = machine_read_value(machine, write->path, write->after, sizeof write->after);
    if (write->error < 0)
        write->after[0] = '\0';
}

static void carry_out_one(struct plan_write *write, struct write_context *context) {
    /* What cannot be read is not written: nobody could put it back. */
    if (write->error < 0 || (plan_holds(write) && write->kind != PLAN_ALIAS))
        return;
    /* With its newline, as every file of the kernel shows it. */
    char bytes[sizeof write->wanted + 1], before[PLAN_VALUE_SIZE];
    int length = snprintf(bytes, sizeof bytes, "%s\n", write->wanted);
    snprintf(before, sizeof before, "%s", write->after);
    write->error =
        write_file(context, write->path, before, bytes, (size_t)length, write->after, sizeof write->after);
    write->written = true;
}

void plan_carry_out(struct plan *plan, struct write_context *context) {
    for (size_t i = 0; i < plan->count; i++) {
        struct plan_write *write = &plan->writes[i];
        read_now(write, context->machine);
        if (!write->lower || i + 1 == plan->count) {
            carry_out_one(write, context);
            continue;
        }
        struct plan_write *upper = &plan->writes[++i];
        read_now(upper, context->machine);
        bool upper_first = plan_crosses(write->wanted, upper->after);
        carry_out_one(upper_first ? upper : write, context);
        carry_out_one(upper_first ? write : upper, context);
    }
}

static bool check_one(struct plan_write *write, const struct machine *machine) {
    int error = write->error;
    read_now(write, machine);
    bool holds = write->error == 0 && plan_holds(write);
    if (!holds && write->error == 0)
        write->error = error; /* the reason why it could not be written is the one to report */
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
