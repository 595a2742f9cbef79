/*
 * The messages between engine and agent as bytes: encoding, decoding, limits. No I/O. PROTOCOL.md beside this
 * file is the definition; this header follows its order.
 *
 * A frame is a header of 24 bytes and a payload. All numbers are little endian. A string is a u32 length, its
 * bytes and a NUL that the length does not count, so that a decoded string can be used where it lies; it
 * holds no other NUL. `rest` is the bytes up to the end of the payload.
 *
 * Decoders point into the payload: what they give is valid as long as the payload is. A malformed payload is
 * -EPROTO and a sentence; nothing needs clearing then.
 */
#ifndef ASSAY_WIRE_PROTOCOL_H
#define ASSAY_WIRE_PROTOCOL_H

#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROTOCOL_VERSION = 3,
    PROTOCOL_HEADER_SIZE = 24,
    PROTOCOL_PAYLOAD_LIMIT = 1 << 20, /* bytes of one payload */
    PROTOCOL_CHUNK = 256 << 10,       /* bytes of data that a sender puts into one frame, at most */
    PROTOCOL_PATH_LIMIT = 4095,
    PROTOCOL_SENTENCE_LIMIT = 1535,
    PROTOCOL_NAME_LIMIT = 255, /* host names, versions */
    PROTOCOL_ARGUMENT_LIMIT = 4096,
    PROTOCOL_ARGUMENT_BYTES = 256 << 10, /* of all arguments, each with its NUL */
    PROTOCOL_ENVIRONMENT_LIMIT = 1024,
    PROTOCOL_ENVIRONMENT_BYTES = 256 << 10,
    PROTOCOL_PU_LIMIT = 8192, /* PUs of a command; also the first PU index that is refused */
    PROTOCOL_COALESCE_LIMIT_MS = 60000,
    PROTOCOL_COMMAND_LIMIT = 1024,          /* running at once */
    PROTOCOL_INPUT_WINDOW = 512 << 10,      /* stdin bytes held for a program whose pipe is full */
    PROTOCOL_WINDOW = 4 << 20,              /* unacknowledged bytes at which a sender stops adding data */
    PROTOCOL_ACKNOWLEDGE_BYTES = 512 << 10, /* received since the last frame sent: an ACK is owed */
    PROTOCOL_ACKNOWLEDGE_FRAMES = 4096,
};

#define PROTOCOL_MAGIC UINT32_C(0x59415341) /* "ASAY" */
#define PROTOCOL_LEASE_LIMIT_MS (UINT64_C(366) * 24 * 3600 * 1000)

/* What an agent can do beyond the messages of its protocol version. None yet. */
#define PROTOCOL_CAPABILITIES UINT64_C(0)

enum protocol_type {
    /* either way, unnumbered */
    PROTOCOL_HELLO = 1,
    PROTOCOL_REFUSE = 2,
    PROTOCOL_ACK = 3,
    /* engine to agent */
    PROTOCOL_INSPECT = 16,
    PROTOCOL_STATISTICS = 23,
    PROTOCOL_LEASE = 24,
    PROTOCOL_LEAVE = 25,
    PROTOCOL_CLOCK = 26,
    PROTOCOL_RUN = 32,
    PROTOCOL_INPUT = 33,
    PROTOCOL_INPUT_END = 34,
    PROTOCOL_KILL = 35,
    /* agent to engine */
    PROTOCOL_FACTS = 64,
    PROTOCOL_ERROR = 67,
    PROTOCOL_STATISTICS_REPLY = 68,
    PROTOCOL_CLOCK_REPLY = 69,
    PROTOCOL_STARTED = 80,
    PROTOCOL_FAILED = 81,
    PROTOCOL_OUTPUT = 82,
    PROTOCOL_CREDIT = 83,
    PROTOCOL_EXITED = 84,
};

/* "RUN"; NULL for a number that is no message. */
const char *protocol_type_name(unsigned type);
/* Has it a sequence number? HELLO, REFUSE and ACK have none. */
bool protocol_type_is_numbered(enum protocol_type type);

/* ---- frames */

struct protocol_frame {
    enum protocol_type type;
    uint64_t sequence;     /* from 1 in each direction; 0 for unnumbered types */
    uint64_t acknowledged; /* the highest sequence that the sender has received */
    const char *payload;
    size_t length;
};

/* Looks for a frame at the start of BYTES. 1: *RET is filled, it took PROTOCOL_HEADER_SIZE + ret->length
 * bytes; 0: it is not all there yet; -EPROTO: this is no frame. */
