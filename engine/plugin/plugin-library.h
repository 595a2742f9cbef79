/*
 * A plugin as a shared object: found by name, loaded (RTLD_NOW, RTLD_LOCAL), checked, or refused in one
 * sentence: no such plugin (the nearest one is named), not loadable, no symbol, another ABI, described too
 * short, another kind, a name that is not its file's, operations that are missing.
 */
#ifndef ASSAY_PLUGIN_PLUGIN_LIBRARY_H
#define ASSAY_PLUGIN_PLUGIN_LIBRARY_H

#include "engine/foundation/failure.h"
#include "engine/foundation/installation.h"
#include "plugins/interface/fit.h"
#include "plugins/interface/plugin.h"
#include "plugins/interface/predict.h"

struct plugin_library;

/* Finds fit-METHOD or predict-METHOD in the installation's plugin folders and loads it. */
int plugin_library_open(const struct installation *installation, enum assay_plugin_kind kind,
                        const char *method, struct plugin_library **ret, struct failure *failure);
/* Loads the file PATH. */
int plugin_library_load(const char *path, enum assay_plugin_kind kind, struct plugin_library **ret,
                        struct failure *failure);
/* Unloads it: nothing that came from the plugin may be used after this. NULL is fine. */
void plugin_library_close(struct plugin_library *library);
void plugin_library_cleanup(struct plugin_library **library); /* for cleanup() */

const char *plugin_library_path(const struct plugin_library *library);
const struct assay_plugin *plugin_library_plugin(const struct plugin_library *library);
/* NULL for a plugin of the other kind. */
const struct fit_operations *plugin_library_fit(const struct plugin_library *library);
const struct predict_operations *plugin_library_predict(const struct plugin_library *library);

/* What a plugin said when it returned CODE, as a failure: the plugin named, -EINVAL as bad input. Returns
 * CODE. */
int plugin_library_failure(const struct plugin_library *library, int code,
                           const struct plugin_message *message, struct failure *failure);

#endif
