#include "archive-format/import/imported.h"

#include "archive-format/layout.h"
#include "archive-format/writer.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Times */

static const int64_t second_ns = 1000000000, hour_s = 3600;

/* 01:00 UTC on the last Sunday of MONTH (0 to 11), which has 31 days: when summer time begins or ends in
 * Europe since 1996 (directive 2000/84/EC). */
static int64_t last_sunday(int year, int month) {
    struct tm day = {.tm_year = year, .tm_mon = month, .tm_mday = 31, .tm_hour = 1};
    int64_t at = timegm(&day);
    return at - day.tm_wday * 24 * hour_s;
}

/* Of the hour that comes twice in October, the first. */
static int64_t french_offset(int64_t local_s) {
    time_t local = (time_t)local_s;
    struct tm day;
    gmtime_r(&local, &day);
    int64_t summer = local_s - 2 * hour_s;
    return summer >= last_sunday(day.tm_year, 2) && summer < last_sunday(day.tm_year, 9) ? 2 : 1;
}

bool import_time(const struct import_zone *zone, const char *text, int64_t *ret_ns) {
    char copy[CLOCK_TEXT_SIZE];
    double seconds;
    size_t length = strlen(text);
    if (number_parse_double(text, length, &seconds)) {
        bool is_time = seconds >= 1e8 && seconds < 9e9; /* 1973 to 2255: smaller ones count from elsewhere */
        *ret_ns = is_time ? (int64_t)(seconds * 1e9) : 0;
        return is_time;
    }
    if (length < 19 || length > sizeof copy - 7)
        return false;
    int written = snprintf(copy, sizeof copy, "%.10sT%s", text, text + 11);
    if ((text[10] != ' ' && text[10] != 'T') || clock_parse(copy, ret_ns))
        return text[10] == ' ' || text[10] == 'T';
    snprintf(copy + written, sizeof copy - (size_t)written, "+00:00");
    if (zone->kind == ZONE_UNKNOWN || !clock_parse(copy, ret_ns))
        return false;
    *ret_ns -=
        zone->kind == ZONE_FRANCE ? french_offset(*ret_ns / second_ns) * hour_s * second_ns : zone->offset_ns;
    return true;
}

/* ---- Beginning and end */

void import_result_clear(struct import_result *result) {
    bind_texts_clear(&result->notes);
    text_clear(&result->mapping);
}

void imported_note(struct imported *imported, const char *format, ...) {
    va_list arguments;
    cleanup(text_clear) struct text text;
    text_init(&text, FAILURE_TEXT_SIZE);
    va_start(arguments, format);
    (void)text_vprintf(&text, format, arguments);
    va_end(arguments);
    if (text.length > 0)
        bind_texts_add(&imported->result->notes, text.bytes);
}

char *imported_path(const struct imported *imported, const char *path) {
    return xformat("%s/%s", imported->folder, path);
}

int imported_begin(const struct import_request *request, const char *format, struct import_result *result,
                   struct imported *ret, struct failure *failure) {
    char sha256[HASH_HEX_SIZE];
    *ret = (struct imported){.request = request, .result = result};
    int r = archive_check_target(request->target, failure);
    r = r < 0 ? r : hash_file(request->file, sha256, NULL, failure);
    r = r < 0 ? r : file_make_temporary(&ret->folder, failure);
    if (r < 0)
        return r;
    struct archive_run *run = &ret->run;
    run->kind = ARCHIVE_IMPORTED;
    run->status = xstrdup("completed");
    run->counts.rows_settled = -1;
    archive_engine_describe(&run->engine);
    /* The same file is the same run, whoever imports it: a UUID of version 8 (RFC 9562) from its hash. */
    run->run_id =
        xformat("%.8s-%.4s-8%.3s-a%.3s-%.12s", sha256, sha256 + 8, sha256 + 12, sha256 + 15, sha256 + 18);
    run->import = xcalloc(1, sizeof *run->import);
    run->import->format = xstrdup(format);
    run->import->file = xstrdup(file_base_name(request->file));
    run->import->sha256 = xstrdup(sha256);
    cleanup_free char *results = imported_path(ret, ARCHIVE_RESULTS_FOLDER);
    cleanup_free char *kept = imported_path(ret, ARCHIVE_IMPORTS);
    r = file_make_folders(results, failure);
    return r < 0 ? r : file_make_folders(kept, failure);
}

void imported_clear(struct imported *imported) {
    if (imported->folder)
        file_remove_tree(imported->folder, NULL);
    free(imported->folder);
    archive_run_clear(&imported->run);
    for (size_t i = 0; i < imported->table_count; i++) {
        free((char *)imported->tables[i].path);
        for (size_t k = 0; k < imported->tables[i].column_count; k++)
            column_clear((struct column *)&imported->tables[i].columns[k]);
        free((struct column *)imported->tables[i].columns);
    }
    free(imported->tables);
    *imported = (struct imported){0};
}

void imported_append_header(struct text *to, const struct column *columns, size_t count) {
    for (size_t i = 0; i < count; i++)
        (void)csv_append_field(to, i == 0, columns[i].name, strlen(columns[i].name));
    (void)text_append_character(to, '\n');
}

int imported_add_table(struct imported *imported, const char *path, const char *description,
                       const struct column *columns, size_t count, const struct text *text,
                       struct failure *failure) {
    struct column *copies = xcalloc(count + 1, sizeof *copies);
    for (size_t i = 0; i < count; i++)
        copies[i] = column_copy(&columns[i]);
    imported->tables = xrealloc(imported->tables, (imported->table_count + 1) * sizeof *imported->tables);
    imported->tables[imported->table_count++] = (struct archive_table){
        .path = xstrdup(path), .description = description, .columns = copies, .column_count = count};
    cleanup_free char *target = imported_path(imported, path);
    cleanup_free char *folder = xstrndup(target, (size_t)(file_base_name(target) - target));
    int r = file_make_folders(folder, failure);
    return r < 0 || !text ? r : file_write_output(target, text->bytes, text->length, failure);
}

int imported_seal(struct imported *imported, struct failure *failure) {
    const struct import_request *request = imported->request;
    struct archive_run *run = &imported->run;
    cleanup_free char *package = imported_path(imported, ARCHIVE_DATAPACKAGE),
                      *record = imported_path(imported, ARCHIVE_RUN);
    cleanup_free char *title = xformat("%s, imported from %s", run->name, run->import->file);
    for (size_t i = 0; i < imported->result->notes.count; i++)
        bind_texts_add(&run->import->notes, imported->result->notes.items[i]);
    int r = archive_write_datapackage(package, "import", imported->tables, imported->table_count, failure);
    r = r < 0 ? r : archive_run_write(record, run, failure);
    imported->result->nodes = run->nodes.count;
    return r < 0 ? r
                 : archive_seal_run(imported->folder, request->target, run, title, imported->summary,
                                    imported->result->sha256, failure);
}
