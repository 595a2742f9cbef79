#include "engine/testbed/frontend.h"

#include "engine/documents/document.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/remote/channel/child.h"
#include "engine/remote/channel/run.h"
#include "engine/remote/ssh/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t command_timeout_ns = 60 * EVENT_SECOND;

struct frontend {
    struct event_loop *loop;
    struct ssh_client *client;
    struct launcher *launcher; /* of the login node; NULL: commands run on this machine */
    struct http *http;         /* of the REST interface; NULL: there is none */
    bool is_ready, is_lost;    /* the connection to the login node: its attempt has ended; it is broken */
    struct failure why;        /* why it is lost */
    struct background {
        struct channel_run *run; /* NULL: nothing runs */
        void (*callback)(const char *output, size_t length, void *context);
        void *context;
    } background;
};

/* A command that frontend_run() waits for. */
struct command {
    struct text *output;
    char *problem;
    bool is_over;
    int status; /* the exit status, or a negative errno */
    struct failure why;
};

/* ---- Waiting */

int frontend_wait(struct frontend *frontend, int64_t ns, struct failure *failure) {
    static const bool never;
    int r = event_loop_turn_until(frontend->loop, &never, ns, failure);
    return r == -ETIMEDOUT ? 0 : r;
}

/* ---- The connection */

static void on_ready(struct launcher *launcher, void *context) {
    (void)launcher;
    ((struct frontend *)context)->is_ready = true;
}

static void on_lost(struct launcher *launcher, const struct failure *why, void *context) {
    (void)launcher;
    struct frontend *frontend = context;
    frontend->is_ready = frontend->is_lost = true;
    frontend->why = *why;
}

static bool is_connected(const struct frontend *frontend) {
    return !frontend->launcher || (frontend->is_ready && !frontend->is_lost);
}

/* Starts to connect to the login node, also after a connection broke. Returns 1 where it is connected at
 * once, 0 where on_ready() or on_lost() will be called. */
static int start_connecting(struct frontend *frontend, struct failure *failure) {
    struct launcher_listener listener = {.on_ready = on_ready, .on_lost = on_lost, .context = frontend};
    launcher_disconnect(frontend->launcher);
    frontend->is_ready = frontend->is_lost = false;
    int r = launcher_connect(frontend->launcher, &listener, failure);
    if (r != 0)
        frontend->is_ready = true;
    frontend->is_lost |= r < 0;
    return r;
}

/* Connects to the login node, if need be, and waits for at most a minute while the loop turns. */
static int connect_login(struct frontend *frontend, struct failure *failure) {
    if (is_connected(frontend))
        return 0;
    int r = start_connecting(frontend, failure);
    if (r == 0)
        r = event_loop_turn_until(frontend->loop, &frontend->is_ready, command_timeout_ns, failure);
    if (r == -ETIMEDOUT)
        failure_set(failure, r, "the login node does not answer");
    if (r < 0) { /* the attempt is aborted */
        launcher_disconnect(frontend->launcher);
        frontend->is_ready = frontend->is_lost = true;
    } else if (frontend->is_lost) {
        *failure = frontend->why;
        return frontend->why.code;
    }
    return r < 0 ? r : 0;
}

static int open_login(struct frontend *frontend, const struct access_settings *access,
                      const char *accepted_hosts, const char *login, struct failure *failure) {
    struct ssh_client_options options = access_ssh_options(access, accepted_hosts);
    int r = ssh_client_new(frontend->loop, &options, &frontend->client, failure);
    if (r < 0)
        return r;
    frontend->launcher = launcher_ssh_new(frontend->loop, frontend->client, login, login);
    return connect_login(frontend, failure);
}

/* Opens an API, a connection to the login node LOGIN, or, when both are NULL, this machine. */
int frontend_open(struct event_loop *loop, const struct access_settings *access, const char *accepted_hosts,
                  const char *login, const struct http_settings *api, struct frontend **ret,
                  struct failure *failure) {
    struct frontend *frontend = xcalloc(1, sizeof *frontend);
    frontend->loop = loop;
    int r = 0;
    if (api)
        r = http_open(loop, api, &frontend->http, failure);
    else if (login)
        r = open_login(frontend, access, accepted_hosts, login, failure);
    if (r < 0)
        frontend_close(frontend);
    else
        *ret = frontend;
    return r;
}

