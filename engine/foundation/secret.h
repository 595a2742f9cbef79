/*
 * What looks like a secret: the one list by which variables are kept out of records and away from commands,
 * URLs are refused, and files are left out of copies. Names and values are looked at. It is a guess from
 * conventions: a secret under a harmless name and without a known form is not found.
 */
#ifndef ASSAY_FOUNDATION_SECRET_H
#define ASSAY_FOUNDATION_SECRET_H

#include <stdbool.h>

/* "NAME=VALUE": by its name (MYSQL_PWD, OMP_TOKEN, in any case), or by secret_is_text() of its value. */
bool secret_is_variable(const char *variable);

/* Does TEXT have a URL with a user's secret, a secret by name ("...?private_token=x", "host=h password=x"), a
 * token of a known service, or a key in PEM? */
bool secret_is_text(const char *text);

/* Does a file or folder of this NAME (without folders) usually hold secrets: .env, id_rsa, .aws? */
bool secret_is_file_name(const char *name);

#endif
