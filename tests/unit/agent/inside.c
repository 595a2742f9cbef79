/* The parts of the agent that need no process of their own: PU sets, the environment's allow-list, and paths
 * where the kernel has no openat2. */
#include "engine/agent/machine/environment.h"
#include "engine/agent/machine/facts.h"
#include "engine/agent/machine/machine.h"
#include "engine/agent/machine/pu-set.h"
#include "engine/foundation/file.h"
#include "engine/remote/link/command.h"
#include "tests/test.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* As a kernel does that is older than the call, or a container that hides it (CODE). */
static bool refuse_openat2(unsigned code) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 437 /* on every machine */, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog all = {.len = sizeof filter / sizeof *filter, .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0;
}

/* What went wrong: 0, nothing. FOLDER has a link "way-out" to another's file. */
static int try_without_openat2(const char *folder, int code) {
    struct failure failure = {0};
    struct machine machine;
    char value[64];
    if (!refuse_openat2((unsigned)code))
        return 1;
    if (machine_open(folder, &machine, &failure) != -code || !strstr(failure.text, "openat2"))
        return 2;
    machine = (struct machine){.root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .captured = true};
    if (machine_read_value(&machine, "way-out", value, sizeof value) != -code)
        return 3;
    if (machine_write(&machine, "way-out", "changed", 7) != -code)
        return 4;
    if (machine_open(NULL, &machine, &failure) < 0 || !machine_has(&machine, "proc/self/stat"))
        return 5;
    return 0;
}

/* Whatever is renamed meanwhile, anywhere: the kernel gives up a path with ".." then, and asks to try again.
 */
