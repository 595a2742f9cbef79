/* One core: the rows of a box one after the other. */
#include "device.h"

#include <stdlib.h>
#include <string.h>

struct device {
    struct part part;
    float *in, *out;
    float *sent[SIDES], *received[SIDES];
};

static float *allocate(size_t floats) {
    float *memory = aligned_alloc(4096, (floats * sizeof(float) + 4095) / 4096 * 4096);
    if (!memory)
        device_fail("memory for the mesh", "the system has none left");
    return memory;
}

/* Allocates the two fields and the planes for the halos. The caller closes the device. */
struct device *device_open(struct part part, int rank) {
    (void)rank;
    struct device *device = calloc(1, sizeof *device);
    if (!device)
        device_fail("memory", "the system has none left");
    device->part = part;
    device->in = allocate(part_volume(part) * (size_t)part_values(part));
    device->out = allocate(part_volume(part) * (size_t)part_values(part));
    for (int side = 0; side < SIDES; side++) {
        device->sent[side] = allocate(side_floats(part, (enum side)side));
        device->received[side] = allocate(side_floats(part, (enum side)side));
    }
    return device;
}

void device_close(struct device *device) {
    for (int side = 0; side < SIDES; side++) {
        free(device->sent[side]);
        free(device->received[side]);
    }
    free(device->in);
    free(device->out);
    free(device);
}

const char *device_name(void) {
    return "cpu";
}

void device_write(struct device *device, const float *values) {
    size_t bytes = part_volume(device->part) * (size_t)part_values(device->part) * sizeof(float);
    memcpy(device->in, values, bytes);
    memcpy(device->out, values, bytes); /* first touched here, not while it is timed */
}

void device_read(struct device *device, float *values) {
    memcpy(values, device->in, part_volume(device->part) * (size_t)part_values(device->part) * sizeof(float));
}

/* Updates a row, which is periodic: its two ends apart, so that the loop between them can be vectorized. */
#define UPDATE_ROW(UPDATE)                                                                                   \
    do {                                                                                                     \
        UPDATE(in, out, part, row, 0, part.nx - 1, 1);                                                       \
        _Pragma("GCC ivdep") for (int x = 1; x < part.nx - 1; x++)                                           \
            UPDATE(in, out, part, row, x, x - 1, x + 1);                                                     \
        UPDATE(in, out, part, row, part.nx - 1, part.nx - 2, 0);                                             \
    } while (0)

/* Updates the points of a box at once, row by row. */
void device_update(struct device *device, struct box box, int shell) {
    const float *restrict in = device->in;
    float *restrict out = device->out;
    const struct part part = device->part;
    (void)shell;
    for (int z = box.z0; z < box.z1; z++)
        for (int y = box.y0; y < box.y1; y++) {
            size_t row = part_row(part, y, z);
            if (part.problem == LBM)
                UPDATE_ROW(update_lbm);
            else
                UPDATE_ROW(update_diffusion);
        }
}

void device_wait(struct device *device) {
    (void)device;
}

/* Copies SIDE's plane to BUFFER or, with HALO, BUFFER to the halo behind that side; value after value. */
static void copy_plane(struct device *device, enum side side, float *buffer, int halo) {
    int values[VALUES_MAX], count = side_values(device->part, side, halo, values);
    struct box box = side_plane(device->part, side, halo);
    size_t row_floats = (size_t)device->part.nx;
    for (int v = 0; v < count; v++)
        for (int z = box.z0; z < box.z1; z++)
            for (int y = box.y0; y < box.y1; y++, buffer += row_floats) {
                float *row = device->out + (size_t)values[v] * part_volume(device->part) +
                             part_row(device->part, y, z);
                memcpy(halo ? row : buffer, halo ? buffer : row, row_floats * sizeof(float));
            }
}

float *device_take(struct device *device, enum side side) {
    copy_plane(device, side, device->sent[side], 0);
    return device->sent[side];
}

float *device_space(struct device *device, enum side side) {
    return device->received[side];
}

void device_put(struct device *device, enum side side) {
    copy_plane(device, side, device->received[side], 1);
}

void device_swap(struct device *device) {
    float *written = device->out;
    device->out = device->in;
    device->in = written;
}

double device_transfer(const struct device *device) {
    (void)device;
    return 0;
}
