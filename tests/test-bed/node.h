/*
 * A bed and its nodes. A node is a process with namespaces of its own (mount, uts, pid, ipc, network and,
 * where the kernel has it, time): the first process of its pid namespace, which starts sshd and reaps
 * orphans. Its root is an overlay of this machine's over a tmpfs, without what is no part of a fresh Debian
 * (home folders, /work, ...), its /sys is a made-up tree, its /proc/sys is read-only but for copies of kernel
 * and vm: nothing that root does on a node by ordinary means reaches this machine. With a machine (kernel.h)
 * these files answer as a kernel does.
 *
 * The keeper (keeper.h) is in the front end's network namespace and in a mount namespace of its own, and
 * holds all of them: when it dies, the kernel ends the nodes and takes namespaces, devices and mounts away.
 */
#ifndef ASSAY_TEST_BED_NODE_H
#define ASSAY_TEST_BED_NODE_H

#include "engine/foundation/failure.h"
#include "tests/test-bed/settings.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    BED_PATH_SIZE = 256,      /* bytes of a path in a bed's folder, with its NUL */
    BED_PREFIX = 16,          /* bits of the network's address */
    BED_NODE_WAIT_MS = 30000, /* how long nodes may take to start */
};

#define BED_NETWORK 0x0a4d0000U               /* 10.77.0.0: node N has 10.77.(N/250).(N%250+1) */
#define BED_FRONT_END (BED_NETWORK | 0xfffeU) /* 10.77.255.254 */
#define BED_GATEWAY (BED_NETWORK | 0xfffdU)   /* 10.77.255.253, the gateway's side towards the nodes */
#define BED_OUTER_GATEWAY 0x0a4e0001U         /* 10.78.0.1, its side towards the front end */
#define BED_OUTER_FRONT_END 0x0a4efffeU       /* 10.78.255.254 */
#define BED_BRIDGE "bed"
#define BED_OUTER_BRIDGE "outer"

enum node_state { NODE_OFF, NODE_UP, NODE_FROZEN, NODE_CRASHED };

struct node {
    int number; /* from 1; the gateway is the last one */
    bool gateway;
    char name[SETTINGS_WORD_SIZE];
    char link[16];       /* the outer end of its wire, in the front end's namespace */
    char nodes_link[16]; /* of a gateway: that of its other wire, to the nodes */
    uint32_t address;
    enum node_state state;
    bool cut;
    int boots;
    pid_t init;        /* as this machine counts; 0 when there is none */
    int init_handle;   /* pidfd; -1 */
    int network;       /* its network namespace, which outlives a crash; -1 */
    int log;           /* what its sshd says, of all boots; -1 */
    int report;        /* while it starts: a pipe that brings one byte, or a sentence; -1 */
    pid_t files;       /* with a machine: the process behind its kernel files; 0 */
    int files_control; /* the socket for orders to it; -1 */
    int files_mount;   /* while it starts: what its mount is made of; -1 */
};

struct kernel;

struct bed {
    struct settings settings;
    char folder[BED_PATH_SIZE / 2]; /* what clients see: configuration, keys, logs, control socket */
    int front_end;                  /* netlink socket in the front end's namespace */
    int bridge;                     /* index of the nodes' bridge there */
    int outer_bridge;               /* with a gateway: of the one between it and the front end; 0 */
    struct kernel *kernel; /* what every node's kernel files are after a boot; NULL without a machine */
    struct node *nodes;
    int node_count; /* with the gateway */
};

/* A path in the bed's folder. */
void bed_path(const struct bed *bed, char path[BED_PATH_SIZE], const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Starts a node that is off (first boot or a later one); node_wait() says whether it came up. Its disk and,
 * for the first boot, the disk's mount are made here. */
int node_start(struct bed *bed, struct node *node, struct failure *failure);
/* Waits until each of COUNT nodes answers on its ssh port, or one has failed. */
int node_wait(struct bed *bed, struct node *nodes, int count, struct failure *failure);

/* Ends all processes of a node and reaps its init; the network namespace stays. */
void node_kill(struct node *node);
/* Ends the process behind its kernel files, if there is one. */
void node_end_files(struct node *node);
/* Takes its device and its network namespace away. */
void node_unplug(struct bed *bed, struct node *node);

/* Runs FUNCTION(ARGUMENT) in a process inside the node and returns 0 if it returned 0. What the function
 * writes on descriptor 3 is the sentence of the failure. */
int node_inside(const struct node *node, int (*function)(void *argument), void *argument,
                struct failure *failure);
/* Puts the calling process into the namespaces of the process that HANDLE (a pidfd) stands for; its children
 * are in the pid namespace too. */
int node_join(int handle, struct failure *failure);

/* For a process inside a node: starts sshd as the node's configuration has it and waits until it listens. The
 * failure's text has sshd's own words. */
int node_start_sshd(struct failure *failure);

#endif
