/*
 * What kind of processor a measurement ran on, where a node has several: a response, so that models may be
 * made for each (--by class).
 */
#ifndef ASSAY_KERNELS_PROCESSOR_H
#define ASSAY_KERNELS_PROCESSOR_H

/* The class of the PU that this thread runs on. Intel's hybrid processors: 1, 2 or 3, if it is listed in
 * SYS/devices/cpu_core/cpus, cpu_atom or cpu_lowpower. Others: its capacity, up to 1024 for the fastest, if
 * PUs differ in SYS/devices/system/cpu/cpuN/cpu_capacity. 0: Linux states no difference. SYS is "/sys". */
int processor_class(const char *sys);

#endif
