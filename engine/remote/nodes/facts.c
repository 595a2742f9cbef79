#include "engine/remote/nodes/facts.h"

#include "engine/agent/wire/protocol.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY_LIMIT = 1024, ENVIRONMENT_LIMIT = 65536, NOTES_LIMIT = 256 };

void node_facts_free(struct node_facts *facts) {
    if (!facts)
        return;
    free(facts->host_name);
    free(facts->kernel_name);
    free(facts->kernel_release);
    free(facts->kernel_version);
    free(facts->machine);
    free(facts->boot_id);
    free(facts->pus);
    free(facts->memories);
    for (size_t i = 0; i < facts->environment_count; i++)
        free(facts->environment[i]);
    free(facts->environment);
    free(facts->run_directory);
    for (size_t i = 0; i < facts->note_count; i++)
        free(facts->notes[i]);
    free(facts->notes);
    free(facts);
}

static void free_facts(struct node_facts **facts) {
    node_facts_free(*facts);
}

/* What a record is read into; the arrays grow here. */
struct parse {
    struct node_facts *facts;
    size_t pu_capacity, memory_capacity, environment_capacity, note_capacity;
    bool memory;
};

static int set_string(char **slot, const char *bytes, size_t length) {
    if (*slot || memchr(bytes, '\0', length))
        return -EPROTO;
    *slot = strndup(bytes, length);
    return *slot ? 0 : -ENOMEM;
}

static int add_pu(struct parse *parse, struct protocol_reader *reader) {
    struct node_facts *facts = parse->facts;
    struct node_pu pu;
    pu.index = protocol_get_u32(reader);
    pu.core = (int32_t)protocol_get_u32(reader);
    pu.package = (int32_t)protocol_get_u32(reader);
    pu.numa_node = (int32_t)protocol_get_u32(reader);
    pu.first_sibling_index = protocol_get_u32(reader);
    uint32_t flags = protocol_get_u32(reader);
    pu.first_sibling = flags & PROTOCOL_PU_FIRST_SIBLING;
    pu.allowed = flags & PROTOCOL_PU_ALLOWED;
    bool ascending = facts->pu_count == 0 || facts->pus[facts->pu_count - 1].index < pu.index;
    if (!ascending || pu.index >= PROTOCOL_PU_LIMIT || pu.first_sibling_index > pu.index)
        return -EPROTO;
    int r = list_reserve(&facts->pus, &parse->pu_capacity, facts->pu_count + 1, sizeof pu, PROTOCOL_PU_LIMIT);
    if (r == 0)
        facts->pus[facts->pu_count++] = pu;
    return r;
}

static int add_memory(struct parse *parse, struct protocol_reader *reader) {
    struct node_facts *facts = parse->facts;
    struct node_memory memory;
    memory.numa_node = protocol_get_u32(reader);
    memory.total = protocol_get_u64(reader);
    memory.free = protocol_get_u64(reader);
    int r = list_reserve(&facts->memories, &parse->memory_capacity, facts->memory_count + 1, sizeof memory,
                         MEMORY_LIMIT);
    if (r == 0)
        facts->memories[facts->memory_count++] = memory;
    return r;
}

static int add_string(char ***strings, size_t *count, size_t *capacity, size_t limit, const char *bytes,
                      size_t length) {
    if (memchr(bytes, '\0', length))
        return -EPROTO;
    int r = list_reserve(strings, capacity, *count + 1, sizeof(char *), limit);
    if (r < 0)
        return r;
    char *string = strndup(bytes, length);
    if (!string)
        return -ENOMEM;
    (*strings)[(*count)++] = string;
    return 0;
}

static int add_variable(struct parse *parse, const char *bytes, size_t length) {
    struct node_facts *facts = parse->facts;
    if (!memchr(bytes, '=', length))
        return -EPROTO;
    return add_string(&facts->environment, &facts->environment_count, &parse->environment_capacity,
                      ENVIRONMENT_LIMIT, bytes, length);
}

static int add_note(struct parse *parse, const char *bytes, size_t length) {
    struct node_facts *facts = parse->facts;
    if (memchr(bytes, '\n', length))
        return -EPROTO;
    return add_string(&facts->notes, &facts->note_count, &parse->note_capacity, NOTES_LIMIT, bytes, length);
}

