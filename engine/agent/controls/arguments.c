#include "engine/agent/controls/arguments.h"

#include "engine/agent/controls/snapshot.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { VALUE_LIMIT = 256 };

static bool complain(const char *sentence, const char *about) {
    fprintf(stderr, "assay-agent: %s: '%.128s'\n", sentence, about);
    return false;
}

static bool take_value(const char *argument, struct control_arguments *ret) {
    const char *equal = strchr(argument, '=');
    char name[64];
    if (!equal || (size_t)(equal - argument) >= sizeof name)
        return complain("expected NAME=VALUE", argument);
    snprintf(name, sizeof name, "%.*s", (int)(equal - argument), argument);
    enum control_index index = control_find(name);
    if (index == CONTROL_COUNT)
        return complain("there is no such control", name);
    if (ret->asked[index])
        return complain("a control is given twice", name);
    if (equal[1] == '\0' || strlen(equal + 1) > VALUE_LIMIT)
        return complain("a value has 1 to 256 bytes", argument);
    ret->asked[index] = equal + 1;
    return true;
}

/* False after a sentence on stderr. */
static bool take(int count, char **arguments, unsigned which, struct control_arguments *ret) {
    *ret = (struct control_arguments){0};
    bool any = false;
    for (int i = 0; i < count; i++) {
        const char *name = arguments[i], **value = NULL;
        if (strcmp(name, "--root") == 0)
            value = &ret->root;
        else if (which & CONTROL_ARGUMENTS_NAMES && strcmp(name, "--session") == 0)
            value = &ret->session;
        else if (which & CONTROL_ARGUMENTS_NAMES && strcmp(name, "--label") == 0)
            value = &ret->label;
        if (value && i + 1 == count)
            return complain("an option lacks its value", name);
        if (value)
            *value = arguments[++i];
        else if (which & CONTROL_ARGUMENTS_ABANDONED && strcmp(name, "--abandoned") == 0)
            ret->abandoned = true;
        else if (!(which & CONTROL_ARGUMENTS_VALUES) || name[0] == '-')
            return complain("unknown argument", name);
        else if (!take_value(name, ret))
            return false;
        else
            any = true;
    }
    if (ret->session && (!ret->session[0] || !snapshot_is_session(ret->session)))
        return complain("a session has 16 hexadecimal digits", ret->session);
    if (ret->label && !snapshot_is_label(ret->label))
        return complain("a label is one word of at most 128 bytes", ret->label);
    if (which & CONTROL_ARGUMENTS_VALUES && !any)
        return complain("nothing is to be set; expected NAME=VALUE", "");
    return true;
}

static int work_on_machine(const struct control_arguments *given, enum shelf_use use, control_work *work,
                           struct lines *lines, struct failure *failure) {
    cleanup(machine_close) struct machine machine = {.root = -1};
    struct shelf shelf;
    int r = machine_open(given->root, &machine, failure);
    if (r < 0)
        return r;
    r = shelf_open(&machine, use, &shelf, failure);
    if (r == -ENOENT && use != SHELF_MAKE)
        return work(NULL, given, lines, failure);
    if (r < 0 && use == SHELF_LOOK)
        (void)work(NULL, given, lines, &(struct failure){0});
    if (r < 0)
        return r;
    r = work(&shelf, given, lines, failure);
    shelf_close(&shelf);
    return r;
}

int control_tool(int count, char **arguments, unsigned which, enum shelf_use use, control_work *work) {
    struct control_arguments given;
    if (!take(count, arguments, which, &given))
        return 2;
    struct failure failure = {0};
    struct lines lines;
    lines_init(&lines, STDOUT_FILENO);
    int r = work_on_machine(&given, use, work, &lines, &failure);
    int written = lines_flush(&lines);
    lines_clear(&lines);
    if (r < 0 && failure.text[0])
        fprintf(stderr, "assay-agent: %s\n", failure.text);
    else if (written < 0)
        fprintf(stderr, "assay-agent: cannot write to stdout: %s\n", strerror(-written));
    return r < 0 || written < 0;
}
