#include "engine/testbed/deploy.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/testbed/access.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROW(key, member) BIND_ROW(key, BIND_TEXT, deploy_settings, member)

const struct bind_field deploy_fields[DEPLOY_FIELDS] = {
    {ROW("image", image)}, {ROW("sha256", sha256)}, {ROW("system", system)}};

/* What is known of the image, found or confirmed. */
static int take(char **known, const char *key, const char *found, const char *image,
                struct failure *failure) {
    if (*known && strcmp(*known, found) != 0)
        return failure_set_kind(failure, FAILURE_INPUT, -EBADMSG,
                                "the image '%s' is another one: its %s is '%s', expected '%s'", image, key,
                                found, *known);
    if (!*known)
        *known = xstrdup(found);
    return 0;
}

int deploy_check(struct deploy_settings *settings, const struct testbed_written *written,
                 struct failure *failure) {
    cleanup(system_image_clear) struct system_image image = {0};
    const struct document_node *node = written->node ? document_get(written->node, "deploy") : NULL;
    if (!settings->image && (settings->sha256 || settings->system))
        return bind_refuse(written->document, node, failure,
                           "'deploy' names no image, expected {image: FILE} or FILE alone");
    access_place_path(&settings->image, written->folder);
    if (!settings->image || (settings->sha256 && settings->system))
        return 0;
    int r = system_image_read(settings->image, false, &image, failure);
    if (r == 0)
        r = take(&settings->sha256, "sha256", image.brought.sha256, settings->image, failure);
    if (r == 0)
        r = take(&settings->system, "system", image.name, settings->image, failure);
    return failure_place(failure, r, written->document->file, node->line, node->column);
}

void deploy_describe(const struct deploy_settings *settings, struct text *ret) {
    if (settings->image)
        text_printf(ret, "%-12s %s, fresh on each node, of %s\n%-12s (SHA-256 %s)\n", "system",
                    settings->system, settings->image, "", settings->sha256);
}

int deploy_open(const struct deploy_settings *settings, const struct testbed_request *request,
                struct system_image *ret, struct failure *failure) {
    cleanup(system_image_clear) struct system_image image = {0};
    struct deploy_settings known = *settings;
    if (!settings->image)
        return 0;
    int r = system_image_read(settings->image, true, &image, failure);
    if (r == 0)
        r = take(&known.sha256, "sha256", image.brought.sha256, settings->image, failure);
    if (r < 0)
        return r;
    cleanup_free char *sentence = xformat("each node gets a fresh system: %s, of the image '%s', SHA-256 %s",
                                          image.name, settings->image, image.brought.sha256);
    if (request->report)
        request->report(request->report_context, sentence);
    *ret = image;
    image = (struct system_image){0};
    return 0;
}

const struct agent_image *deploy_image(const struct system_image *image) {
    return image->brought.tar ? &image->brought : NULL;
}
