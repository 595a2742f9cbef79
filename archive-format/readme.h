/* README.md of an archive: for whoever finds the zip and has never heard of assay. */
#ifndef ASSAY_ARCHIVE_FORMAT_README_H
#define ASSAY_ARCHIVE_FORMAT_README_H

#include "archive-format/staging.h"
#include "archive-format/writer.h"
#include "engine/foundation/text.h"

/* Appends the text. It calls the zip ARCHIVE.zip: a zip may be renamed, and its name must not change its
 * bytes. 0, -ENOMEM or -EFBIG. */
int readme_print(const struct staging *staging, const struct archive_description *description,
                 struct text *ret);

#endif
