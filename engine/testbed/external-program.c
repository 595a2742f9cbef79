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

enum { PIECE = 8 << 10, SAID_MAX = 400 /* bytes that a sentence has of what it says */ };
static const char hello[] = "hello";

struct external_program {
    struct event_loop *loop;
    const char *const *words;
    int64_t answer_ns;
    struct external_listener listener;
    struct remote_channel *channel;    /* NULL: it does not run */
    struct text output, errors;        /* the beginning of a line */
    struct text said, note, complaint; /* that last; a complaint is a line of stderr */
    size_t complaints;
    const char *asked;       /* what it owes an answer to; NULL: nothing */
    bool is_settled;         /* answered, or there will be no answer */
    int64_t id;              /* of the last request */
    struct document *answer; /* to it */
    struct failure why;      /* of one that ended */
};

const char *external_program_name(const struct external_program *program) {
    return file_base_name(program->words[0]);
}

/* ---- What it prints --------------------------------------------------------------------------------------
 */

/* The beginning of BYTES, as UTF-8. */
static const char *keep(struct text *ret, const char *bytes, size_t length) {
    text_reset(ret);
    (void)text_append_utf8(ret, bytes, length < SAID_MAX ? length : SAID_MAX);
    return ret->bytes;
}

/* It cannot be spoken with any more: an answer that it owes will not come. */
__attribute__((format(printf, 3, 4))) static void give_up(struct external_program *program, int code,
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

/* On stderr, or before it has greeted. */
static void take_complaint(struct external_program *program, const char *line, size_t length) {
    if (length > 0 && program->complaints++ < EXTERNAL_LOG_LINES_MAX)
        program->listener.log(program->listener.context, keep(&program->complaint, line, length));
}

static void take_line(struct external_program *program, const char *line, size_t length) {
    char id[NUMBER_TEXT_SIZE];
    struct failure failure = {0};
    cleanup(document_cleanup) struct document *document = NULL;
    if (program->asked == hello && (length == 0 || line[0] != '{')) {
        take_complaint(program, line, length); /* of what starts it, such as an interpreter's warning */
        return;
    }
    if (document_parse_json(external_program_name(program), line, length, &document, &failure) < 0) {
        give_up(program, -EBADMSG, "printed '%s', expected a JSON object on a line: %s",
                keep(&program->said, line, length), failure.text);
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
        document_free(program->answer); /* which came too late */
        program->answer = take_pointer(document);
    } else if (note && note->text) {
        keep(&program->said, note->text, strlen(note->text));
        if (strcmp(program->said.bytes, program->note.bytes) != 0)
            program->listener.note(program->listener.context, program->said.bytes);
        keep(&program->note, note->text, strlen(note->text));
    } else if (over && over->text) {
        program->listener.over(program->listener.context,
                               keep(&program->said, over->text, strlen(over->text)));
    } else {
        give_up(program, -EBADMSG, "printed '%s'; expected a note, or the answer to the last request",
                keep(&program->said, line, length));
    }
}

/* Those of TEXT that are whole. */
static void take_lines(struct external_program *program, struct text *text,
                       void (*take)(struct external_program *program, const char *line, size_t length)) {
    size_t begin = 0;
    const char *newline;
    while (program->channel && (newline = memchr(text->bytes + begin, '\n', text->length - begin))) {
        size_t end = (size_t)(newline - text->bytes);
        take(program, text->bytes + begin, end - begin);
        begin = end + 1;
    }
    text_consume(text, begin);
}

static void take_output(struct external_program *program) {
    char bytes[PIECE];
    ssize_t got = remote_channel_read(program->channel, bytes, sizeof bytes);
    if (got > 0 && text_append(&program->output, bytes, (size_t)got) < 0)
        give_up(program, -EMSGSIZE, "printed a line longer than %d bytes, the longest accepted",
                EXTERNAL_LINE_MAX);
    take_lines(program, &program->output, take_line);
}

/* Lines that are too long for a sentence come in pieces. */
static void take_errors(struct external_program *program) {
    char bytes[SAID_MAX];
    ssize_t got;
    while ((got = remote_channel_read_error(program->channel, bytes, sizeof bytes)) > 0) {
        (void)text_append(&program->errors, bytes, (size_t)got);
        take_lines(program, &program->errors, take_complaint);
        if (program->errors.length > SAID_MAX) {
            take_complaint(program, program->errors.bytes, program->errors.length);
            text_reset(&program->errors);
        }
    }
}

/* ---- Its life --------------------------------------------------------------------------------------------
 */

static void on_open(struct remote_channel *channel, void *context) {
    (void)context;
    remote_channel_want(channel, EVENT_READ);
}

static void on_ready(struct remote_channel *channel, unsigned events, void *context) {
    (void)channel;
    (void)events;
    take_errors(context);
    take_output(context);
}

static void on_closed(struct remote_channel *channel, const struct remote_channel_end *end,
                      const struct failure *why, void *context) {
    (void)channel;
    (void)why;
    struct external_program *program = context;
    char how[64] = "closed its output";
    take_errors(program);
    take_complaint(program, program->errors.bytes, program->errors.length);
    if (end && (end->exited || end->signal[0]))
        remote_channel_end_describe(end, how, sizeof how);
    give_up(program, -EPIPE, "%s%s%s%s%s%s", how,
            program->output.length > 0 ? " in the middle of a line" : "",
            program->asked ? " without an answer to " : "", program->asked ? program->asked : "",
            program->complaint.length > 0 ? ": " : "", program->complaint.bytes);
}

/* Sends LINE, which asks for WHAT, and turns the loop until that is answered. */
static int exchange(struct external_program *program, const char *what, const struct text *line,
                    int64_t patience_ns, struct document **ret_answer, struct failure *failure) {
    char patience[NUMBER_TEXT_SIZE];
    program->asked = what;
    program->is_settled = false;
    /* Its input is empty, unless it reads nothing. How one that has ended did so is known later. */
    ssize_t sent = remote_channel_write(program->channel, line->bytes, line->length);
    if (sent >= 0 && sent < (ssize_t)line->length)
        give_up(program, -EPIPE, "did not read all of the request on its standard input");
    int r = event_loop_turn_until(program->loop, &program->is_settled, patience_ns > 0 ? patience_ns : -1,
                                  failure);
    if (r == -ETIMEDOUT)
        return failure_set(failure, r, "%s has not answered %s within %s", external_program_name(program),
                           what, number_describe_duration((double)patience_ns * 1e-9, patience));
    if (r == 0 && program->asked) {
        *failure = program->why;
        return program->why.code;
    }
    if (r == 0)
        *ret_answer = take_pointer(program->answer);
    return r;
}

/* One that owes an answer which nobody waits for any more is ended. */
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

int external_program_ask(struct external_program *program, const char *what, const char *name,
                         const cJSON *request, int64_t patience_ns, struct document **ret_answer,
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
    r = exchange(program, what, &line, patience_ns < 0 ? program->answer_ns : patience_ns, &answer, failure);
    const struct document_node *error = r == 0 ? document_get(answer->root, "error") : NULL;
    if (error) {
        r = failure_set(failure, -EREMOTEIO, "%s: %s", external_program_name(program),
                        error->text ? keep(&program->said, error->text, strlen(error->text)) : "error");
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
