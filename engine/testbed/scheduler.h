/*
 * Testbeds that are batch schedulers: a job is submitted, waited for, asked for its nodes, and deleted. What
 * differs between Slurm and OAR is a struct scheduler; the rest is here.
 *
 * A job is found again by its name, which holds the run's identifier: an engine that died after submitting,
 * whether or not it had time to write the job's number down, finds its job when the run is resumed.
 */
#ifndef ASSAY_TESTBED_SCHEDULER_H
#define ASSAY_TESTBED_SCHEDULER_H

#include "engine/foundation/host-list.h"
#include "engine/testbed/access.h"

#include <stdarg.h>

/* What a campaign says under the scheduler's key; the scheduler's fields say which of them it has. */
struct scheduler_resources {
    int64_t nodes;
    double walltime;     /* seconds */
    double at_most_wait; /* longest wait for the job to start, seconds; 0: without limit */
    double extend;       /* seconds to ask for in addition once the job runs; 0: none */
    double checkpoint;   /* seconds before its end at which the job gets a signal; 0: no signal */
    char *login;         /* [user@]host[:port] that the commands run on; NULL: this machine */
    /* The members of struct http_settings; the files are absolute paths. With an api the scheduler is asked
     * by requests (frontend.h) instead of commands, without a login. */
    char *api, *credentials, *authority;
    const char *user; /* this user's name from read_user(); NULL: not needed */
    char *queue, *account, *constraint, *reservation, *cluster, *resources, *container; /* NULL: not said */
    struct bind_texts types, options;
    struct grid5000_resources {
        char *site, *environment;  /* environment NULL: the nodes' standard system */
        char *key;                 /* file of a public key, absolute; set where environment is */
        int64_t version;           /* of the environment; 0: the newest */
        int64_t at_least;          /* fewest nodes that must be deployed; 0: all */
        int64_t vlan;              /* number of the VLAN for deployed nodes; 0: none */
        int sudo;                  /* let root in by sudo-g5k */
        struct bind_texts monitor; /* names of metrics to record */
    } grid5000;
};

struct testbed_settings {
    const struct scheduler *scheduler;
    struct access_settings access;
    struct scheduler_resources resources;
};

