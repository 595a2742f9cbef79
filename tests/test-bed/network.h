/*
 * The bed's wires, by rtnetlink: pairs of virtual Ethernet devices, a bridge, addresses and routes. Every
 * call works in the network namespace where its SOCKET was opened, whatever namespace the process is in by
 * now. Devices are named; names have at most 15 bytes. Addresses are in host byte order.
 */
#ifndef ASSAY_TEST_BED_NETWORK_H
#define ASSAY_TEST_BED_NETWORK_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stdint.h>

/* A socket for the calling process's network namespace; the caller closes it. */
int network_open(struct failure *failure);

/* Device NAME here, its other end PEER in the namespace that the descriptor PEER_NAMESPACE stands for. The
 * hardware address of PEER is made from ADDRESS: the same after a reboot, as others remember it. */
int network_add_pair(int socket, const char *name, const char *peer, int peer_namespace, uint32_t address,
                     struct failure *failure);
int network_add_bridge(int socket, const char *name, struct failure *failure);
int network_remove(int socket, const char *name, struct failure *failure);

int network_set_up(int socket, const char *name, bool up, struct failure *failure);
/* Makes the device a port of the bridge with index BRIDGE. */
int network_set_bridge(int socket, const char *name, int bridge, struct failure *failure);

/* The index of a device. Asking also makes the kernel act on a change of the carrier at once, which it may
 * otherwise put off for a second. */
int network_index(int socket, const char *name, int *ret, struct failure *failure);

int network_add_address(int socket, const char *name, uint32_t address, int prefix, struct failure *failure);
/* Replaces the route to the device's own network by one that acknowledges every segment at once. */
int network_quick_acknowledge(int socket, const char *name, uint32_t address, int prefix,
                              struct failure *failure);

/* No IPv6 on devices that appear from now on in the calling process's namespace: without it 64 nodes do not
 * chat about neighbours and routers. A kernel without IPv6 is fine. */
void network_without_ipv6(void);

#endif
