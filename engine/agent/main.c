/* assay-agent: the node side. Speaks PROTOCOL.md on stdin and stdout; stderr is for its messages. */
#include "engine/agent/daemon/control-socket.h"
#include "engine/agent/daemon/daemon.h"
#include "engine/agent/daemon/deployed.h"
#include "engine/agent/daemon/relay.h"
#include "engine/agent/daemon/sessions.h"
#include "engine/agent/machine/environment.h"
#include "engine/agent/machine/tool.h"
#include "engine/agent/serve/program.h"
#include "engine/agent/serve/workspace.h"
#include "engine/agent/wire/protocol.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef ASSAY_VERSION
#define ASSAY_VERSION "unversioned"
#endif

/* Exit status of a damaged agent: the engine delivers it again (PROTOCOL.md, Sessions). */
enum { EXIT_DAMAGED = 78 };

static const char usage[] =
    "usage: assay-agent --directory DIR [--remove-directory] [--root DIR | --image SHA256]\n"
    "       assay-agent --attach|--serve SESSION [--directory DIR | --folder NAME [--workspace DIR]]\n"
    "                   [--remove-directory] [--leave-controls] [--sudo WORDS] [--label WORD]\n"
    "                   [--root DIR | --image SHA256]\n"
    "       assay-agent --resume SESSION\n"
    "       assay-agent --list [--remove-abandoned]\n"
    "       assay-agent --end SESSION|all\n"
    "       assay-agent --controls | --snapshot-controls | --set-controls NAME=VALUE... |\n"
    "                   --restore-controls | --probes | --sample | --stress | --spin | --capture |\n"
    "                   --pack | --unpack | --job | --launch\n"
    "\n"
    "Serves an assay engine on stdin and stdout until they are closed; or as a daemon that outlives them,\n"
    "is found again by its session (16 hexadecimal digits, not all 0), and ends when it is asked to or\n"
    "when nothing was heard from the engine for the length of its lease.\n"
    "\n"
    "  --attach SESSION    start the daemon of that session if it is not there; pass it stdin and stdout\n"
    "  --serve SESSION     be that daemon, in the foreground; the engine comes by --resume\n"
    "  --resume SESSION    pass them to the daemon that is there; exit with status 69 if there is none\n"
    "  --list              print a line for each daemon of this user: session, state, seconds since the\n"
    "                      engine was heard, lease in seconds, commands, pid, start (Unix time),\n"
    "                      directory, label; and one for each folder that an agent which was killed left\n"
    "  --remove-abandoned  remove these folders\n"
    "  --end SESSION       ask that daemon (or all) to leave, and wait until it has gone\n"
    "folders\n"
    "  --directory DIR     the run directory, below which everything is written; made if it is missing\n"
    "  --folder NAME       the run directory's name in the workspace; the default is assay-SESSION\n"
    "  --workspace DIR     where it is made; the default is the first of $TMPDIR, /tmp, /var/tmp,\n"
    "                      ~/.cache/assay and /dev/shm that can be written to and run programs from\n"
    "  --remove-directory  remove the run directory at the end, unless it had something in it before\n"
    "  --leave-controls    do not restore what an agent that is gone has left changed here\n"
    "  --sudo WORDS        run the tools that set controls as root by these, such as sudo,-n\n"
    "  --label WORD        whose agent it is, for anyone who finds it left over\n"
    "  --root DIR          a captured tree that stands for / when the machine is inspected\n"
    "  --image SHA256      run in a fresh system, of ~/.cache/assay/image-SHA256; exit with status 79 if\n"
    "                      that is not there\n"
    "  --version           print version and protocol, and exit\n"
    "  --help              print this, and exit\n";

/* ---- options */

static uint64_t parse_session(const char *text) {
    uint64_t session;
    if (!control_socket_parse_session(text, &session))
        exit(tool_complain(2, "a session has 16 hexadecimal digits, not all 0"));
    return session;
}

static void check_label(const char *label) {
    if (strlen(label) > DAEMON_LABEL_LIMIT)
        exit(tool_complain(2, "a label has at most 128 bytes"));
    for (const char *at = label; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == 0x7f)
            exit(tool_complain(2, "a label is one word"));
}

/* Runs --attach or --serve of SESSION: checks the options, then is a relay or, IN_FOREGROUND, the daemon
 * itself. PATH is this program's, whose name has its SHA-256. */