TEST(renames_elsewhere_do_not_disturb_a_captured_machine) {
    const char *folder = test_own_folder(), *a = test_put_in(folder, "a", "1\n", 2, 0666),
               *b = test_formatted("%s/b", folder);
    char value[64];
    test_put_in(folder, "word", "x\n", 2, 0666);
    assert_int_equal(mkdir(test_formatted("%s/d", folder), 0777), 0);
    /* The more steps up, the more often. */
    assert_int_equal(symlink("../d/../d/../d/../d/../d/../d/../d/../d/../d/../d/../d/../d/../word",
                             test_formatted("%s/d/link", folder)),
                     0);
    pid_t child = fork();
    if (child == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
        for (;;) {
            (void)!rename(a, b);
            (void)!rename(b, a);
        }
    struct machine machine;
    assert_int_equal(machine_open(folder, &machine, NULL), 0);
    for (int i = 0; i < 20000; i++)
        assert_int_equal(machine_read_value(&machine, "d/link", value, sizeof value), 0);
    assert_string_equal(value, "x");
    machine_close(&machine);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

TEST(without_openat2_there_is_no_captured_machine) {
    const char *folder = test_own_folder(), *outside = test_put("outside", "whole");
    assert_int_equal(symlink(outside, test_formatted("%s/way-out", folder)), 0);
    static const int codes[] = {ENOSYS, EPERM};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit(try_without_openat2(folder, codes[i]));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    assert_file(outside, "whole");
}

TEST(sets_are_read_and_written) {
    static const struct {
        const char *text, *again;
    } good[] = {
        {"0", "0"},
        {"0-3,8,10-11\n", "0-3,8,10-11"},
        {"", ""},
        {"\n", ""},
        {"5-5", "5"},
        {"3,1,2", "1-3"},
        {"0-8191", "0-8191"},
        {"7,0-3\nsecond line", "0-3,7"},
    };
    static const char *const bad[] = {"a",    "-1",     "3-1", "1,", ",1",  "1--2",
                                      "8192", "0-8192", " 1",  "1 ", "0x3", "1-2-3"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct pu_set set;
        char text[64];
        assert_int_equal(pu_set_parse(good[i].text, &set), 0);
        assert_string_equal(pu_set_format(&set, text, sizeof text), good[i].again);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct pu_set set = {.bits = {42}};
        assert_int_equal(pu_set_parse(bad[i], &set), -EINVAL);
        assert_int_equal(set.bits[0], 42); /* untouched */
    }
    struct pu_set set = {0};
    assert_int_equal(pu_set_first(&set), PROTOCOL_PU_LIMIT);
    for (unsigned pu = 1; pu < PROTOCOL_PU_LIMIT; pu += 2)
        pu_set_add(&set, pu);
    pu_set_add(&set, 100000); /* outside: nothing happens */
    char text[32];
    assert_true(strlen(pu_set_format(&set, text, sizeof text)) < sizeof text); /* cut, and no further */
    assert_memory_equal(text, "1,3,5,7,9,", 10);
}

TEST(the_environment_that_is_told) {
    static const char *const told[] = {"PATH=/bin",
                                       "LANG=C",
                                       "LC_ALL=C",
                                       "TZ=UTC",
                                       "OMP_NUM_THREADS=4",
                                       "KMP_AFFINITY=x",
                                       "GOMP_CPU_AFFINITY=0",
                                       "OPENBLAS_NUM_THREADS=1",
                                       "GOTO_NUM_THREADS=1",
                                       "MKL_NUM_THREADS=1",
                                       "BLIS_NUM_THREADS=1",
                                       "LD_LIBRARY_PATH=",
                                       "LD_PRELOAD=x",
                                       "MALLOC_ARENA_MAX=1",
                                       "OMPI_MCA_btl=self",
                                       "MPI_HOME=/x",
                                       "MPICH_VERSION=1",
                                       "SLURM_JOB_ID=5"};
    static const char *const kept[] = {"HOME=/root",
                                       "USER=x",
                                       "PATHS=x",
                                       "path=x",
                                       "AWS_SECRET_ACCESS_KEY=x",
                                       "OMP_TOKEN=x",
                                       "MPI_PASSWORD=x",
                                       "MKL_LICENSE_KEY=x",
                                       "OMPI_MCA_auth=x",
                                       "LC_Credential=x",
                                       "=x",
                                       "PATH",
                                       "LD_AUDIT=x",
                                       "SSH_AUTH_SOCK=x",
                                       "OPENBLAS_secret_x=1",
                                       "LC_Y=ghp_0123",
                                       "MPIRUN_PW=x",
                                       "OMP_DB_URL=postgres://u:pw@h"};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (!facts_environment_is_public(told[i]))
            fail_msg("%s is not told", told[i]);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (facts_environment_is_public(kept[i]))
            fail_msg("%s is told", kept[i]);
}

TEST(variables_of_ranks_and_tasks_are_known) {
    static const char *const of_rank[] = {"PMIX_RANK=0",
                                          "PMIX_SERVER_URI41=x",
                                          "PMI_RANK=0",
                                          "PMI_FD=6",
                                          "PMI2_X=1",
                                          "SLURM_PROCID=0",
                                          "SLURM_STEP_ID=1",
                                          "SLURM_STEPID=1",
                                          "SLURM_TASK_PID=1",
                                          "FLUX_TASK_RANK=0",
                                          "PALS_RANKID=0",
                                          "ALPS_APP_PE=0",
                                          "OMPI_MCA_ess=x",
                                          "MPI_LOCALRANKID=0",
                                          "SLURM_LOCALID=0",
                                          "SLURM_NODEID=0",
                                          "OMPI_COMM_WORLD_RANK=0",
                                          "OMPI_MCA_orte_ess_vpid=0",
                                          "SLURM_JWT=x"};
    static const char *const of_job[] = {"SLURM_JOB_ID=5",       "SLURM_JOB_NODELIST=a",  "SLURM_NODELIST=a",
                                         "SLURM_CONF=/x",        "OMPI_MCA_btl=self",     "PMIX_MCA_gds=hash",
                                         "OMPI_MCA_essential=x", "I_MPI_PIN=1",           "FLUX_URI=x",
                                         "UCX_TLS=rc",           "PRTE_MCA_ras=^slurm",   "PMIX=1",
                                         "MPI_LOCALRANKID_=0",   "SLURM_TASKS_PER_NODE=2"};
    for (size_t i = 0; i < sizeof of_rank / sizeof *of_rank; i++)
        if (!environment_is_of_rank(of_rank[i]))
            fail_msg("%s would stay", of_rank[i]);
    for (size_t i = 0; i < sizeof of_job / sizeof *of_job; i++)
        if (environment_is_of_rank(of_job[i]))
            fail_msg("%s would be removed", of_job[i]);
}

/* ---- how a command that could not be killed is described */

TEST(who_is_given_up_is_described) {
    char text[128];
    struct remote_exit exit = {.abandoned = true, .timed_out = true, .code = 255};
    assert_string_equal(
        remote_exit_describe(&exit, text, sizeof text),
        "ran past its time limit and could not be killed: it runs as another user, or hangs in the "
        "kernel");
}

/* ---- folders that cannot be written, in the eyes of an ordinary user (root may write everywhere) */

static int make_stubborn(char *folder) {
    char path[128];
    static const char *const parts[] = {"", "/module", "/module/inner", "/module/blind"};
    static const char *const files[] = {"/module/file", "/module/inner/file", "/module/blind/file"};
    for (size_t i = 1; i < sizeof parts / sizeof *parts; i++) {
        snprintf(path, sizeof path, "%s%s", folder, parts[i]);
        if (mkdir(path, 0755) < 0)
            return 1;
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s%s", folder, files[i]);
        if (file_replace(path, "x", 1, 0444, NULL) < 0)
            return 2;
    }
    for (size_t i = sizeof parts / sizeof *parts; i-- > 1;) {
        snprintf(path, sizeof path, "%s%s", folder, parts[i]);
        if (chmod(path, i == 3 ? 0 : 0555) < 0)
            return 3;
    }
    return 0;
}

/* The part that runs as an ordinary user; 0, or where it went wrong. */
static int remove_stubborn(void) {
    char folder[] = "/tmp/assay-test-XXXXXX", path[128];
    struct failure failure = {0};
    if (!mkdtemp(folder))
        return 10;
    snprintf(path, sizeof path, "%s/module", folder);
    int r = make_stubborn(folder);
    if (r == 0 && rmdir(path) == 0)
        return 11;
    int top = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0 && (file_empty_folder(top) < 0 || file_exists(path)))
        r = 12;
    close(top);
    if (r == 0)
        r = make_stubborn(folder);
    if (r == 0 && file_remove_tree(path, &failure) < 0)
        r = 13;
    /* A folder without rights at the top, and a link, which is removed and not followed. */
    if (r == 0 && (symlink("/etc", path) < 0 || file_remove_tree(path, &failure) < 0 ||
                   chmod(folder, 0) < 0 || file_remove_tree(folder, &failure) < 0 || file_exists(folder)))
        r = 14;
    if (r >= 12)
        fprintf(stderr, "%s\n", failure.text);
    return r;
}

TEST(folders_without_rights_are_removed) {
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
            _exit(77);
        _exit(remove_stubborn());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        test_skip("root may write everywhere, and cannot become another user here");
    assert_int_equal(WEXITSTATUS(status), 0);
}
