#include "blas-call.h"

#include <stdio.h>
#include <string.h>

const char *const blas_kernel_names[] = {"dgemm",  "dtrsm",  "dgemv",   "dger",  "dtrsv",
                                         "dswap",  "dcopy",  "daxpy",   "dscal", "idamax",
                                         "dlaswp", "dlacpy", "dlatcpy", "empty", NULL};

/* SHAPES: rows and columns of A, B, C and T; a single letter is a vector of that length. TOUCHES: how often
 * each element is read or written. */
static const struct {
    const char *symbol; /* after s or d; of idamax, after i and that */
    const char *shapes[BLAS_OPERANDS];
    double touches[BLAS_OPERANDS];
    double factor;       /* operations: this factor */
    const char *product; /* times these sizes */
} kernels[BLAS_KERNELS] = {
    [BLAS_DGEMM] = {"gemm_", {"mk", "nk", "mn", ""}, {1, 1, 2, 0}, 2, "mnk"},
    [BLAS_DTRSM] = {"trsm_", {"", "", "mn", "nn"}, {0, 0, 2, 0.5}, 1, "mnn"},
    [BLAS_DGEMV] = {"gemv_", {"mn", "n", "m", ""}, {1, 1, 2, 0}, 2, "mn"},
    [BLAS_DGER] = {"ger_", {"m", "n", "mn", ""}, {1, 1, 2, 0}, 2, "mn"},
    [BLAS_DTRSV] = {"trsv_", {"", "", "n", "nn"}, {0, 0, 2, 0.5}, 1, "nn"},
    [BLAS_DSWAP] = {"swap_", {"", "", "n", ""}, {0, 0, 4, 0}, 1, "n"}, /* two vectors */
    [BLAS_DCOPY] = {"copy_", {"n", "", "n", ""}, {1, 0, 1, 0}, 1, "n"},
    [BLAS_DAXPY] = {"axpy_", {"n", "", "n", ""}, {1, 0, 2, 0}, 2, "n"},
    [BLAS_DSCAL] = {"scal_", {"", "", "n", ""}, {0, 0, 2, 0}, 1, "n"},
    [BLAS_IDAMAX] = {"amax_", {"n", "", "", ""}, {1, 0, 0, 0}, 1, "n"},
    [BLAS_DLASWP] = {NULL, {"", "", "mn", ""}, {0, 0, 4, 0}, 1, "mn"},
    [BLAS_DLACPY] = {NULL, {"mn", "", "mn", ""}, {1, 0, 1, 0}, 1, "mn"},
    [BLAS_DLATCPY] = {NULL, {"", "nm", "mn", ""}, {0, 1, 1, 0}, 1, "mn"},
    [BLAS_EMPTY] = {NULL, {"", "", "", ""}, {0}, 0, ""},
};

const char *blas_call_symbol(enum blas_kernel kernel, bool is_single) {
    static char symbol[16];
    if (!kernels[kernel].symbol)
        return NULL;
    snprintf(symbol, sizeof symbol, "%s%c%s", kernel == BLAS_IDAMAX ? "i" : "", is_single ? 's' : 'd',
             kernels[kernel].symbol);
    return symbol;
}

/* The size m, n or k of the call. */
static int size_of(const struct blas_call *call, char letter) {
    return letter == 'm' ? call->m : letter == 'n' ? call->n : call->k;
}

/* The rows, columns and reach in memory of an operand; all 0 if the kernel does not have it. */
struct blas_extent blas_call_extent(const struct blas_call *call, enum blas_operand which) {
    const char *shape = kernels[call->kernel].shapes[which];
    const int leading[BLAS_OPERANDS] = {call->lda, call->ldb, call->ldc, call->n};
    struct blas_extent extent = {0};
    if (!shape[0])
        return extent;
    bool is_vector = !shape[1];
    extent.rows = is_vector ? 1 : size_of(call, shape[0]);
    extent.columns = size_of(call, shape[is_vector ? 0 : 1]);
    extent.leading = is_vector ? call->inc : leading[which];
    extent.elements = (uint64_t)extent.leading * (uint64_t)(extent.columns - 1) + (uint64_t)extent.rows;
    if (call->kernel == BLAS_DSWAP)
        extent.elements *= 2;
    if (call->kernel == BLAS_DLASWP) /* down to the last row */
        extent.elements = (uint64_t)extent.leading * (uint64_t)extent.columns;
    return extent;
}

double blas_call_operations(const struct blas_call *call) {
    double operations = kernels[call->kernel].factor;
    for (const char *at = kernels[call->kernel].product; *at; at++)
        operations *= size_of(call, *at);
    return operations;
}

double blas_call_bytes(const struct blas_call *call) {
    double bytes = 0;
    for (int i = 0; i < BLAS_OPERANDS; i++) {
        struct blas_extent extent = blas_call_extent(call, (enum blas_operand)i);
        bytes += kernels[call->kernel].touches[i] * extent.rows * extent.columns;
    }
    return bytes * (call->is_single ? sizeof(float) : sizeof(double));
}

/* ---- Kernels of HPL that are no BLAS
 * -----------------------------------------------------------------------------
 */

