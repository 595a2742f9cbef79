/* assay-agent: the node side. Speaks PROTOCOL.md on stdin and stdout; stderr is for its last words. */
#include "engine/agent/daemon/control-socket.h"
#include "engine/agent/daemon/daemon.h"
#include "engine/agent/daemon/guardian.h"
#include "engine/agent/daemon/relay.h"
#include "engine/agent/daemon/sessions.h"
#include "engine/agent/machine/run-directory.h"
#include "engine/agent/serve/agent.h"
#include "engine/agent/serve/program.h"
#include "engine/agent/serve/tool.h"
#include "engine/agent/serve/workspace.h"
#include "engine/event-loop/event-loop.h"
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

/* The engine delivers another: PROTOCOL.md, Sessions. */
enum { EXIT_DAMAGED = 78 };

static const char usage[] =
    "usage: assay-agent --directory DIR [--remove-directory] [--root DIR]\n"
    "       assay-agent --attach|--serve SESSION [--directory DIR | --folder NAME [--workspace DIR]]\n"
    "                   [--remove-directory] [--leave-controls] [--label WORD]\n"
    "                   [--root DIR]\n"
    "       assay-agent --resume SESSION\n"
    "       assay-agent --list\n"
    "       assay-agent --end SESSION|all\n"
    "       assay-agent --controls | --snapshot-controls | --set-controls NAME=VALUE... | "
    "--restore-controls\n"
    "       assay-agent --probes | --sample | --stress | --spin | --capture | --pack | --unpack | --job | "
    "--launch\n"
    "\n"
    "Serves an assay engine on stdin and stdout: until they are closed; or as a daemon that outlives them,\n"
    "is found again by its session (16 hexadecimal digits, not all 0), and ends when it is told to or when\n"
    "the engine has not been heard for the length of its lease.\n"
    "\n"
    "  --attach SESSION start the daemon of that session if it is not there, and give it stdin and stdout\n"
    "  --serve SESSION  be the daemon of that session, in the foreground; the engine comes by --resume\n"
    "  --resume SESSION give them to the daemon that is there; exit with status 69 if there is none\n"
    "  --list           print a line for each daemon of this user: session, state, seconds since the engine "
    "was\n"
    "                   heard, lease in seconds, commands, pid, start (Unix time), directory, label\n"
    "  --end SESSION    tell that daemon (or all) to leave, and wait until it has gone\n"
    "  --directory DIR  the run directory: all that is written goes below it; made (mode 0700) if it is not "
    "there\n"
    "  --folder NAME    the name of the run directory, which is made in the workspace; \"assay-SESSION\" if "
    "neither\n"
    "                   this nor --directory is given\n"
    "  --workspace DIR  where it is made; otherwise in the first of $TMPDIR, /tmp, /var/tmp, ~/.cache/assay "
    "and\n"
    "                   /dev/shm that can be written to and from which programs can be run\n"
    "  --remove-directory\n"
    "                   remove the run directory at the end, however that comes, unless it was there before "
    "with\n"
    "                   something in it\n"
    "  --leave-controls do not put back what an agent that is gone has left changed here\n"
    "  --label WORD     whose agent it is, for who finds it left over\n"
    "  --root DIR       a captured tree that stands for / when the machine is inspected\n"
    "  --version        print version and protocol, and exit\n"
    "  --help           print this, and exit\n";

struct options {
    const char *attach, *serve, *resume, *end;
    const char *directory, *folder, *workspace, *root, *label;
    bool remove_directory, leave_controls, list;
};

static _Noreturn void complain(const char *sentence) {
    fprintf(stderr, "assay-agent: %s\n", sentence);
    exit(2);
}

/* ---- options */

static bool *find_flag(const char *name, struct options *options) {
    return strcmp(name, "--remove-directory") == 0 ? &options->remove_directory
           : strcmp(name, "--leave-controls") == 0 ? &options->leave_controls
           : strcmp(name, "--list") == 0           ? &options->list
                                                   : NULL;
}