/* Appends one formatted word to a command. */
void scheduler_word(struct bind_texts *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The member KEY of an answer: its text, or a number above 0. A member that is missing, null or of another
 * kind gives "" and 0. */
const char *scheduler_text(const struct document_node *node, const char *key);
int64_t scheduler_number(const struct document_node *node, const char *key);

/* An option of the submitting program that a campaign must not give. */
struct scheduler_option {
    const char *name;     /* "--array"; its abbreviations are refused, too */
    char letter;          /* of the short form; 0: none */
    const char *expected; /* what to write instead, for the message */
};
/* For the .expect of a bind_field: refuses options that a campaign must not give. Returns the text of what is
 * expected instead of WORD where WORD is one of the COUNT options REFUSED, else NULL. FLAGS: letters of short
 * options without values, which other letters may follow in one word ("-Ha4"). */
const char *scheduler_expect_option(const struct scheduler_option *refused, size_t count, const char *flags,
                                    const char *word);
#define SCHEDULER_ONE_JOB "an option that leaves it one job: several side by side are several testbeds"

/* Finds the JSON object that PROGRAM printed among other lines (of a login shell, say): the first that begins
 * a line. Returns 1 with the object in *RET; 0, *RET unchanged, where no line begins an object; -EBADMSG with
 * FAILURE where none can be parsed. */
int scheduler_parse_object(const char *program, const char *output, size_t length, struct document **ret,
                           struct failure *failure);

/* In order of preference: where several jobs have one name, the job with the last of these states is used.
 * Jobs that are over stay listed for a while. */
enum scheduler_job_state {
    SCHEDULER_JOB_NONE,
    SCHEDULER_JOB_OVER,
    SCHEDULER_JOB_ENDING, /* the next state is not known: over, or waiting again */
    SCHEDULER_JOB_WAITING,
    SCHEDULER_JOB_RUNNING
};

enum { SCHEDULER_ID_SIZE = 24, SCHEDULER_NODES_MAX = 65536, SCHEDULER_WALLTIME_MAX = 366 * 86400 /* s */ };

/* Reads the job number, above 0, that TEXT begins with. The number must end at the end of TEXT or before one
 * of the characters ENDS; otherwise returns false and leaves RET unchanged. */
bool scheduler_parse_id(const char *text, const char *ends, char ret[static SCHEDULER_ID_SIZE]);

/* For the .expect of bind_fields whose value becomes a part of a request's path or query. NULL: VALUE is a
 * name of letters, digits, '-', '_' and '.'; otherwise the text of what is expected. */
const char *scheduler_expect_name(const char *key, const char *value);
/* For the .expect of bind_fields that are dates with a time of day, as OAR's reservations. NULL: VALUE is
 * one; otherwise the text of what is expected. */
const char *scheduler_oar_expect_date(const char *key, const char *value);

struct scheduler_job {
    char id[SCHEDULER_ID_SIZE];
    enum scheduler_job_state state;
    bool is_starting; /* the job waits, and is about to run */
    char reason[256]; /* why it waits or is over, in the scheduler's words; or "" */
    int64_t start_s;  /* when it began, since 1970; 0: not known */
    int64_t end_s;    /* when its time is up, since 1970; 0: not known */
    struct host_list nodes;
};

/* Moves FOUND into *RET, unless the state of *RET is preferred (enum scheduler_job_state). The other job is
 * cleared, and FOUND is empty afterwards. */
void scheduler_prefer_job(struct scheduler_job *found, struct scheduler_job *ret);

/* The arguments of a scheduler's own stages (inquire, prepare, collect): what the campaign asks for, and the
 * job. All borrowed. */
struct frontend;
struct scheduler_stage {
    const struct testbed_settings *settings;
    const struct testbed_request *request;
    struct frontend *frontend;
    struct scheduler_job *job;
};

struct scheduler {
    const char *key;                 /* "slurm" */
    const char *name;                /* for people: "Slurm" */
    const struct bind_field *fields; /* of struct scheduler_resources */
    size_t field_count;
    const char *expected; /* an example of its mapping, for messages */
    const char *api;      /* where the campaign names none; NULL: it needs none */
    bool starts_late;     /* never starts a job within 2 s of submission, even on free nodes */
    bool ends_for_good;   /* a job in SCHEDULER_JOB_ENDING is never queued again */
    /* Called when a campaign is read: refuses settings that do not go together. NULL: no such check. */
    int (*check_settings)(struct testbed_settings *settings, const struct testbed_written *written,
                          struct failure *failure);
    /* Called just before a job is submitted: refuses settings that have become impossible, such as a start
     * time in the past. NULL: no such check. */
    int (*check)(const struct scheduler_resources *resources, struct failure *failure);
    /* Appends the submitting command to WORDS. The job runs COMMAND, a line for a shell, and prints into the
     * file OUTPUT. With COMMAND NULL the job only sleeps until it is deleted. */
    void (*submit)(const struct scheduler_resources *resources, const char *name, const char *command,
                   const char *output, struct bind_texts *words);
    /* Reads the job's number from the output of the submitting command; false: there is no number in it. */
    bool (*read_id)(const char *output, char id[static SCHEDULER_ID_SIZE]);
    /* For schedulers that list the jobs of all users, who may choose the same names: ask_user appends the
     * command that asks for this user's name. read_user reads the name from its output; the caller frees it.
     * NULL: the output is no answer; "": nobody is logged in. Both members are NULL where the scheduler lists
     * this user's jobs only. */
    void (*ask_user)(struct bind_texts *words);
    char *(*read_user)(const char *output);
    /* Appends the command that asks for job ID or, where ID is "", for this user's jobs, among them the job
     * called NAME. */
    void (*query)(const struct scheduler_resources *resources, const char *id, const char *name,
                  struct bind_texts *words);
    /* Finds in the output of query() the job ID or, where ID is "", the job called NAME. A job that is not
     * there has the state SCHEDULER_JOB_NONE. -EBADMSG with FAILURE where the output is no answer. Where a
     * part of the job cannot be read, such as its nodes, the call fails but RET has the job's number and
     * state. */
    int (*read_job)(const char *output, size_t length, const char *id, const char *name,
                    struct scheduler_job *ret, struct failure *failure);
    /* Appends the command that prints all details of job ID, for the archive. NULL: query() is used. */
    void (*describe)(const char *id, struct bind_texts *words);
    /* Appends the command that deletes job ID if it is called NAME; with NAME NULL, whatever its name. */
    void (*cancel)(const struct scheduler_resources *resources, const char *id, const char *name,
                   struct bind_texts *words);
    /* Appends the command that asks for DURATION seconds more for a running job. The granted part shows in
     * the job's end_s. NULL: the scheduler cannot extend jobs. */
    void (*extend)(double duration, const char *id, struct bind_texts *words);
    /* For schedulers whose commands do not work on nodes: finds, by environment variables, whether this
     * process runs in the job called NAME. 1: it does, and *RET is the job; 0: it does not. NULL: the
     * commands work on nodes. */
    int (*find_own)(const char *name, struct scheduler_job *ret, struct failure *failure);
    /* Environment variables with the number and the name of the job that a process runs in. NULL: the engine
     * cannot run inside a job. */
    const char *job_variable, *name_variable;
    const char *launcher; /* the scheduler's own program that runs commands on nodes: "srun" */
    /* Changes WORDS, a command of that launcher, in place so that it enters job ID from outside of the job.
     * IS_START: the command starts an agent; otherwise it attaches to one. */
    void (*enter)(const struct scheduler_resources *resources, const char *id, bool is_start,
                  struct bind_texts *words);
    /* As the backend's asks(). NULL: jobs change no control. */
    char *(*asks)(const struct scheduler_resources *resources, const char *control);

    /* ---- stages of its own; each may be NULL */

    /* Called before a job is submitted: checks that the site, cluster and environment of the campaign exist.
     */
    int (*inquire)(const struct scheduler_stage *stage, struct failure *failure);
    /* Called once the job runs: makes its nodes ready. It may remove nodes from the job's list, and change
     * their names to how they are reached ([user@]host). It must be repeatable: a second engine that takes
     * the job over calls it again, and must get the same nodes. */
    int (*prepare)(const struct scheduler_stage *stage, struct failure *failure);
    /* As the backend's collect(). */
    void (*collect)(const struct scheduler_stage *stage);
};

extern const struct scheduler scheduler_slurm, scheduler_oar, scheduler_oar_rest, scheduler_grid5000;

/* The enter() of scheduler_oar and of its REST interface: sets the environment variable by which oarsh knows
 * the job. */
void scheduler_oar_enter(const struct scheduler_resources *resources, const char *id, bool is_start,
                         struct bind_texts *words);
/* ---- shared by OAR's commands, OAR's REST interface and Grid'5000's */

/* The resources of a job as oarsub's option -l has them; the caller frees. */
char *scheduler_oar_resources(const struct scheduler_resources *resources);
/* Appends a request (frontend.h) to WORDS. BODY is freed; NULL: the request has no body. */
void scheduler_oar_request(struct bind_texts *words, const char *method, const char *path, cJSON *body);
/* Reads a job number, the member KEY of the JSON object OUTPUT; false: there is none. */
bool scheduler_oar_read_id(const char *output, const char *key, char id[static SCHEDULER_ID_SIZE]);
/* The JSON keys of a job's number, of its start time and of its nodes. NUMBER is NULL where the jobs are an
 * object with the numbers as keys. */
struct scheduler_oar_keys {
    const char *number, *start, *nodes;
};
/* Reads JOB, whose number is ID, into *RET. -EBADMSG with FAILURE where ID is no number. */
int scheduler_oar_read_job(const struct scheduler_oar_keys *keys, const char *id,
                           const struct document_node *job, struct scheduler_job *ret,
                           struct failure *failure);
/* As the scheduler's read_job(), from the parsed list or object JOBS; NULL: there are no jobs. */
int scheduler_oar_read_jobs(const struct scheduler_oar_keys *keys, const struct document_node *jobs,
                            const char *id, const char *name, struct scheduler_job *ret,
                            struct failure *failure);
/* Passes a sentence to REQUEST's report(), where it has one. */
void scheduler_report(const struct testbed_request *request, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* The members of struct testbed_backend (testbed.h) for all schedulers. */
int scheduler_bind(const struct scheduler *scheduler, const struct testbed_written *written,
                   struct testbed_settings **ret, struct failure *failure);
void scheduler_free_settings(struct testbed_settings *settings);
size_t scheduler_expected_nodes(const struct testbed_settings *settings);
bool scheduler_kills_agents(const struct testbed_settings *settings);
char *scheduler_asks(const struct testbed_settings *settings, const char *control);
int scheduler_describe(const struct testbed_settings *settings, struct text *ret);
void scheduler_resolve(const struct testbed_settings *settings, cJSON *object);
int scheduler_reserve(const struct testbed_settings *settings, const struct testbed_request *request,
                      struct testbed **ret, struct failure *failure);
const char *scheduler_id(const struct testbed *testbed);
int scheduler_wait(struct testbed *testbed, struct failure *failure);
size_t scheduler_node_count(const struct testbed *testbed);
const char *scheduler_node_name(const struct testbed *testbed, size_t node);
int scheduler_connect(struct testbed *testbed, size_t node, struct transport **ret, struct failure *failure);
struct agent_link_policy scheduler_policy(const struct testbed *testbed);
int64_t scheduler_deadline(const struct testbed *testbed);
void scheduler_collect(struct testbed *testbed);
void scheduler_ask(struct testbed *testbed);
int scheduler_release(struct testbed *testbed, struct failure *failure);
void scheduler_leave(struct testbed *testbed); /* NULL is fine */
int scheduler_reclaim(const struct testbed_settings *settings, const struct testbed_request *request,
                      struct failure *failure);
int scheduler_submit(const struct testbed_settings *settings, const struct testbed_request *request,
                     const char *const *command, const char *output, struct failure *failure);

#define SCHEDULER_BACKEND(NAME, SUMMARY, BIND)                                                               \
    {                                                                                                        \
        .name = (NAME), .summary = (SUMMARY), .bind = (BIND), .free_settings = scheduler_free_settings,      \
        .expected_nodes = scheduler_expected_nodes, .kills_agents = scheduler_kills_agents,                  \
        .asks = scheduler_asks, .describe = scheduler_describe, .resolve = scheduler_resolve,                \
        .reserve = scheduler_reserve, .id = scheduler_id, .wait = scheduler_wait,                            \
        .node_count = scheduler_node_count, .node_name = scheduler_node_name, .connect = scheduler_connect,  \
        .policy = scheduler_policy, .agent = access_agent, .deadline = scheduler_deadline,                   \
        .ask = scheduler_ask, .collect = scheduler_collect, .release = scheduler_release,                    \
        .leave = scheduler_leave, .reclaim = scheduler_reclaim, .submit = scheduler_submit,                  \
    }

#endif
