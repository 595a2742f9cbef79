#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

void cleanup_free_pointer(void *pointer_to_pointer) {
    free(*(void **)pointer_to_pointer);
}

void cleanup_close_descriptor(int *descriptor) {
    int saved = errno;
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1; /* the number may be another's now */
    errno = saved;
}

void cleanup_close_stream(FILE **stream) {
    int saved = errno;
    if (*stream)
        fclose(*stream);
    errno = saved;
}
