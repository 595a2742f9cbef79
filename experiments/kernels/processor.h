/*
 * What kind of processor a measurement ran on, where a node has several: a response, so that models may be
 * made for each (--by class).
 */
#ifndef ASSAY_KERNELS_PROCESSOR_H
#define ASSAY_KERNELS_PROCESSOR_H

/* The class of the PU that this thread is on. By Intel's files SYS/devices/cpu_core/cpus, cpu_atom and
 * cpu_lowpower: 1, 2, 3. Elsewhere, where the kernel's capacities of PUs differ, that of this one,
 * SYS/devices/system/cpu/cpuN/cpu_capacity: up to 1024, for the fastest. 0: all PUs are alike, as far as the
 * kernel says. SYS is "/sys". */
int processor_class(const char *sys);

#endif
