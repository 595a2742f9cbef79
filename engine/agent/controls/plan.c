#include "engine/agent/controls/plan.h"

#include "engine/foundation/clock.h"
#include "engine/foundation/list.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends a write. LENGTH: the bytes of PATH before it was cut; too many are an error. */
static struct plan_write *add(struct plan *plan, int pu, const char *path, int length, const char *wanted) {
    int r =
        list_reserve(&plan->writes, &plan->capacity, plan->count + 1, sizeof *plan->writes, PLAN_WRITES_MAX);
    struct plan_write *write = r < 0 ? plan->spare : &plan->writes[plan->count];
    *write = (struct plan_write){.pu = pu};
    snprintf(write->path, sizeof write->path, "%s", path);
    if (r == 0 && (length >= PLAN_PATH_SIZE ||
                   snprintf(write->wanted, sizeof write->wanted, "%s", wanted) >= (int)sizeof write->wanted))
        r = -ENAMETOOLONG;
    plan->count += r == 0;
    plan->error = plan->error < 0 ? plan->error : r;
    return write;
}

struct plan_write *plan_add(struct plan *plan, int pu, const char *folder, const char *name,
                            const char *wanted) {
    char path[PLAN_PATH_SIZE];
    return add(plan, pu, path, snprintf(path, sizeof path, "%s/%s", folder, name), wanted);
}

