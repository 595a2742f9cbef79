#include "engine/testbed/testbed.h"

#include "engine/foundation/text.h"

#include <string.h>

static const struct testbed_backend *const backends[] = {&testbed_local};
static const char *const backend_names[] = {"local"};
enum { BACKEND_COUNT = sizeof backends / sizeof *backends };
_Static_assert(sizeof backend_names / sizeof *backend_names == BACKEND_COUNT, "a name for every backend");

const struct testbed_backend *testbed_find(const char *name, const char *file, size_t line, size_t column,
                                           struct failure *failure) {
    for (size_t i = 0; i < BACKEND_COUNT; i++)
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    const char *nearest = text_nearest(name, backend_names, BACKEND_COUNT);
    failure_input(failure, file, line, column, "there is no testbed '%s'; %s%s%s", name,
                  nearest ? "did you mean '" : "this version knows: ", nearest ? nearest : backend_names[0],
                  nearest ? "'?" : "");
    return NULL;
}
