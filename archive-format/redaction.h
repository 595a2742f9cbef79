/*
 * What is taken out of texts before they are passed on: passwords in addresses and options, tokens, and
 * serial numbers and hardware addresses, which name a machine's owner and not its performance, but tell
 * whether two machines are the same one. For strangers (`--redact`) also names of users and addresses of the
 * network.
 */
#ifndef ASSAY_ARCHIVE_FORMAT_REDACTION_H
#define ASSAY_ARCHIVE_FORMAT_REDACTION_H

#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>

struct redaction;

/* For strangers, with the names of USERS (NULL-ended) and what this process knows of its user; or not. Serial
 * numbers become "hashed:" and 16 digits of the SHA-256 of this user's salt and the number: the same number
 * is the same in all archives of one user, and cannot be found by trying all. The salt is a file that is made
 * once, $XDG_STATE_HOME/assay/salt (default ~/.local/state); where that cannot be, it is drawn anew. */
int redaction_new(bool for_strangers, const char *const *users, struct redaction **ret,
                  struct failure *failure);
/* Nothing is hidden from strangers within NAME: a node "alice-pc" has its name in results and in paths, too.
 */
void redaction_keep(struct redaction *redaction, const char *name);
void redaction_free(struct redaction **redaction); /* for cleanup(); NULL is fine */

/* Appends the LENGTH bytes, redacted, to RET. What has a NUL is no text, and is appended as it is. How many
 * places were changed; -ENOMEM or -EFBIG. */
int redaction_apply(struct redaction *redaction, const char *bytes, size_t length, struct text *ret);

/* Makes TO, a folder that is not there, a copy of the staging folder FROM whose files are redacted; but for
 * the user's own (of the experiment, inputs, models), tables and packed files. Campaigns in the experiment's
 * folder are redacted, too. The journal gets new checksums. STAYED gets the names of files that were not
 * redacted and have the name of a user. */
int redaction_copy(struct redaction *redaction, const char *from, const char *to, struct text *stayed,
                   struct failure *failure);

#endif
