#include "engine/command-line/run/detach.h"

#include "engine/command-line/output.h"
#include "engine/command-line/run/progress.h"
#include "engine/event-loop/event-loop.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/report/shown.h"
#include "engine/run/record/status.h"
#include "engine/run/record/submission.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- A process of its own --------------------------------------------------------------------------------
 */

/* The one message of the engine to the process that started it: the run has begun, or why it has not. */
struct message {
    struct failure failure; /* code 0: none */
    char folder[PATH_MAX];  /* "": there was nothing left to run */
};

struct engine {
    int pipe; /* to who began it; -1 once that knows */
    struct progress progress;
    struct run_observer shown;
};

/* Makes DESCRIPTOR refer to the file PATH, or to /dev/null if it cannot be opened. */
static void redirect(int descriptor, const char *path, int flags) {
    /* O_NONBLOCK: a FIFO in its place is not waited for; it means nothing for a file. */
    int file = open(path, flags | O_NONBLOCK | O_CLOEXEC, 0666);
    if (file < 0)
        file = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (file >= 0 && file != descriptor) {
        dup2(file, descriptor);
        close(file);
    }
}

/* Nobody knows of a run whose folder could not be reported: it ends. */
static void send_message(struct engine *engine, const struct message *message) {
    if (file_write_all(engine->pipe, message, sizeof *message) < 0)
        raise(SIGINT);
    close(engine->pipe);
    engine->pipe = -1;
}

/* When the run's folder is known: redirects the output to RUN.out and sends the folder to the command that
 * waits. */
static void on_event(void *context, const struct run_event *event) {
    struct engine *engine = context;
    if (event->kind == RUN_EVENT_STARTED && engine->pipe >= 0) {
        struct message message = {0};
        cleanup_free char *output = xformat("%s.out", event->text);
        snprintf(message.folder, sizeof message.folder, "%s", event->text);
        (void)output_flush();
        redirect(STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW);
        dup2(STDOUT_FILENO, STDERR_FILENO);
        send_message(engine, &message);
    }
    engine->shown.event(engine->shown.context, event);
}

/* Runs the engine in this process, in a session of its own, and exits with its exit code. */
__attribute__((noreturn)) static void run_engine(const struct execution *execution, int pipe) {
    const struct verb_arguments *arguments = execution->arguments;
    struct engine engine = {.pipe = pipe};
    struct message message = {0};
    setsid();
    redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
    progress_init(&engine.progress, verb_switch(arguments, "--json"), verb_switch(arguments, "--quiet"));
    engine.progress.has_screen = false;
    engine.shown = progress_observer(&engine.progress);
    struct run_observer observer = {.event = on_event, .context = &engine};
    int r = execution_perform(execution, observer, &message.failure);
    if (r < 0 && message.failure.kind == FAILURE_NONE)
        message.failure.kind = FAILURE_SYSTEM;
    if (engine.pipe >= 0)
        send_message(&engine, &message);
    else if (r < 0)
        output_failure(&message.failure);
    (void)output_flush();
    _exit(r < 0 ? (int)message.failure.kind : 0); /* what is left is the parent's to clean up */
}

/* Starts a process that is the engine, and waits until the run has its folder or has failed. */
static int start_engine_process(const struct execution *execution, char **ret_folder,
                                struct failure *failure) {
    struct message message = {0};
    int ends[2];
    (void)output_flush();
    if (pipe2(ends, O_CLOEXEC) < 0)
        return failure_set(failure, -errno, "cannot make a pipe: %s", strerror(errno));
    pid_t engine = fork();
    if (engine == 0) {
        close(ends[0]);
        run_engine(execution, ends[1]);
    }
    int code = engine < 0 ? -errno : 0;
    close(ends[1]);
    FILE *stream = fdopen(ends[0], "r");
    bool is_known = stream && fread(&message, sizeof message, 1, stream) == 1;
    if (stream)
        fclose(stream);
    if (engine < 0)
        return failure_set(failure, code, "cannot make a process: %s", strerror(-code));
    if (!is_known || !message.folder[0])
        waitpid(engine, NULL, 0);
    if (!is_known)
        return failure_set(failure, -ECHILD, "the engine was killed before its run had begun");
    if (message.failure.code < 0)
        *failure = message.failure;
    else if (message.folder[0])
        *ret_folder = xstrdup(message.folder);
    return message.failure.code;
}

/* ---- In a job --------------------------------------------------------------------------------------------
 */

static void print_sentence(void *context, const char *sentence) {
    (void)context;
    fprintf(stderr, "%s\n", shown(sentence).text);
}

