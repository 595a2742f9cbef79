#include "engine/agent/controls/owner.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FIELD_STATE = 3, FIELD_START = 22 };

/* The process is this machine's even when the files are those of a captured one. */
int owner_find(pid_t pid, struct owner *ret) {
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    cleanup_close int file = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t length = file < 0 ? -1 : read(file, line, sizeof line - 1);
    if (length <= 0)
        return -ESRCH;
    line[length] = '\0';
    /* "12 (name) S 1 ...", where the name may hold anything. */
    char *at = strrchr(line, ')'), *rest = at ? at + 1 + (at[1] == ' ') : NULL, *word;
    struct owner owner = {.pid = pid};
    for (int field = FIELD_STATE; (word = strsep(&rest, " ")); field++) {
        if (field == FIELD_STATE && (*word == 'Z' || *word == 'X' || *word == 'x'))
            return -ESRCH;
        if (field == FIELD_START && number_parse_uint64(word, strlen(word), &owner.start)) {
            *ret = owner;
            return 0;
        }
    }
    return -ESRCH;
}

bool owner_is(const struct owner *a, const struct owner *b) {
    return a->pid == b->pid && a->start == b->start;
}

bool owner_is_alive(const struct owner *owner) {
    struct owner now;
    return owner_find(owner->pid, &now) == 0 && owner_is(owner, &now);
}
