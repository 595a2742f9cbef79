/* Requests: each is answered at once. */
#include "engine/agent/machine/facts.h"
#include "engine/agent/serve/agent.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/number.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int request_inspect(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    uint32_t request;
    int r = protocol_get_message(frame, &request, failure);
    if (r < 0)
        return r;
    struct failure own = {0};
    struct protocol_writer writer;
    agent_begin(agent, &writer, PROTOCOL_FACTS);
    protocol_put_u32(&writer, request);
    r = facts_put(&writer, &agent->machine, &own);
    if (r == 0) {
        facts_put_directory(&writer, agent->directory);
        facts_put_note(&writer, agent->note);
        agent_end(agent, &writer);
        return 0;
    }
    protocol_cancel(&writer);
    agent_send_error(agent, PROTOCOL_ERROR, request, &own);
    return 0;
}

/* The second number of /proc/self/statm, in pages. */
static uint64_t resident_bytes(void) {
    struct text content;
    text_init(&content, 4096);
    uint64_t pages = 0;
    if (file_read("/proc/self/statm", &content, NULL) == 0) {
        const char *second = content.bytes + strcspn(content.bytes, " ");
        second += *second == ' ';
        number_parse_uint64(second, strcspn(second, " "), &pages);
    }
    text_clear(&content);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int64_t microseconds(struct timeval time) {
    return (int64_t)time.tv_sec * 1000000 + time.tv_usec;
}

int request_statistics(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    uint32_t request;
    int r = protocol_get_message(frame, &request, failure);
    if (r < 0)
        return r;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    struct protocol_statistics statistics = {
        .request = request,
        .user_us = microseconds(usage.ru_utime),
        .system_us = microseconds(usage.ru_stime),
        .rss_bytes = resident_bytes(),
        .rss_peak_bytes = (uint64_t)usage.ru_maxrss * 1024,
        .frames_received = agent->inbox.total_frames,
        .frames_sent = agent->outbox.total_frames,
        .bytes_received = agent->inbox.total_bytes,
        .bytes_sent = agent->outbox.total_bytes,
        .wakeups = agent->wakeups,
        .commands = agent->command_count,
    };
    struct protocol_writer writer;
    agent_begin(agent, &writer, PROTOCOL_STATISTICS_REPLY);
    protocol_put_message(&writer, &statistics);
    agent_end(agent, &writer);
    return 0;
}

int request_clock(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    uint32_t request;
    int r = protocol_get_message(frame, &request, failure);
    if (r < 0)
        return r;
    struct protocol_clock clock = {
        .request = request, .wall_ns = clock_wall_ns(), .monotonic_ns = clock_monotonic_ns()};
    struct protocol_writer writer;
    agent_begin(agent, &writer, PROTOCOL_CLOCK_REPLY);
    protocol_put_message(&writer, &clock);
    agent_end(agent, &writer);
    return 0;
}
