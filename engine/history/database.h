/* The SQLite file of a history, and statements in it. Private to this room. */
#ifndef ASSAY_HISTORY_DATABASE_H
#define ASSAY_HISTORY_DATABASE_H

#include "engine/foundation/failure.h"
#include "engine/history/store.h"

#include <sqlite3.h>

struct history_store {
    sqlite3 *database;
    char *path;
};

/* Gives a statement of SQL with a value bound for each letter of TYPES: t a text or NULL, i an int64_t, d a
 * double, of which NaN is null. The caller releases RET; the statement stays prepared for the next call with
 * the same SQL, until the store is closed. */
int database_prepare(struct history_store *store, sqlite3_stmt **ret, struct failure *failure,
                     const char *sql, const char *types, ...);
void database_release(sqlite3_stmt **statement); /* for cleanup(); of NULL nothing */
/* 1: there is a row; 0: there are no more. */
int database_step(struct history_store *store, sqlite3_stmt *statement, struct failure *failure);
/* Runs a STATEMENT that gives no rows, and releases it. R: what preparing it returned; where that is
 * negative nothing is done. */
int database_run(struct history_store *store, int r, sqlite3_stmt *statement, struct failure *failure);
int database_execute(struct history_store *store, const char *sql, struct failure *failure);
/* A column of the row as a text; "" for null. Valid until the next step. */
const char *database_text(sqlite3_stmt *statement, int column);

#endif