int protocol_decode_frame(const void *bytes, size_t length, struct protocol_frame *ret,
                          struct failure *failure);

/* A frame being appended to a text. An error sticks, and protocol_end() reports it. */
struct protocol_writer {
    struct text *out;
    size_t start;
    enum protocol_type type;
    int error;
};
void protocol_begin(struct protocol_writer *writer, struct text *out, enum protocol_type type);
/* 0, -ENOMEM, -EFBIG (the text's limit) or -EMSGSIZE (the payload's); then OUT is as it was before the frame.
 */
int protocol_end(struct protocol_writer *writer, uint64_t sequence, uint64_t acknowledged);
/* Gives the frame up. */
void protocol_cancel(struct protocol_writer *writer);

void protocol_put_u8(struct protocol_writer *writer, uint8_t value);
void protocol_put_u16(struct protocol_writer *writer, uint16_t value);
void protocol_put_u32(struct protocol_writer *writer, uint32_t value);
void protocol_put_u64(struct protocol_writer *writer, uint64_t value);
void protocol_put_bytes(struct protocol_writer *writer, const void *bytes, size_t length);
/* Cut at LIMIT bytes; only sentences and names may be longer than theirs, the rest was checked before. */
void protocol_put_string(struct protocol_writer *writer, const char *string, size_t limit);
/* Room for SIZE bytes of `rest`, to be filled in place; NULL after an error. protocol_trim() gives UNUSED
 * ones back. */
char *protocol_put_space(struct protocol_writer *writer, size_t size);
void protocol_trim(struct protocol_writer *writer, size_t unused);

/* A payload being read. Reading past the end sticks. */
struct protocol_reader {
    const unsigned char *at, *end;
    const char *wrong; /* what was wrong first, or NULL */
};
void protocol_read(struct protocol_reader *reader, const void *payload, size_t length);
uint16_t protocol_get_u16(struct protocol_reader *reader);
uint32_t protocol_get_u32(struct protocol_reader *reader);
uint64_t protocol_get_u64(struct protocol_reader *reader);
/* "" after an error. */
const char *protocol_get_string(struct protocol_reader *reader, size_t limit);
/* COUNT bytes; NULL after an error. */
const char *protocol_get_bytes(struct protocol_reader *reader, size_t count);
/* All that is left. */
const char *protocol_get_rest(struct protocol_reader *reader, size_t *ret_length);
/* 0 if nothing was wrong and nothing is left over; else -EPROTO, and a sentence that names the message. */
int protocol_read_end(const struct protocol_reader *reader, enum protocol_type type, struct failure *failure);

/* ---- messages: what each holds, in the order in which it lies in the payload */

/* Writes the payload of the writer's type between protocol_begin() and protocol_end(). MESSAGE is the struct
 * of that type, below; a message of one number needs no struct: protocol_put_u32(), protocol_put_u64(). */
void protocol_put_message(struct protocol_writer *writer, const void *message);
/* RET is the struct of the frame's type, below. -EPROTO: it is malformed; -ENOMEM. */
int protocol_get_message(const struct protocol_frame *frame, void *ret, struct failure *failure);

enum { PROTOCOL_HASH_SIZE = 32 }; /* SHA-256 */

/* HELLO, after the magic number. When the version is not ours, only `version` is filled: the rest of the
 * layout is not known then. */
struct protocol_hello {
    uint16_t version; /* of the protocol */
    uint64_t capabilities;
    uint64_t session;       /* names the agent, if it outlives its links; 0: it does not */
    uint32_t payload_limit; /* the largest payload that the sender takes */
    uint32_t pid;
    const char *program; /* version of the program, "0.1.0" */
    const char *host;
    unsigned char sha256[PROTOCOL_HASH_SIZE]; /* of the sender's program; all 0: not said */
};

/* REFUSE: const char * (a sentence). LEASE: uint64_t (ms of silence after which the agent leaves; 0: it waits
 * without a limit). INSPECT, STATISTICS, CLOCK and INPUT_END: uint32_t (the number of the request or
 * command). ACK and LEAVE are empty. */

/* CLOCK_REPLY: the node's clocks, read one after the other when CLOCK was taken. */
struct protocol_clock {
    uint32_t request;
    int64_t wall_ns, monotonic_ns;
};

