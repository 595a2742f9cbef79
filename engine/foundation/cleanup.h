/*
 * Ownership by attribute: a local that owns something says so where it is declared, and hands it over
 * with take_pointer() or take_descriptor().
 *
 *     cleanup_free char *name = NULL;
 *     ...
 *     *ret_name = take_pointer(name);
 */
#ifndef ASSAY_FOUNDATION_CLEANUP_H
#define ASSAY_FOUNDATION_CLEANUP_H

#include <stdio.h>

/* Runs FUNCTION(&variable) when the variable leaves its scope. */
#define cleanup(function) __attribute__((cleanup(function)))

/* Gives the value of POINTER away: the variable is NULL afterwards. */
#define take_pointer(pointer)                                                                                \
    ({                                                                                                       \
        __auto_type taken_ = (pointer);                                                                      \
        (pointer) = NULL;                                                                                    \
        taken_;                                                                                              \
    })

/* Gives a descriptor away: the variable is -1 afterwards. */
#define take_descriptor(descriptor)                                                                          \
    ({                                                                                                       \
        int taken_ = (descriptor);                                                                           \
        (descriptor) = -1;                                                                                   \
        taken_;                                                                                              \
    })

void cleanup_free_pointer(void *pointer_to_pointer);
void cleanup_close_descriptor(int *descriptor); /* it is -1 afterwards, so that twice is fine */
void cleanup_close_stream(FILE **stream);

#define cleanup_free cleanup(cleanup_free_pointer)
#define cleanup_close cleanup(cleanup_close_descriptor) /* an int; -1 means nothing to close */
#define cleanup_fclose cleanup(cleanup_close_stream)    /* a FILE *; for streams that are only read */

#endif
