/*
 * Explicit time steps on a regular mesh, decomposed over the ranks of MPI in y and z: diffusion, or a lattice
 * Boltzmann method (D3Q19), in single precision, periodic in all directions. First a small mesh, on the same
 * ranks, is compared with a serial reference in double precision; then the mesh that was asked for is timed,
 * and its mass is added up before and after.
 *
 * Exit codes: 0 done, 1 the system, MPI or the device failed, 2 an option is wrong.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "device.h"

#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP_STEPS = 2, CHECK_STEPS = 6, CHECK_X = 12, CHECK_Y = 3, CHECK_Z = 4, MESH_MAX = 1 << 20 };

struct options {
    enum problem problem;
    int mesh[3];  /* points in x, y, z */
    int parts[2]; /* in y, z */
    int steps;
    bool overlap;
};

struct simulation {
    const struct options *options;
    struct part part;
    int y, z; /* the first point of this rank's part */
    int neighbours[SIDES];
    struct device *device;
    MPI_Request requests[2 * 2];
    double exchange; /* s */
};

static int rank, ranks, local_rank;

void device_fail(const char *what, const char *why) {
    fprintf(stderr, "stencil: rank %d: %s: %s\n", rank, what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        device_fail("memory for the mesh", "the system has none left");
    return memory;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- Initial values, which every rank computes for itself */

static const float weights[] = {
#define WEIGHT(I, CX, CY, CZ, W) W,
    D3Q19(WEIGHT)
#undef WEIGHT
};
static const int velocities[][3] = {
#define VELOCITY(I, CX, CY, CZ, W) {CX, CY, CZ},
    D3Q19(VELOCITY)
#undef VELOCITY
};

/* The initial value number VALUE at a point of the whole mesh: pseudo-random in all directions, so that a
 * misplaced value shows, and large enough that squares of velocities matter. */
static float initial_value(enum problem problem, int value, int x, int y, int z) {
    uint64_t bits = ((uint64_t)value << 60 ^ (uint64_t)x << 40 ^ (uint64_t)y << 20 ^ (uint64_t)z) + 1;
    bits *= 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 31) * 0xbf58476d1ce4e5b9u;
    float noise = (float)(bits >> 40) / (float)(1 << 24);
    return (problem == LBM ? weights[value] : 1) * (1 + 0.5f * noise);
}

/* ---- The halos */

static const enum side opposite[] = {Y_HIGH, Y_LOW, Z_HIGH, Z_LOW};

/* Starts to send and receive the planes of the sides LOW and LOW + 1. The tag is the sender's side, since
 * with two parts both neighbours are the same rank. */
static void begin_exchange(struct simulation *simulation, enum side low) {
    MPI_Request *request = simulation->requests;
    for (enum side side = low; side <= low + 1; side++) {
        int count = (int)side_floats(simulation->part, side), neighbour = simulation->neighbours[side];
        MPI_Irecv(device_space(simulation->device, side), count, MPI_FLOAT, neighbour, (int)opposite[side],
                  MPI_COMM_WORLD, request++);
        MPI_Isend(device_take(simulation->device, side), count, MPI_FLOAT, neighbour, (int)side,
                  MPI_COMM_WORLD, request++);
    }
}

/* Waits for the exchange, and puts what was received into the halos. */
static void end_exchange(struct simulation *simulation, enum side low) {
    MPI_Waitall(4, simulation->requests, MPI_STATUSES_IGNORE);
    device_put(simulation->device, low);
    device_put(simulation->device, low + 1);
}

/* Adds to SIMULATION->exchange what DO takes. */
#define EXCHANGING(DO)                                                                                       \
    do {                                                                                                     \
        double begun = now();                                                                                \
        DO;                                                                                                  \
        simulation->exchange += now() - begun;                                                               \
    } while (0)

static void update_all(struct simulation *simulation) {
    device_update(simulation->device, (struct box){1, simulation->part.ny + 1, 1, simulation->part.nz + 1},
                  1);
    device_wait(simulation->device);
}

/* Updates the outer points of the part, which the neighbours need. */
static void update_shell(struct simulation *simulation) {
    const int ny = simulation->part.ny, nz = simulation->part.nz;
    device_update(simulation->device, (struct box){1, 2, 1, nz + 1}, 1);
    device_update(simulation->device, (struct box){ny, ny + 1, 1, nz + 1}, 1);
    device_update(simulation->device, (struct box){2, ny, 1, 2}, 1);
    device_update(simulation->device, (struct box){2, ny, nz, nz + 1}, 1);
}

/* Updates the lower or the upper half of the points within the shell, while halos are exchanged. */
static void update_inside(struct simulation *simulation, bool is_upper) {
    const int ny = simulation->part.ny, nz = simulation->part.nz, half = 2 + (nz - 2) / 2;
    device_update(simulation->device, (struct box){2, ny, is_upper ? half : 2, is_upper ? nz : half}, 0);
}

/* Does the updates of a step with overlap, without its exchange. */
static void update_pieces(struct simulation *simulation) {
    update_shell(simulation);
    update_inside(simulation, false);
    update_inside(simulation, true);
    device_wait(simulation->device);
}

/* One time step: updates all points and exchanges halos, first in y, then in z. With overlap each exchange
 * runs during the update of one half of the inside. */
static void step(struct simulation *simulation) {
    struct device *device = simulation->device;
    if (!simulation->options->overlap) {
        update_all(simulation);
        EXCHANGING(begin_exchange(simulation, Y_LOW); end_exchange(simulation, Y_LOW));
        EXCHANGING(begin_exchange(simulation, Z_LOW); end_exchange(simulation, Z_LOW); device_wait(device));
    } else { /* z waits for y, for the edges; each is hidden behind a half of the inside */
        update_shell(simulation);
        EXCHANGING(begin_exchange(simulation, Y_LOW));
        update_inside(simulation, false);
        EXCHANGING(end_exchange(simulation, Y_LOW); begin_exchange(simulation, Z_LOW));
        update_inside(simulation, true);
        EXCHANGING(end_exchange(simulation, Z_LOW));
        device_wait(device);
    }
    device_swap(device);
}

/* ---- A mesh */

/* Sets up this rank's part of the mesh, its neighbours, and the device; the caller closes the device. */
static void open_simulation(struct simulation *simulation, const struct options *options) {
    const int *parts = options->parts, at[] = {rank % parts[0], rank / parts[0]};
    *simulation = (struct simulation){.options = options,
                                      .part = {options->mesh[0], options->mesh[1] / parts[0],
                                               options->mesh[2] / parts[1], options->problem}};
    simulation->y = at[0] * simulation->part.ny;
    simulation->z = at[1] * simulation->part.nz;
    simulation->neighbours[Y_LOW] = at[1] * parts[0] + (at[0] + parts[0] - 1) % parts[0];
    simulation->neighbours[Y_HIGH] = at[1] * parts[0] + (at[0] + 1) % parts[0];
    simulation->neighbours[Z_LOW] = (at[1] + parts[1] - 1) % parts[1] * parts[0] + at[0];
    simulation->neighbours[Z_HIGH] = (at[1] + 1) % parts[1] * parts[0] + at[0];
    simulation->device = device_open(simulation->part, local_rank);
}

/* Sets the initial values of the part; those of its halos are the neighbours'. */
static void fill(struct simulation *simulation) {
    const struct part part = simulation->part;
    const int *mesh = simulation->options->mesh;
    float *values = allocate(part_volume(part) * (size_t)part_values(part), sizeof *values), *at = values;
    for (int v = 0; v < part_values(part); v++)
        for (int z = 0; z < part.nz + 2; z++)
            for (int y = 0; y < part.ny + 2; y++)
                for (int x = 0; x < part.nx; x++)
                    *at++ = initial_value(part.problem, v, x, (simulation->y + y - 1 + mesh[1]) % mesh[1],
                                          (simulation->z + z - 1 + mesh[2]) % mesh[2]);
    device_write(simulation->device, values);
    free(values);
}

/* Calls VISIT for each value of the part, without its halos, as it is now. */
static void visit(struct simulation *simulation,
                  void (*visit_value)(void *context, int v, int x, int y, int z, float value),
                  void *context) {
    const struct part part = simulation->part;
    float *values = allocate(part_volume(part) * (size_t)part_values(part), sizeof *values);
    device_read(simulation->device, values);
    for (int v = 0; v < part_values(part); v++)
        for (int z = 1; z <= part.nz; z++)
            for (int y = 1; y <= part.ny; y++)
                for (int x = 0; x < part.nx; x++)
                    visit_value(context, v, x, simulation->y + y - 1, simulation->z + z - 1,
                                values[(size_t)v * part_volume(part) + part_row(part, y, z) + (size_t)x]);
    free(values);
}

static void add_mass(void *context, int v, int x, int y, int z, float value) {
    (void)v, (void)x, (void)y, (void)z;
    *(double *)context += (double)value;
}

/* The sum of all values over all ranks. Collective. */
static double total_mass(struct simulation *simulation) {
    double mass = 0;
    visit(simulation, add_mass, &mass);
    MPI_Allreduce(MPI_IN_PLACE, &mass, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return mass;
}

/* ---- The reference: the whole mesh in double precision, by the published formulas */

struct whole {
    const struct options *options;
    double *values, *next;
};

/* The place of a value in an array of the whole mesh, which is periodic. */
static double *value_at(const struct whole *whole, double *values, int v, int x, int y, int z) {
    const int *mesh = whole->options->mesh;
    size_t wrapped[] = {(size_t)((x + mesh[0]) % mesh[0]), (size_t)((y + mesh[1]) % mesh[1]),
                        (size_t)((z + mesh[2]) % mesh[2])};
    return values +
           (((size_t)v * (size_t)mesh[2] + wrapped[2]) * (size_t)mesh[1] + wrapped[1]) * (size_t)mesh[0] +
           wrapped[0];
}

/* Updates one point by the diffusion equation, with kappa dt/dx^2 = 1/8. */
static void reference_diffusion(struct whole *whole, int x, int y, int z) {
    double sum = -6 * *value_at(whole, whole->values, 0, x, y, z);
    for (int away = -1; away <= 1; away += 2)
        sum += *value_at(whole, whole->values, 0, x + away, y, z) +
               *value_at(whole, whole->values, 0, x, y + away, z) +
               *value_at(whole, whole->values, 0, x, y, z + away);
    *value_at(whole, whole->next, 0, x, y, z) = *value_at(whole, whole->values, 0, x, y, z) + sum / 8;
}

/* Updates one point by the lattice Boltzmann method: streaming, then collision with one relaxation time
 * (BGK). */
static void reference_lbm(struct whole *whole, int x, int y, int z) {
    double values[VALUES_MAX], density = 0, u[3] = {0}, square = 0;
    for (int i = 0; i < VALUES_MAX; i++) {
        const int *c = velocities[i];
        values[i] = *value_at(whole, whole->values, i, x - c[0], y - c[1], z - c[2]);
        density += values[i];
        for (int d = 0; d < 3; d++)
            u[d] += c[d] * values[i];
    }
    for (int d = 0; d < 3; d++) {
        u[d] /= density;
        square += u[d] * u[d];
    }
    for (int i = 0; i < VALUES_MAX; i++) {
        double along = 0, weight = 1 / round(1 / (double)weights[i]);
        for (int d = 0; d < 3; d++)
            along += velocities[i][d] * u[d];
        double equilibrium = weight * density * (1 + 3 * along + 9 * along * along / 2 - 3 * square / 2);
        *value_at(whole, whole->next, i, x, y, z) = values[i] - (double)LBM_OMEGA * (values[i] - equilibrium);
    }
}

/* Computes the whole mesh, from its initial values, over STEPS. */
static void compute_reference(struct whole *whole, int values, int steps) {
    const int *mesh = whole->options->mesh;
    enum problem problem = whole->options->problem;
    for (int v = 0; v < values; v++)
        for (int z = 0; z < mesh[2]; z++)
            for (int y = 0; y < mesh[1]; y++)
                for (int x = 0; x < mesh[0]; x++)
                    *value_at(whole, whole->values, v, x, y, z) = (double)initial_value(problem, v, x, y, z);
    for (int i = 0; i < steps; i++) {
        for (int z = 0; z < mesh[2]; z++)
            for (int y = 0; y < mesh[1]; y++)
                for (int x = 0; x < mesh[0]; x++)
                    (problem == LBM ? reference_lbm : reference_diffusion)(whole, x, y, z);
        double *values_now = whole->next;
        whole->next = whole->values;
        whole->values = values_now;
    }
}

struct comparison {
    struct whole whole;
    double worst;
};

static void compare_value(void *context, int v, int x, int y, int z, float value) {
    struct comparison *comparison = context;
    double expected = *value_at(&comparison->whole, comparison->whole.values, v, x, y, z);
    double difference = fabs((double)value - expected) / fabs(expected);
    comparison->worst = isnan(difference) ? INFINITY : fmax(difference, comparison->worst);
}

/* Runs CHECK_STEPS on a small mesh with the same parts. Returns the largest relative difference from the
 * serial reference, over all values and ranks; infinite if a value is not a number. */
static double compare_with_reference(const struct options *asked) {
    struct options options = *asked;
    options.mesh[0] = CHECK_X;
    options.mesh[1] = CHECK_Y * options.parts[0];
    options.mesh[2] = CHECK_Z * options.parts[1];
    struct simulation simulation;
    open_simulation(&simulation, &options);
    fill(&simulation);
    for (int i = 0; i < CHECK_STEPS; i++)
        step(&simulation);
    int values = part_values(simulation.part);
    size_t count =
        (size_t)values * (size_t)options.mesh[0] * (size_t)options.mesh[1] * (size_t)options.mesh[2];
    double *memory = allocate(2 * count, sizeof *memory);
    struct comparison comparison = {{&options, memory, memory + count}, 0};
    compute_reference(&comparison.whole, values, CHECK_STEPS);
    visit(&simulation, compare_value, &comparison);
    MPI_Allreduce(MPI_IN_PLACE, &comparison.worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    free(memory);
    device_close(simulation.device);
    return comparison.worst;
}

/* ---- What is timed */

/* Times per step in s, on the slowest rank; least_*: in the fastest step, which other programs disturb least.
 */
struct times {
    double step, compute, exchange, transfer, least_step, least_compute;
};

/* Runs all steps by ADVANCE. Returns their time in s on this rank; *RET_LEAST and *RET_LEAST_COMPUTE become
 * the least time of a step, with and without its exchange, on the slowest rank of that step. */
static double time_of(struct simulation *simulation, void (*advance)(struct simulation *), double *ret_least,
                      double *ret_least_compute) {
    const int steps = simulation->options->steps;
    double *laps = allocate(2 * (size_t)steps, sizeof *laps), *computes = laps + steps;
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now(), before = begun;
    for (int i = 0; i < steps; i++) {
        double exchange = simulation->exchange;
        advance(simulation);
        laps[i] = now() - before;
        computes[i] = laps[i] - (simulation->exchange - exchange);
        before += laps[i];
    }
    MPI_Allreduce(MPI_IN_PLACE, laps, 2 * steps, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    *ret_least = *ret_least_compute = INFINITY;
    for (int i = 0; i < steps; i++) {
        *ret_least = fmin(*ret_least, laps[i]);
        *ret_least_compute = fmin(*ret_least_compute, computes[i]);
    }
    free(laps);
    return before - begun;
}

/* Times all steps after a warm-up, and sets *RET_MASS to the mass after them. Collective. */
static struct times time_steps(struct simulation *simulation, double *ret_mass) {
    for (int i = 0; i < WARM_UP_STEPS; i++)
        step(simulation);
    simulation->exchange = 0;
    double least, least_compute;
    double before = device_transfer(simulation->device),
           taken = time_of(simulation, step, &least, &least_compute),
           transfer = device_transfer(simulation->device) - before, steps = simulation->options->steps;
    *ret_mass = total_mass(simulation);
    /* What a GPU updates during an exchange is in no other time than that of the updates by themselves. */
    double compute = taken - simulation->exchange, unused;
    if (simulation->options->overlap)
        compute = time_of(simulation, update_pieces, &unused, &least_compute);
    double all[] = {taken, compute, simulation->exchange - transfer, transfer};
    MPI_Allreduce(MPI_IN_PLACE, all, 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return (struct times){all[0] / steps, all[1] / steps, all[2] / steps,
                          all[3] / steps, least,          least_compute};
}

/* Times the mesh that was asked for; rank 0 prints times, rates and the change of mass. */
static void measure(const struct options *options) {
    struct simulation simulation;
    open_simulation(&simulation, options);
    fill(&simulation);
    double before = total_mass(&simulation), after, steps = options->steps + WARM_UP_STEPS;
    struct times times = time_steps(&simulation, &after);
    double points = (double)options->mesh[0] * options->mesh[1] * options->mesh[2];
    double flops = (options->problem == LBM ? LBM_FLOPS : DIFFUSION_FLOPS) * points;
    double bytes = 4.0 * (options->problem == LBM ? LBM_FLOATS : DIFFUSION_FLOATS) * points;
    size_t sent = 0;
    for (int side = 0; side < SIDES; side++)
        sent += side_floats(simulation.part, (enum side)side) * sizeof(float);
    if (rank == 0) {
        printf("device %s\n", device_name());
        printf("mass changes by %.3e a step\n", fabs(after - before) / before / steps);
        printf("step %.9f compute %.9f exchange %.9f transfer %.9f s\n", times.step, times.compute,
               times.exchange, times.transfer);
        printf("least step %.9f computing %.9f s\n", times.least_step, times.least_compute);
        printf("sent %zu flops %.0f bytes %.0f\n", sent, flops / ranks, bytes / ranks);
        printf("rate %.6e points %.6e device %.6e\n", flops / times.step, points / times.step,
               flops / ranks / times.compute);
    }
    device_close(simulation.device);
}

/* ---- Options */

/* Rank 0 prints the sentence and the usage; all ranks exit with code 2. */
__attribute__((noreturn)) static void refuse(const char *what) {
    if (rank == 0)
        fprintf(
            stderr,
            "stencil: %s\n"
            "usage: stencil diffusion|lbm X,Y,Z PARTS_Y,PARTS_Z STEPS OVERLAP\n"
            "  X,Y,Z            points of the whole mesh; X at least 3\n"
            "  PARTS_Y,PARTS_Z  ranks in y and in z, of which the points there are multiples; together: the "
            "ranks\n"
            "  OVERLAP          no, or yes: halos are exchanged while the inside is updated\n",
            what);
    MPI_Finalize();
    exit(2);
}

/* Whether TEXT is SECOND rather than FIRST; ends the program if it is neither. */
static bool read_word(const char *text, const char *first, const char *second) {
    if (strcmp(text, first) != 0 && strcmp(text, second) != 0)
        refuse("a word is unknown");
    return strcmp(text, second) == 0;
}

/* Reads COUNT numbers from 1 to MESH_MAX, separated by commas; ends the program if TEXT is anything else. */
static void read_numbers(const char *text, int count, int *ret) {
    for (int i = 0; i < count; i++) {
        char *end;
        long number = strtol(text, &end, 10);
        if (end == text || number < 1 || number > MESH_MAX || *end != (i + 1 < count ? ',' : '\0'))
            refuse("a number is not from 1 to 1048576, or there are too many or too few "
                   "numbers");
        ret[i] = (int)number;
        text = end + 1;
    }
}

/* Reads the command line; ends the program if the mesh cannot be divided over the ranks. */
static struct options read_options(int argc, char **argv) {
    if (argc != 6)
        refuse("expected five arguments");
    struct options options = {.problem = read_word(argv[1], "diffusion", "lbm") ? LBM : DIFFUSION,
                              .overlap = read_word(argv[5], "no", "yes")};
    read_numbers(argv[2], 3, options.mesh);
    read_numbers(argv[3], 2, options.parts);
    read_numbers(argv[4], 1, &options.steps);
    if ((long)options.parts[0] * options.parts[1] != ranks)
        refuse("the number of parts, PARTS_Y times PARTS_Z, is not the number of ranks");
    if (options.mesh[1] % options.parts[0] || options.mesh[2] % options.parts[1])
        refuse("the mesh's points in y are not divisible by PARTS_Y, or those in z by PARTS_Z");
    if (options.mesh[0] < 3)
        refuse("there are fewer than 3 points in x");
    return options;
}

int main(int argc, char **argv) {
    MPI_Comm node;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local_rank);
    struct options options = read_options(argc, argv);
    double difference = compare_with_reference(&options);
    if (rank == 0)
        printf("differs by %.3e from the reference\n", difference);
    measure(&options);
    MPI_Finalize();
    return 0;
}