/* Who begins as the job's engine finds no lock: that is held for the journal only. */
static int journal(const char *folder, const char *event, const char *sentence, struct failure *failure) {
    cleanup(run_lock_cleanup) struct run_lock *lock = NULL;
    int r = run_lock_take(folder, &lock, failure);
    return r < 0 ? r : submission_journal(folder, event, sentence, failure);
}

/* Submits the job that resumes the run. It is named after the run, so that the engine in it finds and adopts
 * its own reservation. */
static int submit(const struct execution *execution, const char *folder, const char *run_id,
                  const char *until, struct failure *failure) {
    const struct testbed_choice *testbed = &execution->campaign->testbed;
    cleanup(event_loop_cleanup) struct event_loop *loop = event_loop_new(failure);
    cleanup_free char *program = realpath("/proc/self/exe", NULL), *output = xformat("%s.out", folder);
    /* The campaign may be edited while the job waits. */
    const char *const command[] = {program, "resume", folder, "--as-recorded", until[0] ? "--until" : NULL,
                                   until,   NULL};
    struct testbed_request request = {.loop = loop,
                                      .installation = execution->arguments->installation,
                                      .run_id = run_id,
                                      .run_name = execution->campaign->name,
                                      .folder = folder,
                                      .report = print_sentence};
    if (!loop)
        return failure->code;
    if (!program)
        return failure_set(failure, -errno, "cannot read '/proc/self/exe': %s", strerror(errno));
    return testbed->backend->submit(testbed->settings, &request, command, output, failure);
}

/* Sets RET to --until as a fixed time, since the engine begins later; "": there is no --until. */
static int resolve_until(const struct execution *execution, char *ret, size_t size, struct failure *failure) {
    int64_t until_ns;
    int r = execution_check_limits(execution, &until_ns, failure);
    time_t until = (time_t)(until_ns / EVENT_SECOND);
    struct tm parts;
    ret[0] = '\0';
    if (r == 0 && until)
        strftime(ret, size, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&until, &parts));
    return r;
}

/* A run that no job was made for is as it was before: gone, where it was made for that. */
static void withdraw(const char *folder, bool is_new) {
    if (is_new)
        file_remove_tree(folder, NULL);
    else
        (void)journal(folder, "engine-withdrawn", NULL, NULL);
}

/* Begins the run (or takes one that exists) and submits the job with its engine. If it is known that no job
 * was made, that is undone. */
static int start_engine_job(const struct execution *execution, char **ret_folder, struct failure *failure) {
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    cleanup_free char *folder = NULL;
    struct execution begun = *execution;
    begun.ret_begun = &folder;
    char until[CLOCK_TEXT_SIZE];
    bool is_new = !execution->inputs;
    int r = resolve_until(execution, until, sizeof until, failure);
    if (r == 0 && is_new)
        r = execution_perform(&begun, (struct run_observer){0}, failure);
    else if (r == 0)
        folder = xstrdup(execution->inputs->run_folder);
    if (r == 0)
        r = run_status_read(folder, &status, failure);
    if (r < 0)
        return r;
    if (status->condition == RUN_IS_COMPLETED) {
        puts(status->archive);
        return 0;
    }
    cleanup_free char *sentence = xformat("its engine waits in job assay-%.36s", status->run_id);
    r = journal(folder, "engine-submitted", sentence, failure);
    if (r == 0)
        r = submit(execution, folder, status->run_id, until, failure);
    /* If the submission was given up half-way, a job may exist; then the journal keeps saying that an engine
     * was submitted. */
    if (r < 0 && (failure->kind == FAILURE_INPUT || r == -EREMOTEIO || r == -ENOENT))
        withdraw(folder, is_new);
    if (r == 0)
        *ret_folder = take_pointer(folder);
    return r;
}

int detach_execution(const struct execution *execution, char **ret_folder, struct failure *failure) {
    const struct verb_arguments *arguments = execution->arguments;
    const struct testbed_backend *backend = execution->campaign->testbed.backend;
    const char *where = verb_value(arguments, "--detach");
    if (!where)
        return start_engine_process(execution, ret_folder, failure);
    if (strcmp(where, "job") != 0)
        return failure_input(failure, NULL, 0, 0,
                             "--detach=%.64s is unknown, expected --detach or --detach=job", where);
    if (!backend->submit)
        return failure_input(failure, NULL, 0, 0,
                             "--detach=job puts the engine into a job, and testbed '%s' has none; expected "
                             "slurm or oar, or --detach",
                             backend->name);
    if (verb_switch(arguments, "--resubmit"))
        return failure_input(
            failure, NULL, 0, 0,
            "--resubmit reserves anew when the job is over, and with --detach=job the engine "
            "ends with it; expected one of them");
    return start_engine_job(execution, ret_folder, failure);
}
