#include "engine/remote/launch/delivery.h"

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/channel/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    ANSWER_MAX = AGENT_LOGIN_OUTPUT_MAX + (64 << 10), /* bytes of login scripts and of an answer */
    COMMAND_MAX = 512,
    REASON_SIZE = 512,
    SENTENCE_SIZE = 2048,  /* room for a path and a reason */
    PATH_BYTES_MAX = 1024, /* of the agent on the node */
    REASONS_MAX = 1200,    /* bytes of the reasons against folders, which must fit in a failure */
    UNIQUE_SIZE = 17,      /* 16 hexadecimal digits */
};
#define STEP_TIMEOUT (120 * EVENT_SECOND)
#define BUILD_TIMEOUT (600 * EVENT_SECOND)

/* The steps of a delivery, which are the verbs of delivery.sh. */
enum step { STEP_FIND, STEP_PUT, STEP_BUILD };

static const struct {
    const char *verb;
    enum agent_input input;
    int64_t timeout_ns;
} steps[] = {
    [STEP_FIND] = {"find", AGENT_INPUT_SCRIPT, STEP_TIMEOUT},
    [STEP_PUT] = {"put", AGENT_INPUT_BINARY, STEP_TIMEOUT},
    [STEP_BUILD] = {"build", AGENT_INPUT_SOURCE, BUILD_TIMEOUT},
};

struct agent_delivery {
    struct launcher *launcher;
    const struct agent_package *package;
    agent_delivery_callback *callback;
    void *context;
    struct channel_run *run;
    struct event_source *timeout; /* timer */
    enum step step;
    char unique[UNIQUE_SIZE];
    unsigned folder;                   /* number of the folder: the next to try, or the one that was found */
    char folder_path[PATH_BYTES_MAX];  /* its path; "": none was found yet */
    char reject_reason[SENTENCE_SIZE]; /* why the binary cannot be used on the node; "": it may be usable */
    struct text reasons;               /* why folders are not suitable */
    char damage[REASON_SIZE];          /* why an earlier agent was removed; "": none was */
};

/* The answer of a verb; "" and 0 where it has no such part. */
struct answer {
    unsigned folder;
    char hash[HASH_HEX_SIZE], path[PATH_BYTES_MAX]; /* of the agent */
    char kind[16], reason[REASON_SIZE];             /* of a failure */
};

static void free_delivery(struct agent_delivery *delivery) {
    event_source_remove(delivery->timeout);
    text_clear(&delivery->reasons);
    free(delivery);
}

void agent_delivery_cancel(struct agent_delivery *delivery) {
    if (!delivery)
        return;
    channel_run_cancel(delivery->run);
    free_delivery(delivery);
}

/* ---- the end */

/* Ends the delivery with WHY, and calls back. */
static void fail(struct agent_delivery *delivery, const struct failure *why) {
    struct failure failure = *why;
    if (!failure.place[0])
        snprintf(failure.place, sizeof failure.place, "node %s", delivery->launcher->node);
    agent_delivery_callback *callback = delivery->callback;
    void *context = delivery->context;
    agent_delivery_cancel(delivery);
    callback(NULL, &failure, context);
}

__attribute__((format(printf, 3, 4))) static void fail_with(struct agent_delivery *delivery, int code,
                                                            const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    struct failure failure = {0};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    failure_set(&failure, code, "cannot deliver the agent: %s", sentence);
    fail(delivery, &failure);
}

/* Ends the delivery with the agent of ANSWER, and calls back. */
static void succeed(struct agent_delivery *delivery, const struct answer *answer) {
    char damage[REASON_SIZE];
    memcpy(damage, delivery->damage, sizeof damage);
    struct agent_delivered delivered = {.path = answer->path,
                                        .built = strcmp(answer->hash, delivery->package->binary_hash) != 0,
                                        .found = delivery->step == STEP_FIND,
                                        .hash = answer->hash,
                                        .damage = damage[0] ? damage : NULL};
    agent_delivery_callback *callback = delivery->callback;
    void *context = delivery->context;
    free_delivery(delivery);
    callback(&delivered, NULL, context);
}

