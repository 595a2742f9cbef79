/*
 * A plugin as a shared object: found by name in the folders of ASSAY_PATH and the installation, loaded
 * (RTLD_NOW, RTLD_LOCAL), checked, or refused in one sentence: no such plugin (the nearest one is named), not
 * loadable, no symbol, another ABI, another kind, a name that is not its file's, functions that are missing.
 */
#ifndef ASSAY_PLUGIN_LIBRARY_H
#define ASSAY_PLUGIN_LIBRARY_H

#include "engine/foundation/failure.h"
#include "engine/foundation/installation.h"

#include <assay/fit.h>
#include <assay/predict.h>

struct library {
    void *handle;
    char *path;
    const struct assay_plugin *plugin;
    const struct fit_plugin *fit;         /* NULL: it is no fit plugin */
    const struct predict_plugin *predict; /* likewise */
};

/* Loads PREFIX-NAME.so; PREFIX is "fit" (of the kind PLUGIN_FIT), or "predict", "export". */
int library_open(const struct installation *installation, const char *prefix, const char *name,
                 struct library **ret, struct failure *failure);
/* Unloads it: nothing that came from the plugin may be used after this. NULL is fine. */
void library_close(struct library *library);
void library_cleanup(struct library **library); /* for cleanup() */

/* What a plugin said when it returned CODE, as a failure: -EINVAL as bad input. Returns CODE. */
int library_failure(const struct library *library, int code, const struct plugin_message *message,
                    struct failure *failure);

#endif