/* INPUT and FACTS, which have no stream, and OUTPUT. */
struct protocol_data {
    uint32_t number; /* request or command */
    uint8_t stream;  /* OUTPUT only, 1 or 2; else 0 */
    const char *bytes;
    size_t length;
};

/* ERROR and FAILED. */
struct protocol_error {
    uint32_t number;
    int32_t code; /* negative errno */
    const char *sentence;
};

/* STATISTICS_REPLY */
struct protocol_statistics {
    uint32_t request;
    int64_t user_us, system_us;
    uint64_t rss_bytes, rss_peak_bytes;
    uint64_t frames_received, frames_sent, bytes_received, bytes_sent, wakeups;
    uint32_t commands;
};

/* The records of FACTS: u16 kind, u32 length, body. An unknown kind is skipped. */
enum protocol_fact {
    PROTOCOL_FACT_HOST_NAME = 1, /* bytes */
    PROTOCOL_FACT_KERNEL_NAME = 2,
    PROTOCOL_FACT_KERNEL_RELEASE = 3,
    PROTOCOL_FACT_KERNEL_VERSION = 4,
    PROTOCOL_FACT_MACHINE = 5,
    PROTOCOL_FACT_BOOT_ID = 6,
    PROTOCOL_FACT_PU = 7,     /* u32 index, i32 core, i32 package, i32 node, u32 first sibling, u32 flags */
    PROTOCOL_FACT_MEMORY = 8, /* u64 total, u64 available, u64 limit */
    PROTOCOL_FACT_NODE_MEMORY = 9,  /* u32 node, u64 total, u64 free */
    PROTOCOL_FACT_ENVIRONMENT = 10, /* bytes "NAME=VALUE" */
    PROTOCOL_FACT_DIRECTORY = 11,   /* bytes: the path of the run directory */
    PROTOCOL_FACT_SPACE = 12,       /* u32 flags, u64 free bytes, of the run directory's file system */
    PROTOCOL_FACT_NOTE = 13,        /* bytes: a line for the user */
};
enum { PROTOCOL_PU_FIRST_SIBLING = 1, PROTOCOL_PU_ALLOWED = 2 };
enum { PROTOCOL_SPACE_NO_EXEC = 1, PROTOCOL_SPACE_READ_ONLY = 2 };

/* ---- commands. All begin with the number that RUN gave. */

enum protocol_stream_mode { PROTOCOL_MODE_STREAM = 0, PROTOCOL_MODE_NULL = 1, PROTOCOL_MODE_MERGE = 2 };

struct protocol_run {
    uint32_t command;
    uint8_t input, output, error; /* enum protocol_stream_mode; MERGE is for `error` only */
    uint32_t grace_ms, coalesce_ms;
    uint64_t timeout_ms;                /* 0: none */
    uint64_t output_limit, error_limit; /* 0: none */
    const char *folder;
    const char **arguments; /* both end with NULL */
    uint32_t argument_count;
    const char **environment;
    uint32_t environment_count;
    uint32_t *pus;
    uint32_t pu_count;
};
/* Frees the three arrays, which protocol_get_message() has allocated. */
void protocol_run_clear(struct protocol_run *run);
/* -EINVAL or -E2BIG and a sentence if a limit is exceeded: the engine asks before it sends, the agent after
 * it has received. */
int protocol_check_run(const struct protocol_run *run, struct failure *failure);

/* KILL: a signal (1 to 64). CREDIT: stdin bytes allowed since the start, in all. */
struct protocol_amount {
    uint32_t command;
    uint64_t amount;
};

struct protocol_started {
    uint32_t command, pid;
    int64_t wall_ns, monotonic_ns;
    uint64_t credit; /* stdin bytes allowed so far; 0 when stdin is not a stream */
};

enum {
    PROTOCOL_EXIT_SIGNALLED = 1,
    PROTOCOL_EXIT_CORE = 2,
    PROTOCOL_EXIT_TIMED_OUT = 4,
    PROTOCOL_EXIT_LEFT_OTHERS = 8,
    PROTOCOL_EXIT_OUTPUT_CUT = 16,
    PROTOCOL_EXIT_ERROR_CUT = 32,
    PROTOCOL_EXIT_ABANDONED = 64, /* it could not be ended, and may run on; its code says nothing */
    PROTOCOL_EXIT_FLAGS = 127,
};
struct protocol_exited {
    uint32_t command, flags, code;
    int64_t wall_ns, monotonic_ns, user_us, system_us;
    uint64_t rss_peak_bytes, output_bytes, error_bytes, input_bytes;
};

#endif
