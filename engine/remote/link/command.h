/*
 * A program that runs on a node, with its three streams. Arguments are a vector and reach exec as they are:
 * nobody pastes them into a shell line. The program leads a session and process group of its own; when it
 * ends, what is left of its group is ended too.
 *
 *     const char *argv[] = {"./kernel", "--precision", "double", NULL};
 *     unsigned pu = 3;
 *     remote_command_start(link, &(struct remote_command_specification){.arguments = argv, .pus = &pu,
 * .pu_count = 1, .input = REMOTE_INPUT_STREAM, .coalesce_ms = 50}, &callbacks, context, &command, failure);
 *     remote_command_write(command, rows, length, NULL, failure);       more of them in on_drain
 *     remote_command_close_input(command, failure);
 *
 * Streaming many rows in bounded memory: write until `queued` is over what you want ahead of the program, and
 * go on when on_drain says that it has fallen to the low mark.
 *
 * The agent keeps the limits of time. An agent that does not is given up 2 minutes later: the link fails.
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
    REMOTE_OUTPUT_STREAM, /* to on_output */
    REMOTE_OUTPUT_NULL,   /* /dev/null */
    REMOTE_OUTPUT_MERGE,  /* stderr only: where stdout goes, as 2>&1 */
};
enum remote_stream { REMOTE_STDOUT = 1, REMOTE_STDERR = 2 };

enum { REMOTE_COMMANDS_LIMIT = 1024 };        /* programs that one agent runs at once */
#define REMOTE_INPUT_LIMIT ((size_t)64 << 20) /* most bytes that wait for one program's stdin */
#define REMOTE_LOW_MARK ((size_t)64 << 10)    /* the low mark, when the specification has none */

/* Of commands that bring files to a node or from it: as long as a disk may take to write what it has. */
enum { REMOTE_FILES_IDLE_LIMIT_MS = 120 * 1000, REMOTE_TREE_IDLE_LIMIT_MS = 600 * 1000 };

struct remote_command_specification {
    const char *const *arguments;   /* ends with NULL; [0] is looked up in PATH unless it has a slash */
    const char *const *environment; /* additions, "NAME=VALUE"; "NAME" alone takes it away; NULL: none */
    const char *folder;  /* working directory, below the agent's run directory; NULL: the run directory */
    const unsigned *pus; /* pinned to these logical CPUs before exec; none: the agent's own affinity */
    size_t pu_count;
    enum remote_input input;
    enum remote_output output, error;
    uint64_t output_limit,
        error_limit;        /* bytes that are passed on; the rest is counted and dropped; 0: no limit */
    uint64_t timeout_ms;    /* then SIGTERM, the grace, SIGKILL; 0: none */
    uint64_t idle_limit_ms; /* the engine kills it when it has neither printed nor taken input for so long; 0:
                               never */
    unsigned grace_ms;      /* between SIGTERM and SIGKILL; 0: 2,000 */
    unsigned coalesce_ms; /* output may gather for so long, so that the agent seldom wakes; 60,000 at most; 0:
                             at once */
    size_t low_mark;      /* of on_drain; 0: REMOTE_LOW_MARK */
};

struct remote_start {
    pid_t pid;            /* on the node; the process group has the same number */
    int64_t wall_ns;      /* the node's clocks just before fork: since 1970 */
    int64_t monotonic_ns; /* and CLOCK_MONOTONIC, which only means something on that node in that boot */
};

struct remote_exit {
    bool signalled;
    bool core_dumped;
    int code;            /* exit status, or signal number */
    bool timed_out;      /* the timeout, or the limit of standing still, ended it */
    uint64_t stalled_ms; /* it was the latter, and so long; 0: it was not */
    bool abandoned;   /* it could not be ended, for it has another user (sudo) or hangs in the kernel, and may
                         run on; the code is 255 and says nothing */
    bool left_others; /* processes of its group were still there when it ended; they were ended too */
    bool output_cut, error_cut;         /* a limit was passed */
    uint64_t output_bytes, error_bytes; /* all that it wrote, dropped bytes included */
    uint64_t input_bytes;               /* what its stdin took */
    int64_t wall_ns, monotonic_ns;      /* when the agent saw its end */
    int64_t user_us, system_us;         /* CPU time, with that of the descendants that it waited for */
    uint64_t rss_peak_bytes;
};

struct remote_command_callbacks {
    void (*on_started)(struct remote_command *command, const struct remote_start *start, void *context);
    void (*on_output)(struct remote_command *command, enum remote_stream stream, const char *bytes,
                      size_t length, void *context);
    /* The stdin bytes that wait on this side have fallen to the low mark or below, having been above. */
    void (*on_drain)(struct remote_command *command, void *context);
    /* Once, and last. EXIT is NULL if it could not be started, or if its end is unknown because the link
     * ended: then FAILURE says what happened, and is NULL otherwise (whatever its exit status). Its kind
     * tells the two apart: FAILURE_EXPERIMENT when the node would not start it, with what exec and what goes
     * before it gave as code (-ENOENT, -EACCES, -EINVAL for PUs that are not there, ...), and the link is as
     * it was; FAILURE_SYSTEM when the link has ended. */
    void (*on_exit)(struct remote_command *command, const struct remote_exit *exit,
                    const struct failure *failure, void *context);
};

/* The specification and the callbacks are copied. The caller frees the command. A specification that breaks a
 * limit is a FAILURE_EXPERIMENT too; no connection is a FAILURE_SYSTEM. */
int remote_command_start(struct agent_link *link, const struct remote_command_specification *specification,
                         const struct remote_command_callbacks *callbacks, void *context,
                         struct remote_command **ret, struct failure *failure);
/* If it is still running it is killed (SIGKILL to its group, at once) and no callback is called any more. To
 * end it gently, remote_command_kill(SIGTERM) and wait for on_exit before freeing it. May be called from the
 * command's own callbacks. NULL is fine. */
void remote_command_free(struct remote_command *command);
/* The same of one that is not killed: it runs on until it ends by itself, gets what is queued for its input,
 * and is ended at the latest when the agent leaves. */
void remote_command_leave(struct remote_command *command);

/* Copies BYTES into the queue for stdin; before on_started is fine. RET_QUEUED (may be NULL): how many bytes
 * wait on this side now. -ENOBUFS over REMOTE_INPUT_LIMIT; -EPIPE after close_input or on_exit. What the
 * program never reads is dropped without a failure, as in a pipe to a program that has ended: its exit tells.
 */
int remote_command_write(struct remote_command *command, const void *bytes, size_t length, size_t *ret_queued,
                         struct failure *failure);
size_t remote_command_queued(const struct remote_command *command);
/* End of file for stdin, after what is queued. Twice is fine. */
int remote_command_close_input(struct remote_command *command, struct failure *failure);
/* SIGNAL_NUMBER to its whole process group, now, ahead of no bytes and waiting for none. Fine after its end.
 */
int remote_command_kill(struct remote_command *command, int signal_number, struct failure *failure);

pid_t remote_command_pid(const struct remote_command *command); /* 0 before on_started */
bool remote_command_ended(const struct remote_command *command);
/* "exited with status 3", "was killed by signal 9 (Killed)", "ran past its time limit ...", "could
 * not be ended ...": for a sentence.
 */
const char *remote_exit_describe(const struct remote_exit *exit, char *buffer, size_t size);

#endif
