#include "engine/plugin/library.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* dlerror says "FILE: reason"; the file is named already. */
static const char *load_reason(const char *path) {
    const char *reason = dlerror();
    size_t length = strlen(path);
    if (!reason)
        return "no reason given";
    return strncmp(reason, path, length) == 0 && reason[length] == ':' ? reason + length + 1 : reason;
}

__attribute__((format(printf, 3, 4))) static int refuse(const char *path, struct failure *failure,
                                                        const char *format, ...) {
    char reason[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return failure_set_kind(failure, FAILURE_INPUT, -ELIBBAD, "cannot use the plugin '%s': %s", path, reason);
}

static bool is_text(const char *text) {
    return text && text[0];
}

/* Nothing beyond abi and size is read before these two are known to fit. */
static int check(struct library *library, const char *prefix, const char *name, struct failure *failure) {
    const struct assay_plugin *plugin = library->plugin;
    uint32_t kind = strcmp(prefix, "fit") == 0 ? PLUGIN_FIT : PLUGIN_PREDICT;
    if (plugin->abi != ASSAY_PLUGIN_ABI)
        return refuse(library->path, failure,
                      "the plugin has ABI %u, but this assay has ABI %u; build the plugin "
                      "with the headers of this assay",
                      plugin->abi, ASSAY_PLUGIN_ABI);
    if (plugin->size < sizeof *plugin || !is_text(plugin->name) || !is_text(plugin->version) ||
        !is_text(plugin->summary) || !plugin->operations)
        return refuse(library->path, failure, "the plugin lacks its name, version, summary or functions");
    if (plugin->kind != kind)
        return refuse(library->path, failure,
                      "the plugin has the kind %u; expected the kind %u, by its file name", plugin->kind,
                      kind);
    if (strcmp(plugin->name, name) != 0)
        return refuse(library->path, failure, "the plugin calls itself '%s'; expected '%s', by its file name",
                      plugin->name, name);
    if (kind == PLUGIN_FIT) {
        const struct fit_plugin *fit = plugin->operations;
        library->fit = fit;
        return PLUGIN_HAS(fit, needs_all_rows) && fit->fit
                   ? 0
                   : refuse(library->path, failure, "the plugin has no function fit()");
    }
    const struct predict_plugin *predict = plugin->operations;
    library->predict = predict;
    return PLUGIN_HAS(predict, close) && predict->run && predict->roles
               ? 0
               : refuse(library->path, failure, "the plugin has no function run(), or no roles of models");
}

/* Loads the plugin PREFIX-NAME, such as fit-linear, and checks its version and functions. Sets *RET, which
 * library_close() frees, only on success. */
int library_open(const struct installation *installation, const char *prefix, const char *name,
                 struct library **ret, struct failure *failure) {
    if (!name[0] || strchr(name, '/'))
        return failure_input(failure, NULL, 0, 0,
                             "'%s' is not the name of a plugin; expected a name such as '%s'; "
                             "'assay plugins' lists them",
                             name, strcmp(prefix, "fit") == 0 ? "linear" : "hpl");
    cleanup(library_cleanup) struct library *library = xcalloc(1, sizeof *library);
    cleanup_free char *wanted = xformat("%s-%s", prefix, name);
    int r = installation_find(installation, INSTALLATION_PLUGIN, wanted, &library->path, failure);
    if (r < 0)
        return r;
    cleanup_close int file = file_open(library->path, FILE_REGULAR, failure); /* dlopen() waits for a FIFO */
    if (file < 0)
        return file;
    library->handle = dlopen(library->path, RTLD_NOW | RTLD_LOCAL);
    if (!library->handle)
        return failure_set_kind(failure, FAILURE_INPUT, -ELIBACC, "cannot load the plugin '%s': %s",
                                library->path, load_reason(library->path));
    library->plugin = dlsym(library->handle, ASSAY_PLUGIN_SYMBOL);
    if (!library->plugin)
        return refuse(library->path, failure, "the file has no symbol '%s', and so is no plugin of assay",
                      ASSAY_PLUGIN_SYMBOL);
    r = check(library, prefix, name, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(library);
    return 0;
}

void library_close(struct library *library) {
    if (!library)
        return;
    if (library->handle)
        dlclose(library->handle);
    free(library->path);
    free(library);
}

void library_cleanup(struct library **library) {
    library_close(*library);
}

int library_failure(const struct library *library, int code, const struct plugin_message *message,
                    struct failure *failure) {
    if (code == -ENOMEM)
        return failure_memory(failure);
    return failure_set_kind(failure, code == -EINVAL ? FAILURE_INPUT : FAILURE_SYSTEM, code, "%s: %.*s",
                            library->plugin->name, PLUGIN_MESSAGE_SIZE - 1,
                            message->text[0] ? message->text : strerror(-code));
}
