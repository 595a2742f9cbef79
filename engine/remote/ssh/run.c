#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/remote/ssh/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 32 << 10 };

struct ssh_run {
    struct ssh_stream *stream;
    const char *input;
    size_t input_left;
    struct text output[2];
    ssh_run_callback *callback;
    void *context;
};

static void run_free(struct ssh_run *run) {
    text_clear(&run->output[0]);
    text_clear(&run->output[1]);
    free(run);
}

/* What is over the limit is read all the same: the command must not wait for us. */
static void read_all(struct ssh_run *run, int which) {
    char bytes[PIECE];
    ssize_t got;
    while ((got = which ? ssh_stream_read_error(run->stream, bytes, sizeof bytes)
                        : ssh_stream_read(run->stream, bytes, sizeof bytes)) > 0) {
        size_t room = run->output[which].limit - run->output[which].length;
        (void)text_append(&run->output[which], bytes, (size_t)got < room ? (size_t)got : room);
    }
}

static void write_some(struct ssh_run *run) {
    while (run->input_left) {
        ssize_t sent = ssh_stream_write(run->stream, run->input, run->input_left);
        if (sent == -EAGAIN)
            return;
        if (sent < 0) /* the command has ended without reading it all: its status says what that means */
            run->input_left = 0;
        else {
            run->input += sent;
            run->input_left -= (size_t)sent;
        }
    }
    (void)ssh_stream_want(run->stream, EVENT_READ);
    (void)ssh_stream_end_input(run->stream);
}

static void on_open(struct ssh_stream *stream, void *context) {
    (void)ssh_stream_want(stream, EVENT_READ | EVENT_WRITE);
    write_some(context);
}

static void on_ready(struct ssh_stream *stream, unsigned events, void *context) {
    (void)stream;
    struct ssh_run *run = context;
    if (events & EVENT_READ) {
        read_all(run, 0);
        read_all(run, 1);
    }
    if (events & EVENT_WRITE)
        write_some(run);
}

static void on_closed(struct ssh_stream *stream, const struct ssh_stream_end *end, const struct failure *why,
                      void *context) {
    struct ssh_run *run = context;
    struct ssh_run_result result = {0};
    if (end)
        result = (struct ssh_run_result){.end = *end,
                                         .output = run->output[0].bytes,
                                         .output_length = run->output[0].length,
                                         .error = run->output[1].bytes,
                                         .error_length = run->output[1].length};
    ssh_stream_free(stream);
    run->stream = NULL;
    run->callback(end ? &result : NULL, why, run->context);
    run_free(run);
}

int ssh_run_start(struct ssh_connection *connection, const char *command, const void *input,
                  size_t input_length, size_t limit, ssh_run_callback *callback, void *context,
                  struct ssh_run **ret, struct failure *failure) {
    struct ssh_run *run = xcalloc(1, sizeof *run);
    run->input = input;
    run->input_left = input_length;
    run->callback = callback;
    run->context = context;
    text_init(&run->output[0], limit);
    text_init(&run->output[1], limit);
    struct ssh_stream_listener listener = {
        .on_open = on_open, .on_ready = on_ready, .on_closed = on_closed, .context = run};
    int r = ssh_stream_open(connection, command, &listener, &run->stream, failure);
    if (r < 0) {
        run_free(run);
        return r;
    }
    *ret = run;
    return 0;
}

void ssh_run_cancel(struct ssh_run *run) {
    if (!run)
        return;
    ssh_stream_free(run->stream);
    run_free(run);
}
