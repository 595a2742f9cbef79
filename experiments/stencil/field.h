/*
 * The values on the points of a rank's part of the mesh, and how a point is updated: the same code for C and
 * for CUDA. Equations (6) to (8) of T. Shimokawabe, T. Aoki, N. Onodera, "Scalability model for multi-GPU
 * computation of stencil applications using regular structured meshes with explicit time integration".
 */
#ifndef ASSAY_STENCIL_FIELD_H
#define ASSAY_STENCIL_FIELD_H

#include <stddef.h>

#ifdef __CUDACC__
#define STENCIL_POINT static __host__ __device__ __forceinline__
#else
#define STENCIL_POINT static inline __attribute__((always_inline)) /* or no loop over it is vectorized */
#endif

/* The discrete velocities of D3Q19: number, components, weight. */
#define D3Q19(X)                                                                                             \
    X(0, 0, 0, 0, 1.0f / 3)                                                                                  \
    X(1, 1, 0, 0, 1.0f / 18)                                                                                 \
    X(2, -1, 0, 0, 1.0f / 18)                                                                                \
    X(3, 0, 1, 0, 1.0f / 18)                                                                                 \
    X(4, 0, -1, 0, 1.0f / 18)                                                                                \
    X(5, 0, 0, 1, 1.0f / 18)                                                                                 \
    X(6, 0, 0, -1, 1.0f / 18)                                                                                \
    X(7, 1, 1, 0, 1.0f / 36)                                                                                 \
    X(8, -1, -1, 0, 1.0f / 36)                                                                               \
    X(9, 1, -1, 0, 1.0f / 36)                                                                                \
    X(10, -1, 1, 0, 1.0f / 36)                                                                               \
    X(11, 1, 0, 1, 1.0f / 36)                                                                                \
    X(12, -1, 0, -1, 1.0f / 36)                                                                              \
    X(13, 1, 0, -1, 1.0f / 36)                                                                               \
    X(14, -1, 0, 1, 1.0f / 36)                                                                               \
    X(15, 0, 1, 1, 1.0f / 36)                                                                                \
    X(16, 0, -1, -1, 1.0f / 36)                                                                              \
    X(17, 0, 1, -1, 1.0f / 36)                                                                               \
    X(18, 0, -1, 1, 1.0f / 36)

enum problem { DIFFUSION, LBM };

/* Coefficients of the diffusion with kappa dt/dx^2 = 1/8; they and their sum, 1, are exact. */
#define DIFFUSION_CENTRE 0.25f
#define DIFFUSION_NEIGHBOUR 0.125f
/* dt/tau of the collisions. */
#define LBM_OMEGA 1.25f

enum {
    DIFFUSION_FLOPS = 13, /* 7 products and 6 sums a point */
    /* 18 sums for the density, 27 and 4 for the velocity, 7 for its square; of each direction 7 for the
     * equilibrium (2 at rest) and 3 for the relaxation, and 1 more for the 12 diagonal ones. */
    LBM_FLOPS = 18 + 27 + 4 + 7 + 18 * 7 + 2 + 19 * 3 + 12,
    /* Read and written a point, as if nothing were in a cache: the source's 13/32 flop per byte for the
       diffusion. */
    DIFFUSION_FLOATS = 7 + 1,
    LBM_FLOATS = 19 + 19,
    VALUES_MAX = 19
};

/* A part of the mesh, with a plane of halo on both sides of y and z; it is periodic in x. Value V of point
 * (x, y, z) is at V * volume + (z * (ny + 2) + y) * nx + x, with y from 0, the halo, to ny + 1, and z
 * likewise. */
struct part {
    int nx, ny, nz;
    enum problem problem;
};

/* Rows of the part: y from Y0 and z from Z0, both to before the end. */
struct box {
    int y0, y1, z0, z1;
};

STENCIL_POINT size_t part_volume(struct part part) {
    return (size_t)part.nx * (size_t)(part.ny + 2) * (size_t)(part.nz + 2);
}

STENCIL_POINT size_t part_row(struct part part, int y, int z) {
    return ((size_t)z * (size_t)(part.ny + 2) + (size_t)y) * (size_t)part.nx;
}

STENCIL_POINT int part_values(struct part part) {
    return part.problem == LBM ? 19 : 1;
}

/* Updates a point by diffusion. ROW: index of the first value of the point's row; X: its place in the row,
 * with the neighbours BEFORE and BEHIND. */
