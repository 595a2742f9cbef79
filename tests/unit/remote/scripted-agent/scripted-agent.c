/*
 * The agent, but its tools are the test's: where the folder that a tool is started in (the run directory) has
 * a file `tool`, or the node has TOOL, sh runs that with the tool's name and arguments.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TOOL "/run/scripted-agent-tool"

int agent_main(int count, char **arguments); /* engine/agent/main.c */

int main(int count, char **arguments) {
    const char *tool = access("tool", R_OK) == 0 ? "tool" : access(TOOL, R_OK) == 0 ? TOOL : NULL;
    if (count > 1 && strcmp(arguments[0], "/proc/self/exe") == 0 && tool) {
        const char *words[64] = {"sh", tool};
        for (int i = 1; i < count && i < 60; i++)
            words[i + 1] = arguments[i];
        execv("/bin/sh", (char **)words);
        perror("/bin/sh");
        return 127;
    }
    return agent_main(count, arguments);
}
