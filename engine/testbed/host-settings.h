/*
 * The checked settings of the testbed `hosts`. Private to this room.
 *
 *     testbed:
 *       hosts: dahu-[1-32].grenoble     # names or ranges, a list of them, or {file: hosts.txt}
 *       spares: dahu-[33-34].grenoble   # likewise: connected only when one of the hosts is lost
 * and the keys of access.h.
 */
#ifndef ASSAY_TESTBED_HOST_SETTINGS_H
#define ASSAY_TESTBED_HOST_SETTINGS_H

#include "engine/foundation/host-list.h"
#include "engine/testbed/access.h"
#include "engine/testbed/testbed.h"

#include <stddef.h>

struct testbed_settings {
    struct host_list hosts; /* destinations, [user@]host[:port]; the last of them are the spares */
    size_t host_count;      /* without the spares */
    char **names;           /* of the nodes, one a destination, in the same order */
    size_t name_count;      /* names made so far */
    struct access_settings access;
};

/* As the testbed's own bind(), free_settings(), describe() and resolve(). */
int host_settings_bind(const struct testbed_written *written, struct testbed_settings **ret,
                       struct failure *failure);
void host_settings_free(struct testbed_settings *settings);
int host_settings_describe(const struct testbed_settings *settings, struct text *ret);
void host_settings_resolve(const struct testbed_settings *settings, cJSON *object);

#endif
