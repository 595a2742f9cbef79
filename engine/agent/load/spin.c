#include "engine/agent/tool.h"

int tool_spin(int count, char **arguments) {
    (void)count;
    (void)arguments;
    return 2;
}
