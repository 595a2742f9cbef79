#include "engine/agent/tool.h"

int tool_restore_controls(int count, char **arguments) {
    (void)count;
    (void)arguments;
    return 2;
}
