/* The file that this program was started from, as it is on the disk: where programs are kept, bytes flip and
 * files are exchanged. */
#ifndef ASSAY_SERVE_PROGRAM_H
#define ASSAY_SERVE_PROGRAM_H

#include "engine/agent/files/sha256.h"
#include "engine/foundation/failure.h"

/* Of /proc/self/exe, read when it is asked for first; all 0 if that cannot be read. */
const unsigned char *program_sha256(void);
/* An agent that was delivered is called agent-SHA256. -EBADMSG when PATH ends so, and the file is another. */
int program_check_name(const char *path, struct failure *failure);

#endif
