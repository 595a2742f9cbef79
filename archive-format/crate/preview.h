/* ro-crate-preview.html: the page of an archive for a browser. HTML5 without scripts, and with nothing that
 * it would load; every text in it is escaped. */
#ifndef ASSAY_ARCHIVE_FORMAT_CRATE_PREVIEW_H
#define ASSAY_ARCHIVE_FORMAT_CRATE_PREVIEW_H

#include "archive-format/crate/describe.h"

enum { PREVIEW_FILES_MAX = 4096 /* listed one by one */ };

/* Appends the page. 0, -ENOMEM or -EFBIG. */
int preview_print(const struct sealed_content *content, struct text *ret);

#endif
