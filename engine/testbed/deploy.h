/*
 * A fresh system on each node, as a campaign asks for it beside the key that names the testbed:
 *
 *     deploy: debian12.tar.zst
 *     deploy: {image: debian12.tar.zst, sha256: 5f78c33...}
 *
 * The image is a root file system as a tar (engine/remote/link/system-image.h).
 * engine/agent/daemon/deployed.h has what a node does with it.
 */
#ifndef ASSAY_TESTBED_DEPLOY_H
#define ASSAY_TESTBED_DEPLOY_H

#include "engine/documents/bind.h"
#include "engine/remote/link/system-image.h"
#include "engine/testbed/testbed.h"

struct deploy_settings {
    char *image;  /* NULL: nodes keep their own system */
    char *sha256; /* of the image */
};

/* The key `deploy`: its row in a table of fields, DEPLOY being a member of STRUCT. */
enum { DEPLOY_FIELDS = 2 };
extern const struct bind_field deploy_fields[DEPLOY_FIELDS];
#define DEPLOY_ROW(struct_, deploy_)                                                                         \
    BIND_ROW("deploy", BIND_MAPPING, struct_, deploy_), .fields = deploy_fields,                             \
                                                        .field_count = DEPLOY_FIELDS, .scalar = "image"

/* Called after binding: makes the image's path absolute, and reads the image for its hash unless the campaign
 * gives it (a resolved campaign does). */
int deploy_check(struct deploy_settings *settings, const struct testbed_written *written,
                 struct failure *failure);
/* Appends a line as the backend's describe(). */
void deploy_describe(const struct deploy_settings *settings, struct text *ret);

/* Called when nodes are reserved: reads the image and reports it. *RET stays zeroed where the campaign names
 * no image. -EBADMSG where the image's hash is not the campaign's. */
int deploy_open(const struct deploy_settings *settings, const struct testbed_request *request,
                struct agent_image *ret, struct failure *failure);

#endif
