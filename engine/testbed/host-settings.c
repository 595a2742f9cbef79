#include "engine/testbed/host-settings.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/testbed/node-names.h"

#include <stdlib.h>
#include <string.h>

static const struct bind_field fields[] = {
    {.key = "hosts", .type = BIND_LATER},
    {.key = "spares", .type = BIND_LATER},
    {.type = BIND_MAPPING,
     .offset = offsetof(struct testbed_settings, access),
     .fields = access_fields,
     .field_count = ACCESS_FIELDS},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

/* ---- Hosts */

/* Adds the hosts of a text such as dahu-[1-32]; a failure names the given place. */
static int add_hosts(struct testbed_settings *settings, const char *text, const char *file, size_t line,
                     size_t column, struct failure *failure) {
    return failure_place(failure, host_list_parse(&settings->hosts, text, failure), file, line, column);
}

/* Adds the hosts of {file: FILE}. KEY, "'hosts'" or "'spares'", is for messages here and below. */
static int bind_hosts_file(struct testbed_settings *settings, const struct testbed_written *written,
                           const char *key, const struct document_node *node, struct failure *failure) {
    static const struct bind_field file_field[] = {{.key = "file", .type = BIND_TEXT, .required = true}};
    cleanup_free char *file = NULL;
    int r = bind_mapping(written->document, node, key, file_field, 1, &file, failure);
    if (r < 0)
        return r;
    cleanup_free char *path = file[0] == '/' ? xstrdup(file) : file_join(written->folder, file);
    if (!file_exists(path))
        return bind_refuse(written->document, document_get(node, "file"), failure, "there is no file '%s'",
                           path);
    return host_list_read(&settings->hosts, path, failure);
}

static int bind_hosts_text(struct testbed_settings *settings, const struct testbed_written *written,
                           const char *key, const struct document_node *node, struct failure *failure) {
    if (!node->text || node->kind == DOCUMENT_NULL)
        return bind_refuse(written->document, node, failure,
                           "%s is %s, expected names or ranges such as dahu-[1-32].grenoble, a list of "
                           "them, or {file: FILE}",
                           key, document_kind_name(node->kind));
    return add_hosts(settings, node->text, written->document->file, node->line, node->column, failure);
}

/* Adds the hosts of NODE: a mapping {file: FILE}, a text, or a list of texts. */
static int bind_hosts(struct testbed_settings *settings, const struct testbed_written *written,
                      const char *key, const struct document_node *node, struct failure *failure) {
    if (node->kind == DOCUMENT_MAPPING)
        return bind_hosts_file(settings, written, key, node, failure);
    if (node->kind != DOCUMENT_SEQUENCE)
        return bind_hosts_text(settings, written, key, node, failure);
    int r = 0;
    for (size_t i = 0; r == 0 && i < node->count; i++)
        r = bind_hosts_text(settings, written, key, node->items[i], failure);
    return r;
}

/* Adds the hosts of LISTS, the values of the command line's OPTION: a text, or @FILE. */
static int add_option_hosts(struct testbed_settings *settings, const char *const *lists, size_t count,
                            const char *option, struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = lists[i][0] == '@' ? host_list_read(&settings->hosts, lists[i] + 1, failure)
                               : add_hosts(settings, lists[i], option, 0, 0, failure);
    return r;
}

/* ---- Names */

static void free_names(struct testbed_settings *settings) {
    node_names_free(take_pointer(settings->names), settings->name_count);
    settings->name_count = 0;
}

/* Makes the names of all hosts so far; a failure has the given place. */
static int name_nodes(struct testbed_settings *settings, const char *file, size_t line, size_t column,
                      struct failure *failure) {
    free_names(settings);
    int r = node_names_make(&settings->hosts, &settings->names, failure);
    if (r == 0)
        settings->name_count = settings->hosts.count;
    return failure_place(failure, r, file, line, column);
}

/* Adds the spares after the hosts: those of --spares, else those of NODE, the value of the key 'spares'
 * (NULL: no such key). Refuses a spare that is also a host. */
static int add_spares(struct testbed_settings *settings, const struct testbed_written *written,
                      const struct document_node *node, struct failure *failure) {
    static const char option[] = "--spares";
    bool given = written->spare_count > 0;
    const char *file = given ? option : written->document->file;
    size_t line = given || !node ? 0 : node->line, column = given || !node ? 0 : node->column;
    struct testbed_settings spares = {0};
    if (!given && !node)
        return 0;
    int r = given ? add_option_hosts(&spares, written->spares, written->spare_count, option, failure)
                  : bind_hosts(&spares, written, "'spares'", node, failure);
    for (size_t i = 0; r == 0 && i < spares.hosts.count; i++) {
        size_t before = settings->hosts.count;
        r = host_list_add(&settings->hosts, spares.hosts.names[i], failure);
        if (r == 0 && settings->hosts.count == before)
            r = failure_input(failure, file, line, column,
                              "'%s' is both a host and a spare; remove it from one of the lists",
                              spares.hosts.names[i]);
    }
    host_list_clear(&spares.hosts);
    return r < 0 ? r : name_nodes(settings, file, line, column, failure); /* again, for the spares */
}

/* Adds the hosts of --nodes, else those of HOSTS, the value of the key 'hosts' (NULL: no such key, which is
 * refused), and makes the nodes' names. */
static int add_nodes(struct testbed_settings *settings, const struct testbed_written *written,
                     const struct document_node *hosts, struct failure *failure) {
    static const char option[] = "--nodes";
    const struct document_node *node = written->node;
    if (written->node_count > 0) {
        int r = add_option_hosts(settings, written->nodes, written->node_count, option, failure);
        return r < 0 ? r : name_nodes(settings, option, 0, 0, failure);
    }
    if (hosts) {
        int r = bind_hosts(settings, written, "'hosts'", hosts, failure);
        return r < 0 ? r : name_nodes(settings, written->document->file, hosts->line, hosts->column, failure);
    }
    return bind_refuse(written->document, node ? node : document_get(written->document->root, "testbed"),
                       failure,
                       "the testbed has no 'hosts', expected {hosts: 'dahu-[1-32].grenoble'} or --nodes");
}

/* ---- All of it */

void host_settings_free(struct testbed_settings *settings) {
    if (!settings)
        return;
    free_names(settings);
    host_list_clear(&settings->hosts);
    bind_clear(fields, FIELD_COUNT, settings);
    free(settings);
}

static void free_settings_pointer(struct testbed_settings **settings) {
    host_settings_free(*settings);
}

int host_settings_bind(const struct testbed_written *written, struct testbed_settings **ret,
                       struct failure *failure) {
    cleanup(free_settings_pointer) struct testbed_settings *settings = xcalloc(1, sizeof *settings);
    access_init(&settings->access);
    const struct document_node *node = written->node;
    int r =
        node ? bind_mapping(written->document, node, "'testbed'", fields, FIELD_COUNT, settings, failure) : 0;
    if (r < 0)
        return r;
    r = access_check(&settings->access, written, failure);
    r = r < 0 ? r : add_nodes(settings, written, document_get(node, "hosts"), failure);
    settings->host_count = settings->hosts.count;
    r = r < 0 ? r : add_spares(settings, written, document_get(node, "spares"), failure);
    if (r == 0)
        *ret = take_pointer(settings);
    return r;
}

/* ---- For people, and for programs */

int host_settings_describe(const struct testbed_settings *settings, struct text *ret) {
    size_t count = settings->host_count, spares = settings->hosts.count - count;
    text_printf(ret, "%-12s %zu: ", "nodes", count);
    int r = host_list_fold((const char *const *)settings->hosts.names, count, ret);
    if (r == 0 && spares > 0) {
        text_printf(ret, "\n%-12s %zu: ", "spares", spares);
        r = host_list_fold((const char *const *)settings->hosts.names + count, spares, ret);
    }
    if (r < 0)
        return r;
    text_append_character(ret, '\n');
    return access_describe(&settings->access, ret);
}

void host_settings_resolve(const struct testbed_settings *settings, cJSON *object) {
    cJSON *hosts = json_add_array(object, "hosts");
    cJSON *spares = settings->host_count < settings->hosts.count ? json_add_array(object, "spares") : NULL;
    for (size_t i = 0; i < settings->hosts.count; i++)
        json_add_string(i < settings->host_count ? hosts : spares, NULL, settings->hosts.names[i]);
    bind_resolve(fields, FIELD_COUNT, settings, object);
    access_leave_out(&settings->access, object);
}