/* ---- steps */

static void on_answer(const struct channel_run_result *result, const struct failure *failure, void *context);

/* Runs COMMAND on the node with INPUT on its stdin; its result goes to on_answer(). */
static int start_run(struct agent_delivery *delivery, const char *command, const char *input, size_t length,
                     struct failure *failure) {
    struct channel_run *run = channel_run_new(input, length, ANSWER_MAX, on_answer, delivery);
    struct remote_channel_listener listener = channel_run_listener(run);
    struct remote_channel *channel;
    int r = launcher_open(delivery->launcher, LAUNCHER_ATTACH, command, &listener, &channel, failure);
    if (r < 0) {
        channel_run_cancel(run);
        return r;
    }
    channel_run_started(run, channel);
    delivery->run = run;
    return 0;
}

static const char *hash_or_dash(const char *hash) {
    return hash[0] ? hash : "-";
}

/* Starts a step: runs the verb with its arguments. The node's sh reads the script byte by byte (dd bs=1), so
 * that the bytes after it on stdin are left for the programs that the script starts. */
static int start_step(struct agent_delivery *delivery, enum step step, struct failure *failure) {
    const struct agent_package *package = delivery->package;
    const char *binary = package->binary_hash, *source = package->source_hash;
    char command[COMMAND_MAX];
    if (step == STEP_FIND && delivery->reject_reason[0])
        binary = "";
    int length =
        snprintf(command, sizeof command,
                 "exec /bin/sh -c 'eval \"$(dd bs=1 count=%zu 2>/dev/null)\"' assay-delivery %s %s %u "
                 "%s %s %s",
                 package->script_length, steps[step].verb, delivery->unique, delivery->folder,
                 hash_or_dash(binary), hash_or_dash(source), hash_or_dash(package->machine));
    if ((size_t)length >= sizeof command)
        return failure_set(failure, -ENAMETOOLONG, "the command that delivers the agent is too long");
    const struct text *input = &package->inputs[steps[step].input];
    delivery->step = step;
    event_source_set_timer(delivery->timeout, steps[step].timeout_ns, 0);
    return start_run(delivery, command, input->bytes, input->length, failure);
}

static void start_step_or_fail(struct agent_delivery *delivery, enum step step) {
    struct failure failure = {0};
    if (start_step(delivery, step, &failure) < 0)
        fail(delivery, &failure);
}

static void on_timeout(struct event_source *self, void *context) {
    (void)self;
    struct agent_delivery *delivery = context;
    char duration[NUMBER_TEXT_SIZE];
    fail_with(delivery, -ETIMEDOUT, "the node's sh did not answer to '%s' within %s",
              steps[delivery->step].verb,
              number_describe_duration((double)steps[delivery->step].timeout_ns * 1e-9, duration));
}

/* ---- reading answers */

static bool is_hash(const char *text) {
    return strlen(text) == HASH_HEX_SIZE - 1 && strspn(text, "0123456789abcdef") == strlen(text);
}

/* True for an absolute path of plain characters. The script prints no others, but the answer of a node is
 * checked all the same. */
static bool is_path(const char *text) {
    return text[0] == '/' && strlen(text) < PATH_BYTES_MAX && agent_package_is_plain(text);
}

static void note_reason(struct agent_delivery *delivery, const char *reason) {
    struct text *reasons = &delivery->reasons;
    /* Reasons beyond the limit are dropped. */
    (void)text_printf(reasons, "%s%s", reasons->length > 0 ? "; " : "", reason);
}

static void copy(char *ret, size_t size, const char *text) {
    snprintf(ret, size, "%s", text);
}

