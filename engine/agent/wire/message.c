/* protocol.h, second half: the payloads of requests, commands and their answers. */
#include "engine/agent/wire/protocol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- requests */

void protocol_put_number(struct protocol_writer *writer, uint32_t number) {
    protocol_put_u32(writer, number);
}

int protocol_get_number(const struct protocol_frame *frame, uint32_t *ret, struct failure *failure) {
    struct protocol_reader reader;
    protocol_read(&reader, frame->payload, frame->length);
    uint32_t number = protocol_get_u32(&reader);
    int r = protocol_read_end(&reader, frame->type, failure);
    if (r == 0)
        *ret = number;
    return r;
}

void protocol_put_lease(struct protocol_writer *writer, uint64_t lease_ms) {
    protocol_put_u64(writer, lease_ms);
}

int protocol_get_lease(const struct protocol_frame *frame, uint64_t *ret, struct failure *failure) {
    struct protocol_reader reader;
    protocol_read(&reader, frame->payload, frame->length);
    uint64_t lease_ms = protocol_get_u64(&reader);
    if (lease_ms > PROTOCOL_LEASE_LIMIT_MS && !reader.wrong)
        reader.wrong = "its lease is longer than a year";
    int r = protocol_read_end(&reader, frame->type, failure);
    if (r == 0)
        *ret = lease_ms;
    return r;
}

void protocol_put_clock(struct protocol_writer *writer, const struct protocol_clock *clock) {
    protocol_put_u32(writer, clock->request);
    protocol_put_u64(writer, (uint64_t)clock->wall_ns);
    protocol_put_u64(writer, (uint64_t)clock->monotonic_ns);
}

int protocol_get_clock(const struct protocol_frame *frame, struct protocol_clock *ret,
                       struct failure *failure) {
    struct protocol_reader reader;
    protocol_read(&reader, frame->payload, frame->length);
    struct protocol_clock clock;
    clock.request = protocol_get_u32(&reader);
    clock.wall_ns = (int64_t)protocol_get_u64(&reader);
    clock.monotonic_ns = (int64_t)protocol_get_u64(&reader);
    int r = protocol_read_end(&reader, frame->type, failure);
    if (r == 0)
        *ret = clock;
    return r;
}

void protocol_put_hash(struct protocol_writer *writer, const struct protocol_hash *hash) {
    protocol_put_u32(writer, hash->request);
    protocol_put_u64(writer, hash->size);
    protocol_put_bytes(writer, hash->digest, sizeof hash->digest);
}

int protocol_get_hash(const struct protocol_frame *frame, struct protocol_hash *ret,
                      struct failure *failure) {
    struct protocol_reader reader;
    protocol_read(&reader, frame->payload, frame->length);
    struct protocol_hash hash = {0};
    hash.request = protocol_get_u32(&reader);
    hash.size = protocol_get_u64(&reader);
    const char *digest = protocol_get_bytes(&reader, sizeof hash.digest);
    if (digest)
        memcpy(hash.digest, digest, sizeof hash.digest);
    int r = protocol_read_end(&reader, frame->type, failure);
    if (r == 0)
        *ret = hash;
    return r;
}

void protocol_put_path_request(struct protocol_writer *writer, const struct protocol_path_request *request) {
    protocol_put_u32(writer, request->request);
    protocol_put_u32(writer, request->mode);
    protocol_put_u64(writer, request->size);
    protocol_put_string(writer, request->path, PROTOCOL_PATH_LIMIT);
}

int protocol_get_path_request(const struct protocol_frame *frame, struct protocol_path_request *ret,
                              struct failure *failure) {
    struct protocol_reader reader;
    protocol_read(&reader, frame->payload, frame->length);
    struct protocol_path_request request;
    request.request = protocol_get_u32(&reader);
    request.mode = protocol_get_u32(&reader);
    request.size = protocol_get_u64(&reader);
    request.path = protocol_get_string(&reader, PROTOCOL_PATH_LIMIT);
    if (request.mode > 0777 && !reader.wrong)
        reader.wrong = "its mode has more than permission bits";
    int r = protocol_read_end(&reader, frame->type, failure);
    if (r == 0)
        *ret = request;
    return r;
}

