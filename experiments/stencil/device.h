/*
 * Where the values are and are updated: the processor (device-cpu.c), or one GPU a rank (device-cuda.cu).
 * There are two fields: one is read while the other is written. Times are in seconds. What fails ends the
 * program, by device_fail() of the caller.
 */
#ifndef ASSAY_STENCIL_DEVICE_H
#define ASSAY_STENCIL_DEVICE_H

#include "field.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device;

/* RANK: the number of this rank on its node, by which ranks choose GPUs round-robin. */
struct device *device_open(struct part part, int rank);
void device_close(struct device *device);
const char *device_name(void);

/* Copies all values, with halos, to and from the field that the next update reads. */
void device_write(struct device *device, const float *values);
void device_read(struct device *device, float *values);

/* Starts to update the points of a box; device_wait() waits for it. SHELL: these are outer points, which
 * device_take() needs, rather than inner ones. */
void device_update(struct device *device, struct box box, int shell);
/* Waits for all updates, and for all halos that were put. */
void device_wait(struct device *device);
/* Copies SIDE's updated plane into memory of the host, for MPI to send, after it has waited for the shell's
 * updates. The device owns that memory. */
float *device_take(struct device *device, enum side side);
/* Memory of the host, owned by the device, into which MPI receives SIDE's halo. */
float *device_space(struct device *device, enum side side);
/* Copies what was received from device_space() into the halo behind SIDE. */
void device_put(struct device *device, enum side side);
/* Exchanges the two fields: the next update reads what this one wrote. */
void device_swap(struct device *device);
/* The time spent so far on copies between host and device, in s; 0 on a processor. */
double device_transfer(const struct device *device);

__attribute__((noreturn)) void device_fail(const char *what, const char *why);

#ifdef __cplusplus
}
#endif
#endif
