#include "tests/test-bed/folder.h"

#include "engine/foundation/cleanup.h"
#include "tests/test-bed/layer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FOLDER_PREFIX "assay-bed."
enum { FOLDER_YOUNG_S = 60 }; /* a folder without a lock may be one that is being made */

static const char *temporary_folder(void) {
    const char *folder = getenv("TMPDIR");
    return folder != NULL && folder[0] == '/' && strlen(folder) < 64 && strpbrk(folder, ",:\\ ") == NULL
               ? folder
               : "/tmp";
}

static int make_key(const struct bed *bed, const char *name, struct failure *failure) {
    char path[BED_PATH_SIZE];
    bed_path(bed, path, "%s", name);
    return layer_make_key(path, failure);
}

int folder_make(struct bed *bed, int *ret_lock, struct failure *failure) {
    snprintf(bed->folder, sizeof bed->folder, "%s/" FOLDER_PREFIX "XXXXXX", temporary_folder());
    if (mkdtemp(bed->folder) == NULL)
        return failure_set(failure, -errno, "cannot make the folder '%s': %s", bed->folder, strerror(errno));
    char path[BED_PATH_SIZE];
    bed_path(bed, path, "lock");
    cleanup_close int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
        return failure_set(failure, -errno, "cannot lock '%s': %s", path, strerror(errno));
    static const char *const folders[] = {"log", "home", "home/.ssh"};
    int status = 0;
    for (size_t i = 0; status == 0 && i < sizeof folders / sizeof *folders; i++) {
        bed_path(bed, path, "%s", folders[i]);
        status = layer_folder(path, 0700, failure);
    }
    if (status == 0)
        status = make_key(bed, "id_ed25519", failure);
    if (status == 0)
        status = make_key(bed, "host_key", failure);
    if (status == 0)
        *ret_lock = take_descriptor(lock);
    return status;
}

static int flushed(FILE *stream, const char *path, struct failure *failure) {
    return fflush(stream) == 0 ? 0
                               : failure_set(failure, -errno, "cannot write '%s': %s", path, strerror(errno));
}

/* The nodes' public host key, "ssh-ed25519 AAAA...". */
static int read_public_key(const struct bed *bed, char *key, size_t size, struct failure *failure) {
    char path[BED_PATH_SIZE];
    bed_path(bed, path, "host_key.pub");
    cleanup_close int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, key, size - 1);
    if (length < 0)
        return failure_set(failure, -errno, "cannot read '%s': %s", path, strerror(errno));
    key[length] = '\0';
    key[strcspn(key, "\n")] = '\0';
    return 0;
}

static int write_known_hosts(const struct bed *bed, const char *path, struct failure *failure) {
    char key[512];
    int status = read_public_key(bed, key, sizeof key, failure);
    if (status < 0)
        return status;
    cleanup_fclose FILE *stream = fopen(path, "we");
    if (stream == NULL)
        return failure_set(failure, -errno, "cannot write '%s': %s", path, strerror(errno));
    for (int i = 0; i < bed->node_count; i++) {
        const struct node *node = &bed->nodes[i];
        fprintf(stream, "%s", node->name);
        if (strchr(node->name, '.') != NULL)
            fprintf(stream, ",%.*s", (int)strcspn(node->name, "."), node->name);
        if (node->gateway)
            fprintf(stream, ",%u.%u.%u.%u", BED_OUTER_GATEWAY >> 24, BED_OUTER_GATEWAY >> 16 & 255,
                    BED_OUTER_GATEWAY >> 8 & 255, BED_OUTER_GATEWAY & 255);
        fprintf(stream, ",%u.%u.%u.%u %s\n", node->address >> 24, node->address >> 16 & 255,
                node->address >> 8 & 255, node->address & 255, key);
    }
    return flushed(stream, path, failure);
}

/* One file for OpenSSH's tools and for whoever else reads its format. curve25519 because the default exchange
 * costs ten times as much, which would be all that a comparison of programs shows. */
static int write_ssh_config(const struct bed *bed, const char *path, struct failure *failure) {
    cleanup_fclose FILE *stream = fopen(path, "we");
    if (stream == NULL)
        return failure_set(failure, -errno, "cannot write '%s': %s", path, strerror(errno));
    const struct settings *settings = &bed->settings;
    if (settings->gateway[0]) {
        const char *mark = strchr(settings->names, '%');
        int before = (int)(mark - settings->names), middle = (int)strcspn(mark + 1, ".");
        fprintf(stream, "Host !%s %.*s*%s", settings->gateway, before, settings->names, mark + 1);
        if (mark[1 + middle] != '\0') /* the short names */
            fprintf(stream, " %.*s*%.*s", before, settings->names, middle, mark + 1);
        fprintf(stream, "\n    ProxyJump %s\n", settings->gateway);
    }
    fprintf(stream,
            "Host *\n"
            "    User %s\n"
            "    IdentityFile %s/id_ed25519\n"
            "    IdentitiesOnly yes\n"
            "    BatchMode yes\n"
            "    StrictHostKeyChecking yes\n"
            "    UserKnownHostsFile %s/known_hosts\n"
            "    GlobalKnownHostsFile /dev/null\n"
            "    UpdateHostKeys no\n"
            "    KexAlgorithms curve25519-sha256\n"
            "    LogLevel ERROR\n",
            settings->user, bed->folder, bed->folder);
    return flushed(stream, path, failure);
}

