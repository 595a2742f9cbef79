#include "engine/agent/serve/tool.h"

#include <stddef.h>
#include <stdlib.h>

void tool_pass_root(const char *root) {
    if (root)
        (void)setenv(TOOL_ROOT_VARIABLE, root, 1);
    else
        (void)unsetenv(TOOL_ROOT_VARIABLE);
}
