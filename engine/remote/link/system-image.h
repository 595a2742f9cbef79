/*
 * The image of a root file system, as a user has it: a tar, compressed by gzip, bzip2, xz, zstd or not. It is
 * read as what a stranger made: refused are names and hard links that are absolute or have "..", devices
 * anywhere but in /dev, and one without /bin/sh. (Links that lead out are for the node's tar, which makes
 * them last.)
 */
#ifndef ASSAY_LINK_SYSTEM_IMAGE_H
#define ASSAY_LINK_SYSTEM_IMAGE_H

#include "engine/foundation/failure.h"
#include "engine/remote/launch/agent-transport.h"

/* Reads all of it, and fills in the name, which is its SHA-256. FAILURE_INPUT when it is none. WITH_TAR: the
 * rest too; the tar is unpacked into a file without a name in $TMPDIR or /tmp. */
int system_image_read(const char *path, bool with_tar, struct agent_image *ret, struct failure *failure);
void system_image_clear(struct agent_image *image); /* of zeros is fine */

#endif
