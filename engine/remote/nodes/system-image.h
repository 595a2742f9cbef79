/*
 * The image of a root file system, as a user has it: a tar, compressed by gzip, bzip2, xz, zstd or not. It is
 * read as what a stranger made: paths that are absolute or have "..", hard links that lead out, and devices
 * anywhere but in /dev are refused, and so is one without /bin/sh. Left out are what is in /dev, sockets and
 * pipes, and attributes beyond owner, mode and time.
 */
#ifndef ASSAY_NODES_SYSTEM_IMAGE_H
#define ASSAY_NODES_SYSTEM_IMAGE_H

#include "engine/foundation/failure.h"
#include "engine/remote/launch/agent-transport.h"

struct system_image {
    struct agent_image brought; /* as nodes get it; its tar is NULL unless it was asked for */
    char *name;                 /* PRETTY_NAME of its os-release, or "unnamed system"; owned */
};

/* Reads all of it. WITH_TAR: also packs what nodes get, into a file without a name in $TMPDIR or /tmp, which
 * is as large as all of its files. FAILURE_INPUT when the image is not one. */
int system_image_read(const char *path, bool with_tar, struct system_image *ret, struct failure *failure);
void system_image_clear(struct system_image *image); /* of zeros is fine */

#endif
