#include "engine/history/database.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { APPLICATION = 0x41535359 /* "ASSY" */, VERSION = 1, BUSY_MS = 60000 };

static const char schema[] =
    "CREATE TABLE archive (id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, run TEXT NOT NULL UNIQUE,"
    " parts INTEGER NOT NULL, file TEXT NOT NULL, campaign TEXT NOT NULL, experiment TEXT NOT NULL,"
    " started REAL NOT NULL);"
    "CREATE TABLE series (id INTEGER PRIMARY KEY, campaign TEXT NOT NULL, experiment TEXT NOT NULL,"
    " response TEXT NOT NULL, unit TEXT NOT NULL, setting TEXT NOT NULL, node TEXT NOT NULL,"
    " UNIQUE (campaign, experiment, response, unit, setting, node));"
    "CREATE TABLE value (series INTEGER NOT NULL REFERENCES series, archive INTEGER NOT NULL REFERENCES "
    "archive"
    " ON DELETE CASCADE, count INTEGER NOT NULL, mean REAL NOT NULL, deviation REAL,"
    " PRIMARY KEY (series, archive)) WITHOUT ROWID;"
    "CREATE INDEX value_archive ON value (archive);"
    "CREATE TABLE fact (archive INTEGER NOT NULL REFERENCES archive ON DELETE CASCADE, node TEXT NOT NULL,"
    " name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (archive, node, name)) WITHOUT ROWID;"
    "CREATE TABLE log (id INTEGER PRIMARY KEY, kind TEXT NOT NULL CHECK (kind IN ('change', 'outlier')),"
    " time REAL, run TEXT, nodes TEXT, author TEXT NOT NULL, reason TEXT NOT NULL, added TEXT NOT NULL);";

/* ---- Statements */

/* Sets FAILURE to SQLite's error: FAILURE_INPUT if the file is not a history or is damaged. */
static int set_database_failure(struct history_store *store, struct failure *failure) {
    int code = sqlite3_errcode(store->database);
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
        return failure_input(failure, store->path, 0, 0,
                             "this file is no history of assay, or is damaged (%s); expected a file "
                             "that 'assay history add' has made",
                             sqlite3_errmsg(store->database));
    return failure_set(failure, -EIO, "%s: %s", store->path, sqlite3_errmsg(store->database));
}

void database_release(sqlite3_stmt **statement) {
    if (!*statement)
        return;
    sqlite3_reset(*statement);
    sqlite3_clear_bindings(*statement);
}

/* The statement that was prepared of SQL before and is not in use, or NULL. */
static sqlite3_stmt *find_prepared(struct history_store *store, const char *sql) {
    sqlite3_stmt *at = sqlite3_next_stmt(store->database, NULL);
    while (at && (sqlite3_stmt_busy(at) || strcmp(sqlite3_sql(at), sql) != 0))
        at = sqlite3_next_stmt(store->database, at);
    return at;
}

/* Prepares the statement SQL and binds the values after TYPES, which has a letter for each: t text, i
 * int64_t, d double. */
int database_prepare(struct history_store *store, sqlite3_stmt **ret, struct failure *failure,
                     const char *sql, const char *types, ...) {
    sqlite3_stmt *statement = find_prepared(store, sql);
    int r = statement ? SQLITE_OK : sqlite3_prepare_v2(store->database, sql, -1, &statement, NULL);
    va_list values;
    va_start(values, types);
    for (int i = 1; r == SQLITE_OK && types[i - 1]; i++)
        switch (types[i - 1]) {
        case 't':
            r = sqlite3_bind_text(statement, i, va_arg(values, const char *), -1, SQLITE_TRANSIENT);
            break;
        case 'i':
            r = sqlite3_bind_int64(statement, i, va_arg(values, int64_t));
            break;
        default:
            r = sqlite3_bind_double(statement, i, va_arg(values, double));
        }
    va_end(values);
    if (r != SQLITE_OK)
        return set_database_failure(store, failure);
    *ret = statement;
    return 0;
}

int database_step(struct history_store *store, sqlite3_stmt *statement, struct failure *failure) {
    int r = sqlite3_step(statement);
    return r == SQLITE_ROW ? 1 : r == SQLITE_DONE ? 0 : set_database_failure(store, failure);
}

/* Runs STATEMENT, which is released. R: what preparing it returned; when negative it is returned and nothing
 * is done. */
