#include "engine/agent/machine/tool.h"

#include "engine/foundation/number.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOT_VARIABLE "ASSAY_AGENT_ROOT"

int tool_complain(int status, const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE + 256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    fprintf(stderr, "assay-agent: %s\n", sentence);
    return status;
}

/* Stores VALUE where OPTION says. -EINVAL after a message for a wrong number. */
static int store_value(const struct tool_option *option, const char *value) {
    if (option->text)
        *option->text = value;
    else if (option->list)
        option->list->items[option->list->count++] = value;
    else if (!number_parse_int64(value, strlen(value), option->number) || *option->number < option->min ||
             *option->number > option->max)
        return tool_complain(-EINVAL, "%s: '%.100s' is not a number from %lld to %lld", option->name, value,
                             (long long)option->min, (long long)option->max);
    return 0;
}

/* Stores the values of options, and moves the other words to the front. The number of these words; -EINVAL
 * after a message. */
int tool_parse(int count, char **arguments, const struct tool_option *options, int words_max) {
    int words = 0, r = 0;
    for (int i = 0; i < count && r == 0; i++) {
        const struct tool_option *option = options;
        while (option->name && strcmp(option->name, arguments[i]) != 0)
            option++;
        if (!option->name && arguments[i][0] == '-')
            return tool_complain(-EINVAL, "unknown option '%.100s'; see --help", arguments[i]);
        if (!option->name && words == words_max)
            return tool_complain(-EINVAL, "unexpected argument '%.100s'; see --help", arguments[i]);
        if (!option->name)
            arguments[words++] = arguments[i];
        else if (option->flag)
            *option->flag = true;
        else if (++i < count)
            r = store_value(option, arguments[i]);
        else
            return tool_complain(-EINVAL, "the option '%s' lacks its value; see --help", option->name);
    }
    return r < 0 ? r : words;
}

void tool_pass_root(const char *root) {
    if (root)
        (void)setenv(ROOT_VARIABLE, root, 1);
    else
        (void)unsetenv(ROOT_VARIABLE);
}

bool tool_passed_root(void) {
    return getenv(ROOT_VARIABLE) != NULL;
}

int tool_open_machine(const char *root, struct machine *ret) {
    struct failure failure = {0};
    if (machine_open(root ? root : getenv(ROOT_VARIABLE), ret, &failure) < 0)
        return tool_complain(2, "%s", failure.text);
    return 0;
}
