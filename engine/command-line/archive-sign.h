/* assay archive sign, and what `archive verify --signers` looks at. */
#ifndef ASSAY_COMMAND_LINE_ARCHIVE_SIGN_H
#define ASSAY_COMMAND_LINE_ARCHIVE_SIGN_H

#include "archive-format/reader.h"
#include "engine/command-line/verb.h"

/* Signs the manifest of the archive that ARGUMENTS name, by ssh-keygen, into a file beside the archive. */
int archive_sign(const struct verb_arguments *arguments, struct failure *failure);

/* Checks the signature of ARCHIVE's manifest against SIGNERS, a file of allowed signers (ssh-keygen(1)).
 * *RET_WHO: the principal who signed; the caller frees. FAILURE_VERIFICATION: there is no signature, it is of
 * other bytes, or of nobody that SIGNERS has. */
int archive_check_signature(struct archive_reader *archive, const char *signers, char **ret_who,
                            struct failure *failure);

#endif
