#include "engine/testbed/external-program.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/remote/channel/child.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 8 << 10, SAID_MAX = 400 /* most bytes of the program's output that a message quotes */ };
static const char hello[] = "hello"; /* the first exchange, which checks the protocol's version */

struct external_program {
    struct event_loop *loop;
    const char *const *words;
    int64_t answer_ns;
    struct external_listener listener;
    struct remote_channel *channel; /* NULL: the program does not run */
    struct text output, errors;     /* unfinished lines of stdout and stderr */
    struct text said;               /* the quoted text of the last message */
    struct text note, complaint;    /* the last note; the last line of stderr */
    size_t complaints;              /* lines of stderr so far */
    const char *asked;              /* the request without an answer so far; NULL: none */
    bool is_settled;                /* the request is answered, or will never be */
    int64_t id;                     /* of the last request */
    struct document *answer;        /* to the last request */
    struct failure why;             /* why the program ended */
};

const char *external_program_name(const struct external_program *program) {
    return file_base_name(program->words[0]);
}

/* ---- The program's output */

/* Copies the first SAID_MAX bytes of BYTES to RET, made valid UTF-8, and returns them. */
static const char *copy_quoted(struct text *ret, const char *bytes, size_t length) {
    text_reset(ret);
    (void)text_append_utf8(ret, bytes, length < SAID_MAX ? length : SAID_MAX);
    return ret->bytes;
}

/* Ends the program after an error. A request without an answer fails; without such a request the listener
 * gets a note, and the next request starts the program again. */
__attribute__((format(printf, 3, 4))) static void end_program(struct external_program *program, int code,
                                                              const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    remote_channel_free(take_pointer(program->channel));
    program->is_settled = true;
    failure_set(&program->why, code, "%s %s", external_program_name(program), sentence);
    if (program->asked)
        return;
    cleanup_free char *note = xformat("%s; the program is started again to give the nodes back", sentence);
    program->listener.note(program->listener.context, note);
}

/* Logs a line of stderr, or of output before the program's greeting. */
static void log_line(struct external_program *program, const char *line, size_t length) {
    if (length > 0 && program->complaints++ < EXTERNAL_LOG_LINES_MAX)
        program->listener.log(program->listener.context, copy_quoted(&program->complaint, line, length));
}

/* Handles a line of output: an answer to the last request, a note, or the end of the reservation. Any other
 * line ends the program. */
static void handle_line(struct external_program *program, const char *line, size_t length) {
    char id[NUMBER_TEXT_SIZE];
    struct failure failure = {0};
    cleanup(document_cleanup) struct document *document = NULL;
    if (program->asked == hello && (length == 0 || line[0] != '{')) {
        log_line(program, line, length); /* such as a warning of the interpreter that starts it */
        return;
    }
    if (document_parse_json(external_program_name(program), line, length, &document, &failure) < 0) {
        end_program(program, -EBADMSG, "printed '%s', expected a JSON object on a line: %s",
                    copy_quoted(&program->said, line, length), failure.text);
        return;
    }
    const struct document_node *root = document->root, *number = document_get(root, "id"),
                               *note = document_get(root, "note"), *over = document_get(root, "over"),
                               *version = document_get(root, "assay");
    number_format_int64(program->id, id);
    bool is_answer = number && number->text && program->asked && strcmp(number->text, id) == 0;
    if (program->asked == hello)
        is_answer = version;
    if (is_answer) {
        program->asked = NULL;
        program->is_settled = true;
        document_free(program->answer); /* that of a request which timed out */
        program->answer = take_pointer(document);
    } else if (note && note->text) {
        copy_quoted(&program->said, note->text, strlen(note->text));
        if (strcmp(program->said.bytes, program->note.bytes) != 0)
            program->listener.note(program->listener.context, program->said.bytes);
        copy_quoted(&program->note, note->text, strlen(note->text));
    } else if (over && over->text) {
        program->listener.over(program->listener.context,
                               copy_quoted(&program->said, over->text, strlen(over->text)));
    } else {
        end_program(program, -EBADMSG, "printed '%s'; expected a note, or the answer to the last request",
                    copy_quoted(&program->said, line, length));
    }
}

