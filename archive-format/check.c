/* Whether what the members of an archive say of each other holds: tables by their descriptions, the crate by
 * its rules, JSON by its schemas. A table is read once, for this and for its hash. */
#include "archive-format/crate/check.h"
#include "archive-format/datapackage.h"
#include "archive-format/layout.h"
#include "archive-format/reader-private.h"
#include "archive-format/schemas.h"
#include "engine/documents/csv.h"
#include "engine/documents/schema.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_SIZE = 128 << 10 };

struct check {
    struct archive_reader *archive;
    struct failure *failure;
    bool *read; /* by entry: to its end */
    char *buffer;
};

/* Reads MEMBER on to its end, where its hash is compared. */
static int drain(struct check *check, struct archive_member *member) {
    while (archive_member_read(member, check->buffer, BUFFER_SIZE) > 0)
        continue;
    return archive_member_status(member, check->failure);
}

/* ---- Tables */

/* As Table Schema has the types. LENGTH is above 0: an empty field is a missing value. */
static bool has_type(enum column_type type, const char *bytes, size_t length) {
    static const char *const others[] = {"NaN", "INF", "-INF", "true", "false"};
    const char *const *words = type == COLUMN_BOOLEAN ? &others[3] : others;
    char text[CLOCK_TEXT_SIZE];
    int64_t whole;
    double number;
    if (type == COLUMN_INTEGER)
        return number_parse_int64(bytes, length, &whole);
    if (type == COLUMN_NUMBER && number_parse_double(bytes, length, &number))
        return true;
    if (type == COLUMN_STRING || length >= sizeof text)
        return type == COLUMN_STRING;
    memcpy(text, bytes, length);
    text[length] = '\0';
    if (type == COLUMN_TIME)
        return clock_parse(text, &whole);
    for (size_t i = 0; i < (type == COLUMN_BOOLEAN ? 2 : 3); i++)
        if (strcmp(words[i], text) == 0)
            return true;
    return false;
}

static int check_header(struct csv_reader *csv, const struct archive_columns *columns,
                        struct failure *failure) {
    size_t count = csv_column_count(csv);
    if (count != columns->count)
        return failure_input(failure, csv_file(csv), 1, 1,
                             "the table has %zu columns; its description has %zu", count, columns->count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(csv_column_name(csv, i), columns->items[i].name) != 0)
            return failure_input(failure, csv_file(csv), 1, 1,
                                 "column %zu is called '%s'; its description says '%s'", i + 1,
                                 csv_column_name(csv, i), columns->items[i].name);
    return 0;
}

static int check_rows(struct csv_reader *csv, const struct archive_columns *columns,
                      struct failure *failure) {
    const struct csv_field *fields;
    int r = check_header(csv, columns, failure);
    if (r < 0)
        return r;
    while ((r = csv_next(csv, &fields, failure)) > 0)
        for (size_t i = 0; i < columns->count; i++)
            if (fields[i].length > 0 && !has_type(columns->items[i].type, fields[i].bytes, fields[i].length))
                return csv_failure(csv, i, failure,
                                   "'%.*s' in column '%s' is no %s, which its description says it is",
                                   (int)(fields[i].length < 64 ? fields[i].length : 64), fields[i].bytes,
                                   columns->items[i].name, column_type_name(columns->items[i].type));
    return r;
}

/* The table ENTRY; one that is empty was never begun. What is wrong with the member's bytes is said first. */
static int check_table(struct check *check, const struct zip_entry *entry,
                       const struct archive_columns *columns) {
    cleanup(archive_member_cleanup) struct archive_member *member =
        archive_entry_stream(check->archive, entry);
    cleanup(csv_reader_cleanup) struct csv_reader *csv = NULL;
    cleanup_free char *name = xformat("%s:%s", check->archive->path, entry->name);
    struct failure why = {0};
    int r = entry->size == 0 ? 0 : csv_open_function(name, archive_member_read, member, &csv, &why);
    r = csv ? check_rows(csv, columns, &why) : r;
    int damaged = drain(check, member);
    if (damaged < 0 || r == 0)
        return damaged;
    why.kind = FAILURE_VERIFICATION;
    if (check->failure)
        *check->failure = why;
    return r;
}

