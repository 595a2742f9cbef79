#include "engine/agent/controls/elevation.h"

#include "engine/agent/machine/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_VARIABLE "ASSAY_AGENT_SUDO"

enum { WORDS_SIZE = 1024, ARGUMENTS_MAX = 64, SAID_SIZE = 1024, PROGRAM_SIZE = 4096 };

static const char message_prefix[] = "assay-agent: "; /* the prefix of all messages of the agent's tools */

void elevation_pass(const char *words) {
    if (words)
        (void)setenv(WORDS_VARIABLE, words, 1);
    else
        (void)unsetenv(WORDS_VARIABLE);
}

bool elevation_is_due(void) {
    const char *words = getenv(WORDS_VARIABLE);
    return words && words[strspn(words, ",")] && geteuid() != 0 && !tool_passed_root();
}

/* ---- the command */

struct command {
    char words[WORDS_SIZE], program[PROGRAM_SIZE], owner[16];
    char *arguments[ARGUMENTS_MAX + 1];
    size_t count;
};

static void add(struct command *command, const char *argument) {
    if (command->count < ARGUMENTS_MAX)
        command->arguments[command->count++] = (char *)argument;
}

static bool is_agent(const char *path) {
    const char *slash = strrchr(path, '/');
    return path[0] == '/' && strcmp(slash, "/assay-agent") == 0;
}

/* Makes the command that runs TOOL as root for OWNER; further arguments are added by add(). 0, or a negative
 * errno. */
static int make_command(struct command *command, const char *tool, pid_t owner) {
    ssize_t length = readlink("/proc/self/exe", command->program, sizeof command->program - 1);
    int words = snprintf(command->words, sizeof command->words, "%s", getenv(WORDS_VARIABLE));
    if (length < 0 || words >= WORDS_SIZE)
        return length < 0 ? -errno : -E2BIG;
    command->program[length] = '\0';
    for (char *at = command->words, *word; (word = strsep(&at, ","));)
        if (word[0])
            add(command, word);
    if (is_agent(command->arguments[command->count - 1]))
        snprintf(command->program, sizeof command->program, "%s", command->arguments[command->count - 1]);
    else
        add(command, command->program);
    snprintf(command->owner, sizeof command->owner, "%ld", (long)owner);
    add(command, tool);
    add(command, "--owner");
    add(command, command->owner);
    return 0;
}

/* ---- running it */

/* Runs in the child: executes the command with stderr on the pipe ERROR. stderr is set first, because the
 * pipe may have number 0 or 1: the guardian has closed stdin and stdout. */
static _Noreturn void run_child(const struct command *command, int error, bool silent) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(error, STDERR_FILENO);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC); /* above 1: the pipe has taken free lower numbers */
    dup2(null, STDIN_FILENO);
    if (silent)
        dup2(null, STDOUT_FILENO);
    execvp(command->arguments[0], command->arguments);
    dprintf(STDERR_FILENO, "%s: %s\n", command->arguments[0], strerror(errno));
    _exit(127);
}

/* Reads the command's stderr to its end, when all its processes have ended, and stores its beginning in SAID.
 */
static void read_messages(int error, char said[static SAID_SIZE]) {
    char rest[SAID_SIZE];
    size_t length = 0;
    for (;;) {
        bool full = length == SAID_SIZE - 1;
        ssize_t got = read(error, full ? rest : said + length, SAID_SIZE - 1 - (full ? 0 : length));
        if (got == 0 || (got < 0 && errno != EINTR))
            return;
        length += got > 0 && !full ? (size_t)got : 0;
        said[length] = '\0';
    }
}

/* Runs the command and waits. Returns its exit status, or a negative errno. SILENT: its stdout is dropped. */
static int run(const struct command *command, bool silent, char said[static SAID_SIZE]) {
    int ends[2], status = 0;
    said[0] = '\0';
    if (command->count == ARGUMENTS_MAX) /* some arguments may have been dropped */
        return -E2BIG;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        run_child(command, ends[1], silent);
    int r = pid < 0 ? -errno : 0;
    close(ends[1]);
    if (r == 0)
        read_messages(ends[0], said);
    close(ends[0]);
    while (r == 0 && waitpid(pid, &status, 0) < 0)
        r = errno == EINTR ? 0 : -errno;
    return r < 0 ? r : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- its result */

/* The first message of the tool itself in SAID, without its prefix; NULL: none. */
static const char *find_tool_message(char *said) {
    char *own = strstr(said, message_prefix);
    if (!own)
        return NULL;
    own[strcspn(own, "\n")] = '\0';
    return own + strlen(message_prefix);
}

/* Sets RET for a tool that did not run: the first line of stderr, such as sudo's, and the line for sudoers
 * that would allow it. */
static void describe_failure(const struct command *command, int status, char *said, struct failure *ret) {
    char words[WORDS_SIZE];
    snprintf(words, sizeof words, "%s", getenv(WORDS_VARIABLE));
    for (char *at = words; (at = strchr(at, ','));)
        *at = ' ';
    said[strcspn(said, "\n")] = '\0';
    if (status < 0)
        snprintf(said, SAID_SIZE, "%s",
                 status == -ETIMEDOUT ? "the command did not end in time" : strerror(-status));
    failure_set(ret, -EPERM,
                "'%.200s' does not set controls as root: %.500s; expected that sudoers has "
                "'#%u ALL=(root) NOPASSWD: %.500s'",
                words, said, (unsigned)getuid(), command->program);
}

/* Runs TOOL again as root, by the command for root, and passes its lines on. The exit status. */
int elevation_run_tool(const char *tool, int count, char **arguments) {
    struct command command = {0};
    struct failure failure;
    char said[SAID_SIZE] = "";
    int status = make_command(&command, tool, getppid());
    for (int i = 0; i < count; i++)
        add(&command, arguments[i]);
    if (status == 0)
        status = run(&command, false, said);
    const char *own = find_tool_message(said);
    if (own)
        return tool_complain(status, "%s", own);
    if (status == 0 || (status == 1 && !said[0])) /* 1 in silence: the tool's lines have the reasons */
        return status;
    describe_failure(&command, status, said, &failure);
    return tool_complain(1, "%s", failure.text);
}

/* True where root's folder of snapshots exists. Only root can read it, and removes it with its last snapshot.
 */
static bool has_snapshot(const struct machine *machine) {
    struct stat status;
    return fstatat(machine->root, "run/assay", &status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Restores root's snapshot by the command for root, if there may be one. NOTE: what was restored or failed;
 * "": nothing. */
void elevation_restore(const struct machine *machine, char *note, size_t size) {
    struct command command = {0};
    struct failure failure;
    char said[SAID_SIZE] = "";
    if (!elevation_is_due() || !has_snapshot(machine))
        return;
    int status = make_command(&command, "--restore-controls", getpid());
    add(&command, "--unasked");
    if (status == 0)
        status = run(&command, true, said);
    const char *own = find_tool_message(said);
    if (own || status == 0) {
        snprintf(note, size, "%s", own ? own : "");
        return;
    }
    describe_failure(&command, status, said, &failure);
    snprintf(note, size, "cannot find out whether an earlier agent left controls changed: %s", failure.text);
}
