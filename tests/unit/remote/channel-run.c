/* What a command's input is written in: pieces that keep the buffers of a connection small, or all of it. */
#include "engine/event-loop/event-loop.h"
#include "engine/remote/channel/run.h"
#include "tests/test.h"

static size_t written, longest;
static bool ended;

static ssize_t nothing(struct remote_channel *channel, void *bytes, size_t size) {
    (void)channel, (void)bytes, (void)size;
    return -EAGAIN;
}

static ssize_t take(struct remote_channel *channel, const void *bytes, size_t length) {
    (void)channel, (void)bytes;
    longest = length > longest ? length : longest;
    written += length;
    return (ssize_t)length;
}

static void want(struct remote_channel *channel, unsigned events) {
    (void)channel, (void)events;
}

static int end_input(struct remote_channel *channel) {
    (void)channel;
    ended = true;
    return 0;
}

static void no_free(struct remote_channel *channel) {
    (void)channel;
}

static void never(const struct channel_run_result *result, const struct failure *why, void *context) {
    (void)result, (void)why, (void)context;
}

/* The longest piece of an input of LENGTH bytes. */
static size_t longest_piece(size_t length) {
    static const struct remote_channel_operations operations = {nothing, nothing,   take,
                                                                want,    end_input, no_free};
    struct remote_channel channel = {.operations = &operations};
    char *input = calloc(1, length);
    assert_non_null(input);
    written = longest = 0;
    ended = false;
    struct channel_run *run = channel_run_new(input, length, 100, never, NULL);
    channel.listener = channel_run_listener(run);
    channel_run_started(run, &channel);
    channel.listener.on_open(&channel, channel.listener.context);
    channel_run_cancel(run);
    free(input);
    assert_int_equal(written, length);
    assert_true(ended);
    return longest;
}

TEST(an_agent_goes_in_small_pieces) {
    assert_int_equal(longest_piece(100), 100);
    assert_int_equal(longest_piece(1000000), 8 << 10);
}

TEST(an_image_goes_in_large_pieces) {
    assert_true(longest_piece(32 << 20) > 1 << 20);
}