/* Calls TAKE for each complete line of TEXT, and removes these lines from it. */
static void handle_lines(struct external_program *program, struct text *text,
                         void (*handle)(struct external_program *program, const char *line, size_t length)) {
    size_t begin = 0;
    const char *newline;
    while (program->channel && (newline = memchr(text->bytes + begin, '\n', text->length - begin))) {
        size_t end = (size_t)(newline - text->bytes);
        handle(program, text->bytes + begin, end - begin);
        begin = end + 1;
    }
    text_consume(text, begin);
}

/* Reads what the program's stdout has, and handles its complete lines. */
static void read_output(struct external_program *program) {
    char bytes[PIECE];
    ssize_t got = remote_channel_read(program->channel, bytes, sizeof bytes);
    if (got > 0 && text_append(&program->output, bytes, (size_t)got) < 0)
        end_program(program, -EMSGSIZE, "printed a line longer than %d bytes, the longest accepted",
                    EXTERNAL_LINE_MAX);
    handle_lines(program, &program->output, handle_line);
}

/* Reads what the program's stderr has and logs its lines; a line longer than SAID_MAX is logged in pieces. */
static void read_errors(struct external_program *program) {
    char bytes[SAID_MAX];
    ssize_t got;
    while ((got = remote_channel_read_error(program->channel, bytes, sizeof bytes)) > 0) {
        (void)text_append(&program->errors, bytes, (size_t)got);
        handle_lines(program, &program->errors, log_line);
        if (program->errors.length > SAID_MAX) {
            log_line(program, program->errors.bytes, program->errors.length);
            text_reset(&program->errors);
        }
    }
}

/* ---- Starting, requests, ending */

static void on_open(struct remote_channel *channel, void *context) {
    (void)context;
    remote_channel_want(channel, EVENT_READ);
}

static void on_ready(struct remote_channel *channel, unsigned events, void *context) {
    (void)channel;
    (void)events;
    read_errors(context);
    read_output(context);
}

/* The program closed its output or ended: the message quotes its last line of stderr. */
static void on_closed(struct remote_channel *channel, const struct remote_channel_end *end,
                      const struct failure *why, void *context) {
    (void)channel;
    (void)why;
    struct external_program *program = context;
    char how[64] = "closed its output";
    read_errors(program);
    log_line(program, program->errors.bytes, program->errors.length);
    if (end && (end->exited || end->signal[0]))
        remote_channel_end_describe(end, how, sizeof how);
    end_program(program, -EPIPE, "%s%s%s%s%s%s", how,
                program->output.length > 0 ? " in the middle of a line" : "",
                program->asked ? " without an answer to " : "", program->asked ? program->asked : "",
                program->complaint.length > 0 ? ": " : "", program->complaint.bytes);
}

/* Sends LINE, the request WHAT, and turns the loop until it is answered or timed out; PATIENCE_NS of at most
 * 0: without limit. */
static int exchange(struct external_program *program, const char *what, const struct text *line,
                    int64_t timeout_ns, struct document **ret_answer, struct failure *failure) {
    char timeout_text[NUMBER_TEXT_SIZE];
    program->asked = what;
    program->is_settled = false;
    /* A short write means that the program does not read. A write that fails means that it has ended:
     * on_closed() tells how. */
    ssize_t sent = remote_channel_write(program->channel, line->bytes, line->length);
    if (sent >= 0 && sent < (ssize_t)line->length)
        end_program(program, -EPIPE, "did not read all of the request on its standard input");
    int r =
        event_loop_turn_until(program->loop, &program->is_settled, timeout_ns > 0 ? timeout_ns : -1, failure);
    if (r == -ETIMEDOUT)
        return failure_set(failure, r, "%s has not answered %s within %s", external_program_name(program),
                           what, number_describe_duration((double)timeout_ns * 1e-9, timeout_text));
    if (r == 0 && program->asked) {
        *failure = program->why;
        return program->why.code;
    }
    if (r == 0)
        *ret_answer = take_pointer(program->answer);
    return r;
}