int folder_write_client_files(const struct bed *bed, struct failure *failure) {
    static const char *const prefixes[] = {"", "home/.ssh/"};
    int status = 0;
    char path[BED_PATH_SIZE];
    for (size_t i = 0; status == 0 && i < 2; i++) {
        bed_path(bed, path, "%sknown_hosts", prefixes[i]);
        status = write_known_hosts(bed, path, failure);
        bed_path(bed, path, i == 0 ? "ssh_config" : "home/.ssh/config");
        if (status == 0)
            status = write_ssh_config(bed, path, failure);
    }
    if (status < 0)
        return status;
    bed_path(bed, path, "nodes");
    cleanup_fclose FILE *stream = fopen(path, "we");
    if (stream == NULL)
        return failure_set(failure, -errno, "cannot write '%s': %s", path, strerror(errno));
    for (int i = 0; i < bed->node_count; i++)
        if (!bed->nodes[i].gateway)
            fprintf(stream, "%s\n", bed->nodes[i].name);
    return flushed(stream, path, failure);
}

/* ---- Leaving nothing -------------------------------------------------------------------------------------
 */

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk) {
    (void)status, (void)type, (void)walk;
    remove(path);
    return 0;
}

void folder_remove(const char *folder) {
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* The parent of a process, from its status file; 0 if it is gone. */
static pid_t parent_of(pid_t process) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", (int)process);
    cleanup_fclose FILE *stream = fopen(path, "re");
    int parent = 0;
    while (stream != NULL && fgets(line, sizeof line, stream) != NULL)
        if (sscanf(line, "PPid: %d", &parent) == 1)
            break;
    return parent;
}

static bool is_or_descends_from(pid_t process, pid_t ancestor) {
    for (; process > 1; process = parent_of(process))
        if (process == ancestor)
            return true;
    return false;
}

static bool is_in_network(const char *process, const char *network) {
    char path[300], link[64];
    snprintf(path, sizeof path, "/proc/%s/ns/net", process);
    ssize_t length = readlink(path, link, sizeof link - 1);
    return length > 0 && strlen(network) == (size_t)length && memcmp(link, network, (size_t)length) == 0;
}

static bool has_in_environment(const char *process, const char *folder) {
    char path[300], expected[BED_PATH_SIZE + 8];
    snprintf(path, sizeof path, "/proc/%s/environ", process);
    int length = snprintf(expected, sizeof expected, "BED_OF_PROCESS=%s", folder);
    cleanup_fclose FILE *stream = fopen(path, "re");
    char *entry = NULL;
    size_t size = 0;
    bool found = false;
    ssize_t got;
    while (stream != NULL && !found && (got = getdelim(&entry, &size, '\0', stream)) > 0)
        found = strncmp(entry, expected, (size_t)length + 1) == 0;
    free(entry);
    return found;
}

/* Calls FUNCTION for each process but the calling one. */
static void for_each_process(void (*function)(const char *process, pid_t id, const void *argument),
                             const void *argument) {
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; processes != NULL && (entry = readdir(processes)) != NULL;) {
        long process;
        if (settings_number(entry->d_name, 2, 1 << 30, &process) == 0 && process != getpid())
            function(entry->d_name, (pid_t)process, argument);
    }
    if (processes != NULL)
        closedir(processes);
}

struct network_end {
    char network[64]; /* what the link in /proc says */
    pid_t spared;
};

static void end_in_network(const char *process, pid_t id, const void *argument) {
    const struct network_end *end = argument;
    if (is_in_network(process, end->network) && parent_of(id) != getpid() &&
        !(end->spared > 0 && is_or_descends_from(end->spared, id)))
        kill(id, SIGKILL);
}

void folder_end_network(pid_t spared) {
    struct network_end end = {.spared = spared};
    if (readlink("/proc/self/ns/net", end.network, sizeof end.network - 1) > 0)
        for_each_process(end_in_network, &end);
}

static void end_marked(const char *process, pid_t id, const void *folder) {
    if (has_in_environment(process, folder))
        kill(id, SIGKILL);
}

void folder_end_marked(const char *folder) {
    for_each_process(end_marked, folder);
}

/* Whether the bed in FOLDER is this user's and has no keeper any more. */
static bool is_dead(const char *folder) {
    char path[BED_PATH_SIZE + 8];
    struct stat status;
    if (lstat(folder, &status) < 0 || !S_ISDIR(status.st_mode) || status.st_uid != getuid())
        return false;
    snprintf(path, sizeof path, "%s/lock", folder);
    cleanup_close int lock = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0)
        return time(NULL) - status.st_mtime > FOLDER_YOUNG_S;
    return flock(lock, LOCK_EX | LOCK_NB) == 0;
}

void folder_reap(void) {
    DIR *folder = opendir(temporary_folder());
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[BED_PATH_SIZE];
        if (strncmp(entry->d_name, FOLDER_PREFIX, strlen(FOLDER_PREFIX)) != 0 ||
            snprintf(path, sizeof path, "%s/%s", temporary_folder(), entry->d_name) >= (int)sizeof path ||
            !is_dead(path))
            continue;
        folder_end_marked(path);
        folder_remove(path);
    }
    if (folder != NULL)
        closedir(folder);
}
