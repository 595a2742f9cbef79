/*
 * JSON Schema (draft 2020-12), as far as schemas of our own need it: type, const, enum, pattern, minLength,
 * minItems, minimum, exclusiveMinimum, exclusiveMaximum, required, properties, additionalProperties, items,
 * oneOf, if/then/else and $ref to "#/$defs/NAME". Other keywords are for other validators. A member that is
 * null passes as one that is absent.
 */
#ifndef ASSAY_DOCUMENTS_SCHEMA_H
#define ASSAY_DOCUMENTS_SCHEMA_H

#include "engine/documents/document.h"
#include "engine/foundation/failure.h"

/* Checks DOCUMENT against SCHEMA. FAILURE_INPUT names the first member that breaks it, its place, what it is
 * and what is expected. */
int schema_check(const struct document *schema, const struct document *document, struct failure *failure);

#endif
