/* What squeue and oarstat print, and what Grid'5000's API answers. */
#include "engine/testbed/scheduler.h"
#include "engine/testbed/scheduler-environment.h"
#include "tests/test.h"

#include <sys/wait.h>
#include <unistd.h>

static const struct answer {
    const char *label;
    const struct scheduler *scheduler;
    const char *output, *id, *name;
    int result;
    enum scheduler_job_state state;
    const char *found_id, *reason, *nodes; /* folded */
    int64_t end_s;
} answers[] = {
    {"waits", &scheduler_slurm, "8|PENDING|N/A||assay-u|Priority\n", "", "assay-u", 0, SCHEDULER_JOB_WAITING,
     "8", "Priority", "", 0},
    {"runs", &scheduler_slurm, "8|RUNNING|1795454502|dahu-[1-2,7]|n|None\n", "8", "assay-u", 0,
     SCHEDULER_JOB_RUNNING, "8", "", "dahu-[1-2,7]", 1795454502},
    {"runs on nodes with two numbers and a domain", &scheduler_slurm,
     "8|RUNNING|5|rack[1-2]n[01-02].site,gpu1.site|n|None\n", "8", "n", 0, SCHEDULER_JOB_RUNNING, "8", "",
     "gpu1.site,rack[1-2]n[01-02].site", 5},
    {"nodes boot", &scheduler_slurm, "8|CONFIGURING|5|a1|n|None\n", "8", "n", 0, SCHEDULER_JOB_WAITING, "8",
     "", "", 5},
    {"no end", &scheduler_slurm, "8|RUNNING|NONE|a1|n|None\n", "8", "n", 0, SCHEDULER_JOB_RUNNING, "8", "",
     "a1", 0},
    {"a reason of many words", &scheduler_slurm, "8|PENDING|N/A||n|(a|b) c\n", "8", "n", 0,
     SCHEDULER_JOB_WAITING, "8", "(a|b) c", "", 0},
    {"among words of a login shell", &scheduler_slurm,
     "Welcome | to | the | front | end\n8|RUNNING|5|a1|n|\n", "8", "n", 0, SCHEDULER_JOB_RUNNING, "8", "",
     "a1", 5},
    {"of two the one that runs counts", &scheduler_slurm,
     "9|RUNNING|5|a1|n|None\n8|TIMEOUT|5|a1|n|TimeLimit\n", "", "n", 0, SCHEDULER_JOB_RUNNING, "9", "", "a1",
     5},
    {"over", &scheduler_slurm, "8|NODE_FAIL|5|a1|n|None\n", "8", "n", 0, SCHEDULER_JOB_OVER, "8", "NODE_FAIL",
     "", 5},
    {"not there", &scheduler_slurm, "", "8", "n", 0, SCHEDULER_JOB_NONE, "", "", "", 0},
    {"another one", &scheduler_slurm, "9|RUNNING|5|a1|n|None\n", "8", "n", 0, SCHEDULER_JOB_NONE, "", "", "",
     0},
    {"nodes that are none", &scheduler_slurm, "8|RUNNING|5|a[1-|n|None\n", "8", "n", -EINVAL,
     SCHEDULER_JOB_RUNNING, "8", "", "", 5},
    {"no end is known yet", &scheduler_slurm, "8|RUNNING|Unknown|node[1-3,7],gpu01|n|None\n", "8", "n", 0,
     SCHEDULER_JOB_RUNNING, "8", "", "gpu01,node[1-3,7]", 0},
    {"ends", &scheduler_slurm, "8|COMPLETING|5|a1|n|None\n", "8", "n", 0, SCHEDULER_JOB_ENDING, "8",
     "COMPLETING", "", 5},
    {"ends, and the next one waits", &scheduler_slurm, "8|COMPLETING|5|a1|n|None\n9|PENDING|N/A||n|None\n",
     "", "n", 0, SCHEDULER_JOB_WAITING, "9", "", "", 0},
    {"of another cluster", &scheduler_slurm, "CLUSTER: c2\n8|RUNNING|5|a1|n|None\n", "8", "n", 0,
     SCHEDULER_JOB_RUNNING, "8", "", "a1", 5},
    {"a part of a heterogeneous job", &scheduler_slurm, "8+0|RUNNING|5|a1|n|None\n8+1|RUNNING|5|a2|n|None\n",
     "8", "n", -EINVAL, SCHEDULER_JOB_RUNNING, "8", "", "", 0},
    {"tasks of an array", &scheduler_slurm, "8_[1-5]|PENDING|N/A||n|Priority\n", "", "n", -EINVAL,
     SCHEDULER_JOB_WAITING, "8", "", "", 0},
    {"a task of an array", &scheduler_slurm, "8_4|RUNNING|5|a1|n|None\n", "8", "n", -EINVAL,
     SCHEDULER_JOB_RUNNING, "8", "", "", 0},
    {"a task of another array", &scheduler_slurm, "88_4|RUNNING|5|a1|n|None\n", "8", "n", 0,
     SCHEDULER_JOB_NONE, "", "", "", 0},
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
     "\"name\": \"n\", \"state\": \"dreaming\", \"message\": \"FIFO\"}]}",
     "", "n", 0, SCHEDULER_JOB_WAITING, "13", "FIFO", "", 0},
    {"Grid'5000, is about to be over", &scheduler_grid5000, "{\"uid\": 12, \"state\": \"finishing\"}", "12",
     "n", 0, SCHEDULER_JOB_OVER, "12", "", "", 0},
    {"Grid'5000, somebody else's", &scheduler_grid5000, "{\"items\": [{\"uid\": 12, \"name\": \"m\"}]}", "",
     "n", 0, SCHEDULER_JOB_NONE, "", "", "", 0},
    {"Grid'5000, a page", &scheduler_grid5000, "<html>", "12", "n", -EBADMSG, SCHEDULER_JOB_NONE, "", "", "",
     0},
    {"Slurm, a number that is none", &scheduler_slurm, "8x|RUNNING|5|a1|None\n", "", "n", 0,
     SCHEDULER_JOB_NONE, "", "", "", 0},
    {"OAR, a number that is none", &scheduler_oar,
     "{\"1; touch\": {\"name\": \"n\", \"state\": \"Waiting\"}}", "", "n", -EBADMSG, SCHEDULER_JOB_NONE, "",
     "", "", 0},
    {"OAR's API, a number that is none", &scheduler_oar_rest,
     "{\"items\": [{\"id\": 1e300, \"name\": \"n\", \"state\": \"Waiting\"}]}", "", "n", -EBADMSG,
     SCHEDULER_JOB_NONE, "", "", "", 0},
    {"OAR, no jobs", &scheduler_oar, "\n", "", "n", 0, SCHEDULER_JOB_NONE, "", "", "", 0},
    {"called as ours is", &scheduler_slurm, "8|RUNNING|5|a1|m|None\n9|PENDING|N/A||n|None\n", "", "n", 0,
     SCHEDULER_JOB_WAITING, "9", "", "", 0},
    {"called otherwise by now", &scheduler_slurm, "8|RUNNING|5|a1|m|None\n", "8", "n", 0,
     SCHEDULER_JOB_RUNNING, "8", "", "a1", 5},
    {"nodes that are an option", &scheduler_slurm, "8|RUNNING|5|-oProxyCommand=x|n|None\n", "", "n", -EINVAL,
     SCHEDULER_JOB_RUNNING, "8", "", "", 5},
    {"OAR, behind and before lines", &scheduler_oar,
     "Welcome to {site}\n{motd} of [today]\n{ \"12\": {\"name\": \"n\", \"state\": \"Waiting\"}}\nBye\n",
     "12", "", 0, SCHEDULER_JOB_WAITING, "12", "", "", 0},
    {"OAR, half of it behind a line", &scheduler_oar, "[motd]\n{\"12\": {\"name\"", "", "n", -EBADMSG,
     SCHEDULER_JOB_NONE, "", "", "", 0},
    {"OAR, no jobs behind a line", &scheduler_oar, "Warning: of [something]\n", "", "n", 0,
     SCHEDULER_JOB_NONE, "", "", "", 0},
    {"OAR, a line instead of a job", &scheduler_oar, "Warning\n", "12", "n", -EBADMSG, SCHEDULER_JOB_NONE, "",
     "", "", 0},
};

