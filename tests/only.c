/* Linked into every unit test: ASSAY_TEST_ONLY=NAME runs the function of that name alone (tests/run.sh
 * --only). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

__attribute__((constructor)) static void run_one_function(void) {
    const char *name = getenv("ASSAY_TEST_ONLY");
    if (name && *name)
        cmocka_set_test_filter(name);
}
