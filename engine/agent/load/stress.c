#include "engine/agent/tool.h"

int tool_stress(int count, char **arguments) {
    (void)count;
    (void)arguments;
    return 2;
}
