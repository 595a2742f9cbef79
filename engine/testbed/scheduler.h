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
    double at_most_wait; /* seconds; 0: as long as it takes */
    double extend;       /* seconds more that are asked for once the job runs; 0: none */
    double checkpoint;   /* seconds before its end that the job gets a signal; 0: it gets none */
    char *login;         /* [user@]host[:port] that the commands run on; NULL: this machine */
    /* As struct http_settings has them, absolute. With an api, which needs no login, the scheduler's commands
     * are requests (frontend.h). */
    char *api, *credentials, *authority;
    const char *user; /* who asks, as read_user() has it; NULL: that need not be known */
    char *queue, *account, *constraint, *reservation, *cluster, *resources, *container; /* NULL: not said */
    struct bind_texts types, options;
    struct grid5000_resources {
        char *site, *environment;  /* NULL: what nodes have by default */
        char *key;                 /* the file of a public key, absolute; not NULL with an environment */
        int64_t version;           /* of the environment; 0: the newest */
        int64_t at_least;          /* nodes, of those that are wanted; 0: all */
        int64_t vlan;              /* that deployed nodes are put into; 0: none */
        int sudo;                  /* let root in by sudo-g5k */
        struct bind_texts monitor; /* metrics */
    } grid5000;
};

struct testbed_settings {
    const struct scheduler *scheduler;
    struct access_settings access;
    struct scheduler_resources resources;
};

/* Appends a word to a command. */
void scheduler_word(struct bind_texts *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The member KEY of an answer: "", and 0, where it is null, not there or of another kind; numbers above 0. */
const char *scheduler_text(const struct document_node *node, const char *key);
int64_t scheduler_number(const struct document_node *node, const char *key);

/* An option of a program's that a campaign must not give. */
struct scheduler_option {
    const char *name;     /* "--array", which its beginnings mean, too */
    char letter;          /* of its short form; 0: it has none */
    const char *expected; /* instead */
};
/* As the .expect of a bind_field: what was expected instead of WORD by the one of so many options that it is;
 * NULL: none. FLAGS: letters of options without values, which others may follow ("-Ha4"). */
const char *scheduler_expect_option(const struct scheduler_option *refused, size_t count, const char *flags,
                                    const char *word);
#define SCHEDULER_ONE_JOB "an option that leaves it one job: several side by side are several testbeds"

/* The JSON object that PROGRAM printed, among lines that a login shell, say, has printed: the first that
 * begins a line. 1; 0: no line begins one, *RET stays; -EBADMSG. */
int scheduler_parse_object(const char *program, const char *output, size_t length, struct document **ret,
                           struct failure *failure);

/* Of several jobs of one name the last of these counts: those that are over stay listed for a while. */
enum scheduler_job_state {
    SCHEDULER_JOB_NONE,
    SCHEDULER_JOB_OVER,
    SCHEDULER_JOB_ENDING, /* what comes of it is not known yet: it may wait again */
    SCHEDULER_JOB_WAITING,
    SCHEDULER_JOB_RUNNING
};

enum { SCHEDULER_ID_SIZE = 24, SCHEDULER_NODES_MAX = 65536, SCHEDULER_WALLTIME_MAX = 366 * 86400 /* s */ };

/* The number of a job, above 0, that TEXT begins with, and that ends with TEXT or before one of the
 * characters ENDS. False: there is none, and RET stays as it is. */
bool scheduler_take_id(const char *text, const char *ends, char ret[static SCHEDULER_ID_SIZE]);

/* Of a bind_field: names that become a part of a request, a path or a query. */
const char *scheduler_expect_name(const char *key, const char *value);
/* A value is a date and a time of day, as OAR reserves for; otherwise what was expected. */
const char *scheduler_oar_expect_date(const char *key, const char *value);

struct scheduler_job {
    char id[SCHEDULER_ID_SIZE];
    enum scheduler_job_state state;
    bool is_starting; /* one that waits, and is about to run */
    char reason[256]; /* why it waits or is over, in the scheduler's words; or "" */
    int64_t start_s;  /* when it began, since 1970; 0: not known */
    int64_t end_s;    /* when its time is up, since 1970; 0: not known */
    struct host_list nodes;
};

/* FOUND becomes *RET, unless *RET counts more (a job that runs, beside one that is over); the other is
 * cleared. */
void scheduler_take_job(struct scheduler_job *found, struct scheduler_job *ret);

/* What a stage of a scheduler's own works with: how the campaign wants the job, and the job. */
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
    bool starts_late;     /* no job in its first 2 s, whatever is free */
    bool ends_for_good;   /* a job that is ending does not wait again */
    /* When a campaign is read: refuses settings that do not go together. NULL: nothing. */
    int (*check_settings)(struct testbed_settings *settings, const struct testbed_written *written,
                          struct failure *failure);
    /* Just before a job is submitted: refuses what no job can be made of any more. NULL: nothing. */
    int (*check)(const struct scheduler_resources *resources, struct failure *failure);
    /* The job runs COMMAND, a line for a shell, and prints into the file OUTPUT; NULL: it only waits. */
    void (*submit)(const struct scheduler_resources *resources, const char *name, const char *command,
                   const char *output, struct bind_texts *words);
    /* The job's number from what submitting printed; false: there is none. */
    bool (*read_id)(const char *output, char id[static SCHEDULER_ID_SIZE]);
    /* Where all users' jobs are listed, which they may call as they like: asks who this user is, and what
     * that is in the answer; the caller frees, NULL: it is no answer, "": nobody. Both NULL: the scheduler
     * knows. */
    void (*ask_user)(struct bind_texts *words);
    char *(*read_user)(const char *output);
    /* Asks for the job ID, or, where that is "", for this user's, NAME among them. */
    void (*query)(const struct scheduler_resources *resources, const char *id, const char *name,
                  struct bind_texts *words);
    /* Finds, in what the query printed, the job ID, or the one called NAME where that is "". What is not
     * there has the state SCHEDULER_JOB_NONE. -EBADMSG with FAILURE for what is no answer. Where something of
     * the job cannot be read, such as its nodes, RET has its number and its state all the same. */
    int (*read_job)(const char *output, size_t length, const char *id, const char *name,
                    struct scheduler_job *ret, struct failure *failure);
    /* Asks for all that there is to know of the job ID, for the record. NULL: as query(). */
    void (*describe)(const char *id, struct bind_texts *words);
    /* Deletes the job ID, if it is called NAME; NULL: whatever it is called. */
    void (*cancel)(const struct scheduler_resources *resources, const char *id, const char *name,
                   struct bind_texts *words);
    /* Asks for more time for a job that runs; how much of it is granted is seen in its end. NULL: no such. */
    void (*extend)(double duration, const char *id, struct bind_texts *words);
    /* The job called NAME, where this process runs in it, by its environment: for schedulers that nodes
     * cannot ask. 1: this is it; 0: it is not. NULL: nodes can. */
    int (*find_own)(const char *name, struct scheduler_job *ret, struct failure *failure);
    /* Of the environment: the number and the name of the job that a process runs in. NULL: no engine can be
     * in one. */
    const char *job_variable, *name_variable;
    const char *launcher; /* its own program that leads to nodes: "srun" */
    /* Of that launcher: what leads into the job from outside of it, to start an agent or to attach to it.
     * WORDS is changed in place. */
    void (*enter)(const struct scheduler_resources *resources, const char *id, bool is_start,
                  struct bind_texts *words);
    /* As the testbed's own asks(). NULL: nothing. */
    char *(*asks)(const struct scheduler_resources *resources, const char *control);

    /* ---- stages of its own; each may be NULL */

    /* Before a job is submitted: asks whether the site, cluster and environment of the campaign exist. */
    int (*inquire)(const struct scheduler_stage *stage, struct failure *failure);
    /* Once the job runs: makes its nodes ready. It may take nodes off the job's, and say how they are reached
     * ([user@]host). Done again, by another engine, it must come to the same. */
    int (*prepare)(const struct scheduler_stage *stage, struct failure *failure);
    /* As the testbed's own. */
    void (*collect)(const struct scheduler_stage *stage);
};