struct http *frontend_http(struct frontend *frontend) {
    return frontend->http;
}

void frontend_close(struct frontend *frontend) {
    if (!frontend)
        return;
    frontend_stop(frontend);
    http_close(frontend->http);
    launcher_free(frontend->launcher);
    ssh_client_free(frontend->client);
    free(frontend);
}

/* ---- Commands */

/* The command that frontend_run() waits for has ended: stores its status, output and first error line. A
 * command killed by a signal has the status 255. */
static void on_done(const struct channel_run_result *result, const struct failure *failure, void *context) {
    struct command *command = context;
    command->is_over = true;
    if (!result) {
        command->why = *failure;
        command->status = failure->code < 0 ? failure->code : -EIO;
        return;
    }
    command->status = result->end.exited ? result->end.code : 255;
    (void)text_append(command->output, result->output, result->output_length);
    int length;
    const char *reason = text_reason(result->error, &length);
    snprintf(command->problem, FAILURE_TEXT_SIZE, "%.*s", length, reason);
}

/* Appends WORDS to LINE, each in single quotes, which every login shell understands; a single quote inside is
 * written between double quotes. -EINVAL for characters that some shell interprets even within quotes. */
static int append_quoted(const char *const *words, struct text *line, struct failure *failure) {
    for (size_t i = 0; words[i]; i++) {
        if (strpbrk(words[i], "\\\n!"))
            return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                    "'%s' cannot be handed to a login node's shell, expected no '\\', '!' or "
                                    "line end",
                                    words[i]);
        text_append_string(line, i ? " '" : "'");
        for (const char *c = words[i]; *c; c++)
            *c == '\'' ? text_append_string(line, "'\"'\"'") : text_append_character(line, *c);
        text_append_character(line, '\'');
    }
    return 0;
}

/* Starts WORDS in *RET: as a child, or by ssh on the login node. */
static int open_channel(struct frontend *frontend, const char *const *words,
                        const struct remote_channel_listener *listener, struct remote_channel **ret,
                        struct failure *failure) {
    if (!frontend->launcher) {
        struct child_channel_options options = {.arguments = words};
        return child_channel_open(frontend->loop, &options, listener, ret, failure);
    }
    cleanup(text_clear) struct text line;
    text_init(&line, 64 << 10);
    text_append_string(&line, "echo; "); /* ends the last line of a login shell's greeting */
    int r = append_quoted(words, &line, failure);
    return r < 0 ? r : launcher_open(frontend->launcher, LAUNCHER_ATTACH, line.bytes, listener, ret, failure);
}

/* ---- Requests */

/* What an HTTP status that is not a success means, for a message. */
static const char *status_meaning(long status) {
    static const struct {
        long from, to;
        const char *meaning;
    } meanings[] = {{300, 399, "the API has moved to another address"},
                    {401, 401, "the credentials are missing or wrong"},
                    {403, 403, "the credentials do not allow it"},
                    {404, 404, "the API has nothing at this address"},
                    {408, 408, "the server waited too long"},
                    {429, 429, "there were too many requests"},
                    {400, 499, "the server refuses it"},
                    {502, 504, "the server is not available"}};
    size_t i = 0, count = sizeof meanings / sizeof *meanings;
    while (i < count && (status < meanings[i].from || status > meanings[i].to))
        i++;
    return i < count ? meanings[i].meaning : "the server failed";
}

/* PROBLEM: the message of an answer that is an error, its first line, or what its status means. */
void frontend_describe_answer(const struct http_answer *answer, char problem[static FAILURE_TEXT_SIZE]) {
    cleanup(document_cleanup) struct document *document = NULL;
    const char *text = answer->body.length > 0 ? answer->body.bytes : "";
    const struct document_node *message = NULL;
    text += strspn(text, " \t\r\n");
    if (*text == '{' && document_parse_json("", text, strlen(text), &document, NULL) == 0)
        message = document_get(document->root, "message");
    if (message && message->text)
        snprintf(problem, FAILURE_TEXT_SIZE, "%s", message->text);
    else if (*text && !strchr("<{[", *text))
        snprintf(problem, FAILURE_TEXT_SIZE, "%.*s", (int)strcspn(text, "\r\n"), text);
    else
        snprintf(problem, FAILURE_TEXT_SIZE, "%s", status_meaning(answer->status));
    for (char *c = problem; *c; c++)
        *c = (unsigned char)*c < ' ' ? ' ' : *c;
}