struct plan_write *plan_add_content(struct plan *plan, const char *path, const char *content) {
    struct plan_write *write = add(plan, -1, path, (int)strlen(path), "");
    write->kind = PLAN_EXACT;
    write->content = content;
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

struct plan_write *plan_add_limits(struct plan *plan, int pu, const char *folder, const char *lower,
                                   const char *upper, uint64_t min, uint64_t max) {
    plan_add_number(plan, pu, folder, lower, min)->lower = true;
    plan_add_number(plan, pu, folder, upper, max);
    return plan->error < 0 ? plan->spare : &plan->writes[plan->count - 2];
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

/* Is the value that was read after the write the one wanted, or one that stands for it? */
bool plan_is_fulfilled(const struct plan_write *write) {
    if (write->kind == PLAN_ALIAS || write->kind == PLAN_EXACT)
        return write->kind == PLAN_ALIAS ? write->written : write->exact;
    if (write->kind == PLAN_NUMBER) {
        uint64_t number;
        return number_parse_uint64(write->after, strlen(write->after), &number) && number >= write->min &&
               number <= write->max;
    }
    char value[PLAN_VALUE_SIZE];
    snprintf(value, sizeof value, "%s", write->after);
    if (write->kind == PLAN_CHOICE)
        plan_choose(value);
    return strcmp(value, write->wanted) == 0 ||
           (write->also_accepted[0] && strcmp(value, write->also_accepted) == 0);
}

/* ---- writing */

/* Sleeps before a busy file is tried again, each time twice as long. False: no time is left. */
static bool pause_for_retry(struct write_context *context, int64_t *pause_ns) {
    if (context->busy_timeout_ns < *pause_ns)
        return false;
    clock_sleep_ns(*pause_ns);
    context->busy_timeout_ns -= *pause_ns;
    *pause_ns *= 2;
    return true;
}

/* Reads the file of WRITE into `after`, and sets `error` and `exact`. */
static void read_file(struct plan_write *write, const struct machine *machine) {
    ssize_t length = machine_read_small(machine, write->path, write->after, sizeof write->after);
    write->error = length < 0 ? (int)length : 0;
    length = length < 0 ? 0 : length;
    write->exact = write->error == 0 && write->content && strlen(write->content) == (size_t)length &&
                   memcmp(write->after, write->content, (size_t)length) == 0;
    (void)machine_trim(write->after, (size_t)length);
}

/* Writes BYTES to the file, reads it back, and reports a line `write`. */
static void write_file(struct plan_write *write, struct write_context *context, const char *bytes) {
    char before[PLAN_VALUE_SIZE], written[PLAN_VALUE_SIZE], name[16];
    int64_t pause_ns = 1000000;
    int r;
    snprintf(before, sizeof before, "%s", write->after);
    snprintf(write->before, sizeof write->before, "%.63s", before);
    do
        r = machine_write(context->machine, write->path, bytes, strlen(bytes));
    while ((r == -EBUSY || r == -EAGAIN) && pause_for_retry(context, &pause_ns));
    read_file(write, context->machine);
    write->error = r < 0 ? r : write->error;
    write->written = write->written || r == 0;
    context->changed += r == 0;
    snprintf(written, sizeof written, "%s", bytes);
    (void)machine_trim(written, strlen(written));
    lines_put(context->lines, "write", context->control, lines_field("/%s", write->path), before, written,
              write->after, lines_errno(write->error, name), NULL);
}

/* Writes the file if it differs; it was read before. */
static void carry_out_one(struct plan_write *write, struct write_context *context) {
    /* A file that cannot be read is not written, because it could not be restored. */
    bool needed = !plan_is_fulfilled(write) || write->kind == PLAN_ALIAS || (write->once && !write->written);
    if (write->error < 0 || !needed)
        return;
    /* With its newline, as every file of the kernel shows it. */
    char bytes[sizeof write->wanted + 1];
    snprintf(bytes, sizeof bytes, "%s\n", write->wanted);
    if (write->wanted[0] && !(write->once && write->written))
        write_file(write, context, bytes);
    if (write->kind == PLAN_EXACT && !plan_is_fulfilled(write))
        write_file(write, context, write->content);
}

/* True where the new LOWER limit is above the current UPPER one: the kernel may refuse it, so the upper limit
 * must be written first. */
static bool exceeds_upper(const struct plan_write *lower, const struct plan_write *upper) {
    const char *wanted = lower->content ? lower->content : lower->wanted;
    uint64_t min, max;
    return number_parse_uint64(upper->after, strlen(upper->after), &max) &&
           number_parse_uint64(wanted, strcspn(wanted, "\n"), &min) && min > max;
}

/* Carries out all writes. Of a pair of limits, the one is written first that leaves the lower limit below the
 * upper. */
void plan_carry_out(struct plan *plan, struct write_context *context) {
    for (size_t i = 0; i < plan->count; i++) {
        struct plan_write *write = &plan->writes[i];
        read_file(write, context->machine);
        if (!write->lower || i + 1 == plan->count) {
            carry_out_one(write, context);
            continue;
        }
        struct plan_write *upper = &plan->writes[++i];
        read_file(upper, context->machine);
        bool upper_first = exceeds_upper(write, upper);
        carry_out_one(upper_first ? upper : write, context);
        carry_out_one(upper_first ? write : upper, context);
    }
}

void plan_undo(struct plan *plan, struct write_context *context, const struct pu_set *online) {
    for (size_t i = plan->count; i-- > 0;) {
        struct plan_write *write = &plan->writes[i];
        if (!write->written || (write->pu >= 0 && !pu_set_has(online, (unsigned)write->pu)))
            continue;
        snprintf(write->wanted, sizeof write->wanted, "%s", write->before);
        write->kind = PLAN_WORD;
        read_file(write, context->machine);
        carry_out_one(write, context);
    }
}

static bool check_write(struct plan_write *write, const struct machine *machine) {
    int error = write->error;
    read_file(write, machine);
    bool holds = write->error == 0 && plan_is_fulfilled(write);
    if (!holds && write->error == 0)
        write->error = error; /* the reason why it could not be written is the one to report */
    return holds;
}

bool plan_is_due(struct plan *plan, const struct machine *machine) {
    size_t i = 0;
    while (i < plan->count && check_write(&plan->writes[i], machine))
        i++;
    return i < plan->count;
}

void plan_check(struct plan *plan, const struct machine *machine) {
    for (size_t i = 0; i < plan->count; i++)
        (void)check_write(&plan->writes[i], machine);
}
