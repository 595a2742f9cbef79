/* The facts of a node: the parsed answer to INSPECT (engine/agent/PROTOCOL.md). */
#ifndef ASSAY_LINK_FACTS_H
#define ASSAY_LINK_FACTS_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A logical CPU (hwloc's word: processing unit) that is online. */
struct node_pu {
    unsigned index;               /* the kernel's number, as taskset and sched_setaffinity use it */
    int core;                     /* core_id, unique within a package only; -1: not known */
    int package;                  /* physical_package_id; -1: not known */
    int numa_node;                /* -1: not known */
    unsigned first_sibling_index; /* the lowest online PU of its physical core, which identifies the core */
    bool first_sibling;           /* this PU is the lowest of its core */
    bool allowed;                 /* the agent may run on it (affinity mask, cpuset) */
};

struct node_memory {
    unsigned numa_node;
    uint64_t total, free; /* bytes */
};

struct node_facts {
    char *host_name;
    char *kernel_name, *kernel_release, *kernel_version; /* "Linux", "6.1.0-13-amd64", "#1 SMP ..." */
    char *machine;                                       /* "x86_64" */
    char *boot_id;                                       /* "": not readable */
    struct node_pu *pus;                                 /* by index, ascending */
    size_t pu_count;
    uint64_t memory_total, memory_available; /* bytes; /proc/meminfo */
    uint64_t memory_limit; /* bytes that the agent's control groups allow; UINT64_MAX: no known limit */
    struct node_memory *memories; /* one for each NUMA node with memory, ascending */
    size_t memory_count;
    char **environment; /* "NAME=VALUE", sorted; the allow-list only (PROTOCOL.md, FACTS) */
    size_t environment_count;
    char *run_directory;         /* of the agent; NULL: not given */
    uint64_t run_directory_free; /* free bytes of its file system; 0: not given */
    bool run_directory_noexec, run_directory_read_only;
    char **notes; /* sentences for the user: controls that the agent restored before it served */
    size_t note_count;
};

/* Frees FACTS; NULL is fine. */
void node_facts_free(struct node_facts *facts);

/* Parses the records of a FACTS message, which follow its request number; unknown records are skipped.
 * -EPROTO with a sentence for malformed or missing ones. The caller frees *RET. */
int node_facts_parse(const void *bytes, size_t length, struct node_facts **ret, struct failure *failure);

/* Lists one PU for each physical core, the lowest that the agent may use, ascending; cores without such a PU
 * are left out. The pointers point into FACTS; the caller frees the array. *RET_COUNT may be 0. 0 or -ENOMEM.
 */
int node_facts_physical_cores(const struct node_facts *facts, const struct node_pu ***ret, size_t *ret_count);

#endif
