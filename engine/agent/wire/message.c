/* The messages, described field by field, and one encoder and decoder for all of them. */
#include "engine/agent/wire/protocol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A letter a field, in the order of the payload, which is also that of the members of the struct:
 *
 *     b i q     u8, u32 and i32, u64 and i64
 *     m         the magic number, of which there is no member
 *     v         u16: the version; of another version's message nothing else is read
 *     n p s     string: const char *, of a name, a path, a sentence
 *     d         the 32 bytes of a SHA-256
 *     r         all bytes to the end: const char * and size_t
 *     a e u     u32 count, then strings (arguments, environment) or u32s (PUs): an array and u32
 *     -         a u8 that is in the struct only
 */
static const struct message {
    enum protocol_type type;
    const char *name, *fields;
} messages[] = {
    {PROTOCOL_HELLO, "HELLO", "mvqqiinnd"},
    {PROTOCOL_REFUSE, "REFUSE", "s"},
    {PROTOCOL_ACK, "ACK", ""},
    {PROTOCOL_INSPECT, "INSPECT", "i"},
    {PROTOCOL_STATISTICS, "STATISTICS", "i"},
    {PROTOCOL_LEASE, "LEASE", "q"},
    {PROTOCOL_LEAVE, "LEAVE", ""},
    {PROTOCOL_CLOCK, "CLOCK", "i"},
    {PROTOCOL_RUN, "RUN", "ibbbiiqqqpaeu"},
    {PROTOCOL_INPUT, "INPUT", "i-r"},
    {PROTOCOL_INPUT_END, "INPUT_END", "i"},
    {PROTOCOL_KILL, "KILL", "iq"},
    {PROTOCOL_FACTS, "FACTS", "i-r"},
    {PROTOCOL_ERROR, "ERROR", "iis"},
    {PROTOCOL_STATISTICS_REPLY, "STATISTICS_REPLY", "iqqqqqqqqqi"},
    {PROTOCOL_CLOCK_REPLY, "CLOCK_REPLY", "iqq"},
    {PROTOCOL_STARTED, "STARTED", "iiqqq"},
    {PROTOCOL_FAILED, "FAILED", "iis"},
    {PROTOCOL_OUTPUT, "OUTPUT", "ibr"},
    {PROTOCOL_CREDIT, "CREDIT", "iq"},
    {PROTOCOL_EXITED, "EXITED", "iiiqqqqqqqq"},
};

static const struct message *find(unsigned type) {
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        if (messages[i].type == type)
            return &messages[i];
    return NULL;
}

const char *protocol_type_name(unsigned type) {
    const struct message *message = find(type);
    return message ? message->name : NULL;
}

/* ---- members */

/* True everywhere but on 32-bit x86. */
_Static_assert(offsetof(struct protocol_exited, wall_ns) == 16, "numbers are aligned to their size");

/* The size of a field whose bytes in the payload are those in memory; 0 for any other field. */
static size_t plain_size(char field) {
    return field == 'b'   ? sizeof(uint8_t)
           : field == 'v' ? sizeof(uint16_t)
           : field == 'i' ? sizeof(uint32_t)
           : field == 'q' ? sizeof(uint64_t)
           : field == 'd' ? PROTOCOL_HASH_SIZE
                          : 0;
}

/* The address of the next member of MESSAGE, of SIZE bytes, as the compiler aligns it, from *OFFSET on; moves
 * *OFFSET behind it. A hash is not aligned. */
static void *member(void *message, size_t *offset, size_t size) {
    size_t alignment = size > sizeof(uint64_t) ? 1 : size;
    size_t start = (*offset + alignment - 1) / alignment * alignment;
    *offset = start + size;
    return (char *)message + start;
}

static size_t string_limit(char field) {
    return field == 'n' ? PROTOCOL_NAME_LIMIT : field == 'p' ? PROTOCOL_PATH_LIMIT : PROTOCOL_SENTENCE_LIMIT;
}

/* ---- encoding */

/* Appends one field of a message; *OFFSET is moved behind its members. */
static void put_field(struct protocol_writer *writer, char field, void *message, size_t *offset) {
    size_t size = plain_size(field);
    if (size) {
        protocol_put_bytes(writer, member(message, offset, size), size);
        return;
    }
    if (field == 'm')
        protocol_put_u32(writer, PROTOCOL_MAGIC);
    if (field == '-')
        *offset += 1;
    if (field == 'm' || field == '-')
        return;
    const void *bytes = *(const void **)member(message, offset, sizeof bytes);
    if (strchr("nps", field)) {
        protocol_put_string(writer, bytes, string_limit(field));
    } else if (field == 'r') {
        protocol_put_bytes(writer, bytes, *(size_t *)member(message, offset, sizeof size));
    } else {
        uint32_t count = *(uint32_t *)member(message, offset, sizeof count);
        protocol_put_u32(writer, count);
        for (uint32_t i = 0; i < count; i++)
            if (field == 'u')
                protocol_put_u32(writer, ((const uint32_t *)bytes)[i]);
            else
                protocol_put_string(writer, ((const char *const *)bytes)[i], PROTOCOL_PAYLOAD_LIMIT);
    }
}

void protocol_put_message(struct protocol_writer *writer, const void *message) {
    size_t offset = 0;
    for (const char *field = find(writer->type)->fields; *field; field++)
        put_field(writer, *field, (void *)message, &offset);
}

/* ---- decoding */

/* Reads an array of strings or PUs; NULL after an error or without memory. The count is checked before the
 * array is allocated: against its limit, and against the payload's length, since an element has at least four
 * bytes. So a short message cannot make us allocate much. */
