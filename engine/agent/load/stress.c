/*
 * --stress: double-precision multiply-add on every PU, on an array in the first-level cache, with the PU's
 * widest vectors. This resembles a matrix product, so that a machine warmed with it is about as hot as the
 * measurement will make it.
 */
#include "engine/agent/load/pus.h"
#include "engine/agent/machine/tool.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/*
 * Each element goes through STEPS steps of x = x * a + b, which tends to b / (1 - a) = 1 and is neither
 * denormal nor infinite. Twelve vectors at once hide the latency of one (4 cycles, on 2 units, is 8), and fit
 * into 16 registers together with a and b.
 */
enum { CHAINS = 12, ARRAY = CHAINS * 8 * 20 /* 15 KiB */, STEPS = 16, ROUNDS = 4096 };

#define EACH_CHAIN(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define LOAD(i) vector x##i = *(const vector *)(array + at + (i)*LANES);
#define ADVANCE(i) x##i = MULTIPLY_ADD(x##i, a, b);
#define STORE(i) *(vector *)(array + at + (i)*LANES) = x##i;

#define DEFINE_STRESS(NAME, WIDTH, ...)                                                                      \
    __VA_ARGS__ static void NAME(double *array) {                                                            \
        typedef double vector __attribute__((vector_size(WIDTH), may_alias));                                \
        enum { LANES = (WIDTH) / sizeof(double) };                                                           \
        const vector a = (vector){0} + 0.9990234375, b = (vector){0} + 0.0009765625;                         \
        for (int round = 0; round < ROUNDS; round++)                                                         \
            for (size_t at = 0; at < ARRAY; at += CHAINS * LANES) {                                          \
                EACH_CHAIN(LOAD)                                                                             \
                for (int step = 0; step < STEPS; step++) {                                                   \
                    EACH_CHAIN(ADVANCE)                                                                      \
                }                                                                                            \
                EACH_CHAIN(STORE)                                                                            \
            }                                                                                                \
    }

/* The compiler must not fuse a product and a sum of its own accord (-ffp-contract), hence the intrinsics. */
#define MULTIPLY_ADD(x, a, b) ((x) * (a) + (b))
DEFINE_STRESS(stress_plain, 16, )
#ifdef __x86_64__
#undef MULTIPLY_ADD
#define MULTIPLY_ADD _mm256_fmadd_pd
DEFINE_STRESS(stress_avx2, 32, __attribute__((target("avx2,fma"))))
#undef MULTIPLY_ADD
#define MULTIPLY_ADD _mm512_fmadd_pd
DEFINE_STRESS(stress_avx512, 64, __attribute__((target("avx512f"))))
#endif

typedef void stress_function(double *array);

/* The function with the widest vectors that this processor has. */
static stress_function *choose_stress_function(void) {
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return stress_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return stress_avx2;
#endif
    return stress_plain;
}

/* Runs in a child bound to PU, until it is killed. */
static void stress_pu(void *context, unsigned pu, unsigned index) {
    static double array[ARRAY] __attribute__((aligned(64)));
    stress_function *function = choose_stress_function();
    (void)context;
    for (size_t i = 0; i < ARRAY; i++)
        array[i] = (double)(i + pu + index);
    for (;;) {
        function(array);
        __asm__ volatile("" : : "r"(array) : "memory"); /* the compiler must not drop the computation */
    }
}

/* Waits for a signal to end, and returns 0; or for the end of a child, which another process must have
 * killed, and returns its pid. */
static pid_t wait_for_end(const sigset_t *signals) {
    for (;;) {
        int number = sigwaitinfo(signals, NULL);
        if (number > 0 && number != SIGCHLD)
            return 0;
        pid_t pid = number == SIGCHLD ? waitpid(-1, NULL, WNOHANG) : 0;
        if (pid > 0)
            return pid;
    }
}

static void forget_child(pid_t *pids, unsigned count, pid_t gone) {
    for (unsigned i = 0; i < count; i++)
        if (pids[i] == gone)
            pids[i] = 0;
}

/* --stress: keeps the PUs busy until a signal ends it. 1: a process could not be started or was killed. */
int tool_stress(int count, char **arguments) {
    static pid_t pids[PROTOCOL_PU_LIMIT];
    const char *list = NULL;
    const struct tool_option options[] = {{"--pus", .text = &list}, {NULL}};
    struct pu_set pus;
    sigset_t signals;
    unsigned pu = 0;
    if (tool_parse(count, arguments, options, 0) < 0)
        return 2;
    int r = load_choose_pus("--stress", list, &pus);
    if (r != 0)
        return r;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGCHLD, SIG_DFL);
    unsigned started = pu_set_count(&pus);
    r = load_start(&pus, stress_pu, NULL, pids, &pu);
    if (r < 0)
        return tool_complain(1, "--stress: cannot keep PU %u busy: %s", pu, strerror(-r));
    pid_t gone = wait_for_end(&signals);
    forget_child(pids, started, gone);
    load_stop(pids, started);
    return gone ? tool_complain(1, "--stress: one of its processes was killed") : 0;
}