int protocol_get_data(const struct protocol_frame *frame, struct protocol_data *ret,
                      struct failure *failure) {
    struct protocol_reader reader;
    protocol_read(&reader, frame->payload, frame->length);
    struct protocol_data data = {0};
    data.number = protocol_get_u32(&reader);
    if (frame->type == PROTOCOL_OUTPUT) {
        data.stream = protocol_get_u8(&reader);
        if ((data.stream < 1 || data.stream > 2) && !reader.wrong)
            reader.wrong = "its stream is neither 1 nor 2";
    }
    data.bytes = protocol_get_rest(&reader, &data.length);
    int r = protocol_read_end(&reader, frame->type, failure);
    if (r == 0)
        *ret = data;
    return r;
}

void protocol_put_error(struct protocol_writer *writer, const struct protocol_error *error) {
    protocol_put_u32(writer, error->number);
    protocol_put_u32(writer, (uint32_t)error->code);
    protocol_put_string(writer, error->sentence, PROTOCOL_SENTENCE_LIMIT);
}

int protocol_get_error(const struct protocol_frame *frame, struct protocol_error *ret,
                       struct failure *failure) {
    struct protocol_reader reader;
    protocol_read(&reader, frame->payload, frame->length);
    struct protocol_error error;
    error.number = protocol_get_u32(&reader);
    error.code = (int32_t)protocol_get_u32(&reader);
    error.sentence = protocol_get_string(&reader, PROTOCOL_SENTENCE_LIMIT);
    if ((error.code >= 0 || error.code < -4095) && !reader.wrong)
        reader.wrong = "its code is not a negative errno";
    int r = protocol_read_end(&reader, frame->type, failure);
    if (r == 0)
        *ret = error;
    return r;
}

void protocol_put_statistics(struct protocol_writer *writer, const struct protocol_statistics *statistics) {
    protocol_put_u32(writer, statistics->request);
    protocol_put_u64(writer, (uint64_t)statistics->user_us);
    protocol_put_u64(writer, (uint64_t)statistics->system_us);
    protocol_put_u64(writer, statistics->rss_bytes);
    protocol_put_u64(writer, statistics->rss_peak_bytes);
    protocol_put_u64(writer, statistics->frames_received);
    protocol_put_u64(writer, statistics->frames_sent);
    protocol_put_u64(writer, statistics->bytes_received);
    protocol_put_u64(writer, statistics->bytes_sent);
    protocol_put_u64(writer, statistics->wakeups);
    protocol_put_u32(writer, statistics->commands);
}

int protocol_get_statistics(const struct protocol_frame *frame, struct protocol_statistics *ret,
                            struct failure *failure) {
    struct protocol_reader reader;
    protocol_read(&reader, frame->payload, frame->length);
    struct protocol_statistics statistics;
    statistics.request = protocol_get_u32(&reader);
    statistics.user_us = (int64_t)protocol_get_u64(&reader);
    statistics.system_us = (int64_t)protocol_get_u64(&reader);
    statistics.rss_bytes = protocol_get_u64(&reader);
    statistics.rss_peak_bytes = protocol_get_u64(&reader);
    statistics.frames_received = protocol_get_u64(&reader);
    statistics.frames_sent = protocol_get_u64(&reader);
    statistics.bytes_received = protocol_get_u64(&reader);
    statistics.bytes_sent = protocol_get_u64(&reader);
    statistics.wakeups = protocol_get_u64(&reader);
    statistics.commands = protocol_get_u32(&reader);
    int r = protocol_read_end(&reader, frame->type, failure);
    if (r == 0)
        *ret = statistics;
    return r;
}

