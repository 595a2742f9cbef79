/* What squeue and oarstat print, and what Grid'5000's API answers. */
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
    {"waits", &scheduler_slurm, "8|PENDING|N/A||Priority\n", "", "assay-u", 0, SCHEDULER_JOB_WAITING, "8",
     "Priority", "", 0},
    {"runs", &scheduler_slurm, "8|RUNNING|1795454502|dahu-[1-2,7]|None\n", "8", "assay-u", 0,
     SCHEDULER_JOB_RUNNING, "8", "", "dahu-[1-2,7]", 1795454502},
    {"runs on nodes with two numbers and a domain", &scheduler_slurm,
     "8|RUNNING|5|rack[1-2]n[01-02].site,gpu1.site|None\n", "8", "n", 0, SCHEDULER_JOB_RUNNING, "8", "",
     "gpu1.site,rack[1-2]n[01-02].site", 5},
    {"nodes boot", &scheduler_slurm, "8|CONFIGURING|5|a1|None\n", "8", "n", 0, SCHEDULER_JOB_WAITING, "8", "",
     "", 5},
    {"no end", &scheduler_slurm, "8|RUNNING|NONE|a1|None\n", "8", "n", 0, SCHEDULER_JOB_RUNNING, "8", "",
     "a1", 0},
    {"a reason of many words", &scheduler_slurm, "8|PENDING|N/A||(a|b) c\n", "8", "n", 0,
     SCHEDULER_JOB_WAITING, "8", "(a|b) c", "", 0},
    {"among words of a login shell", &scheduler_slurm, "Welcome | to | the | front | end\n8|RUNNING|5|a1|\n",
     "8", "n", 0, SCHEDULER_JOB_RUNNING, "8", "", "a1", 5},
    {"of two the one that runs counts", &scheduler_slurm, "9|RUNNING|5|a1|None\n8|TIMEOUT|5|a1|TimeLimit\n",
     "", "n", 0, SCHEDULER_JOB_RUNNING, "9", "", "a1", 5},
    {"over", &scheduler_slurm, "8|NODE_FAIL|5|a1|None\n", "8", "n", 0, SCHEDULER_JOB_OVER, "8", "NODE_FAIL",
     "", 5},
    {"not there", &scheduler_slurm, "", "8", "n", 0, SCHEDULER_JOB_NONE, "", "", "", 0},
    {"another one", &scheduler_slurm, "9|RUNNING|5|a1|None\n", "8", "n", 0, SCHEDULER_JOB_NONE, "", "", "",
     0},
    {"nodes that are none", &scheduler_slurm, "8|RUNNING|5|a[1-|None\n", "8", "n", -EINVAL,
     SCHEDULER_JOB_RUNNING, "8", "", "", 5},
    {"half a line", &scheduler_slurm, "8|RUNN", "8", "n", 0, SCHEDULER_JOB_NONE, "", "", "", 0},
    {"OAR, half of it", &scheduler_oar, "{\"12\": {\"name\"", "12", "", -EBADMSG, SCHEDULER_JOB_NONE, "", "",
     "", 0},
    {"OAR, runs, numbers quoted", &scheduler_oar,
     "{\"12\": {\"name\": \"n\", \"state\": \"Running\", \"startTime\": \"100\", \"walltime\": 60, "
     "\"assigned_network_address\": [\"d-1.site\", \"d-2.site\"], \"message\": null}}",
     "12", "", 0, SCHEDULER_JOB_RUNNING, "12", "", "d-[1-2].site", 160},
    {"OAR, resubmitted under another number", &scheduler_oar,
     "{\"12\": {\"name\": \"n\", \"state\": \"Error\"}, \"13\": {\"name\": \"n\", \"state\": \"Waiting\", "
     "\"message\": \"FIFO\"}}",
     "", "n", 0, SCHEDULER_JOB_WAITING, "13", "FIFO", "", 0},
    {"Grid'5000, runs", &scheduler_grid5000,
     "{\"uid\": 12, \"name\": \"n\", \"state\": \"running\", \"started_at\": 100, \"walltime\": 60, "
     "\"assigned_nodes\": [\"d-2.site\", \"d-1.site\"]}",
     "12", "n", 0, SCHEDULER_JOB_RUNNING, "12", "", "d-[1-2].site", 160},
    {"Grid'5000, a collection, in a state that is not known", &scheduler_grid5000,
     "{\"total\": 2, \"items\": [{\"uid\": 12, \"name\": \"n\", \"state\": \"error\"}, {\"uid\": 13, "
     "\"name\": "
     "\"n\", \"state\": \"dreaming\", \"message\": \"FIFO\"}]}",
     "", "n", 0, SCHEDULER_JOB_WAITING, "13", "FIFO", "", 0},
    {"Grid'5000, is about to be over", &scheduler_grid5000, "{\"uid\": 12, \"state\": \"finishing\"}", "12",
     "n", 0, SCHEDULER_JOB_OVER, "12", "", "", 0},
    {"Grid'5000, somebody else's", &scheduler_grid5000, "{\"items\": [{\"uid\": 12, \"name\": \"m\"}]}", "",
     "n", 0, SCHEDULER_JOB_NONE, "", "", "", 0},
    {"Grid'5000, a page", &scheduler_grid5000, "<html>", "12", "n", -EBADMSG, SCHEDULER_JOB_NONE, "", "", "",
     0},
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
                 {&scheduler_slurm, "2 messages\n123\nBye\n", "123"},
                 {&scheduler_slurm, "Submitted batch job 3\n", NULL},
                 {&scheduler_slurm, "", NULL},
                 {&scheduler_oar, "# Set walltime\nOAR_JOB_ID=22\n", "22"},
                 {&scheduler_oar, "OAR_JOB_ID=-5\n", NULL},
                 {&scheduler_grid5000, "{\"uid\": 2153572}", "2153572"},
                 {&scheduler_grid5000, "{\"uid\": null}", NULL},
                 {&scheduler_grid5000, "{\"uid\": 21", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char id[SCHEDULER_ID_SIZE] = "";
        assert_int_equal(cases[i].scheduler->read_id(cases[i].output, id), cases[i].id != NULL);
        if (cases[i].id)
            assert_string_equal(id, cases[i].id);
    }
}