TEST(answers_are_read) {
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const struct answer *answer = &answers[i];
        struct scheduler_job job = {0};
        struct text nodes;
        text_init(&nodes, 1000);
        print_message("%s\n", answer->label);
        assert_int_equal(answer->scheduler->read_job(answer->output, strlen(answer->output), answer->id,
                                                     answer->name, &job, &test_failure),
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

/* All words of job_state_string(), src/common/slurm_protocol_defs.c, of 22.05 to 24.11. */
TEST(states_of_slurm_are_known) {
    static const char *const words[][20] = {
        [SCHEDULER_JOB_WAITING] = {"PENDING", "CONFIGURING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD",
                                   "REQUEUE_FED", "SPECIAL_EXIT", "STOPPED", "RESV_DEL_HOLD", "POWER_UP_NODE",
                                   "of a later release"},
        [SCHEDULER_JOB_RUNNING] = {"RUNNING", "RESIZING", "SIGNALING"},
        [SCHEDULER_JOB_ENDING] = {"COMPLETING", "STAGE_OUT"},
        [SCHEDULER_JOB_OVER] = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED",
                                "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "RECONFIG_FAIL", "REVOKED",
                                "TIMEOUT"}};
    for (size_t expected = SCHEDULER_JOB_OVER; expected <= SCHEDULER_JOB_RUNNING; expected++)
        for (const char *const *word = words[expected]; *word; word++) {
            struct scheduler_job job = {0};
            char line[100];
            print_message("%s\n", *word);
            snprintf(line, sizeof line, "8|%s|5|a1|n|None\n", *word);
            assert_int_equal(scheduler_slurm.read_job(line, strlen(line), "8", "n", &job, NULL), 0);
            assert_int_equal(job.state, expected);
            host_list_clear(&job.nodes);
        }
}

static const char *refusal(const struct scheduler *scheduler, const char *word) {
    for (size_t i = 0; i < scheduler->field_count; i++)
        if (strcmp(scheduler->fields[i].key, "options") == 0)
            return scheduler->fields[i].expect("options", word);
    return NULL;
}

TEST(options_that_change_what_a_job_is) {
    enum { WORDS = 24 };
    static const struct {
        const struct scheduler *scheduler;
        const char *bad[WORDS], *good[WORDS];
    } cases[] = {{&scheduler_slurm,
                  {"--array=1-4", "--arr=4", "-a4", "-a", "-Ha4", "--het-group=0", ":", "--clusters=all",
                   "-Mall", "-J", "--time=5", "--nodes", "-N2", "--wait", "-W", "-QW", "--wrap=true"},
                  {"--account=me", "--qos=debug", "--cpu-freq=performance", "--time-min=5", "--nodelist=a",
                   "-A", "--cluster-constraint=x", "--wait-all-nodes=1", "-w", "", "-", "--requeue", "-p"}},
                 {&scheduler_oar,
                  {"--array",
                   "--array=2",
                   "--ARRAY",
                   "--arr",
                   "--array-param-file=x",
                   "--array-param",
                   "-n",
                   "--name=x",
                   "-l",
                   "-lnodes=2",
                   "-rnow",
                   "--resubmit=5",
                   "-I",
                   "-kI",
                   "-C",
                   "-S",
                   "--json",
                   "--j",
                   "-J",
                   "-Y",
                   "-X",
                   "-D",
                   "-V",
                   "-h"},
                  {"--notify", "mail:me", "-k", "--hold", "-t", "--type=deploy", "--project=x", "-p", "-a",
                   "--anterior=5", "--stdout=x", "--signal=12", "", "-i"}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t k = 0; k < WORDS && cases[i].bad[k]; k++)
            if (!refusal(cases[i].scheduler, cases[i].bad[k]))
                fail_msg("%s is not refused", cases[i].bad[k]);
        for (size_t k = 0; k < WORDS && cases[i].good[k]; k++)
            if (refusal(cases[i].scheduler, cases[i].good[k]))
                fail_msg("%s is refused: %s", cases[i].good[k],
                         refusal(cases[i].scheduler, cases[i].good[k]));
    }
}

/* What a shell of the user's has set; values may be of several lines, and no text. */
TEST(programs_of_schedulers_have_an_environment_of_ours) {
    static const char *const cleared[] = {
        "SQUEUE_PARTITION", "SQUEUE_ACCOUNT", "SQUEUE_QOS",        "SQUEUE_LICENSES",
        "SQUEUE_USERS",     "SQUEUE_STATES",  "SQUEUE_FORMAT2",    "SCANCEL_STATE",
        "SBATCH_ARRAY_INX", "SBATCH_WAIT",    "SALLOC_KILL_CMD",   "SLURM_LABELIO",
        "SLURM_STDINMODE",  "SLURM_CLUSTERS", "SLURM_TIME_FORMAT", "SLURMD_DEBUG",
        "SRUN_OUTPUT",      "SINFO_FORMAT",   "OAR_JOB_ID",        "OAR_OARSTAT_OUTPUT_FORMAT"};
    static const char *const kept[] = {"SLURM_CONF",       "SLURM_JWT",   "SLURM_JOB_ID",
                                       "OAR_JOB_KEY_FILE", "OARCONFFILE", "MY_SQUEUE_PARTITION"};
    enum { CLEARED = sizeof cleared / sizeof *cleared, KEPT = sizeof kept / sizeof *kept };
    struct bind_texts words = {0};
    char got[CLEARED + KEPT + 2] = "";
    for (size_t i = 0; i < CLEARED + KEPT; i++)
        assert_int_equal(setenv(i < CLEARED ? cleared[i] : kept[i - CLEARED], "\xff=\nSQUEUE_$(x)=1\nb;c", 1),
                         0);
    const char *const script =
        "for name; do eval \"case \\${$name-none} in none) printf -;; *) printf +;; esac\"; "
        "done";
    bind_texts_add(&words, "sh");
    bind_texts_add(&words, "-c");
    bind_texts_add(&words, script);
    bind_texts_add(&words, "it's");
    for (size_t i = 0; i < CLEARED + KEPT; i++)
        bind_texts_add(&words, i < CLEARED ? cleared[i] : kept[i - CLEARED]);
    struct bind_texts runnable = {0};
    scheduler_environment_words((const char *const *)words.items, &runnable);
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        execvp(runnable.items[0], runnable.items);
        _exit(9);
    }
    close(ends[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], got, sizeof got), CLEARED + KEPT);
    close(ends[0]);
    for (size_t i = 0; i < CLEARED + KEPT; i++)
        if (got[i] != (i < CLEARED ? '-' : '+'))
            fail_msg("%s: %s", i < CLEARED ? cleared[i] : kept[i - CLEARED], got);
    for (size_t i = 0; i < CLEARED + KEPT; i++)
        unsetenv(i < CLEARED ? cleared[i] : kept[i - CLEARED]);
    bind_texts_clear(&words);
    bind_texts_clear(&runnable);
}

