/* The further tables of an experiment. */
#include "engine/run/campaign/experiment-bind.h"

#include "engine/foundation/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct bind_field table_fields[] = {
    {.key = "pattern",
     .type = BIND_TEXT,
     .offset = offsetof(struct experiment_table, pattern),
     .required = true},
    {.key = "description", .type = BIND_TEXT, .offset = offsetof(struct experiment_table, description)},
    {.key = "columns",
     .type = BIND_NODE,
     .offset = offsetof(struct experiment_table, columns_node),
     .kinds = 1 << DOCUMENT_MAPPING,
     .required = true},
};
enum { TABLE_FIELD_COUNT = sizeof table_fields / sizeof *table_fields };

/* They stand behind those that say which unit it was, and the factors. */
static int bind_columns(const struct experiment *experiment, const struct document *document,
                        struct experiment_table *table, struct failure *failure) {
    const struct document_node *node = table->columns_node;
    int r = experiment_check_count(document, node, "columns", failure);
    if (r == 0 && !(table->columns = calloc(node->count ? node->count : 1, sizeof *table->columns)))
        r = failure_memory(failure);
    for (size_t i = 0; r == 0 && i < node->count; i++) {
        r = experiment_check_name(document, node->keys[i], "a column", failure);
        if (r == 0)
            r = experiment_check_name_is_free(experiment, document, node->keys[i], failure);
        if (r == 0)
            r = experiment_bind_response(document, node->keys[i], node->items[i], true,
                                         &table->columns[table->column_count++], failure);
    }
    return r;
}

static int bind_table(const struct experiment *experiment, const struct document *document,
                      const struct document_node *key, const struct document_node *value,
                      struct experiment_table *ret, struct failure *failure) {
    size_t groups;
    int r = experiment_check_name(document, key, "a table", failure);
    /* Names that differ only in their case would be one file on some systems. */
    for (const struct experiment_table *other = experiment->tables; r == 0 && other < ret; other++)
        if (strcasecmp(other->name, key->text) == 0)
            r = failure_input(failure, document->file, key->line, key->column,
                              "'%s' is a table already, expected another name", other->name);
    ret->name = strdup(key->text);
    ret->file = text_format("results/tables/%s.csv", key->text);
    if (r == 0 && (!ret->name || !ret->file))
        r = failure_memory(failure);
    if (r == 0)
        r = bind_mapping(document, value, key->text, table_fields, TABLE_FIELD_COUNT, ret, failure);
    if (r == 0)
        r = bind_columns(experiment, document, ret, failure);
    const struct document_node *at = document_get(value, "pattern");
    if (r == 0)
        r = experiment_check_pattern(document, at, ret->name, ret->pattern, &groups, failure);
    if (r < 0 || groups == ret->column_count)
        return r;
    return failure_input(failure, document->file, at->line, at->column,
                         "the pattern of '%s' has %zu groups, expected %zu, one for each column", ret->name,
                         groups, ret->column_count);
}

int experiment_bind_tables(struct experiment *experiment, const struct document *document,
                           const struct document_node *node, struct failure *failure) {
    if (!node)
        return 0;
    if (experiment->streamed)
        return failure_input(failure, document->file, node->line, node->column,
                             "a streamed kernel has no 'tables', since its output is its answers");
    if (node->count > EXPERIMENT_TABLES_MOST)
        return failure_input(failure, document->file, node->line, node->column,
                             "%zu tables, expected at most %d", node->count, EXPERIMENT_TABLES_MOST);
    experiment->tables = calloc(node->count ? node->count : 1, sizeof *experiment->tables);
    int r = experiment->tables ? 0 : failure_memory(failure);
    for (size_t i = 0; r == 0 && i < node->count; i++)
        r = bind_table(experiment, document, node->keys[i], node->items[i],
                       &experiment->tables[experiment->table_count++], failure);
    return r;
}

void experiment_tables_clear(struct experiment *experiment) {
    for (size_t i = 0; i < experiment->table_count; i++) {
        struct experiment_table *table = &experiment->tables[i];
        for (size_t j = 0; j < table->column_count; j++)
            experiment_response_clear(&table->columns[j]);
        free(table->columns);
        free(table->name);
        free(table->file);
        bind_clear(table_fields, TABLE_FIELD_COUNT, table);
    }
    free(experiment->tables);
}