static void take_space(struct node_facts *facts, struct protocol_reader *reader) {
    uint32_t flags = protocol_get_u32(reader);
    facts->run_directory_noexec = flags & PROTOCOL_SPACE_NO_EXEC;
    facts->run_directory_read_only = flags & PROTOCOL_SPACE_READ_ONLY;
    facts->run_directory_free = protocol_get_u64(reader);
}

static int parse_record(struct parse *parse, unsigned kind, const char *bytes, size_t length) {
    struct node_facts *facts = parse->facts;
    struct protocol_reader reader;
    protocol_read(&reader, bytes, length);
    int r = 0;
    switch (kind) {
    case PROTOCOL_FACT_HOST_NAME:
        return set_string(&facts->host_name, bytes, length);
    case PROTOCOL_FACT_KERNEL_NAME:
        return set_string(&facts->kernel_name, bytes, length);
    case PROTOCOL_FACT_KERNEL_RELEASE:
        return set_string(&facts->kernel_release, bytes, length);
    case PROTOCOL_FACT_KERNEL_VERSION:
        return set_string(&facts->kernel_version, bytes, length);
    case PROTOCOL_FACT_MACHINE:
        return set_string(&facts->machine, bytes, length);
    case PROTOCOL_FACT_BOOT_ID:
        return set_string(&facts->boot_id, bytes, length);
    case PROTOCOL_FACT_DIRECTORY:
        return set_string(&facts->run_directory, bytes, length);
    case PROTOCOL_FACT_SPACE:
        take_space(facts, &reader);
        break;
    case PROTOCOL_FACT_ENVIRONMENT:
        return add_variable(parse, bytes, length);
    case PROTOCOL_FACT_NOTE:
        return add_note(parse, bytes, length);
    case PROTOCOL_FACT_PU:
        r = add_pu(parse, &reader);
        break;
    case PROTOCOL_FACT_NODE_MEMORY:
        r = add_memory(parse, &reader);
        break;
    case PROTOCOL_FACT_MEMORY:
        facts->memory_total = protocol_get_u64(&reader);
        facts->memory_available = protocol_get_u64(&reader);
        facts->memory_limit = protocol_get_u64(&reader);
        r = parse->memory ? -EPROTO : 0;
        parse->memory = true;
        break;
    default:
        return 0; /* a newer agent may know more */
    }
    return r < 0 ? r : reader.wrong || reader.at != reader.end ? -EPROTO : 0;
}

int node_facts_parse(const void *bytes, size_t length, struct node_facts **ret, struct failure *failure) {
    cleanup(free_facts) struct node_facts *facts = calloc(1, sizeof *facts);
    if (!facts)
        return failure_memory(failure);
    struct parse parse = {.facts = facts};
    struct protocol_reader reader;
    protocol_read(&reader, bytes, length);
    while (reader.at != reader.end) {
        unsigned kind = protocol_get_u16(&reader);
        size_t body_length = protocol_get_u32(&reader);
        const char *body = protocol_get_bytes(&reader, body_length);
        int r = body ? parse_record(&parse, kind, body, body_length) : -EPROTO;
        if (r == -ENOMEM)
            return failure_memory(failure);
        if (r < 0)
            return failure_set(failure, -EPROTO, "a malformed FACTS message: record of kind %u", kind);
    }
    bool names = facts->host_name && facts->kernel_name && facts->kernel_release && facts->kernel_version &&
                 facts->machine && facts->boot_id;
    if (!names || !parse.memory || facts->pu_count == 0)
        return failure_set(failure, -EPROTO,
                           "a malformed FACTS message: the names, the memory or the PUs are missing");
    *ret = take_pointer(facts);
    return 0;
}

int node_facts_physical_cores(const struct node_facts *facts, const struct node_pu ***ret,
                              size_t *ret_count) {
    cleanup_free const struct node_pu **cores = calloc(facts->pu_count + 1, sizeof *cores);
    cleanup_free bool *seen = calloc(PROTOCOL_PU_LIMIT, sizeof *seen);
    if (!cores || !seen)
        return -ENOMEM;
    size_t count = 0;
    for (size_t i = 0; i < facts->pu_count; i++) {
        const struct node_pu *pu = &facts->pus[i];
        if (!pu->allowed || seen[pu->first_sibling_index])
            continue;
        seen[pu->first_sibling_index] = true;
        cores[count++] = pu;
    }
    *ret = take_pointer(cores);
    *ret_count = count;
    return 0;
}
