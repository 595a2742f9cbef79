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

static bool is_true(const char *flag) {
    return flag[0] != '\0' && strcmp(flag, "0") != 0 && strcmp(flag, "false") != 0;
}

/* The operation of each row into RET: OPERATIONS for rows that are left out, PAIRED for a Recv after its Send
 * in a raw ping-pong. Counts rows that are left out in GROUP. */
void calls_classify(const struct fit_rows *rows, const struct fit_request *request, enum operation *ret,
                    struct group *group) {
    size_t operation = request->values[OPERATION].first, found = request->values[FOUND].first;
    const double *sizes = rows->columns[request->values[SIZE].first], *durations = rows->response;
    bool has_flags = request->values[FOUND].count > 0, is_raw = true;
    for (size_t i = 0; i < rows->count; i++) {
        const char *text = request->levels[operation].texts[rows->categories[operation][i]];
        bool is_found = has_flags && is_true(request->levels[found].texts[rows->categories[found][i]]);
        ret[i] = operation_find(text);
        if (ret[i] == OPERATIONS && group->first_unknown[0] == '\0')
            snprintf(group->first_unknown, sizeof group->first_unknown, "%s", text);
        ret[i] = is_found ? OPERATIONS : ret[i];
        group->other += ret[i] == OPERATIONS;
        is_raw = is_raw && ret[i] != PING_PONG;
    }
    for (size_t i = 1; is_raw && i < rows->count; i++)
        if (ret[i] == RECV && ret[i - 1] == SEND && sizes[i] == sizes[i - 1])
            ret[i] = PAIRED;
    for (size_t i = rows->count; i-- > 0;) {
        bool is_negative = sizes[i] < 0 || durations[i] < 0 || (ret[i] == PAIRED && durations[i - 1] < 0);
        group->negative += is_negative && ret[i] != OPERATIONS;
        ret[i] = is_negative ? OPERATIONS : ret[i];
    }
}

/* Reads the rows of a group, by operation. A raw Send and Recv become one PingPong. -ENOMEM. To be cleared in
 * any case. */
int group_read(const struct fit_rows *rows, const struct fit_request *request, struct group *ret) {
    size_t starts[PAIRED + 2] = {0};
    *ret = (struct group){0};
    enum operation *operations = malloc((rows->count + 1) * sizeof *operations);
    ret->memory = malloc((rows->count + 1) * sizeof *ret->memory);
    int r = operations && ret->memory ? 0 : -ENOMEM;
    if (r == 0)
        calls_classify(rows, request, operations, ret);
    for (size_t i = 0; r == 0 && i < rows->count; i++)
        starts[(operations[i] == PAIRED ? PING_PONG : operations[i]) + 1]++;
    for (size_t o = 0; r == 0 && o < OPERATIONS; o++) {
        starts[o + 1] += starts[o];
        ret->calls[o].calls = ret->memory + starts[o];
    }
    for (size_t i = 0; r == 0 && i < rows->count; i++) {
        bool is_pair = operations[i] == PAIRED; /* its Recv waited for the message: it is none for `or` */
        struct calls *calls =
            operations[i] == OPERATIONS ? NULL : &ret->calls[is_pair ? PING_PONG : operations[i]];
        if (calls)
            calls->calls[calls->count++] =
                (struct call){rows->columns[request->values[SIZE].first][i],
                              rows->response[i] + (is_pair ? rows->response[i - 1] : 0)};
    }
    free(operations);
    return r;
}

void group_clear(struct group *group) {
    free(group->memory);
}
