/* Measurements of anybody, in a CSV file: a mapping says what its columns are, or their names do. */
#include "archive-format/import/mapping.h"
#include "archive-format/layout.h"
#include "engine/documents/json.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* What `utc_offset: "+02:00"` says, into RET. */
static int read_offset(const struct import_mapping *mapping, const char *file, struct import_zone *ret,
                       struct failure *failure) {
    cleanup_free char *text =
        xformat("1970-01-02T00:00:00%s", mapping->utc_offset ? mapping->utc_offset : "");
    int64_t at;
    if (!mapping->utc_offset)
        return 0;
    if (!import_time(&(struct import_zone){0}, text, &at))
        return failure_input(failure, file, 0, 0, "utc_offset is '%.40s'; expected one such as \"+02:00\"",
                             mapping->utc_offset);
    *ret = (struct import_zone){.kind = ZONE_FIXED, .offset_ns = INT64_C(86400000000000) - at};
    return 0;
}

/* ---- By the names of columns */

static const struct {
    const char *name;
    enum import_use use;
} words[] = {
    {"node", IMPORT_NODE},       {"host", IMPORT_NODE},        {"hostname", IMPORT_NODE},
    {"core", IMPORT_CORE},       {"start", IMPORT_START},      {"start_time", IMPORT_START},
    {"timestamp", IMPORT_START}, {"date", IMPORT_START},       {"repetition", IMPORT_REPETITION},
    {"rep", IMPORT_REPETITION},  {"row", IMPORT_LEFT_OUT},     {"order", IMPORT_LEFT_OUT},
    {"block", IMPORT_LEFT_OUT},  {"attempt", IMPORT_LEFT_OUT}, {"start_monotonic", IMPORT_LEFT_OUT},
};

/* By the name, the unit and the FIRST cell: a number whose name has a unit that is not one of size, or says
 * what is measured, such as a duration, is a response. A start that is a local time, and what has no value
 * there, is left out. */
static enum import_use guess_use(const struct import_column *column, const struct csv_field *first) {
    const char *usual = column->unit ? column->unit : unit_of_name(column->name);
    const struct unit *unit = usual ? unit_find(usual) : NULL;
    cleanup_free char *text = xstrndup(first->bytes, first->length);
    bool is_measured = usual && (!unit || unit->dimension != UNIT_SIZE);
    double number;
    int64_t at;
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        if (strcasecmp(column->name, words[w].name) != 0)
            continue;
        if (words[w].use == IMPORT_START && !import_time(&(struct import_zone){0}, text, &at))
            return IMPORT_LEFT_OUT;
        return words[w].use;
    }
    if (csv_is_missing(first->bytes, first->length))
        return is_measured ? IMPORT_RESPONSE : IMPORT_LEFT_OUT;
    return is_measured && number_parse_double(first->bytes, first->length, &number) ? IMPORT_RESPONSE
                                                                                    : IMPORT_FACTOR;
}

static int guess(struct csv_reader *csv, struct import_table *table, struct failure *failure) {
    const struct csv_field *first;
    bool used[IMPORT_REPETITION + 1] = {false};
    int r = csv_next(csv, &first, failure);
    if (r <= 0)
        return r < 0 ? r
                     : failure_input(failure, csv_file(csv), 2, 0,
                                     "there is no row below the header; expected measurements");
    for (size_t i = 0; i < table->column_count; i++) {
        enum import_use use = guess_use(&table->columns[i], &first[i]);
        bool is_one = use >= IMPORT_NODE;
        table->columns[i].use = is_one && used[use] ? IMPORT_FACTOR : use;
        used[use] = true;
    }
    return used[IMPORT_RESPONSE]
               ? 0
               : failure_input(failure, csv_file(csv), 1, 0,
                               "no column says by its name that it was measured; expected one with a unit, "
                               "such as 'duration (ms)' or "
                               "'duration_ms', or a mapping (--mapping); one to start from follows");
}

/* ---- A mapping to start from */

/* "factors: ["a", "b"]"; where no column has USE, the line is a comment that shows its form. */
static void print_columns(const struct import_table *table, enum import_use use, const char *key,
                          const char *const form[3], struct text *to) {
    size_t count = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        const struct import_column *column = &table->columns[i];
        const char *unit = column->unit ? column->unit : "1";
        if (column->use != use)
            continue;
        (void)(count++ == 0 ? text_printf(to, "%s: %s", key, form[0]) : text_append_string(to, ", "));
        (void)json_append_string(to, column->name, strlen(column->name));
        if (use == IMPORT_RESPONSE) {
            (void)text_append_string(to, ": ");
            (void)json_append_string(to, unit, strlen(unit));
        }
    }
    (void)(count > 0 ? text_printf(to, "%s\n", form[1]) : text_printf(to, "# %s: %s\n", key, form[2]));
}