TEST(what_is_asked_of_processors) {
    static const struct {
        const char *words[3];
        const char *governor, *frequency, *hyperthreads, *started; /* NULL: nothing */
    } cases[] = {
        {{"--qos=debug"}, NULL, NULL, NULL, NULL},
        {{"--cpu-freq=Performance"}, "performance", NULL, NULL, "--cpu-freq=Performance"},
        {{"--cpu-freq", "high"}, "userspace", NULL, NULL, "--cpu-freq=high"},
        {{"--cpu-freq=2400000"}, "userspace", NULL, NULL, "--cpu-freq=2400000"},
        {{"--cpu-freq=low-high"}, NULL, NULL, NULL, "--cpu-freq=low-high"},
        {{"--cpu-freq=1200000-2400000:OnDemand"},
         "ondemand",
         "1.2GHz..2.4GHz",
         NULL,
         "--cpu-freq=1200000-2400000:OnDemand"},
        {{"--hint=nomultithread"}, NULL, NULL, "off", NULL},
        {{"--hint=compute_bound", "--threads-per-core=1"}, NULL, NULL, "off", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scheduler_resources resources = {0};
        for (size_t k = 0; k < 3 && cases[i].words[k]; k++)
            bind_texts_add(&resources.options, cases[i].words[k]);
        const char *const expected[][2] = {{"governor", cases[i].governor},
                                           {"frequency", cases[i].frequency},
                                           {"hyperthreads", cases[i].hyperthreads},
                                           {"turbo", NULL}};
        for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
            char *found = scheduler_slurm.asks(&resources, expected[k][0]);
            print_message("%s: %s\n", cases[i].words[0], expected[k][0]);
            assert_int_equal(found != NULL, expected[k][1] != NULL);
            if (found)
                assert_string_equal(found, expected[k][1]);
            free(found);
        }
        for (int is_start = 0; is_start < 2; is_start++) {
            struct bind_texts words = {0};
            bind_texts_add(&words, "srun");
            scheduler_slurm.enter(&resources, "8", is_start, &words);
            assert_string_equal(words.items[1], "--jobid=8");
            assert_int_equal(words.count, is_start && cases[i].started ? 3 : 2);
            if (words.count == 3)
                assert_string_equal(words.items[2], cases[i].started);
            bind_texts_clear(&words);
        }
        bind_texts_clear(&resources.options);
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
                 {&scheduler_grid5000, "{\"uid\": 21", NULL},
                 /* Nothing but a number. */
                 {&scheduler_slurm, "12 jobs\n", NULL},
                 {&scheduler_slurm, "0\n", NULL},
                 {&scheduler_oar, "OAR_JOB_ID=1; touch x\n", NULL},
                 {&scheduler_oar, "OAR_JOB_ID=1.5\n", NULL},
                 {&scheduler_oar_rest, "{\"id\": 7}", "7"},
                 {&scheduler_oar_rest, "{\"id\": \"1; touch\"}", NULL},
                 {&scheduler_oar_rest, "{\"id\": 1e300}", NULL},
                 {&scheduler_oar_rest, "{\"id\": 1.0}", NULL},
                 {&scheduler_oar_rest, "{\"id\": -1}", NULL},
                 {&scheduler_oar_rest, "{\"id\": \"123456789012345678901234\"}", NULL},
                 {&scheduler_grid5000, "{\"uid\": \"1/../2\"}", NULL},
                 {&scheduler_grid5000, "{\"uid\": 007}", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char id[SCHEDULER_ID_SIZE] = "";
        assert_int_equal(cases[i].scheduler->read_id(cases[i].output, id), cases[i].id != NULL);
        if (cases[i].id)
            assert_string_equal(id, cases[i].id);
    }
}

/* A job runs what it is given, or only waits. */
TEST(jobs_have_engines) {
    static const struct {
        const struct scheduler *scheduler;
        const char *command, *last, *output;
    } cases[] = {{&scheduler_slurm, NULL, "--wrap=exec sleep 660", "--output=/dev/null"},
                 {&scheduler_slurm, "/a resume /b", "--wrap=exec /a resume /b", "--output=/b.out"},
                 {&scheduler_oar, NULL, "sleep infinity", "--stdout=/dev/null"},
                 {&scheduler_oar, "/a resume /b", "/a resume /b", "--stdout=/b.out"}};
    const struct scheduler_resources resources = {.nodes = 1, .walltime = 600};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bind_texts words = {0};
        cases[i].scheduler->submit(&resources, "assay-1", cases[i].command,
                                   cases[i].command ? "/b.out" : NULL, &words);
        assert_string_equal(words.items[words.count - 1], cases[i].last);
        assert_true(bind_texts_have(&words, cases[i].output));
        bind_texts_clear(&words);
    }
}

