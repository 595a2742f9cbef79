/* The requests INSPECT, STATISTICS and CLOCK: each is answered at once. */
#include "engine/agent/machine/facts.h"
#include "engine/agent/serve/agent.h"
#include "engine/foundation/clock.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static void answer(struct agent *agent, enum protocol_type type, const void *message) {
    struct protocol_writer writer;
    agent_begin(agent, &writer, type);
    protocol_put_message(&writer, message);
    agent_end(agent, &writer);
}

/* Sends FACTS: the machine, the run directory and the note; or ERROR. */
static void inspect(struct agent *agent, uint32_t request) {
    struct failure failure = {0};
    struct protocol_writer writer;
    agent_begin(agent, &writer, PROTOCOL_FACTS);
    protocol_put_u32(&writer, request);
    if (facts_put(&writer, &agent->machine, &failure) < 0) {
        protocol_cancel(&writer);
        agent_send_error(agent, PROTOCOL_ERROR, request, &failure);
        return;
    }
    facts_put_directory(&writer, agent->directory);
    facts_put_note(&writer, agent->note);
    agent_end(agent, &writer);
}

static int64_t microseconds(struct timeval time) {
    return (int64_t)time.tv_sec * 1000000 + time.tv_usec;
}

/* Sends STATISTICS_REPLY: what the agent itself has used of time and memory, and its frames. */
static void report_statistics(struct agent *agent, uint32_t request) {
    static const struct machine real = {.root = -1};
    char pages[128] = "";
    unsigned long long resident = 0;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    (void)machine_read_value(&real, "/proc/self/statm", pages, sizeof pages);
    (void)sscanf(pages, "%*u %llu", &resident);
    answer(agent, PROTOCOL_STATISTICS_REPLY,
           &(struct protocol_statistics){
               .request = request,
               .user_us = microseconds(usage.ru_utime),
               .system_us = microseconds(usage.ru_stime),
               .rss_bytes = resident * (uint64_t)sysconf(_SC_PAGESIZE),
               .rss_peak_bytes = (uint64_t)usage.ru_maxrss * 1024,
               .frames_received = agent->inbox.total_frames,
               .frames_sent = agent->outbox.total_frames,
               .bytes_received = agent->inbox.total_bytes,
               .bytes_sent = agent->outbox.total_bytes,
               .wakeups = agent->wakeups,
               .commands = agent->command_count,
           });
}

int request_answer(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    uint32_t request;
    int r = protocol_get_message(frame, &request, failure);
    if (r < 0)
        return r;
    if (frame->type == PROTOCOL_INSPECT)
        inspect(agent, request);
    else if (frame->type == PROTOCOL_STATISTICS)
        report_statistics(agent, request);
    else
        answer(agent, PROTOCOL_CLOCK_REPLY,
               &(struct protocol_clock){request, clock_wall_ns(), clock_monotonic_ns()});
    return 0;
}
