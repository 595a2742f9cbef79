#include "engine/agent/wire/protocol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool protocol_type_is_numbered(enum protocol_type type) {
    return type != PROTOCOL_HELLO && type != PROTOCOL_REFUSE && type != PROTOCOL_ACK;
}

/* ---- little endian */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are sent as they lie in memory");

static uint64_t load(const void *at, size_t size) {
    uint64_t value = 0;
    memcpy(&value, at, size);
    return value;
}

/* ---- frames */

/* Decodes the frame at BYTES. 1; 0: it is not complete yet; -EPROTO: it is not a frame. */
int protocol_decode_frame(const void *bytes, size_t length, struct protocol_frame *ret,
                          struct failure *failure) {
    const unsigned char *header = bytes;
    if (length < PROTOCOL_HEADER_SIZE)
        return 0;
    uint64_t payload = load(header, 4), sequence = load(header + 8, 8);
    unsigned type = header[4];
    /* The header is checked before the payload is waited for, so that a foreign stream is noticed at once. */
    if (payload > PROTOCOL_PAYLOAD_LIMIT)
        return failure_set(failure, -EPROTO, "a frame of %llu bytes; at most %d are allowed",
                           (unsigned long long)payload, PROTOCOL_PAYLOAD_LIMIT);
    const char *name = protocol_type_name(type);
    if (!name)
        return failure_set(failure, -EPROTO, "a frame of unknown type %u", type);
    if (load(header + 5, 3) != 0)
        return failure_set(failure, -EPROTO, "a frame of type %s whose reserved bytes are not zero", name);
    if ((sequence != 0) != protocol_type_is_numbered(type))
        return failure_set(failure, -EPROTO, "a frame of type %s with sequence number %llu", name,
                           (unsigned long long)sequence);
    if (length - PROTOCOL_HEADER_SIZE < payload)
        return 0;
    *ret = (struct protocol_frame){.type = type,
                                   .sequence = sequence,
                                   .acknowledged = load(header + 16, 8),
                                   .payload = (const char *)header + PROTOCOL_HEADER_SIZE,
                                   .length = payload};
    return 1;
}

void protocol_begin(struct protocol_writer *writer, struct text *out, enum protocol_type type) {
    *writer = (struct protocol_writer){.out = out, .start = out->length, .type = type};
    static const char nothing[PROTOCOL_HEADER_SIZE];
    protocol_put_bytes(writer, nothing, sizeof nothing);
}

void protocol_cancel(struct protocol_writer *writer) {
    writer->out->length = writer->start;
    writer->error = -ECANCELED;
}

/* Writes the header of the frame, now that its length is known. On failure the frame is removed again. */
int protocol_end(struct protocol_writer *writer, uint64_t sequence, uint64_t acknowledged) {
    size_t payload = writer->error ? 0 : writer->out->length - writer->start - PROTOCOL_HEADER_SIZE;
    if (payload > PROTOCOL_PAYLOAD_LIMIT)
        writer->error = -EMSGSIZE;
    if (writer->error) {
        int error = writer->error;
        protocol_cancel(writer);
        return error;
    }
    unsigned char *header = (unsigned char *)writer->out->bytes + writer->start;
    memcpy(header, &payload, 4);
    header[4] = (unsigned char)writer->type;
    memcpy(header + 8, &sequence, 8);
    memcpy(header + 16, &acknowledged, 8);
    return 0;
}

void protocol_put_bytes(struct protocol_writer *writer, const void *bytes, size_t length) {
    if (!writer->error)
        writer->error = text_append(writer->out, bytes, length);
}

void protocol_put_u8(struct protocol_writer *writer, uint8_t value) {
    protocol_put_bytes(writer, &value, sizeof value);
}

void protocol_put_u16(struct protocol_writer *writer, uint16_t value) {
    protocol_put_bytes(writer, &value, sizeof value);
}

void protocol_put_u32(struct protocol_writer *writer, uint32_t value) {
    protocol_put_bytes(writer, &value, sizeof value);
}

void protocol_put_u64(struct protocol_writer *writer, uint64_t value) {
    protocol_put_bytes(writer, &value, sizeof value);
}

void protocol_put_string(struct protocol_writer *writer, const char *string, size_t limit) {
    size_t length = strnlen(string, limit);
    protocol_put_u32(writer, (uint32_t)length);
    protocol_put_bytes(writer, string, length);
    protocol_put_u8(writer, 0);
}

char *protocol_put_space(struct protocol_writer *writer, size_t size) {
    char *space;
    if (!writer->error)
        writer->error = text_reserve(writer->out, size, &space);
    if (writer->error)
        return NULL;
    writer->out->length += size;
    return space;
}

void protocol_trim(struct protocol_writer *writer, size_t unused) {
    if (!writer->error)
        writer->out->length -= unused;
}

void protocol_read(struct protocol_reader *reader, const void *payload, size_t length) {
    reader->at = payload;
    reader->end = reader->at + length;
    reader->wrong = NULL;
}

static bool wrong(struct protocol_reader *reader, const char *what) {
    if (!reader->wrong)
        reader->wrong = what;
    reader->at = reader->end;
    return false;
}

const char *protocol_get_bytes(struct protocol_reader *reader, size_t count) {
    if (reader->wrong || (size_t)(reader->end - reader->at) < count) {
        wrong(reader, "it ends too early");
        return NULL;
    }
    const unsigned char *bytes = reader->at;
    reader->at += count;
    return (const char *)bytes;
}

static uint64_t get(struct protocol_reader *reader, size_t size) {
    const char *bytes = protocol_get_bytes(reader, size);
    return bytes ? load(bytes, size) : 0;
}

uint16_t protocol_get_u16(struct protocol_reader *reader) {
    return (uint16_t)get(reader, 2);
}

uint32_t protocol_get_u32(struct protocol_reader *reader) {
    return (uint32_t)get(reader, 4);
}

uint64_t protocol_get_u64(struct protocol_reader *reader) {
    return get(reader, 8);
}

/* The next string of a message. "", and the reader is marked as wrong: it is too long or malformed. */
const char *protocol_get_string(struct protocol_reader *reader, size_t limit) {
    size_t length = get(reader, 4);
    if (length > limit) {
        wrong(reader, "a string is longer than its limit");
        return "";
    }
    const char *bytes = protocol_get_bytes(reader, length + 1);
    if (!bytes)
        return "";
    if (memchr(bytes, '\0', length + 1) != bytes + length) {
        wrong(reader, "a string has a NUL inside, or none at its end");
        return "";
    }
    return bytes;
}

const char *protocol_get_rest(struct protocol_reader *reader, size_t *ret_length) {
    *ret_length = (size_t)(reader->end - reader->at);
    const char *bytes = (const char *)reader->at;
    reader->at = reader->end;
    return bytes;
}

int protocol_read_end(const struct protocol_reader *reader, enum protocol_type type,
                      struct failure *failure) {
    const char *what = reader->wrong               ? reader->wrong
                       : reader->at != reader->end ? "it continues after its end"
                                                   : NULL;
    if (!what)
        return 0;
    return failure_set(failure, -EPROTO, "a malformed %s message: %s", protocol_type_name(type), what);
}