/* The tables of PACKAGE, which is called datapackage.json; their paths begin at its folder. */
static int check_package(struct check *check, const struct zip_entry *package) {
    cleanup(document_cleanup) struct document *document = NULL;
    int r = archive_read_document(check->archive, package->name, &document, check->failure);
    size_t folder = (size_t)(file_base_name(package->name) - package->name);
    for (size_t i = 0; r >= 0; i++) {
        cleanup(archive_columns_clear) struct archive_columns columns = {0};
        const char *path;
        r = archive_package_table(document, i, &path, &columns, check->failure);
        if (r <= 0)
            break;
        cleanup_free char *name = xformat("%.*s%s", (int)folder, package->name, path);
        const struct zip_entry *table = archive_entry_called(check->archive, name);
        if (!table || table->folder || check->read[table - check->archive->zip.entries])
            return failure_verification(check->failure, document->file,
                                        "describes the table '%.256s', which is %s", path,
                                        !table || table->folder ? "not in the archive" : "described twice");
        check->read[table - check->archive->zip.entries] = true;
        r = check_table(check, table, &columns);
    }
    return r;
}

/* ---- Schemas */

static const struct {
    const char *pattern, *schema; /* of names; '*' stands for any number of folders */
} schemas[] = {
    {ARCHIVE_RUN, text_run_schema_json},
    {ARCHIVE_DATAPACKAGE, text_datapackage_schema_json},
    {ARCHIVE_NODES "/*/" ARCHIVE_DATAPACKAGE, text_datapackage_schema_json},
    {ARCHIVE_INPUTS, text_inputs_schema_json},
    {ARCHIVE_SOURCES, text_sources_schema_json},
    {ARCHIVE_VERSIONS, text_versions_schema_json},
    {ARCHIVE_NODES "/*/" ARCHIVE_NODE_FACTS, text_facts_schema_json},
    {ARCHIVE_NODES "/*/" ARCHIVE_NODE_CLOCK, text_clock_schema_json},
    {ARCHIVE_NODES "/*/" ARCHIVE_NODE_CONTROLS, text_controls_schema_json},
    {ARCHIVE_NODES "/*/" ARCHIVE_NODE_WARM_UP, text_warm_up_schema_json},
};

/* Holds the members that SCHEMA is for against it. */
static int check_schema(struct check *check, const char *pattern, const char *text) {
    cleanup(document_cleanup) struct document *schema = NULL;
    int r = document_parse_json(pattern, text, strlen(text), &schema, check->failure);
    for (size_t i = 0; r == 0 && i < archive_member_count(check->archive); i++) {
        cleanup(document_cleanup) struct document *document = NULL;
        const char *name = archive_member_name(check->archive, i);
        if (fnmatch(pattern, name, 0) != 0 || strstr(name, "/raw/"))
            continue;
        r = archive_read_document(check->archive, name, &document, check->failure);
        r = r < 0 ? r : schema_check(schema, document, check->failure);
    }
    if (r < 0 && check->failure)
        check->failure->kind = FAILURE_VERIFICATION;
    return r;
}

static int check_schemas(struct check *check) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof schemas / sizeof *schemas; i++)
        r = check_schema(check, schemas[i].pattern, schemas[i].schema);
    return r;
}

/* ---- The whole */

static int check_crate(struct check *check) {
    cleanup(document_cleanup) struct document *document = NULL;
    int r = archive_read_document(check->archive, ARCHIVE_CRATE, &document, check->failure);
    return r < 0 ? r : crate_check(document, check->archive, CRATE_MUST, check->failure);
}

int archive_check(struct archive_reader *archive, struct failure *failure) {
    if (archive->is_folder || archive->is_foreign)
        return archive_verify(archive, failure); /* which refuses a folder */
    const struct zip_directory *zip = &archive->zip;
    cleanup_free bool *read = xcalloc(zip->count + 1, sizeof *read);
    cleanup_free char *buffer = xmalloc(BUFFER_SIZE);
    struct check check = {.archive = archive, .failure = failure, .read = read, .buffer = buffer};
    int r = 0;
    for (size_t i = 0; r == 0 && i < zip->count; i++)
        if (!zip->entries[i].folder && strcmp(file_base_name(zip->entries[i].name), ARCHIVE_DATAPACKAGE) == 0)
            r = check_package(&check, &zip->entries[i]);
    for (size_t i = 0; r == 0 && i < zip->count; i++)
        if (!zip->entries[i].folder && !read[i]) {
            cleanup(archive_member_cleanup) struct archive_member *member =
                archive_entry_stream(archive, &zip->entries[i]);
            r = drain(&check, member);
        }
    r = r < 0 ? r : check_crate(&check);
    return r < 0 || archive_run_minor(archive_run(archive)) < 1 ? r : check_schemas(&check);
}
