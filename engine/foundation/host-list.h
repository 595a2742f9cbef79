/*
 * Lists of host names, as people write them for parallel shells:
 *
 *     dahu-[1-32].grenoble        gros-[1-3,7,10-12]-bmc       rack[1-2]node[01-16]       a,b,c
 *
 * A range counts in decimal; leading zeros fix the width ([01-16]). Several brackets multiply, the last
 * fastest. Commas outside brackets, blanks and line ends separate entries. An entry may be anything that ssh
 * takes as a destination: [user@]host[:port] (brackets with colons are an IPv6 address and not a range).
 * Whether a port is one is not looked at here.
 */
#ifndef ASSAY_FOUNDATION_HOST_LIST_H
#define ASSAY_FOUNDATION_HOST_LIST_H

#include "engine/foundation/failure.h"
#include "engine/foundation/text-set.h"
#include "engine/foundation/text.h"

#include <stddef.h>

enum {
    HOST_LIST_MAX = 65536,  /* hosts of one list */
    HOST_BYTES_MAX = 255,   /* bytes of one entry, expanded */
    HOST_BRACKETS_MAX = 16, /* of one entry */
};

/* Owned names, in the order written, each once. Zeroed memory is an empty list. */
struct host_list {
    char **names; /* the texts of `set`, in order */
    size_t count;
    struct text_set set;
};

void host_list_clear(struct host_list *list);

/* Appends the names of TEXT; a name that LIST has is skipped. FAILURE_INPUT with the column (from 1) in
 * the sentence: an open bracket, a range that runs backwards, a character that no host name has, or more
 * than the limits. LIST is unchanged on failure. */
int host_list_parse(struct host_list *list, const char *text, struct failure *failure);
/* Appends the names in a file: any number of entries a line, "#" to the end of the line is a comment; a
 * byte order mark at its beginning and CRLF are ignored. Failures have file, line and column. */
int host_list_read(struct host_list *list, const char *path, struct failure *failure);
/* Appends one name, without expanding brackets. */
int host_list_add(struct host_list *list, const char *name, struct failure *failure);

/* Appends COUNT names, each once, as host_list_parse() reads them: names that differ in one number are folded
 * into one bracket, in numeric order, the last number first, and then what is left by the number before it:
 * "dahu-[1-3,7].grenoble,front", "rack[1-2]node[01-16]". Sorted by their parts, numbers as numbers. 0
 * or -EFBIG (RET's limit), with nothing appended. */
int host_list_fold(const char *const *names, size_t count, struct text *ret);

#endif
