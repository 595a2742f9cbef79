#include "archive-format/datapackage.h"

#include "archive-format/reader-private.h"
#include "engine/documents/json.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const role_names[] = {
    [COLUMN_ROLE_NONE] = "",
    [COLUMN_ROLE_FACTOR] = "factor",
    [COLUMN_ROLE_RESPONSE] = "response",
    [COLUMN_ROLE_COVARIATE] = "covariate",
    [COLUMN_ROLE_ID] = "id",
    [COLUMN_ROLE_TIME] = "time",
};

static enum column_role find_role(const char *name) {
    enum column_role role = COLUMN_ROLE_TIME;
    while (role != COLUMN_ROLE_NONE && strcmp(role_names[role], name) != 0)
        role--;
    return role;
}

/* ---- Writing */

static bool is_given(const char *text) {
    return text && text[0] != '\0';
}

static void add_given(cJSON *object, const char *key, const char *text) {
    if (is_given(text))
        json_add_string(object, key, text);
}

static void add_field(cJSON *fields, const struct column *column) {
    cJSON *field = json_add_object(fields, NULL);
    const struct unit *unit = is_given(column->unit) ? unit_find(column->unit) : NULL;
    json_add_string(field, "name", column->name);
    /* Nanoseconds since 1970 are above 2^53, where some readers (in JavaScript) refuse integers. */
    bool is_stamp = column->role == COLUMN_ROLE_TIME && column->type == COLUMN_INTEGER;
    enum column_type type = is_stamp ? COLUMN_NUMBER : column->type ? column->type : COLUMN_STRING;
    json_add_string(field, "type", column_type_name(type));
    if (column->type == COLUMN_TIME) /* the default format has no fractions of seconds */
        json_add_string(field, "format", "any");
    add_given(field, "title", column->label);
    add_given(field, "description", column->help);
    add_given(field, "unit", column->unit);
    add_given(field, "unitQudt", unit ? unit->qudt : NULL);
    add_given(field, "role", role_names[column->role]);
}

/* "results/raw/a.csv" -> "results-raw-a": a resource's name may not have slashes. */
static char *resource_name(const char *path) {
    char *name = xstrdup(path);
    size_t length = strlen(name);
    if (length > 4 && strcmp(name + length - 4, ".csv") == 0)
        name[length - 4] = '\0';
    for (char *at = name; *at; at++)
        if (*at == '/')
            *at = '-';
        else if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at - 'A' + 'a');
    return name;
}

static void add_table(cJSON *resources, const struct archive_table *table) {
    cJSON *resource = json_add_object(resources, NULL);
    cleanup_free char *name = resource_name(table->path);
    json_add_string(resource, "name", name);
    json_add_string(resource, "path", table->path);
    json_add_string(resource, "type", "table");
    add_given(resource, "description", table->description);
    json_add_string(resource, "format", "csv");
    json_add_string(resource, "mediatype", "text/csv");
    json_add_string(resource, "encoding", "utf-8");
    cJSON *schema = json_add_object(resource, "schema"), *fields = json_add_array(schema, "fields");
    for (size_t i = 0; i < table->column_count; i++)
        add_field(fields, &table->columns[i]);
    json_add_string(json_add_array(schema, "missingValues"), NULL, "");
}

static int check_table(const struct archive_table *table, struct failure *failure) {
    for (size_t i = 0; i < table->column_count; i++) {
        if (!is_given(table->columns[i].name))
            return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "column %zu of '%s' has no name", i + 1,
                                    table->path);
        for (size_t k = 0; k < i; k++)
            if (strcmp(table->columns[i].name, table->columns[k].name) == 0)
                return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "'%s' has two columns called '%s'",
                                        table->path, table->columns[i].name);
    }
    return 0;
}

int archive_write_datapackage(const char *path, const char *name, const struct archive_table *tables,
                              size_t count, struct failure *failure) {
    cleanup(json_cleanup) cJSON *package = cJSON_CreateObject();
    cleanup(text_clear) struct text text;
    text_init(&text, ARCHIVE_RECORD_BYTES_MAX);
    json_add_string(package, "$schema", "https://datapackage.org/profiles/2.0/datapackage.json");
    json_add_string(package, "name", name);
    cJSON *resources = json_add_array(package, "resources");
    if (count == 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        int r = check_table(&tables[i], failure);
        if (r < 0)
            return r;
        add_table(resources, &tables[i]);
    }
    int r = json_print(package, true, &text);
    if (r == 0)
        r = text_append_character(&text, '\n');
    if (r < 0)
        return failure_set(failure, r, "cannot write '%s': %s", path, strerror(-r));
    return file_replace(path, text.bytes, text.length, 0644, failure);
}

/* ---- Reading */