extern const struct scheduler scheduler_slurm, scheduler_oar, scheduler_oar_rest, scheduler_grid5000;

/* As scheduler_oar has it: oarsh asks its environment which job it is for. */
void scheduler_oar_enter(const struct scheduler_resources *resources, const char *id, bool is_start,
                         struct bind_texts *words);
/* What both of OAR's own and Grid'5000's interfaces have. The resources of a job, in oarsub's words; the
 * caller frees. */
char *scheduler_oar_resources(const struct scheduler_resources *resources);
/* A request (frontend.h) with BODY, which is freed; NULL: none. */
void scheduler_oar_request(struct bind_texts *words, const char *method, const char *path, cJSON *body);
/* The number KEY of an answer; false: there is none. */
bool scheduler_oar_read_id(const char *output, const char *key, char id[static SCHEDULER_ID_SIZE]);
/* The keys of a job's number, of when it began, and of its nodes. NUMBER is NULL: the jobs are an object with
 * the numbers as keys. */
struct scheduler_oar_keys {
    const char *number, *start, *nodes;
};
/* Reads JOB, which has the number ID. -EBADMSG with FAILURE: ID is no number. */
int scheduler_oar_read_job(const struct scheduler_oar_keys *keys, const char *id,
                           const struct document_node *job, struct scheduler_job *ret,
                           struct failure *failure);
/* As the scheduler's read_job(), from JOBS, a list or an object; NULL: there are none. */
int scheduler_oar_read_jobs(const struct scheduler_oar_keys *keys, const struct document_node *jobs,
                            const char *id, const char *name, struct scheduler_job *ret,
                            struct failure *failure);
/* Reports a sentence to whoever reserves. */
void scheduler_report(const struct testbed_request *request, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* As the testbed's own functions of these names. */
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
