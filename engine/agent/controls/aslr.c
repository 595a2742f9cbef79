/* Where in memory programs lie. Kernel: admin-guide/sysctl/kernel.rst (randomize_va_space). Never set: a
 * layout that is always the same is one sample of many, and what is measured in it a bias. */
#include "engine/agent/controls/control.h"

#include <stdio.h>

#define FOLDER "proc/sys/kernel"
#define NAME "randomize_va_space"

static int look(const struct layout *layout, struct control_look *ret) {
    char value[32];
    if (layout_value(layout, FOLDER, NAME, value, sizeof value) < 0)
        return control_absent(ret, "this kernel does not tell");
    ret->access = CONTROL_READ_ONLY;
    snprintf(ret->why, sizeof ret->why, "it is recorded only: a layout that is always the same is a bias");
    return text_append_string(&ret->value, value);
}

static int files(const struct layout *layout, struct control_files *ret) {
    (void)layout;
    return control_add_file(ret, FOLDER, NAME);
}

const struct control control_aslr = {.name = "aslr", .look = look, .files = files};
