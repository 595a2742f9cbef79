#include "engine/agent/tool.h"

int tool_probes(int count, char **arguments) {
    (void)count;
    (void)arguments;
    return 2;
}
