/* A command on a channel, whole: its input goes in, and what it prints comes back at its end. */
#ifndef ASSAY_CHANNEL_RUN_H
#define ASSAY_CHANNEL_RUN_H

#include "engine/remote/channel/channel.h"

struct channel_run;

struct channel_run_result {
    struct remote_channel_end end;
    const char *output, *error; /* valid during the callback; a NUL after the last byte */
    size_t output_length, error_length;
};
typedef void channel_run_callback(const struct channel_run_result *result, const struct failure *failure,
                                  void *context);

/* INPUT (may be NULL) is borrowed until the callback. Of each output LIMIT bytes are kept, and the rest is
 * dropped. channel_run_listener() is given to what opens the channel, and the channel that was opened to
 * channel_run_started(). The callback is called once, never from within; then the run has freed itself and
 * the channel. */
struct channel_run *channel_run_new(const void *input, size_t input_length, size_t limit,
                                    channel_run_callback *callback, void *context);
struct remote_channel_listener channel_run_listener(struct channel_run *run);
void channel_run_started(struct channel_run *run, struct remote_channel *channel);
/* Before the callback: gives it up. NULL is fine. */
void channel_run_cancel(struct channel_run *run);

#endif
