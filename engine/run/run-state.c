#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static void append_log(struct run *run, const char *sentence) {
    char now[CLOCK_TEXT_SIZE];
    text_printf(&run->log->pending, "%s  %s\n", clock_format(clock_wall_ns(), now), sentence);
}

void run_log(struct run *run, const char *format, ...) {
    struct text sentence;
    text_init(&sentence, 64 << 10);
    va_list arguments;
    va_start(arguments, format);
    text_vprintf(&sentence, format, arguments);
    va_end(arguments);
    append_log(run, sentence.bytes);
    text_clear(&sentence);
}

void run_note(struct run *run, const char *format, ...) {
    struct text sentence;
    text_init(&sentence, 64 << 10);
    va_list arguments;
    va_start(arguments, format);
    text_vprintf(&sentence, format, arguments);
    va_end(arguments);
    append_log(run, sentence.bytes);
    run_tell(run, RUN_EVENT_NOTE, sentence.bytes);
    text_clear(&sentence);
}

int run_commit(struct run *run, struct failure *failure) {
    int r = append_file_commit(run->results, failure);
    if (r == 0)
        r = journal_commit(run->journal, failure);
    if (r == 0)
        r = append_file_commit(run->log, failure);
    return r;
}

void run_tell(const struct run *run, enum run_event_kind kind, const char *text) {
    const struct run_observer *observer = &run->request->observer;
    if (observer->event)
        observer->event(observer->context,
                        &(struct run_event){.kind = kind, .text = text, .seconds_left = -1});
}

char *run_path(const struct run *run, const char *name) {
    return name[0] ? file_join(run->folder, name) : strdup(run->folder);
}

int run_make_folder(const struct run *run, const char *name, struct failure *failure) {
    cleanup_free char *path = run_path(run, name);
    return path ? file_make_folders(path, failure) : failure_memory(failure);
}

int run_write_json(const char *path, const cJSON *value, struct failure *failure) {
    struct text bytes;
    text_init(&bytes, 256 << 20);
    int r = json_print(value, true, &bytes);
    if (r == 0)
        r = text_append_character(&bytes, '\n');
    r = r < 0 ? failure_memory(failure) : file_replace(path, bytes.bytes, bytes.length, 0666, failure);
    text_clear(&bytes);
    return r;
}

/* The last lines of what a command wrote, on one line, for a sentence. */
static void append_tail(struct text *sentence, const char *bytes, size_t length) {
    enum { TAIL = 600 };
    while (length > 0 && (bytes[length - 1] == '\n' || bytes[length - 1] == ' '))
        length--;
    size_t from = length > TAIL ? length - TAIL : 0;
    for (size_t i = from; i < length; i++)
        text_append_character(sentence, (unsigned char)bytes[i] < ' ' ? ' ' : bytes[i]);
}

/* A command that only asks about the node must not hold up the run. */
enum { PROBE_TIMEOUT_MS = 60000 };

int run_command(struct run *run, struct run_node *node, const char *const *arguments,
                const char *const *environment, const char *folder, bool must_succeed,
                struct remote_result *ret, struct failure *failure) {
    struct text line;
    text_init(&line, 64 << 10);
    experiment_command_describe((char *const *)arguments, &line);
    run_log(run, "node %s: %s", node->name, line.bytes);
    struct remote_command_specification specification = {.arguments = arguments,
                                                         .environment = environment,
                                                         .folder = folder,
                                                         .timeout_ms = must_succeed ? 0 : PROBE_TIMEOUT_MS};
    int r = agent_link_run_and_wait(node->link, &specification, NULL, 0, ret, failure);
    if (r == 0) {
        journal_begin(run->journal, "command");
        journal_string(run->journal, "phase", run_phase_names[run->phase]);
        journal_string(run->journal, "node", node->name);
        journal_string(run->journal, "command", line.bytes);
        journal_integer(run->journal, "started_ns", ret->start.wall_ns);
        journal_integer(run->journal, "ended_ns", ret->exit.wall_ns);
        journal_integer(run->journal, ret->exit.signalled ? "signal" : "exit", ret->exit.code);
        journal_end(run->journal);
        run_commit(run, NULL); /* a failure to write shows again at the phase's end */
        if (must_succeed && (ret->exit.signalled || ret->exit.code != 0)) {
            char how[128];
            struct text sentence;
            text_init(&sentence, FAILURE_TEXT_SIZE);
            append_tail(&sentence, ret->error_length ? ret->error : ret->output,
                        ret->error_length ? ret->error_length : ret->output_length);
            run_log(run, "  %s", sentence.bytes);
            r = failure_set_kind(failure, FAILURE_EXPERIMENT, -ECHILD, "on node %s, '%.300s' %s%s%s",
                                 node->name, line.bytes, remote_exit_describe(&ret->exit, how, sizeof how),
                                 sentence.length ? ": " : "", sentence.bytes);
            text_clear(&sentence);
            remote_result_clear(ret);
        }
    }
    text_clear(&line);
    return r;
}
