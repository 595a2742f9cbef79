#include "engine/remote/channel/run.h"

#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 32 << 10,
    /* An input of at most SMALL_INPUT bytes, such as an agent, is written in packets of SMALL_PIECE: libssh
       keeps buffers as large as the largest packet, else 150 KiB for each node. Larger packets cost libssh a
       fifth less time, and are used for larger inputs. */
    SMALL_INPUT = 8 << 20,
    SMALL_PIECE = 8 << 10,
};

struct channel_run {
    struct remote_channel *channel;
    const char *input;
    size_t input_left;
    struct text output[2];
    channel_run_callback *callback;
    void *context;
};

static void run_free(struct channel_run *run) {
    text_clear(&run->output[0]);
    text_clear(&run->output[1]);
    free(run);
}

/* Reads all that has come of stdout (0) or stderr (1). Bytes beyond the limit are dropped, so that the
 * command does not block. */
static void read_all(struct channel_run *run, int which) {
    char bytes[PIECE];
    ssize_t got;
    while ((got = which ? remote_channel_read_error(run->channel, bytes, sizeof bytes)
                        : remote_channel_read(run->channel, bytes, sizeof bytes)) > 0) {
        size_t room = run->output[which].limit - run->output[which].length;
        (void)text_append(&run->output[which], bytes, (size_t)got < room ? (size_t)got : room);
    }
}

/* Writes input until the channel accepts no more; after the last byte closes the command's stdin. */
static void write_some(struct channel_run *run) {
    while (run->input_left) {
        size_t piece = run->input_left;
        if (piece <= SMALL_INPUT && piece > SMALL_PIECE)
            piece = SMALL_PIECE;
        ssize_t sent = remote_channel_write(run->channel, run->input, piece);
        if (sent == -EAGAIN)
            return;
        if (sent < 0) /* the command has ended without reading all input: its status is the result */
            run->input_left = 0;
        else {
            run->input += sent;
            run->input_left -= (size_t)sent;
        }
    }
    remote_channel_want(run->channel, EVENT_READ);
    (void)remote_channel_end_input(run->channel);
}

static void on_open(struct remote_channel *channel, void *context) {
    remote_channel_want(channel, EVENT_READ | EVENT_WRITE);
    write_some(context);
}

static void on_ready(struct remote_channel *channel, unsigned events, void *context) {
    (void)channel;
    struct channel_run *run = context;
    if (events & EVENT_READ) {
        read_all(run, 0);
        read_all(run, 1);
    }
    if (events & EVENT_WRITE)
        write_some(run);
}

/* Reads the rest of the output, frees the channel, and passes the result, or the failure, to the callback. */
static void on_closed(struct remote_channel *channel, const struct remote_channel_end *end,
                      const struct failure *why, void *context) {
    struct channel_run *run = context;
    struct channel_run_result result = {0};
    read_all(run, 1);
    if (end)
        result = (struct channel_run_result){.end = *end,
                                             .output = run->output[0].bytes,
                                             .output_length = run->output[0].length,
                                             .error = run->output[1].bytes,
                                             .error_length = run->output[1].length};
    remote_channel_free(channel);
    run->channel = NULL;
    run->callback(end ? &result : NULL, why, run->context);
    run_free(run);
}

struct channel_run *channel_run_new(const void *input, size_t input_length, size_t limit,
                                    channel_run_callback *callback, void *context) {
    struct channel_run *run = xcalloc(1, sizeof *run);
    run->input = input;
    run->input_left = input_length;
    run->callback = callback;
    run->context = context;
    text_init(&run->output[0], limit);
    text_init(&run->output[1], limit);
    return run;
}

struct remote_channel_listener channel_run_listener(struct channel_run *run) {
    return (struct remote_channel_listener){
        .on_open = on_open, .on_ready = on_ready, .on_closed = on_closed, .context = run};
}

void channel_run_started(struct channel_run *run, struct remote_channel *channel) {
    run->channel = channel;
}

void channel_run_cancel(struct channel_run *run) {
    if (!run)
        return;
    remote_channel_free(run->channel);
    run_free(run);
}