/* Reads one line of an answer, without its mark; LINE is changed in place. False: the line is not valid. */
static bool read_line(struct agent_delivery *delivery, char *line, struct answer *answer) {
    char *rest = line, *word = strsep(&rest, " ");
    if (!rest)
        return false;
    if (strcmp(word, "unfit") == 0) {
        note_reason(delivery, rest);
    } else if (strcmp(word, "unusable") == 0) {
        copy(delivery->reject_reason, sizeof delivery->reject_reason, rest);
    } else if (strcmp(word, "damaged") == 0) {
        if (!delivery->damage[0])
            copy(delivery->damage, sizeof delivery->damage, rest);
    } else {
        uint64_t number;
        char *first = strsep(&rest, " ");
        if (!rest)
            return false;
        if (strcmp(word, "failed") == 0) {
            copy(answer->kind, sizeof answer->kind, first);
            copy(answer->reason, sizeof answer->reason, rest);
        } else if (strcmp(word, "folder") == 0 && number_parse_uint64(first, strlen(first), &number) &&
                   number >= 1 && number < 100 && is_path(rest)) {
            answer->folder = (unsigned)number;
            copy(delivery->folder_path, sizeof delivery->folder_path, rest);
        } else if (strcmp(word, "agent") == 0 && is_hash(first) && is_path(rest)) {
            copy(answer->hash, sizeof answer->hash, first);
            copy(answer->path, sizeof answer->path, rest);
        } else {
            return false;
        }
    }
    return true;
}

/* Reads the lines of OUTPUT that have our mark; others, of login scripts, are skipped. False: there is no
 * such line, or one is not valid. */
static bool read_answer(struct agent_delivery *delivery, const char *output, struct answer *answer) {
    char mark[32];
    size_t length = (size_t)snprintf(mark, sizeof mark, "assay-%s ", delivery->unique);
    *answer = (struct answer){0};
    bool any = false;
    for (const char *at = output; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        if (strncmp(at, mark, length) != 0)
            continue;
        cleanup_free char *line = xstrndup(at + length, strcspn(at + length, "\n"));
        if (!read_line(delivery, line, answer))
            return false;
        any = true;
    }
    return any;
}

/* ---- the next step */

/* Copies the binary or, where that cannot be used, builds the sources; with AGENT_BINARY the delivery fails.
 */
static void copy_or_build(struct agent_delivery *delivery) {
    bool fits = !delivery->reject_reason[0];
    if (!fits && delivery->package->kind == AGENT_BINARY)
        fail_with(delivery, -ENOEXEC, "%s", delivery->reject_reason);
    else
        start_step_or_fail(delivery, fits ? STEP_PUT : STEP_BUILD);
}

/* Handles the answer to `find`: no folder is suitable, an agent was found, or one must be brought. */
static void on_found(struct agent_delivery *delivery, const struct answer *answer) {
    if (!answer->folder) {
        fail_with(delivery, -EACCES, "no folder on the node can hold the agent: %s",
                  delivery->reasons.length > 0 ? delivery->reasons.bytes : "there is none");
        return;
    }
    delivery->folder = answer->folder;
    if (answer->path[0])
        succeed(delivery, answer);
    else
        copy_or_build(delivery);
}

/* Handles the answer that a verb failed: tries the next folder, a build instead of the binary, or gives up.
 */
static void on_failed(struct agent_delivery *delivery, const struct answer *answer) {
    char reason[SENTENCE_SIZE];
    bool ran = strcmp(answer->kind, "run") == 0;
    if (strcmp(answer->kind, "tools") == 0) {
        fail_with(delivery, -ENOEXEC, "%s", answer->reason);
    } else if (strcmp(answer->kind, "folder") == 0) {
        snprintf(reason, sizeof reason, "%s: %s", delivery->folder_path, answer->reason);
        note_reason(delivery, reason);
        delivery->folder++;
        start_step_or_fail(delivery, STEP_FIND);
    } else if (delivery->step == STEP_BUILD) {
        fail_with(delivery, -ENOEXEC, "%s, and %s: %s", delivery->reject_reason,
                  ran ? "what was built there does not run" : "it cannot be built there", answer->reason);
    } else {
        snprintf(delivery->reject_reason, sizeof delivery->reject_reason,
                 "the binary does not run there (%s)", answer->reason);
        if (delivery->package->kind == AGENT_BINARY)
            copy_or_build(delivery); /* fails the delivery */
        else
            start_step_or_fail(delivery, STEP_FIND); /* an agent may have been built on the node before */
    }
}