/* A running program that still owes the answer to an abandoned request is ended first. */
int external_program_start(struct external_program *program, struct failure *failure) {
    cleanup(text_clear) struct text line = {0};
    cleanup(document_cleanup) struct document *greeting = NULL;
    if (program->channel && !program->asked)
        return 0;
    remote_channel_free(take_pointer(program->channel));
    text_reset(&program->output);
    text_reset(&program->errors);
    text_reset(&program->complaint);
    program->asked = NULL;
    struct child_channel_options options = {.arguments = program->words, .ends_in_order = true};
    struct remote_channel_listener listener = {
        .on_open = on_open, .on_ready = on_ready, .on_closed = on_closed, .context = program};
    int r = child_channel_open(program->loop, &options, &listener, &program->channel, failure);
    if (r < 0)
        return r;
    text_init(&line, PIECE);
    (void)text_append_string(&line, "{\"assay\":" EXTERNAL_VERSION "}\n");
    r = exchange(program, hello, &line, program->answer_ns, &greeting, failure);
    const struct document_node *version = r == 0 ? document_get(greeting->root, "assay") : NULL;
    const char *text = version && version->text ? version->text : "";
    if (r == 0 && strcmp(text, EXTERNAL_VERSION) != 0) {
        r = failure_set(failure, -EPROTONOSUPPORT, "%s speaks version '%.40s' of the protocol, expected %s",
                        external_program_name(program), text, EXTERNAL_VERSION);
        remote_channel_free(take_pointer(program->channel));
    }
    return r;
}

/* Sends a request as a line of JSON, starts the program first if it does not run, and waits. RET_ANSWER is
 * owned by the caller. */
int external_program_ask(struct external_program *program, const char *what, const char *name,
                         const cJSON *request, int64_t timeout_ns, struct document **ret_answer,
                         struct failure *failure) {
    cleanup(json_cleanup) cJSON *whole = cJSON_CreateObject();
    cleanup(text_clear) struct text line;
    struct document *answer = NULL;
    text_init(&line, EXTERNAL_LINE_MAX);
    json_add_int64(whole, "id", program->id + 1);
    json_add_string(whole, "do", what);
    json_add_string(whole, "name", name);
    cJSON_AddItemToObject(whole, "request", cJSON_Duplicate(request, true));
    if (json_print(whole, false, &line) < 0 || text_append_character(&line, '\n') < 0)
        return failure_set(failure, -EFBIG, "the request to %s is too long", external_program_name(program));
    int r = external_program_start(program, failure);
    if (r < 0)
        return r;
    program->id++;
    r = exchange(program, what, &line, timeout_ns < 0 ? program->answer_ns : timeout_ns, &answer, failure);
    const struct document_node *error = r == 0 ? document_get(answer->root, "error") : NULL;
    if (error) {
        r = failure_set(failure, -EREMOTEIO, "%s: %s", external_program_name(program),
                        error->text ? copy_quoted(&program->said, error->text, strlen(error->text))
                                    : "error");
        document_free(take_pointer(answer));
    }
    if (r == 0)
        *ret_answer = answer;
    return r;
}

struct external_program *external_program_new(struct event_loop *loop, const char *const *words,
                                              int64_t answer_ns, const struct external_listener *listener) {
    struct external_program *program = xcalloc(1, sizeof *program);
    program->loop = loop;
    program->words = words;
    program->answer_ns = answer_ns;
    program->listener = *listener;
    text_init(&program->output, EXTERNAL_LINE_MAX);
    text_init(&program->errors, 2 * SAID_MAX);
    text_init(&program->said, 3 * SAID_MAX); /* U+FFFD has three bytes */
    text_init(&program->note, 3 * SAID_MAX);
    text_init(&program->complaint, 3 * SAID_MAX);
    return program;
}

void external_program_free(struct external_program *program) {
    if (!program)
        return;
    remote_channel_free(program->channel);
    document_free(program->answer);
    text_clear(&program->output);
    text_clear(&program->errors);
    text_clear(&program->said);
    text_clear(&program->note);
    text_clear(&program->complaint);
    free(program);
}
