#include "engine/command-line/output.h"

#include "engine/foundation/file.h"

#include <errno.h>
#include <stdio.h>

int output_check(const char *output, const char *const *inputs, size_t count, struct failure *failure) {
    for (size_t i = 0; output && i < count; i++)
        if (inputs[i] && file_is_same(output, inputs[i]))
            return failure_input(failure, NULL, 0, 0,
                                 "the output '%s' is also an input; expected another name", output);
    return 0;
}

int output_flush(void) {
    static int first; /* there is one standard output */
    if (fflush(stdout) != 0 && first == 0)
        first = -errno;
    return first;
}
