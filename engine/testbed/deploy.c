#include "engine/testbed/deploy.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/testbed/access.h"

#include <errno.h>
#include <string.h>

const struct bind_field deploy_fields[DEPLOY_FIELDS] = {
    {BIND_ROW("image", BIND_TEXT, deploy_settings, image)},
    {BIND_ROW("sha256", BIND_TEXT, deploy_settings, sha256)},
};

/* Hashes the image that is named without a SHA-256. FAILURE_INPUT when it cannot be deployed. */
int deploy_check(struct deploy_settings *settings, const struct testbed_written *written,
                 struct failure *failure) {
    struct agent_image image = {0};
    const struct document_node *node = written->node ? document_get(written->node, "deploy") : NULL;
    if (!settings->image && settings->sha256)
        return bind_refuse(written->document, node, failure,
                           "'deploy' names no image; expected {image: FILE} or FILE alone");
    access_place_path(&settings->image, written->folder);
    if (!settings->image || settings->sha256)
        return 0;
    int r = system_image_read(settings->image, false, &image, failure);
    if (r < 0)
        return failure_place(failure, r, written->document->file, node->line, node->column);
    settings->sha256 = xstrdup(image.name);
    return 0;
}

void deploy_describe(const struct deploy_settings *settings, struct text *ret) {
    if (settings->image)
        text_printf(ret, "%-12s fresh on each node, of %s, SHA-256 %s\n", "system", settings->image,
                    settings->sha256);
}

/* RET: the decompressed image; untouched when none is to be deployed. -EBADMSG: the file has changed since it
 * was hashed. */
int deploy_open(const struct deploy_settings *settings, const struct testbed_request *request,
                struct agent_image *ret, struct failure *failure) {
    if (!settings->image)
        return 0;
    int r = system_image_read(settings->image, true, ret, failure);
    if (r == 0 && strcmp(ret->name, settings->sha256) != 0)
        r = failure_set_kind(failure, FAILURE_INPUT, -EBADMSG, "the image '%s' has SHA-256 %s, expected %s",
                             settings->image, ret->name, settings->sha256);
    cleanup_free char *sentence = xformat("each node gets a fresh system from the image '%s' (SHA-256 %s)",
                                          settings->image, settings->sha256);
    if (r == 0 && request->report)
        request->report(request->report_context, sentence);
    return r;
}