/* ---- RUN */

static void put_strings(struct protocol_writer *writer, const char *const *strings, uint32_t count) {
    protocol_put_u32(writer, count);
    for (uint32_t i = 0; i < count; i++)
        protocol_put_string(writer, strings[i], PROTOCOL_PAYLOAD_LIMIT);
}

void protocol_put_run(struct protocol_writer *writer, const struct protocol_run *run) {
    protocol_put_u32(writer, run->command);
    protocol_put_u8(writer, run->input);
    protocol_put_u8(writer, run->output);
    protocol_put_u8(writer, run->error);
    protocol_put_u32(writer, run->grace_ms);
    protocol_put_u32(writer, run->coalesce_ms);
    protocol_put_u64(writer, run->timeout_ms);
    protocol_put_u64(writer, run->output_limit);
    protocol_put_u64(writer, run->error_limit);
    protocol_put_string(writer, run->folder, PROTOCOL_PATH_LIMIT);
    put_strings(writer, run->arguments, run->argument_count);
    put_strings(writer, run->environment, run->environment_count);
    protocol_put_u32(writer, run->pu_count);
    for (uint32_t i = 0; i < run->pu_count; i++)
        protocol_put_u32(writer, run->pus[i]);
}

/* The limit is checked before the array is allocated, and each string takes five bytes at least, so a short
 * message cannot ask for much memory. */
static const char **get_strings(struct protocol_reader *reader, uint32_t limit, uint32_t *ret_count) {
    uint32_t count = protocol_get_u32(reader);
    if (count > limit || count > (size_t)(reader->end - reader->at) / 5) {
        if (!reader->wrong)
            reader->wrong = "it has too many strings";
        return NULL;
    }
    const char **strings = calloc((size_t)count + 1, sizeof *strings);
    for (uint32_t i = 0; strings && i < count; i++)
        strings[i] = protocol_get_string(reader, PROTOCOL_PAYLOAD_LIMIT);
    if (strings)
        *ret_count = count;
    return strings;
}

static uint32_t *get_pus(struct protocol_reader *reader, uint32_t *ret_count) {
    uint32_t count = protocol_get_u32(reader);
    if (count > PROTOCOL_PU_LIMIT || count > (size_t)(reader->end - reader->at) / 4) {
        if (!reader->wrong)
            reader->wrong = "it has too many PUs";
        return NULL;
    }
    uint32_t *pus = calloc((size_t)count + 1, sizeof *pus);
    for (uint32_t i = 0; pus && i < count; i++)
        pus[i] = protocol_get_u32(reader);
    if (pus)
        *ret_count = count;
    return pus;
}

void protocol_run_clear(struct protocol_run *run) {
    free(run->arguments);
    free(run->environment);
    free(run->pus);
    *run = (struct protocol_run){0};
}

int protocol_get_run(const struct protocol_frame *frame, struct protocol_run *ret, struct failure *failure) {
    struct protocol_reader reader;
    protocol_read(&reader, frame->payload, frame->length);
    struct protocol_run run = {0};
    run.command = protocol_get_u32(&reader);
    run.input = protocol_get_u8(&reader);
    run.output = protocol_get_u8(&reader);
    run.error = protocol_get_u8(&reader);
    run.grace_ms = protocol_get_u32(&reader);
    run.coalesce_ms = protocol_get_u32(&reader);
    run.timeout_ms = protocol_get_u64(&reader);
    run.output_limit = protocol_get_u64(&reader);
    run.error_limit = protocol_get_u64(&reader);
    run.folder = protocol_get_string(&reader, PROTOCOL_PATH_LIMIT);
    run.arguments = get_strings(&reader, PROTOCOL_ARGUMENT_LIMIT, &run.argument_count);
    run.environment = get_strings(&reader, PROTOCOL_ENVIRONMENT_LIMIT, &run.environment_count);
    run.pus = get_pus(&reader, &run.pu_count);
    int r = protocol_read_end(&reader, frame->type, failure);
    if (r == 0 && (!run.arguments || !run.environment || !run.pus))
        r = failure_memory(failure);
    if (r < 0) {
        protocol_run_clear(&run);
        return r;
    }
    *ret = run;
    return 0;
}

