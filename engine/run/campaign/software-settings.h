/*
 * Where an experiment's software comes from, beside Debian's packages: keys of the experiment, or of the
 * campaign, which knows its site better; then they take the place of all that the experiment says of these.
 *
 *     modules: [gcc/12, openmpi/4.1]    # Lmod or Environment Modules
 *     spack: [hpl@2.3]                  # installed specs; or {environment: DIR}
 *     container: image.sif              # or {image: image.sif, command: [apptainer, exec]}
 *     prefix: /opt/openmpi              # a folder with bin, lib, include; or several, the first in front
 */
#ifndef ASSAY_CAMPAIGN_SOFTWARE_SETTINGS_H
#define ASSAY_CAMPAIGN_SOFTWARE_SETTINGS_H

#include "engine/documents/bind.h"
#include "engine/documents/document.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

#include <stddef.h>

enum software_kind {
    SOFTWARE_MODULES,
    SOFTWARE_SPACK,
    SOFTWARE_SPACK_ENVIRONMENT,
    SOFTWARE_PREFIX,
    SOFTWARE_CONTAINER, /* arguments that go before each command, NULL-ended; the last is the image */
    SOFTWARE_KINDS,
};
extern const char *const software_kind_names[SOFTWARE_KINDS];

struct software_settings {
    struct bind_texts kinds[SOFTWARE_KINDS];
};

/* The four keys as they stand in a mapping; NULL: it is not there. */
struct software_written {
    const struct document_node *modules, *spack, *container, *prefix;
};
/* Their fields, for the table that binds struct WHOLE, whose member MEMBER they are. */
#define SOFTWARE_FIELDS(whole, member)                                                                       \
    {.key = "modules", .type = BIND_NODE, .offset = offsetof(whole, member.modules)},                        \
        {.key = "spack", .type = BIND_NODE, .offset = offsetof(whole, member.spack)},                        \
        {.key = "container", .type = BIND_NODE, .offset = offsetof(whole, member.container)}, {              \
        .key = "prefix", .type = BIND_NODE, .offset = offsetof(whole, member.prefix)                         \
    }

/* Replaces what SETTINGS hold when one of the keys is there, and leaves them alone otherwise. */
int software_settings_bind(const struct document *document, const struct software_written *written,
                           struct software_settings *settings, struct failure *failure);
void software_settings_clear(struct software_settings *settings);

/* Appends "modules gcc/12 openmpi/4.1; prefix /opt"; nothing where nothing is asked for. 0, -ENOMEM or
 * -EFBIG. */
int software_settings_describe(const struct software_settings *settings, struct text *ret);

#endif