static bool is_success(const struct http_answer *answer) {
    return answer->status >= 200 && answer->status < 300;
}

/* Sends the request WORDS (method, path, body) and waits for its answer; as frontend_run() of a REST
 * interface. */
static int run_request(struct frontend *frontend, const char *const *words, struct text *output,
                       char problem[static FAILURE_TEXT_SIZE], struct failure *failure) {
    cleanup(http_answer_clear) struct http_answer answer = {0};
    int r = http_run(frontend->http, words[0], words[1], words[2], output->limit, &answer, failure);
    if (r == 0 && is_success(&answer))
        return text_append(output, answer.body.bytes, answer.body.length);
    if (r == 0)
        frontend_describe_answer(&answer, problem);
    return r < 0 ? r : (int)answer.status;
}

static void on_answer(const struct http_answer *answer, void *context) {
    const struct background *background = &((struct frontend *)context)->background;
    bool is_good = answer && is_success(answer);
    background->callback(is_good ? answer->body.bytes : NULL, is_good ? answer->body.length : 0,
                         background->context);
}

/* ---- Commands or requests */

/* Runs a command on the login node, or sends a request to the API, and waits. The exit status, or negative.
 */
int frontend_run(struct frontend *frontend, const char *const *words, struct text *output,
                 char problem[static FAILURE_TEXT_SIZE], struct failure *failure) {
    struct command command = {.output = output, .problem = problem};
    struct remote_channel *channel = NULL;
    problem[0] = '\0';
    if (frontend->http)
        return run_request(frontend, words, output, problem, failure);
    struct channel_run *run = channel_run_new(NULL, 0, output->limit, on_done, &command);
    struct remote_channel_listener listener = channel_run_listener(run);
    int r = connect_login(frontend, failure);
    if (r == 0)
        r = open_channel(frontend, words, &listener, &channel, failure);
    if (r == 0) {
        channel_run_started(run, channel);
        r = event_loop_turn_until(frontend->loop, &command.is_over, command_timeout_ns, failure);
    }
    if (!command.is_over)
        channel_run_cancel(run);
    if (r == -ETIMEDOUT)
        failure_set(failure, r, "the command did not end within a minute");
    if (r == 0 && command.status < 0)
        *failure = command.why;
    return r < 0 ? r : command.status;
}

/* ---- Commands that are not waited for */

/* The command of frontend_start() has ended. */
static void on_background_done(const struct channel_run_result *result, const struct failure *failure,
                               void *context) {
    (void)failure;
    struct background *background = &((struct frontend *)context)->background;
    bool is_good = result && result->end.exited && result->end.code == 0;
    background->run = NULL;
    background->callback(is_good ? result->output : NULL, is_good ? result->output_length : 0,
                         background->context);
}

void frontend_stop(struct frontend *frontend) {
    if (frontend->http)
        http_stop(frontend->http);
    channel_run_cancel(take_pointer(frontend->background.run));
}

/* Starts a command or a request whose output goes to CALLBACK. Nothing is called when it fails or there is no
 * connection. */
void frontend_start(struct frontend *frontend, const char *const *words, size_t limit,
                    void (*callback)(const char *output, size_t length, void *context), void *context) {
    struct remote_channel *channel = NULL;
    frontend_stop(frontend);
    if (frontend->http) {
        frontend->background = (struct background){NULL, callback, context};
        http_start(frontend->http, words[0], words[1], words[2], limit, on_answer, frontend);
        return;
    }
    if (!is_connected(frontend)) {
        if (frontend->is_ready) /* the connection was lost; otherwise an attempt is under way */
            (void)start_connecting(frontend, NULL);
        return;
    }
    struct channel_run *run = channel_run_new(NULL, 0, limit, on_background_done, frontend);
    struct remote_channel_listener listener = channel_run_listener(run);
    if (open_channel(frontend, words, &listener, &channel, NULL) < 0) {
        channel_run_cancel(run);
        return;
    }
    channel_run_started(run, channel);
    frontend->background = (struct background){run, callback, context};
}