static const char **find_value(const char *name, struct options *options) {
    const struct {
        const char *name;
        const char **value;
    } valued[] = {
        {"--attach", &options->attach},       {"--serve", &options->serve},
        {"--resume", &options->resume},       {"--end", &options->end},
        {"--directory", &options->directory}, {"--folder", &options->folder},
        {"--workspace", &options->workspace}, {"--root", &options->root},
        {"--label", &options->label},
    };
    for (size_t i = 0; i < sizeof valued / sizeof *valued; i++)
        if (strcmp(name, valued[i].name) == 0)
            return valued[i].value;
    return NULL;
}

static void parse(int count, char **arguments, struct options *options) {
    for (int i = 1; i < count; i++) {
        const char *name = arguments[i];
        if (strcmp(name, "--help") == 0) {
            fputs(usage, stdout);
            exit(0);
        }
        if (strcmp(name, "--version") == 0) {
            printf("assay-agent %s protocol %d\n", ASSAY_VERSION, PROTOCOL_VERSION);
            exit(0);
        }
        bool *flag = find_flag(name, options);
        if (flag) {
            *flag = true;
            continue;
        }
        const char **value = find_value(name, options);
        if (!value)
            complain("unknown option; see --help");
        if (++i == count)
            complain("an option lacks its value; see --help");
        *value = arguments[i];
    }
}

static uint64_t parse_session(const char *text) {
    uint64_t session;
    if (!control_socket_parse_session(text, &session))
        complain("a session has 16 hexadecimal digits, not all 0");
    return session;
}

static const char *check_label(const char *label) {
    if (!label)
        return "";
    if (strlen(label) > DAEMON_LABEL_LIMIT)
        complain("a label has at most 128 bytes");
    for (const char *at = label; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == 0x7f)
            complain("a label is one word");
    return label;
}

/* ---- the three ways to serve */

static void on_signal(struct event_source *self, int number, void *context) {
    (void)self;
    (void)number;
    agent_leave(context, "the agent was asked to end by a signal");
}

static int serve(const struct agent_options *options, struct failure *failure) {
    struct event_loop *loop = event_loop_new(failure);
    if (!loop)
        return failure->code;
    static struct agent agent;
    int r = agent_init(&agent, loop, options, failure);
    if (r < 0) {
        event_loop_free(loop);
        return r;
    }
    r = agent_attach(&agent, 0, 1, failure);
    static const int ending[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < sizeof ending / sizeof *ending && r == 0; i++)
        if (!event_loop_add_signal(loop, ending[i], on_signal, &agent))
            r = failure_set(failure, -errno, "cannot watch signals: %s", strerror(errno));
    if (r == 0)
        r = agent_run(&agent, failure);
    agent_clear(&agent);
    event_loop_free(loop);
    return r;
}

static int serve_stream(const struct options *given) {
    struct failure failure = {0};
    struct run_directory directory;
    cleanup_free char *root = given->root ? realpath(given->root, NULL) : NULL;
    if (given->root && !root) {
        fprintf(stderr, "assay-agent: cannot open the root '%s': %s\n", given->root, strerror(errno));
        return 1;
    }
    tool_pass_root(root);
    /* Before the fork: the guardian, too, must know whether it was there. */
    int r = run_directory_open(&directory, given->directory,
                               given->remove_directory ? RUN_DIRECTORY_REMOVE : 0, &failure);
    if (r == 0) {
        r = guardian_start(&directory, &(struct guardian_options){.root = root}, &failure);
        if (r < 0)
            (void)run_directory_remove(&directory, NULL);
        else
            r = serve(&(struct agent_options){.directory = directory.folder, .root = root}, &failure);
        run_directory_clear(&directory);
    }
    if (r == 0)
        return 0;
    fprintf(stderr, "assay-agent: %s\n", failure.text);
    return 1;
}

