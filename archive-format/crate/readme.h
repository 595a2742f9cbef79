/* README.md of an archive: for whoever finds the zip and has never heard of assay. */
#ifndef ASSAY_ARCHIVE_FORMAT_CRATE_README_H
#define ASSAY_ARCHIVE_FORMAT_CRATE_README_H

#include "archive-format/crate/describe.h"

/* Appends the text. It calls the zip ARCHIVE.zip: a zip may be renamed, and its name must not change its
 * bytes. 0, -ENOMEM or -EFBIG. */
int readme_print(const struct sealed_content *content, struct text *ret);

#endif
