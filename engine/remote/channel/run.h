/* Runs a command on a channel to its end: writes its input, and collects its output. */
#ifndef ASSAY_CHANNEL_RUN_H
#define ASSAY_CHANNEL_RUN_H

#include "engine/remote/channel/channel.h"

struct channel_run;

struct channel_run_result {
    struct remote_channel_end end;
    const char *output, *error; /* stdout and stderr, ended by a NUL; valid during the callback */
    size_t output_length, error_length;
};
typedef void channel_run_callback(const struct channel_run_result *result, const struct failure *failure,
                                  void *context);

/* Makes a run. INPUT (may be NULL) is borrowed until the callback. The first LIMIT bytes of each output are
 * stored, and the rest is dropped. The caller then opens a channel with channel_run_listener(), and passes it
 * to channel_run_started(). CALLBACK is called once, never from within these functions; RESULT is NULL where
 * the command could not be run, with the reason in FAILURE. The run then frees itself and the channel. */
struct channel_run *channel_run_new(const void *input, size_t input_length, size_t limit,
                                    channel_run_callback *callback, void *context);
struct remote_channel_listener channel_run_listener(struct channel_run *run);
void channel_run_started(struct channel_run *run, struct remote_channel *channel);
/* Cancels the run and closes its channel, before the callback, which is then never called. NULL is fine. */
void channel_run_cancel(struct channel_run *run);

#endif
