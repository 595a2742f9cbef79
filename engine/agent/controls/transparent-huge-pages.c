/* Large pages unasked for. Kernel: admin-guide/mm/transhuge.rst. */
#include "engine/agent/controls/control.h"

#include <string.h>

#define FOLDER "sys/kernel/mm/transparent_hugepage"
#define NAME "enabled"

static const char words[] = "always madvise never";

static int look(const struct layout *layout, struct control_look *ret) {
    char value[PLAN_VALUE_SIZE];
    if (layout_value(layout, FOLDER, NAME, value, sizeof value) < 0)
        return control_absent(ret, "this kernel has none");
    control_note_path(ret, FOLDER, NAME);
    plan_choose(value);
    int r = text_append_string(&ret->possible, words);
    return r == 0 ? text_append_string(&ret->value, value) : r;
}

static int files(const struct layout *layout, struct control_files *ret) {
    (void)layout;
    return control_add_file(ret, FOLDER, NAME);
}

static int plan(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure) {
    (void)layout;
    int r = control_check_word(asked, words, failure);
    if (r < 0)
        return r;
    struct plan_write *write = plan_add(ret, -1, FOLDER, NAME, asked);
    if (!write)
        return failure_memory(failure);
    write->kind = PLAN_CHOICE;
    return 0;
}

const struct control control_transparent_huge_pages = {
    .name = "transparent-huge-pages", .look = look, .files = files, .plan = plan};
