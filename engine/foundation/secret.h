/*
 * What looks like a secret: the one list by which variables are kept out of records and away from commands,
 * URLs are refused, and files are left out of copies. Names and values are looked at. It is a guess from
 * conventions: a secret under a harmless name and without a known form is not found.
 */
#ifndef ASSAY_FOUNDATION_SECRET_H
#define ASSAY_FOUNDATION_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* "NAME=VALUE": by its name (MYSQL_PWD, OMP_TOKEN, in any case), or by secret_is_text() of its value. */
bool secret_is_variable(const char *variable);

/* Does TEXT have a URL with a user's secret, a secret by name ("...?private_token=x", "host=h password=x"), a
 * token of a known service, or a key in PEM? */
bool secret_is_text(const char *text);

/* The first private key in PEM (RFC 7468), token of a known service, or "password=VALUE", in the LENGTH bytes
 * of TEXT, behind which a NUL follows: "a private key", "a token" or "a password", and where it begins. NULL:
 * none. It is stricter than secret_is_text(): words that only begin like a token are none. */
const char *secret_find(const char *text, size_t length, size_t *ret_offset);

/* Does a file or folder of this NAME (without folders) usually hold secrets: .env, id_rsa, .aws? */
bool secret_is_file_name(const char *name);

#endif
