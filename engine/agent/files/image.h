/*
 * The root file systems that this user's runs were deployed with, extracted, each a folder image-SHA256 in
 * ~/.cache/assay, SHA256 being that of the image as the engine has it. They are only read: what a run writes
 * goes elsewhere (daemon/deployed.h). What is brought is a tar (tar.h, with links, owners and times), which
 * the engine made of the image.
 */
#ifndef ASSAY_FILES_IMAGE_H
#define ASSAY_FILES_IMAGE_H

#include "engine/foundation/failure.h"

enum { IMAGE_ABSENT = 79 }; /* exit status of an agent that was to be started in an image that is not here */

/* A descriptor of the image's root. -ENOENT: it has not been brought. -EPERM: we are not root. */
int image_open(const char *sha256, struct failure *failure);

#endif
