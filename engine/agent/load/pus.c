#include "engine/agent/load/pus.h"

#include "engine/foundation/number.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MILLISECONDS_LIMIT = 600000 };

/* ---- arguments */

static int parse_value(const char *name, const char *value, struct load_arguments *ret) {
    if (strcmp(name, "--root") == 0) {
        ret->root = value;
        return 0;
    }
    if (strcmp(name, "--pus") == 0) {
        ret->has_pus = pu_set_parse(value, &ret->pus) == 0 && pu_set_first(&ret->pus) < PROTOCOL_PU_LIMIT;
        if (ret->has_pus)
            return 0;
        fprintf(stderr, "assay-agent: --pus: '%.100s' is no list of PUs, such as 0-3,8\n", value);
        return 2;
    }
    if (number_parse_int64(value, strlen(value), &ret->milliseconds) && ret->milliseconds >= 1 &&
        ret->milliseconds <= MILLISECONDS_LIMIT)
        return 0;
    fprintf(stderr, "assay-agent: %s: '%.100s' is no number from 1 to %d\n", name, value, MILLISECONDS_LIMIT);
    return 2;
}

int load_parse(const char *tool, const char *const *accepted, int count, char **given,
               struct load_arguments *ret) {
    *ret = (struct load_arguments){.milliseconds = -1};
    for (int i = 0; i < count; i += 2) {
        size_t known = 0;
        while (accepted[known] && strcmp(accepted[known], given[i]) != 0)
            known++;
        if (!accepted[known] || i + 1 == count) {
            fprintf(stderr, "assay-agent: %s: %s '%.100s'\n", tool,
                    accepted[known] ? "there is no value after" : "unknown option", given[i]);
            return 2;
        }
        int r = parse_value(given[i], given[i + 1], ret);
        if (r != 0)
            return r;
    }
    return 0;
}

/* ---- PUs */

/* A pu_set is what the kernel takes as a mask, where the lowest byte of a word comes first. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "affinity masks are arrays of unsigned long");

static int bind_to(const struct pu_set *set) {
    return syscall(SYS_sched_setaffinity, 0, sizeof set->bits, set->bits) < 0 ? -errno : 0;
}

int load_allowed_pus(struct pu_set *ret) {
    *ret = (struct pu_set){0};
    return syscall(SYS_sched_getaffinity, 0, sizeof ret->bits, ret->bits) < 0 ? -errno : 0;
}

unsigned load_count_pus(const struct pu_set *set) {
    unsigned count = 0;
    for (unsigned pu = 0; pu < PROTOCOL_PU_LIMIT; pu++)
        count += pu_set_has(set, pu);
    return count;
}

/* ---- processes */

static _Noreturn void work_on(unsigned pu, unsigned index, pid_t parent, load_work *work, void *context) {
    static const int ending[] = {SIGTERM, SIGINT, SIGHUP};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* it died before it was asked for */
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        signal(ending[i], SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    work(context, pu, index);
    _exit(0);
}

/* The affinity is set before the fork, so that what is refused is known here; at the end it is as it was. */
int load_start(const struct pu_set *set, load_work *work, void *context, pid_t *pids, unsigned *ret_pu) {
    struct pu_set before;
    pid_t parent = getpid();
    unsigned count = 0;
    int r = load_allowed_pus(&before);
    for (unsigned pu = 0; r == 0 && pu < PROTOCOL_PU_LIMIT; pu++) {
        struct pu_set one = {0};
        if (!pu_set_has(set, pu))
            continue;
        *ret_pu = pu;
        pu_set_add(&one, pu);
        r = bind_to(&one);
        pid_t pid = r == 0 ? fork() : -1;
        if (pid == 0)
            work_on(pu, count, parent, work, context);
        if (r == 0 && pid < 0)
            r = -errno;
        if (pid > 0)
            pids[count++] = pid;
    }
    (void)bind_to(&before);
    if (r < 0)
        load_stop(pids, count);
    return r;
}

void load_stop(pid_t *pids, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
    for (unsigned i = 0; i < count; i++)
        while (pids[i] > 0 && waitpid(pids[i], NULL, 0) < 0 && errno == EINTR)
            continue;
}
