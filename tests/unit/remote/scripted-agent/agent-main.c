/* The agent's main() by another name. */
int agent_main(int count, char **arguments);
#define main agent_main
#include "engine/agent/main.c"
