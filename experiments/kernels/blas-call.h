/*
 * The calls that are measured: those of BLAS that HPL makes, as it makes them, and what HPL does to memory
 * besides. Everything is column major.
 *
 *     dgemm   C -= A B'       A m x k, B n x k, C m x n: the update (HPL_pdupdateTT)
 *     dtrsm   C = C inv(T)    C m x n, T upper, of order n, ones on its diagonal: the update
 *     dgemv   y -= A x        A m x n: in a panel
 *     dger    C -= x y'       C m x n: in a panel
 *     dtrsv   x = inv(T) x    T upper, of order n, ones on its diagonal: the last solve
 *     dswap   x <-> y         n elements, `inc` apart, both in C
 *     dcopy   y = x           likewise
 *     daxpy   y -= x          likewise
 *     dscal   x *= -1         likewise
 *     idamax  i of max |x|    likewise
 *     dlaswp  row i of C <-> row p(i) below it, i = 0 to m - 1, in n columns, 32 at a time (HPL_dlaswp00N)
 *     dlacpy  C = A           both m x n (HPL_dlacpy)
 *     dlatcpy C = B'          C m x n, B n x m (HPL_dlatcpy)
 *     empty   nothing: what is timed of a row when nothing is done
 *
 * A, B and C have the leading dimensions lda, ldb and ldc; T is stored without gaps, as HPL's is.
 * Only C is written to. It gets no compound growth from that: nothing computed from C comes into A, B or T.
 */
#ifndef ASSAY_KERNELS_BLAS_CALL_H
#define ASSAY_KERNELS_BLAS_CALL_H

#include "blas-library.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum blas_kernel {
    BLAS_DGEMM,
    BLAS_DTRSM,
    BLAS_DGEMV,
    BLAS_DGER,
    BLAS_DTRSV,
    BLAS_DSWAP,
    BLAS_DCOPY,
    BLAS_DAXPY,
    BLAS_DSCAL,
    BLAS_IDAMAX,
    BLAS_DLASWP,
    BLAS_DLACPY,
    BLAS_DLATCPY,
    BLAS_EMPTY,
    BLAS_KERNELS,
};
extern const char *const blas_kernel_names[]; /* NULL at the end */

enum blas_operand { BLAS_A, BLAS_B, BLAS_C, BLAS_T, BLAS_OPERANDS };

struct blas_call {
    enum blas_kernel kernel;
    bool is_single;
    int m, n, k, lda, ldb, ldc, inc;
    blas_function *function; /* of the BLAS; NULL: the kernel is a loop of ours */
    void *operands[BLAS_OPERANDS];
    const int *pivots; /* of dlaswp: m of them, from i to ldc - 1 */
    int found;         /* of idamax, from 1 */
};

/* The Fortran symbol of the kernel, such as "sgemm_"; NULL: it is no BLAS function. Valid until the next
 * call. */
const char *blas_call_symbol(enum blas_kernel kernel, bool is_single);
/* The rows and columns of an operand, and the elements that it reaches over in memory; all 0: the kernel has
 * no such operand. A vector has one row, and its elements are columns. */
struct blas_extent {
    int rows, columns, leading;
    uint64_t elements;
};
struct blas_extent blas_call_extent(const struct blas_call *call, enum blas_operand which);
/* Floating-point operations, by their highest order; elements, of a kernel that has none. */
double blas_call_operations(const struct blas_call *call);
/* Bytes that are read, and bytes that are written, where nothing is read or written twice. */
double blas_call_bytes(const struct blas_call *call);

/* Makes the call; sets `found` of idamax. */
void blas_call_run(struct blas_call *call);

/* Compares one small call with plain loops; a wrong result ends the program. The elements are small whole
 * numbers, so that every order of summation is exact. It also makes the library initialize itself. */
void blas_call_check(const struct blas_library *library, enum blas_kernel kernel, bool is_single);

#endif
