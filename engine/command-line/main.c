/*
 * assay: picks the command, runs it, prints what failed and turns it into an exit code. Nothing below prints
 * its failures or exits. setlocale is never called: numbers are read and written alike everywhere.
 */
#include "engine/command-line/manual.h"
#include "engine/command-line/output.h"
#include "engine/command-line/plugin-describe.h"
#include "engine/command-line/verb.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/path.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void ignore_signal(int signal_number) {
    (void)signal_number;
}

/* A broken pipe, and a file at its limit of size (ulimit -f), are errors of write(2), not a death. An empty
 * handler, not SIG_IGN: a handler is not inherited through exec, so the programs that we start get the
 * signals as they expect them. */
static void survive_failed_writes(void) {
    struct sigaction action = {.sa_handler = ignore_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
}

/* Makes sure that descriptors 0, 1 and 2 are open, so that no file of ours gets such a number and our
 * messages with it. A closed one is opened the wrong way round, so that using it remains an error. */
static bool hold_standard_descriptors(void) {
    for (int descriptor = 0; descriptor <= 2; descriptor++) {
        if (fcntl(descriptor, F_GETFD) >= 0)
            continue;
        int flags = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        if (open("/dev/null", flags) !=
            descriptor) /* the lowest free one; inherited, as the standard ones are */
            return false;
    }
    return true;
}

/* Flushes and closes standard output; returns the exit code. If the reader of a pipe has closed it, that is
 * not reported, because it has seen enough. */
static int close_standard_output(void) {
    int code = output_flush();
    bool failed = code < 0 || ferror(stdout);
    bool gone = failed && (code == -EPIPE || output_is_broken_pipe());
    if (fclose(stdout) != 0 && !failed) {
        failed = true;
        code = -errno;
    }
    if (failed && !gone)
        fprintf(stderr, "assay: cannot write standard output%s%s\n", code ? ": " : "",
                code ? strerror(-code) : "");
    return failed ? FAILURE_SYSTEM : FAILURE_NONE;
}

static int print_help(const struct verb *verb) {
    cleanup_free char *page = manual_text(verb, manual_width(STDOUT_FILENO));
    fputs(page, stdout);
    return 0;
}

/* Parses the words and runs the command. --help of a command with plugins also describes the plugin that is
 * named. */
static int run_verb(const struct verb *verb, size_t count, const char *const *argv, struct failure *failure) {
    const char *const *words = argv + 2;
    cleanup(verb_arguments_clear) struct verb_arguments arguments = {0};
    cleanup(installation_clear) struct installation installation = {0};
    int r = verb_parse(verb, count, words, &arguments, failure);
    if (r > 0 && (!verb->has_plugins || words[0][0] == '-'))
        return print_help(verb);
    int found = r < 0 ? r : installation_init(&installation, NULL, getenv("ASSAY_PATH"), failure);
    if (found < 0)
        return found;
    path_trust(installation.prefix);
    arguments.installation = &installation;
    arguments.command = argv;
    if (r == 0)
        return verb->run(&arguments, failure);
    (void)print_help(verb);
    putchar('\n');
    (void)plugin_describe(&installation, verb->name, words[0], false,
                          NULL); /* where there is such a plugin */
    return 0;
}

static int run_program(size_t count, const char *const *argv, struct failure *failure) {
    const char *const *words = argv + 1;
    if (count == 0)
        return failure_input(failure, NULL, 0, 0, "no command given; 'assay --help' lists them");
    if (strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0)
        return print_help(NULL);
    if (strcmp(words[0], "--version") == 0) {
        puts("assay " ASSAY_VERSION);
        return 0;
    }
    if (words[0][0] == '-')
        return failure_input(failure, NULL, 0, 0,
                             "unknown option '%s'; expected a command, --help or --version first", words[0]);
    const struct verb *verb = NULL;
    int r = verb_find(words[0], &verb, failure);
    return r < 0 ? r : run_verb(verb, count - 1, argv, failure);
}

int main(int argc, char **argv) {
    if (!hold_standard_descriptors())
        return FAILURE_SYSTEM;
    /* A buffer for standard output: when a write bypasses the buffer, stdio does not keep why it failed. */
    static char buffer[1 << 20];
    if (!isatty(STDOUT_FILENO))
        setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    survive_failed_writes();
    struct failure failure = {0};
    size_t count = argc > 1 ? (size_t)argc - 1 : 0;
    int status = FAILURE_NONE;
    if (run_program(count, (const char *const *)argv, &failure) < 0) {
        status = failure.kind == FAILURE_NONE ? FAILURE_SYSTEM : (int)failure.kind;
        (void)output_flush(); /* results first, when both go to the same place */
        if (failure.code != -EPIPE || !output_is_broken_pipe())
            output_failure(&failure);
    }
    int output = close_standard_output();
    return status != FAILURE_NONE ? status : output;
}