static size_t bytes_of(const char *const *strings, uint32_t count) {
    size_t total = 0;
    for (uint32_t i = 0; i < count; i++)
        total += strlen(strings[i]) + 1;
    return total;
}

static int check_environment(const struct protocol_run *run, struct failure *failure) {
    if (run->environment_count > PROTOCOL_ENVIRONMENT_LIMIT)
        return failure_set(failure, -E2BIG, "%u environment variables are added; at most %d are allowed",
                           run->environment_count, PROTOCOL_ENVIRONMENT_LIMIT);
    if (bytes_of(run->environment, run->environment_count) > PROTOCOL_ENVIRONMENT_BYTES)
        return failure_set(failure, -E2BIG, "the added environment has more than %d bytes",
                           PROTOCOL_ENVIRONMENT_BYTES);
    for (uint32_t i = 0; i < run->environment_count; i++)
        if (run->environment[i][0] == '\0' || run->environment[i][0] == '=')
            return failure_set(failure, -EINVAL, "an environment variable has no name: '%.64s'",
                               run->environment[i]);
    return 0;
}

int protocol_check_run(const struct protocol_run *run, struct failure *failure) {
    if (run->argument_count == 0 || run->arguments[0][0] == '\0')
        return failure_set(failure, -EINVAL, "a command has no program");
    if (run->argument_count > PROTOCOL_ARGUMENT_LIMIT)
        return failure_set(failure, -E2BIG, "a command has %u arguments; at most %d are allowed",
                           run->argument_count, PROTOCOL_ARGUMENT_LIMIT);
    if (bytes_of(run->arguments, run->argument_count) > PROTOCOL_ARGUMENT_BYTES)
        return failure_set(failure, -E2BIG, "the arguments of '%.64s' have more than %d bytes",
                           run->arguments[0], PROTOCOL_ARGUMENT_BYTES);
    int r = check_environment(run, failure);
    if (r < 0)
        return r;
    if (strnlen(run->folder, PROTOCOL_PATH_LIMIT + 1) > PROTOCOL_PATH_LIMIT)
        return failure_set(failure, -ENAMETOOLONG, "the working directory of '%.64s' has more than %d bytes",
                           run->arguments[0], PROTOCOL_PATH_LIMIT);
    if (run->input > PROTOCOL_MODE_NULL || run->output > PROTOCOL_MODE_NULL ||
        run->error > PROTOCOL_MODE_MERGE)
        return failure_set(failure, -EINVAL, "a stream of '%.64s' has an unknown mode", run->arguments[0]);
    if (run->coalesce_ms > PROTOCOL_COALESCE_LIMIT_MS)
        return failure_set(failure, -EINVAL,
                           "the output of '%.64s' is to gather for %u ms; at most %d are allowed",
                           run->arguments[0], run->coalesce_ms, PROTOCOL_COALESCE_LIMIT_MS);
    if (run->pu_count > PROTOCOL_PU_LIMIT)
        return failure_set(failure, -E2BIG, "a command is pinned to %u PUs; at most %d are allowed",
                           run->pu_count, PROTOCOL_PU_LIMIT);
    for (uint32_t i = 0; i < run->pu_count; i++)
        if (run->pus[i] >= PROTOCOL_PU_LIMIT)
            return failure_set(failure, -EINVAL, "there is no PU %u; the highest that can be named is %d",
                               run->pus[i], PROTOCOL_PU_LIMIT - 1);
    return 0;
}

/* ---- the rest of a command's life */