void archive_columns_clear(struct archive_columns *columns) {
    for (size_t i = 0; i < columns->count; i++)
        column_clear(&columns->items[i]);
    free(columns->items);
    *columns = (struct archive_columns){0};
}

const struct column *archive_columns_find(const struct archive_columns *columns, const char *name) {
    for (size_t i = 0; i < columns->count; i++)
        if (strcmp(columns->items[i].name, name) == 0)
            return &columns->items[i];
    return NULL;
}

static const char *text_of(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    return value && value->kind == DOCUMENT_TEXT ? value->text : "";
}

/* Types and roles of later versions are taken for what every reader can do with them: text, and no role. */
static void take_field(const struct document_node *node, struct column *ret) {
    enum column_type type = column_type_find(text_of(node, "type"));
    *ret = column_copy(&(struct column){
        .name = text_of(node, "name"),
        .type = type == COLUMN_UNKNOWN || type == COLUMN_TIME ? COLUMN_STRING : type,
        .unit = text_of(node, "unit")[0] ? text_of(node, "unit") : NULL,
        .role = find_role(text_of(node, "role")),
        .label = text_of(node, "title")[0] ? text_of(node, "title") : NULL,
        .help = text_of(node, "description"),
    });
}

static int refuse_at(const struct document *document, const struct document_node *node,
                     struct failure *failure, const char *what) {
    failure_input(failure, document->file, node->line, node->column, "%s", what);
    if (failure)
        failure->kind = FAILURE_VERIFICATION;
    return -EINVAL;
}

static int take_fields(const struct document *document, const struct document_node *resource,
                       struct archive_columns *ret, struct failure *failure) {
    const struct document_node *fields = document_get(document_get(resource, "schema"), "fields");
    if (!fields || fields->kind != DOCUMENT_SEQUENCE || fields->count == 0)
        return refuse_at(document, resource, failure,
                         "the table has no schema.fields; expected a list of columns");
    cleanup(archive_columns_clear) struct archive_columns columns = {0};
    columns.items = xcalloc(fields->count, sizeof *columns.items);
    for (size_t i = 0; i < fields->count; i++) {
        if (text_of(fields->items[i], "name")[0] == '\0')
            return refuse_at(document, fields->items[i], failure, "the column has no name");
        take_field(fields->items[i], &columns.items[columns.count++]);
    }
    *ret = columns;
    columns = (struct archive_columns){0};
    return 0;
}

int archive_package_table(const struct document *document, size_t index, const char **ret_path,
                          struct archive_columns *ret, struct failure *failure) {
    const struct document_node *resources = document_get(document->root, "resources");
    if (!resources || resources->kind != DOCUMENT_SEQUENCE)
        return refuse_at(document, document->root, failure,
                         "there are no resources; expected a list of tables");
    if (index >= resources->count)
        return 0;
    *ret_path = text_of(resources->items[index], "path");
    int r = take_fields(document, resources->items[index], ret, failure);
    const struct document_node *fields =
        document_get(document_get(resources->items[index], "schema"), "fields");
    for (size_t i = 0; i < ret->count; i++)
        if (column_type_find(text_of(fields->items[i], "type")) == COLUMN_TIME)
            ret->items[i].type = COLUMN_TIME;
    return r < 0 ? r : 1;
}

int archive_package_columns(const struct document *document, const char *table_path,
                            struct archive_columns *ret, struct failure *failure) {
    const struct document_node *resources = document_get(document->root, "resources");
    cleanup(text_clear) struct text there;
    text_init(&there, FAILURE_TEXT_SIZE / 2);
    if (!resources || resources->kind != DOCUMENT_SEQUENCE)
        return refuse_at(document, document->root, failure,
                         "there are no resources; expected a list of tables");
    for (size_t i = 0; i < resources->count; i++) {
        const char *path = text_of(resources->items[i], "path");
        if (strcmp(path, table_path) == 0)
            return take_fields(document, resources->items[i], ret, failure);
        (void)text_printf(&there, "%s'%s'", i ? ", " : "", path); /* a list that is too long just ends */
    }
    return failure_input(failure, document->file, 0, 0, "there is no table '%s'; there is %s", table_path,
                         there.length ? there.bytes : "none");
}

int archive_table_columns(struct archive_reader *archive, const char *table_path, struct archive_columns *ret,
                          struct failure *failure) {
    cleanup(document_cleanup) struct document *document = NULL;
    if (!archive_find(archive, ARCHIVE_DATAPACKAGE, NULL))
        return failure_input(failure, archive_path(archive), 0, 0,
                             "there is no table '%s'; the archive has none", table_path);
    int r = archive_read_document(archive, ARCHIVE_DATAPACKAGE, &document, failure);
    return r < 0 ? r : archive_package_columns(document, table_path, ret, failure);
}
