/*
 * Binding: a table of fields turns a mapping of a document into a C struct, and everything that is
 * unknown (the nearest known key is named), missing, of the wrong type or out of range into one sentence
 * with its place.
 */
#ifndef ASSAY_DOCUMENTS_BIND_H
#define ASSAY_DOCUMENTS_BIND_H

#include "engine/documents/document.h"
#include "engine/documents/unit.h"
#include "engine/foundation/failure.h"

enum bind_type {
    BIND_TEXT,     /* char *, owned (a default too); any scalar that is not null */
    BIND_BOOLEAN,  /* bool */
    BIND_INTEGER,  /* int64_t, within minimum..maximum; 1e6 and 4.0 are whole numbers too, up to 2^53 */
    BIND_NUMBER,   /* double, within minimum..maximum */
    BIND_QUANTITY, /* double in the SI unit of .dimension; "10min", "2.4GHz", or a plain number in that unit
                    */
    BIND_CHOICE,   /* int: the index in .choices (a NULL-ended array) */
    BIND_TEXTS,    /* struct bind_texts: a sequence of scalars, or one scalar */
    BIND_NODE,     /* const struct document_node *, borrowed from the document, bound by the caller */
};

struct bind_texts {
    char **items; /* owned */
    size_t count;
};

struct bind_field {
    const char *key;
    enum bind_type type;
    size_t offset; /* of the member in the target */
    bool required;
    /* For numbers and quantities, quantities in the SI unit; both zero means any finite value, an infinity
     * that there is no bound on its side. */
    double minimum, maximum;
    enum unit_dimension dimension;
    const char *const *choices;
    /* BIND_NODE: 0 for any kind, or 1 << DOCUMENT_MAPPING | 1 << DOCUMENT_SEQUENCE ... */
    unsigned kinds;
};

/* Binds NODE (which must be a mapping; WHAT names it in messages, such as "campaign") into TARGET, whose
 * members hold the defaults. Members that the mapping does not mention are left alone. On failure what was
 * bound so far stays in TARGET, for bind_clear. */
int bind_mapping(const struct document *document, const struct document_node *node, const char *what,
                 const struct bind_field *fields, size_t count, void *target, struct failure *failure);
/* Frees what BIND_TEXT and BIND_TEXTS own in TARGET and zeroes those members. */
void bind_clear(const struct bind_field *fields, size_t count, void *target);

/* One value, by the same rules, for values that are not in a fixed table. FIELD's key names it in messages;
 * its offset counts from TARGET. */
int bind_value(const struct document *document, const struct document_node *node,
               const struct bind_field *field, void *target, struct failure *failure);

#endif
