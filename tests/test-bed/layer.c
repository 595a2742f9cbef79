#include "tests/test-bed/layer.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

extern char **environ;

int layer_write(const char *path, const char *text, mode_t mode, struct failure *failure) {
    if (failure->code < 0)
        return failure->code;
    cleanup_close int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t length = strlen(text);
    if (file < 0 || write(file, text, length) != (ssize_t)length || fchmod(file, mode) < 0)
        return failure_set(failure, errno ? -errno : -EIO, "cannot write '%s': %s", path, strerror(errno));
    return 0;
}

int layer_folder(const char *path, mode_t mode, struct failure *failure) {
    char part[BED_PATH_SIZE];
    if (failure->code < 0)
        return failure->code;
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash != NULL)
            *slash = '\0';
        if (mkdir(part, slash ? 0755 : mode) < 0 && errno != EEXIST)
            return failure_set(failure, -errno, "cannot make the folder '%s': %s", part, strerror(errno));
        if (slash == NULL)
            break;
        *slash = '/';
    }
    if (chmod(path, mode) < 0) /* whatever the umask */
        return failure_set(failure, -errno, "cannot change the mode of '%s': %s", path, strerror(errno));
    return 0;
}

/* Runs a program to its end with its output on /dev/null. */
static int run(const char *const *arguments, struct failure *failure) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_addopen(&actions, i, "/dev/null", O_RDWR, 0);
    pid_t child;
    int status = posix_spawnp(&child, arguments[0], &actions, NULL, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (status != 0)
        return failure_set(failure, -status, "cannot run '%s': %s", arguments[0], strerror(status));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0)
        return failure_set(failure, -EIO, "%s failed (wait status %d)", arguments[0], status);
    return 0;
}

int layer_make_key(const char *path, struct failure *failure) {
    char public[BED_PATH_SIZE];
    snprintf(public, sizeof public, "%s.pub", path);
    unlink(path);
    unlink(public);
    return run((const char *const[]){"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test-bed", "-f",
                                     path, NULL},
               failure);
}