/* Handles the answer to `put` or `build`. */
static void on_brought(struct agent_delivery *delivery, const struct answer *answer) {
    const char *binary = delivery->package->binary_hash;
    if (!answer->path[0] || (delivery->step == STEP_PUT && strcmp(answer->hash, binary) != 0))
        fail_with(delivery, -EPROTO, "the node's shell did not report the result of '%s'",
                  steps[delivery->step].verb);
    else
        succeed(delivery, answer);
}

/* Fails the delivery, because the script itself failed or did not run: the node has no sh, or the login shell
 * did not run the command. */
static void fail_without_answer(struct agent_delivery *delivery, const struct channel_run_result *result) {
    char how[128];
    int length;
    const char *last_words = text_reason(result->error, &length);
    if (length == 0)
        last_words = text_reason(result->output, &length);
    const char *colon = length > 0 ? ": " : "";
    if (result->output_length >= ANSWER_MAX)
        fail_with(delivery, -EPROTO,
                  "the login shell printed more than %d KiB before the answer to '%s'; silence its startup "
                  "files",
                  AGENT_LOGIN_OUTPUT_MAX >> 10, steps[delivery->step].verb);
    else if (result->end.exited && result->end.code == 0)
        fail_with(delivery, -EPROTO,
                  "the login shell ended with exit status 0 and did not run the command for '%s'; a startup "
                  "file such as ~/.bashrc may have 'exit', or the account no shell%s%.*s",
                  steps[delivery->step].verb, colon, length, last_words);
    else
        fail_with(delivery, -EPROTO, "the node's sh %s%s%.*s",
                  remote_channel_end_describe(&result->end, how, sizeof how), colon, length, last_words);
}

/* A script of the delivery has ended on the node. Goes on to the next step, or fails the delivery. */
static void on_answer(const struct channel_run_result *result, const struct failure *failure, void *context) {
    struct agent_delivery *delivery = context;
    delivery->run = NULL;
    event_source_set_timer(delivery->timeout, -1, 0);
    if (failure) {
        fail(delivery, failure);
        return;
    }
    struct answer answer;
    bool ended_well = result->end.exited && result->end.code == 0;
    if (!ended_well || !read_answer(delivery, result->output, &answer))
        fail_without_answer(delivery, result);
    else if (answer.kind[0])
        on_failed(delivery, &answer);
    else if (delivery->step == STEP_FIND)
        on_found(delivery, &answer);
    else
        on_brought(delivery, &answer);
}

int agent_delivery_start(struct launcher *launcher, const struct agent_package *package,
                         agent_delivery_callback *callback, void *context, struct agent_delivery **ret,
                         struct failure *failure) {
    uint64_t unique;
    if (getrandom(&unique, sizeof unique, 0) != sizeof unique)
        return failure_set(failure, -errno, "cannot draw a random number: %s", strerror(errno));
    struct agent_delivery *delivery = xcalloc(1, sizeof *delivery);
    *delivery = (struct agent_delivery){
        .launcher = launcher, .package = package, .callback = callback, .context = context, .folder = 1};
    if (package->kind == AGENT_SOURCE)
        copy(delivery->reject_reason, sizeof delivery->reject_reason,
             "the campaign asks for a build on the node");
    text_init(&delivery->reasons, REASONS_MAX);
    snprintf(delivery->unique, sizeof delivery->unique, "%016" PRIx64, unique);
    delivery->timeout = event_loop_add_timer(launcher->loop, -1, 0, on_timeout, delivery);
    int r = delivery->timeout ? start_step(delivery, STEP_FIND, failure) : failure_memory(failure);
    if (r < 0) {
        free_delivery(delivery);
        return r;
    }
    *ret = delivery;
    return 0;
}
