/* Measurements that are kept compressed, for tests. */
#ifndef ASSAY_TESTS_UNIT_PLUGIN_GZIP_FILE_H
#define ASSAY_TESTS_UNIT_PLUGIN_GZIP_FILE_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* gzip -dc FROM > TO; its exit status, or -1. */
static int gzip_file_read(const char *from, const char *to) {
    pid_t child = fork();
    if (child == 0) {
        int output = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (output >= 0 && dup2(output, STDOUT_FILENO) >= 0)
            execlp("gzip", "gzip", "-dc", from, (char *)NULL);
        _exit(127);
    }
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
