/* bed: many nodes on one machine, for tests. The commands are in `usage`; README.md says how tests use it. */
#include "tests/test-bed/folder.h"
#include "tests/test-bed/keeper.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_CANNOT = 3 };

static const char usage[] =
    "usage: bed up N [OPTION...]     makes a bed of N nodes and prints its folder\n"
    "       BED=FOLDER bed COMMAND ...\n"
    "\n"
    "Commands\n"
    "  run COMMAND...        runs it on the front end: the bed's network and names, this machine's files\n"
    "  on NODE COMMAND...    runs it on a node as root, without ssh\n"
    "  down                  takes everything away\n"
    "  status                a line a node: number, name, address, state\n"
    "  can FEATURE           whether this bed has it: a command of below, or nodes names sys network "
    "gateway\n"
    "                        disks user boot-id kernel-files; exits with 3 if not\n"
    "  reap                  removes what beds have left whose keeper was killed\n"
    "NODES: all, or numbers, ranges and names: 1-4,7,node9. The gateway goes by its name.\n"
    "  cut NODES             nothing goes through its wire       mend NODES       it does again\n"
    "  freeze NODES          stops its processes                 thaw NODES       they go on\n"
    "  crash NODES           its processes die, its kernel goes on: connections close, new ones are refused\n"
    "  power-off NODES       silence                             power-on NODES   it boots: new boot id, "
    "same disk\n"
    "  reboot NODES          crash, then power-on\n"
    "  refuse-logins NODES   its sshd is gone, sessions stay     accept-logins NODES\n"
    "  fill NODES [PATH...]  no room on / /home /root (one disk), /tmp, /dev/shm; default: all\n"
    "  empty NODES [PATH...] room again\n"
    "  process NODES         ids of the nodes' first processes, as this machine counts\n"
    "Of nodes with --machine (PATH: one, or a pattern such as '/sys/devices/system/cpu/cpufreq/*/boost')\n"
    "  fault NODES KIND PATH [NUMBER]   from now on the file PATH\n"
    "      busy denied                  refuses what is written (EBUSY EPERM), that many times\n"
    "      stuck                        takes what is written and keeps what it has\n"
    "      unreadable                   cannot be read (EIO)\n"
    "      gone   back                  is not there; is there again\n"
    "  fault NODES offline PU [NUMBER]  the processor goes away, or does before the write after that many\n"
    "  fault NODES resets-turbo on|off  whether a governor that is written turns turbo on\n"
    "  fault NODES remembers on|off     whether processors come back with their settings\n"
    "  fault NODES none [PATH]          no faults\n"
    "  set NODES PATH VALUE  it changes by itself                unset NODES PATH  a sensor is free again\n"
    "  load NODES PERCENT    how busy sensors say it is; auto: whether its processes run\n"
    "  files NODES [PATTERN] all files that can be written, as they are: path, tab, content\n"
    "  writes NODES          all that was written: path, tab, value, tab, error; forget: begins anew\n"
    "\n"
    "Options of up\n"
    "  --names PATTERN       host names; % is the number: dahu-%.grenoble. Default: node%\n"
    "  --owner PID           the bed goes down when this process ends. Default: nobody\n"
    "  --user NAME           whom clients log in as. Default: root     --shell PATH   that user's login "
    "shell\n"
    "  --gateway NAME        one more node, the only way to the others\n"
    "  --machine NAME        of tests/machines, such as two-sockets:cores=32: /sys answers as a kernel does\n"
    "  --sshd LINE           for every node's sshd_config; may be repeated\n"
    "  --share FOLDER        every node sees this folder of this machine; may be repeated\n"
    "  --home-read-only --home-noexec --tmp-noexec --no-compiler\n"
    "  --disk-size SIZE --tmp-size SIZE                 such as 4m\n";

static int complain(const struct failure *failure) {
    fprintf(stderr, "bed: %s\n", failure->text);
    return failure->kind == FAILURE_INPUT ? EXIT_USAGE : EXIT_FAILURE;
}

/* Enters this process's own mount namespace, as enter() does with a bed's: its root is another one after
 * chroot. */
static bool keeps_root(void) {
    struct stat before, after;
    int handle = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return handle >= 0 && stat("/", &before) == 0 && setns(handle, CLONE_NEWNS) == 0 &&
           stat("/", &after) == 0 && before.st_dev == after.st_dev && before.st_ino == after.st_ino;
}

/* Whether the kernel lets this process make and enter what nodes are made of. */
static bool may_make_namespaces(void) {
    pid_t child = fork();
    if (child == 0)
        _exit(unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC) < 0 ||
              mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || !keeps_root());
    int status = 1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && status == 0;
}

