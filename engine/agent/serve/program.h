/* Checks the file that this agent was started from: it may be damaged or exchanged on the disk. */
#ifndef ASSAY_SERVE_PROGRAM_H
#define ASSAY_SERVE_PROGRAM_H

#include "engine/agent/files/sha256.h"
#include "engine/foundation/failure.h"

/* The SHA-256 of /proc/self/exe, computed at the first call; all 0 if it cannot be read. */
const unsigned char *program_sha256(void);
/* Checks a delivered agent, whose file is called agent-SHA256. -EBADMSG when PATH has such a name and the
 * file has another SHA-256; 0 for other names. */
int program_check_name(const char *path, struct failure *failure);

#endif
