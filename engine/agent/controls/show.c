#include "engine/agent/tool.h"

int tool_controls(int count, char **arguments) {
    (void)count;
    (void)arguments;
    return 2;
}
