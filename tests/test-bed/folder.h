/*
 * A bed's folder: what its clients read, the lock that its keeper holds while it lives, and its removal.
 *
 *     ssh_config id_ed25519 known_hosts    for clients: ssh -F FOLDER/ssh_config NODE
 *     home/.ssh/                           the same for programs that go by $HOME
 *     hosts hosts.nodes                    the hosts files of the front end and of the nodes
 *     nodes                                the nodes' names, one a line
 *     log/                                 what the keeper and the nodes' sshd say
 *     control lock keeper                  the keeper's socket, lock and process id
 *     inside/                              where the keeper's own mounts are; empty for everybody else
 */
#ifndef ASSAY_TEST_BED_FOLDER_H
#define ASSAY_TEST_BED_FOLDER_H

#include "tests/test-bed/node.h"

/* Makes the folder with log/ and the two keys, and takes its lock, which RET_LOCK gets. */
int folder_make(struct bed *bed, int *ret_lock, struct failure *failure);
/* The files for clients, when the nodes are up. */
int folder_write_client_files(const struct bed *bed, struct failure *failure);

/* Removes the folder with everything in it. */
void folder_remove(const char *folder);

/* Removes the folders of this user's beds whose keeper is gone, and ends what they left running. */
void folder_reap(void);

/* Both end processes that a bed's commands have left running: those in the calling process's network
 * namespace, but not SPARED (0: nobody) and its parents, nor the calling process's own children; and those
 * that bed run has marked with BED_OF_PROCESS=FOLDER in their environment.
 */
void folder_end_network(pid_t spared);
void folder_end_marked(const char *folder);

#endif
