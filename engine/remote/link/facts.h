/* What a node says about itself: the parsed answer to INSPECT (engine/agent/PROTOCOL.md). */
#ifndef ASSAY_LINK_FACTS_H
#define ASSAY_LINK_FACTS_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A logical CPU (hwloc's word: processing unit) that is online. */
struct node_pu {
    unsigned index; /* the kernel's number, as taskset and sched_setaffinity use it */
    int core;       /* core_id, unique within a package only; -1 where the kernel does not say */
    int package;    /* physical_package_id; -1 likewise */
    int numa_node;  /* -1 likewise */
    unsigned
        first_sibling_index; /* the lowest online PU of the same physical core: names the core on this node */
    bool first_sibling;      /* is it that one? */
    bool allowed;            /* the agent may run there (affinity mask, cpuset) */
};

struct node_memory {
    unsigned numa_node;
    uint64_t total, free; /* bytes */
};

struct node_facts {
    char *host_name;
    char *kernel_name, *kernel_release, *kernel_version; /* "Linux", "6.1.0-13-amd64", "#1 SMP ..." */
    char *machine;                                       /* "x86_64" */
    char *boot_id;                                       /* "" where unreadable */
    struct node_pu *pus;                                 /* by index, ascending */
    size_t pu_count;
    uint64_t memory_total, memory_available; /* bytes; /proc/meminfo */
    uint64_t memory_limit;        /* bytes that the agent's cgroups allow; UINT64_MAX: no limit is known */
    struct node_memory *memories; /* one a NUMA node that has memory, ascending */
    size_t memory_count;
    char **environment; /* "NAME=VALUE", sorted; the allow-list only (PROTOCOL.md, FACTS) */
    size_t environment_count;
    char *run_directory;         /* of the agent; NULL where it does not say */
    uint64_t run_directory_free; /* bytes of its file system; 0 where it does not say */
    bool run_directory_noexec, run_directory_read_only;
    char **notes; /* sentences for the user: what the agent found to do before it served */
    size_t note_count;
};

/* Frees what the facts hold and the facts. NULL is fine. */
void node_facts_free(struct node_facts *facts);

/* The records of a FACTS message, without its request number. What it does not know it skips. */
int node_facts_parse(const void *bytes, size_t length, struct node_facts **ret, struct failure *failure);

/* One PU a physical core, the lowest that the agent may use, ascending; cores with none are left out. The
 * pointers point into FACTS; the caller frees the array. *RET_COUNT may be 0. 0 or -ENOMEM. */
int node_facts_physical_cores(const struct node_facts *facts, const struct node_pu ***ret, size_t *ret_count);

#endif
