#include "tests/test-bed/settings.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options that take a word, and where it goes. */
static const struct {
    const char *option;
    size_t offset;
} words[] = {
    {"--names", offsetof(struct settings, names)},
    {"--user", offsetof(struct settings, user)},
    {"--shell", offsetof(struct settings, shell)},
    {"--gateway", offsetof(struct settings, gateway)},
    {"--disk-size", offsetof(struct settings, disk_size)},
    {"--tmp-size", offsetof(struct settings, tmp_size)},
};

static const struct {
    const char *option;
    size_t offset;
} switches[] = {
    {"--home-read-only", offsetof(struct settings, home_read_only)},
    {"--home-noexec", offsetof(struct settings, home_noexec)},
    {"--tmp-noexec", offsetof(struct settings, tmp_noexec)},
    {"--no-compiler", offsetof(struct settings, no_compiler)},
};

int settings_number(const char *text, long minimum, long maximum, long *ret) {
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < minimum || number > maximum)
        return -EINVAL;
    *ret = number;
    return 0;
}

void settings_name(const struct settings *settings, int number, char name[SETTINGS_WORD_SIZE]) {
    const char *mark = strchr(settings->names, '%');
    snprintf(name, SETTINGS_WORD_SIZE, "%.*s%d%s", (int)(mark - settings->names), settings->names, number,
             mark + 1);
}

static int take_word(struct settings *settings, size_t offset, const char *option, const char *value,
                     struct failure *failure) {
    /* No blank, quote or the like: these go into ssh's and sshd's files and into mount options. */
    size_t good = strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:%+");
    if (value[0] == '\0' || value[good] != '\0' || strlen(value) >= SETTINGS_WORD_SIZE - 8)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "%s '%s': expected a plain word", option,
                                value);
    snprintf((char *)settings + offset, SETTINGS_WORD_SIZE, "%s", value);
    return 0;
}

/* An option with a value that is not a plain word. 1: this is none of them. */
static int take_other(struct settings *settings, const char *option, const char *value,
                      struct failure *failure) {
    long number;
    if (strcmp(option, "--share") == 0) {
        if (settings->share_count == SETTINGS_SHARES_MAX || value[0] != '/' ||
            strlen(value) > SETTINGS_SHARE_LENGTH)
            return failure_set_kind(
                failure, FAILURE_INPUT, -EINVAL,
                "--share '%s': expected an absolute path of at most %d characters, %d times at most", value,
                SETTINGS_SHARE_LENGTH, SETTINGS_SHARES_MAX);
        settings->shares[settings->share_count++] = value;
        return 0;
    }
    if (strcmp(option, "--sshd") == 0) {
        if (settings->sshd_count == SETTINGS_SSHD_MAX || strchr(value, '\n') != NULL)
            return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                    "--sshd '%s': expected one line of sshd_config, %d at most", value,
                                    SETTINGS_SSHD_MAX);
        settings->sshd[settings->sshd_count++] = value;
        return 0;
    }
    if (strcmp(option, "--machine") == 0) {
        settings->machine = value; /* whoever reads it says what is wrong */
        return 0;
    }
    if (strcmp(option, "--owner") == 0) {
        if (settings_number(value, 0, 1 << 30, &number) < 0 || (number != 0 && kill((pid_t)number, 0) < 0))
            return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                    "--owner '%s': expected the id of a process that runs, or 0", value);
        settings->owner = (pid_t)number;
        return 0;
    }
    return 1;
}

static int take_option(struct settings *settings, int *at, int count, char *const *arguments,
                       struct failure *failure) {
    const char *option = arguments[*at];
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (strcmp(option, switches[i].option) == 0) {
            *(bool *)((char *)settings + switches[i].offset) = true;
            return 0;
        }
    const char *value = *at + 1 < count ? arguments[*at + 1] : NULL;
    if (value == NULL)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "'%s' is no option of up that stands alone; see bed help", option);
    *at += 1;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(option, words[i].option) == 0)
            return take_word(settings, words[i].offset, option, value, failure);
    int status = take_other(settings, option, value, failure);
    if (status == 1)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "'%s' is no option of up; see bed help",
                                option);
    return status;
}

int settings_read(struct settings *settings, int count, char *const *arguments, struct failure *failure) {
    struct settings read = {.names = "node%", .user = "root", .disk_size = "512m", .tmp_size = "256m"};
    long nodes;
    if (count < 1 || settings_number(arguments[0], 1, SETTINGS_NODES_MAX, &nodes) < 0)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "'%s' is not a number of nodes; expected 1 to %d",
                                count < 1 ? "" : arguments[0], SETTINGS_NODES_MAX);
    read.nodes = (int)nodes;
    for (int i = 1; i < count; i++) {
        int status = take_option(&read, &i, count, arguments, failure);
        if (status < 0)
            return status;
    }
    const char *mark = strchr(read.names, '%');
    if (mark == NULL || strchr(mark + 1, '%') != NULL || strpbrk(read.names, "/:+") != NULL)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "--names '%s': expected a host name with one %% for the number", read.names);
    *settings = read;
    return 0;
}
