#include "archive-format/import/mapping.h"

#include "engine/documents/unit.h"
#include "engine/foundation/memory.h"

#include <stdlib.h>
#include <string.h>

#define ROW(type_, member_)                                                                                  \
    { BIND_ROW(#member_, type_, import_mapping, member_) }
static const struct bind_field fields[] = {
    ROW(BIND_TEXT, name),
    ROW(BIND_TEXT, experiment),
    ROW(BIND_TEXTS, factors),
    ROW(BIND_PAIRS, responses),
    ROW(BIND_PAIRS, covariates),
    ROW(BIND_TEXT, node),
    ROW(BIND_TEXT, core),
    ROW(BIND_TEXT, start),
    ROW(BIND_TEXT, repetition),
    ROW(BIND_TEXT, node_name),
    ROW(BIND_TEXT, utc_offset),
    {BIND_ROW("model", BIND_OPTIONAL, import_mapping, model),
     BIND_STRUCTS(archive_model, archive_model_fields)},
    {BIND_ROW("answer", BIND_OPTIONAL, import_mapping, answer),
     BIND_STRUCTS(archive_answer, archive_answer_fields), .scalar = "best"},
};
enum { FIELDS = sizeof fields / sizeof *fields };

int import_mapping_read(const struct document *document, struct import_mapping *ret,
                        struct failure *failure) {
    int r = bind_mapping(document, document->root, "mapping", fields, FIELDS, ret, failure);
    return r == 0 && ret->responses.count == 0
               ? bind_refuse(document, document->root, failure,
                             "no column is a response; expected 'responses: {COLUMN: UNIT}'")
               : r;
}

void import_mapping_clear(struct import_mapping *mapping) {
    bind_clear(fields, FIELDS, mapping);
}

int import_table_open(struct import_table *table, struct csv_reader **ret, struct failure *failure) {
    int r = import_open(&table->files[0], ret, failure);
    if (r < 0)
        return r;
    table->column_count = csv_column_count(*ret);
    table->columns = xcalloc(table->column_count, sizeof *table->columns);
    for (size_t i = 0; i < table->column_count; i++)
        table->columns[i] = (struct import_column){.name = xstrdup(csv_column_name(*ret, i)),
                                                   .unit = xstrdup_or_null(csv_column_unit(*ret, i))};
    return 0;
}

static int give_use(const struct csv_reader *csv, struct import_table *table, const char *name,
                    enum import_use use, const char *unit, struct failure *failure) {
    const struct unit *known = unit ? unit_find_written(unit) : NULL;
    size_t i;
    int r = csv_find_column(csv, name, &i, failure);
    if (r < 0)
        return r;
    struct import_column *column = &table->columns[i];
    if (column->use != IMPORT_LEFT_OUT)
        return failure_input(failure, csv_file(csv), 1, 0,
                             "the column '%s' has two meanings in the mapping; expected one", name);
    column->use = use;
    if (unit && *unit) {
        free(column->unit);
        column->unit = xstrdup(known ? known->code : unit);
    }
    return 0;
}

int import_mapping_apply(const struct import_mapping *mapping, enum import_strictness strictness,
                         const struct csv_reader *csv, struct import_table *table, struct failure *failure) {
    const struct bind_texts *const pairs[] = {&mapping->responses, &mapping->covariates};
    const char *const ones[] = {mapping->node, mapping->core, mapping->start, mapping->repetition};
    int r = 0;
    size_t i;
    for (i = 0; r == 0 && i < mapping->factors.count; i++)
        r = give_use(csv, table, mapping->factors.items[i], IMPORT_FACTOR, NULL, failure);
    for (size_t p = 0; p < 2; p++)
        for (i = 0; r == 0 && i < pairs[p]->count; i += 2)
            r = give_use(csv, table, pairs[p]->items[i], p == 0 ? IMPORT_RESPONSE : IMPORT_COVARIATE,
                         pairs[p]->items[i + 1], failure);
    for (size_t k = 0; r == 0 && k < sizeof ones / sizeof *ones; k++)
        if (ones[k] && (strictness == STRICT_FOR_ALL || csv_find_column(csv, ones[k], &i, NULL) == 0))
            r = give_use(csv, table, ones[k], (enum import_use)(IMPORT_NODE + k), NULL, failure);
    return r;
}
