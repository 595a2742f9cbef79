#include "engine/remote/link/tool.h"

#include "engine/foundation/memory.h"

#include <errno.h>
#include <string.h>

/* The failure of a tool: the first line of its stderr, or how it ended. 0 when its status was 0. */
int tool_failure(const struct remote_exit *exit, const char *errors, struct failure *failure) {
    static const char prefix[] = "assay-agent: ";
    char how[128];
    if (exit->code == 0 && !exit->signalled && !exit->timed_out)
        return 0;
    errors = errors ? errors : "";
    if (strncmp(errors, prefix, strlen(prefix)) == 0)
        errors += strlen(prefix);
    int length = (int)strcspn(errors, "\n");
    return exit->code == 1 && !exit->signalled && length > 0
               ? failure_set(failure, -EIO, "%.*s", length, errors)
               : failure_set(failure, -EIO, "the agent's tool %s%s%.*s",
                             remote_exit_describe(exit, how, sizeof how), length > 0 ? ": " : "", length,
                             errors);
}

char *tool_folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return !slash ? xstrdup(".") : slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}
