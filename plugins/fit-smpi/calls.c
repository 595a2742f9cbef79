#include "plugins/fit-smpi/calls.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const operation_names[OPERATION_COUNT] = {"Isend", "Send",  "Recv",         "PingPong", "Iprobe",
                                                      "Test",  "Wtime", "Asynchronous", "Detached"};

struct row {
    double size, duration;
    uint32_t group, level;
};

struct calls {
    struct row *rows;
    size_t count, capacity;
    const enum operation *operations; /* of the levels */
    size_t *starts;                   /* of each group in `order`, and the end of the last */
    uint32_t *order;                  /* rows, group by group */
    struct call *calls;               /* of the group in hand: one array after the other */
    uint32_t *mates; /* by row: of the Recv that ends a ping-pong its Send + 1, of others 0 */
    size_t longest;  /* rows of the largest group */
};

enum operation operation_find(const char *text) {
    size_t i = 0;
    if (strncasecmp(text, "MPI_", 4) == 0)
        text += 4;
    while (i < OPERATION_COUNT && strcasecmp(text, operation_names[i]) != 0)
        i++;
    return (enum operation)i;
}

struct calls *calls_new(void) {
    return calloc(1, sizeof(struct calls));
}

void calls_free(struct calls *calls) {
    if (!calls)
        return;
    free(calls->rows);
    free(calls->starts);
    free(calls->order);
    free(calls->calls);
    free(calls->mates);
    free(calls);
}

uint64_t calls_count(const struct calls *calls) {
    return calls->count;
}

int calls_add(struct calls *calls, uint32_t group, uint32_t level, double size, double duration) {
    if (calls->count == CALLS_MAX)
        return -EFBIG;
    if (calls->count == calls->capacity) {
        size_t capacity = calls->capacity ? 2 * calls->capacity : 4096;
        struct row *grown = realloc(calls->rows, capacity * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        calls->rows = grown;
        calls->capacity = capacity;
    }
    calls->rows[calls->count++] = (struct row){size, duration, group, level};
    return 0;
}

/* In the group from START to before END of the order: where no row is a PingPong, a Send whose next row is a
 * Recv of the same size is its first half. */
static void pair(struct calls *calls, size_t start, size_t end) {
    for (size_t i = start; i < end; i++)
        if (calls->operations[calls->rows[calls->order[i]].level] == OPERATION_PING_PONG)
            return;
    for (size_t i = start; i + 1 < end; i++) {
        const struct row *row = &calls->rows[calls->order[i]], *after = &calls->rows[calls->order[i + 1]];
        if (calls->operations[row->level] != OPERATION_SEND ||
            calls->operations[after->level] != OPERATION_RECV || after->size != row->size)
            continue;
        calls->mates[calls->order[i + 1]] = calls->order[i] + 1;
        i++;
    }
}

int calls_sort(struct calls *calls, uint32_t group_count, const enum operation *operations) {
    calls->operations = operations;
    calls->starts = calloc((size_t)group_count + 2, sizeof *calls->starts);
    calls->order = calloc(calls->count + 1, sizeof *calls->order);
    if (!calls->starts || !calls->order)
        return -ENOMEM;
    size_t *next = calls->starts + 1; /* where the next row of each group goes; ends as the group's end */
    for (size_t i = 0; i < calls->count; i++)
        if (calls->rows[i].group + 1 < group_count)
            next[calls->rows[i].group + 1]++;
    for (size_t g = 1; g < group_count; g++)
        next[g] += next[g - 1];
    for (size_t i = 0; i < calls->count; i++)
        calls->order[next[calls->rows[i].group]++] = (uint32_t)i;
    for (size_t g = 0; g < group_count; g++)
        if (calls->starts[g + 1] - calls->starts[g] > calls->longest)
            calls->longest = calls->starts[g + 1] - calls->starts[g];
    calls->calls = calloc(2 * calls->longest + 1, sizeof *calls->calls); /* pairs count twice */
    calls->mates = calloc(calls->count + 1, sizeof *calls->mates);
    if (!calls->calls || !calls->mates)
        return -ENOMEM;
    for (size_t g = 0; g < group_count; g++)
        pair(calls, calls->starts[g], calls->starts[g + 1]);
    return 0;
}

static bool is_usable(const struct row *row) {
    return row->size >= 0 && isfinite(row->size) && row->duration >= 0 && isfinite(row->duration);
}

/* Gives each operation its part of calls->calls: of PingPong as many as there are, or as there are Sends. */
static void lay_out(const struct calls *calls, size_t start, size_t end, struct group_calls *ret) {
    size_t most[OPERATION_COUNT + 1] = {0}, at = 0;
    for (size_t i = start; i < end; i++)
        most[calls->operations[calls->rows[calls->order[i]].level]]++;
    if (most[OPERATION_PING_PONG] == 0)
        most[OPERATION_PING_PONG] = most[OPERATION_SEND];
    for (size_t o = 0; o < OPERATION_COUNT; at += most[o], o++)
        ret->calls[o] = calls->calls + at;
}

static void keep(struct group_calls *group, enum operation operation, double size, double duration) {
    group->calls[operation][group->counts[operation]++] = (struct call){size, duration};
}

void calls_of_group(struct calls *calls, uint32_t group, struct group_calls *ret) {
    size_t start = calls->starts[group], end = calls->starts[group + 1];
    *ret = (struct group_calls){.incomplete = 0};
    lay_out(calls, start, end, ret);
    for (size_t i = start; i < end; i++) {
        const struct row *row = &calls->rows[calls->order[i]];
        enum operation operation = calls->operations[row->level];
        uint32_t mate = calls->mates[calls->order[i]];
        if (operation == OPERATION_COUNT) {
            ret->other++;
        } else if (!is_usable(row)) {
            ret->incomplete++;
        } else if (!mate) {
            keep(ret, operation, row->size, row->duration);
        } else if (is_usable(&calls->rows[mate - 1])) { /* it waited for the message: it is none for `or` */
            keep(ret, OPERATION_PING_PONG, row->size, row->duration + calls->rows[mate - 1].duration);
            ret->paired++;
        }
    }
}

bool calls_at(const struct calls *calls, uint64_t row, struct call_at *ret) {
    if (row >= calls->count || !calls->mates)
        return false;
    const struct row *found = &calls->rows[row];
    uint32_t mate = calls->mates[row];
    *ret = (struct call_at){
        .operation = mate ? OPERATION_PING_PONG : calls->operations[found->level],
        .send = mate ? mate - 1 : row,
        .sending = mate ? calls->rows[mate - 1].duration : 0,
        .paired = mate != 0,
    };
    return ret->operation < OPERATION_ASYNCHRONOUS && is_usable(found) &&
           (!mate || is_usable(&calls->rows[mate - 1]));
}