int database_run(struct history_store *store, int r, sqlite3_stmt *statement, struct failure *failure) {
    if (r < 0)
        return r;
    r = database_step(store, statement, failure);
    database_release(&statement);
    return r;
}

int database_execute(struct history_store *store, const char *sql, struct failure *failure) {
    return sqlite3_exec(store->database, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : set_database_failure(store, failure);
}

const char *database_text(sqlite3_stmt *statement, int column) {
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text ? text : "";
}

int history_store_begin(struct history_store *store, struct failure *failure) {
    return database_execute(store, "BEGIN IMMEDIATE", failure);
}

int history_store_commit(struct history_store *store, struct failure *failure) {
    return database_execute(store, "COMMIT", failure);
}

/* The number that SQL selects; 0 if it selects no row. */
static int read_number(struct history_store *store, const char *sql, int64_t *ret, struct failure *failure) {
    cleanup(database_release) sqlite3_stmt *statement = NULL;
    int r = database_prepare(store, &statement, failure, sql, "");
    r = r < 0 ? r : database_step(store, statement, failure);
    *ret = r == 1 ? sqlite3_column_int64(statement, 0) : 0;
    return r < 0 ? r : 0;
}

/* ---- Opening */

void history_store_close(struct history_store *store) {
    if (!store)
        return;
    sqlite3_stmt *statement;
    while (store->database && (statement = sqlite3_next_stmt(store->database, NULL)))
        sqlite3_finalize(statement);
    sqlite3_close(store->database);
    free(store->path);
    free(store);
}

void history_store_cleanup(struct history_store **store) {
    history_store_close(*store);
}

static int count_tables(struct history_store *store, int64_t *ret, struct failure *failure) {
    return read_number(store, "SELECT count(*) FROM sqlite_schema", ret, failure);
}

/* Makes the tables of an empty file, unless another process has done so since. After a failure the
 * transaction ends when the store is closed. */
static int make_tables(struct history_store *store, struct failure *failure) {
    int64_t tables;
    cleanup_free char *sql =
        xformat("%s PRAGMA application_id = %d; PRAGMA user_version = %d", schema, APPLICATION, VERSION);
    int r = history_store_begin(store, failure);
    r = r < 0 ? r : count_tables(store, &tables, failure);
    r = r == 0 && tables == 0 ? database_execute(store, sql, failure) : r;
    return r < 0 ? r : history_store_commit(store, failure);
}

/* Checks that the file is a history of a version that we know; CREATE: makes an empty one. Tables are counted
 * first: a file that another process is making has either no tables yet, or the application id too. */
static int check_tables(struct history_store *store, bool create, struct failure *failure) {
    int64_t application, version, tables;
    int r = database_execute(store, "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF", failure);
    r = r < 0 ? r : count_tables(store, &tables, failure);
    r = r < 0 ? r : read_number(store, "PRAGMA application_id", &application, failure);
    r = r < 0 ? r : read_number(store, "PRAGMA user_version", &version, failure);
    if (r == 0 && create && tables == 0 && application == 0) {
        r = make_tables(store, failure);
        r = r < 0 ? r : read_number(store, "PRAGMA application_id", &application, failure);
    }
    if (r < 0)
        return r;
    if (application != APPLICATION)
        return failure_input(failure, store->path, 0, 0,
                             "this file is a database of another program; expected a file that "
                             "'assay history add' has made");
    if (version > VERSION)
        return failure_input(failure, store->path, 0, 0,
                             "this history has the version %" PRId64 " of a later assay; this assay "
                             "reads versions up to %d: use the later one",
                             version, VERSION);
    return 0;
}

int history_store_open(const char *path, bool create, struct history_store **ret, struct failure *failure) {
    cleanup(history_store_cleanup) struct history_store *store = xcalloc(1, sizeof *store);
    store->path = xstrdup(path);
    if (!create && !file_exists(path))
        return failure_input(failure, path, 0, 0,
                             "there is no history; 'assay history add ARCHIVE...' begins one");
    int flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0);
    if (sqlite3_open_v2(path, &store->database, flags, NULL) != SQLITE_OK)
        return failure_set(failure, -EIO, "%s: cannot be opened: %s", path, sqlite3_errmsg(store->database));
    sqlite3_busy_timeout(store->database, BUSY_MS);
    int r = check_tables(store, create, failure);
    if (r < 0)
        return r;
    *ret = store;
    store = NULL;
    return 0;
}
