#include "engine/plugin/plugin-library.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct plugin_library {
    void *handle;
    char *path;
    const struct assay_plugin *plugin;
};

static const char *kind_name(uint32_t kind) {
    return kind == ASSAY_PLUGIN_FIT ? "fit" : kind == ASSAY_PLUGIN_PREDICT ? "predict" : "unknown";
}

/* dlerror says "FILE: reason"; the file is named already. */
static const char *load_reason(const char *path) {
    const char *reason = dlerror();
    if (!reason)
        return "no reason given";
    size_t length = strlen(path);
    if (strncmp(reason, path, length) == 0 && reason[length] == ':')
        reason += length + 1 + (reason[length + 1] == ' ');
    return reason;
}

static int refuse(const char *path, struct failure *failure, const char *reason) {
    return failure_set_kind(failure, FAILURE_INPUT, -ELIBBAD, "cannot use the plugin '%s': %s", path, reason);
}

static bool is_text(const char *text) {
    return text && text[0];
}

static int check_fit(const char *path, const struct fit_operations *fit, struct failure *failure) {
    if (!PLUGIN_HAS(fit, close) || !fit->open || !fit->block || !fit->end_of_pass || !fit->finish ||
        !fit->close)
        return refuse(path, failure, "it lacks operations that a fit plugin must have");
    if (fit->parameter_count > 0 && !fit->parameters)
        return refuse(path, failure, "it counts parameters and has no table of them");
    return 0;
}

static int check_predict(const char *path, const struct predict_operations *predict,
                         struct failure *failure) {
    if (!PLUGIN_HAS(predict, close) || !predict->open || !predict->scenario || !predict->close)
        return refuse(path, failure, "it lacks operations that a predict plugin must have");
    if ((predict->parameter_count > 0 && !predict->parameters) || predict->column_count == 0 ||
        !predict->columns)
        return refuse(path, failure, "it has no table of its parameters or columns");
    return 0;
}

/* The order matters: nothing beyond abi and size is read before these two are known to fit. */
static int check(const char *path, const struct assay_plugin *plugin, enum assay_plugin_kind kind,
                 struct failure *failure) {
    if (plugin->abi != ASSAY_PLUGIN_ABI)
        return failure_set_kind(
            failure, FAILURE_INPUT, -ELIBBAD,
            "cannot use the plugin '%s': it has ABI %u and this assay speaks ABI %u; build it "
            "with the headers of this assay",
            path, plugin->abi, ASSAY_PLUGIN_ABI);
    if (plugin->size < sizeof *plugin)
        return failure_set_kind(
            failure, FAILURE_INPUT, -ELIBBAD,
            "cannot use the plugin '%s': it describes itself in %u bytes; expected at least %zu", path,
            plugin->size, sizeof *plugin);
    if (plugin->kind != kind)
        return failure_set_kind(failure, FAILURE_INPUT, -ELIBBAD,
                                "cannot use the plugin '%s': it is of the kind '%s' (%u); expected '%s'",
                                path, kind_name(plugin->kind), plugin->kind, kind_name(kind));
    if (!is_text(plugin->name) || !is_text(plugin->version) || !is_text(plugin->summary) ||
        !plugin->operations)
        return refuse(path, failure, "it does not say its name, version, summary and operations");
    const char *file = file_base_name(path);
    size_t length = strlen(plugin->name);
    if (strncmp(file, plugin->name, length) != 0 || strcmp(file + length, ".so") != 0)
        return failure_set_kind(
            failure, FAILURE_INPUT, -ELIBBAD,
            "cannot use the plugin '%s': it calls itself '%s'; expected the name of its file", path,
            plugin->name);
    return kind == ASSAY_PLUGIN_FIT ? check_fit(path, plugin->operations, failure)
                                    : check_predict(path, plugin->operations, failure);
}

int plugin_library_load(const char *path, enum assay_plugin_kind kind, struct plugin_library **ret,
                        struct failure *failure) {
    cleanup(plugin_library_cleanup) struct plugin_library *library = calloc(1, sizeof *library);
    if (!library || !(library->path = strdup(path)))
        return failure_memory(failure);
    /* A name without a slash would be looked for in the system's library folders. */
    cleanup_free char *located = strchr(path, '/') ? strdup(path) : file_join(".", path);
    if (!located)
        return failure_memory(failure);
    library->handle = dlopen(located, RTLD_NOW | RTLD_LOCAL);
    if (!library->handle)
        return failure_set_kind(failure, FAILURE_INPUT, -ELIBACC, "cannot load the plugin '%s': %s", path,
                                load_reason(located));
    library->plugin = dlsym(library->handle, ASSAY_PLUGIN_SYMBOL);
    if (!library->plugin)
        return failure_set_kind(
            failure, FAILURE_INPUT, -ELIBBAD,
            "cannot use the plugin '%s': it has no symbol '%s', so it is no plugin of assay", path,
            ASSAY_PLUGIN_SYMBOL);
    int r = check(path, library->plugin, kind, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(library);
    return 0;
}

int plugin_library_open(const struct installation *installation, enum assay_plugin_kind kind,
                        const char *method, struct plugin_library **ret, struct failure *failure) {
    if (!method[0] || strchr(method, '/'))
        return failure_input(failure, NULL, 0, 0,
                             "'%s' is not the name of a method; expected a name such as '%s'", method,
                             kind == ASSAY_PLUGIN_FIT ? "linear" : "hpl");
    cleanup_free char *name = xformat("%s-%s", kind_name(kind), method);
    cleanup_free char *path = NULL;
    int r = installation_find(installation, INSTALLATION_PLUGIN, name, &path, failure);
    return r < 0 ? r : plugin_library_load(path, kind, ret, failure);
}

void plugin_library_close(struct plugin_library *library) {
    if (!library)
        return;
    if (library->handle)
        dlclose(library->handle);
    free(library->path);
    free(library);
}

void plugin_library_cleanup(struct plugin_library **library) {
    plugin_library_close(*library);
}

const char *plugin_library_path(const struct plugin_library *library) {
    return library->path;
}

const struct assay_plugin *plugin_library_plugin(const struct plugin_library *library) {
    return library->plugin;
}

const struct fit_operations *plugin_library_fit(const struct plugin_library *library) {
    return library->plugin->kind == ASSAY_PLUGIN_FIT ? library->plugin->operations : NULL;
}

const struct predict_operations *plugin_library_predict(const struct plugin_library *library) {
    return library->plugin->kind == ASSAY_PLUGIN_PREDICT ? library->plugin->operations : NULL;
}

int plugin_library_failure(const struct plugin_library *library, int code,
                           const struct plugin_message *message, struct failure *failure) {
    if (code == -ENOMEM)
        return failure_memory(failure);
    return failure_set_kind(failure, code == -EINVAL ? FAILURE_INPUT : FAILURE_SYSTEM, code, "%s: %.*s",
                            library->plugin->name, PLUGIN_MESSAGE_SIZE - 1,
                            message->text[0] ? message->text : strerror(-code));
}
