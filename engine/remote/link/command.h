/*
 * A program that runs on a node, with its three streams. Its arguments are a vector that is passed to exec
 * unchanged, never through a shell. The program has a session and a process group of its own; when it ends,
 * other processes of its group are ended, too.
 *
 *     const char *argv[] = {"./kernel", "--precision", "double", NULL};
 *     unsigned pu = 3;
 *     remote_command_start(link, &(struct remote_command_specification){.arguments = argv, .pus = &pu,
 * .pu_count = 1, .input = REMOTE_INPUT_STREAM, .coalesce_ms = 50}, &callbacks, context, &command, failure);
 *     remote_command_write(command, rows, length, NULL, failure);       more of them in on_drain
 *     remote_command_close_input(command, failure);
 *
 * Streaming many rows in bounded memory: write until `queued` is large enough, and continue when on_drain is
 * called, at the low mark.
 *
 * The agent enforces the time limits of commands. If it does not, the link fails 2 minutes later.
 */
#ifndef ASSAY_LINK_COMMAND_H
#define ASSAY_LINK_COMMAND_H

#include "engine/foundation/failure.h"
#include "engine/remote/link/link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct remote_command;

enum remote_input { REMOTE_INPUT_NULL, REMOTE_INPUT_STREAM };
enum remote_output {
    REMOTE_OUTPUT_STREAM, /* passed to on_output */
    REMOTE_OUTPUT_NULL,   /* /dev/null */
    REMOTE_OUTPUT_MERGE,  /* for stderr only: to where stdout goes, as 2>&1 */
};
enum remote_stream { REMOTE_STDOUT = 1, REMOTE_STDERR = 2 };

enum { REMOTE_COMMANDS_LIMIT = 1024 };        /* programs that one agent runs at once */
#define REMOTE_INPUT_LIMIT ((size_t)64 << 20) /* most bytes that wait for one program's stdin */
#define REMOTE_LOW_MARK ((size_t)64 << 10)    /* the low mark, when the specification has none */

/* Idle limits of commands that copy files to a node or from it: longer than a disk takes to write its cache.
 */
enum { REMOTE_FILES_IDLE_LIMIT_MS = 120 * 1000, REMOTE_TREE_IDLE_LIMIT_MS = 600 * 1000 };

struct remote_command_specification {
    const char *const *arguments;   /* ended by NULL; [0] is looked up in PATH unless it has a slash */
    const char *const *environment; /* variables to set, "NAME=VALUE", or to remove, "NAME"; NULL: none */
    const char *folder;  /* working directory, below the agent's run directory; NULL: the run directory */
    const unsigned *pus; /* logical CPUs that it is bound to before exec; none: the agent's affinity */
    size_t pu_count;
    enum remote_input input;
    enum remote_output output, error;
    uint64_t output_limit, error_limit; /* bytes passed on; more are counted and dropped; 0: no limit */
    uint64_t timeout_ms;                /* time limit, after it SIGTERM, the grace, SIGKILL; 0: none */
    uint64_t idle_limit_ms; /* the engine kills it when it has not printed or read for so long; 0: never */
    unsigned grace_ms;      /* between SIGTERM and SIGKILL; 0: 2,000 */
    unsigned coalesce_ms; /* output is sent so often, to wake the agent seldom; at most 60,000; 0: at once */
    size_t low_mark;      /* bytes in the queue at which on_drain is called; 0: REMOTE_LOW_MARK */
};

struct remote_start {
    pid_t pid;            /* on the node; the process group has the same number */
    int64_t wall_ns;      /* just before fork, on the node's clock: since 1970 */
    int64_t monotonic_ns; /* the same by CLOCK_MONOTONIC, valid on that node in that boot only */
};

struct remote_exit {
    bool signalled;
    bool core_dumped;
    int code;            /* exit status, or signal number */
    bool timed_out;      /* ended by the time limit, or by the idle limit */
    uint64_t stalled_ms; /* the idle limit that ended it; 0: it did not */
    /* It could not be ended, because it has another user (sudo) or hangs in the kernel, and may still run;
     * the code is 255 and has no meaning. */
    bool abandoned;
    bool left_others;                   /* other processes of its group outlived it, and were ended */
    bool output_cut, error_cut;         /* bytes beyond the limit were dropped */
    uint64_t output_bytes, error_bytes; /* bytes that it wrote, dropped ones included */
    uint64_t input_bytes;               /* bytes that were written to its stdin */
    int64_t wall_ns, monotonic_ns;      /* when the agent noticed its end */
    int64_t user_us, system_us;         /* CPU time, with that of descendants that it waited for */
    uint64_t rss_peak_bytes;
};

struct remote_command_callbacks {
    void (*on_started)(struct remote_command *command, const struct remote_start *start, void *context);
    void (*on_output)(struct remote_command *command, enum remote_stream stream, const char *bytes,
                      size_t length, void *context);
    /* Called when the queue for stdin has fallen from above the low mark to it or below. */
    void (*on_drain)(struct remote_command *command, void *context);
    /* Called once, as the last. Either EXIT (with any exit status) or FAILURE is not NULL. FAILURE has the
     * kind FAILURE_EXPERIMENT where the node could not start the program, with the code of exec or of the
     * steps before it (-ENOENT, -EACCES, -EINVAL for PUs that do not exist, ...), and the link is still
     * usable; FAILURE_SYSTEM where the link has ended, and the program's end is unknown. */
    void (*on_exit)(struct remote_command *command, const struct remote_exit *exit,
                    const struct failure *failure, void *context);
};

/* Starts a program. The specification and the callbacks are copied; the caller frees the command. A
 * specification beyond a limit fails at once with FAILURE_EXPERIMENT, a closed link with FAILURE_SYSTEM. */
int remote_command_start(struct agent_link *link, const struct remote_command_specification *specification,
                         const struct remote_command_callbacks *callbacks, void *context,
                         struct remote_command **ret, struct failure *failure);
/* Frees the command; no callback is called any more. A program that still runs is killed (SIGKILL to its
 * group); to end it gently, call remote_command_kill(SIGTERM) and wait for on_exit first. May be called
 * within the command's callbacks. NULL is fine. */
void remote_command_free(struct remote_command *command);
/* As remote_command_free() without killing: the program runs until it ends by itself, gets the queued input,
 * and is ended at the latest with the agent. */
void remote_command_leave(struct remote_command *command);

/* Copies BYTES into the queue for stdin, also before on_started. *RET_QUEUED (may be NULL) is the number of
 * bytes in the queue. -ENOBUFS beyond REMOTE_INPUT_LIMIT; -EPIPE after remote_command_close_input() or
 * on_exit. Bytes that the program does not read are dropped without a failure, as in a pipe. */
int remote_command_write(struct remote_command *command, const void *bytes, size_t length, size_t *ret_queued,
                         struct failure *failure);
size_t remote_command_queued(const struct remote_command *command);
/* Closes stdin after the queued bytes. Twice is fine. */
int remote_command_close_input(struct remote_command *command, struct failure *failure);
/* Sends SIGNAL_NUMBER to the program's process group, without waiting for queued bytes. Does nothing after
 * its end. */
int remote_command_kill(struct remote_command *command, int signal_number, struct failure *failure);

pid_t remote_command_pid(const struct remote_command *command); /* 0 before on_started */
bool remote_command_ended(const struct remote_command *command);
/* Describes EXIT for a sentence: "exited with status 3", "was killed by signal 9 (Killed)", "ran past its
 * time limit and ..."; returns BUFFER. */
const char *remote_exit_describe(const struct remote_exit *exit, char *buffer, size_t size);

#endif
