#include "engine/run/campaign/software-settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const software_kind_names[SOFTWARE_KINDS] = {
    [SOFTWARE_MODULES] = "modules",
    [SOFTWARE_SPACK] = "spack",
    [SOFTWARE_SPACK_ENVIRONMENT] = "spack-environment",
    [SOFTWARE_PREFIX] = "prefix",
    [SOFTWARE_CONTAINER] = "container",
};

/* Binds NODE as texts of KIND. A tool would take what begins with a dash for an option. */
static int bind_texts(const struct document *document, const struct document_node *node,
                      enum software_kind kind, struct software_settings *settings, struct failure *failure) {
    if (!node)
        return 0;
    struct bind_texts *texts = &settings->kinds[kind];
    int r =
        bind_value(document, node, &(struct bind_field){.key = software_kind_names[kind], .type = BIND_TEXTS},
                   texts, failure);
    for (size_t i = 0; r == 0 && i < texts->count; i++) {
        const char *text = texts->items[i];
        const struct document_node *at = node->kind == DOCUMENT_SEQUENCE ? node->items[i] : node;
        if (text[0] == '\0' || text[0] == '-')
            r = failure_input(failure, document->file, at->line, at->column, "'%s' has '%s', expected a name",
                              software_kind_names[kind], text);
        else if (kind == SOFTWARE_PREFIX && text[0] != '/')
            r = failure_input(failure, document->file, at->line, at->column,
                              "the prefix '%s' is not an absolute path on the nodes", text);
    }
    return r;
}

struct written_container {
    char *image;
    struct bind_texts command;
};
static const struct bind_field container_fields[] = {
    {.key = "image",
     .type = BIND_TEXT,
     .offset = offsetof(struct written_container, image),
     .required = true},
    {.key = "command", .type = BIND_TEXTS, .offset = offsetof(struct written_container, command)},
};
enum { CONTAINER_FIELD_COUNT = sizeof container_fields / sizeof *container_fields };

/* Appends TEXT, and a NULL that does not count. */
static int add_text(struct bind_texts *texts, const char *text) {
    char **items = realloc(texts->items, (texts->count + 2) * sizeof *items);
    if (!items)
        return -ENOMEM;
    texts->items = items;
    if (!(items[texts->count] = strdup(text)))
        return -ENOMEM;
    items[++texts->count] = NULL;
    return 0;
}

static int bind_container(const struct document *document, const struct document_node *node,
                          struct software_settings *settings, struct failure *failure) {
    struct bind_texts *arguments = &settings->kinds[SOFTWARE_CONTAINER];
    struct written_container written = {0};
    int r = 0;
    if (node && node->kind == DOCUMENT_MAPPING)
        r = bind_mapping(document, node, "container", container_fields, CONTAINER_FIELD_COUNT, &written,
                         failure);
    else if (node)
        r = bind_value(document, node, &(struct bind_field){.key = "container", .type = BIND_TEXT},
                       &written.image, failure);
    if (r == 0 && written.image && (!written.image[0] || written.image[0] == '-'))
        r = failure_input(failure, document->file, node->line, node->column,
                          "'container' has the image '%s', expected its path or address", written.image);
    if (r == 0 && written.image) {
        *arguments = written.command;
        written.command = (struct bind_texts){0};
        if ((arguments->count == 0 &&
             (add_text(arguments, "apptainer") < 0 || add_text(arguments, "exec") < 0)) ||
            add_text(arguments, written.image) < 0)
            r = failure_memory(failure);
    }
    bind_clear(container_fields, CONTAINER_FIELD_COUNT, &written);
    return r;
}

int software_settings_bind(const struct document *document, const struct software_written *written,
                           struct software_settings *settings, struct failure *failure) {
    if (!written->modules && !written->spack && !written->container && !written->prefix)
        return 0;
    software_settings_clear(settings);
    const struct document_node *spack = written->spack, *environment = NULL;
    static const struct bind_field field = {.key = "environment", .type = BIND_NODE, .required = true};
    int r = 0;
    if (spack && spack->kind == DOCUMENT_MAPPING) {
        r = bind_mapping(document, spack, "spack", &field, 1, &environment, failure);
        spack = NULL;
    }
    if (r == 0)
        r = bind_texts(document, written->modules, SOFTWARE_MODULES, settings, failure);
    if (r == 0)
        r = bind_texts(document, spack, SOFTWARE_SPACK, settings, failure);
    if (r == 0)
        r = bind_texts(document, environment, SOFTWARE_SPACK_ENVIRONMENT, settings, failure);
    if (r == 0)
        r = bind_texts(document, written->prefix, SOFTWARE_PREFIX, settings, failure);
    return r < 0 ? r : bind_container(document, written->container, settings, failure);
}

void software_settings_clear(struct software_settings *settings) {
    for (size_t kind = 0; kind < SOFTWARE_KINDS; kind++) {
        struct bind_texts *texts = &settings->kinds[kind];
        for (size_t i = 0; i < texts->count; i++)
            free(texts->items[i]);
        free(texts->items);
        *texts = (struct bind_texts){0};
    }
}

int software_settings_describe(const struct software_settings *settings, struct text *ret) {
    int r = 0;
    const char *between = "";
    for (size_t kind = 0; r == 0 && kind < SOFTWARE_KINDS; kind++) {
        const struct bind_texts *texts = &settings->kinds[kind];
        if (texts->count) {
            r = text_printf(ret, "%s%s", between, software_kind_names[kind]);
            between = "; ";
        }
        for (size_t i = 0; r == 0 && i < texts->count; i++)
            r = text_printf(ret, " %s", texts->items[i]);
    }
    return r;
}