static void print_mapping(const struct import_table *table, const char *name, struct text *to) {
    static const char *const list[] = {"[", "]", "[COLUMN, COLUMN]"},
                             *const pairs[] = {"{", "}", "{COLUMN: UNIT}"}, *const one[] = {"", "", "COLUMN"};
    text_init(to, CSV_ROW_MAX);
    (void)text_append_string(to, "name: ");
    (void)json_append_string(to, name, strlen(name));
    (void)text_append_character(to, '\n');
    print_columns(table, IMPORT_FACTOR, "factors", list, to);
    print_columns(table, IMPORT_RESPONSE, "responses", pairs, to);
    print_columns(table, IMPORT_NODE, "node", one, to);
    print_columns(table, IMPORT_CORE, "core", one, to);
    print_columns(table, IMPORT_START, "start", one, to);
    print_columns(table, IMPORT_REPETITION, "repetition", one, to);
}

/* ---- The whole */

enum ending { NAME_WITHOUT_ENDING, NAME_WITH_ENDING };

/* "my-data" of "data/my data.csv"; NAME_WITH_ENDING: "my-data.csv". Bytes that names of members cannot have
 * are "-".
 */
static char *member_name(const char *path, enum ending ending) {
    char *name = xstrdup(file_base_name(path));
    for (char *at = name; *at; at++)
        if (!strchr("._-", *at) && !(*at >= '0' && *at <= '9') && !(*at >= 'a' && *at <= 'z') &&
            !(*at >= 'A' && *at <= 'Z'))
            *at = '-';
    if (name[0] == '.')
        name[0] = '-';
    char *point = strchr(name, '.');
    if (point && ending == NAME_WITHOUT_ENDING)
        *point = '\0';
    return name;
}

static void describe_run(struct imported *imported, struct import_mapping *mapping,
                         const struct import_table *table) {
    struct archive_run *run = &imported->run;
    struct stat status;
    run->name = mapping->name ? take_pointer(mapping->name)
                              : member_name(imported->request->file, NAME_WITHOUT_ENDING);
    run->experiment.name = mapping->experiment ? take_pointer(mapping->experiment) : xstrdup(run->name);
    run->testbed = xstrdup("unknown");
    run->model = take_pointer(mapping->model);
    run->answer = take_pointer(mapping->answer);
    for (size_t i = 0; i < table->column_count; i++)
        if (table->columns[i].use == IMPORT_LEFT_OUT)
            imported_note(imported, "the column '%s' is in the imported file only", table->columns[i].name);
        else if (table->columns[i].use == IMPORT_RESPONSE && !table->columns[i].unit)
            imported_note(imported, "the unit of '%s' is not known; give it in a mapping (--mapping)",
                          table->columns[i].name);
    if (run->started_ns == 0 && stat(imported->request->file, &status) == 0) {
        run->started_ns = run->ended_ns =
            status.st_mtim.tv_sec * INT64_C(1000000000) + status.st_mtim.tv_nsec;
        imported_note(imported,
                      "no column says when it was measured: the time of the run is that of the file");
    }
}

static int describe_columns(const struct import_request *request, const struct import_mapping *mapping,
                            struct import_table *table, struct import_result *result,
                            struct failure *failure) {
    cleanup(csv_reader_cleanup) struct csv_reader *csv = NULL;
    cleanup_free char *name = member_name(request->file, NAME_WITHOUT_ENDING);
    int r = import_table_open(table, &csv, failure);
    if (r < 0)
        return r;
    if (request->mapping)
        return import_mapping_apply(mapping, STRICT_FOR_ALL, csv, table, failure);
    r = guess(csv, table, failure);
    print_mapping(table, name, &result->mapping);
    return r;
}

int import_csv(const struct import_request *request, struct import_result *ret, struct failure *failure) {
    cleanup(document_cleanup) struct document *document = NULL;
    cleanup(import_mapping_clear) struct import_mapping mapping = {0};
    cleanup(imported_clear) struct imported imported = {0};
    cleanup(import_table_clear) struct import_table table = {
        .files = xcalloc(1, sizeof *table.files),
        .file_count = 1,
        .core = "all",
        .description = "One row for each row of the imported table"};
    cleanup_free char *member = member_name(request->file, NAME_WITH_ENDING);
    int r = request->mapping ? document_read_yaml(request->mapping, &document, failure) : 0;
    r = r < 0 || !document ? r : import_mapping_read(document, &mapping, failure);
    r = r < 0 ? r : imported_begin(request, "csv", ret, &imported, failure);
    if (r < 0)
        return r;
    cleanup_free char *folder = imported_path(&imported, ARCHIVE_IMPORTS);
    table.files[0] = (struct import_file){.path = file_join(folder, member), .name = xstrdup(request->file)};
    table.node = mapping.node_name ? mapping.node_name : "unknown";
    imported.summary = "Measured by another program, and imported from its table by assay";
    r = file_copy(request->file, FILE_REGULAR, table.files[0].path, failure);
    r = r < 0 ? r : read_offset(&mapping, request->mapping, &imported.zone, failure);
    r = r < 0 ? r : describe_columns(request, &mapping, &table, ret, failure);
    r = r < 0 ? r : imported_add_results(&imported, &table, failure);
    if (r < 0)
        return r;
    describe_run(&imported, &mapping, &table);
    return imported_seal(&imported, failure);
}
