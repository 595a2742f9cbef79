/* A program that includes this ends by abort() when it, or a library of its, closes or stops watching a
 * descriptor that is not open, or not watched: by then the number might have been another's. */
#ifndef ASSAY_TEST_DESCRIPTORS_H
#define ASSAY_TEST_DESCRIPTORS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

static int judge_descriptor(const char *call, int descriptor, int r) {
    if (r == 0 || (errno != EBADF && errno != ENOENT))
        return r;
    fprintf(stderr, "%s() of descriptor %d: %m\n", call, descriptor);
    abort();
}

int close(int descriptor) {
    return judge_descriptor("close", descriptor, (int)syscall(SYS_close, descriptor));
}

int epoll_ctl(int epoll, int operation, int descriptor, struct epoll_event *event) {
    return judge_descriptor("epoll_ctl", descriptor,
                            (int)syscall(SYS_epoll_ctl, epoll, operation, descriptor, event));
}

#endif