static int attach_or_serve(struct daemon_options *options, const char *session, bool in_foreground,
                           const char *path) {
    struct failure failure;
    if (program_check_name(path, &failure) < 0)
        return tool_complain(EXIT_DAMAGED, "%s", failure.text);
    options->session = parse_session(session);
    check_label(options->label);
    if (options->directory && (options->folder || options->workspace))
        return tool_complain(2, "--directory excludes --folder and --workspace");
    if (options->folder && !workspace_is_name(options->folder))
        return tool_complain(2, "--folder is a name, without a slash");
    char folder[64];
    snprintf(folder, sizeof folder, "assay-%016llx", (unsigned long long)options->session);
    if (!options->folder)
        options->folder = folder;
    return in_foreground ? daemon_run(options, -1) : relay(options->session, options);
}

/* Runs the agent as its options say; returns the exit status. */
static int run(int count, char **arguments) {
    const char *session = NULL, *serve = NULL, *resume = NULL, *end = NULL;
    bool help = false, version = false, list = false, remove_abandoned = false;
    struct daemon_options daemon = {.label = ""};
    const struct tool_option known[] = {
        {"--attach", .text = &session},
        {"--serve", .text = &serve},
        {"--resume", .text = &resume},
        {"--end", .text = &end},
        {"--list", .flag = &list},
        {"--remove-abandoned", .flag = &remove_abandoned},
        {"--directory", .text = &daemon.directory},
        {"--folder", .text = &daemon.folder},
        {"--workspace", .text = &daemon.workspace},
        {"--root", .text = &daemon.root},
        {"--image", .text = &daemon.image},
        {"--label", .text = &daemon.label},
        {"--sudo", .text = &daemon.sudo},
        {"--remove-directory", .flag = &daemon.remove_directory},
        {"--leave-controls", .flag = &daemon.leave_controls},
        {"--help", .flag = &help},
        {"--version", .flag = &version},
        {NULL},
    };
    if (tool_parse(count - 1, arguments + 1, known, 0) < 0)
        return 2;
    if (help || version) {
        if (help)
            fputs(usage, stdout);
        else
            printf("assay-agent %s protocol %d\n", ASSAY_VERSION, PROTOCOL_VERSION);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    if (!!session + !!serve + !!resume + !!end + list > 1)
        return tool_complain(2, "--attach, --serve, --resume, --list and --end exclude each other");
    if (daemon.image) {
        struct failure failure;
        cleanup_close int image = deployed_open_image(daemon.image, &failure);
        if (image < 0)
            return tool_complain(image == -ENOENT ? DEPLOYED_ABSENT : 1, "%s", failure.text);
    }
    if (list)
        return sessions_list(remove_abandoned);
    if (end)
        return sessions_end(strcmp(end, "all") == 0 ? 0 : parse_session(end));
    if (resume)
        return relay(parse_session(resume), NULL);
    if (session || serve)
        return attach_or_serve(&daemon, session ? session : serve, serve, arguments[0]);
    if (daemon.folder || daemon.workspace || daemon.leave_controls || daemon.label[0])
        return tool_complain(
            2, "--folder, --workspace, --leave-controls and --label go with --attach and --serve");
    if (!daemon.directory)
        return tool_complain(2, "no --directory; see --help");
    return daemon_run(&daemon, -1);
}

/* The function of the tool NAME; NULL: there is no such tool. */
static tool_function *find_tool(const char *name) {
    static const struct {
        const char *name;
        tool_function *run;
    } tools[] = {
        {"--controls", tool_controls},
        {"--snapshot-controls", tool_snapshot_controls},
        {"--set-controls", tool_set_controls},
        {"--restore-controls", tool_restore_controls},
        {"--probes", tool_probes},
        {"--sample", tool_sample},
        {"--stress", tool_stress},
        {"--spin", tool_spin},
        {"--capture", tool_capture},
        {"--pack", tool_pack},
        {"--unpack", tool_unpack},
        {"--job", tool_job},
        {"--launch", tool_launch},
    };
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
        if (strcmp(name, tools[i].name) == 0)
            return tools[i].run;
    return NULL;
}

/* Closes descriptors that the parent left open: every program that we run would inherit them. */
static void close_inherited_descriptors(void) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0)
        return;
#endif
    long limit = sysconf(_SC_OPEN_MAX);
    for (int descriptor = 3; descriptor < (limit > 0 && limit < 65536 ? (int)limit : 65536); descriptor++)
        close(descriptor);
}

static void ignore_signal(int number) {
    (void)number;
}

int main(int count, char **arguments) {
    /* A free descriptor below 3 would be given to a pipe, and then be mistaken for stdin or stdout. */
    for (int descriptor = 0; descriptor < 3; descriptor++)
        if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            return 1;
    close_inherited_descriptors();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, ignore_signal); /* writes fail with EFBIG; programs do not inherit a handler */
    environment_prepare();
    tool_function *tool = count > 1 ? find_tool(arguments[1]) : NULL;
    return tool ? tool(count - 2, arguments + 2) : run(count, arguments);
}
