/*
 * Binding: a table of fields turns a mapping of a document into a C struct, and everything that is
 * unknown (the nearest known key is named), missing, of the wrong type or out of range into one sentence
 * with its place. The same table prints the struct, for people and as a mapping that can be bound again.
 */
#ifndef ASSAY_DOCUMENTS_BIND_H
#define ASSAY_DOCUMENTS_BIND_H

#include "engine/documents/document.h"
#include "engine/documents/json.h"
#include "engine/documents/unit.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

enum bind_type {
    BIND_TEXT,     /* char *, owned (a default too); any scalar that is not null */
    BIND_BOOLEAN,  /* bool */
    BIND_INTEGER,  /* int64_t, within minimum..maximum; 1e6 and 4.0 are whole numbers too, up to 2^53 */
    BIND_NUMBER,   /* double, within minimum..maximum */
    BIND_QUANTITY, /* double in the SI unit of .dimension; "10min", "2.4GHz", or a plain number in that unit
                    */
    BIND_DURATION, /* int64_t in ns; otherwise as a quantity of UNIT_TIME, minimum and maximum in s */
    BIND_CHOICE,   /* int or an enum: the index in .choices (a NULL-ended array) */
    BIND_TEXTS,    /* struct bind_texts: a sequence of scalars, or one scalar */
    BIND_NODE,     /* const struct document_node *, borrowed from the document, bound by the caller */
    BIND_LATER,    /* no member: only the kind is checked; the caller finds the node by document_get() */
    BIND_MAPPING,  /* a struct of .fields */
    BIND_OPTIONAL, /* a pointer to such a struct of .item_size bytes, owned; NULL: the key is not there */
    BIND_ITEMS,    /* struct bind_items: a sequence of mappings, a struct of .fields for each */
    BIND_PAIRS,    /* struct bind_texts, in which each name is followed by its value: a mapping of texts */
    BIND_TIME,     /* int64_t, ns since 1970; text as clock_format() writes it; 0: not given */
};

struct bind_texts {
    char **items; /* owned; NULL behind the last; NULL when there are none */
    size_t count;
};

struct bind_items {
    void *items; /* owned: structs of .item_size bytes, zeroed before they are bound */
    size_t count;
};

/* A word that stands for a value, such as "none" for 0; beyond the range, too. */
struct bind_word {
    const char *text;
    double value;
};

struct bind_field {
    const char *key;
    enum bind_type type;
    size_t offset; /* of the member in the target */
    bool required;
    bool alias; /* another row prints the member */
    /* For numbers and quantities, quantities in the SI unit; both zero means any finite value, an infinity
     * that there is no bound on its side. A value out of range is one that nobody gave: it is not printed. */
    double minimum, maximum;
    enum unit_dimension dimension;
    const char *const *choices;
    const struct bind_word *words; /* of numbers and quantities; ended by one without text; or NULL */
    /* BIND_NODE and BIND_LATER: 0 for any kind, or 1 << DOCUMENT_MAPPING | 1 << DOCUMENT_SEQUENCE ... */
    unsigned kinds;
    /* BIND_TEXT and BIND_TEXTS: what was expected instead of VALUE ("an absolute path"), or NULL when it is
     * good. NULL: every text is. */
    const char *(*expect)(const char *key, const char *value);

    /* Instead of .key, of a row that stands for an array of members: the first of as many names, ended by
     * NULL. They are .keys_stride bytes apart; 0: they are an array of names. */
    const char *const *keys;
    size_t keys_stride;

    /* BIND_MAPPING, _OPTIONAL, _ITEMS. A mapping without a key: the fields are keys of the mapping itself. */
    const struct bind_field *fields;
    size_t field_count, item_size;
    bool is_open; /* keys that are no field are ignored */
    const char
        *scalar; /* a value that is no mapping is read as the member of this key; NULL: it is refused */
};

/* The beginnings of rows: of a member of a struct, and of fields that are an array. */
#define BIND_ROW(key_, type_, struct_, member_)                                                              \
    .key = key_, .type = type_, .offset = offsetof(struct struct_, member_)
#define BIND_RANGED(key_, type_, struct_, member_, least_, most_)                                            \
    BIND_ROW(key_, type_, struct_, member_), .minimum = least_, .maximum = most_
#define BIND_STRUCTS(struct_, array) BIND_FIELDS(array), .item_size = sizeof(struct struct_), .is_open = true
#define BIND_FIELDS(array) .fields = array, .field_count = sizeof(array) / sizeof *(array)

/* Refuses NODE with a sentence; its place is the document's beginning when there is no node. */
int bind_refuse(const struct document *document, const struct document_node *node, struct failure *failure,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Binds NODE (which must be a mapping; WHAT names it in messages, such as "campaign") into TARGET, whose
 * members hold the defaults. Members that the mapping does not mention are left alone. On failure what was
 * bound so far stays in TARGET, for bind_clear. WHAT NULL: keys that are no field are ignored, and so is a
 * null, which stands for a key that is not there. */
int bind_mapping(const struct document *document, const struct document_node *node, const char *what,
                 const struct bind_field *fields, size_t count, void *target, struct failure *failure);
/* Frees what TARGET owns and zeroes those members. */
void bind_clear(const struct bind_field *fields, size_t count, void *target);
/* Copies the texts, choices, numbers and lists of texts of FROM to TO, which has none. */
void bind_copy(const struct bind_field *fields, size_t count, const void *from, void *to);
/* A new item of SIZE bytes, zeroed, valid until the next. */
void *bind_items_add(struct bind_items *items, size_t size);
/* Adds what TARGET has to OBJECT, in SI units: bound again, it gives the same. What nobody gave and has no
 * default (NULL, a negative choice), BIND_NODE and BIND_LATER are left out. */
void bind_resolve(const struct bind_field *fields, size_t count, const void *target, cJSON *object);
/* Appends the members of TARGET for people: "turbo off, proof 1 s, tolerance 2 %". */
void bind_describe(const struct bind_field *fields, size_t count, const void *target, struct text *ret);

/* A list of texts as the struct owns it: one more at its end, and all gone. */
void bind_texts_add(struct bind_texts *texts, const char *text);
bool bind_texts_have(const struct bind_texts *texts, const char *text);
void bind_texts_clear(struct bind_texts *texts);

/* One value, by the same rules, for values that are not in a fixed table. FIELD's key names it in messages;
 * its offset counts from TARGET. */
int bind_value(const struct document *document, const struct document_node *node,
               const struct bind_field *field, void *target, struct failure *failure);

#endif