static void *get_array(struct protocol_reader *reader, char field, uint32_t *ret_count) {
    uint32_t count = protocol_get_u32(reader);
    uint32_t limit = field == 'a'   ? PROTOCOL_ARGUMENT_LIMIT
                     : field == 'e' ? PROTOCOL_ENVIRONMENT_LIMIT
                                    : PROTOCOL_PU_LIMIT;
    if (count > limit || count > (size_t)(reader->end - reader->at) / 4) {
        if (!reader->wrong)
            reader->wrong = field == 'u' ? "it has too many PUs" : "it has too many strings";
        return NULL;
    }
    void *array = calloc((size_t)count + 1, sizeof(char *));
    for (uint32_t i = 0; array && i < count; i++)
        if (field == 'u')
            ((uint32_t *)array)[i] = protocol_get_u32(reader);
        else
            ((const char **)array)[i] = protocol_get_string(reader, PROTOCOL_PAYLOAD_LIMIT);
    if (array)
        *ret_count = count;
    return array;
}

/* Reads one field into the members of MESSAGE; *OFFSET is moved behind them. */
static void get_field(struct protocol_reader *reader, char field, void *message, size_t *offset) {
    size_t size = plain_size(field);
    if (size) {
        const char *bytes = protocol_get_bytes(reader, size);
        memcpy(member(message, offset, size), bytes ? bytes : (const char[PROTOCOL_HASH_SIZE]){0}, size);
        return;
    }
    if (field == 'm' && protocol_get_u32(reader) != PROTOCOL_MAGIC && !reader->wrong)
        reader->wrong = "it does not begin with the magic number";
    if (field == '-')
        ((uint8_t *)message)[(*offset)++] = 0;
    if (field == 'm' || field == '-')
        return;
    const void **bytes = member(message, offset, sizeof *bytes);
    if (strchr("nps", field))
        *bytes = protocol_get_string(reader, string_limit(field));
    else if (field == 'r')
        *bytes = protocol_get_rest(reader, member(message, offset, sizeof size));
    else
        *bytes = get_array(reader, field, member(message, offset, sizeof(uint32_t)));
}

/* The error in the values of a message's fields; NULL: they are valid. */
static const char *check_content(enum protocol_type type, const void *message) {
    const struct protocol_error *error = message;
    const struct protocol_amount *amount = message;
    const struct protocol_exited *exited = message;
    const struct protocol_data *data = message;
    switch (type) {
    case PROTOCOL_LEASE:
        return *(const uint64_t *)message > PROTOCOL_LEASE_LIMIT_MS ? "its lease is longer than a year"
                                                                    : NULL;
    case PROTOCOL_OUTPUT:
        return data->stream < 1 || data->stream > 2 ? "its stream is neither 1 nor 2" : NULL;
    case PROTOCOL_ERROR:
    case PROTOCOL_FAILED:
        return error->code >= 0 || error->code < -4095 ? "its code is not a negative errno" : NULL;
    case PROTOCOL_KILL:
        return amount->amount < 1 || amount->amount > 64 ? "its signal is not one of 1 to 64" : NULL;
    case PROTOCOL_EXITED:
        return exited->flags & ~(uint32_t)PROTOCOL_EXIT_FLAGS || exited->code > 255
                   ? "its status or flags do not exist"
                   : NULL;
    default:
        return NULL;
    }
}

/* Decodes a frame field by field, as the table of messages says, into the struct RET of its type. */
int protocol_get_message(const struct protocol_frame *frame, void *ret, struct failure *failure) {
    struct protocol_reader reader;
    struct protocol_run *run = frame->type == PROTOCOL_RUN ? ret : NULL;
    size_t offset = 0;
    if (run)
        *run = (struct protocol_run){0};
    protocol_read(&reader, frame->payload, frame->length);
    for (const char *field = find(frame->type)->fields; *field; field++) {
        get_field(&reader, *field, ret, &offset);
        if (*field == 'v' && !reader.wrong && *(const uint16_t *)ret != PROTOCOL_VERSION)
            return 0;
    }
    if (!reader.wrong)
        reader.wrong = check_content(frame->type, ret);
    int r = protocol_read_end(&reader, frame->type, failure);
    if (r == 0 && run && (!run->arguments || !run->environment || !run->pus))
        r = failure_memory(failure);
    if (r < 0 && run)
        protocol_run_clear(run);
    return r;
}

/* ---- RUN */

void protocol_run_clear(struct protocol_run *run) {
    free(run->arguments);
    free(run->environment);
    free(run->pus);
    *run = (struct protocol_run){0};
}

static size_t count_bytes(const char *const *strings, uint32_t count) {
    size_t total = 0;
    for (uint32_t i = 0; i < count; i++)
        total += strlen(strings[i]) + 1;
    return total;
}
/* Checks number, size and names of the environment variables that RUN adds. */
static int check_environment(const struct protocol_run *run, struct failure *failure) {
    if (run->environment_count > PROTOCOL_ENVIRONMENT_LIMIT)
        return failure_set(failure, -E2BIG, "%u environment variables are added; at most %d are allowed",
                           run->environment_count, PROTOCOL_ENVIRONMENT_LIMIT);
    if (count_bytes(run->environment, run->environment_count) > PROTOCOL_ENVIRONMENT_BYTES)
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
    if (count_bytes(run->arguments, run->argument_count) > PROTOCOL_ARGUMENT_BYTES)
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
