#include "engine/agent/controls/control.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TEXT_LIMIT = 256 << 10 };

static const struct control *const table[CONTROL_COUNT] = {
    [CONTROL_DAEMONS] = &control_daemons,
    [CONTROL_HYPERTHREADS] = &control_hyperthreads,
    [CONTROL_GOVERNOR] = &control_governor,
    [CONTROL_TURBO] = &control_turbo,
    [CONTROL_FREQUENCY] = &control_frequency,
    [CONTROL_ENERGY_PREFERENCE] = &control_energy_preference,
    [CONTROL_IDLE_STATES] = &control_idle_states,
    [CONTROL_UNCORE_FREQUENCY] = &control_uncore_frequency,
    [CONTROL_NUMA_BALANCING] = &control_numa_balancing,
    [CONTROL_TRANSPARENT_HUGE_PAGES] = &control_transparent_huge_pages,
    [CONTROL_ASLR] = &control_aslr,
};

const struct control *control_at(enum control_index index) {
    return table[index];
}

enum control_index control_find(const char *name) {
    unsigned index = 0;
    while (index < CONTROL_COUNT && strcmp(table[index]->name, name) != 0)
        index++;
    return (enum control_index)index;
}

unsigned control_closure(unsigned set) {
    for (unsigned before = ~set; before != set;) {
        before = set;
        for (unsigned index = 0; index < CONTROL_COUNT; index++)
            if (set >> index & 1)
                set |= table[index]->also;
    }
    return set;
}

/* ---- looking */

void control_look_init(struct control_look *look) {
    *look = (struct control_look){0};
    text_init(&look->value, TEXT_LIMIT);
    text_init(&look->possible, TEXT_LIMIT);
}

void control_look_clear(struct control_look *look) {
    text_clear(&look->value);
    text_clear(&look->possible);
}

const char *control_access_name(enum control_access access) {
    static const char *const names[] = {[CONTROL_AVAILABLE] = "available",
                                        [CONTROL_READ_ONLY] = "read-only",
                                        [CONTROL_ABSENT] = "absent",
                                        [CONTROL_DENIED] = "denied"};
    return names[access];
}

/* No file of the kernel does anything when it is only opened for writing. */
static void look_at_rights(const struct machine *machine, struct control_look *look) {
    cleanup_close int file = machine_open_file(machine, look->path, O_WRONLY | O_NONBLOCK);
    if (file >= 0)
        return;
    struct stat status;
    cleanup_close int seen = machine_open_file(machine, look->path, O_PATH);
    if (file == -EROFS || (seen >= 0 && fstat(seen, &status) == 0 && (status.st_mode & 0222) == 0)) {
        look->access = CONTROL_READ_ONLY;
        snprintf(look->why, sizeof look->why, "'/%.120s' cannot be written on this machine", look->path);
        return;
    }
    look->access = CONTROL_DENIED;
    snprintf(look->why, sizeof look->why, "this user may not write '/%.120s': %s", look->path,
             strerror(-file));
}

int control_look_at(const struct control *control, const struct layout *layout, struct control_look *ret) {
    int r = control->look(layout, ret);
    if (r == 0 && ret->access == CONTROL_AVAILABLE && ret->path[0])
        look_at_rights(layout->machine, ret);
    return r;
}

int control_absent(struct control_look *look, const char *why) {
    look->access = CONTROL_ABSENT;
    text_reset(&look->value);
    text_reset(&look->possible);
    snprintf(look->why, sizeof look->why, "%s", why);
    return 0;
}

void control_note_path(struct control_look *look, const char *folder, const char *name) {
    snprintf(look->path, sizeof look->path, "%s/%s", folder, name);
}

void control_note_driver(const struct layout *layout, struct control_look *look) {
    if (layout->policy_count == 0 || layout_value(layout, layout->policies[0].folder, "scaling_driver",
                                                  look->driver, sizeof look->driver) < 0)
        look->driver[0] = '\0';
}

/* ---- what was asked */

int control_parse_switch(const char *asked, bool *ret, struct failure *failure) {
    if (strcmp(asked, "on") != 0 && strcmp(asked, "off") != 0)
        return failure_set(failure, -EINVAL, "'%s' is not possible; expected on or off", asked);
    *ret = strcmp(asked, "on") == 0;
    return 0;
}

int control_check_word(const char *asked, const char *list, struct failure *failure) {
    size_t length = strlen(asked);
    for (const char *at = list; length > 0 && (at = strstr(at, asked)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0') && !strchr(asked, ' '))
            return 0;
    return failure_set(failure, -EINVAL, "'%s' is not possible here; expected one of: %s", asked, list);
}

/* ---- files */

int control_add_file(struct control_files *files, const char *folder, const char *name) {
    int r = list_reserve(&files->paths, &files->capacity, files->count + 1, sizeof *files->paths, PLAN_LIMIT);
    if (r < 0)
        return r;
    char *path = files->paths[files->count];
    if (snprintf(path, PLAN_PATH_SIZE, "%s/%s", folder, name) < PLAN_PATH_SIZE)
        files->count++;
    return 0;
}

int control_add_policy_files(const struct layout *layout, struct control_files *files, const char *name) {
    int r = 0;
    for (size_t i = 0; i < layout->policy_count && r == 0; i++)
        r = control_add_file(files, layout->policies[i].folder, name);
    return r;
}

void control_files_clear(struct control_files *files) {
    free(files->paths);
    *files = (struct control_files){0};
}