void protocol_put_amount(struct protocol_writer *writer, const struct protocol_amount *amount) {
    protocol_put_u32(writer, amount->command);
    protocol_put_u64(writer, amount->amount);
}

int protocol_get_amount(const struct protocol_frame *frame, struct protocol_amount *ret,
                        struct failure *failure) {
    struct protocol_reader reader;
    protocol_read(&reader, frame->payload, frame->length);
    struct protocol_amount amount;
    amount.command = protocol_get_u32(&reader);
    amount.amount = protocol_get_u64(&reader);
    if (frame->type == PROTOCOL_KILL && (amount.amount < 1 || amount.amount > 64) && !reader.wrong)
        reader.wrong = "its signal is not one of 1 to 64";
    int r = protocol_read_end(&reader, frame->type, failure);
    if (r == 0)
        *ret = amount;
    return r;
}

void protocol_put_started(struct protocol_writer *writer, const struct protocol_started *started) {
    protocol_put_u32(writer, started->command);
    protocol_put_u32(writer, started->pid);
    protocol_put_u64(writer, (uint64_t)started->wall_ns);
    protocol_put_u64(writer, (uint64_t)started->monotonic_ns);
    protocol_put_u64(writer, started->credit);
}

int protocol_get_started(const struct protocol_frame *frame, struct protocol_started *ret,
                         struct failure *failure) {
    struct protocol_reader reader;
    protocol_read(&reader, frame->payload, frame->length);
    struct protocol_started started;
    started.command = protocol_get_u32(&reader);
    started.pid = protocol_get_u32(&reader);
    started.wall_ns = (int64_t)protocol_get_u64(&reader);
    started.monotonic_ns = (int64_t)protocol_get_u64(&reader);
    started.credit = protocol_get_u64(&reader);
    int r = protocol_read_end(&reader, frame->type, failure);
    if (r == 0)
        *ret = started;
    return r;
}

void protocol_put_exited(struct protocol_writer *writer, const struct protocol_exited *exited) {
    protocol_put_u32(writer, exited->command);
    protocol_put_u32(writer, exited->flags);
    protocol_put_u32(writer, exited->code);
    protocol_put_u64(writer, (uint64_t)exited->wall_ns);
    protocol_put_u64(writer, (uint64_t)exited->monotonic_ns);
    protocol_put_u64(writer, (uint64_t)exited->user_us);
    protocol_put_u64(writer, (uint64_t)exited->system_us);
    protocol_put_u64(writer, exited->rss_peak_bytes);
    protocol_put_u64(writer, exited->output_bytes);
    protocol_put_u64(writer, exited->error_bytes);
    protocol_put_u64(writer, exited->input_bytes);
}

int protocol_get_exited(const struct protocol_frame *frame, struct protocol_exited *ret,
                        struct failure *failure) {
    struct protocol_reader reader;
    protocol_read(&reader, frame->payload, frame->length);
    struct protocol_exited exited;
    exited.command = protocol_get_u32(&reader);
    exited.flags = protocol_get_u32(&reader);
    exited.code = protocol_get_u32(&reader);
    exited.wall_ns = (int64_t)protocol_get_u64(&reader);
    exited.monotonic_ns = (int64_t)protocol_get_u64(&reader);
    exited.user_us = (int64_t)protocol_get_u64(&reader);
    exited.system_us = (int64_t)protocol_get_u64(&reader);
    exited.rss_peak_bytes = protocol_get_u64(&reader);
    exited.output_bytes = protocol_get_u64(&reader);
    exited.error_bytes = protocol_get_u64(&reader);
    exited.input_bytes = protocol_get_u64(&reader);
    if ((exited.flags & ~(uint32_t)PROTOCOL_EXIT_FLAGS || exited.code > 255) && !reader.wrong)
        reader.wrong = "its status or flags do not exist";
    int r = protocol_read_end(&reader, frame->type, failure);
    if (r == 0)
        *ret = exited;
    return r;
}
