/* Decimal numbers as text, by the grammars of YAML 1.2's core schema and of JSON. Internal to this room. */
#ifndef ASSAY_DOCUMENTS_NUMBER_LITERAL_H
#define ASSAY_DOCUMENTS_NUMBER_LITERAL_H

#include <stdbool.h>
#include <stddef.h>

/* How many bytes of BYTES[0..LENGTH) are an optional sign, digits with an optional point (digits on one side
 * of it are enough) and an optional exponent, or 0 when no such number begins here. */
size_t number_literal_length(const char *bytes, size_t length);
/* Whether all bytes are such a number. */
bool number_literal_is_decimal(const char *bytes, size_t length);
/* The length of a number by the grammar of JSON (RFC 8259) that the bytes begin with; 0: none. */
size_t number_literal_json_length(const char *bytes, size_t length);

#endif
