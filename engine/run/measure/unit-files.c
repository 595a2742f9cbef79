/* The files that a unit finds in its working folder, written before it starts: those of the experiment, with
 * the unit's values in them, and the host file of a job. */
#include "engine/run/measure/measurement.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void on_written(struct agent_link *link, const struct failure *failure, void *context) {
    (void)link;
    struct lane *lane = context;
    if (failure && lane->written.code == 0)
        lane->written = *failure;
    if (--lane->writes == 0)
        lane->after_writes(lane, lane->written.code < 0 ? &lane->written : NULL);
}

/* On all nodes of the unit. */
static int write_file(struct lane *lane, const char *name, const char *bytes, size_t length,
                      struct failure *failure) {
    cleanup_free char *path = text_format(RUN_WORK_FOLDER "/%s", name);
    int r = path ? 0 : failure_memory(failure);
    for (size_t i = 0; r == 0 && i < lane->shares; i++) {
        r = agent_link_write_file(lane->at.shares[i].node->link, path, bytes, length, 0666, on_written, lane,
                                  failure);
        lane->writes += r == 0;
    }
    return r;
}

static int write_hosts(struct lane *lane, struct failure *failure) {
    cleanup(text_clear) struct text hosts;
    text_init(&hosts, 16 << 20);
    if (job_append_hosts(lane, &lane->shape, &hosts) < 0)
        return failure_memory(failure);
    return write_file(lane, JOB_HOST_FILE, hosts.bytes, hosts.length, failure);
}

static int write_own(struct lane *lane, struct failure *failure) {
    const struct run *run = lane->measurement->run;
    const struct experiment_job *job = &run->experiment->job;
    struct plan_values values = {0};
    int r = plan_values_new(run->plan, lane->at.shares->pu_count, &values, failure);
    if (r == 0)
        r = plan_values_set_unit(&values, run->plan, lane_position(lane, lane->next), run->block_number,
                                 failure);
    struct experiment_values view = plan_values_view(&values);
    for (size_t i = 0; r == 0 && i < job->file_count; i++) {
        cleanup_free char *text = NULL;
        r = experiment_file_fill(&job->files[i], run->experiment->file, &view, &text, failure);
        if (r == 0)
            r = write_file(lane, job->files[i].name, text, strlen(text), failure);
    }
    plan_values_clear(&values);
    return r;
}

void lane_forget_files(struct lane *lane) {
    for (size_t i = 0; i < lane->at.count; i++)
        agent_link_forget(lane->at.shares[i].node->link, lane);
    lane->writes = 0;
}

int lane_write_files(struct lane *lane, void (*then)(struct lane *lane, const struct failure *why),
                     struct failure *failure) {
    lane->writes = 0;
    lane->written.code = 0;
    lane->after_writes = then;
    int r = lane->measurement->job ? write_hosts(lane, failure) : 0;
    if (r == 0)
        r = write_own(lane, failure);
    if (r < 0)
        lane_forget_files(lane);
    else if (lane->writes == 0)
        then(lane, NULL);
    return r;
}
