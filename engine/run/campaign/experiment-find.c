/* Finding an experiment by name or path. */
#include "engine/run/campaign/experiment.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char description_file[] = "experiment.yaml";

static int read_folder(const char *folder, struct experiment **ret, struct failure *failure) {
    cleanup_free char *absolute = realpath(folder, NULL);
    if (!absolute)
        return failure_set(failure, -errno, "cannot resolve '%s': %s", folder, strerror(errno));
    cleanup_free char *path = file_join(absolute, description_file);
    if (!path)
        return failure_memory(failure);
    struct document *document;
    int r = document_read_yaml(path, &document, failure);
    if (r < 0)
        return r;
    struct experiment *experiment;
    r = experiment_from_node(document, document->root, absolute, &experiment, failure);
    if (r < 0) {
        document_free(document);
        return r;
    }
    experiment->document = document;
    experiment->folder = take_pointer(absolute);
    *ret = experiment;
    return 0;
}

int experiment_find(const char *name, const char *base_folder, const struct installation *installation,
                    const char *place_file, size_t place_line, size_t place_column, struct experiment **ret,
                    struct failure *failure) {
    cleanup_free char *folder = NULL;
    if (strchr(name, '/')) {
        folder = name[0] == '/' ? strdup(name) : file_join(base_folder, name);
        cleanup_free char *description = folder ? file_join(folder, description_file) : NULL;
        if (!description)
            return failure_memory(failure);
        if (!file_exists(description))
            return failure_input(failure, place_file, place_line, place_column,
                                 "there is no '%s' in '%s', expected the folder of an experiment",
                                 description_file, folder);
    } else {
        int r = installation_find(installation, INSTALLATION_EXPERIMENT, name, &folder, failure);
        if (r < 0 && failure && failure->kind == FAILURE_INPUT)
            return failure_input(failure, place_file, place_line, place_column, "%s", failure->text);
        if (r < 0)
            return r;
    }
    return read_folder(folder, ret, failure);
}