/* In an overlay a character device 0:0 says that there is nothing of that name below. */
static int white_out(const char *layer, const char *path, struct failure *failure) {
    char name[BED_PATH_SIZE];
    if (snprintf(name, sizeof name, "%s%s", layer, path) >= (int)sizeof name)
        return 0; /* no program that a test could ask for */
    char *slash = strrchr(name, '/');
    *slash = '\0';
    int status = access(name, F_OK) == 0 ? 0 : layer_folder(name, 0755, failure);
    *slash = '/';
    if (status == 0 && mknod(name, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST)
        return failure_set(failure, -errno, "cannot make the white-out '%s': %s", name, strerror(errno));
    return status;
}

/* A folder that shows nothing of the one below it. */
static int empty_folder(const char *layer, const char *path, mode_t mode, struct failure *failure) {
    char name[BED_PATH_SIZE];
    snprintf(name, sizeof name, "%s%s", layer, path);
    int status = layer_folder(name, mode, failure);
    if (status == 0 && setxattr(name, "trusted.overlay.opaque", "y", 1, 0) < 0)
        return failure_set(failure, -errno, "cannot mark '%s' as opaque: %s", name, strerror(errno));
    return status;
}

static bool is_one_of(const char *name, const char *const *list) {
    for (; *list != NULL; list++)
        if (strcmp(name, *list) == 0)
            return true;
    return false;
}

/* Of the top folders only those of a fresh system, and of them with their content only what packages fill. */
static int hide_folders(const char *layer, struct failure *failure) {
    static const char *const filled[] = {".",      "..",  "bin", "sbin", "lib", "lib32", "lib64",
                                         "libx32", "usr", "etc", "var",  "opt", NULL};
    static const char *const empty[] = {"dev",  "proc", "sys", "run", "tmp",
                                        "root", "home", "mnt", "srv", NULL};
    DIR *root = opendir("/");
    if (root == NULL)
        return failure_set(failure, -errno, "cannot read '/': %s", strerror(errno));
    int status = 0;
    for (struct dirent *entry; status == 0 && (entry = readdir(root)) != NULL;) {
        char path[sizeof entry->d_name + 1];
        snprintf(path, sizeof path, "/%s", entry->d_name);
        if (!is_one_of(entry->d_name, filled) && !is_one_of(entry->d_name, empty))
            status = white_out(layer, path, failure);
    }
    closedir(root);
    for (size_t i = 0; status == 0 && empty[i] != NULL; i++) {
        char path[16];
        snprintf(path, sizeof path, "/%s", empty[i]);
        status = empty_folder(layer, path, strcmp(empty[i], "root") == 0 ? 0700 : 0755, failure);
    }
    return status == 0 ? empty_folder(layer, "/var/tmp", 01777, failure) : status;
}

static int hide_compilers(const char *layer, struct failure *failure) {
    static const char *const folders[] = {"/usr/bin", "/usr/local/bin", "/usr/lib/ccache"};
    static const char *const patterns[] = {
        "cc",  "c89",        "c99",   "c89-gcc",      "c99-gcc",         "tcc",
        "gcc", "gcc-[0-9]*", "clang", "clang-[0-9]*", "*-linux-gnu-gcc*"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        DIR *folder = opendir(folders[i]);
        if (folder == NULL)
            continue;
        int status = 0;
        for (struct dirent *entry; status == 0 && (entry = readdir(folder)) != NULL;)
            for (size_t k = 0; status == 0 && k < sizeof patterns / sizeof *patterns; k++)
                if (fnmatch(patterns[k], entry->d_name, 0) == 0) {
                    char path[sizeof entry->d_name + 32];
                    snprintf(path, sizeof path, "%s/%s", folders[i], entry->d_name);
                    status = white_out(layer, path, failure);
                }
        closedir(folder);
        if (status < 0)
            return status;
    }
    return 0;
}

/* Appends the lines of this machine's FILE that are not about root or the bed's user. */
static int other_lines(struct text *text, const char *file, const char *user) {
    cleanup_fclose FILE *stream = fopen(file, "re");
    char line[1024];
    int status = 0;
    while (status == 0 && stream != NULL && fgets(line, sizeof line, stream) != NULL) {
        size_t length = strcspn(line, ":");
        if (strncmp(line, "root:", 5) != 0 && !(strlen(user) == length && strncmp(line, user, length) == 0))
            status = text_append_string(text, line);
    }
    return status;
}

static int write_account_file(const char *layer, const char *file, mode_t mode, const char *root,
                              const char *user_line, const char *user, struct failure *failure) {
    struct text text cleanup(text_clear);
    text_init(&text, 1 << 20);
    int status = text_append_string(&text, root);
    if (status == 0 && strcmp(user, "root") != 0)
        status = text_append_string(&text, user_line);
    if (status == 0)
        status = other_lines(&text, file, user);
    if (status < 0)
        return failure_set(failure, status, "cannot put '%s' together: %s", file, strerror(-status));
    char path[BED_PATH_SIZE];
    snprintf(path, sizeof path, "%s%s", layer, file);
    return layer_write(path, text.bytes, mode, failure);
}

/* A '*' for a password: no password is right, and the account is not locked. */
static int write_accounts(const struct bed *bed, const char *layer, struct failure *failure) {
    const char *user = bed->settings.user;
    const char *shell = bed->settings.shell[0] ? bed->settings.shell : "/bin/bash";
    char root[4 * SETTINGS_WORD_SIZE], line[4 * SETTINGS_WORD_SIZE];
    snprintf(root, sizeof root, "root:x:0:0:root:/root:%s\n",
             strcmp(user, "root") == 0 ? shell : "/bin/bash");
    snprintf(line, sizeof line, "%s:x:1000:1000::/home/%s:%s\n", user, user, shell);
    int status = write_account_file(layer, "/etc/passwd", 0644, root, line, user, failure);
    snprintf(line, sizeof line, "%s:*:19000:0:99999:7:::\n", user);
    if (status == 0)
        status = write_account_file(layer, "/etc/shadow", 0640, "root:*:19000:0:99999:7:::\n", line, user,
                                    failure);
    snprintf(line, sizeof line, "%s:x:1000:\n", user);
    if (status == 0)
        status = write_account_file(layer, "/etc/group", 0644, "root:x:0:\n", line, user, failure);
    return status;
}

int layer_sshd_configuration(const struct bed *bed, char *text, size_t size, struct failure *failure) {
    FILE *stream = fmemopen(text, size, "w");
    if (stream == NULL)
        return failure_memory(failure);
    for (int i = 0; i < bed->settings.sshd_count; i++)
        fprintf(stream, "%s\n", bed->settings.sshd[i]);
    fputs("Port 22\n"
          "HostKey /etc/ssh/ssh_host_ed25519_key\n"
          "AuthorizedKeysFile /etc/ssh/authorized_keys .ssh/authorized_keys\n"
          "PermitRootLogin prohibit-password\n"
          "PasswordAuthentication no\n"
          "KbdInteractiveAuthentication no\n"
          "UsePAM no\n"
          "UseDNS no\n"
          "PrintMotd no\n"
          "PrintLastLog no\n"
          "AcceptEnv LANG LC_*\n"
          "Subsystem sftp internal-sftp\n"
          "PidFile /run/sshd.pid\n",
          stream);
    int status = ferror(stream) ? -ENOSPC : 0;
    if (fclose(stream) != 0 || status < 0 || strlen(text) + 1 >= size)
        return failure_set(failure, -ENOSPC, "too many options for sshd");
    return 0;
}

static int copy_file(const struct bed *bed, const char *from, const char *layer, const char *to, mode_t mode,
                     struct failure *failure) {
    char source[BED_PATH_SIZE], target[BED_PATH_SIZE], text[8192];
    bed_path(bed, source, "%s", from);
    snprintf(target, sizeof target, "%s%s", layer, to);
    cleanup_close int file = open(source, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (length < 0)
        return failure_set(failure, -errno, "cannot read '%s': %s", source, strerror(errno));
    text[length] = '\0';
    return layer_write(target, text, mode, failure);
}

/* The hosts files: what the front end knows, and what the nodes know, which differs behind a gateway. */
static int write_hosts(const struct bed *bed, struct failure *failure) {
    char machine[256] = "";
    gethostname(machine, sizeof machine - 1);
    for (int inside = 0; inside < 2; inside++) {
        char path[BED_PATH_SIZE];
        bed_path(bed, path, inside ? "hosts.nodes" : "hosts");
        cleanup_fclose FILE *stream = fopen(path, "we");
        if (stream == NULL)
            return failure_set(failure, -errno, "cannot write '%s': %s", path, strerror(errno));
        bool behind = bed->settings.gateway[0] != '\0';
        fprintf(stream, "127.0.0.1 localhost\n");
        if (!inside || !behind) {
            uint32_t address = behind ? BED_OUTER_FRONT_END : BED_FRONT_END;
            fprintf(stream, "%u.%u.%u.%u front-end %s\n", address >> 24, address >> 16 & 255,
                    address >> 8 & 255, address & 255, machine);
        }
        for (int i = 0; i < bed->node_count; i++) {
            const struct node *node = &bed->nodes[i];
            if (behind && !inside && !node->gateway)
                continue;
            uint32_t address = node->gateway && !inside ? BED_OUTER_GATEWAY : node->address;
            fprintf(stream, "%u.%u.%u.%u %s", address >> 24, address >> 16 & 255, address >> 8 & 255,
                    address & 255, node->name);
            if (strchr(node->name, '.') != NULL)
                fprintf(stream, " %.*s", (int)strcspn(node->name, "."), node->name);
            fputc('\n', stream);
        }
        if (fflush(stream) != 0)
            return failure_set(failure, -errno, "cannot write '%s': %s", path, strerror(errno));
    }
    return 0;
}

int layer_make(const struct bed *bed, const char *layer, struct failure *failure) {
    char path[BED_PATH_SIZE];
    int status = layer_folder(layer, 0755, failure);
    if (status == 0)
        status = hide_folders(layer, failure);
    if (status == 0 && bed->settings.no_compiler)
        status = hide_compilers(layer, failure);
    snprintf(path, sizeof path, "%s/etc/ssh", layer);
    if (status == 0)
        status = layer_folder(path, 0755, failure);
    if (status == 0)
        status = write_accounts(bed, layer, failure);
    if (status == 0)
        status = write_hosts(bed, failure);
    static const struct {
        const char *from, *to;
        mode_t mode;
    } files[] = {{"hosts.nodes", "/etc/hosts", 0644},
                 {"host_key", "/etc/ssh/ssh_host_ed25519_key", 0600},
                 {"host_key.pub", "/etc/ssh/ssh_host_ed25519_key.pub", 0644},
                 {"id_ed25519.pub", "/etc/ssh/authorized_keys", 0644}};
    for (size_t i = 0; status == 0 && i < sizeof files / sizeof *files; i++)
        status = copy_file(bed, files[i].from, layer, files[i].to, files[i].mode, failure);
    return status;
}
