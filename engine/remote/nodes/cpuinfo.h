/* Reads values of /proc/cpuinfo of a node, of any processor architecture. */
#ifndef ASSAY_NODES_CPUINFO_H
#define ASSAY_NODES_CPUINFO_H

/* The value of the first line "KEY : value"; the caller frees. NULL: there is none. */
char *cpuinfo_value(const char *cpuinfo, const char *key);
/* The model of the processor: "model name" on x86, "cpu" on POWER, "uarch" on RISC-V, "cpu model" on MIPS,
 * two numbers on Arm; the caller frees. NULL: not known. */
char *cpuinfo_model(const char *cpuinfo);

#endif
