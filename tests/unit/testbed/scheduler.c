/* What squeue and oarstat print, in all shapes that are known. */
#include "engine/testbed/scheduler.h"
#include "tests/test.h"

#include <errno.h>
#include <string.h>

static const struct answer {
    const char *label;
    const struct scheduler *scheduler;
    const char *output, *id, *name;
    int result;
    enum scheduler_job_state state;
    const char *found_id, *reason, *nodes; /* folded */
    int64_t end_s;
} answers[] = {
    {"22.05, waits", &scheduler_slurm,
     "{\"jobs\": [{\"job_id\": 7, \"name\": \"other\", \"job_state\": \"RUNNING\", \"nodes\": \"x1\"},"
     "{\"job_id\": 8, \"name\": \"assay-u\", \"job_state\": \"PENDING\", \"state_reason\": \"Priority\", "
     "\"nodes\": \"\", \"end_time\": 0}]}",
     "", "assay-u", 0, SCHEDULER_JOB_WAITING, "8", "Priority", "", 0},
    {"22.05, runs", &scheduler_slurm,
     "{\"jobs\": [{\"job_id\": 8, \"name\": \"assay-u\", \"job_state\": \"RUNNING\", \"state_reason\": "
     "\"None\", "
     "\"nodes\": \"dahu-[1-2,7]\", \"end_time\": 1795454502}]}",
     "8", "", 0, SCHEDULER_JOB_RUNNING, "8", "", "dahu-[1-2,7]", 1795454502},
    {"23.11, configures", &scheduler_slurm,
     "{\"jobs\": [{\"job_id\": 8, \"name\": \"n\", \"job_state\": [\"RUNNING\", \"CONFIGURING\"], \"nodes\": "
     "\"a1\","
     " \"end_time\": {\"set\": true, \"infinite\": false, \"number\": 5}}]}",
     "8", "", 0, SCHEDULER_JOB_WAITING, "8", "", "", 5},
    {"24.05, runs", &scheduler_slurm,
     "{\"jobs\": [{\"job_id\": 8, \"name\": \"n\", \"job_state\": [\"RUNNING\"], \"nodes\": \"a1\","
     " \"end_time\": {\"set\": true, \"infinite\": false, \"number\": 5}}]}",
     "8", "", 0, SCHEDULER_JOB_RUNNING, "8", "", "a1", 5},
    {"no end is set", &scheduler_slurm,
     "{\"jobs\": [{\"job_id\": 8, \"job_state\": [\"RUNNING\"], \"nodes\": \"a1\","
     " \"end_time\": {\"set\": false, \"infinite\": false, \"number\": 5}}]}",
     "8", "", 0, SCHEDULER_JOB_RUNNING, "8", "", "a1", 0},
    {"of two the one that runs counts", &scheduler_slurm,
     "{\"jobs\": [{\"job_id\": 9, \"name\": \"n\", \"job_state\": \"RUNNING\", \"nodes\": \"a1\"},"
     "{\"job_id\": 8, \"name\": \"n\", \"job_state\": \"TIMEOUT\", \"nodes\": \"a1\"}]}",
     "", "n", 0, SCHEDULER_JOB_RUNNING, "9", "", "a1", 0},
    {"over", &scheduler_slurm,
     "{\"jobs\": [{\"job_id\": 8, \"job_state\": [\"NODE_FAIL\"], \"state_reason\": \"NodeDown\"}]}", "8", "",
     0, SCHEDULER_JOB_OVER, "8", "NodeDown", "", 0},
    {"not there", &scheduler_slurm, "{\"jobs\": []}", "8", "", 0, SCHEDULER_JOB_NONE, "", "", "", 0},
    {"no JSON", &scheduler_slurm, "slurm_load_jobs error", "8", "", -EBADMSG, SCHEDULER_JOB_NONE, "", "", "",
     0},
    {"half of it", &scheduler_slurm, "{\"jobs\": [{\"job_id\"", "8", "", -EBADMSG, SCHEDULER_JOB_NONE, "", "",
     "", 0},
    {"OAR, runs, numbers quoted", &scheduler_oar,
     "{\"12\": {\"name\": \"n\", \"state\": \"Running\", \"startTime\": \"100\", \"walltime\": 60, "
     "\"assigned_network_address\": [\"d-1.site\", \"d-2.site\"], \"message\": null}}",
     "12", "", 0, SCHEDULER_JOB_RUNNING, "12", "", "d-[1-2].site", 160},
    {"OAR, resubmitted under another number", &scheduler_oar,
     "{\"12\": {\"name\": \"n\", \"state\": \"Error\"}, \"13\": {\"name\": \"n\", \"state\": \"Waiting\", "
     "\"message\": \"FIFO\"}}",
     "", "n", 0, SCHEDULER_JOB_WAITING, "13", "FIFO", "", 0},
    {"OAR, no jobs", &scheduler_oar, "\n", "", "n", 0, SCHEDULER_JOB_NONE, "", "", "", 0},
};

TEST(answers_are_read) {
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const struct answer *answer = &answers[i];
        struct scheduler_job job = {0};
        struct failure failure = {0};
        struct text nodes;
        text_init(&nodes, 1000);
        print_message("%s\n", answer->label);
        assert_int_equal(answer->scheduler->read_job(answer->output, strlen(answer->output), answer->id,
                                                     answer->name, &job, &failure),
                         answer->result);
        assert_int_equal(job.state, answer->state);
        assert_string_equal(job.id, answer->found_id);
        assert_string_equal(job.reason, answer->reason);
        assert_true(job.end_s == answer->end_s);
        assert_int_equal(host_list_fold((const char *const *)job.nodes.names, job.nodes.count, &nodes), 0);
        assert_string_equal(nodes.bytes, answer->nodes);
        host_list_clear(&job.nodes);
        text_clear(&nodes);
    }
}

TEST(numbers_of_jobs_are_read) {
    static const struct {
        const struct scheduler *scheduler;
        const char *output, *id; /* NULL: none */
    } cases[] = {{&scheduler_slurm, "123\n", "123"},
                 {&scheduler_slurm, "123;cluster\n", "123"},
                 {&scheduler_slurm, "Submitted batch job 3\n", NULL},
                 {&scheduler_slurm, "", NULL},
                 {&scheduler_oar, "# Set walltime\nOAR_JOB_ID=22\n", "22"},
                 {&scheduler_oar, "OAR_JOB_ID=-5\n", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char id[SCHEDULER_ID_SIZE] = "";
        assert_int_equal(cases[i].scheduler->read_id(cases[i].output, id), cases[i].id != NULL);
        if (cases[i].id)
            assert_string_equal(id, cases[i].id);
    }
}
