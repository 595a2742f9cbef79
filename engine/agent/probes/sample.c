#include "engine/agent/tool.h"

int tool_sample(int count, char **arguments) {
    (void)count;
    (void)arguments;
    return 2;
}
