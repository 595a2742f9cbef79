/*
 * Models of kernels as a C header, for simulations that take a kernel's time from its model instead of
 * running it (SMPI with HPL's BLAS replaced, the thesis of T. Cornebize, 2021, section 3.2). For a kernel
 * called dgemm over m, n, k the header has
 *
 *     ASSAY_DGEMM_GROUPS                            how many groups (hosts, cores) the model has
 *     int assay_dgemm_group(name)                   which one is called so, or -1
 *     double assay_dgemm_mean(group, m, n, k)       seconds a call takes on average
 *     double assay_dgemm_sigma(group, m, n, k)      standard deviation of one call
 *     double assay_dgemm_draw(group, m, n, k, z)    seconds one call takes; z standard normal, the caller's
 *
 * Groups are numbered from 0 in the model's order; -1 is a group whose every coefficient is the mean over all
 * groups, 0 for those that drop the term. No draw and no sigma is negative. Numbers are written so that they
 * read back as the same double. The mean is that of engine/plugin/evaluation.h: terms that a part drops have
 * no say, outside of the segments the nearest holds, and what is not finite is NAN.
 */
#ifndef ASSAY_PLUGIN_KERNEL_HEADER_H
#define ASSAY_PLUGIN_KERNEL_HEADER_H

#include "engine/foundation/text.h"
#include "engine/plugin/model.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    KERNEL_NAME_MAX = 64,    /* bytes */
    KERNEL_FACTORS_MAX = 16, /* arguments */
    KERNEL_TERMS_MAX = 64,
};

struct kernel {
    const char *name; /* "dgemm": small letters, digits and _; begins with a letter */
    const struct model *model;
    const char *origin; /* a line for a comment */
};

/* Appends a header with COUNT kernels to RET; noise is left out unless NOISY. FAILURE_INPUT for kinds that
 * are not evaluated row by row, mixtures of noise, dummies of categories, a response that is no time. */
int kernel_header_write(const struct kernel *kernels, size_t count, bool noisy, struct text *ret,
                        struct failure *failure);

/* The same for HPL on SMPI as T. Cornebize changed it (github.com/Ezibenroc/hpl): the body of its
 * dgemm_time(M, N, K), the file dgemm_model.c. A linear model over m, n, k; by the node (its function
 * get_nodeid() is then asked, the first number in a host's name), by node and cpu (get_cpuid(): 2 node + cpu,
 * so a cpu is 0 or 1), or by numbers that get_cpuid() returns (one column whose name has "cpu"). Other nodes
 * take the mean of all. */
int kernel_switch_write(const struct kernel *kernel, bool noisy, struct text *ret, struct failure *failure);

#endif
