/* What /proc/cpuinfo of a node says, whatever the processor. */
#ifndef ASSAY_NODES_CPUINFO_H
#define ASSAY_NODES_CPUINFO_H

/* The value of the first line "KEY : value", or NULL; the caller frees. */
char *cpuinfo_value(const char *cpuinfo, const char *key);
/* The model: x86 has "model name", POWER "cpu", RISC-V "uarch", MIPS "cpu model", and Arm numbers alone.
 * NULL: not known; the caller frees. */
char *cpuinfo_model(const char *cpuinfo);

#endif
