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

/* NAME is openblas, blis, reference, mkl, or a path with a slash. The library computes with THREADS threads.
 * One that cannot be loaded ends the program. */
struct blas_library blas_library_load(const char *name, unsigned threads);
/* SYMBOL, such as "dgemm_"; a library without it ends the program. */
blas_function *blas_library_find(const struct blas_library *library, const char *symbol);
/* Its name, the file that FUNCTION really comes from (the engine records the SHA-256 of every fact that is a
 * path), what the library says of its version and of the processor that it took this one for, and its
 * threads. */
void blas_library_facts(const struct blas_library *library, blas_function *function, unsigned threads);

#endif
