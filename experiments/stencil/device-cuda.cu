/* One GPU: all values stay in its memory; planes of the halos go through pinned memory of the host, as MPI
 * without knowledge of GPUs needs it. The shell and the copies have a stream, the inside another. */
#include "device.h"

#include <stdlib.h>
#include <time.h>

enum { THREADS = 128 };

struct device {
    struct part part;
    float *in, *out;
    float *host[2][SIDES], *packed; /* sent and received; a plane on the GPU */
    int *values;                    /* on the GPU: VALUES_MAX a side, outwards and inwards */
    cudaStream_t shell, inside;
    double transfer;
};

static void require(cudaError_t error, const char *what) {
    if (error != cudaSuccess)
        device_fail(what, cudaGetErrorString(error));
}

static size_t field_bytes(const struct device *device) {
    return part_volume(device->part) * (size_t)part_values(device->part) * sizeof(float);
}

extern "C" struct device *device_open(struct part part, int rank) {
    struct device *device = (struct device *)calloc(1, sizeof *device);
    int count = 0;
    size_t largest = 0;
    if (!device)
        device_fail("memory", "the system has none left");
    require(cudaGetDeviceCount(&count), "a GPU");
    require(cudaSetDevice(rank % count), "a GPU");
    device->part = part;
    require(cudaMalloc(&device->in, field_bytes(device)), "memory of the GPU");
    require(cudaMalloc(&device->out, field_bytes(device)), "memory of the GPU");
    require(cudaMalloc(&device->values, 2 * SIDES * VALUES_MAX * sizeof(int)), "memory of the GPU");
    for (int side = 0; side < SIDES; side++) {
        size_t bytes = side_floats(part, (enum side)side) * sizeof(float);
        largest = bytes > largest ? bytes : largest;
        for (int halo = 0; halo < 2; halo++) {
            int values[VALUES_MAX];
            side_values(part, (enum side)side, halo, values);
            require(cudaMallocHost(&device->host[halo][side], bytes), "pinned memory");
            require(cudaMemcpy(device->values + (halo * SIDES + side) * VALUES_MAX, values, sizeof values,
                               cudaMemcpyHostToDevice),
                    "a copy to the GPU");
        }
    }
    require(cudaMalloc(&device->packed, largest), "memory of the GPU");
    require(cudaStreamCreateWithFlags(&device->shell, cudaStreamNonBlocking), "a stream");
    require(cudaStreamCreateWithFlags(&device->inside, cudaStreamNonBlocking), "a stream");
    return device;
}

extern "C" void device_close(struct device *device) {
    for (int side = 0; side < SIDES; side++)
        for (int halo = 0; halo < 2; halo++)
            cudaFreeHost(device->host[halo][side]);
    cudaFree(device->packed);
    cudaFree(device->values);
    cudaFree(device->in);
    cudaFree(device->out);
    cudaStreamDestroy(device->shell);
    cudaStreamDestroy(device->inside);
    free(device);
}

extern "C" const char *device_name(void) {
    static struct cudaDeviceProp properties;
    int number = 0;
    require(cudaGetDevice(&number), "a GPU");
    require(cudaGetDeviceProperties(&properties, number), "a GPU");
    return properties.name;
}

extern "C" void device_write(struct device *device, const float *values) {
    require(cudaMemcpy(device->in, values, field_bytes(device), cudaMemcpyHostToDevice), "a copy to the GPU");
    require(cudaMemcpy(device->out, values, field_bytes(device), cudaMemcpyHostToDevice),
            "a copy to the GPU");
    /* A copy from memory that is not pinned may be on its way still, and our streams do not wait for it. */
    require(cudaDeviceSynchronize(), "a copy to the GPU");
}

extern "C" void device_read(struct device *device, float *values) {
    device_wait(device); /* nor does this copy wait for our streams */
    require(cudaMemcpy(values, device->in, field_bytes(device), cudaMemcpyDeviceToHost),
            "a copy from the GPU");
}

