/*
 * The user's image of a root file system: a tar, compressed by gzip, bzip2, xz, zstd or not at all. It is not
 * trusted: names and hard links that are absolute or have "..", devices outside of /dev, and an image without
 * /bin/sh are refused. (Symbolic links that lead out of the image are safe: the node's tar makes them last.)
 */
#ifndef ASSAY_LINK_SYSTEM_IMAGE_H
#define ASSAY_LINK_SYSTEM_IMAGE_H

#include "engine/foundation/failure.h"
#include "engine/remote/launch/agent-transport.h"

/* Reads and checks the image, and sets its name, which is its SHA-256. FAILURE_INPUT for a file that is no
 * valid image. WITH_TAR: sets the other members, too; the decompressed tar is in a file without a name in
 * $TMPDIR or /tmp. */
int system_image_read(const char *path, bool with_tar, struct agent_image *ret, struct failure *failure);
void system_image_clear(struct agent_image *image); /* a zeroed image is fine */

#endif
