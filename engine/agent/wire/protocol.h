/*
 * The messages between engine and agent as bytes: encoding, decoding, limits. No I/O. PROTOCOL.md beside this
 * file is the definition; this header follows its order.
 *
 * A frame is a header of 24 bytes and a payload. All numbers are little endian. A string is a u32 length, its
 * bytes and a NUL that the length does not count, so that a decoded string can be used in place; it has no
 * other NUL. `rest` is the bytes up to the end of the payload.
 *
 * Decoded strings and bytes point into the payload, and are valid as long as it is. A malformed payload is
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

/* Bits of what an agent can do beyond the messages of its protocol version. None yet. */
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

/* The name of a message, "RUN"; NULL for a number that is no message. */
const char *protocol_type_name(unsigned type);
/* True where the message has a sequence number: all but HELLO, REFUSE and ACK. */
bool protocol_type_is_numbered(enum protocol_type type);

/* ---- frames */

struct protocol_frame {
    enum protocol_type type;
    uint64_t sequence;     /* from 1 in each direction; 0 for unnumbered types */
    uint64_t acknowledged; /* the highest sequence that the sender has received */
    const char *payload;
    size_t length;
};

/* Reads the frame at the start of BYTES. Returns 1 with *RET, a frame of PROTOCOL_HEADER_SIZE + ret->length
 * bytes; 0: the frame is not complete yet; -EPROTO: this is no frame. */
int protocol_decode_frame(const void *bytes, size_t length, struct protocol_frame *ret,
                          struct failure *failure);

/* A frame being appended to a text. The first error is stored, and protocol_end() returns it. */
struct protocol_writer {
    struct text *out;
    size_t start;
    enum protocol_type type;
    int error;
};
void protocol_begin(struct protocol_writer *writer, struct text *out, enum protocol_type type);
/* Finishes the frame. 0, -ENOMEM, -EFBIG (the text's limit) or -EMSGSIZE (the payload's); on failure OUT is
 * as before the frame. */
int protocol_end(struct protocol_writer *writer, uint64_t sequence, uint64_t acknowledged);
/* Removes the unfinished frame. */
void protocol_cancel(struct protocol_writer *writer);

void protocol_put_u8(struct protocol_writer *writer, uint8_t value);
void protocol_put_u16(struct protocol_writer *writer, uint16_t value);
void protocol_put_u32(struct protocol_writer *writer, uint32_t value);
void protocol_put_u64(struct protocol_writer *writer, uint64_t value);
void protocol_put_bytes(struct protocol_writer *writer, const void *bytes, size_t length);
/* STRING is cut at LIMIT bytes. That may happen to sentences and names only; other strings were checked
 * before. */
void protocol_put_string(struct protocol_writer *writer, const char *string, size_t limit);
/* Returns room for SIZE bytes of `rest`, to be filled in place; NULL after an error. protocol_trim() removes
 * the last UNUSED bytes again. */
char *protocol_put_space(struct protocol_writer *writer, size_t size);
void protocol_trim(struct protocol_writer *writer, size_t unused);

/* A payload being read. The first error is stored, and later reads give 0, "" and NULL. */
struct protocol_reader {
    const unsigned char *at, *end;
    const char *wrong; /* the first error, or NULL */
};
void protocol_read(struct protocol_reader *reader, const void *payload, size_t length);
uint16_t protocol_get_u16(struct protocol_reader *reader);
uint32_t protocol_get_u32(struct protocol_reader *reader);
uint64_t protocol_get_u64(struct protocol_reader *reader);
/* A string of at most LIMIT bytes; "" after an error. */
const char *protocol_get_string(struct protocol_reader *reader, size_t limit);
/* COUNT bytes; NULL after an error. */
const char *protocol_get_bytes(struct protocol_reader *reader, size_t count);
/* All bytes that are left. */
const char *protocol_get_rest(struct protocol_reader *reader, size_t *ret_length);
/* Returns 0 if there was no error and no byte is left; else -EPROTO with a sentence that names the message.
 */
int protocol_read_end(const struct protocol_reader *reader, enum protocol_type type, struct failure *failure);

/* ---- messages: their members, in the order of the payload */

/* Writes the payload of the writer's type between protocol_begin() and protocol_end(). MESSAGE is the struct
 * of that type, below; a message of one number needs no struct: protocol_put_u32(), protocol_put_u64(). */
void protocol_put_message(struct protocol_writer *writer, const void *message);
/* RET is the struct of the frame's type, below. -EPROTO: it is malformed; -ENOMEM. */
int protocol_get_message(const struct protocol_frame *frame, void *ret, struct failure *failure);

enum { PROTOCOL_HASH_SIZE = 32 }; /* SHA-256 */

/* HELLO, after the magic number. For another protocol version only `version` is filled, because the rest of
 * its layout is not known. */
struct protocol_hello {
    uint16_t version; /* of the protocol */
    uint64_t capabilities;
    uint64_t session;       /* names an agent that outlives its links; 0: it ends with its link */
    uint32_t payload_limit; /* the largest payload that the sender accepts */
    uint32_t pid;
    const char *program; /* version of the program, "0.1.0" */
    const char *host;
    unsigned char sha256[PROTOCOL_HASH_SIZE]; /* of the sender's program; all 0: not given */
};

/* REFUSE: const char * (a sentence). LEASE: uint64_t (ms of silence after which the agent leaves; 0: it waits
 * without a limit). INSPECT, STATISTICS, CLOCK and INPUT_END: uint32_t (the number of the request or
 * command). ACK and LEAVE are empty. */

/* CLOCK_REPLY: the node's clocks, read one after the other when CLOCK came. */
struct protocol_clock {
    uint32_t request;
    int64_t wall_ns, monotonic_ns;
};

/* OUTPUT; and INPUT and FACTS, which have no stream. */
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

/* ---- commands: their messages begin with the command's number, which RUN has given */

enum protocol_stream_mode { PROTOCOL_MODE_STREAM = 0, PROTOCOL_MODE_NULL = 1, PROTOCOL_MODE_MERGE = 2 };

struct protocol_run {
    uint32_t command;
    uint8_t input, output, error; /* enum protocol_stream_mode; MERGE is for `error` only */
    uint32_t grace_ms, coalesce_ms;
    uint64_t timeout_ms;                /* 0: none */
    uint64_t output_limit, error_limit; /* 0: none */
    const char *folder;
    const char **arguments; /* ended by NULL, as the environment */
    uint32_t argument_count;
    const char **environment;
    uint32_t environment_count;
    uint32_t *pus;
    uint32_t pu_count;
};
/* Frees the three arrays, which protocol_get_message() has allocated. */
void protocol_run_clear(struct protocol_run *run);
/* Checks the limits of a RUN message: -EINVAL or -E2BIG with a sentence. The engine checks before it sends,
 * the agent after it has received. */
int protocol_check_run(const struct protocol_run *run, struct failure *failure);

/* KILL: the number of a signal (1 to 64). CREDIT: stdin bytes allowed in all since the start. */
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
    PROTOCOL_EXIT_ABANDONED = 64, /* SIGKILL did not end it, it may still run; its code means nothing */
    PROTOCOL_EXIT_FLAGS = 127,
};
struct protocol_exited {
    uint32_t command, flags, code;
    int64_t wall_ns, monotonic_ns, user_us, system_us;
    uint64_t rss_peak_bytes, output_bytes, error_bytes, input_bytes;
};

#endif