__global__ static void update(const float *__restrict__ in, float *__restrict__ out, struct part part,
                              struct box box) {
    int x = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    int y = box.y0 + (int)blockIdx.y, z = box.z0 + (int)blockIdx.z;
    if (x < part.nx)
        update_point(in, out, part, part_row(part, y, z), x, x > 0 ? x - 1 : part.nx - 1,
                     x < part.nx - 1 ? x + 1 : 0);
}

extern "C" void device_update(struct device *device, struct box box, int shell) {
    if (box.y1 <= box.y0 || box.z1 <= box.z0)
        return;
    dim3 blocks((unsigned)(device->part.nx + THREADS - 1) / THREADS, (unsigned)(box.y1 - box.y0),
                (unsigned)(box.z1 - box.z0));
    update<<<blocks, THREADS, 0, shell ? device->shell : device->inside>>>(device->in, device->out,
                                                                           device->part, box);
    require(cudaGetLastError(), "the update on the GPU");
}

extern "C" void device_wait(struct device *device) {
    require(cudaStreamSynchronize(device->shell), "the update on the GPU");
    require(cudaStreamSynchronize(device->inside), "the update on the GPU");
}

/* Between the plane of a side and PACKED, value after value. */
__global__ static void copy_plane(float *field, float *packed, const int *values, struct part part,
                                  struct box box, int halo) {
    int x = (int)(blockIdx.x * blockDim.x + threadIdx.x), rows = (box.y1 - box.y0) * (box.z1 - box.z0);
    int y = box.y0 + (int)blockIdx.y % (box.y1 - box.y0), z = box.z0 + (int)blockIdx.y / (box.y1 - box.y0);
    if (x >= part.nx)
        return;
    float *at = field + (size_t)values[blockIdx.z] * part_volume(part) + part_row(part, y, z) + x;
    float *in_plane = packed + ((size_t)blockIdx.z * rows + blockIdx.y) * part.nx + x;
    *(halo ? at : in_plane) = *(halo ? in_plane : at);
}

static void move_plane(struct device *device, enum side side, int halo) {
    int unused[VALUES_MAX], count = side_values(device->part, side, halo, unused);
    struct box box = side_plane(device->part, side, halo);
    dim3 blocks((unsigned)(device->part.nx + THREADS - 1) / THREADS,
                (unsigned)((box.y1 - box.y0) * (box.z1 - box.z0)), (unsigned)count);
    copy_plane<<<blocks, THREADS, 0, device->shell>>>(device->out, device->packed,
                                                      device->values + (halo * SIDES + side) * VALUES_MAX,
                                                      device->part, box, halo);
    require(cudaGetLastError(), "the copy of a plane");
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Only the copies are transfer; what they wait for is not. */
extern "C" float *device_take(struct device *device, enum side side) {
    move_plane(device, side, 0);
    require(cudaStreamSynchronize(device->shell), "the update on the GPU");
    double begun = now();
    require(cudaMemcpyAsync(device->host[0][side], device->packed,
                            side_floats(device->part, side) * sizeof(float), cudaMemcpyDeviceToHost,
                            device->shell),
            "a copy from the GPU");
    require(cudaStreamSynchronize(device->shell), "a copy from the GPU");
    device->transfer += now() - begun;
    return device->host[0][side];
}

extern "C" float *device_space(struct device *device, enum side side) {
    return device->host[1][side];
}

extern "C" void device_put(struct device *device, enum side side) {
    require(cudaStreamSynchronize(device->shell), "the copy of a plane");
    double begun = now();
    require(cudaMemcpyAsync(device->packed, device->host[1][side],
                            side_floats(device->part, side) * sizeof(float), cudaMemcpyHostToDevice,
                            device->shell),
            "a copy to the GPU");
    require(cudaStreamSynchronize(device->shell), "a copy to the GPU");
    device->transfer += now() - begun;
    move_plane(device, side, 1);
}

extern "C" void device_swap(struct device *device) {
    float *written = device->out;
    device->out = device->in;
    device->in = written;
}

extern "C" double device_transfer(const struct device *device) {
    return device->transfer;
}