TEST(jobs_of_oar_are_signalled_before_their_end) {
    const struct scheduler_resources resources = {.nodes = 1, .checkpoint = 119.5};
    struct bind_texts words = {0};
    scheduler_oar.submit(&resources, "assay-1", "/a resume /b", "/b.out", &words);
    assert_true(bind_texts_have(&words, "--checkpoint=120"));
    bind_texts_clear(&words);
    scheduler_oar_rest.submit(&resources, "assay-1", "/a resume /b", "/b.out", &words);
    assert_says(words.items[2], "\"checkpoint\":\"120\"");
    bind_texts_clear(&words);
}

/* The line passes shells. */
TEST(what_a_shell_could_change_is_refused) {
    static const char *const bad[] = {"/a b/assay", "/a;b", "$HOME", "", "a'b", "*"};
    const struct testbed_settings settings = {.scheduler = &scheduler_slurm};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *const command[] = {"/usr/bin/assay", bad[i], NULL};
        assert_int_equal(
            scheduler_submit(&settings, &(struct testbed_request){0}, command, "/o", &test_failure), -EINVAL);
        assert_says(test_failure.text, "cannot be the command of a job");
    }
}

/* One that is about to run is asked after sooner. */
TEST(jobs_of_oar_that_start_are_known) {
    static const struct {
        const char *state;
        bool is_starting;
    } states[] = {{"Waiting", false},  {"Hold", false},    {"toLaunch", true},
                  {"Launching", true}, {"Running", false}, {"Terminated", false}};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct scheduler_job job = {0};
        char output[64];
        snprintf(output, sizeof output, "{\"12\": {\"state\": \"%s\"}}", states[i].state);
        assert_int_equal(scheduler_oar.read_job(output, strlen(output), "12", "", &job, NULL), 0);
        assert_int_equal(job.is_starting, states[i].is_starting);
        host_list_clear(&job.nodes);
    }
}
