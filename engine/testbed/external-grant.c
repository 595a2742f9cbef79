#include "engine/testbed/external-grant.h"

#include "engine/foundation/number.h"
#include "engine/testbed/node-names.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEYS_MAX = 16 << 20 }; /* bytes of all keys */
static const double end_max_s = 9e9;

/* Adds a line "HOST TYPE KEY", as ssh-keyscan prints it. Comments, and markers such as @revoked, are refused.
 */
static int add_key(const char *line, struct external_grant *ret, struct failure *failure) {
    size_t first = strcspn(line, " "), second = first + strspn(line + first, " ");
    bool is_key = first > 0 && !strchr("#@", line[0]) && strchr(line + second, ' ');
    for (const char *c = line; is_key && *c; c++)
        is_key = *c >= ' ' && *c != 0x7f;
    if (!is_key)
        return failure_set(failure, -EBADMSG,
                           "'%.60s' is not a line of a known_hosts file; expected 'HOST "
                           "ssh-ed25519 AAAA...'",
                           line);
    return text_printf(&ret->known_hosts, "%s\n", line);
}

static int add_host(const char *text, struct external_grant *ret, struct failure *failure) {
    return host_list_parse(&ret->hosts, text, failure);
}

/* Calls ADD for each text of the list NAME of the answer; a single text is a list of one. */
static int read_list(const struct document *answer, const char *name,
                     int (*add)(const char *text, struct external_grant *ret, struct failure *failure),
                     struct external_grant *ret, struct failure *failure) {
    const struct document_node *list = document_get(answer->root, name);
    bool is_list = list && list->kind == DOCUMENT_SEQUENCE;
    int r = 0;
    for (size_t i = 0; r == 0 && list && i < (is_list ? list->count : 1); i++) {
        const struct document_node *item = is_list ? list->items[i] : list;
        r = item->kind == DOCUMENT_TEXT ? add(item->text, ret, failure)
                                        : failure_set(failure, -EBADMSG, "'%s' has %s, expected texts", name,
                                                      document_kind_name(item->kind));
    }
    return r;
}

/* ---- The end */

/* Reads the end of the reservation: a number of seconds since 1970, or a text "2026-11-22T18:30:00Z", also
 * with a fraction or another time zone. END NULL or null: *RET_S is unchanged. */
static int read_end(const struct document_node *end, int64_t *ret_s, struct failure *failure) {
    struct tm parts = {0};
    double seconds = -1;
    if (!end || end->kind == DOCUMENT_NULL)
        return 0;
    const char *rest = end->kind == DOCUMENT_TEXT ? strptime(end->text, "%Y-%m-%dT%H:%M:%S", &parts) : NULL;
    if (rest && *rest == '.')
        rest += 1 + strspn(rest + 1, "0123456789");
    rest = rest ? strptime(rest, "%z", &parts) : NULL;
    long offset = parts.tm_gmtoff; /* timegm() forgets it */
    if (rest && !*rest)
        seconds = (double)(timegm(&parts) - offset);
    else if (end->kind == DOCUMENT_NUMBER)
        (void)number_parse_double(end->text, strlen(end->text), &seconds);
    if (!(seconds > 0 && seconds < end_max_s))
        return failure_set(
            failure, -EBADMSG,
            "'end' is '%.60s', expected seconds since 1970 or a time such as 2026-11-22T18:30:00Z",
            end->text ? end->text : document_kind_name(end->kind));
    *ret_s = (int64_t)floor(seconds);
    return 0;
}

/* Reads the nodes, host keys and end from the program's answer. The caller clears RET, also after a failure.
 */
int external_grant_read(const struct document *answer, struct external_grant *ret, struct failure *failure) {
    text_init(&ret->known_hosts, KEYS_MAX);
    int r = read_list(answer, "nodes", add_host, ret, failure);
    if (r == 0)
        r = node_names_make(&ret->hosts, &ret->names, failure);
    if (r == 0)
        r = read_list(answer, "known_hosts", add_key, ret, failure);
    if (r == 0)
        r = read_end(document_get(answer->root, "end"), &ret->end_s, failure);
    if (r < 0) {
        failure->kind = FAILURE_SYSTEM; /* what the user gave is not wrong */
        failure_prefix(failure, "the answer of '%s'", answer->file);
    }
    return r;
}

void external_grant_clear(struct external_grant *grant) {
    node_names_free(grant->names, grant->hosts.count);
    host_list_clear(&grant->hosts);
    text_clear(&grant->known_hosts);
}
