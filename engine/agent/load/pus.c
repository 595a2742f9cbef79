#include "engine/agent/load/pus.h"

#include "engine/agent/machine/tool.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int load_choose_pus(const char *tool, const char *list, struct pu_set *ret) {
    int r = list ? pu_set_parse(list, ret) : pu_set_allowed(ret);
    if (list && (r < 0 || pu_set_first(ret) == PROTOCOL_PU_LIMIT))
        return tool_complain(2, "--pus: '%.100s' is no list of PUs, such as 0-3,8", list);
    return r < 0 ? tool_complain(1, "%s: which PUs may be used: %s", tool, strerror(-r)) : 0;
}

/* Runs in a child bound to PU: resets signals, calls WORK, and ends the child. */
static _Noreturn void run_child(unsigned pu, unsigned index, pid_t parent, load_work *work, void *context) {
    static const int ending[] = {SIGTERM, SIGINT, SIGHUP};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* the parent died before prctl() */
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        signal(ending[i], SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    work(context, pu, index);
    _exit(0);
}

/* The parent sets its own affinity before each fork, so that it sees a refusal, and restores it at the end.
 */
int load_start(const struct pu_set *set, load_work *work, void *context, pid_t *pids, unsigned *ret_pu) {
    struct pu_set before;
    pid_t parent = getpid();
    unsigned count = 0;
    int r = pu_set_allowed(&before);
    for (unsigned pu = pu_set_first(set); r == 0 && pu < PROTOCOL_PU_LIMIT; pu = pu_set_next(set, pu)) {
        struct pu_set one = {0};
        *ret_pu = pu;
        pu_set_add(&one, pu);
        r = pu_set_bind(&one);
        pid_t pid = r == 0 ? fork() : -1;
        if (pid == 0)
            run_child(pu, count, parent, work, context);
        if (r == 0 && pid < 0)
            r = -errno;
        if (pid > 0)
            pids[count++] = pid;
    }
    (void)pu_set_bind(&before);
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
