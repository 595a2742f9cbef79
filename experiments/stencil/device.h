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

/* RANK: number among those of the node, which choose GPUs in turn. */
struct device *device_open(struct part part, int rank);
void device_close(struct device *device);
const char *device_name(void);

/* All values, halos too, of the field that is read. */
void device_write(struct device *device, const float *values);
void device_read(struct device *device, float *values);

/* Updates a box, which may go on until device_wait(). SHELL: of those that device_take() needs, rather than
 * inside. */
void device_update(struct device *device, struct box box, int shell);
void device_wait(struct device *device); /* for all updates, and for all halos that were put */
/* What was written of SIDE's plane, as soon as the shell is updated; into the halo behind it. Memory of the
 * host, for MPI. Its pointer is the device's. */
float *device_take(struct device *device, enum side side);
float *device_space(struct device *device, enum side side); /* for what is received */
void device_put(struct device *device, enum side side);
/* What was written is read from now on. */
void device_swap(struct device *device);
/* Of copies between host and device until now; 0 on a processor. */
double device_transfer(const struct device *device);

__attribute__((noreturn)) void device_fail(const char *what, const char *why);

#ifdef __cplusplus
}
#endif
#endif
