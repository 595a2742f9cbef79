/*
 * A BLAS, loaded while the program runs, so that one binary measures any of them and needs none to be built.
 * Calls go through the Fortran interface, which every BLAS has, with 32-bit integers (LP64).
 */
#ifndef ASSAY_KERNELS_BLAS_LIBRARY_H
#define ASSAY_KERNELS_BLAS_LIBRARY_H

typedef void blas_function(void); /* of any type: the caller knows it */

struct blas_library {
    const char *name;
    void *handle;
};

/* Loads a BLAS that computes with THREADS threads. NAME: openblas, blis, reference, mkl, or a path with a
 * slash. Ends the program if it cannot be loaded. */
struct blas_library blas_library_load(const char *name, unsigned threads);
/* The function SYMBOL, such as "dgemm_"; ends the program if the library lacks it. */
blas_function *blas_library_find(const struct blas_library *library, const char *symbol);
/* Prints facts: the library's name, the file that defines FUNCTION (the engine records the SHA-256 of every
 * fact that is a path), the library's version, the processor it has detected, and its threads. */
void blas_library_facts(const struct blas_library *library, blas_function *function, unsigned threads);

#endif
