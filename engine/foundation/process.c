#include "engine/foundation/process.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int process_memory_file(const struct text *bytes) {
    int file = memfd_create("assay", MFD_CLOEXEC);
    if (file < 0 ||
        (bytes && (file_write_all(file, bytes->bytes, bytes->length) < 0 || lseek(file, 0, SEEK_SET) != 0)))
        memory_exhausted();
    return file;
}

static void read_memory_file(int file, struct text *ret) {
    cleanup_free char *path = xformat("/proc/self/fd/%d", file);
    if (ret)
        (void)file_read(path, ret, NULL);
}

int process_run(const char *const *arguments, const struct text *input, struct text *output,
                struct text *errors) {
    cleanup_close int in = process_memory_file(input), out = process_memory_file(NULL),
                      complaints = process_memory_file(NULL);
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, complaints, STDERR_FILENO);
    int r = posix_spawnp(&child, arguments[0], &actions, NULL, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (r != 0)
        return -r;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    read_memory_file(out, output);
    read_memory_file(complaints, errors);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