static int attach(const struct options *given, const char *path) {
    struct failure failure;
    if (program_check_name(path, &failure) < 0) {
        fprintf(stderr, "assay-agent: %s\n", failure.text);
        return EXIT_DAMAGED;
    }
    struct daemon_options options = {.session = parse_session(given->serve ? given->serve : given->attach),
                                     .directory = given->directory,
                                     .folder = given->folder,
                                     .workspace = given->workspace,
                                     .root = given->root,
                                     .label = check_label(given->label),
                                     .remove_directory = given->remove_directory,
                                     .leave_controls = given->leave_controls};
    char folder[64];
    if (given->directory && (given->folder || given->workspace))
        complain("--directory excludes --folder and --workspace");
    if (given->folder && !workspace_is_name(given->folder))
        complain("--folder is a name, without a slash");
    if (!given->folder) {
        snprintf(folder, sizeof folder, "assay-%016llx", (unsigned long long)options.session);
        options.folder = folder;
    }
    return given->serve ? daemon_run(&options, -1) : relay_attach(&options);
}

/* ---- tools */

struct tool {
    const char *name;
    tool_function *run;
    bool takes_root;
};

static const struct tool *find_tool(const char *name) {
    static const struct tool tools[] = {
        {"--controls", tool_controls, true},
        {"--snapshot-controls", tool_snapshot_controls, true},
        {"--set-controls", tool_set_controls, true},
        {"--restore-controls", tool_restore_controls, true},
        {"--probes", tool_probes, true},
        {"--sample", tool_sample, true},
        {"--stress", tool_stress, false},
        {"--spin", tool_spin, true},
        {"--capture", tool_capture, true},
        {"--pack", tool_pack, true},
        {"--unpack", tool_unpack, false},
        {"--job", tool_job, false},
        {"--launch", tool_launch, false},
    };
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
        if (strcmp(name, tools[i].name) == 0)
            return &tools[i];
    return NULL;
}

static int run_tool(const struct tool *tool, int count, char **arguments) {
    char *root = getenv(TOOL_ROOT_VARIABLE);
    bool given = !root || !tool->takes_root;
    for (int i = 0; i < count && !given; i++)
        given = strcmp(arguments[i], "--root") == 0;
    if (given)
        return tool->run(count, arguments);
    cleanup_free char **all = calloc((size_t)count + 3, sizeof *all);
    if (!all)
        complain("out of memory");
    static char option[] = "--root";
    all[0] = option;
    all[1] = root;
    memcpy(all + 2, arguments, (size_t)count * sizeof *all);
    return tool->run(count + 2, all);
}

/* Whatever our parent left open would reach every program that we run. */
static void close_what_was_inherited(void) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0)
        return;
#endif
    long limit = sysconf(_SC_OPEN_MAX);
    for (int descriptor = 3; descriptor < (limit > 0 && limit < 65536 ? (int)limit : 65536); descriptor++)
        close(descriptor);
}

int main(int count, char **arguments) {
    /* A descriptor below 3 that is free would be given to a pipe, and then be taken for stdin or stdout. */
    for (int descriptor = 0; descriptor < 3; descriptor++)
        if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            return 1;
    close_what_was_inherited();
    signal(SIGPIPE, SIG_IGN);
    const struct tool *tool = count > 1 ? find_tool(arguments[1]) : NULL;
    if (tool)
        return run_tool(tool, count - 2, arguments + 2);
    struct options options = {0};
    parse(count, arguments, &options);
    if (!!options.attach + !!options.serve + !!options.resume + !!options.end + options.list > 1)
        complain("--attach, --serve, --resume, --list and --end exclude each other");
    if (options.list)
        return sessions_list();
    if (options.end)
        return sessions_end(strcmp(options.end, "all") == 0 ? 0 : parse_session(options.end));
    if (options.resume)
        return relay_resume(parse_session(options.resume));
    if (options.attach || options.serve)
        return attach(&options, arguments[0]);
    if (options.folder || options.workspace || options.leave_controls || options.label)
        complain("--folder, --workspace, --leave-controls and --label go with --attach and --serve");
    if (!options.directory)
        complain("no --directory; see --help");
    return serve_stream(&options);
}
