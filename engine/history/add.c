/* Adding the archive of a run to a history. */
#include "engine/history/store.h"

#include "archive-format/reader.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/history/database.h"
#include "engine/table/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 1 << 20 };

struct adding {
    struct history_store *store;
    int64_t archive;
    const struct archive_run *run;
    struct table *table;
    size_t *responses, response_count; /* columns of the table */
    size_t factor_count;
    bool with_flagged;
    struct history_addition *addition;
};

/* Adds a fact about NODE; an earlier value in this archive is replaced. */
static int add_fact(struct adding *adding, const char *node, const char *name, const char *value,
                    struct failure *failure) {
    sqlite3_stmt *statement = NULL;
    int r = database_prepare(adding->store, &statement, failure,
                             "INSERT OR REPLACE INTO fact VALUES (?, ?, ?, ?)", "ittt", adding->archive, node,
                             name, value);
    return database_run(adding->store, r, statement, failure);
}

/* Adds the texts of the mapping TEXTS as facts about NODE, with PREFIX before their names. NAMES: only these;
 * NULL: all. */
static int add_texts(struct adding *adding, const char *node, const struct document_node *texts,
                     const char *const *names, const char *prefix, struct failure *failure) {
    for (size_t i = 0; texts && texts->kind == DOCUMENT_MAPPING && i < texts->count; i++) {
        bool wanted = !names;
        for (size_t k = 0; names && names[k]; k++)
            wanted = wanted || strcmp(texts->keys[i]->text, names[k]) == 0;
        if (!wanted || !texts->items[i]->text)
            continue;
        cleanup_free char *name = xformat("%s%s", prefix, texts->keys[i]->text);
        int r = add_fact(adding, node, name, texts->items[i]->text, failure);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Adds the first line of a member in NODE's folder as the fact NAME. An archive without the member has no
 * such fact. */
static int add_member_fact(struct adding *adding, struct archive_reader *archive, const char *node,
                           const char *member, const char *name, struct failure *failure) {
    cleanup(text_clear) struct text text;
    cleanup_free char *folder = archive_node_folder(node, 1);
    cleanup_free char *path = xformat("%s/%s", folder, member);
    text_init(&text, TEXT_BYTES_MAX);
    if (!archive_find(archive, path, NULL))
        return 0;
    int r = archive_read_member(archive, path, &text, failure);
    if (r < 0)
        return r;
    text.bytes[strcspn(text.bytes, "\r\n")] = '\0';
    return add_fact(adding, node, name, text.bytes, failure);
}

/* Adds what may change a node's performance: kernel, microcode, BIOS, memory, and the software of the
 * experiment. */
static int add_facts(struct adding *adding, struct archive_reader *archive, struct failure *failure) {
    static const char *const machine[] = {"cpu_model", "microcode", "kernel_release", "memory_total_bytes",
                                          NULL};
    static const char *const libraries[] = {"blas", "blas_version", NULL};
    cleanup(document_cleanup) struct document *software = NULL;
    int r = 0;
    if (archive_find(archive, ARCHIVE_VERSIONS, NULL))
        r = archive_read_document(archive, ARCHIVE_VERSIONS, &software, failure);
    for (size_t i = 0; r == 0 && i < adding->run->nodes.count; i++) {
        const char *node = adding->run->nodes.items[i];
        cleanup(document_cleanup) struct document *facts = NULL;
        cleanup_free char *folder = archive_node_folder(node, 1);
        cleanup_free char *path = xformat("%s/%s", folder, ARCHIVE_NODE_FACTS);
        if (archive_find(archive, path, NULL))
            r = archive_read_document(archive, path, &facts, failure);
        const struct document_node *versions =
            software ? document_get(document_get(software->root, "nodes"), node) : NULL;
        r = r < 0 ? r : add_texts(adding, node, facts ? facts->root : NULL, machine, "", failure);
        r = r < 0 ? r : add_member_fact(adding, archive, node, "raw/dmi-bios_version", "BIOS", failure);
        r = r < 0 ? r : add_texts(adding, node, versions, NULL, "", failure);
        r = r < 0 ? r : add_texts(adding, node, document_get(versions, "kernel"), libraries, "", failure);
        r = r < 0 ? r
                  : add_texts(adding, node, document_get(versions, "packages"), NULL, "package ", failure);
    }
    return r;
}

/* "NB=128 P=2": the levels of the factors of group G; the caller frees. */
static char *name_setting(const struct adding *adding, const struct groups *groups, size_t g) {
    cleanup(text_clear) struct text text;
    text_init(&text, TEXT_BYTES_MAX);
    for (size_t f = 0; f < adding->factor_count; f++) {
        const struct table_category *factor = &adding->table->categories[f];
        (void)text_printf(&text, "%s%s=%s", f > 0 ? " " : "", factor->name,
                          factor->levels[groups->labels[g * groups->label_count + f]]);
    }
    return xstrdup(text.length > 0 ? text.bytes : "");
}

/* *RET is the number of the series with NAMES, in the order of the table's columns. A new series is added. */
static int find_series(struct adding *adding, const char *const names[static 6], int64_t *ret,
                       struct failure *failure) {
    cleanup(database_release) sqlite3_stmt *found = NULL;
    sqlite3_stmt *insert = NULL;
    int r = database_prepare(adding->store, &found, failure,
                             "SELECT id FROM series WHERE campaign = ? AND experiment = ? AND response = ?"
                             " AND unit = ? AND setting = ? AND node = ?",
                             "tttttt", names[0], names[1], names[2], names[3], names[4], names[5]);
    r = r < 0 ? r : database_step(adding->store, found, failure);
    if (r == 1)
        *ret = sqlite3_column_int64(found, 0);
    if (r != 0)
        return r < 0 ? r : 0;
    r = database_prepare(adding->store, &insert, failure,
                         "INSERT INTO series (campaign, experiment, response, unit, setting, node)"
                         " VALUES (?, ?, ?, ?, ?, ?)",
                         "tttttt", names[0], names[1], names[2], names[3], names[4], names[5]);
    r = database_run(adding->store, r, insert, failure);
    *ret = sqlite3_last_insert_rowid(adding->store->database);
    return r;
}

/* Adds the mean and deviation of a response over the rows of group G; nothing if no row has a finite value.
 */
static int add_value(struct adding *adding, const struct groups *groups, size_t g, size_t response,
                     struct failure *failure) {
    const struct column *column = &adding->table->columns[adding->responses[response]];
    const double *values = adding->table->numbers[response].values;
    double count = 0, mean = 0, squares = 0;
    for (size_t i = groups->first[g]; i < groups->first[g + 1]; i++) {
        double value = values[groups->rows[i]], above = value - mean;
        if (!isfinite(value))
            continue;
        mean += above / ++count; /* B. Welford, Technometrics 4(3), 1962 */
        squares += above * (value - mean);
    }
    if (count == 0)
        return 0;
    cleanup_free char *setting = name_setting(adding, groups, g);
    const struct table_category *nodes = &adding->table->categories[adding->factor_count];
    const char *node = nodes->levels[groups->labels[g * groups->label_count + adding->factor_count]];
    const char *names[] = {adding->run->name, adding->run->experiment.name,
                           column->name,      column->unit ? column->unit : "",
                           setting,           node};
    sqlite3_stmt *statement = NULL;
    int64_t series = 0;
    int r = find_series(adding, names, &series, failure);
    if (r < 0)
        return r;
    r = database_prepare(adding->store, &statement, failure, "INSERT INTO value VALUES (?, ?, ?, ?, ?)",
                         "iiidd", series, adding->archive, (int64_t)count, mean,
                         count > 1 ? sqrt(squares / (count - 1)) : NAN);
    adding->addition->values++;
    return database_run(adding->store, r, statement, failure);
}

/* Loads the factors and the node as categories, and the numeric responses as numbers. */
static int load_values(struct adding *adding, struct failure *failure) {
    struct table *table = adding->table;
    cleanup_free const char **categories = xcalloc(table->column_count + 1, sizeof *categories);
    cleanup_free const char **numbers = xcalloc(table->column_count + 1, sizeof *numbers);
    adding->responses = xcalloc(table->column_count + 1, sizeof *adding->responses);
    for (size_t i = 0; i < table->column_count; i++) {
        const struct column *column = &table->columns[i];
        bool is_number = column->type != COLUMN_STRING;
        if (column->role == COLUMN_ROLE_FACTOR)
            categories[adding->factor_count++] = column->name;
        if (column->role == COLUMN_ROLE_RESPONSE && is_number) {
            numbers[adding->response_count] = column->name;
            adding->responses[adding->response_count++] = i;
        }
    }
    categories[adding->factor_count] = "node";
    const struct table_selection selection = {.numbers = numbers,
                                              .number_count = adding->response_count,
                                              .categories = categories,
                                              .category_count = adding->factor_count + 1,
                                              .with_flagged = adding->with_flagged};
    return table_load(table, &selection, failure);
}

/* Adds a value for each setting, node and response. Nothing is added if every row is flagged. */
static int add_values(struct adding *adding, struct failure *failure) {
    cleanup(groups_clear) struct groups groups = {0};
    int r = load_values(adding, failure);
    if (r < 0)
        return r;
    adding->addition->flagged = adding->table->rows_flagged;
    adding->addition->all_flagged = adding->table->ignores_flags;
    if (adding->table->rows == 0 || adding->table->ignores_flags)
        return 0;
    cleanup_free size_t *by = xcalloc(adding->factor_count + 1, sizeof *by);
    for (size_t i = 0; i <= adding->factor_count; i++)
        by[i] = i;
    groups_make(&groups, adding->table, by, adding->factor_count + 1);
    for (size_t g = 0; r == 0 && g < groups.count; g++)
        for (size_t i = 0; r == 0 && i < adding->response_count; i++)
            r = add_value(adding, &groups, g, i, failure);
    return r;
}

/* 1: the history has the archive, or a later part of its run; 0: it does not. */
static int find_archive(struct adding *adding, struct failure *failure) {
    cleanup(database_release) sqlite3_stmt *statement = NULL;
    int r = database_prepare(adding->store, &statement, failure,
                             "SELECT 1 FROM archive WHERE (run = ? AND parts > ?) OR (sha256 = ? AND NOT ?)",
                             "titi", adding->run->run_id, (int64_t)adding->run->parts.count,
                             adding->table->inputs[0].sha256, (int64_t)adding->with_flagged);
    return r < 0 ? r : database_step(adding->store, statement, failure);
}

/* Adds the archive with its facts and values. An earlier part of the same run is replaced. */
static int add_archive(struct adding *adding, struct archive_reader *archive, struct failure *failure) {
    sqlite3_stmt *statement = NULL;
    const struct archive_run *of = adding->run;
    const struct table_input *input = &adding->table->inputs[0];
    int r = database_prepare(adding->store, &statement, failure, "DELETE FROM archive WHERE run = ?", "t",
                             of->run_id);
    r = database_run(adding->store, r, statement, failure);
    if (r < 0)
        return r;
    r = database_prepare(adding->store, &statement, failure,
                         "INSERT INTO archive (sha256, run, parts, file, campaign, experiment, started)"
                         " VALUES (?, ?, ?, ?, ?, ?, ?)",
                         "ttitttd", input->sha256, of->run_id, (int64_t)of->parts.count, input->name,
                         of->name, of->experiment.name, (double)of->started_ns / 1e9);
    r = database_run(adding->store, r, statement, failure);
    if (r < 0)
        return r;
    adding->archive = sqlite3_last_insert_rowid(adding->store->database);
    r = add_facts(adding, archive, failure);
    return r < 0 ? r : add_values(adding, failure);
}

/* Adds the archive as a whole, or nothing of it, within the transaction that the caller began. */
static int add_opened(struct adding *adding, struct archive_reader *archive, struct failure *failure) {
    int r = database_execute(adding->store, "SAVEPOINT archive", failure);
    if (r < 0)
        return r;
    r = find_archive(adding, failure);
    adding->addition->was_there = r == 1;
    r = r == 0 ? add_archive(adding, archive, failure) : r;
    struct failure ignored = {0};
    if (r < 0)
        database_execute(adding->store, "ROLLBACK TO archive", &ignored);
    int end = database_execute(adding->store, "RELEASE archive", r < 0 ? &ignored : failure);
    return r < 0 ? r : end;
}

int history_store_add(struct history_store *store, const char *path, bool with_flagged,
                      struct history_addition *ret, struct failure *failure) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    struct adding adding = {.store = store, .with_flagged = with_flagged, .addition = ret};
    *ret = (struct history_addition){0};
    int r = archive_open(path, &archive, failure);
    if (r < 0)
        return r;
    const struct table_options options = {.member = ARCHIVE_RESULTS, .hash = true, .archive = archive};
    adding.run = archive_run(archive);
    if (archive_is_folder(archive) || adding.run->kind == ARCHIVE_OF_PREDICTION || !adding.run->run_id ||
        !adding.run->name)
        return failure_input(failure, path, 0, 0,
                             "this is not the archive of a run or of an import; give such an archive");
    r = table_open(&path, 1, &options, &adding.table, failure);
    r = r < 0 ? r : add_opened(&adding, archive, failure);
    table_free(adding.table);
    free(adding.responses);
    return r;
}
