#include "tests/test-bed/loopback.h"

#include "engine/foundation/cleanup.h"
#include "tests/test-bed/layer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The one server of the keeper's process. */
static struct {
    pid_t process; /* 0: none */
    int port;
} server;

/* What needs one server only. */
static const char *const able[] = {"refuse-logins", "accept-logins", "sshd", "new-host-key"};

int loopback_can(const char *feature, struct failure *failure) {
    for (size_t i = 0; i < sizeof able / sizeof *able; i++)
        if (strcmp(feature, able[i]) == 0)
            return 0;
    return failure_set(failure, -EOPNOTSUPP,
                       "'%s' is not here: one sshd on loopback has none of it; it needs root", feature);
}

/* A port that is free now. */
static int free_port(int *ret, struct failure *failure) {
    cleanup_close int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (probe < 0 || bind(probe, (struct sockaddr *)&address, sizeof address) < 0 ||
        getsockname(probe, (struct sockaddr *)&address, &length) < 0)
        return failure_set(failure, -errno, "cannot find a free port: %s", strerror(errno));
    *ret = ntohs(address.sin_port);
    return 0;
}

static int write_configuration(const struct bed *bed, int count, const char *const *options,
                               struct failure *failure) {
    char path[BED_PATH_SIZE];
    bed_path(bed, path, "sshd_config");
    cleanup_fclose FILE *stream = fopen(path, "we");
    if (stream == NULL)
        return failure_set(failure, -errno, "cannot write '%s': %s", path, strerror(errno));
    for (int i = 0; i < count; i++)
        fprintf(stream, "%s\n", options[i]);
    for (int i = 0; i < bed->settings.sshd_count; i++)
        fprintf(stream, "%s\n", bed->settings.sshd[i]);
    fprintf(stream,
            "ListenAddress 127.0.0.1:%d\n"
            "HostKey %s/host_key\n"
            "AuthorizedKeysFile %s/id_ed25519.pub\n"
            "PidFile %s/sshd.pid\n"
            "SetEnv HOME=%s/remote-home BED_OF_PROCESS=%s\n"
            "StrictModes no\n"
            "PermitRootLogin prohibit-password\n"
            "PasswordAuthentication no\n"
            "KbdInteractiveAuthentication no\n"
            "UsePAM no\n"
            "UseDNS no\n"
            "PrintMotd no\n"
            "PrintLastLog no\n"
            "Subsystem sftp internal-sftp\n",
            server.port, bed->folder, bed->folder, bed->folder, bed->folder, bed->folder);
    if (fflush(stream) != 0)
        return failure_set(failure, -errno, "cannot write '%s': %s", path, strerror(errno));
    return 0;
}

static void exec_server(const struct bed *bed) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    char log[BED_PATH_SIZE], configuration[BED_PATH_SIZE];
    bed_path(bed, log, "log/sshd");
    bed_path(bed, configuration, "sshd_config");
    int file = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (file < 0 || dup2(file, 1) < 0 || dup2(file, 2) < 0)
        _exit(127);
    execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-e", "-f", configuration, (char *)NULL);
    _exit(127);
}

static int start_server(const struct bed *bed, struct failure *failure) {
    char path[BED_PATH_SIZE];
    bed_path(bed, path, "sshd.pid");
    unlink(path);
    server.process = fork();
    if (server.process < 0)
        return failure_set(failure, -errno, "cannot fork: %s", strerror(errno));
    if (server.process == 0)
        exec_server(bed);
    for (int i = 0; i < 24000; i++) {
        if (access(path, F_OK) == 0)
            return 0;
        if (waitpid(server.process, NULL, WNOHANG) == server.process)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    server.process = 0;
    return failure_set(failure, -EIO, "sshd did not start on 127.0.0.1:%d; its words are in '%s/log/sshd'",
                       server.port, bed->folder);
}

void loopback_stop(void) {
    if (server.process <= 0)
        return;
    kill(server.process, SIGKILL);
    while (waitpid(server.process, NULL, 0) < 0 && errno == EINTR)
        ;
    server.process = 0;
}

int loopback_start(struct bed *bed, int *ret_port, struct failure *failure) {
    const struct passwd *user = getpwuid(getuid());
    if (user == NULL)
        return failure_set(failure, -ENOENT, "user %d has no account: sshd cannot let it in", (int)getuid());
    if (strstr(user->pw_shell, "nologin") != NULL || strstr(user->pw_shell, "/false") != NULL)
        return failure_set(failure, -EPERM, "the login shell of '%s' is '%s': nothing can run over ssh",
                           user->pw_name, user->pw_shell);
    snprintf(bed->settings.user, sizeof bed->settings.user, "%s", user->pw_name);
    if (getuid() == 0) { /* which a service script of the system makes, if it was run */
        int status = layer_folder("/run/sshd", 0755, failure);
        if (status < 0)
            return status;
    }
    char home[BED_PATH_SIZE];
    bed_path(bed, home, "remote-home");
    int status = layer_folder(home, 0700, failure);
    for (int i = 0; status == 0 && i < 5; i++) { /* somebody may take the port in between */
        status = free_port(&server.port, failure);
        if (status == 0)
            status = write_configuration(bed, 0, NULL, failure);
        if (status == 0 && start_server(bed, failure) == 0) {
            *ret_port = server.port;
            return 0;
        }
    }
    return status < 0 ? status : -EIO;
}

int loopback_do(struct bed *bed, const char *command, int count, const char *const *words,
                struct failure *failure) {
    int status = loopback_can(command, failure);
    if (status < 0)
        return status;
    loopback_stop();
    if (strcmp(command, "refuse-logins") == 0)
        return 0;
    if (strcmp(command, "new-host-key") == 0) {
        char key[BED_PATH_SIZE];
        bed_path(bed, key, "host_key");
        status = layer_make_key(key, failure);
    }
    if (status == 0 && strcmp(command, "accept-logins") != 0)
        status = write_configuration(bed, count, words, failure);
    return status == 0 ? start_server(bed, failure) : status;
}
