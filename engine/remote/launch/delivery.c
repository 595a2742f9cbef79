#include "engine/remote/launch/delivery.h"

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

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
    ANSWER_MOST = 65536,   /* bytes of what a verb prints */
    AGENT_MOST = 64 << 20, /* bytes of an agent that comes back to be hashed */
    COMMAND_MOST = 512,
    REASON_SIZE = 512,
    SENTENCE_SIZE = 2048,   /* room for a path and a reason */
    PATH_BYTES_MOST = 1024, /* of the agent on the node */
    REASONS_MOST = 1200,    /* bytes of why folders would not do: they are to fit in a failure */
    UNIQUE_SIZE = 17,       /* 16 hexadecimal digits */
    MARK_SIZE = 32,         /* "assay-UNIQUE " */
};
#define STEP_PATIENCE (120 * EVENT_SECOND)
#define BUILD_PATIENCE (600 * EVENT_SECOND)

/* What the node's sh is doing; the verbs of delivery.sh. */
enum step { STEP_FIND, STEP_PUT, STEP_BUILD, STEP_SHOW, STEP_PEEK, STEP_ACCEPT, STEP_REFUSE };

static const struct {
    const char *verb;
    enum agent_input input;
    bool brings_agent; /* prints one, in place of answers */
} steps[] = {
    [STEP_FIND] = {"find", AGENT_INPUT_SCRIPT, false},
    [STEP_PUT] = {"put", AGENT_INPUT_BINARY, false},
    [STEP_BUILD] = {"build", AGENT_INPUT_SOURCE, false},
    [STEP_SHOW] = {"show", AGENT_INPUT_SCRIPT, true},
    [STEP_PEEK] = {"peek", AGENT_INPUT_SCRIPT, true},
    [STEP_ACCEPT] = {"accept", AGENT_INPUT_SCRIPT, false},
    [STEP_REFUSE] = {"refuse", AGENT_INPUT_SCRIPT, false},
};

struct agent_delivery {
    struct ssh_connection *connection;
    const struct agent_package *package;
    agent_delivery_callback *callback;
    void *context;
    struct ssh_run *run;
    struct event_source *patience; /* timer */
    int64_t patience_ns;
    enum step step;
    char unique[UNIQUE_SIZE];
    unsigned folder;             /* its number: where to look on, or what was found */
    char where[PATH_BYTES_MOST]; /* its path; "" while there is none */
    char system[64], machine[64];
    bool binary_runs; /* as far as is known */
    char binary_trouble[REASON_SIZE];
    bool building;                 /* the copy that is being brought is built there */
    char hash[HASH_HEX_SIZE];      /* of the copy that is being checked here */
    char checked[PATH_BYTES_MOST]; /* and its path */
    struct text reasons;
    char damage[REASON_SIZE]; /* "" for none */
};

/* What a verb answered. */
struct answer {
    bool has_folder, has_agent, has_unchecked, has_failed, has_unusable;
    unsigned folder;
    char where[PATH_BYTES_MOST];
    char hash[HASH_HEX_SIZE]; /* of the agent, or of one to be checked; "" for a new one of ours */
    char path[PATH_BYTES_MOST];
    char kind[16], reason[REASON_SIZE];
};

static void free_delivery(struct agent_delivery *delivery) {
    event_source_remove(delivery->patience);
    text_clear(&delivery->reasons);
    free(delivery);
}

void agent_delivery_cancel(struct agent_delivery *delivery) {
    if (!delivery)
        return;
    ssh_run_cancel(delivery->run);
    free_delivery(delivery);
}

/* ---- its end */

static void fail(struct agent_delivery *delivery, const struct failure *why) {
    struct failure failure = *why;
    if (!failure.place[0])
        snprintf(failure.place, sizeof failure.place, "node %s", ssh_connection_name(delivery->connection));
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
    failure_set(&failure, code, "cannot bring the agent: %s", sentence);
    fail(delivery, &failure);
}

