#include "blas-call.h"

#include "buffer.h"
#include "settings.h"

#include <string.h>

enum { LD = 11, COLUMNS = 9, ELEMENTS = 2 * LD * COLUMNS };

/* Applies the call to C, which holds its initial elements, by plain loops, a line each kernel. Returns the
 * index, from 1, that idamax must find; 0 for other kernels. */
static int compute_expected(const struct blas_call *call, double *c, const double *a, const double *b,
                            const double *t) {
    int m = call->m, n = call->n, k = call->k, lda = call->lda, ldb = call->ldb, ldc = call->ldc,
        inc = call->inc, second = (n - 1) * inc + 1, largest = 0;
    for (int j = 0; j < n; j++) {
        double *x = &c[j * inc], kept = *x;
        for (int i = 0; i < m; i++) {
            double *y = &c[i + j * ldc];
            for (int l = 0; l < k && call->kernel == BLAS_DGEMM; l++)
                *y -= a[i + l * lda] * b[j + l * ldb];
            for (int l = 0; l < j && call->kernel == BLAS_DTRSM; l++)
                *y -= c[i + l * ldc] * t[l + j * n];
            if (call->kernel == BLAS_DGEMV)
                c[i * inc] -= a[i + j * lda] * b[j * inc];
            else if (call->kernel == BLAS_DGER)
                *y -= a[i * inc] * b[j * inc];
            else if (call->kernel == BLAS_DLACPY)
                *y = a[i + j * lda];
            else if (call->kernel == BLAS_DLATCPY)
                *y = b[j + i * ldb];
            double *lower = &c[(call->kernel == BLAS_DLASWP ? call->pivots[i] : 0) + j * ldc], upper = *y;
            if (call->kernel == BLAS_DLASWP) {
                *y = *lower;
                *lower = upper;
            }
        }
        if (call->kernel == BLAS_DSWAP) {
            *x = x[second];
            x[second] = kept;
        } else if (call->kernel == BLAS_DCOPY) {
            *x = a[j * inc];
        } else if (call->kernel == BLAS_DAXPY) {
            *x -= a[j * inc];
        } else if (call->kernel == BLAS_DSCAL) {
            *x = -*x;
        }
        double current_value = a[j * inc] < 0 ? -a[j * inc] : a[j * inc],
               largest_value = a[largest * inc] < 0 ? -a[largest * inc] : a[largest * inc];
        largest = current_value > largest_value ? j : largest;
    }
    for (int j = n - 1; j >= 0 && call->kernel == BLAS_DTRSV; j--)
        for (int i = 0; i < j; i++)
            c[i * inc] -= c[j * inc] * t[i + j * n];
    return call->kernel == BLAS_IDAMAX ? largest + 1 : 0;
}

/* Compares one small call with plain loops; ends the program if an element or the pivot found differs. */
void blas_call_check(const struct blas_library *library, enum blas_kernel kernel, bool is_single) {
    static const int pivots[] = {3, 1, 8, 10, 4, 9, 6};
    const char *symbol = blas_call_symbol(kernel, is_single);
    struct blas_call call = {.kernel = kernel, .is_single = is_single, .m = 7, .n = 5, .k = 9, .lda = 8};
    call.ldb = 6, call.ldc = LD, call.inc = 2, call.pivots = pivots;
    call.function = symbol ? blas_library_find(library, symbol) : NULL;
    double expected[BLAS_OPERANDS][ELEMENTS], given[BLAS_OPERANDS][ELEMENTS];
    for (int which = 0; which < BLAS_OPERANDS; which++) {
        call.operands[which] = given[which];
        for (int i = 0; i < ELEMENTS; i++) {
            expected[which][i] = (i * (which + 3)) % (13 - 2 * which) - 3;
            element_put(is_single, given[which], (size_t)i, expected[which][i]);
        }
    }
    int found =
        compute_expected(&call, expected[BLAS_C], expected[BLAS_A], expected[BLAS_B], expected[BLAS_T]);
    blas_call_run(&call);
    for (size_t i = 0; i < ELEMENTS; i++) {
        double value = element_get(is_single, given[BLAS_C], i);
        if (value != expected[BLAS_C][i])
            die(EXIT_WRONG, "BLAS '%s' computes wrong results: element %zu of a small %s is %g, expected %g",
                library->name, i, blas_kernel_names[kernel], value, expected[BLAS_C][i]);
    }
    if (call.found != found)
        die(EXIT_WRONG, "BLAS '%s' computes wrong results: %s found element %d, expected %d", library->name,
            blas_kernel_names[kernel], call.found, found);
}
