/* A value as a sentence shows it. Internal to this room. */
#ifndef ASSAY_DOCUMENTS_SHOWN_VALUE_H
#define ASSAY_DOCUMENTS_SHOWN_VALUE_H

#include <stddef.h>

enum { SHOWN_VALUE_MAX = 80 };

struct shown_value {
    char text[SHOWN_VALUE_MAX + 8];
};

/* BYTES (UTF-8) in quotes, cut after SHOWN_VALUE_MAX bytes. */
struct shown_value shown_value(const char *bytes, size_t length);

#endif
