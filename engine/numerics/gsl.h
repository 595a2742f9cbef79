/* For the files of this room that call GSL: its own handler of errors ends the program, so it is switched off
 * when the program starts, and every result is checked instead. */
#ifndef ASSAY_NUMERICS_GSL_H
#define ASSAY_NUMERICS_GSL_H

#include <gsl/gsl_errno.h>

__attribute__((constructor)) static void gsl_never_abort(void) {
    gsl_set_error_handler_off();
}

#endif
