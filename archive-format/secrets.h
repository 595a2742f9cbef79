/* Looks for private keys and tokens in what is about to be archived: archives are passed on. */
#ifndef ASSAY_ARCHIVE_FORMAT_SECRETS_H
#define ASSAY_ARCHIVE_FORMAT_SECRETS_H

#include "archive-format/staging.h"
#include "engine/foundation/failure.h"

/* Refuses the file PATH, called NAME in messages, that has a private key or a token
 * (engine/foundation/secret.h), and names the line: FAILURE_INPUT with -EKEYREJECTED. Lines are looked at in
 * pieces of at most 64 KiB. */
int secrets_check_file(const char *path, const char *name, struct failure *failure);
/* The same of all files but those in ARCHIVE_INPUT_FILES, which the user has named. */
int secrets_check(const struct staging *staging, struct failure *failure);

#endif