/* Swaps each row i of C with its pivot row, as HPL_dlaswp00N does: in blocks of 32 columns. */
static void swap_rows(const struct blas_call *call, double *c) {
    enum { BLOCK = 32 }; /* columns: as many lines of the cache that are used again with the next row */
    size_t leading = (size_t)call->ldc;
    for (int block = 0; block < call->n; block += BLOCK) {
        int end = call->n - block < BLOCK ? call->n : block + BLOCK;
        for (int i = 0; i < call->m; i++) {
            for (int j = block; j < end && call->pivots[i] != i; j++) {
                double *upper = &c[(size_t)i + (size_t)j * leading],
                       *lower = &c[(size_t)call->pivots[i] + (size_t)j * leading], kept = *upper;
                *upper = *lower;
                *lower = kept;
            }
        }
    }
}

/* C = A, as HPL_dlacpy does. */
static void copy(const struct blas_call *call, const double *a, double *c) {
    for (int j = 0; j < call->n; j++)
        memcpy(c + (size_t)j * (size_t)call->ldc, a + (size_t)j * (size_t)call->lda,
               (size_t)call->m * sizeof *c);
}

/* C = B', as HPL_dlatcpy does. */
static void copy_transposed(const struct blas_call *call, const double *b, double *c) {
    size_t ldb = (size_t)call->ldb, ldc = (size_t)call->ldc;
    for (size_t j = 0; j < (size_t)call->n; j++)
        for (size_t i = 0; i < (size_t)call->m; i++)
            c[i + j * ldc] = b[j + i * ldb];
}

/* ---- The calls -------------------------------------------------------------------------------------------
 */

/* Scalars are passed by their addresses, as of the one or the other type; after all arguments come the
 * lengths of the strings, as Fortran has them. */
typedef const char *word;
typedef const int *whole;
typedef void gemm(word, word, whole, whole, whole, const void *, const void *, whole, const void *, whole,
                  const void *, void *, whole, size_t, size_t);
typedef void trsm(word, word, word, word, whole, whole, const void *, const void *, whole, void *, whole,
                  size_t, size_t, size_t, size_t);
typedef void gemv(word, whole, whole, const void *, const void *, whole, const void *, whole, const void *,
                  void *, whole, size_t);
typedef void ger(whole, whole, const void *, const void *, whole, const void *, whole, void *, whole);
typedef void trsv(word, word, word, whole, const void *, whole, void *, whole, size_t, size_t, size_t);
typedef void swap(whole, void *, whole, void *, whole);
typedef void vector_copy(whole, const void *, whole, void *, whole);
typedef void axpy(whole, const void *, const void *, whole, void *, whole);
typedef void scal(whole, const void *, void *, whole);
typedef int iamax(whole, const void *, whole);

/* Makes the call: BLAS by its Fortran interface, HPL's own kernels by loops above. */
void blas_call_run(struct blas_call *call) {
    static const float singles[] = {-1, 1};
    static const double doubles[] = {-1, 1};
    const void *minus_one = call->is_single ? (const void *)&singles[0] : &doubles[0],
               *one = call->is_single ? (const void *)&singles[1] : &doubles[1];
    const int *m = &call->m, *n = &call->n, *k = &call->k, *lda = &call->lda, *ldb = &call->ldb,
              *ldc = &call->ldc, *inc = &call->inc;
    void *a = call->operands[BLAS_A], *b = call->operands[BLAS_B], *c = call->operands[BLAS_C],
         *t = call->operands[BLAS_T];
    blas_function *f = call->function;
    switch (call->kernel) {
    case BLAS_DGEMM:
        ((gemm *)f)("N", "T", m, n, k, minus_one, a, lda, b, ldb, one, c, ldc, 1, 1);
        break;
    case BLAS_DTRSM:
        ((trsm *)f)("R", "U", "N", "U", m, n, one, t, n, c, ldc, 1, 1, 1, 1);
        break;
    case BLAS_DGEMV:
        ((gemv *)f)("N", m, n, minus_one, a, lda, b, inc, one, c, inc, 1);
        break;
    case BLAS_DGER:
        ((ger *)f)(m, n, minus_one, a, inc, b, inc, c, ldc);
        break;
    case BLAS_DTRSV:
        ((trsv *)f)("U", "N", "U", n, t, n, c, inc, 1, 1, 1);
        break;
    case BLAS_DSWAP: {
        size_t reach = ((size_t)(*n - 1) * (size_t)*inc + 1) * (call->is_single ? 4 : 8);
        ((swap *)f)(n, c, inc, (char *)c + reach, inc);
        break;
    }
    case BLAS_DCOPY:
        ((vector_copy *)f)(n, a, inc, c, inc);
        break;
    case BLAS_DAXPY:
        ((axpy *)f)(n, minus_one, a, inc, c, inc);
        break;
    case BLAS_DSCAL:
        ((scal *)f)(n, minus_one, c, inc);
        break;
    case BLAS_IDAMAX:
        call->found = ((iamax *)f)(n, a, inc);
        break;
    case BLAS_DLASWP:
        swap_rows(call, c);
        break;
    case BLAS_DLACPY:
        copy(call, a, c);
        break;
    case BLAS_DLATCPY:
        copy_transposed(call, b, c);
        break;
    case BLAS_EMPTY:
    case BLAS_KERNELS:
        break;
    }
}