static void succeed(struct agent_delivery *delivery, const struct answer *answer) {
    char damage[REASON_SIZE];
    memcpy(damage, delivery->damage, sizeof damage);
    bool built =
        delivery->building || strcmp(answer->hash, agent_package_binary_hash(delivery->package)) != 0;
    struct agent_delivered delivered = {.path = answer->path,
                                        .built = built,
                                        .found = delivery->step == STEP_FIND || delivery->step == STEP_PEEK,
                                        .hash = answer->hash,
                                        .damage = damage[0] ? damage : NULL};
    agent_delivery_callback *callback = delivery->callback;
    void *context = delivery->context;
    free_delivery(delivery);
    callback(&delivered, NULL, context);
}

/* ---- steps */

static void on_answer(const struct ssh_run_result *result, const struct failure *failure, void *context);

static const char *or_none(const char *hash) {
    return hash[0] ? hash : "-";
}

/* The verb and its arguments. The script is read byte by byte, so that what follows it on stdin is left for
 * what it starts. */
static int make_command(const struct agent_delivery *delivery, enum step step, char *ret, size_t size) {
    const struct agent_package *package = delivery->package;
    const char *binary = agent_package_binary_hash(package), *source = agent_package_source_hash(package);
    if (step == STEP_ACCEPT || step == STEP_PEEK)
        binary = delivery->hash;
    if (step == STEP_FIND && !delivery->binary_runs)
        binary = "";
    if (step == STEP_ACCEPT && !delivery->building)
        source = "";
    int length =
        snprintf(ret, size,
                 "exec /bin/sh -c 'eval \"$(dd bs=1 count=%zu 2>/dev/null)\"' assay-delivery %s %s %u "
                 "%s %s %s",
                 agent_package_script_length(package), steps[step].verb, delivery->unique, delivery->folder,
                 or_none(binary), or_none(source), or_none(agent_package_machine(package)));
    return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

static int start_step(struct agent_delivery *delivery, enum step step, struct failure *failure) {
    char command[COMMAND_MOST];
    if (make_command(delivery, step, command, sizeof command) < 0)
        return failure_set(failure, -ENAMETOOLONG, "the command that brings the agent is too long");
    size_t length;
    const char *input = agent_package_input(delivery->package, steps[step].input, &length);
    delivery->step = step;
    delivery->patience_ns = step == STEP_BUILD ? BUILD_PATIENCE : STEP_PATIENCE;
    event_source_set_timer(delivery->patience, delivery->patience_ns, 0);
    return ssh_run_start(delivery->connection, command, input, length,
                         steps[step].brings_agent ? AGENT_MOST : ANSWER_MOST, on_answer, delivery,
                         &delivery->run, failure);
}

static void take_step(struct agent_delivery *delivery, enum step step) {
    struct failure failure = {0};
    if (start_step(delivery, step, &failure) < 0)
        fail(delivery, &failure);
}

static void on_patience(struct event_source *self, void *context) {
    (void)self;
    struct agent_delivery *delivery = context;
    char duration[NUMBER_TEXT_SIZE];
    fail_with(delivery, -ETIMEDOUT, "the node's sh did not answer to '%s' within %s",
              steps[delivery->step].verb,
              number_describe_duration((double)delivery->patience_ns * 1e-9, duration));
}

/* ---- reading answers */

static bool copy_word(const char *word, size_t length, char *ret, size_t size) {
    if (length == 0 || length >= size)
        return false;
    memcpy(ret, word, length);
    ret[length] = '\0';
    return true;
}

static bool is_hash(const char *text) {
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

/* Of the characters that a command may have: the script sees to it, but it was the node that said so. */
static bool is_path(const char *text) {
    return text[0] == '/' && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                          "_@%+=:,./-") == strlen(text);
}

/* "HASH PATH"; the hash may be "-". */
static bool read_agent(const char *rest, struct answer *answer) {
    size_t length = strcspn(rest, " ");
    char hash[HASH_HEX_SIZE];
    if (!copy_word(rest, length, hash, sizeof hash) || !rest[length] || !is_path(rest + length + 1) ||
        !copy_word(rest + length + 1, strlen(rest + length + 1), answer->path, sizeof answer->path))
        return false;
    bool fresh = strcmp(hash, "-") == 0;
    if (!fresh && !is_hash(hash))
        return false;
    memcpy(answer->hash, fresh ? "" : hash, fresh ? 1 : sizeof hash);
    return true;
}

static void note_reason(struct agent_delivery *delivery, const char *reason) {
    struct text *reasons = &delivery->reasons;
    /* Beyond its limit the rest is left out: that there is none has been said often enough. */
    (void)text_printf(reasons, "%s%s", reasons->length > 0 ? "; " : "", reason);
}

static void read_machine(struct agent_delivery *delivery, const char *rest) {
    size_t length = strcspn(rest, " ");
    (void)copy_word(rest, length, delivery->system, sizeof delivery->system);
    if (rest[length])
        (void)copy_word(rest + length + 1, strlen(rest + length + 1), delivery->machine,
                        sizeof delivery->machine);
}

/* One line of an answer, without its mark. False when it makes no sense. */
static bool read_line(struct agent_delivery *delivery, const char *line, struct answer *answer) {
    size_t length = strcspn(line, " ");
    const char *rest = line + length + (line[length] != '\0');
    size_t number = strcspn(rest, " ");
    uint64_t folder;
    if (strncmp(line, "machine ", 8) == 0) {
        read_machine(delivery, rest);
        return true;
    }
    if (strncmp(line, "unfit ", 6) == 0) {
        note_reason(delivery, rest);
        return true;
    }
    if (strncmp(line, "folder ", 7) == 0) {
        answer->has_folder = number_parse_uint64(rest, number, &folder) && folder >= 1 && folder < 100;
        answer->folder = answer->has_folder ? (unsigned)folder : 0;
        return answer->has_folder && rest[number] && is_path(rest + number + 1) &&
               copy_word(rest + number + 1, strlen(rest + number + 1), answer->where, sizeof answer->where);
    }
    if (strncmp(line, "agent ", 6) == 0)
        return answer->has_agent = read_agent(rest, answer) && answer->hash[0];
    if (strncmp(line, "unchecked ", 10) == 0)
        return answer->has_unchecked = read_agent(rest, answer);
    if (strncmp(line, "unusable ", 9) == 0 || strncmp(line, "failed ", 7) == 0) {
        bool failed = line[0] == 'f';
        *(failed ? &answer->has_failed : &answer->has_unusable) = true;
        if (failed && !copy_word(rest, number, answer->kind, sizeof answer->kind))
            return false;
        const char *reason = failed ? rest + number + (rest[number] != '\0') : rest;
        snprintf(answer->reason, sizeof answer->reason, "%s", reason);
        return true;
    }
    if (strncmp(line, "damaged ", 8) != 0)
        return false;
    if (!delivery->damage[0])
        snprintf(delivery->damage, sizeof delivery->damage, "%s", rest);
    return true;
}

static const char *mark_of(const struct agent_delivery *delivery, char mark[static MARK_SIZE]) {
    snprintf(mark, MARK_SIZE, "assay-%s ", delivery->unique);
    return mark;
}

/* The first line that has our mark, after AT; NULL if none has. What login scripts print is passed over. */
static const char *find_line(const struct agent_delivery *delivery, const char *at) {
    char mark[MARK_SIZE];
    size_t length = strlen(mark_of(delivery, mark));
    while (at && strncmp(at, mark, length) != 0) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    return at ? at + length : NULL;
}

static bool read_answer(struct agent_delivery *delivery, const char *output, struct answer *answer) {
    *answer = (struct answer){0};
    bool any = false;
    for (const char *at = find_line(delivery, output); at; at = find_line(delivery, at)) {
        size_t length = strcspn(at, "\n");
        cleanup_free char *line = strndup(at, length);
        if (!line || !read_line(delivery, line, answer))
            return false;
        any = true;
        at += length;
    }
    return any;
}

/* ---- deciding what is next */

static void find_on(struct agent_delivery *delivery) {
    delivery->folder++;
    delivery->building = false;
    take_step(delivery, STEP_FIND);
}

static bool binary_fits(const struct agent_delivery *delivery) {
    return agent_package_kind(delivery->package) != AGENT_SOURCE && delivery->binary_runs &&
           strcmp(delivery->system, "Linux") == 0 &&
           strcmp(delivery->machine, agent_package_machine(delivery->package)) == 0;
}

/* Why the binary will not do there. */
static void describe_misfit(const struct agent_delivery *delivery, char *ret, size_t size) {
    if (agent_package_kind(delivery->package) == AGENT_SOURCE)
        snprintf(ret, size, "it is to be built on the node");
    else if (!delivery->binary_runs)
        snprintf(ret, size, "the binary does not run there (%s)", delivery->binary_trouble);
    else
        snprintf(ret, size, "the node is a %s %s and the binary is for Linux %s", delivery->system,
                 delivery->machine, agent_package_machine(delivery->package));
}

static void bring(struct agent_delivery *delivery) {
    delivery->building = !binary_fits(delivery);
    if (delivery->building && agent_package_kind(delivery->package) == AGENT_BINARY) {
        char misfit[SENTENCE_SIZE];
        describe_misfit(delivery, misfit, sizeof misfit);
        fail_with(delivery, -ENOEXEC, "%s", misfit);
        return;
    }
    take_step(delivery, delivery->building ? STEP_BUILD : STEP_PUT);
}

/* An agent that nothing there can hash: its bytes come here. */
static void check_here(struct agent_delivery *delivery, const struct answer *answer, enum step step) {
    memcpy(delivery->hash, answer->hash, sizeof delivery->hash);
    memcpy(delivery->checked, answer->path, sizeof delivery->checked);
    take_step(delivery, step);
}

static void binary_is_useless(struct agent_delivery *delivery, const char *reason) {
    delivery->binary_runs = false;
    snprintf(delivery->binary_trouble, sizeof delivery->binary_trouble, "%s", reason);
}

static void on_found(struct agent_delivery *delivery, const struct answer *answer) {
    if (answer->has_unusable)
        binary_is_useless(delivery, answer->reason);
    if (!answer->has_folder) {
        fail_with(delivery, -EACCES, "no folder on the node will do: %s",
                  delivery->reasons.length > 0 ? delivery->reasons.bytes : "there is none");
        return;
    }
    delivery->folder = answer->folder;
    memcpy(delivery->where, answer->where, sizeof delivery->where);
    if (answer->has_agent)
        succeed(delivery, answer);
    else if (answer->has_unchecked && answer->hash[0])
        check_here(delivery, answer, STEP_PEEK);
    else
        bring(delivery);
}

static void on_failed(struct agent_delivery *delivery, const struct answer *answer) {
    char reason[SENTENCE_SIZE], misfit[SENTENCE_SIZE];
    if (strcmp(answer->kind, "folder") == 0) {
        snprintf(reason, sizeof reason, "%s: %s", delivery->where, answer->reason);
        note_reason(delivery, reason);
        find_on(delivery);
    } else if (delivery->building) {
        describe_misfit(delivery, misfit, sizeof misfit);
        fail_with(delivery, -ENOEXEC, "%s, and %s: %s", misfit,
                  strcmp(answer->kind, "run") == 0 ? "what was built there does not run"
                                                   : "it cannot be built there",
                  answer->reason);
    } else {
        binary_is_useless(delivery, answer->reason);
        if (agent_package_kind(delivery->package) == AGENT_BINARY)
            bring(delivery); /* that is: it fails */
        else
            take_step(delivery, STEP_FIND); /* one may have been built there before */
    }
}

/* After put, build and accept. */
static void on_brought(struct agent_delivery *delivery, const struct answer *answer) {
    const char *expected = delivery->step == STEP_ACCEPT ? delivery->hash
                           : delivery->building          ? NULL
                                                         : agent_package_binary_hash(delivery->package);
    if (answer->has_failed)
        on_failed(delivery, answer);
    else if (answer->has_unchecked)
        check_here(delivery, answer, STEP_SHOW);
    else if (!answer->has_agent || (expected && strcmp(answer->hash, expected) != 0))
        fail_with(delivery, -EPROTO, "the node's sh did not say what became of '%s'",
                  steps[delivery->step].verb);
    else
        succeed(delivery, answer);
}

/* The bytes of an agent: is it the one that it should be? A new one that was built is what it is. */
static void on_bytes(struct agent_delivery *delivery, const struct ssh_run_result *result) {
    char hash[HASH_HEX_SIZE];
    const char *at = find_line(delivery, result->output);
    static const char word[] = "bytes\n";
    if (!at || strncmp(at, word, sizeof word - 1) != 0) {
        fail_with(delivery, -EPROTO, "the node's sh did not show the agent");
        return;
    }
    at += sizeof word - 1;
    if (hash_bytes(at, result->output_length - (size_t)(at - result->output), hash) < 0) {
        fail_with(delivery, -ENOMEM, "out of memory");
        return;
    }
    bool fresh = delivery->step == STEP_SHOW;
    bool good = delivery->hash[0] ? strcmp(hash, delivery->hash) == 0 : delivery->building;
    if (good && !fresh) {
        struct answer answer = {.has_agent = true};
        memcpy(answer.hash, hash, sizeof hash);
        memcpy(answer.path, delivery->checked, sizeof answer.path);
        succeed(delivery, &answer);
    } else if (good) {
        memcpy(delivery->hash, hash, sizeof hash);
        take_step(delivery, STEP_ACCEPT);
    } else if (fresh) {
        take_step(delivery, STEP_REFUSE);
    } else {
        snprintf(delivery->damage, sizeof delivery->damage, "%.*s: its SHA-256 is %s",
                 (int)(sizeof delivery->damage - HASH_HEX_SIZE - 32), delivery->checked, hash);
        bring(delivery); /* in its place */
    }
}

/* The script itself failed: there is no sh, or it is none. */
static void explain_end(struct agent_delivery *delivery, const struct ssh_run_result *result) {
    char words[256];
    size_t length = strcspn(result->error, "\n");
    snprintf(words, sizeof words, "%.*s", (int)(length < sizeof words ? length : sizeof words - 1),
             result->error);
    const char *colon = words[0] ? ": " : "";
    if (result->end.signal[0])
        fail_with(delivery, -EPROTO, "the node's sh was killed by signal %s%s%s", result->end.signal, colon,
                  words);
    else if (result->end.exited && result->end.code != 0)
        fail_with(delivery, -EPROTO, "the node's sh ended with exit status %d%s%s", result->end.code, colon,
                  words);
    else
        fail_with(delivery, -EPROTO, "the node's answer to '%s' makes no sense%s%s",
                  steps[delivery->step].verb, colon, words);
}

static void on_answer(const struct ssh_run_result *result, const struct failure *failure, void *context) {
    struct agent_delivery *delivery = context;
    delivery->run = NULL;
    event_source_set_timer(delivery->patience, -1, 0);
    if (failure) {
        fail(delivery, failure);
        return;
    }
    struct answer answer;
    bool ended_well = result->end.exited && result->end.code == 0;
    if (ended_well && steps[delivery->step].brings_agent) {
        on_bytes(delivery, result);
    } else if (ended_well && delivery->step == STEP_REFUSE) {
        char reason[SENTENCE_SIZE];
        snprintf(reason, sizeof reason, "%s: a copy does not read back as it was written", delivery->where);
        note_reason(delivery, reason);
        find_on(delivery);
    } else if (!ended_well || !read_answer(delivery, result->output, &answer)) {
        explain_end(delivery, result);
    } else if (delivery->step == STEP_FIND) {
        on_found(delivery, &answer);
    } else {
        on_brought(delivery, &answer);
    }
}

int agent_delivery_start(struct ssh_connection *connection, const struct agent_package *package,
                         agent_delivery_callback *callback, void *context, struct agent_delivery **ret,
                         struct failure *failure) {
    uint64_t unique;
    if (getrandom(&unique, sizeof unique, 0) != sizeof unique)
        return failure_set(failure, -errno, "cannot draw a random number: %s", strerror(errno));
    struct agent_delivery *delivery = xcalloc(1, sizeof *delivery);
    *delivery = (struct agent_delivery){.connection = connection,
                                        .package = package,
                                        .callback = callback,
                                        .context = context,
                                        .folder = 1,
                                        .binary_runs = true};
    text_init(&delivery->reasons, REASONS_MOST);
    snprintf(delivery->unique, sizeof delivery->unique, "%016" PRIx64, unique);
    delivery->patience = event_loop_add_timer(ssh_connection_loop(connection), -1, 0, on_patience, delivery);
    int r = delivery->patience ? start_step(delivery, STEP_FIND, failure) : failure_memory(failure);
    if (r < 0) {
        free_delivery(delivery);
        return r;
    }
    *ret = delivery;
    return 0;
}
