/* The calls of one group, operation by operation. */
#include "plugins/fit-smpi/smpi.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const operation_names[OPERATIONS] = {"Isend", "Send",  "Recv",         "PingPong", "Iprobe",
                                                 "Test",  "Wtime", "Asynchronous", "Detached"};

enum operation operation_find(const char *text) {
    size_t i = 0;
    if (strncasecmp(text, "MPI_", 4) == 0)
        text += 4;
    while (i < OPERATIONS && strcasecmp(text, operation_names[i]) != 0)
        i++;
    return (enum operation)i;
}

/* What each row is: probes that found something are none of the operations. */
static enum operation *name_rows(const struct fit_rows *rows, const struct fit_request *request,
                                 struct group *group) {
    enum operation *operations = malloc((rows->count + 1) * sizeof *operations);
    const struct plugin_value *value = request->values;
    size_t operation = value[OPERATION].first, found = value[FOUND].first;
    for (size_t i = 0; operations && i < rows->count; i++) {
        const char *text = request->levels[operation].texts[rows->categories[operation][i]];
        const char *flag =
            value[FOUND].count > 0 ? request->levels[found].texts[rows->categories[found][i]] : "";
        operations[i] = operation_find(text);
        if (operations[i] == OPERATIONS && group->other++ == 0)
            snprintf(group->stranger, sizeof group->stranger, "%s", text);
        if (operations[i] != OPERATIONS && flag[0] != '\0' && strcmp(flag, "0") != 0 &&
            strcmp(flag, "false") != 0) {
            operations[i] = OPERATIONS;
            group->other++;
        }
    }
    return operations;
}

static void add(struct calls *calls, double size, double duration) {
    calls->sizes[calls->count] = size;
    calls->durations[calls->count++] = duration;
}

/* Each operation gets its part of the memory: PingPong as many as there are, or as there are Sends. */
static int lay_out(const enum operation *operations, size_t count, struct group *group) {
    size_t most[OPERATIONS + 1] = {0}, at = 0;
    for (size_t i = 0; i < count; i++)
        most[operations[i]]++;
    if (most[PING_PONG] == 0)
        most[PING_PONG] = most[SEND];
    group->memory = malloc(4 * (count + 1) * sizeof *group->memory);
    for (size_t o = 0; group->memory && o < OPERATIONS; at += 2 * most[o], o++)
        group->calls[o] = (struct calls){group->memory + at, group->memory + at + most[o], 0};
    return group->memory ? 0 : -ENOMEM;
}

int group_read(const struct fit_rows *rows, const struct fit_request *request, struct group *ret) {
    *ret = (struct group){0};
    enum operation *operations = name_rows(rows, request, ret);
    const double *sizes = rows->columns[request->values[SIZE].first], *durations = rows->response;
    bool is_raw = true;
    int r = operations ? lay_out(operations, rows->count, ret) : -ENOMEM;
    for (size_t i = 0; r == 0 && i < rows->count; i++)
        is_raw = is_raw && operations[i] != PING_PONG;
    for (size_t i = 0; r == 0 && i < rows->count; i++) {
        bool is_pair =
            is_raw && i > 0 && operations[i] == RECV && operations[i - 1] == SEND && sizes[i] == sizes[i - 1];
        if (operations[i] == OPERATIONS)
            continue;
        if (sizes[i] < 0 || durations[i] < 0 || (is_pair && durations[i - 1] < 0)) {
            ret->negative++;
            continue;
        }
        if (is_pair) /* it waited for the message: it is none for `or` */
            add(&ret->calls[PING_PONG], sizes[i], durations[i] + durations[i - 1]);
        else
            add(&ret->calls[operations[i]], sizes[i], durations[i]);
        ret->paired += is_pair;
    }
    free(operations);
    return r;
}

void group_clear(struct group *group) {
    free(group->memory);
}