static int do_up(int count, char **arguments) {
    struct settings settings;
    struct failure failure = {0};
    char folder[BED_PATH_SIZE];
    if (settings_read(&settings, count, arguments, &failure) < 0)
        return complain(&failure);
    if (!may_make_namespaces()) {
        fprintf(stderr, "bed: %s: there can be no nodes\n",
                geteuid() == 0 ? "no namespaces may be made here, or none entered (after chroot)"
                               : "not root");
        return EXIT_CANNOT;
    }
    if (keeper_start(&settings, folder, &failure) < 0)
        return complain(&failure);
    puts(folder);
    return EXIT_SUCCESS;
}

static const char *bed_folder(void) {
    const char *folder = getenv("BED");
    if (folder == NULL || folder[0] == '\0') {
        fputs("bed: which bed? BED is to be the folder that bed up has printed\n", stderr);
        exit(EXIT_USAGE);
    }
    return folder;
}

/* Becomes COMMAND. */
static int become(char **command) {
    execvp(command[0], command);
    int error = errno;
    fprintf(stderr, "bed: cannot run '%s': %s\n", command[0], strerror(error));
    return error == ENOENT ? 127 : 126;
}

static int open_process(pid_t process, struct failure *failure) {
    int handle = (int)syscall(SYS_pidfd_open, process, 0);
    if (handle < 0)
        return failure_set(failure, -errno, "the process %d of the bed is gone: %s", (int)process,
                           strerror(errno));
    return handle;
}

static int do_run(char **command) {
    const char *folder = bed_folder();
    struct failure failure = {0};
    char home[BED_PATH_SIZE], *cwd = getcwd(NULL, 0);
    pid_t keeper;
    if (keeper_process(folder, &keeper, &failure) < 0)
        return complain(&failure);
    cleanup_close int handle = open_process(keeper, &failure);
    if (handle < 0)
        return complain(&failure);
    if (setns(handle, CLONE_NEWNS | CLONE_NEWNET) < 0 || (cwd != NULL && chdir(cwd) < 0)) {
        failure_set(&failure, -errno, "cannot enter the front end: %s", strerror(errno));
        return complain(&failure);
    }
    free(cwd);
    snprintf(home, sizeof home, "%.200s/home", folder);
    setenv("HOME", home, 1);
    setenv("BED_OF_PROCESS", folder, 1); /* who has started it, should the keeper be killed */
    return become(command);
}

static int do_on(const char *node, char **command) {
    struct failure failure = {0};
    struct text answer cleanup(text_clear);
    text_init(&answer, 4096);
    long process;
    if (keeper_ask(bed_folder(), 2, (const char *[]){"process", node}, &answer, &failure) < 0)
        return complain(&failure);
    answer.bytes[strcspn(answer.bytes, "\n")] = '\0';
    if (settings_number(answer.bytes, 2, 1 << 30, &process) < 0) {
        fprintf(stderr, "bed: node '%s' is not up\n", node);
        return EXIT_FAILURE;
    }
    cleanup_close int handle = open_process((pid_t)process, &failure);
    if (handle < 0 || node_join(handle, &failure) < 0)
        return complain(&failure);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        clearenv();
        setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
        setenv("HOME", "/root", 1);
        setenv("LANG", "C.UTF-8", 1);
        _exit(chdir("/root") < 0 ? EXIT_FAILURE : become(command));
    }
    int status = 0;
    while (child < 0 || (waitpid(child, &status, 0) < 0 && errno == EINTR))
        if (child < 0) {
            failure_set(&failure, -errno, "cannot fork: %s", strerror(errno));
            return complain(&failure);
        }
    /* Not through exit(): a leak checker's tracer would be born into the node, and not find this process. */
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int main(int count, char **words) {
    if (count < 2 || strcmp(words[1], "help") == 0 || strcmp(words[1], "--help") == 0) {
        fputs(usage, count < 2 ? stderr : stdout);
        return count < 2 ? EXIT_USAGE : EXIT_SUCCESS;
    }
    if (strcmp(words[1], "up") == 0)
        return do_up(count - 2, words + 2);
    if (strcmp(words[1], "reap") == 0) {
        folder_reap();
        return EXIT_SUCCESS;
    }
    if (strcmp(words[1], "run") == 0 && count > 2)
        return do_run(words + 2);
    if (strcmp(words[1], "on") == 0 && count > 3)
        return do_on(words[2], words + 3);
    struct failure failure = {0};
    struct text answer cleanup(text_clear);
    text_init(&answer, 1 << 20);
    if (keeper_ask(bed_folder(), count - 1, (const char *const *)words + 1, &answer, &failure) < 0) {
        complain(&failure);
        return strcmp(words[1], "can") == 0 ? EXIT_CANNOT : EXIT_FAILURE;
    }
    fwrite(answer.bytes, 1, answer.length, stdout);
    return EXIT_SUCCESS;
}
