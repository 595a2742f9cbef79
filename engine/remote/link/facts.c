#include "engine/remote/link/facts.h"

#include "engine/agent/wire/protocol.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY_LIMIT = 1024, ENVIRONMENT_LIMIT = 65536, NOTES_LIMIT = 256 };

/* The facts that are one string each, and whether they are required. */
static const struct string_fact {
    unsigned kind;
    size_t offset;
    bool needed;
} string_facts[] = {
    {PROTOCOL_FACT_HOST_NAME, offsetof(struct node_facts, host_name), true},
    {PROTOCOL_FACT_KERNEL_NAME, offsetof(struct node_facts, kernel_name), true},
    {PROTOCOL_FACT_KERNEL_RELEASE, offsetof(struct node_facts, kernel_release), true},
    {PROTOCOL_FACT_KERNEL_VERSION, offsetof(struct node_facts, kernel_version), true},
    {PROTOCOL_FACT_MACHINE, offsetof(struct node_facts, machine), true},
    {PROTOCOL_FACT_BOOT_ID, offsetof(struct node_facts, boot_id), true},
    {PROTOCOL_FACT_DIRECTORY, offsetof(struct node_facts, run_directory), false},
};
enum { STRING_FACTS = sizeof string_facts / sizeof *string_facts };

static char **string_member(struct node_facts *facts, const struct string_fact *fact) {
    return (char **)((char *)facts + fact->offset);
}

static void free_strings(char **strings, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(strings[i]);
    free(strings);
}

void node_facts_free(struct node_facts *facts) {
    if (!facts)
        return;
    for (size_t i = 0; i < STRING_FACTS; i++)
        free(*string_member(facts, &string_facts[i]));
    free(facts->pus);
    free(facts->memories);
    free_strings(facts->environment, facts->environment_count);
    free_strings(facts->notes, facts->note_count);
    free(facts);
}

static void free_facts(struct node_facts **facts) {
    node_facts_free(*facts);
}

/* Returns room for one more item of SIZE bytes in the array ITEMS, which grows by doubling; NULL: it has
 * LIMIT items already. */
static void *append_item(void *items, size_t *count, size_t size, size_t limit) {
    void **array = items;
    if (*count == limit)
        return NULL;
    if ((*count & (*count - 1)) == 0)
        *array = xrealloc(*array, (*count ? 2 * *count : 1) * size);
    return (char *)*array + (*count)++ * size;
}

/* Reads one PU. False: it is not in ascending order, or a number in it is out of range. */
static bool add_pu(struct node_facts *facts, struct protocol_reader *reader) {
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
        return false;
    *(struct node_pu *)append_item(&facts->pus, &facts->pu_count, sizeof pu, PROTOCOL_PU_LIMIT) = pu;
    return true;
}

static bool add_memory(struct node_facts *facts, struct protocol_reader *reader) {
    struct node_memory *memory =
        append_item(&facts->memories, &facts->memory_count, sizeof *memory, MEMORY_LIMIT);
    if (!memory)
        return false;
    memory->numa_node = protocol_get_u32(reader);
    memory->total = protocol_get_u64(reader);
    memory->free = protocol_get_u64(reader);
    return true;
}

static bool add_string(char ***strings, size_t *count, size_t limit, const char *bytes, size_t length) {
    char **place = memchr(bytes, '\0', length) ? NULL : append_item(strings, count, sizeof *place, limit);
    if (place)
        *place = xstrndup(bytes, length);
    return place;
}

static bool set_string(char **slot, const char *bytes, size_t length) {
    if (*slot || memchr(bytes, '\0', length))
        return false;
    *slot = xstrndup(bytes, length);
    return true;
}

/* Reads one record into FACTS. False: it is malformed, or comes twice. *HAS_MEMORY is set with the record of
 * the memory. */
static bool parse_record(struct node_facts *facts, unsigned kind, const char *bytes, size_t length,
                         bool *has_memory) {
    struct protocol_reader reader;
    uint32_t flags;
    for (size_t i = 0; i < STRING_FACTS; i++)
        if (string_facts[i].kind == kind)
            return set_string(string_member(facts, &string_facts[i]), bytes, length);
    protocol_read(&reader, bytes, length);
    switch (kind) {
    case PROTOCOL_FACT_SPACE:
        flags = protocol_get_u32(&reader);
        facts->run_directory_noexec = flags & PROTOCOL_SPACE_NO_EXEC;
        facts->run_directory_read_only = flags & PROTOCOL_SPACE_READ_ONLY;
        facts->run_directory_free = protocol_get_u64(&reader);
        break;
    case PROTOCOL_FACT_ENVIRONMENT:
        return memchr(bytes, '=', length) &&
               add_string(&facts->environment, &facts->environment_count, ENVIRONMENT_LIMIT, bytes, length);
    case PROTOCOL_FACT_NOTE:
        return !memchr(bytes, '\n', length) &&
               add_string(&facts->notes, &facts->note_count, NOTES_LIMIT, bytes, length);
    case PROTOCOL_FACT_PU:
        if (!add_pu(facts, &reader))
            return false;
        break;
    case PROTOCOL_FACT_NODE_MEMORY:
        if (!add_memory(facts, &reader))
            return false;
        break;
    case PROTOCOL_FACT_MEMORY:
        facts->memory_total = protocol_get_u64(&reader);
        facts->memory_available = protocol_get_u64(&reader);
        facts->memory_limit = protocol_get_u64(&reader);
        if (*has_memory)
            return false;
        *has_memory = true;
        break;
    default:
        return true; /* an unknown record, of a newer agent */
    }
    return !reader.wrong && reader.at == reader.end;
}

int node_facts_parse(const void *bytes, size_t length, struct node_facts **ret, struct failure *failure) {
    cleanup(free_facts) struct node_facts *facts = xcalloc(1, sizeof *facts);
    struct protocol_reader reader;
    bool whole = false;
    protocol_read(&reader, bytes, length);
    while (reader.at != reader.end) {
        unsigned kind = protocol_get_u16(&reader);
        size_t body_length = protocol_get_u32(&reader);
        const char *body = protocol_get_bytes(&reader, body_length);
        if (!body || !parse_record(facts, kind, body, body_length, &whole))
            return failure_set(failure, -EPROTO, "a malformed FACTS message: record of kind %u", kind);
    }
    for (size_t i = 0; i < STRING_FACTS; i++)
        whole &= *string_member(facts, &string_facts[i]) || !string_facts[i].needed;
    if (!whole || facts->pu_count == 0)
        return failure_set(failure, -EPROTO,
                           "a malformed FACTS message: the names, the memory or the PUs are missing");
    *ret = take_pointer(facts);
    return 0;
}

/* RET: the first allowed PU of each physical core. */
int node_facts_physical_cores(const struct node_facts *facts, const struct node_pu ***ret,
                              size_t *ret_count) {
    cleanup_free const struct node_pu **cores = xcalloc(facts->pu_count + 1, sizeof *cores);
    cleanup_free bool *seen = xcalloc(PROTOCOL_PU_LIMIT, sizeof *seen);
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