STENCIL_POINT void update_diffusion(const float *in, float *out, struct part part, size_t row, int x,
                                    int before, int behind) {
    size_t plane = (size_t)part.nx * (size_t)(part.ny + 2);
    const float *at = in + row;
    out[row + (size_t)x] = DIFFUSION_CENTRE * at[x] + DIFFUSION_NEIGHBOUR * at[before] +
                           DIFFUSION_NEIGHBOUR * at[behind] + DIFFUSION_NEIGHBOUR * (at - part.nx)[x] +
                           DIFFUSION_NEIGHBOUR * (at + part.nx)[x] + DIFFUSION_NEIGHBOUR * (at - plane)[x] +
                           DIFFUSION_NEIGHBOUR * (at + plane)[x];
}

/* V times C, which is -1, 0 or 1, without an operation: compilers leave out a sum with -0, which changes
 * nothing, but not a product with 0, since V may be infinite. */
#define STENCIL_TERM(C, V) ((C) == 0 ? -0.0f : (C) > 0 ? (V) : -(V))

/* Updates a point by lattice Boltzmann: gathers the neighbours' values (streaming), then relaxes them towards
 * equilibrium with one relaxation time (BGK collision). */
STENCIL_POINT void update_lbm(const float *in, float *out, struct part part, size_t row, int x, int before,
                              int behind) {
    size_t volume = part_volume(part);
    ptrdiff_t line = part.nx, plane = line * (part.ny + 2);
    float density = -0.0f, ux = -0.0f, uy = -0.0f, uz = -0.0f;
#define GATHER(I, CX, CY, CZ, W)                                                                             \
    const float f##I = (in + (size_t)I * volume + row)[(CX == 0  ? x                                         \
                                                        : CX > 0 ? before                                    \
                                                                 : behind) -                                 \
                                                       (CY)*line - (CZ)*plane];                              \
    density += f##I;                                                                                         \
    ux += STENCIL_TERM(CX, f##I);                                                                            \
    uy += STENCIL_TERM(CY, f##I);                                                                            \
    uz += STENCIL_TERM(CZ, f##I);
    D3Q19(GATHER)
#undef GATHER
    float inverse = 1 / density;
    ux *= inverse;
    uy *= inverse;
    uz *= inverse;
    float rest = 1 - 1.5f * (ux * ux + uy * uy + uz * uz);
#define COLLIDE(I, CX, CY, CZ, W)                                                                            \
    {                                                                                                        \
        float along = STENCIL_TERM(CX, ux) + STENCIL_TERM(CY, uy) + STENCIL_TERM(CZ, uz);                    \
        float equilibrium = (W)*density * (rest + 3 * along + 4.5f * along * along);                         \
        (out + (size_t)I * volume + row)[x] = f##I - LBM_OMEGA * (f##I - equilibrium);                       \
    }
    D3Q19(COLLIDE)
#undef COLLIDE
}

STENCIL_POINT void update_point(const float *in, float *out, struct part part, size_t row, int x, int before,
                                int behind) {
    if (part.problem == LBM)
        update_lbm(in, out, part, row, x, before, behind);
    else
        update_diffusion(in, out, part, row, x, before, behind);
}

/* The four sides that have neighbours. What crosses a side: the values whose velocities point through it. */
enum side { Y_LOW, Y_HIGH, Z_LOW, Z_HIGH, SIDES };

/* Sets RET to the numbers of the values that cross SIDE outwards or, with HALO, inwards. Returns their
 * number. */
static inline int side_values(struct part part, enum side side, int halo, int ret[VALUES_MAX]) {
    const int outwards = (side == Y_LOW || side == Z_LOW ? -1 : 1) * (halo ? -1 : 1);
    int count = 0;
    ret[0] = 0;
    if (part.problem == DIFFUSION)
        return 1;
#define CROSSES(I, CX, CY, CZ, W)                                                                            \
    if ((side < Z_LOW ? CY : CZ) == outwards)                                                                \
        ret[count++] = I;
    D3Q19(CROSSES)
#undef CROSSES
    return count;
}

/* The plane that is sent through SIDE or, with HALO, the halo plane that is received there. Planes of z
 * include the halos of y, received before, so that edges reach the diagonal neighbours. */
static inline struct box side_plane(struct part part, enum side side, int halo) {
    int low = halo ? 0 : 1, y = halo ? part.ny + 1 : part.ny, z = halo ? part.nz + 1 : part.nz;
    switch (side) {
    case Y_LOW:
        return (struct box){low, low + 1, 1, part.nz + 1};
    case Y_HIGH:
        return (struct box){y, y + 1, 1, part.nz + 1};
    case Z_LOW:
        return (struct box){0, part.ny + 2, low, low + 1};
    default:
        return (struct box){0, part.ny + 2, z, z + 1};
    }
}

static inline size_t side_floats(struct part part, enum side side) {
    int values[VALUES_MAX];
    return (size_t)side_values(part, side, 0, values) * (size_t)part.nx *
           (size_t)(side < Z_LOW ? part.nz : part.ny + 2);
}

#endif
